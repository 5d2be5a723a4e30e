//! binlogd is killed under load, again and again, and nothing that it has acknowledged is missing.
//!
//! Several clients insert numbered rows under semi-sync and keep a ledger of the commits that the server confirmed to
//! them. binlogd is killed with SIGKILL at a random moment. Before it is started again, the files that it left are read: every
//! row in the ledger must be in the binary logs or the journal, in a transaction that is there to its end.
//!
//! What this proves and what not: a killed process loses what it had in its own memory, but what it has written stays in
//! the kernel's page cache, synced or not. So this shows that binlogd acknowledges nothing that it has not written, and that
//! it goes on correctly from whatever a kill leaves. That a durable write comes before the acknowledgement, which is what
//! counts when the machine loses power, is shown by `sync_order.rs`; and that what was written so is found again when
//! the page cache of the binary log is lost, by the last test here.
//!
//! `BINLOGD_KILL_ROUNDS` is the number of kills, shared between the two servers (5; `make kill-loop`: 20).
//! `BINLOGD_TEST_SEED` replays the moments of a failed run, as far as time can be replayed.

use std::time::{Duration, Instant};

use crate::common::compare::{AfterCrash, assert_identical, binary_logs};
use crate::common::daemon::Daemon;
use crate::common::ledger::{self, CopiedEntries, Ledger, copied_entries};
use crate::common::readers::{SERVE, account_url, client_command, make_account, serve_port};
use crate::common::semi_sync::SemiSync;
use crate::common::workload::Random;
use crate::common::{Server, connect_options, seed, wait_within};
use binlog::journal::{JOURNAL_FILE, Journal};
use binlog::storage::posix::PosixStorage;
use wire::{Connection, TlsMode};

/// Longer than the test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const TIMEOUT: Duration = Duration::from_secs(600);
const WRITERS: usize = 6;
/// A kill comes this long after binlogd was started, at most.
const UPTIME_MAX: Duration = Duration::from_millis(1_200);
/// What was acknowledged before the kill reaches its clients within this time.
const ANSWERS_ARRIVE_MAX: Duration = Duration::from_millis(300);
/// Small, so that kills also come at rotations.
const SOURCE_OPTIONS: [&str; 1] = ["--max-binlog-size=262144"];
const FLAGS: [&str; 2] = ["--backoff-max", "1s"];

fn rounds() -> u64 {
    std::env::var("BINLOGD_KILL_ROUNDS")
        .ok()
        .map_or(5, |text| text.parse().expect("BINLOGD_KILL_ROUNDS is a number"))
}

/// What the killed binlogd left: its binary logs, and what only the journal holds. Nothing of it is touched.
fn what_was_left(daemon: &Daemon) -> CopiedEntries {
    let timeline = daemon.timeline_dir();
    let source = timeline.parent().expect("the source's folder");
    let copy = tempfile::tempdir().expect("a temporary folder");
    let copied_timeline = copy.path().join(timeline.file_name().expect("a name"));
    std::fs::create_dir(&copied_timeline).expect("a folder");
    let entries = std::fs::read_dir(&timeline).expect("the timeline").flatten();
    // Folders hold what is derived from the files.
    for file in entries.filter(|entry| !entry.path().is_dir()) {
        std::fs::copy(file.path(), copied_timeline.join(file.file_name())).expect("a copy");
    }
    if source.join(JOURNAL_FILE).exists() {
        std::fs::copy(source.join(JOURNAL_FILE), copy.path().join(JOURNAL_FILE)).expect("a copy");
    }
    Journal::open(&PosixStorage, copy.path(), jiff::Timestamp::now(), &mut Vec::new())
        .expect("a journal that can be read");
    copied_entries(&copied_timeline)
}

fn survives_kills(server_name: &str, seed: u64, rounds: u64) {
    let mut random = Random::new(seed);
    let server = Server::start(server_name, &SOURCE_OPTIONS);
    ledger::create_table(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let mut daemon = Daemon::start(&server, &FLAGS);
    semi_sync.wait_attached();
    let ledger = Ledger::start(&server, WRITERS);
    for round in 1..=rounds {
        let uptime = Duration::from_millis(random.below(UPTIME_MAX.as_millis() as u64));
        std::thread::sleep(uptime);
        daemon.kill();
        std::thread::sleep(ANSWERS_ARRIVE_MAX);
        let committed = ledger.committed();
        let copied = what_was_left(&daemon);
        let torn = copied.live.as_ref().map_or(0, |live| copied.live_len - live.boundary);
        println!(
            "{server_name}, round {round}: killed after {uptime:?}; {} commits confirmed, {} in the copy, {torn} bytes torn",
            committed.len(),
            copied.ids.len()
        );
        copied.assert_holds(&committed, &daemon, "after the kill");
        daemon.restart(&FLAGS);
        copied_entries(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "after the restart");
    }
    std::thread::sleep(UPTIME_MAX);
    let committed = ledger.finish();
    daemon.wait_caught_up(&server);
    assert!(committed.len() as u64 > rounds, "the load made no progress: {committed:?}");
    copied_entries(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "at the end");
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(daemon.timeline_dirs().len(), 1, "a kill of binlogd begins no timeline");
    assert_eq!(semi_sync.counters().no_tx, 0, "commits that went without acknowledgement prove nothing");
}

#[test]
fn nothing_that_mysql_had_acknowledged_is_lost() {
    survives_kills("mysql-9.7", seed(), rounds().div_ceil(2));
}

#[test]
fn nothing_that_mariadb_had_acknowledged_is_lost() {
    survives_kills("mariadb-11.8", seed(), rounds() / 2);
}

/// A reader reads beside each kill. What it has is the beginning of what the copy has afterwards.
fn no_reader_has_more_than_the_copy(server_name: &str, seed: u64, rounds: u64) {
    let mut random = Random::new(seed);
    let server = Server::start(server_name, &SOURCE_OPTIONS);
    ledger::create_table(&server);
    make_account(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let flags = [&FLAGS[..], &SERVE[..]].concat();
    let mut daemon = Daemon::start_on(&account_url(&server), &flags);
    semi_sync.wait_attached();
    let first = binary_logs(&server)[0].clone();
    let ledger = Ledger::start(&server, WRITERS);
    for round in 1..=rounds {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let into = format!("--result-file={}/", folder.path().display());
        let arguments = ["--read-from-remote-server", "--raw", "--stop-never", &into, &first];
        let reader = client_command(&server, "MYSQLBINLOG", serve_port(&daemon), &arguments).spawn();
        let mut reader = reader.expect("mysqlbinlog runs");
        let live = || std::fs::read_dir(folder.path()).expect("its folder").flatten();
        let len = || live().map(|file| file.metadata().map_or(0, |found| found.len())).sum::<u64>();
        wait_within(Duration::from_secs(60), "the reader has events", || len() > 1_000);
        std::thread::sleep(Duration::from_millis(random.below(UPTIME_MAX.as_millis() as u64)));
        daemon.kill();
        reader.wait().expect("mysqlbinlog ends with the connection");
        daemon.restart(&flags);
        println!("{server_name}, round {round}: the reader has {} bytes", len());
        for file in live() {
            let (read, name) = (std::fs::read(file.path()).expect("a file"), file.file_name());
            let held = std::fs::read(daemon.timeline_dir().join(&name)).expect("the copy has the file");
            assert!(held.starts_with(&read), "{name:?}: {} bytes read, {} held", read.len(), held.len());
        }
    }
    ledger.finish();
}

#[test]
fn no_reader_of_mysqls_log_has_more_than_the_copy() {
    no_reader_has_more_than_the_copy("mysql-9.7", seed(), rounds().div_ceil(2));
}

#[test]
fn no_reader_of_mariadbs_log_has_more_than_the_copy() {
    no_reader_has_more_than_the_copy("mariadb-11.8", seed(), rounds().div_ceil(2));
}

/// A file that lost its second half lost entries, and whoever reads the copy for the ledger must see that.
#[test]
fn a_lost_entry_would_be_noticed() {
    let server = Server::start("mysql-9.7", &[]);
    ledger::create_table(&server);
    let daemon = Daemon::start(&server, &FLAGS);
    let ledger = Ledger::start(&server, WRITERS);
    ledger.wait_for(WRITERS * 10);
    let committed = ledger.finish();
    daemon.wait_caught_up(&server);
    let whole = copied_entries(&daemon.timeline_dir());
    whole.assert_holds(&committed, &daemon, "of the whole file");
    let live = daemon.timeline_dir().join("mysql-bin.000001");
    std::fs::File::options()
        .write(true)
        .open(live)
        .and_then(|file| file.set_len(whole.live_len / 2))
        .expect("a cut");
    let half = copied_entries(&daemon.timeline_dir());
    assert!(half.ids.len() < committed.len() && half.live.is_some_and(|live| live.damage.is_some()));
}

/// Names in the timeline's folder of tails that were cut off.
fn torn_files(daemon: &Daemon) -> Vec<String> {
    let entries = std::fs::read_dir(daemon.timeline_dir()).expect("the timeline's folder").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(".torn-")).collect()
}

/// SIGTERM under load: the copy ends at a boundary, and the source does what its timeout says.
fn ends_in_good_order(server_name: &str) {
    let server = Server::start(server_name, &SOURCE_OPTIONS);
    ledger::create_table(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let mut daemon = Daemon::start(&server, &FLAGS);
    semi_sync.wait_attached();
    let ledger = Ledger::start(&server, WRITERS);
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(700));
        daemon.terminate();
        std::thread::sleep(ANSWERS_ARRIVE_MAX);
        let copied = copied_entries(&daemon.timeline_dir());
        copied.assert_holds(&ledger.committed(), &daemon, "after SIGTERM");
        let live = copied.live.as_ref().expect("a file");
        assert_eq!(
            (live.boundary, live.damage.as_ref()),
            (copied.live_len, None),
            "the copy ends at a boundary"
        );
        // The source waits, as its long timeout says. An answer may be late: the copy, which grows no more, has that commit.
        std::thread::sleep(ANSWERS_ARRIVE_MAX);
        copied.assert_holds(&ledger.committed(), &daemon, "a commit was confirmed without binlogd");
        daemon.restart(&FLAGS);
        semi_sync.wait_attached();
    }
    assert_eq!(semi_sync.counters().no_tx, 0);
    falls_back_and_returns(&server, &semi_sync, &ledger, &mut daemon);
    let committed = ledger.finish();
    daemon.wait_caught_up(&server);
    copied_entries(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "at the end");
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(torn_files(&daemon), [""; 0], "SIGTERM leaves no torn tail");
}

/// With a short timeout the source goes on without binlogd, and returns to semi-sync when binlogd has caught up.
fn falls_back_and_returns(server: &Server, semi_sync: &SemiSync, ledger: &Ledger, daemon: &mut Daemon) {
    semi_sync.set_timeout(Duration::from_millis(300));
    // A wait keeps the timeout with which it began. Commits end in order, so those that began before have ended then.
    ledger.wait_for(ledger.committed().len() + 3 * WRITERS);
    daemon.terminate();
    let mut client =
        Connection::connect(&connect_options(server, "root", "", TlsMode::Preferred)).expect("a connection");
    client.set_timeout(Duration::from_secs(30));
    let begin = Instant::now();
    client.query("CREATE TABLE ledger.without_binlogd (a INT)").expect("the source goes on without binlogd");
    println!("{}: a statement without binlogd took {:?}", server.name(), begin.elapsed());
    semi_sync.wait_until(|counters| !counters.on && counters.no_tx > 0);
    semi_sync.set_timeout(TIMEOUT);
    daemon.restart(&FLAGS);
    semi_sync.wait_attached();
}

#[test]
fn sigterm_under_load_on_mysql() {
    ends_in_good_order("mysql-9.7");
}

#[test]
fn sigterm_under_load_on_mariadb() {
    ends_in_good_order("mariadb-11.8");
}

/// The machine of binlogd loses power and the source is lost with it: the binary log has nothing but what was synced, which
/// is its first four bytes, and nobody can be asked for the rest. Every commit that a client was told of is in the journal.
fn survives_a_power_failure(server_name: &str) {
    const COMMITS: usize = 300;
    let server = Server::start(server_name, &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(4000)); FLUSH BINARY LOGS");
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let mut daemon = Daemon::start(&server, &["--backoff-max=1s", "--start=latest"]);
    semi_sync.wait_attached();
    let mut client =
        Connection::connect(&connect_options(&server, "root", "", TlsMode::Preferred)).expect("a connection");
    for number in 0..COMMITS {
        let row = format!("INSERT INTO d.t VALUES ({number}, REPEAT('x', {}))", number * 13 % 4000);
        client.query(&row).expect("a commit");
    }
    assert_eq!(semi_sync.counters().no_tx, 0);
    let told = daemon.wait_caught_up(&server)["positions"]["acknowledged"].clone();
    daemon.kill();
    server.kill();
    let live = daemon.timeline_dir().join(told["file"].as_str().expect("a file"));
    let whole = std::fs::read(&live).expect("the live file");
    let acknowledged = told["position"].as_u64().expect("a position") as usize;
    assert!(whole.len() >= acknowledged, "{told}");
    std::fs::File::options().write(true).open(&live).and_then(|file| file.set_len(4)).expect("a cut");
    let verified = std::process::Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["verify", "--json"])
        .arg(daemon.data_dir())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(said.contains("which the next start of binlogd puts into it"), "{said}");
    daemon.restart(&["--backoff-max=1s"]);
    let durable = daemon.source()["positions"]["durable"].clone();
    assert_eq!(durable, told, "{}", daemon.log());
    let found = std::fs::read(&live).expect("the live file");
    assert!(found == whole[..acknowledged], "{} bytes of {acknowledged} are back", found.len());
    assert!(daemon.log().contains("were put back from the journal"), "{}", daemon.log());
}

#[test]
fn nothing_is_lost_when_mysql_and_the_page_cache_are() {
    survives_a_power_failure("mysql-9.7");
}

#[test]
fn nothing_is_lost_when_mariadb_and_the_page_cache_are() {
    survives_a_power_failure("mariadb-11.8");
}
