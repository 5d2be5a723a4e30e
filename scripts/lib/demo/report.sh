# shellcheck shell=bash
# The demo's words and numbers, in units that people read.

# 1234567 -> 1,234,567
count() {
    local digits=$1 groups=
    while [[ ${#digits} -gt 3 ]]; do
        groups=,${digits: -3}$groups
        digits=${digits:0:-3}
    done
    printf '%s%s' "$digits" "$groups"
}

# Microseconds -> 0.021 ms, 1.24 ms, 12.4 ms, 2.5 s, 6 min 15 s
duration() {
    awk -v us="${1:-0}" 'BEGIN {
        if (us < 100) printf "%.3f ms", us / 1000
        else if (us < 10000) printf "%.2f ms", us / 1000
        else if (us < 1000000) printf "%.1f ms", us / 1000
        else if (us < 120000000) printf "%.1f s", us / 1000000
        else printf "%d min %d s", us / 60000000, us / 1000000 % 60 }'
}

# One of the four positions of the status, as file:position.
position_of() { printf '%s:%s' "$(status_of "positions.$1.file")" "$(count "$(status_of "positions.$1.position")")"; }

percentiles_of() {
    printf 'median %s, 99 %% within %s, longest %s' "$(duration "$(status_of "latency.$1.p50_us")")" \
        "$(duration "$(status_of "latency.$1.p99_us")")" "$(duration "$(status_of "latency.$1.max_us")")"
}

line() { printf '  %-38s %s\n' "$1" "$2"; }

report() {
    printf '\nNothing was lost.\n\n'
    line 'committed, as the clients were told' "$(count "$COMMITTED")"
    line "of these in binlogd's copy" "$(count "$FOUND")"
    line 'lost' "$((COMMITTED - FOUND))"
    line 'in the copy, but no client was told' "$(count "$(wc -l <"$DEMO/lists/untold")") (on their way when the source died)"
    printf '\n'
    line 'load' "$(count "$THREADS") clients, $(duration "$LOAD_US"), $(count $((COMMITTED_IN_LOAD * 1000000 / LOAD_US))) commits a second"
    line 'commits that did not wait for binlogd' "$(count "$UNWAITED_TX") (the source's ${SEMI_SYNC^}_no_tx)"
    line 'transactions received by binlogd' "$(count "$(status_of counters.transactions)")"
    line 'acknowledged' "up to $(position_of acknowledged), by $(count "$(status_of counters.acknowledgements)") acknowledgements"
    line 'time to acknowledge' "$(percentiles_of acknowledge)"
    line 'of this the durable write' "$(percentiles_of sync)"
    line "files identical to the source's" "$(count "$SEALED_FILES") finished; the live one as far as it goes"
    line 'the whole demo' "$(duration $(($(now_us) - STARTED_US)))"
}

report_files() {
    local last
    last=$(files_of "$DEMO/copy" | tail -1)
    printf '\nFiles, %s in %s\n' "$(du -sh "$DEMO" | cut -f1)" "$DEMO"
    line "copy/" "binlogd's copy"
    line "ledger/" "what each client was told"
    line "source/, log/" "the dead server; what the programs said"
    printf '\nLook for yourself:\n'
    printf '  %s\n' "$BINLOGD verify $DEMO/copy" \
        "$DEMO/source/mysqlbinlog --base64-output=decode-rows -v $last | less" \
        "$SCRIPTS/demo --compare $DEMO" "rm -r $DEMO     # when you have seen enough"
    if [[ $(stat -f -c %T "$DEMO") == tmpfs ]]; then
        printf '\nNote: these files are in memory (tmpfs), so the times say nothing about a disk. DEMO_DIR names another place.\n'
    fi
}
