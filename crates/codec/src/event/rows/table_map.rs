//! TABLE_MAP: which table the row events after it change.

use crate::event::error::EventError;
use crate::event::fields::counted;
use crate::event::header::HEADER_LEN;

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

/// The columns of a table, as a TABLE_MAP event states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableColumns<'a> {
    /// The number by which row events name the table, within their transaction.
    pub table_id: [u8; 6],
    /// A type code for each column (`enum_field_types`).
    pub types: &'a [u8],
    /// What the types need beyond that, column behind column; see [`RowImages`](crate::event::RowImages).
    pub metadata: &'a [u8],
    /// A bit for each column that may be NULL.
    pub nullable: &'a [u8],
    /// Fields that a reader may pass over: with `binlog_row_metadata = FULL` names of columns and more. MySQL 8.0.1 and later,
    /// MariaDB 10.5 and later; empty in others.
    pub optional: &'a [u8],
}

impl<'a> TableColumns<'a> {
    /// Reads a whole event without its checksum.
    ///
    /// Layout: behind the names (see [`TableMap::parse`]) the number of columns as a packed integer, a type code each; the length
    /// of the metadata as a packed integer, the metadata; a bit for each column; the optional fields.
    ///
    /// # Errors
    /// When the lengths do not fit.
    pub fn parse(event: &'a [u8]) -> Result<TableColumns<'a>, EventError> {
        const CUT: EventError = EventError::Malformed("a TABLE_MAP event is shorter than its columns");
        let body = event.get(HEADER_LEN..).ok_or(CUT)?;
        let table_id = *body.first_chunk::<6>().ok_or(CUT)?;
        let (_, rest) = name(body.get(8..).ok_or(CUT)?).ok_or(CUT)?;
        let (_, mut rest) = name(rest).ok_or(CUT)?;
        let types = counted(&mut rest).ok_or(CUT)?;
        let metadata = counted(&mut rest).ok_or(CUT)?;
        let (nullable, optional) = rest.split_at_checked(types.len().div_ceil(8)).ok_or(CUT)?;
        Ok(TableColumns { table_id, types, metadata, nullable, optional })
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
    fn the_columns_are_read_and_short_events_refused() {
        let mut event = vec![0; HEADER_LEN];
        event.extend_from_slice(&[7, 0, 0, 0, 0, 0, 1, 0]);
        event.extend_from_slice(b"\x04shop\0\x06orders\0\x02\x03\x0f\x02\x40\x00\x02");
        let end = event.len();
        event.extend_from_slice(&[1, 1, 0]);
        let columns = TableColumns::parse(&event).unwrap();
        assert_eq!((columns.table_id[0], columns.types, columns.metadata), (7, &[3, 15][..], &[64, 0][..]));
        assert_eq!((columns.nullable, columns.optional), (&[2][..], &[1, 1, 0][..]));
        for len in 0..end {
            assert!(TableColumns::parse(&event[..len]).is_err(), "{len} bytes");
        }
    }

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
            let _ = TableColumns::parse(&bytes);
        }
    }
}
