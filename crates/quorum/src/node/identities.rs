//! What tells the files of the copy from others of their names, read once a file.

use binlog::storage::Storage;
use binlog::timeline::file_identity::file_identity;
use std::path::{Path, PathBuf};

/// Most files that are remembered; the newest are asked for.
const REMEMBERED_MAX: usize = 16;

/// Identities by path. A file that has begun keeps its own.
#[derive(Debug, Default)]
pub(super) struct Identities(Vec<(PathBuf, u64)>);

impl Identities {
    /// Of the file at `path`, which ends at `end`; `None` while it does not say enough, or cannot be read.
    pub(super) fn of(&mut self, storage: &dyn Storage, path: &Path, end: u64) -> Option<u64> {
        if let Some((_, known)) = self.0.iter().find(|(of, _)| of == path) {
            return Some(*known);
        }
        let identity = storage.open_read(path).and_then(|file| file_identity(&*file, end)).ok()??;
        if self.0.len() >= REMEMBERED_MAX {
            self.0.remove(0);
        }
        self.0.push((path.to_owned(), identity));
        Some(identity)
    }
}
