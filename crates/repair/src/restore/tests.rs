//! Small histories, and servers that stand somewhere in them.

use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
use codec::ServerKind;
use codec::gtid::{GtidState, MariadbGtidState};
use source::identify::{SourceIdentity, SourceSemiSync};

/// A copy, and where transactions end in it.
pub(super) struct Built {
    /// Its folder.
    pub(super) dir: tempfile::TempDir,
    /// Of each file its name and its boundaries: where the first transaction begins, and where each ends.
    pub(super) boundaries: Vec<(&'static str, Vec<u64>)>,
}

/// Transactions 11 to 13 in one file, 14 to 16 in the next, which says that `before` was executed.
pub(super) fn built(before: &str) -> Built {
    let dir = tempfile::tempdir().unwrap();
    let folder = first_timeline(SERVER_UUID).create(&PosixStorage, dir.path(), 1).unwrap();
    let mut boundaries = Vec::new();
    for (name, before, numbers) in [("b.000001", "1-10", 11..=13), ("b.000002", before, 14..=16)] {
        let mut file = FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:{before}"));
        let mut ends = vec![file.len() as u64];
        for number in numbers {
            file = file.transaction(number, 100);
            ends.push(file.len() as u64);
        }
        std::fs::write(folder.join(name), file.finish()).unwrap();
        boundaries.push((name, ends));
    }
    Built { dir, boundaries }
}

/// A server that has executed these.
pub(super) fn target(executed: &str) -> SourceIdentity {
    SourceIdentity {
        version: "9.7.0".into(),
        kind: ServerKind::MySql,
        server_id: 1,
        uuid: SERVER_UUID.into(),
        has_gtids: true,
        executed: GtidState::parse(ServerKind::MySql, executed).unwrap(),
        applied: MariadbGtidState::new(),
        purged: GtidState::empty(ServerKind::MySql),
        semi_sync: SourceSemiSync::Absent,
        is_read_only: false,
        galera: None,
        knows_checksums: true,
    }
}

/// GTIDs of the source.
pub(super) fn ours(numbers: &str) -> String {
    format!("{SERVER_UUID}:{numbers}")
}
