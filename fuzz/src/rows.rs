//! Rows of a table, value by value: a TABLE_MAP event and a row event of the fuzzer's, from MySQL or MariaDB.
//!
//! First byte: bit 0 MariaDB; bit 1 both events are the fuzzer's as they are, each with its length before in two bytes, else lengths and
//! counts are made right; bit 2 only with that: all columns are in the images; the next two bits what is done, bit 5 as version 1, bit 6
//! packed as MariaDB does.
//!
//! ```text
//! types       1 byte for their number, each 1 byte and as many of metadata as it has
//! optional    2 bytes for the length, the optional fields
//! present     as many bits as there are columns, twice of an update; only without bit 2
//! rows        the rest
//! ```
//!
//! Held true: no panic; what is read takes exactly the bytes that the other way to step over rows (`RowsEvent::count`) takes; a row that
//! lacks a byte is no row; a value's text is bounded by its bytes.

use crate::input::Input;
use codec::ServerKind;
use codec::event::{EventType, HEADER_LEN, RowChange, RowImages, RowsEvent, TableColumns};
use codec::rows::{ColumnType, Image, Row, Rows, Table};
use points::walk::events::rows_of;

/// Most rows of one input: more only take time.
const ROWS_MAX: u64 = 512;

/// Most bytes of packed rows, unpacked.
const UNPACKED_BYTES_MAX: usize = 1 << 16;

/// A byte of a value is at most so many of its text: of the smallest DOUBLE, which has 341 digits.
const TEXT_FACTOR: usize = 64;

/// zlib makes at most 1032 bytes of one, and text has at most ten characters a byte.
const PACKED_FACTOR: usize = 10 * 1100;

/// Reads them.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.u8();
    let server = if flags & 1 == 0 { ServerKind::MySql } else { ServerKind::MariaDb };
    let (table, event) =
        if flags & 2 != 0 { raw(&mut input) } else { made(&mut input, flags & 4 != 0, flags) };
    let columns = TableColumns::parse(&table);
    let parsed = Table::parse(&table, server);
    let Ok(parsed) = parsed else { return };
    let columns = columns.expect("who reads a table reads its columns");
    assert_eq!(parsed.columns.len(), columns.types.len());
    let named = parsed.columns.iter().filter(|column| column.name.is_some()).count();
    assert!(!parsed.has_names || named == parsed.columns.len());
    let Some(Ok(rows)) = RowsEvent::parse(event_type(flags), &event) else { return };
    let images = RowImages::of(&columns).expect("who reads a table reads the lengths of its values");
    let Ok(bytes) = rows_of(&rows, UNPACKED_BYTES_MAX) else { return };
    assert!(bytes.len() <= UNPACKED_BYTES_MAX.max(rows.rows.len()));
    read(&parsed, &images, &rows, &bytes);
}

fn read(table: &Table, images: &RowImages, event: &RowsEvent<'_>, bytes: &[u8]) {
    let counted = event.count(images, bytes);
    // The count knows the lengths of rows only; what is read knows that the event is of this table, too.
    let Ok(rows) = Rows::new(table, event, bytes) else {
        assert_eq!(counted.unwrap_or(0), 0, "what is counted is read");
        return;
    };
    let (mut sound, mut is_cut) = (0, false);
    for row in rows {
        assert!(!is_cut, "nothing comes behind what is cut");
        match row {
            Ok(row) => {
                sound += 1;
                look(table, event, &row, bytes.len());
            }
            Err(_) => is_cut = true,
        }
        if sound == ROWS_MAX {
            return;
        }
    }
    assert_eq!(counted, (!is_cut).then_some(sound), "both ways to step over rows agree");
    if sound > 0 && !is_cut {
        let short = &bytes[..bytes.len() - 1];
        let of_short =
            Rows::new(table, event, short).expect("of the same table").filter(Result::is_ok).count();
        assert_eq!(of_short as u64, sound - 1, "the last row has all the bytes");
    }
}

fn look(table: &Table, event: &RowsEvent<'_>, row: &Row<'_>, bytes: usize) {
    assert_eq!(row.before.is_some(), event.change != RowChange::Written);
    assert_eq!(row.after.is_some(), event.change != RowChange::Deleted);
    let present_after = if event.change == RowChange::Updated { event.present_after } else { event.present };
    for (own, present) in [(&row.before, event.present), (&row.after, present_after)] {
        let Some(own) = own else { continue };
        look_at_image(table, present, own, bytes);
    }
}

fn look_at_image(table: &Table, present: &[u8], image: &Image<'_>, bytes: usize) {
    assert_eq!(image.len(), table.columns.len());
    for (at, (column, value)) in table.columns.iter().zip(image).enumerate() {
        assert_eq!(value.is_some(), present[at / 8] & 1 << (at % 8) != 0);
        let Some(value) = value else { continue };
        let names: usize = column.members.iter().flatten().map(|name| 10 * name.len() + 1).sum();
        let factor = if column.kind == ColumnType::Compressed { PACKED_FACTOR } else { TEXT_FACTOR };
        // BINARY is as long as its column, by zeros that the log leaves out.
        let most = factor * bytes + names + 4096;
        assert!(value.text(column).len() <= most, "{column:?} {value:?}");
    }
}

fn event_type(flags: u8) -> EventType {
    let change = flags >> 3 & 3;
    if change == 3 {
        return EventType::PARTIAL_UPDATE_ROWS;
    }
    let first = match (flags & 0x20 != 0, flags & 0x40 != 0) {
        (false, false) => EventType::WRITE_ROWS,
        (true, false) => EventType::WRITE_ROWS_V1,
        (false, true) => EventType::MARIADB_WRITE_ROWS_COMPRESSED,
        (true, true) => EventType::MARIADB_WRITE_ROWS_COMPRESSED_V1,
    };
    // Both servers number those of update and of delete behind.
    EventType(first.0 + change)
}

fn raw(input: &mut Input<'_>) -> (Vec<u8>, Vec<u8>) {
    let mut event = || {
        let len = usize::from(input.u16());
        [&[0; HEADER_LEN][..], input.bytes(len)].concat()
    };
    (event(), event())
}

fn made(input: &mut Input<'_>, has_all: bool, flags: u8) -> (Vec<u8>, Vec<u8>) {
    let count = usize::from(input.u8());
    let (mut types, mut metadata) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let code = input.u8();
        types.push(code);
        metadata.extend_from_slice(input.bytes(metadata_len(code)));
    }
    let len = usize::from(input.u16());
    let optional = input.bytes(len);
    let bits = count.div_ceil(8);
    let mut table = [&[0; HEADER_LEN][..], &[7, 0, 0, 0, 0, 0, 1, 0], b"\x04shop\0\x01t\0"].concat();
    table.extend_from_slice(&packed(count));
    table.extend_from_slice(&types);
    table.extend_from_slice(&packed(metadata.len()));
    table.extend_from_slice(&metadata);
    table.extend_from_slice(&vec![0xff; bits]);
    table.extend_from_slice(optional);
    let mut event = [&[0; HEADER_LEN][..], &[7, 0, 0, 0, 0, 0, 1, 0]].concat();
    if flags & 0x20 == 0 || flags >> 3 & 3 == 3 {
        event.extend_from_slice(&[2, 0]);
    }
    event.extend_from_slice(&packed(count));
    let images = if matches!(flags >> 3 & 3, 1 | 3) { 2 } else { 1 };
    for _ in 0..images {
        let present = if has_all { vec![0xff; bits] } else { input.bytes(bits).to_vec() };
        event.extend_from_slice(&present);
    }
    event.extend_from_slice(input.rest());
    (table, event)
}

fn packed(number: usize) -> Vec<u8> {
    let number = number as u16;
    if number < 251 { vec![number as u8] } else { [&[0xfc][..], &number.to_le_bytes()].concat() }
}

/// Bytes of metadata, so that the fuzzer need not find them; another number only makes another table.
fn metadata_len(code: u8) -> usize {
    match code {
        4 | 5 | 17..=19 | 249..=252 | 245 | 255 | 242 | 140 => 1,
        15 | 16 | 246..=248 | 253 | 254 | 141 => 2,
        _ => 0,
    }
}
