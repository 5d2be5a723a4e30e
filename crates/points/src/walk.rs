//! A walk over a binary log, transaction by transaction.
//!
//! What it holds in memory is bounded: a buffer of 1 MiB, one event up to [`Options::opened_bytes_max`], one transaction in
//! short. Larger events are passed over with their head read, and the transaction says so. Packed transactions are unpacked as a
//! stream.

pub mod events;
mod packed;
mod reading;
mod tables;
mod window;

use crate::transaction::Transaction;
use binlog::storage::ReadAt;
use binlog::writer::admission::{gtids_before, states_gtids};
use codec::event::boundary::BoundaryTracker;
use codec::event::{
    BINLOG_MAGIC, ChecksumAlgorithm, EventError, EventHeader, EventType, FormatDescription, GtidEvent,
    HEADER_LEN, PEEK_BYTES_MAX, PayloadHead, StreamChecksum,
};
use codec::gtid::GtidState;
use reading::Reading;
use std::io;
use thiserror::Error;
use window::Window;

/// See [`Options::opened_bytes_max`].
const OPENED_BYTES_MAX: usize = 64 << 20;

/// How a walk is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// The checksum of each event is computed. Without it damage may show itself late or not at all: who only looks need not,
    /// because every byte was verified when it arrived.
    pub verifies: bool,
    /// Longest event that is taken into memory, in bytes, also one inside a packed transaction.
    pub opened_bytes_max: usize,
    /// A text to look for in statements, in lower case.
    pub text: Option<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Options {
        Options { verifies: false, opened_bytes_max: OPENED_BYTES_MAX, text: None }
    }
}

/// Why a walk cannot go on.
#[derive(Debug, Error)]
pub enum WalkError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The file has no whole format description yet, as one that was just begun.
    #[error("it ends before the end of its first event")]
    NotBegun,
    /// The file is damaged.
    #[error("it is damaged at {at}: {what}; binlogd verify says more")]
    Damaged {
        /// Where the event begins.
        at: u64,
        /// What is wrong.
        what: String,
    },
}

fn damaged(at: u64, what: impl ToString) -> WalkError {
    WalkError::Damaged { at, what: what.to_string() }
}

/// Walks one file.
pub struct Walk<'a> {
    window: Window<'a>,
    options: Options,
    checksum: ChecksumAlgorithm,
    format: FormatDescription,
    gtids_before: Option<GtidState>,
    tracker: BoundaryTracker,
    reading: Reading,
    /// Where the next event begins.
    at: u64,
    /// The last boundary.
    boundary: u64,
    /// Where the file's own events at its beginning end, and transactions may begin.
    begins_at: u64,
    /// Inside a transaction.
    is_open: bool,
}

impl<'a> Walk<'a> {
    /// Begins at the beginning of a file of which `end` bytes may be read: of a sealed file all, of a live one those that are
    /// published, or all.
    ///
    /// # Errors
    /// When the file cannot be read or does not begin as a binary log.
    pub fn open(file: &'a dyn ReadAt, end: u64, options: Options) -> Result<Walk<'a>, WalkError> {
        let mut window = Window::new(file, end, options.opened_bytes_max.max(PEEK_BYTES_MAX));
        let magic = window.view(0, BINLOG_MAGIC.len())?;
        if magic.len() < BINLOG_MAGIC.len() && BINLOG_MAGIC.starts_with(magic) {
            return Err(WalkError::NotBegun);
        }
        if magic != BINLOG_MAGIC {
            return Err(damaged(0, "it does not begin as a binary log"));
        }
        let at = BINLOG_MAGIC.len() as u64;
        let Some(header) = next_header(&mut window, at)? else { return Err(WalkError::NotBegun) };
        if header.event_type != EventType::FORMAT_DESCRIPTION {
            return Err(damaged(at, "its first event is no format description"));
        }
        let len = header.event_size as usize;
        let event = window.view(at, len)?;
        if event.len() < len {
            return Err(WalkError::NotBegun);
        }
        let format = FormatDescription::parse(event).map_err(|error| damaged(at, error))?;
        if options.verifies {
            format.checksum.verify_format_description(event).map_err(|error| damaged(at, error))?;
        }
        let mut walk = Walk {
            reading: Reading::new(options.opened_bytes_max, options.text.clone()),
            window,
            options,
            checksum: format.checksum,
            format,
            gtids_before: None,
            tracker: BoundaryTracker::new(),
            at: at + len as u64,
            boundary: at + len as u64,
            begins_at: 0,
            is_open: false,
        };
        walk.beginning()?;
        Ok(walk)
    }

    /// Reads what stands before the first transaction.
    fn beginning(&mut self) -> Result<(), WalkError> {
        while let Some(header) = next_header(&mut self.window, self.at)? {
            let is_states = states_gtids(header.event_type);
            if !is_states && header.event_type != EventType::MARIADB_START_ENCRYPTION {
                break;
            }
            let (at, len) = (self.at, header.event_size as usize);
            if is_states {
                let Some(event) = self.window.whole(at, len)? else { break };
                let event = without_checksum(event, self.checksum).ok_or_else(|| damaged(at, SHORT))?;
                let state = gtids_before(header.event_type, &event[HEADER_LEN..]);
                self.gtids_before = Some(state.map_err(|error| damaged(at, error))?);
            }
            self.at += len as u64;
            self.boundary = self.at;
        }
        self.begins_at = self.at;
        Ok(())
    }

    /// The file's first event.
    pub fn format(&self) -> &FormatDescription {
        &self.format
    }

    /// GTIDs executed before the file by its own word; `None` where it does not say so.
    pub fn gtids_before(&self) -> Option<&GtidState> {
        self.gtids_before.as_ref()
    }

    /// Where the first transaction begins.
    pub fn begins_at(&self) -> u64 {
        self.begins_at
    }

    /// Goes to a place where a transaction begins.
    pub fn seek(&mut self, at: u64) {
        self.at = at.max(self.begins_at);
        self.boundary = self.at;
        self.tracker = BoundaryTracker::new();
        self.is_open = false;
    }

    /// The last boundary that was reached.
    pub fn boundary(&self) -> u64 {
        self.boundary
    }

    /// End of the events that were read. Behind the last transaction: the boundary, or inside a transaction that was begun and
    /// not ended.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next complete transaction; `None` at the end, where one may have been begun and not ended. It is valid until the next
    /// call.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn next_transaction(&mut self) -> Result<Option<&Transaction>, WalkError> {
        loop {
            let at = self.at;
            let Some(header) = next_header(&mut self.window, at)? else { return Ok(None) };
            let end = at + u64::from(header.event_size);
            if end > self.window.end() {
                return Ok(None);
            }
            if self.event(at, end, &header)? {
                break;
            }
        }
        let transaction = &mut self.reading.transaction;
        transaction.end = self.at;
        Ok(Some(transaction))
    }

    /// Takes one event; true when it ended a transaction.
    fn event(&mut self, at: u64, end: u64, header: &EventHeader) -> Result<bool, WalkError> {
        let size = header.event_size as usize;
        let is_whole = size <= self.options.opened_bytes_max;
        if self.options.verifies && !is_whole {
            self.verify_parts(at, header)?;
        }
        let event = if is_whole {
            self.window.whole(at, size)?.ok_or_else(|| damaged(at, "it ends inside an event"))?
        } else {
            self.window.view(at, PEEK_BYTES_MAX)?
        };
        if self.options.verifies && is_whole && header.event_type != EventType::FORMAT_DESCRIPTION {
            self.checksum.verify(event).map_err(|error| damaged(at, error))?;
        }
        let event = if is_whole {
            without_checksum(event, self.checksum).ok_or_else(|| damaged(at, SHORT))?
        } else {
            event
        };
        let peek = &event[..event.len().min(PEEK_BYTES_MAX)];
        let step = self.tracker.advance(header, peek, at, end).map_err(|error| damaged(at, error))?;
        if GtidEvent::is_gtid(header.event_type) || (!self.is_open && (!step.boundary || step.transaction)) {
            self.reading.begin(at);
            self.is_open = true;
        }
        if self.is_open {
            if is_whole {
                self.reading.event(header, event, at);
            } else if header.event_type == EventType::TRANSACTION_PAYLOAD {
                let head = PayloadHead::parse(event).map_err(|error| damaged(at, error))?;
                let payload_end = end - self.checksum.len() as u64;
                self.reading.packed_in_file(&self.window, &head, at, payload_end);
            } else {
                self.reading.too_large(header, event, at);
            }
        }
        self.at = end;
        if step.boundary {
            self.boundary = end;
            self.is_open = false;
        }
        if step.transaction {
            self.reading.end();
        }
        Ok(step.transaction)
    }

    /// The checksum of an event that is not taken into memory.
    fn verify_parts(&mut self, at: u64, header: &EventHeader) -> Result<(), WalkError> {
        if self.checksum.is_empty() {
            return Ok(());
        }
        let mut checksum =
            StreamChecksum::new(self.checksum, header.event_size).map_err(|error| damaged(at, error))?;
        let mut offset = at;
        while checksum.remaining() > 0 {
            let want = usize::try_from(checksum.remaining()).unwrap_or(usize::MAX).min(window::BUFFER_LEN);
            let part = self.window.view(offset, want)?;
            if part.is_empty() {
                return Err(damaged(at, "it ends inside an event"));
            }
            checksum.update(part);
            offset += part.len() as u64;
        }
        checksum.finish().map_err(|error| damaged(at, error))
    }
}

const SHORT: EventError = EventError::Malformed("an event is too short to hold its header and its checksum");

/// `None` at the end, also inside a header.
fn next_header(window: &mut Window<'_>, at: u64) -> Result<Option<EventHeader>, WalkError> {
    let head = window.view(at, HEADER_LEN)?;
    if head.len() < HEADER_LEN {
        return Ok(None);
    }
    EventHeader::parse(head).map(Some).map_err(|error| damaged(at, error))
}

fn without_checksum(event: &[u8], checksum: ChecksumAlgorithm) -> Option<&[u8]> {
    let len = event.len().checked_sub(checksum.len()).filter(|len| *len >= HEADER_LEN)?;
    event.get(..len)
}

#[cfg(test)]
mod tests;
