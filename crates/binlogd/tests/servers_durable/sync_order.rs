//! `fsync_mode = 1` syncs before it acknowledges, shown by the system calls of the built binary.
//!
//! A single client commits one transaction after another, in clear, so that an acknowledgement can be read in the trace.
//! For each one the checker looks for the durable write into the journal, or the fdatasync of the same file, that has
//! returned before. Some transactions are larger than a record of the journal, so that both ways are taken. With
//! `fsync_mode = 0` the same checker must find acknowledgements that no sync preceded: otherwise it would prove nothing.

use std::fs::File;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::daemon::{run_command, url, wait_child};
use crate::common::semi_sync::SemiSync;
use crate::common::strace::{self, Fault, Verdict};
use crate::common::{Server, connect_options};
use binlog::journal::record::RECORD_LEN_MAX;
use wire::{Connection, TlsMode};

/// Longer than the test: the source must never go on without an acknowledgement.
const TIMEOUT: Duration = Duration::from_secs(600);
const STATEMENT_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(30);
/// Transactions, half of them before a rotation and half after it.
const COMMITS: usize = 40;
/// One of so many is larger than a record of the journal.
const LARGE_ONE_IN: usize = 8;

/// binlogd under strace in a data folder of its own; killed when dropped.
struct Traced {
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl Traced {
    fn start(strace: &std::path::Path, server: &Server, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let command = run_command(&url(server), &folder.path().join("data"), flags);
        let log = File::create(folder.path().join("binlogd.log")).expect("a log file");
        let child = strace::spawn(strace, &folder.path().join("trace"), &command, log);
        Self { folder, child: Some(child) }
    }

    /// Asks it to end with SIGTERM, and returns what it did.
    fn finish(mut self) -> String {
        let mut child = self.child.take().expect("it runs");
        let pid = child.id();
        kill_process(Pid::from_raw(pid.cast_signed()).expect("a process id"), Signal::TERM)
            .expect("a child of ours");
        let status = wait_child(&mut child, STOP_MAX).expect("it ends after SIGTERM");
        assert!(status.success(), "{status}");
        strace::read_to_end(&self.trace(), pid)
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.path().join("binlogd.log")).unwrap_or_default();
            eprintln!("--- the log of binlogd ---\n{log}");
        }
    }
}

/// Commits under semi-sync with binlogd traced, and checks the trace. `None` when strace is renounced.
fn trace_of_commits(server_name: &str, fsync_mode: &str) -> Option<Verdict> {
    let strace = strace::find()?;
    let server = Server::start(server_name, &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, b LONGTEXT)");
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    // With an interval as long as that, what is synced early is synced for an acknowledgement.
    let flags = ["--tls", "disabled", "--fsync-mode", fsync_mode, "--fsync-interval", "60s"];
    let traced = Traced::start(&strace, &server, &flags);
    semi_sync.wait_attached();
    let mut client =
        Connection::connect(&connect_options(&server, "root", "", TlsMode::Preferred)).expect("a connection");
    client.set_timeout(STATEMENT_MAX);
    for number in 0..COMMITS {
        if number == COMMITS / 2 {
            client.query("FLUSH BINARY LOGS").expect("a rotation");
        }
        let is_large = number % LARGE_ONE_IN == LARGE_ONE_IN - 1;
        let len = if is_large { RECORD_LEN_MAX + number } else { number };
        // In full, so that a statement that is logged as such has them too.
        let text = "x".repeat(len);
        client.query(&format!("INSERT INTO d.t VALUES ({number}, '{text}')")).expect("a commit");
    }
    assert_eq!(semi_sync.counters().no_tx, 0);
    let trace = traced.finish();
    let verdict = strace::check(&trace).unwrap_or_else(|error| panic!("{error}"));
    println!("{server_name}, fsync_mode {fsync_mode}: {verdict}");
    assert!(verdict.acknowledgements >= COMMITS, "{verdict}");
    assert!(verdict.files_made >= 2, "{verdict}");
    Some(verdict)
}

fn each_acknowledgement_follows_its_sync(server_name: &str) {
    let Some(verdict) = trace_of_commits(server_name, "1") else { return };
    assert_eq!(verdict.faults, [], "{verdict}");
    assert!(verdict.syncs >= COMMITS, "{verdict}");
}

fn without_the_order_the_checker_says_so(server_name: &str) {
    let Some(verdict) = trace_of_commits(server_name, "0") else { return };
    let unsynced = verdict.faults.iter().filter(|fault| matches!(fault, Fault::NotSynced { .. })).count();
    // The first one after the rotation or the start may be covered by accident; nothing else is.
    assert!(unsynced >= COMMITS - 4, "{verdict}");
}

#[test]
fn mysql_is_acknowledged_after_the_sync() {
    each_acknowledgement_follows_its_sync("mysql-9.7");
}

#[test]
fn mariadb_is_acknowledged_after_the_sync() {
    each_acknowledgement_follows_its_sync("mariadb-11.8");
}

#[test]
fn mysql_is_acknowledged_before_the_sync_where_the_operator_chose_so() {
    without_the_order_the_checker_says_so("mysql-9.7");
}

/// A write of 10 bytes, its sync, and the acknowledgement of position 14.
const MAKE: &str =
    r"7 1.0 openat(AT_FDCWD, \x22, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600) = 8</data/d/0001-u/b.000001>";
const FOLDER: &str = r"7 1.1 fsync(9</data/d/0001-u>) = 0";
const WRITE: &str =
    r#"7 1.2 pwritev(8</data/d/0001-u/b.000001>, [{iov_base="\x5f"..., iov_len=10}], 1, 4) = 10"#;
const SYNC: &str = r"7 1.3 fdatasync(8</data/d/0001-u/b.000001>) = 0";
const SEND: &str = r#"7 1.4 sendto(5<socket:[1]>, "\x11\x00\x00\x00\xef\x0e\x00\x00\x00\x00\x00\x00\x00\x62\x2e\x30\x30\x30\x30\x30\x31", 21, MSG_NOSIGNAL, NULL, 0) = 21"#;

fn faults(lines: &[&str]) -> Vec<Fault> {
    let verdict = strace::check(&lines.join("\n")).expect("lines that are understood");
    assert_eq!(verdict.acknowledgements, 1);
    verdict.faults
}

#[test]
fn the_checker_knows_the_right_order_from_the_wrong_ones() {
    let not_synced = |line| [Fault::NotSynced { line, position: 14, synced: 0 }];
    assert_eq!(faults(&[MAKE, FOLDER, WRITE, SYNC, SEND]), []);
    assert_eq!(
        faults(&[MAKE, FOLDER, WRITE, SEND, SYNC]),
        not_synced(4),
        "the sync after the acknowledgement"
    );
    assert_eq!(faults(&[MAKE, FOLDER, SYNC, WRITE, SEND]), not_synced(5), "the sync before the write");
    assert_eq!(faults(&[MAKE, FOLDER, WRITE, SEND]), not_synced(4), "no sync");
    assert_eq!(faults(&[MAKE, WRITE, SYNC, SEND]), [Fault::FolderNotSynced { line: 4 }]);
    let other_file = SYNC.replace("b.000001", "b.000002");
    assert_eq!(faults(&[MAKE, FOLDER, WRITE, &other_file, SEND]), not_synced(5), "the sync of another file");
    let failed = SYNC.replace("= 0", "= -1 EIO (Input/output error)");
    assert_eq!(faults(&[MAKE, FOLDER, WRITE, &failed, SEND]), not_synced(5), "a sync that failed");
    let short = WRITE.replace("= 10", "= 9");
    let missing = [Fault::NotSynced { line: 5, position: 14, synced: 13 }];
    assert_eq!(faults(&[MAKE, FOLDER, &short, SYNC, SEND]), missing, "a byte that was not written");
    let padded = SEND.replacen(' ', "    ", 1);
    assert_eq!(faults(&[MAKE, FOLDER, WRITE, &padded]), not_synced(4), "a thread number that strace pads");
}

/// The journal of the source, and a record of it with 10 bytes for offset 4 of the file.
const JOURNAL: &str =
    r#"7 1.1 openat(AT_FDCWD, "journal", O_RDWR|O_DSYNC|O_DIRECT|O_CLOEXEC) = 9</data/d/journal>"#;

fn record(offset: u64, len: u32, written: u64) -> String {
    let mut bytes = b"binlogdJ".to_vec();
    bytes.resize(48, 0);
    bytes.extend_from_slice(&offset.to_le_bytes());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&[6, 0, 8, 0]);
    bytes.extend_from_slice(b"0001-ub.000001");
    let hex: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!(
        r#"7 1.3 pwritev(9</data/d/journal>, [{{iov_base="{hex}"..., iov_len=4096}}], 1, 4096) = {written}"#
    )
}

#[test]
fn the_checker_knows_what_makes_a_record_of_the_journal_durable() {
    let made = r"7 1.1 pwritev(8</data/d/0001-u/b.000001>, [], 1, 0) = 4";
    let not_synced = [Fault::NotSynced { line: 6, position: 14, synced: 4 }];
    let with = |journal, record: &str| faults(&[MAKE, made, SYNC, FOLDER, journal, record, SEND]);
    let at_line_7 = |synced| [Fault::NotSynced { line: 7, position: 14, synced }];
    assert_eq!(with(JOURNAL, &record(4, 10, 4096)), []);
    assert_eq!(with(JOURNAL, &record(4, 9, 4096)), at_line_7(13), "a byte is missing");
    assert_eq!(with(JOURNAL, &record(5, 9, 4096)), at_line_7(4), "a hole before it");
    assert_eq!(with(JOURNAL, &record(4, 10, 80)), at_line_7(4), "not written whole");
    assert_eq!(with(&JOURNAL.replace("O_DSYNC|", ""), &record(4, 10, 4096)), at_line_7(4));
    let late = faults(&[MAKE, made, SYNC, FOLDER, JOURNAL, SEND, &record(4, 10, 4096)]);
    assert_eq!(late, not_synced, "the record after the acknowledgement");
}

#[test]
fn the_checker_follows_calls_that_other_threads_interrupt() {
    let begin = r"7 1.3 fdatasync(8</data/d/0001-u/b.000001> <unfinished ...>";
    let end = r"7 1.5 <... fdatasync resumed>) = 0";
    let other = r#"9 1.4 write(2</dev/null>, "", 0) = 0"#;
    let not_synced = [Fault::NotSynced { line: 6, position: 14, synced: 0 }];
    assert_eq!(faults(&[MAKE, FOLDER, WRITE, begin, other, end, SEND]), []);
    assert_eq!(faults(&[MAKE, FOLDER, WRITE, begin, other, &SEND.replace("7 ", "8 "), end]), not_synced);
    let written = WRITE.replace(") = 10", " <unfinished ...>");
    let resumed = "7 1.25 <... pwritev resumed>) = 10";
    assert_eq!(faults(&[MAKE, FOLDER, &written, other, resumed, begin, end, SEND]), []);
    // A write that arrives while the sync runs is not covered by it.
    let early = [Fault::NotSynced { line: 6, position: 14, synced: 0 }];
    assert_eq!(faults(&[MAKE, FOLDER, begin, &WRITE.replace("7 ", "8 "), end, SEND]), early);
}

#[test]
fn the_checker_refuses_what_it_does_not_know() {
    for line in [
        r"7 1.0 io_uring_enter(5<anon_inode:[io_uring]>, 1, 0, 0, NULL, 8) = 1",
        r#"7 1.0 write(8</data/d/0001-u/b.000001>, "\x5f", 1) = 1"#,
        "7 1.0",
    ] {
        assert!(strace::check(line).is_err(), "{line}");
    }
}
