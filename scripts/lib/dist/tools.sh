# shellcheck shell=bash
# Cargo's tools, each in the version that is written down here, built once into a cache.

CARGO_DEB=3.8.0
CARGO_GENERATE_RPM=0.21.1
CARGO_CYCLONEDX=0.5.9

TOOLS=${BINLOGD_TOOLS:-$HOME/.cache/binlogd/tools}

install_tools() {
    install_tool cargo-deb "$CARGO_DEB"
    install_tool cargo-generate-rpm "$CARGO_GENERATE_RPM"
    install_tool cargo-cyclonedx "$CARGO_CYCLONEDX"
}

# install_tool CRATE VERSION: whole or absent, whoever asks first.
install_tool() {
    local crate=$1 version=$2 home
    home=$TOOLS/$crate-$version
    [[ ! -d $home ]] || return 0
    need flock util-linux
    mkdir -p "$TOOLS"
    (
        flock 9
        if [[ ! -d $home ]]; then
            say "building $crate $version"
            rm -rf "$home.new"
            # The flags of the product are not those of the tools. They pack a few files, which is not worth an optimised build,
            # but for the C in which zstd is written.
            env -u CARGO_ENCODED_RUSTFLAGS -u RUSTFLAGS -u CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG=false CFLAGS=-O2 \
                cargo install --quiet --locked --debug --root "$home.new" --target-dir "$home.build" "$crate" --version "$version" >&2
            rm -rf "$home.build"
            mv "$home.new" "$home"
        fi
    ) 9>"$home.lock"
}

# tool CRATE VERSION: path of its program.
tool() { printf '%s\n' "$TOOLS/$1-$2/bin/$1"; }
