//! Where a transaction stands.

use std::path::Path;
use std::sync::Arc;

/// A place in the copy at which a transaction stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: Arc<Path>,
    /// Where it begins there.
    pub at: u64,
    /// Where it ends there.
    pub end: u64,
}

impl Place {
    /// Folder name of the timeline.
    pub fn timeline(&self) -> String {
        let folder = self.path.parent().and_then(Path::file_name).unwrap_or_default();
        folder.to_string_lossy().into_owned()
    }

    /// Name of the file.
    pub fn file(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Length in the binary log, in bytes.
    pub fn size(&self) -> u64 {
        self.end - self.at
    }
}
