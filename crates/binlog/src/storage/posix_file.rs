//! An open file of the operating system; and one that knows its path, so that each error says what was being done, and to
//! what.
#![allow(clippy::disallowed_methods, reason = "the door to the disk")]

use super::failed::during;
use crate::storage::{ReadAt, ReadFile, StorageFile};
use rustix::fs::{Advice, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::unix::fs::{self as unix, MetadataExt};
use std::path::{Path, PathBuf};

/// The longest piece of a file that the page cache holds as one, in bytes; each begins at a multiple of its length. Linux
/// makes folios of 2^11 pages at most (`MAX_PAGECACHE_ORDER`), and a page has 64 KiB at most.
const FOLIO_BYTES_MAX: u64 = (64 << 10) << 11;

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        unix::FileExt::read_at(self, buffer, offset)
    }
}

impl ReadFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl StorageFile for File {
    fn write_all_at(&self, mut parts: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0); // Drops empty slices, so that an empty list means done.
        while !parts.is_empty() {
            match rustix::io::pwritev(self, parts, offset) {
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

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)?;
        believe_sync(self)
    }

    fn begin_writeback(&self, bytes: Range<u64>) {
        // Where there is no such call, the next sync writes everything, as it did without this one.
        let _ = platform::begin_writeback(self, bytes);
    }

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.is_whole_at(path, 0)
    }

    fn is_whole_at(&self, path: &Path, len: u64) -> io::Result<bool> {
        let named = match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        };
        let open = self.metadata()?;
        Ok((named.dev(), named.ino()) == (open.dev(), open.ino()) && open.len() >= len)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn forget_cached_from(&self, from: u64) {
        // Of a folio that is named in part nothing is forgotten. Some file systems have no cache to forget, and one that
        // refuses leaves things as they were.
        let _ = rustix::fs::fadvise(self, from - from % FOLIO_BYTES_MAX, None, Advice::DontNeed);
    }
}

/// After a sync of `file` that the system calls done: an error if its file system has failed meanwhile.
///
/// ext4 throws away the transaction of its own journal that is under way when that journal is aborted, after an error of the
/// device for example. A sync that waits for that transaction then finds nothing left to wait for, and returns success for
/// bytes that are lost (seen on Linux 6.18, in a quarter of all aborts under load). Whoever changes an inode after that is
/// the one who finds the abort, and makes the file system refuse what follows: so the times of the file, which mean nothing
/// here, are set twice, and the second call tells. A few microseconds, and `fdatasync` does not write times alone.
///
/// # Errors
/// When the file system has failed. What was synced may be lost.
pub(crate) fn believe_sync(file: &File) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    for _ in 0..2 {
        // Some file systems set no times, and some files belong to another account: other errors say nothing.
        if let Err(error @ (Errno::ROFS | Errno::IO | Errno::UCLEAN | Errno::NODEV | Errno::NXIO)) =
            rustix::fs::futimens(file, &times)
        {
            return Err(error.into());
        }
    }
    Ok(())
}

/// An open file and its path.
#[derive(Debug)]
pub(crate) struct NamedFile {
    file: File,
    path: PathBuf,
}

impl NamedFile {
    pub(crate) fn new(file: File, path: &Path) -> NamedFile {
        NamedFile { file, path: path.to_owned() }
    }
}

impl ReadAt for NamedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        ReadAt::read_at(&self.file, buffer, offset).map_err(during("read", &self.path))
    }
}

impl ReadFile for NamedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size().map_err(during("look at", &self.path))
    }
}

impl StorageFile for NamedFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.file.write_all_at(parts, offset).map_err(during("write to", &self.path))
    }

    fn sync_data(&self) -> io::Result<()> {
        StorageFile::sync_data(&self.file).map_err(during("sync", &self.path))
    }

    fn begin_writeback(&self, bytes: Range<u64>) {
        StorageFile::begin_writeback(&self.file, bytes);
    }

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.file.stands_at(path).map_err(during("look at", path))
    }

    fn is_whole_at(&self, path: &Path, len: u64) -> io::Result<bool> {
        self.file.is_whole_at(path, len).map_err(during("look at", path))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len).map_err(during("cut", &self.path))
    }

    fn forget_cached_from(&self, from: u64) {
        self.file.forget_cached_from(from);
    }
}
