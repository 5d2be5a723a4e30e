# shellcheck shell=bash
# The load of the demo, and the line that shows how it goes.

# From the death of the source to the end of its clients.
LOAD_END_SECONDS_MAX=30
# Time, commits a second, commits, latency, position: within 80 columns.
PROGRESS_FORMAT='%10s  %9s  %10s  %8s  %s'

start_load() {
    local sysbench
    sysbench=$("$SCRIPTS/servers" sysbench) || die "sysbench could not be fetched"
    # No end of its own: the death of the source ends it.
    "$sysbench" "$SCRIPTS/lib/demo/load.lua" --mysql-host=127.0.0.1 "--mysql-port=$PORT" --mysql-user=root --mysql-db=demo \
        "--threads=$THREADS" --time=0 --events=0 "--ledger-dir=$DEMO/ledger" run >"$DEMO/log/sysbench.log" 2>&1 </dev/null &
    LOAD_PID=$!
    LOAD_STARTED_US=$(now_us)
}

load_runs() { kill -0 "$LOAD_PID" 2>/dev/null; }

watch_load() {
    local second=0 before=0 now
    # shellcheck disable=SC2059 # The columns of the heading are those of the lines.
    printf "$PROGRESS_FORMAT\n" time commits/s committed 'ack p99' 'acknowledged to'
    while [[ $second -lt $LOAD_SECONDS ]]; do
        second=$((second + 1))
        # From one start, so that the seconds do not drift by the time that showing them takes.
        sleep_until $((LOAD_STARTED_US + second * 1000000))
        load_runs || die_showing "$DEMO/log/sysbench.log" "the load ended by itself"
        now=$(committed_count)
        read_status || die_showing "$DEMO/log/binlogd.log" "binlogd did not tell its status"
        show_progress "$second" "$now" $((now - before))
        before=$now
    done
    [[ ! -t 1 ]] || printf '\n'
    LOAD_US=$(($(now_us) - LOAD_STARTED_US))
    COMMITTED_IN_LOAD=$now
}

sleep_until() {
    local rest=$(($1 - $(now_us)))
    [[ $rest -le 0 ]] || sleep "$(printf '%d.%06d' $((rest / 1000000)) $((rest % 1000000)))"
}

# What the clients have been told so far.
committed_count() { find "$DEMO/ledger" -type f -exec cat {} + | wc -l; }

# shellcheck disable=SC2059
# One line that changes on a terminal; elsewhere one every five seconds.
show_progress() {
    local second=$1 total=$2 rate=$3 line width
    line=$(printf "$PROGRESS_FORMAT" "$second s" "$(count "$rate")" "$(count "$total")" \
        "$(duration "$(status_of latency.acknowledge.p99_us)")" "$(position_of acknowledged)")
    if [[ -t 1 ]]; then
        width=$(stty size 2>/dev/null </dev/tty | cut -d' ' -f2) || true
        printf '\r\033[K%s' "${line:0:$((${width:-80} - 1))}"
    elif [[ $((second % 5)) -eq 0 || $second -eq $LOAD_SECONDS ]]; then
        printf '%s\n' "$line"
    fi
}

# The clients notice by themselves that their server is gone. Their errors are meant to be.
wait_for_load() {
    local deadline=$((SECONDS + LOAD_END_SECONDS_MAX))
    while load_runs; do
        [[ $SECONDS -lt $deadline ]] || die_showing "$DEMO/log/sysbench.log" "sysbench still runs $LOAD_END_SECONDS_MAX s after the source was killed"
        sleep 0.05
    done
    wait "$LOAD_PID" 2>/dev/null || true
    LOAD_PID=
}

stop_load() {
    [[ -n ${LOAD_PID:-} ]] || return 0
    kill -KILL "$LOAD_PID" 2>/dev/null || true
    wait "$LOAD_PID" 2>/dev/null || true
}
