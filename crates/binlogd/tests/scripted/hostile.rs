//! A source that means harm, or is no MySQL server at all: garbage, packets that never end, lengths that lie, sets and
//! answers without measure. The real binary must stay small, say clearly who did what, wait between its attempts, end
//! when it is asked to, and never crash.
//!
//! Memory is the peak that the kernel has seen (VmHWM). The limits leave room for what binlogd is at rest and for the
//! memory that an allocator keeps; each is far below what the peer claims or sends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::archive::reason;
use crate::common::daemon::Daemon;
use crate::common::seed;
use crate::common::workload::Random;
use codec::event::EventType;
use codec::packet::append_message;
use scripted_source::{FaultKind, LogOptions, Script, ScriptedSource, SemiSync, SourceLog};
use serde_json::Value;

/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest pauses short, so that attempts can be counted.
const FLAGS: [&str; 6] = [
    "--backoff-min=100ms",
    "--backoff-max=400ms",
    "--connect-timeout=2s",
    "--heartbeat-period=500ms",
    "--net-read-timeout=3s",
    "--tls=disabled",
];
/// The shortest pause that the back-off allows: half of `backoff_min`.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// What binlogd may take while it refuses something that it need not keep.
const SMALL_MIB: u64 = 96;
/// What it may take for an answer or a set that is large but allowed: 16 MiB as a message, 64 MiB as a result set.
const LARGE_MIB: u64 = 320;
/// Longest message that a peer's words may make.
const MESSAGE_BYTES_MAX: usize = 2_000;

const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const EOF: &[u8] = b"\xFE\0\0\x02\0";

/// One connection of binlogd to a peer of the test.
struct Peer {
    socket: TcpStream,
}

impl Peer {
    /// Sends a message; false when binlogd has hung up.
    fn say(&mut self, sequence: u8, message: &[u8]) -> bool {
        let mut bytes = Vec::new();
        append_message(&mut bytes, sequence, message);
        self.socket.write_all(&bytes).is_ok()
    }

    /// One packet of binlogd; `None` when it has hung up.
    fn hear(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; 4];
        self.socket.read_exact(&mut header).ok()?;
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.socket.read_exact(&mut payload).ok()?;
        Some(payload)
    }

    /// Greets as MySQL 8 does, and hears who is there.
    fn greet(&mut self) {
        let mut greeting = b"\x0A8.4.0\0\x07\0\0\0abcdefgh\0".to_vec();
        greeting.extend_from_slice(&[0x01, 0x82, 0xFF, 2, 0, 0x28, 0x00, 21]);
        greeting.extend_from_slice(&[0; 10]);
        greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        self.say(0, &greeting);
        self.hear();
    }

    /// Greets, and lets anybody in.
    fn admit(&mut self) {
        self.greet();
        self.say(2, OK);
    }

    /// Sends the same bytes until binlogd hangs up.
    fn repeat(&mut self, bytes: &[u8]) {
        while self.socket.write_all(bytes).is_ok() {}
    }

    /// Says nothing until binlogd hangs up.
    fn linger(&mut self) {
        let _ = self.socket.read_to_end(&mut Vec::new());
    }
}

/// A peer that does the same to every connection. Its threads end with the test program.
struct Listener {
    port: u16,
    accepted: Arc<Mutex<Vec<Instant>>>,
}

impl Listener {
    fn start(behaviour: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound socket").port();
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let (times, behaviour) = (accepted.clone(), Arc::new(behaviour));
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                times.lock().expect("no thread panics").push(Instant::now());
                let behaviour = behaviour.clone();
                std::thread::spawn(move || behaviour(&mut Peer { socket }));
            }
        });
        Self { port, accepted }
    }
}

/// `VmHWM` of a process: the most memory that it ever had, in MiB.
fn peak_memory_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

/// Processor time of a process, in clock ticks (of 10 ms on Linux): utime and stime of proc_pid_stat(5).
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running process");
    let after_name = stat.rsplit_once(')').expect("a name in brackets").1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

fn has_failed_twice(source: &Value) -> bool {
    source["counters"]["reconnects"].as_u64() >= Some(2)
}

/// What an operator is told, and that binlogd has stayed small and whole. Ends it.
#[track_caller]
fn assert_unharmed(mut daemon: Daemon, what: &str, port: u16, words: &str, memory_mib_max: u64) {
    let source = daemon.source();
    let message = source["last_error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains(words), "{what}: the status does not say {words:?}: {message:.500}");
    assert!(message.len() <= MESSAGE_BYTES_MAX, "{what}: a message of {} bytes", message.len());
    let peer = format!("host=127.0.0.1:{port}");
    let log = daemon.log();
    let is_told = |line: &&str| (line.contains(" WARN ") || line.contains(" ERROR ")) && line.contains(words);
    let told = log.lines().find(is_told);
    let told = told.unwrap_or_else(|| panic!("{what}: no line says {words:?}\n{log:.3000}"));
    assert!(told.contains(&peer), "{what}: the peer is not named: {told}");
    assert!(told.contains("next attempt in"), "{what}: {told}");
    let peak = peak_memory_mib(daemon.pid());
    println!("{what}: {peak} MiB at most; {message:.200}");
    assert!(peak <= memory_mib_max, "{what}: {peak} MiB, more than {memory_mib_max}");
    let asked = Instant::now();
    daemon.terminate();
    assert!(asked.elapsed() < Duration::from_secs(10), "{what}: ended after {:?}", asked.elapsed());
    assert!(!daemon.log().contains("panicked"), "{what}\n{}", daemon.log());
}

/// Lets binlogd meet a peer until two attempts have failed.
#[track_caller]
fn withstands(
    what: &str,
    words: &str,
    memory_mib_max: u64,
    behaviour: impl Fn(&mut Peer) + Send + Sync + 'static,
) {
    let peer = Listener::start(behaviour);
    let daemon = Daemon::start_on(&format!("mysql://any@127.0.0.1:{}", peer.port), &FLAGS);
    daemon.wait_until(has_failed_twice, PATIENCE);
    let accepted = peer.accepted.lock().expect("no thread panics").clone();
    for pair in accepted.windows(2) {
        let pause = pair[1] - pair[0];
        assert!(pause >= PAUSE_MIN, "{what}: an attempt {pause:?} after the one before");
    }
    assert_unharmed(daemon, what, peer.port, words, memory_mib_max);
}

const NO_PROTOCOL: &str = "the peer does not follow the MySQL protocol";

/// Random bytes that can be no greeting: they claim a packet of another number than the first.
fn garbage(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
    bytes[3] |= 1;
    bytes
}

#[test]
fn garbage_in_the_place_of_a_greeting() {
    let mut random = Random::new(seed());
    let bytes = garbage(&mut random, 1 << 16);
    let endless = bytes.clone();
    withstands("garbage", NO_PROTOCOL, SMALL_MIB, move |peer| {
        let _ = peer.socket.write_all(&bytes);
    });
    withstands("endless garbage", NO_PROTOCOL, SMALL_MIB, move |peer| peer.repeat(&endless));
    let http = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    withstands("another protocol", NO_PROTOCOL, SMALL_MIB, move |peer| peer.repeat(http));
}

#[test]
fn greetings_without_an_end() {
    withstands("packets that go on and on", "the message is longer", SMALL_MIB, |peer| {
        // Each packet says that another one continues it.
        let mut sequence = 0_u8;
        let body = vec![b'x'; 0xFF_FFFF];
        while peer.socket.write_all(&[0xFF, 0xFF, 0xFF, sequence]).is_ok() {
            let _ = peer.socket.write_all(&body);
            sequence = sequence.wrapping_add(1);
        }
    });
    withstands("an error of 12 MiB", "the server reports: xxx", SMALL_MIB, |peer| {
        peer.say(0, &[b"\xFF\x10\x04", &vec![b'x'; 12 << 20][..]].concat());
    });
    withstands("an endless login", "while authenticating", SMALL_MIB, |peer| {
        peer.greet();
        let challenge =
            [&b"\xFEmysql_native_password\0abcdefghijklmnopqrst\0"[..], &vec![0; 8 << 20]].concat();
        let mut sequence = 2_u8;
        while peer.say(sequence, &challenge) && peer.hear().is_some() {
            sequence = sequence.wrapping_add(2);
        }
    });
}

#[test]
fn silence_and_drips_cost_no_time_of_the_processor() {
    for (what, dripping) in [("silence", false), ("a byte at a time", true)] {
        let peer = Listener::start(move |peer| {
            peer.admit();
            peer.hear();
            if !dripping {
                return peer.linger();
            }
            // The answer to the first question never ends, and never pauses for long.
            let rows = endless_rows(&[b'x'; 200]);
            for byte in rows.iter().cycle() {
                if peer.socket.write_all(&[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let daemon = Daemon::start_on(&format!("mysql://any@127.0.0.1:{}", peer.port), &FLAGS);
        let (began, ticks) = (Instant::now(), cpu_ticks(daemon.pid()));
        daemon.wait_until(has_failed_twice, PATIENCE);
        let share = (cpu_ticks(daemon.pid()) - ticks) as f64 * 10.0 / began.elapsed().as_millis() as f64;
        assert!(share < 0.5, "{what}: {:.0} % of a processor", share * 100.0);
        assert_unharmed(daemon, what, peer.port, "no answer within 2s", SMALL_MIB);
    }
}

/// A source that says nothing, before the login or after it, does not hold up the end of the process.
#[test]
fn silence_does_not_outlast_a_signal() {
    for (what, greets) in [("no greeting", false), ("no answer", true)] {
        let waits = Arc::new(AtomicBool::new(false));
        let reached = waits.clone();
        let peer = Listener::start(move |peer| {
            if greets {
                peer.admit();
                peer.hear();
            }
            reached.store(true, Ordering::Release);
            peer.linger();
        });
        let url = format!("mysql://any@127.0.0.1:{}", peer.port);
        let mut daemon = Daemon::start_on(&url, &["--connect-timeout=600s", "--tls=disabled"]);
        daemon.wait_until(|_| waits.load(Ordering::Acquire), PATIENCE);
        println!("{what}");
        daemon.terminate();
    }
}

/// A result set's beginning with one column, and one row; further ones follow by repetition.
fn endless_rows(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sequence = append_message(&mut out, 1, &[1]);
    let column = b"\x03def\0\0\0\x01a\0\x0C\x3F\0\x01\0\0\0\x08\x81\0\0\0\0";
    sequence = append_message(&mut out, sequence, column);
    sequence = append_message(&mut out, sequence, EOF);
    append_message(&mut out, sequence, value);
    out
}

/// Answers the first question with these messages and then with the last of them for ever.
fn endless_answer(messages: Vec<Vec<u8>>) -> impl Fn(&mut Peer) + Send + Sync + 'static {
    move |peer| {
        peer.admit();
        peer.hear();
        let mut sequence = 1_u8;
        for message in messages.iter().chain(std::iter::repeat(messages.last().expect("a message"))) {
            if !peer.say(sequence, message) {
                return;
            }
            sequence = sequence.wrapping_add(1);
        }
    }
}

#[test]
fn answers_without_measure() {
    let column = b"\x03def\0\0\0\x01a\0\x0C\x3F\0\x01\0\0\0\x08\x81\0\0\0\0".to_vec();
    let head = |row: Vec<u8>| vec![vec![1], column.clone(), EOF.to_vec(), row];
    let large_row = [&b"\xFD"[..], &(1_u32 << 20).to_le_bytes()[..3], &vec![b'x'; 1 << 20][..]].concat();
    withstands("rows of 1 MiB", "result set is larger", LARGE_MIB, endless_answer(head(large_row)));
    let huge_column =
        [&b"\x03def\0\0\0\xFD"[..], &(15_u32 << 20).to_le_bytes()[..3], &vec![b'x'; 15 << 20][..]].concat();
    let columns = vec![b"\xFC\x00\x10".to_vec(), huge_column];
    // 4096 definitions of 15 MiB each: only the time ends them.
    withstands("columns of 15 MiB", "while running a query", LARGE_MIB, endless_answer(columns));
    let lie = b"\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F".to_vec();
    withstands("2^63 columns", "columns, more than", SMALL_MIB, endless_answer(vec![lie]));
    let long_value = head(b"\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7Fx".to_vec());
    withstands("a value of 2^63 bytes", "a value of the row", SMALL_MIB, endless_answer(long_value));
    let local_file = b"\xFB/etc/passwd".to_vec();
    withstands("a wish for a file", "asked for a local file", SMALL_MIB, endless_answer(vec![local_file]));
}

/// A scripted source behind which binlogd has received a file; `alter` makes it hostile.
fn scripted(alter: impl FnOnce(&mut Script)) -> (ScriptedSource, Daemon) {
    let mut script = Script { semi_sync: SemiSync::Absent, ..Script::new(SourceLog::default()) };
    script.log.group(2, 100);
    alter(&mut script);
    let source = ScriptedSource::start(script).expect("a free port");
    let daemon = Daemon::start_on(&format!("mysql://any@127.0.0.1:{}", source.port()), &FLAGS);
    (source, daemon)
}

/// Waits until everything that the source has is durable here, and compares it.
#[track_caller]
fn assert_arrived(what: &str, source: &ScriptedSource, daemon: &Daemon) {
    let end = source.log(SourceLog::end);
    let wanted = |status: &Value| {
        let durable = &status["positions"]["durable"];
        status["state"] == "receiving" && durable["file"] == *end.file && durable["position"] == end.position
    };
    daemon.wait_until(wanted, PATIENCE);
    for file in source.log(|log| log.files().to_vec()) {
        let copy = std::fs::read(daemon.timeline_dir().join(&file.name)).expect("the copy has every file");
        assert!(copy == file.bytes, "{what}: the copy of {} differs", file.name);
    }
}

#[test]
fn identities_without_measure() {
    let huge = "x".repeat(8 << 20);
    for (variable, value, words) in [
        ("server_uuid", huge.as_str(), "not a UUID"),
        ("server_uuid", "../../../../tmp/elsewhere", "not a UUID"),
    ] {
        let (source, daemon) =
            scripted(|script| drop(script.variables.insert(variable.to_owned(), value.to_owned())));
        daemon.wait_until(has_failed_twice, PATIENCE);
        assert_unharmed(daemon, variable, source.port(), words, SMALL_MIB);
    }
    // Taken, and cut where it is shown and stored.
    let (source, daemon) = scripted(|script| drop(script.variables.insert("version".to_owned(), huge)));
    assert_arrived("a version of 8 MiB", &source, &daemon);
    let shown = daemon.source()["server_version"].as_str().expect("a text").len();
    assert!(shown <= 128, "a version of {shown} bytes is shown");
    let stored = std::fs::metadata(daemon.timeline_dir().join("timeline.toml")).expect("a description").len();
    assert!(stored < 4_096, "a description of {stored} bytes");
}

/// Read as the empty set, it would make a successor that has everything look like a stranger that has nothing.
#[test]
fn a_gtid_set_that_cannot_be_read_is_not_the_empty_one() {
    const SUCCESSOR: &str = "5ccce550-71ca-11e1-9e33-c80aa9429562";
    let (first, mut daemon) = scripted(|_| {});
    assert_arrived("the first source", &first, &daemon);
    let (data_dir, log) = (daemon.data_dir(), first.log(SourceLog::clone));
    let executed = log.executed();
    daemon.terminate();
    let successor = |variables: &[(&str, &str)]| {
        let mut script = Script { semi_sync: SemiSync::Absent, ..Script::new(log.clone()) };
        for (name, value) in [("server_uuid", SUCCESSOR)].iter().chain(variables) {
            script.variables.insert((*name).to_owned(), (*value).to_owned());
        }
        let source = ScriptedSource::start(script).expect("a free port");
        let url = format!("mysql://any@127.0.0.1:{}", source.port());
        let flags = [&FLAGS[..], &["--on-stranger=follow"]].concat();
        let daemon = Daemon::start_in(&data_dir, &url, &flags);
        (source, daemon)
    };
    for (variable, value) in [
        ("gtid_executed", format!("{executed}x")),
        ("gtid_executed", "everything".to_owned()),
        ("gtid_purged", "0-1-100".to_owned()),
        ("server_id", "many".to_owned()),
    ] {
        let (source, daemon) = successor(&[(variable, &value)]);
        daemon.wait_until(has_failed_twice, PATIENCE);
        assert_eq!(daemon.timeline_dirs().len(), 1, "{variable}");
        assert_unharmed(
            daemon,
            variable,
            source.port(),
            &format!("@@{variable} is \"{value}\", not"),
            SMALL_MIB,
        );
    }
    // The same server with the set that it has.
    let (source, daemon) = successor(&[]);
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    let timelines = daemon.timeline_dirs();
    assert_eq!((timelines.len(), reason(&timelines[1])), (2, "source-changed".to_owned()));
    assert_arrived("the successor", &source, &daemon);
}

/// MySQL counts its versions by years now: a number above 9 is no MariaDB.
#[test]
fn a_version_is_not_taken_for_another_server() {
    for version in ["26.7.0", "28.4.1-lts", "26.7", "8.4.0-4.1-percona", "8.0.mysql_aurora.3.04.0", "x"] {
        let (source, daemon) = scripted(|script| {
            let options = LogOptions { server_version: version.to_owned(), ..LogOptions::default() };
            script.log = SourceLog::new(options);
            script.log.group(2, 100);
        });
        assert_arrived(version, &source, &daemon);
        let status = daemon.source();
        assert_eq!(status["server_version"], version);
        let uuid = status["server_uuid"].as_str().expect("a text");
        assert!(!uuid.starts_with("mariadb"), "{version} is {uuid}");
        assert_eq!(status["gtid"]["durable"], source.log(SourceLog::executed), "{version}");
    }
}

/// As many intervals as a message of the protocol holds: allowed, and more than any server has.
#[test]
fn gtid_sets_without_measure() {
    let intervals: String = (0..1_500_000_u64).map(|number| format!(":{}", 1_000_000 + number * 2)).collect();
    let set = format!("3e11fa47-71ca-11e1-9e33-c80aa9429562{intervals}");
    assert!(set.len() > 11 << 20);
    let (source, daemon) = scripted(|script| {
        script.variables.insert("gtid_executed".to_owned(), set);
    });
    assert_arrived("12 MiB of GTIDs", &source, &daemon);
    let peak = peak_memory_mib(daemon.pid());
    println!("12 MiB of GTIDs: {peak} MiB at most");
    assert!(peak <= LARGE_MIB, "{peak} MiB");

    let many: String =
        (0..50_000_u64).map(|number| format!("{number:08x}-71ca-11e1-9e33-c80aa9429562:1,")).collect();
    let (source, daemon) = scripted(|script| drop(script.variables.insert("gtid_executed".to_owned(), many)));
    assert_arrived("50 000 UUIDs", &source, &daemon);
    let peak = peak_memory_mib(daemon.pid());
    assert!(peak <= LARGE_MIB, "{peak} MiB");
}

/// A fault at the second event of the second dump's file, and the words that tell of it.
#[track_caller]
fn stream_withstands(what: &str, words: &str, fault: FaultKind) {
    const FILE: &str = "mysql-bin.000001";
    const INSIDE: usize = 4;
    let (source, daemon) = scripted(|script| {
        for dump in 0..3 {
            script.faults.push(scripted_source::Fault {
                dump,
                file: FILE.to_owned(),
                event: INSIDE,
                kind: fault.clone(),
            });
        }
    });
    daemon.wait_until(has_failed_twice, PATIENCE);
    // The fourth dump is sound.
    assert_arrived(what, &source, &daemon);
    assert_eq!(daemon.timeline_dirs().len(), 1, "{what}: the history is one");
    assert_unharmed(daemon, what, source.port(), words, SMALL_MIB);
}

/// An event's header with a length of the caller's.
fn event_header(event_type: u8, event_size: u32) -> Vec<u8> {
    let mut header = vec![1, 0, 0, 0, event_type, 1, 0, 0, 0];
    header.extend_from_slice(&event_size.to_le_bytes());
    header.extend_from_slice(&[0; 6]);
    header
}

#[test]
fn streams_of_garbage() {
    let mut random = Random::new(seed());
    let mut bytes = garbage(&mut random, 1 << 17);
    // A packet of at least 8 MiB, so that nobody waits for the rest of it before looking into it.
    bytes[2] |= 0x80;
    stream_withstands("garbage", "the source's stream cannot be understood", FaultKind::Raw(bytes));
    let empty = FaultKind::Flood { payloads: vec![Vec::new()], packets: 1 << 20 };
    stream_withstands("empty packets", "too short", empty);
    let other = FaultKind::Flood { payloads: vec![vec![0x7F; 100]], packets: 1 << 10 };
    stream_withstands("packets of another command", "starts with status 0x7f", other);
    let error = [b"\xFF\xD4\x04#HY000".to_vec(), vec![b'x'; 12 << 20]].concat();
    let error = FaultKind::Flood { payloads: vec![error], packets: 1 };
    stream_withstands("an error of 12 MiB", "the source ended the dump: xxx", error);
}

#[test]
fn events_whose_lengths_lie() {
    const WRITE_ROWS: u8 = 30;
    // 4 GiB are announced, 96 MiB come, in packets that fit the announcement; then the source hangs up.
    let mut first = [vec![0], event_header(WRITE_ROWS, u32::MAX)].concat();
    first.resize(0xFF_FFFF, b'x');
    let endless = FaultKind::Flood { payloads: vec![first, vec![b'x'; 0xFF_FFFF]], packets: 6 };
    stream_withstands("an event that never ends", "the source closed the connection", endless);
    let mut short = [vec![0], event_header(WRITE_ROWS, u32::MAX)].concat();
    short.resize(1_000, b'x');
    let short = FaultKind::Flood { payloads: vec![short], packets: 1 << 10 };
    stream_withstands("an event of 4 GiB in 1 KiB", "its packet holds", short);
    // A heartbeat, whose body is a name, of 3 MiB.
    const HEARTBEAT: u8 = 27;
    let heartbeat = [vec![0], event_header(HEARTBEAT, (3 << 20) - 1), vec![b'x'; (3 << 20) - 20]].concat();
    let heartbeat = FaultKind::Flood { payloads: vec![heartbeat], packets: 4 };
    stream_withstands("a heartbeat of 3 MiB", "longer than an event of its type can be", heartbeat);
}

/// One zstd frame of `blocks` blocks that each stand for 128 KiB of zeros in four bytes (RFC 8878, "RLE_Block").
fn zstd_bomb(blocks: usize) -> Vec<u8> {
    const BLOCK_BYTES: u32 = 128 << 10;
    const RLE: u32 = 1;
    // Magic, frame header descriptor without a content size, and a window of 2 MiB.
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58];
    for block in 1..=blocks {
        let last = u32::from(block == blocks);
        frame.extend_from_slice(&(last | RLE << 1 | BLOCK_BYTES << 3).to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// binlogd does not look into compressed transactions: they are stored as they are, and so is a bomb.
#[test]
fn compressed_bombs_are_stored_as_they_are() {
    let (source, mut daemon) = scripted(|script| {
        script.log.compressed_transaction(&zstd_bomb(1 << 14), 2 << 30);
        script.log.compressed_transaction(b"no frame at all", u64::MAX);
        script.log.compressed_transaction(&[], 0);
        // A bomb inside a bomb.
        script.log.compressed_transaction(&[zstd_bomb(1 << 10), zstd_bomb(1 << 12)].concat(), 1);
        script.log.group(1, 10);
    });
    assert_arrived("bombs", &source, &daemon);
    assert_eq!(daemon.source()["counters"]["reconnects"], 0, "{}", daemon.log());
    let peak = peak_memory_mib(daemon.pid());
    assert!(peak <= SMALL_MIB, "{peak} MiB");
    daemon.terminate();
    // Recovery and verification read them again.
    daemon.restart(&FLAGS);
    assert_arrived("bombs, after a restart", &source, &daemon);
    daemon.terminate();
    verifies(&daemon);
}

/// The wire form of a GTID set of so many intervals, beside what the log holds, for a PREVIOUS_GTIDS event.
fn large_set(log: &SourceLog, intervals: u64) -> Vec<u8> {
    let numbers: Vec<String> = (0..intervals).map(|number| (1_000 + number * 2).to_string()).collect();
    let text = format!("{},3e11fa47-71ca-11e1-9e33-c80aa9429562:{}", log.executed(), numbers.join(":"));
    let set: codec::gtid::GtidSet = text.parse().expect("a GTID set");
    let mut encoded = Vec::new();
    set.encode(&mut encoded);
    encoded
}

/// A set that is larger than the receive buffer (1 MiB) counts like any other, before a restart and after it.
#[test]
fn a_large_set_at_the_beginning_of_a_file() {
    let (source, mut daemon) = scripted(|script| {
        let set = large_set(&script.log, 100_000);
        assert!(set.len() > 1 << 20);
        script.log.restart_saying(&set);
        script.log.purge(1);
        script.log.group(2, 100);
    });
    assert_arrived("a large set", &source, &daemon);
    let before = daemon.source()["gtid"]["durable"].clone();
    assert!(before.as_str().is_some_and(|text| text.contains(":200998")), "the set is not counted");
    daemon.terminate();
    daemon.restart(&FLAGS);
    assert_arrived("a large set, after a restart", &source, &daemon);
    assert_eq!(daemon.source()["gtid"]["durable"], before);
    daemon.terminate();
    verifies(&daemon);
}

/// What is stored must be what recovery accepts: it would cut off at the next start what was acknowledged behind a set
/// that it cannot read. That holds for a set that is larger than the receive buffer too.
#[test]
fn a_large_malformed_set_is_not_stored() {
    let (source, daemon) = scripted(|script| {
        let mut set = large_set(&script.log, 100_000);
        // The end of the last interval is past every number. The event's checksum is right all the same.
        *set.last_mut().expect("a byte") = 0xFF;
        script.log.event(EventType::PREVIOUS_GTIDS, &set);
        script.log.group(2, 100);
    });
    daemon.wait_until(has_failed_twice, PATIENCE);
    assert_unharmed(daemon, "a large malformed set", source.port(), "cannot be decoded", SMALL_MIB);
}

/// `binlogd verify` of what a stopped daemon holds.
#[track_caller]
fn verifies(daemon: &Daemon) {
    let mut command = assert_cmd::Command::cargo_bin("binlogd").expect("the binary");
    command.arg("verify").arg(daemon.data_dir()).assert().success();
}
