//! Whole transactions, read back from a file of the copy.

use crate::storage::{ReadFile, Storage};
use crate::writer::admission::gtids_before;
use codec::event::boundary::BoundaryTracker;
use codec::event::{
    BINLOG_MAGIC, ChecksumAlgorithm, EventError, EventHeader, EventType, FormatDescription, GtidEvent,
    HEADER_LEN,
};
use codec::gtid::{GtidState, TransactionId};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The longest event that is read into memory, in bytes. A server takes no statement above its `max_allowed_packet`, which
/// is 1 GiB at most, and base64 makes four bytes of three.
pub const EVENT_BYTES_MAX: u32 = 768 << 20;

/// The longest transaction that is read into memory, in bytes.
pub(crate) const TRANSACTION_BYTES_MAX: u64 = 4 << 30;

/// One event of a file, verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its header.
    pub header: EventHeader,
    /// All of it but the checksum. The length in the header still counts the checksum.
    pub bytes: Vec<u8>,
}

/// One transaction with all its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTransaction {
    /// Its identifier; `None` for an anonymous one.
    pub id: Option<TransactionId>,
    /// Where it begins in its file.
    pub at: u64,
    /// Where it ends.
    pub end: u64,
    /// Its events, the GTID event first if it has one.
    pub events: Vec<StoredEvent>,
}

/// Takes the events of a transaction one by one, see [`TransactionReader::pass`]; what it says ends the reading.
pub(crate) type EventSink<'a> = dyn FnMut(Option<(&EventHeader, &[u8])>) -> Result<(), String> + 'a;

/// Reads a file of the copy, one transaction after another.
#[derive(Debug)]
pub struct TransactionReader {
    path: PathBuf,
    file: BufReader<Reading>,
    at: u64,
    checksum: ChecksumAlgorithm,
    tracker: BoundaryTracker,
    format_event: Vec<u8>,
}

impl TransactionReader {
    /// Opens a file and reads its format description.
    ///
    /// # Errors
    /// When the file cannot be read or does not begin as a binary log; the message names it.
    pub fn open(storage: &dyn Storage, path: &Path) -> io::Result<TransactionReader> {
        TransactionReader::open_with(storage, path, 1 << 20)
    }

    /// As [`open`](Self::open), for who wants the first events only: no more than a few KiB are read at a time.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_head(storage: &dyn Storage, path: &Path) -> io::Result<TransactionReader> {
        TransactionReader::open_with(storage, path, 1 << 13)
    }

    fn open_with(storage: &dyn Storage, path: &Path, buffer_len: usize) -> io::Result<TransactionReader> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let file = Reading { file: storage.open_read(path).map_err(named)?, at: 0 };
        let mut reader = TransactionReader {
            path: path.to_owned(),
            file: BufReader::with_capacity(buffer_len, file),
            at: 0,
            checksum: ChecksumAlgorithm::None,
            tracker: BoundaryTracker::new(),
            format_event: Vec::new(),
        };
        let mut magic = [0; 4];
        reader.file.read_exact(&mut magic).map_err(named)?;
        if magic != BINLOG_MAGIC {
            return Err(reader.damaged("it does not begin as a binary log"));
        }
        reader.at = 4;
        let Some((header, bytes)) = reader.raw_event()? else {
            return Err(reader.damaged("it ends before its first event"));
        };
        if header.event_type != EventType::FORMAT_DESCRIPTION {
            return Err(reader.damaged("its first event is no format description"));
        }
        let format = FormatDescription::parse(&bytes).map_err(|error| reader.damaged(&error.to_string()))?;
        reader.checksum = format.checksum;
        reader.format_event = bytes;
        Ok(reader)
    }

    /// The file's format description, checksum included.
    pub fn format_event(&self) -> &[u8] {
        &self.format_event
    }

    /// GTIDs executed before the file by its own word, where one of the first events after the format description says so.
    /// Reads on in the file: to be asked right after opening it.
    ///
    /// # Errors
    /// When reading fails or the event cannot be decoded.
    pub fn gtids_before(&mut self) -> io::Result<Option<GtidState>> {
        while let Some((header, mut bytes)) = self.raw_event()? {
            match header.event_type {
                EventType::PREVIOUS_GTIDS | EventType::MARIADB_GTID_LIST => {
                    self.verify(&header, &bytes).map_err(|error| self.damaged(&error.to_string()))?;
                    bytes.truncate(bytes.len() - self.checksum.len());
                    let state = gtids_before(header.event_type, &bytes[HEADER_LEN..]);
                    return state.map(Some).map_err(|error| self.damaged(&error.to_string()));
                }
                EventType::MARIADB_START_ENCRYPTION => {}
                _ => break,
            }
        }
        Ok(None)
    }

    /// Goes to a place where a transaction begins. What is in the buffer is not read again.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn seek(&mut self, at: u64) -> io::Result<()> {
        match i64::try_from(i128::from(at) - i128::from(self.file.stream_position()?)) {
            Ok(distance) => self.file.seek_relative(distance)?,
            Err(_) => drop(self.file.seek(SeekFrom::Start(at))?),
        }
        self.at = at;
        self.tracker = BoundaryTracker::new();
        Ok(())
    }

    /// The next complete transaction that `wanted` says yes to; the others are passed over without being kept. `None` at the
    /// end of the file, where a transaction may have been begun and not ended.
    ///
    /// # Errors
    /// When reading fails or an event is damaged; the message names the file and the place.
    pub fn next(
        &mut self,
        wanted: impl FnMut(Option<&TransactionId>) -> bool,
    ) -> io::Result<Option<StoredTransaction>> {
        let (mut events, mut size) = (Vec::new(), 0);
        let passed = self.pass(wanted, &mut |event| {
            let Some((header, bytes)) = event else {
                events.clear();
                size = 0;
                return Ok(());
            };
            size += bytes.len() as u64;
            if size > TRANSACTION_BYTES_MAX {
                return Err("a transaction above 4 GiB cannot be taken into memory".to_owned());
            }
            events.push(StoredEvent { header: *header, bytes: bytes.to_vec() });
            Ok(())
        })?;
        Ok(passed.map(|(id, at, end)| StoredTransaction { id, at, end, events }))
    }

    /// Passes the events of the next complete transaction that `wanted` says yes to on to `sink`, one by one and without
    /// checksums, so that no transaction is too long. `None` is given first, and again when what came before it was never
    /// ended and is to be forgotten. Returns the transaction's identifier and where it begins and ends; `None` at the end of
    /// the file.
    ///
    /// # Errors
    /// As [`next`](Self::next), and what `sink` says, with the transaction's place.
    pub fn pass(
        &mut self,
        mut wanted: impl FnMut(Option<&TransactionId>) -> bool,
        sink: &mut EventSink<'_>,
    ) -> io::Result<Option<(Option<TransactionId>, u64, u64)>> {
        let (mut began, mut keep) = (self.at, None);
        loop {
            let at = self.at;
            let Some((header, mut bytes)) = self.raw_event()? else { return Ok(None) };
            self.verify(&header, &bytes).map_err(|error| self.damaged_at(at, &error.to_string()))?;
            bytes.truncate(bytes.len() - self.checksum.len());
            let step = self
                .tracker
                .advance(&header, &bytes, at, self.at)
                .map_err(|error| self.damaged_at(at, &error.to_string()))?;
            if step.abandoned || GtidEvent::is_gtid(header.event_type) {
                keep = None;
            }
            if keep.is_none() {
                began = at;
                let gtid = GtidEvent::is_gtid(header.event_type).then(|| GtidEvent::parse(&header, &bytes));
                let gtid = gtid.transpose().map_err(|error| self.damaged_at(at, &error.to_string()))?;
                let id = gtid.and_then(|gtid| gtid.id);
                keep = Some(wanted(id.as_ref()));
                if keep == Some(true) {
                    sink(None).map_err(|what| self.damaged_at(began, &what))?;
                }
            }
            if keep == Some(true) {
                sink(Some((&header, &bytes))).map_err(|what| self.damaged_at(began, &what))?;
                if step.transaction {
                    return Ok(Some((self.tracker.committed(), began, self.at)));
                }
            }
            if step.boundary {
                keep = None;
            }
        }
    }

    fn verify(&self, header: &EventHeader, bytes: &[u8]) -> Result<(), EventError> {
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            return self.checksum.verify_format_description(bytes);
        }
        self.checksum.verify(bytes)
    }

    /// The next event with its checksum; `None` at the end of the file, also inside an event, which a live file may have.
    fn raw_event(&mut self) -> io::Result<Option<(EventHeader, Vec<u8>)>> {
        let mut bytes = vec![0; HEADER_LEN];
        if !self.fill(&mut bytes)? {
            return Ok(None);
        }
        let header = EventHeader::parse(&bytes).map_err(|error| self.damaged(&error.to_string()))?;
        if header.event_size > EVENT_BYTES_MAX {
            return Err(self.damaged("an event above 768 MiB cannot be taken into memory"));
        }
        // As the bytes come: the length may be damaged.
        let body = u64::from(header.event_size) - HEADER_LEN as u64;
        let read = (&mut self.file).take(body).read_to_end(&mut bytes)?;
        if read as u64 != body {
            return Ok(None);
        }
        self.at += u64::from(header.event_size);
        Ok(Some((header, bytes)))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<bool> {
        match self.file.read_exact(bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))),
        }
    }

    fn damaged(&self, what: &str) -> io::Error {
        self.damaged_at(self.at, what)
    }

    fn damaged_at(&self, at: u64, what: &str) -> io::Error {
        let text = format!("{} at {at}: {what}; binlogd verify says more", self.path.display());
        io::Error::new(ErrorKind::InvalidData, text)
    }
}

/// A file that is read from one place on.
#[derive(Debug)]
struct Reading {
    file: Box<dyn ReadFile>,
    at: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Reading {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.size()?.checked_add_signed(by),
        };
        self.at = at.ok_or(ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// What was executed before a file by its own word; `None` where it does not say so, or not yet. A damaged head says nothing
/// either: then the file may hold anything, and who reads on in it tells of the damage.
pub(crate) fn stated_before(storage: &dyn Storage, path: &Path) -> io::Result<Option<GtidState>> {
    match TransactionReader::open(storage, path) {
        Ok(mut reader) => match reader.gtids_before() {
            // After a loss of power the first bytes of a file that was just begun may be anything, and are not cut off yet.
            Err(error) if error.kind() == ErrorKind::InvalidData => Ok(None),
            stated => stated,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::posix::PosixStorage;
    use crate::testing::{FileBuilder, SERVER_UUID};

    fn written(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        std::fs::write(&path, bytes).unwrap();
        (dir, path)
    }

    #[test]
    fn wanted_transactions_come_whole_and_in_order() {
        let file = FileBuilder::new()
            .previous_gtids("")
            .transaction(1, 50)
            .transaction(2, 60)
            .transaction(3, 70)
            .rotate("b.000002")
            .finish();
        let (_dir, path) = written(&file);
        let mut reader = TransactionReader::open(&PosixStorage, &path).unwrap();
        let not_two =
            |id: Option<&TransactionId>| id.is_some_and(|id| id.to_string() != format!("{SERVER_UUID}:2"));
        let first = reader.next(not_two).unwrap().unwrap();
        let third = reader.next(not_two).unwrap().unwrap();
        assert_eq!(reader.next(not_two).unwrap(), None);
        assert_eq!(third.id.unwrap().to_string(), format!("{SERVER_UUID}:3"));
        assert!(first.end < third.at && first.events.len() >= 2);
        let sizes: u64 = third.events.iter().map(|event| u64::from(event.header.event_size)).sum();
        assert_eq!(sizes, third.end - third.at);

        reader.seek(third.at).unwrap();
        assert_eq!(reader.next(|_| true).unwrap().as_ref(), Some(&third));
    }

    /// As a loss of power leaves a file that was just begun, before it is recovered.
    #[test]
    fn what_is_damaged_behind_the_format_description_states_nothing() {
        let format_end = FileBuilder::new().len();
        let sound = FileBuilder::new().previous_gtids("").finish();
        let stated = |bytes: &[u8]| {
            let (_dir, path) = written(bytes);
            stated_before(&PosixStorage, &path).unwrap()
        };
        assert!(stated(&sound).is_some());
        for at in [format_end + 9, format_end + 12, sound.len() - 1] {
            let mut damaged = sound.clone();
            damaged[at] ^= 0xff;
            assert_eq!(stated(&damaged), None, "byte {at}");
        }
        assert_eq!(stated(&sound[..format_end]), None, "not yet");
    }

    #[test]
    fn events_are_passed_on_one_by_one() {
        let file = FileBuilder::new().previous_gtids("").transaction(1, 50).transaction(2, 60).finish();
        let (_dir, path) = written(&file);
        let whole = TransactionReader::open(&PosixStorage, &path).unwrap().next(|_| true).unwrap().unwrap();
        let mut reader = TransactionReader::open(&PosixStorage, &path).unwrap();
        let mut passed = Vec::new();
        let mut sink = |event: Option<(&EventHeader, &[u8])>| {
            match event {
                None => passed.clear(),
                Some((header, bytes)) => passed.push(StoredEvent { header: *header, bytes: bytes.to_vec() }),
            }
            Ok(())
        };
        assert_eq!(reader.pass(|_| true, &mut sink).unwrap(), Some((whole.id, whole.at, whole.end)));
        assert_eq!(reader.pass(|_| false, &mut sink).unwrap(), None);
        assert_eq!(passed, whole.events);
        reader.seek(whole.at).unwrap();
        let error = reader.pass(|_| true, &mut |_| Err("not this".into())).unwrap_err().to_string();
        assert!(error.contains(&format!("b.000001 at {}: not this", whole.at)), "{error}");
    }

    #[test]
    fn an_unfinished_end_is_no_transaction_and_damage_is_named() {
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 50);
        let whole = builder.len();
        let file = builder.transaction(2, 50).finish();
        for len in [whole + 10, whole + 40, file.len() - 1] {
            let (_dir, path) = written(&file[..len]);
            let mut reader = TransactionReader::open(&PosixStorage, &path).unwrap();
            assert!(reader.next(|_| true).unwrap().is_some());
            assert_eq!(reader.next(|_| true).unwrap(), None, "{len} bytes");
        }
        let mut damaged = file.clone();
        damaged[whole + 25] ^= 1;
        let (_dir, path) = written(&damaged);
        let mut reader = TransactionReader::open(&PosixStorage, &path).unwrap();
        reader.next(|_| true).unwrap();
        let error = reader.next(|_| true).unwrap_err().to_string();
        assert!(error.contains(&format!("b.000001 at {whole}: event checksum")), "{error}");
        let (_dir, path) = written(b"nonsense");
        assert!(
            TransactionReader::open(&PosixStorage, &path)
                .unwrap_err()
                .to_string()
                .contains("begin as a binary log")
        );
    }
}
