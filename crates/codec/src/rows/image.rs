//! The rows of a row event, one after another.

use super::table::{ColumnType, Table};
use super::value::Value;
use crate::event::{EventError, RowChange, RowsEvent, is_set, packed_integer};

/// A row as it was or as it became: a value for each column of the table; `None` for one that is not in the log.
pub type Image<'a> = Vec<Option<Value<'a>>>;

/// What happened to one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// How it was; `None` when it is new.
    pub before: Option<Image<'a>>,
    /// How it became; `None` when it is no more.
    pub after: Option<Image<'a>>,
}

/// Reads the rows of one event.
#[derive(Debug)]
pub struct Rows<'a> {
    table: &'a Table,
    change: RowChange,
    present: &'a [u8],
    present_after: &'a [u8],
    is_partial: bool,
    json_columns: usize,
    rest: &'a [u8],
}

const CUT: EventError = EventError::Malformed("the rows of an event are shorter than their columns say");

impl<'a> Rows<'a> {
    /// Of an event of that table; `rows` are its own, unpacked.
    ///
    /// # Errors
    /// When it is an event of another table.
    pub fn new(table: &'a Table, event: &RowsEvent<'a>, rows: &'a [u8]) -> Result<Rows<'a>, EventError> {
        const OTHER: EventError = EventError::Malformed("a row event has other columns than its table");
        if event.columns != table.columns.len() || event.present.len() != event.columns.div_ceil(8) {
            return Err(OTHER);
        }
        const EMPTY: EventError = EventError::Malformed(
            "they state no column (binlog_row_image = MINIMAL), so nobody can tell how many there are",
        );
        // Rows without a column have no length, or, of a partial update, one that says nothing.
        let has_columns =
            (0..event.columns).any(|at| is_set(event.present, at) || is_set(event.present_after, at));
        if !has_columns {
            return Err(EMPTY);
        }
        Ok(Rows {
            table,
            change: event.change,
            present: event.present,
            present_after: event.present_after,
            is_partial: event.is_partial,
            json_columns: table.columns.iter().filter(|column| column.kind == ColumnType::Json).count(),
            rest: rows,
        })
    }

    fn row(&mut self) -> Option<Row<'a>> {
        let len = self.rest.len();
        let row = match self.change {
            RowChange::Written => Row { before: None, after: Some(self.image(self.present, None)?) },
            RowChange::Deleted => Row { before: Some(self.image(self.present, None)?), after: None },
            RowChange::Updated => {
                let before = self.image(self.present, None)?;
                let partial = if self.is_partial { self.partial_bits()? } else { None };
                Row { before: Some(before), after: Some(self.image(self.present_after, partial)?) }
            }
        };
        // A row of no bytes would come again for ever.
        (self.rest.len() < len).then_some(row)
    }

    /// A bit for each column of JSON of the table, where there are partial ones.
    fn partial_bits(&mut self) -> Option<Option<&'a [u8]>> {
        let options = packed_integer(&mut self.rest).ok()?;
        if options & 1 == 0 {
            return Some(None);
        }
        let (bits, rest) = self.rest.split_at_checked(self.json_columns.div_ceil(8))?;
        self.rest = rest;
        Some(Some(bits))
    }

    fn image(&mut self, present: &[u8], partial: Option<&[u8]>) -> Option<Image<'a>> {
        let count = (0..self.table.columns.len()).filter(|at| is_set(present, *at)).count();
        let (nulls, rest) = self.rest.split_at_checked(count.div_ceil(8))?;
        self.rest = rest;
        let (mut there, mut json) = (0, 0);
        let mut image = Vec::with_capacity(self.table.columns.len());
        for (at, column) in self.table.columns.iter().enumerate() {
            let is_json = column.kind == ColumnType::Json;
            let is_diff = is_json && partial.is_some_and(|bits| is_set(bits, json));
            json += usize::from(is_json);
            if !is_set(present, at) {
                image.push(None);
                continue;
            }
            let is_null = is_set(nulls, there);
            there += 1;
            if is_null {
                image.push(Some(Value::Null));
                continue;
            }
            let bytes = self.table.images.value(at, &mut self.rest)?;
            image.push(Some(if is_diff { Value::decode_diffs(bytes) } else { Value::decode(column, bytes) }));
        }
        Some(image)
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>, EventError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let row = self.row();
        if row.is_none() {
            self.rest = &[];
        }
        Some(row.ok_or(CUT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerKind;
    use crate::event::{EventType, HEADER_LEN};
    use proptest::prelude::*;

    /// Of a table of an INT and a JSON.
    fn table() -> Table {
        let mut event = vec![0; HEADER_LEN];
        event.extend_from_slice(&[7, 0, 0, 0, 0, 0, 1, 0]);
        event.extend_from_slice(b"\x04shop\0\x01t\0\x02\x03\xf5\x01\x04\x03");
        Table::parse(&event, ServerKind::MySql).unwrap()
    }

    fn rows(table: &Table, code: EventType, body: &[u8]) -> Vec<Result<Row<'static>, EventError>> {
        let head = [&[0; HEADER_LEN][..], &[7, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2], body].concat();
        // The values borrow from the event and the table.
        let (event, table) = (Box::leak(head.into_boxed_slice()), Box::leak(Box::new(table.clone())));
        let event = RowsEvent::parse(code, event).unwrap().unwrap();
        Rows::new(table, &event, event.rows).map_or_else(|error| vec![Err(error)], Iterator::collect)
    }

    #[test]
    fn rows_are_read_one_after_another() {
        let read = rows(&table(), EventType::WRITE_ROWS, &[3, 2, 1, 0, 0, 0, 3, 0]);
        assert_eq!(read.len(), 3, "{read:?}");
        let image = |row: &Result<Row<'static>, EventError>| row.clone().unwrap().after.unwrap();
        assert_eq!(image(&read[0]), [Some(Value::Int(1)), Some(Value::Null)]);
        assert_eq!(image(&read[1]), [Some(Value::Null), Some(Value::Null)]);
        assert!(read[2].is_err(), "it is cut");
        let lacking = rows(&table(), EventType::DELETE_ROWS, &[1, 0, 9, 0, 0, 0]);
        assert_eq!(lacking[0].clone().unwrap().before.unwrap(), [Some(Value::Int(9)), None]);
    }

    #[test]
    fn rows_without_a_column_are_refused() {
        for (code, body) in [
            (EventType::WRITE_ROWS, &[0x80, 0, 0][..]),
            (EventType::UPDATE_ROWS, &[0, 0x80, 0, 0]),
            (EventType::PARTIAL_UPDATE_ROWS, &[0, 0, 0, 0]),
        ] {
            let read = rows(&table(), code, body);
            assert!(read.len() == 1 && read[0].is_err(), "{code} {read:?}");
        }
    }

    #[test]
    fn a_partial_update_is_read() {
        let before = [0, 1, 0, 0, 0, 3, 0, 0, 0, 5, 1, 0];
        let diff = [&[0, 3][..], b"$.a", &[3, 5, 2, 0]].concat();
        let after = [&[1, 1, 0, 1, 0, 0, 0, diff.len() as u8, 0, 0, 0][..], &diff].concat();
        let read = rows(&table(), EventType::PARTIAL_UPDATE_ROWS, &[&[3, 3][..], &before, &after].concat());
        let after = read[0].clone().unwrap().after.unwrap();
        assert!(matches!(&after[1], Some(Value::JsonDiffs(diffs)) if diffs[0].path == "$.a"), "{after:?}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            code in prop::sample::select(vec![30_u8, 31, 32, 39]),
            body in proptest::collection::vec(any::<u8>(), 2..80),
        ) {
            for row in rows(&table(), EventType(code), &body) {
                if row.is_err() { break }
            }
        }
    }
}
