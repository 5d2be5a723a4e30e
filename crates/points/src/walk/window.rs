//! The part of a file that a walk has in memory.

use binlog::storage::ReadAt;
use std::io;

/// What is read at once, in bytes.
pub(super) const BUFFER_LEN: usize = 1 << 20;

/// A part of a file.
pub(super) struct Window<'a> {
    file: &'a dyn ReadAt,
    bytes: Vec<u8>,
    start: u64,
    len: usize,
    /// Nothing at or past this offset is looked at.
    end: u64,
    /// One event that is longer than the buffer.
    long: Vec<u8>,
    long_max: usize,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a dyn ReadAt, end: u64, long_max: usize) -> Window<'a> {
        Window { file, bytes: Vec::new(), start: 0, len: 0, end, long: Vec::new(), long_max }
    }

    pub(super) fn file(&self) -> &'a dyn ReadAt {
        self.file
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The bytes from `at` on, at most `want`; fewer at the end of the file, or when `want` exceeds the buffer.
    #[inline]
    pub(super) fn view(&mut self, at: u64, want: usize) -> io::Result<&[u8]> {
        let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let want = want.min(BUFFER_LEN).min(left);
        if at < self.start || at + want as u64 > self.start + self.len as u64 {
            self.fill(at)?;
        }
        let from = (at - self.start) as usize;
        let to = (from + want).min(self.len);
        Ok(&self.bytes[from.min(to)..to])
    }

    /// Exactly `len` bytes from `at` on; `None` where the file has fewer, or when they are more than may be taken into memory.
    #[inline]
    pub(super) fn whole(&mut self, at: u64, len: usize) -> io::Result<Option<&[u8]>> {
        if len <= BUFFER_LEN {
            let bytes = self.view(at, len)?;
            return Ok(Some(bytes).filter(|bytes| bytes.len() == len));
        }
        if len > self.long_max || at + len as u64 > self.end {
            return Ok(None);
        }
        // Not resized: that writes zeros over what is read over, which a build for tests does byte by byte.
        if self.long.len() < len {
            self.long = vec![0; len];
        }
        let read = self.file.read_full_at(&mut self.long[..len], at)?;
        Ok(Some(&self.long[..len]).filter(|_| read == len))
    }

    fn fill(&mut self, at: u64) -> io::Result<()> {
        // A long event is behind us: its memory goes.
        self.long = Vec::new();
        (self.start, self.len) = (at, 0); // Nothing, where reading fails.
        let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let want = BUFFER_LEN.min(left);
        if self.bytes.len() < want {
            self.bytes = vec![0; want];
        }
        self.len = self.file.read_full_at(&mut self.bytes[..want], at)?;
        Ok(())
    }
}
