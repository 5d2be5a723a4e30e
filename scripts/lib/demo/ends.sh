# shellcheck shell=bash
# What the demos have in common: their folder, what they say while they run, and how they end. Who sources this defines stop_all.

# Reads DEMO_SERVER, DEMO_KEEP and DEMO_DIR, and makes the folder.
demo_folder() {
    KEEP=${DEMO_KEEP:-yes}
    [[ $KEEP == yes || $KEEP == no ]] || die "DEMO_KEEP must be yes or no, not '$KEEP'"
    choose_source "${DEMO_SERVER:-mysql}"
    if [[ -n ${DEMO_DIR:-} ]]; then
        mkdir -p "$DEMO_DIR"
        [[ -z $(ls -A "$DEMO_DIR") ]] || die "DEMO_DIR=$DEMO_DIR is not empty"
        DEMO=$(cd "$DEMO_DIR" && pwd -P)
    else
        DEMO=$(mktemp -d "${TMPDIR:-/tmp}/binlogd-demo.XXXXXX")
    fi
    mkdir "$DEMO/log"
}

now_us() { printf '%s\n' "${EPOCHREALTIME/[.,]/}"; }

# Elapsed time and what happens now.
step() {
    local seconds=$((($(now_us) - STARTED_US) / 1000000))
    printf '%3d:%02d  %s\n' $((seconds / 60)) $((seconds % 60)) "$*"
}

say() { printf '      %s\n' "$*" >&2; }

die() {
    printf '\nDEMO FAILED: %s\n' "$*" >&2
    exit 1
}

# Prints the end of a log and fails.
die_showing() {
    local log=$1
    shift
    printf '\n%s, its last lines:\n' "$log" >&2
    tail -n 15 "$log" | sed 's/^/    /' >&2
    die "$@"
}

# Whatever happened, no process stays behind. The files stay, unless the user broke off and they are in a folder of ours.
clean_up() {
    local code=$?
    trap - EXIT
    trap '' INT TERM HUP
    stop_all
    if [[ ${DONE:-no} == yes ]]; then
        [[ $KEEP == yes ]] || rm -rf "$DEMO"
    elif [[ ${INTERRUPTED:-no} == yes && -z ${DEMO_DIR:-} ]]; then
        rm -rf "$DEMO"
        printf '\ninterrupted; everything is stopped and removed\n' >&2
    else
        printf '\neverything is stopped; the files are in %s\n' "$DEMO" >&2
    fi
    exit "$code"
}
