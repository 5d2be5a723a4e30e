//! What the copy of a source holds of the source's present history, over all timelines that belong to it.

use super::files::timeline_files;
use super::offline::resume_point;
use crate::folder::{by_number, timelines};
use crate::forks::transactions::stated_before;
use crate::storage::Storage;
use crate::timeline::Timeline;
use crate::verify::kept_from;
use codec::ServerKind;
use codec::gtid::GtidState;
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

/// The timelines that belong to what is written now, in order: back to where the source last began its logs anew, or to where
/// a server was followed that shares nothing with the older ones. In others the same GTIDs may mean other transactions, or
/// they are of no concern to this source. Locks nothing.
///
/// # Errors
/// When the folder or a description cannot be read.
pub fn present_history(storage: &dyn Storage, source_folder: &Path) -> io::Result<Vec<HeldTimeline>> {
    let Some(present) = timelines(storage, source_folder)?.pop() else { return Ok(Vec::new()) };
    history_of(storage, source_folder, &present)
}

/// As [`present_history`], of the timeline in `folder`.
///
/// # Errors
/// When a folder or a description cannot be read.
pub fn history_of(
    storage: &dyn Storage,
    source_folder: &Path,
    folder: &Path,
) -> io::Result<Vec<HeldTimeline>> {
    let all = by_number(storage, source_folder)?;
    let mut held = Vec::new();
    let mut next = Some(folder.to_owned());
    while let Some(folder) = next.take() {
        let info = Timeline::read(storage, &folder)?;
        // An earlier one it must be, so that this comes to an end whatever a file says.
        let number = all.iter().position(|other| *other == folder).unwrap_or(0);
        next = info.goes_on_with(&all[..number]).map(|at| all[at].clone());
        held.push(HeldTimeline { folder, info });
    }
    held.reverse();
    Ok(held)
}

/// The last timeline of each history but the present one, the newest first.
///
/// # Errors
/// When the folder or a description cannot be read.
pub fn other_histories(storage: &dyn Storage, source_folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut known: Vec<PathBuf> =
        present_history(storage, source_folder)?.into_iter().map(|timeline| timeline.folder).collect();
    let mut last = Vec::new();
    for folder in by_number(storage, source_folder)?.into_iter().rev() {
        if !known.contains(&folder) {
            known.extend(
                history_of(storage, source_folder, &folder)?.into_iter().map(|timeline| timeline.folder),
            );
            last.push(folder);
        }
    }
    Ok(last)
}

/// Transactions that forks took from the source and the copy still holds. Some may have been handed back since.
pub fn lost_gtids(history: &[HeldTimeline], kind: ServerKind) -> GtidState {
    let mut lost = GtidState::empty(kind);
    for timeline in history {
        // A set of the other kind of server, from before a migration, says nothing about this one.
        if timeline.info.server_kind == kind {
            let _ = lost.union_with(&timeline.info.lacked());
        }
    }
    lost
}

/// What was executed before the first file of a timeline, by that file's own word. When it was purged, the record says so; where it
/// does not, nobody knows.
pub(crate) fn beginning(storage: &dyn Storage, timeline: &HeldTimeline) -> io::Result<Option<GtidState>> {
    if !timeline.info.purged.is_empty() {
        return Ok(timeline.info.purged_beginning());
    }
    let names = timeline_files(storage, &timeline.folder)?;
    names.first().map_or(Ok(None), |first| stated_before(storage, &timeline.folder.join(first)))
}

/// What was executed before the first file that is left of these timelines, by its own word; nothing where none says so.
///
/// # Errors
/// When a folder or a file cannot be read.
pub fn before_first(storage: &dyn Storage, history: &[HeldTimeline]) -> io::Result<GtidState> {
    for HeldTimeline { folder, .. } in history {
        if let Some(first) = timeline_files(storage, folder)?.first() {
            return Ok(stated_before(storage, &folder.join(first))?.unwrap_or_default());
        }
    }
    Ok(GtidState::default())
}

/// What stood in files of these timelines that were purged or moved away. Of the first timeline that may include what was executed
/// before the copy began, where nobody knows with what it did.
///
/// # Errors
/// When a file cannot be read.
pub fn removed(storage: &dyn Storage, history: &[HeldTimeline]) -> io::Result<GtidState> {
    let mut removed = GtidState::default();
    for HeldTimeline { folder, info } in history {
        let kept_from = kept_from(storage, folder);
        let mut take = |before: GtidState| {
            // Of the other kind of server, from before a migration, it says nothing.
            let _ = removed.union_with(&before.subtract(&info.shared_before()).subtract(&info.never_held()));
        };
        if let Some(through) = info.purged_gtids() {
            // What was moved away stood before what was purged since.
            let beginning = info.purged_beginning().filter(|_| kept_from.is_none());
            take(beginning.map_or_else(|| through.clone(), |beginning| through.subtract(&beginning)));
        }
        // Verify says whether it is there.
        let first = kept_from.map(|first| folder.join(first));
        if let Some(first) = first.filter(|first| storage.exists(first).unwrap_or(false)) {
            take(stated_before(storage, &first)?.unwrap_or_default());
        }
    }
    Ok(removed)
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
    pub fn read(
        storage: &dyn Storage,
        source_folder: &Path,
        kind: ServerKind,
    ) -> io::Result<Option<HeldGtids>> {
        HeldGtids::of(storage, &present_history(storage, source_folder)?, kind)
    }

    /// As [`HeldGtids::read`], of the history that these timelines make.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(
        storage: &dyn Storage,
        timelines: &[HeldTimeline],
        kind: ServerKind,
    ) -> io::Result<Option<HeldGtids>> {
        let Some(newest) = timelines.last() else { return Ok(None) };
        let mut history = newest.info.shared_before();
        if let Some(point) = resume_point(storage, &newest.folder)? {
            // Of the other kind of server, nothing is shared.
            if history.union_with(&point.gtids).is_err() {
                history = point.gtids;
            }
        }
        let lost = lost_gtids(timelines, kind);
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
    use super::*;
    use crate::storage::posix::PosixStorage;
    use crate::testing::{FileBuilder, SERVER_UUID, first_timeline};
    use crate::timeline::Reason;

    const OTHER: &str = "11111111-2222-3333-4444-555555555555";

    fn timeline(uuid: &str, reason: Reason, before: &str, lacks: &str) -> Timeline {
        Timeline { reason, gtid_before: before.into(), source_lacks: lacks.into(), ..first_timeline(uuid) }
    }

    fn set(text: &str) -> GtidState {
        GtidState::parse(ServerKind::MySql, text).unwrap()
    }

    #[test]
    fn a_source_is_judged_by_what_forks_took_and_another_server_by_the_history() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(HeldGtids::read(&PosixStorage, dir.path(), ServerKind::MySql).unwrap(), None);
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
            present_history(&PosixStorage, dir.path()).unwrap().len(),
            3,
            "what was before the reset is another history"
        );
        let held = HeldGtids::read(&PosixStorage, dir.path(), ServerKind::MySql).unwrap().unwrap();
        assert_eq!(held.lost, set(&format!("{OTHER}:6-7")));
        assert_eq!(held.history, set(&format!("{OTHER}:1-5,{SERVER_UUID}:1-2")));
        assert_eq!(held.expected_of(SERVER_UUID), held.lost);
        assert_eq!(held.expected_of(OTHER), set(&format!("{OTHER}:1-7,{SERVER_UUID}:1-2")));
        assert!(
            HeldGtids::read(&PosixStorage, dir.path(), ServerKind::MariaDb).unwrap().unwrap().lost.is_empty()
        );
    }

    #[test]
    fn what_a_stranger_brought_belongs_to_no_other_history() {
        let dir = tempfile::tempdir().unwrap();
        let make = |number, previous: &str, timeline: Timeline| {
            let timeline = Timeline { previous: previous.into(), ..timeline };
            timeline.create(&PosixStorage, dir.path(), number).unwrap()
        };
        let ours = make(1, "", timeline(OTHER, Reason::First, "", ""));
        let first = format!("0001-{OTHER}");
        let theirs = make(2, &first, timeline(SERVER_UUID, Reason::Stranger, &format!("{OTHER}:1-9"), ""));
        let folders =
            |history: Vec<HeldTimeline>| history.into_iter().map(|held| held.folder).collect::<Vec<_>>();
        assert_eq!(
            folders(present_history(&PosixStorage, dir.path()).unwrap()),
            std::slice::from_ref(&theirs)
        );
        assert_eq!(other_histories(&PosixStorage, dir.path()).unwrap(), std::slice::from_ref(&ours));
        crate::folder::make_present(&PosixStorage, dir.path(), &first).unwrap();
        assert_eq!(folders(present_history(&PosixStorage, dir.path()).unwrap()), std::slice::from_ref(&ours));
        assert_eq!(other_histories(&PosixStorage, dir.path()).unwrap(), std::slice::from_ref(&theirs));
        let next =
            make(3, &first, timeline(OTHER, Reason::Fork, &format!("{OTHER}:1-9"), &format!("{OTHER}:9")));
        assert_eq!(folders(present_history(&PosixStorage, dir.path()).unwrap()), [ours, next]);
        assert_eq!(other_histories(&PosixStorage, dir.path()).unwrap(), [theirs]);
        let held = HeldGtids::read(&PosixStorage, dir.path(), ServerKind::MySql).unwrap().unwrap();
        assert_eq!(held.lost, set(&format!("{OTHER}:9")), "and nothing of the stranger's");
    }
}
