//! TABLE_MAP: which table the row events after it change.

use super::error::EventError;
use super::header::HEADER_LEN;

/// The names in a TABLE_MAP event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableMap<'a> {
    /// Schema, in UTF-8 as the server stores names.
    pub schema: &'a [u8],
    /// Table.
    pub table: &'a [u8],
}

impl<'a> TableMap<'a> {
    /// Reads the names of an event, checksum or not.
    ///
    /// Layout (`Table_map_event`, MySQL `libs/mysql/binlog/event/rows_event.h`): table id 6, flags 2, then twice a length of
    /// one byte, the name and a terminating zero; both servers write a post-header of 8 bytes since MySQL 5.1.4.
    ///
    /// # Errors
    /// When the lengths do not fit.
    pub fn parse(event: &'a [u8]) -> Result<TableMap<'a>, EventError> {
        const CUT: EventError = EventError::Malformed("a TABLE_MAP event is shorter than its names");
        let rest = event.get(HEADER_LEN + 8..).ok_or(CUT)?;
        let (schema, rest) = name(rest).ok_or(CUT)?;
        let (table, _) = name(rest).ok_or(CUT)?;
        Ok(TableMap { schema, table })
    }
}

/// A name with its length before and a zero behind it; and what follows.
fn name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*len))?;
    Some((name, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_names_are_read_and_short_events_refused() {
        let mut event = vec![0; HEADER_LEN + 8];
        event.extend_from_slice(b"\x04shop\0\x06orders\0\x02\x03\x03");
        let map = TableMap::parse(&event).unwrap();
        assert_eq!((map.schema, map.table), (&b"shop"[..], &b"orders"[..]));
        for len in 0..event.len() - 3 {
            assert!(TableMap::parse(&event[..len]).is_err(), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = TableMap::parse(&bytes);
        }
    }
}
