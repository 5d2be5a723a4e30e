//! The file system with other files: for tests that fail some operations on them.

use crate::storage::lock::Lock;
use crate::storage::posix::PosixStorage;
use crate::storage::{BackgroundSync, Entry, Found, ReadFile, Storage, StorageFile};
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Opens files for writing in a way of its own. With that it is a whole [`Storage`], which does everything else as
/// [`PosixStorage`] does.
pub(crate) trait PosixInstead: Send + Sync + Debug {
    /// As [`Storage::create`].
    ///
    /// # Errors
    /// As there.
    fn create_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        PosixStorage.create(path)
    }

    /// As [`Storage::open`].
    ///
    /// # Errors
    /// As there.
    fn open_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        PosixStorage.open(path)
    }

    /// As [`Storage::open_synced`].
    ///
    /// # Errors
    /// As there.
    fn open_synced_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;

    /// Before a folder is made or synced, and before a file is renamed or removed.
    ///
    /// # Errors
    /// Those of that operation, in the place of trying.
    fn may_change(&self) -> io::Result<()> {
        Ok(())
    }

    /// Whether the file can be removed at all.
    ///
    /// # Errors
    /// Those of [`Storage::remove_file`], in the place of trying.
    fn may_remove(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    /// As [`Storage::beside`].
    fn storage_beside(&self) -> Arc<dyn Storage> {
        PosixStorage.beside()
    }
}

impl<S: PosixInstead> Storage for S {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.create_file(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.open_file(path)
    }

    fn open_synced(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.open_synced_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.may_change()?;
        PosixStorage.create_dir(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.may_change()?;
        self.may_remove(path)?;
        PosixStorage.remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.may_change()?;
        PosixStorage.rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.may_change()?;
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
        self.storage_beside()
    }

    fn background_sync(&self) -> Box<dyn BackgroundSync> {
        PosixStorage.background_sync()
    }
}
