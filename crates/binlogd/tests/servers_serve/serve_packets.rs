//! A reader gets from the copy the bytes that it gets from the source for the same request: packet by packet, with their
//! numbers, over rotations, by position and by GTID, with errors, and at the live end.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::semi_sync::SemiSync;
use crate::common::workload::{self, Dialect};
use crate::common::{Server, connect_options, seed, wait_within};
use binlog::storage::posix::PosixStorage;
use binlog::timeline::{Reason, Timeline};
use binlog::writer::published::Published;
use codec::event::{
    BINLOG_MAGIC, ChecksumAlgorithm, EventHeader, EventType, FormatDescription, GtidEvent, HEADER_LEN,
};
use codec::gtid::{GtidSet, MariadbGtid, TransactionId};
use codec::packet::{
    EOF, ERR, HEADER_BYTES, Header, OK, SEMI_SYNC_MAGIC, command, semi_sync_acknowledgement,
};
use codec::{Position, ServerKind};
use serve::dump::packets::PacketOut;
use serve::dump::progress::ReaderProgress;
use serve::dump::request::{DumpRequest, From, MariadbStart, ReaderChecksum};
use serve::dump::{RealTime, Served, dump};
use wire::{Connection, DumpStream, TlsMode};

/// The flag of COM_BINLOG_DUMP with which a dump ends where the log ends.
const NON_BLOCKING: u16 = 1;
/// MySQL: heartbeats of 64 bits; MariaDB: ANNOTATE_ROWS events.
const FLAG_2: u16 = 2;
/// `BINLOG_THROUGH_GTID`.
const THROUGH_GTID: u16 = 4;

const QUICK: [&str; 4] = [
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
    "--max-allowed-packet=64M",
    "--max-binlog-size=64M",
];
const GTIDS: [&str; 3] = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates=ON"];

#[test]
fn mysql_9_7() {
    mysql("mysql-9.7", true);
}

#[test]
fn mysql_8_0_31() {
    mysql("mysql-8.0.31", true);
}

#[test]
fn mysql_5_7_22() {
    mysql("mysql-5.7.22", false);
}

#[test]
fn mariadb_11_8() {
    mariadb("mariadb-11.8");
}

#[test]
fn mariadb_10_11() {
    mariadb("mariadb-10.11");
}

/// A server, and the copy of its logs as binlogd keeps them.
struct Both {
    server: Server,
    kind: ServerKind,
    copy: tempfile::TempDir,
    published: Arc<Published>,
    files: Vec<(String, Vec<u8>)>,
}

impl Both {
    /// Copies the logs of a server to which nobody writes any more.
    fn of(server: Server) -> Both {
        let kind = if server.name().starts_with("mariadb") { ServerKind::MariaDb } else { ServerKind::MySql };
        let shown = server.sql("SHOW BINARY LOGS");
        let names: Vec<&str> = shown.lines().filter_map(|line| line.split('\t').next()).collect();
        let uuid = match kind {
            ServerKind::MySql => server.sql("SELECT @@server_uuid").trim().to_owned(),
            ServerKind::MariaDb => format!("mariadb-{}", server.sql("SELECT @@server_id").trim()),
        };
        let timeline = Timeline {
            began_at: "2026-01-02T03:04:05Z".into(),
            reason: Reason::First,
            server_uuid: uuid,
            server_version: server.sql("SELECT VERSION()").trim().into(),
            server_kind: kind,
            first_file: names[0].into(),
            gtid_before: String::new(),
            source_lacks: String::new(),
            source_shares: String::new(),
            missing: String::new(),
            unreadable: String::new(),
            previous: String::new(),
            purged: Vec::new(),
        };
        let copy = tempfile::tempdir().unwrap();
        let folder = timeline.create(&PosixStorage, copy.path(), 1).unwrap();
        let mut files = Vec::new();
        for name in names {
            let bytes = std::fs::read(server.datadir().join(name)).unwrap();
            std::fs::write(folder.join(name), &bytes).unwrap();
            files.push((name.to_owned(), bytes));
        }
        let published = Arc::new(Published::default());
        let (live, bytes) = files.last().unwrap();
        published.is_at(&folder, Some(&Position::new(live.as_str(), bytes.len() as u64)));
        Both { server, kind, copy, published, files }
    }

    /// What the server sends.
    fn theirs(&self, asked: &Asked, packets: &Enough) -> Vec<u8> {
        let mut stream = self.ask(asked);
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
        while !packets.are_in(&bytes) {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => bytes.extend_from_slice(&buffer[..read]),
                Err(error) => panic!("{}: {asked:?}: {error}", self.server.name()),
            }
        }
        packets.cut(bytes)
    }

    /// Asks the server.
    fn ask(&self, asked: &Asked) -> DumpStream {
        let mut connection =
            Connection::connect(&connect_options(&self.server, "root", "", TlsMode::Disabled)).unwrap();
        let mut set =
            |sql: String| drop(connection.query(&sql).unwrap_or_else(|error| panic!("{sql}: {error}")));
        let checksum = match asked.request.checksum {
            ReaderChecksum::Unaware => None,
            ReaderChecksum::None => Some("NONE"),
            ReaderChecksum::Crc32 => Some("CRC32"),
        };
        let source = if self.is_new() { ["master", "source"].as_slice() } else { &["master"] };
        for role in source {
            if let Some(checksum) = checksum {
                set(format!("SET @{role}_binlog_checksum = '{checksum}'"));
            }
            let period = asked.request.heartbeat_period.as_nanos();
            if period > 0 {
                set(format!("SET @{role}_heartbeat_period = {period}"));
            }
        }
        if asked.request.semi_sync {
            set("SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1".to_owned());
        }
        if self.kind == ServerKind::MariaDb {
            set(format!("SET @mariadb_slave_capability = {}", asked.request.capability));
        }
        let blocking = if asked.request.non_blocking { NON_BLOCKING } else { 0 };
        let flag_2 = if asked.request.heartbeat_v2 || asked.request.annotate { FLAG_2 } else { 0 };
        let flags = blocking | flag_2;
        let payload = match &asked.request.from {
            From::Position { file, offset } => {
                command::binlog_dump(*offset as u32, flags, asked.server_id, file.as_bytes())
            }
            From::Gtids { executed, file, offset } => {
                let mut encoded = Vec::new();
                executed.encode(&mut encoded);
                let flags = flags | THROUGH_GTID;
                command::binlog_dump_gtid(flags, asked.server_id, file.as_bytes(), *offset, &encoded)
            }
            From::Mariadb(start) => {
                set(format!("SET @slave_connect_state = '{}'", listed(&start.state)));
                set(format!("SET @slave_gtid_strict_mode = {}", u8::from(start.strict)));
                set(format!("SET @slave_gtid_ignore_duplicates = {}", u8::from(start.ignore_duplicates)));
                if let Some(until) = &start.until {
                    set(format!("SET @slave_until_gtid = '{}'", listed(until)));
                }
                command::binlog_dump(4, flags, asked.server_id, b"")
            }
        };
        let mut stream = connection.start_dump(&payload).unwrap();
        stream.set_blocking(Duration::from_secs(30)).unwrap();
        stream.set_read_timeout(Duration::from_secs(30)).unwrap();
        stream
    }

    /// What the copy gives.
    fn ours(&self, asked: &Asked, packets: &Enough) -> Vec<u8> {
        let served = self.served();
        let mut taken = Taken { bytes: Vec::new(), enough: packets, beats: AtomicUsize::new(0) };
        let ended = dump(&served, &asked.request, &mut taken, &ReaderProgress::default());
        assert!(!taken.bytes.is_empty(), "{}: {asked:?}: {ended:?}", self.server.name());
        packets.cut(taken.bytes)
    }

    fn served(&self) -> Served {
        Served {
            wall_time: Arc::new(jiff::Timestamp::now),
            waits: Arc::new(RealTime),
            folder: self.copy.path().to_owned(),
            storage: Arc::new(PosixStorage),
            published: self.published.clone(),
            monitor: None,
        }
    }

    fn is_new(&self) -> bool {
        self.server.name() == "mysql-9.7" || self.server.name() == "mysql-8.0.31"
    }

    #[track_caller]
    fn compare(&self, what: &str, request: DumpRequest) {
        self.compare_until(what, request, &Enough::End);
    }

    #[track_caller]
    fn compare_until(&self, what: &str, request: DumpRequest, packets: &Enough) {
        let asked = Asked { request, server_id: 4711 };
        let (theirs, ours) = (self.theirs(&asked, packets), self.ours(&asked, packets));
        let is_equal = theirs == ours || in_order(cut(&theirs)) == in_order(cut(&ours));
        if !is_equal {
            let (theirs, ours) = (in_order(cut(&theirs)), in_order(cut(&ours)));
            let at = theirs.iter().zip(&ours).take_while(|(a, b)| a == b).count();
            let near = |packets: &[Packet]| {
                let from = at.saturating_sub(2);
                let shown: Vec<String> = packets.iter().skip(from).take(5).map(Packet::shown).collect();
                format!("{} packets, from {from} on\n  {}", packets.len(), shown.join("\n  "))
            };
            panic!(
                "{}, {what}: {:?}\ntheirs: {}\nours: {}",
                self.server.name(),
                asked.request,
                near(&theirs),
                near(&ours)
            );
        }
    }
}

/// A reader that acknowledges: while it catches up, and at the live end, where one commit waits for its answer.
fn semi_sync(both: &Both) {
    let semi_sync = SemiSync::enable(&both.server, Duration::from_secs(60));
    let asks = |from| DumpRequest { semi_sync: true, ..request(from) };
    // A dump of MariaDB's that does not wait, to a semi-sync replica, hangs at its end: see receive/session/attached.rs.
    if both.kind == ServerKind::MySql {
        both.compare("semi-sync, catching up", asks(at(&both.files[0].0, 4)));
    }
    let (live, bytes) = both.files.last().unwrap();
    let waiting = DumpRequest { non_blocking: false, ..asks(at(live, bytes.len() as u64)) };
    let asked = Asked { request: waiting, server_id: 4711 };
    let mut stream = both.ask(&asked);
    let is_asked_for = |bytes: &[u8]| {
        cut(bytes).iter().position(|packet| packet.payload.starts_with(&[OK, SEMI_SYNC_MAGIC, 1]))
    };
    let theirs = std::thread::scope(|scope| {
        semi_sync.wait_until(|counters| counters.clients == 1);
        let commit = scope.spawn(|| both.server.sql("INSERT INTO d.t0 (k) VALUES (99)"));
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while is_asked_for(&bytes).is_none() {
            let read = stream.read(&mut buffer).unwrap();
            bytes.extend_from_slice(&buffer[..read]);
        }
        let last = &cut(&bytes)[is_asked_for(&bytes).unwrap()];
        let end = EventHeader::parse(&last.payload[3..]).unwrap().log_pos;
        let mut answer = Vec::new();
        semi_sync_acknowledgement(&mut answer, end.into(), live.as_bytes());
        stream.write_all_blocking(&answer, Duration::from_secs(30)).unwrap();
        commit.join().unwrap();
        bytes
    });
    assert_eq!(semi_sync.counters().no_tx, 0, "the server took the answer");
    semi_sync.set_enabled(false);
    drop(stream);

    // The same happens to the copy.
    let timeline = both.published.live().unwrap().timeline.clone();
    let written = std::fs::read(both.server.datadir().join(live)).unwrap();
    let served = both.served();
    let (progress, reader) = (ReaderProgress::default(), Following::default());
    let ours = std::thread::scope(|scope| {
        let dump = scope.spawn(|| dump(&served, &asked.request, &mut &reader, &progress));
        wait_within(Duration::from_secs(30), "the reader waits", || progress.is_waiting());
        std::fs::write(timeline.join(live), &written).unwrap();
        both.published.is_at(&timeline, Some(&Position::new(live.as_str(), written.len() as u64)));
        wait_within(Duration::from_secs(30), "it is asked", || {
            is_asked_for(&reader.0.lock().unwrap()).is_some()
        });
        reader.1.store(true, SeqCst);
        both.published.wake_all();
        dump.join().unwrap().unwrap();
        std::mem::take(&mut *reader.0.lock().unwrap())
    });
    let shown = |bytes: &[u8]| -> Vec<String> {
        let last = is_asked_for(bytes).unwrap();
        cut(bytes)[..=last]
            .iter()
            .map(|packet| format!("{} {:02x?}", packet.sequence, packet.payload))
            .collect()
    };
    assert_eq!(shown(&theirs), shown(&ours), "{}", both.server.name());
}

/// A reader that follows the log until it is told to stop.
#[derive(Default)]
struct Following(Mutex<Vec<u8>>, AtomicBool);

impl PacketOut for &Following {
    fn write(&mut self, framed: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().extend_from_slice(framed);
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.1.load(SeqCst)
    }
}

/// What both are asked.
#[derive(Debug)]
struct Asked {
    request: DumpRequest,
    server_id: u32,
}

/// When a reader has read enough.
enum Enough {
    /// The answer is over.
    End,
    /// So many heartbeats have come.
    Beats(usize),
}

impl Enough {
    fn are_in(&self, bytes: &[u8]) -> bool {
        let packets = cut(bytes);
        let is_over = packets.last().is_some_and(|packet| matches!(packet.payload[..], [EOF | ERR, ..]));
        match self {
            Enough::End => is_over && framed_len(&packets) == bytes.len(),
            Enough::Beats(count) => {
                is_over || packets.iter().filter(|packet| packet.is_beat()).count() >= *count
            }
        }
    }

    /// No more than enough.
    fn cut(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let Enough::Beats(count) = self else { return bytes };
        let (mut len, mut beats) = (0, 0);
        for packet in cut(&bytes) {
            len += HEADER_BYTES + packet.payload.len();
            beats += usize::from(packet.is_beat());
            if beats == *count {
                break;
            }
        }
        bytes.truncate(len);
        bytes
    }
}

struct Packet {
    sequence: u8,
    payload: Vec<u8>,
}

impl Packet {
    fn header(&self) -> Option<EventHeader> {
        match self.payload[..] {
            [OK, SEMI_SYNC_MAGIC, 0 | 1, ref event @ ..] if event.len() >= HEADER_LEN => {
                EventHeader::parse(event).ok()
            }
            [OK, ref event @ ..] => EventHeader::parse(event).ok(),
            _ => None,
        }
    }

    fn is_beat(&self) -> bool {
        self.header().is_some_and(|header| header.event_type.is_heartbeat())
    }

    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.payload[..self.payload.len().min(700)]).into_owned();
        match self.header() {
            Some(header) => format!(
                "{} {header:?} {:02x?}",
                self.sequence,
                &self.payload[20.min(self.payload.len())..90.min(self.payload.len())]
            ),
            None => format!("{} {text:?}", self.sequence),
        }
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Packet) -> bool {
        self.sequence == other.sequence && self.payload == other.payload
    }
}

/// The whole packets in the bytes.
fn cut(mut bytes: &[u8]) -> Vec<Packet> {
    let mut packets = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() {
        let header = Header::parse(*head);
        let Some(payload) = rest.get(..header.length) else { break };
        packets.push(Packet { sequence: header.sequence, payload: payload.to_vec() });
        bytes = &rest[header.length..];
    }
    packets
}

/// In the lists that MariaDB makes up the domains stand in the order of a hash table of the server's. They are put in order.
fn in_order(mut packets: Vec<Packet>) -> Vec<Packet> {
    const BODY: usize = 1 + HEADER_LEN + 4;
    for packet in &mut packets {
        let is_list =
            |header: EventHeader| header.is_artificial() && header.event_type == EventType::MARIADB_GTID_LIST;
        if packet.header().is_some_and(is_list) {
            let checksum = packet.payload.len() - (packet.payload.len() - BODY) % 16;
            packet.payload[checksum..].fill(0);
            let mut entries: Vec<Vec<u8>> =
                packet.payload[BODY..checksum].chunks(16).map(<[u8]>::to_vec).collect();
            // Within a domain the order says which server wrote last.
            entries.sort_by_key(|entry| entry[..4].to_vec());
            packet.payload[BODY..checksum].copy_from_slice(&entries.concat());
        }
    }
    packets
}

fn framed_len(packets: &[Packet]) -> usize {
    packets.iter().map(|packet| HEADER_BYTES + packet.payload.len()).sum()
}

struct Taken<'a> {
    bytes: Vec<u8>,
    enough: &'a Enough,
    beats: AtomicUsize,
}

impl PacketOut for Taken<'_> {
    fn write(&mut self, framed: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(framed);
        self.beats.fetch_add(cut(framed).iter().filter(|packet| packet.is_beat()).count(), SeqCst);
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        matches!(self.enough, Enough::Beats(count) if self.beats.load(SeqCst) >= *count)
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
        reader: String::new(),
        timeline: None,
    }
}

fn at(file: &str, offset: u64) -> From {
    From::Position { file: file.to_owned(), offset }
}

/// By GTID. Servers before 8.0.32 send a heartbeat for each event that they leave out when a reader has asked for none.
fn by_set(executed: &GtidSet, heartbeat_v2: bool) -> DumpRequest {
    DumpRequest { heartbeat_period: Duration::from_secs(60), heartbeat_v2, ..request(lacking(executed)) }
}

fn lacking(executed: &GtidSet) -> From {
    From::Gtids { executed: executed.clone(), file: String::new(), offset: 4 }
}

fn listed(gtids: &[MariadbGtid]) -> String {
    gtids.iter().map(MariadbGtid::to_string).collect::<Vec<_>>().join(",")
}

/// Where each event of a file begins, its type, and the transaction that begins there.
fn events(bytes: &[u8]) -> Vec<(u64, EventType, Option<TransactionId>)> {
    let (mut at, mut found, mut checksum) = (BINLOG_MAGIC.len(), Vec::new(), ChecksumAlgorithm::None);
    while let Some(header) = bytes.get(at..).and_then(|rest| EventHeader::parse(rest).ok()) {
        let event = &bytes[at..at + header.event_size as usize];
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            checksum = FormatDescription::parse(event).unwrap().checksum;
        }
        let body = &event[..event.len() - checksum.len()];
        let id = match GtidEvent::is_gtid(header.event_type) {
            true => GtidEvent::parse(&header, body).unwrap().id,
            false => None,
        };
        found.push((at as u64, header.event_type, id));
        at += header.event_size as usize;
    }
    found
}

/// What every server is asked by file and position.
fn by_position(both: &Both) {
    let (first, live) = (&both.files[0], both.files.last().unwrap());
    both.compare("no name", request(at("", 4)));
    both.compare("no such file", request(at("nothing.000001", 4)));
    both.compare("a position before the first event", request(at(&first.0, 3)));
    both.compare("a position behind the end", request(at(&first.0, first.1.len() as u64 + 1)));
    both.compare("the end", request(at(&live.0, live.1.len() as u64)));
    for (name, bytes) in &both.files {
        both.compare("a whole file and those behind it", request(at(name, 4)));
        let events = events(bytes);
        for (offset, ..) in events.iter().step_by((events.len() / 6).max(1)).skip(1) {
            both.compare("from the middle", request(at(name, *offset)));
        }
        for checksum in [ReaderChecksum::None, ReaderChecksum::Unaware] {
            both.compare("other checksums", DumpRequest { checksum, ..request(at(name, 4)) });
        }
    }
    for heartbeat_v2 in [false, true] {
        let waiting = DumpRequest {
            non_blocking: false,
            heartbeat_period: Duration::from_millis(300),
            heartbeat_v2: heartbeat_v2 && both.kind == ServerKind::MySql,
            ..request(at(&live.0, 4))
        };
        both.compare_until("heartbeats", waiting, &Enough::Beats(2));
    }
}

fn mysql(name: &str, compressed: bool) {
    let options: Vec<&str> = QUICK.into_iter().chain(GTIDS).collect();
    let server = Server::start(name, &options);
    let dialect = Dialect { gtid_consistency: true, create_select: name != "mysql-5.7.22" };
    workload::run(&server, "schema", &workload::schema("d", 1));
    workload::run(&server, "mixed", &workload::mixed(dialect, "d", seed(), 0, 60));
    server.sql("FLUSH BINARY LOGS");
    workload::run(&server, "large", &workload::large_values(&[100, 17 << 20, (16 << 20) - 200]));
    server.sql("SET GLOBAL binlog_checksum = NONE; INSERT INTO d.t0 (k) VALUES (1)");
    server.sql("SET GLOBAL binlog_checksum = CRC32; INSERT INTO d.t0 (k) VALUES (2)");
    if compressed {
        server.sql(
            "SET SESSION binlog_transaction_compression = ON; INSERT INTO d.t0 (c) VALUES (REPEAT('c', 900))",
        );
    }
    if name == "mysql-9.7" {
        server.sql("SET gtid_next = 'AUTOMATIC:tag'; INSERT INTO d.t0 (k) VALUES (1); INSERT INTO d.t0 (k) VALUES (2)");
    }
    server.sql("FLUSH BINARY LOGS; INSERT INTO d.t0 (k) VALUES (3); INSERT INTO d.t0 (k) VALUES (4)");
    let both = Both::of(server);
    by_position(&both);

    let all: Vec<TransactionId> =
        both.files.iter().flat_map(|(_, bytes)| events(bytes)).filter_map(|(_, _, id)| id).collect();
    let set = |wanted: &dyn Fn(usize) -> bool| -> GtidSet {
        let wanted = all.iter().enumerate().filter(|(number, _)| wanted(*number));
        let ids =
            wanted.filter_map(|(_, id)| if let TransactionId::Mysql(id) = id { Some(*id) } else { None });
        ids.collect()
    };
    let count = all.len();
    for (what, has) in [
        ("nothing", set(&|_| false)),
        ("everything", set(&|_| true)),
        ("all but the last", set(&|number| number + 1 < count)),
        ("the first ten", set(&|number| number < 10)),
        ("each third", set(&|number| number % 3 == 0)),
        ("all but each fifth", set(&|number| number % 5 != 0)),
        ("all but the first", set(&|number| number > 0)),
    ] {
        for heartbeat_v2 in [false, true] {
            both.compare(&format!("a reader that has {what}"), by_set(&has, heartbeat_v2));
        }
        let (file, _) = &both.files[1];
        let from = From::Gtids { executed: has.clone(), file: file.clone(), offset: 4 };
        let asked = DumpRequest { from, ..by_set(&has, true) };
        both.compare(&format!("from the second file on, {what}"), asked);
        if !["all but the last", "each third"].contains(&what) {
            continue;
        }
        // Long enough that none falls due while transactions are left out; MySQL 5.7 counts whole seconds there.
        let waiting = DumpRequest {
            non_blocking: false,
            heartbeat_period: Duration::from_millis(1500),
            ..request(lacking(&has))
        };
        let beats = both.ours(&Asked { request: by_set(&has, false), server_id: 4711 }, &Enough::End);
        let beats = cut(&beats).iter().filter(|packet| packet.is_beat()).count();
        both.compare_until("heartbeats by GTID", waiting, &Enough::Beats(beats + 2));
    }
    let mut more = set(&|_| true);
    let TransactionId::Mysql(last) = all[0] else { panic!("a GTID of MySQL") };
    more.insert_interval(last.uuid, last.tag, 1, 100_000);
    both.compare("a reader that has more", by_set(&more, true));
    if both.server.name() == "mysql-9.7" {
        semi_sync(&both);
    }

    let Both { server, .. } = both;
    let names: Vec<String> = server
        .sql("SHOW BINARY LOGS")
        .lines()
        .filter_map(|line| Some(line.split('\t').next()?.to_owned()))
        .collect();
    server.sql(&format!("PURGE BINARY LOGS TO '{}'", names[2]));
    let both = Both::of(server);
    both.compare("no name after a purge", request(at("", 4)));
    // Older servers do not name the sets.
    if both.server.name() == "mysql-9.7" || both.server.name() == "mysql-8.0.31" {
        for wanted in [set(&|_| false), set(&|number| number < 10), set(&|number| number % 3 == 0)] {
            both.compare("what was purged", by_set(&wanted, true));
        }
    }
    both.compare("what was not", by_set(&set(&|number| number + 1 < count), true));
}

fn mariadb(name: &str) {
    // With its index of GTIDs (11.4 and later) a server begins in the middle of a file, as if the reader had asked for that.
    let no_index = if name == "mariadb-11.8" { Some("--binlog-gtid-index=OFF") } else { None };
    let options: Vec<&str> = QUICK.into_iter().chain(no_index).collect();
    let server = Server::start(name, &options);
    let dialect = Dialect { gtid_consistency: false, create_select: true };
    workload::run(&server, "schema", &workload::schema("d", 1));
    workload::run(&server, "mixed", &workload::mixed(dialect, "d", seed(), 0, 60));
    server.sql("FLUSH BINARY LOGS");
    workload::run(&server, "large", &workload::large_values(&[100, 17 << 20, (16 << 20) - 200]));
    server.sql("SET GLOBAL binlog_checksum = NONE; INSERT INTO d.t0 (k) VALUES (1)");
    server.sql("SET GLOBAL binlog_checksum = CRC32; INSERT INTO d.t0 (k) VALUES (2)");
    server.sql(
        "SET SESSION gtid_domain_id = 5; INSERT INTO d.t0 (k) VALUES (1); CREATE TABLE d.z (a INT); DROP TABLE d.z;
         SET SESSION server_id = 77; INSERT INTO d.t0 (k) VALUES (2); SET SESSION gtid_domain_id = 0;
         INSERT INTO d.t0 (k) VALUES (3); SET GLOBAL log_bin_compress = ON; SET GLOBAL log_bin_compress_min_len = 10;
         INSERT INTO d.t0 (c) VALUES (REPEAT('c', 900)); SET GLOBAL log_bin_compress = OFF",
    );
    server.sql("FLUSH BINARY LOGS; INSERT INTO d.t0 (k) VALUES (3); CREATE TABLE d.y (a INT); INSERT INTO d.t0 (k) VALUES (4)");
    let both = Both::of(server);
    by_position(&both);
    for (name, _) in &both.files {
        both.compare("with annotations", DumpRequest { annotate: true, ..request(at(name, 4)) });
    }

    // What a reader has that stopped behind each transaction.
    let mut states: Vec<Vec<MariadbGtid>> = vec![Vec::new()];
    let mut last_event: HashMap<MariadbGtid, EventType> = HashMap::new();
    for (_, event_type, id) in both.files.iter().flat_map(|(_, bytes)| events(bytes)) {
        let mut state = states.last().unwrap().clone();
        match id {
            Some(TransactionId::Mariadb(id)) => {
                state.retain(|gtid| gtid.domain != id.domain);
                state.push(id);
                states.push(state);
            }
            _ if matches!(event_type, EventType::XID | EventType::XA_PREPARE | EventType::QUERY) => {
                state.last().map(|id| last_event.insert(*id, event_type));
            }
            _ => {}
        }
    }
    let last = states.last().unwrap().clone();
    let start = |state: &[MariadbGtid]| MariadbStart { state: state.to_vec(), ..MariadbStart::default() };
    let by_gtid = |what: &str, start: MariadbStart| both.compare(what, request(From::Mariadb(start)));
    let step = (states.len() / 12).max(1);
    for state in states.iter().step_by(step).chain([&last]) {
        for strict in [false, true] {
            by_gtid("from a state on", MariadbStart { strict, ..start(state) });
        }
        let until = Some(last.clone());
        by_gtid("up to the end", MariadbStart { until, ..start(state) });
        // A server does not see that an XA PREPARE ends what was wanted, nor a COMMIT if the reader's place is there too: a list
        // has taken the place of the event by then. It goes on to the end of another transaction.
        let is_seen = |until: &&Vec<MariadbGtid>| {
            until.iter().all(|id| match last_event.get(id) {
                Some(&EventType::XA_PREPARE) => false,
                Some(&EventType::QUERY) => !state.contains(id),
                _ => true,
            })
        };
        for until in states.iter().step_by(step * 3).filter(is_seen) {
            by_gtid("up to a state", MariadbStart { until: Some(until.clone()), ..start(state) });
        }
    }
    let gtid = |text: &str| text.parse::<MariadbGtid>().unwrap();
    let id = last.iter().find(|gtid| gtid.domain == 0).unwrap().server_id;
    for state in [
        vec![gtid(&format!("0-{id}-999999"))],
        vec![gtid("0-4242-7")],
        vec![gtid("0-4242-999999")],
        vec![gtid("9-9-9")],
        vec![last[0], gtid("9-9-9")],
    ] {
        for ignore_duplicates in [false, true] {
            // A reader that is ahead is sent nothing for a long time, and then the end.
            by_gtid("a state of elsewhere", MariadbStart { ignore_duplicates, ..start(&state) });
        }
    }
    if both.server.name() == "mariadb-11.8" {
        semi_sync(&both);
    }
    let Both { server, .. } = both;
    let names: Vec<String> = server
        .sql("SHOW BINARY LOGS")
        .lines()
        .filter_map(|line| Some(line.split('\t').next()?.to_owned()))
        .collect();
    server.sql(&format!("PURGE BINARY LOGS TO '{}'", names[2]));
    let both = Both::of(server);
    for state in [&states[0], &states[5], &last] {
        both.compare("after a purge", request(From::Mariadb(start(state))));
    }
}
