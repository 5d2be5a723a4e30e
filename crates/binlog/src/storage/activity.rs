//! Which operations of the disk are under way, for a look from another thread: who waits for a disk that does not answer
//! cannot say so himself.
//!
//! An operation costs two additions to counters that nobody else writes to; the clock is the onlooker's.

use super::lock::Lock;
use crate::storage::{BackgroundSync, Entry, Found, ReadAt, ReadFile, Storage, StorageFile};
use std::fmt;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A durable write of the journal.
    WriteJournal,
    /// A write of a binary log, into the page cache most often.
    Write,
    /// An fdatasync of a binary log.
    Sync,
    /// Making, renaming, removing, opening or measuring files, listing and syncing their folders.
    Names,
    /// A read.
    Read,
}

impl Operation {
    /// Every kind.
    pub const ALL: [Operation; 5] =
        [Operation::WriteJournal, Operation::Write, Operation::Sync, Operation::Names, Operation::Read];
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::WriteJournal => "a write of the journal",
            Operation::Write => "a write of the binary log",
            Operation::Sync => "a sync of the binary log",
            Operation::Names => "a change or a look-up of file names",
            Operation::Read => "a read of the copy",
        })
    }
}

/// How many operations of one kind were begun, and how many have ended.
#[derive(Debug, Default)]
struct Count {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// The operations on the files of one source.
#[derive(Debug, Default)]
pub struct DiskActivity([Count; Operation::ALL.len()]);

impl DiskActivity {
    fn during<T>(&self, operation: Operation, work: impl FnOnce() -> T) -> T {
        let count = &self.0[operation as usize];
        count.begun.fetch_add(1, Ordering::Relaxed);
        let result = work();
        count.ended.fetch_add(1, Ordering::Release);
        result
    }

    /// Does `work` as an operation that is under way meanwhile: for tests of onlookers.
    pub fn during_any<T>(&self, work: impl FnOnce() -> T) -> T {
        self.during(Operation::Names, work)
    }

    /// How many operations have ended.
    pub fn ended(&self) -> u64 {
        self.0.iter().map(|count| count.ended.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }

    /// Whether any operation is under way.
    pub fn is_any_under_way(&self) -> bool {
        Operation::ALL.iter().any(|operation| self.under_way(*operation).is_some())
    }

    /// How many operations of this kind have ended, if at least one is under way. While the number stays, none ends.
    pub fn under_way(&self, operation: Operation) -> Option<u64> {
        let count = &self.0[operation as usize];
        let ended = count.ended.load(Ordering::Acquire);
        (count.begun.load(Ordering::Relaxed) > ended).then_some(ended)
    }
}

/// A storage whose operations can be looked at.
#[derive(Debug)]
pub struct WatchedStorage<S> {
    storage: S,
    activity: Arc<DiskActivity>,
}

impl<S: Storage> WatchedStorage<S> {
    /// Counts what is done with `storage` in `activity`.
    pub fn new(storage: S, activity: Arc<DiskActivity>) -> WatchedStorage<S> {
        WatchedStorage { storage, activity }
    }

    fn names<T>(&self, work: impl FnOnce(&S) -> T) -> T {
        self.activity.during(Operation::Names, || work(&self.storage))
    }

    fn file(
        &self,
        writes: Operation,
        open: impl FnOnce(&S) -> io::Result<Box<dyn StorageFile>>,
    ) -> io::Result<Box<dyn StorageFile>> {
        let file = self.names(open)?;
        Ok(Box::new(WatchedFile { file, writes, activity: self.activity.clone() }))
    }
}

impl<S: Storage> Storage for WatchedStorage<S> {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.file(Operation::Write, |storage| storage.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.file(Operation::Write, |storage| storage.open(path))
    }

    fn open_synced(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.file(Operation::WriteJournal, |storage| storage.open_synced(path))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.names(|storage| storage.create_dir(path))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.names(|storage| storage.remove_file(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.names(|storage| storage.rename(from, to))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.names(|storage| storage.sync_dir(path))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        self.names(|storage| storage.list(folder))
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        self.names(|storage| storage.look(path))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.activity.during(Operation::Read, || self.storage.read(path))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let file = self.names(|storage| storage.open_read(path))?;
        Ok(Box::new(WatchedReading { file, activity: self.activity.clone() }))
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        self.names(|storage| storage.lock(path))
    }

    fn beside(&self) -> Arc<dyn Storage> {
        self.storage.beside()
    }

    fn mark_bytes(&self) -> u64 {
        self.storage.mark_bytes()
    }

    fn background_sync(&self) -> Box<dyn BackgroundSync> {
        self.storage.background_sync()
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Box<dyn StorageFile>,
    /// What a write to it counts as.
    writes: Operation,
    activity: Arc<DiskActivity>,
}

impl ReadAt for WatchedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.activity.during(Operation::Read, || self.file.read_at(buffer, offset))
    }
}

impl ReadFile for WatchedFile {
    fn size(&self) -> io::Result<u64> {
        self.activity.during(Operation::Names, || self.file.size())
    }
}

impl StorageFile for WatchedFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.activity.during(self.writes, || self.file.write_all_at(parts, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.activity.during(Operation::Sync, || self.file.sync_data())
    }

    fn begin_writeback(&self, bytes: Range<u64>) {
        self.activity.during(self.writes, || self.file.begin_writeback(bytes));
    }

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.activity.during(Operation::Names, || self.file.stands_at(path))
    }

    fn is_whole_at(&self, path: &Path, len: u64) -> io::Result<bool> {
        self.activity.during(Operation::Names, || self.file.is_whole_at(path, len))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.activity.during(Operation::Write, || self.file.truncate(len))
    }

    fn forget_cached_from(&self, from: u64) {
        self.file.forget_cached_from(from);
    }
}

#[derive(Debug)]
struct WatchedReading {
    file: Box<dyn ReadFile>,
    activity: Arc<DiskActivity>,
}

impl ReadAt for WatchedReading {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.activity.during(Operation::Read, || self.file.read_at(buffer, offset))
    }
}

impl ReadFile for WatchedReading {
    fn size(&self) -> io::Result<u64> {
        self.activity.during(Operation::Names, || self.file.size())
    }
}

#[cfg(test)]
mod tests {
    use super::super::posix::PosixStorage;
    use super::*;

    #[test]
    fn an_operation_is_under_way_until_it_ends() {
        let activity = Arc::new(DiskActivity::default());
        assert_eq!(activity.under_way(Operation::Sync), None);
        activity.during(Operation::Sync, || {
            assert_eq!(activity.under_way(Operation::Sync), Some(0));
            assert_eq!(activity.under_way(Operation::Write), None);
            activity.during(Operation::Sync, || assert_eq!(activity.under_way(Operation::Sync), Some(0)));
            assert_eq!(activity.under_way(Operation::Sync), Some(1), "one of two has ended");
        });
        assert_eq!(activity.under_way(Operation::Sync), None);
        assert_eq!((activity.ended(), activity.is_any_under_way()), (2, false));
    }

    #[test]
    fn a_watched_file_does_what_the_file_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let storage = WatchedStorage::new(PosixStorage, Arc::default());
        let file = storage.create(&path).unwrap();
        file.write_all_at(&mut [IoSlice::new(b"abc")], 0).unwrap();
        file.sync_data().unwrap();
        let mut read = [0; 8];
        assert_eq!((file.read_at(&mut read, 1).unwrap(), &read[..2]), (2, &b"bc"[..]));
        file.truncate(1).unwrap();
        assert_eq!((file.size().unwrap(), file.stands_at(&path).unwrap()), (1, true));
        storage.rename(&path, &dir.path().join("g")).unwrap();
        assert!(!file.stands_at(&path).unwrap());
        assert!(Operation::ALL.iter().all(|operation| storage.activity.under_way(*operation).is_none()));
    }

    /// Whether the page cache has the bytes at `offset`; `None` where the file system cannot be asked.
    fn is_cached(file: &std::fs::File, offset: u64) -> Option<bool> {
        let mut byte = [0];
        let mut parts = [std::io::IoSliceMut::new(&mut byte)];
        match rustix::io::preadv2(file, &mut parts, offset, rustix::io::ReadWriteFlags::NOWAIT) {
            Ok(_) => Some(true),
            Err(rustix::io::Errno::AGAIN) => Some(false),
            Err(_) => None,
        }
    }

    /// A file of gigabytes whose beginning was synced long ago need not be read from the disk again at a start.
    #[test]
    fn only_what_may_be_wrong_is_forgotten() {
        const FAR: u64 = 1 << 30;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        let file = WatchedStorage::new(PosixStorage, Arc::default()).create(&path).unwrap();
        for offset in [0, FAR] {
            file.write_all_at(&mut [IoSlice::new(&[1; 4096])], offset).unwrap();
        }
        file.sync_data().unwrap();
        let plain = std::fs::File::open(&path).unwrap();
        let read = |offset| assert_eq!(file.read_at(&mut [0], offset).unwrap(), 1);
        file.forget_cached();
        if is_cached(&plain, FAR) != Some(false) {
            eprintln!(
                "skipped: {} is on a file system whose cache cannot be asked or emptied",
                path.display()
            );
            return;
        }
        read(0);
        read(FAR);
        file.forget_cached_from(FAR);
        let cached = [FAR, 0].map(|offset| is_cached(&plain, offset).unwrap());
        assert_eq!(cached, [false, true], "at the end, at the beginning");
    }
}
