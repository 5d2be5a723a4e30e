//! What a call tells while it goes on, for whoever shows that. The answer itself is what the call returns.

use crate::rescue::compare::compared::Compared;
use std::path::Path;

/// What has just been done or found.
#[derive(Debug)]
pub enum Event<'a> {
    /// A remark beside the answer, in words; it may have several lines.
    Note(&'a str),
    /// The log is walked.
    Walked {
        /// Bytes so far.
        bytes: u64,
        /// Of so many.
        of: u64,
    },
    /// A backup is put back.
    Loaded {
        /// Bytes so far.
        bytes: u64,
        /// Of so many.
        of: u64,
    },
    /// A file of the copy is read for what the target lacks.
    Reading(&'a Path),
    /// What the target has is compared with this file of the copy.
    Comparing(&'a Path),
    /// What the target had before was compared, as far as it could be, and nothing differs.
    Compared {
        /// How much of it was asked for, in words.
        words: &'a str,
        /// What was found.
        compared: &'a Compared,
    },
    /// Transactions are on the target.
    Applied {
        /// So many by now.
        done: u64,
        /// Of so many.
        of: u64,
    },
}

/// Takes each event.
pub type Hear<'a> = dyn FnMut(Event<'_>) + 'a;
