//! What the copy of a source holds of the source's present history, over all timelines that belong to it.

use super::folder::timelines;
use super::offline::resume_point;
use super::timeline::{Reason, Timeline};
use codec::gtid::{Flavour, GtidState};
use std::io;
use std::path::{Path, PathBuf};

/// A timeline with its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTimeline {
    /// Its folder.
    pub folder: PathBuf,
    /// Its `timeline.toml`.
    pub info: Timeline,
}

/// The timelines in order since the source last began its logs anew. In older ones the same GTIDs may mean other transactions,
/// and what they hold was given up on purpose. Locks nothing.
///
/// # Errors
/// When the folder or a description cannot be read.
pub fn present_history(source_folder: &Path) -> io::Result<Vec<HeldTimeline>> {
    let mut held = Vec::new();
    for folder in timelines(source_folder)? {
        let info = Timeline::read(&folder)?;
        if matches!(info.reason, Reason::First | Reason::SourceReset) {
            held.clear();
        }
        held.push(HeldTimeline { folder, info });
    }
    Ok(held)
}

/// Transactions that forks took from the source and the copy still holds. Some may have been handed back since.
pub fn lost_gtids(history: &[HeldTimeline], flavour: Flavour) -> GtidState {
    let mut lost = GtidState::empty(flavour);
    for timeline in history {
        // A set of the other kind of server, from before a migration, says nothing about this one.
        if let Ok(set) = GtidState::parse(flavour, &timeline.info.source_lacks) {
            let _ = lost.union_with(&set);
        }
    }
    lost
}

/// The GTIDs of a source's present history. They include what its files say was executed before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldGtids {
    /// What forks took from the source: it must have these, or be given them, to be complete.
    pub lost: GtidState,
    /// The history that the newest timeline goes on with, to its last boundary.
    pub history: GtidState,
    /// `server_uuid` of the newest timeline.
    pub newest_uuid: String,
}

impl HeldGtids {
    /// Reads the descriptions and the end of the newest timeline. `None` when there is no timeline yet.
    ///
    /// # Errors
    /// When the folder or a file cannot be read.
    pub fn read(source_folder: &Path, flavour: Flavour) -> io::Result<Option<HeldGtids>> {
        let timelines = present_history(source_folder)?;
        let Some(newest) = timelines.last() else { return Ok(None) };
        let mut history = newest.info.shared_before();
        if let Some(point) = resume_point(&newest.folder)? {
            // Of the other kind of server, nothing is shared.
            if history.union_with(&point.gtids).is_err() {
                history = point.gtids;
            }
        }
        let lost = lost_gtids(&timelines, flavour);
        Ok(Some(HeldGtids { lost, history, newest_uuid: newest.info.server_uuid.clone() }))
    }

    /// What a server whose UUID is `uuid` must have to lack nothing.
    ///
    /// The source of the newest timeline is not judged by that timeline: with AFTER_SYNC it sends a transaction before it
    /// commits it, so its own newest ones may not count as executed yet.
    pub fn expected_of(&self, uuid: &str) -> GtidState {
        if uuid == self.newest_uuid { self.lost.clone() } else { self.all() }
    }

    /// Everything, lost or not.
    pub fn all(&self) -> GtidState {
        let mut all = self.lost.clone();
        // They are of one kind of server, or one of them is empty.
        let _ = all.union_with(&self.history);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::recover::test_files::{FileBuilder, SERVER_UUID, first_timeline};
    use super::super::storage::PosixStorage;
    use super::*;

    const OTHER: &str = "11111111-2222-3333-4444-555555555555";

    fn timeline(uuid: &str, reason: Reason, before: &str, lacks: &str) -> Timeline {
        Timeline { reason, gtid_before: before.into(), source_lacks: lacks.into(), ..first_timeline(uuid) }
    }

    fn set(text: &str) -> GtidState {
        GtidState::parse(Flavour::Mysql, text).unwrap()
    }

    #[test]
    fn a_source_is_judged_by_what_forks_took_and_another_server_by_the_history() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(HeldGtids::read(dir.path(), Flavour::Mysql).unwrap(), None);
        let make = |number, timeline: Timeline| timeline.create(&PosixStorage, dir.path(), number).unwrap();
        make(1, timeline(OTHER, Reason::First, "", &format!("{OTHER}:77")));
        make(2, timeline(OTHER, Reason::SourceReset, &format!("{OTHER}:1-99"), ""));
        make(3, timeline(SERVER_UUID, Reason::Fork, &format!("{OTHER}:1-7"), &format!("{OTHER}:6-7")));
        let newest = make(
            4,
            timeline(SERVER_UUID, Reason::SourceChanged, &format!("{OTHER}:1-5,{SERVER_UUID}:1"), ""),
        );
        let file = FileBuilder::new().previous_gtids(&format!("{OTHER}:1-3")).transaction(2, 50).finish();
        std::fs::write(newest.join("b.000001"), file).unwrap();

        assert_eq!(
            present_history(dir.path()).unwrap().len(),
            3,
            "what was before the reset is another history"
        );
        let held = HeldGtids::read(dir.path(), Flavour::Mysql).unwrap().unwrap();
        assert_eq!(held.lost, set(&format!("{OTHER}:6-7")));
        assert_eq!(held.history, set(&format!("{OTHER}:1-5,{SERVER_UUID}:1-2")));
        assert_eq!(held.expected_of(SERVER_UUID), held.lost);
        assert_eq!(held.expected_of(OTHER), set(&format!("{OTHER}:1-7,{SERVER_UUID}:1-2")));
        assert!(HeldGtids::read(dir.path(), Flavour::Mariadb).unwrap().unwrap().lost.is_empty());
    }
}
