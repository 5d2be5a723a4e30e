//! The heart: one thread, one loop, from the socket to the acknowledgement.
//!
//! ```text
//! read what has arrived → frame packets → admit each event (checksum, position, boundary)
//!   → an acknowledgement is owed: one durable write of the batch into the journal
//!       → one acknowledgement for the highest owed position that is now safe → the same bytes into the binary log
//!   → none is owed: one write of the batch into the binary log, which is synced in the background
//!   → publish
//! ```
//!
//! Group commit comes for free: while the journal is written, the kernel's socket buffer collects the next group. There
//! is no hand-off between threads on the way, so no wake-up to wait for, and no allocation per event.

use super::cursor::Cursor;
use crate::attempt::open_timeline::OpenTimeline;
use crate::session::{Outside, ReceiveOptions, Sender, SessionError};
use crate::sink::Sink;
use crate::sink::downstream::STALLED_MAX;
use codec::dump_stream::{DumpFramer, Frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use source::stop::StopSignal;
use status::{Place, SourceMonitor};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use wire::DumpStream;

/// Size of the receive buffer in bytes. Larger events are stored in parts, so this bounds the memory of a source.
const BUFFER_LEN: usize = 1024 * 1024;

/// The shortest time limit that a read gets; zero would mean none.
const READ_TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// A read that has waited for so long has found nothing there: what it brings has just come.
const WAITED: Duration = Duration::from_millis(10);

/// Silence after which the source has nothing newer, as far as anybody can tell before its next heartbeat: it sends what it
/// commits at once.
const QUIET: Duration = Duration::from_secs(1);

/// Receives until a stop is requested, or the wish to rest (`Ok`), or the session fails. Whatever ended it, the timeline is left at the last
/// boundary that was received, durable, unless the log itself failed.
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
    outside: &mut Outside<'_>,
) -> Result<(), SessionError> {
    let mut session = Session {
        stream,
        buffer: Buffer { bytes: vec![0; BUFFER_LEN].into_boxed_slice(), start: 0, end: 0 },
        framer: None,
        sink: Sink::new(cursor, timeline, options, monitor),
        others: None,
        last_arrival: options.clock.now(),
        unread_since: None,
        silent: Duration::ZERO,
        looked_quiet: false,
        announced: false,
    };
    let result = session.run(stop, outside);
    session.sink.withdraw_if_failed();
    let closed = session.sink.close(&mut session.buffer.bytes);
    session.sink.withdraw_if_failed();
    monitor.pulse.beat(Place::Asks);
    match (result, closed) {
        (Err(error), _) if error.log_failed() => Err(error),
        // A log that has failed must be opened again from disk, whatever else ended the session.
        (_, Err(error)) => Err(error),
        (result, Ok(())) => result,
    }
}

/// Waits for the source, and for receivers further down that confirm something. False when nothing came from the source.
fn wait(source: BorrowedFd<'_>, others: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(timeout).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut wanted = [PollFd::new(&source, PollFlags::IN), PollFd::new(&others, PollFlags::IN)];
    match poll(&mut wanted, Some(&timeout)) {
        Ok(_) => Ok(!wanted[0].revents().is_empty()),
        Err(error) => Err(error.into()),
    }
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
    /// Readable when a receiver further down has confirmed something; `None` where none is waited for.
    others: Option<BorrowedFd<'a>>,
    last_arrival: Instant,
    /// A disk kept this thread from reading for long: since when. What has come meanwhile counts as having come then.
    unread_since: Option<Instant>,
    /// How long nothing had arrived at the last look; zero again when something does.
    silent: Duration,
    /// It was looked at whether the silence means that nothing newer is there; not again before something arrives.
    looked_quiet: bool,
    /// The first event has come: the source has accepted the request.
    announced: bool,
}

impl Session<'_> {
    fn run(&mut self, stop: &StopSignal, outside: &mut Outside<'_>) -> Result<(), SessionError> {
        self.others = self.sink.others().map_err(SessionError::Network)?;
        if self.others.is_none() {
            // One system call waits and reads; a request to stop ends it by shutting the socket down.
            self.stream.set_blocking(self.sink.options.net_read_timeout).map_err(SessionError::Network)?;
        }
        let _shut_down = stop.shuts_down(self.stream.as_fd()).map_err(SessionError::Network)?;
        stop.take_interruption(); // Of an earlier session.
        let mut stopped_reading = self.last_arrival;
        while !stop.ends_session() {
            let reads_again = self.sink.options.clock.now();
            if reads_again.saturating_duration_since(stopped_reading) >= STALLED_MAX {
                self.unread_since.get_or_insert(stopped_reading);
            }
            self.sink.monitor.publish_reading(true);
            let read = self.read();
            self.sink.monitor.publish_reading(false);
            stopped_reading = self.sink.options.clock.now();
            if stopped_reading.saturating_duration_since(reads_again) >= WAITED {
                self.unread_since = None;
            }
            match read {
                Ok(0) if stop.ends_session() => {}
                Ok(0) => {
                    return Err(stop.take_interruption().map_or(SessionError::Closed, SessionError::from));
                }
                Ok(read) => {
                    self.buffer.end += read;
                    self.last_arrival = stopped_reading;
                    self.silent = Duration::ZERO;
                    self.looked_quiet = false;
                    self.sink.monitor.counters.bytes_received.fetch_add(read as u64, Relaxed);
                    self.take_frames(outside)?;
                    self.sink.settle(&mut self.buffer.bytes, &mut self.stream)?;
                    self.make_room();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.nothing_arrived(stopped_reading)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SessionError::Network(error)),
            }
            // Whatever has arrived, and be that a part of something.
            if self.sink.options.left().is_some_and(|left| left.is_zero()) {
                return Err(SessionError::TimeIsOver);
            }
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<usize> {
        let until_silent = self.sink.options.net_read_timeout.saturating_sub(self.silent);
        let mut timeout = self.sink.tend_within().map_or(until_silent, |within| within.min(until_silent));
        if !self.looked_quiet {
            timeout = timeout.min(QUIET.saturating_sub(self.silent));
        }
        if let Some(left) = self.sink.options.left() {
            timeout = timeout.min(left);
        }
        let timeout = timeout.max(READ_TIMEOUT_MIN);
        self.stream.set_read_timeout(timeout)?;
        if let Some(others) = self.others
            && !self.stream.pending()
            && !wait(self.stream.as_fd(), others, timeout)?
        {
            self.sink.options.published.confirmations().heard();
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.stream.read(&mut self.buffer.bytes[self.buffer.end..])
    }

    /// Does what is due while the source is quiet, or what it sends cannot be read yet.
    fn nothing_arrived(&mut self, now: Instant) -> Result<(), SessionError> {
        // `now` is of before the disk is touched: while a slow one is waited for, heartbeats may arrive, and nobody has looked.
        if self.stream.take_part_arrived() {
            self.last_arrival = now;
        }
        self.silent = now.saturating_duration_since(self.last_arrival);
        self.sink.tend(&mut self.stream)?;
        if self.silent >= QUIET && !std::mem::replace(&mut self.looked_quiet, true) {
            let nothing_is_under_way = self.buffer.start == self.buffer.end && self.sink.is_at_boundary();
            let is_source = matches!(self.sink.options.sender, Sender::Source { .. });
            if is_source && self.announced && nothing_is_under_way {
                self.sink.monitor.publish_caught_up();
            }
        }
        let timeout = self.sink.options.net_read_timeout;
        if self.silent >= timeout { Err(SessionError::Silent(timeout)) } else { Ok(()) }
    }

    fn take_frames(&mut self, outside: &mut Outside<'_>) -> Result<(), SessionError> {
        if self.framer.is_none() {
            let available = &self.buffer.bytes[self.buffer.start..self.buffer.end];
            let detected = match self.sink.options.sender {
                Sender::Source { .. } => DumpFramer::detect_semi_sync(available),
                // Was not offered semi-sync: to a peer that speaks semi-sync all the same nothing is acknowledged.
                Sender::Peer { .. } => Some(false),
            };
            let Some(semi_sync) = detected else { return Ok(()) };
            self.framer = Some(DumpFramer::new(semi_sync));
            self.sink.begin(semi_sync);
        }
        let Some(framer) = self.framer.as_mut() else { return Ok(()) };
        loop {
            let available = &self.buffer.bytes[self.buffer.start..self.buffer.end];
            let Some((consumed, frame)) = framer.next(available, BUFFER_LEN)? else { return Ok(()) };
            let end = self.buffer.start + consumed;
            match frame {
                Frame::Event { wants_acknowledgement, bytes } => {
                    if !std::mem::replace(&mut self.announced, true) {
                        (outside.on_stream)(self.sink.begun());
                    }
                    let at = end - bytes.len()..end;
                    self.sink.event(&mut self.buffer.bytes, at, &mut self.stream, outside)?;
                    if wants_acknowledgement {
                        self.sink.acknowledgement_wanted(self.unread_since.unwrap_or(self.last_arrival))?;
                    }
                }
                Frame::Part { wants_acknowledgement, offset, event_size, bytes } => {
                    let at = end - bytes.len()..end;
                    let last = offset + bytes.len() as u64 == u64::from(event_size);
                    self.sink.part(&self.buffer.bytes, at, offset == 0, last, outside)?;
                    if last && wants_acknowledgement {
                        self.sink.acknowledgement_wanted(self.unread_since.unwrap_or(self.last_arrival))?;
                    }
                }
                Frame::EmptyPacket => {}
                Frame::SourceError(error) => return Err(SessionError::Source(*error)),
                Frame::End => {
                    self.sink.dump_ends()?;
                    return Err(SessionError::EndOfDump);
                }
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
}
