//! Whether the source's log is the one that the copy continues: the end of what is held is asked for again over a dump of
//! its own, without semi-sync, and what follows it on the source is seen.
//!
//! A source tells a replica nothing of a reset (RESET BINARY LOGS AND GTIDS, RESET MASTER). Its dump thread has the old file
//! open and waits at its end. When the file that the source writes gets another name, it goes on to the file that the index
//! names next, whichever history that belongs to. And where both histories have a live file of one name, it waits for ever.
//!
//! A source that cannot read what follows says so here, too. A MariaDB must not be brought to say it to a semi-sync replica: its
//! dump then waits for its thread that reads acknowledgements, says nothing, and commits wait.
//!
//! A place in the log is also an acknowledgement: a source with semi-sync takes it that a replica has everything before the
//! place at which it asks for a dump. So the place is compared first, over a dump that is none of a semi-sync replica.

use super::identify::SourceIdentity;
use super::look::{Patience, Waits, protocol, walk};
use super::negotiate::checksum_outside_files;
use binlog::Position;
use binlog::writer::admission::{gtids_before, states_gtids};
use codec::dump_stream::Frame;
use codec::event::boundary::BoundaryTracker;
use codec::event::{ChecksumAlgorithm, EventHeader, EventType, FormatDescription, HEADER_LEN, Rotate};
use codec::gtid::GtidState;
use codec::packet::ErrPacket;
use std::ops::ControlFlow;
use std::time::Duration;
use wire::{Connection, WireError};

/// Receive buffer in bytes, larger than any tail that is compared.
const BUFFER_LEN: usize = 1024 * 1024;

/// A PREVIOUS_GTIDS or GTID_LIST event that is longer than this is not looked at, in bytes.
const GTIDS_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// Where the copy ends, and the bytes before that.
#[derive(Debug)]
pub struct End<'a> {
    /// The end, a boundary.
    pub at: Position,
    /// The file's format description, if the copy has it.
    pub format: Option<&'a FormatDescription>,
    /// The last bytes before the end; empty when they are too many.
    pub tail: &'a [u8],
    /// So many bytes of the first transaction behind the end are read as well, to see whether the source can.
    pub ahead: u64,
}

impl End<'_> {
    /// Where the tail begins, in bytes from the file's beginning.
    pub fn tail_start(&self) -> u64 {
        self.at.offset - self.tail.len() as u64
    }
}

/// The beginning of a file of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextFile {
    /// Its name.
    pub name: String,
    /// Its format description.
    pub format: FormatDescription,
    /// GTIDs of what was written before it, by its own word, if it has one.
    pub gtids_before: Option<GtidState>,
}

/// What the source has at the end of the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// The same bytes before it, in a file that has not ended there.
    GoesOn {
        /// There is more of it; false when the source has nothing newer.
        more: bool,
    },
    /// The same bytes before it; in place of the next transaction the source says this.
    Refused(Box<ErrPacket>),
    /// The same bytes before it; its file ends there too, and this one follows.
    Followed(Box<NextFile>),
    /// It is another file of that name.
    OtherFile,
    /// The file is that of the copy, but not with the same bytes up to there.
    OtherHistory {
        /// The event that differs, or the end of what the source has, in bytes from the file's beginning.
        at: u64,
    },
}

/// Starts the dump `request`, which asks for the tail of `end` and does not wait. The connection is given up afterwards.
///
/// # Errors
/// The source's error as [`WireError::Server`], and everything that can happen to a connection.
pub fn link(
    connection: Connection,
    source: &SourceIdentity,
    request: &[u8],
    end: &End<'_>,
    timeout: Duration,
    waits: Waits<'_>,
) -> Result<Link, WireError> {
    link_with(connection, source, request, end, Patience::Silence(timeout), waits)
}

/// As [`link`], with a limit of another kind.
///
/// # Errors
/// As [`link`].
pub fn link_with(
    connection: Connection,
    source: &SourceIdentity,
    request: &[u8],
    end: &End<'_>,
    patience: Patience,
    waits: Waits<'_>,
) -> Result<Link, WireError> {
    Following::new(source, end).run(connection, request, patience, waits)
}

/// Starts the dump `request`, which asks for the beginning of `file` and does not wait, and reads what the file says of
/// itself: [`Link::Followed`] with that, or [`Link::OtherFile`]. The connection is given up afterwards.
///
/// # Errors
/// As [`link`].
pub fn beginning(
    connection: Connection,
    source: &SourceIdentity,
    request: &[u8],
    file: &str,
    timeout: Duration,
    waits: Waits<'_>,
) -> Result<Link, WireError> {
    let end = End { at: Position::new(file, 4), format: None, tail: &[], ahead: 0 };
    let mut following = Following::new(source, &end);
    following.next = Some(file.to_owned());
    following.run(connection, request, Patience::Silence(timeout), waits)
}

struct Following<'a> {
    end: &'a End<'a>,
    /// Where the next event stands in the file of the end.
    at: u64,
    /// In force until a format description says otherwise.
    checksum: ChecksumAlgorithm,
    /// The first ROTATE has come.
    file_is_named: bool,
    /// Name of the file that follows.
    next: Option<String>,
    next_format: Option<FormatDescription>,
    /// The beginning of an event that comes in parts and is looked at.
    large: Vec<u8>,
    /// Finds the end of the first transaction behind the end.
    ahead: BoundaryTracker,
    found: Option<Link>,
}

impl<'a> Following<'a> {
    fn new(source: &SourceIdentity, end: &'a End<'a>) -> Following<'a> {
        Following {
            end,
            // As the request says it, which has 32 bits for it.
            at: if u32::try_from(end.tail_start()).is_ok() { end.tail_start() } else { 4 },
            checksum: checksum_outside_files(source),
            file_is_named: false,
            next: None,
            next_format: None,
            large: Vec::new(),
            ahead: BoundaryTracker::new(),
            found: None,
        }
    }

    fn run(
        mut self,
        connection: Connection,
        request: &[u8],
        patience: Patience,
        waits: Waits<'_>,
    ) -> Result<Link, WireError> {
        let mut visit = |frame: Frame<'_>| self.visit(frame);
        walk(connection, request, BUFFER_LEN, patience, waits, &mut visit)?;
        self.found.ok_or_else(|| protocol("it came to no end".to_owned()))
    }

    fn visit(&mut self, frame: Frame<'_>) -> Result<ControlFlow<()>, WireError> {
        match frame {
            Frame::Event { bytes, .. } => self.event(bytes)?,
            Frame::Part { offset, event_size, bytes, .. } => self.part(offset, event_size, bytes)?,
            Frame::EmptyPacket => {}
            Frame::End => self.ends(false),
            // Before its first ROTATE it has not found the file, and has the same bytes of nothing.
            Frame::SourceError(error)
                if self.file_is_named && self.at >= self.end.at.offset && self.next.is_none() =>
            {
                self.found = Some(Link::Refused(error));
            }
            Frame::SourceError(error) => return Err((*error).into()),
        }
        Ok(if self.found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn event(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let header = EventHeader::parse(bytes).map_err(|error| protocol(error.to_string()))?;
        if header.event_type == EventType::ROTATE && header.is_artificial() {
            // Bytes that the network damaged must not name another file.
            self.checksum.verify(bytes).map_err(|error| protocol(error.to_string()))?;
            let body = &bytes[..bytes.len().saturating_sub(self.checksum.len())];
            let rotate = Rotate::parse(body).map_err(|error| protocol(error.to_string()))?;
            self.rotate(&rotate);
            return Ok(());
        }
        let is_resent = header.event_type == EventType::MARIADB_START_ENCRYPTION && header.log_pos == 0;
        if header.event_type.is_heartbeat() || is_resent {
            return Ok(());
        }
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            return self.format_description(bytes);
        }
        if header.is_artificial() {
            return Ok(());
        }
        if self.next.is_some() {
            return self.first_of_next(&header, bytes);
        }
        self.of_file(bytes)
    }

    fn rotate(&mut self, rotate: &Rotate<'_>) {
        let is_ours = rotate.next_file == &*self.end.at.file;
        if !std::mem::replace(&mut self.file_is_named, true) {
            if !is_ours || rotate.position != self.at {
                self.found = Some(Link::OtherFile);
            }
        } else if !is_ours && self.next.is_none() {
            if self.at != self.end.at.offset {
                return self.ends(true);
            }
            self.next = Some(rotate.next_file.to_owned());
        } else if !is_ours {
            self.ends(true); // The one that follows is followed in its turn.
        }
    }

    fn format_description(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let unsound = |error: codec::event::EventError| protocol(error.to_string());
        let format = FormatDescription::parse(bytes).map_err(unsound)?;
        format.checksum.verify_format_description(bytes).map_err(unsound)?;
        self.checksum = format.checksum;
        if self.next.is_some() {
            self.next_format = Some(format);
            return Ok(());
        }
        if self.end.format.is_some_and(|ours| !ours.is_same_file(&format)) {
            self.found = Some(Link::OtherFile);
        } else if self.at == 4 {
            self.of_file(bytes)?; // Not sent again, but as it stands there.
        }
        Ok(())
    }

    /// An event of the file that the copy ends in.
    fn of_file(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        if self.at >= self.end.at.offset {
            let body = &bytes[..bytes.len().saturating_sub(self.checksum.len())];
            self.behind_the_end(body, bytes.len() as u64);
            return Ok(());
        }
        if EventType(bytes[4]) != EventType::FORMAT_DESCRIPTION {
            // Bytes that the network damaged must not pass for another history.
            self.checksum.verify(bytes).map_err(|error| protocol(error.to_string()))?;
        }
        let end = self.at + bytes.len() as u64;
        if end <= self.end.tail_start() {
            self.at = end; // Before what is compared.
            return Ok(());
        }
        let passed =
            self.at.checked_sub(self.end.tail_start()).and_then(|passed| usize::try_from(passed).ok());
        if passed.and_then(|passed| self.end.tail.get(passed..)).is_some_and(|tail| tail.starts_with(bytes)) {
            self.at = end;
        } else {
            self.differs();
        }
        Ok(())
    }

    /// An event that the copy lacks, or the beginning of a large one.
    fn behind_the_end(&mut self, event: &[u8], event_size: u64) {
        let (start, end) = (self.at, self.at + event_size);
        let is_inside = EventHeader::parse(event)
            .and_then(|header| self.ahead.advance(&header, event, start, end))
            .is_ok_and(|step| !step.boundary);
        self.at = end;
        if !is_inside || end - self.end.at.offset > self.end.ahead {
            self.found = Some(Link::GoesOn { more: true });
        }
    }

    fn differs(&mut self) {
        self.found = Some(Link::OtherHistory { at: self.at });
    }

    fn first_of_next(&mut self, header: &EventHeader, bytes: &[u8]) -> Result<(), WireError> {
        if header.event_type == EventType::MARIADB_START_ENCRYPTION {
            return Ok(());
        }
        let mut gtids = None;
        if states_gtids(header.event_type) {
            self.checksum.verify(bytes).map_err(|error| protocol(error.to_string()))?;
            let body = bytes.get(HEADER_LEN..bytes.len() - self.checksum.len()).unwrap_or_default();
            gtids = Some(gtids_before(header.event_type, body).map_err(|error| protocol(error.to_string()))?);
        }
        self.followed(gtids);
        Ok(())
    }

    fn part(&mut self, offset: u64, event_size: u32, bytes: &[u8]) -> Result<(), WireError> {
        if self.next.is_none() && self.at + u64::from(event_size) <= self.end.tail_start() {
            // Before what is compared.
            if offset + bytes.len() as u64 == u64::from(event_size) {
                self.at += u64::from(event_size);
            }
            return Ok(());
        }
        if self.next.is_none() {
            if self.at < self.end.at.offset {
                self.differs(); // Longer than any tail.
            } else if offset == 0 {
                self.behind_the_end(bytes, u64::from(event_size));
            }
            return Ok(());
        }
        if offset == 0 {
            self.large.clear();
        }
        self.large.extend_from_slice(bytes);
        let header = EventHeader::parse(&self.large).map_err(|error| protocol(error.to_string()))?;
        if !states_gtids(header.event_type) || event_size > GTIDS_BYTES_MAX {
            self.followed(None);
        } else if self.large.len() == event_size as usize {
            let whole = std::mem::take(&mut self.large);
            self.first_of_next(&header, &whole)?;
        }
        Ok(())
    }

    /// The source has nothing more, or nothing more that matters.
    fn ends(&mut self, more: bool) {
        // A binlogd names the next file of a timeline that is written no more without a word of that file: nothing follows yet.
        let is_unbegun =
            self.next_format.is_none() && self.next.as_ref().is_some_and(|next| **next != *self.end.at.file);
        if self.next.is_some() && !is_unbegun {
            self.followed(None);
        } else if self.at < self.end.at.offset {
            self.differs();
        } else {
            self.found = Some(Link::GoesOn { more: more || self.at > self.end.at.offset });
        }
    }

    fn followed(&mut self, gtids_before: Option<GtidState>) {
        self.found = Some(match (self.next.take(), self.next_format.take()) {
            (Some(name), Some(format)) => Link::Followed(Box::new(NextFile { name, format, gtids_before })),
            _ => Link::OtherFile, // One without a format description is none.
        });
    }
}
