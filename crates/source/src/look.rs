//! Short looks at a source's logs over a dump of their own: which file, and whose; and whether a file is ours.

use super::clock::{Clock, SystemClock};
use super::identify::SourceIdentity;
use super::negotiate::checksum_outside_files;
use super::stop::{StopSignal, Woken};
use binlog::storage::ReadAt;
use binlog::writer::admission;
use codec::ServerKind;
use codec::dump_stream::{BUFFER_LEN_MIN, DumpFramer, Frame};
use codec::event::{ChecksumAlgorithm, EventHeader, EventType, FormatDescription, HEADER_LEN, Rotate};
use codec::gtid::GtidState;
use codec::{BadBinlogName, BinlogName};
use status::{Place, Pulse};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::time::Duration;
use wire::{Connection, WireError};

const DURING: &str = "looking at the source's logs";

/// Receive buffer of a comparison, in bytes. Larger events are compared in parts.
const COMPARE_BUFFER_LEN: usize = 1024 * 1024;

/// The beginning of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Name in the first ROTATE event.
    pub file: String,
    /// The file's format description.
    pub format: FormatDescription,
    /// MariaDB: GTIDs of what the source wrote before this file. Nothing else tells what it purged.
    pub gtids_before: Option<GtidState>,
}

impl Look {
    /// Of a look at the source's oldest file: the files of a timeline that the source may still have by their numbers.
    ///
    /// # Errors
    /// When one of the names is none.
    pub fn not_purged<'a>(&self, files: &'a [String]) -> Result<&'a [String], BadBinlogName> {
        let oldest = BinlogName::parse(&self.file)?;
        let names = files.iter().map(|file| BinlogName::parse(file)).collect::<Result<Vec<_>, _>>()?;
        let is_left = |name: &BinlogName<'_>| name.number() >= oldest.number();
        // Where the source's log_bin was renamed within the timeline, the numbers begin anew there.
        let same_base = names.iter().position(|name| name.base() == oldest.base() && is_left(name));
        let first = same_base.or_else(|| names.iter().position(is_left));
        Ok(&files[first.unwrap_or(files.len())..])
    }

    /// Of a look at the source's oldest file: whether `file` must have been purged by its number.
    ///
    /// # Errors
    /// When one of the names is none.
    pub fn begins_behind(&self, file: &str) -> Result<bool, BadBinlogName> {
        Ok(BinlogName::parse(&self.file)?.number() > BinlogName::parse(file)?.number())
    }
}

/// How a file of the source compares with the copy's file of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// The source has every byte that the copy has.
    Equal {
        /// The file that follows it on the source, if one does.
        next: Option<String>,
    },
    /// The first event that is another one on the source, or the end of what the source has.
    Differs {
        /// Its offset in bytes.
        at: u64,
    },
}

/// What a wait for the source goes by.
#[derive(Debug, Clone, Copy)]
pub struct Waits<'a> {
    /// Ends it.
    pub stop: &'a StopSignal,
    /// Says how long it has lasted.
    pub clock: &'a dyn Clock,
    /// Told of what arrives, where the receiving thread waits.
    pub pulse: Option<&'a Pulse>,
}

/// How long a look may take.
#[derive(Debug, Clone, Copy)]
pub enum Patience {
    /// In all.
    InAll(Duration),
    /// Without a byte arriving.
    Silence(Duration),
}

/// Starts the dump `request`, which does not wait, and reads the beginning of its first file. The connection is given up
/// afterwards.
///
/// # Errors
/// The source's error as [`WireError::Server`], and everything that can happen to a connection.
pub fn look(
    connection: Connection,
    source: &SourceIdentity,
    request: &[u8],
    timeout: Duration,
    waits: Waits<'_>,
) -> Result<Look, WireError> {
    let (mut file, mut found, mut gtids_before) = (None, None, None);
    let checksum = checksum_outside_files(source);
    let mut visit = |frame: Frame<'_>| match (&found, frame) {
        (None, Frame::Event { bytes, .. }) => {
            found = event(bytes, checksum, &mut file).map_err(protocol)?;
            // By the server, not by the format description: a distribution may change the text of the version.
            let is_enough = found.is_some() && source.kind != ServerKind::MariaDb;
            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        }
        (None, Frame::SourceError(error)) => Err((*error).into()),
        (None, Frame::Part { .. } | Frame::EmptyPacket | Frame::End) => {
            Err(protocol("the dump has no beginning".to_owned()))
        }
        (Some(format), Frame::Event { bytes, .. }) if EventType(bytes[4]) == EventType::MARIADB_GTID_LIST => {
            let body = bytes.get(HEADER_LEN..bytes.len() - format.checksum.len()).unwrap_or_default();
            let state = admission::gtids_before(EventType::MARIADB_GTID_LIST, body);
            gtids_before = Some(state.map_err(|error| protocol(error.to_string()))?);
            Ok(ControlFlow::Break(()))
        }
        (Some(_), Frame::Event { bytes, .. })
            if EventType(bytes[4]) == EventType::MARIADB_START_ENCRYPTION =>
        {
            Ok(ControlFlow::Continue(()))
        }
        (Some(_), _) => Ok(ControlFlow::Break(())),
    };
    walk(connection, request, BUFFER_LEN_MIN, Patience::InAll(timeout), waits, &mut visit)?;
    match (file, found) {
        (Some(file), Some(format)) => Ok(Look { file, format, gtids_before }),
        _ => Err(protocol("no ROTATE event came first".to_owned())),
    }
}

/// What the copy has of a file.
pub struct Ours<'a> {
    /// Its bytes.
    pub file: &'a dyn ReadAt,
    /// How many of them count, from the file's beginning on.
    pub len: u64,
    /// It ends where the source's file ends.
    pub sealed: bool,
}

/// Starts the dump `request`, which asks for the beginning of a file and does not wait, and holds the file against `ours`.
/// Reads no more of the source's file than the copy has, up to the first difference.
///
/// # Errors
/// The source's error as [`WireError::Server`], everything that can happen to a connection, and `Io` when the copy cannot
/// be read.
pub fn compare(
    connection: Connection,
    source: &SourceIdentity,
    request: &[u8],
    ours: Ours<'_>,
    silence: Duration,
    waits: Waits<'_>,
) -> Result<Compared, WireError> {
    compare_with(connection, source, request, ours, Patience::Silence(silence), waits)
}

/// As [`compare`], with a limit of another kind.
///
/// # Errors
/// As [`compare`].
pub fn compare_with(
    connection: Connection,
    source: &SourceIdentity,
    request: &[u8],
    ours: Ours<'_>,
    patience: Patience,
    waits: Waits<'_>,
) -> Result<Compared, WireError> {
    let checksum = checksum_outside_files(source);
    let mut comparison = Comparison { ours, checksum, at: 4, file: None, result: None, scratch: Vec::new() };
    let mut visit = |frame: Frame<'_>| comparison.visit(frame);
    walk(connection, request, COMPARE_BUFFER_LEN, patience, waits, &mut visit)?;
    comparison.result.ok_or_else(|| protocol("the comparison came to no end".to_owned()))
}

struct Comparison<'a> {
    ours: Ours<'a>,
    /// In force until a format description says otherwise.
    checksum: ChecksumAlgorithm,
    /// Where the next event of the source stands.
    at: u64,
    file: Option<String>,
    result: Option<Compared>,
    scratch: Vec<u8>,
}

impl Comparison<'_> {
    fn visit(&mut self, frame: Frame<'_>) -> Result<ControlFlow<()>, WireError> {
        match frame {
            Frame::Event { bytes, .. } => self.event(bytes)?,
            Frame::Part { offset, event_size, bytes, .. } => {
                if !self.is_ours(bytes, self.at + offset)? {
                    self.differs();
                } else if offset + bytes.len() as u64 == u64::from(event_size) {
                    self.passed(u64::from(event_size));
                }
            }
            Frame::EmptyPacket => {}
            Frame::End => self.ends(None),
            Frame::SourceError(error) => return Err((*error).into()),
        }
        Ok(if self.result.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn event(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let header = EventHeader::parse(bytes).map_err(|error| protocol(error.to_string()))?;
        if header.event_type == EventType::ROTATE && header.is_artificial() {
            // Bytes that the network damaged must not name another file.
            self.checksum.verify(bytes).map_err(|error| protocol(error.to_string()))?;
            let end = bytes.len().saturating_sub(self.checksum.len());
            let rotate = Rotate::parse(&bytes[..end]).map_err(|error| protocol(error.to_string()))?;
            match &self.file {
                None => self.file = Some(rotate.next_file.to_owned()),
                Some(file) if file != rotate.next_file => self.ends(Some(rotate.next_file.to_owned())),
                Some(_) => {}
            }
            return Ok(());
        }
        if header.is_artificial() || header.event_type.is_heartbeat() {
            return Ok(());
        }
        self.verify(&header, bytes)?;
        if self.is_ours(bytes, self.at)? {
            self.passed(u64::from(header.event_size));
        } else {
            self.differs();
        }
        Ok(())
    }

    /// An event of the source stands in the copy too. What follows the end of a file that still grows does not matter.
    fn passed(&mut self, event_size: u64) {
        self.at += event_size;
        if self.at >= self.ours.len && !self.ours.sealed {
            self.result = Some(Compared::Equal { next: None });
        }
    }

    /// Bytes that the network damaged must not pass for another history.
    fn verify(&mut self, header: &EventHeader, event: &[u8]) -> Result<(), WireError> {
        let verdict = if header.event_type == EventType::FORMAT_DESCRIPTION {
            FormatDescription::parse(event).and_then(|format| {
                self.checksum = format.checksum;
                format.checksum.verify_format_description(event)
            })
        } else {
            self.checksum.verify(event)
        };
        verdict.map_err(|error| protocol(error.to_string()))
    }

    /// The source has nothing more of the file.
    fn ends(&mut self, next: Option<String>) {
        let equal = Compared::Equal { next };
        self.result = Some(if self.at < self.ours.len { Compared::Differs { at: self.at } } else { equal });
    }

    fn differs(&mut self) {
        self.result = Some(Compared::Differs { at: self.at });
    }

    fn is_ours(&mut self, bytes: &[u8], at: u64) -> Result<bool, WireError> {
        if at + bytes.len() as u64 > self.ours.len {
            return Ok(false);
        }
        self.scratch.resize(bytes.len(), 0);
        let read = self.ours.file.read_full_at(&mut self.scratch, at);
        let failed = |reason| WireError::Io { during: "reading the copy to compare it", reason };
        Ok(read.map_err(failed)? == bytes.len() && self.scratch == bytes)
    }
}

/// Starts the dump `request`, which does not wait for more than there is, and gives its frames to `visit` until that breaks
/// off. Frames hold at most 1 MiB of an event.
///
/// # Errors
/// What `visit` says, everything that can happen to a connection, and [`WireError::Timeout`] when nothing arrives for
/// `silence`.
pub fn read_dump(
    connection: Connection,
    request: &[u8],
    silence: Duration,
    visit: &mut dyn FnMut(Frame<'_>) -> Result<ControlFlow<()>, WireError>,
) -> Result<(), WireError> {
    let waits = Waits { stop: &StopSignal::new(), clock: &SystemClock, pulse: None };
    walk(connection, request, COMPARE_BUFFER_LEN, Patience::Silence(silence), waits, visit)
}

/// Starts a dump and gives its frames to `visit` until that breaks off.
pub(crate) fn walk(
    connection: Connection,
    request: &[u8],
    buffer_len: usize,
    patience: Patience,
    Waits { stop, clock, pulse }: Waits<'_>,
    visit: &mut dyn FnMut(Frame<'_>) -> Result<ControlFlow<()>, WireError>,
) -> Result<(), WireError> {
    let (Patience::InAll(timeout) | Patience::Silence(timeout)) = patience;
    let mut deadline = clock.now() + timeout;
    let mut stream = connection.start_dump(request)?;
    let mut buffer = vec![0u8; buffer_len];
    let mut len = 0;
    // A look never offers semi-sync, so no packet carries its bytes.
    let mut framer = DumpFramer::new(false);
    loop {
        if let Some(pulse) = pulse {
            pulse.beat(Place::Asks);
        }
        let mut start = 0;
        while let Some((consumed, frame)) =
            framer.next(&buffer[start..len], buffer_len).map_err(|error| protocol(error.to_string()))?
        {
            if visit(frame)?.is_break() {
                return Ok(());
            }
            start += consumed;
        }
        buffer.copy_within(start..len, 0);
        len -= start;
        if !stream.pending() {
            let left = deadline.saturating_duration_since(clock.now());
            let woken = stop.wait_readable(stream.as_fd(), left);
            match woken.map_err(|reason| WireError::Io { during: DURING, reason })? {
                Woken::Readable => {}
                Woken::TimedOut | Woken::Stop => {
                    return Err(WireError::Timeout { during: DURING, after: timeout });
                }
            }
        }
        match stream.read(&mut buffer[len..]) {
            Ok(0) => return Err(WireError::Closed { during: DURING }),
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(reason) => return Err(WireError::Io { during: DURING, reason }),
        }
        if matches!(patience, Patience::Silence(_)) {
            deadline = clock.now() + timeout;
        }
    }
}

pub(crate) fn protocol(what: String) -> WireError {
    WireError::Protocol { during: DURING, what }
}

/// Takes the file's name from a ROTATE event; returns the format description when it comes.
fn event(
    bytes: &[u8],
    checksum: ChecksumAlgorithm,
    file: &mut Option<String>,
) -> Result<Option<FormatDescription>, String> {
    let header = EventHeader::parse(bytes).map_err(|error| error.to_string())?;
    match header.event_type {
        EventType::ROTATE => {
            let end = bytes.len().saturating_sub(checksum.len());
            let rotate = Rotate::parse(&bytes[..end]).map_err(|error| error.to_string())?;
            *file = Some(rotate.next_file.to_owned());
            Ok(None)
        }
        EventType::FORMAT_DESCRIPTION => {
            FormatDescription::parse(bytes).map(Some).map_err(|error| error.to_string())
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oldest(file: &str) -> Look {
        let format = FormatDescription {
            timestamp: 1,
            server_id: 1,
            server_version: "9.7.0".to_owned(),
            created: 0,
            post_header_lens: Vec::new(),
            checksum: ChecksumAlgorithm::Crc32,
        };
        Look { file: file.to_owned(), format, gtids_before: None }
    }

    #[test]
    fn what_is_purged_is_told_by_number() {
        let held = ["b.999998", "b.999999", "b.1000000"].map(str::to_owned);
        for (first, left) in [("b.000001", 3), ("b.999999", 2), ("b.1000000", 1), ("b.1000001", 0)] {
            assert_eq!(oldest(first).not_purged(&held).unwrap(), &held[3 - left..], "{first}");
        }
        // Where log_bin was renamed the numbers begin anew.
        let renamed = ["a.000008", "a.000009", "b.000001"].map(str::to_owned);
        assert_eq!(oldest("a.000009").not_purged(&renamed).unwrap(), &renamed[1..]);
        assert_eq!(oldest("b.000001").not_purged(&renamed).unwrap(), &renamed[2..]);
        assert!(oldest("b.1000000").begins_behind("b.999999").unwrap());
        assert!(!oldest("b.999999").begins_behind("b.999999").unwrap());
    }

    #[test]
    fn a_name_that_is_none_is_told_and_not_taken_for_the_first() {
        let held = ["b.000001", "binlog"].map(str::to_owned);
        let error = oldest("b.000001").not_purged(&held).unwrap_err().to_string();
        assert!(error.starts_with("\"binlog\" is no name of a binary log"), "{error}");
        assert!(oldest("b.000001").begins_behind("binlog").is_err());
    }
}
