//! The copy held against the source's own files.

use std::path::Path;

use codec::event::{EventHeader, EventType, HEADER_LEN};

use crate::common::Server;
use crate::common::daemon::Daemon;

/// Where the low byte of the flags stands in a file's first event, its format description: after 4 bytes of magic.
const FLAGS_AT: usize = 4 + 17;
/// `LOG_EVENT_BINLOG_IN_USE_F`: the source sets it in the file that it writes and clears it when it closes the file. It
/// is never sent and does not count for the event's checksum.
const IN_USE: u8 = 0x01;

/// How the files that a crash of the source left behind are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCrash {
    /// Every closed file is equal in every byte.
    Identical,
    /// MariaDB leaves the flag "in use" in a file that a crash left; exactly that bit may differ, in one file for each of so many
    /// crashes. A crash in a rotation leaves two of them: the old file, which ends with ROTATE, is closed only when the new one is there
    /// (`LOG_CLOSE_DELAYED_CLOSE`, log.cc).
    InUseIn(usize),
}

/// Holds every file of the source against the copy, which must be caught up: the closed ones byte for byte, the one in
/// use up to the durable position. Returns their names.
#[track_caller]
pub fn assert_identical(server: &Server, daemon: &Daemon, after_crash: AfterCrash) -> Vec<String> {
    let names = binary_logs(server);
    assert_holds(server, daemon, &names, after_crash);
    names
}

/// As [`assert_identical`], for a copy that holds these files and no others; the last is the live one.
#[track_caller]
pub fn assert_holds(server: &Server, daemon: &Daemon, names: &[String], after_crash: AfterCrash) {
    let copies = daemon.timeline_dir();
    assert_eq!(copied_files(&copies), names, "the files of the copy\n{}", daemon.log());
    let index = std::fs::read_to_string(copies.join("binlog.index")).expect("an index");
    assert_eq!(index.lines().collect::<Vec<_>>(), names, "the copy's index");
    let (live, sealed) = names.split_last().expect("a binary log");
    let (mut in_use, mut rotated) = (0, 0);
    for name in sealed {
        let theirs = std::fs::read(server.datadir().join(name)).expect("the source's file");
        let ours = std::fs::read(copies.join(name)).expect("our file");
        if let Some(at) = first_difference(&theirs, &ours) {
            let only_the_flag =
                at == FLAGS_AT && theirs[at] == ours[at] | IN_USE && theirs[at + 1..] == ours[at + 1..];
            assert!(only_the_flag, "{}", describe(name, &theirs, &ours, at));
            in_use += 1;
            let last = event_sizes(&theirs).last().map(|(event_type, _)| *event_type);
            rotated += usize::from(last == Some(EventType::ROTATE.0));
        }
    }
    let crashes = match after_crash {
        AfterCrash::Identical => 0,
        AfterCrash::InUseIn(crashes) => crashes,
    };
    assert!(
        rotated <= crashes && (in_use - rotated..=in_use).contains(&crashes),
        "{in_use} closed files of the source still say that they are in use, of them {rotated} that end with ROTATE; it crashed \
         {crashes} times"
    );
    assert_live_file(server, daemon, live);
}

fn assert_live_file(server: &Server, daemon: &Daemon, name: &str) {
    let durable = daemon.source()["positions"]["durable"].clone();
    assert_eq!(durable["file"], name);
    let ours = std::fs::read(daemon.timeline_dir().join(name)).expect("our file");
    assert!(
        ours.len() as u64 >= durable["position"].as_u64().expect("a number"),
        "the copy is shorter than it says"
    );
    // After ours, because MariaDB may append an event of its own accord at any time (BINLOG_CHECKPOINT).
    let mut theirs = std::fs::read(server.datadir().join(name)).expect("the source's file");
    theirs.truncate(ours.len());
    theirs[FLAGS_AT] &= !IN_USE;
    if let Some(at) = first_difference(&theirs, &ours) {
        panic!("{}", describe(name, &theirs, &ours, at));
    }
}

/// Names of the source's binary logs, the oldest first.
pub fn binary_logs(server: &Server) -> Vec<String> {
    server
        .sql("SHOW BINARY LOGS")
        .lines()
        .filter_map(|line| line.split('\t').next())
        .map(str::to_owned)
        .collect()
}

/// Names of the binary logs in a folder of the copy.
pub fn copied_files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the timeline's folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| {
        name.rsplit('.').next().is_some_and(|end| end.bytes().all(|byte| byte.is_ascii_digit()))
    });
    names.sort();
    names
}

/// Sizes in bytes of all events of a file, in order, with their types.
pub fn event_sizes(file: &[u8]) -> Vec<(u8, u32)> {
    let mut sizes = Vec::new();
    let mut at = 4;
    while at + HEADER_LEN <= file.len() {
        let header = EventHeader::parse(&file[at..]).expect("an event");
        sizes.push((header.event_type.0, header.event_size));
        at += header.event_size as usize;
    }
    sizes
}

fn first_difference(theirs: &[u8], ours: &[u8]) -> Option<usize> {
    if theirs == ours {
        return None;
    }
    let common = theirs.len().min(ours.len());
    Some((0..common).find(|at| theirs[*at] != ours[*at]).unwrap_or(common))
}

fn describe(name: &str, theirs: &[u8], ours: &[u8], at: usize) -> String {
    let around = |bytes: &[u8]| bytes[at.min(bytes.len())..(at + 16).min(bytes.len())].to_vec();
    format!(
        "{name} differs from byte {at} on: the source has {} bytes, there {:02x?}; the copy has {}, there {:02x?}",
        theirs.len(),
        around(theirs),
        ours.len(),
        around(ours)
    )
}
