//! Why the archive of a source is not kept up.

use crate::chain::ChainError;
use crate::reader::ReadError;
use crate::store::StoreError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why the archive is not kept up.
#[derive(Debug)]
pub enum ArchiveError {
    /// The store, or what stands in it.
    Chain(ChainError),
    /// The copy on this machine cannot be read.
    Copy(String),
    /// Bytes of the copy are not sound. What is sound before them is archived.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the place.
        what: String,
    },
    /// The archive has other bytes of a file than the copy. Both stay as they are.
    Differs {
        /// The file on this machine.
        path: PathBuf,
        /// What differs, and what to do.
        what: String,
    },
    /// What the archive has of a finished file cannot be read. The file on this machine stays until it can.
    Unreadable {
        /// The file on this machine.
        path: PathBuf,
        /// The object, and what is wrong with it.
        what: String,
    },
    /// The store overwrites objects that it was told not to: two writers would destroy each other's work.
    Overwrites,
    /// The process ends.
    Stopped,
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchiveError::Chain(error) => error.fmt(f),
            ArchiveError::Copy(error) => f.write_str(error),
            ArchiveError::Damaged { path, what } => write!(
                f,
                "{} is damaged on this disk ({what}), and is not archived from there on; `binlogd verify` says more",
                path.display()
            ),
            ArchiveError::Differs { path, what } => write!(f, "{}: {what}", path.display()),
            ArchiveError::Unreadable { path, what } => {
                write!(f, "{} is kept, as it cannot be told whether the archive has it: {what}", path.display())
            }
            ArchiveError::Overwrites => f.write_str(
                "the store overwrites an object although it is told to make it only where there is none, so two binlogds could destroy \
                 each other's archive: use a store that honours If-None-Match, or say single_writer = true in [archive] where never \
                 more than one binlogd writes to it",
            ),
            ArchiveError::Stopped => f.write_str("binlogd is ending"),
        }
    }
}

impl std::error::Error for ArchiveError {}

impl From<ChainError> for ArchiveError {
    fn from(error: ChainError) -> ArchiveError {
        ArchiveError::Chain(error)
    }
}

impl From<StoreError> for ArchiveError {
    fn from(error: StoreError) -> ArchiveError {
        ArchiveError::Chain(error.into())
    }
}

pub(super) fn unreadable(path: &Path, error: ReadError) -> ArchiveError {
    match error {
        ReadError::Store(error) if !error.is_missing() => error.into(),
        error => ArchiveError::Unreadable { path: path.to_owned(), what: error.to_string() },
    }
}

pub(super) fn in_file(path: &Path, error: &io::Error) -> ArchiveError {
    ArchiveError::Copy(format!("{}: {error}", path.display()))
}
