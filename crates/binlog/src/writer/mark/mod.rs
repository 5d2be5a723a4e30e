//! The mark: up to where the live file is known to be sound, so that a start need not read all of it.
//!
//! Recovery walks the live file from its beginning, which takes a second a gigabyte. What a sync has covered was verified when
//! it arrived, stands on the disk, and is never written again, so the walk may begin behind it. The mark says where:
//!
//! ```text
//! <data_dir>/<source>/mark      up to four slots, written in turn; see the table below
//! ```
//!
//! | bytes of a slot | what |
//! |---|---|
//! | 0–7 | `binlogdM` |
//! | 8–11 | version of the form, 1 |
//! | 12–15 | CRC32 of everything from byte 16 to the end of the last text |
//! | 16–23 | number of the mark, counting up |
//! | 24–31 | offset in the live file: a boundary |
//! | 32–39 | where the tail begins that a session compares; see [`tail_start`](crate::scan::tail_start) |
//! | 40–43 | time of the last event before the offset, seconds since 1970 |
//! | 44–47 | CRC32 of the file's last bytes before the offset, at most 256 |
//! | 48–49, 50–51 | lengths of the names of the timeline's folder and of the file |
//! | 52 | 0 for GTIDs of MySQL, 1 for those of MariaDB |
//! | 56–59 | length of the GTIDs |
//! | 60– | the two names; the GTIDs of the transactions in the file up to the offset, as text |
//!
//! What was executed before the file says the file itself, at its beginning, so the mark stays small where sets are large.
//!
//! # What a mark may say
//!
//! - Only bytes that a sync has covered when the mark is written. So the mark itself needs no sync: whatever a power failure
//!   leaves of it was written after those bytes were safe, and what is torn has a wrong checksum.
//! - It is not trusted beyond that. Another timeline or file, a file that is shorter, other bytes before the offset, a mark
//!   that cannot be read: the file is walked as a whole. A bit that turned on the disk is the affair of `verify`.
//! - It is never needed: without one, everything is found out from the files.

use crate::scan::Known;
use crate::storage::{ReadAt, Storage};
use codec::ServerKind;
use codec::gtid::GtidState;
use std::io::{self, IoSlice};
use std::path::Path;

/// Name of the mark in a source's folder.
pub const MARK_FILE: &str = "mark";

const MAGIC: &[u8; 8] = b"binlogdM";
const VERSION: u32 = 1;
/// Bytes before the names.
const HEAD: usize = 60;
/// How many of the file's last bytes before the offset are compared.
const COMPARED_BYTES: u64 = 256;
/// Where a mark can stand, and how long it may be there, in bytes. Two that are next to each other are written in turn, so
/// that one is whole while the other is written. Large sets have slots of their own: the file stays small without them.
const SLOTS: [(u64, usize); 4] =
    [(0, 16 << 10), (16 << 10, 16 << 10), (1 << 20, 1 << 20), (2 << 20, 1 << 20)];

/// One mark.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    /// Counts up.
    number: u64,
    timeline: String,
    file: String,
    /// CRC32 of the file's last bytes before the offset.
    last_bytes: u32,
    known: Known,
}

/// The marks of a source, newest first. Most often there are two.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks(Vec<Mark>);

impl Marks {
    /// Reads what there is in a source's folder. What cannot be read or understood is no mark.
    pub(crate) fn read(storage: &dyn Storage, source_folder: &Path) -> Marks {
        match storage.open(&source_folder.join(MARK_FILE)) {
            Ok(file) => Marks::read_from(&*file),
            Err(_) => Marks::default(),
        }
    }

    /// As [`Marks::read`], from the open file.
    pub(crate) fn read_from(file: &dyn ReadAt) -> Marks {
        let mut marks: Vec<Mark> = SLOTS.iter().filter_map(|slot| read_slot(file, *slot)).collect();
        marks.sort_by_key(|mark| std::cmp::Reverse(mark.number));
        Marks(marks)
    }

    /// The lowest offset at which something must be read of the file to believe a mark of it; 0 when there is none.
    pub(crate) fn needed_from(&self, timeline: &str, file: &str, len: u64) -> u64 {
        let of_file = self.0.iter().filter(|mark| mark.is_of(timeline, file, len));
        of_file.map(|mark| mark.known.tail_start.min(compared_from(mark.known.offset))).min().unwrap_or(0)
    }

    /// What is known of a file of `len` bytes, if the file bears it out.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn known(
        &self,
        timeline: &str,
        name: &str,
        file: &dyn ReadAt,
        len: u64,
    ) -> io::Result<Option<&Known>> {
        for mark in self.0.iter().filter(|mark| mark.is_of(timeline, name, len)) {
            if checksum_before(file, mark.known.offset)? == Some(mark.last_bytes) {
                return Ok(Some(&mark.known));
            }
        }
        Ok(None)
    }

    /// True when there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when each mark is one of the file, at or before its last boundary. Also true when there is none.
    pub(crate) fn are_of(&self, timeline: &str, file: &str, boundary: u64) -> bool {
        self.0.iter().all(|mark| mark.is_of(timeline, file, boundary))
    }

    /// What writes the next ones.
    pub(crate) fn writer(&self) -> MarkWriter {
        MarkWriter { number: self.0.first().map_or(1, |newest| newest.number + 1), len: 0 }
    }
}

impl Mark {
    fn is_of(&self, timeline: &str, file: &str, len: u64) -> bool {
        self.timeline == timeline && self.file == file && self.known.offset <= len
    }
}

/// Writes marks.
#[derive(Debug, Clone)]
pub struct MarkWriter {
    /// Of the next one.
    number: u64,
    /// Bytes of the last one.
    len: usize,
}

impl MarkWriter {
    /// Bytes of the last mark; 0 before the first.
    pub(crate) fn last_len(&self) -> usize {
        self.len
    }

    /// Says that everything in `name` before [`Known::offset`] is sound, and that a sync of it has covered that. `file` is that
    /// file. A set of GTIDs that is too large is left unsaid.
    ///
    /// # Errors
    /// When the mark cannot be written; what was there before, or nothing, holds then.
    pub fn write(
        &mut self,
        storage: &dyn Storage,
        timeline_folder: &Path,
        name: &str,
        file: &dyn ReadAt,
        known: &Known,
    ) -> io::Result<()> {
        let timeline = timeline_folder.file_name().unwrap_or_default().to_string_lossy();
        let Some(last_bytes) = checksum_before(file, known.offset)? else { return Ok(()) };
        let bytes = encode(self.number, &timeline, name, last_bytes, known);
        self.len = bytes.len();
        let pair = SLOTS.chunks(2).find(|pair| pair[0].1 >= bytes.len());
        let Some((at, _)) = pair.map(|pair| pair[(self.number % 2) as usize]) else { return Ok(()) };
        self.number += 1;
        let path = timeline_folder.parent().unwrap_or(Path::new(".")).join(MARK_FILE);
        let mark = match storage.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => storage.create(&path)?,
            other => other?,
        };
        mark.write_all_at(&mut [IoSlice::new(&bytes)], at)
    }
}

fn encode(number: u64, timeline: &str, name: &str, last_bytes: u32, known: &Known) -> Vec<u8> {
    let gtids = known.gtids.to_record();
    let mut bytes = Vec::with_capacity(HEAD + timeline.len() + name.len() + gtids.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&known.offset.to_le_bytes());
    bytes.extend_from_slice(&known.tail_start.to_le_bytes());
    bytes.extend_from_slice(&known.last_timestamp.to_le_bytes());
    bytes.extend_from_slice(&last_bytes.to_le_bytes());
    bytes.extend_from_slice(&(timeline.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&u32::from(known.gtids.kind() == ServerKind::MariaDb).to_le_bytes());
    bytes.extend_from_slice(&(gtids.len() as u32).to_le_bytes());
    for text in [timeline, name, &gtids] {
        bytes.extend_from_slice(text.as_bytes());
    }
    let checksum = crc32fast::hash(&bytes[16..]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// `None` when there is no sound mark in the slot.
fn read_slot(file: &dyn ReadAt, (at, len_max): (u64, usize)) -> Option<Mark> {
    let mut head = [0; HEAD];
    read_exact(file, &mut head, at)?;
    let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let short = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let tiny = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
    if head[..8] != *MAGIC || short(8) != VERSION {
        return None;
    }
    let (timeline_len, name_len, gtids_len) = (tiny(48), tiny(50), short(56) as usize);
    let texts_len = timeline_len + name_len + gtids_len;
    if HEAD + texts_len > len_max {
        return None;
    }
    let mut texts = vec![0; texts_len];
    read_exact(file, &mut texts, at + HEAD as u64)?;
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&head[16..]);
    checksum.update(&texts);
    if checksum.finalize() != short(12) {
        return None;
    }
    let kind = if head[52] == 0 { ServerKind::MySql } else { ServerKind::MariaDb };
    let texts = std::str::from_utf8(&texts).ok()?;
    let (timeline, rest) = texts.split_at_checked(timeline_len)?;
    let (name, gtids) = rest.split_at_checked(name_len)?;
    let known = Known {
        offset: number(24),
        tail_start: number(32),
        last_timestamp: short(40),
        gtids: GtidState::parse(kind, gtids).ok()?,
    };
    let is_sane = (4..=known.offset).contains(&known.tail_start);
    is_sane.then(|| Mark {
        number: number(16),
        timeline: timeline.to_owned(),
        file: name.to_owned(),
        last_bytes: short(44),
        known,
    })
}

fn compared_from(offset: u64) -> u64 {
    offset.saturating_sub(COMPARED_BYTES)
}

/// CRC32 of the last bytes before `offset`; `None` when they are not there.
fn checksum_before(file: &dyn ReadAt, offset: u64) -> io::Result<Option<u32>> {
    let from = compared_from(offset);
    let mut bytes = vec![0; (offset - from) as usize];
    let read = file.read_full_at(&mut bytes, from)?;
    Ok((read == bytes.len()).then(|| crc32fast::hash(&bytes)))
}

/// `None` when the bytes are not there or cannot be read.
fn read_exact(file: &dyn ReadAt, bytes: &mut [u8], at: u64) -> Option<()> {
    let read = file.read_full_at(bytes, at).ok()?;
    (read == bytes.len()).then_some(())
}

#[cfg(test)]
mod tests;
