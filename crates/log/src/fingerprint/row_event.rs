//! A row event, as far as a fingerprint looks at it.

use super::unpacked::{UNPACKED_BYTES_MAX, mariadb_unpacked};
use codec::event::{EventType, HEADER_LEN};
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
    /// Layout (`Rows_event`, MySQL `libs/mysql/binlog/event/rows_event.h`): table id 6, flags 2, in version 2 a length of its own
    /// 2 bytes counts in and what it counts; the number of columns as a packed integer, a bit for each column that is there
    /// (twice in updates: before and after), the rows.
    ///
    /// # Errors
    /// What of it cannot be understood, in words.
    pub(super) fn parse(event_type: EventType, event: &'a [u8]) -> Option<Result<RowEvent<'a>, String>> {
        let (kind, compressed) = row_kind(event_type)?;
        Some(RowEvent::of_kind(kind, compressed, is_version_1(event_type), event))
    }

    fn of_kind(kind: u8, compressed: bool, version_1: bool, event: &'a [u8]) -> Result<RowEvent<'a>, String> {
        const CUT: &str = "a row event is cut short";
        let id = event.get(HEADER_LEN..HEADER_LEN + 6).and_then(|id| id.first_chunk::<6>()).ok_or(CUT)?;
        let mut rest = event.get(HEADER_LEN + 8..).ok_or(CUT)?;
        if !version_1 {
            let len = rest.first_chunk::<2>().map(|len| usize::from(u16::from_le_bytes(*len))).ok_or(CUT)?;
            rest = rest.get(len.max(2)..).ok_or(CUT)?;
        }
        let (width, after) = packed_length(rest).ok_or(CUT)?;
        rest = after;
        let mut columns = Vec::new();
        for _ in 0..if kind == b'W' || kind == b'D' { 1 } else { 2 } {
            let (there, after) = rest.split_at_checked(width.div_ceil(8)).ok_or(CUT)?;
            rest = after;
            columns.extend_from_slice(there);
            // What the bits behind the last column are is nobody's business.
            if let Some(last) = columns.last_mut().filter(|_| width % 8 != 0) {
                *last &= (1 << (width % 8)) - 1;
            }
        }
        let rows = if compressed { mariadb_unpacked(rest, UNPACKED_BYTES_MAX)?.into() } else { rest.into() };
        Ok(RowEvent { kind, table: *id, width: width as u64, columns, rows })
    }
}

/// Write, update, partial update or delete, and whether MariaDB has compressed the rows.
fn row_kind(event_type: EventType) -> Option<(u8, bool)> {
    match event_type {
        EventType::WRITE_ROWS | EventType::WRITE_ROWS_V1 => Some((b'W', false)),
        EventType::UPDATE_ROWS | EventType::UPDATE_ROWS_V1 => Some((b'U', false)),
        // Its changes of JSON documents stand where another server writes whole documents.
        EventType::PARTIAL_UPDATE_ROWS => Some((b'u', false)),
        EventType::DELETE_ROWS | EventType::DELETE_ROWS_V1 => Some((b'D', false)),
        EventType::MARIADB_WRITE_ROWS_COMPRESSED | EventType::MARIADB_WRITE_ROWS_COMPRESSED_V1 => {
            Some((b'W', true))
        }
        EventType::MARIADB_UPDATE_ROWS_COMPRESSED | EventType::MARIADB_UPDATE_ROWS_COMPRESSED_V1 => {
            Some((b'U', true))
        }
        EventType::MARIADB_DELETE_ROWS_COMPRESSED | EventType::MARIADB_DELETE_ROWS_COMPRESSED_V1 => {
            Some((b'D', true))
        }
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

/// A packed integer and what follows it.
fn packed_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    match first {
        0..=250 => Some((usize::from(*first), rest)),
        252 => Some((usize::from(u16::from_le_bytes(*rest.first_chunk()?)), rest.get(2..)?)),
        _ => None, // A table has 4096 columns at most.
    }
}
