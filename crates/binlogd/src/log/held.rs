//! Which transactions the copy of a source holds, over all its timelines.

use super::offline::resume_point;
use super::timeline::Timeline;
use codec::gtid::{Flavour, GtidState};
use std::io;
use std::path::{Path, PathBuf};

/// The GTIDs of a source's timelines. Each includes what its first file says was executed before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldGtids {
    /// All timelines but the newest: what a source must have, or have been given, to be complete.
    pub older: GtidState,
    /// The newest timeline to its last boundary.
    pub newest: GtidState,
    /// `server_uuid` of the newest timeline.
    pub newest_uuid: String,
}

impl HeldGtids {
    /// What `executed`, of a server whose UUID is `uuid`, lacks.
    ///
    /// The source of the newest timeline is judged by the older ones alone: with AFTER_SYNC it sends a transaction before it
    /// commits it, so its own newest ones may not count as executed yet.
    pub fn lacked_by(&self, uuid: &str, executed: &GtidState) -> GtidState {
        let mut held = self.older.clone();
        if uuid != self.newest_uuid {
            // Of another kind of server, nothing of it can be lacked.
            let _ = held.union_with(&self.newest);
        }
        held.subtract(executed)
    }
}

/// Reads what is held from the descriptions of the timelines and the end of the newest. Locks nothing. `None` when there is
/// no timeline yet.
///
/// # Errors
/// When the folder or a description cannot be read.
pub fn held_gtids(source_folder: &Path, flavour: Flavour) -> io::Result<Option<HeldGtids>> {
    let timelines = super::folder::timelines(source_folder)?;
    let Some(newest_folder) = timelines.last() else { return Ok(None) };
    let newest = match resume_point(newest_folder)? {
        Some(point) if point.gtids.flavour() == flavour => point.gtids,
        _ => GtidState::empty(flavour),
    };
    let newest_uuid = Timeline::read(newest_folder)?.server_uuid;
    Ok(Some(HeldGtids { older: older_gtids(&timelines, flavour)?, newest, newest_uuid }))
}

/// The union of what the copy held each time that a timeline began beside an older one.
///
/// # Errors
/// When a description cannot be read.
pub fn older_gtids(timelines: &[PathBuf], flavour: Flavour) -> io::Result<GtidState> {
    let mut union = GtidState::empty(flavour);
    for folder in timelines {
        let before = Timeline::read(folder)?.gtid_before;
        // A set of the other kind of server, from before a migration, says nothing about this one.
        if let Ok(set) = GtidState::parse(flavour, &before) {
            let _ = union.union_with(&set);
        }
    }
    Ok(union)
}

#[cfg(test)]
mod tests {
    use super::super::recover::test_files::{FileBuilder, SERVER_UUID};
    use super::super::storage::PosixStorage;
    use super::super::timeline::{Reason, ServerKind};
    use super::*;

    const OTHER: &str = "11111111-2222-3333-4444-555555555555";

    fn timeline(uuid: &str, before: &str) -> Timeline {
        Timeline {
            began_at: "2026-01-02T03:04:05Z".into(),
            reason: Reason::Fork,
            server_uuid: uuid.into(),
            server_version: "9.7.0".into(),
            server_kind: ServerKind::Mysql,
            first_file: "b.000001".into(),
            gtid_before: before.into(),
            source_lacks: String::new(),
            missing: String::new(),
            previous: String::new(),
        }
    }

    fn set(text: &str) -> GtidState {
        GtidState::parse(Flavour::Mysql, text).unwrap()
    }

    #[test]
    fn a_source_is_judged_by_the_timelines_before_its_own() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(held_gtids(dir.path(), Flavour::Mysql).unwrap(), None);
        timeline(OTHER, "").create(&PosixStorage, dir.path(), 1).unwrap();
        timeline(OTHER, &format!("{OTHER}:1-7")).create(&PosixStorage, dir.path(), 2).unwrap();
        let newest =
            timeline(SERVER_UUID, &format!("{OTHER}:1-5:9")).create(&PosixStorage, dir.path(), 3).unwrap();
        let file = FileBuilder::new().previous_gtids(&format!("{OTHER}:1-5")).transaction(1, 50).finish();
        std::fs::write(newest.join("b.000001"), file).unwrap();

        let held = held_gtids(dir.path(), Flavour::Mysql).unwrap().unwrap();
        assert_eq!(held.older, set(&format!("{OTHER}:1-7:9")));
        assert_eq!(held.newest, set(&format!("{OTHER}:1-5,{SERVER_UUID}:1")));
        let executed = set(&format!("{OTHER}:1-6"));
        assert_eq!(held.lacked_by(SERVER_UUID, &executed), set(&format!("{OTHER}:7:9")));
        assert_eq!(held.lacked_by(OTHER, &executed), set(&format!("{OTHER}:7:9,{SERVER_UUID}:1")));
        assert!(held_gtids(dir.path(), Flavour::Mariadb).unwrap().unwrap().older.is_empty());
    }
}
