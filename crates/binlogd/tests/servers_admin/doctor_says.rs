//! What `binlogd doctor` says of a copy beside its source: a gap, a lost end, the privilege for the newest file.

use crate::common::daemon::{Daemon, url};
use crate::common::doctor::{doctor, line};
use crate::common::{Server, wait_within};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 4] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s"];

fn source(name: &str) -> Server {
    let server = Server::start(name, &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50))");
    server
}

/// `start = "latest"` before the first start, with an account that may do nothing but replicate.
fn check_latest(server: &Server, privilege: &str) {
    server.sql("CREATE USER plain@'127.0.0.1'; GRANT REPLICATION SLAVE ON *.* TO plain@'127.0.0.1'");
    let folder = tempfile::tempdir().unwrap();
    let plain = url(server).replace("root@", "plain@");
    let ask = || doctor(&plain, folder.path(), &["--start", "latest"]);
    let (code, out) = ask();
    assert_eq!(code, 1, "{out}");
    line(&out, "error", &format!("start = \"latest\": {privilege} of 'plain'@'127.0.0.1' is missing"));
    let grant = format!("GRANT {privilege} ON *.* TO 'plain'@'127.0.0.1';");
    assert!(out.lines().any(|line| line.trim() == grant), "no {grant} in\n{out}");
    // The daemon names the same one.
    let daemon = Daemon::start_in(folder.path(), &plain, &["--start", "latest"]);
    let wanted = format!("GRANT {privilege} ON *.* TO 'plain'@");
    let says = |source: &serde_json::Value| {
        source["last_error"]["message"].as_str().is_some_and(|m| m.contains(&wanted))
    };
    daemon.wait_until(says, PATIENCE);
    server.sql(&grant);
    let (code, out) = ask();
    assert_eq!(code, 0, "{out}");
    line(&out, "ok", "start = \"latest\": 'plain'@'127.0.0.1' may ask");
    // Once something is copied, nobody asks any more.
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    assert!(!ask().1.contains("start = "));
}

/// A source that purged what the copy needs: a stopped source is no "ok".
fn check_gap(server: &Server) {
    let mut daemon = Daemon::start(server, &FLAGS);
    server.sql("INSERT INTO d.t (v) VALUES ('copied')");
    daemon.wait_caught_up(server);
    let (code, out) = doctor(&url(server), &daemon.data_dir(), &[]);
    assert_eq!(code, 0, "{out}");
    line(&out, "ok", "logs: the copy can go on where it ends");
    // The look of the doctor has not disturbed the daemon.
    assert_eq!(daemon.source()["counters"]["reconnects"], 0, "{}", daemon.log());
    daemon.terminate();
    for _ in 0..3 {
        server.sql("INSERT INTO d.t (v) VALUES ('lost'); FLUSH BINARY LOGS");
    }
    let logs = server.sql("SHOW BINARY LOGS");
    let newest = logs.lines().last().unwrap().split('\t').next().unwrap();
    let purge = format!("PURGE BINARY LOGS TO '{newest}'");
    // MariaDB keeps logs that a crash recovery could need until a checkpoint.
    wait_within(PATIENCE, "the older logs are purged", || {
        server.sql(&purge);
        server.sql("SHOW BINARY LOGS").lines().count() == 1
    });
    let (code, out) = doctor(&url(server), &daemon.data_dir(), &[]);
    assert_eq!(code, 1, "{out}");
    assert!(
        line(&out, "error", "logs: a gap: the source no longer has mysql-bin.").contains(newest),
        "{out}"
    );
    let (code, out) = doctor(&url(server), &daemon.data_dir(), &["--on-gap", "record"]);
    assert_eq!(code, 0, "{out}");
    line(&out, "warning", "logs: a gap");
    // The same while a daemon runs that stopped for it.
    daemon.restart(&FLAGS);
    daemon.wait_until(|source| source["state"] == "stopped", PATIENCE);
    assert_eq!(doctor(&url(server), &daemon.data_dir(), &[]).0, 1);
}

#[test]
fn mysql_9_7() {
    let server = source("mysql-9.7");
    check_latest(&server, "REPLICATION CLIENT");
    check_gap(&server);
}

#[test]
fn mariadb_11_8() {
    let server = source("mariadb-11.8");
    check_latest(&server, "BINLOG MONITOR");
    check_gap(&server);
}
