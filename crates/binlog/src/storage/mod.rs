//! The seam to the disk: the few operations that durability and reading back are made of. Nothing goes past it, but the locks
//! between processes that wait (`lock`).
//!
//! [`PosixStorage`](crate::storage::posix::PosixStorage) is the real one. Tests put a double behind the same trait to fail a chosen
//! write or sync.

pub mod activity;
pub mod failed;
pub mod lock;
pub mod posix;
pub(crate) mod posix_file;

use crate::storage::lock::Lock;
use codec::gtid::GtidState;
use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A [mark](crate::writer::mark) is made when the live file has grown by so many bytes since the last one, and at the end of a session.
const MARK_BYTES: u64 = 4 << 20;

/// What has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Anything else; in a [list](Storage::list) a symbolic link too.
    Other,
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The bare name.
    pub name: OsString,
    /// What has it.
    pub kind: Kind,
}

/// What is found under a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// What it is, symbolic links followed.
    pub kind: Kind,
    /// Length in bytes, of a file.
    pub len: u64,
    /// When it was changed last, where the file system knows.
    pub modified: Option<SystemTime>,
}

/// Operations on names. Errors of those that only look, [`list`](Storage::list) to [`open_read`](Storage::open_read), are in the
/// operating system's own words: whoever asks names the path.
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

    /// The names in a folder, in no order.
    ///
    /// # Errors
    /// When the folder cannot be read.
    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>>;

    /// What a path leads to.
    ///
    /// # Errors
    /// When it leads to nothing, or that cannot be told.
    fn look(&self, path: &Path) -> io::Result<Found>;

    /// Reads a small file as a whole.
    ///
    /// # Errors
    /// When it does not exist or cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Opens a file for reading only.
    ///
    /// # Errors
    /// When it does not exist or cannot be opened.
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>>;

    /// Takes the lock of that name for this process. Its file is made if need be, and stays.
    ///
    /// # Errors
    /// When the file cannot be opened.
    fn lock(&self, path: &Path) -> io::Result<Lock>;

    /// The same disk for a thread beside the one whose operations are [looked at](crate::storage::activity): what that thread does ends
    /// while the other one's hangs.
    fn beside(&self) -> Arc<dyn Storage>;

    /// What syncs the live file beside the thread that writes it. Begins nothing until it is asked to.
    fn background_sync(&self) -> Box<dyn BackgroundSync>;

    /// As [`Storage::read`], for text.
    ///
    /// # Errors
    /// As [`Storage::read`], and when the bytes are no UTF-8.
    fn read_to_string(&self, path: &Path) -> io::Result<String> {
        let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
        String::from_utf8(self.read(path)?).map_err(no_text)
    }

    /// Whether a path leads to anything. A disk that cannot say has not said no.
    ///
    /// # Errors
    /// When that cannot be told.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.look(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// By how many bytes the live file grows from one [mark](crate::writer::mark) to the next.
    fn mark_bytes(&self) -> u64 {
        MARK_BYTES
    }

    /// What is known of a sealed file without reading it; `None` where it is on this disk, or nothing is known.
    fn recorded(&self, path: &Path) -> Option<Recorded> {
        let _ = path;
        None
    }

    /// Whether older files than those that are listed may be had later: who keeps them has not said yet what there is.
    fn may_have_more(&self) -> bool {
        false
    }
}

/// What a record says of a file that is not read for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// GTIDs executed before it, by its own word; `None` where it says nothing of that.
    pub gtids_before: Option<GtidState>,
    /// GTIDs executed up to its end.
    pub gtids: GtidState,
    /// Its length in bytes, which is a boundary.
    pub end: u64,
}

/// Reading at an offset; all that recovery and verification need.
pub trait ReadAt {
    /// Reads into `buffer` from `offset`; returns the number of bytes read, 0 at the end of the file.
    ///
    /// # Errors
    /// As the operating system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills `buffer` from `offset` on, or as much of it as the file has there, and returns how many bytes that is: a read of
    /// the operating system may give fewer than there are.
    ///
    /// # Errors
    /// As the operating system says.
    fn read_full_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// An open file that is only read.
pub trait ReadFile: ReadAt + Send + Sync + Debug {
    /// Length in bytes.
    ///
    /// # Errors
    /// As the operating system says.
    fn size(&self) -> io::Result<u64>;
}

/// Operations on one open file.
pub trait StorageFile: ReadFile {
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

    /// Lets the system begin to write these bytes to the disk, so that the next sync has less to do. A hint: it makes nothing
    /// durable, waits for nothing that it can leave under way, and what fails is told by the next sync.
    fn begin_writeback(&self, bytes: Range<u64>) {
        let _ = bytes;
    }

    /// False when the file is not the one that has the name `path` any more: somebody removed, moved or replaced it.
    ///
    /// # Errors
    /// As the operating system says.
    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        let _ = path;
        Ok(true)
    }

    /// As [`StorageFile::stands_at`]; false as well when the file has become shorter than `len`: somebody has cut it.
    ///
    /// # Errors
    /// As the operating system says.
    fn is_whole_at(&self, path: &Path, len: u64) -> io::Result<bool> {
        Ok(self.stands_at(path)? && self.size()? >= len)
    }

    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// As the operating system says.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Lets the next reads come from the disk, not from the page cache, for everything that was synced before. A sync that
    /// failed leaves pages in the cache that can be read, that no later sync writes, and that the disk does not have.
    fn forget_cached(&self) {
        self.forget_cached_from(0);
    }

    /// As [`StorageFile::forget_cached`], for the bytes from `from` on at least. A cache of gigabytes takes its time to be
    /// emptied, and what an earlier sync has covered need not be forgotten.
    fn forget_cached_from(&self, from: u64);
}

/// A background sync that has ended.
#[derive(Debug)]
pub struct Synced {
    /// End of the bytes that had been written when it was asked for.
    pub through: u64,
    /// How long it took.
    pub took: Duration,
    /// Whether the bytes are durable.
    pub result: io::Result<()>,
}

/// Syncs one file at a time beside the thread that writes it. `Syncer` is the real one; a simulation has one that ends
/// each sync at a moment of its choice.
pub trait BackgroundSync: Send + Debug {
    /// True while a sync runs, or has ended and was not taken.
    fn is_busy(&self) -> bool;

    /// Begins to sync `file`, which has been written to the end of `through`.
    ///
    /// # Errors
    /// When there can be no thread; nothing was begun then.
    ///
    /// # Panics
    /// When one is running: that is an error of ours.
    fn begin(&mut self, file: Arc<dyn StorageFile>, through: u64) -> io::Result<()>;

    /// The sync that has ended since the last look, if one has.
    fn take_ended(&mut self) -> Option<Synced>;

    /// Waits for the end of the sync that runs; `None` when none does.
    fn wait(&mut self) -> Option<Synced>;
}
