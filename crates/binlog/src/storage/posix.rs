//! The real disk: the file system as the operating system offers it.
#![allow(clippy::disallowed_methods, reason = "the door to the disk")]

use super::failed::during;
use super::lock::{self, Lock};
use super::posix_file::{NamedFile, believe_sync};
use crate::storage::{BackgroundSync, Entry, Found, Kind, ReadFile, Storage, StorageFile};
use crate::writer::syncer::Syncer;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, chown};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Mode of every file that binlogd makes: binary logs hold the data of all tables.
const FILE_MODE: u32 = 0o600;

/// Mode of every folder that binlogd makes.
const FOLDER_MODE: u32 = 0o700;

/// How long an open waits when the process may open no more files for the moment: many sources begin a file at once, and each
/// needs one or two descriptors more while it does.
const DESCRIPTOR_PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two tries to open.
const DESCRIPTOR_PAUSE: Duration = Duration::from_millis(5);

/// The file system.
#[derive(Debug, Default, Clone, Copy)]
pub struct PosixStorage;

impl Storage for PosixStorage {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(FILE_MODE);
        let file = patiently(|| options.open(path)).map_err(during("make", path))?;
        leave_to_owner(path);
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
        DirBuilder::new().mode(FOLDER_MODE).create(path).map_err(during("create", path))?;
        leave_to_owner(path);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path).map_err(during("remove", path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to).map_err(during("rename", from))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        patiently(|| File::open(path))
            .and_then(|folder| folder.sync_all().and_then(|()| believe_sync(&folder)))
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

    fn background_sync(&self) -> Box<dyn BackgroundSync> {
        Box::<Syncer>::default()
    }
}

/// The user id of who owns a file or folder.
///
/// # Errors
/// When it is not there, or that cannot be told.
pub fn owner_of(path: &Path) -> io::Result<u32> {
    Ok(std::fs::metadata(path).map_err(during("look at", path))?.uid())
}

/// Gives what root has made in another user's folder to that user, whose daemon could not read it otherwise. Only root can;
/// what anybody else makes stays as it is.
fn leave_to_owner(path: &Path) {
    if !geteuid().is_root() {
        return;
    }
    let Some(folder) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return };
    let (Ok(own), Ok(folder)) = (std::fs::metadata(path), std::fs::metadata(folder)) else { return };
    if own.uid() != folder.uid() {
        let _ = chown(path, Some(folder.uid()), Some(folder.gid()));
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

    #[test]
    fn what_root_makes_is_left_to_the_owner_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        if chown(folder.path(), Some(65_534), Some(65_534)).is_err() {
            return; // Not root: then it is the owner's already.
        }
        let inner = folder.path().join("folder");
        PosixStorage.create_dir(&inner).unwrap();
        PosixStorage.create(&inner.join("file")).unwrap();
        for made in [inner.join("file"), inner] {
            let found = std::fs::metadata(&made).unwrap();
            assert_eq!((found.uid(), found.gid()), (65_534, 65_534), "{}", made.display());
        }
    }
}
