//! Space that is kept for the record of a purge.
//!
//! A purge writes before it deletes: `timeline.toml`, and the index of an older timeline. On a disk that is full to the last
//! byte that would fail for ever, and nothing would make room. So a file of a few blocks stands beside the copy, and goes first.

use crate::storage::Storage;
use crate::timeline::index::replace_file;
use std::io;
use std::path::Path;

/// Name of the file, in the folder of the source.
pub const RESERVE_FILE: &str = "purge.reserve";

/// More than both files take, which are written beside the old ones.
const RESERVE_BYTES: usize = 128 << 10;

/// Makes the file, where there is none.
///
/// # Errors
/// As the operating system says. A disk that is full already has no space to keep.
pub fn keep(storage: &dyn Storage, source_folder: &Path) -> io::Result<()> {
    let path = source_folder.join(RESERVE_FILE);
    if storage.exists(&path)? {
        return Ok(());
    }
    // No zeros, which some file systems do not store.
    let content: Vec<u8> =
        (0..RESERVE_BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    replace_file(storage, &path, &content)
}

/// Gives the space back. False when there was none.
///
/// # Errors
/// As the operating system says.
pub fn release(storage: &dyn Storage, source_folder: &Path) -> io::Result<bool> {
    match storage.remove_file(&source_folder.join(RESERVE_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        other => other.map(|()| true),
    }
}
