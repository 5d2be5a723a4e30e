//! The file that a stream has left last, and how that file says that it ends.

use binlog::Position;

/// The file that a stream has left last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftFile {
    /// Where it ends.
    pub end: Position,
    /// The last boundary in it: its end, unless the source crashed inside a transaction.
    pub boundary: u64,
    /// Where the tail begins with which its end is compared.
    pub tail_start: u64,
    /// What its last event says. `None` after a crash of the source, and where the source's logs were reset.
    pub last_word: Option<LastWord>,
}

/// How a file says of itself that it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastWord {
    /// By a ROTATE event of its own, which names the next file.
    Rotate {
        /// The next file.
        next: String,
        /// When, in seconds since 1970.
        timestamp: u32,
    },
    /// By a STOP event: the server was shut down.
    Stop,
}
