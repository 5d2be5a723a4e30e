//! Binary-log events: borrowed views of raw bytes.
//!
//! A binary log is a 4-byte magic followed by events. Each event is a 19-byte header, a post-header, a body and, when
//! the file's format description says so, a 4-byte CRC32. binlogd stores events as they arrive and looks only at what
//! it needs to place them: this module never rewrites a byte.
//!
//! Source of the layout: MySQL Source Code Documentation, "Binary Log Event"; `libs/mysql/binlog/event/`.

pub mod boundary;
mod checksum;
mod format_description;
mod gtid_event;
mod heartbeat;
mod payload;
mod query;
mod rotate;
mod statement_values;
mod table_map;
mod types;

pub use checksum::{CHECKSUM_LEN, ChecksumAlgorithm, StreamChecksum};
pub use format_description::FormatDescription;
pub use gtid_event::{GtidEvent, MARIADB_STANDALONE};
pub use heartbeat::Heartbeat;
pub use payload::{PayloadCompression, TransactionPayload};
pub use query::{Query, SessionSettings, query_text};
pub use rotate::Rotate;
pub use statement_values::{IntVar, Rand};
pub use table_map::TableMap;
pub use types::EventType;

use crate::BadBinlogName;
use thiserror::Error;

/// The first four bytes of every binary log file (`BINLOG_MAGIC`, `binlog_event.h`).
pub const BINLOG_MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];

/// Length in bytes of the event header since binary-log version 4 (`LOG_EVENT_HEADER_LEN`).
pub const HEADER_LEN: usize = 19;

/// How many leading bytes of an event are enough for every look that binlogd takes at it.
///
/// The longest is a QUERY event: 19 + 13 bytes, status variables of at most 65 535 bytes, a schema name of at most 255
/// bytes with its terminator, and the first words of the statement.
pub const PEEK_BYTES_MAX: usize = 19 + 13 + 65_535 + 256 + 64;

/// Flags of the event header (`binlog_event.h`).
pub mod flags {
    /// The file is open for writing on the source; cleared when it is closed and always cleared on the wire.
    pub const BINLOG_IN_USE: u16 = 0x0001;
    /// Made up by the source for this connection; it exists in no file.
    pub const ARTIFICIAL: u16 = 0x0020;
    /// A reader that does not know the type may skip it.
    pub const IGNORABLE: u16 = 0x0080;
}

/// What is wrong with the bytes of an event. The fault is always on the side that produced the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EventError {
    /// Fewer bytes than the fixed part of this event needs.
    #[error("{what} needs at least {needed} bytes and has {actual}")]
    TooShort {
        /// What was being read.
        what: &'static str,
        /// Bytes that its fixed part takes.
        needed: usize,
        /// Bytes that there were.
        actual: usize,
    },
    /// The header's own length cannot be right.
    #[error("an event header says {0} bytes, less than the header itself")]
    ImpossibleLength(u32),
    /// The stored checksum is not that of the bytes.
    #[error("event checksum is {stored:#010x} but its bytes give {computed:#010x}")]
    BadChecksum {
        /// The four bytes at the event's end.
        stored: u32,
        /// CRC32 of everything before them.
        computed: u32,
    },
    /// A checksum algorithm that does not exist in any released server.
    #[error("unknown checksum algorithm {0}; this build knows NONE (0) and CRC32 (1)")]
    UnknownChecksumAlgorithm(u8),
    /// A field holds what the format does not allow.
    #[error("{0}")]
    Malformed(&'static str),
    /// It names a file that can be no binary log.
    #[error(transparent)]
    FileName(#[from] BadBinlogName),
}

/// The header that every event starts with. All integers are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader {
    /// Seconds since 1970 at which the statement began; 0 in events made up for the connection.
    pub timestamp: u32,
    /// The kind of event.
    pub event_type: EventType,
    /// `server_id` of the server where the event was first written.
    pub server_id: u32,
    /// Length of the whole event in bytes, header and checksum included.
    pub event_size: u32,
    /// Position of the next event in the source's file, modulo 2^32; 0 in artificial events, in a format description
    /// that is sent again, and inside transactions of MariaDB 11.4 and later.
    pub log_pos: u32,
    /// See [`flags`].
    pub flags: u16,
}

impl EventHeader {
    /// Reads the header from the first [`HEADER_LEN`] bytes.
    ///
    /// # Errors
    /// When there are fewer bytes, or the stated length is below the header's own.
    pub fn parse(bytes: &[u8]) -> Result<EventHeader, EventError> {
        let Some(head) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(EventError::TooShort {
                what: "an event header",
                needed: HEADER_LEN,
                actual: bytes.len(),
            });
        };
        let header = EventHeader {
            timestamp: u32_at(head, 0),
            event_type: EventType(head[4]),
            server_id: u32_at(head, 5),
            event_size: u32_at(head, 9),
            log_pos: u32_at(head, 13),
            flags: u16::from_le_bytes([head[17], head[18]]),
        };
        if (header.event_size as usize) < HEADER_LEN {
            return Err(EventError::ImpossibleLength(header.event_size));
        }
        Ok(header)
    }

    /// True for an event that the source made up for this connection and that stands in no file.
    pub fn is_artificial(&self) -> bool {
        self.flags & flags::ARTIFICIAL != 0
    }
}

/// Reads four little-endian bytes; the caller has checked the length.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads eight little-endian bytes; the caller has checked the length.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut raw = [0; 8];
    raw.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(raw)
}

/// Fails unless `bytes` holds at least `needed` bytes.
pub(crate) fn need(what: &'static str, bytes: &[u8], needed: usize) -> Result<(), EventError> {
    if bytes.len() < needed {
        return Err(EventError::TooShort { what, needed, actual: bytes.len() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_read_field_by_field() {
        let bytes = [
            0x01, 0x00, 0x00, 0x00, 0x04, 0x02, 0x00, 0x00, 0x00, 0x2f, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00,
            0x00, 0x20, 0x00,
        ];
        let header = EventHeader::parse(&bytes).unwrap();
        assert_eq!(header.timestamp, 1);
        assert_eq!(header.event_type, EventType::ROTATE);
        assert_eq!(header.server_id, 2);
        assert_eq!(header.event_size, 47);
        assert_eq!(header.log_pos, 256);
        assert!(header.is_artificial());
    }

    #[test]
    fn a_length_below_the_header_is_refused() {
        let mut bytes = [0u8; HEADER_LEN];
        bytes[9] = 18;
        assert_eq!(EventHeader::parse(&bytes), Err(EventError::ImpossibleLength(18)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_header_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = EventHeader::parse(&bytes);
        }
    }
}
