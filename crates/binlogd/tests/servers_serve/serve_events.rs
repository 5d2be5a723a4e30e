//! SHOW BINLOG EVENTS shows of each file what the source itself shows, row by row.

use crate::common::Server;
use crate::common::compare::binary_logs;
use crate::common::daemon::Daemon;
use crate::common::readers::{SERVE, account_url, client, make_account, serve_port};
use crate::common::workload::load_data;
use codec::ServerKind;
use std::time::{Duration, Instant};

/// How long the source may still write events of its own.
const PATIENCE: Duration = Duration::from_secs(30);

/// What every server understands: definitions, rows of several tables, savepoints, XA, statements with what they read.
const FOR_ALL: &str = "
    CREATE DATABASE d; USE d;
    CREATE TABLE t0 (id INT AUTO_INCREMENT PRIMARY KEY, k INT, c VARCHAR(4000)) CHARACTER SET utf8mb4;
    CREATE TABLE m0 (id INT AUTO_INCREMENT PRIMARY KEY, k INT, c VARCHAR(4000)) ENGINE=MyISAM;
    CREATE TABLE `a``b` (id INT PRIMARY KEY);
    INSERT INTO `a``b` VALUES (1); INSERT INTO t0 (k) SELECT 1 UNION SELECT 2; INSERT INTO m0 (k) VALUES (4);
    UPDATE t0, `a``b` SET t0.k = 7, `a``b`.id = 2;
    BEGIN; INSERT INTO t0 (c) VALUES ('ü'); SAVEPOINT `s``1`; DELETE FROM t0; ROLLBACK TO `s``1`; COMMIT;
    SET foreign_key_checks = 0, unique_checks = 0; INSERT INTO t0 (k) VALUES (77); DELETE FROM m0;
    SET SESSION binlog_format = STATEMENT; INSERT INTO t0 (k) VALUES (78);
    SET foreign_key_checks = 1, unique_checks = 1, sql_auto_is_null = 1; INSERT INTO t0 (k) VALUES (79);
    SET sql_auto_is_null = 0;
    SET @a = 'text ü', @b = 5, @c = -7, @d = 1.5, @e = 1.5e10, @f = NULL, @g = 18446744073709551615, @h = CAST('x' AS BINARY),
        @i = -123456.789000, @j = 0.1e0, @k = _latin1'la', @`q``x` = '', @l = 1e-7, @m = 123456789012345678.0e0, @n = 1e15,
        @o = -1e-20, @p = 12345678901234567890123456789.123456789, @r = CONVERT('ü' USING utf8);
    INSERT INTO t0 (c) VALUES (CONCAT_WS(',', @a, @b, @c, @d, @e, @f, @g, @h, @i, @j, @k, @`q``x`, @l, @m, @n, @o, @p, @r));
    INSERT INTO t0 (k) VALUES (RAND() * 100); INSERT INTO t0 (k) VALUES (LAST_INSERT_ID());
    SET SESSION binlog_format = ROW;
    XA START 'jk', 'b', 7; INSERT INTO t0 (k) VALUES (1); XA END 'jk', 'b', 7; XA PREPARE 'jk', 'b', 7; XA COMMIT 'jk', 'b', 7;
    XA START 'x'; INSERT INTO t0 (k) VALUES (1); XA END 'x'; XA COMMIT 'x' ONE PHASE;
    XA START 'y', 'z'; INSERT INTO t0 (k) VALUES (1); XA END 'y', 'z'; XA PREPARE 'y', 'z'; XA ROLLBACK 'y', 'z';
    DROP TABLE `a``b`; FLUSH BINARY LOGS; USE mysql; CREATE USER foo; DROP USER foo; USE d; TRUNCATE m0;";

const FOR_MYSQL: &str = "
    USE d; SET SESSION binlog_rows_query_log_events = 1; INSERT INTO t0 (k, c) VALUES (3, 'of a query');";

const FOR_MYSQL_9_7: &str = "
    USE d; SET SESSION binlog_transaction_compression = 1;
    INSERT INTO t0 (c) VALUES (REPEAT('x', 900)), (REPEAT('y', 900));
    BEGIN; INSERT INTO t0 (c) VALUES (REPEAT('z', 900)); UPDATE m0 SET k = 5; UPDATE t0 SET k = 5, c = NULL; COMMIT;
    SET SESSION binlog_transaction_compression = 0;
    SET GTID_NEXT = 'AUTOMATIC:tag'; INSERT INTO t0 (k) VALUES (1); SET GTID_NEXT = 'AUTOMATIC';
    CREATE TABLE j (id INT PRIMARY KEY, j JSON); INSERT INTO j VALUES (1, '{\"a\": \"aaaaaaaaaaaaa\", \"b\": \"bbbbbbbbbbb\"}');
    SET SESSION binlog_row_value_options = PARTIAL_JSON; UPDATE j SET j = JSON_SET(j, '$.a', 'b');";

const FOR_MARIADB: &str = "
    USE d; SET SESSION gtid_domain_id = 7; INSERT INTO t0 (k) VALUES (1); SET SESSION gtid_domain_id = 0;
    SET GLOBAL log_bin_compress = 1; SET GLOBAL log_bin_compress_min_len = 20;
    INSERT INTO t0 (c) VALUES (REPEAT('x', 900)); UPDATE t0 SET c = REPEAT('y', 80); DELETE FROM t0 WHERE c LIKE 'y%';
    SET SESSION binlog_format = STATEMENT; INSERT INTO t0 (c) VALUES ('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx');
    SET sql_if_exists = 1, check_constraint_checks = 0; INSERT INTO t0 (k) VALUES (2);
    SET GLOBAL log_bin_compress = 0; FLUSH BINARY LOGS;";

/// What a server answers, errors included.
fn ask(server: &Server, port: u16, statement: &str) -> String {
    let output =
        client(server, "MYSQL", port, &["--default-character-set=utf8mb4", "--batch", "-e", statement]);
    let (shown, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("ERROR")).collect();
    format!("{shown}{}", errors.join("\n"))
}

fn shows_what_the_source_shows(name: &str, is_restarted: bool) {
    let gtids = ["--server-id=1", "--secure-file-priv=", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    let is_mysql = name.starts_with("mysql");
    let mut source = Server::start(name, if is_mysql { &gtids } else { &gtids[..2] });
    make_account(&source);
    source.sql("GRANT ALL ON *.* TO 'repl'@'%'");
    let daemon = Daemon::start_on(&account_url(&source), &SERVE);
    // A table without transactions beside one that has them is no transaction with a GTID.
    source.sql(&if is_mysql { FOR_ALL.replace("DELETE FROM m0;", "") } else { FOR_ALL.to_owned() });
    source.sql(&load_data(source.dir()).replace("TABLE m0", "TABLE t0"));
    source.sql(match source.kind() {
        ServerKind::MySql => FOR_MYSQL,
        ServerKind::MariaDb => FOR_MARIADB,
    });
    if name == "mysql-9.7" {
        source.sql(&FOR_MYSQL_9_7.replace("UPDATE m0 SET k = 5;", ""));
    }
    if is_restarted {
        source.stop();
        source.restart(&[]);
    }
    source.sql("INSERT INTO d.t0 (k) VALUES (4711)");
    daemon.wait_caught_up(&source);
    let (theirs, ours) = (source.port(), serve_port(&daemon));
    let files = binary_logs(&source);
    let mut statements: Vec<String> =
        files.iter().map(|file| format!("SHOW BINLOG EVENTS IN '{file}'")).collect();
    let first = &files[0];
    let listed = ask(&source, theirs, &statements[0]);
    let place: u64 = listed.lines().nth(7).unwrap().split('\t').nth(1).unwrap().parse().unwrap();
    for rest in [
        "LIMIT 2, 3",
        "FROM 4 LIMIT 1",
        "FROM 0 LIMIT 1",
        "FROM 5 LIMIT 2",
        "FROM 999999999",
        "LIMIT 9999, 2",
    ] {
        statements.push(format!("SHOW BINLOG EVENTS IN '{first}' {rest}"));
    }
    statements.push(format!("SHOW BINLOG EVENTS IN '{first}' FROM {place} LIMIT 4"));
    statements.push(format!("SHOW BINLOG EVENTS IN '{first}' FROM {place} LIMIT 2, 4"));
    statements.push("SHOW BINLOG EVENTS IN 'nosuch'".to_owned());
    statements.push("SHOW BINLOG EVENTS LIMIT 3".to_owned());
    if !is_mysql || name == "mysql-5.7.22" {
        statements.push(format!("SHOW BINLOG EVENTS IN '{first}' FROM {}", place + 1));
    }
    if !is_mysql {
        let places = listed
            .lines()
            .skip(1)
            .take(60)
            .map(|row| row.split('\t').nth(1).unwrap().parse::<u64>().unwrap());
        let asked = places.flat_map(|at| [at, at + 1]).map(|at| format!("BINLOG_GTID_POS('{first}', {at})"));
        statements.push(format!("SELECT {}", asked.collect::<Vec<_>>().join(", ")));
    }
    let mut rows = 0;
    for statement in statements {
        let (at_source, here) = (theirs, ours);
        let both = || (ask(&source, at_source, &statement), ask(&source, here, &statement));
        // MariaDB may write a checkpoint of its own between the two.
        let until = Instant::now() + PATIENCE;
        let (mut theirs, mut ours) = both();
        while theirs != ours && Instant::now() < until {
            (theirs, ours) = both();
        }
        rows += theirs.lines().count();
        for (number, (theirs, ours)) in theirs.lines().zip(ours.lines()).enumerate() {
            assert_eq!(ours, theirs, "{statement}: line {number}");
        }
        assert_eq!(ours.lines().count(), theirs.lines().count(), "{statement}");
    }
    assert!(rows > 100, "{rows} rows");
    let wrong = ask(&source, ours, &format!("SHOW BINLOG EVENTS IN '{first}' FROM {}", place + 1));
    assert!(wrong.contains("ERROR 1220") && !wrong.contains("Query"), "{wrong}");
    let relay = ask(&source, ours, "SHOW RELAYLOG EVENTS");
    assert!(relay.contains("ERROR 1235") && relay.contains("has no relay log"), "{relay}");
}

#[test]
fn of_mysql_9_7() {
    shows_what_the_source_shows("mysql-9.7", true);
}

#[test]
fn of_mysql_8_0_31() {
    shows_what_the_source_shows("mysql-8.0.31", false);
}

#[test]
fn of_mysql_5_7_22() {
    shows_what_the_source_shows("mysql-5.7.22", false);
}

#[test]
fn of_mariadb_11_8() {
    shows_what_the_source_shows("mariadb-11.8", true);
}

#[test]
fn of_mariadb_10_11() {
    shows_what_the_source_shows("mariadb-10.11", false);
}
