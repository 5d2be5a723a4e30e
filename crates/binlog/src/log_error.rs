//! Why the log cannot go on.

use super::is_full_disk;
use crate::storage::failed::within;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why the log cannot go on.
#[derive(Debug, Error)]
pub enum LogError {
    /// The operating system refused.
    #[error("cannot {action} {path}: {}", within(path, error))]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// The source starts a file whose name this timeline has already.
    #[error("the source starts {0} again, which this timeline holds already: its logs were reset")]
    FileExists(String),
    /// Somebody removed, moved, replaced or cut a file that is being written to.
    #[error(
        "{0} was removed, replaced or cut while binlogd writes to it; nothing of what is written there would be found again. \
         Leave the newest file and the journal of a running binlogd alone"
    )]
    Displaced(PathBuf),
    /// An earlier failure; see it in the log.
    #[error("the log stopped at an earlier write or sync error")]
    Latched,
}

impl LogError {
    /// True when space may return by itself.
    pub fn is_full_disk(&self) -> bool {
        matches!(self, LogError::Io { error, .. }
            if is_full_disk(error))
    }
}
