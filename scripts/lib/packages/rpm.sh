# shellcheck shell=bash
# The life of the .rpm. Its scripts run in a root of their own; systemd does not run there, which the .deb has shown.

try_rpm() {
    local rpm=() root
    need rpm
    rpm=("$OLD"/binlogd-*.rpm)
    step 'the .rpm: what is in it, and rpmlint'
    lint_rpm "${rpm[0]}"
    check_rpm "${rpm[0]}"
    can_start_system || return 0
    step 'installing, upgrading and removing the .rpm in a root of its own'
    new_debian "$DEMO/rpm"
    root=$DEMO/rpm/root
    # No database of packages of Red Hat's is there to look dependencies up in.
    in_root() { rpm --root "$root" --nodeps "$@" >"$DEMO/log/rpm" 2>&1 || die_showing "$DEMO/log/rpm" "failed: rpm $*"; }
    rpm --root "$root" --initdb
    in_root --install "${rpm[0]}"
    expect "$(chroot "$root" stat -c '%a %U:%G' /var/lib/binlogd)" '700 binlogd:binlogd' '/var/lib/binlogd of the .rpm'
    expect "$(chroot "$root" stat -c '%a %U:%G' /etc/binlogd)" '750 root:binlogd' '/etc/binlogd of the .rpm'
    [[ $(chroot "$root" binlogd --version) == "binlogd $VERSION "* ]] || die 'the program of the .rpm does not run'
    printf '# changed\n' >>"$root/etc/binlogd/binlogd.toml.example"
    printf 'data\n' >"$root/var/lib/binlogd/file"
    in_root --upgrade "$NEW"/binlogd-*.rpm
    expect "$(rpm --root "$root" --query --queryformat '%{RELEASE}' binlogd)" 2 'the release after the upgrade'
    [[ $(tail -n 1 "$root/etc/binlogd/binlogd.toml.example") == '# changed' ]] || die 'the upgrade replaced a file that was changed'
    in_root --erase binlogd
    [[ ! -e $root/usr/bin/binlogd && -s $root/var/lib/binlogd/file ]] || die 'what the .rpm left: the program, or not the data'
    grep -q 'is kept' "$DEMO/log/rpm" || die_showing "$DEMO/log/rpm" 'the removal does not say that the data is kept'
}
