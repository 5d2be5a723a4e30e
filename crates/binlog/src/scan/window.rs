//! The part of a file that a walk has in memory.

use crate::storage::ReadAt;
use crate::writer::admission::GTID_STATE_BYTES_MAX;
use std::io;

/// Read buffer in bytes; holds the beginning of every event that a look is taken at.
pub(super) const BUFFER_LEN: usize = 256 * 1024;

/// A part of the file in memory.
pub(super) struct Window<'a> {
    file: &'a dyn ReadAt,
    bytes: Vec<u8>,
    start: u64,
    len: usize,
    /// Nothing at or past this offset is looked at.
    limit: u64,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a dyn ReadAt, limit: u64) -> Window<'a> {
        Window { file, bytes: vec![0; BUFFER_LEN], start: 0, len: 0, limit }
    }

    /// The bytes from `at` on, at most `want`; fewer at the end of the file or when `want` exceeds the buffer.
    pub(super) fn view(&mut self, at: u64, want: usize) -> io::Result<&[u8]> {
        let left = usize::try_from(self.limit.saturating_sub(at)).unwrap_or(usize::MAX);
        let want = want.min(self.bytes.len()).min(left);
        let inside = at >= self.start && at + want as u64 <= self.start + self.len as u64;
        if !inside {
            self.fill(at)?;
        }
        let from = (at - self.start) as usize;
        let to = (from + want).min(self.len);
        Ok(&self.bytes[from.min(to)..to])
    }

    /// `len` bytes from `at` on, which the caller knows to exist; `None` when they are too many.
    pub(super) fn whole(&mut self, at: u64, len: usize) -> io::Result<Option<Vec<u8>>> {
        if len > GTID_STATE_BYTES_MAX {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let part = self.view(at + bytes.len() as u64, len - bytes.len())?;
            if part.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes.extend_from_slice(part);
        }
        Ok(Some(bytes))
    }

    fn fill(&mut self, at: u64) -> io::Result<()> {
        (self.start, self.len) = (at, 0); // Nothing, where reading fails.
        self.len = self.file.read_full_at(&mut self.bytes, at)?;
        let left = usize::try_from(self.limit.saturating_sub(at)).unwrap_or(usize::MAX);
        self.len = self.len.min(left);
        Ok(())
    }

    /// How many of `want` bytes from `at` on exist.
    pub(super) fn available(&mut self, at: u64, want: u64) -> io::Result<u64> {
        let in_window = (self.start + self.len as u64).saturating_sub(at);
        if at >= self.start && in_window >= want {
            return Ok(want);
        }
        let end = at + want;
        if end > self.limit {
            let reachable = self.limit.saturating_sub(at);
            return self.available_in_file(at, reachable);
        }
        self.available_in_file(at, want)
    }

    fn available_in_file(&self, at: u64, want: u64) -> io::Result<u64> {
        let mut byte = [0u8];
        if want == 0 {
            return Ok(0);
        }
        if self.file.read_at(&mut byte, at + want - 1)? == 1 {
            return Ok(want);
        }
        // The file ends inside: bisect to its end, for the message only.
        let (mut low, mut high) = (0, want - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.file.read_at(&mut byte, at + middle)? == 1 { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }
}
