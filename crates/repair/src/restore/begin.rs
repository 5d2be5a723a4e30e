//! What the target has of the history: by its GTIDs, or, where it has none, by the position up to which it has everything.

use crate::history::{Copied, CopiedFile};
use crate::restore::course::no_course::NoCourse;
use binlog::storage::ReadFile;
use codec::Position;
use codec::gtid::GtidState;
use points::transaction::Transaction;
use points::walk::{Options, Walk, WalkError};
use source::identify::SourceIdentity;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub enum Begin<'a> {
    /// What it has executed.
    Gtids(&'a SourceIdentity),
    /// Everything up to there, a boundary of a file of the history.
    Position(&'a Position),
}

impl<'a> Begin<'a> {
    pub(super) fn position(self) -> Option<&'a Position> {
        match self {
            Begin::Gtids(_) => None,
            Begin::Position(at) => Some(at),
        }
    }

    /// Whether the target has a transaction; of files before the one of the position nobody asks.
    pub(super) fn has(self, file: &CopiedFile, transaction: &Transaction) -> bool {
        match self {
            Begin::Gtids(target) => transaction.id.is_some_and(|id| target.has(&id)),
            Begin::Position(at) => *file.name == *at.file && transaction.at < at.offset,
        }
    }

    /// The file from which on the history is walked: everything that the target lacks comes in that file or behind.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) fn first_file(self, copied: &Copied, files: &[CopiedFile]) -> Result<usize, NoCourse> {
        for (place, file) in files.iter().enumerate().rev() {
            let is_first = match self {
                // The last file before which nothing was executed that the target does not have.
                Begin::Gtids(target) => {
                    gtids_before(copied, file)?.is_some_and(|before| target.lacks(&before).is_empty())
                }
                Begin::Position(at) => *file.name == *at.file,
            };
            if is_first {
                return Ok(place);
            }
        }
        Ok(0)
    }
}

/// An error of the walk over a file.
pub(super) fn in_file(file: &CopiedFile, error: WalkError) -> NoCourse {
    NoCourse::Walk { path: file.path.clone(), error }
}

/// What was executed before a file, by its own word.
pub(super) fn gtids_before(copied: &Copied, file: &CopiedFile) -> Result<Option<GtidState>, NoCourse> {
    let opened: Box<dyn ReadFile> = copied.read(file).map_err(NoCourse::Copy)?;
    let walk = Walk::open(&*opened, file.end, Options::default()).map_err(|error| in_file(file, error))?;
    Ok(walk.gtids_before().cloned())
}
