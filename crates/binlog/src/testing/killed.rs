//! A disk whose process is killed at the step of one's choice.

use super::instead::PosixInstead;
use crate::storage::posix::PosixStorage;
use crate::storage::{ReadAt, ReadFile, Storage, StorageFile};
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Does so many steps that change something; the next one is done by half, and none after it: a process that was killed does
/// nothing more. What only looks goes on.
#[derive(Debug, Clone)]
pub struct KilledStorage {
    left: Arc<AtomicI64>,
}

impl KilledStorage {
    /// Killed after `steps` steps.
    pub fn after(steps: i64) -> KilledStorage {
        KilledStorage { left: Arc::new(AtomicI64::new(steps)) }
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }

    fn step(&self) -> io::Result<()> {
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            left if left > 0 => Ok(()),
            _ => {
                self.left.store(-1, Ordering::Relaxed);
                Err(io::Error::other("the process was killed"))
            }
        }
    }

    fn file(&self, file: Box<dyn StorageFile>) -> Box<dyn StorageFile> {
        Box::new(KilledFile { file, storage: self.clone() })
    }
}

impl PosixInstead for KilledStorage {
    fn create_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.step()?;
        Ok(self.file(PosixStorage.create(path)?))
    }

    fn open_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(self.file(PosixStorage.open(path)?))
    }

    fn open_synced_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(self.file(PosixStorage.open_synced(path)?))
    }

    fn may_change(&self) -> io::Result<()> {
        self.step()
    }

    fn storage_beside(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }
}

#[derive(Debug)]
struct KilledFile {
    file: Box<dyn StorageFile>,
    storage: KilledStorage,
}

impl ReadAt for KilledFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
}

impl ReadFile for KilledFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}

impl StorageFile for KilledFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let was_dead = self.storage.is_dead();
        if let Err(error) = self.storage.step() {
            if let Some(first) = parts.first().filter(|_| !was_dead) {
                let half = first[..first.len() / 2].to_vec();
                self.file.write_all_at(&mut [IoSlice::new(&half)], offset)?;
            }
            return Err(error);
        }
        self.file.write_all_at(parts, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.storage.step()?;
        self.file.sync_data()
    }

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.file.stands_at(path)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.storage.step()?;
        self.file.truncate(len)
    }

    fn forget_cached_from(&self, from: u64) {
        self.file.forget_cached_from(from);
    }
}
