# shellcheck shell=bash
# tar.gz, .deb, .rpm and the list of what is in the binary (SBOM), of one architecture.

# For who installs by hand: the program, the unit, man pages, completions, and the texts that he needs.
pack_tar() {
    local name=binlogd-$VERSION-linux-$ARCHITECTURE
    local folder=$BUILT/$name
    rm -rf "${folder:?}"
    mkdir -p "$folder"
    install -m 755 "$BINARY" "$folder/binlogd"
    install -m 644 LICENSE "$BUILT/THIRD-PARTY-LICENSES" README.md CHANGELOG.md packaging/systemd/binlogd* "$STAGE/etc/binlogd/binlogd.toml.example" "$folder/"
    cp -r "$STAGE/usr/share/man" "$BUILT/completions" "$STAGE/usr/share/doc/binlogd/docs" "$folder/"
    [[ ! -d $STAGE/usr/share/binlogd ]] || cp -r "$STAGE/usr/share/binlogd"/* "$folder/"
    # Names in order, owner and times fixed.
    tar --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$SOURCE_DATE_EPOCH" -C "$BUILT" -cf - "$name" |
        gzip --no-name "-${DIST_FAST:-9}" >"$DIST/$name.tar.gz"
    rm -rf "${folder:?}"
}

pack_deb() {
    say "packing the .deb"
    need xz xz-utils
    "$(tool cargo-deb "$CARGO_DEB")" --package binlogd --no-build --no-strip --locked --quiet --compress-system --profile packaged \
        --target "$TARGET" --deb-revision "$REVISION" --maintainer "$(maintainer)" ${DIST_FAST:+--fast} --output "$DIST/" >&2
}

pack_rpm() {
    local assets=$BUILT/rpm-assets.toml folder file
    say "packing the .rpm"
    {
        printf 'release = "%s"\n' "$REVISION"
        printf 'assets = [\n'
        printf '  { source = "%s", dest = "/usr/bin/binlogd", mode = "755" },\n' "$BUILT/package-bin/binlogd"
        for folder in "$STAGE" "$BUILT/package-rpm"; do
            find "$folder" -type f | sort | while read -r file; do
                printf '  { source = "%s", dest = "%s", mode = "644"%s },\n' "$file" "${file#"$folder"}" "$(rpm_kind "${file#"$folder"}")"
            done
        done
        printf ']\n'
    } >"$assets"
    # No --profile and --target for the paths: those are whole.
    "$(tool cargo-generate-rpm "$CARGO_GENERATE_RPM")" generate-rpm --package crates/binlogd --target "$TARGET" --profile packaged \
        ${DIST_FAST:+--payload-compress none} --metadata-overwrite "$assets" --output "$DIST/" >&2
}

rpm_kind() {
    case $1 in
        /etc/*) printf ', config = "noreplace"' ;;
        /usr/share/doc/* | /usr/share/man/*) printf ', doc = true' ;;
    esac
}

# CycloneDX: every crate in the binary with version, licence and checksum. The tool writes beside the manifests, of all members
# of the workspace; it knows no other folder.
pack_sbom() {
    local name=binlogd-$VERSION-linux-$ARCHITECTURE.cdx
    say "writing the SBOM"
    "$(tool cargo-cyclonedx "$CARGO_CYCLONEDX")" cyclonedx --quiet --format json --spec-version 1.5 --target "$TARGET" \
        --no-build-deps --override-filename "$name" >&2
    # Where the sources lay is nobody's business. As an address it has %20 for a space.
    sed -e "s#$ROOT#/usr/src/binlogd#g" -e "s#${ROOT// /%20}#/usr/src/binlogd#g" "crates/binlogd/$name.json" >"$DIST/$name.json"
    rm -f crates/*/"$name.json"
}
