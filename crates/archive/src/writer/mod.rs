//! The archive of one source, kept up with its copy step by step.
//!
//! A step looks for the first thing that the archive lacks, uploads it, and commits it. Everything that a step needs to know
//! stands in the store and on the disk, so a process that is killed at any moment goes on where its last commit is.

pub mod local;
pub mod upload;

use crate::chain::commit::{Change, Grown, Segment, Writer};
use crate::chain::history::ArchivedFile;
use crate::chain::mapping::{LocalTimeline, MappingError, Others, archived_name, is_foreign};
use crate::chain::mark::{MARK_FILE, Mark};
use crate::chain::{Appended, COMMITS_PER_SNAPSHOT, Chain, ChainError};
use crate::names;
use crate::reader::{ReadError, read_segments};
use crate::segment::merge::next_merge;
use crate::segment::segments;
use crate::segment::whole::sum_beside;
use crate::store::{Store, StoreError};
use crate::writer::local::{Cut, Next, head, next_piece, read_range};
use crate::writer::upload::{Owner, UploadError, Uploader, create_data};
use binlog::folder::timelines;
use binlog::scan::Known;
use binlog::storage::{ReadFile, Storage};
use binlog::timeline::Timeline;
use binlog::timeline::files::timeline_files;
use codec::gtid::GtidState;
use codec::rows::hex;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// So many bytes of the live file are uploaded at once however short the time since the last upload.
pub(crate) const TAIL_BYTES: u64 = 16 << 20;

/// So many bytes of a file are in memory at once when it is compared, for each source.
const COMPARE_BYTES: u64 = 256 << 10;

/// Why the archive is not kept up.
#[derive(Debug)]
pub enum ArchiveError {
    /// The store, or what stands in it.
    Chain(ChainError),
    /// The copy on this machine cannot be read.
    Copy(String),
    /// Bytes of the copy are not sound. What is sound before them is archived.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the place.
        what: String,
    },
    /// The archive has other bytes of a file than the copy. Both stay as they are.
    Differs {
        /// The file on this machine.
        path: PathBuf,
        /// What differs, and what to do.
        what: String,
    },
    /// What the archive has of a finished file cannot be read. The file on this machine stays until it can.
    Unreadable {
        /// The file on this machine.
        path: PathBuf,
        /// The object, and what is wrong with it.
        what: String,
    },
    /// The store overwrites objects that it was told not to: two writers would destroy each other's work.
    Overwrites,
    /// The process ends.
    Stopped,
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchiveError::Chain(error) => error.fmt(f),
            ArchiveError::Copy(error) => f.write_str(error),
            ArchiveError::Damaged { path, what } => write!(
                f,
                "{} is damaged on this disk ({what}), and is not archived from there on; `binlogd verify` says more",
                path.display()
            ),
            ArchiveError::Differs { path, what } => write!(f, "{}: {what}", path.display()),
            ArchiveError::Unreadable { path, what } => {
                write!(f, "{} is kept, as it cannot be told whether the archive has it: {what}", path.display())
            }
            ArchiveError::Overwrites => f.write_str(
                "the store overwrites an object although it is told to make it only where there is none, so two binlogds could destroy \
                 each other's archive: use a store that honours If-None-Match, or say single_writer = true in [archive] where never \
                 more than one binlogd writes to it",
            ),
            ArchiveError::Stopped => f.write_str("binlogd is ending"),
        }
    }
}

impl std::error::Error for ArchiveError {}

impl From<ChainError> for ArchiveError {
    fn from(error: ChainError) -> ArchiveError {
        ArchiveError::Chain(error)
    }
}

impl From<StoreError> for ArchiveError {
    fn from(error: StoreError) -> ArchiveError {
        ArchiveError::Chain(error.into())
    }
}

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
    source: String,
    folder: PathBuf,
    storage: Arc<dyn Storage>,
    uploader: Uploader,
    writer: Writer,
    /// Whether the files are synced before they are read: with `fsync_mode = 0` nobody else says that they are durable.
    sync_first: bool,
    chain: Option<Chain>,
    /// Where the archive is, in words; see [`Mark::place`].
    place: String,
    /// The last commit that was seen there, by this process or an earlier one.
    seen: Option<Mark>,
    /// The one that the disk has; `None` before it was looked for.
    remembered: Option<Option<Mark>>,
    /// What the last walk found, and of which file.
    known: Option<(PathBuf, Known)>,
    /// Up to where the archive was found to have the bytes of this disk, and of which file.
    agreed: Option<(PathBuf, u64)>,
    /// Files that are sealed in the archive, and were found to begin and end there as on this disk.
    settled: BTreeSet<PathBuf>,
    /// Older timelines of the copy of which the archive has everything.
    finished: BTreeMap<PathBuf, (String, u64)>,
    /// See [`Archiver::with_snapshots_after`].
    commits_per_snapshot: u64,
    /// See [`Archiver::make_snapshots`].
    snapshots_wanted: usize,
    /// Timelines of the copy, and what the archive calls them.
    names: Vec<(PathBuf, String)>,
    /// See [`Archiver::first_lacking`].
    lacking: Option<(PathBuf, String)>,
    /// The index that was read last: the same file may be looked at each second.
    index: Option<(String, Arc<[Segment]>)>,
}

/// The end of what the archive has of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedEnd {
    /// The timeline's name in the archive.
    pub timeline: String,
    /// Its last file.
    pub file: String,
    /// A boundary in it.
    pub offset: u64,
    /// GTIDs executed up to there.
    pub gtids: String,
}

/// A finished file in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The timeline's name there.
    pub timeline: String,
    /// What it has of the file; `None` when the file has expired.
    pub file: Option<Arc<ArchivedFile>>,
}

/// A finished file of the copy of which the archive has everything, as it was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeFile {
    /// Folder of its timeline.
    pub folder: PathBuf,
    /// The timeline's name in the archive.
    pub timeline: String,
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub len: u64,
    /// Hexadecimal SHA-256 of all of it.
    pub sha256: String,
}

/// A file of the copy, and what the archive has of it.
struct Candidate<'a> {
    path: PathBuf,
    timeline: &'a str,
    name: &'a str,
    archived: Option<Arc<ArchivedFile>>,
    end: u64,
    is_sealed: bool,
    /// Whether anything new is to be uploaded, however little.
    at_once: bool,
}

impl Candidate<'_> {
    fn archived_end(&self) -> u64 {
        self.archived.as_ref().map_or(0, |archived| archived.end())
    }
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

    /// Where the archive of the timeline in `folder` ends: its name there, the file, the offset, and the GTIDs executed up to it.
    /// `None` before anything of it is there.
    pub fn end_of(&self, folder: &Path) -> Option<ArchivedEnd> {
        let (_, timeline) = self.names.iter().find(|(of, _)| of == folder)?;
        let archived = self.chain.as_ref()?.history().timelines.get(timeline)?;
        let file = archived.files.last()?;
        Some(ArchivedEnd {
            timeline: timeline.clone(),
            file: file.name.clone(),
            offset: file.end(),
            gtids: file.gtids.clone(),
        })
    }

    /// What the archive calls timelines of the copy, by their folders, as far as they were looked at.
    pub fn names(&self) -> &[(PathBuf, String)] {
        &self.names
    }

    /// The first file of the copy of which the archive does not have everything, as of the last step, and the folder of its
    /// timeline: from there on this machine must keep what it has. `None` where that is not known.
    pub fn first_lacking(&self) -> Option<(&Path, &str)> {
        self.lacking.as_ref().map(|(folder, file)| (&**folder, &**file))
    }

    /// What the archive has of a file that is finished here, as of the last step, with the timeline's name there. `None` where it
    /// does not have all of it, or that is not known.
    pub fn finished_file(&self, folder: &Path, name: &str) -> Option<Finished> {
        let (_, timeline) = self.names.iter().find(|(of, _)| of == folder)?;
        let archived = self.chain.as_ref()?.history().timelines.get(timeline)?;
        let file = archived.file(name).cloned();
        if file.as_ref().is_some_and(|file| file.sealed.is_none()) {
            return None;
        }
        if file.is_none() {
            let files = timeline_files(&*self.storage, folder).ok()?;
            let place = files.iter().position(|file| file == name)?;
            if !self.has_expired(timeline, &files, place) {
                return None;
            }
        }
        Some(Finished { timeline: timeline.clone(), file })
    }

    /// How many files were found to be finished, here and in the archive, since something of that was unknown.
    pub fn whole_files_known(&self) -> usize {
        self.settled.len()
    }

    /// The files that are finished here and in the archive, and were found to be the same, as of the last step: timeline by timeline,
    /// the oldest first. Some of them may be purged here by now.
    pub fn whole_files(&self) -> Vec<WholeFile> {
        let mut found = Vec::new();
        let Some(chain) = &self.chain else { return found };
        for (folder, timeline) in &self.names {
            let Some(archived) = chain.history().timelines.get(timeline) else { continue };
            for file in archived.files.iter().filter(|file| self.settled.contains(&folder.join(&file.name))) {
                let Some(seal) = &file.sealed else { continue };
                found.push(WholeFile {
                    folder: folder.clone(),
                    timeline: timeline.clone(),
                    name: file.name.clone(),
                    len: file.end(),
                    sha256: seal.sha256.clone(),
                });
            }
        }
        found
    }

    /// Does one thing that the archive lacks. `durable` is the end of the file that is written; while it is not known, that file
    /// waits. `tails` says that its new bytes are to be archived now, however few; else they wait for `TAIL_BYTES`.
    ///
    /// # Errors
    /// When it could not be done. The next step tries again, from what stands in the store by then.
    pub fn step(
        &mut self,
        durable: Option<&DurableEnd>,
        tails: bool,
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let store = self.uploader.store.clone();
        self.open_chain()?;
        let mut first_error = None;
        self.lacking = None;
        if !self.storage.exists(&self.folder).is_ok_and(|is_there| is_there) {
            return Ok(Step::Idle); // Nothing has ever been copied.
        }
        let folders = timelines(&*self.storage, &self.folder)
            .map_err(|error| ArchiveError::Copy(format!("{}: {error}", self.folder.display())))?;
        for (index, folder) in folders.iter().enumerate() {
            let is_written = index + 1 == folders.len();
            if !is_written && self.is_finished(folder)? {
                continue;
            }
            match self.timeline(&folders, folder, is_written, durable, tails, now) {
                Ok(Step::Idle) => {}
                Ok(step) => return Ok(step),
                // What is wrong with one timeline keeps no other from being archived.
                Err(
                    error @ (ArchiveError::Damaged { .. }
                    | ArchiveError::Differs { .. }
                    | ArchiveError::Unreadable { .. }),
                ) => {
                    first_error.get_or_insert(error);
                }
                Err(error) => {
                    if matches!(error, ArchiveError::Chain(ChainError::Unsound(_) | ChainError::Older(_))) {
                        self.chain = None;
                    }
                    return Err(error);
                }
            }
        }
        if matches!(first_error, Some(ArchiveError::Unreadable { .. })) && self.refresh()? {
            return Ok(Step::Behind); // The file may have expired.
        }
        let after = if self.snapshots_wanted > 0 { 1 } else { self.commits_per_snapshot };
        if let Some(change) = self.opened()?.snapshot_if_due(&*store, after)? {
            self.snapshots_wanted = self.snapshots_wanted.saturating_sub(1);
            return self.commit(now, vec![change], (0, 0, 0));
        }
        first_error.map_or(Ok(Step::Idle), Err)
    }

    /// Takes notice of what others have committed. True when there was something.
    ///
    /// # Errors
    /// When the store cannot be read, or what stands in it cannot be.
    pub fn refresh(&mut self) -> Result<bool, ArchiveError> {
        if self.open_chain()? {
            return Ok(true);
        }
        let store = self.uploader.store.clone();
        let Some(chain) = &mut self.chain else { return Ok(false) };
        let refreshed = chain.refresh(&*store);
        if matches!(refreshed, Err(ChainError::Older(_))) {
            self.chain = None;
        }
        let is_news = refreshed?;
        self.note();
        Ok(is_news)
    }

    /// Reads the chain, if that was not done; true when it was now. It must go on from what was seen of it; and with one that has a
    /// hole nobody goes on, for the next commit would fill it.
    fn open_chain(&mut self) -> Result<bool, ArchiveError> {
        if self.chain.is_some() {
            return Ok(false);
        }
        let store = self.uploader.store.clone();
        if self.remembered.is_none() {
            let read = Mark::read(&*self.storage, &self.folder, &self.place);
            self.seen = read.map_err(|error| in_file(&self.folder.join(MARK_FILE), &error))?;
            self.remembered = Some(self.seen.clone());
        }
        let mut chain = Chain::open(&*store, &self.source)?.checked(&*store, self.seen.as_ref())?;
        chain.check_whole(&*store)?;
        self.chain = Some(chain);
        self.note();
        Ok(true)
    }

    /// From now on the archive must have what it has now.
    fn note(&mut self) {
        let Some(chain) = &self.chain else { return };
        if self.seen.as_ref().is_none_or(|mark| mark.seq < chain.history().seq) {
            self.seen = Mark::of(&self.place, chain.history());
        }
    }

    /// Puts what is known of the archive on the disk, for the next process. To be called by who has the copy: before local files are
    /// given up because of it, and from time to time.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn remember(&mut self) -> io::Result<()> {
        let Some(mark) = self.seen.as_ref().filter(|_| self.remembered.as_ref() != Some(&self.seen)) else {
            return Ok(());
        };
        mark.write(&*self.storage, &self.folder)?;
        self.remembered = Some(self.seen.clone());
        Ok(())
    }

    fn opened(&self) -> Result<&Chain, ArchiveError> {
        self.chain.as_ref().ok_or_else(|| ArchiveError::Copy("the archive was not opened".into()))
    }

    /// Whether an older timeline is what it was when the archive had all of it: its server may have been back meanwhile.
    fn is_finished(&mut self, folder: &Path) -> Result<bool, ArchiveError> {
        let Some((file, len)) = self.finished.get(folder) else { return Ok(false) };
        let files = timeline_files(&*self.storage, folder).map_err(|error| in_file(folder, &error))?;
        let path = folder.join(file);
        let is_same = match files.last() {
            None => true, // All of it was purged.
            Some(last) => last == file && self.storage.look(&path).is_ok_and(|found| found.len == *len),
        };
        if !is_same {
            self.finished.remove(folder);
        }
        Ok(is_same)
    }

    /// What else the copy has.
    fn others(&self, folders: &[PathBuf], folder: &Path) -> Others {
        let names = self.names.iter().filter(|(of, _)| of != folder).map(|(_, name)| name.clone()).collect();
        let began = |other: &PathBuf| Some(Timeline::read(&*self.storage, other).ok()?.began_at);
        Others {
            names,
            began_at: folders.iter().filter(|other| *other != folder).filter_map(began).collect(),
        }
    }

    fn timeline(
        &mut self,
        folders: &[PathBuf],
        folder: &Path,
        is_written: bool,
        durable: Option<&DurableEnd>,
        tails: bool,
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let in_folder = |error: io::Error| ArchiveError::Copy(format!("{}: {error}", folder.display()));
        let files = timeline_files(&*self.storage, folder).map_err(in_folder)?;
        let Some(last) = files.last() else { return Ok(Step::Idle) };
        let local = LocalTimeline::read(&*self.storage, folder, &files).map_err(ArchiveError::Copy)?;
        let timeline = self.archived_name(&local, &self.others(folders, folder))?;
        if self.names.iter().any(|(of, before)| of == folder && *before != timeline) {
            // What was compared was compared with another one.
            self.agreed = None;
            self.settled.clear();
        }
        self.names.retain(|(of, _)| of != folder);
        self.names.push((folder.to_owned(), timeline.clone()));
        let timeline = timeline.as_str();
        let here = durable.filter(|durable| durable.timeline == folder);
        let mut unreadable = None;
        for (place, name) in files.iter().enumerate() {
            let path = folder.join(name);
            if self.settled.contains(&path) {
                continue;
            }
            let archived = self.opened()?.history().file(timeline, name).cloned();
            if archived.is_none() && self.has_expired(timeline, &files, place) {
                continue;
            }
            let is_here = here.is_some_and(|here| here.file == *name);
            let is_sealed = name != last && !is_here;
            if let Some(archived) = archived.as_ref().filter(|archived| archived.sealed.is_some()) {
                let settled = self.settle(&path, archived, is_sealed).inspect_err(|_| {
                    self.lacking.get_or_insert_with(|| (folder.to_owned(), name.clone()));
                });
                match settled {
                    // An object that somebody has harmed keeps nothing new from being archived.
                    Err(error @ ArchiveError::Unreadable { .. }) => drop(unreadable.get_or_insert(error)),
                    settled => settled?,
                }
                continue;
            }
            self.lacking.get_or_insert_with(|| (folder.to_owned(), name.clone()));
            let end = match here.filter(|_| is_here) {
                Some(here) => here.offset,
                // Nobody has said how much of it is durable.
                None if is_written && (!is_sealed || is_behind(here, &files, place)) => break,
                None => self.storage.look(&path).map_err(|error| in_file(&path, &error))?.len,
            };
            let at_once = tails || !is_written || is_sealed;
            let candidate = Candidate { path, timeline, name, archived, end, is_sealed, at_once };
            match self.file(&candidate, &local, now)? {
                Step::Idle => {}
                step => return Ok(step),
            }
        }
        if let Some(error) = unreadable {
            return Err(error);
        }
        if !is_written {
            let len = self.storage.look(&folder.join(last)).map_err(in_folder)?.len;
            self.finished.insert(folder.to_owned(), (last.clone(), len));
            self.lacking = self.lacking.take().filter(|(of, _)| of != folder);
        }
        Ok(Step::Idle)
    }

    /// Whether retention took the file at `place`, or one behind it: the archive does not want it again.
    fn has_expired(&self, timeline: &str, files: &[String], place: usize) -> bool {
        let archived = self.chain.as_ref().and_then(|chain| chain.history().timelines.get(timeline));
        archived.is_some_and(|archived| archived.has_let_go(&files[place..]))
    }

    /// A file to which the archive adds nothing more must not go on on this disk, nor be another one: nobody would archive
    /// what it has, and retention here may rely on the archive.
    fn settle(&mut self, path: &Path, archived: &ArchivedFile, is_sealed: bool) -> Result<(), ArchiveError> {
        if self.settled.contains(path) {
            return Ok(());
        }
        let len = self.storage.look(path).map_err(|error| in_file(path, &error))?.len;
        let head = head(&*self.storage, path, u64::MAX).map_err(|error| in_file(path, &error))?;
        let is_other = head.is_some_and(|head| head != archived.head);
        if is_other || len > archived.end() || (is_sealed && len < archived.end()) {
            let what = format!(
                "it has {len} bytes, and the archive has it as a finished file of {}, from another copy. One of the two is wrong; both are kept",
                archived.end()
            );
            return Err(ArchiveError::Differs { path: path.to_owned(), what });
        }
        if !is_sealed {
            return Ok(());
        }
        // The end of it, where two that have parted differ: reading all files once a start would take hours.
        if let Some(last) = self.segments(path, archived)?.last() {
            let file = self.open(path)?;
            compare(path, &*file, last, |part| part)?;
        }
        self.settled.insert(path.to_owned());
        Ok(())
    }

    /// What the archive calls a timeline of the copy.
    fn archived_name(&mut self, local: &LocalTimeline, others: &Others) -> Result<String, ArchiveError> {
        let history = self.opened()?.history().clone();
        let (storage, store) = (self.storage.clone(), self.uploader.store.clone());
        let mut segments = |file: &ArchivedFile| kept(&mut self.index, &*store, file);
        archived_name(&history, &mut segments, &*storage, local, others).map_err(|error| match error {
            MappingError::Copy(error) => in_file(&local.folder, &error),
            MappingError::Archive(error) => unreadable(&local.folder, error),
        })
    }

    /// The segments of a file of the archive, which is `path` here.
    fn segments(&mut self, path: &Path, archived: &ArchivedFile) -> Result<Arc<[Segment]>, ArchiveError> {
        let store = self.uploader.store.clone();
        kept(&mut self.index, &*store, archived).map_err(|error| unreadable(path, error))
    }

    /// What the archive has of a file from other writers, or from an earlier run, must be on this disk too before anything is
    /// put behind it: two copies whose files begin alike and part later would become one file that nobody wrote.
    fn agree(
        &mut self,
        candidate: &Candidate<'_>,
        archived: &ArchivedFile,
        file: &dyn ReadFile,
    ) -> Result<(), ArchiveError> {
        let known = self.agreed_with(&candidate.path);
        let mut through = known;
        // One that ends behind what this copy has waits.
        let is_here = |segment: &&Segment| segment.to > known && segment.to <= candidate.end;
        for segment in inline(archived).iter().filter(is_here) {
            if self.uploader.stop.load(Ordering::Relaxed) {
                return Err(ArchiveError::Stopped);
            }
            compare(&candidate.path, file, segment, |part| part)?;
            through = segment.to;
        }
        self.agreed = Some((candidate.path.clone(), through));
        Ok(())
    }

    /// Up to where a file is known to be the same here and in the archive.
    fn agreed_with(&self, path: &Path) -> u64 {
        self.agreed.as_ref().filter(|(of, _)| of == path).map_or(0, |(_, to)| *to)
    }

    fn file(
        &mut self,
        candidate: &Candidate<'_>,
        local: &LocalTimeline,
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let Candidate { path, end, is_sealed, .. } = candidate;
        let from = candidate.archived_end();
        if *is_sealed && from > *end {
            return Err(ArchiveError::Differs {
                path: path.clone(),
                what: format!(
                    "it has {end} bytes, and the archive has {from} of it, from another copy. One of the two is wrong; both are kept"
                ),
            });
        }
        let is_enough = candidate.at_once || end.saturating_sub(from) >= TAIL_BYTES;
        if from < *end && is_enough {
            let step = self.grow(candidate, local, now)?;
            if step != Step::Idle {
                return Ok(step);
            }
        }
        let Some(archived) = &candidate.archived else { return Ok(Step::Idle) };
        if from >= *end && self.agreed_with(path) < (*end).min(from) {
            // Another copy was faster. Nothing is to be added, and yet what it has must be what this one has.
            let file = self.open(path)?;
            self.agree(candidate, archived, &*file)?;
        }
        let is_whole = *is_sealed && from == *end;
        let segments = inline(archived);
        if let Some(range) = next_merge(segments, is_whole) {
            return self.merge(candidate, &segments[range], now);
        }
        if is_whole { self.seal(candidate, segments, now) } else { Ok(Step::Idle) }
    }

    fn grow(
        &mut self,
        candidate: &Candidate<'_>,
        local: &LocalTimeline,
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let Candidate { path, timeline, name, end, is_sealed, .. } = candidate;
        let from = candidate.archived_end();
        let head = head(&*self.storage, path, *end).map_err(|error| in_file(path, &error))?;
        if head.is_none() && !is_sealed {
            return Ok(Step::Idle);
        }
        let head = head.unwrap_or_default();
        if candidate.archived.as_ref().is_some_and(|archived| archived.head != head) {
            let what = "the archive has another file of this name on this timeline, made at another time. Both are kept; give one of the two another `url`";
            return Err(ArchiveError::Differs { path: path.clone(), what: what.into() });
        }
        let file = self.open(path)?;
        if let Some(archived) = &candidate.archived {
            self.agree(candidate, archived, &*file)?;
        }
        let known = self.known.as_ref().filter(|(of, _)| of == path).map(|(_, known)| known);
        let piece =
            match next_piece(&*file, from, known, *end, *is_sealed).map_err(|error| in_file(path, &error))? {
                Next::Nothing => return Ok(Step::Idle),
                Next::Damaged(what) => return Err(ArchiveError::Damaged { path: path.clone(), what }),
                Next::Piece(piece) => piece,
            };
        self.is_ours(timeline, local, &piece.gtids)?;
        if self.sync_first {
            let written = self.storage.open(path).and_then(|file| file.sync_data());
            written.map_err(|error| in_file(path, &error))?;
        }
        let segments = self.upload(candidate, &*file, &piece.cuts)?;
        let stored = segments.iter().map(|segment| segment.stored).sum();
        let new = piece.to() - piece.from();
        let mut changes = Vec::new();
        let record = local.record(&self.names).map_err(ArchiveError::Copy)?;
        let known = self.opened()?.history().timelines.get(*timeline);
        // Each copy has a description of its own. That of the one which began the timeline there stays.
        if known.is_none_or(|known| known.record != record && local.has_begun(known)) {
            changes.push(Change::Timeline { timeline: (*timeline).to_owned(), record });
        }
        changes.push(Change::Grown(Grown {
            timeline: (*timeline).to_owned(),
            file: (*name).to_owned(),
            segments,
            head,
            gtids_before: piece.gtids_before.as_ref().map(ToString::to_string),
            gtids: piece.gtids.to_string(),
            last_time: piece.last_time,
        }));
        let step = self.commit(now, changes, (new, 0, stored))?;
        if matches!(step, Step::Committed { .. }) {
            self.agreed = Some((path.clone(), piece.to()));
            self.known = Some((path.clone(), piece.known));
        }
        Ok(step)
    }

    /// Two sources that were given one name would become one history, from which neither could be brought back. A copy of which the
    /// archive has another timeline has followed its source to another server, or to another history, by its operator's word.
    fn is_ours(
        &self,
        timeline: &str,
        local: &LocalTimeline,
        executed: &GtidState,
    ) -> Result<(), ArchiveError> {
        let history = self.opened()?.history();
        let others = self.names.iter().filter(|(folder, _)| *folder != local.folder);
        let follows = others.into_iter().any(|(_, name)| history.timelines.contains_key(name));
        if follows || history.timelines.contains_key(timeline) {
            return Ok(());
        }
        let Some(theirs) = is_foreign(history, local, executed) else { return Ok(()) };
        let what = format!(
            "the archive has under the name {} the history of another source, of the servers {theirs}, and this one ({}) shares no server \
             with that. Give one of the two sources another name, or its archive another url; nothing of this one is archived meanwhile",
            self.source, local.server_uuid
        );
        Err(ArchiveError::Differs { path: local.folder.clone(), what })
    }

    fn merge(
        &mut self,
        candidate: &Candidate<'_>,
        old: &[Segment],
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let (Some(first), Some(last)) = (old.first(), old.last()) else { return Ok(Step::Idle) };
        let file = self.open(&candidate.path)?;
        for segment in old {
            compare(&candidate.path, &*file, segment, |part| part)?;
        }
        let cuts = [Cut { at: first.from, event: first.from }, Cut { at: last.to, event: last.to }];
        let mut segments = self.upload(candidate, &*file, &cuts)?;
        let Some(segment) = segments.pop() else { return Ok(Step::Idle) };
        let done = (0, segment.len(), segment.stored);
        let (timeline, file) = (candidate.timeline.to_owned(), candidate.name.to_owned());
        self.commit(now, vec![Change::Merged { timeline, file, segment }], done)
    }

    /// Everything of a file is there: its bytes on this disk are read once more and compared with what was archived of them.
    fn seal(
        &mut self,
        candidate: &Candidate<'_>,
        segments: &[Segment],
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let file = self.open(&candidate.path)?;
        let compared = sum_beside(|parts| {
            for segment in segments {
                if self.uploader.stop.load(Ordering::Relaxed) {
                    return Err(ArchiveError::Stopped);
                }
                compare(&candidate.path, &*file, segment, |part| parts.add(part))?;
            }
            Ok(())
        });
        let (compared, sha256) = compared.map_err(|error| in_file(&candidate.path, &error))?;
        compared?;
        let text = list_text(candidate, segments, &sha256, &self.next_commit()?);
        let list =
            names::list(&self.source, candidate.timeline, candidate.name, &names::sha256(text.as_bytes()));
        let (index, bytes) = segments::pack(self.owner(candidate), segments)
            .map_err(|error| ArchiveError::Copy(format!("{}: {error}", candidate.path.display())))?;
        let stored = (text.len() + bytes.len()) as u64;
        create_data(&*self.uploader.store, &list, text.into())?;
        create_data(&*self.uploader.store, &index.object, bytes)?;
        let (timeline, file) = (candidate.timeline.to_owned(), candidate.name.to_owned());
        let sealed = Change::Sealed { timeline, file, size: candidate.end, sha256, list, index: Some(index) };
        self.commit(now, vec![sealed], (0, 0, stored))
    }

    fn owner<'a>(&'a self, candidate: &'a Candidate<'_>) -> Owner<'a> {
        Owner { source: &self.source, timeline: candidate.timeline, file: candidate.name }
    }

    fn upload(
        &self,
        candidate: &Candidate<'_>,
        file: &dyn ReadFile,
        cuts: &[Cut],
    ) -> Result<Vec<Segment>, ArchiveError> {
        self.uploader.upload(self.owner(candidate), file, cuts).map_err(|error| match error {
            UploadError::Store(error) => error.into(),
            UploadError::Read(error) => in_file(&candidate.path, &error),
            UploadError::Seal(error) => ArchiveError::Copy(format!("{}: {error}", candidate.path.display())),
            UploadError::Stopped => ArchiveError::Stopped,
        })
    }

    fn commit(
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

    /// Which commit comes next, and whose, in words that are never the same again.
    fn next_commit(&self) -> Result<String, ArchiveError> {
        let seq = self.opened()?.history().seq + 1;
        Ok(format!("commit {seq} of writer {}", self.writer.id))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, ArchiveError> {
        self.storage.open_read(path).map_err(|error| in_file(path, &error))
    }
}

/// Whether the file at `place` comes behind the one up to which something is durable.
fn is_behind(here: Option<&DurableEnd>, files: &[String], place: usize) -> bool {
    let durable = here.and_then(|here| files.iter().position(|file| *file == here.file));
    durable.is_some_and(|durable| place > durable)
}

/// The segments of a file that grows, which the history has.
fn inline(archived: &ArchivedFile) -> &[Segment] {
    archived.inline().unwrap_or_default()
}

/// The segments of a file, and of the one that was asked for last without a request.
fn kept(
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

fn unreadable(path: &Path, error: ReadError) -> ArchiveError {
    match error {
        ReadError::Store(error) if !error.is_missing() => error.into(),
        error => ArchiveError::Unreadable { path: path.to_owned(), what: error.to_string() },
    }
}

fn in_file(path: &Path, error: &io::Error) -> ArchiveError {
    ArchiveError::Copy(format!("{}: {error}", path.display()))
}

/// Reads a segment's bytes from this disk and holds them against what was archived. `done` is given each part of them, and gives
/// memory for the next.
fn compare(
    path: &Path,
    file: &dyn ReadFile,
    segment: &Segment,
    mut done: impl FnMut(Vec<u8>) -> Vec<u8>,
) -> Result<(), ArchiveError> {
    let (mut sum, mut part, mut at) = (Sha256::new(), Vec::new(), segment.from);
    while at < segment.to {
        let end = segment.to.min(at + COMPARE_BYTES);
        read_range(file, at, end, &mut part).map_err(|error| in_file(path, &error))?;
        sum.update(&part);
        (part, at) = (done(part), end);
    }
    let ours = hex(&sum.finalize());
    if ours == segment.sha256 {
        return Ok(());
    }
    Err(ArchiveError::Differs {
        path: path.to_owned(),
        what: format!(
            "bytes {}..{} have SHA-256 {ours}, and the archive has {} of them in {}. Either the bytes on this disk have changed, \
             which `binlogd verify` tells, or two copies of different servers go to one place. Both are kept",
            segment.from, segment.to, segment.sha256, segment.object
        ),
    })
}

/// The objects of a file in order, as `sha256sum -c` reads them. `commit` is in it so that no two lists have one name: one that
/// was made for a commit that came too late may be about to be deleted.
fn list_text(candidate: &Candidate<'_>, segments: &[Segment], sha256: &str, commit: &str) -> String {
    let mut text = format!(
        "# {} of timeline {}: {} bytes, SHA-256 {sha256}\n# Its bytes are those of these objects, one behind the other.\n# Written for {commit}.\n",
        candidate.name, candidate.timeline, candidate.end
    );
    for segment in segments {
        let object = segment.object.rsplit('/').next().unwrap_or_default();
        text.push_str(&format!("{}  {object}\n", segment.stored_sha256));
    }
    text
}
