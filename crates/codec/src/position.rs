//! A place in a source's binary log.

use std::fmt;
use std::sync::Arc;

/// A place in the source's stream of files. A clone costs one atomic increment and no allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Position {
    /// Bare file name, as in `SHOW BINARY LOGS`.
    pub file: Arc<str>,
    /// Offset in bytes from the file's beginning; the first event stands at 4. 64 bits, unlike the wire's `log_pos`, which
    /// wraps at 4 GiB.
    pub offset: u64,
}

impl Position {
    /// `offset` bytes into `file`.
    pub fn new(file: impl Into<Arc<str>>, offset: u64) -> Position {
        Position { file: file.into(), offset }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
