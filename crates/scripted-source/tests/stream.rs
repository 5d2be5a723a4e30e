//! The stream as a receiver sees it, taken apart by the codec.

use codec::dump_stream::{BUFFER_LEN_MIN, DumpFramer, Frame, FrameError};
use codec::event::boundary::BoundaryTracker;
use codec::event::{ChecksumAlgorithm, EventHeader, EventType, Rotate};
use codec::packet::{append_message, command, semi_sync_acknowledgement};
use scripted_source::{FaultKind, LogOptions, Place, Script, ScriptedSource, SemiSync, SourceLog};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

/// A replica that keeps everything.
struct Client {
    socket: TcpStream,
    framer: Option<DumpFramer>,
    buffer: Vec<u8>,
}

/// An event, its type, and whether it asks for an acknowledgement.
type Received = (EventType, bool, Vec<u8>);

impl Client {
    fn connect(source: &ScriptedSource) -> Client {
        let socket = TcpStream::connect(("127.0.0.1", source.port())).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client { socket, framer: None, buffer: Vec::new() };
        client.packet();
        client.send(1, b"any login");
        assert_eq!(client.packet()[0], 0);
        client
    }

    fn send(&mut self, sequence: u8, message: &[u8]) {
        let mut out = Vec::new();
        append_message(&mut out, sequence, message);
        self.socket.write_all(&out).unwrap();
    }

    fn packet(&mut self) -> Vec<u8> {
        let mut head = [0; 4];
        self.socket.read_exact(&mut head).unwrap();
        let mut payload = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.socket.read_exact(&mut payload).unwrap();
        payload
    }

    fn dump(mut self, file: &str, position: u32, flags: u16) -> Client {
        self.send(
            0,
            &command::query(
                "SET @rpl_semi_sync_slave = 1, @master_heartbeat_period = 50000000, \
                    @master_binlog_checksum = 'CRC32'",
            ),
        );
        assert_eq!(self.packet()[0], 0);
        self.send(0, &command::binlog_dump(position, flags, 7, file.as_bytes()));
        self
    }

    /// The next event; `None` at the stream's end or when the connection is closed.
    fn event(&mut self) -> Result<Option<Received>, FrameError> {
        loop {
            if self.framer.is_none() {
                self.framer = DumpFramer::detect_semi_sync(&self.buffer).map(DumpFramer::new);
            }
            let step = match &mut self.framer {
                Some(framer) => framer.next(&self.buffer, 64 * BUFFER_LEN_MIN)?,
                None => None,
            };
            if let Some((consumed, frame)) = step {
                let received = match frame {
                    Frame::Event { wants_acknowledgement, bytes } => {
                        let header = EventHeader::parse(bytes).unwrap();
                        Some((header.event_type, wants_acknowledgement, bytes.to_vec()))
                    }
                    Frame::End | Frame::SourceError(_) => None,
                    Frame::Part { .. } | Frame::EmptyPacket => panic!("larger than the buffer"),
                };
                self.buffer.drain(..consumed);
                return Ok(received);
            }
            let mut bytes = [0; 65536];
            match self.socket.read(&mut bytes) {
                Ok(0) | Err(_) => return Ok(None),
                Ok(read) => self.buffer.extend_from_slice(&bytes[..read]),
            }
        }
    }

    fn events(&mut self) -> Vec<Received> {
        std::iter::from_fn(|| self.event().unwrap()).collect()
    }
}

fn sample() -> SourceLog {
    let mut log = SourceLog::new(LogOptions { rotate_after: 30_000, ..LogOptions::default() });
    for size in [10, 2_000, 20_000, 300, 4_000, 40_000] {
        log.group(2, size);
    }
    log
}

#[test]
fn files_can_be_put_together_from_the_stream() {
    let log = sample();
    let source = ScriptedSource::start(Script::new(log.clone())).unwrap();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut tracker = BoundaryTracker::new();
    let (mut flagged, mut transactions) = (0, 0);
    for (event_type, wants_acknowledgement, bytes) in Client::connect(&source).dump("", 4, 1).events() {
        ChecksumAlgorithm::Crc32.verify(&bytes).unwrap();
        let header = EventHeader::parse(&bytes).unwrap();
        let body = &bytes[..bytes.len() - 4];
        if event_type == EventType::ROTATE && header.is_artificial() {
            files.push((
                Rotate::parse(body).unwrap().next_file.to_owned(),
                codec::event::BINLOG_MAGIC.to_vec(),
            ));
            continue;
        }
        let file = &mut files.last_mut().unwrap().1;
        let start = file.len() as u64;
        file.extend_from_slice(&bytes);
        let step = tracker.advance(&header, body, start, file.len() as u64).unwrap();
        flagged += usize::from(wants_acknowledgement);
        transactions += usize::from(step.transaction);
        assert!(!wants_acknowledgement || step.boundary || file.len() > 30_000);
    }
    let expected: Vec<_> = log.files().iter().map(|file| (file.name.clone(), file.bytes.clone())).collect();
    assert!(files == expected, "the files differ");
    assert_eq!((transactions, flagged), (12, 6));
}

#[test]
fn a_dump_goes_on_where_it_is_asked_to_and_repeats_the_format() {
    let log = sample();
    let source = ScriptedSource::start(Script::new(log.clone())).unwrap();
    let file = &log.files()[1];
    let position = file.end_of(3);
    let mut client = Client::connect(&source).dump(&file.name, position as u32, 0);
    let mut next = || client.event().unwrap().unwrap();
    assert_eq!(next().0, EventType::ROTATE);
    let (event_type, _, format) = next();
    assert_eq!(
        (event_type, EventHeader::parse(&format).unwrap().log_pos),
        (EventType::FORMAT_DESCRIPTION, 0)
    );
    assert_eq!(next().2, file.event(4).unwrap().0);
}

#[test]
fn appended_groups_are_sent_and_acknowledged() {
    let source = ScriptedSource::start(Script::default()).unwrap();
    let mut client = Client::connect(&source).dump("mysql-bin.000001", 4, 2);
    for _ in 0..3 {
        assert!(!client.event().unwrap().unwrap().1);
    }
    let end = source.append(|log| {
        log.group(2, 100);
        log.end()
    });
    let mut flags = Vec::new();
    while flags.len() < 10 {
        let (event_type, flagged, _) = client.event().unwrap().unwrap();
        if !event_type.is_heartbeat() {
            flags.push(flagged);
        }
    }
    assert_eq!(flags.iter().position(|flagged| *flagged), Some(9));
    let mut packet = Vec::new();
    semi_sync_acknowledgement(&mut packet, end.position, end.file.as_bytes());
    client.socket.write_all(&packet).unwrap();
    assert!(source.wait_for_acknowledgement(&end, PATIENCE));
    assert_eq!(source.acknowledgements()[0].place, end);
    // The period is 50 ms.
    assert_eq!(client.event().unwrap().unwrap().0, EventType::HEARTBEAT_V2);
    assert_eq!((source.dumps(), source.queries().len()), (1, 1));
}

#[test]
fn faults_happen_once_and_where_they_are_scripted() {
    let mut log = SourceLog::default();
    log.group(3, 100);
    let file = "mysql-bin.000001";
    let script = Script::new(log)
        .fault(0, file, 4, FaultKind::BadChecksum)
        .fault(1, file, 4, FaultKind::CloseAfter(11))
        .fault(2, file, 4, FaultKind::PacketLost)
        .fault(3, file, 4, FaultKind::EventLength(18))
        .fault(4, file, 4, FaultKind::Error(1236, "gone".to_owned()))
        .fault(5, file, 4, FaultKind::Flag)
        .fault(5, file, 5, FaultKind::Heartbeat(77))
        .fault(5, file, 6, FaultKind::Missing);
    let source = ScriptedSource::start(script).unwrap();
    let upto_fault = || {
        let mut client = Client::connect(&source).dump(file, 4, 0);
        for _ in 0..5 {
            client.event().unwrap().unwrap();
        }
        client
    };
    let (_, _, bad) = upto_fault().event().unwrap().unwrap();
    assert!(ChecksumAlgorithm::Crc32.verify(&bad).is_err());
    assert!(upto_fault().event().unwrap().is_none());
    assert!(matches!(upto_fault().event(), Err(FrameError::Sequence { .. })));
    assert!(upto_fault().event().is_err());
    assert!(upto_fault().event().unwrap().is_none());
    let mut client = upto_fault();
    assert!(client.event().unwrap().unwrap().1);
    assert_eq!(client.event().unwrap().unwrap().0, EventType::HEARTBEAT);
    assert_eq!(client.event().unwrap().unwrap().0, EventType::WRITE_ROWS);
    assert_eq!(client.event().unwrap().unwrap().0, EventType::GTID);
}

#[test]
fn a_reset_disconnects_and_serves_another_log() {
    let source = ScriptedSource::start(Script { semi_sync: SemiSync::Refused, ..Script::default() }).unwrap();
    let mut client = Client::connect(&source).dump("", 4, 0);
    client.event().unwrap().unwrap();
    assert_eq!(source.log(SourceLog::end), Place { file: "mysql-bin.000001".to_owned(), position: 158 });
    source.replace_log(SourceLog::new(LogOptions { timestamp: 1_800_000_000, ..LogOptions::default() }));
    while client.event().unwrap().is_some() {}
    let again = Client::connect(&source).dump("mysql-bin.000001", 4, 1).events();
    assert_eq!(EventHeader::parse(&again[1].2).unwrap().timestamp, 1_800_000_000);
    assert_eq!(again.len(), 3);
}
