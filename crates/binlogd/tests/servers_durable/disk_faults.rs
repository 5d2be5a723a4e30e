//! A disk that refuses: while writes, syncs or changes of names fail, nothing is acknowledged; when they work again,
//! binlogd goes on by itself, and nothing that was acknowledged is missing.
//!
//! The built binary runs with a real MySQL under load, and strace makes the system calls on one file fail. What a
//! refused write leaves on a disk that loses power, and a sync that fails only once, are tried in the storage double.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::compare::{AfterCrash, assert_identical, copied_files};
use crate::common::daemon::Daemon;
use crate::common::injection::Injection;
use crate::common::ledger::{self, Ledger, copied_entries, entries_left};
use crate::common::semi_sync::SemiSync;
use crate::common::{Server, strace};

/// Longer than the test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(40);
/// Nothing is acknowledged when no client has got an answer for so long.
const STANDSTILL: Duration = Duration::from_millis(600);
const WRITERS: usize = 4;
const FLAGS: [&str; 4] = ["--backoff-min", "20ms", "--backoff-max", "200ms"];

/// Calls on one file that fail until they are healed.
struct Fault {
    /// System call.
    call: &'static str,
    /// The file or folder.
    on: fn(&Daemon) -> PathBuf,
    error: &'static str,
    /// A rotation of the source's log brings the call about.
    at_rotation: bool,
    /// How the log begins to tell of it, before the path.
    says: &'static str,
    /// The state that is shown meanwhile.
    state: &'static str,
}

const EIO: &str = "Input/output error";

/// Of the live file.
const OF_THE_FILE: [Fault; 4] = [
    Fault {
        call: "fdatasync",
        on: live_file,
        error: "EIO",
        at_rotation: false,
        says: "cannot sync",
        state: BACKING_OFF,
    },
    Fault {
        call: "pwritev",
        on: live_file,
        error: "EIO",
        at_rotation: false,
        says: "cannot write to",
        state: BACKING_OFF,
    },
    Fault {
        call: "pwritev",
        on: live_file,
        error: "EROFS",
        at_rotation: false,
        says: "cannot write to",
        state: BACKING_OFF,
    },
    Fault {
        call: "pwritev",
        on: live_file,
        error: "ENOSPC",
        at_rotation: false,
        says: "cannot write to",
        state: WAITING,
    },
];

/// Of the journal.
const OF_THE_JOURNAL: [Fault; 1] = [Fault {
    call: "pwritev",
    on: journal,
    error: "EIO",
    at_rotation: false,
    says: "cannot write to",
    state: BACKING_OFF,
}];

/// Of the names: the new file, the index that lists it, and the folder that must be synced before anything in the file is
/// acknowledged.
const OF_THE_FOLDER: [Fault; 4] = [
    Fault {
        call: "openat",
        on: next_file,
        error: "EROFS",
        at_rotation: true,
        says: "cannot begin",
        state: BACKING_OFF,
    },
    Fault {
        call: "openat",
        on: next_file,
        error: "ENOSPC",
        at_rotation: true,
        says: "cannot begin",
        state: WAITING,
    },
    Fault {
        call: "rename",
        on: new_index,
        error: "EIO",
        at_rotation: true,
        says: "cannot begin",
        state: BACKING_OFF,
    },
    Fault {
        call: "fsync",
        on: Daemon::timeline_dir,
        error: "EIO",
        at_rotation: true,
        says: "cannot begin",
        state: BACKING_OFF,
    },
];

const BACKING_OFF: &str = "backing off";
const WAITING: &str = "waiting for disk space";

fn live_file(daemon: &Daemon) -> PathBuf {
    let timeline = daemon.timeline_dir();
    let live = copied_files(&timeline).pop().expect("a binary log");
    timeline.join(live)
}

/// The file after the live one.
fn next_file(daemon: &Daemon) -> PathBuf {
    let live = live_file(daemon);
    let number: u32 = live.extension().and_then(|text| text.to_str()?.parse().ok()).expect("a number");
    live.with_extension(format!("{:06}", number + 1))
}

/// What becomes the index when it is renamed; strace knows a rename by the old name.
fn new_index(daemon: &Daemon) -> PathBuf {
    daemon.timeline_dir().join("binlog.index.tmp")
}

fn journal(daemon: &Daemon) -> PathBuf {
    daemon.data_dir().join("default/journal")
}

fn survives(faults: &[Fault]) {
    let Some(strace) = strace::find() else { return };
    let server = Server::start("mysql-9.7", &[]);
    ledger::create_table(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let daemon = Daemon::start(&server, &FLAGS);
    semi_sync.wait_attached();
    let ledger = Ledger::start(&server, WRITERS);
    for fault in faults {
        ledger.wait_progress(&ledger.committed());
        fails(fault, &strace, &server, &daemon, &ledger);
        let healed = ledger.committed();
        daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
        ledger.wait_progress(&healed);
    }
    let committed = ledger.finish();
    daemon.wait_caught_up(&server);
    copied_entries(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "at the end");
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(daemon.timeline_dirs().len(), 1, "a fault of the disk begins no timeline");
    assert_eq!(semi_sync.counters().no_tx, 0, "commits that went without acknowledgement prove nothing");
}

/// Injects the fault and heals it.
#[track_caller]
fn fails(fault: &Fault, strace: &Path, server: &Server, daemon: &Daemon, ledger: &Ledger) {
    let path = (fault.on)(daemon);
    let what = format!("{} of {} fails with {}", fault.call, path.display(), fault.error);
    let logged = daemon.log().len();
    let injection = Injection::begin(strace, daemon, fault.call, &path, fault.error);
    if fault.at_rotation {
        server.sql("FLUSH BINARY LOGS");
    }
    let told = |source: &serde_json::Value| {
        source["state"] == fault.state && daemon.log()[logged..].contains(fault.says)
    };
    let source = daemon.wait_until(told, PATIENCE);
    if fault.error == "EIO" {
        let message = source["last_error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(EIO), "{what}: {message}");
    }
    // It tries again and again, and acknowledges nothing.
    injection.wait_more(2, PATIENCE);
    let committed = ledger.wait_standstill(STANDSTILL);
    let acknowledgements = daemon.source()["counters"]["acknowledgements"].clone();
    injection.wait_more(2, PATIENCE);
    assert_eq!(daemon.source()["counters"]["acknowledgements"], acknowledgements, "{what}");
    // A client's answer may have come late; what it was told is in the copy.
    entries_left(&daemon.timeline_dir()).assert_holds(&ledger.committed(), daemon, &what);
    println!("{what}: {} calls refused, {} commits confirmed", injection.count(), committed.len());
    injection.heal();
}

#[test]
fn nothing_is_acknowledged_while_the_live_file_fails() {
    survives(&OF_THE_FILE);
}

#[test]
fn nothing_is_acknowledged_while_the_journal_fails() {
    survives(&OF_THE_JOURNAL);
}

#[test]
fn nothing_is_acknowledged_while_names_cannot_be_changed() {
    survives(&OF_THE_FOLDER);
}
