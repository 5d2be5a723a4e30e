//! A peer that means harm: one that speaks no protocol, or a scripted source that a test alters; and what binlogd must be
//! like once it has met the peer.
//!
//! Memory is the peak that the kernel has seen (VmHWM). The limits leave room for what binlogd is at rest and for the
//! memory that an allocator keeps; each is far below what the peer claims or sends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::daemon::Daemon;
use crate::common::workload::Random;
use codec::packet::append_message;
use scripted_source::{Script, ScriptedSource, SemiSync, SourceLog};
use serde_json::Value;

/// Longest wait for anything: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Longest pauses short, so that attempts can be counted.
pub(crate) const FLAGS: [&str; 6] = [
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
pub(crate) const SMALL_MIB: u64 = 96;
/// What it may take for an answer or a set that is large but allowed: 16 MiB as a message, 64 MiB as a result set.
pub(crate) const LARGE_MIB: u64 = 320;
/// Longest message that a peer's words may make.
const MESSAGE_BYTES_MAX: usize = 2_000;

pub(crate) const OK: &[u8] = b"\0\0\0\x02\0\0\0";
pub(crate) const EOF: &[u8] = b"\xFE\0\0\x02\0";

/// One connection of binlogd to a peer of the test.
pub(crate) struct Peer {
    pub(crate) socket: TcpStream,
}

impl Peer {
    /// Sends a message; false when binlogd has hung up.
    pub(crate) fn say(&mut self, sequence: u8, message: &[u8]) -> bool {
        let mut bytes = Vec::new();
        append_message(&mut bytes, sequence, message);
        self.socket.write_all(&bytes).is_ok()
    }

    /// One packet of binlogd; `None` when it has hung up.
    pub(crate) fn hear(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; 4];
        self.socket.read_exact(&mut header).ok()?;
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.socket.read_exact(&mut payload).ok()?;
        Some(payload)
    }

    /// Greets as MySQL 8 does, and hears who is there.
    pub(crate) fn greet(&mut self) {
        let mut greeting = b"\x0A8.4.0\0\x07\0\0\0abcdefgh\0".to_vec();
        greeting.extend_from_slice(&[0x01, 0x82, 0xFF, 2, 0, 0x28, 0x00, 21]);
        greeting.extend_from_slice(&[0; 10]);
        greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        self.say(0, &greeting);
        self.hear();
    }

    /// Greets, and lets anybody in.
    pub(crate) fn admit(&mut self) {
        self.greet();
        self.say(2, OK);
    }

    /// Sends the same bytes until binlogd hangs up.
    pub(crate) fn repeat(&mut self, bytes: &[u8]) {
        while self.socket.write_all(bytes).is_ok() {}
    }

    /// Says nothing until binlogd hangs up.
    pub(crate) fn linger(&mut self) {
        let _ = self.socket.read_to_end(&mut Vec::new());
    }
}

/// A peer that does the same to every connection. Its threads end with the test program.
pub(crate) struct Listener {
    pub(crate) port: u16,
    accepted: Arc<Mutex<Vec<Instant>>>,
}

impl Listener {
    pub(crate) fn start(behaviour: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
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
pub(crate) fn peak_memory_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

/// Processor time of a process, in clock ticks (of 10 ms on Linux): utime and stime of proc_pid_stat(5).
pub(crate) fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running process");
    let after_name = stat.rsplit_once(')').expect("a name in brackets").1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

pub(crate) fn has_failed_twice(source: &Value) -> bool {
    source["counters"]["reconnects"].as_u64() >= Some(2)
}

/// What an operator is told, and that binlogd has stayed small and whole. Ends it.
#[track_caller]
pub(crate) fn assert_unharmed(mut daemon: Daemon, what: &str, port: u16, words: &str, memory_mib_max: u64) {
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
pub(crate) fn withstands(
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

pub(crate) const NO_PROTOCOL: &str = "the peer does not follow the MySQL protocol";

/// Random bytes that can be no greeting: they claim a packet of another number than the first.
pub(crate) fn garbage(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
    bytes[3] |= 1;
    bytes
}

/// A scripted source behind which binlogd has received a file; `alter` makes it hostile.
pub(crate) fn scripted(alter: impl FnOnce(&mut Script)) -> (ScriptedSource, Daemon) {
    let mut script = Script { semi_sync: SemiSync::Absent, ..Script::new(SourceLog::default()) };
    script.log.group(2, 100);
    alter(&mut script);
    let source = ScriptedSource::start(script).expect("a free port");
    let daemon = Daemon::start_on(&format!("mysql://any@127.0.0.1:{}", source.port()), &FLAGS);
    (source, daemon)
}

/// Waits until everything that the source has is durable here, and compares it.
#[track_caller]
pub(crate) fn assert_arrived(what: &str, source: &ScriptedSource, daemon: &Daemon) {
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
