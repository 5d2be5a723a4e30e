//! Dumps of copies that are written by hand, over files and timelines.

mod held_back;
mod live;
mod mariadb;
mod timelines;

use super::*;
use crate::dump::request::MariadbStart;
use crate::dump::stop::StopAt;
use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
use binlog::timeline::{Reason, Timeline};
use codec::event::{CHECKSUM_LEN, EventHeader, EventType, GtidEvent, HEADER_LEN, Rotate};
use codec::gtid::{MariadbGtid, MariadbGtidState, Uuid};
use codec::packet::{Assembler, EOF, ERR, ErrPacket, HEADER_BYTES, OK, append_message};
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;

const OTHER: &str = "11111111-2222-3333-4444-555555555555";

/// A copy of a source in a folder of its own.
struct Copy {
    dir: tempfile::TempDir,
    published: Arc<Published>,
    timelines: Vec<PathBuf>,
    monitor: Option<Arc<SourceMonitor>>,
    wall_time: WallTime,
}

impl Copy {
    fn new() -> Copy {
        let dir = tempfile::tempdir().unwrap();
        Copy {
            dir,
            published: Arc::default(),
            timelines: Vec::new(),
            monitor: None,
            wall_time: Arc::new(jiff::Timestamp::now),
        }
    }

    /// One timeline with these files, all of which may be read.
    fn with(files: &[(&str, Vec<u8>)]) -> Copy {
        let mut copy = Copy::new();
        copy.timeline(first_timeline(SERVER_UUID), files);
        copy
    }

    fn timeline(&mut self, info: Timeline, files: &[(&str, Vec<u8>)]) {
        let number = self.timelines.len() as u32 + 1;
        let previous =
            self.timelines.last().map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned());
        let info = Timeline { previous: previous.unwrap_or_default(), first_file: files[0].0.into(), ..info };
        let folder = info.create(&PosixStorage, self.dir.path(), number).unwrap();
        self.timelines.push(folder);
        files.iter().for_each(|(name, bytes)| self.write(name, bytes));
    }

    /// Writes a file of the newest timeline and publishes all of it.
    fn write(&self, name: &str, bytes: &[u8]) {
        let folder = self.timelines.last().unwrap();
        std::fs::write(folder.join(name), bytes).unwrap();
        self.published.is_at(folder, Some(&Position::new(name, bytes.len() as u64)));
    }

    fn served(&self) -> Served {
        Served {
            folder: self.dir.path().to_owned(),
            storage: Arc::new(PosixStorage),
            published: self.published.clone(),
            monitor: self.monitor.clone(),
            wall_time: self.wall_time.clone(),
            waits: Arc::new(RealTime),
        }
    }

    /// What a reader gets that does not wait.
    fn read(&self, from: From) -> Got {
        self.read_as(&request(from))
    }

    fn read_as(&self, request: &DumpRequest) -> Got {
        let reader = Reader::default();
        let ended = dump(&self.served(), request, &mut &reader, &ReaderProgress::default());
        reader.got(ended)
    }
}

fn request(from: From) -> DumpRequest {
    DumpRequest {
        from,
        non_blocking: true,
        checksum: ReaderChecksum::Crc32,
        heartbeat_period: Duration::ZERO,
        heartbeat_v2: false,
        annotate: false,
        capability: 4,
        semi_sync: false,
        stop: Vec::new(),
        delay: Duration::ZERO,
        reader: "connection 7".to_owned(),
        timeline: None,
    }
}

fn at(file: &str, offset: u64) -> From {
    From::Position { file: file.into(), offset }
}

fn lacking(executed: &str) -> From {
    From::Gtids { executed: executed.parse().unwrap(), file: String::new(), offset: 4 }
}

/// Takes what is sent.
#[derive(Default)]
struct Reader {
    bytes: Mutex<Vec<u8>>,
    cancelled: AtomicBool,
    /// How often the dump has looked whether it is to end.
    looks: AtomicUsize,
    /// The most bytes of one write.
    largest: Mutex<usize>,
}

impl PacketOut for &Reader {
    fn write(&mut self, framed: &[u8]) -> io::Result<()> {
        self.bytes.lock().unwrap().extend_from_slice(framed);
        let mut largest = self.largest.lock().unwrap();
        *largest = framed.len().max(*largest);
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.looks.fetch_add(1, SeqCst);
        self.cancelled.load(SeqCst)
    }
}

/// What was sent, and how it ended.
#[derive(Debug)]
struct Got {
    /// Whole events.
    events: Vec<Vec<u8>>,
    eof: bool,
    error: Option<ErrPacket>,
    ended: Result<DumpEnd, DumpError>,
}

impl Reader {
    fn got(&self, ended: Result<DumpEnd, DumpError>) -> Got {
        let bytes = self.bytes.lock().unwrap();
        let mut got = Got { events: Vec::new(), eof: false, error: None, ended };
        let (mut rest, mut sequence) = (&bytes[..], 1);
        while !rest.is_empty() {
            let mut assembler = Assembler::new(1 << 30, sequence);
            let progress = assembler.feed(rest).unwrap();
            assert!(progress.complete, "half a packet");
            rest = &rest[progress.consumed..];
            sequence = assembler.next_sequence();
            let message = assembler.into_message();
            match message[0] {
                OK => got.events.push(message[1..].to_vec()),
                EOF => got.eof = true,
                ERR => got.error = Some(ErrPacket::parse(&message).unwrap()),
                other => panic!("{other}"),
            }
        }
        got
    }
}

impl Got {
    /// The events in short: made-up ones with `~`, GTIDs by their numbers.
    fn shown(&self) -> String {
        let mut shown = Vec::new();
        for event in &self.events {
            let header = EventHeader::parse(event).unwrap();
            assert_eq!(header.event_size as usize, event.len());
            let body = &event[..event.len() - CHECKSUM_LEN];
            shown.push(match header.event_type {
                EventType::ROTATE => {
                    let mark = if header.is_artificial() { "~" } else { "" };
                    let rotate = Rotate::parse(body).unwrap();
                    format!("{mark}{}:{}", rotate.next_file.trim_start_matches("b.00000"), rotate.position)
                }
                EventType::FORMAT_DESCRIPTION if header.log_pos == 0 => "again".to_owned(),
                EventType::FORMAT_DESCRIPTION => "format".to_owned(),
                EventType::PREVIOUS_GTIDS => "before".to_owned(),
                EventType::HEARTBEAT => format!("beat@{}", header.log_pos),
                EventType::GTID => {
                    let id = GtidEvent::parse(&header, body).unwrap().id.unwrap().to_string();
                    let short = id.replace(SERVER_UUID, "a").replace(OTHER, "o");
                    short.replace(':', "")
                }
                _ => continue,
            });
        }
        if self.eof {
            shown.push("eof".to_owned());
        }
        shown.join(" ")
    }

    /// The GTIDs alone.
    fn gtids(&self) -> String {
        let shown = self.shown();
        let is_gtid =
            |word: &&str| word.starts_with(['a', 'o']) && word.ends_with(|c: char| c.is_ascii_digit());
        shown.split(' ').filter(is_gtid).collect::<Vec<_>>().join(" ")
    }

    /// The GTIDs of a MariaDB server.
    fn mariadb_gtids(&self) -> String {
        let mut gtids = Vec::new();
        for event in &self.events {
            let header = EventHeader::parse(event).unwrap();
            if header.event_type == EventType::MARIADB_GTID {
                let gtid = GtidEvent::parse(&header, &event[..event.len() - CHECKSUM_LEN]).unwrap();
                gtids.push(gtid.id.unwrap().to_string());
            }
        }
        gtids.join(" ")
    }

    #[track_caller]
    fn refused(&self) -> &str {
        assert!(matches!(self.ended, Err(DumpError::Refused(_))), "{self:?}");
        let error = self.error.as_ref().expect("an error packet");
        assert_eq!((error.code, &*error.sqlstate), (1236, "HY000"));
        &error.message
    }
}

/// A transaction of any server.
fn transaction(builder: &mut FileBuilder, uuid: &str, number: u64) {
    let mut gtid = vec![0u8];
    gtid.extend_from_slice(uuid.parse::<Uuid>().unwrap().as_bytes());
    gtid.extend_from_slice(&number.to_le_bytes());
    builder.event(33, &gtid);
    let mut begin = vec![0u8; 14];
    begin.extend_from_slice(b"BEGIN");
    builder.event(2, &begin);
    builder.event(16, &number.to_le_bytes());
}

/// A file: what came before, transactions as `a` or `o` with their numbers, and the next file.
fn file(before: &str, transactions: &str, next: Option<&str>) -> Vec<u8> {
    let before = before.replace('a', SERVER_UUID).replace('o', OTHER);
    let mut builder = FileBuilder::new().previous_gtids(&before);
    for word in transactions.split_whitespace() {
        let uuid = if word.starts_with('a') { SERVER_UUID } else { OTHER };
        transaction(&mut builder, uuid, word[1..].parse().unwrap());
    }
    match next {
        Some(next) => builder.rotate(next).finish(),
        None => builder.finish(),
    }
}

fn set(text: &str) -> String {
    text.replace('a', SERVER_UUID).replace('o', OTHER)
}

fn three_files() -> Copy {
    Copy::with(&[
        ("b.000001", file("", "a1 a2", Some("b.000002"))),
        ("b.000002", file("a:1-2", "a3 a4 a5", Some("b.000003"))),
        ("b.000003", file("a:1-5", "a6 a7", None)),
    ])
}

/// Where each event of a file begins, and the end.
fn offsets(bytes: &[u8]) -> Vec<u64> {
    let mut offsets = vec![4];
    while let Some(at) = offsets.last().copied().filter(|at| (*at as usize) < bytes.len()) {
        offsets.push(at + u64::from(EventHeader::parse(&bytes[at as usize..]).unwrap().event_size));
    }
    offsets
}

#[test]
fn by_position_a_reader_gets_the_files_as_they_stand() {
    let copy = three_files();
    let got = copy.read(at("b.000002", 4));
    assert_eq!(got.shown(), "~2:4 format before a3 a4 a5 3:4 ~3:4 format before a6 a7 eof");
    let sent: Vec<u8> =
        got.events[1..].iter().filter(|event| !is_artificial(event)).flatten().copied().collect();
    let stored = ["b.000002", "b.000003"]
        .map(|name| std::fs::read(copy.timelines[0].join(name)).unwrap()[4..].to_vec());
    assert!(sent == stored.concat());
    assert!(copy.read(at("", 4)).shown().starts_with("~1:4 format before a1 a2 2:4 ~2:4"));

    let bytes = file("a:1-2", "a3 a4 a5", Some("b.000003"));
    let offsets = offsets(&bytes);
    let middle = copy.read(at("b.000002", offsets[5]));
    assert_eq!(middle.shown(), format!("~2:{} again a4 a5 3:4 ~3:4 format before a6 a7 eof", offsets[5]));
    let end = std::fs::read(copy.timelines[0].join("b.000003")).unwrap().len() as u64;
    assert_eq!(copy.read(at("b.000003", end)).shown(), format!("~3:{end} again eof"));
}

fn is_artificial(event: &[u8]) -> bool {
    EventHeader::parse(event).unwrap().is_artificial()
}

#[test]
fn a_position_that_is_none_is_refused_in_the_servers_words() {
    let copy = three_files();
    let said = |file: &str, offset| copy.read(at(file, offset)).refused().to_owned();
    assert_eq!(said("b.000009", 4), "Could not find first log file name in binary log index file");
    assert_eq!(said("b.000002", 3), "Client requested source to start replication from position < 4");
    assert_eq!(
        said("b.000002", 100_000),
        "Client requested source to start replication from position > file size"
    );
    let in_the_middle = said("b.000002", 5);
    assert!(
        in_the_middle.contains("; the first event 'b.000002' at 5, the last event read from './b.000002'")
    );
    let bytes = file("a:1-2", "a3 a4 a5", Some("b.000003"));
    for at in 126..bytes.len() as u64 {
        if !offsets(&bytes).contains(&at) {
            let said = said("b.000002", at);
            assert!(said.starts_with("bogus data") || said.starts_with("binlog truncated"), "{at}: {said}");
        }
    }
    let unaware = DumpRequest { checksum: ReaderChecksum::Unaware, ..request(at("b.000002", 4)) };
    let got = copy.read_as(&unaware);
    assert!(got.refused().starts_with("Replica can not handle replication events with the checksum"));
    assert_eq!(got.events.len(), 1, "the first artificial ROTATE, without a checksum");
    assert_eq!(got.events[0].len(), HEADER_LEN + 8 + 8);
}

#[test]
fn by_gtid_a_reader_gets_what_it_lacks() {
    let copy = three_files();
    let all = "~1:4 format before a1 a2 2:4 ~2:4 format before a3 a4 a5 3:4 ~3:4 format before a6 a7 eof";
    assert_eq!(copy.read(lacking("")).shown(), all);
    let holes = copy.read(lacking(&set("a:1-3:5:7")));
    let bytes = file("a:1-2", "a3 a4 a5", Some("b.000003"));
    let (behind_3, behind_5) = (offsets(&bytes)[5], offsets(&bytes)[11]);
    let behind_7 = *offsets(&file("a:1-5", "a6 a7", None)).last().unwrap();
    assert_eq!(
        holes.shown(),
        format!(
            "~2:4 format before beat@{behind_3} a4 beat@{behind_5} 3:4 ~3:4 format before a6 beat@{behind_7} eof"
        )
    );
    // Transactions of its own do not matter, the source's do.
    assert_eq!(copy.read(lacking(&set("a:1-6,o:1-99"))).gtids(), "a7");
    assert!(
        copy.read(lacking(&set("a:1-8"))).refused().starts_with("Replica has more GTIDs than the source has")
    );
}

#[test]
fn what_was_purged_is_named() {
    let copy = Copy::with(&[("b.000007", file("a:1-50,o:3", "a51", None))]);
    assert_eq!(copy.read(lacking(&set("a:1-50,o:3"))).gtids(), "a51");
    let got = copy.read(lacking(&set("a:1-20:30")));
    let said = got.refused();
    let sets = format!(
        "The GTID set sent by the replica is '{}', and the missing transactions are '{}'",
        set("a:1-20:30"),
        set("o:3,a:21-29:31-50")
    );
    assert!(said.starts_with("Cannot replicate because the source purged required binary logs."), "{said}");
    assert!(said.ends_with(&sets), "{said}");
}

#[test]
fn a_stop_is_between_transactions() {
    let copy = three_files();
    let stopped =
        |stop| copy.read_as(&DumpRequest { stop: vec![stop], ..request(lacking(&set("a:1"))) }).shown();
    let before = stopped(StopAt::BeforeGtids(set("a:4").parse().unwrap()));
    assert!(before.ends_with("before a3 eof"), "{before}");
    let after = stopped(StopAt::AfterGtids(set("a:1-4").parse().unwrap()));
    assert!(after.ends_with("before a3 a4 eof"), "{after}");
    let inside = offsets(&file("a:1-2", "a3 a4 a5", Some("b.000003")))[4];
    let at = stopped(StopAt::Position(Position::new("b.000002", inside)));
    assert!(at.ends_with("before a3 eof"), "{at}");
}

/// Nothing can be told inside an event, and the reader would wait for the rest of it.
#[test]
fn a_reader_inside_an_event_is_not_left_waiting() {
    let mut builder = FileBuilder::new().previous_gtids("");
    builder.event(30, &vec![7; 1_000_000]);
    let bytes = builder.finish();
    let copy = Copy::with(&[("b.000001", bytes.clone())]);
    std::fs::write(copy.timelines[0].join("b.000001"), &bytes[..600_000]).unwrap();
    let reader = Reader::default();
    let ended = dump(&copy.served(), &request(at("b.000001", 4)), &mut &reader, &ReaderProgress::default());
    assert!(matches!(ended, Err(DumpError::Cut(_))), "{ended:?}");
    let sent = reader.bytes.lock().unwrap();
    assert!(sent.len() > 500_000 && !sent.windows(9).any(|part| part == b"truncated"), "{}", sent.len());
}

/// After a failed sync the page cache may give what the disk does not have, also to a reader that is far behind.
#[test]
fn a_reader_of_what_is_withdrawn_is_sent_away_at_once() {
    struct Withdraws<'a>(&'a Reader, &'a Published);
    impl PacketOut for Withdraws<'_> {
        fn write(&mut self, framed: &[u8]) -> io::Result<()> {
            self.1.withdraw();
            (&mut &*self.0).write(framed)
        }

        fn is_cancelled(&self) -> bool {
            false
        }
    }
    let mut builder = FileBuilder::new().previous_gtids("");
    builder.event(30, &vec![7; 2_000_000]);
    let copy = Copy::with(&[("b.000001", builder.finish())]);
    let reader = Reader::default();
    let mut out = Withdraws(&reader, &copy.published);
    let ended = dump(&copy.served(), &request(at("b.000001", 4)), &mut out, &ReaderProgress::default());
    assert_eq!(ended.unwrap(), DumpEnd::Moved);
    let sent = reader.bytes.lock().unwrap().len();
    assert!(sent < 2 * crate::dump::stream::BUFFER_BYTES, "{sent} bytes were sent");
}

#[test]
fn a_long_event_passes_in_parts() {
    let body: Vec<u8> = (0..20_000_000u32).map(|at| (at % 253) as u8).collect();
    let mut builder = FileBuilder::new().previous_gtids("");
    builder.event(30, &body);
    let bytes = builder.transaction(1, 20).finish();
    let copy = Copy::with(&[("b.000001", bytes.clone())]);
    let reader = Reader::default();
    let ended = dump(&copy.served(), &request(at("b.000001", 4)), &mut &reader, &ReaderProgress::default());
    assert_eq!(ended.unwrap(), DumpEnd::Complete);
    assert!(*reader.largest.lock().unwrap() < 2 * crate::dump::stream::BUFFER_BYTES);
    let (mut expected, mut sequence) = (Vec::new(), 1);
    let rotate = Maker { server_id: 1, checksum: ChecksumAlgorithm::Crc32 }.rotate("b.000001", 4);
    let offsets = offsets(&bytes);
    let stored = offsets.windows(2).map(|pair| &bytes[pair[0] as usize..pair[1] as usize]);
    for event in [&rotate[..]].into_iter().chain(stored) {
        sequence = append_message(&mut expected, sequence, &[&[OK], event].concat());
    }
    append_message(&mut expected, sequence, &[EOF, 0, 0, 2, 0]);
    assert!(*reader.bytes.lock().unwrap() == expected);
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("not within 10 s");
}

#[test]
fn readers_of_the_other_kind_are_told_so() {
    let copy = three_files();
    let got = copy.read(From::Mariadb(MariadbStart::default()));
    assert!(got.refused().contains("COM_BINLOG_DUMP_GTID"), "{got:?}");
}
