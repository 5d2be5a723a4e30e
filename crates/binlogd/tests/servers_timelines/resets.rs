//! A reset of the source's logs (RESET BINARY LOGS AND GTIDS, RESET MASTER), with commits that wait for binlogd: whether its
//! logs were rotated before, never, once or often. Where the live file is the first one, the old and the new one have one
//! name, and the source tells a replica nothing. Whatever happens, a commit that returns is held in the copy.

use crate::common::archive::{archive, assert_kept, reason};
use crate::common::daemon::{Daemon, binlog_end};
use crate::common::ledger::{create_table, entries_left};
use crate::common::pair::reset;
use crate::common::semi_sync::SemiSync;
use crate::common::{Server, connect_options};
use codec::ServerKind;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::{Connection, TlsMode};

const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 4] = ["--heartbeat-period", "1s", "--net-read-timeout", "5s"];
/// No commit returns without an acknowledgement.
const TIMEOUT: Duration = Duration::from_secs(3600);
const WITHOUT_GTIDS: [&str; 2] = ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"];

fn set_wait_point(server: &Server, wait_point: &str) {
    let role = if server.kind() == ServerKind::MariaDb { "master" } else { "source" };
    server.sql(&format!("SET GLOBAL rpl_semi_sync_{role}_wait_point = '{wait_point}'"));
}

fn disable(server: &Server) {
    let role = if server.kind() == ServerKind::MariaDb { "master" } else { "source" };
    server.sql(&format!("SET GLOBAL rpl_semi_sync_{role}_enabled = 0"));
}

/// A row whose number can be found in the bytes of a binary log.
fn entry(id: u64) -> String {
    format!("INSERT INTO ledger.entry VALUES ({id}, CONCAT('ledger', '-{id:08}-'))")
}

/// The same, of so many bytes more.
fn entry_of(id: u64, bytes: u64) -> String {
    format!("INSERT INTO ledger.entry VALUES ({id}, CONCAT('ledger', '-{id:08}-', REPEAT('x', {bytes})))")
}

/// The entries that the copy holds on any timeline, in the files or the journal.
fn held(timelines: &[PathBuf]) -> BTreeSet<u64> {
    timelines.iter().flat_map(|timeline| entries_left(timeline).ids).collect()
}

/// A commit under way. Gives what the copy held when it returned.
fn commit(server: &Server, data_dir: PathBuf, id: u64) -> JoinHandle<BTreeSet<u64>> {
    commit_by(server, data_dir, entry(id))
}

fn commit_by(server: &Server, data_dir: PathBuf, statement: String) -> JoinHandle<BTreeSet<u64>> {
    let mut connection =
        Connection::connect(&connect_options(server, "root", "", TlsMode::Preferred)).expect("a connection");
    connection.set_timeout(PATIENCE);
    std::thread::spawn(move || {
        connection.query(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        let source = data_dir.join("default");
        let folders = std::fs::read_dir(source).expect("the source's folder").flatten();
        let is_whole =
            |path: &PathBuf| path.is_dir() && !path.file_name().unwrap().to_string_lossy().starts_with('.');
        held(&folders.map(|entry| entry.path()).filter(is_whole).collect::<Vec<_>>())
    })
}

/// Waits until the commit has written and waits for binlogd, or has returned.
fn wait_waiting(server: &Server, commit: &JoinHandle<BTreeSet<u64>>) {
    let role = if server.kind() == ServerKind::MariaDb { "master" } else { "source" };
    let deadline = Instant::now() + PATIENCE;
    let waits = || {
        let row = server.sql(&format!("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_{role}_wait_sessions'"));
        row.trim().split('\t').nth(1) != Some("0")
    };
    while !commit.is_finished() && !waits() {
        assert!(Instant::now() < deadline, "the commit does not come to its wait");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a binary log of the source, written by commits that wait, is longer than `len`.
#[track_caller]
fn wait_for_len(path: &Path, len: u64) {
    let deadline = Instant::now() + PATIENCE;
    while std::fs::metadata(path).expect("the source's file").len() <= len {
        assert!(Instant::now() < deadline, "{} does not grow past {len}", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn assert_held(commit: JoinHandle<BTreeSet<u64>>, id: u64, daemon: &Daemon) {
    let deadline = Instant::now() + PATIENCE;
    while !commit.is_finished() {
        assert!(Instant::now() < deadline, "entry {id} still waits\n{}", daemon.log());
        std::thread::sleep(Duration::from_millis(10));
    }
    let held = commit.join().expect("a commit");
    assert!(held.contains(&id), "LOST: entry {id} has returned, the copy had {held:?}\n{}", daemon.log());
}

/// A file's format description has its time in seconds.
fn wait_for_another_second() {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    std::thread::sleep(Duration::from_millis(u64::from(1010 - since_1970.subsec_millis())));
}

/// Numbers that no other row has.
struct Ids(u64);

impl Ids {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// A source with a ledger whose live file is the first one, and a binlogd that has it.
fn copied(server: &Server, ids: &mut Ids, rotations: u32) -> Daemon {
    disable(server);
    reset(server);
    wait_for_another_second();
    let daemon = Daemon::start(server, &FLAGS);
    for _ in 0..3 {
        server.sql(&entry(ids.next()));
    }
    for _ in 0..rotations {
        server.sql(&format!("FLUSH BINARY LOGS; {}", entry(ids.next())));
    }
    daemon.wait_caught_up(server);
    daemon
}

/// A commit waits in the new first file; another session rotates and commits too.
fn a_commit_waits_and_another_session_rotates(
    server: &Server,
    ids: &mut Ids,
    wait_point: &str,
    rotations: u32,
) {
    println!("{}, {wait_point}, {rotations} rotations", server.name());
    let daemon = copied(server, ids, rotations);
    let before = archive(&daemon);
    set_wait_point(server, wait_point);
    let semi_sync = SemiSync::enable(server, TIMEOUT);
    semi_sync.wait_attached();
    reset(server);
    let (first, second) = (ids.next(), ids.next());
    let waiting = commit(server, daemon.data_dir(), first);
    wait_waiting(server, &waiting);
    // With AFTER_SYNC a rotation waits for the commit, so that it may come to nothing while that waits.
    let connection = Connection::connect(&connect_options(server, "root", "", TlsMode::Preferred));
    let mut connection = connection.expect("a connection");
    connection.set_timeout(PATIENCE);
    let flush = std::thread::spawn(move || connection.query("FLUSH BINARY LOGS").map(drop));
    let also = commit(server, daemon.data_dir(), second);
    assert_held(waiting, first, &daemon);
    assert_held(also, second, &daemon);
    flush.join().expect("a statement").expect("FLUSH");
    daemon.wait_caught_up(server);
    assert_eq!(reason(&daemon.timeline_dir()), "source-reset", "{}", daemon.log());
    assert_eq!(daemon.timeline_dirs().len(), 2, "{}", daemon.log());
    assert_kept(&before, &daemon);
    disable(server);
}

/// A commit waits in the new first file, and nothing else happens. The stream shows nothing of that.
fn a_commit_waits_alone(server: &Server, ids: &mut Ids, wait_point: &str) {
    println!("{}, {wait_point}, alone", server.name());
    let daemon = copied(server, ids, 0);
    set_wait_point(server, wait_point);
    let semi_sync = SemiSync::enable(server, TIMEOUT);
    semi_sync.wait_attached();
    reset(server);
    let (began, id) = (Instant::now(), ids.next());
    assert_held(commit(server, daemon.data_dir(), id), id, &daemon);
    println!("the commit has returned after {:?}", began.elapsed());
    daemon.wait_caught_up(server);
    assert_eq!(reason(&daemon.timeline_dir()), "source-reset", "{}", daemon.log());
    disable(server);
}

/// The source is reset while binlogd is away, and a commit waits before the place at which binlogd resumes. The source
/// takes that place for an acknowledgement, if it lies within its log.
fn a_commit_waits_before_the_place_of_the_copy(server: &Server, ids: &mut Ids, wait_point: &str) {
    println!("{}, {wait_point}, while binlogd is away", server.name());
    let mut daemon = copied(server, ids, 0);
    daemon.terminate();
    let (file, place) = binlog_end(server);
    set_wait_point(server, wait_point);
    SemiSync::enable(server, TIMEOUT);
    reset(server);
    let (first, second) = (ids.next(), ids.next());
    let waiting = commit(server, daemon.data_dir(), first);
    wait_waiting(server, &waiting);
    let also = commit_by(server, daemon.data_dir(), entry_of(second, place));
    wait_for_len(&server.datadir().join(file), place);
    daemon.restart(&FLAGS);
    assert_held(waiting, first, &daemon);
    assert_held(also, second, &daemon);
    daemon.wait_caught_up(server);
    assert_eq!(reason(&daemon.timeline_dir()), "source-reset", "{}", daemon.log());
    disable(server);
}

fn resets(name: &str, options: &[&str]) {
    let server = Server::start(name, options);
    create_table(&server);
    let mut ids = Ids(0);
    for (wait_point, rotations) in
        [("AFTER_COMMIT", 0), ("AFTER_SYNC", 0), ("AFTER_COMMIT", 1), ("AFTER_SYNC", 4)]
    {
        a_commit_waits_and_another_session_rotates(&server, &mut ids, wait_point, rotations);
    }
    for wait_point in ["AFTER_COMMIT", "AFTER_SYNC"] {
        a_commit_waits_before_the_place_of_the_copy(&server, &mut ids, wait_point);
        a_commit_waits_alone(&server, &mut ids, wait_point);
    }
}

#[test]
fn a_commit_that_waits_behind_a_reset_is_held_mysql() {
    resets("mysql-9.7", &[]);
}

#[test]
fn a_commit_that_waits_behind_a_reset_is_held_mysql_without_gtids() {
    resets("mysql-9.7", &WITHOUT_GTIDS);
}

#[test]
fn a_commit_that_waits_behind_a_reset_is_held_mariadb() {
    resets("mariadb-11.8", &[]);
}

/// Two resets within one second give two files whose beginnings are the same. What the first of them had was given up on
/// purpose: it is no loss of the source.
fn two_resets_within_a_second(name: &str) {
    let server = Server::start(name, &[]);
    create_table(&server);
    let mut ids = Ids(0);
    wait_for_another_second();
    // A file's format description has the time of the statement.
    let second = server.sql("SELECT UNIX_TIMESTAMP()");
    let statement =
        if server.kind() == ServerKind::MariaDb { "RESET MASTER" } else { "RESET BINARY LOGS AND GTIDS" };
    let reset = || server.sql(&format!("SET TIMESTAMP = {}; {statement}", second.trim()));
    reset();
    let daemon = Daemon::start(&server, &FLAGS);
    for rows in [3, 1, 2] {
        for _ in 0..rows {
            server.sql(&entry(ids.next()));
        }
        daemon.wait_caught_up(&server);
        let timelines = daemon.timeline_dirs().len();
        reset();
        server.sql(&entry(ids.next()));
        daemon.wait_until(|_| daemon.timeline_dirs().len() > timelines, PATIENCE);
        daemon.wait_caught_up(&server);
    }
    let timelines = daemon.timeline_dirs();
    let began = |timeline: &PathBuf| {
        let file = std::fs::read(timeline.join("mysql-bin.000001")).expect("a file");
        u32::from_le_bytes([file[4], file[5], file[6], file[7]]).to_string()
    };
    for timeline in &timelines {
        assert_eq!(began(timeline), second.trim(), "the test has not done its worst");
    }
    for timeline in &timelines[1..] {
        assert_eq!(reason(timeline), "source-reset", "{}", daemon.log());
    }
    assert_eq!(timelines.len(), 4, "{}", daemon.log());
}

#[test]
fn two_resets_within_a_second_are_no_fork_mysql() {
    two_resets_within_a_second("mysql-9.7");
}

#[test]
fn two_resets_within_a_second_are_no_fork_mariadb() {
    two_resets_within_a_second("mariadb-11.8");
}
