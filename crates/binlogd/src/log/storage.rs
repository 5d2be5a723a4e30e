//! The seam to the disk: the few operations that durability is made of.
//!
//! [`PosixStorage`] is the real one. Tests put a double behind the same trait to fail a chosen write or sync.

use super::syncer::{BackgroundSync, Syncer};
use rustix::fs::Advice;
use rustix::io::Errno;
use std::fmt::Debug;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Mode of every file that binlogd makes: binary logs hold the data of all tables.
const FILE_MODE: u32 = 0o600;

/// Mode of every folder that binlogd makes.
const FOLDER_MODE: u32 = 0o700;

/// Operations on names.
pub trait Storage: Send + Sync + Debug {
    /// Makes a new, empty file.
    ///
    /// # Errors
    /// When it exists already or cannot be made.
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// When it does not exist or cannot be opened.
    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;

    /// Opens a file for writing so that each write is on stable storage when it returns, and goes past the page cache
    /// where the file system can do that. Offsets, lengths and memory of the writes must be multiples of 4096 bytes.
    ///
    /// # Errors
    /// When it does not exist or cannot be opened.
    fn open_synced(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;

    /// Makes a folder. Durable after [`Storage::sync_dir`] of the folder that it stands in.
    ///
    /// # Errors
    /// When the name is taken, or as the operating system says.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes a file's name away. Durable after [`Storage::sync_dir`].
    ///
    /// # Errors
    /// When there is none of that name, or as the operating system says.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Gives a file or folder another name in place of whatever has that name. Durable after [`Storage::sync_dir`].
    ///
    /// # Errors
    /// As the operating system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes names in a folder durable: a file whose folder was not synced can vanish in a crash with all its bytes.
    ///
    /// # Errors
    /// As the operating system says.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// What syncs the live file beside the thread that writes it. Begins nothing until it is asked to.
    fn background_sync(&self) -> Box<dyn BackgroundSync> {
        Box::<Syncer>::default()
    }
}

/// Reading at an offset; all that recovery and verification need.
pub trait ReadAt {
    /// Reads into `buffer` from `offset`; returns the number of bytes read, 0 at the end of the file.
    ///
    /// # Errors
    /// As the operating system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// Operations on one open file.
pub trait StorageFile: Send + Sync + Debug + ReadAt {
    /// Writes all of `parts`, one after another, from `offset` on. The slices may be changed.
    ///
    /// # Errors
    /// When not everything could be written; how much was is unknown.
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()>;

    /// Waits until the file's bytes and its length are on stable storage (fdatasync).
    ///
    /// # Errors
    /// When the device reports a failure. The bytes are then in an unknown state: another call may succeed without
    /// having written them.
    fn sync_data(&self) -> io::Result<()>;

    /// False when the file is not the one that has the name `path` any more: somebody removed, moved or replaced it.
    ///
    /// # Errors
    /// As the operating system says.
    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        let _ = path;
        Ok(true)
    }

    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// As the operating system says.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    /// As the operating system says.
    fn size(&self) -> io::Result<u64>;

    /// Lets the next reads come from the disk, not from the page cache, for everything that was synced before. A sync that
    /// failed leaves pages in the cache that can be read, that no later sync writes, and that the disk does not have.
    fn forget_cached(&self);
}

/// The file system.
#[derive(Debug, Default, Clone, Copy)]
pub struct PosixStorage;

impl Storage for PosixStorage {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn open_synced(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        // O_DSYNC with O_DIRECT is one system call for what are a write, a copy into the page cache and an fdatasync.
        let open = |flags| OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        match open(libc::O_DSYNC | libc::O_DIRECT) {
            Ok(file) if takes_aligned_blocks(&file) => {
                // Pages of it that are cached from its making would have to be thrown out by each write.
                file.forget_cached();
                Ok(Box::new(file))
            }
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(error),
            // Some file systems know no direct output, or ask for larger blocks.
            _ => Ok(Box::new(open(libc::O_DSYNC)?)),
        }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(FOLDER_MODE).create(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// Tries the alignment that writes will have with a read, which asks for the same.
fn takes_aligned_blocks(file: &File) -> bool {
    const BLOCK: usize = 4096;
    let mut memory = vec![0; 2 * BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK);
    FileExt::read_at(file, &mut memory[start..start + BLOCK], 0).is_ok()
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
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
        File::sync_data(self)
    }

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        let named = match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        };
        let open = self.metadata()?;
        Ok((named.dev(), named.ino()) == (open.dev(), open.ino()))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn forget_cached(&self) {
        // Some file systems have no cache to forget, and one that refuses leaves things as they were.
        let _ = rustix::fs::fadvise(self, 0, None, Advice::DontNeed);
    }
}

#[cfg(test)]
pub mod double {
    //! A storage that fails the operation of one's choice.

    use super::*;
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
    }

    impl ReadAt for FaultyFile {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            self.0.read_at(buffer, offset)
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
        fn size(&self) -> io::Result<u64> {
            self.0.size()
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
        fn size(&self) -> io::Result<u64> {
            self.0.size()
        }
        fn forget_cached(&self) {
            self.0.forget_cached();
        }
    }
}
