//! Locks between processes (flock): the kernel's, so they end with the process, however it ends.
//!
//! The one place beside [`posix`](super::posix) that goes to the operating system by itself.
#![allow(clippy::disallowed_methods, reason = "a part of the door to the disk")]

use rustix::fs::{FlockOperation, flock};
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Mode of a lock file.
const LOCK_MODE: u32 = 0o600;

/// What keeps a lock until it is dropped.
pub trait HeldLock: Send + Sync + Debug {}

impl HeldLock for File {}

/// The answer to who asked for a lock.
#[derive(Debug)]
pub enum Lock {
    /// It is his, until this value is dropped.
    Taken(Box<dyn HeldLock>),
    /// Another process has it: its id by the file's word, for a message; empty when that is not known.
    HeldBy(String),
}

/// Takes the lock `path`, whose file is made if need be.
pub(crate) fn take(path: &Path) -> io::Result<Lock> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(LOCK_MODE).open(path)?;
    leave_to_owner(&file, path);
    if !is_taken(&file) {
        return Ok(Lock::HeldBy(holder(path)));
    }
    // Only a hint for the message; the lock itself is the kernel's. On a full disk there is no hint.
    let _ = std::fs::write(path, format!("{}\n", std::process::id()));
    Ok(Lock::Taken(Box::new(file)))
}

/// Whose the lock `path` is, if it is another process's; nothing is made or kept.
pub(crate) fn held_by_another(path: &Path) -> io::Result<Option<String>> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok((!is_taken(&file)).then(|| holder(path))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Waits for the lock of a folder, and keeps it until the answer is dropped.
pub(crate) fn wait_for_folder(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    flock(&folder, FlockOperation::LockExclusive)?;
    Ok(folder)
}

/// A lock that root makes in another user's folder would lock that user out for ever: nobody else can open its file.
fn leave_to_owner(file: &File, path: &Path) {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Ok(own), Ok(folder)) = (file.metadata(), std::fs::metadata(folder)) else { return };
    if own.uid() != folder.uid() {
        // Only root can; for anybody else the folder's owner has nothing to do with it.
        let _ = std::os::unix::fs::fchown(file, Some(folder.uid()), Some(folder.gid()));
    }
}

fn is_taken(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// For a message only.
fn holder(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
