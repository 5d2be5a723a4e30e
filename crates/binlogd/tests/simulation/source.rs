//! A source in the same thread: what it says to the bytes that it is sent, without a socket, a thread or a clock.
//!
//! The receiver's own code speaks to it through `wire`: greeting, authentication, queries, the dump, acknowledgements.

use crate::history::History;
use codec::event::{EventType, flags};
use codec::gtid::{GtidSet, Uuid};
use codec::packet::{Assembler, RESPONSE_BYTES_MAX, append_message};
use scripted_source::event::{self, Head};
use scripted_source::{LogFile, SourceLog};
use std::time::Duration;

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_BINLOG_DUMP: u8 = 0x12;
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;

const NON_BLOCK: u16 = 0x01;

/// ER_SOURCE_FATAL_ERROR_READING_BINLOG.
const FATAL_ERROR_READING_BINLOG: u16 = 1236;

const NOT_FOUND: &str = "Could not find first log file name in binary log index file";
const PURGED: &str = "Cannot replicate because the source purged required binary logs. Replicate the missing \
                      transactions from elsewhere, or provision a new replica from backup";

/// LONG_PASSWORD, LONG_FLAG, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH, CONNECT_ATTRS, and length-encoded
/// authentication data.
const CAPABILITIES: u32 = 0x1 | 0x4 | 0x200 | 0x2000 | 0x8000 | 1 << 19 | 1 << 20 | 1 << 21;

const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
const EOF: [u8; 5] = [0xfe, 0, 0, 2, 0];

/// The server.
#[derive(Debug, Clone)]
pub struct Source {
    pub history: History,
    /// `rpl_semi_sync_source_enabled`.
    pub semi_sync: bool,
    /// How often its logs have become others.
    pub generation: u64,
    /// `read_only`: it is a replica, or was taken out of service.
    pub is_read_only: bool,
    /// It runs, and can be reached.
    pub is_up: bool,
}

impl Source {
    /// A source that clients write to.
    pub fn new(history: History, semi_sync: bool) -> Source {
        Source { history, semi_sync, generation: 0, is_read_only: false, is_up: true }
    }

    pub fn log(&self) -> &SourceLog {
        &self.history.log
    }
}

/// Where a dump stands.
#[derive(Debug, Clone)]
struct Dump {
    /// The file whose events are sent.
    file: String,
    /// That file, when the source's logs were reset under the dump: it has the file open, and sends it to its end.
    opened: Option<LogFile>,
    /// Name of the file that was open so: what is acknowledged up to its end is for nobody.
    gone: Option<String>,
    /// Number of its event that comes next.
    next: usize,
    semi_sync: bool,
    /// Made-up events carry a checksum.
    checksum: bool,
    /// It ends with what is there now.
    is_short: bool,
    sequence: u8,
}

/// One connection to the server.
#[derive(Debug, Default)]
pub struct Session {
    inbox: Vec<u8>,
    /// Bytes for the client, in order.
    pub outbox: Vec<u8>,
    is_let_in: bool,
    offers_semi_sync: bool,
    pub heartbeat_period: Option<Duration>,
    dump: Option<Dump>,
    /// The source's [generation](Source::generation) when the connection was made.
    generation: u64,
    /// The dump leaves out a file when it next goes on to another one, as from an index of binary logs that lacks it.
    pub skips_file: bool,
    /// What the beginning of the dump says to the source.
    implied: Option<(String, u64)>,
    /// The server closes the connection when `outbox` is sent.
    pub is_ended: bool,
}

impl Session {
    /// A new connection: the server greets.
    pub fn new(source: &Source) -> Session {
        let mut session = Session { generation: source.generation, ..Session::default() };
        append_message(&mut session.outbox, 0, &greeting(&source.log().options().server_version));
        session
    }

    /// True when the client waits for events.
    pub fn is_dumping(&self) -> bool {
        self.dump.as_ref().is_some_and(|dump| !dump.is_short)
    }

    /// Takes bytes of the client; gives the acknowledgements that are whole.
    pub fn take(&mut self, bytes: &[u8], source: &Source) -> Vec<(String, u64)> {
        self.inbox.extend_from_slice(bytes);
        if self.dump.is_some() {
            return self.acknowledgements();
        }
        while let Some(message) = self.message() {
            self.answer(&message, source);
        }
        self.implied.take().into_iter().collect()
    }

    /// The source's logs are reset; `old` is what they were. Nobody tells the client.
    pub fn reset(&mut self, old: &SourceLog) {
        if let Some(dump) = self.dump.as_mut().filter(|dump| dump.opened.is_none()) {
            dump.opened = old.file(&dump.file).cloned();
            dump.gone = Some(dump.file.clone());
            // Purged under our feet before: nothing of the new file with that name belongs to this dump.
            let was_purged = dump.opened.is_none();
            self.is_ended |= was_purged;
        }
    }

    fn message(&mut self) -> Option<Vec<u8>> {
        let mut assembler = Assembler::new(RESPONSE_BYTES_MAX, u8::from(!self.is_let_in));
        let progress = assembler.feed(&self.inbox).expect("the receiver frames its messages");
        if !progress.complete {
            return None;
        }
        self.inbox.drain(..progress.consumed);
        Some(assembler.into_message())
    }

    fn answer(&mut self, message: &[u8], source: &Source) {
        if !std::mem::replace(&mut self.is_let_in, true) {
            append_message(&mut self.outbox, 2, &OK);
            return;
        }
        let (command, body) = message.split_first().expect("a command has a code");
        match *command {
            COM_QUIT => self.is_ended = true,
            COM_QUERY => {
                let sql = std::str::from_utf8(body).expect("queries are UTF-8");
                self.hear(sql);
                self.outbox.extend_from_slice(&answer(sql, source));
            }
            COM_BINLOG_DUMP => {
                let position = u64::from(u32::from_le_bytes([body[0], body[1], body[2], body[3]]));
                let flags = u16::from_le_bytes([body[4], body[5]]);
                let name = std::str::from_utf8(&body[10..]).expect("names are UTF-8");
                let file = source.log().files().iter().find(|file| name.is_empty() || file.name == name);
                self.begin_dump(source, file.ok_or(NOT_FOUND), position, flags);
            }
            COM_BINLOG_DUMP_GTID => {
                let flags = u16::from_le_bytes([body[0], body[1]]);
                let set = GtidSet::decode(&body[22..]).expect("the receiver encodes sets");
                let file = file_for(source, &set);
                self.begin_dump(source, file.ok_or(PURGED), 4, flags);
            }
            _ => {
                append_message(&mut self.outbox, 1, &OK);
            }
        }
    }

    fn hear(&mut self, sql: &str) {
        let Some(assignments) = sql.strip_prefix("SET ") else { return };
        for assignment in assignments.split(',') {
            match assignment.split_once('=').map(|(name, value)| (name.trim(), value.trim().parse())) {
                Some(("@rpl_semi_sync_replica", Ok(value))) => self.offers_semi_sync = value != 0u64,
                Some(("@source_heartbeat_period", Ok(nanoseconds))) => {
                    self.heartbeat_period = Some(Duration::from_nanos(nanoseconds));
                }
                _ => {}
            }
        }
    }

    fn begin_dump(
        &mut self,
        source: &Source,
        file: Result<&LogFile, &'static str>,
        position: u64,
        flags: u16,
    ) {
        let checksum = source.log().options().checksum;
        let mut dump = Dump {
            file: String::new(),
            opened: None,
            gone: None,
            next: 0,
            semi_sync: self.offers_semi_sync && source.semi_sync,
            checksum,
            is_short: flags & NON_BLOCK != 0,
            sequence: 1,
        };
        let error = match file {
            Err(message) => Some(message),
            Ok(file) if position > file.bytes.len() as u64 => {
                Some("Client requested source to start replication from position > file size")
            }
            Ok(file) => {
                dump.file.clone_from(&file.name);
                dump.rotate(&mut self.outbox, position, source.log().options().server_id);
                if position > 4 {
                    dump.format_description_again(&mut self.outbox, source, file);
                }
                dump.next = file.event_at(position).unwrap_or_default();
                // A source takes the place for an acknowledgement of all before it. That the logs are the same ones is for
                // the receiver to find out before; what happens since it connected it cannot know.
                if dump.semi_sync && !dump.is_short && self.generation == source.generation {
                    self.implied = file.flagged_until(position).map(|end| (file.name.clone(), end));
                }
                file.event_at(position).is_none().then_some("bogus data in log event")
            }
        };
        if let Some(message) = error {
            append_message(&mut self.outbox, dump.sequence, &error_packet(message));
            self.is_ended = true;
        }
        self.dump = Some(dump);
    }

    /// Makes the bytes of at most `events` events that were not sent before; true when there were any.
    pub fn pump(&mut self, source: &Source, events: u64) -> bool {
        let Some(dump) = self.dump.as_mut().filter(|_| !self.is_ended) else { return false };
        let before = self.outbox.len();
        for _ in 0..events {
            let files = source.log().files();
            if dump.opened.is_some() {
                match dump.of_opened(&mut self.outbox, source) {
                    Some(error) => {
                        append_message(&mut self.outbox, dump.sequence, &error_packet(error));
                        self.is_ended = true;
                        break;
                    }
                    None if dump.is_at_end_of_opened() => break,
                    None => continue,
                }
            }
            let Some(index) = files.iter().position(|file| file.name == dump.file) else {
                self.is_ended = true; // Purged or reset under our feet.
                break;
            };
            if let Some((event, flagged)) = files[index].event(dump.next) {
                dump.event(&mut self.outbox, event, flagged);
                dump.next += 1;
            } else if let Some(following) = files.get(index + 1) {
                let left_out = if self.skips_file { files.get(index + 2) } else { None };
                self.skips_file &= left_out.is_none();
                (dump.file, dump.next) = (left_out.unwrap_or(following).name.clone(), 0);
                dump.rotate(&mut self.outbox, 4, source.log().options().server_id);
            } else {
                if dump.is_short {
                    append_message(&mut self.outbox, dump.sequence, &EOF);
                    self.is_ended = true;
                }
                break;
            }
        }
        self.outbox.len() > before
    }

    /// Says that there is nothing newer.
    pub fn heartbeat(&mut self, source: &Source) {
        let Some(dump) = self.dump.as_mut() else { return };
        let Some(file) = dump.opened.as_ref().or_else(|| source.log().file(&dump.file)) else { return };
        let head = Head { timestamp: 0, event_type: EventType::HEARTBEAT_V2, server_id: 1, flags: 0 };
        let mut bytes = Vec::new();
        let body = event::heartbeat_v2(&dump.file, file.bytes.len() as u64);
        event::append(&mut bytes, head, |_| 0, &body, dump.checksum);
        dump.event(&mut self.outbox, &bytes, false);
    }

    fn acknowledgements(&mut self) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        while let Some(&[a, b, c, sequence]) = self.inbox.first_chunk::<4>() {
            let len = u32::from_le_bytes([a, b, c, 0]) as usize;
            let Some(payload) = self.inbox.get(4..4 + len) else { break };
            assert_eq!((sequence, payload[0]), (0, 0xef), "this is no acknowledgement: {payload:02x?}");
            let mut position = [0; 8];
            position.copy_from_slice(&payload[1..9]);
            let file = std::str::from_utf8(&payload[9..]).expect("names are UTF-8").to_owned();
            let gone = self.dump.as_ref().and_then(|dump| dump.gone.as_ref());
            if gone.is_none_or(|gone| *gone < file) {
                found.push((file, u64::from_le_bytes(position)));
            }
            self.inbox.drain(..4 + len);
        }
        found
    }
}

impl Dump {
    /// One step of a dump whose file is gone from the source: its events to the end; then, when the source writes another
    /// name, the file that follows this name now. Gives an error where none does.
    fn of_opened(&mut self, out: &mut Vec<u8>, source: &Source) -> Option<&'static str> {
        let opened = self.opened.take()?;
        if let Some((event, flagged)) = opened.event(self.next) {
            self.event(out, event, flagged);
            self.next += 1;
            self.opened = Some(opened);
            return None;
        }
        let log = source.log();
        if log.end().file == self.file {
            self.opened = Some(opened);
            return None;
        }
        let index = log.files().iter().position(|file| file.name == self.file);
        let Some(following) = index.and_then(|index| log.files().get(index + 1)) else {
            return Some("could not find next log");
        };
        (self.file, self.next) = (following.name.clone(), 0);
        self.rotate(out, 4, log.options().server_id);
        None
    }

    fn is_at_end_of_opened(&self) -> bool {
        self.opened.as_ref().is_some_and(|file| file.event(self.next).is_none())
    }

    fn event(&mut self, out: &mut Vec<u8>, event: &[u8], flagged: bool) {
        let prefix: &[u8] = if self.semi_sync { &[0, 0xef, u8::from(flagged)] } else { &[0] };
        self.sequence = append_message(out, self.sequence, &[prefix, event].concat());
        if flagged && self.semi_sync {
            // The source waits for an answer, and numbers what follows it anew.
            self.sequence = 1;
        }
    }

    fn rotate(&mut self, out: &mut Vec<u8>, position: u64, server_id: u32) {
        let head = Head { timestamp: 0, event_type: EventType::ROTATE, server_id, flags: flags::ARTIFICIAL };
        let mut bytes = Vec::new();
        event::append(&mut bytes, head, |_| 0, &event::rotate(position, &self.file), self.checksum);
        self.event(out, &bytes, false);
    }

    /// For a start in the middle of a file: with neither position nor creation time.
    fn format_description_again(&mut self, out: &mut Vec<u8>, source: &Source, file: &LogFile) {
        let options = source.log().options();
        let (original, _) = file.event(0).expect("a file begins with its format description");
        let timestamp = u32::from_le_bytes([original[0], original[1], original[2], original[3]]);
        let event_type = EventType::FORMAT_DESCRIPTION;
        let head = Head { timestamp, event_type, server_id: options.server_id, flags: 0 };
        let body = event::format_description(&options.server_version, 0, options.checksum);
        let mut bytes = Vec::new();
        event::append(&mut bytes, head, |_| 0, &body, options.checksum);
        self.event(out, &bytes, false);
    }
}

/// The newest file before which nothing outside `set` was executed; `None` when that was purged.
fn file_for<'a>(source: &'a Source, set: &GtidSet) -> Option<&'a LogFile> {
    source.log().files().iter().rfind(|file| set.contains_set(file.before()))
}

fn answer(sql: &str, source: &Source) -> Vec<u8> {
    if let Some(names) = sql.strip_prefix("SELECT @@") {
        let labels: Vec<String> =
            names.split(',').map(|name| format!("@@{}", name.trim().trim_start_matches("@@"))).collect();
        let values = labels.iter().map(|label| {
            variable(label.rsplit(['.', '@']).next().unwrap_or_default(), source).unwrap_or_default()
        });
        let values: Vec<String> = values.collect();
        return rows(&labels, &[values]);
    }
    if let Some(pattern) = sql.strip_prefix("SHOW GLOBAL VARIABLES LIKE ") {
        let name = pattern.trim_matches('\'').to_owned();
        let found: Vec<_> = variable(&name, source).map(|value| vec![name, value]).into_iter().collect();
        return rows(&["Variable_name".to_owned(), "Value".to_owned()], &found);
    }
    if sql.starts_with("SHOW ") {
        let file = source.log().end().file;
        return rows(&["File".to_owned()], &[vec![file]]);
    }
    let mut out = Vec::new();
    append_message(&mut out, 1, &OK);
    out
}

fn variable(name: &str, source: &Source) -> Option<String> {
    let options = source.log().options();
    let on = |on: bool| Some(if on { "ON" } else { "OFF" }.to_owned());
    match name {
        "server_id" => Some(options.server_id.to_string()),
        "server_uuid" => Some(Uuid::from_bytes(options.uuid).to_string()),
        "version" => Some(options.server_version.clone()),
        "gtid_mode" => on(options.gtids),
        "gtid_executed" => Some(source.log().executed()),
        "gtid_purged" => Some(source.log().purged()),
        "binlog_checksum" => Some(if options.checksum { "CRC32" } else { "NONE" }.to_owned()),
        "read_only" => on(source.is_read_only),
        "rpl_semi_sync_source_enabled" => on(source.semi_sync),
        _ => None,
    }
}

/// Protocol::HandshakeV10 with mysql_native_password.
fn greeting(version: &str) -> Vec<u8> {
    let mut message = vec![10];
    message.extend_from_slice(version.as_bytes());
    message.extend_from_slice(b"\0\x08\0\0\0abcdefgh\0");
    message.extend_from_slice(&CAPABILITIES.to_le_bytes()[..2]);
    message.extend_from_slice(&[45, 2, 0]);
    message.extend_from_slice(&CAPABILITIES.to_le_bytes()[2..]);
    message.push(21);
    message.extend_from_slice(&[0; 10]);
    message.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    message
}

fn error_packet(message: &str) -> Vec<u8> {
    let mut payload = vec![0xff];
    payload.extend_from_slice(&FATAL_ERROR_READING_BINLOG.to_le_bytes());
    payload.extend_from_slice(b"#HY000");
    payload.extend_from_slice(message.as_bytes());
    payload
}

/// A text result set: column count, definitions, EOF, rows, EOF.
fn rows(columns: &[String], rows: &[Vec<String>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sequence = append_message(&mut out, 1, &[columns.len() as u8]);
    for column in columns {
        let mut message = Vec::new();
        for text in ["def", "", "", "", column, ""] {
            append_text(&mut message, text);
        }
        // Length of the fixed part, character set, display length, type VAR_STRING, flags, decimals.
        message.extend_from_slice(&[12, 45, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0]);
        sequence = append_message(&mut out, sequence, &message);
    }
    sequence = append_message(&mut out, sequence, &EOF);
    for row in rows {
        let mut message = Vec::new();
        row.iter().for_each(|value| append_text(&mut message, value));
        sequence = append_message(&mut out, sequence, &message);
    }
    append_message(&mut out, sequence, &EOF);
    out
}

/// A length-encoded string of less than 64 KiB.
fn append_text(out: &mut Vec<u8>, text: &str) {
    if text.len() < 251 {
        out.push(text.len() as u8);
    } else {
        out.push(252);
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    }
    out.extend_from_slice(text.as_bytes());
}
