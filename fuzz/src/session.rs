//! A whole session: connecting, questions, introduction, a look at the source's logs, the dump, and what it leaves.
//!
//! The receiver is the real one, as its thread runs it, over a loopback connection to a peer that says what the script
//! says, whatever it is asked. Packets that follow from the protocol are there ready made, so that the fuzzer reaches
//! what stands behind them, and can put anything in their place.
//!
//! ```text
//! start        1 byte: bit 0 the copy holds the beginning of a timeline already, bit 1 fsync_mode 1, bit 2 no semi-sync
//! steps        until the end, see `step`
//! ```
//!
//! Held true: no panic, no end by waiting (the peer hangs up after its script, so every wait ends), the ladder is in
//! order; and what is left on disk needs no repair: whatever a peer does, a session ends at a boundary.

use crate::input::Input;
use crate::script;
use binlog::Position;
use binlog::storage::posix::PosixStorage;
use binlog::timeline::{Reason, Timeline};
use codec::ServerKind;
use codec::event::flags;
use config::{AckTimeoutAction, FsyncMode, HostPort, OnFork, OnGap, OnStranger, SourceConfig, Start};
use jiff::Timestamp;
use receive::Upstream;
use receive::attempt::ask::{Attempt, Left};
use receive::attempt::copy::HeldCopy;
use receive::decide::hosts::Hosts;
use scripted_source::Packets;
use source::clock::{Clock, SystemClock};
use source::stop::StopSignal;
use status::SourceMonitor;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::{Tcp, TlsMode, TlsOptions};

/// The server of the canned answers.
pub const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
/// The first file of its log.
pub const FIRST_FILE: &str = "mysql-bin.000001";

/// Most steps of one input: more only take time.
const STEPS_MAX: usize = 256;
/// Longest script of a connection, in bytes: the sockets' buffers hold it, so that the peer never waits to be heard.
const CONNECTION_BYTES_MAX: usize = 64 << 10;
/// Far longer than a session takes: reaching it is a finding, by the fuzzer's own limit for one input.
const NEVER: Duration = Duration::from_secs(600);

/// What a step of the script adds, in the low four bits of its first byte.
pub mod step {
    /// The greeting of MySQL, and OK to whatever is answered.
    pub const LOGIN: u8 = 0;
    /// The same of MariaDB.
    pub const LOGIN_MARIADB: u8 = 1;
    /// All answers that make the identity of a MySQL source.
    pub const IDENTITY: u8 = 2;
    /// OK to a command.
    pub const OK: u8 = 3;
    /// One row: its number in [`super::VARIABLES`] is the next byte.
    pub const VARIABLE: u8 = 4;
    /// An answer without rows.
    pub const NO_ROWS: u8 = 5;
    /// A packet with the right number: 2 bytes of length, payload.
    pub const PACKET: u8 = 6;
    /// Bytes that need be no packet: 1 byte of length, bytes.
    pub const RAW: u8 = 7;
    /// The number of the next packet: 1 byte.
    pub const SEQUENCE: u8 = 8;
    /// An event of [`crate::script`]. [`FLAGGED`] asks for an acknowledgement, [`PLAIN`] leaves the semi-sync bytes out.
    pub const EVENT: u8 = 9;
    /// The artificial ROTATE to the first file, which begins a dump.
    pub const ROTATE: u8 = 10;
    /// Everything after it is said on the next connection.
    pub const NEXT_CONNECTION: u8 = 11;
    /// The server's id and version, which is the first answer.
    pub const BASICS: u8 = 12;
    /// A bit of [`EVENT`].
    pub const FLAGGED: u8 = 0x10;
    /// A bit of [`EVENT`] and [`ROTATE`].
    pub const PLAIN: u8 = 0x20;
}

/// What a source may be asked, and an answer.
pub const VARIABLES: [(&str, &str); 10] = [
    ("binlog_checksum", "CRC32"),
    ("rpl_semi_sync_source_enabled", "ON"),
    ("server_uuid", UUID),
    ("gtid_mode", "ON"),
    ("@@global.gtid_purged", ""),
    ("read_only", "OFF"),
    ("@@global.gtid_executed", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"),
    ("@@global.gtid_binlog_state", "0-1-99,1-2-5"),
    ("rpl_semi_sync_master_enabled", "OFF"),
    ("@@global.gtid_slave_pos", ""),
];

/// The clock without the pauses, which would only make each input slower.
#[derive(Debug)]
struct Impatient;

impl Clock for Impatient {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall_time(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep(&self, _: Duration) {}

    fn pause(&self, stop: &StopSignal, _: Duration) -> bool {
        stop.is_requested()
    }

    fn jitter(&self) -> u32 {
        0
    }
}

/// Runs one attempt and looks at what it left.
pub fn run(data: &[u8]) {
    play(data);
}

/// Runs one attempt; gives why it ended and where the copy ends.
fn play(data: &[u8]) -> (String, Option<Position>) {
    // The peer is one, and tests run side by side.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut input = Input::new(data);
    let start = input.u8();
    let port = PEER.play(connections(&mut input));
    let folder = folder();
    let fsync_mode =
        if start & 2 != 0 { FsyncMode::SyncThenAcknowledge } else { FsyncMode::WriteThenAcknowledge };
    let upstream = Upstream {
        config: config(port, fsync_mode, start & 4 == 0),
        data_dir: folder.path().to_owned(),
        storage: Arc::new(PosixStorage),
        network: Arc::new(Tcp),
        clock: Arc::new(Impatient),
        monitor: Arc::new(SourceMonitor::new("fuzz")),
        stop: Arc::new(StopSignal::new()),
        quorum: None,
        published: Arc::default(),
    };
    let mut copy = upstream.open().expect("an empty folder");
    if start & 1 != 0 {
        copy.begin_timeline(timeline()).expect("a new timeline");
    }
    let hosts = Hosts::new(1, Instant::now());
    let left = Left::default();
    let attempt =
        Attempt { upstream: &upstream, host: &upstream.config.hosts[0], hosts: &hosts, left: &left };
    // Nobody asked it to stop, so it ends by an error, whatever the peer does.
    let error = attempt.make(&mut copy).expect_err("a session that ends by itself");
    assert!(upstream.monitor.positions().is_ordered(fsync_mode), "{:?}", upstream.monitor.positions());
    let end = copy.timeline().and_then(|timeline| timeline.end());
    drop(copy);
    assert_needs_no_repair(folder.path(), &end);
    (error.to_string(), end)
}

/// As the next start of binlogd would find it.
fn assert_needs_no_repair(data_dir: &Path, end: &Option<Position>) {
    let (copy, remarks) = HeldCopy::open(Arc::new(PosixStorage), Arc::new(SystemClock), data_dir, "fuzz")
        .expect("a copy that can be opened");
    assert_eq!(remarks, [""; 0], "recovery had to repair what a session left");
    let found = copy.timeline().and_then(|timeline| timeline.end());
    assert_eq!(found, *end, "recovery finds another end than the session left");
}

/// In memory where the system has such a folder: a disk would only make each input slower.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder")
}

fn config(port: u16, fsync_mode: FsyncMode, semi_sync: bool) -> SourceConfig {
    SourceConfig {
        name: "fuzz".to_owned(),
        hosts: vec![HostPort { host: "127.0.0.1".to_owned(), port }],
        quorum: Vec::new(),
        peers: Vec::new(),
        user: "fuzz".to_owned(),
        password: "".into(),
        password_file: None,
        server_id: Some(7),
        start: Start::Earliest,
        fsync_mode,
        fsync_interval: NEVER,
        semi_sync,
        heartbeat_period: Duration::from_secs(5),
        net_read_timeout: NEVER,
        watch_interval: Duration::ZERO,
        connect_timeout: NEVER,
        backoff_min: NEVER,
        backoff_max: NEVER,
        tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
        on_gap: OnGap::Record,
        on_fork: OnFork::Follow,
        ack_after_replicas: 0,
        ack_timeout: Duration::from_secs(10),
        ack_timeout_action: AckTimeoutAction::Wait,
        on_stranger: OnStranger::Follow,
        archive: false,
    }
}

fn timeline() -> Timeline {
    Timeline {
        began_at: "2026-01-02T03:04:05Z".to_owned(),
        reason: Reason::First,
        server_uuid: UUID.to_owned(),
        server_version: "9.7.0".to_owned(),
        server_kind: ServerKind::MySql,
        first_file: FIRST_FILE.to_owned(),
        gtid_before: String::new(),
        source_lacks: String::new(),
        source_shares: String::new(),
        missing: String::new(),
        unreadable: String::new(),
        previous: String::new(),
        purged: Vec::new(),
    }
}

/// What the peer says, connection by connection.
fn connections(input: &mut Input<'_>) -> VecDeque<Vec<u8>> {
    let mut connections = VecDeque::new();
    let mut script = Connection::default();
    for _ in 0..STEPS_MAX {
        if input.is_empty() || script.packets.bytes.len() > CONNECTION_BYTES_MAX / 2 {
            break;
        }
        let operation = input.u8();
        if operation & 0x0f == step::NEXT_CONNECTION {
            connections.push_back(std::mem::take(&mut script).packets.bytes);
        } else {
            script.take(operation, input);
        }
    }
    let mut said = script.packets.bytes;
    said.truncate(CONNECTION_BYTES_MAX);
    connections.push_back(said);
    connections
}

#[derive(Default)]
struct Connection {
    packets: Packets,
    /// Where the next event stands in its file.
    offset: u64,
}

impl Connection {
    fn take(&mut self, operation: u8, input: &mut Input<'_>) {
        let flagged = operation & step::FLAGGED != 0;
        self.packets.semi_sync = operation & step::PLAIN == 0;
        match operation & 0x0f {
            step::LOGIN => self.login("9.7.0"),
            step::LOGIN_MARIADB => self.login("5.5.5-11.8.3-MariaDB"),
            step::IDENTITY => {
                self.basics();
                VARIABLES[..7].iter().for_each(|variable| self.variable(*variable));
            }
            step::BASICS => self.basics(),
            step::OK => self.answer().ok(),
            step::VARIABLE => self.variable(VARIABLES[usize::from(input.u8()) % VARIABLES.len()]),
            step::NO_ROWS => self.answer().rows(&["Value"], &[]),
            step::PACKET => {
                let len = input.u16() % 4_096;
                self.packets.message(input.bytes(usize::from(len)));
            }
            step::RAW => {
                let len = input.u8();
                self.packets.bytes.extend_from_slice(input.bytes(usize::from(len)));
            }
            step::SEQUENCE => self.packets.sequence = input.u8(),
            step::EVENT => self.event(flagged, input),
            step::ROTATE => {
                self.packets.sequence = 1;
                self.packets.checksum = true;
                self.packets.rotate(FIRST_FILE, 4, 1);
                self.offset = 4;
            }
            _ => {}
        }
    }

    fn login(&mut self, version: &str) {
        self.packets.greeting(version, false);
        self.packets.sequence = 2;
        self.packets.ok();
    }

    fn basics(&mut self) {
        self.rows(&[("@@global.server_id", "1"), ("@@version", "9.7.0")]);
    }

    /// The answer to SHOW VARIABLES, or to SELECT for a name that begins with `@@`.
    fn variable(&mut self, (name, value): (&str, &str)) {
        if name.starts_with("@@") {
            self.rows(&[(name, value)]);
        } else {
            self.rows(&[("Variable_name", name), ("Value", value)]);
        }
    }

    /// A result set of one row.
    fn rows(&mut self, cells: &[(&str, &str)]) {
        let (columns, row): (Vec<&str>, Vec<String>) =
            cells.iter().map(|(name, value)| (*name, (*value).to_owned())).unzip();
        self.answer().rows(&columns, &[row]);
    }

    /// The answer to a command begins with number 1.
    fn answer(&mut self) -> &mut Packets {
        self.packets.sequence = 1;
        &mut self.packets
    }

    fn event(&mut self, flagged: bool, input: &mut Input<'_>) {
        let event = script::next_event(input, self.offset);
        self.packets.event(&event.bytes, flagged);
        let is_artificial = event.bytes.get(17).is_some_and(|low| low & flags::ARTIFICIAL as u8 != 0);
        // What the source makes up stands in no file; a file that it switches to begins anew.
        if !is_artificial {
            self.offset += event.bytes.len() as u64;
        } else if event.bytes[4] == crate::binlog::code::ROTATE {
            self.offset = 4;
        }
    }
}

/// The peer: one for the whole process, because inputs come one after the other.
static PEER: LazyLock<Peer> = LazyLock::new(Peer::start);
/// Held as long as an input is played.
static TURN: Mutex<()> = Mutex::new(());

struct Peer {
    port: u16,
    scripts: Arc<Mutex<VecDeque<Vec<u8>>>>,
}

impl Peer {
    fn start() -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound socket").port();
        let scripts = Arc::new(Mutex::new(VecDeque::<Vec<u8>>::new()));
        let for_thread = scripts.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let script = for_thread.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                std::thread::spawn(move || say(socket, &script.unwrap_or_default()));
            }
        });
        Peer { port, scripts }
    }

    /// Says these things to the next connections, each to one, and nothing to later ones. Returns its port.
    fn play(&self, scripts: VecDeque<Vec<u8>>) -> u16 {
        *self.scripts.lock().unwrap_or_else(PoisonError::into_inner) = scripts;
        self.port
    }
}

/// Says everything at once and hangs up, then listens until the receiver does: closed with something unread, the
/// connection would be reset, and what was said might be lost.
fn say(mut socket: TcpStream, script: &[u8]) {
    let _ = socket.write_all(script);
    let _ = socket.shutdown(Shutdown::Write);
    let _ = socket.read_to_end(&mut Vec::new());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds reach what their names say; one that is refused at the greeting would be of no use to the fuzzer.
    #[test]
    fn seeds_reach_what_they_are_for() {
        for (name, error, file) in [
            ("semi-sync", "the source closed the connection", Some(FIRST_FILE)),
            ("durable", "the source closed the connection", Some(FIRST_FILE)),
            ("asynchronous", "the source closed the connection", Some(FIRST_FILE)),
            ("first", "the source closed the connection", Some(FIRST_FILE)),
            ("cut-in-a-transaction", "the source closed the connection", Some(FIRST_FILE)),
            ("two-files", "the source closed the connection", Some("mysql-bin.000002")),
            ("file-not-found", "began its logs anew", None),
            ("mariadb", "the source closed the connection", Some(FIRST_FILE)),
            ("refused", "@@server_id is NULL", None),
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/session").join(name);
            let (said, end) = play(&std::fs::read(path).expect("a seed"));
            println!("{name}: {said}; {end:?}");
            assert!(said.contains(error), "{name}: {said}");
            assert_eq!(end.as_ref().map(|end| &*end.file), file, "{name}: {said}");
            assert!(end.is_none_or(|end| end.offset > 4), "{name}");
        }
    }
}
