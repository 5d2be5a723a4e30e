#!/usr/bin/env bash
# round.sh SERVERS NAME: start, write, read the binlog, kill, recover, stop; prints one line, ok or failed.
# shellcheck disable=SC2153 # The names in upper case are what start printed.
set -euo pipefail

servers=$1
name=$2
work=$(mktemp -d)
dir=$work/server
step='begin'
timings=''

# Ends with one line whatever happened, and with no server left behind.
finish() {
    local status=$?
    if [[ $status -eq 0 ]]; then
        printf 'ok      %-14s %s\n' "$name" "$timings"
    else
        printf 'failed  %-14s at: %s (%s)\n' "$name" "$step" "$(tail -1 "$work/said" 2>/dev/null)"
    fi
    "$servers" stop "$dir" --kill >/dev/null 2>&1 || true
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT

# timed STEP COMMAND…: its output goes to a file, its milliseconds into the line.
timed() {
    local began=${EPOCHREALTIME/./}
    step=$1
    shift
    "$@" >"$work/out" 2>"$work/said"
    timings+="$step $(((${EPOCHREALTIME/./} - began) / 1000)) ms  "
}

load_environment() {
    # shellcheck source=/dev/null
    source "$work/out"
}

write_rows() {
    "$MYSQL" -e "
        CREATE DATABASE selftest; CREATE TABLE selftest.t (id INT PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB;
        INSERT INTO selftest.t VALUES (1, 'written'); FLUSH BINARY LOGS; INSERT INTO selftest.t VALUES (2, 'kept');"
}

read_binlog() {
    "$MYSQLBINLOG" --verbose "$DATADIR/mysql-bin.000001" >"$work/events"
    grep -q "^###   @2='written'" "$work/events"
}

read_rows() {
    [[ $("$MYSQL" --batch --skip-column-names -e 'SELECT COUNT(*) FROM selftest.t') == 2 ]]
    # The other way in.
    [[ $("$MYSQL" --host=localhost --protocol=socket --socket="$SOCKET" --batch --skip-column-names \
        -e 'SELECT word FROM selftest.t WHERE id = 2') == kept ]]
}

timed start "$servers" start "$name" --dir "$dir"
load_environment
port=$PORT
timed write write_rows
timed mysqlbinlog read_binlog
timed kill "$servers" stop "$dir" --kill
timed restart "$servers" restart "$dir"
load_environment
[[ $PORT == "$port" ]]
timed read read_rows
timed stop "$servers" stop "$dir"
