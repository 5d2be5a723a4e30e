//! The target's own binary log, read as a replica reads it.

use binlog::forks::fingerprint::{Fingerprinter, Seen};
use binlog::forks::transactions::EVENT_BYTES_MAX;
use codec::ServerKind;
use codec::dump_stream::Frame;
use codec::event::boundary::BoundaryTracker;
use codec::event::{ChecksumAlgorithm, EventHeader, EventType, FormatDescription, GtidEvent, Rotate};
use codec::gtid::{GtidSet, GtidState, TransactionId};
use codec::packet::command;
use source::clock::SystemClock;
use source::identify::SourceIdentity;
use source::look::{Waits, look, read_dump};
use source::negotiate::{ask_for_events_as_they_are, checksum_outside_files, look_request};
use source::stop::StopSignal;
use std::ops::ControlFlow;
use std::time::Duration;
use wire::{ConnectOptions, Connection, WireError};

const DURING: &str = "reading the target's binary log";
/// Longest time without a byte. A server that passes over transactions sends heartbeats meanwhile.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Longest time for the beginning of one file.
const LOOK_MAX: Duration = Duration::from_secs(60);
/// Nanoseconds.
const HEARTBEAT_PERIOD: u64 = 5_000_000_000;

/// One transaction in the target's binary log.
#[derive(Debug, Clone)]
pub(in crate::rescue) struct Logged {
    pub(in crate::rescue) id: TransactionId,
    /// What it does, or why that cannot be told.
    pub(in crate::rescue) seen: Result<Seen, String>,
    /// The file's name there.
    pub(in crate::rescue) file: String,
    /// Where it begins in that file.
    pub(in crate::rescue) at: u64,
    /// Its length in bytes.
    pub(in crate::rescue) size: u64,
}

/// Where reading begins.
#[derive(Debug)]
pub(in crate::rescue) enum From {
    /// MySQL finds what is in none of these itself.
    Outside(GtidSet),
    /// A file and a place in it.
    Place(String, u64),
}

/// How to read the log of a server.
#[derive(Debug)]
pub(in crate::rescue) struct TargetLog<'a> {
    options: &'a ConnectOptions,
    identity: &'a SourceIdentity,
    server_id: u32,
}

impl<'a> TargetLog<'a> {
    pub(in crate::rescue) fn new(options: &'a ConnectOptions, identity: &'a SourceIdentity) -> TargetLog<'a> {
        // High and random: a server ends older dumps of the same number.
        let random = std::process::id().wrapping_mul(2_654_435_761) ^ identity.server_id.rotate_left(7);
        let server_id = 0x8000_0000 | random & 0x7fff_ffff;
        TargetLog { options, identity, server_id: server_id ^ u32::from(server_id == identity.server_id) }
    }

    /// Whether the account may read the log at all.
    pub(in crate::rescue) fn try_reading(&self) -> Result<(), WireError> {
        let connection = self.connect()?;
        self.beginning(connection, "").map(drop)
    }

    /// Gives every transaction that `wanted` says yes to to `found`, until that breaks off or the log ends.
    pub(in crate::rescue) fn read(
        &self,
        from: &From,
        wanted: &mut dyn FnMut(&TransactionId) -> bool,
        found: &mut dyn FnMut(Logged) -> Result<ControlFlow<()>, WireError>,
    ) -> Result<(), WireError> {
        let connection = self.connect()?;
        let request = match from {
            From::Outside(set) => {
                const NON_BLOCK_BY_GTID: u16 = 0x01 | 0x04;
                let mut encoded = Vec::new();
                set.encode(&mut encoded);
                command::binlog_dump_gtid(NON_BLOCK_BY_GTID, self.server_id, b"", 4, &encoded)
            }
            From::Place(file, at) => look_request(self.server_id, file, *at),
        };
        let mut reading = Reading {
            checksum: checksum_outside_files(self.identity),
            tracker: BoundaryTracker::new(),
            fed: 0,
            file: String::new(),
            at: 4,
            skip: None,
            open: None,
            event: Vec::new(),
            wanted,
            found,
        };
        if let From::Place(_, at) = from {
            // A place past 4 GiB cannot be asked for: the file comes from its beginning.
            reading.skip = u32::try_from(*at).is_err().then_some(*at);
        }
        read_dump(connection, &request, SILENCE_MAX, &mut |frame| reading.frame(frame))
    }

    /// MariaDB: the last file before which, by its own word, nothing is that `is_wanted_before` says yes to.
    pub(in crate::rescue) fn file_before(
        &self,
        files: &[String],
        is_wanted_before: &dyn Fn(&GtidState) -> bool,
    ) -> Result<String, WireError> {
        let (mut low, mut high) = (0, files.len().saturating_sub(1));
        while low < high {
            let middle = (low + high).div_ceil(2);
            let before = self.beginning(self.connect()?, &files[middle])?;
            if before.is_some_and(|before| !is_wanted_before(&before)) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        files.get(low).cloned().ok_or_else(|| protocol("the target lists no binary log".to_owned()))
    }

    /// What a file says was logged before it.
    pub(in crate::rescue) fn logged_before(&self, file: &str) -> Result<Option<GtidState>, WireError> {
        self.beginning(self.connect()?, file)
    }

    fn beginning(&self, connection: Connection, file: &str) -> Result<Option<GtidState>, WireError> {
        let request = look_request(self.server_id, file, 4);
        let waits = Waits { stop: &StopSignal::new(), clock: &SystemClock, pulse: None };
        look(connection, self.identity, &request, LOOK_MAX, waits).map(|look| look.gtids_before)
    }

    fn connect(&self) -> Result<Connection, WireError> {
        let mut connection = Connection::connect(self.options)?;
        ask_for_events_as_they_are(&mut connection, self.identity)?;
        if self.identity.kind == ServerKind::MySql {
            connection.query(&format!(
                "SET @master_heartbeat_period = {HEARTBEAT_PERIOD}, @source_heartbeat_period = {HEARTBEAT_PERIOD}"
            ))?;
        }
        Ok(connection)
    }
}

struct Reading<'a> {
    checksum: ChecksumAlgorithm,
    tracker: BoundaryTracker,
    /// Bytes of events that the tracker was given.
    fed: u64,
    file: String,
    /// Where the next event stands in its file.
    at: u64,
    /// What stands before this place of the first file is of no interest.
    skip: Option<u64>,
    open: Option<Open>,
    /// An event that arrives in parts.
    event: Vec<u8>,
    wanted: &'a mut dyn FnMut(&TransactionId) -> bool,
    found: &'a mut dyn FnMut(Logged) -> Result<ControlFlow<()>, WireError>,
}

/// A wanted transaction that has not ended yet.
struct Open {
    logged: Logged,
    fingerprinter: Fingerprinter,
    unclear: Option<String>,
}

impl Reading<'_> {
    fn frame(&mut self, frame: Frame<'_>) -> Result<ControlFlow<()>, WireError> {
        match frame {
            Frame::Event { bytes, .. } => self.event(bytes),
            Frame::Part { offset, event_size, bytes, .. } => {
                if event_size > EVENT_BYTES_MAX {
                    return Err(protocol("an event above 768 MiB cannot be taken into memory".to_owned()));
                }
                if offset == 0 {
                    self.event.clear();
                }
                self.event.extend_from_slice(bytes);
                if self.event.len() < event_size as usize {
                    return Ok(ControlFlow::Continue(()));
                }
                let event = std::mem::take(&mut self.event);
                self.event(&event)
            }
            Frame::EmptyPacket => Ok(ControlFlow::Continue(())),
            Frame::End => Ok(ControlFlow::Break(())),
            Frame::SourceError(error) => Err((*error).into()),
        }
    }

    fn event(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, WireError> {
        let text = |error: codec::event::EventError| protocol(error.to_string());
        let header = EventHeader::parse(bytes).map_err(text)?;
        if header.event_type.is_heartbeat() {
            return Ok(ControlFlow::Continue(()));
        }
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            self.checksum = FormatDescription::parse(bytes).map_err(text)?.checksum;
            self.checksum.verify_format_description(bytes).map_err(text)?;
        } else {
            self.checksum.verify(bytes).map_err(text)?;
        }
        let body = &bytes[..bytes.len() - self.checksum.len()];
        if header.event_type == EventType::ROTATE && header.is_artificial() {
            let rotate = Rotate::parse(body).map_err(text)?;
            if self.file != rotate.next_file {
                if !self.file.is_empty() {
                    self.skip = None;
                }
                (self.file, self.at) = (rotate.next_file.to_owned(), rotate.position);
            }
            return Ok(ControlFlow::Continue(()));
        }
        // A format description that is sent again in the midst of a file stands elsewhere.
        if header.is_artificial()
            || (header.event_type == EventType::FORMAT_DESCRIPTION && header.log_pos == 0)
        {
            return Ok(ControlFlow::Continue(()));
        }
        let at = self.place(&header);
        let start = self.fed;
        self.fed += u64::from(header.event_size);
        let step = self.tracker.advance(&header, body, start, self.fed).map_err(text)?;
        if step.abandoned {
            self.open = None;
        }
        if GtidEvent::is_gtid(header.event_type) {
            self.begin(&header, body, at).map_err(text)?;
        }
        if let Some(open) = &mut self.open {
            open.logged.size += u64::from(header.event_size);
            if open.unclear.is_none() {
                open.unclear = open.fingerprinter.event(&header, body).err();
            }
            if step.transaction {
                let Some(Open { mut logged, fingerprinter, unclear }) = self.open.take() else {
                    unreachable!()
                };
                logged.seen = unclear.map_or_else(|| Ok(fingerprinter.finish()), Err);
                return (self.found)(logged);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn begin(&mut self, header: &EventHeader, body: &[u8], at: u64) -> Result<(), codec::event::EventError> {
        self.open = None;
        let Some(id) = GtidEvent::parse(header, body)?.id else { return Ok(()) };
        match self.skip {
            Some(skip) if at < skip => return Ok(()),
            _ => self.skip = None,
        }
        if (self.wanted)(&id) {
            let logged = Logged { id, seen: Err(String::new()), file: self.file.clone(), at, size: 0 };
            self.open = Some(Open { logged, fingerprinter: Fingerprinter::new(), unclear: None });
        }
        Ok(())
    }

    /// Where the event stands in its file. Events that were passed over are seen from the low 32 bits of the next position.
    fn place(&mut self, header: &EventHeader) -> u64 {
        let size = u64::from(header.event_size);
        let end = self.at + size;
        if header.log_pos != 0 && end as u32 != header.log_pos {
            let passed_over = u64::from(header.log_pos.wrapping_sub(end as u32));
            self.at += passed_over;
        }
        let at = self.at;
        self.at += size;
        at
    }
}

fn protocol(what: String) -> WireError {
    WireError::Protocol { during: DURING, what }
}
