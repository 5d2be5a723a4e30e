//! The seam to the disk: the few operations that durability and reading back are made of. Nothing goes past it, but the locks
//! between processes that wait ([`lock`]).
//!
//! [`PosixStorage`] is the real one. Tests put a double behind the same trait to fail a chosen write or sync.
#![allow(clippy::disallowed_methods, reason = "the door to the disk")]

use super::failed::during;
use super::lock::{self, Lock};
use super::named::NamedFile;
use super::syncer::{BackgroundSync, Syncer};
use rustix::fs::Advice;
use rustix::io::Errno;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{DirBuilder, File, FileType, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Mode of every file that binlogd makes: binary logs hold the data of all tables.
const FILE_MODE: u32 = 0o600;

/// Mode of every folder that binlogd makes.
const FOLDER_MODE: u32 = 0o700;

/// A [mark](super::mark) is made when the live file has grown by so many bytes since the last one, and at the end of a session.
const MARK_BYTES: u64 = 4 << 20;

/// The longest piece of a file that the page cache holds as one, in bytes; each begins at a multiple of its length. Linux
/// makes folios of 2^11 pages at most (`MAX_PAGECACHE_ORDER`), and a page has 64 KiB at most.
const FOLIO_BYTES_MAX: u64 = (64 << 10) << 11;

/// How long an open waits when the process may open no more files for the moment: many sources begin a file at once, and each
/// needs one or two descriptors more while it does.
const DESCRIPTOR_PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two tries to open.
const DESCRIPTOR_PAUSE: Duration = Duration::from_millis(5);

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

    /// The same disk for a thread beside the one whose operations are [looked at](super::activity): what that thread does ends
    /// while the other one's hangs.
    fn beside(&self) -> Arc<dyn Storage>;

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

    /// By how many bytes the live file grows from one [mark](super::mark) to the next.
    fn mark_bytes(&self) -> u64 {
        MARK_BYTES
    }

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
    fn forget_cached(&self);

    /// As [`StorageFile::forget_cached`], for the bytes from `from` on at least. A cache of gigabytes takes its time to be
    /// emptied, and what an earlier sync has covered need not be forgotten.
    fn forget_cached_from(&self, from: u64) {
        let _ = from;
        self.forget_cached();
    }
}

/// The file system.
#[derive(Debug, Default, Clone, Copy)]
pub struct PosixStorage;

impl Storage for PosixStorage {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(FILE_MODE);
        let file = patiently(|| options.open(path)).map_err(during("make", path))?;
        Ok(Box::new(NamedFile::new(file, path)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let open = || OpenOptions::new().read(true).write(true).open(path);
        Ok(Box::new(NamedFile::new(patiently(open).map_err(during("open", path))?, path)))
    }

    fn open_synced(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        // O_DSYNC with O_DIRECT is one system call for what are a write, a copy into the page cache and an fdatasync.
        let open = |direct| {
            let flags = libc::O_DSYNC | direct;
            patiently(|| OpenOptions::new().read(true).write(true).custom_flags(flags).open(path))
        };
        match open(libc::O_DIRECT) {
            Ok(file) if takes_aligned_blocks(&file) => {
                // Pages of it that are cached from its making would have to be thrown out by each write.
                file.forget_cached();
                Ok(Box::new(NamedFile::new(file, path)))
            }
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(during("open", path)(error)),
            // Some file systems know no direct output, or ask for larger blocks.
            _ => {
                let file = open(0).map_err(during("open", path))?;
                Ok(Box::new(NamedFile::new(file, path)))
            }
        }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(FOLDER_MODE).create(path).map_err(during("create", path))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path).map_err(during("remove", path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to).map_err(during("rename", from))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        patiently(|| File::open(path))
            .and_then(|folder| folder.sync_all())
            .map_err(during("sync the folder", path))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = match entry.file_type() {
                Ok(kind) => kind_of(kind),
                // Gone since.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            entries.push(Entry { name: entry.file_name(), kind });
        }
        Ok(entries)
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        let found = std::fs::metadata(path)?;
        Ok(Found { kind: kind_of(found.file_type()), len: found.len(), modified: found.modified().ok() })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        Ok(Box::new(File::open(path)?))
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        lock::take(path)
    }

    fn beside(&self) -> Arc<dyn Storage> {
        Arc::new(PosixStorage)
    }
}

fn kind_of(kind: FileType) -> Kind {
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Kind::File,
        (_, true) => Kind::Folder,
        _ => Kind::Other,
    }
}

/// Opens, and tries again for [`DESCRIPTOR_PATIENCE`] where the process has no descriptor left.
fn patiently(open: impl Fn() -> io::Result<File>) -> io::Result<File> {
    let began = Instant::now();
    loop {
        match open() {
            Err(error) if is_out_of_descriptors(&error) && began.elapsed() < DESCRIPTOR_PATIENCE => {
                std::thread::sleep(DESCRIPTOR_PAUSE);
            }
            other => return other,
        }
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
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
        File::sync_data(self)
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

    fn forget_cached(&self) {
        self.forget_cached_from(0);
    }

    fn forget_cached_from(&self, from: u64) {
        // Of a folio that is named in part nothing is forgotten. Some file systems have no cache to forget, and one that
        // refuses leaves things as they were.
        let _ = rustix::fs::fadvise(self, from - from % FOLIO_BYTES_MAX, None, Advice::DontNeed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the operating system knows of the open file that has this path.
    fn flags_of_open(path: &Path) -> i32 {
        for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
            if std::fs::read_link(entry.path()).is_ok_and(|target| target == path) {
                let info = Path::new("/proc/self/fdinfo").join(entry.file_name());
                let info = std::fs::read_to_string(info).unwrap();
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
                return i32::from_str_radix(flags.trim(), 8).unwrap();
            }
        }
        panic!("{} is not open", path.display());
    }

    /// What stands in the journal is called durable without another call.
    #[test]
    fn each_write_to_a_synced_file_is_durable_when_it_returns() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("journal");
        std::fs::write(&path, vec![0; 8192]).unwrap();
        let file = PosixStorage.open_synced(&path).unwrap();
        assert_eq!(flags_of_open(&path) & libc::O_DSYNC, libc::O_DSYNC);
        drop(file);
        let _buffered = PosixStorage.open(&path).unwrap();
        assert_eq!(flags_of_open(&path) & libc::O_DSYNC, 0, "or this would show nothing");
    }
}
