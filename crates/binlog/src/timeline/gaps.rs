//! What was never copied: gaps that were recorded and passed.

use super::files::timeline_files;
use super::held::{HeldTimeline, beginning, present_history};
use crate::Position;
use crate::folder::by_number;
use crate::storage::Storage;
use crate::timeline::{Reason, Timeline};
use codec::ServerKind;
use codec::gtid::{GtidState, MariadbGtid, MariadbGtidState};
use std::io;
use std::path::Path;

/// Transactions between two timelines that neither holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Folder name of the timeline that begins behind it.
    pub timeline: String,
    /// When that began: UTC, RFC 3339.
    pub began_at: String,
    /// End of the timeline before; `None` when that has no file, or files that say nothing of this one's, after a reset.
    pub after: Option<Position>,
    /// The file with which the copy goes on.
    pub first_file: String,
    /// What is missing by GTID; empty where there are none.
    pub missing: GtidState,
}

/// The gaps of a source's present history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Those with a timeline of before still in the data folder. Without one the copy begins behind the gap, and what was
    /// before a copy is missing in none.
    pub open: Vec<Gap>,
    /// By GTID, what no timeline holds of all gaps, open or not.
    never_held: GtidState,
    /// What older timelines than the newest hold of its history. For MariaDB, whose sets have no holes.
    stored_before: GtidState,
}

impl Gaps {
    /// Reads the descriptions of the timelines. Locks nothing.
    ///
    /// # Errors
    /// When the folder, a description or the beginning of a file cannot be read.
    pub fn read(storage: &dyn Storage, source_folder: &Path) -> io::Result<Gaps> {
        let history = present_history(storage, source_folder)?;
        let Some(kind) = history.last().map(|held| held.info.server_kind) else {
            return Ok(Gaps::default());
        };
        let oldest = by_number(storage, source_folder)?.into_iter().next();
        let mut gaps = Gaps::none(kind);
        let mut previous: Option<&HeldTimeline> = None;
        // A set of the other kind of server, from before a migration, says nothing about this one.
        for held in history.iter().filter(|held| held.info.server_kind == kind) {
            gaps.stored_before = gaps.stored(held.info.shared_before());
            if !gaps.never_held.is_empty() {
                gaps.take_off_what_arrived(storage, held)?;
            }
            let missing = held.info.never_held();
            if !missing.is_empty() || is_told_by_file(&held.info) {
                if oldest.as_ref() != Some(&held.folder) {
                    let before = previous.filter(|_| !held.info.begins_history());
                    gaps.open.push(Gap {
                        timeline: name_of(&held.folder),
                        began_at: held.info.began_at.clone(),
                        after: before.map(|before| end_of(storage, &before.folder)).transpose()?.flatten(),
                        first_file: held.info.first_file.clone(),
                        missing: missing.clone(),
                    });
                }
                let _ = gaps.never_held.union_with(&missing);
            }
            previous = Some(held);
        }
        Ok(gaps)
    }

    fn none(kind: ServerKind) -> Gaps {
        let empty = GtidState::empty(kind);
        Gaps { open: Vec::new(), never_held: empty.clone(), stored_before: empty }
    }

    /// Whether there never was one.
    pub fn are_none(&self) -> bool {
        self.open.is_empty() && self.never_held.is_empty()
    }

    /// What no timeline holds.
    pub fn never_held(&self) -> &GtidState {
        &self.never_held
    }

    /// Of the open ones, what is missing by GTID.
    pub fn missing(&self) -> GtidState {
        let mut missing = GtidState::empty(self.never_held.kind());
        for gap in &self.open {
            let _ = missing.union_with(&gap.missing);
        }
        missing
    }

    /// Of the GTIDs of the present history, those that a timeline holds, or that were executed before the copy began. For
    /// MariaDB, whose sets have no holes, the newest of each server.
    pub fn stored(&self, history: GtidState) -> GtidState {
        match (&history, &self.never_held, &self.stored_before) {
            (_, never, _) if never.is_empty() => history,
            (GtidState::Mysql(set), GtidState::Mysql(never), _) => GtidState::Mysql(set.subtract(never)),
            (GtidState::Mariadb(state), GtidState::Mariadb(never), GtidState::Mariadb(before)) => {
                let mut stored = MariadbGtidState::new();
                for id in state.list() {
                    let is_same =
                        |other: &MariadbGtid| (other.domain, other.server_id) == (id.domain, id.server_id);
                    match never.list().any(|never| never == id) {
                        true => before.list().filter(is_same).for_each(|id| stored.insert(id)),
                        false => stored.insert(id),
                    }
                }
                GtidState::Mariadb(stored)
            }
            _ => history,
        }
    }

    /// What the first file of a later timeline does not count to what came before it has arrived with that timeline.
    fn take_off_what_arrived(&mut self, storage: &dyn Storage, timeline: &HeldTimeline) -> io::Result<()> {
        // What has arrived with files that were purged since has arrived all the same.
        let Some(before) = beginning(storage, timeline)? else { return Ok(()) };
        let arrived = self.never_held.subtract(&before);
        if arrived.is_empty() {
            return Ok(());
        }
        self.never_held = without(&self.never_held, &arrived);
        self.open.retain_mut(|gap| {
            let is_told_by_file = gap.missing.is_empty();
            gap.missing = without(&gap.missing, &arrived);
            is_told_by_file || !gap.missing.is_empty()
        });
        Ok(())
    }
}

/// Exactly these taken out.
fn without(set: &GtidState, taken: &GtidState) -> GtidState {
    match (set, taken) {
        (GtidState::Mariadb(set), GtidState::Mariadb(taken)) => {
            let mut left = MariadbGtidState::new();
            for id in set.list().filter(|id| taken.list().all(|taken| taken != *id)) {
                left.insert(id);
            }
            GtidState::Mariadb(left)
        }
        (set, taken) => set.subtract(taken),
    }
}

/// A gap in a history without GTIDs.
fn is_told_by_file(info: &Timeline) -> bool {
    info.reason == Reason::Gap && info.gtid_before.is_empty()
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Where an older timeline ends. It was cut at a boundary before the next one began.
fn end_of(storage: &dyn Storage, timeline: &Path) -> io::Result<Option<Position>> {
    let files = timeline_files(storage, timeline)?;
    let Some(last) = files.last() else { return Ok(None) };
    Ok(Some(Position::new(last.as_str(), storage.look(&timeline.join(last))?.len)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::posix::PosixStorage;
    use crate::testing::{FileBuilder, SERVER_UUID, first_timeline};

    fn set(numbers: &str) -> GtidState {
        GtidState::parse(ServerKind::MySql, &format!("{SERVER_UUID}:{numbers}")).unwrap()
    }

    fn make(folder: &Path, number: u32, timeline: Timeline) -> std::path::PathBuf {
        timeline.create(&PosixStorage, folder, number).unwrap()
    }

    /// A copy of 1 to 4, a gap of 5 and 6, and a timeline that goes on behind it.
    fn with_gap(folder: &Path) -> std::path::PathBuf {
        let first = make(folder, 1, first_timeline(SERVER_UUID));
        std::fs::write(
            first.join("b.000001"),
            FileBuilder::new().previous_gtids("").transaction(1, 9).finish(),
        )
        .unwrap();
        let gap = Timeline {
            reason: Reason::Gap,
            first_file: "b.000004".into(),
            gtid_before: format!("{SERVER_UUID}:1-4"),
            missing: format!("{SERVER_UUID}:5-6"),
            ..first_timeline(SERVER_UUID)
        };
        make(folder, 2, gap)
    }

    #[test]
    fn what_was_never_copied_is_in_no_timeline() {
        let dir = tempfile::tempdir().unwrap();
        let behind = with_gap(dir.path());
        let before = format!("{SERVER_UUID}:1-6");
        let file = FileBuilder::new().previous_gtids(&before).transaction(7, 9).finish();
        std::fs::write(behind.join("b.000004"), file).unwrap();
        let gaps = Gaps::read(&PosixStorage, dir.path()).unwrap();
        let [gap] = &gaps.open[..] else { panic!("{gaps:?}") };
        assert_eq!((gap.first_file.as_str(), &gap.missing), ("b.000004", &set("5-6")));
        assert_eq!(gap.after.as_ref().map(|after| &*after.file), Some("b.000001"));
        assert_eq!(gaps.missing(), set("5-6"));
        assert_eq!(gaps.stored(set("1-7")), set("1-4:7"));
    }

    #[test]
    fn a_later_timeline_may_bring_it_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        with_gap(dir.path());
        let changed = Timeline {
            reason: Reason::SourceChanged,
            gtid_before: format!("{SERVER_UUID}:1-6"),
            ..first_timeline("11111111-2222-3333-4444-555555555555")
        };
        let later = make(dir.path(), 3, changed);
        let file =
            FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1-5")).transaction(6, 9).finish();
        std::fs::write(later.join("b.000001"), file).unwrap();
        let gaps = Gaps::read(&PosixStorage, dir.path()).unwrap();
        assert_eq!(gaps.missing(), set("5"));
        assert_eq!(gaps.stored(set("1-6")), set("1-4:6"));
    }

    /// What docs/running/data.md says: take a new backup of the source, then move the timelines before the gap away.
    #[test]
    fn without_the_timelines_before_it_a_gap_is_the_beginning_of_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        with_gap(dir.path());
        std::fs::remove_dir_all(dir.path().join(format!("0001-{SERVER_UUID}"))).unwrap();
        let gaps = Gaps::read(&PosixStorage, dir.path()).unwrap();
        assert!(gaps.open.is_empty() && gaps.missing().is_empty());
        assert_eq!(gaps.stored(set("1-7")), set("1-4:7"), "it is stored nowhere all the same");
    }

    #[test]
    fn a_gap_without_gtids_is_told_by_its_files() {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), 1, first_timeline(SERVER_UUID));
        make(dir.path(), 2, Timeline { reason: Reason::Gap, ..first_timeline(SERVER_UUID) });
        let gaps = Gaps::read(&PosixStorage, dir.path()).unwrap();
        assert!(gaps.open.len() == 1 && gaps.missing().is_empty() && !gaps.are_none());
    }

    #[test]
    fn a_mariadb_copy_shows_the_newest_that_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let mariadb = || Timeline { server_kind: ServerKind::MariaDb, ..first_timeline("mariadb-1") };
        make(dir.path(), 1, mariadb());
        let gap = Timeline {
            reason: Reason::Gap,
            gtid_before: "0-1-4,1-2-9".into(),
            missing: "0-1-6".into(),
            ..mariadb()
        };
        make(dir.path(), 2, gap);
        let gaps = Gaps::read(&PosixStorage, dir.path()).unwrap();
        let stored = |text: &str| gaps.stored(GtidState::parse(ServerKind::MariaDb, text).unwrap()).to_line();
        assert_eq!(stored("0-1-6,1-2-9"), "0-1-4,1-2-9", "nothing has arrived behind the gap");
        assert_eq!(stored("0-1-7,1-2-9"), "0-1-7,1-2-9");
    }
}
