//! Row events of the source's table as BINLOG takes them for the scratch table: another schema in the TABLE_MAP, a number of ours for the
//! table, the target's server id, unpacked, without checksum.
//!
//! The target's server id: with the source's a replica of the target that is the source itself would pass them over.

use codec::event::{EventType, HEADER_LEN, RowsEvent};
use points::walk::events::rows_of;

/// Bits of the flags of row events (`Rows_event`, `rows_event.h`).
const STATEMENT_END: u8 = 1;
const NO_FOREIGN_KEY_CHECKS: u8 = 2;
const RELAXED_UNIQUE_CHECKS: u8 = 4;

/// Places in an event: behind its header come six bytes of the table's number, then the flags.
const TYPE_AT: usize = 4;
const SERVER_ID_AT: usize = 5;
const SIZE_AT: usize = 9;
const FLAGS_AT: usize = HEADER_LEN + 6;

/// What MariaDB has compressed, and what that is unpacked.
const COMPRESSED: [(EventType, EventType); 6] = [
    (EventType::MARIADB_WRITE_ROWS_COMPRESSED_V1, EventType::WRITE_ROWS_V1),
    (EventType::MARIADB_UPDATE_ROWS_COMPRESSED_V1, EventType::UPDATE_ROWS_V1),
    (EventType::MARIADB_DELETE_ROWS_COMPRESSED_V1, EventType::DELETE_ROWS_V1),
    (EventType::MARIADB_WRITE_ROWS_COMPRESSED, EventType::WRITE_ROWS),
    (EventType::MARIADB_UPDATE_ROWS_COMPRESSED, EventType::UPDATE_ROWS),
    (EventType::MARIADB_DELETE_ROWS_COMPRESSED, EventType::DELETE_ROWS),
];

/// A TABLE_MAP of another table with the same columns; `None` when the event is cut short, or a name is longer than its length can say.
pub(super) fn table_map(
    event: &[u8],
    number: u8,
    server_id: u32,
    (schema, table): (&str, &str),
) -> Option<Vec<u8>> {
    let names = event.get(HEADER_LEN + 8..)?;
    let behind_schema = names.get(usize::from(*names.first()?) + 2..)?;
    let columns = behind_schema.get(usize::from(*behind_schema.first()?) + 2..)?;
    let mut map = event.get(..HEADER_LEN + 8)?.to_vec();
    for name in [schema, table] {
        map.push(u8::try_from(name.len()).ok()?);
        map.extend_from_slice(name.as_bytes());
        map.push(0);
    }
    map.extend_from_slice(columns);
    own(&mut map, number, server_id);
    Some(map)
}

/// A row event of that table, without the mark of a statement's end. Foreign keys are not looked at, unique keys are.
///
/// # Errors
/// In words, when it cannot be read.
pub(super) fn rows(
    event_type: EventType,
    event: &[u8],
    (number, server_id): (u8, u32),
    bytes_max: usize,
) -> Result<Vec<u8>, String> {
    let parsed = RowsEvent::parse(event_type, event).ok_or("it is no row event")?;
    let parsed = parsed.map_err(|error| error.to_string())?;
    let head = event.len() - parsed.rows.len();
    let mut out = event[..head].to_vec();
    out.extend_from_slice(&rows_of(&parsed, bytes_max)?);
    if let Some((_, plain)) = COMPRESSED.iter().find(|(packed, _)| *packed == event_type) {
        out[TYPE_AT] = plain.0;
    }
    own(&mut out, number, server_id);
    out[FLAGS_AT] &= !(STATEMENT_END | RELAXED_UNIQUE_CHECKS);
    out[FLAGS_AT] |= NO_FOREIGN_KEY_CHECKS;
    Ok(out)
}

/// Marks a row event as the last of its statement.
pub(super) fn end_statement(event: &mut [u8]) {
    if let Some(flags) = event.get_mut(FLAGS_AT) {
        *flags |= STATEMENT_END;
    }
}

/// Whether foreign keys were not looked at when its rows were changed, so that they changed no others.
pub(super) fn is_without_foreign_keys(event: &[u8]) -> bool {
    event.get(FLAGS_AT).is_some_and(|flags| flags & NO_FOREIGN_KEY_CHECKS != 0)
}

fn own(event: &mut [u8], number: u8, server_id: u32) {
    let size = (event.len() as u32).to_le_bytes();
    event[SERVER_ID_AT..SERVER_ID_AT + 4].copy_from_slice(&server_id.to_le_bytes());
    event[SIZE_AT..SIZE_AT + 4].copy_from_slice(&size);
    event[HEADER_LEN..HEADER_LEN + 6].copy_from_slice(&[number, 0, 0, 0, 0, 0]);
}

#[cfg(test)]
mod tests;
