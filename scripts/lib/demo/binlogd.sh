# shellcheck shell=bash
# binlogd in the demo: build, start, status, stop, verify.

# From the start of binlogd to the first byte received.
ATTACH_SECONDS_MAX=30
# From SIGTERM to its end.
STOP_SECONDS_MAX=30

build_binlogd() {
    local quiet=()
    if [[ -n ${DEMO_BINLOGD:-} ]]; then
        [[ -x $DEMO_BINLOGD ]] || die "DEMO_BINLOGD=$DEMO_BINLOGD is no program"
        BINLOGD=$(readlink -f "$DEMO_BINLOGD")
        return
    fi
    step "building binlogd (release; the first time takes some minutes)"
    command -v cargo >/dev/null || die "cargo is missing: install a Rust toolchain (https://rustup.rs) and try again"
    need cc build-essential
    # On a terminal cargo shows how far it is; elsewhere hundreds of lines would bury the rest.
    [[ -t 2 ]] || quiet=(--quiet)
    # By its name and not as a package: a package alone has other features of what it needs, and all of that would be built
    # again behind a build of the whole workspace.
    (cd "$ROOT" && cargo build --release --locked "${quiet[@]}" --bin binlogd) || die "binlogd did not build"
    BINLOGD=$(cd "$ROOT" && readlink -f "${CARGO_TARGET_DIR:-target}")/release/binlogd
}

# With further options.
start_binlogd() {
    # The environment keeps the password out of the process list. Port 0: any free one, told in the data folder.
    BINLOGD_PASSWORD=$REPLICATION_PASSWORD "$BINLOGD" run \
        --source "mysql://repl@127.0.0.1:$PORT" --data-dir "$DEMO/copy" --fsync-mode 1 \
        --admin-listen 127.0.0.1:0 "$@" >"$DEMO/log/binlogd.log" 2>&1 </dev/null &
    BINLOGD_PID=$!
    local deadline=$((SECONDS + ATTACH_SECONDS_MAX))
    until read_status && [[ $(status_of state) == receiving && $(status_of semi_sync.active) == true ]]; do
        kill -0 "$BINLOGD_PID" 2>/dev/null || die_showing "$DEMO/log/binlogd.log" "binlogd ended by itself"
        [[ $SECONDS -lt $deadline ]] ||
            die_showing "$DEMO/log/binlogd.log" "binlogd did not receive with semi-sync within $ATTACH_SECONDS_MAX s;" \
                "its state: $(status_of state); semi-sync: $(status_of semi_sync.reason)"
        sleep 0.1
    done
}

# --- status ----------------------------------------------------------------------------------------------------------

# Asks the daemon, and keeps the answer as lines "path value". False when it does not answer. Exit code 1 is an answer
# too: that of a source that does not receive.
read_status() {
    local json code=0
    json=$("$BINLOGD" status --data-dir "$DEMO/copy" --json 2>/dev/null) || code=$?
    [[ $code -le 1 && -n $json ]] || return 1
    flatten_json <<<"$json" >"$DEMO/status.new"
    mv "$DEMO/status.new" "$DEMO/status"
    grep -q '^running true$' "$DEMO/status"
}

# A value of the one source, such as positions.durable.file; empty when there is none.
status_of() { awk -v path="sources.0.$1" '$1 == path { sub(/^[^ ]+ /, ""); print }' "$DEMO/status" 2>/dev/null; }

# JSON with one value a line, as binlogd prints it, to lines "path value": sources.0.positions.durable.file mysql-bin.1
flatten_json() {
    awk '
        { sub(/^ +/, ""); sub(/,$/, ""); key = "" }
        /^[]}]/ { depth--; next }
        match($0, /^"[^"]*": /) { key = substr($0, 2, RLENGTH - 4); $0 = substr($0, RLENGTH + 1) }
        depth && key == "" { key = next_index[depth]++ }
        { path = depth > 1 ? prefix[depth] "." key : key }
        /^[[{]$/ { prefix[++depth] = path; next_index[depth] = 0; next }
        { gsub(/^"|"$/, ""); print path, $0 }'
}

# --- stop and verify -------------------------------------------------------------------------------------------------

stop_binlogd() {
    local deadline=$((SECONDS + STOP_SECONDS_MAX)) code=0
    kill -0 "$BINLOGD_PID" 2>/dev/null || die_showing "$DEMO/log/binlogd.log" "binlogd ended before it was told to"
    # Its counts and latencies end with it.
    read_status || die_showing "$DEMO/log/binlogd.log" "binlogd did not tell its status"
    kill -TERM "$BINLOGD_PID"
    while kill -0 "$BINLOGD_PID" 2>/dev/null; do
        [[ $SECONDS -lt $deadline ]] || die_showing "$DEMO/log/binlogd.log" "binlogd did not end within $STOP_SECONDS_MAX s of SIGTERM"
        sleep 0.05
    done
    wait "$BINLOGD_PID" || code=$?
    BINLOGD_PID=
    [[ $code -eq 0 ]] || die_showing "$DEMO/log/binlogd.log" "binlogd ended with exit code $code"
}

verify_copy() {
    "$BINLOGD" verify "$DEMO/copy" >"$DEMO/log/verify.log" 2>&1 ||
        die_showing "$DEMO/log/verify.log" "binlogd verify found damage in the copy"
    printf '         %s\n' "$(tail -n 1 "$DEMO/log/verify.log")"
}

# For the end of a demo that did not get as far as stop_binlogd.
end_binlogd() {
    [[ -n ${BINLOGD_PID:-} ]] || return 0
    kill -KILL "$BINLOGD_PID" 2>/dev/null || true
    wait "$BINLOGD_PID" 2>/dev/null || true
}
