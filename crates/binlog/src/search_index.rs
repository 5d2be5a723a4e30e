//! Where search indexes stand: in a folder of each timeline, under the names of their files. What they say is no business of
//! this crate.
//!
//! They are derived, so nothing of them is synced: one that a crash spoils is seen by its checksum, and made again.

use super::storage::Storage;
use crate::timeline::index::replace_derived;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the folder in a timeline's folder. It is no name of a binary log.
pub const SEARCH_INDEX_FOLDER: &str = "search-index";

/// Where the index of the file `name` stands.
pub fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(SEARCH_INDEX_FOLDER).join(name)
}

/// Puts an index in the place of the one that is there, if one is. Nothing stays where the file is gone meanwhile: who purges a
/// file removes its index before it.
///
/// # Errors
/// As the operating system says.
pub fn write(storage: &dyn Storage, folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    match storage.create_dir(&folder.join(SEARCH_INDEX_FOLDER)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    replace_derived(storage, &path(folder, name), content)?;
    if !storage.exists(&folder.join(name))? {
        remove(storage, folder, name)?;
    }
    Ok(())
}

/// Removes the index of a file, if there is one.
///
/// # Errors
/// As the operating system says.
pub fn remove(storage: &dyn Storage, folder: &Path, name: &str) -> io::Result<()> {
    match storage.remove_file(&path(folder, name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::posix::PosixStorage;

    #[test]
    fn an_index_stands_beside_its_file_and_not_without_it() {
        let dir = tempfile::tempdir().unwrap();
        let (storage, folder) = (&PosixStorage, dir.path());
        std::fs::write(folder.join("b.000001"), "log").unwrap();
        for content in [&b"one"[..], b"two"] {
            write(storage, folder, "b.000001", content).unwrap();
            assert_eq!(std::fs::read(path(folder, "b.000001")).unwrap(), content);
        }
        remove(storage, folder, "b.000001").unwrap();
        remove(storage, folder, "b.000001").unwrap();
        write(storage, folder, "b.000002", b"purged meanwhile").unwrap();
        assert_eq!(std::fs::read_dir(folder.join(SEARCH_INDEX_FOLDER)).unwrap().count(), 0);
    }
}
