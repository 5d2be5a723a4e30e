//! Small, valid binary logs: prefixes for damaged tails, and seeds.

use codec::event::{BINLOG_MAGIC, HEADER_LEN};
use codec::gtid::GtidSet;

/// Type codes that the builder writes.
pub mod code {
    #![allow(missing_docs)]
    pub const QUERY: u8 = 2;
    pub const ROTATE: u8 = 4;
    pub const FORMAT_DESCRIPTION: u8 = 15;
    pub const XID: u8 = 16;
    pub const HEARTBEAT: u8 = 27;
    pub const WRITE_ROWS: u8 = 30;
    pub const GTID: u8 = 33;
    pub const ANONYMOUS_GTID: u8 = 34;
    pub const PREVIOUS_GTIDS: u8 = 35;
    pub const TRANSACTION_PAYLOAD: u8 = 40;
    pub const HEARTBEAT_V2: u8 = 41;
    pub const GTID_TAGGED: u8 = 42;
    pub const MARIADB_GTID: u8 = 162;
    pub const MARIADB_GTID_LIST: u8 = 163;
}

/// Body of a format description as MySQL 9.7 writes it, without its checksum.
pub fn format_body(checksum_algorithm: u8) -> Vec<u8> {
    let mut body = 4u16.to_le_bytes().to_vec();
    body.extend_from_slice(&[0; 50]);
    body[2..7].copy_from_slice(b"9.7.0");
    body.extend_from_slice(&[0; 4]);
    body.push(HEADER_LEN as u8);
    body.extend_from_slice(&[0; 41]);
    body.push(checksum_algorithm);
    body
}

/// Body of PREVIOUS_GTIDS.
pub fn previous_gtids_body(set: &str) -> Vec<u8> {
    let mut body = Vec::new();
    set.parse::<GtidSet>().expect("a GTID set").encode(&mut body);
    body
}

/// Body of a GTID event of MySQL 5.6: without the transaction's length.
pub fn gtid_body(number: u64) -> Vec<u8> {
    let mut body = vec![0u8];
    body.extend_from_slice(&[0xab; 16]);
    body.extend_from_slice(&number.to_le_bytes());
    body
}

/// Body of a GTID event of MySQL 8.0 and later, with the transaction's length in bytes.
pub fn gtid_body_with_length(number: u64, transaction_length: u64) -> Vec<u8> {
    let mut body = gtid_body(number);
    body.push(2);
    body.extend_from_slice(&[0; 16 + 7]);
    body.push(0xfe);
    body.extend_from_slice(&transaction_length.to_le_bytes());
    body
}

/// Body of a QUERY event.
pub fn query_body(text: &str) -> Vec<u8> {
    let mut body = vec![0u8; 14];
    body.extend_from_slice(text.as_bytes());
    body
}

/// A binary log that grows.
#[derive(Debug, Clone)]
pub struct Binlog {
    /// The file's bytes.
    pub bytes: Vec<u8>,
    /// Ends of the events, ascending.
    pub ends: Vec<usize>,
    /// Those of `ends` that are boundaries.
    pub boundaries: Vec<usize>,
}

impl Binlog {
    /// A file with a format description and PREVIOUS_GTIDS.
    pub fn new(executed: &str) -> Binlog {
        let mut binlog = Binlog { bytes: BINLOG_MAGIC.to_vec(), ends: Vec::new(), boundaries: vec![4] };
        binlog.event(code::FORMAT_DESCRIPTION, &format_body(1), true);
        binlog.event(code::PREVIOUS_GTIDS, &previous_gtids_body(executed), true);
        binlog
    }

    /// Appends an event with a right length, position and checksum. `boundary` says whether its end is one.
    pub fn event(&mut self, code: u8, body: &[u8], boundary: bool) {
        let size = HEADER_LEN + body.len() + 4;
        let end = self.bytes.len() + size;
        let mut event = 1_700_000_000u32.to_le_bytes().to_vec();
        event.push(code);
        event.extend_from_slice(&1u32.to_le_bytes());
        event.extend_from_slice(&(size as u32).to_le_bytes());
        event.extend_from_slice(&(end as u32).to_le_bytes());
        event.extend_from_slice(&[0, 0]);
        event.extend_from_slice(body);
        event.extend_from_slice(&crc32fast::hash(&event).to_le_bytes());
        self.bytes.extend_from_slice(&event);
        self.ends.push(end);
        if boundary {
            self.boundaries.push(end);
        }
    }

    /// Appends GTID, BEGIN, rows and XID.
    pub fn transaction(&mut self, number: u64) {
        let rows = [7u8; 40];
        let length = (HEADER_LEN + 4) * 4 + 58 + 19 + rows.len() + 8;
        self.event(code::GTID, &gtid_body_with_length(number, length as u64), false);
        self.event(code::QUERY, &query_body("BEGIN"), false);
        self.event(code::WRITE_ROWS, &rows, false);
        self.event(code::XID, &number.to_le_bytes(), true);
    }

    /// The events one by one.
    pub fn events(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(BINLOG_MAGIC.len()).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// The last boundary at or before `len`; 0 when not even the magic is whole.
    pub fn boundary_within(&self, len: usize) -> usize {
        self.boundaries.iter().copied().filter(|boundary| *boundary <= len).max().unwrap_or(0)
    }
}
