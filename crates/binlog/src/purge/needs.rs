//! Who needs files of the copy, and from which on.

use super::order::LogFile;
use crate::forks::{Fate, Forks, Losses, Place};
use crate::storage::Storage;
use crate::timeline::held::{HeldTimeline, history_of, other_histories, present_history};
use std::io;
use std::path::{Path, PathBuf};

/// So many of the newest files always stay: the live one, and the one before. A live file in which there is no transaction yet
/// says little of the history, and recovery and the comparison with the source then read the one before.
const NEWEST: usize = 2;

/// How many of the newest files of the present history always stay, where the timeline that is written has `of_present`. While that
/// has little, readers are served the one before, and recovery may have to know its end.
pub fn newest_kept(of_present: usize) -> usize {
    NEWEST + usize::from(of_present < NEWEST) + usize::from(of_present == 0)
}

/// From which file on somebody needs all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NeedFrom {
    /// All there are: nobody knows from where on.
    Everything,
    /// From a file of a timeline on, and so many before it.
    Place {
        /// Folder name.
        timeline: String,
        /// Name of the file. When it is not there, nothing is needed.
        file: String,
        /// So many files before it, too.
        before: usize,
    },
    /// So many of the newest ones.
    Newest(usize),
    /// So many of the newest files of these timelines, which make a history. Files of others are not needed for that, wherever
    /// they stand in the order.
    NewestOf {
        /// Their folders.
        timelines: Vec<PathBuf>,
        /// How many files.
        count: usize,
    },
    /// From the last file of a timeline on, by its folder's name. For an older timeline of which another binlogd may hold more:
    /// without its end nobody could compare the two any more, and what only the other one holds would not be told.
    EndOf(String),
    /// The same of the oldest timeline that has files.
    EndOfOldest,
}

/// Somebody who needs files. Whatever keeps files from a purge becomes one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Who, and for what, in words for the operator.
    pub who: String,
    /// Which.
    pub from: NeedFrom,
}

impl Need {
    /// Which of `files`, all of a source in their order, are needed.
    pub(super) fn of(&self, files: &[LogFile]) -> Vec<bool> {
        let from = |first: usize| (0..files.len()).map(|at| at >= first).collect();
        match &self.from {
            NeedFrom::Everything => from(0),
            NeedFrom::Place { timeline, file: name, before } => {
                let found =
                    files.iter().position(|file| file.name == *name && file.folder.ends_with(timeline));
                from(found.map_or(files.len(), |at| at.saturating_sub(*before)))
            }
            NeedFrom::Newest(count) => from(files.len().saturating_sub(*count)),
            NeedFrom::NewestOf { timelines, count } => {
                let mut needed = vec![false; files.len()];
                let of_history = (0..files.len()).rev().filter(|at| timelines.contains(&files[*at].folder));
                of_history.take(*count).for_each(|at| needed[at] = true);
                needed
            }
            NeedFrom::EndOfOldest => {
                let oldest = files.first().map(|file| &file.folder);
                from(files.iter().rposition(|file| Some(&file.folder) == oldest).unwrap_or(0))
            }
            NeedFrom::EndOf(timeline) => {
                let found = files.iter().rposition(|file| file.folder.ends_with(timeline));
                from(found.unwrap_or(files.len()))
            }
        }
    }
}

/// What the copy itself needs.
#[derive(Debug, Default)]
pub(super) struct OwnNeeds {
    /// Whatever of it is wanted gone stays, and that is told.
    pub(super) told: Vec<Need>,
    /// The ends of older histories. They stay for good, however old they are, so a purge passes over them without a word.
    pub(super) ends: Vec<Need>,
}

/// What the copy itself needs of `files`, all of a source in their order.
///
/// # Errors
/// When a folder, a description or a file cannot be read.
pub(super) fn own_needs(
    storage: &dyn Storage,
    source_folder: &Path,
    files: &[LogFile],
) -> io::Result<OwnNeeds> {
    let present = present_history(storage, source_folder)?;
    let of_present = files.iter().filter(|file| file.is_of_present).count();
    let kept = newest_kept(of_present);
    let who = match kept {
        NEWEST => {
            "it is the live file or the one before, which binlogd compares with the source when it goes on"
                .to_owned()
        }
        _ => "the newest timeline has only begun: the end of the one before is needed".to_owned(),
    };
    let newest = |history: &[HeldTimeline], count| NeedFrom::NewestOf { timelines: folders(history), count };
    let mut needs = OwnNeeds::default();
    needs.told.push(Need { who, from: newest(&present, kept) });
    needs.told.extend(lost(storage, source_folder, &present, files)?);
    for last in other_histories(storage, source_folder)? {
        let history = history_of(storage, source_folder, &last)?;
        // Its server may come back and go on with it, and is then compared with these.
        let who =
            "it is the end of an older history, whose server may come back and go on with it".to_owned();
        needs.ends.push(Need { who, from: newest(&history, NEWEST) });
        needs.told.extend(lost(storage, source_folder, &history, files)?);
    }
    if of_present < NEWEST {
        // Readers are placed at the end of what was served before, of whichever history that is.
        let who = "the newest timeline has only begun: readers are at the end of what was before".to_owned();
        needs.told.push(Need { who, from: NeedFrom::Newest(kept) });
    }
    Ok(needs)
}

fn folders(history: &[HeldTimeline]) -> Vec<PathBuf> {
    history.iter().map(|held| held.folder.clone()).collect()
}

/// What forks took from the source in one history, and nobody has handed back or decided about.
fn lost(
    storage: &dyn Storage,
    source_folder: &Path,
    history: &[HeldTimeline],
    files: &[LogFile],
) -> io::Result<Vec<Need>> {
    let Some(newest) = history.last() else { return Ok(Vec::new()) };
    let Some(losses) = Losses::of(storage, source_folder, history, newest.info.server_kind)? else {
        return Ok(Vec::new());
    };
    let timelines = folders(history);
    let forks = Forks::of(storage, losses, || true)?;
    if !forks.is_known() {
        let who = "it is not known yet what the source lacks".to_owned();
        return Ok(vec![Need { who, from: NeedFrom::NewestOf { timelines, count: usize::MAX } }]);
    }
    let mut needs = Vec::new();
    for (fate, what) in [
        (Fate::Lacking, "the source lacks a transaction of it (binlogd rescue, or binlogd forks)"),
        (Fate::GivenTwice, "the source gave the GTID of a transaction of it to another one (binlogd forks)"),
    ] {
        let open = forks.open(fate);
        let places =
            open.iter().flat_map(|(id, lost)| lost.versions.iter().map(move |version| (id, &version.place)));
        let at = |place: &Place| files.iter().position(|file| *place.path == *file.folder.join(&file.name));
        // A transaction whose file was purged before it was lost is needed by nobody any more.
        let oldest = places.filter_map(|(id, place)| Some((at(place)?, id))).min_by_key(|(at, _)| *at);
        if let Some((at, id)) = oldest {
            let count = files[at..].iter().filter(|file| timelines.contains(&file.folder)).count();
            let from = NeedFrom::NewestOf { timelines: timelines.clone(), count };
            needs.push(Need { who: format!("{what}: {id}"), from });
        }
    }
    Ok(needs)
}
