# shellcheck shell=bash
# Commands that a fresh Debian lacks. The caller defines say and die.

# need COMMAND [PACKAGE]: returns when COMMAND is there; installs PACKAGE for it where that is possible.
need() {
    local command=$1 package=${2:-$1} sudo=()
    command -v "$command" >/dev/null && return 0
    if [[ $(id -u) -ne 0 ]]; then sudo=(sudo -n); fi
    if command -v apt-get >/dev/null && "${sudo[@]}" true 2>/dev/null; then
        say "installing $package for $command"
        install_package "$package" "${sudo[@]}" >&2 && command -v "$command" >/dev/null && return 0
    fi
    die "$command is missing: install the package $package (apt-get install $package) and try again"
}

install_package() {
    local package=$1
    shift
    # The lists may be missing or stale on a fresh machine: refresh them only when the first try fails.
    "$@" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" 2>/dev/null ||
        { "$@" apt-get update -qq && "$@" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package"; }
}
