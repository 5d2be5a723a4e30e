//! Row events: which rows of a table were written, updated or deleted.

pub(in crate::event) mod old_rows;
pub(in crate::event) mod old_temporal;
pub(in crate::event) mod row_images;
pub(in crate::event) mod table_map;

use super::error::EventError;
use super::fields::packed_integer;
use super::header::HEADER_LEN;
use super::types::EventType;
use crate::event::rows::row_images::RowImages;

/// A flag of row events.
const USE_SQL_FOREIGN_KEYS: u8 = 1 << 4;

/// What a row event does to its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowChange {
    /// They are new.
    Written,
    /// They were there and are others now.
    Updated,
    /// They were there and are no more.
    Deleted,
}

/// A row event of either version, also one that MariaDB has compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsEvent<'a> {
    /// What it does.
    pub change: RowChange,
    /// The number that a TABLE_MAP event before it gives to its table.
    pub table_id: [u8; 6],
    /// The row changes that foreign keys make of it (CASCADE, SET NULL) stand in the log too, as rows: MySQL 9.6 and later, unless
    /// `innodb_native_foreign_keys` is on (the flag `USE_SQL_FOREIGN_KEY_F`, which `mysqlbinlog` prints).
    pub has_cascades: bool,
    /// Columns of the table.
    pub columns: usize,
    /// A bit for each column that is there in the image: that before, of an update and of a delete.
    pub present: &'a [u8],
    /// The same for the image after an update; empty for others.
    pub present_after: &'a [u8],
    /// Images after an update state what is partial of them (`binlog_row_value_options = PARTIAL_JSON`).
    pub is_partial: bool,
    /// [`rows`](Self::rows) are packed (`log_bin_compress`).
    pub is_compressed: bool,
    /// The rows, one image behind the other.
    pub rows: &'a [u8],
}

impl<'a> RowsEvent<'a> {
    /// Reads a whole event without its checksum; `None` for another type of event.
    ///
    /// Layout: table id 6, flags 2, in version 2 a length of its own 2 bytes counts in and what it counts; the number of columns
    /// as a packed integer, a bit for each column that is there (twice in updates: before and after), the rows.
    ///
    /// # Errors
    /// When it is cut short.
    pub fn parse(event_type: EventType, event: &'a [u8]) -> Option<Result<RowsEvent<'a>, EventError>> {
        let change = change(event_type)?;
        Some(RowsEvent::of(event_type, change, event))
    }

    fn of(event_type: EventType, change: RowChange, event: &'a [u8]) -> Result<RowsEvent<'a>, EventError> {
        const CUT: EventError = EventError::Malformed("a row event is cut short");
        let body = event.get(HEADER_LEN..).ok_or(CUT)?;
        let table_id = *body.first_chunk::<6>().ok_or(CUT)?;
        let mut rest = body.get(8..).ok_or(CUT)?;
        let has_cascades = body[6] & USE_SQL_FOREIGN_KEYS != 0;
        if !is_version_1(event_type) {
            let len = rest.first_chunk::<2>().map(|len| usize::from(u16::from_le_bytes(*len))).ok_or(CUT)?;
            rest = rest.get(len.max(2)..).ok_or(CUT)?;
        }
        let columns = usize::try_from(packed_integer(&mut rest)?).map_err(|_| CUT)?;
        let (present, behind) = rest.split_at_checked(columns.div_ceil(8)).ok_or(CUT)?;
        let (present_after, rows) = match change {
            RowChange::Updated => behind.split_at_checked(columns.div_ceil(8)).ok_or(CUT)?,
            RowChange::Written | RowChange::Deleted => (&behind[..0], behind),
        };
        Ok(RowsEvent {
            change,
            table_id,
            has_cascades,
            columns,
            present,
            present_after,
            is_partial: event_type == EventType::PARTIAL_UPDATE_ROWS,
            is_compressed: event_type.is_compressed_rows(),
            rows,
        })
    }

    /// Of MariaDB: whether `rows`, which are this event's, unpacked, are as long as the types of their columns say. Dates and times of old are
    /// longer or shorter with fractions, which the log does not tell.
    pub fn is_told(&self, images: &RowImages, rows: &[u8]) -> bool {
        match self.change {
            RowChange::Updated => images.is_told(&[self.present, self.present_after], rows),
            RowChange::Written | RowChange::Deleted => images.is_told(&[self.present], rows),
        }
    }

    /// How many rows `rows` are, which are this event's, unpacked. `None` when that cannot be told.
    pub fn count(&self, images: &RowImages, rows: &[u8]) -> Option<u64> {
        if images.columns() != self.columns {
            return None;
        }
        match self.change {
            RowChange::Updated => images.count(&[self.present, self.present_after], self.is_partial, rows),
            RowChange::Written | RowChange::Deleted => images.count(&[self.present], false, rows),
        }
    }
}

fn change(event_type: EventType) -> Option<RowChange> {
    match event_type {
        EventType::WRITE_ROWS
        | EventType::WRITE_ROWS_V1
        | EventType::MARIADB_WRITE_ROWS_COMPRESSED
        | EventType::MARIADB_WRITE_ROWS_COMPRESSED_V1 => Some(RowChange::Written),
        EventType::UPDATE_ROWS
        | EventType::UPDATE_ROWS_V1
        | EventType::PARTIAL_UPDATE_ROWS
        | EventType::MARIADB_UPDATE_ROWS_COMPRESSED
        | EventType::MARIADB_UPDATE_ROWS_COMPRESSED_V1 => Some(RowChange::Updated),
        EventType::DELETE_ROWS
        | EventType::DELETE_ROWS_V1
        | EventType::MARIADB_DELETE_ROWS_COMPRESSED
        | EventType::MARIADB_DELETE_ROWS_COMPRESSED_V1 => Some(RowChange::Deleted),
        _ => None,
    }
}

fn is_version_1(event_type: EventType) -> bool {
    matches!(
        event_type,
        EventType::WRITE_ROWS_V1
            | EventType::UPDATE_ROWS_V1
            | EventType::DELETE_ROWS_V1
            | EventType::MARIADB_WRITE_ROWS_COMPRESSED_V1
            | EventType::MARIADB_UPDATE_ROWS_COMPRESSED_V1
            | EventType::MARIADB_DELETE_ROWS_COMPRESSED_V1
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::rows::table_map::TableColumns;
    use proptest::prelude::*;

    fn ints() -> RowImages {
        let columns =
            TableColumns { table_id: [0; 6], types: &[3], metadata: &[], nullable: &[], optional: &[] };
        RowImages::of(&columns).unwrap()
    }

    #[test]
    fn both_versions_are_read_and_counted() {
        let version_1 =
            [&[0; HEADER_LEN][..], &[7, 0, 0, 0, 0, 0, 1, 0, 1, 1], &[0, 1, 2, 3, 4].repeat(3)].concat();
        let event = RowsEvent::parse(EventType::DELETE_ROWS_V1, &version_1).unwrap().unwrap();
        assert_eq!((event.change, event.table_id[0], event.columns), (RowChange::Deleted, 7, 1));
        assert_eq!(event.count(&ints(), event.rows), Some(3));
        // With three bytes of extra data.
        let head = [7, 0, 0, 0, 0, 0, 1, 0, 5, 0, 9, 9, 9, 1, 1, 1];
        let version_2 = [&[0; HEADER_LEN][..], &head, &[0, 1, 2, 3, 4].repeat(4)].concat();
        let event = RowsEvent::parse(EventType::UPDATE_ROWS, &version_2).unwrap().unwrap();
        assert_eq!((event.change, event.count(&ints(), event.rows)), (RowChange::Updated, Some(2)));
        assert!(RowsEvent::parse(EventType::XID, &version_2).is_none());
        assert!(RowsEvent::parse(EventType::UPDATE_ROWS, &version_2[..HEADER_LEN + 15]).unwrap().is_err());
        let two =
            TableColumns { table_id: [0; 6], types: &[3, 3], metadata: &[], nullable: &[], optional: &[] };
        assert_eq!(event.count(&RowImages::of(&two).unwrap(), event.rows), None, "of another table");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(code in any::<u8>(), bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(Ok(event)) = RowsEvent::parse(EventType(code), &bytes) {
                let _ = event.count(&ints(), event.rows);
            }
        }
    }
}
