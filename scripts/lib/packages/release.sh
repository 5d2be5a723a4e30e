# shellcheck shell=bash
# scripts/release, with packages of a few bytes and keys that are thrown away: what it refuses, that it makes the same bytes twice,
# and what apt, rpm and dnf say of the result, whole and with a byte changed. apt and dnf run in folders of their own.

try_release() {
    release_tools
    make_keys
    serve "$DEMO/www"
    step 'scripts/release: what it refuses'
    small_packages "$DEMO/small"
    small_tree "$DEMO/tree"
    check_refusals
    step 'scripts/release: the same bytes twice'
    released www
    released again
    diff -r "$DEMO/www" "$DEMO/again" >&2 || die 'the same release differs when it is made again'
    check_signatures
    step 'apt'
    check_apt
    step 'rpm and dnf'
    check_rpm_and_dnf
}

release_tools() {
    "$SCRIPTS/release" tools
    need python3
    need dnf
}

# Two keys, older than every commit: hosts know that of the release, and not a stranger's.
make_keys() {
    local name
    # gpg's agent listens in this folder, and no socket has a long path.
    KEYS=$(mktemp -d)
    export GNUPGHOME=$KEYS
    for name in test stranger; do
        gpg --batch --quiet --faked-system-time 20200101T000000 --passphrase '' --quick-generate-key "$name <$name@binlogd.invalid>" rsa3072 sign never \
            2>"$DEMO/log/gpg" || die_showing "$DEMO/log/gpg" 'gpg cannot make a key'
    done
}

# serve FOLDER: over HTTP on loopback, whether it is there already or not. Sets URL.
serve() {
    python3 -u -m http.server --bind 127.0.0.1 --directory "$1" 0 >"$DEMO/log/http" 2>&1 </dev/null &
    SERVER_PID=$!
    until_true 10 'a server for files answers' grep -q '^Serving' "$DEMO/log/http"
    URL=$(sed -n 's#^Serving .*(\(http:.*\)/).*#\1#p' "$DEMO/log/http")
}

end_release() {
    [[ -z ${SERVER_PID:-} ]] || kill "$SERVER_PID" 2>/dev/null || true
    [[ -z ${KEYS:-} ]] || { gpgconf --kill gpg-agent; rm -rf "$KEYS"; }
}

# Packages of both architectures, named as those of scripts/dist, with one file that fills their middle.
small_packages() {
    local folder=$1 file=$1/binlogd/file architecture
    mkdir -p "$folder/binlogd/DEBIAN"
    head -c 65536 /dev/urandom >"$file"
    printf 'a tarball\n' >"$folder/binlogd-$VERSION-linux-x86_64.tar.gz"
    for architecture in amd64 arm64; do
        printf 'Package: binlogd\nVersion: %s-1\nArchitecture: %s\nMaintainer: a test <test@binlogd.invalid>\nSection: database\nPriority: optional\nDescription: a test\n' \
            "$VERSION" "$architecture" >"$folder/binlogd/DEBIAN/control"
        dpkg-deb --root-owner-group --build "$folder/binlogd" "$folder" >/dev/null
    done
    printf 'Name: binlogd\nVersion: %s\nRelease: 1\nSummary: a test\nLicense: Apache-2.0\n%%description\na test\n%%install\nmkdir -p %%{buildroot}; cp %s %%{buildroot}/file\n%%files\n/file\n' \
        "$VERSION" "$file" >"$folder/binlogd.spec"
    for architecture in x86_64 aarch64; do
        rpmbuild --quiet -bb --target "$architecture-linux" --define "_topdir $DEMO/rpm" --define "_rpmdir $folder" \
            --define '_build_name_fmt %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm' "$folder/binlogd.spec" >"$DEMO/log/rpmbuild" 2>&1 ||
            die_showing "$DEMO/log/rpmbuild" 'rpmbuild failed'
    done
    rm -r "$folder"/{binlogd,binlogd.spec}
}

# A repository in which scripts/release runs as it is, and what builds hands the small packages out.
small_tree() {
    local tree=$1
    mkdir -p "$tree/scripts"
    cp -r "$SCRIPTS"/{release,lib} "$tree/scripts/"
    cp -r packaging "$tree/"
    printf '#!/bin/bash\nmkdir -p "$DIST_DIR" && cp "%s"/* "$DIST_DIR"/\n' "$DEMO/small" >"$tree/scripts/dist"
    printf '#!/bin/bash\necho image >"$DIST_DIR/binlogd-container-$1.tar"\n' >"$tree/scripts/container"
    chmod +x "$tree/scripts"/{dist,container}
    printf '[workspace.package]\nversion = "%s"\n' "$VERSION" >"$tree/Cargo.toml"
    printf '## %s - 2026-01-01\n' "$VERSION" >"$tree/CHANGELOG.md"
    printf '/target\n' >"$tree/.gitignore"
    git -C "$tree" init --quiet
    commit_tree
    git -C "$tree" tag "v$VERSION"
}

commit_tree() {
    git -C "$DEMO/tree" add --all
    GIT_COMMITTER_DATE=2026-01-01T00:00:00Z git -C "$DEMO/tree" -c user.name=test -c user.email=test@binlogd.invalid commit --quiet --message 'a test'
}

# release_tree FOLDER KEY VERSION: the release of the small tree.
release_tree() {
    env -u CARGO_TARGET_DIR -u SOURCE_DATE_EPOCH -u DIST_BINARY -u DIST_FAST RELEASE_DIR="$DEMO/$1" "$DEMO/tree/scripts/release" --key "$2" --url "$URL" "$3"
}

released() { release_tree "$1" test@ "$VERSION" >"$DEMO/log/release" 2>&1 || die_showing "$DEMO/log/release" 'scripts/release failed'; }

# refused TEXT COMMAND…: fails, and says TEXT.
refused() {
    local text=$1
    shift
    ! "$@" >"$DEMO/log/refused" 2>&1 || die "not refused: $*"
    grep -qF -- "$text" "$DEMO/log/refused" || die_showing "$DEMO/log/refused" "refused, but not with '$text': $*"
}

check_refusals() {
    local tree=$DEMO/tree
    refused 'there is no tag v9.9.9' release_tree none test@ 9.9.9
    git -C "$tree" tag v9.9.9
    refused "Cargo.toml says version $VERSION, not 9.9.9" release_tree none test@ 9.9.9
    refused 'none is made here' release_tree none '' "$VERSION"
    refused 'gpg has no secret key nobody' release_tree none nobody "$VERSION"
    refused 'gpg has 2 secret keys' release_tree none binlogd.invalid "$VERSION"
    SOURCE_DATE_EPOCH=1262304000 refused 'a key that is younger than the commit' "$tree/scripts/release" --key test@ --url "$URL" "$VERSION"
    DIST_FAST=1 refused 'unset them' "$tree/scripts/release" --key test@ --url "$URL" "$VERSION"
    printf '\n' >>"$tree/CHANGELOG.md"
    refused 'the tree is not clean' release_tree none test@ "$VERSION"
    printf '## %s - unreleased\n' "$VERSION" >"$tree/CHANGELOG.md"
    commit_tree
    refused "the tag v$VERSION is commit" release_tree none test@ "$VERSION"
    git -C "$tree" tag --force "v$VERSION" >/dev/null
    refused 'CHANGELOG.md has no heading' release_tree none test@ "$VERSION"
    [[ ! -e $DEMO/none ]] || die 'a release that was refused left something behind'
    git -C "$tree" checkout --quiet v9.9.9
    git -C "$tree" tag --force "v$VERSION" >/dev/null
}

check_signatures() {
    local file
    (cd "$DEMO/www" && sha256sum --check --quiet SHA256SUMS) || die 'SHA256SUMS is wrong'
    expect "$(wc -l <"$DEMO/www/SHA256SUMS")" $(($(find "$DEMO/www" -type f | wc -l) - 2)) 'files that SHA256SUMS names'
    gpg --dearmor <"$DEMO/www/binlogd.asc" >"$DEMO/keyring"
    for file in "$DEMO/www"/{SHA256SUMS,files/*.{tar,gz,tgz},yum/*/repodata/repomd.xml}; do
        gpgv --keyring "$DEMO/keyring" "$file.asc" "$file" 2>"$DEMO/log/gpgv" || die_showing "$DEMO/log/gpgv" "the signature of $file is wrong"
        with_changed_byte "$file" refused 'BAD signature' gpgv --keyring "$DEMO/keyring" "$file.asc" "$file"
    done
}

# with_changed_byte FILE COMMAND…: while the byte in the middle of FILE is another one.
with_changed_byte() {
    local file=$1 at byte
    shift
    cp -p "$file" "$DEMO/whole"
    at=$(($(stat -c %s "$file") / 2))
    byte=$(od -An -tx1 -j "$at" -N 1 "$file" | tr -d ' ')
    printf '%b' "\\x$(printf %02x $((0x$byte ^ 1)))" | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
    expect "$(cmp --verbose "$file" "$DEMO/whole" | wc -l)" 1 "changed bytes of $file"
    "$@"
    cp -p "$DEMO/whole" "$file"
}

# In a fresh folder, in which apt knows this repository alone.
apt_update() {
    local root=$DEMO/apt
    rm -rf "$root"
    mkdir -p "$root"/etc/apt/{sources.list.d,preferences.d} "$root"/var/lib/{apt/lists/partial,dpkg} "$root"/var/cache/apt/archives/partial
    : >"$root/var/lib/dpkg/status"
    cp "$DEMO/www/binlogd.sources" "$root/etc/apt/sources.list.d/"
    PRIVATE=(-qq -o "Dir=$root" -o "Dir::State::Status=$root/var/lib/dpkg/status" -o APT::Architecture=amd64 -o APT::Architectures=amd64
        -o APT::Sandbox::User=root -o Acquire::http::Proxy::127.0.0.1=DIRECT -o Acquire::Languages=none)
    apt-get "${PRIVATE[@]}" update
}
apt_fetch() { apt_update && apt-get "${PRIVATE[@]}" install --yes --download-only binlogd; }

check_apt() {
    local lists=apt/dists/stable deb=binlogd_$VERSION-1_amd64.deb list
    list=$lists/main/binary-amd64/Packages
    apt_fetch >"$DEMO/log/apt" 2>&1 || die_showing "$DEMO/log/apt" 'apt does not take the repository'
    cmp "$DEMO/apt/var/cache/apt/archives/$deb" "$DEMO/small/$deb" || die 'apt fetched something else'
    with_changed_byte "$DEMO/www/apt/pool/main/b/binlogd/$deb" refused 'Hash Sum mismatch' apt_fetch
    rm "$DEMO/www/$list".{gz,xz}
    with_changed_byte "$DEMO/www/$list" refused 'Hash Sum mismatch' apt_update
    with_changed_byte "$DEMO/www/$lists/InRelease" refused 'is not signed' apt_update
    # Whole, but by a key that this host was not told of.
    gpg --batch --yes --local-user stranger --output "$DEMO/www/$lists/InRelease" --clear-sign "$DEMO/www/$lists/Release" 2>/dev/null
    refused 'is not signed' apt_update
}

dnf_install() {
    rm -rf "$DEMO/dnf"
    mkdir -p "$DEMO/dnf/repos"
    cp "$DEMO/www/binlogd.repo" "$DEMO/dnf/repos/"
    dnf --assumeyes --installroot="$DEMO/dnf/root" --releasever=1 --forcearch=x86_64 --setopt="reposdir=$DEMO/dnf/repos" \
        --setopt="cachedir=$DEMO/dnf/cache" --setopt="logdir=$DEMO/dnf" install binlogd
}

check_rpm_and_dnf() {
    local keys=(rpmkeys --dbpath "$DEMO/rpmdb" --checksig) folder=$DEMO/www/yum/x86_64 rpm
    mkdir -p "$DEMO/rpmdb"
    refused 'SIGNATURES NOT OK' "${keys[@]}" "$folder"/*.rpm
    rpmkeys --dbpath "$DEMO/rpmdb" --import "$DEMO/www/binlogd.asc"
    for rpm in "$DEMO"/www/yum/{aarch64,x86_64}/*.rpm; do expect "$("${keys[@]}" "$rpm")" "$rpm: digests signatures OK" 'what rpm says'; done
    with_changed_byte "$rpm" refused 'NOT OK' "${keys[@]}" "$rpm"
    [[ $(id -u) -eq 0 ]] || { skip 'dnf installs as root alone'; return; }
    dnf_install >"$DEMO/log/dnf" 2>&1 || die_showing "$DEMO/log/dnf" 'dnf does not take the repository'
    [[ -s $DEMO/dnf/root/file ]] || die 'dnf installed nothing'
    with_changed_byte "$rpm" refused 'checksum' dnf_install
    with_changed_byte "$folder/repodata/repomd.xml" refused 'signature' dnf_install
}

# The chart as Helm reads it: with its own values it is the example for Kubernetes, and others are taken where they belong.
try_chart() {
    local helm values=image=registry.example/binlogd:1,storage=1Ti,source.name=a,source.hosts={b.example:3306},source.user=c,source.secret=d
    helm=$("$SCRIPTS/stores" fetch helm) || die 'helm cannot be had'
    step 'the chart for Helm'
    WORK=$DEMO SOURCE_DATE_EPOCH=0 write_chart "$DEMO"
    "$helm" template binlogd "$DEMO"/*.tgz >"$DEMO/plain.yaml" || die 'helm does not read the chart'
    "$helm" template binlogd "$DEMO"/*.tgz --set "$values" --set-string $'more=[retention]\nmax_files = 9' >"$DEMO/other.yaml" || die 'helm does not take the values'
    for file in plain other; do BINLOGD_NO_SKIPS=1 "$SCRIPTS/manifests" "${DIST_BINARY:-}" "$DEMO/$file.yaml"; done
    "$TARGET_DIR/manifests-venv/bin/python" -c '
import sys, yaml
chart, example = [sorted(filter(None, yaml.safe_load_all(open(name))), key=lambda it: (it["kind"], it["metadata"]["name"])) for name in sys.argv[1:]]
sys.exit(chart != example)' "$DEMO/plain.yaml" packaging/kubernetes/binlogd.yaml || die 'the chart is not the example for Kubernetes'
    for file in registry.example/binlogd:1 1Ti '"a"' b.example:3306 '"c"' 'secretName: d' 'max_files = 9'; do
        [[ $(grep -c -- "$file" "$DEMO/other.yaml") -ge 1 ]] || die "the chart does not take the value $file"
    done
}
