//! FORMAT_DESCRIPTION: what the file's events look like and who wrote it.

use super::checksum::{CHECKSUM_LEN, ChecksumAlgorithm};
use super::error::EventError;
use super::fields::{need, u32_at};
use super::header::HEADER_LEN;
use crate::ServerKind;

/// The first four bytes of every binary log file (`BINLOG_MAGIC`, `binlog_event.h`).
pub const BINLOG_MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];

/// Length of the fixed part: version, server version, creation time, header length.
const FIXED_LEN: usize = 2 + 50 + 4 + 1;

/// Most event types that can have a post-header length: the type code is one byte, and 0 is none.
const EVENT_TYPES_MAX: usize = 255;

/// The first event of every file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatDescription {
    /// Seconds since 1970 at which the source opened the file. With the server id it tells one history of a file name
    /// from another.
    pub timestamp: u32,
    /// `server_id` of the writer.
    pub server_id: u32,
    /// `@@version` of the writer, at most 50 bytes.
    pub server_version: String,
    /// Set in the first file after a server start (seconds since 1970), else 0.
    pub created: u32,
    /// Post-header lengths by event type, starting with type 1.
    pub post_header_lens: Vec<u8>,
    /// `binlog_checksum` of the events in this file.
    pub checksum: ChecksumAlgorithm,
}

impl FormatDescription {
    /// No format description ends behind this offset of its file, in bytes: the magic, the header, the fixed part, a
    /// post-header length for each type code, the checksum algorithm's code, the checksum
    /// (`Format_description_event::write`, `libs/mysql/binlog/event/control_events.h`).
    pub const END_MAX: u64 =
        (BINLOG_MAGIC.len() + HEADER_LEN + FIXED_LEN + EVENT_TYPES_MAX + 1 + CHECKSUM_LEN) as u64;

    /// Reads a whole event, checksum included.
    ///
    /// Servers since MySQL 5.6.1 and MariaDB 5.3 put the algorithm's code before a checksum that is always there
    /// (`Format_description_event`, `rpl_constants.h`); earlier ones are refused, for their files cannot be verified.
    ///
    /// # Errors
    /// When it is cut short, of another binary-log version than 4, or has another header length than 19, or lists more than
    /// 255 event types.
    pub fn parse(event: &[u8]) -> Result<FormatDescription, EventError> {
        need("a FORMAT_DESCRIPTION event", event, HEADER_LEN + FIXED_LEN + 1 + 4)?;
        let (head, body) = event.split_at(HEADER_LEN);
        if u16::from_le_bytes([body[0], body[1]]) != 4 {
            return Err(EventError::Malformed("the binary log is not of version 4 (MySQL 5.0 and later)"));
        }
        if usize::from(body[56]) != HEADER_LEN {
            return Err(EventError::Malformed(
                "the format description states an event header that is not 19 bytes",
            ));
        }
        let version = &body[2..52];
        let version = &version[..version.iter().position(|b| *b == 0).unwrap_or(version.len())];
        let server_version: String =
            String::from_utf8_lossy(version).chars().filter(|c| !c.is_control()).collect();
        let tail = body.len() - 5;
        if tail - FIXED_LEN > EVENT_TYPES_MAX {
            return Err(EventError::Malformed("the format description lists more than 255 event types"));
        }
        Ok(FormatDescription {
            timestamp: u32_at(head, 0),
            server_id: u32_at(head, 5),
            server_version,
            created: u32_at(body, 52),
            post_header_lens: body[FIXED_LEN..tail].to_vec(),
            checksum: ChecksumAlgorithm::from_code(body[tail])?,
        })
    }

    /// The kind of the writer; see [`ServerKind::of_version`].
    pub fn server_kind(&self) -> ServerKind {
        ServerKind::of_version(&self.server_version)
    }

    /// True when `other` describes the same file of the same source.
    ///
    /// A source that sends the event again for a start in the middle of a file zeroes `created` and the position and
    /// recomputes the checksum (`Binlog_sender::send_format_description_event`); everything else stays. A file of the
    /// same name written after a reset differs in its timestamp.
    pub fn is_same_file(&self, other: &FormatDescription) -> bool {
        self.timestamp == other.timestamp
            && self.server_id == other.server_id
            && self.server_version == other.server_version
            && self.checksum == other.checksum
            && self.post_header_lens == other.post_header_lens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(version: &str, algorithm: u8) -> Vec<u8> {
        let mut event = vec![0u8; HEADER_LEN];
        event[0..4].copy_from_slice(&7u32.to_le_bytes());
        event[4] = 15;
        event[5] = 9;
        event.extend_from_slice(&4u16.to_le_bytes());
        let mut padded = [0u8; 50];
        padded[..version.len()].copy_from_slice(version.as_bytes());
        event.extend_from_slice(&padded);
        event.extend_from_slice(&3u32.to_le_bytes());
        event.push(19);
        event.extend_from_slice(&[56, 13, 0, 8]);
        event.push(algorithm);
        event.extend_from_slice(&[0; 4]);
        event
    }

    #[test]
    fn the_fields_are_read() {
        let format = FormatDescription::parse(&sample("9.7.0", 1)).unwrap();
        assert_eq!(format.server_version, "9.7.0");
        assert_eq!((format.timestamp, format.server_id, format.created), (7, 9, 3));
        assert_eq!(format.checksum, ChecksumAlgorithm::Crc32);
        assert_eq!(format.post_header_lens, [56, 13, 0, 8]);
        assert_eq!(format.server_kind(), ServerKind::MySql);
        let mariadb = FormatDescription::parse(&sample("11.8.1-MariaDB-log", 0)).unwrap();
        assert_eq!(mariadb.server_kind(), ServerKind::MariaDb);
    }

    #[test]
    fn an_unknown_checksum_algorithm_is_named() {
        assert_eq!(
            FormatDescription::parse(&sample("9.7.0", 7)),
            Err(EventError::UnknownChecksumAlgorithm(7))
        );
    }

    #[test]
    fn more_event_types_than_there_are_codes_are_refused() {
        let mut event = sample("9.7.0", 1);
        let at = HEADER_LEN + FIXED_LEN;
        event.splice(at..at, vec![0; EVENT_TYPES_MAX - 4]);
        assert_eq!(FormatDescription::parse(&event).unwrap().post_header_lens.len(), EVENT_TYPES_MAX);
        assert_eq!((BINLOG_MAGIC.len() + event.len()) as u64, FormatDescription::END_MAX);
        event.insert(at, 0);
        assert!(FormatDescription::parse(&event).is_err());
    }

    #[test]
    fn sent_again_it_is_the_same_file() {
        let stored = FormatDescription::parse(&sample("9.7.0", 1)).unwrap();
        let mut again = sample("9.7.0", 1);
        again[HEADER_LEN + 52..HEADER_LEN + 56].fill(0);
        assert!(stored.is_same_file(&FormatDescription::parse(&again).unwrap()));
        again[0] += 1;
        assert!(!stored.is_same_file(&FormatDescription::parse(&again).unwrap()));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = FormatDescription::parse(&bytes);
        }
    }
}
