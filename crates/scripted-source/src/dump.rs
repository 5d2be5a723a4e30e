//! One stream of events and its acknowledgements.

use crate::event::{self, Head};
use crate::log::{LogFile, Place, SourceLog};
use crate::login::{DumpFrom, DumpRequest, Introduction};
use crate::script::{FaultKind, SemiSync};
use crate::source::Shared;
use codec::event::{EventType, flags};
use codec::gtid::{Gtid, GtidSet, Tag, Uuid};
use codec::packet::{PAYLOAD_BYTES_MAX, append_message};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are framed at most before they are sent.
const STAGED_BYTES_MAX: usize = 256 * 1024;

/// Longest acknowledgement that is read: 1 + 8 bytes and a file name.
const ACKNOWLEDGEMENT_BYTES_MAX: usize = 9 + 512;

const NON_BLOCK: u16 = 0x01;
const HEARTBEAT_V2: u16 = 0x02;

/// ER_SOURCE_FATAL_ERROR_READING_BINLOG.
const FATAL_ERROR_READING_BINLOG: u16 = 1236;

/// IGNORABLE_LOG_EVENT, which replicas pass over.
const IGNORABLE: EventType = EventType(28);

/// An acknowledgement that the replica has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Up to where.
    pub place: Place,
    /// When it was read from the socket.
    pub arrived: Instant,
}

/// A dump in progress, as its thread sees it.
#[derive(Debug)]
pub struct Dump {
    socket: TcpStream,
    shared: Arc<Shared>,
    /// `Shared::epoch` at its beginning.
    epoch: u64,
    /// Count of earlier dumps; `None` for a short look, which has no faults.
    number: Option<usize>,
    semi_sync: bool,
    /// Events that stand in no file carry a checksum: first as negotiated, later as the files do.
    checksum: bool,
    flags: u16,
    heartbeat_period: Option<Duration>,
    /// Number of the file and of its event that come next.
    next: (usize, usize),
    /// Framed and not sent.
    staged: Vec<u8>,
    /// Number of the next packet.
    sequence: u8,
    /// Received and not understood yet.
    inbox: Vec<u8>,
    ending: Option<Ending>,
}

/// How a fault ends a dump.
#[derive(Debug, Clone)]
enum Ending {
    Close,
    Silence,
    /// See [`FaultKind::Flood`].
    Flood {
        payloads: Vec<Vec<u8>>,
        packets: usize,
    },
}

impl Dump {
    pub(crate) fn new(
        socket: TcpStream,
        shared: Arc<Shared>,
        introduction: &Introduction,
        request: &DumpRequest,
    ) -> Dump {
        let number = (request.flags & NON_BLOCK == 0).then(|| shared.count_dump());
        let checksum = shared.log().options().checksum && introduction.checksums;
        Dump {
            semi_sync: introduction.offers_semi_sync && shared.semi_sync == SemiSync::Enabled,
            heartbeat_period: introduction.heartbeat_period,
            epoch: shared.epoch.load(Ordering::Acquire),
            flags: request.flags,
            number,
            checksum,
            socket,
            shared,
            next: (0, 0),
            staged: Vec::new(),
            sequence: 1,
            inbox: Vec::new(),
            ending: None,
        }
    }

    /// The connection, for waiting on it.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Lets `write` append to the log. Nothing is sent yet.
    pub fn append<R>(&mut self, write: impl FnOnce(&mut SourceLog) -> R) -> R {
        write(&mut self.shared.log())
    }

    /// Frames all events of the log that were not framed before, up to a limit; false when there were none. Nothing is
    /// sent yet.
    ///
    /// # Errors
    /// When the log was replaced.
    pub fn stage(&mut self) -> io::Result<bool> {
        let shared = self.shared.clone();
        let log = shared.log();
        if shared.epoch.load(Ordering::Acquire) != self.epoch {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let before = self.staged.len();
        while self.staged.len() < STAGED_BYTES_MAX && self.ending.is_none() {
            let Some(file) = log.numbered(self.next.0) else { break };
            if let Some((event, flagged)) = file.event(self.next.1) {
                let fault = self.number.and_then(|dump| shared.take_fault(dump, &file.name, self.next.1));
                match fault {
                    Some(fault) => self.stage_faulty(file, event, flagged, fault),
                    None => self.stage_event(event, flagged),
                }
                self.next.1 += 1;
            } else if let Some(following) = log.numbered(self.next.0 + 1) {
                self.next = (self.next.0 + 1, 0);
                self.stage_rotate(&following.name, 4, log.options().server_id);
            } else {
                break;
            }
        }
        Ok(self.staged.len() > before)
    }

    /// Frames one event of any origin.
    pub fn stage_event(&mut self, event: &[u8], flagged: bool) {
        let prefix: &[u8] = if self.semi_sync { &[0, 0xef, flagged as u8] } else { &[0] };
        let len = prefix.len() + event.len();
        if len < PAYLOAD_BYTES_MAX {
            let [a, b, c, ..] = (len as u32).to_le_bytes();
            self.staged.extend_from_slice(&[a, b, c, self.sequence]);
            self.staged.extend_from_slice(prefix);
            self.staged.extend_from_slice(event);
            self.sequence = self.sequence.wrapping_add(1);
        } else {
            self.sequence = append_message(&mut self.staged, self.sequence, &[prefix, event].concat());
        }
        if flagged && self.semi_sync {
            // The source waits for an answer, and numbers what follows it anew.
            self.sequence = 1;
        }
    }

    /// Frames the artificial ROTATE that names the file whose events follow.
    pub fn stage_rotate(&mut self, file: &str, position: u64, server_id: u32) {
        let head = Head { timestamp: 0, event_type: EventType::ROTATE, server_id, flags: flags::ARTIFICIAL };
        let mut event = Vec::new();
        event::append(&mut event, head, |_| 0, &event::rotate(position, file), self.checksum);
        self.stage_event(&event, false);
    }

    /// Frames an event that stands in no file, and asks for an acknowledgement of it.
    fn stage_flagged_artificial(&mut self) {
        let head = Head { timestamp: 0, event_type: IGNORABLE, server_id: 0, flags: flags::ARTIFICIAL };
        let mut event = Vec::new();
        event::append(&mut event, head, |_| 0, &[], self.checksum);
        self.stage_event(&event, true);
    }

    /// Number of the next packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Sends what was framed, in one write where the socket has room.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn send(&mut self) -> io::Result<()> {
        let sent = self.socket.write_all(&self.staged);
        self.staged.clear();
        sent
    }

    /// Sends `packets` packets that the caller has framed, the first numbered [`Dump::sequence`].
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn send_framed(&mut self, framed: &[u8], packets: usize) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(packets as u8);
        self.socket.write_all(framed)
    }

    /// Waits for the next acknowledgement. Only for a [`Load`](crate::Load): elsewhere a thread of its own reads them.
    ///
    /// # Errors
    /// When the connection is closed, or something else arrives.
    pub fn read_acknowledgement(&mut self) -> io::Result<Acknowledgement> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(acknowledgement) = take_acknowledgement(&mut self.inbox)? {
                return Ok(acknowledgement);
            }
            match self.socket.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.inbox.extend_from_slice(&buffer[..read]),
            }
        }
    }

    /// True when an acknowledgement can be read without waiting for the socket.
    pub fn has_acknowledgement(&self) -> bool {
        self.inbox.len() > 4
    }

    pub(crate) fn run(mut self, from: DumpFrom) -> io::Result<()> {
        if let Err(message) = self.begin(from) {
            self.stage_error(FATAL_ERROR_READING_BINLOG, message);
            return self.send();
        }
        let closed = Arc::new(AtomicBool::new(false));
        let mut reads = false;
        loop {
            while self.stage()? || !self.staged.is_empty() {
                self.send()?;
            }
            match self.ending.take() {
                Some(Ending::Close) => return Ok(()),
                Some(Ending::Silence) => return self.wait_for_close(),
                Some(Ending::Flood { payloads, packets }) => return self.flood(&payloads, packets),
                None => {}
            }
            let Some(_) = self.number else {
                append_message(&mut self.staged, self.sequence, &[0xfe, 0, 0, 2, 0]);
                return self.send();
            };
            if let Some(mut load) = self.shared.take_load() {
                load.run(&mut self)?;
                continue;
            }
            if !reads {
                self.read_in_background(closed.clone())?;
                reads = true;
            }
            if !self.wait_for_more(&closed)? {
                return Ok(());
            }
        }
    }

    /// Finds the place, and sends what stands before its events.
    fn begin(&mut self, from: DumpFrom) -> Result<(), &'static str> {
        let shared = self.shared.clone();
        let log = shared.log();
        let position = match from {
            DumpFrom::Position { file, position } => {
                let not_found = "Could not find first log file name in binary log index file";
                self.next.0 = log.number_of(&file).ok_or(not_found)?;
                position
            }
            DumpFrom::Gtids(set) => {
                let set = GtidSet::decode(&set).map_err(|_| "The replica sent a malformed GTID set")?;
                let uuid = Uuid::from_bytes(log.options().uuid);
                let holds = |gno| set.contains(&Gtid { uuid, tag: Tag::default(), gno });
                let purged = "Cannot replicate because the source purged required binary logs";
                self.next.0 = log.number_for_gtids(holds).ok_or(purged)?;
                4
            }
        };
        let Some(file) = log.numbered(self.next.0) else { return Err("The log was purged") };
        if position > file.bytes.len() as u64 {
            return Err("Client requested source to start replication from position > file size");
        }
        self.next.1 = file.event_at(position).ok_or("log event entry exceeded max_allowed_packet")?;
        if let Some(dump) = self.number
            && self.shared.take_fault(dump, "", 0) == Some(FaultKind::FlaggedArtificial)
        {
            self.stage_flagged_artificial();
        }
        self.stage_rotate(&file.name, position, log.options().server_id);
        // From the format description on, what stands in no file follows the files.
        self.checksum = log.options().checksum;
        if position > 4 {
            self.stage_format_description_again(&log, file);
        }
        Ok(())
    }

    /// For a start in the middle of a file: with neither position nor creation time.
    fn stage_format_description_again(&mut self, log: &SourceLog, file: &LogFile) {
        let Some((original, _)) = file.event(0) else { return };
        let timestamp = u32::from_le_bytes([original[0], original[1], original[2], original[3]]);
        let options = log.options();
        let event_type = EventType::FORMAT_DESCRIPTION;
        let head = Head { timestamp, event_type, server_id: options.server_id, flags: 0 };
        let body = event::format_description(&options.server_version, 0, options.checksum);
        let mut event = Vec::new();
        event::append(&mut event, head, |_| 0, &body, options.checksum);
        self.stage_event(&event, false);
    }

    fn stage_faulty(&mut self, file: &LogFile, event: &[u8], flagged: bool, fault: FaultKind) {
        match fault {
            FaultKind::BadChecksum => {
                let mut wrong = event.to_vec();
                let last = wrong.len() - 1;
                wrong[last] ^= 1;
                self.stage_event(&wrong, flagged);
            }
            FaultKind::EventLength(length) => {
                let mut wrong = event.to_vec();
                wrong[9..13].copy_from_slice(&length.to_le_bytes());
                self.stage_event(&wrong, flagged);
            }
            FaultKind::Missing => {}
            FaultKind::Twice => {
                self.stage_event(event, flagged);
                self.stage_event(event, flagged);
            }
            FaultKind::CloseAfter(bytes) => {
                let begin = self.staged.len();
                self.stage_event(event, flagged);
                self.staged.truncate(begin + bytes);
                self.ending = Some(Ending::Close);
            }
            FaultKind::PacketLost => {
                self.sequence = self.sequence.wrapping_add(1);
                self.stage_event(event, flagged);
            }
            FaultKind::Flag => self.stage_event(event, true),
            FaultKind::FlaggedArtificial => {
                self.stage_flagged_artificial();
                self.stage_event(event, flagged);
            }
            FaultKind::Heartbeat(position) => {
                self.stage_heartbeat(&file.name, position);
                self.stage_event(event, flagged);
            }
            FaultKind::Error(code, message) => {
                self.stage_error(code, &message);
                self.ending = Some(Ending::Close);
            }
            FaultKind::Silence => self.ending = Some(Ending::Silence),
            FaultKind::Raw(bytes) => {
                self.staged.extend_from_slice(&bytes);
                self.ending = Some(Ending::Close);
            }
            FaultKind::Flood { payloads, packets } => self.ending = Some(Ending::Flood { payloads, packets }),
        }
    }

    fn flood(&mut self, payloads: &[Vec<u8>], packets: usize) -> io::Result<()> {
        let Some(last) = payloads.last() else { return Ok(()) };
        for payload in payloads.iter().chain(std::iter::repeat(last)).take(packets) {
            let [a, b, c, ..] = (payload.len() as u32).to_le_bytes();
            self.staged.extend_from_slice(&[a, b, c, self.sequence]);
            self.staged.extend_from_slice(payload);
            self.sequence = self.sequence.wrapping_add(1);
            if self.staged.len() >= STAGED_BYTES_MAX {
                self.send()?;
            }
        }
        self.send()
    }

    fn stage_error(&mut self, code: u16, message: &str) {
        let mut payload = vec![0xff];
        payload.extend_from_slice(&code.to_le_bytes());
        payload.extend_from_slice(b"#HY000");
        payload.extend_from_slice(message.as_bytes());
        self.sequence = append_message(&mut self.staged, self.sequence, &payload);
    }

    fn stage_heartbeat(&mut self, file: &str, position: u64) {
        let newer = self.flags & HEARTBEAT_V2 != 0;
        let event_type = if newer { EventType::HEARTBEAT_V2 } else { EventType::HEARTBEAT };
        let server_id = 1;
        let head = Head { timestamp: 0, event_type, server_id, flags: 0 };
        let mut event = Vec::new();
        if newer {
            event::append(&mut event, head, |_| 0, &event::heartbeat_v2(file, position), self.checksum);
        } else {
            event::append(&mut event, head, |_| position as u32, file.as_bytes(), self.checksum);
        }
        self.stage_event(&event, false);
    }

    /// Waits until the log has grown; sends heartbeats meanwhile. False when the replica has gone.
    fn wait_for_more(&mut self, closed: &AtomicBool) -> io::Result<bool> {
        let shared = self.shared.clone();
        let mut log = shared.log();
        let period = self.heartbeat_period.unwrap_or(Duration::from_secs(3600));
        let mut silent_since = Instant::now();
        loop {
            if closed.load(Ordering::Acquire) || shared.epoch.load(Ordering::Acquire) != self.epoch {
                return Ok(false);
            }
            let Some(file) = log.numbered(self.next.0) else { return Ok(false) };
            if file.event_count() > self.next.1 || log.numbered(self.next.0 + 1).is_some() {
                return Ok(true);
            }
            let left = period.saturating_sub(silent_since.elapsed());
            if left.is_zero() {
                let end = Place { file: file.name.clone(), position: file.bytes.len() as u64 };
                self.stage_heartbeat(&end.file, end.position);
                drop(log);
                self.send()?;
                silent_since = Instant::now();
                log = shared.log();
                continue;
            }
            log = shared.log_changed.wait_timeout(log, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts the thread that reads acknowledgements and notices the end of the connection.
    fn read_in_background(&mut self, closed: Arc<AtomicBool>) -> io::Result<()> {
        let mut socket = self.socket.try_clone()?;
        let shared = self.shared.clone();
        let mut inbox = std::mem::take(&mut self.inbox);
        let read = move || {
            let mut buffer = [0; 4096];
            loop {
                match socket.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(read) => inbox.extend_from_slice(&buffer[..read]),
                }
                while let Ok(Some(acknowledgement)) = take_acknowledgement(&mut inbox) {
                    shared.record_acknowledgement(acknowledgement);
                }
            }
            let _log = shared.log();
            closed.store(true, Ordering::Release);
            shared.log_changed.notify_all();
        };
        std::thread::Builder::new().name("scripted-acks".to_owned()).spawn(read)?;
        Ok(())
    }

    fn wait_for_close(&mut self) -> io::Result<()> {
        let mut buffer = [0; 512];
        while self.socket.read(&mut buffer)? > 0 {}
        Ok(())
    }
}

/// Takes the first packet off `inbox`, once it is whole.
fn take_acknowledgement(inbox: &mut Vec<u8>) -> io::Result<Option<Acknowledgement>> {
    let arrived = Instant::now();
    let Some(&[a, b, c, _]) = inbox.first_chunk::<4>() else { return Ok(None) };
    let len = u32::from_le_bytes([a, b, c, 0]) as usize;
    if !(10..=ACKNOWLEDGEMENT_BYTES_MAX).contains(&len) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not an acknowledgement"));
    }
    let Some(payload) = inbox.get(4..4 + len) else { return Ok(None) };
    let mut position = [0; 8];
    position.copy_from_slice(&payload[1..9]);
    let sound = inbox[3] == 0 && payload[0] == 0xef;
    let place = Place {
        file: String::from_utf8_lossy(&payload[9..]).into_owned(),
        position: u64::from_le_bytes(position),
    };
    inbox.drain(..4 + len);
    if !sound {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not an acknowledgement"));
    }
    Ok(Some(Acknowledgement { place, arrived }))
}
