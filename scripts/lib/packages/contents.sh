# shellcheck shell=bash
# What the packages hold, and what the checkers of the distributions say about it. Nothing is installed.

# In both packages, in the same place. The folder of zsh's completions is each distribution's own.
CONTENTS=(/usr/bin/binlogd
    /usr/lib/systemd/system/{binlogd.service,binlogd-verify.service,binlogd-verify.timer} /usr/lib/sysusers.d/binlogd.conf
    /etc/binlogd/binlogd.toml.example
    /usr/share/man/man1/{binlogd,binlogd-run,binlogd-setup,binlogd-health,binlogd-rescue,binlogd-verify}.1.gz /usr/share/man/man5/binlogd.toml.5.gz
    /usr/share/bash-completion/completions/binlogd /usr/share/fish/vendor_completions.d/binlogd.fish
    /usr/share/binlogd/{prometheus/binlogd.rules.yml,grafana/binlogd.json,failover/binlogd-failover,failover/haproxy-switch}
    /usr/share/doc/binlogd/README.md /usr/share/doc/binlogd/docs/{install,runbook,reference/keys}.md)
CONTENTS_DEB=(/usr/share/zsh/vendor-completions/_binlogd /usr/share/doc/binlogd/{copyright,changelog.Debian.gz,THIRD-PARTY-LICENSES.gz})
CONTENTS_RPM=(/usr/share/zsh/site-functions/_binlogd /usr/share/licenses/binlogd/{LICENSE,THIRD-PARTY-LICENSES})
CONTENTS_TAR=(binlogd binlogd.service binlogd.sysusers.conf binlogd.toml.example LICENSE THIRD-PARTY-LICENSES README.md CHANGELOG.md
    docs/install.md man/man1/binlogd.1.gz completions/_binlogd)

# The short form: a program that is built anyway, packed and looked at.
try_contents() {
    local said
    lint_deb
    check_deb "$(echo "$OLD"/binlogd_*.deb)"
    step 'rpmlint'
    lint_rpm "$(echo "$OLD"/binlogd-*.rpm)"
    check_rpm "$(echo "$OLD"/binlogd-*.rpm)"
    step 'tarball and SBOM'
    check_tar "$(echo "$OLD"/binlogd-*.tar.gz)"
    grep -q '"name": "tokio-rustls"' "$OLD"/binlogd-*.cdx.json || die 'the SBOM does not name a crate that is in the program'
    dpkg-deb --extract "$OLD"/binlogd_*.deb "$DEMO/unpacked"
    said=$("$DEMO/unpacked/usr/bin/binlogd" --version) || die 'the packed program does not start'
    [[ $said == "binlogd $VERSION ("* ]] || die "the packed program says: $said"
    "$DEMO/unpacked/usr/bin/binlogd" config check "$DEMO/unpacked/etc/binlogd/binlogd.toml.example" >/dev/null || die 'the example configuration does not pass'
}

lint_deb() {
    local deb suppressed=bad-distribution-in-changes-file
    has_linter lintian || return 0
    # The program of the tests is not static, nor need be what was handed to scripts/dist.
    [[ -n ${WANTS_ALL:-} && -z ${DIST_BINARY:-} ]] || suppressed+=,missing-dependency-on-libc
    deb=$(echo "$OLD"/binlogd_*.deb)
    step 'lintian'
    # As root it warns of itself. Errors and warnings end it with 2.
    lintian --allow-root --fail-on error,warning --suppress-tags "$suppressed" "$deb" || die "lintian finds something in $deb"
}

lint_rpm() {
    has_linter rpmlint || return 0
    rpmlint --strict --config packaging/rpm/rpmlint.toml "$1" || die "rpmlint finds something in $1"
}

# The full test installs what is missing. The short form does without, and says so.
has_linter() {
    [[ -n ${WANTS_ALL:-} ]] || command -v "$1" >/dev/null || { skip "$1 is not installed (apt-get install $1)"; return 1; }
    need "$1"
}

# holds PACKAGE LIST FILE…: fails unless each FILE is a line of LIST.
holds() {
    local package=$1 list=$2 file
    shift 2
    for file in "$@"; do grep -qxF -- "$file" <<<"$list" || die "${package##*/} has no $file"; done
}

check_deb() {
    local list
    list=$(dpkg-deb --contents "$1" | awk '{ print substr($6, 2) }')
    holds "$1" "$list" "${CONTENTS[@]}" "${CONTENTS_DEB[@]}"
    expect "$(dpkg-deb --info "$1" conffiles)" /etc/binlogd/binlogd.toml.example 'the conffiles of the .deb'
    expect "$(dpkg-deb --contents "$1" | awk '$2 != "0/0"')" '' 'owners in the .deb other than root'
}

check_rpm() {
    local list
    list=$(rpm --query --package --list "$1" 2>/dev/null)
    holds "$1" "$list" "${CONTENTS[@]}" "${CONTENTS_RPM[@]}"
    expect "$(rpm --query --package --configfiles "$1" 2>/dev/null)" /etc/binlogd/binlogd.toml.example 'the configuration files of the .rpm'
}

check_tar() { holds "$1" "$(tar -tzf "$1" | sed 's#^[^/]*/##')" "${CONTENTS_TAR[@]}"; }
