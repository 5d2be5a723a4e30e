//! A source that cannot or will not send its binary log: error 1236 in the causes that a real server can be brought to, and
//! what it sends when it notices nothing. Each is tried again until the cause is gone, and none costs a byte of the copy.
//!
//! Elsewhere: resets, purges and a lost tail in `timelines.rs`, purged by GTID in `failover.rs`, another client with the same
//! identity and a source without a binary log in `messages.rs`, other contents at the same place in `restored.rs`, files that nobody
//! repairs in `unreadable.rs`.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::Server;
use crate::common::archive::archive;
use crate::common::compare::{AfterCrash, assert_identical, binary_logs};
use crate::common::daemon::Daemon;
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);
/// What passes is no gap, whatever the operator wants done about gaps.
const FLAGS: [&str; 8] =
    ["--heartbeat-period", "1s", "--net-read-timeout", "60s", "--backoff-max", "300ms", "--on-gap", "record"];

/// A source whose second file has a transaction in its middle that binlogd, which is down, does not have yet.
struct Damaged {
    server: Server,
    daemon: Daemon,
    before: BTreeMap<PathBuf, Vec<u8>>,
    /// The file, and the end of what binlogd has of it.
    path: PathBuf,
    held: u64,
}

fn source(name: &str, options: &[&str]) -> Damaged {
    let server = Server::start(name, options);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (v VARCHAR(2000)); FLUSH BINARY LOGS; INSERT INTO d.t VALUES ('held')");
    let mut daemon = Daemon::start(&server, &FLAGS);
    let held = daemon.wait_caught_up(&server)["positions"]["durable"].clone();
    daemon.terminate();
    let path = server.datadir().join(held["file"].as_str().expect("a file"));
    server.sql(
        "INSERT INTO d.t VALUES (REPEAT('x', 2000)); INSERT INTO d.t VALUES ('after'); FLUSH BINARY LOGS",
    );
    let held = held["position"].as_u64().expect("a position");
    Damaged { before: archive(&daemon), server, daemon, path, held }
}

impl Damaged {
    /// binlogd meets the damage a few times, says `words`, and keeps what it has; then the file is made whole again.
    fn meets(mut self, words: &[&str], damage: impl FnOnce(&File, u64)) {
        let whole = std::fs::read(&self.path).expect("the source's file");
        damage(&File::options().write(true).open(&self.path).expect("the source's file"), self.held);
        self.daemon.restart(&FLAGS);
        self.daemon.wait_until(|source| source["counters"]["reconnects"].as_u64() >= Some(4), PATIENCE);
        let source = self.daemon.source();
        let message = source["last_error"]["message"].as_str().unwrap_or_default().to_owned();
        for word in words {
            assert!(message.contains(word), "{word:?} is not in {message:?}\n{}", self.daemon.log());
        }
        // A running session may just have written the events before the damage; its end takes them back.
        self.daemon.terminate();
        assert_eq!(
            archive(&self.daemon),
            self.before,
            "what binlogd has stays as it is\n{}",
            self.daemon.log()
        );
        std::fs::write(&self.path, &whole).expect("the file is whole again");
        self.daemon.restart(&FLAGS);
        self.daemon.wait_caught_up(&self.server);
        assert_identical(&self.server, &self.daemon, AfterCrash::Identical);
        assert_eq!(self.daemon.timeline_dirs().len(), 1, "{}", self.daemon.log());
    }
}

/// Changes a byte of a row.
fn flip(file: &File, held: u64) {
    file.write_all_at(b"y", held + 600).expect("a changed byte");
}

#[test]
fn a_damaged_event_that_mysql_sends_unchecked() {
    let words = ["that is not sound", "checksum"];
    source("mysql-9.7", &["--source-verify-checksum=0"]).meets(&words, flip);
}

#[test]
fn a_damaged_event_that_mysql_notices() {
    let words = ["did not pass crc check", "1236"];
    source("mysql-9.7", &["--source-verify-checksum=1"]).meets(&words, flip);
}

#[test]
fn a_damaged_event_that_mariadb_notices() {
    let words = ["crc check", "1236"];
    source("mariadb-11.8", &["--master-verify-checksum=1"]).meets(&words, flip);
}

#[test]
fn an_event_length_that_makes_no_sense() {
    // The header of the first event that binlogd lacks: its length stands behind time, type and server id.
    let damage = |file: &File, held| file.write_all_at(&[1, 0, 0, 0], held + 9).expect("a changed length");
    source("mysql-9.7", &[]).meets(&["bogus data in log event", "1236"], damage);
}

#[test]
fn a_file_that_ends_inside_an_event() {
    let damage = |file: &File, held| file.set_len(held + 700).expect("a cut");
    source("mysql-9.7", &[]).meets(&["binlog truncated in the middle of event", "1236"], damage);
}

/// binlogd copies slowly, and the source's operator purges. Servers keep what a dump still reads.
fn a_purge_while_binlogd_is_slow(name: &str) {
    let server = Server::start(name, &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (v VARCHAR(2000)); INSERT INTO d.t VALUES ('held')");
    let daemon = Daemon::start(&server, &FLAGS);
    daemon.wait_caught_up(&server);
    let process = Pid::from_raw(daemon.pid().cast_signed()).expect("a process id");
    kill_process(process, Signal::STOP).expect("it stops");
    // More than the sockets' buffers take, so that the dump is held up in the first of these files.
    for _ in 0..4 {
        server.sql("INSERT INTO d.t SELECT REPEAT('x', 2000) FROM information_schema.columns LIMIT 3000; FLUSH BINARY LOGS");
    }
    let names = binary_logs(&server);
    server.sql(&format!("PURGE BINARY LOGS TO '{}'", names.last().expect("a binary log")));
    let left = binary_logs(&server);
    kill_process(process, Signal::CONT).expect("it goes on");
    daemon.wait_caught_up(&server);
    assert!(left.len() > 1, "{left:?}: the dump was not held up, so that this shows nothing");
    let copied = crate::common::compare::copied_files(&daemon.timeline_dir());
    assert_eq!(copied, names, "every file, purged or not\n{}", daemon.log());
    assert_eq!(daemon.timeline_dirs().len(), 1, "{}", daemon.log());
}

#[test]
fn a_purge_while_binlogd_is_slow_on_mysql() {
    a_purge_while_binlogd_is_slow("mysql-9.7");
}

#[test]
fn a_purge_while_binlogd_is_slow_on_mariadb() {
    a_purge_while_binlogd_is_slow("mariadb-11.8");
}
