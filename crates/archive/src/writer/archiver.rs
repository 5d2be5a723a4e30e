//! What is kept between the steps that keep an archive up.

use super::error::{ArchiveError, in_file, unreadable};
use super::upload::Uploader;
use crate::chain::commit::{Change, Segment, Writer};
use crate::chain::history::ArchivedFile;
use crate::chain::mark::Mark;
use crate::chain::trust::Signing;
use crate::chain::{Appended, COMMITS_PER_SNAPSHOT, Chain};
use crate::reader::{ReadError, read_segments};
use crate::store::Store;
use binlog::scan::Known;
use binlog::storage::{ReadFile, Storage};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Up to where the file that is written is durable (with `sync_first` of the [`Archiver`]: written).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableEnd {
    /// Folder of the timeline.
    pub timeline: PathBuf,
    /// The file.
    pub file: String,
    /// End of those bytes; need not be a boundary.
    pub offset: u64,
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing is to be done now.
    Idle,
    /// Something was committed; there may be more.
    Committed {
        /// Plain bytes that the archive has now and had not.
        new: u64,
        /// Plain bytes that were uploaded once more, to make large segments of small ones.
        again: u64,
        /// Bytes of objects that were made.
        stored: u64,
    },
    /// Others have committed meanwhile. What they did is known now.
    Behind,
}

/// Keeps the archive of one source.
#[derive(Debug)]
pub struct Archiver {
    pub(super) source: String,
    pub(super) folder: PathBuf,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) uploader: Uploader,
    pub(super) writer: Writer,
    /// Who writes here, and what signs the commits; nobody and none where nothing is signed.
    pub(super) signing: Signing,
    /// Whether the files are synced before they are read: with `fsync_mode = 0` nobody else says that they are durable.
    pub(super) sync_first: bool,
    pub(super) chain: Option<Chain>,
    /// Where the archive is, in words; see [`Mark::place`].
    pub(super) place: String,
    /// The last commit that was seen there, by this process or an earlier one.
    pub(super) seen: Option<Mark>,
    /// The one that the disk has; `None` before it was looked for.
    pub(super) remembered: Option<Option<Mark>>,
    /// What the last walk found, and of which file.
    pub(super) known: Option<(PathBuf, Known)>,
    /// Up to where the archive was found to have the bytes of this disk, and of which file.
    pub(super) agreed: Option<(PathBuf, u64)>,
    /// Files that are sealed in the archive, and were found to begin and end there as on this disk.
    pub(super) settled: BTreeSet<PathBuf>,
    /// Older timelines of the copy of which the archive has everything.
    pub(super) finished: BTreeMap<PathBuf, (String, u64)>,
    /// See [`Archiver::with_snapshots_after`].
    pub(super) commits_per_snapshot: u64,
    /// See [`Archiver::make_snapshots`].
    pub(super) snapshots_wanted: usize,
    /// Timelines of the copy, and what the archive calls them.
    pub(super) names: Vec<(PathBuf, String)>,
    /// See [`Archiver::first_lacking`].
    pub(super) lacking: Option<(PathBuf, String)>,
    /// The index that was read last: the same file may be looked at each second.
    pub(super) index: Option<(String, Arc<[Segment]>)>,
}

impl Archiver {
    /// For the source whose copy stands in `folder`. `sync_first`: what is said to be durable is only written, and is synced
    /// before it is archived. Nothing is asked of the store yet.
    pub fn new(
        source: String,
        folder: PathBuf,
        storage: Arc<dyn Storage>,
        uploader: Uploader,
        writer: Writer,
        sync_first: bool,
    ) -> Archiver {
        Archiver {
            source,
            folder,
            storage,
            uploader,
            writer,
            signing: Signing::default(),
            sync_first,
            chain: None,
            place: String::new(),
            seen: None,
            remembered: None,
            known: None,
            agreed: None,
            settled: BTreeSet::new(),
            finished: BTreeMap::new(),
            commits_per_snapshot: COMMITS_PER_SNAPSHOT,
            snapshots_wanted: 0,
            names: Vec::new(),
            lacking: None,
            index: None,
        }
    }

    /// Signs what it commits, and goes on only behind what was signed so.
    #[must_use]
    pub fn with_signing(mut self, signing: Signing) -> Archiver {
        self.signing = signing;
        self
    }

    /// Makes a snapshot after so many commits, not after `COMMITS_PER_SNAPSHOT`.
    #[must_use]
    pub fn with_snapshots_after(mut self, commits: u64) -> Archiver {
        self.commits_per_snapshot = commits;
        self
    }

    /// The next steps make so many snapshots at once, in the place of some that are damaged: these cannot be overwritten.
    pub fn make_snapshots(&mut self, count: usize) {
        self.snapshots_wanted = self.snapshots_wanted.max(count);
    }

    /// What is remembered of the archive is that of the one at this place.
    #[must_use]
    pub fn with_place(mut self, place: String) -> Archiver {
        self.place = place;
        self
    }

    /// What the archive holds, as far as it is known; `None` before the first step that reached the store.
    pub fn chain(&self) -> Option<&Chain> {
        self.chain.as_ref()
    }

    /// From now on the archive must have what it has now.
    pub(super) fn note(&mut self) {
        let Some(chain) = &self.chain else { return };
        if self.seen.as_ref().is_none_or(|mark| mark.seq < chain.history().seq) {
            self.seen = Mark::of(&self.place, chain.history());
        }
    }

    pub(super) fn opened(&self) -> Result<&Chain, ArchiveError> {
        self.chain.as_ref().ok_or_else(|| ArchiveError::Copy("the archive was not opened".into()))
    }

    /// The segments of a file of the archive, which is `path` here.
    pub(super) fn segments(
        &mut self,
        path: &Path,
        archived: &ArchivedFile,
    ) -> Result<Arc<[Segment]>, ArchiveError> {
        let store = self.uploader.store.clone();
        kept(&mut self.index, &*store, archived).map_err(|error| unreadable(path, error))
    }

    pub(super) fn commit(
        &mut self,
        now: Timestamp,
        changes: Vec<Change>,
        (new, again, stored): (u64, u64, u64),
    ) -> Result<Step, ArchiveError> {
        let store = self.uploader.store.clone();
        let Some(chain) = &mut self.chain else { return Ok(Step::Behind) };
        match chain.append(&*store, &self.writer, now, changes) {
            Ok(Appended::Done) => {
                self.note();
                Ok(Step::Committed { new, again, stored })
            }
            Ok(Appended::Behind) => {
                self.note();
                self.finished.clear();
                Ok(Step::Behind)
            }
            Err(error) => {
                // It may stand there all the same, or come to.
                self.chain = None;
                Err(error.into())
            }
        }
    }

    pub(super) fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, ArchiveError> {
        self.storage.open_read(path).map_err(|error| in_file(path, &error))
    }
}

/// The segments of a file, and of the one that was asked for last without a request.
pub(super) fn kept(
    index: &mut Option<(String, Arc<[Segment]>)>,
    store: &dyn Store,
    file: &ArchivedFile,
) -> Result<Arc<[Segment]>, ReadError> {
    let Some(wanted) = file.index() else { return read_segments(store, file) };
    if let Some((_, found)) = index.as_ref().filter(|(object, _)| *object == wanted.object) {
        return Ok(found.clone());
    }
    let found = read_segments(store, file)?;
    *index = Some((wanted.object.clone(), found.clone()));
    Ok(found)
}
