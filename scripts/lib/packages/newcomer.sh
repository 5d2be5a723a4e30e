# shellcheck shell=bash
# What docs/install.md tells a newcomer, word for word, from the installed package to the first commit that waits for binlogd.

# So long may the machine take for it. Nobody types here.
NEWCOMER_SECONDS_MAX=60

try_newcomer() {
    local started before url secret options=()
    step "a newcomer: $SOURCE_TITLE as it comes from its package, and binlogd setup"
    # Neither plugin nor settings for semi-sync.
    "$SCRIPTS/servers" start "$SOURCE" --dir "$DEMO/source" -- --plugin-load= >"$DEMO/log/servers.log" ||
        die "$SOURCE_TITLE did not start; $DEMO/source/error.log says why"
    PORT=$(sed -n 's/^PORT=//p' "$DEMO/source/server.env")
    secret=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    sql <<<"CREATE USER 'dba'@'127.0.0.1' IDENTIFIED BY '$secret'; GRANT ALL ON *.* TO 'dba'@'127.0.0.1' WITH GRANT OPTION;" ||
        die "$SOURCE_TITLE did not accept the administrator"
    url=mysql://dba@127.0.0.1:$PORT
    # The Debian has this host's network, where another binlogd may run.
    if (exec 3<>/dev/tcp/127.0.0.1/9306) 2>/dev/null; then
        options=(--admin-listen 127.0.0.1:0)
        say 'something answers at 127.0.0.1:9306: binlogd gets another admin address'
    fi
    started=$(now_us)
    set_up
    in_unit systemctl start binlogd
    set_up
    # Who types waits longer than a program before the last step.
    until_true "$NEWCOMER_SECONDS_MAX" 'binlogd setup switches semi-sync on' is_switched_on
    before=$(sql <<<"SHOW GLOBAL STATUS LIKE '${SEMI_SYNC}_yes_tx'" | cut -f2)
    sql <<<'CREATE DATABASE shop'
    NEWCOMER_MS=$((($(now_us) - started) / 1000))
    expect "$(sql <<<"SHOW GLOBAL STATUS LIKE '${SEMI_SYNC}_yes_tx'" | cut -f2)" $((before + 1)) 'commits that binlogd has acknowledged'
    in_unit binlogd status >"$DEMO/log/status"
    grep -q 'default' "$DEMO/log/status" || die_showing "$DEMO/log/status" 'binlogd status does not name the source'
    [[ $NEWCOMER_MS -lt $((NEWCOMER_SECONDS_MAX * 1000)) ]] || die "the first acknowledged commit took $NEWCOMER_MS ms"
    step "from binlogd setup to the first acknowledged commit: $((NEWCOMER_MS / 1000)).$(printf %03d $((NEWCOMER_MS % 1000))) s"
    forget_newcomer
}

# An administrator's call, as on the page; --yes in place of his answer.
set_up() {
    inside env "BINLOGD_PASSWORD=$secret" binlogd setup "$url" --apply --yes "${options[@]}" >"$DEMO/log/setup" 2>&1 ||
        die_showing "$DEMO/log/setup" 'binlogd setup failed'
}

is_switched_on() {
    [[ $(sql <<<"SELECT @@GLOBAL.${SEMI_SYNC}_enabled") != 1 ]] || return 0
    set_up
    [[ $(sql <<<"SELECT @@GLOBAL.${SEMI_SYNC}_enabled") == 1 ]]
}

# What follows begins with the package alone, and another source.
forget_newcomer() {
    in_unit systemctl stop binlogd
    inside sh -c 'rm -r /etc/binlogd/binlogd.toml /etc/binlogd/default.password /var/lib/binlogd/*'
    "$SCRIPTS/servers" stop "$DEMO/source" >/dev/null
    rm -rf "$DEMO/source"
}
