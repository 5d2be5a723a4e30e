//! SHOW BINLOG EVENTS: the events of a file, one row each, as they are read. A listing needs little memory, however long the
//! file is and its events are, and ends when the client is gone.
//!
//! The events of a compressed transaction follow it, all at its end, as MySQL shows them.

mod info;
mod names;
mod style;
mod user_variable;

use super::history::History;
use super::sql::Limit;
use crate::dump::stream::prove;
use crate::history::head::Head;
use crate::port::shared::Source;
use binlog::storage::ReadFile;
use binlog::writer::published::Live;
use codec::ServerKind;
use codec::event::{EventHeader, EventType, HEADER_LEN, PayloadCompression, PayloadHead};
use info::{LOOKED_AT_MAX, Shown, info, looked_at};
use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use style::Style;

/// Where the first event of a file stands.
const FIRST_EVENT: u64 = 4;

/// How much is read from a file at once, in bytes.
const WINDOW_BYTES: u64 = 64 << 10;

/// The memory that a compressed transaction may make its decoder use, as a power of 2 in bytes: servers write less.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Since when MySQL begins behind a place within the head of a file instead of refusing it, and since when it names the place.
const MYSQL_SKIPS: u32 = 80_000;
const MYSQL_NAMES_PLACE: u32 = 90_000;

/// What is to be listed.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// Name of the file.
    pub(crate) file: &'a str,
    /// Where to begin.
    pub(crate) from: u64,
    /// End of what readers may have of the file.
    pub(crate) end: u64,
    /// Which of the rows.
    pub(crate) limit: Limit,
}

/// One row.
#[derive(Debug)]
pub(crate) struct EventRow<'a> {
    pub(crate) at: u64,
    pub(crate) event_type: &'static str,
    pub(crate) server_id: u32,
    pub(crate) end: u64,
    pub(crate) info: &'a [u8],
}

/// Why a listing ends before its time.
#[derive(Debug)]
pub(crate) enum ListError {
    /// In a server's words, for behind "Error when executing command SHOW BINLOG EVENTS: ".
    Refused(String),
    /// The copy cannot be read, which is told to the log.
    File(io::Error),
    /// The client cannot be written to, or is to go.
    Client(io::Error),
}

impl From<io::Error> for ListError {
    fn from(error: io::Error) -> ListError {
        ListError::File(error)
    }
}

/// What takes the rows; `None` in between, where much is read for no row, to ask whether the listing is still wanted. An error ends
/// it.
pub(crate) type Take<'a> = dyn FnMut(Option<&EventRow<'_>>) -> io::Result<()> + 'a;

/// How much is read at most, in bytes, before somebody looks whether the listing is still wanted.
const ASKED_BYTES: u64 = 1 << 20;

/// A file that is listed.
pub(crate) struct Listing<'a> {
    source: &'a Source,
    live: Arc<Live>,
    style: Style,
    path: PathBuf,
    head: Head,
    wanted: Wanted<'a>,
    window: Vec<u8>,
    /// Where in the file the window begins.
    window_at: u64,
    /// Rows that the limit still passes over, and those that it still lets through.
    passed_over: u64,
    left: u64,
    /// Read since it was asked whether the listing is still wanted, in bytes.
    unasked: u64,
}

impl<'a> Listing<'a> {
    /// Opens the file, and finds the place at which the listing begins.
    ///
    /// # Errors
    /// When there is no such file, or no event at the place.
    pub(crate) fn open(
        source: &'a Source,
        kind: ServerKind,
        version: &str,
        wanted: Wanted<'a>,
    ) -> Result<Listing<'a>, ListError> {
        let no_file = || ListError::Refused("Could not find target log".to_owned());
        let live = source.published.live().ok_or_else(no_file)?;
        let history = History::read(&*source.storage, &source.folder, &live)?;
        let path = history.path(history.named(wanted.file).ok_or_else(no_file)?);
        let head = Head::read(&*source.storage, &path, wanted.end)?;
        let (passed_over, left) = (wanted.limit.offset, wanted.limit.rows);
        let style = Style::of(kind, version);
        let mut listing = Listing {
            source,
            live,
            style,
            path,
            head,
            wanted,
            window: Vec::new(),
            window_at: 0,
            passed_over,
            left,
            unasked: 0,
        };
        listing.wanted.from = listing.begin()?;
        Ok(listing)
    }

    /// The place of the first event that is listed.
    fn begin(&mut self) -> Result<u64, ListError> {
        let Wanted { from, end, .. } = self.wanted;
        if from <= FIRST_EVENT {
            return Ok(FIRST_EVENT);
        }
        if from > end && self.style.kind == ServerKind::MariaDb {
            return Err(ListError::Refused(format!(
                "Invalid pos specified. Requested from pos:{from} is greater than actual file size:{end}"
            )));
        }
        if from >= end {
            return Ok(end);
        }
        if self.style.kind == ServerKind::MySql && self.style.version >= MYSQL_SKIPS {
            // It reads the head of the file, and one event more.
            let (mut at, mut is_head) = (FIRST_EVENT, true);
            while is_head && at < from && at < end {
                let header = self.header(at)?;
                is_head =
                    matches!(header.event_type, EventType::FORMAT_DESCRIPTION | EventType::PREVIOUS_GTIDS);
                at += u64::from(header.event_size);
            }
            if at >= from {
                return Ok(at);
            }
        }
        let wrong = self.wrong_place();
        let Ok(header) = self.header(from) else { return Err(ListError::Refused(wrong)) };
        let size = u64::from(header.event_size);
        let (checksum, here) = (self.head.checksum(), size.min(LOOKED_AT_MAX));
        let is_event =
            from + size <= end && prove(&header, self.view(from, here)?, from + size, checksum).is_ok();
        if is_event { Ok(from) } else { Err(ListError::Refused(wrong)) }
    }

    fn wrong_place(&self) -> String {
        const INVALID: &str = "Found invalid event in binary log";
        match (self.style.kind, self.style.version) {
            (ServerKind::MySql, MYSQL_NAMES_PLACE..) => {
                format!(
                    "Error reading Log_event at position {}: Failed decoding event: {INVALID}",
                    self.wanted.from
                )
            }
            (ServerKind::MySql, MYSQL_SKIPS..) => INVALID.to_owned(),
            _ => "Wrong offset or I/O error".to_owned(),
        }
    }

    /// Gives the rows.
    ///
    /// # Errors
    /// When the copy cannot be read, or `take` fails.
    pub(crate) fn each(&mut self, take: &mut Take<'_>) -> Result<(), ListError> {
        let mut at = self.wanted.from;
        while at < self.wanted.end && self.left > 0 {
            let header = self.header(at)?;
            let end = at + u64::from(header.event_size);
            if end > self.wanted.end {
                return Err(ListError::Refused(self.wrong_place()));
            }
            let checksum = self.head.checksum().len() as u64;
            let len = u64::from(header.event_size).saturating_sub(checksum).max(HEADER_LEN as u64);
            let style = self.style;
            let text = match self.passed_over {
                0 => {
                    let bytes = self.view(at, len.min(looked_at(header.event_type)))?;
                    info(style, &Shown { header, bytes, len }).unwrap_or_default()
                }
                _ => Vec::new(),
            };
            let shown_end = u64::from(header.log_pos);
            self.row(at, &header, shown_end, &text, take)?;
            self.has_read(u64::from(header.event_size), take)?;
            if header.event_type == EventType::TRANSACTION_PAYLOAD {
                self.packed(at, len, end, shown_end, take)?;
            }
            at = end;
        }
        Ok(())
    }

    fn row(
        &mut self,
        at: u64,
        header: &EventHeader,
        end: u64,
        info: &[u8],
        take: &mut Take<'_>,
    ) -> Result<(), ListError> {
        if self.passed_over > 0 {
            self.passed_over -= 1;
            return Ok(());
        }
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        let event_type = names::name(header.event_type);
        let row = EventRow { at, event_type, server_id: header.server_id, end, info };
        take(Some(&row)).map_err(ListError::Client)
    }

    /// So much was read, of the file or of what is packed in it.
    fn has_read(&mut self, bytes: u64, take: &mut Take<'_>) -> Result<(), ListError> {
        self.unasked += bytes;
        if self.unasked >= ASKED_BYTES {
            self.unasked = 0;
            take(None).map_err(ListError::Client)?;
        }
        Ok(())
    }

    /// The events of a compressed transaction that stands at `at`, `len` bytes long without its checksum.
    fn packed(
        &mut self,
        at: u64,
        len: u64,
        end: u64,
        shown_end: u64,
        take: &mut Take<'_>,
    ) -> Result<(), ListError> {
        let broken = || ListError::Refused("Found invalid event in binary log".to_owned());
        let first = len.min(PayloadHead::BYTES_MAX as u64);
        let head = PayloadHead::parse(self.view(at, first)?).map_err(|_| broken())?;
        let file = Section {
            file: self.source.storage.open_read(&self.path)?,
            at: at + head.payload_at as u64,
            end: at + len,
        };
        let mut events: Box<dyn Read> = match head.compression {
            PayloadCompression::None => Box::new(BufReader::new(file)),
            PayloadCompression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::new(file)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Box::new(BufReader::new(decoder))
            }
        };
        while self.left > 0 {
            let mut event = Vec::new();
            (&mut events).take(HEADER_LEN as u64).read_to_end(&mut event)?;
            if event.is_empty() {
                break;
            }
            let header = EventHeader::parse(&event).map_err(|_| broken())?;
            let len = u64::from(header.event_size);
            let here = len.min(looked_at(header.event_type)).saturating_sub(HEADER_LEN as u64);
            (&mut events).take(here).read_to_end(&mut event)?;
            let mut rest = len.checked_sub(event.len() as u64).ok_or_else(broken)?;
            while rest > 0 {
                let part = rest.min(ASKED_BYTES);
                if io::copy(&mut (&mut events).take(part), &mut io::sink())? < part {
                    return Err(broken());
                }
                rest -= part;
                self.has_read(part, take)?;
            }
            let text = info(self.style, &Shown { header, bytes: &event, len }).unwrap_or_default();
            self.row(end, &header, shown_end, &text, take)?;
            self.has_read(event.len() as u64, take)?;
        }
        Ok(())
    }

    fn header(&mut self, at: u64) -> Result<EventHeader, ListError> {
        let wrong = self.wrong_place();
        EventHeader::parse(self.view(at, HEADER_LEN as u64)?).map_err(|_| ListError::Refused(wrong))
    }

    /// So many bytes of the file, or as many as readers may have of it.
    fn view(&mut self, at: u64, len: u64) -> Result<&[u8], ListError> {
        let end = (at + len).min(self.wanted.end);
        let held = self.window_at..self.window_at + self.window.len() as u64;
        if at < held.start || end > held.end {
            // Below a reader the files may become others, when a copy is opened again.
            if !self.source.published.is_current(&self.live) {
                return Err(ListError::Refused(
                    "I/O error reading the header from the binary log".to_owned(),
                ));
            }
            let wanted = (end - at).max(WINDOW_BYTES).min(self.wanted.end - at);
            self.window.resize(wanted as usize, 0);
            let read = self.head.file.read_full_at(&mut self.window, at)?;
            self.window.truncate(read);
            self.window_at = at;
        }
        let start = (at - self.window_at) as usize;
        let end = ((end - self.window_at) as usize).min(self.window.len());
        Ok(&self.window[start.min(end)..end])
    }
}

/// A part of a file, from its beginning to its end.
struct Section {
    file: Box<dyn ReadFile>,
    at: u64,
    end: u64,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..len], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
