//! What a copy holds, over all its timelines.
use binlog::storage::posix::PosixStorage;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use binlog::timeline::files::binlog_files;
use codec::ServerKind;
use codec::event::boundary::BoundaryTracker;
use codec::event::{BINLOG_MAGIC, ChecksumAlgorithm, EventHeader, EventType, FormatDescription};
use codec::gtid::{GtidState, TransactionId};

use crate::common::Server;
use crate::common::daemon::Daemon;

/// Longest wait for a file that is about to be there.
const APPEARS_MAX: Duration = Duration::from_secs(40);

/// Every binary log of every timeline with its content.
pub fn archive(daemon: &Daemon) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for timeline in daemon.timeline_dirs() {
        for name in binlog_files(&PosixStorage, &timeline).expect("a timeline's folder") {
            let path = timeline.join(name);
            found.insert(path.clone(), std::fs::read(path).expect("a file of the copy"));
        }
    }
    found
}

/// Everything that was there before is there now; the last file of each timeline may have grown.
#[track_caller]
pub fn assert_kept(before: &BTreeMap<PathBuf, Vec<u8>>, daemon: &Daemon) {
    let after = archive(daemon);
    for (path, bytes) in before {
        let now = after.get(path).unwrap_or_else(|| panic!("{} is gone", path.display()));
        assert!(now.starts_with(bytes), "{} has changed", path.display());
    }
}

/// A key of a timeline's description; empty when it is not there.
pub fn described(timeline: &Path, key: &str) -> String {
    // The folder is there a moment before its description, which takes its name when it is on stable storage.
    let path = timeline.join("timeline.toml");
    let deadline = Instant::now() + APPEARS_MAX;
    while !path.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = std::fs::read_to_string(path).expect("a timeline's description");
    let value: toml::Table = text.parse().expect("TOML");
    value.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned()
}

/// Why a timeline began.
pub fn reason(timeline: &Path) -> String {
    described(timeline, "reason")
}

/// The GTIDs that a fork found the source to lack.
pub fn source_lacks(timeline: &Path, kind: ServerKind) -> GtidState {
    GtidState::parse(kind, &described(timeline, "source_lacks")).expect("a GTID set")
}

/// A file of the timeline equals the server's.
#[track_caller]
pub fn assert_files_equal(server: &Server, timeline: &Path, file: &str) {
    let (theirs, ours) = (server.datadir().join(file), timeline.join(file));
    let read =
        |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(read(&theirs) == read(&ours), "{} is not {}", ours.display(), theirs.display());
}

/// Identifiers of the transactions in the files of a timeline, in order: those in the files themselves, whatever the
/// files say of what came before them.
pub fn transactions(timeline: &Path) -> Vec<TransactionId> {
    let files = binlog_files(&PosixStorage, timeline).expect("a timeline's folder");
    files.into_iter().flat_map(|name| transactions_of(&timeline.join(name))).collect()
}

/// The GTIDs of all transactions that any timeline holds.
pub fn held_gtids(daemon: &Daemon, kind: ServerKind) -> GtidState {
    let mut held = GtidState::empty(kind);
    for id in daemon.timeline_dirs().iter().flat_map(|timeline| transactions(timeline)) {
        held.insert(id).expect("one kind of GTID");
    }
    held
}

fn transactions_of(path: &Path) -> Vec<TransactionId> {
    let bytes = std::fs::read(path).expect("a file of the copy");
    let (mut tracker, mut checksum) = (BoundaryTracker::new(), ChecksumAlgorithm::None);
    let (mut at, mut found) = (BINLOG_MAGIC.len(), Vec::new());
    while let Ok(header) = EventHeader::parse(bytes.get(at..).unwrap_or_default()) {
        let end = at + header.event_size as usize;
        let Some(event) = bytes.get(at..end) else { break };
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            checksum = FormatDescription::parse(event).expect("a format description").checksum;
        }
        let body = &event[..event.len() - checksum.len()];
        let step = tracker.advance(&header, body, at as u64, end as u64).expect("a sound event");
        if step.transaction {
            found.extend(tracker.committed());
        }
        at = end;
    }
    found
}
