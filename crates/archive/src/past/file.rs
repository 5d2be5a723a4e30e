//! An archived file, as it is read: by segments, the next of which are fetched meanwhile.

use super::cache::{Cache, Held};
use super::view::Found;
use crate::chain::commit::Segment;
use crate::chain::history::ArchivedFile;
use crate::reader::Reader;
use binlog::storage::{ReadAt, ReadFile};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// So many segments behind the one that is read are fetched before they are asked for: 16 MiB, so that a store which takes a tenth
/// of a second for each makes no reader wait.
const AHEAD: usize = 4;

/// Who has come so far into a file, in bytes, reads on. Before that its beginning alone may be wanted, to find a place.
const HEAD_BYTES: u64 = 256 << 10;

/// A file of which nothing need be on this disk. It holds the segment that was read last.
#[derive(Debug)]
pub(super) struct PastFile {
    reader: Reader,
    cache: Arc<Cache>,
    file: Arc<ArchivedFile>,
    next: Option<Arc<ArchivedFile>>,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    segments: Arc<[Segment]>,
    /// Its place among these.
    place: usize,
    from: u64,
    to: u64,
    held: Held,
    /// What comes next was asked for.
    is_ahead: bool,
}

impl PastFile {
    pub(super) fn new(reader: Reader, cache: Arc<Cache>, found: Found) -> PastFile {
        PastFile { reader, cache, file: found.file, next: found.next, open: Mutex::default() }
    }

    /// The segment that has byte `offset`; `None` behind the end.
    fn open_at(&self, offset: u64) -> io::Result<Option<Open>> {
        if offset >= self.file.end() {
            return Ok(None);
        }
        let segments = self.cache.segments(&self.reader, &self.file)?;
        let place = segments.partition_point(|segment| segment.to <= offset);
        let Some(segment) = segments.get(place) else { return Ok(None) };
        // Before those behind it: it is waited for.
        self.cache.begin(&self.reader, segment);
        let is_ahead = self.go_ahead(&segments, place, offset);
        let held = self.cache.get(&self.reader, segment)?;
        let (from, to) = (segment.from, segment.to);
        Ok(Some(Open { segments, place, from, to, held, is_ahead }))
    }

    /// Asks for what comes next, of the next file too, where it will be wanted.
    fn go_ahead(&self, segments: &[Segment], place: usize, offset: u64) -> bool {
        if offset < HEAD_BYTES {
            return false;
        }
        let mut behind: Vec<&Segment> = segments[place + 1..].iter().take(AHEAD).collect();
        let next = self.next.as_ref().filter(|_| behind.len() < AHEAD);
        // Who comes to the next file is told what is wrong with it.
        let next = next.and_then(|next| self.cache.segments(&self.reader, next).ok());
        behind.extend(next.iter().flat_map(|next| &**next).take(AHEAD - behind.len()));
        self.cache.prepare(&self.reader, &behind);
        true
    }
}

impl ReadAt for PastFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *open {
            Some(open) if (open.from..open.to).contains(&offset) => {
                open.is_ahead = open.is_ahead || self.go_ahead(&open.segments, open.place, offset);
            }
            other => {
                *other = None;
                *other = self.open_at(offset)?;
            }
        }
        let Some(Open { from, to, held, .. }) = &*open else { return Ok(0) };
        let len = buffer.len().min(usize::try_from(to - offset).unwrap_or(usize::MAX));
        held.read_at(&mut buffer[..len], offset - from)
    }
}

impl ReadFile for PastFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.end())
    }
}
