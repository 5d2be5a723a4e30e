//! Why an index is not believed.

use std::io;
use thiserror::Error;

/// Why there is no index to believe.
#[derive(Debug, Error)]
pub enum IndexError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is no search index, or one of another version.
    #[error("it is no search index of this version")]
    OtherVersion,
    /// It is damaged.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// It is of another file.
    #[error("it is of another file of that name")]
    OtherFile,
}
