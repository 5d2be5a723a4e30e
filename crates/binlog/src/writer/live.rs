//! The live file as its writer knows it.

use crate::storage::{ReadAt, ReadFile, StorageFile};
use codec::Position;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;

/// So many bytes of the file are asked to be written at a time, while acknowledgements wait for the journal on the same disk.
/// A write of the journal that comes behind them waits for them, so they are few; each time costs a system call and a
/// request to the disk, so they are not fewer (docs/measured/benchmarks.md).
const WRITEBACK_BYTES: u64 = 256 << 10;

/// The length of a page of the page cache, in bytes. Where it is larger, the last page is written once too often.
const PAGE_BYTES: u64 = 4096;

/// The live file, and how far each rung of the ladder has come in it.
#[derive(Debug)]
pub(super) struct Live {
    /// Bare name.
    pub(super) name: Arc<str>,
    pub(super) path: PathBuf,
    /// Open for writing, until it is closed.
    pub(super) file: Arc<dyn StorageFile>,
    /// End of the bytes in the file, as given to the operating system.
    pub(super) in_file: u64,
    /// End of the bytes given to the operating system, in the file or in the journal. Above `in_file` only between
    /// the writer's
    /// `commit` and `write_behind`.
    pub(super) written: u64,
    /// End of the bytes that are on stable storage, in the file or in the journal. Always <= `written`.
    pub(super) durable: u64,
    /// End of the bytes that a sync of the file has covered. Always <= `durable` and <= `in_file`.
    pub(super) synced: u64,
    /// End of the bytes that the system was asked to write to the disk ahead of a sync, a multiple of [`PAGE_BYTES`].
    writeback: u64,
}

impl Live {
    /// A file of `len` bytes that a sync has covered.
    pub(super) fn synced(name: Arc<str>, path: PathBuf, file: Box<dyn StorageFile>, len: u64) -> Live {
        let file = Arc::from(file);
        Live { name, path, file, in_file: len, written: len, durable: len, synced: len, writeback: 0 }
    }

    /// Lets the system begin to write to the disk what stands in the file and no sync has covered, once that is
    /// [`WRITEBACK_BYTES`] more than the last time. The page that is not full yet stays: the next write changes it.
    pub(super) fn begin_writeback(&mut self) {
        let from = self.writeback.max(self.synced - self.synced % PAGE_BYTES);
        let to = self.in_file - self.in_file % PAGE_BYTES;
        if to >= from + WRITEBACK_BYTES {
            self.file.begin_writeback(from..to);
            self.writeback = to;
        }
    }

    /// Gives the descriptor back.
    pub(super) fn close(&mut self) {
        self.file = Arc::new(Closed);
    }

    /// A sync of the file has covered everything before `offset`.
    pub(super) fn synced_through(&mut self, offset: u64) {
        self.synced = self.synced.max(offset);
        self.durable = self.durable.max(self.synced);
    }

    /// The file was cut to `offset`, and a sync has covered that.
    pub(super) fn cut_to(&mut self, offset: u64) {
        (self.in_file, self.written, self.durable, self.synced) = (offset, offset, offset, offset);
        self.writeback = 0;
    }

    /// A place in the file.
    pub(super) fn at(&self, offset: u64) -> Position {
        Position { file: self.name.clone(), offset }
    }
}

/// In the place of a file that is sealed and closed, until the next one is begun. Where that fails the writer is latched, and
/// knows where it was.
#[derive(Debug)]
struct Closed;

impl ReadAt for Closed {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(closed())
    }
}

impl ReadFile for Closed {
    fn size(&self) -> io::Result<u64> {
        Err(closed())
    }
}

impl StorageFile for Closed {
    fn write_all_at(&self, _: &mut [IoSlice<'_>], _: u64) -> io::Result<()> {
        Err(closed())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(closed())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(closed())
    }

    fn forget_cached_from(&self, _: u64) {}
}

fn closed() -> io::Error {
    io::Error::other("the file is sealed and closed")
}
