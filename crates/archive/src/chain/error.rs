//! Why a chain cannot be read or added to.

use super::history::Unsound;
use super::mark::Older;
use crate::store::StoreError;
use std::fmt;

/// Why the commits cannot be read or added to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainError {
    /// The store did not do what was asked.
    Store(StoreError),
    /// What stands in the store cannot be: damaged, replaced, or of a later version.
    Unsound(Unsound),
    /// What was in the store before is not there any more.
    Older(Older),
    /// The commits are signed, and whoever would add to them has no key.
    NoKey,
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::Store(error) => error.fmt(f),
            ChainError::Unsound(error) => write!(f, "the archive is not as it was written: {error}"),
            ChainError::Older(error) => error.fmt(f),
            ChainError::NoKey => f.write_str(
                "the commits of this archive are signed, and here is no key to sign the next one with: name its file in sign_key of \
                 [archive], or to a verb by --sign-key",
            ),
        }
    }
}

impl std::error::Error for ChainError {}

impl From<StoreError> for ChainError {
    fn from(error: StoreError) -> ChainError {
        ChainError::Store(error)
    }
}

impl From<Unsound> for ChainError {
    fn from(error: Unsound) -> ChainError {
        ChainError::Unsound(error)
    }
}
