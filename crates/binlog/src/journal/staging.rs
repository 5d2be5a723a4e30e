//! The record that is being put together.

use super::record::{self, BLOCK, JournalId, RECORD_LEN_MAX};
use std::fmt;

/// Memory for one record, aligned to a block as direct output asks for.
pub(super) struct Staging {
    memory: Box<[u8]>,
    /// Where the first whole block of `memory` begins.
    start: usize,
    /// Bytes of the record before its data; 0 before the first file.
    head_len: usize,
    /// Bytes of data.
    len: usize,
    /// Where the data belongs in the file.
    offset: u64,
    /// More came than a record holds: what is here is not all.
    overflowed: bool,
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staging")
            .field("offset", &self.offset)
            .field("len", &self.len)
            .field("overflowed", &self.overflowed)
            .finish_non_exhaustive()
    }
}

impl Staging {
    pub(super) fn new() -> Staging {
        let memory = vec![0; RECORD_LEN_MAX + BLOCK].into_boxed_slice();
        let start = memory.as_ptr().align_offset(BLOCK);
        Staging { memory, start, head_len: 0, len: 0, offset: 0, overflowed: false }
    }

    pub(super) fn begin_file(&mut self, timeline: &str, file: &str, offset: u64) {
        record::write_names(&mut self.memory[self.start..], timeline, file);
        self.head_len = record::head_len(timeline, file);
        self.restart(offset);
    }

    pub(super) fn restart(&mut self, offset: u64) {
        self.len = 0;
        self.offset = offset;
        self.overflowed = false;
    }

    /// Makes the record one without data.
    pub(super) fn drop_data(&mut self) {
        if self.head_len == 0 {
            self.begin_file("", "", 0);
        }
        self.restart(self.end());
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.record_len(bytes.len()).is_none() {
            self.overflowed = true;
            return;
        }
        let at = self.start + self.head_len + self.len;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Length of the record with `more` bytes of data; `None` when that is too much or something is missing already.
    pub(super) fn record_len(&self, more: usize) -> Option<usize> {
        let len = self.head_len + self.len + more;
        (!self.overflowed && len <= RECORD_LEN_MAX).then_some(len)
    }

    /// Where the data ends in the file.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.len as u64
    }

    /// The data from `offset` of the file on.
    pub(super) fn from(&self, offset: u64) -> &[u8] {
        let data = &self.memory[self.start + self.head_len..][..self.len];
        &data[(offset - self.offset) as usize..]
    }

    /// The whole record, filled up to the end of its last block.
    pub(super) fn seal(&mut self, id: &JournalId, sequence: u64, needed_from: u64) -> &[u8] {
        let len = self.head_len + self.len;
        let padded = len.next_multiple_of(BLOCK);
        let record = &mut self.memory[self.start..self.start + padded];
        record[len..].fill(0);
        record::seal(&mut record[..len], id, sequence, needed_from, self.offset, self.len);
        record
    }
}
