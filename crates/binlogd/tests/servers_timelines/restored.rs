//! A source whose disk was put back to an earlier state: a backup was restored, a virtual machine was reverted to its
//! snapshot, a crash took the end of its log. It keeps its UUID, and it gives the same file names, positions and GTIDs to
//! other transactions. Whatever it writes before binlogd returns, the copy of what it lost is kept and named.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::Server;
use crate::common::archive::{
    archive, assert_files_equal, assert_kept, described, held_gtids, reason, source_lacks, transactions,
};
use crate::common::compare::binary_logs;
use crate::common::daemon::Daemon;
use codec::ServerKind;
use codec::event::HEADER_LEN;
use codec::gtid::GtidState;
use scripted_source::{LogOptions, Script, ScriptedSource, SourceLog};

const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 6] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s"];
/// Where the format description begins in a file, after the magic.
const FORMAT_AT: usize = 4;

/// What a backup and its restoring leave to a test.
struct Restored {
    server: Server,
    daemon: Daemon,
    /// What the source wrote after the backup, and lost.
    lost: GtidState,
    /// The file that held it.
    file: String,
    /// Its bytes in the copy.
    ours: Vec<u8>,
}

/// A source is copied while it is down, runs on and is restored from that. Then it writes `after`. binlogd is down from
/// before the restoring on.
fn restored(name: &str, before: &str, after: &str) -> Restored {
    let mut server = Server::start(name, &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(2000)); INSERT INTO d.t VALUES (0, 'kept')");
    let mut daemon = Daemon::start(&server, &FLAGS);
    server.stop();
    let backup = server.dir().join("backup");
    copy_folder(server.datadir(), &backup);
    server.restart(&[]);
    daemon.wait_caught_up(&server);
    let kept = held_gtids(&daemon, server.kind());
    server.sql(before);
    daemon.wait_caught_up(&server);
    let lost = held_gtids(&daemon, server.kind()).subtract(&kept);
    let file = binary_logs(&server).pop().expect("a binary log");
    let ours = std::fs::read(daemon.timeline_dir().join(&file)).expect("our file");
    daemon.terminate();

    server.kill();
    std::fs::remove_dir_all(server.datadir()).expect("the old state goes");
    std::fs::rename(&backup, server.datadir()).expect("the backup takes its place");
    server.restart(&[]);
    assert_eq!(binary_logs(&server).pop(), Some(file.clone()), "the same name for another file");
    server.sql(after);
    Restored { server, daemon, lost, file, ours }
}

fn copy_folder(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(done.success());
}

/// binlogd returns: the divergence is found, what was lost is named exactly, and the source's present logs are copied.
#[track_caller]
fn assert_fork(restored: &mut Restored) {
    let Restored { server, daemon, lost, file, .. } = restored;
    let before = archive(daemon);
    daemon.restart(&FLAGS);
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    server.sql("INSERT INTO d.t VALUES (99, 'goes on'); FLUSH BINARY LOGS");
    daemon.wait_caught_up(server);
    let timeline = daemon.timeline_dir();
    assert_eq!(reason(&timeline), "fork", "{}", daemon.log());
    assert_eq!(
        described(&timeline, "first_file"),
        *file,
        "what both have is not copied again\n{}",
        daemon.log()
    );
    assert_eq!(source_lacks(&timeline, server.kind()), *lost, "{}", daemon.log());
    let log = daemon.log();
    assert!(log.contains("the source's log is not what the copy holds from"), "{log}");
    assert_kept(&before, daemon);
    assert_files_equal(server, &timeline, file);
    assert_eq!(daemon.timeline_dirs().len(), 2, "one restoring, one timeline\n{log}");
    // The GTIDs of what was lost now belong to other transactions too, so that a difference of sets would be empty.
    let executed = held_gtids_of(&timeline, server.kind());
    assert!(lost.subtract(&executed).is_empty(), "{lost} and {executed}: the test has not done its worst");
}

fn held_gtids_of(timeline: &Path, kind: ServerKind) -> GtidState {
    let mut held = GtidState::empty(kind);
    transactions(timeline).into_iter().for_each(|id| held.insert(id).expect("one kind of GTID"));
    held
}

const BEFORE: &str = "INSERT INTO d.t VALUES (1, 'lost'); INSERT INTO d.t VALUES (2, 'lost')";
const AFTER: &str = "INSERT INTO d.t VALUES (1, 'else'); INSERT INTO d.t VALUES (2, 'else'); INSERT INTO d.t VALUES (3, 'else')";

#[test]
fn a_restored_mysql_is_a_fork() {
    assert_fork(&mut restored("mysql-9.7", BEFORE, AFTER));
}

#[test]
fn a_restored_mariadb_is_a_fork() {
    assert_fork(&mut restored("mariadb-11.8", BEFORE, AFTER));
}

/// What a machine that was reverted with its memory leaves: the same file, begun in the same second, with other
/// transactions of the same lengths and GTIDs. Only their bytes tell.
fn even_the_file_is_the_same(name: &str) {
    let mut restored = restored(name, BEFORE, AFTER);
    let Restored { server, file, ours, .. } = &mut restored;
    server.stop();
    let path: PathBuf = server.datadir().join(&*file);
    let mut theirs = std::fs::read(&path).expect("the source's file");
    assert_ne!(theirs[FORMAT_AT..FORMAT_AT + 4], ours[FORMAT_AT..FORMAT_AT + 4], "another second until now");
    begin_at_the_time_of(&mut theirs, ours);
    assert!(theirs.len() > ours.len());
    std::fs::write(&path, theirs).expect("the source's file");
    server.restart(&[]);
    assert_fork(&mut restored);
}

/// Gives a file the format description that it would have, had it been begun when `other` was.
fn begin_at_the_time_of(file: &mut [u8], other: &[u8]) {
    let event = &mut file[FORMAT_AT..];
    let len = u32::from_le_bytes(event[9..13].try_into().unwrap()) as usize;
    event[..4].copy_from_slice(&other[FORMAT_AT..FORMAT_AT + 4]);
    // Its time of creation, behind the version of the format and of the server.
    let created = HEADER_LEN + 2 + 50;
    event[created..created + 4].copy_from_slice(&other[FORMAT_AT + created..FORMAT_AT + created + 4]);
    let checksum = crc32fast::hash(&event[..len - 4]);
    event[len - 4..len].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn a_reverted_mysql_is_a_fork_even_if_the_file_looks_the_same() {
    even_the_file_is_the_same("mysql-9.7");
}

#[test]
fn a_reverted_mariadb_is_a_fork_even_if_the_file_looks_the_same() {
    even_the_file_is_the_same("mariadb-11.8");
}

/// A scripted source with the same format descriptions and GTIDs, whose transactions have these lengths.
fn log_of(lens: &[usize]) -> SourceLog {
    let mut log = SourceLog::new(LogOptions::default());
    for len in lens {
        log.group(1, *len);
    }
    log
}

/// The source's log becomes another one while the connection is lost; what of ours it lacks is told.
#[track_caller]
fn replaced(ours: &[usize], theirs: &[usize], lost: &str) {
    println!("{ours:?} becomes {theirs:?}");
    let source = ScriptedSource::start(Script::new(log_of(ours))).expect("a free port");
    let url = format!("mysql://any@127.0.0.1:{}", source.port());
    let flags = ["--backoff-min", "10ms", "--heartbeat-period", "300ms", "--net-read-timeout", "3s"];
    let daemon = Daemon::start_on(&url, &flags);
    let arrive = |timelines: usize| {
        let end = source.log(SourceLog::end);
        daemon.wait_until(
            |status| {
                let durable = &status["positions"]["durable"];
                let is_there = durable["file"] == *end.file && durable["position"] == end.position;
                is_there && status["state"] == "receiving" && daemon.timeline_dirs().len() == timelines
            },
            PATIENCE,
        );
    };
    arrive(1);
    let before = archive(&daemon);
    source.replace_log(log_of(theirs));
    let timelines = if lost.is_empty() { 1 } else { 2 };
    arrive(timelines);
    assert_kept(&before, &daemon);
    for file in source.log(|log| log.files().to_vec()) {
        assert!(
            std::fs::read(daemon.timeline_dir().join(&file.name)).unwrap() == file.bytes,
            "{}",
            file.name
        );
    }
    if lost.is_empty() {
        return;
    }
    assert_eq!(reason(&daemon.timeline_dir()), "fork");
    let uuid = "abababab-abab-abab-abab-abababababab";
    assert_eq!(source_lacks(&daemon.timeline_dir(), ServerKind::MySql).to_line(), format!("{uuid}:{lost}"));
}

#[test]
fn every_way_in_which_a_log_can_differ_behind_the_same_beginning() {
    // The same, and the same with more.
    replaced(&[100, 200, 300], &[100, 200, 300], "");
    replaced(&[100, 200, 300], &[100, 200, 300, 400], "");
    // The end is gone: a part of the last transaction's length, all of it, more than it.
    replaced(&[100, 200, 300], &[100, 200], "3");
    replaced(&[100, 200, 300], &[100], "2-3");
    replaced(&[100, 200, 300], &[], "1-3");
    // Other transactions: the last one, at a place where another one stands now; longer and shorter ones, so that the place
    // is inside an event.
    replaced(&[100, 200, 300], &[100, 200, 301], "3");
    replaced(&[100, 200, 300], &[100, 200, 299, 50, 50], "3");
    replaced(&[100, 200, 300], &[100, 210, 300, 400], "2-3");
    replaced(&[100, 200, 300], &[90, 80, 70, 60, 50, 40, 30, 20], "1-3");
    replaced(&[100, 200, 300], &[5_000, 5_000], "1-3");
    // Another order, so that both logs have a boundary at our end.
    replaced(&[100, 200, 300], &[100, 300, 200, 50], "2-3");
    // A last transaction that is not asked for again as a whole.
    replaced(&[100, 700_000], &[100, 600_000], "2");
    replaced(&[100, 700_000, 50], &[100, 600_000, 100_050], "2-3");
}
