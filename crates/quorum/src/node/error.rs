//! Why a node does not do what it is asked for.

use crate::memory::Refusal;
use crate::words::Senseless;
use std::io;
use std::path::PathBuf;

/// Why a node does not do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Its memory was not read yet.
    #[error("it has just begun, and has not read its memory yet")]
    NotReady,
    /// Its memory has changed while it was joining.
    #[error("its memory has changed while it was joining; it is tried again")]
    NotBlankSince,
    /// By its memory.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The memory cannot be read or written.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The memory is damaged.
    #[error(
        "{} is damaged: {error}. A node without memory must not vote: remove the file, and the node joins the others anew",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Senseless,
    },
}
