//! Appending to the live file.
//!
//! One thread owns the writer. It appends verified events and makes them durable in one of two ways: through the
//! [`Journal`], when an acknowledgement waits for them, or by a sync of the file itself, in the background where it can
//! wait. The first failure of a write or a sync latches: the bytes on disk are then in an unknown state, so nothing more
//! is appended, synced or called durable. The caller drops the writer and opens the timeline again through
//! [`super::recover`], after the journal has put back what it holds.

use super::journal::Journal;
use super::recover::{LiveFile, Recovered};
use super::storage::{Storage, StorageFile};
use super::syncer::{Synced, Syncer};
use super::{Durable, Position, Written, index};
use codec::event::BINLOG_MAGIC;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// When so many bytes of the file wait for a sync, one begins in the background. Small enough that the disk never has
/// much to write at once, which would hold up everybody's syncs; large enough for its full speed.
pub const BACKGROUND_SYNC_BYTES: u64 = 8 << 20;

/// Why the log cannot go on.
#[derive(Debug, Error)]
pub enum LogError {
    /// The operating system refused.
    #[error("cannot {action} {path}: {error}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// The source starts a file whose name this timeline has already.
    #[error("the source starts {0} again, which this timeline holds already: its logs were reset")]
    FileExists(String),
    /// An earlier failure; see it in the log.
    #[error("the log stopped at an earlier write or sync error")]
    Latched,
}

impl LogError {
    /// True when space may return by itself.
    pub fn is_full_disk(&self) -> bool {
        matches!(self, LogError::Io { error, .. }
            if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

#[derive(Debug)]
struct Live {
    name: Arc<str>,
    path: PathBuf,
    file: Arc<dyn StorageFile>,
    /// End of the bytes in the file, as given to the operating system.
    in_file: u64,
    /// End of the bytes given to the operating system, in the file or in the journal. Above `in_file` only between
    /// [`LogWriter::commit`] and [`LogWriter::write_behind`].
    written: u64,
    /// End of the bytes that are on stable storage, in the file or in the journal. Always <= `written`.
    durable: u64,
    /// End of the bytes that a sync of the file has covered. Always <= `durable` and <= `in_file`.
    synced: u64,
}

/// The end of a timeline that is open for appending.
#[derive(Debug)]
pub struct LogWriter {
    storage: Arc<dyn Storage>,
    folder: PathBuf,
    files: Vec<String>,
    live: Option<Live>,
    journal: Option<Journal>,
    /// What is appended is staged for the journal.
    journaling: bool,
    syncer: Syncer,
    latched: bool,
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
        let live = recovered.live.map(|LiveFile { name, file, len, .. }| Live {
            path: folder.join(&*name),
            name,
            file: Arc::from(file),
            in_file: len,
            written: len,
            durable: len,
            synced: len,
        });
        let files = recovered.files;
        let (folder, syncer) = (folder.to_owned(), Syncer::default());
        LogWriter { storage, folder, files, live, journal, journaling: false, syncer, latched: false }
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
        self.live.as_ref().map(|live| Written(Position { file: live.name.clone(), offset: live.written }))
    }

    /// End of the durable bytes; `None` before the first file.
    pub fn durable(&self) -> Option<Durable> {
        self.live.as_ref().map(|live| Durable(Position { file: live.name.clone(), offset: live.durable }))
    }

    /// True when written bytes are not durable yet.
    pub fn is_unsynced(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.durable < live.written)
    }

    /// True when the timeline holds a file of this name.
    pub fn holds(&self, name: &str) -> bool {
        self.files.iter().any(|file| file == name)
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
                Ok(synced.took)
            }
            Err(error) => Err(self.latch("sync", error)),
        }
    }

    /// A sync of the live file has covered everything before `offset`.
    fn synced_through(&mut self, offset: u64) {
        let Some(live) = self.live.as_mut() else { return };
        live.synced = live.synced.max(offset);
        live.durable = live.durable.max(live.synced);
        if let Some(journal) = self.journal.as_mut() {
            journal.release(live.synced);
            if self.journaling && live.durable == live.written {
                journal.restart(live.written);
            }
        }
    }

    /// Drops what was appended after `offset`, the last boundary: the beginning of a transaction that the source will
    /// send again. Everything before it is synced.
    ///
    /// # Errors
    /// When the cut or the sync fails; the writer is then latched.
    pub fn cut_to(&mut self, offset: u64) -> Result<(), LogError> {
        self.check()?;
        self.finish_background_sync()?;
        let Some(live) = self.live.as_mut() else { return Ok(()) };
        assert!(offset <= live.written, "a cut at {offset} lies past the end of {}", live.name);
        let result = if offset < live.written { live.file.truncate(offset) } else { Ok(()) };
        if let Err(error) = result.and_then(|()| live.file.sync_data()) {
            return Err(self.latch("cut", error));
        }
        (live.in_file, live.written, live.durable, live.synced) = (offset, offset, offset, offset);
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
        let path = self.folder.join(name);
        let result = self.make_file(name, &path);
        let file = result.map_err(|error| {
            self.latched = true;
            LogError::Io { action: "begin", path: path.clone(), error }
        })?;
        let start = BINLOG_MAGIC.len() as u64;
        self.live = Some(Live {
            name: name.into(),
            path,
            file: Arc::from(file),
            in_file: start,
            written: start,
            durable: start,
            synced: start,
        });
        self.begin_staging();
        Ok(())
    }

    fn make_file(&mut self, name: &str, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let file = self.storage.create(path)?;
        file.write_all_at(&mut [IoSlice::new(&BINLOG_MAGIC)], 0)?;
        file.sync_data()?;
        // Sync the folder before anything is acknowledged in the new file: a crash could otherwise lose its name. The
        // index's own replacement syncs the folder after both names are in it.
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
mod tests {
    use super::super::recover::{Tail, recover, test_files::FileBuilder};
    use super::super::storage::PosixStorage;
    use super::super::storage::double::FaultyStorage;
    use super::*;
    use std::sync::atomic::Ordering;

    fn writer(storage: &FaultyStorage, dir: &Path) -> LogWriter {
        let recovered = recover(&PosixStorage, dir, Tail::SaveAside).unwrap();
        LogWriter::new(Arc::new(storage.clone()), dir, recovered, None)
    }

    /// A writer of the timeline `0001-u` in `source`, with a journal and a file `b.000001` that holds its magic only.
    fn journaled(storage: &FaultyStorage, source: &Path) -> LogWriter {
        let timeline = source.join("0001-u");
        std::fs::create_dir(&timeline).unwrap();
        let mut log = writer(storage, &timeline);
        log.use_journal().unwrap();
        log.begin_file("b.000001").unwrap();
        log
    }

    /// What a start after a crash makes of the folder: the live file's content, and what was said.
    fn after_a_crash(source: &Path) -> (Vec<u8>, Vec<String>) {
        let mut remarks = Vec::new();
        Journal::open(&PosixStorage, source, &mut remarks).unwrap().unwrap();
        (std::fs::read(source.join("0001-u/b.000001")).unwrap(), remarks)
    }

    fn ladder(log: &LogWriter) -> (u64, u64) {
        (log.written().unwrap().position().offset, log.durable().unwrap().position().offset)
    }

    #[test]
    fn files_follow_one_another() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = writer(&FaultyStorage::sound(), dir.path());
        assert_eq!((log.written(), log.durable()), (None, None));
        log.begin_file("mysql-bin.000007").unwrap();
        let file = FileBuilder::new().previous_gtids("").transaction(1, 30).finish();
        log.append(&mut [IoSlice::new(&file[4..60]), IoSlice::new(&file[60..])]).unwrap();
        assert_eq!(log.written().unwrap().position().offset, file.len() as u64);
        assert_eq!(log.durable().unwrap().position().offset, 4);
        log.begin_file("mysql-bin.000008").unwrap();
        assert_eq!(std::fs::read(dir.path().join("mysql-bin.000007")).unwrap(), file);
        assert_eq!(index::read(dir.path()).unwrap(), ["mysql-bin.000007", "mysql-bin.000008"]);
        assert!(matches!(log.begin_file("mysql-bin.000007"), Err(LogError::FileExists(_))));
    }

    #[test]
    fn no_sync_is_issued_that_another_covers() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let mut log = writer(&storage, dir.path());
        log.begin_file("b.1").unwrap();
        log.append(&mut [IoSlice::new(b"x")]).unwrap();
        let before = storage.syncs.load(Ordering::Relaxed);
        for _ in 0..3 {
            log.sync().unwrap();
            assert_eq!(ladder(&log), (5, 5));
        }
        assert_eq!(storage.syncs.load(Ordering::Relaxed) - before, 1);
    }

    #[test]
    fn after_a_failed_sync_nothing_becomes_durable() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let mut log = writer(&storage, dir.path());
        log.begin_file("b.1").unwrap();
        log.append(&mut [IoSlice::new(b"x")]).unwrap();
        storage.syncs_until_failure.store(0, Ordering::Relaxed);
        assert!(matches!(log.sync(), Err(LogError::Io { action: "sync", .. })));
        // The device would answer the next sync with success; it must not be asked.
        assert!(matches!(log.sync(), Err(LogError::Latched)));
        assert!(matches!(log.append(&mut [IoSlice::new(b"y")]), Err(LogError::Latched)));
        assert!(matches!(log.begin_file("b.2"), Err(LogError::Latched)));
        assert_eq!(log.durable().unwrap().position().offset, 4);
    }

    #[test]
    fn a_full_disk_leaves_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let mut log = writer(&storage, dir.path());
        log.begin_file("b.000001").unwrap();
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 30);
        let boundary = builder.len();
        let file = builder.transaction(2, 300).finish();
        log.append(&mut [IoSlice::new(&file[4..boundary])]).unwrap();
        storage.writes_until_failure.store(0, Ordering::Relaxed);
        let error = log.append(&mut [IoSlice::new(&file[boundary..])]).unwrap_err();
        assert!(error.is_full_disk(), "{error}");
        drop(log);
        let recovered = recover(&PosixStorage, dir.path(), Tail::Discard).unwrap();
        assert_eq!(recovered.resume_at().unwrap().offset, boundary as u64);
    }

    #[test]
    fn a_commit_is_one_durable_write_and_the_file_follows() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let mut log = journaled(&storage, dir.path());
        let before = storage.syncs.load(Ordering::Relaxed);
        assert!(log.commit([&b"one"[..], &b"two"[..]].into_iter()).unwrap());
        assert_eq!((ladder(&log), storage.syncs.load(Ordering::Relaxed) - before), ((10, 10), 1));
        assert_eq!(std::fs::read(dir.path().join("0001-u/b.000001")).unwrap(), BINLOG_MAGIC);
        log.write_behind().unwrap();
        log.append(&mut [IoSlice::new(b"begun ")]).unwrap();
        assert_eq!(ladder(&log), (16, 10));
        assert!(log.commit([&b"ended"[..]].into_iter()).unwrap());
        log.write_behind().unwrap();
        assert!(log.commit(std::iter::empty()).unwrap(), "nothing is left to do");
        assert_eq!((ladder(&log), storage.syncs.load(Ordering::Relaxed) - before), ((21, 21), 2));
        let content = [&BINLOG_MAGIC[..], b"onetwobegun ended"].concat();
        assert_eq!(std::fs::read(dir.path().join("0001-u/b.000001")).unwrap(), content);
        let file = dir.path().join("0001-u/b.000001");
        for lost in [4, 6, 10, 14, 20] {
            // What the page cache held is lost with the machine.
            let cut = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
            cut.set_len(lost).unwrap();
            let journal = std::fs::read(dir.path().join("journal")).unwrap();
            let (found, remarks) = after_a_crash(dir.path());
            assert_eq!(found, content, "{lost} bytes were left");
            assert_eq!(remarks.len(), 1, "{remarks:?}");
            std::fs::write(dir.path().join("journal"), journal).unwrap(); // As it was, for the next round.
        }
        assert_eq!(after_a_crash(dir.path()), (content.clone(), vec![]), "nothing was lost");
        cut_file(&file, 6);
        assert_eq!(after_a_crash(dir.path()).0.len(), 6, "what was put back once is not put back again");
    }

    fn cut_file(path: &Path, len: u64) {
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
    }

    #[test]
    fn a_crash_before_the_file_has_the_bytes_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let mut log = journaled(&storage, dir.path());
        assert!(log.commit([&b"acknowledged"[..]].into_iter()).unwrap());
        storage.writes_until_failure.store(0, Ordering::Relaxed);
        let error = log.write_behind().unwrap_err();
        assert!(error.is_full_disk(), "{error}");
        assert!(matches!(log.commit(std::iter::empty()), Err(LogError::Latched)));
        assert!(log.take_journal().is_none());
        assert_eq!(after_a_crash(dir.path()).0, [&BINLOG_MAGIC[..], b"acknowledged"].concat());
    }

    #[test]
    fn a_failed_write_of_the_journal_makes_nothing_durable() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let mut log = journaled(&storage, dir.path());
        storage.syncs_until_failure.store(0, Ordering::Relaxed);
        assert!(matches!(log.commit([&b"x"[..]].into_iter()), Err(LogError::Io { .. })));
        assert_eq!(ladder(&log), (4, 4));
        assert!(matches!(log.write_behind(), Err(LogError::Latched)));
    }

    #[test]
    fn what_is_too_much_for_the_journal_is_synced_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = journaled(&FaultyStorage::sound(), dir.path());
        let much = vec![7; super::super::journal::RECORD_LEN_MAX];
        assert!(!log.commit([&much[..]].into_iter()).unwrap());
        log.append(&mut [IoSlice::new(&much)]).unwrap();
        assert!(!log.commit([&b"end"[..]].into_iter()).unwrap(), "its beginning is in no record");
        log.append(&mut [IoSlice::new(b"end")]).unwrap();
        log.sync().unwrap();
        assert!(log.commit([&b"next"[..]].into_iter()).unwrap());
        log.write_behind().unwrap();
        let (found, _) = after_a_crash(dir.path());
        assert_eq!(found.len(), 4 + much.len() + 7);
    }

    #[test]
    fn the_journal_gets_its_space_back_from_the_background_sync() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let mut log = journaled(&storage, dir.path());
        let group = [3; 5000];
        let mut background = 0;
        for _ in 0..3 * super::super::journal::JOURNAL_LEN / 8192 {
            assert!(log.commit([&group[..]].into_iter()).unwrap(), "the journal is full");
            log.write_behind().unwrap();
            if log.wants_background_sync() {
                background += u64::from(log.begin_background_sync().unwrap().is_some());
                while log.end_background_sync().unwrap().is_none() {
                    std::thread::yield_now();
                }
            }
        }
        assert!((4..9).contains(&background), "{background}");
        let len = log.written().unwrap().position().offset;
        drop(log);
        cut_file(&dir.path().join("0001-u/b.000001"), len - 4 * 5000);
        assert_eq!(after_a_crash(dir.path()).0.len() as u64, len, "the newest records are there");
    }

    #[test]
    fn a_full_journal_falls_back_to_a_sync_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = journaled(&FaultyStorage::sound(), dir.path());
        let group = [3; 5000];
        let mut committed = 0;
        while log.commit([&group[..]].into_iter()).unwrap() {
            log.write_behind().unwrap();
            committed += 1;
        }
        assert!(committed > super::super::journal::JOURNAL_LEN / 8192 - 3, "{committed}");
        log.append(&mut [IoSlice::new(&group)]).unwrap();
        log.sync().unwrap();
        assert!(log.commit([&group[..]].into_iter()).unwrap());
    }

    #[test]
    fn a_failed_background_sync_latches() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let mut log = journaled(&storage, dir.path());
        assert!(log.commit([&b"acknowledged"[..]].into_iter()).unwrap());
        log.write_behind().unwrap();
        storage.syncs_until_failure.store(0, Ordering::Relaxed);
        assert_eq!(log.begin_background_sync().unwrap(), Some(12));
        assert!(log.is_syncing() && log.begin_background_sync().unwrap().is_none());
        // Who syncs for himself learns of it too, before his own sync could succeed without the bytes.
        assert!(matches!(log.begin_file("b.000002"), Err(LogError::Io { action: "sync", .. })));
        assert!(matches!(log.end_background_sync(), Ok(None)));
        assert!(matches!(log.append(&mut [IoSlice::new(b"x")]), Err(LogError::Latched)));
    }

    #[test]
    fn what_was_cut_or_sealed_is_not_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = journaled(&FaultyStorage::sound(), dir.path());
        assert!(log.commit([&b"kept, dropped"[..]].into_iter()).unwrap());
        log.write_behind().unwrap();
        log.cut_to(8).unwrap();
        assert_eq!(after_a_crash(dir.path()), ([&BINLOG_MAGIC[..], b"kept"].concat(), vec![]));
        assert!(log.commit([&b" sealed"[..]].into_iter()).unwrap());
        log.write_behind().unwrap();
        log.begin_file("b.000002").unwrap();
        cut_file(&dir.path().join("0001-u/b.000001"), 5);
        assert_eq!(after_a_crash(dir.path()).0.len(), 5);
        assert!(log.commit([&b"in the second"[..]].into_iter()).unwrap());
        drop(log);
        after_a_crash(dir.path());
        assert_eq!(std::fs::read(dir.path().join("0001-u/b.000002")).unwrap().len(), 17);
    }
}
