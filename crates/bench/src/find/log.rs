//! Binary logs to search: transactions of rows, one after another, and sparse files with the indexes of such.

use binlog::storage::ReadAt;
use codec::event::BINLOG_MAGIC;
use codec::gtid::{Gtid, Tag, TransactionId, Uuid};
use points::effects::Effects;
use points::index::{Builder, Identity, SearchIndex};
use points::table::{RowCounts, TableName};
use points::transaction::{CommitTime, TableChange, Transaction};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// From one commit to the next.
pub(crate) const TRANSACTION_MICROS: i64 = 40_000;

/// Transactions that a file has numbers for.
const NUMBERS_OF_A_FILE: u64 = 100_000;

/// Bytes of a transaction in a sparse file.
const SPARSE_TRANSACTION_BYTES: u64 = 1300;

const UUID: [u8; 16] = [0xab; 16];

/// The number of the first transaction of a file.
pub(crate) fn first_number(file: u64) -> u64 {
    1 + file * NUMBERS_OF_A_FILE
}

/// Bytes that are read as a file.
pub(crate) struct Log(pub(crate) Vec<u8>);

impl ReadAt for Log {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

fn event(log: &mut Vec<u8>, code: u8, body: &[u8], micros: i64) {
    let begun = log.len();
    let size = 19 + body.len() + 4;
    log.extend_from_slice(&((micros / 1_000_000) as u32).to_le_bytes());
    log.push(code);
    log.extend_from_slice(&1_u32.to_le_bytes());
    log.extend_from_slice(&(size as u32).to_le_bytes());
    log.extend_from_slice(&((begun + size) as u32).to_le_bytes());
    log.extend_from_slice(&[0, 0]);
    log.extend_from_slice(body);
    let checksum = crc32fast::hash(&log[begun..]);
    log.extend_from_slice(&checksum.to_le_bytes());
}

/// The beginning of a file that the server made at the time of its first transaction.
fn head(first: u64) -> Vec<u8> {
    let mut log = BINLOG_MAGIC.to_vec();
    let mut body = 4_u16.to_le_bytes().to_vec();
    let mut version = [0; 50];
    version[..5].copy_from_slice(b"9.7.0");
    body.extend_from_slice(&version);
    body.extend_from_slice(&[0; 4]);
    body.push(19);
    body.extend_from_slice(&[0; 41]);
    body.push(1);
    event(&mut log, 15, &body, TRANSACTION_MICROS * first as i64);
    event(&mut log, 35, &[0; 8], TRANSACTION_MICROS * first as i64);
    log
}

fn transaction(log: &mut Vec<u8>, number: u64, table: &str, rows: &[u8]) {
    let micros = TRANSACTION_MICROS * number as i64;
    let mut gtid = vec![0];
    gtid.extend_from_slice(&UUID);
    gtid.extend_from_slice(&number.to_le_bytes());
    gtid.push(2);
    gtid.extend_from_slice(&[0; 16]);
    gtid.extend_from_slice(&micros.to_le_bytes()[..7]);
    gtid.push(0);
    event(log, 33, &gtid, micros);
    let mut begin = vec![7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];
    begin.extend_from_slice(b"shop\0BEGIN");
    event(log, 2, &begin, micros);
    let mut map = vec![9, 0, 0, 0, 0, 0, 1, 0, 4];
    map.extend_from_slice(b"shop\0");
    map.push(table.len() as u8);
    map.extend_from_slice(table.as_bytes());
    // Five columns, of INT, BIGINT, VARCHAR(200), DATETIME(6) and DECIMAL(10,2).
    map.extend_from_slice(&[0, 5, 3, 8, 15, 18, 246, 5, 200, 0, 6, 10, 2, 0]);
    event(log, 19, &map, micros);
    for rows in rows.chunks(8000 / ROW.len() * ROW.len()) {
        let mut body = vec![9, 0, 0, 0, 0, 0, 1, 0, 2, 0, 5, 0xff];
        body.extend_from_slice(rows);
        event(log, 30, &body, micros);
    }
    event(log, 16, &number.to_le_bytes(), micros);
}

/// One row of that table, with a text of 60 bytes: no NULL, 4, 8, 1 and 60, 8, 5.
const ROW: [u8; 87] = {
    let mut row = [b'r'; 87];
    row[0] = 0;
    row[13] = 60;
    row
};

/// A log of about `len` bytes whose transactions have about `row_bytes` of rows each.
pub(crate) fn rows_file(first: u64, len: u64, row_bytes: usize, table: &str) -> Vec<u8> {
    let rows = ROW.repeat((row_bytes / ROW.len()).max(1));
    let mut log = head(first);
    let mut number = first.max(1);
    while (log.len() as u64) < len {
        transaction(&mut log, number, table, &rows);
        number += 1;
    }
    log
}

/// Writes a file of which only the beginning takes space, and gives the index that it would have.
///
/// # Errors
/// As the operating system says.
pub(crate) fn sparse_file(path: &Path, file: u64, len: u64) -> io::Result<SearchIndex> {
    let first = first_number(file);
    let written = File::options().write(true).read(true).create_new(true).open(path)?;
    let head = head(first);
    (&written).write_all(&head)?;
    written.set_len(len)?;
    let identity = Identity::of(&written, len)?;
    let mut builder = Builder::new(identity);
    let tables: Vec<Arc<TableName>> = (0..30)
        .map(|number| Arc::new(TableName::new(b"shop", format!("table_{number}").as_bytes())))
        .collect();
    let mut at = head.len() as u64;
    for number in (first..).take((len / SPARSE_TRANSACTION_BYTES) as usize - 1) {
        let rows = RowCounts { written: 1 + number % 9, ..RowCounts::default() };
        let name = tables[number as usize % tables.len()].clone();
        builder.add(&Transaction {
            id: Some(TransactionId::Mysql(Gtid {
                uuid: Uuid::from_bytes(UUID),
                tag: Tag::EMPTY,
                gno: number,
            })),
            at,
            end: at + SPARSE_TRANSACTION_BYTES,
            committed: CommitTime { micros: TRANSACTION_MICROS * number as i64, is_exact: true },
            effects: Effects::INSERT,
            tables: vec![TableChange { name, rows, effects: Effects::INSERT }],
            ..Transaction::default()
        });
        at += SPARSE_TRANSACTION_BYTES;
    }
    Ok(builder.finish())
}
