//! Binary logs with tables and rows, for tests.
#![allow(clippy::disallowed_methods)]

use binlog::storage::ReadAt;
use binlog::testing::FileBuilder;
use std::io;

/// Bytes that are read as a file.
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl ReadAt for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

/// A GTID event as MySQL 8.0 writes it, with a commit time in microseconds and no length.
pub(crate) fn gtid(number: u64, micros: u64) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(&[0xab; 16]);
    body.extend_from_slice(&number.to_le_bytes());
    body.push(2);
    body.extend_from_slice(&[0; 16]);
    body.extend_from_slice(&micros.to_le_bytes()[..7]);
    body.push(0);
    body
}

pub(crate) fn query(thread: u32, schema: &str, text: &str) -> Vec<u8> {
    let mut body = thread.to_le_bytes().to_vec();
    body.extend_from_slice(&[0; 4]);
    body.push(schema.len() as u8);
    body.extend_from_slice(&[0; 4]);
    body.extend_from_slice(schema.as_bytes());
    body.push(0);
    body.extend_from_slice(text.as_bytes());
    body
}

/// Of a table of one INT and one VARCHAR(100).
pub(crate) fn table_map(id: u8, schema: &str, table: &str) -> Vec<u8> {
    let mut body = vec![id, 0, 0, 0, 0, 0, 1, 0, schema.len() as u8];
    body.extend_from_slice(schema.as_bytes());
    body.extend_from_slice(&[0, table.len() as u8]);
    body.extend_from_slice(table.as_bytes());
    body.extend_from_slice(&[0, 2, 3, 15, 2, 100, 0, 2]);
    body
}

/// So many rows of it, of version 2; of an update twice as many images.
pub(crate) fn rows(id: u8, is_update: bool, count: usize) -> Vec<u8> {
    let mut body = vec![id, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2, 3];
    if is_update {
        body.push(3);
    }
    for _ in 0..count * if is_update { 2 } else { 1 } {
        body.extend_from_slice(&[0, 1, 2, 3, 4, 3, b'a', b'b', b'c']);
    }
    body
}

pub(crate) fn event(code: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = 1_700_000_000_u32.to_le_bytes().to_vec();
    bytes.push(code);
    bytes.extend_from_slice(&1_u32.to_le_bytes());
    bytes.extend_from_slice(&(19 + body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 6]);
    bytes.extend_from_slice(body);
    bytes
}

/// A second after the events of a [`FileBuilder`], in microseconds.
pub(crate) const COMMITTED: u64 = 1_700_000_001_000_000;

/// A transaction that writes so many rows of `shop.TABLE`.
pub(crate) fn insert(file: &mut FileBuilder, number: u64, table: &str, count: usize) {
    file.event(33, &gtid(number, COMMITTED + number));
    file.event(2, &query(7, "shop", "BEGIN"));
    file.event(19, &table_map(number as u8, "shop", table));
    file.event(30, &rows(number as u8, false, count));
    file.event(16, &number.to_le_bytes());
}

/// A transaction that is one statement.
pub(crate) fn statement(file: &mut FileBuilder, number: u64, text: &str) {
    file.event(33, &gtid(number, COMMITTED + number));
    file.event(2, &query(8, "shop", text));
}
