//! The source's binary log: whole, valid files in memory.

use crate::event::{self, Head};
use codec::event::{BINLOG_MAGIC, EventType, HEADER_LEN, flags};
use codec::gtid::{Gtid, GtidSet, Tag, Uuid};

/// What the log's events say of their writer.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// `log_bin`: the files are called `<base_name>.000001` and so on.
    pub base_name: String,
    /// Version in the format descriptions.
    pub server_version: String,
    /// `server_id`.
    pub server_id: u32,
    /// `server_uuid`.
    pub uuid: [u8; 16],
    /// Time of the first file in seconds since 1970; each later file is a second younger. All else being equal, it
    /// tells a log from one that was begun anew.
    pub timestamp: u32,
    /// Added to the time of each transaction: what tells two logs apart that were begun in one second.
    pub microseconds: u32,
    /// GTID events (`gtid_mode = ON`) instead of anonymous ones.
    pub gtids: bool,
    /// `binlog_checksum = CRC32`.
    pub checksum: bool,
    /// Begin the next file after the transaction that makes a file this long, in bytes.
    pub rotate_after: u64,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            base_name: "mysql-bin".to_owned(),
            server_version: "9.7.0".to_owned(),
            server_id: 1,
            uuid: [0xab; 16],
            timestamp: 1_700_000_000,
            microseconds: 0,
            gtids: true,
            checksum: true,
            rotate_after: 1 << 30,
        }
    }
}

/// A place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Bare file name.
    pub file: String,
    /// Offset in bytes.
    pub position: u64,
}

/// One file.
#[derive(Debug, Clone)]
pub struct LogFile {
    /// Bare name.
    pub name: String,
    /// Everything in it, the magic included.
    pub bytes: Vec<u8>,
    /// Where its events begin, and whether the source asks for an acknowledgement of them.
    events: Vec<(usize, bool)>,
    /// What was executed before the file, transactions of other servers among it.
    before: GtidSet,
}

impl LogFile {
    /// Count of events.
    pub fn event_count(&self) -> usize {
        self.events.len()
    }

    /// An event's bytes and whether an acknowledgement is wanted; `None` past the end.
    pub fn event(&self, index: usize) -> Option<(&[u8], bool)> {
        let (begin, flagged) = *self.events.get(index)?;
        let end = self.events.get(index + 1).map_or(self.bytes.len(), |next| next.0);
        Some((&self.bytes[begin..end], flagged))
    }

    /// The last place up to `position` at which an acknowledgement is wanted.
    pub fn flagged_until(&self, position: u64) -> Option<u64> {
        let ends =
            (0..self.events.len()).filter(|index| self.events[*index].1).map(|index| self.end_of(index));
        ends.take_while(|end| *end <= position).last()
    }

    /// The event that begins at `position`; the count of events for the file's end.
    pub fn event_at(&self, position: u64) -> Option<usize> {
        if position == self.bytes.len() as u64 {
            return Some(self.events.len());
        }
        self.events.binary_search_by_key(&position, |(begin, _)| *begin as u64).ok()
    }

    /// End of an event.
    pub fn end_of(&self, index: usize) -> u64 {
        self.events.get(index + 1).map_or(self.bytes.len(), |next| next.0) as u64
    }
}

/// All files that the source has. Each method appends valid bytes; what is wrong on the wire is a
/// [`Fault`](crate::Fault) and never stands here.
#[derive(Debug, Clone)]
pub struct SourceLog {
    options: LogOptions,
    files: Vec<LogFile>,
    /// Number of the first file that is still there, counted from 0.
    first: usize,
    next_gno: u64,
    /// Transactions in the current file, for the logical clock.
    sequence: u64,
    /// GTIDs of other servers that it has executed: as their replica, or because it began as their copy.
    applied: GtidSet,
}

impl SourceLog {
    /// A log of one file without transactions.
    pub fn new(options: LogOptions) -> SourceLog {
        SourceLog::copied(options, GtidSet::new())
    }

    /// A log of one file without transactions, of a server that began as a copy of one that had executed `applied`. None of
    /// these may be its own.
    pub fn copied(options: LogOptions, applied: GtidSet) -> SourceLog {
        let mut log = SourceLog { options, files: Vec::new(), first: 0, next_gno: 1, sequence: 0, applied };
        log.begin_file();
        log
    }

    /// From now on events are of this time, in seconds since 1970: after a restart, for example.
    pub fn set_timestamp(&mut self, timestamp: u32) {
        self.options.timestamp = timestamp;
    }

    /// What it was made with.
    pub fn options(&self) -> &LogOptions {
        &self.options
    }

    /// The files, oldest first.
    pub fn files(&self) -> &[LogFile] {
        &self.files
    }

    /// A file by its name.
    pub fn file(&self, name: &str) -> Option<&LogFile> {
        self.files.iter().find(|file| file.name == name)
    }

    /// End of the last file.
    pub fn end(&self) -> Place {
        let file = self.live();
        Place { file: file.name.clone(), position: file.bytes.len() as u64 }
    }

    /// `gtid_executed`.
    pub fn executed(&self) -> String {
        self.executed_set().to_string()
    }

    /// `gtid_purged`.
    pub fn purged(&self) -> String {
        self.purged_set().to_string()
    }

    /// As [`SourceLog::purged`], as a set.
    pub fn purged_set(&self) -> &GtidSet {
        &self.files[0].before
    }

    /// One transaction: GTID, BEGIN, TABLE_MAP, WRITE_ROWS with a payload of `payload_len` bytes, XID.
    pub fn transaction(&mut self, payload_len: usize) {
        let number = self.next_gno;
        let rest = [
            (EventType::QUERY, event::query("BEGIN")),
            (EventType::TABLE_MAP, event::table_map()),
            (EventType::WRITE_ROWS, event::write_rows(number, payload_len)),
            (EventType::XID, event::xid(number)),
        ];
        self.append_transaction(&rest);
    }

    /// A statement that is a transaction by itself.
    pub fn ddl(&mut self, statement: &str) {
        self.append_transaction(&[(EventType::QUERY, event::query(statement))]);
    }

    /// A compressed transaction: GTID and TRANSACTION_PAYLOAD. It is the caller's to say what `compressed` holds and how
    /// long it claims to be when it is not.
    pub fn compressed_transaction(&mut self, compressed: &[u8], uncompressed_len: u64) {
        let body = event::transaction_payload(compressed, uncompressed_len);
        self.append_transaction(&[(EventType::TRANSACTION_PAYLOAD, body)]);
    }

    /// A flush group of `count` transactions; an acknowledgement is wanted at its end, as MySQL does it.
    pub fn group(&mut self, count: usize, payload_len: usize) {
        for _ in 0..count {
            self.transaction(payload_len);
        }
        self.flag_last();
    }

    /// Asks for an acknowledgement of the last event.
    pub fn flag_last(&mut self) {
        let file = self.files.iter_mut().rev().find(|file| file.events.len() > 2);
        if let Some(last) = file.and_then(|file| file.events.last_mut()) {
            last.1 = true;
        }
    }

    /// Length in bytes of a transaction with a payload of `payload_len` bytes, as the next one would be.
    pub fn transaction_len(&self, payload_len: usize) -> usize {
        let mut scratch = SourceLog::new(LogOptions { rotate_after: u64::MAX, ..self.options.clone() });
        let before = scratch.live().bytes.len();
        scratch.transaction(payload_len);
        scratch.live().bytes.len() - before
    }

    /// Any event, with a position and checksum that fit.
    pub fn event(&mut self, event_type: EventType, body: &[u8]) {
        let head = self.head(event_type);
        let checksum = self.options.checksum;
        let file = self.live_mut();
        let begin = file.bytes.len();
        file.events.push((begin, false));
        event::append(&mut file.bytes, head, |size| (begin + size) as u32, body, checksum);
    }

    /// Ends the file with ROTATE and begins the next, as FLUSH BINARY LOGS does.
    pub fn rotate(&mut self) {
        let next = self.file_name(self.first + self.files.len());
        self.event(EventType::ROTATE, &event::rotate(4, &next));
        self.begin_file();
    }

    /// Ends the file with STOP and begins the next, as a clean restart does.
    pub fn restart(&mut self) {
        self.event(EventType::STOP, &[]);
        self.begin_file();
    }

    /// As [`restart`](Self::restart), but the next file says that `set`, an encoded GTID set, was executed before it.
    pub fn restart_saying(&mut self, set: &[u8]) {
        self.event(EventType::STOP, &[]);
        self.begin_file_saying(set);
    }

    /// Begins the next file without a word at the end of this one, as after a crash.
    pub fn crash(&mut self) {
        self.begin_file();
    }

    /// Drops the `count` oldest files, but never the last one (PURGE BINARY LOGS).
    pub fn purge(&mut self, count: usize) {
        let count = count.min(self.files.len() - 1);
        self.files.drain(..count);
        self.first += count;
    }

    /// The file with this number, counted from 0 over purged ones too.
    pub(crate) fn numbered(&self, number: usize) -> Option<&LogFile> {
        self.files.get(number.checked_sub(self.first)?)
    }

    /// Number of the named file; of the oldest one for an empty name.
    pub(crate) fn number_of(&self, name: &str) -> Option<usize> {
        let index = if name.is_empty() { 0 } else { self.files.iter().position(|file| file.name == name)? };
        Some(self.first + index)
    }

    /// Number of the newest file before which nothing outside `set` was executed.
    pub(crate) fn number_for_gtids(&self, set: &GtidSet) -> Option<usize> {
        let index = self.files.iter().rposition(|file| set.contains_set(&file.before))?;
        Some(self.first + index)
    }

    /// A transaction of these events, after the GTID event that opens it.
    pub fn append_transaction(&mut self, rest: &[(EventType, Vec<u8>)]) {
        let (event_type, uuid, gno) = if self.options.gtids {
            (EventType::GTID, self.options.uuid, self.next_gno)
        } else {
            (EventType::ANONYMOUS_GTID, [0; 16], 0)
        };
        self.next_gno += 1;
        self.append_under(event_type, &uuid, gno, rest);
    }

    /// A transaction of another server, which this one has applied as its replica (`log_replica_updates = ON`).
    pub fn append_applied(&mut self, gtid: Gtid, rest: &[(EventType, Vec<u8>)]) {
        self.applied.insert(gtid);
        self.append_under(EventType::GTID, gtid.uuid.as_bytes(), gtid.gno, rest);
    }

    fn append_under(
        &mut self,
        event_type: EventType,
        uuid: &[u8; 16],
        gno: u64,
        rest: &[(EventType, Vec<u8>)],
    ) {
        let trailer = HEADER_LEN + if self.options.checksum { 4 } else { 0 };
        let rest_len: usize = rest.iter().map(|(_, body)| body.len() + trailer).sum();
        self.sequence += 1;
        let seconds = u64::from(self.head(event_type).timestamp);
        let time = seconds * 1_000_000 + u64::from(self.options.microseconds);
        let gtid = event::gtid(uuid, gno, self.sequence, rest_len as u64, time, self.options.checksum);
        self.event(event_type, &gtid);
        for (event_type, body) in rest {
            self.event(*event_type, body);
        }
        if self.live().bytes.len() as u64 >= self.options.rotate_after {
            self.rotate();
        }
    }

    fn begin_file(&mut self) {
        let mut set = Vec::new();
        self.executed_set().encode(&mut set);
        self.begin_file_saying(&set);
    }

    fn begin_file_saying(&mut self, set: &[u8]) {
        let name = self.file_name(self.first + self.files.len());
        let before = self.executed_set();
        self.files.push(LogFile { name, before, bytes: BINLOG_MAGIC.to_vec(), events: Vec::new() });
        self.sequence = 0;
        let created = if self.first + self.files.len() == 1 { self.options.timestamp } else { 0 };
        let body = event::format_description(&self.options.server_version, created, self.options.checksum);
        self.event(EventType::FORMAT_DESCRIPTION, &body);
        self.event(EventType::PREVIOUS_GTIDS, set);
    }

    /// `gtid_executed`, as a set.
    pub fn executed_set(&self) -> GtidSet {
        let mut set = self.applied.clone();
        if self.options.gtids && self.next_gno > 1 {
            let uuid = Uuid::from_bytes(self.options.uuid);
            set.insert_interval(uuid, Tag::default(), 1, self.next_gno - 1);
        }
        set
    }

    /// Name of the file with this number, counted from 0 over purged ones too.
    pub(crate) fn file_name(&self, number: usize) -> String {
        format!("{}.{:06}", self.options.base_name, number + 1)
    }

    fn head(&self, event_type: EventType) -> Head {
        let age = (self.first + self.files.len()) as u32 - 1;
        let flags = if event_type == EventType::PREVIOUS_GTIDS { flags::IGNORABLE } else { 0 };
        Head { timestamp: self.options.timestamp + age, event_type, server_id: self.options.server_id, flags }
    }

    fn live(&self) -> &LogFile {
        &self.files[self.files.len() - 1]
    }

    fn live_mut(&mut self) -> &mut LogFile {
        let last = self.files.len() - 1;
        &mut self.files[last]
    }
}

impl Default for SourceLog {
    fn default() -> SourceLog {
        SourceLog::new(LogOptions::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::event::boundary::BoundaryTracker;
    use codec::event::{ChecksumAlgorithm, EventHeader};

    fn walk(log: &SourceLog) -> (usize, String) {
        let (mut transactions, mut last) = (0, String::new());
        for file in log.files() {
            let mut tracker = BoundaryTracker::new();
            let mut position = 4;
            for index in 0..file.event_count() {
                let (bytes, _) = file.event(index).unwrap();
                let header = EventHeader::parse(bytes).unwrap();
                ChecksumAlgorithm::Crc32.verify(bytes).unwrap();
                let end = position + bytes.len() as u64;
                assert_eq!((header.log_pos, header.event_size as usize), (end as u32, bytes.len()));
                let step = tracker.advance(&header, &bytes[..bytes.len() - 4], position, end).unwrap();
                assert!(!step.abandoned);
                transactions += usize::from(step.transaction);
                if step.transaction
                    && let Some(id) = tracker.committed()
                {
                    last = id.to_string();
                }
                position = end;
            }
            assert!(tracker.is_outside());
        }
        (transactions, last)
    }

    #[test]
    fn the_codec_accepts_every_event_and_finds_every_transaction() {
        let mut log = SourceLog::new(LogOptions { rotate_after: 20_000, ..LogOptions::default() });
        for size in [0, 1, 100, 200, 250, 300, 5_000, 70_000] {
            log.group(2, size);
        }
        log.ddl("CREATE TABLE x (a INT)");
        log.restart();
        log.transaction(10);
        assert_eq!(walk(&log), (18, "abababab-abab-abab-abab-abababababab:18".to_owned()));
        assert_eq!(log.executed(), "abababab-abab-abab-abab-abababababab:1-18");
        assert!(log.files().len() > 3);
    }

    #[test]
    fn without_gtids_transactions_are_anonymous() {
        let mut log = SourceLog::new(LogOptions { gtids: false, ..LogOptions::default() });
        log.transaction(10);
        assert_eq!(walk(&log), (1, String::new()));
        assert_eq!(log.executed(), "");
    }

    #[test]
    fn a_purged_log_keeps_its_numbers() {
        let mut log = SourceLog::default();
        log.transaction(10);
        log.rotate();
        log.transaction(10);
        log.purge(1);
        assert_eq!((log.number_of("mysql-bin.000002"), log.number_of("mysql-bin.000001")), (Some(1), None));
        assert_eq!(log.number_of(""), Some(1));
        assert_eq!(log.purged(), "abababab-abab-abab-abab-abababababab:1");
        assert_eq!(log.number_for_gtids(&GtidSet::new()), None);
        assert_eq!(log.number_for_gtids(log.purged_set()), Some(1));
    }
}
