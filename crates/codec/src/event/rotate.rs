//! ROTATE: the name of the file that follows.

use super::error::EventError;
use super::fields::{need, u64_at};
use super::header::HEADER_LEN;
use crate::BinlogName;

/// The body of a ROTATE event: at the end of a file it names the next one; the artificial one at connect and at every
/// file switch names the file whose events follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotate<'a> {
    /// Position of the next event in that file; 4 at a file's start.
    pub position: u64,
    /// Bare file name, as in `SHOW BINARY LOGS`.
    pub next_file: &'a str,
}

impl<'a> Rotate<'a> {
    /// Reads a whole event without its checksum.
    ///
    /// # Errors
    /// When it is too short, or names what is no [`BinlogName`].
    pub fn parse(event: &'a [u8]) -> Result<Rotate<'a>, EventError> {
        need("a ROTATE event", event, HEADER_LEN + 8 + 1)?;
        let name = std::str::from_utf8(&event[HEADER_LEN + 8..])
            .map_err(|_| EventError::Malformed("the file name in a ROTATE event is not UTF-8"))?;
        let next_file = BinlogName::parse(name)?.as_str();
        Ok(Rotate { position: u64_at(event, HEADER_LEN), next_file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotate(name: &[u8]) -> Vec<u8> {
        let mut event = vec![0u8; HEADER_LEN];
        event.extend_from_slice(&4u64.to_le_bytes());
        event.extend_from_slice(name);
        event
    }

    #[test]
    fn the_name_and_position_are_read() {
        let event = rotate(b"mysql-bin.000002");
        assert_eq!(Rotate::parse(&event), Ok(Rotate { position: 4, next_file: "mysql-bin.000002" }));
    }

    #[test]
    fn names_that_could_leave_the_folder_are_refused() {
        for bad in ["", "../x.000001", "a/b.000001", "mysql-bin", "binlog.index"] {
            assert!(Rotate::parse(&rotate(bad.as_bytes())).is_err(), "{bad:?}");
        }
        assert!(Rotate::parse(&rotate(b"\xff.000001")).is_err());
    }
}
