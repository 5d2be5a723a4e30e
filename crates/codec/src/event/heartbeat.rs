//! HEARTBEAT: an idle source says where its file ends.

use super::error::EventError;
use super::fields::{need, packed_integer};
use super::header::{EventHeader, HEADER_LEN};
use super::types::EventType;
use crate::BinlogName;

/// A heartbeat of either form. The source sends it after `heartbeat_period` of silence, and in place of transactions
/// that it skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat<'a> {
    /// Bare name of the file that the source is reading.
    pub file: &'a str,
    /// Position in that file; only the low 32 bits where [`Heartbeat::wrapped`].
    pub position: u64,
    /// True when `position` holds only the low 32 bits.
    pub wrapped: bool,
}

/// Field types of the new form (`codecs/binary.cc`, `Heartbeat_event_v2`; `OTW_HB_*`).
const FIELD_END: u64 = 0;
const FIELD_FILE: u64 = 1;
const FIELD_POSITION: u64 = 2;

/// MariaDB, past 4 GiB: the header's position is 0, and the position stands before the name (`HB_SUB_HEADER_LEN`,
/// `send_heartbeat_event` in `sql/sql_repl.cc`). Its last byte is 0 in every file of less than 64 PiB, and in no name.
const POSITION_LEN: usize = 8;

impl<'a> Heartbeat<'a> {
    /// Reads a whole event without its checksum.
    ///
    /// # Errors
    /// When it is cut short, or the name is not that of a binary log.
    pub fn parse(header: &EventHeader, event: &'a [u8]) -> Result<Heartbeat<'a>, EventError> {
        need("a HEARTBEAT event", event, HEADER_LEN)?;
        let body = &event[HEADER_LEN..];
        if header.event_type == EventType::HEARTBEAT_V2 {
            return Self::parse_fields(body);
        }
        if header.log_pos == 0
            && let Some((position, name)) = body.split_first_chunk()
            && position[POSITION_LEN - 1] == 0
        {
            let (file, position) = (file_name(name)?, u64::from_le_bytes(*position));
            return Ok(Heartbeat { file, position, wrapped: false });
        }
        let file = file_name(body)?;
        Ok(Heartbeat { file, position: u64::from(header.log_pos), wrapped: true })
    }

    /// The new form: type, length, value, until a zero type.
    fn parse_fields(mut body: &'a [u8]) -> Result<Heartbeat<'a>, EventError> {
        let (mut file, mut position) = (None, None);
        while !body.is_empty() {
            let field = packed_integer(&mut body)?;
            if field == FIELD_END {
                break;
            }
            let len = packed_integer(&mut body)?;
            let len = usize::try_from(len).ok().filter(|len| *len <= body.len());
            let Some(len) = len else {
                return Err(EventError::Malformed("a field of a HEARTBEAT event reaches past its end"));
            };
            let (mut value, rest) = body.split_at(len);
            body = rest;
            match field {
                FIELD_FILE => file = Some(file_name(value)?),
                FIELD_POSITION => position = Some(packed_integer(&mut value)?),
                _ => {} // Later servers may add fields.
            }
        }
        match (file, position) {
            (Some(file), Some(position)) => Ok(Heartbeat { file, position, wrapped: false }),
            _ => Err(EventError::Malformed("a HEARTBEAT event lacks its file name or position")),
        }
    }
}

fn file_name(bytes: &[u8]) -> Result<&str, EventError> {
    let name = std::str::from_utf8(bytes)
        .map_err(|_| EventError::Malformed("the file name in a HEARTBEAT event is not UTF-8"))?;
    Ok(BinlogName::parse(name)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(event_type: EventType, log_pos: u32) -> EventHeader {
        EventHeader { timestamp: 0, event_type, server_id: 1, event_size: 0, log_pos, flags: 0 }
    }

    #[test]
    fn the_old_form_carries_32_bits() {
        let mut event = vec![0u8; HEADER_LEN];
        event.extend_from_slice(b"mysql-bin.000007");
        let beat = Heartbeat::parse(&header(EventType::HEARTBEAT, 154), &event).unwrap();
        assert_eq!(beat, Heartbeat { file: "mysql-bin.000007", position: 154, wrapped: true });
    }

    #[test]
    fn past_4_gib_mariadb_puts_the_position_before_the_name_and_mysql_wraps() {
        let event = |body: &[u8]| [&[0; HEADER_LEN][..], body].concat();
        let mariadb = event(b"\x04\x03\0\0\x01\0\0\0mariadb-bin.000007");
        let beat = Heartbeat::parse(&header(EventType::HEARTBEAT, 0), &mariadb).unwrap();
        let position = (1 << 32) + 0x304;
        assert_eq!(beat, Heartbeat { file: "mariadb-bin.000007", position, wrapped: false });
        let mysql = event(b"mysql-bin.000007");
        let beat = Heartbeat::parse(&header(EventType::HEARTBEAT, 0), &mysql).unwrap();
        assert_eq!(beat, Heartbeat { file: "mysql-bin.000007", position: 0, wrapped: true });
    }

    #[test]
    fn the_new_form_carries_64_bits() {
        let mut event = vec![0u8; HEADER_LEN];
        event.extend_from_slice(&[1, 10]);
        event.extend_from_slice(b"bin.000009");
        event.extend_from_slice(&[2, 9, 254, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
        let beat = Heartbeat::parse(&header(EventType::HEARTBEAT_V2, 0), &event).unwrap();
        assert_eq!(beat, Heartbeat { file: "bin.000009", position: 2 << 32, wrapped: false });
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), new_form: bool) {
            let kind = if new_form { EventType::HEARTBEAT_V2 } else { EventType::HEARTBEAT };
            let _ = Heartbeat::parse(&header(kind, 4), &bytes);
        }
    }
}
