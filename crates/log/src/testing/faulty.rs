//! A storage that fails the operation of one's choice.

use crate::lock::Lock;
use crate::storage::{Entry, Found, PosixStorage, ReadAt, ReadFile, Storage, StorageFile};
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Counts down to the failure of one kind of operation; below zero it never fails.
#[derive(Debug, Clone)]
pub struct FaultyStorage {
    /// Writes that succeed before one takes half of its bytes and fails.
    pub writes_until_failure: Arc<AtomicI64>,
    /// Syncs that succeed before one fails.
    pub syncs_until_failure: Arc<AtomicI64>,
    /// Syncs so far.
    pub syncs: Arc<AtomicI64>,
}

impl FaultyStorage {
    /// Fails nothing until told to.
    pub fn sound() -> FaultyStorage {
        FaultyStorage {
            writes_until_failure: Arc::new(AtomicI64::new(i64::MAX)),
            syncs_until_failure: Arc::new(AtomicI64::new(i64::MAX)),
            syncs: Arc::default(),
        }
    }
}

#[derive(Debug)]
struct FaultyFile(Box<dyn StorageFile>, FaultyStorage);

/// A write to it is a write and a sync.
#[derive(Debug)]
struct FaultySyncedFile(FaultyFile);

impl Storage for FaultyStorage {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(FaultyFile(PosixStorage.create(path)?, self.clone())))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(FaultyFile(PosixStorage.open(path)?, self.clone())))
    }
    fn open_synced(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(FaultySyncedFile(FaultyFile(PosixStorage.open_synced(path)?, self.clone()))))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        PosixStorage.create_dir(path)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        PosixStorage.remove_file(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        PosixStorage.rename(from, to)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        PosixStorage.sync_dir(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        PosixStorage.list(folder)
    }
    fn look(&self, path: &Path) -> io::Result<Found> {
        PosixStorage.look(path)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        PosixStorage.read(path)
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        PosixStorage.open_read(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Lock> {
        PosixStorage.lock(path)
    }
    fn beside(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }
}

impl ReadAt for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
}

impl ReadFile for FaultyFile {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

impl StorageFile for FaultyFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        if self.1.writes_until_failure.fetch_sub(1, Ordering::Relaxed) == 0 {
            // A full disk takes part of the bytes.
            if let Some(first) = parts.first() {
                let half = first[..first.len() / 2].to_vec();
                self.0.write_all_at(&mut [IoSlice::new(&half)], offset)?;
            }
            return Err(io::Error::from_raw_os_error(28));
        }
        self.0.write_all_at(parts, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.1.syncs.fetch_add(1, Ordering::Relaxed);
        if self.1.syncs_until_failure.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.0.sync_data()
    }
    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.0.stands_at(path)
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
    fn forget_cached(&self) {
        self.0.forget_cached();
    }
}

impl ReadAt for FaultySyncedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
}

impl ReadFile for FaultySyncedFile {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

impl StorageFile for FaultySyncedFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.0.1.syncs.fetch_add(1, Ordering::Relaxed);
        if self.0.1.syncs_until_failure.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.0.write_all_at(parts, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.0.stands_at(path)
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
    fn forget_cached(&self) {
        self.0.forget_cached();
    }
}
