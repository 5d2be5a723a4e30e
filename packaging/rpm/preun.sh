if [ "$1" -eq 0 ] && [ -d /run/systemd/system ]; then
    systemctl --no-reload disable --now binlogd.service binlogd-verify.timer || :
fi
