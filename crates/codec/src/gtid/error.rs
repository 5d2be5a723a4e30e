//! What can be wrong with a GTID, a GTID set, or the bytes that claim to be one.

use crate::ServerKind;

/// Longest part of a refused text that an error quotes, in characters.
const EXCERPT_CHARS_MAX: usize = 80;

/// Why a text, some bytes or a combination of values was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GtidError {
    /// A text that somebody wrote, or that a server answered, is not what it should be.
    #[error("{found:?} is not {expected}")]
    Text {
        /// What would have been accepted, with an example.
        expected: &'static str,
        /// The part that was refused, cut to a printable length.
        found: String,
    },
    /// Bytes from a peer or a file break the format that they claim to have. The fault is the sender's or the file's.
    #[error("malformed {what}: {problem} at byte {at} of its body")]
    Bytes {
        /// The structure that was being read.
        what: &'static str,
        /// Offset of the refused field, in bytes from the start of the structure.
        at: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A MySQL and a MariaDB value were to be combined. They have no common meaning; the stream changed its server.
    #[error(
        "a {added} GTID cannot be added to a {state} GTID state; start a new timeline for the other kind of server"
    )]
    Kind {
        /// What the state holds.
        state: ServerKind,
        /// What was to be added.
        added: ServerKind,
    },
}

impl GtidError {
    /// A refused text. `found` is cut, because it may be as long as a peer likes.
    pub(super) fn text(expected: &'static str, found: &str) -> GtidError {
        let mut excerpt: String = found.chars().take(EXCERPT_CHARS_MAX).collect();
        if excerpt.len() < found.len() {
            excerpt.push('…');
        }
        GtidError::Text { expected, found: excerpt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_quoted_in_part() {
        let error = GtidError::text("a GTID", &"x".repeat(1 << 20));
        assert_eq!(error.to_string(), format!("\"{}…\" is not a GTID", "x".repeat(EXCERPT_CHARS_MAX)));
    }
}
