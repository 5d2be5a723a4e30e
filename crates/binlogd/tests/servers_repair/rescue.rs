//! `binlogd rescue` on real servers: what a successor, or the restarted source itself, lacks is handed over from the copy.

use crate::called::rescue_finds;
use crate::common::Server;
use crate::common::daemon::{Daemon, url};
use crate::common::pair::replicate_once;
use crate::common::semi_sync::SemiSync;

use repair::rescue::Next;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 4] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s"];

/// Every kind of transaction that MySQL 9.7 writes and a DBA has.
const MYSQL_WORK: &str = r#"
USE d;
INSERT INTO t (v) VALUES ('one'), ('two');
UPDATE t SET v = CONCAT(v, '!') WHERE id = 1;
DELETE FROM t WHERE id = 2;
CREATE TABLE `odd ``name` (id INT PRIMARY KEY, j JSON, b BLOB, n DECIMAL(20,5), at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
INSERT INTO `odd ``name` (id, j, b, n) VALUES (1, '{"a": [1, 2, 3], "b": "long enough to be changed in part"}', x'00ff27', 1.5);
SET binlog_row_value_options = PARTIAL_JSON;
UPDATE `odd ``name` SET j = JSON_REPLACE(j, '$.a[1]', 9);
SET binlog_row_value_options = '';
SET binlog_transaction_compression = ON;
BEGIN; INSERT INTO t (v) VALUES (REPEAT('x', 900)), (REPEAT('y', 900)); UPDATE `odd ``name` SET n = 2; COMMIT;
SET binlog_transaction_compression = OFF;
SET gtid_next = 'AUTOMATIC:maintenance'; INSERT INTO t (v) VALUES ('tagged'); SET gtid_next = 'AUTOMATIC';
SET NAMES latin1; SET sql_mode = 'ANSI_QUOTES';
CREATE TABLE "quoted" (id INT PRIMARY KEY, "s" VARCHAR(20) DEFAULT 'caf\E9') CHARACTER SET latin1;
INSERT INTO "quoted" (id) VALUES (1);
SET NAMES utf8mb4; SET sql_mode = DEFAULT;
CREATE TABLE copied AS SELECT * FROM t;
CREATE TABLE engine_without_transactions (id INT PRIMARY KEY AUTO_INCREMENT, v INT) ENGINE = MyISAM;
INSERT INTO engine_without_transactions (v) VALUES (1), (2);
CREATE TABLE parent (id INT PRIMARY KEY); CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id));
SET foreign_key_checks = 0; INSERT INTO child VALUES (1, 77); SET foreign_key_checks = 1;
XA START 'x1'; INSERT INTO t (v) VALUES ('two phases'); XA END 'x1'; XA PREPARE 'x1'; XA COMMIT 'x1';
XA START 'x2'; INSERT INTO t (v) VALUES ('one phase'); XA END 'x2'; XA COMMIT 'x2' ONE PHASE;
SET SESSION binlog_format = STATEMENT; INSERT INTO t (v) VALUES (CONCAT('by statement ', UNIX_TIMESTAMP())); SET SESSION binlog_format = ROW;
ALTER TABLE t ADD COLUMN extra INT DEFAULT 5;
CREATE PROCEDURE p() INSERT INTO t (v) VALUES ('from the procedure'); CALL p();
CREATE VIEW w AS SELECT id FROM t; DROP VIEW w;
TRUNCATE TABLE copied;
"#;

const MARIADB_WORK: &str = r#"
USE d;
INSERT INTO t (v) VALUES ('one'), ('two');
UPDATE t SET v = CONCAT(v, '!') WHERE id = 1;
DELETE FROM t WHERE id = 2;
CREATE TABLE `odd ``name` (id INT PRIMARY KEY, b BLOB, n DECIMAL(20,5), at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
BEGIN; INSERT INTO `odd ``name` (id, b, n) VALUES (1, x'00ff27', 1.5); INSERT INTO t (v) VALUES ('together'); COMMIT;
SET SESSION binlog_format = ROW; INSERT INTO t (v) VALUES ('by row'), (REPEAT('x', 4000)); SET SESSION binlog_format = STATEMENT;
INSERT INTO t (v) VALUES (CONCAT('by statement ', UNIX_TIMESTAMP())); SET SESSION binlog_format = MIXED;
CREATE SEQUENCE s; SELECT NEXTVAL(s);
CREATE TABLE copied AS SELECT * FROM t;
CREATE TABLE engine_without_transactions (id INT PRIMARY KEY AUTO_INCREMENT, v INT) ENGINE = MyISAM;
INSERT INTO engine_without_transactions (v) VALUES (1), (2);
SET gtid_domain_id = 7; INSERT INTO t (v) VALUES ('in another domain'); SET gtid_domain_id = 0;
ALTER TABLE t ADD COLUMN extra INT DEFAULT 5;
CREATE PROCEDURE p() INSERT INTO t (v) VALUES ('from the procedure'); CALL p();
"#;

fn source(name: &str, options: &[&str]) -> Server {
    let server = Server::start(name, options);
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT); INSERT INTO d.t (v) VALUES ('zero')",
    );
    server
}

/// Everything that a dump of a schema shows, in an order of its own.
pub(super) fn content_of(server: &Server, schema: &str) -> String {
    let tables = server.sql(&format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}' ORDER BY 1"
    ));
    let mut all = String::new();
    for table in tables.lines() {
        let quoted = format!("{schema}.`{}`", table.replace('`', "``"));
        let told = server.sql(&format!("CHECKSUM TABLE {quoted} EXTENDED; SHOW CREATE TABLE {quoted}"));
        // Rows tell which numbers were given, not which one comes next.
        let (before, after) = told.split_once(" AUTO_INCREMENT=").unwrap_or((&told, ""));
        all.push_str(before);
        all.push_str(after.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    let procedures = server.sql(&format!("SHOW PROCEDURE STATUS WHERE db = '{schema}'"));
    all.push_str(&procedures.split('\t').take(2).collect::<String>());
    all
}

fn content(server: &Server) -> String {
    content_of(server, "d")
}

fn rescue(daemon: &Daemon, target: &str, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.arg("rescue").arg(daemon.data_dir()).args(["--to", target]).args(flags);
    command.env_remove("BINLOGD_PASSWORD").stdin(Stdio::null()).output().expect("binlogd runs")
}

#[track_caller]
fn rescued(daemon: &Daemon, target: &str, flags: &[&str]) -> String {
    let output = rescue(daemon, target, flags);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[track_caller]
fn refused(daemon: &Daemon, target: &str, flags: &[&str]) -> String {
    let output = rescue(daemon, target, flags);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A successor that lacks the last transactions of a dead source.
fn a_successor_is_completed(name: &str, work: &str, changed: &str, other_form: u32) {
    let old = source(name, &[]);
    let mariadb = ["--server-id=2", "--log-slave-updates=ON"];
    let new = Server::start(name, if name.starts_with("mysql") { &[] } else { &mariadb });
    let mut daemon = Daemon::start(&old, &FLAGS);
    replicate_once(&old, &new);
    let statements = old.dir().join("work.sql");
    std::fs::write(&statements, work.replace("\\E9", "é")).unwrap();
    old.sql_file(&statements, &["--binary-mode"]);
    daemon.wait_caught_up(&old);
    let reference = content(&old);
    old.kill();
    assert_ne!(content(&new), reference);
    let target = url(&new);

    let before = new.sql("SHOW BINARY LOGS");
    let listed = rescued(&daemon, &target, &["--dry-run"]);
    assert!(listed.contains(" lacks ") && listed.contains(changed), "{listed}");
    assert!(listed.contains("CREATE TABLE copied") || name.starts_with("mysql"), "{listed}");
    assert_eq!(new.sql("SHOW BINARY LOGS"), before, "--dry-run sends nothing");
    let json: Value = serde_json::from_str(&rescued(&daemon, &target, &["--dry-run", "--json"])).unwrap();
    assert_eq!(json["complete"], false);
    let count = json["transactions"].as_array().unwrap().len();
    assert!(count >= 15, "{json:#}");

    assert_eq!(rescue_finds(&daemon, &new), (count, 3, Next::Send));

    let unasked = refused(&daemon, &target, &[]);
    assert!(unasked.contains("--dry-run") && unasked.contains("--yes"), "{unasked}");
    // With the daemon running, then with it stopped: the copy serves both.
    let told = rescued(&daemon, &target, &["--yes"]);
    assert!(told.contains(&format!("now has all {count} transactions, verified by GTID")), "{told}");
    assert_eq!(content(&new), reference);
    assert_eq!(rescue_finds(&daemon, &new), (0, count as u64 + 3, Next::Nothing));
    daemon.terminate();
    let again = rescued(&daemon, &target, &["--yes", "--compare", "all"]);
    assert!(again.contains("has every transaction that the copy of default holds"), "{again}");
    // What the target's log tells in another form than the copy, all the rest byte by byte.
    let other_form = format!("{other_form} of them stand there in another form");
    assert!(told.contains(&other_form), "{told}");
    let all = count + 3; // With what came by replication.
    assert!(again.contains(&format!("{all} transactions that are there already")), "{again}");
    assert!(again.contains(&other_form) && !again.contains("could not be compared"), "{again}");
    assert_eq!(content(&new), reference);
}

#[test]
fn a_successor_is_completed_mysql() {
    // A change of a JSON document in part, and a statement whose rows the target logs.
    a_successor_is_completed("mysql-9.7", MYSQL_WORK, "d.odd `name", 2);
}

#[test]
fn a_successor_is_completed_mariadb() {
    // Statements whose rows the target logs.
    a_successor_is_completed("mariadb-11.8", MARIADB_WORK, "ALTER TABLE t ADD COLUMN extra", 5);
}

#[test]
fn a_conflict_stops_it_whole_and_it_goes_on_when_it_is_fixed() {
    let old = source("mysql-9.7", &[]);
    let new = Server::start("mysql-9.7", &[]);
    let daemon = Daemon::start(&old, &FLAGS);
    replicate_once(&old, &new);
    old.sql(
        "INSERT INTO d.t VALUES (10, 'a'); BEGIN; INSERT INTO d.t VALUES (11, 'b'); INSERT INTO d.t VALUES (12, 'c'); \
         COMMIT; INSERT INTO d.t VALUES (13, 'd')",
    );
    daemon.wait_caught_up(&old);
    old.kill();
    new.sql("INSERT INTO d.t VALUES (12, 'in the way')");
    let error = refused(&daemon, &url(&new), &["--yes"]);
    assert!(error.contains("(d.t)") && error.contains("Duplicate entry '12'"), "{error}");
    assert!(error.contains("it goes on here"), "{error}");
    assert_eq!(new.sql("SELECT GROUP_CONCAT(id ORDER BY id) FROM d.t WHERE id > 1").trim(), "10,12");
    new.sql("DELETE FROM d.t WHERE id = 12");
    let told = rescued(&daemon, &url(&new), &["--yes"]);
    assert!(told.contains("now has all 2 transactions"), "{told}");
    assert_eq!(new.sql("SELECT GROUP_CONCAT(id ORDER BY id) FROM d.t WHERE id > 1").trim(), "10,11,12,13");
    assert_eq!(new.sql("SELECT v FROM d.t WHERE id = 12").trim(), "c");
}

#[test]
fn who_cannot_take_it_is_told_why() {
    let old = source("mysql-9.7", &[]);
    let new = Server::start("mysql-9.7", &[]);
    let daemon = Daemon::start(&old, &FLAGS);
    daemon.wait_caught_up(&old);
    new.sql("CREATE USER weak@'%' IDENTIFIED BY 'p@ss'; SET GLOBAL super_read_only = ON");
    let weak = format!("mysql://weak:p%40ss@{}:{}", new.env("HOST"), new.port());
    let error = refused(&daemon, &weak, &["--yes", "--unrelated"]);
    assert!(error.contains("SET GLOBAL super_read_only = OFF"), "{error}");
    new.sql("SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF");
    let error = refused(&daemon, &weak, &["--yes", "--unrelated"]);
    assert!(
        error.contains("The account must be allowed") && error.contains("REPLICATION_APPLIER"),
        "{error}"
    );
    let nobody = refused(&daemon, "mysql://root@127.0.0.1:1", &["--dry-run"]);
    assert!(nobody.contains("127.0.0.1:1") && nobody.contains("cannot connect"), "{nobody}");
    let mariadb = Server::start("mariadb-11.8", &[]);
    let error = refused(&daemon, &url(&mariadb), &["--dry-run"]);
    assert!(error.contains("the copy is of MySQL and the target is MariaDB"), "{error}");
}

/// Puts a server's data folder back to what it was, as a machine does that lost what was never synced.
fn copy_folder(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(status.success());
}

/// In the status for people and for programs, the log, the metrics and the exit code of the doctor.
#[track_caller]
fn assert_the_loss_is_told(daemon: &Daemon, server: &Server, lost: &str, transactions: u64) {
    assert_eq!(daemon.source()["source_lacks"], lost);
    let metrics = http(daemon, "/metrics");
    let line = format!("binlogd_source_lacks_transactions{{source=\"default\"}} {transactions}");
    assert!(metrics.contains(&line), "no {line} in\n{metrics}");
    assert!(daemon.log().contains(&format!("the source lacks transactions that the copy holds: {lost}")));
    let (code, text) = doctor(daemon, server);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("history: it lacks transactions that the copy holds: {lost}")), "{text}");
    let status = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["status", "--data-dir"])
        .arg(daemon.data_dir())
        .output()
        .unwrap();
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("source lacks") && status.contains("binlogd rescue"), "{status}");
}

fn http(daemon: &Daemon, path: &str) -> String {
    let url = format!("http://{}{path}", daemon.admin_address());
    ureq::get(url).call().unwrap().body_mut().read_to_string().unwrap()
}

/// Exit code and words of `binlogd doctor`.
fn doctor(daemon: &Daemon, server: &Server) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["doctor", "--source", &url(server), "--data-dir"])
        .arg(daemon.data_dir())
        .env_remove("BINLOGD_PASSWORD")
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The relaxed source: it syncs nothing itself and loses the end of its binary log and of its tables with its machine. What
/// binlogd acknowledged brings it back to the full history, and a successor too.
fn a_relaxed_source_that_lost_its_tail_is_completed(name: &str) {
    const RELAXED: [&str; 2] = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"];
    let mysql = name.starts_with("mysql");
    let mut old = source(name, &RELAXED);
    let new = Server::start(name, if mysql { &[] } else { &["--server-id=2"] });
    let daemon = Daemon::start(&old, &FLAGS);
    replicate_once(&old, &new);
    // A state of the disk in the midst of things.
    old.sql("INSERT INTO d.t (v) SELECT 'kept' FROM information_schema.collations LIMIT 50");
    daemon.wait_caught_up(&old);
    old.kill();
    let earlier = old.dir().join("earlier");
    copy_folder(old.datadir(), &earlier);
    old.restart(&RELAXED);
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    let semi_sync = SemiSync::enable(&old, Duration::from_secs(3600));
    semi_sync.wait_attached();
    let before = semi_sync.counters();
    for round in 0..20 {
        old.sql(&format!(
            "INSERT INTO d.t (v) VALUES ('acknowledged {round}'); UPDATE d.t SET v = CONCAT(v, '.') WHERE id <= 10; \
             CREATE TABLE d.t{round} (id INT PRIMARY KEY); INSERT INTO d.t{round} VALUES ({round})"
        ));
    }
    let after = semi_sync.counters();
    assert_eq!(after.no_tx, before.no_tx, "every commit was acknowledged");
    assert!(after.yes_tx >= before.yes_tx + 80, "{after:?}");
    let reference = content(&old);
    let history = old.sql(if mysql { "SELECT @@gtid_executed" } else { "SELECT @@gtid_binlog_pos" });
    let history = history.replace("\\n", "").trim().to_owned();
    old.kill();
    copy_folder(&earlier, old.datadir());

    // A successor that had only a part.
    let told = rescued(&daemon, &url(&new), &["--yes"]);
    assert!(told.contains("verified by GTID"), "{told}");
    assert_eq!(content(&new), reference, "the successor");

    // The same server, which has forgotten what it told its clients.
    old.restart(&RELAXED);
    assert_ne!(content(&old), reference);
    daemon.wait_until(|source| source["state"] == "receiving" && daemon.timeline_dirs().len() == 2, PATIENCE);
    let (lost, count) = if mysql {
        let lost = old.sql(&format!("SELECT GTID_SUBTRACT('{history}', @@gtid_executed)"));
        (lost.replace("\\n", "").trim().to_owned(), 80)
    } else {
        (history.clone(), 1) // The newest of its one server.
    };
    assert_the_loss_is_told(&daemon, &old, &lost, count);
    let told = rescued(&daemon, &url(&old), &["--yes"]);
    assert!(told.contains("verified by GTID"), "{told}");
    assert_eq!(content(&old), reference, "the same server");
    daemon.wait_until(|source| source["source_lacks"] == "", PATIENCE);
    let (code, text) = doctor(&daemon, &old);
    assert!(text.contains("history: it has every transaction"), "{code:?}: {text}");
    daemon.wait_caught_up(&old);
}

#[test]
fn a_relaxed_source_that_lost_its_tail_is_completed_mysql() {
    a_relaxed_source_that_lost_its_tail_is_completed("mysql-9.7");
}

#[test]
fn a_relaxed_source_that_lost_its_tail_is_completed_mariadb() {
    a_relaxed_source_that_lost_its_tail_is_completed("mariadb-11.8");
}
