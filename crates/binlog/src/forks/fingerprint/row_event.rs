//! A row event, as far as a fingerprint looks at it.

use super::unpacked::{UNPACKED_BYTES_MAX, mariadb_unpacked};
use codec::event::{EventType, RowChange, RowsEvent};
use std::borrow::Cow;

/// What a row event holds.
pub(super) struct RowEvent<'a> {
    /// `W` for a write, `U` for an update, `u` for a partial one, `D` for a delete.
    pub(super) kind: u8,
    /// Number of the table, which a TABLE_MAP event gives to a name.
    pub(super) table: [u8; 6],
    /// Columns of the table.
    pub(super) width: u64,
    /// A bit for each column that is there; in updates those before and those after, one behind the other.
    pub(super) columns: Vec<u8>,
    /// The rows.
    pub(super) rows: Cow<'a, [u8]>,
}

impl<'a> RowEvent<'a> {
    /// Reads a whole event without its checksum; `None` for another type of event.
    ///
    /// # Errors
    /// What of it cannot be understood, in words.
    pub(super) fn parse(event_type: EventType, event: &'a [u8]) -> Option<Result<RowEvent<'a>, String>> {
        let read = RowsEvent::parse(event_type, event)?;
        Some(read.map_err(|error| error.to_string()).and_then(RowEvent::of))
    }

    fn of(read: RowsEvent<'a>) -> Result<RowEvent<'a>, String> {
        let kind = match read.change {
            RowChange::Written => b'W',
            // Its changes of JSON documents stand where another server writes whole documents.
            RowChange::Updated if read.is_partial => b'u',
            RowChange::Updated => b'U',
            RowChange::Deleted => b'D',
        };
        let mut columns = Vec::new();
        for there in [read.present, read.present_after] {
            columns.extend_from_slice(there);
            // What the bits behind the last column are is nobody's business.
            if let Some(last) =
                columns.last_mut().filter(|_| !read.columns.is_multiple_of(8) && !there.is_empty())
            {
                *last &= (1 << (read.columns % 8)) - 1;
            }
        }
        let rows = match read.is_compressed {
            true => mariadb_unpacked(read.rows, UNPACKED_BYTES_MAX)?.into(),
            false => read.rows.into(),
        };
        Ok(RowEvent { kind, table: read.table_id, width: read.columns as u64, columns, rows })
    }
}
