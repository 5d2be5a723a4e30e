//! What each arriving event is: stored, followed, or refused.
//!
//! The cursor knows where in the source's files the stream stands. It verifies every event, tells the source's own
//! bytes from what it makes up for the connection, and checks that nothing is missing between two events. It does no
//! I/O, so every decision can be tested with bytes alone.

use super::refusal::{OtherFile, OtherHistory, PeerError, Refusal};
use crate::log::Position;
use crate::log::scan::{check_body, check_length, tail_start};
use codec::event::boundary::{BoundaryTracker, Step};
use codec::event::{
    ChecksumAlgorithm, EventError, EventHeader, EventType, FormatDescription, Heartbeat, Rotate,
    StreamChecksum,
};
use codec::gtid::TransactionId;
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
    /// The last boundary in `file` that was stored.
    boundary: u64,
    /// What was asked for, until the source's first ROTATE confirms it.
    asked: Option<Position>,
    /// Format of the file that is resumed in its middle: the source sends it again and it must be the same.
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
            boundary: held_until,
            asked,
            resumed_format: format,
            format: None,
            checksum,
            tracker: BoundaryTracker::new(),
            held_until,
            tail: Vec::new(),
            tail_start: held_until,
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

    /// End of what has been received and verified.
    pub fn position(&self) -> Option<Position> {
        self.file
            .as_ref()
            .map(|file| Position { file: file.clone(), offset: self.offset.max(self.held_until) })
    }

    /// The last boundary, as an offset in the current file.
    pub fn boundary(&self) -> u64 {
        self.boundary
    }

    /// Where the tail begins that the next session compares. Always <= [`Cursor::boundary`].
    pub fn tail_start(&self) -> u64 {
        self.tail_start
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
        Ok((checksum, end > self.held_until))
    }

    /// Ends an event that came in parts and whose checksum was right. `prefix` holds its first bytes; all of them, with or
    /// without its checksum, where the event [states GTIDs](crate::log::scan::states_gtids).
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
        self.has_sent_what_is_held()?;
        if rotate.position != 4 {
            let asked = Position::new(rotate.next_file, 4);
            return Err(PeerError::StartsElsewhere { asked, sent }.into());
        }
        self.file = Some(sent.file);
        self.offset = 4;
        self.boundary = 4;
        self.held_until = 0;
        self.tail = Vec::new();
        self.tail_start = 4;
        self.resumed_format = None;
        self.format = None;
        self.tracker = BoundaryTracker::new();
        Ok(Admission::SwitchFile(rotate.next_file))
    }

    /// Fails when the source has come to the end of what it has before the end of what the copy holds.
    fn has_sent_what_is_held(&self) -> Result<(), OtherHistory> {
        match &self.file {
            Some(file) if self.offset < self.held_until => Err(OtherHistory {
                at: Position { file: file.clone(), offset: self.offset },
                held: self.held_until,
            }),
            _ => Ok(()),
        }
    }

    fn heartbeat(&mut self, heartbeat: Heartbeat<'_>) -> Result<Admission<'static>, Refusal> {
        let Some(at) = self.position() else { return Err(PeerError::NoFile(EventType::HEARTBEAT).into()) };
        let same_place = *heartbeat.file == *at.file
            && if heartbeat.wrapped {
                heartbeat.position as u32 == at.offset as u32
            } else {
                heartbeat.position == at.offset
            };
        if *heartbeat.file == *at.file && heartbeat.position == self.offset {
            self.has_sent_what_is_held()?;
        }
        if !same_place {
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
        if let Some(held) = self.format.as_ref().or(self.resumed_format.as_ref())
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
        if self.offset < self.held_until && end > self.held_until {
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
        if end <= self.held_until {
            self.compare_with_tail(event)?;
        }
        let step = self
            .tracker
            .advance(header, event, begin, end)
            .map_err(|error| self.unsound(header.event_type, error))?;
        self.offset = end;
        if end <= self.held_until {
            if end == self.held_until {
                // A boundary, whatever a tracker makes of a tail that begins inside a transaction.
                self.tracker = BoundaryTracker::new();
                self.tail = Vec::new();
            }
            return Ok(Admission::Ignore);
        }
        if step.transaction {
            self.tail_start = tail_start(self.boundary, begin, end);
        }
        if step.boundary {
            self.boundary = end;
        }
        Ok(Admission::Store(step))
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
mod tests {
    use super::*;
    use crate::log::recover::test_files::FileBuilder;
    use codec::event::flags;

    /// Events of a file from `from` on.
    fn events(file: &[u8], from: usize) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut at = from;
        while at < file.len() {
            let size = EventHeader::parse(&file[at..]).unwrap().event_size as usize;
            found.push(file[at..at + size].to_vec());
            at += size;
        }
        found
    }

    fn seal(mut event: Vec<u8>) -> Vec<u8> {
        let len = event.len();
        let crc = crc32fast::hash(&event[..len - 4]);
        event[len - 4..].copy_from_slice(&crc.to_le_bytes());
        event
    }

    fn made_up(code: u8, log_pos: u32, artificial: bool, body: &[u8]) -> Vec<u8> {
        let mut event = vec![0u8; 4];
        event.push(code);
        event.extend_from_slice(&1u32.to_le_bytes());
        event.extend_from_slice(&((19 + body.len() + 4) as u32).to_le_bytes());
        event.extend_from_slice(&log_pos.to_le_bytes());
        event.extend_from_slice(&if artificial { flags::ARTIFICIAL } else { 0 }.to_le_bytes());
        event.extend_from_slice(body);
        event.extend_from_slice(&[0; 4]);
        seal(event)
    }

    fn rotate_to(name: &str, position: u64) -> Vec<u8> {
        let mut body = position.to_le_bytes().to_vec();
        body.extend_from_slice(name.as_bytes());
        made_up(4, 0, true, &body)
    }

    fn from_oldest() -> Cursor {
        Cursor::new(None, 4, None, ChecksumAlgorithm::Crc32)
    }

    #[test]
    fn a_file_from_its_beginning_is_stored_whole() {
        let file = FileBuilder::new().previous_gtids("").transaction(1, 50).rotate("b.2").finish();
        let mut cursor = from_oldest();
        assert_eq!(cursor.admit(&rotate_to("b.1", 4)), Ok(Admission::SwitchFile("b.1")));
        for event in events(&file, 4) {
            assert!(matches!(cursor.admit(&event), Ok(Admission::Store(_))));
        }
        assert_eq!(cursor.position(), Some(Position::new("b.1", file.len() as u64)));
        assert_eq!(cursor.admit(&rotate_to("b.2", 4)), Ok(Admission::SwitchFile("b.2")));
        assert_eq!(cursor.position(), Some(Position::new("b.2", 4)));
    }

    #[test]
    fn a_resumed_file_ignores_what_is_sent_again() {
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 50);
        let end = builder.len();
        let file = builder.transaction(2, 50).finish();
        let all = events(&file, 4);
        let format = FormatDescription::parse(&all[0]).unwrap();
        let asked = Position::new("b.1", end as u64);
        let mut cursor = Cursor::new(Some(asked.clone()), end as u64, Some(format), ChecksumAlgorithm::Crc32);
        assert_eq!(cursor.admit(&rotate_to("b.1", end as u64)), Ok(Admission::Ignore));
        let mut again = all[0].clone();
        again[13..17].fill(0);
        assert_eq!(cursor.admit(&seal(again)), Ok(Admission::Ignore));
        assert_eq!(cursor.position(), Some(asked));
        for event in events(&file, end) {
            assert!(matches!(cursor.admit(&event), Ok(Admission::Store(_))));
        }
        assert_eq!(cursor.boundary(), file.len() as u64);
    }

    #[test]
    fn a_file_of_the_same_name_from_another_history_is_recognised() {
        let file = FileBuilder::new().previous_gtids("").transaction(1, 50).finish();
        let mut other = events(&file, 4)[0].clone();
        let held = FormatDescription::parse(&other).unwrap();
        other[0] ^= 1;
        let end = file.len() as u64;
        let mut cursor =
            Cursor::new(Some(Position::new("b.1", end)), end, Some(held), ChecksumAlgorithm::Crc32);
        cursor.admit(&rotate_to("b.1", end)).unwrap();
        assert_eq!(cursor.admit(&seal(other)), Err(OtherFile { file: "b.1".into() }.into()));
    }

    #[test]
    fn a_missing_event_is_noticed() {
        let file = FileBuilder::new().previous_gtids("").transaction(1, 50).finish();
        let mut all = events(&file, 4);
        all.remove(3);
        let mut cursor = from_oldest();
        cursor.admit(&rotate_to("b.1", 4)).unwrap();
        for event in &all[..3] {
            cursor.admit(event).unwrap();
        }
        assert!(
            matches!(cursor.admit(&all[3]), Err(Refusal::Peer(error)) if matches!(*error, PeerError::Discontinuity { .. }))
        );
    }

    #[test]
    fn a_damaged_event_is_refused_wherever_the_damage_is() {
        let file = FileBuilder::new().previous_gtids("").transaction(1, 50).finish();
        let all = events(&file, 4);
        for (index, event) in all.iter().enumerate() {
            for at in 0..event.len() {
                let mut cursor = from_oldest();
                cursor.admit(&rotate_to("b.1", 4)).unwrap();
                for before in &all[..index] {
                    cursor.admit(before).unwrap();
                }
                let mut bad = event.clone();
                bad[at] ^= 0x08;
                let before = cursor.position();
                assert!(!matches!(cursor.admit(&bad), Ok(Admission::Store(_))), "event {index}, byte {at}");
                assert_eq!(cursor.position(), before);
            }
        }
    }

    #[test]
    fn heartbeats_must_stand_where_the_stream_does() {
        let file = FileBuilder::new().previous_gtids("").finish();
        let mut cursor = from_oldest();
        cursor.admit(&rotate_to("b.1", 4)).unwrap();
        for event in events(&file, 4) {
            cursor.admit(&event).unwrap();
        }
        let here = file.len() as u32;
        assert_eq!(cursor.admit(&made_up(27, here, false, b"b.1")), Ok(Admission::CaughtUp));
        let beat = made_up(27, here + 100, false, b"b.1");
        let ahead = cursor.admit(&beat);
        assert!(
            matches!(ahead, Err(Refusal::Peer(error)) if matches!(*error, PeerError::HeartbeatElsewhere { .. }))
        );
    }

    #[test]
    fn a_position_past_4_gib_is_reached_by_passing_over_what_is_held() {
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 50);
        let held = builder.len() as u64;
        let file = builder.transaction(2, 50).finish();
        let format = FormatDescription::parse(&events(&file, 4)[0]).unwrap();
        let mut cursor =
            Cursor::new(Some(Position::new("b.1", held)), 4, Some(format), ChecksumAlgorithm::Crc32);
        assert_eq!(cursor.admit(&rotate_to("b.1", 4)), Ok(Admission::Ignore));
        let mut stored = Vec::new();
        for event in events(&file, 4) {
            if matches!(cursor.admit(&event).unwrap(), Admission::Store(_)) {
                stored.extend_from_slice(&event);
            }
        }
        assert_eq!(stored, file[held as usize..]);
    }

    /// A file of two transactions of which the second is compared: a cursor before it, where it begins, and where it ends.
    fn comparing() -> (Cursor, usize, usize, Vec<u8>) {
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 50);
        let tail_start = builder.len();
        let file = builder.transaction(2, 50).finish();
        let format = FormatDescription::parse(&events(&file, 4)[0]).unwrap();
        let asked = Position::new("b.1", file.len() as u64);
        let mut cursor = Cursor::new(Some(asked), tail_start as u64, Some(format), ChecksumAlgorithm::Crc32)
            .comparing(tail_start as u64, file[tail_start..].to_vec());
        assert_eq!(cursor.admit(&rotate_to("b.1", tail_start as u64)), Ok(Admission::Ignore));
        assert_eq!(cursor.admit(&events(&file, 4)[0]), Ok(Admission::Ignore));
        (cursor, tail_start, file.len(), file)
    }

    /// Sends a file of the source from where the comparison begins.
    fn refused_in(theirs: &[u8]) -> Position {
        let (mut cursor, tail_start, held, _) = comparing();
        for event in events(theirs, tail_start) {
            match cursor.admit(&event) {
                Ok(admission) => assert_eq!(admission, Admission::Ignore),
                Err(Refusal::OtherHistory(found)) => {
                    assert_eq!(found.held, held as u64);
                    assert_eq!(cursor.boundary(), held as u64, "nothing of ours is cut");
                    return found.at;
                }
                Err(other) => panic!("{other}"),
            }
        }
        panic!("nothing was refused")
    }

    #[test]
    fn a_source_with_our_history_goes_on_behind_it() {
        let (mut cursor, tail_start, held, file) = comparing();
        for event in events(&file, tail_start) {
            assert_eq!(cursor.admit(&event), Ok(Admission::Ignore));
        }
        assert_eq!((cursor.boundary(), cursor.tail_start()), (held as u64, tail_start as u64));
        assert!(cursor.is_at_boundary());
        let longer =
            FileBuilder::new().previous_gtids("").transaction(1, 50).transaction(2, 50).transaction(3, 50);
        for event in events(&longer.finish(), held) {
            assert!(matches!(cursor.admit(&event), Ok(Admission::Store(_))));
        }
        assert_eq!(cursor.tail_start(), held as u64);
    }

    #[test]
    fn a_source_with_another_history_is_refused_where_it_differs() {
        let builder = || FileBuilder::new().previous_gtids("").transaction(1, 50);
        let tail_start = builder().len() as u64;
        let another = builder().transaction(3, 50).finish();
        assert_eq!(refused_in(&another), Position::new("b.1", tail_start));
        // The GTID and the BEGIN are ours.
        let rows_at = tail_start + (19 + 25 + 4) + (19 + 19 + 4);
        for size in [49, 51, 500] {
            let another = builder().transaction(2, size).finish();
            assert_eq!(refused_in(&another), Position::new("b.1", rows_at), "{size}");
        }
    }

    #[test]
    fn a_source_that_lost_its_end_is_refused_when_it_says_that_it_has_no_more() {
        let (mut cursor, tail_start, held, _) = comparing();
        let lost = OtherHistory { at: Position::new("b.1", tail_start as u64), held: held as u64 };
        let beat = made_up(27, tail_start as u32, false, b"b.1");
        assert_eq!(cursor.admit(&beat), Err(lost.clone().into()));
        let rotate = rotate_to("b.2", 4);
        assert_eq!(cursor.admit(&rotate), Err(lost.into()));
        assert_eq!(cursor.position(), Some(Position::new("b.1", held as u64)));
    }

    #[test]
    fn a_source_that_starts_elsewhere_is_refused() {
        let mut cursor = Cursor::new(Some(Position::new("b.1", 500)), 500, None, ChecksumAlgorithm::Crc32);
        let elsewhere = rotate_to("b.2", 4);
        let answer = cursor.admit(&elsewhere);
        assert!(
            matches!(answer, Err(Refusal::Peer(error)) if matches!(*error, PeerError::StartsElsewhere { .. }))
        );
    }

    /// The session's end cuts the file to the cursor's boundary, so a false switch would cost the whole file.
    #[test]
    fn a_file_that_begins_a_second_time_is_refused_and_changes_nothing() {
        let file = FileBuilder::new().previous_gtids("").transaction(1, 50).finish();
        for position in [4, 100, 1 << 40] {
            let mut cursor = from_oldest();
            cursor.admit(&rotate_to("b.1", 4)).unwrap();
            for event in events(&file, 4) {
                cursor.admit(&event).unwrap();
            }
            assert_eq!(
                cursor.admit(&rotate_to("b.1", position)),
                Err(OtherFile { file: "b.1".into() }.into())
            );
            assert_eq!(cursor.position(), Some(Position::new("b.1", file.len() as u64)));
            assert_eq!(cursor.boundary(), file.len() as u64);
        }
    }

    #[test]
    fn a_switch_into_the_middle_of_a_file_is_refused_and_changes_nothing() {
        let mut cursor = from_oldest();
        cursor.admit(&rotate_to("b.1", 4)).unwrap();
        let rotate = rotate_to("b.2", 500);
        let refused = cursor.admit(&rotate);
        assert!(
            matches!(refused, Err(Refusal::Peer(error)) if matches!(*error, PeerError::StartsElsewhere { .. }))
        );
        assert_eq!(cursor.position(), Some(Position::new("b.1", 4)));
    }

    #[test]
    fn no_event_is_stored_before_the_format_description() {
        let file = FileBuilder::new().previous_gtids("").transaction(1, 50).finish();
        let mut cursor = from_oldest();
        cursor.admit(&rotate_to("b.1", 4)).unwrap();
        let without_position = made_up(30, 0, false, b"rows");
        assert!(cursor.admit(&without_position).is_err());
        let header = EventHeader::parse(&without_position).unwrap();
        assert!(cursor.begin_large(&header).is_err());
        cursor.admit(&events(&file, 4)[0]).unwrap();
        assert!(matches!(cursor.admit(&without_position), Ok(Admission::Store(_))));
    }

    /// Recovery sees the same: a file that ends with the stump would look unfinished to it.
    #[test]
    fn the_end_of_an_abandoned_transaction_is_no_place_to_cut() {
        let mut builder = FileBuilder::new();
        let boundary = builder.len() as u64;
        builder.event(34, &[0; 25]);
        builder.event(34, &[0; 25]);
        let mut cursor = from_oldest();
        cursor.admit(&rotate_to("b.1", 4)).unwrap();
        for event in events(&builder.finish(), 4) {
            cursor.admit(&event).unwrap();
        }
        assert_eq!(cursor.boundary(), boundary);
    }

    #[test]
    fn events_that_must_be_read_whole_do_not_come_in_parts() {
        let file = FileBuilder::new().finish();
        let mut cursor = from_oldest();
        cursor.admit(&rotate_to("b.1", 4)).unwrap();
        cursor.admit(&events(&file, 4)[0]).unwrap();
        let header = |code, artificial| EventHeader::parse(&made_up(code, 0, artificial, &[0; 50])).unwrap();
        for code in [4, 15, 27, 41] {
            assert!(cursor.begin_large(&header(code, false)).is_err(), "type {code}");
        }
        assert!(cursor.begin_large(&header(30, true)).is_err(), "made up for the connection");
        assert!(cursor.begin_large(&header(30, false)).is_ok());
    }

    #[test]
    fn another_format_in_the_middle_of_a_file_is_refused() {
        let file = FileBuilder::new().previous_gtids("").finish();
        let mut cursor = from_oldest();
        cursor.admit(&rotate_to("b.1", 4)).unwrap();
        for event in events(&file, 4) {
            cursor.admit(&event).unwrap();
        }
        let mut without_checksums = events(&file, 4)[0].clone();
        let algorithm = without_checksums.len() - 5;
        without_checksums[algorithm] = 0;
        assert_eq!(cursor.admit(&without_checksums), Err(OtherFile { file: "b.1".into() }.into()));
        assert!(cursor.admit(&made_up(30, 0, false, b"rows")).is_ok(), "checksums are still expected");
    }

    /// The walk of recovery would take such an event for damage and cut it off.
    #[test]
    fn what_recovery_cannot_read_is_not_stored() {
        let file = FileBuilder::new().finish();
        for (code, body) in
            [(4, &b"\x04\0\0\0\0\0\0\0no-number"[..]), (35, b"short"), (163, b"\xff\xff\xff\x0f")]
        {
            let mut cursor = from_oldest();
            cursor.admit(&rotate_to("b.1", 4)).unwrap();
            cursor.admit(&events(&file, 4)[0]).unwrap();
            assert!(cursor.admit(&made_up(code, 0, false, body)).is_err(), "type {code}");
        }
    }

    #[test]
    fn events_before_any_file_are_refused() {
        let file = FileBuilder::new().finish();
        assert!(from_oldest().admit(&events(&file, 4)[0]).is_err());
    }
}
