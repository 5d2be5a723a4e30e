//! Appending to the live file.
//!
//! One thread owns the writer. It appends verified events and makes them durable in one of two ways: through the
//! [`Journal`], when an acknowledgement waits for them, or by a sync of the file itself, in the background where it can
//! wait. The first failure of a write or a sync latches: the bytes on disk are then in an unknown state, so nothing more
//! is appended, synced or called durable. The caller drops the writer and opens the timeline again through
//! [`super::recover`], after the journal has put back what it holds.

pub mod admission;
pub mod confirmations;
mod live;
pub mod mark;
pub mod published;
pub(crate) mod syncer;

pub use super::log_error::LogError;

use super::journal::Journal;
use super::recover::{LiveFile, Recovered};
use super::scan::Known;
use super::storage::{BackgroundSync, ReadFile, Storage, StorageFile, Synced};
use super::{Durable, Position, Written, is_covered};
use crate::purge::purge_record;
use crate::purge::purged::{Purged, is_purged};
use crate::timeline::index;
use crate::writer::mark::MarkWriter;
use codec::event::BINLOG_MAGIC;
use live::Live;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// When so many bytes of the file wait for a sync, one begins in the background. Small enough that the disk never has
/// much to write at once, which would hold up everybody's syncs; large enough for its full speed.
pub(crate) const BACKGROUND_SYNC_BYTES: u64 = 8 << 20;

/// A mark with large sets is made when the file has grown by so many times its length.
const MARK_COST: u64 = 64;

/// The end of a timeline that is open for appending.
#[derive(Debug)]
pub struct LogWriter {
    storage: Arc<dyn Storage>,
    folder: PathBuf,
    files: Vec<String>,
    /// What was purged, by the record as it was read last.
    purged: Vec<Purged>,
    live: Option<Live>,
    journal: Option<Journal>,
    /// What is appended is staged for the journal.
    journaling: bool,
    syncer: Box<dyn BackgroundSync>,
    marks: MarkWriter,
    /// Offset of the last mark in the live file; 0 when it has none.
    marked: u64,
    /// What a mark will say when the sync that is under way has covered it.
    to_mark: Option<Known>,
    latched: bool,
    /// It was the journal that somebody removed, replaced or cut, at a moment in which the file had everything.
    journal_displaced: bool,
}

impl LogWriter {
    /// Takes over a recovered timeline. Everything in the live file counts as durable, as [`super::recover::recover`]
    /// has synced it. `journal` is that of the source's folder, empty; `None` when it has none yet.
    pub fn new(
        storage: Arc<dyn Storage>,
        folder: &Path,
        recovered: Recovered,
        journal: Option<Journal>,
    ) -> LogWriter {
        let live_in = |LiveFile { name, file, len, .. }| {
            let path = folder.join(&*name);
            Live::synced(name, path, file, len)
        };
        let live = recovered.live.map(live_in);
        let (files, marks) = (recovered.files, recovered.marks);
        // What the recovery has read need not be marked by us too soon.
        let marked = live.as_ref().map_or(0, |live| live.synced);
        let purged = purge_record::read(&*storage, folder);
        let (folder, syncer) = (folder.to_owned(), storage.background_sync());
        LogWriter {
            storage,
            folder,
            files,
            purged,
            live,
            journal,
            journaling: false,
            syncer,
            marks,
            marked,
            to_mark: None,
            latched: false,
            journal_displaced: false,
        }
    }

    /// From now on what is committed goes through the journal, which is made if there is none.
    ///
    /// # Errors
    /// When it cannot be made. Everything works without it, with a sync of the file for each commit.
    pub fn use_journal(&mut self) -> Result<(), LogError> {
        if self.journal.is_none() {
            let folder = self.folder.parent().unwrap_or(Path::new("."));
            let failed =
                |error| LogError::Io { action: "make the journal in", path: folder.to_owned(), error };
            self.journal = Some(Journal::create(&*self.storage, folder).map_err(failed)?);
        }
        self.journaling = true;
        self.begin_staging();
        Ok(())
    }

    /// From now on what is appended is not staged for the journal: nobody waits for it.
    pub fn leave_journal(&mut self) {
        self.journaling = false;
    }

    /// The journal, for the writer of another timeline of this source. `None` after a failure: it must then be opened
    /// again from disk.
    pub fn take_journal(&mut self) -> Option<Journal> {
        self.journal.take().filter(|_| !self.latched)
    }

    /// End of the written bytes; `None` before the first file.
    pub fn written(&self) -> Option<Written> {
        self.live.as_ref().map(|live| Written(live.at(live.written)))
    }

    /// End of the durable bytes; `None` before the first file.
    pub fn durable(&self) -> Option<Durable> {
        self.live.as_ref().map(|live| Durable(live.at(live.durable)))
    }

    /// The live file, and the end of the bytes that a sync of it has covered.
    pub fn synced(&self) -> Option<(&Path, u64)> {
        self.live.as_ref().map(|live| (live.path.as_path(), live.synced))
    }

    /// True when the log stopped because somebody removed, replaced or cut the journal. Everything that it was to keep has
    /// been written into the file before.
    pub fn is_journal_displaced(&self) -> bool {
        self.journal_displaced
    }

    /// True when a write or a sync has failed: nothing more is written or called durable.
    pub fn has_failed(&self) -> bool {
        self.latched
    }

    /// True when written bytes are not durable yet.
    pub fn is_unsynced(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.durable < live.written)
    }

    /// True when the timeline holds a file of this name, or has held it: what was purged is part of the history, and no other
    /// file may come in its place.
    pub fn holds(&self, name: &str) -> bool {
        self.files.iter().any(|file| file == name) || is_purged(&self.purged, name)
    }

    /// Takes off what another thread has purged since. The one who writes the live file alone writes the index of its
    /// timeline, so that neither waits for the other: until the next file begins the index may list what was purged.
    pub fn forget_purged(&mut self) {
        self.purged = purge_record::read(&*self.storage, &self.folder);
        self.files.retain(|name| !is_purged(&self.purged, name));
    }

    /// Whether everything before `at` lies before `by`, a place in one of the timeline's files. What was purged, on the operator's
    /// word, lies before all that is left: nobody can confirm any more that he has it.
    pub fn is_covered(&self, at: &Position, by: &Position) -> bool {
        is_covered(at, by, &self.files)
            || (*at.file != *by.file
                && is_purged(&self.purged, &at.file)
                && self.files.iter().any(|file| **file == *by.file))
    }

    /// The timeline's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens one of the timeline's files for reading.
    ///
    /// # Errors
    /// As [`Storage::open_read`].
    pub fn open_read(&self, name: &str) -> io::Result<Box<dyn ReadFile>> {
        self.storage.open_read(&self.folder.join(name))
    }

    /// Names of the timeline's files, the live one last; see [`LogWriter::forget_purged`].
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Reads the durable bytes of the live file from `from` on. Between sessions all of them stand in the file.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read_live(&self, from: u64) -> Result<Vec<u8>, LogError> {
        let Some(live) = &self.live else { return Ok(Vec::new()) };
        let failed = |error| LogError::Io { action: "read", path: live.path.clone(), error };
        let len = usize::try_from(live.durable.min(live.in_file).saturating_sub(from)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        match live.file.read_full_at(&mut bytes, from).map_err(failed)? {
            read if read == len => Ok(bytes),
            _ => Err(failed(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Appends bytes to the live file with one positioned vectored write where the system takes them all.
    ///
    /// # Errors
    /// When they cannot be written; the writer is then latched.
    ///
    /// # Panics
    /// When no file was begun: that is an error of ours.
    pub fn append(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), LogError> {
        self.check()?;
        if let Some(journal) = self.journal.as_mut().filter(|_| self.journaling) {
            parts.iter().for_each(|part| journal.stage(part));
        }
        let live = self.live.as_mut().expect("append before the first file was begun");
        debug_assert_eq!(live.in_file, live.written, "append before the write behind");
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if let Err(error) = live.file.write_all_at(parts, live.in_file) {
            return Err(self.latch("write to", error));
        }
        live.in_file += len;
        live.written = live.in_file;
        Ok(())
    }

    /// Makes `parts` and everything before them durable through the journal: one write of the journal, none of the file.
    /// [`LogWriter::write_behind`] must follow before anything else. False, and nothing was done, when they are too
    /// much for the journal: then [`LogWriter::append`] and [`LogWriter::sync`] do it.
    ///
    /// # Errors
    /// When the journal cannot be written; the writer is then latched.
    pub fn commit<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]> + Clone) -> Result<bool, LogError> {
        self.check()?;
        let Some(live) = self.live.as_mut() else { return Ok(false) };
        let len: usize = parts.clone().map(<[u8]>::len).sum();
        if len == 0 && live.durable == live.written {
            return Ok(true); // Another sync has covered it.
        }
        let Some(journal) = self.journal.as_mut().filter(|_| self.journaling) else { return Ok(false) };
        if !journal.has_room_for(len) {
            return Ok(false);
        }
        parts.for_each(|part| journal.stage(part));
        if let Err(error) = journal.commit() {
            self.latched = true;
            return Err(LogError::Io { action: "write to", path: journal.path().to_owned(), error });
        }
        live.written += len as u64;
        live.durable = live.written;
        Ok(true)
    }

    /// Writes into the file what [`LogWriter::commit`] has made durable in the journal.
    ///
    /// # Errors
    /// When it cannot be written; the writer is then latched, and the bytes are in the journal.
    pub fn write_behind(&mut self) -> Result<(), LogError> {
        self.check()?;
        let (Some(live), Some(journal)) = (&mut self.live, &mut self.journal) else { return Ok(()) };
        if live.in_file < live.written {
            let bytes = journal.staged_from(live.in_file);
            if let Err(error) = live.file.write_all_at(&mut [IoSlice::new(bytes)], live.in_file) {
                return Err(self.latch("write to", error));
            }
            live.in_file = live.written;
        }
        if self.journaling && live.durable == live.written {
            journal.restart(live.written);
        }
        if self.journaling {
            live.begin_writeback();
        }
        Ok(())
    }

    /// Makes everything written durable by a sync of the file. Does nothing when it is already.
    ///
    /// # Errors
    /// When the sync fails; the writer is then latched, for a second fdatasync could succeed without the bytes.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.check()?;
        if !self.is_unsynced() {
            return Ok(());
        }
        self.sync_file()
    }

    /// Syncs the file itself, whatever the journal holds, unless that was done.
    fn sync_file(&mut self) -> Result<(), LogError> {
        self.finish_background_sync()?;
        self.check_in_place()?;
        let Some(live) = self.live.as_mut() else { return Ok(()) };
        debug_assert_eq!(live.in_file, live.written, "sync before the write behind");
        if live.synced < live.in_file
            && let Err(error) = live.file.sync_data()
        {
            return Err(self.latch("sync", error));
        }
        self.synced_through(self.live.as_ref().map_or(0, |live| live.in_file));
        Ok(())
    }

    /// True when a sync of the file should begin in the background, whether somebody waits for it or not: much waits
    /// to be written to the disk, or the journal needs its space back.
    pub fn wants_background_sync(&self) -> bool {
        let waiting =
            self.live.as_ref().is_some_and(|live| live.in_file - live.synced >= BACKGROUND_SYNC_BYTES);
        !self.syncer.is_busy() && (waiting || self.journal.as_ref().is_some_and(Journal::is_half_full))
    }

    /// True while a background sync runs or its end was not noticed.
    pub fn is_syncing(&self) -> bool {
        self.syncer.is_busy()
    }

    /// Begins a sync of everything written in the background, if something waits for one and none is running. Returns
    /// how many bytes it will cover, if one was begun.
    ///
    /// # Errors
    /// When the log has failed, or there can be no background thread and the sync that is made instead fails.
    pub fn begin_background_sync(&mut self) -> Result<Option<u64>, LogError> {
        self.check()?;
        let Some(live) = self.live.as_ref().filter(|live| live.synced < live.in_file) else {
            return Ok(None);
        };
        if self.syncer.is_busy() {
            return Ok(None);
        }
        let bytes = live.in_file - live.synced;
        self.check_in_place()?;
        let Some(live) = self.live.as_ref() else { return Ok(None) };
        match self.syncer.begin(live.file.clone(), live.in_file) {
            Ok(()) => Ok(Some(bytes)),
            Err(_) => self.sync_file().map(|()| None),
        }
    }

    /// Notices the end of a background sync: how long it took, if one has ended since the last call.
    ///
    /// # Errors
    /// When it failed; the writer is then latched.
    pub fn end_background_sync(&mut self) -> Result<Option<Duration>, LogError> {
        match self.syncer.take_ended() {
            Some(synced) => self.take_synced(synced).map(Some),
            None => Ok(None),
        }
    }

    fn finish_background_sync(&mut self) -> Result<(), LogError> {
        match self.syncer.wait() {
            Some(synced) => self.take_synced(synced).map(|_| ()),
            None => Ok(()),
        }
    }

    fn take_synced(&mut self, synced: Synced) -> Result<Duration, LogError> {
        match synced.result {
            Ok(()) => {
                self.synced_through(synced.through);
                self.write_mark();
                Ok(synced.took)
            }
            Err(error) => Err(self.latch("sync", error)),
        }
    }

    /// A sync of the live file has covered everything before `offset`.
    fn synced_through(&mut self, offset: u64) {
        let Some(live) = self.live.as_mut() else { return };
        live.synced_through(offset);
        if let Some(journal) = self.journal.as_mut() {
            journal.release(live.synced);
            if self.journaling && live.durable == live.written {
                journal.restart(live.written);
            }
        }
    }

    /// True when it is time to mark that everything before `boundary` is sound; then [`LogWriter::mark_when_synced`] follows.
    pub fn wants_mark(&self, boundary: u64) -> bool {
        boundary >= self.marked + self.storage.mark_bytes().max(MARK_COST * self.marks.last_len() as u64)
    }

    /// Marks what is known when the sync that was just begun has covered it. [`Known::offset`] must be a boundary that is
    /// written.
    pub fn mark_when_synced(&mut self, known: Known) {
        self.to_mark = Some(known);
    }

    /// Marks what is known, now, if that says more than the last mark. Nothing is to be written any more: the session ends.
    pub fn mark(&mut self, known: Known) {
        self.to_mark = Some(known).filter(|known| known.offset > self.marked);
        self.write_mark();
    }

    /// Writes the mark, if there is one to be written and a sync has covered what it says.
    fn write_mark(&mut self) {
        let Some(live) = self.live.as_ref().filter(|_| !self.latched) else { return };
        let Some(known) = self.to_mark.take_if(|known| known.offset <= live.synced) else { return };
        self.marked = known.offset;
        // Without it the next start reads more, and that is all.
        let _ = self.marks.write(&*self.storage, &self.folder, &live.name, &*live.file, &known);
    }

    /// Drops what was appended after `offset`, the last boundary: the beginning of a transaction that the source will
    /// send again. Everything before it is synced.
    ///
    /// # Errors
    /// When the cut or the sync fails; the writer is then latched.
    pub fn cut_to(&mut self, offset: u64) -> Result<(), LogError> {
        self.check()?;
        self.finish_background_sync()?;
        // Who was told that the rest is synced must find it under its name.
        self.check_in_place()?;
        let Some(live) = self.live.as_mut() else { return Ok(()) };
        assert!(offset <= live.written, "a cut at {offset} lies past the end of {}", live.name);
        let result = if offset < live.written { live.file.truncate(offset) } else { Ok(()) };
        if let Err(error) = result.and_then(|()| live.file.sync_data()) {
            return Err(self.latch("cut", error));
        }
        live.cut_to(offset);
        self.checkpoint()?;
        self.begin_staging();
        Ok(())
    }

    /// Seals the live file, if there is one, and begins another.
    ///
    /// # Errors
    /// When the name is taken, or a step fails (the writer is then latched).
    pub fn begin_file(&mut self, name: &str) -> Result<(), LogError> {
        if self.holds(name) {
            return Err(LogError::FileExists(name.to_owned()));
        }
        self.check()?;
        // The sealed file must be whole on disk before a later one can hold anything.
        self.sync_file()?;
        self.checkpoint()?;
        // Its descriptor goes before the new file needs one: with hundreds of sources that begin a file at once, each would
        // hold one and wait for another.
        if let Some(live) = &mut self.live {
            live.close();
        }
        let path = self.folder.join(name);
        let result = self.make_file(name, &path);
        let file = result.map_err(|error| {
            self.latched = true;
            LogError::Io { action: "begin", path: path.clone(), error }
        })?;
        let start = BINLOG_MAGIC.len() as u64;
        self.live = Some(Live::synced(name.into(), path, file, start));
        (self.marked, self.to_mark) = (start, None);
        self.begin_staging();
        Ok(())
    }

    fn make_file(&mut self, name: &str, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let file = self.storage.create(path)?;
        file.write_all_at(&mut [IoSlice::new(&BINLOG_MAGIC)], 0)?;
        file.sync_data()?;
        // Sync the folder before anything is acknowledged in the new file: a crash could otherwise lose its name. The
        // index's own replacement syncs the folder after both names are in it.
        self.forget_purged();
        self.files.push(name.to_owned());
        index::write(&*self.storage, &self.folder, &self.files)?;
        Ok(file)
    }

    fn checkpoint(&mut self) -> Result<(), LogError> {
        let Some(journal) = self.journal.as_mut() else { return Ok(()) };
        let result = journal.checkpoint();
        let path = journal.path().to_owned();
        result.map_err(|error| {
            self.latched = true;
            LogError::Io { action: "write to", path, error }
        })
    }

    /// The journal follows the live file from its end on.
    fn begin_staging(&mut self) {
        let timeline = self.folder.file_name().unwrap_or_default().to_string_lossy();
        if let (Some(journal), Some(live), true) = (&mut self.journal, &self.live, self.journaling) {
            debug_assert_eq!(live.durable, live.written);
            journal.begin_file(&timeline, &live.name, live.written);
        }
    }

    /// A sync of a file that nobody will find again must not pass for safety.
    fn check_in_place(&mut self) -> Result<(), LogError> {
        let Some(live) = &self.live else { return Ok(()) };
        let journal = self.journal.as_ref();
        let in_place = live.file.is_whole_at(&live.path, live.in_file).and_then(|live_is| {
            let journal_is = journal.map_or(Ok(true), Journal::is_in_place)?;
            Ok((live_is, journal_is))
        });
        let displaced = match in_place {
            Ok((true, true)) => return Ok(()),
            Ok((true, false)) => {
                self.journal_displaced = live.in_file == live.written;
                journal.map(Journal::path).unwrap_or(&self.folder).to_owned()
            }
            Ok((false, _)) => live.path.clone(),
            Err(error) => return Err(self.latch("look at", error)),
        };
        self.latched = true;
        Err(LogError::Displaced(displaced))
    }

    fn check(&self) -> Result<(), LogError> {
        if self.latched { Err(LogError::Latched) } else { Ok(()) }
    }

    /// Nothing is written or synced after this.
    fn latch(&mut self, action: &'static str, error: io::Error) -> LogError {
        self.latched = true;
        let path = self.live.as_ref().map_or_else(|| self.folder.clone(), |live| live.path.clone());
        LogError::Io { action, path, error }
    }
}

#[cfg(test)]
mod tests;
