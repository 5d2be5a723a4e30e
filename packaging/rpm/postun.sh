if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
fi
# What was acknowledged may exist nowhere else: it goes when somebody says so.
if [ "$1" -eq 0 ] && [ -d /var/lib/binlogd ] && ! rmdir /var/lib/binlogd 2>/dev/null; then
    echo "binlogd: /var/lib/binlogd is kept, with every transaction in it that was acknowledged." >&2
fi
