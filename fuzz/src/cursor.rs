//! The cursor that admits arriving events, and the walk of recovery over what it let in.
//!
//! ```text
//! start        1 byte: bits 0-1 where the session starts (see `begin`), bit 2 no checksum was negotiated
//! events       a script until the end; SPECIAL: the event comes in parts
//! ```
//!
//! Held true: no panic; a refused event changes nothing; the position moves forward by exactly the stored bytes, and
//! back only at a switch to another file; the boundary is never past it. And what was stored is, by the walk that
//! recovery makes, a sound file with the same last boundary: otherwise a restart would cut off what was acknowledged.

use crate::binlog::Binlog;
use crate::input::Input;
use crate::script;
use receive::session::cursor::{Admission, Cursor};
use receive::session::refusal::Refusal;
use codec::event::{
    BINLOG_MAGIC, ChecksumAlgorithm, EventHeader, EventType, FormatDescription, PEEK_BYTES_MAX, flags,
};
use binlog::Position;
use binlog::scan::scan_file;
use binlog::storage::ReadAt;
use scripted_source::event::{self, Head};
use std::io;

const FIRST_FILE: &str = "mysql-bin.000001";

/// Most events of one input: more only take time.
const EVENTS_MAX: usize = 128;

/// Runs one session until an event is refused.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut session = begin(input.u8());
    for _ in 0..EVENTS_MAX {
        if input.is_empty() {
            break;
        }
        let event = script::next_event(&mut input, session.offset);
        if !session.take(&event.bytes, event.special) {
            break;
        }
    }
    session.compare_with_walk();
}

/// A file in memory.
struct Bytes<'a>(&'a [u8]);

impl ReadAt for Bytes<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let len = buffer.len().min(rest.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

struct Session {
    cursor: Cursor,
    /// What the copy holds of the current file.
    file: Vec<u8>,
    /// Where the next event starts, for events whose position shall be right.
    offset: u64,
    /// A session that starts at the file's beginning passes over what is held up to here.
    held: u64,
}

/// 0: from the oldest file, whose name the script must give. 1: from the middle of a file. 2: from the middle of a
/// file, asked for from its beginning. 3: from the beginning of an empty file.
fn begin(start: u8) -> Session {
    let mut prefix = Binlog::new("");
    prefix.transaction(1);
    let held = prefix.bytes.len() as u64;
    let negotiated = if start & 4 != 0 { ChecksumAlgorithm::None } else { ChecksumAlgorithm::Crc32 };
    let format = FormatDescription::parse(prefix.events().next().expect("a first event")).ok();
    let (asked, requested, format, file) = match start & 3 {
        0 => (None, 4, None, BINLOG_MAGIC.to_vec()),
        1 => (Some(held), held, format, prefix.bytes.clone()),
        2 => (Some(held), 4, format, prefix.bytes.clone()),
        _ => (Some(4), 4, None, BINLOG_MAGIC.to_vec()),
    };
    let asked = asked.map(|offset| Position::new(FIRST_FILE, offset));
    let held = asked.as_ref().map_or(0, |position| position.offset);
    let mut cursor = Cursor::new(asked.clone(), requested, format, negotiated);
    if asked.is_some() {
        let rotate = artificial_rotate(requested, negotiated);
        assert_eq!(cursor.admit(&rotate), Ok(Admission::Ignore));
        assert_eq!(cursor.position(), asked);
    }
    let mut offset = requested;
    if start & 3 == 2 {
        for event in prefix.events() {
            assert_eq!(cursor.admit(event), Ok(Admission::Ignore));
            offset += event.len() as u64;
        }
    }
    Session { cursor, file, offset, held }
}

fn artificial_rotate(position: u64, negotiated: ChecksumAlgorithm) -> Vec<u8> {
    let head = Head { timestamp: 0, event_type: EventType::ROTATE, server_id: 0, flags: flags::ARTIFICIAL };
    let mut event = Vec::new();
    let checksum = negotiated == ChecksumAlgorithm::Crc32;
    event::append(&mut event, head, |_| 0, &event::rotate(position, FIRST_FILE), checksum);
    event
}

impl Session {
    /// Gives one event to the cursor; false when it was refused.
    fn take(&mut self, event: &[u8], in_parts: bool) -> bool {
        let Ok(header) = EventHeader::parse(event) else { return false };
        if header.event_size as usize != event.len() {
            return false; // The framer has seen to that.
        }
        let before = (self.cursor.position(), self.boundary(), self.cursor.is_at_boundary());
        let format = self.cursor.format().cloned();
        let admission = if in_parts { self.admit_parts(&header, event) } else { self.cursor.admit(event) };
        let after = (self.cursor.position(), self.boundary(), self.cursor.is_at_boundary());
        assert!(
            after.0.as_ref().is_none_or(|position| after.1 <= position.offset),
            "the boundary is past the position"
        );
        match admission {
            Err(_) => {
                assert_eq!(after, before, "a refused event moved the cursor");
                assert_eq!(self.cursor.format(), format.as_ref(), "a refused event changed the format");
                return false;
            }
            Ok(Admission::Store(step)) => {
                let at = before.0.expect("nothing is stored before a file is named");
                self.file.extend_from_slice(event);
                self.offset = self.file.len() as u64;
                assert_eq!(after.0, Some(Position::new(at.file.clone(), self.offset)));
                let boundary = if step.boundary { self.offset } else { before.1 };
                assert_eq!((after.1, after.2), (boundary, step.boundary));
            }
            Ok(Admission::Ignore | Admission::CaughtUp) => {
                assert_eq!(
                    (&after.0, after.1),
                    (&before.0, before.1),
                    "an event that is not stored moved the cursor"
                );
                if self.offset < self.held && !header.is_artificial() {
                    self.offset += event.len() as u64;
                }
            }
            Ok(Admission::SwitchFile(name)) => {
                let name = name.to_owned();
                assert!(
                    before.0.is_none_or(|position| *position.file != *name),
                    "{name} begins a second time"
                );
                assert_eq!((after.0, after.1), (Some(Position::new(name, 4)), 4));
                // The walk needs the boundary that the cursor had in the file that ends here.
                self.walk(before.1);
                (self.file, self.offset, self.held) = (BINLOG_MAGIC.to_vec(), 4, 0);
            }
        }
        true
    }

    /// As the receiver does with an event that is larger than its buffer.
    fn admit_parts(&mut self, header: &EventHeader, event: &[u8]) -> Result<Admission<'static>, Refusal> {
        let (mut checksum, store) = self.cursor.begin_large(header)?;
        for part in event.chunks(1000) {
            checksum.update(part);
        }
        if checksum.finish().is_err() {
            return Ok(Admission::Ignore); // The receiver ends the session; the cursor has not moved.
        }
        // What comes in parts is so long that its beginning, which is all that is kept, never reaches its checksum.
        let covered = event.len() - self.cursor.format().map_or(0, |format| format.checksum.len());
        let admission = self.cursor.finish_large(header, &event[..covered.min(PEEK_BYTES_MAX)])?;
        assert_eq!(store, matches!(admission, Admission::Store(_)));
        Ok(admission)
    }

    /// The last boundary as an offset. Where a file is named it is in that one.
    fn boundary(&self) -> u64 {
        let (position, boundary) = (self.cursor.position(), self.cursor.boundary());
        if let Some(position) = position {
            assert_eq!(boundary.map(|boundary| &boundary.file), Some(&position.file));
        }
        boundary.map_or(0, |boundary| boundary.offset)
    }

    fn compare_with_walk(&self) {
        if self.cursor.position().is_some() {
            self.walk(self.boundary());
        }
    }

    fn walk(&self, boundary: u64) {
        let scan = scan_file(&Bytes(&self.file), u64::MAX, |_| {}).expect("memory can be read");
        assert_eq!(scan.damage, None, "recovery would cut what was stored");
        assert_eq!(scan.sound_end, self.file.len() as u64);
        assert_eq!(scan.boundary, boundary.max(4), "recovery sees another boundary");
    }
}
