//! The events of one dump, from where it begins to how it ends.

use crate::log::{LogFile, SourceLog};
use crate::packets::Packets;
use crate::script::{Fault, FaultKind};
use codec::gtid::GtidSet;
use codec::packet::{BinlogDump, BinlogDumpGtid, DUMP_HEARTBEAT_V2_OR_ANNOTATE, DUMP_NON_BLOCKING};

/// ER_SOURCE_FATAL_ERROR_READING_BINLOG.
const FATAL_ERROR_READING_BINLOG: u16 = 1236;

const NOT_FOUND: &str = "Could not find first log file name in binary log index file";
const PURGED: &str = "Cannot replicate because the source purged required binary logs. Replicate the missing \
                      transactions from elsewhere, or provision a new replica from backup";

/// A request for a dump.
#[derive(Debug, Clone)]
pub(crate) struct DumpRequest {
    from: DumpFrom,
    flags: u16,
}

#[derive(Debug, Clone)]
enum DumpFrom {
    /// COM_BINLOG_DUMP.
    Position { file: String, position: u64 },
    /// COM_BINLOG_DUMP_GTID: the encoded set.
    Gtids(Vec<u8>),
}

impl From<BinlogDump<'_>> for DumpRequest {
    fn from(asked: BinlogDump<'_>) -> DumpRequest {
        let file = String::from_utf8_lossy(asked.file).into_owned();
        let from = DumpFrom::Position { file, position: asked.position.into() };
        DumpRequest { from, flags: asked.flags }
    }
}

impl From<BinlogDumpGtid<'_>> for DumpRequest {
    fn from(asked: BinlogDumpGtid<'_>) -> DumpRequest {
        DumpRequest { from: DumpFrom::Gtids(asked.set.to_vec()), flags: asked.flags }
    }
}

impl DumpRequest {
    /// It is a short look: it ends with what is there.
    pub(crate) fn is_short(&self) -> bool {
        self.flags & DUMP_NON_BLOCKING != 0
    }
}

/// A dump in progress.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) is_short: bool,
    /// It leaves out a file when it next goes on to another one.
    pub(crate) skips_file: bool,
    pub(crate) state: State,
    heartbeat_v2: bool,
    /// Number of the file and of its event that come next.
    next: (usize, usize),
    /// The file of `next`, when the source's logs were reset under the dump: the source has it open and sends it to its
    /// end.
    opened: Option<LogFile>,
    /// Name of the file that was open so: what is acknowledged up to its end is for nobody.
    gone: Option<String>,
    faults: Vec<Fault>,
}

/// Whether more is to come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum State {
    Sending,
    /// Nothing comes any more, and the connection stays open.
    Silent,
    /// See [`FaultKind::Flood`].
    Flooding {
        payloads: Vec<Vec<u8>>,
        sent: usize,
        packets: usize,
    },
    /// The connection is to be closed.
    Ended,
}

impl Stream {
    /// Finds the place, and says what stands before its events, or that there is no such place. Gives the file and
    /// position from which the dump begins.
    pub(crate) fn begin<'a>(
        packets: &mut Packets,
        log: &'a SourceLog,
        request: DumpRequest,
        faults: Vec<Fault>,
    ) -> (Stream, Option<(&'a LogFile, u64)>) {
        let mut stream = Stream {
            is_short: request.is_short(),
            skips_file: false,
            state: State::Sending,
            heartbeat_v2: request.flags & DUMP_HEARTBEAT_V2_OR_ANNOTATE != 0,
            next: (0, 0),
            opened: None,
            gone: None,
            faults,
        };
        let begun = stream.find(packets, log, request.from);
        if let Err(message) = begun {
            packets.error(FATAL_ERROR_READING_BINLOG, message);
            stream.state = State::Ended;
        }
        (stream, begun.ok())
    }

    fn find<'a>(
        &mut self,
        packets: &mut Packets,
        log: &'a SourceLog,
        from: DumpFrom,
    ) -> Result<(&'a LogFile, u64), &'static str> {
        let (number, position) = match from {
            DumpFrom::Position { file, position } => (log.number_of(&file).ok_or(NOT_FOUND)?, position),
            DumpFrom::Gtids(set) => {
                let set = GtidSet::decode(&set).map_err(|_| "The replica sent a malformed GTID set")?;
                (log.number_for_gtids(&set).ok_or(PURGED)?, 4)
            }
        };
        let file = log.numbered(number).ok_or("The log was purged")?;
        if position > file.bytes.len() as u64 {
            return Err("Client requested source to start replication from position > file size");
        }
        if self.take_fault("", 0) == Some(FaultKind::FlaggedArtificial) {
            packets.flagged_artificial();
        }
        packets.rotate(&file.name, position, log.options().server_id);
        // From the format description on, what stands in no file follows the files.
        packets.checksum = log.options().checksum;
        if position > 4 {
            packets.format_description_again(log.options(), file);
        }
        self.next = (number, file.event_at(position).ok_or("bogus data in log event")?);
        Ok((file, position))
    }

    /// Says the next event or whatever comes in its place; false when there is nothing to say now.
    pub(crate) fn step(&mut self, packets: &mut Packets, log: &SourceLog) -> bool {
        match &mut self.state {
            State::Sending => {}
            State::Silent | State::Ended => return false,
            State::Flooding { payloads, sent, packets: count } => {
                let Some(payload) = payloads.get(*sent).or(payloads.last()).filter(|_| sent < count) else {
                    self.state = State::Ended;
                    return false;
                };
                packets.packet(&[payload]);
                *sent += 1;
                return true;
            }
        }
        if let Some(opened) = self.opened.take() {
            return self.step_opened(packets, log, opened);
        }
        let Some(file) = log.numbered(self.next.0) else {
            self.state = State::Ended; // Purged under our feet.
            return false;
        };
        if let Some((event, flagged)) = file.event(self.next.1) {
            self.next.1 += 1;
            match self.take_fault(&file.name, self.next.1 - 1) {
                Some(fault) => self.commit(fault, packets, &file.name, event, flagged),
                None => packets.event(event, flagged),
            }
            return true;
        }
        if log.numbered(self.next.0 + 1).is_some() {
            let skips = self.skips_file && log.numbered(self.next.0 + 2).is_some();
            self.skips_file &= !skips;
            return self.go_to(packets, log, self.next.0 + if skips { 2 } else { 1 });
        }
        if self.is_short {
            packets.eof();
            self.state = State::Ended;
        }
        self.is_short
    }

    /// A step in a file that the source has no more: its events to the end; then, when the source writes another name,
    /// the file that follows this name now.
    fn step_opened(&mut self, packets: &mut Packets, log: &SourceLog, opened: LogFile) -> bool {
        let number = self.next.0;
        if let Some((event, flagged)) = opened.event(self.next.1) {
            packets.event(event, flagged);
            self.next.1 += 1;
            self.opened = Some(opened);
            return true;
        }
        match (log.numbered(number), log.numbered(number + 1)) {
            (Some(_), Some(_)) => self.go_to(packets, log, number + 1),
            (Some(_), None) => {
                self.opened = Some(opened);
                false
            }
            (None, _) => {
                packets.error(FATAL_ERROR_READING_BINLOG, "could not find next log");
                self.state = State::Ended;
                true
            }
        }
    }

    fn go_to(&mut self, packets: &mut Packets, log: &SourceLog, number: usize) -> bool {
        let Some(file) = log.numbered(number) else { return false };
        self.next = (number, 0);
        packets.rotate(&file.name, 4, log.options().server_id);
        true
    }

    fn take_fault(&mut self, file: &str, event: usize) -> Option<FaultKind> {
        let index = self.faults.iter().position(|fault| fault.event == event && fault.file == file)?;
        Some(self.faults.remove(index).kind)
    }

    /// Does what is wrong at an event.
    fn commit(&mut self, fault: FaultKind, packets: &mut Packets, file: &str, event: &[u8], flagged: bool) {
        match fault {
            FaultKind::BadChecksum => {
                let mut wrong = event.to_vec();
                *wrong.last_mut().expect("an event has a header") ^= 1;
                packets.event(&wrong, flagged);
            }
            FaultKind::EventLength(length) => {
                let mut wrong = event.to_vec();
                wrong[9..13].copy_from_slice(&length.to_le_bytes());
                packets.event(&wrong, flagged);
            }
            FaultKind::Missing => {}
            FaultKind::Twice => {
                packets.event(event, flagged);
                packets.event(event, flagged);
            }
            FaultKind::CloseAfter(bytes) => {
                let begin = packets.bytes.len();
                packets.event(event, flagged);
                packets.bytes.truncate(begin + bytes);
                self.state = State::Ended;
            }
            FaultKind::PacketLost => {
                packets.sequence = packets.sequence.wrapping_add(1);
                packets.event(event, flagged);
            }
            FaultKind::Flag => packets.event(event, true),
            FaultKind::FlaggedArtificial => {
                packets.flagged_artificial();
                packets.event(event, flagged);
            }
            FaultKind::Heartbeat(position) => {
                packets.heartbeat(self.heartbeat_v2, file, position);
                packets.event(event, flagged);
            }
            FaultKind::Error(code, message) => {
                packets.error(code, &message);
                self.state = State::Ended;
            }
            FaultKind::Silence => self.state = State::Silent,
            FaultKind::Raw(bytes) => {
                packets.bytes.extend_from_slice(&bytes);
                self.state = State::Ended;
            }
            FaultKind::Flood { payloads, packets } => {
                self.state = State::Flooding { payloads, sent: 0, packets };
            }
        }
    }

    /// Says that there is nothing newer.
    pub(crate) fn heartbeat(&mut self, packets: &mut Packets, log: &SourceLog) {
        let file = self.opened.as_ref().or_else(|| log.numbered(self.next.0));
        if let (State::Sending, Some(file)) = (&self.state, file) {
            packets.heartbeat(self.heartbeat_v2, &file.name, file.bytes.len() as u64);
        }
    }

    /// The source's logs are reset; `old` is what they were.
    pub(crate) fn reset(&mut self, old: &SourceLog) {
        if self.opened.is_some() {
            return;
        }
        // What is on its way is of the old logs, be they purged by now.
        self.gone = Some(old.file_name(self.next.0));
        match old.numbered(self.next.0) {
            Some(file) => self.opened = Some(file.clone()),
            // Purged under our feet before: nothing of the new file with that name belongs to this dump.
            None => self.state = State::Ended,
        }
    }

    /// Whether an acknowledgement of something in `file` is one of what the source has now.
    pub(crate) fn counts(&self, file: &str) -> bool {
        self.gone.as_deref().is_none_or(|gone| gone < file)
    }
}
