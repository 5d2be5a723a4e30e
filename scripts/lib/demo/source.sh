# shellcheck shell=bash
# The source of the demo. Its folder is $DEMO/source; scripts/servers knows the rest.

# Longer than any demo: a source that stopped waiting for binlogd would be a failure, and is checked for.
SEMI_SYNC_TIMEOUT_MS=3600000
# Small, so that even a short load fills several files.
BINLOG_BYTES_MAX=8M

# The one place where MySQL and MariaDB differ: the name in scripts/servers, and the words of semi-sync.
choose_source() {
    case $1 in
        mysql) SOURCE=mysql-9.7 SOURCE_TITLE='MySQL 9.7' SEMI_SYNC=rpl_semi_sync_source ;;
        mariadb) SOURCE=mariadb-11.8 SOURCE_TITLE='MariaDB 11.8' SEMI_SYNC=rpl_semi_sync_master ;;
        *) die "DEMO_SERVER must be mysql or mariadb, not '$1'" ;;
    esac
}

start_source() {
    local option=--${SEMI_SYNC//_/-}
    "$SCRIPTS/servers" start "$SOURCE" --dir "$DEMO/source" -- \
        "$option-enabled=1" "$option-timeout=$SEMI_SYNC_TIMEOUT_MS" "$option-wait-point=AFTER_SYNC" \
        "--max-binlog-size=$BINLOG_BYTES_MAX" >"$DEMO/log/servers.log" ||
        die "$SOURCE_TITLE did not start; $DEMO/source/error.log says why"
    PORT=$(sed -n 's/^PORT=//p' "$DEMO/source/server.env")
    REPLICATION_PASSWORD=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    # Outside the binlog: with semi-sync on and no replica yet, a logged statement would wait.
    sql <<SQL || die "$SOURCE_TITLE did not accept the replication user"
SET sql_log_bin = 0;
CREATE USER 'repl'@'127.0.0.1' IDENTIFIED BY '$REPLICATION_PASSWORD';
GRANT REPLICATION SLAVE ON *.* TO 'repl'@'127.0.0.1';
SQL
}

create_tables() {
    sql <<'SQL' || die "$SOURCE_TITLE did not accept the tables of the demo"
CREATE DATABASE demo;
CREATE TABLE demo.ledger (id BIGINT NOT NULL PRIMARY KEY, amount INT NOT NULL, note VARCHAR(60) NOT NULL) ENGINE=InnoDB;
CREATE TABLE demo.item (id INT NOT NULL PRIMARY KEY, stock INT NOT NULL, label VARCHAR(100) NOT NULL) ENGINE=InnoDB;
INSERT INTO demo.item
    WITH RECURSIVE digit (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM digit WHERE d < 9)
    SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, 1000, 'new' FROM digit a, digit b, digit c, digit e;
SQL
}

# Statements on standard input, as root; prints rows without column names.
sql() { "$DEMO/source/mysql" --batch --skip-column-names; }

# Everything that must hold for the kill to prove something, looked at in the moment before it.
kill_source_under_load() {
    local answer
    load_runs || die_showing "$DEMO/log/sysbench.log" "the load ended before the source was killed"
    answer=$(printf "SHOW GLOBAL STATUS LIKE '%s_%%';" "$SEMI_SYNC" | sql) || die "the source no longer answered before it was killed"
    "$SCRIPTS/servers" stop "$DEMO/source" --kill
    UNWAITED_TX=$(semi_sync_value no_tx "$answer")
    if [[ $UNWAITED_TX != 0 || $(semi_sync_value status "$answer") != ON ]]; then
        die "semi-sync had fallen back; commits that did not wait for an acknowledgement: $UNWAITED_TX"
    fi
    wait_for_load
}

semi_sync_value() { awk -v name="${SEMI_SYNC}_$1" 'tolower($1) == name { print $2 }' <<<"$2"; }

end_source() {
    [[ ! -e $DEMO/source/server.env ]] || "$SCRIPTS/servers" stop "$DEMO/source" --kill >/dev/null 2>&1 || true
}
