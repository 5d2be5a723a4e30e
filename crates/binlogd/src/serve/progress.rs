//! How far a reader is, for those who look on.

use codec::Position;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

/// Written by the thread of one reader, read by whoever shows it.
#[derive(Debug, Default)]
pub struct ReaderProgress {
    file: Mutex<Option<Arc<str>>>,
    offset: AtomicU64,
    bytes: AtomicU64,
    /// Timestamp of the newest event that was sent or left out, in seconds since 1970; 0 before the first.
    event_time: AtomicU32,
    waiting: AtomicBool,
}

impl ReaderProgress {
    /// End of what was written to the reader; `None` before the first event. A new file's name may come a moment before its
    /// offset.
    pub fn position(&self) -> Option<Position> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(Position { file, offset: self.offset.load(Relaxed) })
    }

    /// Bytes written to the reader, framing included.
    pub fn bytes_sent(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Timestamp of the newest event that has passed to the reader, in seconds since 1970; `None` before the first.
    pub fn event_time(&self) -> Option<u32> {
        Some(self.event_time.load(Relaxed)).filter(|time| *time > 0)
    }

    /// Whether the reader has everything that there is, and waits for more.
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Relaxed)
    }

    pub(super) fn begin_file(&self, file: &Arc<str>, offset: u64) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file.clone());
        self.offset.store(offset, Relaxed);
    }

    pub(super) fn sent(&self, offset: u64, bytes: usize) {
        self.offset.store(offset, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// An event passes. Those that stand for nothing that was committed have no time.
    pub(super) fn passes(&self, timestamp: u32) {
        if timestamp > 0 {
            self.event_time.store(timestamp, Relaxed);
        }
    }

    pub(super) fn wait(&self, waiting: bool) {
        self.waiting.store(waiting, Relaxed);
    }
}
