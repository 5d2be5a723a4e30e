//! What binlogd holds of one source: the folder, its newest timeline, and where that ends.

use super::plan::Holding;
use crate::log::folder::{FolderError, SourceFolder, timeline_number};
use crate::log::held::{lost_gtids, present_history};
use crate::log::journal::Journal;
use crate::log::recover::{Tail, recover, write_again};
use crate::log::scan::{TAIL_BYTES_MAX, scan_file};
use crate::log::storage::Storage;
use crate::log::timeline::Timeline;
use crate::log::writer::{LogError, LogWriter};
use crate::log::{Position, is_full_disk};
use codec::event::FormatDescription;
use codec::gtid::{Flavour, GtidState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Every file's format description ends before this offset: it lists at most 255 event types.
const FORMAT_DESCRIPTION_END_MAX: u64 = 4096;

/// Why the copy cannot be opened. The message names the path.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The source's folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The journal in it.
    #[error("cannot open the journal in {path}: {error}")]
    Journal {
        /// The source's folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// A timeline in it.
    #[error("cannot open the timeline {path}: {error}")]
    Timeline {
        /// Its folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
}

impl CopyError {
    /// True when space may return by itself.
    pub fn is_full_disk(&self) -> bool {
        let (CopyError::Folder(FolderError::Io { error, .. })
        | CopyError::Journal { error, .. }
        | CopyError::Timeline { error, .. }) = self
        else {
            return false;
        };
        is_full_disk(error)
    }

    /// True when another process holds the folder.
    pub fn is_locked(&self) -> bool {
        matches!(self, CopyError::Folder(FolderError::Locked { .. }))
    }
}

/// The newest timeline, open for appending.
#[derive(Debug)]
pub struct OpenTimeline {
    /// Folder name.
    pub name: String,
    /// Content of its `timeline.toml`.
    pub info: Timeline,
    /// The end of its files.
    pub log: LogWriter,
    /// Format description of the live file, once it has one.
    pub format: Option<FormatDescription>,
    /// GTIDs of all transactions that are durable, and of those before the timeline's first file by the source's word.
    pub gtids: GtidState,
    /// GTIDs on older timelines that belong to the same history; see [`Timeline::shared_before`].
    pub shared_before: GtidState,
    /// Where the live file's tail begins, with which a session makes sure that the source's history is ours.
    pub tail_start: u64,
    /// Time of the newest event, seconds since 1970; 0 when unknown.
    pub last_timestamp: u32,
}

/// The copy of one source, held by one thread.
#[derive(Debug)]
pub struct HeldCopy {
    storage: Arc<dyn Storage>,
    folder: SourceFolder,
    timeline: Option<OpenTimeline>,
    /// Up to here the source was found to have every byte that is held.
    equal_through: Option<Position>,
    /// What is on disk has been found out, and is what `timeline` says.
    is_recovered: bool,
    /// What happens to bytes behind the last boundary: none of this process at the start.
    tail: Tail,
}

impl HeldCopy {
    /// Locks the source's folder and recovers its newest timeline. The second value says what was found and mended.
    ///
    /// # Errors
    /// When another process holds the folder, or something in it cannot be read or mended.
    pub fn open(
        storage: Arc<dyn Storage>,
        data_dir: &Path,
        source: &str,
    ) -> Result<(HeldCopy, Vec<String>), CopyError> {
        let mut copy = HeldCopy::lock(storage, data_dir, source)?;
        let remarks = copy.reopen()?;
        Ok((copy, remarks))
    }

    /// Locks the source's folder and looks at nothing in it yet: [`HeldCopy::reopen`] must follow.
    ///
    /// # Errors
    /// When another process holds the folder, or it cannot be made.
    pub fn lock(storage: Arc<dyn Storage>, data_dir: &Path, source: &str) -> Result<HeldCopy, CopyError> {
        let folder = SourceFolder::open(&*storage, data_dir, source)?;
        let tail = Tail::SaveAside;
        Ok(HeldCopy { storage, folder, timeline: None, equal_through: None, is_recovered: false, tail })
    }

    /// True when [`HeldCopy::reopen`] has found out what is on disk. Nothing may be decided before.
    pub fn is_recovered(&self) -> bool {
        self.is_recovered
    }

    /// Opens the newest timeline from disk, at the start and after an error that made the state in memory worthless.
    /// The value says what was found and mended.
    ///
    /// # Errors
    /// When something in the folder cannot be read or mended. It can be tried again.
    pub fn reopen(&mut self) -> Result<Vec<String>, CopyError> {
        if let Some((path, from)) = self.timeline.as_ref().and_then(|timeline| timeline.log.synced()) {
            // The page cache may be all that has them; a timeline that is gone is found out below.
            match write_again(&*self.storage, path, from) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(CopyError::Timeline { path: path.to_owned(), error });
                }
                _ => {}
            }
        }
        (self.is_recovered, self.timeline) = (false, None);
        let remarks = self.open_newest(self.tail)?;
        (self.is_recovered, self.tail) = (true, Tail::Discard);
        Ok(remarks)
    }

    fn open_newest(&mut self, tail: Tail) -> Result<Vec<String>, CopyError> {
        let mut remarks = Vec::new();
        let folder = self.folder.path();
        // The journal and the timelines have their names here, and a process may have ended before it made them durable.
        self.storage.sync_dir(folder).map_err(|error| FolderError::Io {
            action: "sync the folder",
            path: folder.to_owned(),
            error,
        })?;
        let journal = self.open_journal(&mut remarks)?;
        let Some(path) = self.folder.timelines()?.pop() else { return Ok(remarks) };
        let failed = |error| CopyError::Timeline { path: path.clone(), error };
        let info = Timeline::read(&path).map_err(failed)?;
        let mut recovered = recover(&*self.storage, &path, tail).map_err(failed)?;
        remarks.append(&mut recovered.remarks);
        self.timeline = Some(OpenTimeline {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            shared_before: info.shared_before(),
            tail_start: recovered.live.as_ref().map_or(4, |live| live.tail_start),
            info,
            format: recovered.live.as_ref().and_then(|live| live.format.clone()),
            last_timestamp: recovered.live.as_ref().map_or(0, |live| live.last_timestamp),
            gtids: std::mem::take(&mut recovered.gtids),
            log: LogWriter::new(self.storage.clone(), &path, recovered, journal),
        });
        Ok(remarks)
    }

    /// The journal, after what it holds was put back into the files.
    fn open_journal(&self, remarks: &mut Vec<String>) -> Result<Option<Journal>, CopyError> {
        let path = self.folder.path();
        Journal::open(&*self.storage, path, remarks)
            .map_err(|error| CopyError::Journal { path: path.to_owned(), error })
    }

    /// Begins a timeline and makes it the newest one.
    ///
    /// # Errors
    /// When its folder cannot be made.
    pub fn begin_timeline(&mut self, mut info: Timeline) -> Result<(), CopyError> {
        let newest = self.folder.timelines()?.pop();
        let newest_name = newest.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
        info.previous = newest_name.unwrap_or_default().to_owned();
        let number = newest_name.and_then(timeline_number).unwrap_or(0) + 1;
        let path =
            info.create(&*self.storage, self.folder.path(), number).map_err(|error| CopyError::Timeline {
                path: self.folder.path().join(format!("{number:04}-{}", info.server_uuid)),
                error,
            })?;
        let recovered = recover(&*self.storage, &path, Tail::Discard)
            .map_err(|error| CopyError::Timeline { path: path.clone(), error })?;
        self.equal_through = None;
        // If it cannot be opened, the timeline of before stays the newest one here.
        let journal = match self.timeline.as_mut().and_then(|timeline| timeline.log.take_journal()) {
            Some(journal) => Some(journal),
            None => self.open_journal(&mut Vec::new())?,
        };
        self.timeline = Some(OpenTimeline {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            shared_before: info.shared_before(),
            tail_start: 4,
            info,
            log: LogWriter::new(self.storage.clone(), &path, recovered, journal),
            format: None,
            // Its first file says what came before. The older timeline's set may name the same GTIDs with other contents.
            gtids: GtidState::default(),
            last_timestamp: 0,
        });
        Ok(())
    }

    /// Transactions that forks took from the source and the copy holds.
    ///
    /// # Errors
    /// When the description of a timeline cannot be read.
    pub fn lost_gtids(&self, flavour: Flavour) -> Result<GtidState, CopyError> {
        let path = self.folder.path();
        let history = present_history(path);
        let history = history.map_err(|error| CopyError::Timeline { path: path.to_owned(), error })?;
        Ok(lost_gtids(&history, flavour))
    }

    /// Who binlogd is to this source.
    pub fn identity(&self) -> &crate::log::folder::ReplicaIdentity {
        &self.folder.identity
    }

    /// The newest timeline.
    pub fn timeline(&self) -> Option<&OpenTimeline> {
        self.timeline.as_ref()
    }

    /// The newest timeline.
    pub fn timeline_mut(&mut self) -> Option<&mut OpenTimeline> {
        self.timeline.as_mut()
    }

    /// Remembers that the source was found to have every byte of the newest timeline up to its present end. A comparison
    /// reads a whole file of the source, so the same error at the same place does not cause another one.
    pub fn found_equal(&mut self) {
        self.equal_through = self.timeline.as_ref().and_then(OpenTimeline::end);
    }

    /// Whether that was found when the timeline ended at `at`.
    pub fn was_found_equal(&self, at: &Position) -> bool {
        self.equal_through.as_ref() == Some(at)
    }

    /// The end of the file before the live one and its format description, when the live file has no event yet. Nothing in
    /// the live file can then tell whether the source's file of that name goes on from there.
    ///
    /// # Errors
    /// When that file cannot be read.
    pub fn before_empty(&self) -> Result<Option<(Position, FormatDescription)>, CopyError> {
        let Some(path) = self.timeline.as_ref().and_then(|timeline| timeline.log.before_empty()) else {
            return Ok(None);
        };
        let found = self.storage.open(&path).and_then(|file| {
            Ok((file.size()?, scan_file(&*file, FORMAT_DESCRIPTION_END_MAX, |_| {})?.format))
        });
        let (end, format) = found.map_err(|error| CopyError::Timeline { path: path.clone(), error })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(format.map(|format| (Position::new(&*name, end), format)))
    }

    /// What the decision about the next session needs.
    pub fn holding(&self) -> Option<Holding> {
        let timeline = self.timeline.as_ref()?;
        Some(Holding {
            uuid: timeline.info.server_uuid.clone(),
            end: timeline.end(),
            first_file: timeline.info.first_file.clone(),
            gtids: timeline.history(),
            never_held: timeline.info.never_held(),
        })
    }
}

impl OpenTimeline {
    /// End of the durable bytes. Between sessions that is a boundary.
    pub fn end(&self) -> Option<Position> {
        self.log.durable().map(|durable| durable.position().clone())
    }

    /// GTIDs of the whole history that the copy holds up to here, on this timeline and the older ones that it continues.
    ///
    /// Those of this timeline alone would say too little: it begins with the file that holds the first transaction which
    /// the older ones lack, so until that file has arrived, what is known to be acknowledged is known from them.
    pub fn history(&self) -> GtidState {
        let mut history = self.shared_before.clone();
        // Of two kinds of server only the newer one is a history that a successor could continue.
        if history.union_with(&self.gtids).is_err() {
            history.clone_from(&self.gtids);
        }
        history
    }

    /// The bytes at the live file's end that the source must have too; empty when they are too many.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tail(&self) -> Result<Vec<u8>, LogError> {
        let end = self.end().map_or(0, |end| end.offset);
        if end.saturating_sub(self.tail_start) > TAIL_BYTES_MAX {
            return Ok(Vec::new());
        }
        self.log.read_live(self.tail_start)
    }

    /// Folder of the timeline's files.
    pub fn folder(&self) -> &Path {
        self.log.folder()
    }

    /// After a session: drops the beginning of a transaction that was not received to its end.
    ///
    /// # Errors
    /// When the log has failed; it must then be opened again from disk.
    pub fn cut_to_boundary(&mut self, boundary: u64) -> Result<(), LogError> {
        self.log.cut_to(boundary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::recover::test_files::{FileBuilder, SERVER_UUID, first_timeline};
    use crate::log::storage::PosixStorage;
    use crate::log::storage::double::FaultyStorage;
    use crate::log::timeline::{Reason, ServerKind};
    use std::io::IoSlice;
    use std::sync::atomic::Ordering::Relaxed;

    fn open(dir: &Path) -> HeldCopy {
        HeldCopy::open(Arc::new(PosixStorage), dir, "s").unwrap().0
    }

    fn begin(copy: &mut HeldCopy, reason: Reason, source_lacks: &str) {
        let gtid_before = copy.holding().map(|holding| holding.gtids.to_record()).unwrap_or_default();
        copy.begin_timeline(Timeline {
            began_at: String::new(),
            reason,
            server_uuid: SERVER_UUID.to_owned(),
            server_version: String::new(),
            server_kind: ServerKind::Mysql,
            first_file: "b.000001".to_owned(),
            gtid_before,
            source_lacks: source_lacks.to_owned(),
            missing: String::new(),
            previous: String::new(),
        })
        .unwrap();
    }

    fn history(copy: &HeldCopy) -> String {
        copy.holding().unwrap().gtids.to_line().replace(SERVER_UUID, "")
    }

    /// A copy of transactions 1 to 3, closed.
    fn copied() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let mut copy = open(dir.path());
        begin(&mut copy, Reason::First, "");
        let file =
            FileBuilder::new().previous_gtids("").transaction(1, 9).transaction(2, 9).transaction(3, 9);
        std::fs::write(copy.timeline().unwrap().folder().join("b.000001"), file.finish()).unwrap();
        dir
    }

    /// Compared with the newest timeline alone, a second successor that lacks the end would pass for complete.
    #[test]
    fn the_history_is_not_forgotten_while_a_new_timeline_has_less() {
        let dir = copied();
        let mut copy = open(dir.path());
        begin(&mut copy, Reason::SourceChanged, "");
        assert_eq!(history(&copy), ":1-3", "nothing has arrived yet");
        drop(copy);
        let copy = open(dir.path());
        assert_eq!(history(&copy), ":1-3", "after a restart");
        let begun = FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1")).transaction(2, 9).finish();
        std::fs::write(copy.timeline().unwrap().folder().join("b.000001"), begun).unwrap();
        drop(copy);
        let mut copy = open(dir.path());
        assert_eq!(copy.timeline().unwrap().gtids.to_line(), format!("{SERVER_UUID}:1-2"));
        assert_eq!(history(&copy), ":1-3", "with a part of the first file");
        begin(&mut copy, Reason::SourceChanged, "");
        assert_eq!(history(&copy), ":1-3", "after another switch");
    }

    #[test]
    fn what_a_fork_lost_is_history_no_more() {
        let dir = copied();
        let mut copy = open(dir.path());
        begin(&mut copy, Reason::Fork, &format!("{SERVER_UUID}:3"));
        assert_eq!(history(&copy), ":1-2");
        begin(&mut copy, Reason::SourceReset, "");
        assert_eq!(history(&copy), "");
    }

    #[test]
    fn the_tail_is_the_last_transaction() {
        let dir = copied();
        let copy = open(dir.path());
        let timeline = copy.timeline().unwrap();
        let file = std::fs::read(timeline.folder().join("b.000001")).unwrap();
        let expected = FileBuilder::new().previous_gtids("").transaction(1, 9).transaction(2, 9).len();
        assert_eq!(timeline.tail_start, expected as u64);
        assert_eq!(timeline.tail().unwrap(), file[expected..]);
    }

    #[test]
    fn a_disk_that_is_full_at_the_start_can_be_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 30);
        let boundary = builder.len();
        let file = builder.transaction(2, 300).finish();
        let (mut copy, _) = HeldCopy::open(Arc::new(storage.clone()), dir.path(), "a").unwrap();
        assert!(copy.is_recovered() && copy.timeline().is_none());
        copy.begin_timeline(first_timeline(SERVER_UUID)).unwrap();
        let log = &mut copy.timeline_mut().unwrap().log;
        log.begin_file("b.000001").unwrap();
        log.append(&mut [IoSlice::new(&file[4..boundary])]).unwrap();
        log.sync().unwrap();
        log.use_journal().unwrap();
        // Acknowledged, and the process ends before the file has it.
        assert!(log.commit([&file[boundary..]].into_iter()).unwrap());
        drop(copy);

        let mut copy = HeldCopy::lock(Arc::new(storage.clone()), dir.path(), "a").unwrap();
        assert!(!copy.is_recovered());
        storage.writes_until_failure.store(0, Relaxed);
        let error = copy.reopen().unwrap_err();
        assert!(error.is_full_disk() && !copy.is_recovered(), "{error}");
        copy.reopen().unwrap();
        assert!(copy.is_recovered());
        assert_eq!(copy.timeline().unwrap().end().unwrap().offset, file.len() as u64);
    }
}
