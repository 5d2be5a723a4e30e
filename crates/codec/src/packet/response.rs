//! The three generic answers of a server: OK, ERR and EOF.
//!
//! Sources: MySQL Source Code Documentation, "OK_Packet", "ERR_Packet" and "EOF_Packet"; MariaDB Knowledge Base,
//! "ERR_Packet" for its progress reports.

use super::cursor::{Cursor, MalformedPacket};

/// First byte of an OK packet.
pub const OK: u8 = 0x00;
/// First byte of an ERR packet.
pub const ERR: u8 = 0xFF;
/// First byte of an EOF packet, and of a row whose first field is 16 MiB or longer; the length tells them apart.
pub const EOF: u8 = 0xFE;

/// An EOF packet is shorter than this, in bytes; a row that begins with 0xFE is longer.
const EOF_LENGTH_LIMIT: usize = 9;

/// The longest error message kept, in bytes. MySQL's own limit is 512 (`MYSQL_ERRMSG_SIZE` in mysql_com.h).
pub const ERROR_MESSAGE_BYTES_MAX: usize = 1024;

/// SQLSTATE when the server sends none, as before authentication.
const SQLSTATE_UNKNOWN: &str = "HY000";

/// A statement succeeded and gave no rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OkPacket {
    /// Rows changed.
    pub affected_rows: u64,
    /// Value of the last AUTO_INCREMENT column, 0 for none.
    pub last_insert_id: u64,
    /// SERVER_STATUS_* bits.
    pub status: u16,
    /// Warnings that the statement raised.
    pub warnings: u16,
}

impl OkPacket {
    /// Reads an OK packet of a session without CLIENT_SESSION_TRACK; the human-readable rest is ignored.
    pub fn parse(payload: &[u8]) -> Result<Self, MalformedPacket> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("the OK marker")? != OK {
            return Err(MalformedPacket { field: "the OK marker", at: 0 });
        }
        Ok(Self {
            affected_rows: cursor.length_encoded_integer("the count of affected rows")?,
            last_insert_id: cursor.length_encoded_integer("the last insert id")?,
            status: cursor.u16("the server status")?,
            warnings: cursor.u16("the count of warnings")?,
        })
    }
}

/// The server refuses or fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrPacket {
    /// Number of the error, as in the server's error reference.
    pub code: u16,
    /// Five characters, `HY000` where the server sends none.
    pub sqlstate: String,
    /// The server's words, at most [`ERROR_MESSAGE_BYTES_MAX`] bytes, control characters replaced by blanks.
    pub message: String,
}

impl ErrPacket {
    /// Reads an ERR packet, with or without a SQLSTATE.
    pub fn parse(payload: &[u8]) -> Result<Self, MalformedPacket> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("the ERR marker")? != ERR {
            return Err(MalformedPacket { field: "the ERR marker", at: 0 });
        }
        let code = cursor.u16("the error number")?;
        let rest = cursor.remaining();
        let (sqlstate, message) = match rest.split_first_chunk::<6>() {
            Some(([b'#', state @ ..], message)) => (printable(state, 5), message),
            _ => (SQLSTATE_UNKNOWN.to_owned(), rest),
        };
        Ok(Self { code, sqlstate, message: printable(message, ERROR_MESSAGE_BYTES_MAX) })
    }
}

/// Whether a payload is an ERR packet.
pub fn is_err(payload: &[u8]) -> bool {
    payload.first() == Some(&ERR)
}

/// Whether a payload is an EOF packet: the end of column definitions, of rows, or of a non-blocking binlog dump.
pub fn is_eof(payload: &[u8]) -> bool {
    payload.first() == Some(&EOF) && payload.len() < EOF_LENGTH_LIMIT
}

/// `SERVER_MORE_RESULTS_EXISTS`: the answer to another statement of the same packet follows.
const MORE_RESULTS: u16 = 0x0008;

/// Whether SERVER_STATUS_* bits say that the answer to another statement of the same packet follows.
pub(super) fn more_results(status: u16) -> bool {
    status & MORE_RESULTS != 0
}

/// SERVER_STATUS_* bits of an EOF packet: marker 1, warnings 2, status 2. Servers before protocol 4.1 send the marker alone.
pub(super) fn eof_status(payload: &[u8]) -> u16 {
    payload.get(3..5).map_or(0, |status| u16::from_le_bytes([status[0], status[1]]))
}

/// Text of a peer made safe to show: not longer than `bytes_max`, valid UTF-8, without control characters, so that
/// it can neither fill a log nor steer a terminal.
pub fn printable(text: &[u8], bytes_max: usize) -> String {
    // Lossy decoding can triple the length, so that the cut is made after it too.
    let decoded = String::from_utf8_lossy(&text[..text.len().min(bytes_max)]);
    let mut shown = String::with_capacity(decoded.len());
    for character in decoded.chars() {
        let character = if is_unsafe_to_show(character) { ' ' } else { character };
        if shown.len() + character.len_utf8() > bytes_max {
            break;
        }
        shown.push(character);
    }
    shown
}

/// Control characters, and the format characters that reorder or hide what stands around them.
fn is_unsafe_to_show(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_ok_packet_as_mysql_sends_it() {
        let ok = OkPacket::parse(b"\x00\x01\xFC\x00\x01\x02\x00\x03\x00info").unwrap();
        assert_eq!(ok, OkPacket { affected_rows: 1, last_insert_id: 256, status: 2, warnings: 3 });
    }

    #[test]
    fn an_err_packet_with_its_sqlstate() {
        let err = ErrPacket::parse(b"\xFF\x15\x04#28000Access denied for user 'x'@'localhost'").unwrap();
        assert_eq!((err.code, err.sqlstate.as_str()), (1045, "28000"));
        assert_eq!(err.message, "Access denied for user 'x'@'localhost'");
    }

    #[test]
    fn an_err_packet_before_the_handshake_has_no_sqlstate() {
        let err = ErrPacket::parse(b"\xFF\x10\x04Too many connections").unwrap();
        assert_eq!((err.code, err.sqlstate.as_str()), (1040, "HY000"));
        assert_eq!(err.message, "Too many connections");
    }

    #[test]
    fn the_length_tells_eof_from_a_row() {
        assert!(is_eof(b"\xFE\x00\x00\x02\x00"));
        assert!(!is_eof(b"\xFE\x00\x00\x00\x01\x00\x00\x00\x00row"));
        assert!(!is_eof(b""));
    }

    #[test]
    fn text_of_a_peer_cannot_steer_a_terminal() {
        assert_eq!(printable(b"a\x1B[31mb\r\n\xFFc", 100), "a [31mb  \u{FFFD}c");
        assert_eq!(printable("x\u{202E}y".as_bytes(), 100), "x y");
        assert_eq!(printable(&[0xFF; 10], 4), "\u{FFFD}");
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), limit in 0_usize..50) {
            let _ = OkPacket::parse(&bytes);
            if let Ok(err) = ErrPacket::parse(&bytes) {
                prop_assert!(err.message.len() <= ERROR_MESSAGE_BYTES_MAX);
            }
            prop_assert!(printable(&bytes, limit).len() <= limit);
        }
    }
}
