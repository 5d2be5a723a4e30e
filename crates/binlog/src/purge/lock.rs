//! The lock that whoever deletes files of a source's copy holds, and whoever needs all of them to stay.

use crate::storage::Storage;
use crate::storage::failed::during;
use crate::storage::lock::{HeldLock, Lock};
use std::io;
use std::path::Path;

/// Name of its file, in the folder of the source.
pub(crate) const PURGE_LOCK_FILE: &str = "purge.lock";

/// Held by one at a time, of whichever process: while files go, and while somebody reads files that must not go. The lock of
/// the [source's folder](crate::folder::SourceFolder) does not do for that: it says who receives, and is free once a source is
/// stopped, while those who purge may still be there.
#[derive(Debug)]
pub struct PurgeLock {
    _held: Box<dyn HeldLock>,
}

impl PurgeLock {
    /// Takes the lock of the copy in `source_folder`, until the value is dropped. Waits for nobody.
    ///
    /// # Errors
    /// `WouldBlock` when somebody else has it, also in this process; or its file cannot be opened.
    pub fn take(storage: &dyn Storage, source_folder: &Path) -> io::Result<PurgeLock> {
        let path = source_folder.join(PURGE_LOCK_FILE);
        match storage.lock(&path).map_err(during("open", &path))? {
            Lock::Taken(held) => Ok(PurgeLock { _held: held }),
            Lock::HeldBy(holder) => {
                let holder = if holder.is_empty() { "unknown" } else { &holder };
                let what = format!(
                    "files of {} are being deleted, or must all stay for a rescue (process {holder} holds {PURGE_LOCK_FILE}); \
                     nothing is deleted meanwhile, try again later",
                    source_folder.display()
                );
                Err(io::Error::new(io::ErrorKind::WouldBlock, what))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::posix::PosixStorage;

    #[test]
    fn one_at_a_time_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let held = PurgeLock::take(&PosixStorage, dir.path()).unwrap();
        let refused = PurgeLock::take(&PosixStorage, dir.path()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(refused.to_string().contains(&format!("process {}", std::process::id())), "{refused}");
        drop(held);
        PurgeLock::take(&PosixStorage, dir.path()).unwrap();
    }
}
