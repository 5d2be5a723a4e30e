//! How far a reader is, for those who look on.

use super::asked::{Asked, BadAnswer};
use binlog::writer::published::Published;
use codec::Position;
use codec::packet::SemiSyncAcknowledgement;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

/// Written by the thread of one reader, read by whoever shows it.
#[derive(Debug, Default)]
pub struct ReaderProgress {
    /// Under one lock, so that nobody sees a file with another one's timeline or offset.
    file: Mutex<Option<InFile>>,
    offset: AtomicU64,
    bytes: AtomicU64,
    /// Timestamp of the newest event that was sent or left out, in seconds since 1970; 0 before the first.
    event_time: AtomicU32,
    /// What the reader was asked to acknowledge.
    pub asked: Asked,
    /// A [`Rest`], as a number.
    rest: AtomicU8,
    /// Its source is not copied any more.
    dismissed: AtomicBool,
    /// What of the point at which the dump stops was not here when the dump began; empty for nothing.
    not_here: Mutex<String>,
}

/// Why nothing is sent at the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rest {
    /// Something is.
    #[default]
    None,
    /// The reader has everything that there is, and waits for more.
    End,
    /// The dump has come to the point at which it stops.
    Stopped,
    /// What comes next was committed too short a time ago.
    Delayed,
}

/// The file that is read.
#[derive(Debug)]
struct InFile {
    name: Arc<str>,
    /// Folder name of its timeline.
    timeline: String,
}

impl ReaderProgress {
    /// Who answers what the dump asks for, over connections: see [`receiver`](super::dump_request::receiver).
    pub fn receiver_is(&self, receiver: &str) {
        self.asked.receiver_is(receiver);
    }

    /// Takes an answer: a confirmation of what is `published`.
    ///
    /// # Errors
    /// When the reader cannot have what it says that it has.
    pub fn hears(
        &self,
        answer: &SemiSyncAcknowledgement<'_>,
        published: &Published,
    ) -> Result<(), BadAnswer> {
        self.asked.hears(answer, published)
    }

    /// The source is about to be given up: where the dump ends for that, the reader is told so.
    pub(crate) fn dismiss(&self) {
        self.dismissed.store(true, Relaxed);
    }

    /// Whether the source is given up.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.dismissed.load(Relaxed)
    }

    /// End of what was written to the reader; `None` before the first event.
    pub fn position(&self) -> Option<Position> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Position { file: file.as_ref()?.name.clone(), offset: self.offset.load(Relaxed) })
    }

    /// As [`ReaderProgress::position`], with the folder name of the timeline before it.
    pub fn place(&self) -> Option<(String, Position)> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let InFile { name, timeline } = file.as_ref()?;
        Some((timeline.clone(), Position { file: name.clone(), offset: self.offset.load(Relaxed) }))
    }

    /// Bytes written to the reader, framing included.
    pub(crate) fn bytes_sent(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Timestamp of the newest event that has passed to the reader, in seconds since 1970; `None` before the first.
    pub fn event_time(&self) -> Option<u32> {
        Some(self.event_time.load(Relaxed)).filter(|time| *time > 0)
    }

    /// Whether the reader has everything that there is, and waits for more.
    pub fn is_waiting(&self) -> bool {
        self.rest() == Rest::End
    }

    /// Why nothing is sent at the moment.
    pub fn rest(&self) -> Rest {
        match self.rest.load(Relaxed) {
            1 => Rest::End,
            2 => Rest::Stopped,
            3 => Rest::Delayed,
            _ => Rest::None,
        }
    }

    /// What of the point at which the dump stops was not here when the dump began, in words; empty for nothing.
    pub fn not_here(&self) -> String {
        self.not_here.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn begin(&self, not_here: String) {
        *self.not_here.lock().unwrap_or_else(PoisonError::into_inner) = not_here;
    }

    pub(crate) fn begin_file(&self, timeline: &Path, file: &Arc<str>, offset: u64) {
        let timeline = timeline.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut place = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(InFile { name: file.clone(), timeline });
        self.offset.store(offset, Relaxed);
    }

    pub(crate) fn sent(&self, offset: u64, bytes: usize) {
        self.offset.store(offset, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// An event passes. Those that stand for nothing that was committed have no time.
    pub(crate) fn passes(&self, timestamp: u32) {
        if timestamp > 0 {
            self.event_time.store(timestamp, Relaxed);
        }
    }

    pub(crate) fn rests(&self, rest: Rest) {
        let number = match rest {
            Rest::None => 0,
            Rest::End => 1,
            Rest::Stopped => 2,
            Rest::Delayed => 3,
        };
        self.rest.store(number, Relaxed);
    }
}
