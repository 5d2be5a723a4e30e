//! The product's journal, written in other ways than the product's.

use super::dsync::DsyncFile;
use log::posix_instead::PosixInstead;
use log::storage::{ReadAt, ReadFile, StorageFile};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How a write of the journal becomes durable. Both go through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalWrite {
    /// A write, then fdatasync.
    ThenFdatasync,
    /// One write with RWF_DSYNC.
    Dsync,
}

/// The file system, with another way to write the journal; binary logs are as the product's.
#[derive(Debug, Clone, Copy)]
pub struct JournalStorage(pub JournalWrite);

impl PosixInstead for JournalStorage {
    fn open_synced_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(match self.0 {
            JournalWrite::ThenFdatasync => Box::new(SyncedFile(file)),
            JournalWrite::Dsync => Box::new(DsyncFile::new(file)),
        })
    }
}

/// A file that is synced after each write.
#[derive(Debug)]
struct SyncedFile(File);

impl ReadAt for SyncedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(&self.0, buffer, offset)
    }
}

impl ReadFile for SyncedFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

impl StorageFile for SyncedFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        StorageFile::write_all_at(&self.0, parts, offset)?;
        self.0.sync_data()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn forget_cached_from(&self, from: u64) {
        self.0.forget_cached_from(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::storage::Storage;

    #[test]
    fn what_is_written_can_be_read_back() {
        for write in [JournalWrite::ThenFdatasync, JournalWrite::Dsync] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("journal");
            let storage = JournalStorage(write);
            assert_eq!(storage.open_synced(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
            storage.create(&path).unwrap().write_all_at(&mut [IoSlice::new(&[0; 12])], 0).unwrap();
            let file = storage.open_synced(&path).unwrap();
            file.write_all_at(&mut [IoSlice::new(b"two "), IoSlice::new(b"parts")], 2).unwrap();
            let mut held = [0; 20];
            assert_eq!(file.read_at(&mut held, 0).unwrap(), 12, "{write:?}");
            assert_eq!(&held[..12], b"\0\0two parts\0");
            file.truncate(6).unwrap();
            file.sync_data().unwrap();
            assert_eq!((file.size().unwrap(), std::fs::read(&path).unwrap().len()), (6, 6));
        }
    }
}
