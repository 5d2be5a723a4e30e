# shellcheck shell=bash
# What the packages hold, laid out as it will be installed, in $BUILT/package (both) and in package-deb and package-rpm
# beside it (what each has at a place of its own); the program in package-bin.

stage() {
    STAGE=$BUILT/package
    local debian=$BUILT/package-deb redhat=$BUILT/package-rpm doc=$STAGE/usr/share/doc/binlogd
    rm -rf "${STAGE:?}" "${debian:?}" "${redhat:?}"
    mkdir -p "$doc"
    install -D -m 755 "$BINARY" "$BUILT/package-bin/binlogd"
    touch --date="@$SOURCE_DATE_EPOCH" "$BUILT/package-bin/binlogd"
    stage_daemon_unit
    stage_unit binlogd-verify.service
    stage_unit binlogd-verify.timer
    put packaging/systemd/binlogd.sysusers.conf "$STAGE/usr/lib/sysusers.d/binlogd.conf"
    # The configuration is the administrator's, so that no upgrade asks about it. The example is the package's.
    mkdir -p "$STAGE/etc/binlogd"
    reference example "$STAGE/etc/binlogd/binlogd.toml.example"
    sed -i 's#^\#data_dir = .*#data_dir = "/var/lib/binlogd"#' "$STAGE/etc/binlogd/binlogd.toml.example"
    grep -q '^data_dir = "/var/lib/binlogd"$' "$STAGE/etc/binlogd/binlogd.toml.example" || die "the example has no data_dir"
    stage_reference
    stage_pages "$doc"
    put "$BUILT/completions/_binlogd" "$debian/usr/share/zsh/vendor-completions/_binlogd"
    put "$BUILT/completions/_binlogd" "$redhat/usr/share/zsh/site-functions/_binlogd"
    # Debian's packages say it in a file named copyright, which cargo-deb writes.
    put LICENSE "$redhat/usr/share/licenses/binlogd/LICENSE"
    write_licences "$BUILT/THIRD-PARTY-LICENSES"
    put "$BUILT/THIRD-PARTY-LICENSES" "$redhat/usr/share/licenses/binlogd/THIRD-PARTY-LICENSES"
    put "$BUILT/THIRD-PARTY-LICENSES" "$debian/usr/share/doc/binlogd/THIRD-PARTY-LICENSES"
    gzip --no-name -9 "$debian/usr/share/doc/binlogd/THIRD-PARTY-LICENSES"
    stage_changelog "$debian/usr/share/doc/binlogd"
    put packaging/deb/binlogd.lintian-overrides "$debian/usr/share/lintian/overrides/binlogd"
    find "$STAGE" "$debian" "$redhat" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

put() { install -D -m 644 -- "$@"; }

# stage_unit NAME: the units of the repository are those of a program in /usr/local, with how to install them by hand.
stage_unit() {
    local unit=$STAGE/usr/lib/systemd/system/$1
    mkdir -p "${unit%/*}"
    sed -e '/^#   /d' -e 's#/usr/local/bin/#/usr/bin/#' "packaging/systemd/$1" |
        awk 'NR > 1 && !(last == "#" && ($0 == "#" || $0 == "")) { print last } { last = $0 } END { print last }' >"$unit"
    ! grep -q /usr/local "$unit" || die "the unit for the packages is not right: $unit"
    chmod 644 "$unit"
}

# The daemon is enabled by the packages, so that it has to wait for a configuration.
stage_daemon_unit() {
    local unit=$STAGE/usr/lib/systemd/system/binlogd.service
    stage_unit binlogd.service
    sed -i '/^\[Unit\]/a # There is none before somebody has written it: binlogd setup does, and binlogd.toml.example says what belongs in there.\nConditionPathExists=/etc/binlogd/binlogd.toml' "$unit"
    grep -q '^Documentation=' "$unit" || sed -i '/^\[Unit\]/a Documentation=man:binlogd(1)' "$unit"
    grep -q '^ExecStart=/usr/bin/binlogd run ' "$unit" || die "the unit for the packages does not start the program: $unit"
}

reference() { "$REFERENCE" "$@" >&2 || die "binlogd-reference $* failed"; }

# Man pages and completions, by the program itself. What writes them runs here, so it is of this machine's architecture.
stage_reference() {
    local folder=$STAGE/usr/share
    reference man "$folder/man/man1"
    mkdir -p "$folder/man/man5"
    mv "$folder/man/man1"/*.5 "$folder/man/man5/"
    gzip --no-name -9 "$folder"/man/man?/*
    reference completions "$BUILT/completions"
    put "$BUILT/completions/binlogd.bash" "$folder/bash-completion/completions/binlogd"
    put "$BUILT/completions/binlogd.fish" "$folder/fish/vendor_completions.d/binlogd.fish"
}

stage_pages() {
    local doc=$1 folder
    put README.md "$doc/README.md"
    for page in docs/*.md docs/*/*.md; do put "$page" "$doc/$page"; done
    # For Prometheus and Grafana, and what fails over by itself, where the sources have them; the tests of the rules are of no use elsewhere.
    for folder in prometheus grafana failover; do
        [[ -d packaging/$folder ]] || continue
        find "packaging/$folder" -maxdepth 1 -type f ! -name '*test*' | sort | while read -r file; do
            put "$file" "$STAGE/usr/share/binlogd/$folder/${file##*/}"
        done
    done
}

stage_changelog() {
    local folder=$1
    mkdir -p "$folder"
    gzip --no-name -9 <CHANGELOG.md >"$folder/changelog.gz"
    gzip --no-name -9 >"$folder/changelog.Debian.gz" <<CHANGELOG
binlogd ($VERSION-$REVISION) stable; urgency=medium

  * Version $VERSION of binlogd. What has changed in it: changelog.gz

 -- $(maintainer)  $(date --date="@$SOURCE_DATE_EPOCH" --rfc-email)
CHANGELOG
}

maintainer() { printf '%s' "${DIST_MAINTAINER:-$(sed -n 's/^maintainer = "\(.*\)"/\1/p' crates/binlogd/Cargo.toml)}"; }
