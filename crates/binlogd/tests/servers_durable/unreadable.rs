//! Files that a server itself wrote broken: half an event at their end, and another file after them. No replica gets past such
//! a place. What the next file says of what came before it decides whether binlogd may.
//!
//! Files that were damaged afterwards, and are repaired, in `complaints.rs`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::archive::{archive, assert_files_equal, assert_kept, described, reason};
use crate::common::compare::binary_logs;
use crate::common::daemon::{Daemon, url};
use crate::common::semi_sync::SemiSync;
use crate::common::torn::whole_events;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);
/// A gap is recorded after half a minute, at an attempt between pauses that have grown to half a minute too.
const GAP_PATIENCE: Duration = Duration::from_secs(150);
/// No commit is to return without an acknowledgement.
const NEVER: Duration = Duration::from_secs(3600);
const FLAGS: [&str; 4] = ["--heartbeat-period", "1s", "--net-read-timeout", "10s"];
const RECORD: [&str; 6] = ["--heartbeat-period", "1s", "--net-read-timeout", "10s", "--on-gap", "record"];

/// How large a file may become, in bytes: more than all others of a new server have.
const FILE_MAX: usize = 64_000_000;
/// Rows of a megabyte in the transaction that is killed.
const KILLED_ROWS: usize = 100;
/// The server is killed when so much of it is written, in bytes.
const KILLED_AT: u64 = 4_000_000;

fn last_error(source: &Value) -> String {
    source["last_error"]["message"].as_str().unwrap_or_default().to_owned()
}

fn verify(daemon: &Daemon) {
    crate::common::verbs::verifies(&daemon.data_dir());
}

/// A statement whose server may fail or go.
fn try_sql(server: &Server, statements: &str) {
    let mut command = Command::new(server.env("MYSQL"));
    command.args(["-e", statements]).output().expect("the client runs");
}

fn is_torn(path: &Path) -> bool {
    let bytes = std::fs::read(path).expect("a binary log");
    whole_events(&bytes) < bytes.len()
}

/// A MySQL that met the largest size of a file in the midst of a transaction, which it committed all the same, and was
/// started again. The daemon, which is down, has what was before. Gives the transaction's GTID too.
fn mysql_that_cannot_write_on() -> (Server, Daemon, String) {
    let options = ["--binlog-error-action=IGNORE_ERROR"];
    let mut server = Server::start_with_file_limit("mysql-9.7", &options);
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (v VARCHAR(50)); CREATE TABLE d.large (v LONGTEXT) ENGINE=BLACKHOLE; \
         INSERT INTO d.t VALUES ('held')",
    );
    let mut daemon = Daemon::start(&server, &FLAGS);
    daemon.wait_caught_up(&server);
    daemon.terminate();
    let mut limit = Command::new("prlimit");
    limit.args(["--pid", server.env("PID"), &format!("--fsize={FILE_MAX}")]);
    assert!(limit.status().expect("prlimit").success());
    let rows = |count: usize| {
        format!(
            "INSERT INTO d.large SELECT REPEAT('x', 1000000) FROM information_schema.columns LIMIT {count}"
        )
    };
    // Not in one transaction: what is not written yet stands in a file as well.
    for _ in 0..2 {
        server.sql(&rows(25));
    }
    let before = server.sql("SELECT @@gtid_executed").replace("\\n", "").trim().to_owned();
    try_sql(&server, &format!("BEGIN; INSERT INTO d.t VALUES ('torn'); {}; COMMIT", rows(25)));
    server.stop();
    server.restart(&[]);
    assert!(is_torn(&server.datadir().join("mysql-bin.000001")), "this test has lost its subject");
    let torn = server.sql(&format!("SELECT GTID_SUBTRACT(@@gtid_executed, '{before}')")).trim().to_owned();
    assert_ne!(torn, "", "it is committed, by its own word");
    server.sql("INSERT INTO d.t VALUES ('goes on')");
    (server, daemon, torn)
}

#[test]
fn a_file_that_mysql_wrote_broken() {
    let (server, mut daemon, torn) = mysql_that_cannot_write_on();
    daemon.restart(&FLAGS);
    let told = |source: &Value| last_error(source).contains("cannot read its own binary log");
    let message = last_error(&daemon.wait_until(told, PATIENCE));
    for words in
        ["binlog truncated in the middle of event", "mysql-bin.000002", &torn, "set on_gap = \"record\""]
    {
        assert!(message.contains(words), "{words:?} is not in {message:?}");
    }
    assert_eq!(daemon.timeline_dirs().len(), 1);
    let (code, told) = crate::common::doctor::doctor(&url(&server), &daemon.data_dir(), &[]);
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("the source cannot read its own file behind mysql-bin.000001"), "{told}");
    daemon.terminate();
    // Only now: a session that is under way has the part of the broken transaction in the file that can be read.
    let before = archive(&daemon);

    daemon.restart(&RECORD);
    let told = |source: &Value| last_error(source).contains("half a minute");
    let message = last_error(&daemon.wait_until(told, PATIENCE));
    assert!(message.contains(&torn), "{message}");
    assert_eq!(daemon.timeline_dirs().len(), 1, "it may pass\n{}", daemon.log());
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, GAP_PATIENCE);
    daemon.wait_caught_up(&server);
    let timeline = daemon.timeline_dir();
    assert_eq!((reason(&timeline).as_str(), described(&timeline, "missing")), ("gap", torn));
    let unreadable = described(&timeline, "unreadable");
    assert!(unreadable.starts_with("mysql-bin.000001:5"), "{unreadable}");
    assert_kept(&before, &daemon);
    server.sql("INSERT INTO d.t VALUES ('and on'); FLUSH BINARY LOGS");
    daemon.wait_caught_up(&server);
    assert_files_equal(&server, &timeline, "mysql-bin.000002");
    daemon.terminate();
    daemon.restart(&RECORD);
    daemon.wait_caught_up(&server);
    assert_eq!(daemon.timeline_dirs().len(), 2, "{}", daemon.log());
    daemon.terminate();
    verify(&daemon);
}

/// What MariaDB leaves when its disk is full is what cutting a file leaves.
#[test]
fn a_file_of_mariadb_that_ends_inside_an_event_and_another_one_follows() {
    let server = Server::start("mariadb-11.8", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (v LONGTEXT); INSERT INTO d.t VALUES ('held')");
    let mut daemon = Daemon::start(&server, &RECORD);
    let held = daemon.wait_caught_up(&server)["positions"]["durable"]["position"].as_u64();
    let copied = archive(&daemon);
    daemon.terminate();
    server.sql("INSERT INTO d.t VALUES (REPEAT('x', 2000))");
    let torn = server.sql("SELECT @@gtid_binlog_pos").trim().to_owned();
    server.sql("FLUSH BINARY LOGS; INSERT INTO d.t VALUES ('goes on')");
    let path = server.datadir().join("mysql-bin.000001");
    let file = std::fs::File::options().write(true).open(&path).expect("the source's file");
    file.set_len(held.expect("a position") + 300).expect("a cut");
    daemon.restart(&RECORD);
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, GAP_PATIENCE);
    daemon.wait_caught_up(&server);
    let timeline = daemon.timeline_dir();
    assert_eq!((reason(&timeline).as_str(), described(&timeline, "missing")), ("gap", torn));
    assert_kept(&copied, &daemon);
    daemon.terminate();
    verify(&daemon);
}

/// Kills the server while it writes a large transaction; true when half an event is what is left of that.
fn kill_while_it_writes(server: &Server) -> bool {
    let name = binary_logs(server).pop().expect("a binary log");
    let path = server.datadir().join(name);
    let length = || std::fs::metadata(&path).expect("the binary log").len();
    let (pid, before) = (server.env("PID").parse().expect("a process id"), length());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let rows =
                format!("SELECT REPEAT('x', 1000000) FROM information_schema.columns LIMIT {KILLED_ROWS}");
            try_sql(server, &format!("INSERT INTO d.t {rows}"));
        });
        let deadline = Instant::now() + PATIENCE;
        while length() < before + KILLED_AT {
            assert!(Instant::now() < deadline, "the transaction is not written");
        }
        kill_process(Pid::from_raw(pid).expect("a process id"), Signal::KILL).expect("the server");
    });
    is_torn(&path)
}

/// Options of a MariaDB that waits for acknowledgements from its first commit on.
fn waits_for_acknowledgements() -> [String; 2] {
    let timeout = NEVER.as_millis();
    ["--rpl-semi-sync-master-enabled=1".to_owned(), format!("--rpl-semi-sync-master-timeout={timeout}")]
}

/// The copy goes on with the file behind the torn one, and nothing is missing.
#[track_caller]
fn assert_nothing_missing(daemon: &Daemon) {
    let timeline = daemon.timeline_dir();
    assert_eq!((reason(&timeline).as_str(), described(&timeline, "missing")), ("gap", String::new()));
    assert_ne!(described(&timeline, "unreadable"), "");
}

/// A source that waits for acknowledgements is killed in the midst of a write, and comes back. It counts nothing of what is
/// torn, so nothing is missing, and commits go on by themselves.
#[test]
fn half_an_event_that_a_killed_mariadb_leaves() {
    let mut server = Server::start("mariadb-11.8", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (v LONGTEXT); INSERT INTO d.t VALUES ('held')");
    let mut daemon = Daemon::start(&server, &FLAGS);
    daemon.wait_caught_up(&server);
    SemiSync::enable(&server, NEVER);
    server.sql("INSERT INTO d.t VALUES ('acknowledged')");
    let mut timelines = 1;
    let mut kills = 0;
    while timelines < 3 {
        kills += 1;
        assert!(kills < 20, "this test has lost its subject: MariaDB leaves no half event any more");
        let before = archive(&daemon);
        let torn = kill_while_it_writes(&server);
        server.restart(&waits_for_acknowledgements().each_ref().map(String::as_str));
        // Returns when it is acknowledged.
        server.sql("INSERT INTO d.t VALUES ('goes on')");
        daemon.wait_caught_up(&server);
        assert_kept(&before, &daemon);
        if torn {
            timelines += 1;
            assert_nothing_missing(&daemon);
        }
        assert_eq!(daemon.timeline_dirs().len(), timelines, "{}", daemon.log());
    }
    assert_eq!(SemiSync::of(&server).counters().no_tx, 0);
    daemon.terminate();
    verify(&daemon);
}

/// The same with less of the transaction: MariaDB would bring its own dump to a halt over it if a semi-sync replica asked for
/// it, so none must.
#[test]
fn half_a_small_transaction_is_found_before_semi_sync_begins() {
    let mut server = Server::start("mariadb-11.8", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (v LONGTEXT); INSERT INTO d.t VALUES ('held')");
    let daemon = Daemon::start(&server, &FLAGS);
    let before = daemon.wait_caught_up(&server)["positions"]["durable"]["position"].as_u64();
    let before = usize::try_from(before.expect("a position")).expect("a small file");
    SemiSync::enable(&server, NEVER);
    server.sql("INSERT INTO d.t VALUES ('acknowledged')");
    daemon.wait_caught_up(&server);
    server.kill();
    let path = server.datadir().join("mysql-bin.000001");
    let mut log = std::fs::read(&path).expect("the binary log");
    // The GTID event of the last transaction once more, and the beginning of what follows it.
    log.extend_from_within(before..before + 50);
    std::fs::write(&path, log).expect("the binary log");
    assert!(is_torn(&path));
    let copied = archive(&daemon);
    server.restart(&waits_for_acknowledgements().each_ref().map(String::as_str));
    server.sql("INSERT INTO d.t VALUES ('goes on')");
    daemon.wait_caught_up(&server);
    assert_kept(&copied, &daemon);
    assert_eq!(daemon.timeline_dirs().len(), 2, "{}", daemon.log());
    assert_nothing_missing(&daemon);
    assert!(!daemon.log().contains("nothing arrives"), "{}", daemon.log());
}

#[test]
fn half_an_event_at_the_end_is_not_whole() {
    let event = |length: u32| {
        let mut event = vec![7; length as usize];
        event[9..13].copy_from_slice(&length.to_le_bytes());
        event
    };
    let log = [b"\xfebin".to_vec(), event(25), event(1000), event(40)].concat();
    assert_eq!(whole_events(&log), log.len());
    for cut in [1, 20, 25, 39] {
        assert_eq!(whole_events(&log[..log.len() - cut]), 4 + 25 + 1000, "{cut}");
    }
    assert_eq!((whole_events(&log[..3]), whole_events(&log[..10])), (3, 4));
}
