//! Appending to the live file.
//!
//! One thread owns the writer. It appends verified events, syncs when an acknowledgement or the interval asks for it,
//! and starts the next file when the source does. The first failure of a write or a sync latches: the bytes on disk are
//! then in an unknown state, so nothing more is appended, synced or called durable. The caller drops the writer and
//! opens the timeline again through [`super::recover`].

use super::recover::{LiveFile, Recovered};
use super::storage::{Storage, StorageFile};
use super::{Durable, Position, Written, index};
use codec::event::BINLOG_MAGIC;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

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
    file: Box<dyn StorageFile>,
    /// End of the bytes given to the operating system.
    written: u64,
    /// End of the bytes that fdatasync has covered. Always <= `written`.
    durable: u64,
}

/// The end of a timeline that is open for appending.
#[derive(Debug)]
pub struct LogWriter {
    storage: Arc<dyn Storage>,
    folder: PathBuf,
    files: Vec<String>,
    live: Option<Live>,
    latched: bool,
}

impl LogWriter {
    /// Takes over a recovered timeline. Returns the writer; everything in the live file counts as durable, as
    /// [`super::recover::recover`] has synced it.
    pub fn new(storage: Arc<dyn Storage>, folder: &Path, recovered: Recovered) -> LogWriter {
        let live = recovered.live.map(|LiveFile { name, file, len, .. }| Live {
            path: folder.join(&*name),
            name,
            file,
            written: len,
            durable: len,
        });
        LogWriter { storage, folder: folder.to_owned(), files: recovered.files, live, latched: false }
    }

    /// End of the written bytes; `None` before the first file.
    pub fn written(&self) -> Option<Written> {
        self.live.as_ref().map(|live| Written(Position { file: live.name.clone(), offset: live.written }))
    }

    /// End of the synced bytes; `None` before the first file.
    pub fn durable(&self) -> Option<Durable> {
        self.live.as_ref().map(|live| Durable(Position { file: live.name.clone(), offset: live.durable }))
    }

    /// True when written bytes wait for a sync.
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
        if self.latched {
            return Err(LogError::Latched);
        }
        let live = self.live.as_mut().expect("append before the first file was begun");
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        match live.file.write_all_at(parts, live.written) {
            Ok(()) => {
                live.written += len;
                Ok(())
            }
            Err(error) => {
                self.latched = true;
                Err(LogError::Io { action: "write to", path: live.path.clone(), error })
            }
        }
    }

    /// Makes everything written durable. Does nothing when a sync has covered it already.
    ///
    /// # Errors
    /// When the sync fails; the writer is then latched, for a second fdatasync could succeed without the bytes.
    pub fn sync(&mut self) -> Result<Option<Durable>, LogError> {
        if self.latched {
            return Err(LogError::Latched);
        }
        if let Some(live) = self.live.as_mut().filter(|live| live.durable < live.written) {
            if let Err(error) = live.file.sync_data() {
                self.latched = true;
                return Err(LogError::Io { action: "sync", path: live.path.clone(), error });
            }
            live.durable = live.written;
        }
        Ok(self.durable())
    }

    /// Drops what was appended after `offset`, the last boundary: the beginning of a transaction that the source will
    /// send again. Everything before it is synced.
    ///
    /// # Errors
    /// When the cut or the sync fails; the writer is then latched.
    pub fn cut_to(&mut self, offset: u64) -> Result<(), LogError> {
        if self.latched {
            return Err(LogError::Latched);
        }
        let Some(live) = self.live.as_mut() else { return Ok(()) };
        assert!(offset <= live.written, "a cut at {offset} lies past the end of {}", live.name);
        let result = if offset < live.written { live.file.truncate(offset) } else { Ok(()) };
        if let Err(error) = result.and_then(|()| live.file.sync_data()) {
            self.latched = true;
            return Err(LogError::Io { action: "cut", path: live.path.clone(), error });
        }
        (live.written, live.durable) = (offset, offset);
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
        // The sealed file must be whole on disk before a later one can hold anything.
        self.sync()?;
        let path = self.folder.join(name);
        let result = self.make_file(name, &path);
        let file = result.map_err(|error| {
            self.latched = true;
            LogError::Io { action: "begin", path: path.clone(), error }
        })?;
        let start = BINLOG_MAGIC.len() as u64;
        self.live = Some(Live { name: name.into(), path, file, written: start, durable: start });
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
        LogWriter::new(Arc::new(storage.clone()), dir, recovered)
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
            assert_eq!(log.sync().unwrap().unwrap().position().offset, 5);
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
}
