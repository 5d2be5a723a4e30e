//! The events of one file, from large reads into packets.
//!
//! Of each event only the header is looked at, unless a [`Choice`] wants to see more. An event that is longer than the buffer
//! passes through it in parts.

use super::asked::Asked;
use super::made_up::{HeartbeatForm, Maker};
use super::packets::{PacketOut, Packets};
use super::progress::ReaderProgress;
use super::refusal::Refusal;
use crate::history::choice::Choice;
use crate::history::seen::{After, Seen, Verdict};
use binlog::storage::ReadFile;
use binlog::writer::published::{Live, Published};
use codec::event::{ChecksumAlgorithm, EventHeader, EventType, HEADER_LEN, PEEK_BYTES_MAX};
use std::io;
use std::time::{Duration, Instant};

/// The most that is read from a file at once, and so the memory of a reader that is behind, twice over, in bytes.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// What a reader keeps of its buffers while it waits, in bytes.
const IDLE_BYTES_MAX: usize = 16 << 10;

/// Events of this length were counted on when room is made for their packets, in bytes.
const SMALL_EVENT_BYTES: usize = 100;

/// How far a call of [`Stream::pass`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Up to the end that was given.
    All,
    /// The dump ends here by the reader's wish.
    Ended,
    /// The dump stops here.
    Stopped,
    /// The dump waits here until this moment, in microseconds since 1970.
    Waits(i64),
    /// The reader was cancelled.
    Cancelled,
    /// What is being read was withdrawn, or other files are in its place.
    Moved,
}

/// Why a file cannot be sent any further.
#[derive(Debug)]
pub(crate) enum StreamError {
    /// What the file says.
    Refused(Refusal),
    /// The file cannot be read.
    File(io::Error),
    /// The reader cannot be written to.
    Reader(io::Error),
}

impl From<Refusal> for StreamError {
    fn from(refusal: Refusal) -> StreamError {
        StreamError::Refused(refusal)
    }
}

/// What one file's events go through.
pub(crate) struct Sink<'a> {
    pub(crate) published: &'a Published,
    /// What was published when the reader looked last.
    pub(crate) live: &'a Live,
    pub(crate) packets: &'a mut Packets,
    pub(crate) choice: &'a mut Choice,
    pub(crate) out: &'a mut dyn PacketOut,
    pub(crate) progress: &'a ReaderProgress,
    pub(crate) maker: Maker,
    pub(crate) form: HeartbeatForm,
    pub(crate) period: Duration,
    /// Where it is written down for what a reader at the live end is asked; `None` for one that acknowledges nothing.
    pub(crate) asked: Option<&'a Asked>,
}

/// One open file, and the place in it.
#[derive(Debug)]
pub(crate) struct Stream {
    file: Box<dyn ReadFile>,
    name: std::sync::Arc<str>,
    /// Everything before has passed. Inside an event only while one passes in parts.
    at: u64,
    buffer: Vec<u8>,
    /// The next event is the first one at a place that the reader named.
    is_unproven: bool,
    /// End of what was left out since something was sent. 0 for nothing.
    skipped_to: u64,
    last_sent: Instant,
}

impl Stream {
    /// For an open file, from a place in it on. A place that the reader named is looked at first.
    pub(crate) fn new(
        file: Box<dyn ReadFile>,
        name: std::sync::Arc<str>,
        at: u64,
        is_unproven: bool,
    ) -> Stream {
        Stream { file, name, at, buffer: Vec::new(), is_unproven, skipped_to: 0, last_sent: Instant::now() }
    }

    /// The place: the end of the last event that has passed.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Length of the file in bytes.
    pub(crate) fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    /// Gives back memory before a long wait.
    pub(crate) fn shrink(&mut self, packets: &mut Packets) {
        if self.buffer.len() > IDLE_BYTES_MAX {
            self.buffer = Vec::new();
        }
        packets.shrink(IDLE_BYTES_MAX);
    }

    /// Sends everything up to `end`, where an event ends. `is_live` where `end` is that of the log.
    pub(crate) fn pass(
        &mut self,
        end: u64,
        is_live: bool,
        sink: &mut Sink<'_>,
    ) -> Result<Passed, StreamError> {
        self.skipped_to = 0;
        while self.at < end {
            if sink.out.is_cancelled() {
                return Ok(Passed::Cancelled);
            }
            if !sink.published.is_current(sink.live) {
                return Ok(Passed::Moved);
            }
            let want = usize::try_from(end - self.at).unwrap_or(usize::MAX).min(BUFFER_BYTES);
            if self.buffer.len() < want {
                self.buffer.resize(want, 0);
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let read = self.file.read_full_at(&mut buffer[..want], self.at);
            let passed = match read {
                Ok(read) => self.pass_part(&buffer[..read], end, is_live, sink),
                Err(error) => Err(StreamError::File(error)),
            };
            self.buffer = buffer;
            let passed = passed?;
            self.flush(sink)?;
            if passed != Passed::All {
                return Ok(passed);
            }
        }
        if self.skipped_to > 0 && is_live {
            self.heartbeat(sink, self.skipped_to);
            self.flush(sink)?;
        }
        Ok(Passed::All)
    }

    /// A heartbeat at a place, into the packets.
    pub(crate) fn heartbeat(&mut self, sink: &mut Sink<'_>, position: u64) {
        sink.packets.event(&sink.maker.heartbeat(sink.form, &self.name, position));
        self.skipped_to = 0;
        self.last_sent = Instant::now();
    }

    /// How long until nothing was sent for `period`.
    pub(crate) fn until_silent_for(&self, period: Duration) -> Duration {
        period.saturating_sub(self.last_sent.elapsed())
    }

    /// Writes what is ready.
    pub(crate) fn flush(&mut self, sink: &mut Sink<'_>) -> Result<(), StreamError> {
        let bytes = sink.packets.flush(sink.out).map_err(StreamError::Reader)?;
        sink.progress.sent(self.at, bytes);
        if bytes > 0 && !sink.period.is_zero() {
            self.last_sent = Instant::now();
        }
        Ok(())
    }

    /// Sends the events of a part of the file, or as much of them as is in it.
    fn pass_part(
        &mut self,
        mut part: &[u8],
        end: u64,
        is_live: bool,
        sink: &mut Sink<'_>,
    ) -> Result<Passed, StreamError> {
        if part.is_empty() {
            return Err(Refusal::Truncated.into());
        }
        sink.packets.reserve(part.len(), part.len() / SMALL_EVENT_BYTES + 1);
        let begun = sink.packets.event_left();
        if begun > 0 {
            let (now, rest) = part.split_at(usize::try_from(begun).unwrap_or(usize::MAX).min(part.len()));
            sink.packets.push(now);
            self.at += now.len() as u64;
            part = rest;
        }
        let is_all = sink.choice.is_all();
        while part.len() >= HEADER_LEN {
            let header = EventHeader::parse(part).map_err(|_| Refusal::Bogus)?;
            let size = u64::from(header.event_size);
            let event_end = self.at + size;
            if event_end > end {
                return Err(Refusal::Truncated.into());
            }
            let here = usize::try_from(size).unwrap_or(usize::MAX).min(part.len());
            sink.progress.passes(header.timestamp);
            if self.is_unproven {
                prove(&header, &part[..here], event_end, sink.maker.checksum)?;
                self.is_unproven = false;
            }
            let looks = !is_all && sink.choice.looks_into(header.event_type);
            if looks && (here as u64) < size.min(looked_at_max(header.event_type)) {
                break; // The next part begins with this event.
            }
            if is_all {
                self.send(&header, &part[..here], event_end, is_live && event_end == end, sink);
            } else {
                let covered = match sink.maker.checksum {
                    ChecksumAlgorithm::Crc32 if here as u64 == size => here.saturating_sub(4),
                    _ => here,
                };
                let name = self.name.clone();
                let seen =
                    Seen { header, bytes: &part[..covered], file: &name, start: self.at, end: event_end };
                match self.choose(&seen, &part[..here], is_live && event_end == end, sink)? {
                    Passed::All => {}
                    passed => return Ok(passed),
                }
            }
            // What is left out is not read, where it is long.
            if event_end <= self.at && (here as u64) < size {
                return Ok(Passed::All);
            }
            part = &part[here..];
        }
        if self.at < end && end - self.at < HEADER_LEN as u64 && sink.packets.event_left() == 0 {
            return Err(Refusal::Truncated.into());
        }
        Ok(Passed::All)
    }

    /// Sends the event or leaves it out, as is chosen, with what goes before and after it.
    fn choose(
        &mut self,
        seen: &Seen<'_>,
        event: &[u8],
        is_last: bool,
        sink: &mut Sink<'_>,
    ) -> Result<Passed, StreamError> {
        match sink.choice.decide(seen)? {
            Verdict::End => return Ok(Passed::Stopped),
            Verdict::Wait(until) => return Ok(Passed::Waits(until)),
            Verdict::Send => {
                if self.skipped_to > 0 {
                    self.heartbeat(sink, self.skipped_to);
                }
                self.send(&seen.header, event, seen.end, is_last, sink);
            }
            Verdict::Omit => self.at = seen.end,
            Verdict::Skip => {
                self.at = seen.end;
                self.skipped_to = seen.end;
                if !sink.period.is_zero() && self.last_sent.elapsed() >= sink.period {
                    self.heartbeat(sink, seen.end);
                    self.flush(sink)?;
                }
            }
        }
        let after = sink.choice.after(seen);
        if after == After::default() {
            return Ok(Passed::All);
        }
        // Behind all of the event, however long it is.
        self.pass_rest(seen.end, sink)?;
        if let Some(list) = after.reached {
            sink.packets.event(&sink.maker.gtid_list(&list, false, seen.end));
        }
        let Some(list) = after.until else { return Ok(Passed::All) };
        sink.packets.event(&sink.maker.gtid_list(&list, true, seen.end));
        Ok(Passed::Ended)
    }

    /// Puts an event, or its beginning, into the packets.
    fn send(
        &mut self,
        header: &EventHeader,
        here: &[u8],
        event_end: u64,
        is_last: bool,
        sink: &mut Sink<'_>,
    ) {
        let asked = sink.asked.filter(|_| is_last);
        if let Some(asked) = asked {
            // Before it is sent, so that no answer comes first.
            asked.asks(&self.name, event_end);
        }
        let carries = carries_transaction(header.event_type);
        sink.packets.begin_of_log(u64::from(header.event_size), asked.is_some(), carries);
        sink.packets.push(here);
        self.at = (event_end - u64::from(header.event_size)) + here.len() as u64;
    }

    /// Sends the rest of an event that was begun.
    fn pass_rest(&mut self, end: u64, sink: &mut Sink<'_>) -> Result<(), StreamError> {
        while self.at < end {
            let want = usize::try_from(end - self.at).unwrap_or(usize::MAX).min(BUFFER_BYTES);
            let mut part = vec![0; want];
            let read = self.file.read_full_at(&mut part, self.at).map_err(StreamError::File)?;
            if read == 0 {
                return Err(Refusal::Truncated.into());
            }
            sink.packets.push(&part[..read]);
            self.at += read as u64;
            self.flush(sink)?;
        }
        Ok(())
    }
}

/// Whether an event is more than what a file says of itself.
fn carries_transaction(event_type: EventType) -> bool {
    !matches!(
        event_type,
        EventType::FORMAT_DESCRIPTION
            | EventType::PREVIOUS_GTIDS
            | EventType::MARIADB_GTID_LIST
            | EventType::MARIADB_BINLOG_CHECKPOINT
            | EventType::MARIADB_START_ENCRYPTION
            | EventType::ROTATE
            | EventType::STOP
    )
}

/// How much of an event of this type is looked at, where it is, in bytes.
fn looked_at_max(event_type: EventType) -> u64 {
    let bytes = if event_type == EventType::MARIADB_GTID_LIST { BUFFER_BYTES } else { PEEK_BYTES_MAX };
    bytes as u64
}

/// Whether what stands at a place that a reader named is an event. A server only looks at its length, and sends what it takes
/// for events.
pub(crate) fn prove(
    header: &EventHeader,
    here: &[u8],
    event_end: u64,
    checksum: ChecksumAlgorithm,
) -> Result<(), Refusal> {
    // 0 inside transactions of MariaDB 11.4 and later.
    if header.log_pos != event_end as u32 && header.log_pos != 0 {
        return Err(Refusal::Bogus);
    }
    if here.len() as u64 == u64::from(header.event_size) {
        checksum.verify(here).map_err(|_| Refusal::Bogus)?;
    }
    Ok(())
}
