# shellcheck shell=bash
# A static binary with musl: one program for every distribution, and for an image with nothing else in it.

# build ARCHITECTURE: sets ARCHITECTURE, TARGET (cargo's name), BUILT (the folder of what is built) and BINARY.
build() {
    ARCHITECTURE=$1
    TARGET=$ARCHITECTURE-unknown-linux-musl
    BUILT=$TARGET_DIR/$TARGET/packaged
    BINARY=$BUILT/binlogd
    case $ARCHITECTURE in
        x86_64 | aarch64) ;;
        *) die "there is no release for $ARCHITECTURE: x86_64 or aarch64" ;;
    esac
    if [[ -n ${DIST_BINARY:-} ]]; then
        [[ -x $DIST_BINARY ]] || die "DIST_BINARY=$DIST_BINARY is no program"
        mkdir -p "$BUILT"
        BINARY=$(readlink -f "$DIST_BINARY")
        return
    fi
    have_target
    have_compiler
    say "building binlogd $VERSION for $TARGET"
    cargo_build --package binlogd
    # A program that needs a library of the system would not start in an empty image.
    need file
    [[ $(file --brief "$BINARY") =~ statically\ linked|static-pie\ linked ]] || die "$BINARY is not static: $(file --brief "$BINARY")"
    try_binary
}

# What writes man pages and completions runs here and now, and what it writes does not depend on how it was built. It is built
# as for its tests, so that whoever has run these has it. Sets REFERENCE.
build_reference() {
    REFERENCE=${DIST_REFERENCE:-}
    [[ -z $REFERENCE ]] || return 0
    say "building what writes the man pages"
    undated cargo test --workspace --locked --quiet --no-run --test pages >&2
    REFERENCE=$TARGET_DIR/debug/binlogd-reference
}

# The date of the commit is for what is packed. What compiles C would do so again for every commit, and after it all that needs that.
undated() { env -u SOURCE_DATE_EPOCH "$@"; }

cargo_build() { CARGO_ENCODED_RUSTFLAGS=$(rust_flags) undated cargo build --profile packaged --locked --target "$TARGET" "$@" >&2; }

have_target() {
    local folder
    folder=$(rustc --print sysroot)/lib/rustlib/$TARGET
    [[ ! -d $folder ]] || return 0
    command -v rustup >/dev/null ||
        die "this Rust has no standard library for $TARGET, and there is no rustup that could fetch one (https://rustup.rs)"
    say "fetching Rust's standard library for $TARGET"
    rustup target add "$TARGET" >&2 || die "rustup cannot fetch the standard library for $TARGET: check the network"
}

# What compiles the few files of C, in zstd and ring. The C library that is linked comes with Rust's standard library.
have_compiler() {
    if [[ $ARCHITECTURE == "$(uname -m)" ]]; then
        need musl-gcc musl-tools
        return
    fi
    [[ $ARCHITECTURE == aarch64 ]] || die "this script cross-builds for aarch64 only"
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    need aarch64-linux-gnu-ar binutils-aarch64-linux-gnu
    cross_headers
    # Debian's compiler for aarch64 knows glibc's headers; these are musl's.
    export CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc AR_aarch64_unknown_linux_musl=aarch64-linux-gnu-ar
    export CFLAGS_aarch64_unknown_linux_musl="-nostdinc -isystem $HEADERS -isystem $(aarch64-linux-gnu-gcc -print-file-name=include)"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=aarch64-linux-gnu-gcc
}

# Debian's package of musl for arm64, unpacked into the cache: sets HEADERS.
cross_headers() {
    local home=$TOOLS/musl-dev-arm64
    HEADERS=$home/usr/include/aarch64-linux-musl
    [[ ! -d $HEADERS ]] || return 0
    mkdir -p "$TOOLS"
    (
        # shellcheck source=lib/servers/catalogue.sh
        source "$SCRIPTS/lib/servers/catalogue.sh"
        # shellcheck source=lib/servers/fetch.sh
        source "$SCRIPTS/lib/servers/fetch.sh"
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        private_apt "$work/apt" bookworm arm64
        (cd "$work/apt/archives" && apt-get "${APT[@]}" download musl-dev) >"$work/apt.log" 2>&1 ||
            die "cannot download musl-dev for arm64: $(tail -3 "$work/apt.log")"
        rm -rf "$home.new"
        dpkg-deb -x "$work"/apt/archives/musl-dev_*.deb "$home.new"
        mv -T "$home.new" "$home"
    ) >&2
}

# Nothing of this machine gets into the binary: neither where the sources lie, nor whose home the crates are in.
# A name may hold spaces; what parts the flags is cargo's.
rust_flags() {
    local flags=() registry sysroot commit
    # Everything must lie there already, or its folder is not known yet.
    cargo fetch --quiet --locked >&2
    sysroot=$(rustc --print sysroot)
    commit=$(rustc -vV | sed -n 's/^commit-hash: //p')
    # Of several that fit the last one counts.
    flags+=("--remap-path-prefix=$ROOT=/usr/src/binlogd")
    for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/; do
        flags+=("--remap-path-prefix=${registry%/}=/usr/src/crates")
    done
    flags+=("--remap-path-prefix=$sysroot/lib/rustlib/src/rust=/rustc/$commit")
    [[ $TARGET_DIR == "$ROOT"/* ]] || flags+=("--remap-path-prefix=$TARGET_DIR=/usr/src/binlogd/target")
    local IFS=$'\x1f'
    printf '%s' "${flags[*]}"
}
