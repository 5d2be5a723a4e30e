//! A search index as a damaged disk may give it: its sections are the fuzzer's, with lengths and checksums that fit, or the whole
//! file is. And a binary log whose events are the fuzzer's, walked for one.
//!
//! First byte: bit 0 the whole index, bit 1 a log; else four sections, each with its length before in two bytes.

use crate::input::Input;
use points::index::SearchIndex;
use points::walk::{Options, Walk};

/// Most bytes of an event that are taken into memory: few, so that the other way is gone too.
const OPENED_BYTES_MAX: usize = 4096;

/// Reads it.
pub fn run(data: &[u8]) {
    let Some((which, rest)) = data.split_first() else { return };
    match which & 3 {
        0 => index(&sections(rest)),
        1 => index(rest),
        _ => walk(rest),
    }
}

fn index(bytes: &[u8]) {
    let Ok(index) = SearchIndex::parse(bytes) else { return };
    // What is read is written, and read again as the same.
    let again = SearchIndex::parse(&index.to_bytes());
    assert_eq!(again.ok(), Some(index));
}

fn sections(data: &[u8]) -> Vec<u8> {
    let mut input = Input::new(data);
    let mut file = b"blsearch\x01\0\0\0".to_vec();
    let mut sections = Vec::new();
    for _ in 0..4 {
        let len = usize::from(input.u16());
        let section = input.bytes(len).to_vec();
        file.extend_from_slice(&(section.len() as u32).to_le_bytes());
        file.extend_from_slice(&crc32fast::hash(&section).to_le_bytes());
        sections.extend_from_slice(&section);
    }
    file.extend_from_slice(&crc32fast::hash(&file).to_le_bytes());
    file.extend_from_slice(&sections);
    file
}

struct Bytes<'a>(&'a [u8]);

impl binlog::storage::ReadAt for Bytes<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

fn walk(bytes: &[u8]) {
    let file = Bytes(bytes);
    let options = Options { opened_bytes_max: OPENED_BYTES_MAX, ..Options::default() };
    let Ok(mut walk) = Walk::open(&file, bytes.len() as u64, options) else { return };
    let mut end = walk.begins_at();
    while let Ok(Some(transaction)) = walk.next_transaction() {
        assert!(transaction.at >= end && transaction.end > transaction.at, "transactions follow one another");
        end = transaction.end;
    }
    assert!(end <= bytes.len() as u64);
}
