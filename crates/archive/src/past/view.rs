//! Which files of the archive complete which folder of the copy.

use crate::chain::history::{Archived, ArchivedFile, History};
use binlog::purge::purged::{Purged, is_purged};
use binlog::storage::{Entry, Kind, Recorded, Storage};
use binlog::timeline::Timeline;
use codec::gtid::GtidState;
use codec::{BinlogName, ServerKind};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the archive has, by the folders of the copy.
#[derive(Debug, Default)]
pub(super) struct View(HashMap<PathBuf, Arc<Kept>>);

/// What the archive has of one timeline.
#[derive(Debug)]
struct Kept {
    archived: Arc<Archived>,
    kind: ServerKind,
    /// Place of the first file that is whole and can be opened, as all behind it.
    first: usize,
    /// Places of the files by their names.
    places: HashMap<String, usize>,
}

/// A file of the archive.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) file: Arc<ArchivedFile>,
    /// The one behind it.
    pub(super) next: Option<Arc<ArchivedFile>>,
    kind: ServerKind,
}

/// What was purged from a folder and stands in the archive: files one behind the other, up to the first that is on the disk.
#[derive(Debug, Clone)]
pub(super) struct Here {
    kept: Arc<Kept>,
    files: Range<usize>,
}

impl View {
    /// What a history has for these folders. `labels` are the public keys of the private ones that are here.
    pub(super) fn of(
        disk: &dyn Storage,
        history: &History,
        names: &[(PathBuf, String)],
        folders: &[PathBuf],
        labels: &[String],
        before: Option<&View>,
    ) -> View {
        let mut view = View::default();
        for folder in folders {
            let named = names.iter().find(|(of, _)| of == folder).map(|(_, name)| name);
            let archived = match named {
                Some(name) => history.timelines.get(name),
                // One of which no file is here, so that the writer has not looked at it.
                None => began_with(disk, history, folder),
            };
            let Some(archived) = archived else { continue };
            let known = before.and_then(|before| before.0.get(folder));
            let known = known.filter(|known| Arc::ptr_eq(&known.archived, archived)).cloned();
            if let Some(kept) = known.or_else(|| Kept::of(archived, labels).map(Arc::new)) {
                view.0.insert(folder.clone(), kept);
            }
        }
        view
    }

    pub(super) fn has(&self, folder: &Path) -> bool {
        self.0.contains_key(folder)
    }

    /// A file that can be read.
    pub(super) fn find(&self, folder: &Path, name: &str) -> Option<Found> {
        let kept = self.0.get(folder)?;
        let place = *kept.places.get(name)?;
        let files = &kept.archived.files;
        (place >= kept.first).then(|| Found {
            file: files[place].clone(),
            next: files.get(place + 1).cloned(),
            kind: kept.kind,
        })
    }

    /// What was purged from a folder that has these entries; `None` for nothing that the archive could give without a hole behind
    /// it.
    pub(super) fn purged_here(&self, folder: &Path, entries: &[Entry], purged: &[Purged]) -> Option<Here> {
        let kept = self.0.get(folder)?;
        let files = &kept.archived.files[kept.first..];
        let end = kept.first + files.partition_point(|file| is_purged(purged, &file.name));
        let files = kept.first..end;
        let last = kept.archived.files[files.clone()].last()?;
        let first_here = entries
            .iter()
            .filter(|entry| entry.kind == Kind::File)
            .filter_map(|entry| BinlogName::parse(entry.name.to_str()?).ok())
            .filter(|name| !is_purged(purged, name.as_str()))
            .min_by_key(BinlogName::number);
        let goes_on = first_here.is_none_or(|here| {
            let next = kept.archived.files.get(end).map(|file| &*file.name);
            let successor = BinlogName::parse(&last.name).ok().and_then(|last| last.successor());
            next == Some(here.as_str()) || successor.as_deref() == Some(here.as_str())
        });
        goes_on.then(|| Here { kept: kept.clone(), files })
    }
}

/// The timeline that this copy began, by the moment at which it did.
fn began_with<'a>(disk: &dyn Storage, history: &'a History, folder: &Path) -> Option<&'a Arc<Archived>> {
    let began_at = Timeline::read(disk, folder).ok()?.began_at;
    let has_begun = |archived: &&Arc<Archived>| {
        Timeline::parse(&archived.record).is_ok_and(|record| record.began_at == began_at)
    };
    history.timelines.values().find(has_begun)
}

impl Kept {
    fn of(archived: &Arc<Archived>, labels: &[String]) -> Option<Kept> {
        let kind = Timeline::parse(&archived.record).ok()?.server_kind;
        let files = &archived.files;
        let is_good = |place: usize| {
            // Of one that is not finished the archive has a part, behind which nothing may come.
            let is_whole = files[place].sealed.is_some() || place + 1 == files.len();
            is_whole && files[place].end() > 0 && can_open(&files[place], labels)
        };
        let first = (0..files.len()).rev().take_while(|place| is_good(*place)).last()?;
        let places = files.iter().enumerate().map(|(place, file)| (file.name.clone(), place)).collect();
        Some(Kept { archived: archived.clone(), kind, first, places })
    }
}

/// Of a file whose readers changed in the middle this looks at the readers of either part; who comes to the other part is told.
fn can_open(file: &ArchivedFile, labels: &[String]) -> bool {
    let keys = file.keys();
    keys.is_empty() || keys.iter().any(|key| labels.iter().any(|label| label == key))
}

impl Here {
    /// Their names, the oldest first.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.kept.archived.files[self.files.clone()].iter().map(|file| &*file.name)
    }

    /// The oldest.
    pub(super) fn first(&self) -> &ArchivedFile {
        &self.kept.archived.files[self.files.start]
    }
}

impl Found {
    /// What the commits say of it.
    pub(super) fn recorded(&self) -> Option<Recorded> {
        let parse = |text: &str| GtidState::parse(self.kind, text).ok();
        let gtids_before = match &self.file.gtids_before {
            None => None,
            Some(text) => Some(parse(text)?),
        };
        Some(Recorded { gtids_before, gtids: parse(&self.file.gtids)?, end: self.file.end() })
    }
}
