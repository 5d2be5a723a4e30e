//! The part of the log that a server without GTIDs is to apply, by positions.

use crate::history::{CopiedFile, Shown};
use codec::Position;
use std::sync::Arc;

/// See [the module](self).
#[derive(Debug, Clone)]
pub struct Stretch {
    /// The server has everything up to there.
    pub begin: Position,
    /// And in the end up to there.
    pub end: Position,
    /// Its files from the one of `begin` on, with the bytes of the stretch before each, and where its first transaction begins.
    files: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    name: Arc<str>,
    before: u64,
    from: u64,
    end: u64,
}

impl Stretch {
    /// One that is empty.
    pub(in crate::restore) fn new(begin: Position) -> Stretch {
        Stretch { end: begin.clone(), begin, files: Vec::new() }
    }

    /// It goes on in `file`, whose first transaction begins at `from`.
    pub(in crate::restore) fn enters(&mut self, file: &CopiedFile, from: u64) {
        let from = if self.files.is_empty() { self.begin.offset.max(from) } else { from };
        let before = self.files.last().map_or(0, |last| last.before + last.end.saturating_sub(last.from));
        self.files.push(Part { name: file.name.clone(), before, from, end: file.end });
    }

    /// A transaction of it ends there.
    pub(in crate::restore) fn goes_to(&mut self, file: &str, end: u64) {
        self.end = Position::new(file, end);
    }

    /// Bytes of the stretch up to a position; `None` of a file that is none of its own.
    pub(in crate::restore) fn bytes_to(&self, at: &Position) -> Option<u64> {
        let part = self.files.iter().find(|part| *part.name == *at.file)?;
        Some(part.before + at.offset.clamp(part.from, part.end.max(part.from)) - part.from)
    }

    /// Whether a server that stands there has all of it, and nothing of the transaction behind it. A server that has come to the end of a
    /// file stands in the next.
    pub(in crate::restore) fn is_end(&self, at: &Position, behind: Option<&Shown>) -> bool {
        let is_past = behind.is_some_and(|behind| *behind.file == *at.file && at.offset > behind.at);
        self.bytes_to(at).is_some_and(|bytes| bytes >= self.bytes()) && !is_past
    }

    /// Bytes of all of it.
    pub(in crate::restore) fn bytes(&self) -> u64 {
        self.bytes_to(&self.end).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;
    use codec::gtid::GtidState;

    fn file(name: &str, end: u64) -> CopiedFile {
        CopiedFile {
            path: name.into(),
            name: name.into(),
            timeline: "0001".to_owned(),
            end,
            lost: GtidState::empty(ServerKind::MySql),
            parted: None,
        }
    }

    #[test]
    fn bytes_are_counted_over_files_without_their_heads() {
        let mut stretch = Stretch::new(Position::new("b.000001", 500));
        stretch.enters(&file("b.000001", 1000), 150);
        stretch.enters(&file("b.000002", 800), 150);
        stretch.goes_to("b.000002", 350);
        assert_eq!(stretch.bytes(), 700);
        for (name, offset, bytes) in [
            ("b.000001", 500, Some(0)),
            ("b.000001", 4, Some(0)),
            ("b.000001", 1000, Some(500)),
            ("b.000002", 4, Some(500)),
            ("b.000002", 350, Some(700)),
            ("b.000003", 4, None),
        ] {
            assert_eq!(stretch.bytes_to(&Position::new(name, offset)), bytes, "{name}:{offset}");
        }
    }
}
