# shellcheck shell=bash
# Log readers of other languages, for the tests: small programs of ours on libraries that people use. Their sources and the
# pinned versions, with checksums, are below crates/binlogd/tests/clients; what is built of them is in the cache, under a
# name that changes with the sources.

CLIENTS=$(dirname "$SCRIPTS")/crates/binlogd/tests/clients

# command_client NAME: prints the path of the program.
command_client() {
    [[ $# -eq 1 && $1 != */* && -d $CLIENTS/$1 ]] || die "usage: scripts/servers client go|java|node|python"
    local name=$1 home
    home=$CACHE/client-$name-$(cat "$CLIENTS/$name"/* "${BASH_SOURCE[0]}" | cksum | cut -d' ' -f1)
    if [[ ! -d $home ]]; then
        need flock util-linux
        mkdir -p "$CACHE"
        (
            flock 9
            if [[ ! -d $home ]]; then build_client "$name" "$home"; fi
        ) 9>"$CACHE/client-$name.lock"
    fi
    printf '%s\n' "$home/reader"
}

# Runs in a subshell of its own under the lock, as build does.
build_client() {
    local name=$1 home=$2 work
    work=$(mktemp -d "$CACHE/.building.client-$name.XXXXXX")
    # shellcheck disable=SC2064 # The path of now is meant, not of then.
    trap "chmod -R u+w '$work'; rm -rf '$work'" EXIT
    mkdir "$work/home"
    cp "$CLIENTS/$name"/* "$work/home"
    say "building the client $name"
    "build_${name}_client" "$work/home" "$work/log"
    mv "$work/home" "$home"
    say "the client $name is ready"
}

# program HOME WORDS…: the program of a client; the words see HOME as where they are.
program() {
    local home=$1
    shift
    # shellcheck disable=SC2016 # For the program to expand.
    printf '#!/usr/bin/env bash\nset -euo pipefail\nhome=$(dirname "$(readlink -f "$0")")\nexec %s "$@"\n' "$*" >"$home/reader"
    chmod +x "$home/reader"
}

build_python_client() {
    local home=$1 log=$2
    need python3
    python3 -m pip --version >"$log" 2>&1 || need pip3 python3-pip
    # A folder and no virtual environment, which could not be moved into its place.
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
        --target "$home/packages" -r "$home/requirements.txt" >"$log" 2>&1 ||
        die "pip cannot install what $home/requirements.txt pins: $(tail -3 "$log")"
    # shellcheck disable=SC2016 # For the program to expand.
    program "$home" 'env PYTHONPATH="$home/packages" PYTHONHASHSEED=0 python3 -s "$home/reader.py"'
}

build_go_client() {
    local home=$1 log=$2
    local go=go
    if [[ ! $(go version 2>/dev/null) =~ go1\.(2[4-9]|[3-9][0-9]) ]]; then
        fetch go
        go=$(home_of go)/root               # What was unpacked,
        go+="/usr/lib/go-1.24/bin/go"       # and where Debian's package has it below that.
    fi
    # The Go that is here, whatever a module would prefer to download; -mod=readonly holds it to go.sum.
    (cd "$home" && CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off "$go" build -mod=readonly -buildvcs=false -o reader .) >"$log" 2>&1 ||
        die "go cannot build $CLIENTS/go: $(tail -3 "$log")"
}

build_java_client() {
    local home=$1 log=$2 coordinates digest jar
    need java default-jre-headless
    mkdir "$home/jars"
    while read -r coordinates digest; do
        jar=$(maven_jar "$home/jars" "$coordinates")
        printf '%s  %s\n' "$digest" "$jar" | sha256sum --check --quiet >"$log" 2>&1 ||
            die "$coordinates is not what $CLIENTS/java/artifacts pins: $(sha256sum "$jar")"
    done <"$home/artifacts"
    # A runtime without a compiler is enough: the compiler of Eclipse is a jar as well.
    java -jar "$home"/jars/ecj-*.jar -17 -cp "$(printf '%s:' "$home"/jars/*.jar)" -d "$home/classes" "$home/Reader.java" \
        >"$log" 2>&1 || die "Reader.java cannot be compiled: $(tail -5 "$log")"
    # shellcheck disable=SC2016 # For the program to expand.
    program "$home" 'java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$home/classes:$home/jars/*" Reader'
}

build_node_client() {
    local home=$1 log=$2
    need node nodejs
    need npm
    # Exactly what the lock file pins, by its checksums; nothing that packages want to run.
    (cd "$home" && npm ci --no-audit --no-fund --ignore-scripts) >"$log" 2>&1 ||
        die "npm cannot install what $CLIENTS/node/package-lock.json pins: $(tail -3 "$log")"
    # shellcheck disable=SC2016 # For the program to expand.
    program "$home" 'node "$home/reader.mjs"'
}
