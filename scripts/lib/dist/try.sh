# shellcheck shell=bash
# A program that was never started is a guess: what was built tells its version, checks a configuration, and receives from a
# source that is not there. One of another architecture runs in qemu.

# An emulated program that shares the machine with a build starts slowly.
TRY_SECONDS_MAX=60

try_binary() {
    local run=() work said code=0
    if [[ $ARCHITECTURE != "$(uname -m)" ]]; then
        if ! command -v "qemu-$ARCHITECTURE-static" >/dev/null; then
            say "NOT STARTED: the program for $ARCHITECTURE needs qemu-$ARCHITECTURE-static here (apt-get install qemu-user-static)"
            return 0
        fi
        run=("qemu-$ARCHITECTURE-static")
    fi
    work=$(mktemp -d)
    said=$("${run[@]}" "$BINARY" --version) || die "$BINARY does not start"
    [[ $said == "binlogd $VERSION ("*", $TARGET)" ]] || die "$BINARY --version says: $said"
    say "$said"
    printf 'data_dir = "%s/data"\n[admin]\nlisten = "127.0.0.1:0"\n[[source]]\nname = "nothing"\nhosts = ["127.0.0.1:1"]\nuser = "nobody"\npassword = "x"\n' \
        "$work" >"$work/binlogd.toml"
    chmod 600 "$work/binlogd.toml"
    "${run[@]}" "$BINARY" config check "$work/binlogd.toml" >"$work/check" || die "$BINARY config check fails: $(cat "$work/check")"
    "${run[@]}" "$BINARY" run --config "$work/binlogd.toml" >"$work/log" 2>&1 &
    TRIED_PID=$!
    wait_for_refusal "$work" "${run[@]}" || code=$?
    kill -TERM "$TRIED_PID" 2>/dev/null || true
    wait "$TRIED_PID" || code=$?
    [[ $code -eq 0 ]] || die "$BINARY run, against nothing, ended with $code: $(tail -n 5 "$work/log")"
    rm -rf "$work"
}

# The health is asked of the running daemon, by the program itself.
wait_for_refusal() {
    local work=$1 deadline=$((SECONDS + TRY_SECONDS_MAX)) said
    shift
    until said=$("$@" "$BINARY" health --config "$work/binlogd.toml" 2>&1); [[ $said == nothing:*'Connection refused'* ]]; do
        if ! kill -0 "$TRIED_PID" 2>/dev/null || [[ $SECONDS -ge $deadline ]]; then
            say "$BINARY health says: $said"
            return 1
        fi
        sleep 0.2
    done
}
