//! A storage that fails the operation of one's choice.

use super::instead::PosixInstead;
use crate::storage::posix::PosixStorage;
use crate::storage::{ReadAt, ReadFile, Storage, StorageFile};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts down to the failure of one kind of operation; below zero it never fails.
#[derive(Debug, Clone)]
pub struct FaultyStorage {
    /// Writes that succeed before one takes half of its bytes and fails.
    pub writes_until_failure: Arc<AtomicI64>,
    /// Syncs that succeed before one fails.
    pub syncs_until_failure: Arc<AtomicI64>,
    /// Syncs so far.
    pub syncs: Arc<AtomicI64>,
    /// Bytes whose writing to the disk was to begin ahead of a sync.
    pub writebacks: Arc<Mutex<Vec<Range<u64>>>>,
}

impl FaultyStorage {
    /// Fails nothing until told to.
    pub fn sound() -> FaultyStorage {
        FaultyStorage {
            writes_until_failure: Arc::new(AtomicI64::new(i64::MAX)),
            syncs_until_failure: Arc::new(AtomicI64::new(i64::MAX)),
            syncs: Arc::default(),
            writebacks: Arc::default(),
        }
    }
}

impl PosixInstead for FaultyStorage {
    fn create_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(FaultyFile { file: PosixStorage.create(path)?, faults: self.clone(), is_synced: false }))
    }

    fn open_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(FaultyFile { file: PosixStorage.open(path)?, faults: self.clone(), is_synced: false }))
    }

    fn open_synced_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(FaultyFile {
            file: PosixStorage.open_synced(path)?,
            faults: self.clone(),
            is_synced: true,
        }))
    }

    fn storage_beside(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: Box<dyn StorageFile>,
    faults: FaultyStorage,
    /// A write to it is a write and a sync.
    is_synced: bool,
}

impl FaultyFile {
    fn count_sync(&self) -> io::Result<()> {
        self.faults.syncs.fetch_add(1, Ordering::Relaxed);
        match self.faults.syncs_until_failure.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(io::Error::from_raw_os_error(libc::EIO)),
            _ => Ok(()),
        }
    }
}

impl ReadAt for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
}

impl ReadFile for FaultyFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}

impl StorageFile for FaultyFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        if self.is_synced {
            self.count_sync()?;
        }
        if self.faults.writes_until_failure.fetch_sub(1, Ordering::Relaxed) == 0 {
            // A full disk takes part of the bytes.
            if let Some(first) = parts.first() {
                let half = first[..first.len() / 2].to_vec();
                self.file.write_all_at(&mut [IoSlice::new(&half)], offset)?;
            }
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.file.write_all_at(parts, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.count_sync()?;
        self.file.sync_data()
    }

    fn begin_writeback(&self, bytes: Range<u64>) {
        self.faults.writebacks.lock().unwrap_or_else(PoisonError::into_inner).push(bytes.clone());
        self.file.begin_writeback(bytes);
    }

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.file.stands_at(path)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    fn forget_cached_from(&self, from: u64) {
        self.file.forget_cached_from(from);
    }
}
