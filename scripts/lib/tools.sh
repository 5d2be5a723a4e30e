# shellcheck shell=bash
# Programs that cargo builds once into a cache. The caller defines say and die.

TOOLS=${BINLOGD_TOOLS:-$HOME/.cache/binlogd/tools}

# cargo_tool NAME VERSION [OPTION…]: prints the path of the program; builds exactly this version where it is not there yet.
cargo_tool() {
    local name=$1 version=$2 root
    shift 2
    root=$TOOLS/$name-$version
    if [[ ! -x $root/bin/$name ]]; then
        say "building $name $version once, a minute or two"
        # Without optimisation: these programs are built more often than they are busy.
        cargo install "$name" --version "=$version" --locked --debug --quiet --root "$root" "$@" >&2 ||
            die "$name $version cannot be installed"
    fi
    printf '%s\n' "$root/bin/$name"
}
