//! mysqlbinlog and mariadb-binlog with the options of their users: what they print and write is the same from binlogd as
//! from the source.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::compare::binary_logs;
use crate::common::daemon::{Daemon, binlog_end};
use crate::common::readers::{SERVE, account_url, client, make_account, serve_port};
use crate::common::workload::{Dialect, mixed, run, schema};
use crate::common::{Server, wait_within};
use serde_json::{Value, json};

/// How long a program that follows the log may take to what was just written.
const FOLLOWS_MAX: Duration = Duration::from_secs(60);

const REMOTE: &str = "--read-from-remote-server";

/// A source with three files, and binlogd, which has them.
fn scene(name: &str) -> (Server, Daemon) {
    let options: &[&str] = match name {
        // With its index the source finds the place in the middle of a file, and leaves out what no reader needs before.
        "mariadb-11.8" => &["--server-id=1", "--binlog-gtid-index=OFF"],
        _ => &["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    };
    let source = Server::start(name, options);
    let dialect = Dialect { gtid_consistency: true, create_select: false };
    make_account(&source);
    run(&source, "schema", &schema("d", 2));
    let daemon = Daemon::start_on(&account_url(&source), &SERVE);
    for seed in 0..2 {
        run(&source, "writing", &mixed(dialect, "d", seed, seed, 25));
        source.sql("FLUSH BINARY LOGS");
    }
    source.sql("INSERT INTO d.t0 (k) VALUES (1)");
    daemon.wait_caught_up(&source);
    (source, daemon)
}

/// The program, from the source and from binlogd, prints the same, and that says `holds`.
#[track_caller]
fn prints_the_same(source: &Server, daemon: &Daemon, arguments: &[&str], holds: &str) {
    let theirs = client(source, "MYSQLBINLOG", source.port(), arguments);
    let ours = client(source, "MYSQLBINLOG", serve_port(daemon), arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (expected, found) = (text(&theirs.stdout), text(&ours.stdout));
    let said = text(&ours.stderr);
    assert!(theirs.status.success(), "{arguments:?} of the source: {}", text(&theirs.stderr));
    assert!(ours.status.success(), "{arguments:?}: {said}\n{}", daemon.log());
    assert!(expected.contains(holds), "{arguments:?}: no {holds:?} in what the source gave:\n{expected}");
    let differs = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    assert!(expected == found, "{arguments:?}: {differs:?}, {} and {} bytes", expected.len(), found.len());
}

/// The position behind the `nth` transaction that commits in a file, as the program itself prints it.
fn boundary(source: &Server, file: &str, nth: usize) -> String {
    let printed = client(source, "MYSQLBINLOG", source.port(), &[REMOTE, file]);
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let mut ends = text.lines().filter(|line| line.contains("Xid = ")).map(|line| {
        let (_, rest) = line.split_once("end_log_pos ").expect("an event's line");
        rest.split_whitespace().next().unwrap().to_owned()
    });
    ends.nth(nth).unwrap_or_else(|| panic!("{file} has fewer transactions than {nth}:\n{text}"))
}

fn options(name: &str) {
    let (source, daemon) = scene(name);
    let files = binary_logs(&source);
    let (first, second) = (files[0].as_str(), files[1].as_str());
    let (from, to) = (boundary(&source, second, 3), boundary(&source, second, 9));
    let start = format!("--start-position={from}");
    let stop = format!("--stop-position={to}");
    prints_the_same(&source, &daemon, &[REMOTE, first], "Xid = ");
    prints_the_same(&source, &daemon, &[REMOTE, "--to-last-log", first], &files[2]);
    prints_the_same(&source, &daemon, &[REMOTE, &start, second], "Xid = ");
    prints_the_same(&source, &daemon, &[REMOTE, &start, &stop, second], "Xid = ");
    prints_the_same(
        &source,
        &daemon,
        &[REMOTE, &start, "--to-last-log", "-vv", second],
        "### INSERT INTO `d`.`t0`",
    );
    if name == "mariadb-11.8" {
        let gtid = |offset: &str| {
            source.sql(&format!("SELECT BINLOG_GTID_POS('{second}', {offset})")).trim().to_owned()
        };
        let (start, stop) =
            (format!("--start-position={}", gtid(&from)), format!("--stop-position={}", gtid(&to)));
        for chosen in [vec![&*start], vec![&*stop], vec![&*start, &*stop, "--gtid-strict-mode"]] {
            prints_the_same(&source, &daemon, &[&[REMOTE, second][..], &chosen].concat(), "Xid = ");
        }
    } else {
        let uuid = source.sql("SELECT @@server_uuid").trim().to_owned();
        let some = format!("{uuid}:3-7:30-31");
        let (include, exclude) = (format!("--include-gtids={some}"), format!("--exclude-gtids={some}"));
        let holds = |number: u64| format!("SET @@SESSION.GTID_NEXT= '{uuid}:{number}'");
        prints_the_same(&source, &daemon, &[REMOTE, &include, "--to-last-log", first], &holds(30));
        prints_the_same(&source, &daemon, &[REMOTE, &exclude, "--to-last-log", first], &holds(29));
        prints_the_same(&source, &daemon, &[REMOTE, &exclude, "--skip-gtids", &start, second], "Xid = ");
        // By COM_BINLOG_DUMP_GTID, as a replica: without a first file, and what is excluded is never sent.
        let proto = "--read-from-remote-source=BINLOG-DUMP-GTIDS";
        prints_the_same(&source, &daemon, &[proto, &exclude, "--to-last-log", first], &holds(29));
        let last: u64 =
            source.sql("SELECT @@gtid_executed").trim().rsplit('-').next().unwrap().parse().unwrap();
        let almost_all = format!("--exclude-gtids={uuid}:1-{}", last - 5);
        prints_the_same(&source, &daemon, &[proto, &almost_all, "--to-last-log", second], &holds(last - 4));
    }
}

/// A program that reads without an end, and is ended with the test.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn follow(source: &Server, port: u16, folder: &Path, server_id: &str, first: &str) -> Following {
    let mut command = Command::new(source.env("MYSQLBINLOG"));
    command.args(["--host=127.0.0.1", &format!("--port={port}"), "--user=repl", "--password=secret"]);
    command.args([REMOTE, "--raw", "--stop-never", &format!("--result-file={}/", folder.display())]);
    match source.name() {
        "mariadb-11.8" => command.args(["--skip-ssl", &format!("--stop-never-slave-server-id={server_id}")]),
        _ => command.arg(format!("--connection-server-id={server_id}")),
    };
    command.arg(first).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Following(command.spawn().expect("the program runs"))
}

/// With --raw --stop-never the program keeps files that are the source's, also those that are written while it reads.
fn stop_never(name: &str) {
    let (source, daemon) = scene(name);
    let first = binary_logs(&source)[0].clone();
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _of_source = follow(&source, source.port(), theirs.path(), "71", &first);
    let mut of_binlogd = follow(&source, serve_port(&daemon), ours.path(), "72", &first);
    let read = |folder: &Path, file: &str| std::fs::read(folder.join(file)).unwrap_or_default();
    for round in 0..2 {
        if round > 0 {
            source.sql("INSERT INTO d.t0 (k) VALUES (2); FLUSH BINARY LOGS; INSERT INTO d.t0 (k) VALUES (3)");
        }
        wait_within(FOLLOWS_MAX, "both programs have everything", || {
            let (file, end) = binlog_end(&source);
            assert!(of_binlogd.0.try_wait().unwrap().is_none(), "it has ended:\n{}", daemon.log());
            [theirs.path(), ours.path()].iter().all(|folder| read(folder, &file).len() as u64 == end)
        });
        for file in binary_logs(&source) {
            let (expected, found) = (read(theirs.path(), &file), read(ours.path(), &file));
            assert!(!found.is_empty() && expected == found, "{file} differs");
        }
    }
}

/// A reader that asked for no heartbeats is known to be gone soon, though nothing happens at the source.
#[test]
fn who_has_gone_is_not_shown_any_more() {
    let (source, daemon) = scene("mysql-9.7");
    let folder = tempfile::tempdir().unwrap();
    let first = &binary_logs(&source)[0];
    let reader = follow(&source, serve_port(&daemon), folder.path(), "73", first);
    let waits = |status: &Value| status["serve"]["readers"][0]["caught_up"] == true;
    daemon.wait_until_status(waits, FOLLOWS_MAX);
    drop(reader);
    // A dump at the end of the log that hears nothing sleeps for a minute.
    let nobody = |status: &Value| status["serve"]["readers"] == json!([]);
    daemon.wait_until_status(nobody, Duration::from_secs(20));
}

#[test]
fn options_of_9_7() {
    options("mysql-9.7");
}

#[test]
fn options_on_8_0() {
    options("mysql-8.0.31");
}

#[test]
fn options_of_mariadb() {
    options("mariadb-11.8");
}

#[test]
fn stop_never_9_7() {
    stop_never("mysql-9.7");
}

#[test]
fn stop_never_on_8_0() {
    stop_never("mysql-8.0.31");
}

#[test]
fn stop_never_mariadb() {
    stop_never("mariadb-11.8");
}
