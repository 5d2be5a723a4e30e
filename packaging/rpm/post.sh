systemd-sysusers binlogd.conf || exit 1
if [ "$1" -eq 1 ]; then
    # The rights are the administrator's afterwards. Passwords lie in the one, all data in the other.
    chown root:binlogd /etc/binlogd && chmod 750 /etc/binlogd
    [ -e /var/lib/binlogd ] || install -d -m 700 -o binlogd -g binlogd /var/lib/binlogd
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
    # Who runs is restarted at once: until then commits wait. Nothing is started before it is configured.
    if [ "$1" -eq 1 ]; then
        systemctl preset binlogd.service || :
    else
        systemctl try-restart binlogd.service || :
    fi
fi
