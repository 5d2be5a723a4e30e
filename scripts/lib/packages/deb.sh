# shellcheck shell=bash
# The life of the .deb: installed, configured, upgraded under load, removed, installed again, purged.

# Longest that a commit may wait for the acknowledgement while the package is upgraded.
WAIT_MS_MAX=5000
ATTACH_SECONDS_MAX=60

try_deb() {
    lint_deb
    check_deb "$(echo "$OLD"/binlogd_*.deb)"
    can_start_system || return 0
    DEBIAN=$DEMO/debian/root
    new_debian "$DEMO/debian"
    ln -s "$DEBIAN/var/lib/binlogd" "$DEMO/copy"
    step "starting a clean Debian $DEBIAN_SUITE, with systemd"
    start_system "$DEMO/debian"
    step 'installing the .deb'
    dpkg_i old
    check_installed
    try_newcomer
    step "starting $SOURCE_TITLE as the source, and binlogd by its unit"
    start_source
    configure "$DEBIAN/etc/binlogd"
    in_unit systemctl start binlogd
    until_true "$ATTACH_SECONDS_MAX" 'binlogd receives, with semi-sync' receives
    check_sandbox
    upgrade_under_load
    compare_with_ledger
    remove_and_install_again
    purge
    end_system
    end_source
}

dpkg_i() { inside sh -c "dpkg --install /packages/$1/binlogd_*.deb" >"$DEMO/log/dpkg" 2>&1 || die_showing "$DEMO/log/dpkg" "dpkg cannot install the package of $1"; }

# The new package, as this Debian got the old one.
upgrade() {
    [[ ${WAY:-dpkg} == apt ]] || { dpkg_i new; return; }
    apt_upgrade >"$DEMO/log/apt" 2>&1 || die_showing "$DEMO/log/apt" 'apt cannot upgrade the package'
}

in_unit() { inside "$@" || { inside journalctl --no-pager -u binlogd | tail -n 20 >&2; die "failed: $*"; }; }

expect() { [[ $1 == "$2" ]] || die "$3: $1, and not $2"; }

check_installed() {
    local said libc=musl
    # A program that is only handed to scripts/dist may be built for another one.
    [[ -z ${DIST_BINARY:-} ]] || libc='[a-z]+'
    said=$(inside binlogd --version)
    [[ $said =~ ^binlogd\ $VERSION\ \([0-9a-f]{12}(-dirty)?\ [0-9]{4}-[0-9]{2}-[0-9]{2},\ $(uname -m)-unknown-linux-$libc\)$ ]] || die "binlogd --version says: $said"
    expect "$(inside systemctl is-enabled binlogd)" enabled 'the unit'
    expect "$(inside systemctl is-active binlogd || true)" inactive 'the unit before a configuration'
    in_unit systemctl start binlogd
    expect "$(inside systemctl show -p ConditionResult --value binlogd)" no 'the condition of the unit before a configuration'
    expect "$(inside stat -c '%a %U:%G' /var/lib/binlogd)" '700 binlogd:binlogd' '/var/lib/binlogd'
    expect "$(inside stat -c '%a %U:%G' /etc/binlogd)" '750 root:binlogd' '/etc/binlogd'
    expect "$(inside dpkg-query -W -f '${Conffiles}' binlogd | awk '{ print $1 }')" /etc/binlogd/binlogd.toml.example 'the conffiles'
    inside sh -c 'cp /etc/binlogd/binlogd.toml.example /tmp/binlogd.toml && binlogd config check /tmp/binlogd.toml' >/dev/null ||
        die 'the example configuration does not pass binlogd config check'
}

# configure FOLDER: the configuration and the password, for the source of this test.
configure() {
    local folder=$1
    printf '%s\n' "$REPLICATION_PASSWORD" >"$folder/password"
    cat >"$folder/binlogd.toml" <<TOML
data_dir = "/var/lib/binlogd"
[admin]
listen = "127.0.0.1:0"
[[source]]
name = "shop"
hosts = ["127.0.0.1:$PORT"]
user = "repl"
password_file = "password"
TOML
    inside sh -c 'chown binlogd /etc/binlogd/password && chmod 400 /etc/binlogd/password && chmod 644 /etc/binlogd/binlogd.toml'
}

receives() {
    local status
    inside systemctl is-active --quiet binlogd || die "the unit does not run: $(inside journalctl --no-pager -u binlogd | tail -n 8)"
    inside binlogd health --config /etc/binlogd/binlogd.toml >/dev/null || return 1
    status=$(inside binlogd status --config /etc/binlogd/binlogd.toml --json | tr -d ' \n') || return 1
    [[ $status == *'"semi_sync":{"active":true'* ]]
}

check_sandbox() {
    local pid
    pid=$(main_pid)
    expect "$(inside stat -c %U "/proc/$pid")" binlogd 'the account of the daemon'
    expect "$(inside awk '/^CapEff/ { print $2 }' "/proc/$pid/status")" 0000000000000000 'capabilities of the daemon'
}

main_pid() { inside systemctl show -p MainPID --value binlogd; }

upgrade_under_load() {
    local sysbench before after longest answer
    mkdir "$DEMO/ledger"
    create_tables
    sysbench=$("$SCRIPTS/servers" sysbench) || die 'sysbench could not be fetched'
    step "loading $SOURCE_TITLE: $THREADS clients for $LOAD_SECONDS s, and the upgrade in the middle"
    "$sysbench" "$SCRIPTS/lib/demo/load.lua" --mysql-host=127.0.0.1 "--mysql-port=$PORT" --mysql-user=root --mysql-db=demo \
        "--threads=$THREADS" "--time=$LOAD_SECONDS" --events=0 --report-interval=1 "--ledger-dir=$DEMO/ledger" run \
        >"$DEMO/log/sysbench" 2>&1 </dev/null &
    LOAD_PID=$!
    sleep $((LOAD_SECONDS / 3))
    before=$(main_pid)
    load_runs || die_showing "$DEMO/log/sysbench" 'the load ended before the upgrade'
    upgrade
    after=$(main_pid)
    load_runs || die_showing "$DEMO/log/sysbench" 'the load ended before the upgrade did'
    [[ $after != 0 && $after != "$before" ]] || die "the upgrade did not restart the daemon (process $before, then $after)"
    expect "$(inside dpkg-query -W -f '${Version}' binlogd)" "$VERSION-2" 'the version after the upgrade'
    wait "$LOAD_PID" || die_showing "$DEMO/log/sysbench" 'a client met an error'
    LOAD_PID=
    answer=$(printf "SHOW GLOBAL STATUS LIKE '%s_%%';" "$SEMI_SYNC" | sql)
    expect "$(semi_sync_value no_tx "$answer")" 0 'commits for which the source did not wait'
    longest=$(sed -n '/^Latency (ms):/,$s/^ *max: *\([0-9]*\)\..*/\1/p' "$DEMO/log/sysbench")
    [[ -n $longest ]] || die_showing "$DEMO/log/sysbench" 'sysbench does not tell the longest wait'
    step "upgraded: $(count "$(committed_count)") commits, the longest transaction took $longest ms"
    [[ $longest -lt $WAIT_MS_MAX ]] || die "a transaction took $longest ms, which must be less than $WAIT_MS_MAX"
}

compare_with_ledger() {
    step 'comparing what the clients were told with the copy'
    # All that was acknowledged is in the journal; the files have it when the daemon has ended.
    in_unit systemctl stop binlogd
    in_unit binlogd verify /var/lib/binlogd >"$DEMO/log/verify"
    compare
    step "$(count "$FOUND") of $(count "$COMMITTED") committed transactions are in the copy, 0 lost"
}

# What must outlast the package: every file of the copy that is not the running daemon's own, and the configuration.
kept() { (cd "$DEBIAN/var/lib/binlogd" && find . -name search-index -prune -o -type f \( -name 'mysql-bin.*' -o -name timeline.toml \) -print | sort | xargs sha256sum); }

remove_and_install_again() {
    local before timelines
    step 'removing the package, and installing it again'
    before=$(kept)
    timelines=$(find "$DEBIAN"/var/lib/binlogd/*/ -maxdepth 1 -name '0*' | wc -l)
    in_unit systemctl start binlogd
    until_true "$ATTACH_SECONDS_MAX" 'binlogd receives' receives
    inside dpkg --remove binlogd >"$DEMO/log/dpkg" 2>&1 || die_showing "$DEMO/log/dpkg" 'dpkg cannot remove the package'
    expect "$(inside systemctl is-active binlogd || true)" inactive 'the unit of a removed package'
    [[ ! -e $DEBIAN/usr/bin/binlogd ]] || die 'the program of a removed package is still there'
    expect "$(kept)" "$before" 'what the removed package left of the copy'
    [[ -s $DEBIAN/etc/binlogd/binlogd.toml && -s $DEBIAN/etc/binlogd/password ]] || die 'the configuration went with the package'
    dpkg_i new
    in_unit systemctl start binlogd
    until_true "$ATTACH_SECONDS_MAX" 'binlogd receives after it was installed again' receives
    sql <<<'INSERT INTO demo.ledger VALUES (1, 1, "after the reinstallation")'
    expect "$(find "$DEBIAN"/var/lib/binlogd/*/ -maxdepth 1 -name '0*' | wc -l)" "$timelines" 'timelines after the reinstallation'
}

purge() {
    local before
    step 'purging the package'
    in_unit systemctl stop binlogd
    before=$(kept)
    inside dpkg --purge binlogd >"$DEMO/log/purge" 2>&1 || die_showing "$DEMO/log/purge" 'dpkg cannot purge the package'
    grep -q '/var/lib/binlogd is kept' "$DEMO/log/purge" || die_showing "$DEMO/log/purge" 'the purge does not say that the data is kept'
    expect "$(kept)" "$before" 'what the purge left of the copy'
    [[ ! -e $DEBIAN/etc/binlogd ]] || die 'the purge left /etc/binlogd, with the password'
    dpkg_i new
    configure "$DEBIAN/etc/binlogd"
    in_unit systemctl start binlogd
    until_true "$ATTACH_SECONDS_MAX" 'binlogd receives after a purge' receives
    expect "$(find "$DEBIAN"/var/lib/binlogd/*/ -maxdepth 1 -name '0*' | wc -l)" 1 'timelines after a purge'
    in_unit systemctl stop binlogd
    in_unit binlogd verify /var/lib/binlogd >"$DEMO/log/verify"
    # Where nothing was received, nothing stays.
    inside sh -c 'rm -r /var/lib/binlogd/* && dpkg --purge binlogd' >"$DEMO/log/purge" 2>&1 || die_showing "$DEMO/log/purge" 'dpkg cannot purge the package'
    [[ ! -e $DEBIAN/var/lib/binlogd ]] || die 'an empty data folder outlives a purge'
}
