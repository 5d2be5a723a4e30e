//! What a server answers: OK, ERR, EOF and text result sets, framed.
//!
//! Each function appends whole packets to `out`, the first numbered `sequence`, and gives the number of the packet that
//! follows. The answer to a command of one packet begins with number 1. No session has CLIENT_DEPRECATE_EOF or
//! CLIENT_SESSION_TRACK: the greeting does not offer them.
//!
//! Sources: MySQL Source Code Documentation, "OK_Packet", "ERR_Packet", "EOF_Packet", "Text Resultset" and "Column
//! Definition".

use super::frame::append_message;
use super::response::{EOF, ERR, ErrPacket, OK, OkPacket};
use super::write::{length_encoded, length_encoded_string};

/// SERVER_STATUS_AUTOCOMMIT.
pub const STATUS_AUTOCOMMIT: u16 = 0x0002;
/// SERVER_MORE_RESULTS_EXISTS: the answer to another statement of the same packet follows.
pub const STATUS_MORE_RESULTS: u16 = 0x0008;

/// What stands for NULL in a row.
const NULL: u8 = 0xFB;

/// utf8mb4_general_ci.
const COLLATION_TEXT: u16 = 45;
/// `binary`, which numbers have too.
const COLLATION_BINARY: u16 = 63;

/// BINARY_FLAG | NUM_FLAG, and UNSIGNED_FLAG (mysql_com.h).
const NUMBER_FLAGS: u16 = 0x0080 | 0x8000;
const UNSIGNED_FLAG: u16 = 0x0020;

/// The type that a column claims. Values are text all the same; clients in languages with types decide by it what to make
/// of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColumnKind {
    /// VARCHAR of utf8mb4.
    #[default]
    Text,
    /// VARBINARY.
    Binary,
    /// BIGINT.
    Integer,
    /// BIGINT UNSIGNED.
    Unsigned,
}

impl ColumnKind {
    /// Type (`enum_field_types`), collation, longest value in bytes, flags.
    fn definition(self) -> (u8, u16, u32, u16) {
        const VAR_STRING: u8 = 253;
        const LONGLONG: u8 = 8;
        match self {
            Self::Text => (VAR_STRING, COLLATION_TEXT, 4096, 0),
            Self::Binary => (VAR_STRING, COLLATION_BINARY, 4096, 0x0080),
            Self::Integer => (LONGLONG, COLLATION_BINARY, 20, NUMBER_FLAGS),
            Self::Unsigned => (LONGLONG, COLLATION_BINARY, 20, NUMBER_FLAGS | UNSIGNED_FLAG),
        }
    }
}

/// A column of a result set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// The name that the client shows and asks for.
    pub name: &'a str,
    /// What its values are.
    pub kind: ColumnKind,
}

impl<'a> Column<'a> {
    /// A column of texts.
    pub fn text(name: &'a str) -> Self {
        Self { name, kind: ColumnKind::Text }
    }
}

/// OK.
pub fn ok(out: &mut Vec<u8>, sequence: u8, ok: &OkPacket) -> u8 {
    ok_with_info(out, sequence, ok, b"")
}

/// OK with a text for the client; an empty one is left out.
pub fn ok_with_info(out: &mut Vec<u8>, sequence: u8, ok: &OkPacket, info: &[u8]) -> u8 {
    let mut message = vec![OK];
    length_encoded(&mut message, ok.affected_rows);
    length_encoded(&mut message, ok.last_insert_id);
    message.extend_from_slice(&ok.status.to_le_bytes());
    message.extend_from_slice(&ok.warnings.to_le_bytes());
    if !info.is_empty() {
        length_encoded_string(&mut message, info);
    }
    append_message(out, sequence, &message)
}

/// An error. Clients keep the first 511 bytes of its message.
pub fn err(out: &mut Vec<u8>, sequence: u8, error: &ErrPacket) -> u8 {
    let mut message = vec![ERR];
    message.extend_from_slice(&error.code.to_le_bytes());
    message.push(b'#');
    // Five characters, whatever was given.
    let state = error.sqlstate.bytes().chain(std::iter::repeat(b'0')).take(5);
    message.extend(state);
    message.extend_from_slice(error.message.as_bytes());
    append_message(out, sequence, &message)
}

/// An error in the place of the greeting, which has no SQLSTATE: the client has not said yet that it knows any.
pub fn err_before_greeting(out: &mut Vec<u8>, error: &ErrPacket) -> u8 {
    let mut message = vec![ERR];
    message.extend_from_slice(&error.code.to_le_bytes());
    message.extend_from_slice(error.message.as_bytes());
    append_message(out, 0, &message)
}

/// The end of column definitions, of rows, or of a dump that does not wait. `status`: bits of SERVER_STATUS_*.
pub fn eof(out: &mut Vec<u8>, sequence: u8, status: u16) -> u8 {
    let [a, b] = status.to_le_bytes();
    append_message(out, sequence, &[EOF, 0, 0, a, b])
}

/// The beginning of a result set: the count of columns, at least one, their definitions, EOF. Rows follow, then another
/// EOF.
pub fn columns(out: &mut Vec<u8>, mut sequence: u8, columns: &[Column<'_>], status: u16) -> u8 {
    let mut message = Vec::new();
    length_encoded(&mut message, columns.len() as u64);
    sequence = append_message(out, sequence, &message);
    for column in columns {
        message.clear();
        // Catalog, schema, table, original table, name, original name.
        for text in ["def", "", "", "", column.name, ""] {
            length_encoded_string(&mut message, text.as_bytes());
        }
        let (kind, collation, bytes_max, flags) = column.kind.definition();
        message.push(12); // Length of the fixed part.
        message.extend_from_slice(&collation.to_le_bytes());
        message.extend_from_slice(&bytes_max.to_le_bytes());
        message.push(kind);
        message.extend_from_slice(&flags.to_le_bytes());
        message.extend_from_slice(&[0, 0, 0]); // Decimals, filler.
        sequence = append_message(out, sequence, &message);
    }
    eof(out, sequence, status)
}

/// One row, with as many values as there are columns; `None` is NULL.
pub fn row<T: AsRef<[u8]>>(
    out: &mut Vec<u8>,
    sequence: u8,
    values: impl IntoIterator<Item = Option<T>>,
) -> u8 {
    let mut message = Vec::new();
    for value in values {
        match value {
            None => message.push(NULL),
            Some(value) => length_encoded_string(&mut message, value.as_ref()),
        }
    }
    append_message(out, sequence, &message)
}

/// A whole result set. `status` stands in both EOF packets.
pub fn result_set<T: AsRef<[u8]>>(
    out: &mut Vec<u8>,
    mut sequence: u8,
    definitions: &[Column<'_>],
    rows: &[Vec<Option<T>>],
    status: u16,
) -> u8 {
    sequence = columns(out, sequence, definitions, status);
    for values in rows {
        sequence = row(out, sequence, values.iter().map(Option::as_ref));
    }
    eof(out, sequence, status)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame::Assembler;
    use super::super::result_set::{QueryResponse, QueryResponseReader};
    use super::*;

    /// Reads an answer as the client side does; gives the number that the next packet would have.
    fn read(bytes: &[u8], mut sequence: u8) -> (QueryResponse, bool, u8) {
        let mut rest = bytes;
        let mut reader = QueryResponseReader::new();
        loop {
            let mut assembler = Assembler::new(1 << 20, sequence);
            let progress = assembler.feed(rest).unwrap();
            assert!(progress.complete, "half an answer");
            rest = &rest[progress.consumed..];
            sequence = assembler.next_sequence();
            if let Some(response) = reader.push(&assembler.into_message()).unwrap() {
                assert!(rest.is_empty(), "more than an answer");
                return (response, reader.more_follow(), sequence);
            }
        }
    }

    #[test]
    fn the_client_side_reads_ok_and_errors() {
        let packet =
            OkPacket { affected_rows: 1000, last_insert_id: 0, status: STATUS_AUTOCOMMIT, warnings: 1 };
        let mut out = Vec::new();
        let next = ok(&mut out, 1, &packet);
        assert_eq!(read(&out, 1), (QueryResponse::Ok(packet), false, next));

        let error = ErrPacket { code: 1236, sqlstate: "HY000".to_owned(), message: "no file".to_owned() };
        out.clear();
        assert_eq!(err(&mut out, 255, &error), 0);
        assert_eq!(read(&out, 255), (QueryResponse::Err(error), false, 0));
    }

    #[test]
    fn an_error_before_the_greeting_has_no_state() {
        let error = ErrPacket {
            code: 1040,
            sqlstate: "08004".to_owned(),
            message: "Too many connections".to_owned(),
        };
        let mut out = Vec::new();
        err_before_greeting(&mut out, &error);
        assert_eq!(&out[4..], b"\xFF\x10\x04Too many connections");
    }

    #[test]
    fn a_state_of_another_length_does_not_move_the_message() {
        for state in ["", "HY", "HY0000000"] {
            let mut out = Vec::new();
            err(&mut out, 1, &ErrPacket { code: 1, sqlstate: state.to_owned(), message: "x".to_owned() });
            assert_eq!(ErrPacket::parse(&out[4..]).unwrap().message, "x");
        }
    }

    #[test]
    fn rows_of_two_columns() {
        let definitions =
            [Column::text("Log_name"), Column { name: "File_size", kind: ColumnKind::Unsigned }];
        let rows = [vec![Some("a"), Some("42")], vec![None, Some("")]];
        let mut out = Vec::new();
        let next = result_set(&mut out, 1, &definitions, &rows, STATUS_AUTOCOMMIT | STATUS_MORE_RESULTS);
        let (QueryResponse::Rows(set), true, found) = read(&out, 1) else { panic!() };
        assert_eq!((set.columns, found, next), (vec!["Log_name".to_owned(), "File_size".to_owned()], 8, 8));
        assert_eq!(set.rows, [vec![Some(b"a".to_vec()), Some(b"42".to_vec())], vec![None, Some(Vec::new())]]);
    }

    proptest! {
        #[test]
        fn any_rows_come_back(
            rows in proptest::collection::vec(
                proptest::collection::vec(proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300)), 3),
                0..300,
            ),
            sequence: u8,
        ) {
            let definitions = ["a", "b", ""].map(Column::text);
            let mut out = Vec::new();
            let next = result_set(&mut out, sequence, &definitions, &rows, 0);
            let (response, _, found) = read(&out, sequence);
            let QueryResponse::Rows(set) = response else { panic!("{response:?}") };
            prop_assert_eq!(set.rows, rows);
            prop_assert_eq!(next, found);
        }
    }
}
