//! A file each of whose writes is one call that returns when the bytes are durable.

use log::storage::{ReadAt, ReadFile, StorageFile};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file that is written with RWF_DSYNC, through the page cache.
#[derive(Debug)]
pub struct DsyncFile {
    file: File,
    /// Something was done to the file, or may have been before it was opened, that no write has made durable.
    needs_sync: AtomicBool,
}

impl DsyncFile {
    /// Takes an open file, whatever was written into it before.
    pub fn new(file: File) -> DsyncFile {
        DsyncFile { file, needs_sync: AtomicBool::new(true) }
    }
}

impl ReadAt for DsyncFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(&self.file, buffer, offset)
    }
}

impl ReadFile for DsyncFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

impl StorageFile for DsyncFile {
    fn write_all_at(&self, mut parts: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0); // Drops empty slices, so that an empty list means done.
        while !parts.is_empty() {
            match pwritev2(&self.file, parts, offset, ReadWriteFlags::DSYNC) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut parts, written);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// A system call at the first time and after a cut only.
    fn sync_data(&self) -> io::Result<()> {
        if self.needs_sync.load(Ordering::Acquire) {
            self.file.sync_data()?;
            self.needs_sync.store(false, Ordering::Release);
        }
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.needs_sync.store(true, Ordering::Release);
        self.file.set_len(len)
    }

    fn forget_cached_from(&self, from: u64) {
        self.file.forget_cached_from(from);
    }
}
