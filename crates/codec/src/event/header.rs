//! The header that every event starts with.

use super::error::EventError;
use super::fields::u32_at;
use super::types::EventType;

/// Length in bytes of the event header since binary-log version 4 (`LOG_EVENT_HEADER_LEN`).
pub const HEADER_LEN: usize = 19;

/// Where the flags stand in the header, two bytes (`FLAGS_OFFSET`).
pub const FLAGS_AT: usize = 17;

/// Flags of the event header (`binlog_event.h`).
pub mod flags {
    /// The file is open for writing on the source; cleared when it is closed and always cleared on the wire.
    pub const BINLOG_IN_USE: u16 = 0x0001;
    /// A QUERY says nothing by its default schema (`LOG_EVENT_SUPPRESS_USE_F`).
    pub const SUPPRESS_USE: u16 = 0x0008;
    /// Made up by the source for this connection; it exists in no file.
    pub const ARTIFICIAL: u16 = 0x0020;
    /// A reader that does not know the type may skip it.
    pub const IGNORABLE: u16 = 0x0080;
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
