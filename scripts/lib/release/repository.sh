# shellcheck shell=bash
# The repositories of apt and yum, in $OUT.new:
#
#   apt/dists, apt/pool                   signed: the list (Release, InRelease), which has the hash of all else
#   yum/ARCHITECTURE                      signed: the list (repomd.xml) and each package
#   files                                 tarballs, SBOM, images, chart, each with its signature
#   binlogd.asc                           the public key
#   binlogd.sources, binlogd.repo         what points a host here; the first has the key in it
#   SHA256SUMS, SHA256SUMS.asc            of everything above

APT_SUITE=stable

# publish FOLDER: signs and lays out what scripts/dist and scripts/container have put there.
publish() {
    local from=$1 file
    compgen -G "$from/binlogd_*.deb" >/dev/null || die "no .deb in $from: scripts/dist makes them"
    compgen -G "$from/binlogd-*.rpm" >/dev/null || die "no .rpm in $from: scripts/dist makes them"
    cd "$OUT.new"
    public_key >binlogd.asc
    say "apt repository"
    apt_repository "$from"
    say "yum repository"
    yum_repository "$from"
    mkdir files
    for file in "$from"/*; do
        case $file in
            *.deb | *.rpm | */SHA256SUMS) continue ;;
        esac
        cp -- "$file" files/
        sign_file "files/${file##*/}"
    done
    find . -type f -printf '%P\n' | sort | xargs -d '\n' sha256sum -- >"$WORK/SHA256SUMS"
    mv "$WORK/SHA256SUMS" .
    sign_file SHA256SUMS
    cd "$ROOT"
}

# reprepro writes the lists with the time at which it runs, and signs by a library that knows no other time: both are done here.
# Its database is not published: each release is a repository of its own, with its own version alone.
apt_repository() {
    local from=$1 deb architectures release=apt/dists/$APT_SUITE
    architectures=$(for deb in "$from"/binlogd_*.deb; do dpkg-deb --field "$deb" Architecture; done | sort | paste -sd ' ')
    mkdir "$WORK/conf"
    cat >"$WORK/conf/distributions" <<CONF
Origin: binlogd
Label: binlogd
Suite: $APT_SUITE
Codename: $APT_SUITE
Architectures: $architectures
Components: main
Description: binlogd, for Debian and its relatives
DebIndices: Packages Release . .gz .xz
CONF
    for deb in "$from"/binlogd_*.deb; do
        reprepro --silent --confdir "$WORK/conf" --dbdir "$WORK/db" --outdir "$PWD/apt" includedeb "$APT_SUITE" "$deb" >"$WORK/reprepro" 2>&1 ||
            die "reprepro did not take $deb: $(cat "$WORK/reprepro")"
    done
    sed -i "s/^Date: .*/Date: $(date --date="@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S UTC')/" "$release/Release"
    sign --armor --output "$release/InRelease" --clear-sign "$release/Release" || die "gpg did not sign $release/Release"
    sign --armor --output "$release/Release.gpg" --detach-sign "$release/Release" || die "gpg did not sign $release/Release"
    {
        printf 'Types: deb\nURIs: %s/apt\nSuites: %s\nComponents: main\nArchitectures: %s\nSigned-By:\n' "$URL" "$APT_SUITE" "$architectures"
        sed -e 's/^$/./' -e 's/^/ /' binlogd.asc
    } >binlogd.sources
}

yum_repository() {
    local from=$1 rpm architecture folder
    for rpm in "$from"/binlogd-*.rpm; do
        architecture=$(rpm --query --package --nosignature --queryformat '%{ARCH}' "$rpm")
        folder=yum/$architecture
        mkdir -p "$folder"
        cp -- "$rpm" "$folder/"
        sign_rpm "$folder/${rpm##*/}"
        # The list tells the time of the file.
        touch --date="@$SOURCE_DATE_EPOCH" "$folder/${rpm##*/}"
    done
    for folder in yum/*; do
        createrepo_c --quiet --no-database --revision "$SOURCE_DATE_EPOCH" --set-timestamp-to-revision "$folder" >"$WORK/createrepo" 2>&1 ||
            die "createrepo_c failed: $(cat "$WORK/createrepo")"
        sign_file "$folder/repodata/repomd.xml"
    done
    cat >binlogd.repo <<REPO
[binlogd]
name=binlogd
baseurl=$URL/yum/\$basearch
enabled=1
gpgcheck=1
repo_gpgcheck=1
gpgkey=$URL/binlogd.asc
REPO
}
