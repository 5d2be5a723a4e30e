//! INTVAR and RAND: values that the statement after them must find, in logs that hold statements instead of rows.

use crate::event::error::EventError;
use crate::event::fields::{need, u64_at};
use crate::event::header::HEADER_LEN;

/// INTVAR: what AUTO_INCREMENT or LAST_INSERT_ID() gave on the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntVar {
    /// `LAST_INSERT_ID()` of the statement.
    LastInsertId(u64),
    /// The first value that the statement put into an AUTO_INCREMENT column.
    InsertId(u64),
}

impl IntVar {
    /// Reads a whole event without its checksum (`Intvar_event`: type 1, value 8).
    ///
    /// # Errors
    /// When it is short or of another type.
    pub fn parse(event: &[u8]) -> Result<IntVar, EventError> {
        need("an INTVAR event", event, HEADER_LEN + 9)?;
        let value = u64_at(event, HEADER_LEN + 1);
        match event[HEADER_LEN] {
            1 => Ok(IntVar::LastInsertId(value)),
            2 => Ok(IntVar::InsertId(value)),
            _ => Err(EventError::Malformed("an INTVAR event of unknown type")),
        }
    }
}

/// RAND: the seeds of RAND() (`rand_seed1`, `rand_seed2`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rand(pub u64, pub u64);

impl Rand {
    /// Reads a whole event without its checksum (`Rand_event`: twice 8 bytes).
    ///
    /// # Errors
    /// When it is short.
    pub fn parse(event: &[u8]) -> Result<Rand, EventError> {
        need("a RAND event", event, HEADER_LEN + 16)?;
        Ok(Rand(u64_at(event, HEADER_LEN), u64_at(event, HEADER_LEN + 8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let mut event = vec![0; HEADER_LEN];
        event.extend_from_slice(&[2, 9, 0, 0, 0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(IntVar::parse(&event), Ok(IntVar::InsertId((1 << 56) + 9)));
        assert!(IntVar::parse(&event[..HEADER_LEN + 8]).is_err());
        event[HEADER_LEN] = 3;
        assert!(IntVar::parse(&event).is_err());
        event.remove(HEADER_LEN);
        assert_eq!(Rand::parse(&event), Ok(Rand((1 << 56) + 9, 7)));
        assert!(Rand::parse(&event[..HEADER_LEN + 15]).is_err());
    }
}
