//! The heart: one thread, one loop, from the socket to the acknowledgement.
//!
//! ```text
//! read what has arrived → frame packets → admit each event (checksum, position, boundary)
//!   → one write of the batch → if an acknowledgement is owed: one fdatasync → publish
//!   → one acknowledgement for the highest owed position that is now safe
//! ```
//!
//! Group commit comes for free: while fdatasync runs, the kernel's socket buffer collects the next group. There is no
//! hand-off between threads on the way, so no wake-up to wait for, and no allocation per event.

use super::copy::OpenTimeline;
use super::cursor::Cursor;
use super::refusal::Refusal;
use super::sink::Sink;
use super::stop::{StopSignal, Woken};
use crate::config::FsyncMode;
use crate::log::writer::LogError;
use crate::status::SourceMonitor;
use crate::wire::DumpStream;
use codec::dump_stream::{DumpFramer, Frame, FrameError};
use codec::packet::ErrPacket;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Size of the receive buffer in bytes. Larger events are stored in parts, so this bounds the memory of a source.
const BUFFER_LEN: usize = 1024 * 1024;

/// What a session needs to know of the configuration.
#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    /// When an acknowledgement may be sent.
    pub fsync_mode: FsyncMode,
    /// Longest time that written bytes stay unsynced.
    pub fsync_interval: Duration,
    /// Silence after which the connection counts as lost.
    pub net_read_timeout: Duration,
}

/// Why a session ended.
#[derive(Debug, Error)]
pub enum SessionError {
    /// What arrived cannot be stored.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// What arrived is no binlog dump.
    #[error("the source's stream cannot be understood: {0}")]
    Frame(#[from] FrameError),
    /// The source ended the dump and said why.
    #[error("the source ended the dump: {} (error {}, SQLSTATE {})", .0.message, .0.code, .0.sqlstate)]
    Source(ErrPacket),
    /// The source ended the dump in good order, as at its shutdown.
    #[error("the source ended the dump")]
    EndOfDump,
    /// The connection was closed.
    #[error("the source closed the connection")]
    Closed,
    /// Nothing arrived for too long, not even a heartbeat.
    #[error("nothing arrived from the source for {0:?} (net_read_timeout), not even a heartbeat")]
    Silent(Duration),
    /// The network failed.
    #[error("the connection to the source failed: {0}")]
    Network(io::Error),
    /// The disk failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Receives until a stop is requested (`Ok`) or the session fails. Whatever ended it, the timeline is left at the last
/// boundary that was received, durable, unless the log itself failed. `on_stream` is called when the first event has
/// come, and told whether the source took the offer of semi-sync.
///
/// # Errors
/// Why the session ended.
pub fn receive(
    stream: DumpStream,
    cursor: Cursor,
    timeline: &mut OpenTimeline,
    options: &ReceiveOptions,
    monitor: &SourceMonitor,
    stop: &StopSignal,
    on_stream: &mut dyn FnMut(bool),
) -> Result<(), SessionError> {
    let mut session = Session {
        stream,
        buffer: Buffer { bytes: vec![0; BUFFER_LEN].into_boxed_slice(), start: 0, end: 0 },
        framer: None,
        sink: Sink::new(cursor, timeline, options, monitor),
        last_arrival: Instant::now(),
        announced: false,
    };
    let result = session.run(stop, on_stream);
    let closed = session.sink.close(&session.buffer.bytes);
    result.and(closed)
}

/// What has arrived and was not consumed.
struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

struct Session<'a> {
    stream: DumpStream,
    buffer: Buffer,
    /// Made when the first bytes have told whether semi-sync is in force.
    framer: Option<DumpFramer>,
    sink: Sink<'a>,
    last_arrival: Instant,
    /// The first event has come: the source has accepted the request.
    announced: bool,
}

impl Session<'_> {
    fn run(&mut self, stop: &StopSignal, on_stream: &mut dyn FnMut(bool)) -> Result<(), SessionError> {
        while !stop.is_requested() {
            match self.stream.read(&mut self.buffer.bytes[self.buffer.end..]) {
                Ok(0) => return Err(SessionError::Closed),
                Ok(read) => {
                    self.buffer.end += read;
                    self.last_arrival = Instant::now();
                    self.sink.monitor.counters.bytes_received.fetch_add(read as u64, Relaxed);
                    self.take_frames(on_stream)?;
                    self.sink.settle(&self.buffer.bytes, &mut self.stream)?;
                    self.make_room();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(stop)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SessionError::Network(error)),
            }
        }
        Ok(())
    }

    fn take_frames(&mut self, on_stream: &mut dyn FnMut(bool)) -> Result<(), SessionError> {
        if self.framer.is_none() {
            let available = &self.buffer.bytes[self.buffer.start..self.buffer.end];
            let Some(semi_sync) = DumpFramer::detect_semi_sync(available) else { return Ok(()) };
            self.framer = Some(DumpFramer::new(semi_sync));
            self.sink.semi_sync = semi_sync;
        }
        let Some(framer) = self.framer.as_mut() else { return Ok(()) };
        loop {
            let available = &self.buffer.bytes[self.buffer.start..self.buffer.end];
            let Some((consumed, frame)) = framer.next(available, BUFFER_LEN)? else { return Ok(()) };
            let end = self.buffer.start + consumed;
            match frame {
                Frame::Event { wants_acknowledgement, bytes } => {
                    if !std::mem::replace(&mut self.announced, true) {
                        on_stream(self.sink.semi_sync);
                    }
                    let at = end - bytes.len()..end;
                    self.sink.event(&self.buffer.bytes, at, &mut self.stream)?;
                    if wants_acknowledgement {
                        self.sink.acknowledgement_wanted(self.last_arrival);
                    }
                }
                Frame::Part { wants_acknowledgement, offset, event_size, bytes } => {
                    let at = end - bytes.len()..end;
                    let last = offset + bytes.len() as u64 == u64::from(event_size);
                    self.sink.part(&self.buffer.bytes, at, offset == 0, last)?;
                    if last && wants_acknowledgement {
                        self.sink.acknowledgement_wanted(self.last_arrival);
                    }
                }
                Frame::EmptyPacket => {}
                Frame::SourceError(error) => return Err(SessionError::Source(error)),
                Frame::End => return Err(SessionError::EndOfDump),
            }
            self.buffer.start = end;
        }
    }

    /// Moves what is left to the front, unless there is room enough behind it.
    fn make_room(&mut self) {
        let buffer = &mut self.buffer;
        if buffer.start == buffer.end {
            (buffer.start, buffer.end) = (0, 0);
        } else if buffer.start > 0 {
            buffer.bytes.copy_within(buffer.start..buffer.end, 0);
            (buffer.start, buffer.end) = (0, buffer.end - buffer.start);
        }
    }

    /// Nothing has arrived: sync what is due, then wait until something does.
    fn wait(&mut self, stop: &StopSignal) -> Result<(), SessionError> {
        self.sink.sync_if_due()?;
        if self.stream.pending() {
            return Ok(());
        }
        let silent = self.last_arrival.elapsed();
        let timeout = self.sink.options.net_read_timeout;
        let Some(left) = timeout.checked_sub(silent).filter(|left| !left.is_zero()) else {
            return Err(SessionError::Silent(timeout));
        };
        let left = self.sink.sync_due_in().map_or(left, |due| due.min(left));
        match stop.wait_readable(self.stream.as_fd(), left).map_err(SessionError::Network)? {
            Woken::Readable | Woken::TimedOut | Woken::Stop => Ok(()),
        }
    }
}
