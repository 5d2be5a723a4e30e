//! The bytes of a journal: its first block, and the records in the blocks after it.
//!
//! All numbers are little-endian. The first block says what the file is:
//!
//! | bytes | what |
//! |---|---|
//! | 0–7 | `binlogdS` |
//! | 8–11 | version of the form, 1 |
//! | 12–15 | CRC32 of bytes 16–39 |
//! | 16–31 | identifier of this journal, random |
//! | 32–39 | length of the file |
//!
//! A record begins at a block and takes whole blocks:
//!
//! | bytes | what |
//! |---|---|
//! | 0–7 | `binlogdJ` |
//! | 8–11 | version of the form, 1 |
//! | 12–15 | CRC32 of everything from byte 16 to the end of the data |
//! | 16–31 | identifier of the journal |
//! | 32–39 | number of the record, counting up |
//! | 40–47 | number of the oldest record that is still needed |
//! | 48–55 | offset in the binary log of the first byte of data |
//! | 56–59 | length of the data |
//! | 60–61 | length of the name of the timeline's folder |
//! | 62–63 | length of the name of the binary log |
//! | 64– | the two names, then the data, then zeros to the end of the block |
//!
//! The identifier is what makes a record a record: the data of a binary log is whatever the source's clients wrote, a
//! record of a journal among it, but they cannot know this number.

/// Most bytes of one record. A larger group is written into the binary log and synced there: its own bytes then cost
/// more than the file system's, and writing them twice more than it saves.
pub const RECORD_LEN_MAX: usize = 256 << 10;

/// Bytes of a block. Writes begin at, and fill, blocks: what a disk writes at once, and what direct input and output
/// asks for.
pub const BLOCK: usize = 4096;

/// Bytes of a record before its names.
pub const HEAD: usize = 64;

const FIRST_BLOCK_MAGIC: &[u8; 8] = b"binlogdS";
const RECORD_MAGIC: &[u8; 8] = b"binlogdJ";
const VERSION: u32 = 1;

/// What makes the records of one journal its own.
pub(crate) type JournalId = [u8; 16];

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Counts up.
    pub sequence: u64,
    /// Number of the oldest record that was still needed when this one was written. Always <= `sequence` + 1.
    pub needed_from: u64,
    /// Folder of the timeline.
    pub timeline: &'a str,
    /// Name of the binary log.
    pub file: &'a str,
    /// Where `data` belongs in the binary log.
    pub offset: u64,
    /// Bytes of the binary log.
    pub data: &'a [u8],
}

/// Bytes before the data of a record.
pub(crate) fn head_len(timeline: &str, file: &str) -> usize {
    HEAD + timeline.len() + file.len()
}

/// The first block of a journal of `len` bytes.
pub fn first_block(id: &JournalId, len: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..8].copy_from_slice(FIRST_BLOCK_MAGIC);
    block[8..12].copy_from_slice(&VERSION.to_le_bytes());
    block[16..32].copy_from_slice(id);
    block[32..40].copy_from_slice(&len.to_le_bytes());
    let checksum = crc32fast::hash(&block[16..40]);
    block[12..16].copy_from_slice(&checksum.to_le_bytes());
    block
}

/// The version of the form, where the first block is one of a later version than ours. Where the number stands stays as it is.
pub(crate) fn later_version(block: &[u8]) -> Option<u32> {
    let is_ours = block.get(..8)? == FIRST_BLOCK_MAGIC;
    number32(block, 8).filter(|version| is_ours && *version > VERSION)
}

/// Identifier and length from the first block; `None` when it is none.
pub(crate) fn read_first_block(block: &[u8]) -> Option<(JournalId, u64)> {
    let sound = block.get(..8)? == FIRST_BLOCK_MAGIC
        && number32(block, 8)? == VERSION
        && number32(block, 12)? == crc32fast::hash(block.get(16..40)?);
    let id = block.get(16..32)?.try_into().ok()?;
    sound.then_some(id).zip(number64(block, 32))
}

/// Writes the names into the beginning of a record; they stay while the file does. `record` holds at least
/// [`head_len`] bytes.
pub(crate) fn write_names(record: &mut [u8], timeline: &str, file: &str) {
    record[60..62].copy_from_slice(&(timeline.len() as u16).to_le_bytes());
    record[62..64].copy_from_slice(&(file.len() as u16).to_le_bytes());
    let names = &mut record[HEAD..];
    names[..timeline.len()].copy_from_slice(timeline.as_bytes());
    names[timeline.len()..timeline.len() + file.len()].copy_from_slice(file.as_bytes());
}

/// Completes a record whose names and data are in place: `record` ends with the data, `data_len` bytes.
pub fn seal(
    record: &mut [u8],
    id: &JournalId,
    sequence: u64,
    needed_from: u64,
    offset: u64,
    data_len: usize,
) {
    record[..8].copy_from_slice(RECORD_MAGIC);
    record[8..12].copy_from_slice(&VERSION.to_le_bytes());
    record[16..32].copy_from_slice(id);
    record[32..40].copy_from_slice(&sequence.to_le_bytes());
    record[40..48].copy_from_slice(&needed_from.to_le_bytes());
    record[48..56].copy_from_slice(&offset.to_le_bytes());
    record[56..60].copy_from_slice(&(data_len as u32).to_le_bytes());
    let checksum = crc32fast::hash(&record[16..]);
    record[12..16].copy_from_slice(&checksum.to_le_bytes());
}

/// The record at the beginning of `bytes`; `None` when there is no whole and sound one of this journal.
pub fn read<'a>(bytes: &'a [u8], id: &JournalId) -> Option<Record<'a>> {
    let ours = bytes.get(..8)? == RECORD_MAGIC && number32(bytes, 8)? == VERSION && bytes.get(16..32)? == id;
    if !ours {
        return None;
    }
    let timeline_len = usize::from(u16::from_le_bytes(bytes.get(60..62)?.try_into().ok()?));
    let file_len = usize::from(u16::from_le_bytes(bytes.get(62..64)?.try_into().ok()?));
    let data_at = HEAD + timeline_len + file_len;
    let end = data_at.checked_add(number32(bytes, 56)? as usize)?;
    let body = bytes.get(16..end)?;
    if crc32fast::hash(body) != number32(bytes, 12)? {
        return None;
    }
    // Behind its checksum a record is as it was written, and names are text when they are written.
    Some(Record {
        sequence: number64(bytes, 32)?,
        needed_from: number64(bytes, 40)?,
        timeline: std::str::from_utf8(&bytes[HEAD..HEAD + timeline_len]).ok()?,
        file: std::str::from_utf8(&bytes[HEAD + timeline_len..data_at]).ok()?,
        offset: number64(bytes, 48)?,
        data: &bytes[data_at..end],
    })
}

/// The newest record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newest {
    /// Its number.
    pub sequence: u64,
    /// Its first block.
    pub block: u32,
    /// How many blocks it takes.
    pub blocks: u32,
}

/// The records of `journal`, a whole file, that are still needed, oldest first: the newest one and those before it
/// without a break, down to the oldest that the newest names. An older one that is missing was no longer needed when
/// its blocks were written again. The second value is the newest record; `None` when there is none.
pub fn needed<'a>(journal: &'a [u8], id: &JournalId) -> (Vec<Record<'a>>, Option<Newest>) {
    let blocks = (BLOCK..journal.len()).step_by(BLOCK);
    let mut found: Vec<(usize, Record<'a>)> =
        blocks.filter_map(|at| Some((at, read(&journal[at..], id)?))).collect();
    found.sort_by_key(|(_, record)| record.sequence);
    let Some((at, last)) = found.last() else { return (Vec::new(), None) };
    let len = head_len(last.timeline, last.file) + last.data.len();
    let newest =
        Newest { sequence: last.sequence, block: (at / BLOCK) as u32, blocks: len.div_ceil(BLOCK) as u32 };
    let needed_from = last.needed_from;
    let mut first = found.len();
    let mut expected = newest.sequence;
    while first > 0 && found[first - 1].1.sequence == expected && expected >= needed_from {
        first -= 1;
        expected = expected.wrapping_sub(1);
    }
    (found.split_off(first).into_iter().map(|(_, record)| record).collect(), Some(newest))
}

fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn number64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: JournalId = [7; 16];

    fn record(sequence: u64, needed_from: u64, data: &[u8]) -> Vec<u8> {
        let head = head_len("0001-u", "b.000001");
        let mut bytes = vec![0; head + data.len()];
        write_names(&mut bytes, "0001-u", "b.000001");
        bytes[head..].copy_from_slice(data);
        seal(&mut bytes, &ID, sequence, needed_from, 100 * sequence, data.len());
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    fn journal(records: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = first_block(&ID, 0).to_vec();
        records.iter().for_each(|record| bytes.extend_from_slice(record));
        bytes
    }

    fn numbers(journal: &[u8]) -> Vec<u64> {
        needed(journal, &ID).0.iter().map(|record| record.sequence).collect()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let bytes = record(3, 2, b"some bytes");
        let read = read(&bytes, &ID).unwrap();
        assert_eq!((read.sequence, read.needed_from, read.offset), (3, 2, 300));
        assert_eq!((read.timeline, read.file, read.data), ("0001-u", "b.000001", &b"some bytes"[..]));
        assert_eq!(super::read(&bytes, &[8; 16]), None, "a record of another journal");
    }

    #[test]
    fn only_what_is_needed_is_found_in_order_and_without_a_break() {
        assert_eq!(needed(&journal(&[]), &ID), (Vec::new(), None));
        let large = record(5, 4, &[1; 9000]);
        let newest = needed(&journal(&[record(4, 3, b"d"), large.clone(), record(3, 1, b"c")]), &ID).1;
        assert_eq!(newest, Some(Newest { sequence: 5, block: 2, blocks: 3 }));
        assert_eq!(numbers(&journal(&[large, record(3, 1, b"c"), record(4, 3, b"d")])), [4, 5]);
        assert_eq!(numbers(&journal(&[record(9, 6, b""), record(6, 6, b""), record(8, 6, b"")])), [8, 9]);
        assert_eq!(numbers(&journal(&[record(9, 10, b"")])), [0u64; 0], "nothing is needed after it");
    }

    #[test]
    fn a_torn_record_ends_what_is_found() {
        let mut torn = record(4, 2, &[5; 9000]);
        torn[5000] ^= 1;
        assert_eq!(numbers(&journal(&[record(2, 2, b""), record(3, 2, b""), torn])), [2, 3]);
    }

    #[test]
    fn data_that_looks_like_a_record_is_none_without_the_identifier() {
        let mut data = vec![0; BLOCK - head_len("0001-u", "b.000001")];
        let mut forged = record(99, 0, b"forged");
        forged[16..32].fill(9);
        let checksum = crc32fast::hash(&forged[16..HEAD + 14 + 6]);
        forged[12..16].copy_from_slice(&checksum.to_le_bytes());
        data.extend_from_slice(&forged);
        assert_eq!(numbers(&journal(&[record(1, 1, &data)])), [1]);
    }

    #[test]
    fn the_first_block_is_known_from_anything_else() {
        let block = first_block(&ID, 1 << 20);
        assert_eq!(read_first_block(&block), Some((ID, 1 << 20)));
        for at in 0..40 {
            let mut damaged = block;
            damaged[at] ^= 1;
            assert_eq!(read_first_block(&damaged), None, "byte {at}");
        }
        assert_eq!(read_first_block(&block[..20]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), known: bool) {
            if known && bytes.len() >= 32 {
                bytes[..8].copy_from_slice(RECORD_MAGIC);
                bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
                bytes[16..32].copy_from_slice(&ID);
            }
            prop_assert_eq!(read(&bytes, &ID), None);
        }
    }
}
