//! What begins a timeline on real servers: a reset, a purge, a successor, a source that lost its tail. Whatever happens,
//! nothing that was copied is changed or deleted.

use crate::common::archive::{archive, assert_files_equal, assert_kept, described, reason};
use crate::common::daemon::{Daemon, url};
use crate::common::doctor::{doctor, line};
use crate::common::pair::{gtid_executed, wait_replicated};
use crate::common::{Server, wait_within};
use codec::ServerKind;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(40);
const FLAGS: [&str; 4] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s"];

/// A server with a table.
fn source(name: &str) -> Server {
    let server = Server::start(name, &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50))");
    server
}

fn reset(server: &Server) {
    let statement = if server.name() == "mysql-9.7" { "RESET BINARY LOGS AND GTIDS" } else { "RESET MASTER" };
    server.sql(statement);
}

fn a_reset_begins_a_timeline(name: &str, while_running: bool) {
    let server = source(name);
    let mut daemon = Daemon::start(&server, &FLAGS);
    server.sql(
        "INSERT INTO d.t (v) VALUES ('before'); FLUSH BINARY LOGS; INSERT INTO d.t (v) VALUES ('before')",
    );
    daemon.wait_caught_up(&server);
    let before = archive(&daemon);
    if !while_running {
        daemon.terminate();
    }
    // A file's format description has its time in seconds; a reset within the same second as the first file is not what
    // this is about.
    std::thread::sleep(Duration::from_millis(1100));
    reset(&server);
    server.sql("INSERT INTO d.t (v) VALUES ('after')");
    if !while_running {
        daemon.restart(&FLAGS);
    }
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    daemon.wait_caught_up(&server);
    assert_eq!(reason(&daemon.timeline_dir()), "source-reset");
    assert_kept(&before, &daemon);
    server.sql("FLUSH BINARY LOGS");
    daemon.wait_caught_up(&server);
    assert_files_equal(&server, &daemon.timeline_dir(), "mysql-bin.000001");
    assert_eq!(daemon.timeline_dirs().len(), 2, "one reset, one timeline\n{}", daemon.log());
}

#[test]
fn a_reset_under_a_running_binlogd_mysql() {
    a_reset_begins_a_timeline("mysql-9.7", true);
}

#[test]
fn a_reset_under_a_stopped_binlogd_mysql() {
    a_reset_begins_a_timeline("mysql-9.7", false);
}

#[test]
fn a_reset_under_a_running_binlogd_mariadb() {
    a_reset_begins_a_timeline("mariadb-11.8", true);
}

#[test]
fn a_reset_under_a_stopped_binlogd_mariadb() {
    a_reset_begins_a_timeline("mariadb-11.8", false);
}

/// An operator resets the logs and keeps the count of transactions: what binlogd had not copied is gone with the old logs.
#[test]
fn a_reset_that_keeps_the_gtids_tells_what_is_missing() {
    let server = source("mysql-9.7");
    let mut daemon = Daemon::start(&server, &FLAGS);
    daemon.wait_caught_up(&server);
    daemon.terminate();
    let before = archive(&daemon);
    let copied = gtid_executed(&server);
    server.sql("INSERT INTO d.t (v) VALUES ('lost'); INSERT INTO d.t (v) VALUES ('lost')");
    let executed = gtid_executed(&server);
    reset(&server);
    server.sql(&format!("SET GLOBAL gtid_purged = '{executed}'; INSERT INTO d.t (v) VALUES ('goes on')"));
    daemon.restart(&FLAGS);
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    daemon.wait_caught_up(&server);
    let missing = server.sql(&format!("SELECT GTID_SUBTRACT('{executed}', '{copied}')"));
    assert_eq!(described(&daemon.timeline_dir(), "missing"), missing.trim());
    assert_eq!(reason(&daemon.timeline_dir()), "source-reset");
    assert_kept(&before, &daemon);
}

/// Logs that were not copied are purged while binlogd is down.
fn a_purge(name: &str, on_gap: &str) -> (Server, Daemon, BTreeMap<PathBuf, Vec<u8>>) {
    a_purge_of(source(name), on_gap)
}

fn a_purge_of(server: Server, on_gap: &str) -> (Server, Daemon, BTreeMap<PathBuf, Vec<u8>>) {
    a_purge_behind("INSERT INTO d.t (v) VALUES ('copied')", server, on_gap)
}

/// As [`a_purge`], behind what `last` wrote.
fn a_purge_behind(last: &str, server: Server, on_gap: &str) -> (Server, Daemon, BTreeMap<PathBuf, Vec<u8>>) {
    let mut daemon = Daemon::start(&server, &FLAGS);
    server.sql(last);
    daemon.wait_caught_up(&server);
    daemon.terminate();
    let before = archive(&daemon);
    for _ in 0..3 {
        server.sql("INSERT INTO d.t (v) VALUES ('lost'); FLUSH BINARY LOGS");
    }
    server.sql("INSERT INTO d.t (v) VALUES ('kept')");
    let newest = server.sql("SHOW BINARY LOGS");
    let newest = newest.lines().last().unwrap().split('\t').next().unwrap().to_owned();
    // MariaDB keeps logs that a crash recovery could need until a checkpoint.
    wait_within(PATIENCE, "the older logs are purged", || {
        server.sql(&format!("PURGE BINARY LOGS TO '{newest}'"));
        server.sql("SHOW BINARY LOGS").lines().count() == 1
    });
    daemon.restart(&[&FLAGS[..], &["--on-gap", on_gap]].concat());
    (server, daemon, before)
}

/// The set of what MySQL purged and the copy does not hold; the source must be stopped.
fn never_copied(server: &Server, daemon: &Daemon) -> String {
    let held = daemon.source()["gtid"]["durable"].as_str().unwrap().to_owned();
    server.sql(&format!("SELECT GTID_SUBTRACT(@@gtid_purged, '{held}')")).trim().to_owned()
}

#[test]
fn a_gap_stops_the_source_by_default() {
    let (server, daemon, before) = a_purge("mysql-9.7", "stop");
    let source = daemon.wait_until(|source| source["state"] == "stopped", PATIENCE);
    let detail = source["state_detail"].as_str().unwrap();
    assert!(detail.contains("a gap") && detail.contains("on_gap"), "{detail}");
    let missing = never_copied(&server, &daemon);
    assert!(!missing.is_empty() && detail.contains(&missing), "{missing} is not in: {detail}");
    let (code, out) = doctor(&url(&server), &daemon.data_dir(), &[]);
    assert!(code == 1 && line(&out, "error", "logs: a gap").contains(&missing), "{out}");
    assert_kept(&before, &daemon);
    assert_eq!(daemon.timeline_dirs().len(), 1);
}

/// The source's file was just begun, as after a restart: it and all files before it are purged. That is no reset.
#[track_caller]
fn a_gap_behind_a_file_without_a_transaction(name: &str) {
    let last = "INSERT INTO d.t (v) VALUES ('copied'); FLUSH BINARY LOGS";
    let (server, mut daemon, before) = a_purge_behind(last, source(name), "stop");
    let source = daemon.wait_until(|source| source["state"] == "stopped", PATIENCE);
    let detail = source["state_detail"].as_str().unwrap();
    assert!(detail.contains("a gap") && detail.contains("on_gap"), "{detail}");
    let (code, out) = doctor(&url(&server), &daemon.data_dir(), &[]);
    assert!(code == 1 && out.contains("logs: a gap"), "{out}");
    assert_kept(&before, &daemon);
    assert_eq!(daemon.timeline_dirs().len(), 1);
    daemon.terminate();
    daemon.restart(&[&FLAGS[..], &["--on-gap", "record"]].concat());
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    daemon.wait_caught_up(&server);
    assert_eq!(reason(&daemon.timeline_dir()), "gap");
    assert_ne!(described(&daemon.timeline_dir(), "missing"), "");
    assert_kept(&before, &daemon);
}

#[test]
fn a_gap_behind_a_file_without_a_transaction_mysql() {
    a_gap_behind_a_file_without_a_transaction("mysql-9.7");
}

#[test]
fn a_gap_behind_a_file_without_a_transaction_mariadb() {
    a_gap_behind_a_file_without_a_transaction("mariadb-11.8");
}

fn a_gap_is_recorded_and_passed(name: &str) {
    let (server, daemon, before) = a_purge(name, "record");
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    daemon.wait_caught_up(&server);
    assert_eq!(reason(&daemon.timeline_dir()), "gap");
    assert_kept(&before, &daemon);
    assert_gap_is_shown(&server, &daemon);
}

/// What was never copied is named wherever the copy is shown, and counted as durable nowhere.
#[track_caller]
fn assert_gap_is_shown(server: &Server, daemon: &Daemon) {
    let missing = described(&daemon.timeline_dir(), "missing");
    let is_mysql = server.kind() == ServerKind::MySql;
    let shown = daemon.source();
    assert_ne!(missing, "");
    assert_eq!(shown["missing"], missing.as_str());
    // MariaDB's numbers have holes: it is the newest of one server.
    assert_eq!(shown["missing_transactions"], if is_mysql { 3 } else { 1 });
    let [gap] = &shown["gaps"].as_array().unwrap()[..] else { panic!("{shown:#}") };
    assert_eq!(gap["timeline"], shown["timeline"]);
    assert_eq!(gap["after"]["file"], "mysql-bin.000001");
    assert_eq!(gap["first_file"], described(&daemon.timeline_dir(), "first_file"));
    if is_mysql {
        let durable = shown["gtid"]["durable"].as_str().unwrap();
        let both = server.sql(&format!("SELECT GTID_SUBTRACT(@@gtid_executed, '{durable}')"));
        assert_eq!(both.trim(), missing, "{durable} is not what the copy holds");
    }
    let metrics = ureq::get(format!("http://{}/metrics", daemon.admin_address()))
        .call()
        .unwrap()
        .body_mut()
        .read_to_string()
        .unwrap();
    let count = &shown["missing_transactions"];
    for line in [
        format!("binlogd_missing_transactions{{source=\"default\"}} {count}"),
        "binlogd_gaps{source=\"default\"} 1".into(),
    ] {
        assert!(metrics.contains(&line), "no {line} in\n{metrics}");
    }
    let (code, out) = doctor(&url(server), &daemon.data_dir(), &[]);
    let warning = line(&out, "warning", "history: a gap after mysql-bin.000001:");
    assert!(code == 0 && warning.contains(&missing), "{out}");
}

#[test]
fn a_gap_can_be_recorded_mysql() {
    a_gap_is_recorded_and_passed("mysql-9.7");
}

/// Without GTIDs the files say what is missing. The warning ends when nothing of before the gap is left.
#[test]
fn a_gap_without_gtids_is_told_by_its_files() {
    let server = Server::start("mysql-9.7", &["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50))");
    let (server, mut daemon, _) = a_purge_of(server, "record");
    daemon.wait_until(|source| source["gaps"].as_array().is_some_and(|gaps| gaps.len() == 1), PATIENCE);
    daemon.wait_caught_up(&server);
    let shown = daemon.source();
    assert!(shown["missing"] == "" && shown["gaps"][0]["missing"] == "", "{shown:#}");
    assert_eq!(shown["gaps"][0]["after"]["file"], "mysql-bin.000001");
    daemon.terminate();
    let ask = || doctor(&url(&server), &daemon.data_dir(), &[]);
    line(&ask().1, "warning", "history: a gap after mysql-bin.000001:");
    let folders = daemon.timeline_dirs();
    std::fs::remove_dir_all(&folders[0]).unwrap();
    let (code, out) = ask();
    assert!(code == 0 && !out.contains("history: a gap"), "{out}");
    daemon.restart(&FLAGS);
    daemon.wait_until(
        |source| source["state"] == "receiving" && source["gaps"] == serde_json::json!([]),
        PATIENCE,
    );
}

#[test]
fn a_gap_can_be_recorded_mariadb() {
    a_gap_is_recorded_and_passed("mariadb-11.8");
}

#[test]
fn a_source_that_lost_its_tail_is_a_fork_and_ours_is_kept() {
    let mut server = source("mysql-9.7");
    let daemon = Daemon::start(&server, &FLAGS);
    server.sql("INSERT INTO d.t (v) VALUES ('first')");
    let kept = daemon.wait_caught_up(&server)["positions"]["durable"]["position"].as_u64().unwrap();
    server.sql("INSERT INTO d.t (v) VALUES ('acknowledged, then lost by the source')");
    daemon.wait_caught_up(&server);
    let before = archive(&daemon);
    server.kill();
    // What a crash of the machine does to a source with sync_binlog = 0: the end of its binary log is gone.
    let file =
        std::fs::OpenOptions::new().write(true).open(server.datadir().join("mysql-bin.000001")).unwrap();
    file.set_len(kept).unwrap();
    server.restart(&[]);
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    assert_eq!(reason(&daemon.timeline_dir()), "fork");
    assert_kept(&before, &daemon);
    server.sql("INSERT INTO d.t (v) VALUES ('goes on'); FLUSH BINARY LOGS");
    daemon.wait_caught_up(&server);
    let newest = server.sql("SHOW BINARY LOGS");
    for line in newest.lines().rev().skip(1) {
        assert_files_equal(&server, &daemon.timeline_dir(), line.split('\t').next().unwrap());
    }
}

#[test]
fn a_successor_is_followed_by_gtid() {
    let old = source("mysql-9.7");
    let new = Server::start("mysql-9.7", &[]);
    new.sql(&format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={}, SOURCE_USER='root', \
         SOURCE_AUTO_POSITION=1, SOURCE_SSL=1; START REPLICA",
        old.port()
    ));
    let hosts = format!("{},127.0.0.1:{}", url(&old), new.port());
    let daemon = Daemon::start_on(&hosts, &FLAGS);
    old.sql("INSERT INTO d.t (v) VALUES ('a'),('b'); FLUSH BINARY LOGS; INSERT INTO d.t (v) VALUES ('c')");
    daemon.wait_caught_up(&old);
    wait_replicated(&new, &old);
    let before = archive(&daemon);
    old.kill();
    new.sql("STOP REPLICA; INSERT INTO d.t (v) VALUES ('from the successor')");
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    let source = daemon.wait_caught_up(&new);
    assert_eq!(reason(&daemon.timeline_dir()), "source-changed");
    assert_kept(&before, &daemon);
    let ours = source["gtid"]["durable"].as_str().unwrap();
    let contains = new.sql(&format!("SELECT GTID_SUBSET(@@gtid_executed, '{ours}')"));
    assert_eq!(contains.trim(), "1", "the copy has {ours}");
}

/// Recovery of MySQL 5.7 and 8.0.15 takes a transaction that ends with ROLLBACK, as one does that also wrote to a table without
/// transactions, for one that has not ended: it cuts the log before it, though every replica has it.
#[test]
fn a_source_that_cuts_whole_transactions_off_its_own_log_is_a_fork() {
    let mut server = Server::start("mysql-5.7.22", &[]);
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (v INT) ENGINE=InnoDB; CREATE TABLE d.m (v INT) ENGINE=MyISAM",
    );
    let daemon = Daemon::start(&server, &FLAGS);
    server.sql(
        "SET SESSION binlog_format = STATEMENT; BEGIN; INSERT INTO d.t VALUES (1); INSERT INTO d.m VALUES (1); ROLLBACK",
    );
    daemon.wait_caught_up(&server);
    let before = archive(&daemon);
    server.kill();
    server.restart(&[]);
    let log = std::fs::read_to_string(server.dir().join("error.log")).expect("the server's error log");
    assert!(
        log.contains("Binlog trimmed to"),
        "the server keeps its log now: this test has lost its subject"
    );
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    server.sql("INSERT INTO d.t VALUES (2)");
    daemon.wait_caught_up(&server);
    assert_eq!(reason(&daemon.timeline_dir()), "fork");
    assert_kept(&before, &daemon);
}
