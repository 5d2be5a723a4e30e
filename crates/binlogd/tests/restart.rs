//! binlogd is killed where it is hard to go on: in the middle of a huge transaction, right after a rotation, with a live
//! file that holds nothing yet. Each time it must go on in the same timeline and end with the source's own bytes.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use binlogd::wire::{Connection, TlsMode};
use common::compare::{AfterCrash, assert_identical, copied_files};
use common::daemon::Daemon;
use common::ledger::copied_entries;
use common::{Server, connect_options};

const STATEMENT_MAX: Duration = Duration::from_secs(60);
const FLAGS: [&str; 2] = ["--semi-sync", "false"];
/// Rows of the huge transaction, of [`HUGE_ROW_LEN`] bytes each: 64 MB altogether.
const HUGE_ROWS: usize = 1_000;
const HUGE_ROW_LEN: usize = 64_000;
/// Bytes of it that are in the copy when the kill comes.
const HUGE_PART: u64 = 4_000_000;

fn connect(server: &Server) -> Connection {
    let options = connect_options(server, "root", "", TlsMode::Preferred);
    let mut client = Connection::connect(&options).expect("a connection");
    client.set_timeout(STATEMENT_MAX);
    client
}

/// A source with a little in its binary log, and a copy of that.
fn begin(server_name: &str) -> (Server, Daemon) {
    let server = Server::start(server_name, &["--max-allowed-packet=256M"]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT, b MEDIUMTEXT); INSERT INTO d.t VALUES (1, 'a')");
    let daemon = Daemon::start(&server, &FLAGS);
    daemon.wait_caught_up(&server);
    (server, daemon)
}

/// Starts binlogd again and holds the whole copy against the source.
#[track_caller]
fn goes_on(server: &Server, daemon: &mut Daemon) {
    daemon.restart(&FLAGS);
    daemon.wait_caught_up(server);
    assert_identical(server, daemon, AfterCrash::Identical);
    assert_eq!(daemon.timeline_dirs().len(), 1, "a kill of binlogd begins no timeline");
}

fn newest_file(folder: &Path) -> std::path::PathBuf {
    folder.join(copied_files(folder).pop().expect("a file"))
}

fn in_a_huge_transaction(server_name: &str) {
    let (server, mut daemon) = begin(server_name);
    let live = newest_file(&daemon.timeline_dir());
    let before = std::fs::metadata(&live).expect("the live file").len();
    let row = format!("(2, REPEAT('y', {HUGE_ROW_LEN}))");
    let huge = format!("INSERT INTO d.t VALUES {}", vec![row; HUGE_ROWS].join(", "));
    std::thread::scope(|scope| {
        let mut client = connect(&server);
        scope.spawn(move || client.query(&huge).expect("the huge transaction"));
        let deadline = Instant::now() + STATEMENT_MAX;
        while std::fs::metadata(&live).expect("the live file").len() < before + HUGE_PART {
            assert!(Instant::now() < deadline, "the huge transaction does not arrive\n{}", daemon.log());
        }
        daemon.kill();
    });
    let left = copied_entries(&daemon.timeline_dir());
    let boundary = left.live.expect("a file").boundary;
    println!("{server_name}: killed at {} bytes, last boundary {boundary}", left.live_len);
    assert_eq!(boundary, before, "the transaction must not be there to its end, or this shows nothing");
    goes_on(&server, &mut daemon);
    let torn = std::fs::read_dir(daemon.timeline_dir()).expect("the timeline's folder").flatten();
    let torn = torn.filter(|entry| entry.file_name().to_string_lossy().contains(".torn-")).count();
    assert_eq!(torn, 1, "what was cut is kept aside");
}

#[test]
fn in_a_huge_transaction_of_mysql() {
    in_a_huge_transaction("mysql-9.7");
}

#[test]
fn in_a_huge_transaction_of_mariadb() {
    in_a_huge_transaction("mariadb-11.8");
}

/// Kills while the source rotates, once with nothing and once with something after the rotation; then leaves a live file
/// of a few bytes, which is what a kill between making the file and its first event leaves.
fn around_a_rotation(server_name: &str) {
    let (server, mut daemon) = begin(server_name);
    let mut client = connect(&server);
    for after in ["DO 0", "INSERT INTO d.t VALUES (3, 'b')"] {
        let files = copied_files(&daemon.timeline_dir()).len();
        client.query("FLUSH BINARY LOGS").expect("a rotation");
        client.query(after).expect("a statement");
        let deadline = Instant::now() + STATEMENT_MAX;
        while copied_files(&daemon.timeline_dir()).len() == files {
            assert!(Instant::now() < deadline, "the rotation does not arrive\n{}", daemon.log());
        }
        daemon.kill();
        goes_on(&server, &mut daemon);
    }
    for len in [0, 2, 4, 10, 130] {
        daemon.kill();
        let live = newest_file(&daemon.timeline_dir());
        let file = std::fs::File::options().write(true).open(&live).expect("the live file");
        assert!(file.metadata().expect("its length").len() > len);
        file.set_len(len).expect("a shorter file");
        goes_on(&server, &mut daemon);
    }
    // While the source idles: nothing is sent that could make up for anything.
    daemon.kill();
    goes_on(&server, &mut daemon);
}

#[test]
fn around_a_rotation_of_mysql() {
    around_a_rotation("mysql-9.7");
}

#[test]
fn around_a_rotation_of_mariadb() {
    around_a_rotation("mariadb-11.8");
}
