//! What each arriving event is: stored, followed, or refused.
//!
//! The cursor knows where in the source's files the stream stands. It verifies every event, tells the source's own
//! bytes from what it makes up for the connection, and checks that nothing is missing between two events. It does no
//! I/O, so every decision can be tested with bytes alone.

use super::left_file::{LastWord, LeftFile};
use super::refusal::{OtherFile, OtherHistory, PeerError, Refusal};
use binlog::Position;
use binlog::scan::tail_start;
use binlog::writer::admission::{check_body, check_length};
use codec::event::boundary::{BoundaryTracker, Step};
use codec::event::{
    ChecksumAlgorithm, EventError, EventHeader, EventType, FormatDescription, Heartbeat, Rotate,
    StreamChecksum,
};
use codec::gtid::TransactionId;
use std::collections::VecDeque;
use std::sync::Arc;

/// What to do with an event.
#[derive(Debug, PartialEq)]
pub enum Admission<'a> {
    /// The next bytes of the current file.
    Store(Step),
    /// Made up for this connection, or bytes that the copy holds already: nothing is stored.
    Ignore,
    /// As `Ignore`; the source has also said that it has nothing newer.
    CaughtUp,
    /// Another file begins. Its bytes follow.
    SwitchFile(&'a str),
}

/// Where the stream of one session stands.
#[derive(Debug)]
pub struct Cursor {
    /// The file whose events arrive; `None` before the first ROTATE of a session that asked for "the oldest".
    file: Option<Arc<str>>,
    /// Offset of the next event.
    offset: u64,
    /// The last boundary that was stored. Its file is the current one, or while files are passed over the one in which the
    /// copy ends. `None` before the first ROTATE of a session that asked for "the oldest".
    boundary: Option<Position>,
    /// What was asked for, until the source's first ROTATE confirms it.
    asked: Option<Position>,
    /// Format of the file that is resumed in its middle: the source sends it again and it must be the same. In a copy that has
    /// no file yet, of the one that it is to begin with, where that was looked at.
    resumed_format: Option<FormatDescription>,
    /// Format of the current file, once it was sent in this session.
    format: Option<FormatDescription>,
    /// In force until a format description says otherwise.
    checksum: ChecksumAlgorithm,
    tracker: BoundaryTracker,
    /// Events that end at or before this offset are in the copy already.
    held_until: u64,
    /// Bytes of the copy up to `held_until`, which the source must send just so. Empty when nothing is compared.
    tail: Vec<u8>,
    /// Where the tail of what is held now begins; see [`tail_start`].
    tail_start: u64,
    /// What an event said of the file's end, and where that event ends.
    last_word: Option<(LastWord, u64)>,
    /// The file before the current one.
    left: Option<LeftFile>,
    /// The files after the current one which the copy holds, up to the one that it ends in. Until that one begins, what
    /// arrives is only followed.
    passes: VecDeque<Arc<str>>,
}

impl Cursor {
    /// For a session that asked for `asked`, or for the oldest file. `format` is that of the file as the copy holds
    /// it, `checksum` what was negotiated for events outside any file.
    ///
    /// `asked` may lie past 4 GiB, which the request's 32 bits cannot say; the session then asks for the file's
    /// beginning (`requested` 4) and what the copy holds is passed over.
    pub fn new(
        asked: Option<Position>,
        requested: u64,
        format: Option<FormatDescription>,
        checksum: ChecksumAlgorithm,
    ) -> Cursor {
        let held_until = asked.as_ref().map_or(0, |position| position.offset);
        Cursor {
            file: None,
            offset: requested,
            boundary: asked.clone(),
            asked,
            resumed_format: format,
            format: None,
            checksum,
            tracker: BoundaryTracker::new(),
            held_until,
            tail: Vec::new(),
            tail_start: held_until,
            last_word: None,
            left: None,
            passes: VecDeque::new(),
        }
    }

    /// Makes the session begin by comparing: `tail` are the last bytes that the copy holds before the place that was asked
    /// for, and the last transaction in them begins at `tail_start`. The dump must be asked for from there or before.
    ///
    /// The format description tells a file from another one of the same name, but not a file from what it was before the
    /// source's disk was put back to an earlier state. There the last transaction is another one, or none.
    #[must_use]
    pub fn comparing(mut self, tail_start: u64, tail: Vec<u8>) -> Cursor {
        (self.tail_start, self.tail) = (tail_start, tail);
        self
    }

    /// Makes the session begin with an earlier file that the copy holds: `files` are those from that one to the last, in
    /// which the copy ends. The dump must be asked for from the beginning of the first.
    #[must_use]
    pub fn passing_over(mut self, files: impl IntoIterator<Item = Arc<str>>) -> Cursor {
        self.passes = files.into_iter().collect();
        if let Some(first) = self.passes.pop_front().filter(|_| !self.passes.is_empty()) {
            (self.asked, self.offset) = (Some(Position { file: first, offset: 4 }), 4);
        }
        self
    }

    /// End of what has been received and verified.
    pub fn position(&self) -> Option<Position> {
        let offset = if self.passes.is_empty() { self.offset.max(self.held_until) } else { self.offset };
        self.file.as_ref().map(|file| Position { file: file.clone(), offset })
    }

    /// Where the stream stands, which may be before the end of what is held.
    pub fn reached(&self) -> Option<Position> {
        self.file.as_ref().map(|file| Position { file: file.clone(), offset: self.offset })
    }

    /// True when all that is held has passed, and its end was the source's.
    pub fn has_passed_held(&self) -> bool {
        self.asked.is_none() && self.passes.is_empty() && self.offset >= self.held_until
    }

    /// The last boundary that was stored: all up to there is held. `None` before the first file of a copy that has none.
    pub fn boundary(&self) -> Option<&Position> {
        self.boundary.as_ref()
    }

    /// Where the tail begins that the next session compares. Always <= [`Cursor::boundary`].
    pub fn tail_start(&self) -> u64 {
        self.tail_start
    }

    /// The file that the stream was in before the current one.
    pub fn left(&self) -> Option<&LeftFile> {
        self.left.as_ref()
    }

    /// True when the stream stands at a boundary.
    pub fn is_at_boundary(&self) -> bool {
        self.tracker.is_outside()
    }

    /// Identifier of the transaction that the last stored event ended; see [`BoundaryTracker::committed`].
    pub fn committed(&self) -> Option<TransactionId> {
        self.tracker.committed()
    }

    /// The current file's format description as the source sent it.
    pub fn format(&self) -> Option<&FormatDescription> {
        self.format.as_ref()
    }

    /// Takes a whole event.
    ///
    /// # Errors
    /// When it cannot be the next one; see [`Refusal`].
    pub fn admit<'a>(&mut self, event: &'a [u8]) -> Result<Admission<'a>, Refusal> {
        let header = EventHeader::parse(event).map_err(|error| self.unsound(EventType(0), error))?;
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            return self.format_description(&header, event);
        }
        self.checksum.verify(event).map_err(|error| self.unsound(header.event_type, error))?;
        self.admit_verified(&header, &event[..event.len() - self.checksum.len()])
    }

    /// Begins an event that is too large to be had whole. Give the parts to the [`StreamChecksum`]; after the last,
    /// call [`Cursor::finish_large`]. Returns `None` for the checksum when the copy holds the event already.
    ///
    /// # Errors
    /// When it cannot be the next event.
    pub fn begin_large(&mut self, header: &EventHeader) -> Result<(StreamChecksum, bool), Refusal> {
        self.need_format(header)?;
        let is_small = matches!(header.event_type, EventType::FORMAT_DESCRIPTION | EventType::ROTATE);
        if is_small || header.is_artificial() || header.event_type.is_heartbeat() {
            // These are read whole or not at all, and no server makes them larger than some hundred bytes.
            let error = EventError::Malformed("it is longer than an event of its type can be");
            return Err(self.unsound(header.event_type, error));
        }
        let checksum = StreamChecksum::new(self.checksum, header.event_size)
            .map_err(|error| self.unsound(header.event_type, error))?;
        check_length(header.event_type, (header.event_size as usize).saturating_sub(self.checksum.len()))
            .map_err(|error| self.unsound(header.event_type, error))?;
        let end = self.next_end(header)?;
        Ok((checksum, !self.holds(end)))
    }

    /// Ends an event that came in parts and whose checksum was right. `prefix` holds its first bytes; all of them, with or
    /// without its checksum, where the event [states GTIDs](binlog::writer::admission::states_gtids).
    ///
    /// # Errors
    /// When what it holds makes no sense.
    pub fn finish_large(
        &mut self,
        header: &EventHeader,
        prefix: &[u8],
    ) -> Result<Admission<'static>, Refusal> {
        let is_whole = prefix.len() == header.event_size as usize;
        let event = if is_whole { &prefix[..prefix.len() - self.checksum.len()] } else { prefix };
        check_body(header.event_type, event).map_err(|error| self.unsound(header.event_type, error))?;
        let end = self.next_end(header)?;
        self.advance(header, event, end)
    }

    fn admit_verified<'a>(
        &mut self,
        header: &EventHeader,
        event: &'a [u8],
    ) -> Result<Admission<'a>, Refusal> {
        let unsound = |cursor: &Cursor, error| cursor.unsound(header.event_type, error);
        if header.event_type == EventType::ROTATE && header.is_artificial() {
            let rotate = Rotate::parse(event).map_err(|error| unsound(self, error))?;
            return self.artificial_rotate(rotate);
        }
        if header.event_type.is_heartbeat() {
            let heartbeat = Heartbeat::parse(header, event).map_err(|error| unsound(self, error))?;
            return self.heartbeat(heartbeat);
        }
        if header.is_artificial() || self.is_resent(header) {
            return Ok(Admission::Ignore);
        }
        self.need_format(header)?;
        check_body(header.event_type, event).map_err(|error| unsound(self, error))?;
        let end = self.next_end(header)?;
        self.advance(header, event, end)
    }

    /// Events that a source repeats after its format description when the dump starts in the middle of a file carry no
    /// position: MariaDB's START_ENCRYPTION does so.
    fn is_resent(&self, header: &EventHeader) -> bool {
        header.log_pos == 0 && header.event_type == EventType::MARIADB_START_ENCRYPTION && self.offset > 4
    }

    fn artificial_rotate<'a>(&mut self, rotate: Rotate<'a>) -> Result<Admission<'a>, Refusal> {
        let sent = Position::new(rotate.next_file, rotate.position);
        if let Some(asked) = &self.asked {
            if *sent.file != *asked.file || sent.offset != self.offset {
                return Err(PeerError::StartsElsewhere { asked: asked.clone(), sent }.into());
            }
            self.file = self.asked.take().map(|asked| asked.file);
            return Ok(Admission::Ignore);
        }
        if self.file.as_deref() == Some(rotate.next_file) {
            if rotate.position == self.offset {
                return Ok(Admission::Ignore);
            }
            // Taken as a switch, it would make the session's end cut the file that it names down to its beginning.
            return Err(OtherFile { file: sent.file }.into());
        }
        if !self.passes.is_empty() {
            return self.pass_to(sent);
        }
        self.has_sent_what_is_held()?;
        if rotate.position != 4 {
            let asked = Position::new(rotate.next_file, 4);
            return Err(PeerError::StartsElsewhere { asked, sent }.into());
        }
        let last_word = self.last_word.take().filter(|(_, end)| *end == self.offset).map(|(word, _)| word);
        self.left = self.position().map(|end| LeftFile {
            end,
            boundary: self.boundary.as_ref().map_or(4, |boundary| boundary.offset),
            tail_start: self.tail_start,
            last_word,
        });
        if self.file.is_some() {
            // It was of the file before; else of the one that the copy is to begin with.
            self.resumed_format = None;
        }
        self.file = Some(sent.file.clone());
        self.offset = 4;
        self.boundary = Some(sent);
        self.held_until = 0;
        self.tail = Vec::new();
        self.tail_start = 4;
        self.format = None;
        self.tracker = BoundaryTracker::new();
        Ok(Admission::SwitchFile(rotate.next_file))
    }

    /// The source goes on with the next file that the copy holds.
    #[cold]
    fn pass_to(&mut self, sent: Position) -> Result<Admission<'static>, Refusal> {
        let is_next = self.passes.front().is_some_and(|next| *next == sent.file);
        if !is_next || sent.offset != 4 {
            return Err(OtherFile { file: sent.file }.into());
        }
        self.file = self.passes.pop_front();
        (self.offset, self.format, self.last_word) = (4, None, None);
        self.tracker = BoundaryTracker::new();
        Ok(Admission::Ignore)
    }

    /// Whether the copy holds what ends at `end` of the current file.
    fn holds(&self, end: u64) -> bool {
        !self.passes.is_empty() || end <= self.held_until
    }

    /// Fails when the source has come to the end of what it has before the end of what the copy holds.
    fn has_sent_what_is_held(&self) -> Result<(), OtherHistory> {
        match &self.file {
            Some(file) if self.passes.is_empty() && self.offset < self.held_until => Err(OtherHistory {
                at: Position { file: file.clone(), offset: self.offset },
                held: self.held_until,
            }),
            _ => Ok(()),
        }
    }

    fn heartbeat(&mut self, heartbeat: Heartbeat<'_>) -> Result<Admission<'static>, Refusal> {
        let Some(at) = self.position() else { return Err(PeerError::NoFile(EventType::HEARTBEAT).into()) };
        if !self.passes.is_empty() {
            // It has nothing newer, and the copy has.
            return Err(OtherFile { file: at.file }.into());
        }
        let stands_at = |offset: u64| {
            *heartbeat.file == *at.file
                && match heartbeat.wrapped {
                    true => heartbeat.position as u32 == offset as u32,
                    false => heartbeat.position == offset,
                }
        };
        if stands_at(self.offset) {
            self.has_sent_what_is_held()?;
        }
        if !stands_at(at.offset) {
            let heartbeat = Position::new(heartbeat.file, heartbeat.position);
            return Err(PeerError::HeartbeatElsewhere { at, heartbeat }.into());
        }
        Ok(Admission::CaughtUp)
    }

    fn format_description(
        &mut self,
        header: &EventHeader,
        event: &[u8],
    ) -> Result<Admission<'static>, Refusal> {
        let Some(file) = self.file.clone() else { return Err(PeerError::NoFile(header.event_type).into()) };
        let unsound = |cursor: &Cursor, error| cursor.unsound(header.event_type, error);
        let format = FormatDescription::parse(event).map_err(|error| unsound(self, error))?;
        format.checksum.verify_format_description(event).map_err(|error| unsound(self, error))?;
        // Within one file it must stay the same: the checksums of all stored events depend on it.
        let resumed = self.resumed_format.as_ref().filter(|_| self.passes.is_empty());
        if let Some(held) = self.format.as_ref().or(resumed)
            && !held.is_same_file(&format)
        {
            return Err(OtherFile { file }.into());
        }
        if self.offset > 4 {
            self.take_format(format);
            return Ok(Admission::Ignore); // Sent again for a start in the middle.
        }
        let end = self.next_end(header)?;
        let event = &event[..event.len() - format.checksum.len()];
        self.take_format(format);
        self.advance(header, event, end)
    }

    fn take_format(&mut self, format: FormatDescription) {
        self.checksum = format.checksum;
        self.format = Some(format);
    }

    /// Fails unless the file's format description has come: without it nobody knows whether events end with a checksum,
    /// and recovery reads no file that begins with another event.
    fn need_format(&self, header: &EventHeader) -> Result<(), Refusal> {
        match (&self.file, &self.format) {
            (None, _) => Err(PeerError::NoFile(header.event_type).into()),
            (_, Some(_)) => Ok(()),
            (_, None) => {
                let error = EventError::Malformed("it comes before the file's FORMAT_DESCRIPTION event");
                Err(self.unsound(header.event_type, error))
            }
        }
    }

    /// Where the event ends, after checking that it follows the one before.
    fn next_end(&self, header: &EventHeader) -> Result<u64, Refusal> {
        let Some(file) = &self.file else { return Err(PeerError::NoFile(header.event_type).into()) };
        let end = self.offset + u64::from(header.event_size);
        // MariaDB 11.4 and later send 0 inside transactions.
        let stated = header.log_pos;
        if stated != 0 && stated != end as u32 {
            let at = Position { file: file.clone(), offset: self.offset.max(self.held_until) };
            return Err(PeerError::Discontinuity { at, stated, actual: end }.into());
        }
        if self.passes.is_empty() && self.offset < self.held_until && end > self.held_until {
            // An event that begins before the end of what is held, and ends behind it.
            self.has_sent_what_is_held()?;
        }
        Ok(end)
    }

    fn advance(
        &mut self,
        header: &EventHeader,
        event: &[u8],
        end: u64,
    ) -> Result<Admission<'static>, Refusal> {
        let begin = self.offset;
        let is_held = self.holds(end);
        if is_held && self.passes.is_empty() {
            self.compare_with_tail(event)?;
        }
        let step = self
            .tracker
            .advance(header, event, begin, end)
            .map_err(|error| self.unsound(header.event_type, error))?;
        self.offset = end;
        if matches!(header.event_type, EventType::ROTATE | EventType::STOP) {
            self.note_last_word(header, event)?;
        }
        if is_held {
            if end == self.held_until && self.passes.is_empty() {
                // A boundary, whatever a tracker makes of a tail that begins inside a transaction.
                if !self.tracker.is_outside() {
                    self.tracker = BoundaryTracker::new();
                }
                self.tail = Vec::new();
            }
            return Ok(Admission::Ignore);
        }
        let Some(boundary) = &mut self.boundary else {
            return Err(PeerError::NoFile(header.event_type).into());
        };
        debug_assert_eq!(
            self.file.as_deref(),
            Some(&*boundary.file),
            "what is stored continues what is held"
        );
        if step.transaction {
            self.tail_start = tail_start(boundary.offset, begin, end);
        }
        if step.boundary {
            boundary.offset = end;
        }
        Ok(Admission::Store(step))
    }

    #[cold]
    fn note_last_word(&mut self, header: &EventHeader, event: &[u8]) -> Result<(), Refusal> {
        let word = if header.event_type == EventType::STOP {
            LastWord::Stop
        } else {
            let rotate = Rotate::parse(event).map_err(|error| self.unsound(header.event_type, error))?;
            LastWord::Rotate { next: rotate.next_file.to_owned(), timestamp: header.timestamp }
        };
        self.last_word = Some((word, self.offset));
        Ok(())
    }

    /// Holds an event that the copy has already, or the beginning of a long one, against the copy.
    fn compare_with_tail(&self, event: &[u8]) -> Result<(), OtherHistory> {
        let left = usize::try_from(self.held_until - self.offset).unwrap_or(usize::MAX);
        // None where only a part of what is held is compared and it has not begun yet.
        let Some(at) = self.tail.len().checked_sub(left) else { return Ok(()) };
        if self.tail[at..].starts_with(event) {
            return Ok(());
        }
        let file = self.file.clone().unwrap_or_else(|| "".into());
        Err(OtherHistory { at: Position { file, offset: self.offset }, held: self.held_until })
    }

    #[cold]
    fn unsound(&self, event_type: EventType, error: EventError) -> Refusal {
        let at = self.position().unwrap_or_else(|| Position::new("(no file yet)", self.offset));
        PeerError::Event { event_type, at, error }.into()
    }
}

#[cfg(test)]
mod tests;
