//! Small, valid binary logs.
#![allow(missing_docs, unreachable_pub, clippy::new_without_default, clippy::len_without_is_empty)]

use crate::timeline::{Reason, Timeline};
use codec::ServerKind;
use codec::event::BINLOG_MAGIC;
use codec::gtid::GtidSet;

/// When everything happens.
pub const NOW: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

pub const SERVER_UUID: &str = "abababab-abab-abab-abab-abababababab";

/// The first timeline of a MySQL server.
pub fn first_timeline(server_uuid: &str) -> Timeline {
    Timeline {
        began_at: "2026-01-02T03:04:05Z".into(),
        reason: Reason::First,
        server_uuid: server_uuid.into(),
        server_version: "9.7.0".into(),
        server_kind: ServerKind::MySql,
        first_file: "b.000001".into(),
        gtid_before: String::new(),
        source_lacks: String::new(),
        source_shares: String::new(),
        missing: String::new(),
        unreadable: String::new(),
        previous: String::new(),
        purged: Vec::new(),
    }
}

pub struct FileBuilder(Vec<u8>);

impl FileBuilder {
    /// As a rotation begins a file.
    pub fn new() -> FileBuilder {
        FileBuilder::created(0)
    }

    /// As a server begins a file that has just started, at that time in seconds since 1970.
    pub fn created(seconds: u32) -> FileBuilder {
        let mut builder = FileBuilder(BINLOG_MAGIC.to_vec());
        let mut body = 4u16.to_le_bytes().to_vec();
        let mut version = [0u8; 50];
        version[..5].copy_from_slice(b"9.7.0");
        body.extend_from_slice(&version);
        body.extend_from_slice(&seconds.to_le_bytes());
        body.push(19);
        body.extend_from_slice(&[0; 41]);
        body.push(1);
        builder.event(15, &body);
        builder
    }

    /// A file that goes on.
    pub fn from_bytes(bytes: Vec<u8>) -> FileBuilder {
        FileBuilder(bytes)
    }

    /// The file up to the end of that many transactions, or of all.
    pub fn first_transactions(mut self, transactions: usize) -> FileBuilder {
        let (mut at, mut left) = (BINLOG_MAGIC.len(), transactions);
        while at < self.0.len() {
            let is_gtid = self.0[at + 4] == 33;
            if is_gtid && left == 0 {
                break;
            }
            left -= usize::from(is_gtid);
            at += u32::from_le_bytes(self.0[at + 9..at + 13].try_into().unwrap()) as usize;
        }
        self.0.truncate(at);
        self
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn event(&mut self, code: u8, body: &[u8]) {
        let size = 19 + body.len() + 4;
        let end = self.0.len() + size;
        let mut event = 1_700_000_000u32.to_le_bytes().to_vec();
        event.push(code);
        event.extend_from_slice(&1u32.to_le_bytes());
        event.extend_from_slice(&(size as u32).to_le_bytes());
        event.extend_from_slice(&(end as u32).to_le_bytes());
        event.extend_from_slice(&[0, 0]);
        event.extend_from_slice(body);
        event.extend_from_slice(&crc32fast::hash(&event).to_le_bytes());
        self.0.extend_from_slice(&event);
    }

    pub fn previous_gtids(mut self, set: &str) -> FileBuilder {
        let mut body = Vec::new();
        set.parse::<GtidSet>().unwrap().encode(&mut body);
        self.event(35, &body);
        self
    }

    /// GTID, BEGIN, rows of `size` bytes, XID.
    pub fn transaction(mut self, number: u64, size: usize) -> FileBuilder {
        let mut gtid = vec![0u8];
        gtid.extend_from_slice(&[0xab; 16]);
        gtid.extend_from_slice(&number.to_le_bytes());
        self.event(33, &gtid);
        let mut begin = vec![0u8; 14];
        begin.extend_from_slice(b"BEGIN");
        self.event(2, &begin);
        self.event(30, &vec![7; size]);
        self.event(16, &number.to_le_bytes());
        self
    }

    pub fn rotate(mut self, next: &str) -> FileBuilder {
        let mut body = 4u64.to_le_bytes().to_vec();
        body.extend_from_slice(next.as_bytes());
        self.event(4, &body);
        self
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}
