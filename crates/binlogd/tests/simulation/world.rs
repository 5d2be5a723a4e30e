//! Everything outside the receiver: the network, the clock and the source, in the receiver's own thread.
//!
//! Time passes only when the receiver waits, and the rest of the world acts only when the receiver reads. So one seed gives
//! one history.

use crate::chain::turns::Turns;
use crate::disk::Disk;
use crate::peer::{OtherBinlogd, PEER, PEER_NAME};
use crate::reader::Reader;
use crate::source::Source;
use binlog::testing::Random;
use jiff::Timestamp;
use scripted_source::{Heard, Peer, Place};
use source::clock::Clock;
use source::stop::{Interruption, StopSignal};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use wire::{ByteStream, ConnectOptions, Connection, Network, WireError};

/// Longest time that passes while bytes are on their way.
const TRANSIT_MAX: Duration = Duration::from_millis(2);

/// Where other binlogds have their turns, something happens to the servers so often, whether the receiver reads or not.
const ACTS_EVERY: Duration = Duration::from_millis(200);

/// What the clock on the wall shows at first.
pub const BEGINNING: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// What else happens. Called when the receiver reads, with everything that it may change.
pub trait Environment: Send {
    /// Before bytes are given out.
    fn act(&mut self, scene: &mut Scene);

    /// Nothing came within the time limit of a read, or the receiver makes a pause.
    fn idle(&mut self, scene: &mut Scene);
}

/// One connection, and what the network does to it.
#[derive(Debug)]
pub struct Line {
    pub session: Peer,
    /// Number of the server at the other end; [`PEER`] for the other binlogd.
    pub host: usize,
    /// Of the other binlogd: the timeline that was chosen.
    timeline: Option<usize>,
    /// Bytes of `session.packets.bytes` that the receiver has.
    given: usize,
    /// The connection breaks after so many more bytes.
    pub cut_after: Option<usize>,
    /// So many bytes from now, one bit is wrong.
    pub flip_after: Option<usize>,
    /// Nothing more arrives.
    pub is_silent: bool,
    is_cut: bool,
    /// Behind what was sent the receiver finds its end: it was interrupted.
    is_interrupted: bool,
    last_arrival: Duration,
}

/// The state of the world.
pub struct Scene {
    /// The servers, in the order of the configuration's hosts.
    pub hosts: Vec<Source>,
    /// Number of the one that clients write to.
    pub source: usize,
    /// Another binlogd of the source, where there is one.
    pub peer: Option<OtherBinlogd>,
    pub lines: BTreeMap<u64, Line>,
    pub random: Random,
    pub disk: Disk,
    /// Reads what the receiver publishes.
    pub reader: Reader,
    pub stop: Arc<StopSignal>,
    /// The source accepts connections.
    pub is_reachable: bool,
    /// Every acknowledgement that a server has received, in order: the server's number, file and position.
    pub acknowledged: Vec<(usize, String, u64)>,
    /// Acknowledgements of logs that a server does not have any more, which a real one would take for its new ones.
    pub stale: Vec<Place>,
    /// Most bytes that one read gives.
    pub chunk_max: u64,
    /// How often the receiver has read, written, waited or connected.
    pub steps: u64,
    /// After so many more, the receiver is asked to stop.
    pub steps_left: u64,
    next_line: u64,
    /// Since the beginning. Where there are `turns`, theirs counts.
    pub now: Duration,
    /// Where other binlogds run beside the receiver: whose turn it is.
    pub turns: Option<Arc<Turns>>,
    /// Who reads from the receiver has confirmed something: it is not to wait for the source any longer.
    pub is_nudged: bool,
}

/// The world, as network and clock of a receiver.
pub struct World {
    began: Instant,
    /// Says readable whenever a stream is asked for what can be polled.
    poll: File,
    state: Mutex<(Scene, Box<dyn Environment>)>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}

impl World {
    pub fn new(
        hosts: Vec<Source>,
        disk: Disk,
        stop: Arc<StopSignal>,
        chunk_max: u64,
        seed: u64,
        environment: Box<dyn Environment>,
    ) -> World {
        let scene = Scene {
            hosts,
            source: 0,
            peer: None,
            lines: BTreeMap::new(),
            random: Random::new(seed),
            disk,
            reader: Reader::default(),
            stop,
            is_reachable: true,
            acknowledged: Vec::new(),
            stale: Vec::new(),
            chunk_max,
            steps: 0,
            steps_left: u64::MAX,
            next_line: 0,
            now: Duration::ZERO,
            turns: None,
            is_nudged: false,
        };
        let poll = File::open("/dev/null").expect("a file that can be polled");
        World { began: Instant::now(), poll, state: Mutex::new((scene, environment)) }
    }

    fn state(&self) -> MutexGuard<'_, (Scene, Box<dyn Environment>)> {
        self.state.lock().expect("no panic in the world")
    }

    /// Whose turn it is, where other binlogds run.
    fn turns(&self) -> Option<Arc<Turns>> {
        self.state().0.turns.clone()
    }

    /// Nothing comes.
    fn idle(&self) {
        let mut state = self.state();
        let (scene, environment) = &mut *state;
        scene.step();
        environment.idle(scene);
    }

    /// Looks at the world or changes it.
    pub fn with<R>(&self, look: impl FnOnce(&mut Scene) -> R) -> R {
        look(&mut self.state().0)
    }
}

/// The way of one receiver process into a world, which goes on when the process ends.
#[derive(Debug, Clone)]
pub struct Way(pub Arc<World>);

impl Network for Way {
    fn connect(
        &self,
        options: &ConnectOptions,
        _on_socket: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<Connection, WireError> {
        let number = {
            let mut state = self.0.state();
            let scene = &mut state.0;
            scene.step();
            let host = if options.host == PEER_NAME { PEER } else { host_number(&options.host) };
            let is_there = match &scene.peer {
                Some(peer) if host == PEER => peer.is_up,
                _ => scene.is_reachable && scene.hosts[host].is_up,
            };
            if !is_there || scene.disk.is_off() {
                let reason = io::ErrorKind::ConnectionRefused.into();
                return Err(WireError::Connect { address: options.host.clone(), reason });
            }
            scene.connect(host)
        };
        let stream = Stream { world: self.0.clone(), number, timeout: None };
        Connection::over(Box::new(stream), options)
    }
}

/// The server at the other end of a connection.
fn server<'a>(
    hosts: &'a mut [Source],
    peer: &'a mut Option<OtherBinlogd>,
    host: usize,
    timeline: Option<usize>,
) -> &'a mut Source {
    match peer {
        Some(peer) if host == PEER => peer.timeline(timeline),
        _ => &mut hosts[host],
    }
}

/// Name of a server in the configuration.
pub fn host_name(number: usize) -> String {
    format!("simulated-{number}")
}

/// Number of a server, from its name.
fn host_number(name: &str) -> usize {
    let number = name.strip_prefix("simulated-").and_then(|number| number.parse().ok());
    number.expect("a name from the configuration")
}

impl Clock for Way {
    fn has_threads(&self) -> bool {
        false
    }

    fn now(&self) -> Instant {
        self.0.began + self.0.state().0.now()
    }

    /// As with a real clock, no two moments are the same.
    fn wall_time(&self) -> Timestamp {
        let scene = &mut self.0.state().0;
        scene.take_time(Duration::from_micros(1));
        BEGINNING + scene.now()
    }

    fn sleep(&self, pause: Duration) {
        self.0.state().0.take_time(pause);
    }

    fn pause(&self, stop: &StopSignal, pause: Duration) -> bool {
        if let Some(turns) = self.0.turns() {
            turns.stir();
            let until = turns.now() + pause;
            while turns.now() < until && !stop.is_requested() {
                self.0.idle();
                turns.wait_until(until);
            }
            self.0.idle();
            return stop.is_requested();
        }
        let mut state = self.0.state();
        let (scene, environment) = &mut *state;
        scene.step();
        scene.now += pause;
        environment.idle(scene);
        stop.is_requested()
    }

    fn jitter(&self) -> u32 {
        self.0.state().0.random.next() as u32
    }
}

impl Scene {
    /// Since the beginning.
    pub fn now(&self) -> Duration {
        self.turns.as_ref().map_or(self.now, |turns| turns.now())
    }

    fn take_time(&mut self, time: Duration) {
        match &self.turns {
            Some(turns) => turns.take_time(time),
            None => self.now += time,
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        if !self.disk.is_off()
            && let Some((file, end)) = self.reader.look(&self.disk)
        {
            self.disk.published(&file, end);
        }
        self.steps_left = self.steps_left.saturating_sub(1);
        if self.steps_left == 0 {
            self.stop.request();
        }
    }

    fn connect(&mut self, host: usize) -> u64 {
        self.next_line += 1;
        let line = Line {
            session: Peer::new(server(&mut self.hosts, &mut self.peer, host, None)),
            host,
            timeline: None,
            given: 0,
            cut_after: None,
            flip_after: None,
            is_silent: false,
            is_cut: false,
            is_interrupted: false,
            last_arrival: self.now(),
        };
        self.lines.insert(self.next_line, line);
        self.next_line
    }

    /// The server that clients write to.
    pub fn source(&self) -> &Source {
        &self.hosts[self.source]
    }

    /// The server that clients write to, to be changed.
    pub fn source_mut(&mut self) -> &mut Source {
        &mut self.hosts[self.source]
    }

    /// All connections break.
    pub fn disconnect(&mut self) {
        self.lines.values_mut().for_each(|line| line.is_cut = true);
    }

    /// All connections to one server break.
    pub fn disconnect_from(&mut self, host: usize) {
        self.lines.values_mut().filter(|line| line.host == host).for_each(|line| line.is_cut = true);
    }

    /// The look at the hosts finds that `to` is the source, and ends the session with `from`, which goes on sending.
    pub fn switch_over(&mut self, from: usize, to: usize) {
        self.stop.interrupt(Interruption::SwitchedOver { to, host: host_name(to) });
        self.lines.values_mut().filter(|line| line.host == from).for_each(|line| line.is_interrupted = true);
    }

    /// The receiver has everything that the source has: it has been sent to the last byte.
    pub fn everything_is_sent(&self) -> bool {
        self.lines.values().filter(|line| line.host == self.source).any(|line| {
            !line.is_cut && line.session.is_dumping() && line.given == line.session.packets.bytes.len()
        })
    }

    fn read(&mut self, number: u64, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if self.disk.is_off() || self.stop.is_requested() {
            return Ok(Some(0));
        }
        let transit = TRANSIT_MAX.mul_f64(self.random.below(1000) as f64 / 1000.0);
        self.take_time(transit);
        let now = self.now();
        let Some(line) = self.lines.get_mut(&number) else { return Ok(Some(0)) };
        if line.is_cut {
            self.lines.remove(&number);
            return if self.random.one_in(2) {
                Ok(Some(0))
            } else {
                Err(io::ErrorKind::ConnectionReset.into())
            };
        }
        if line.is_silent {
            return Ok(None);
        }
        if line.given == line.session.packets.bytes.len() && line.is_interrupted {
            return Ok(Some(0));
        }
        if line.given == line.session.packets.bytes.len() {
            line.session.packets.bytes.clear();
            line.given = 0;
            let log = server(&mut self.hosts, &mut self.peer, line.host, line.timeline).log();
            for _ in 0..1 + self.random.below(12) {
                if !line.session.step(log) {
                    break;
                }
            }
        }
        let left = line.session.packets.bytes.len() - line.given;
        if left == 0 {
            return Ok(line.session.is_ended().then_some(0));
        }
        let most = (1 + self.random.below(self.chunk_max)) as usize;
        let mut len = left.min(buffer.len()).min(most);
        if let Some(cut) = &mut line.cut_after {
            len = len.min(*cut);
            *cut -= len;
            if *cut == 0 {
                line.is_cut = true;
            }
        }
        buffer[..len].copy_from_slice(&line.session.packets.bytes[line.given..line.given + len]);
        if let Some(flip) = &mut line.flip_after {
            if *flip < len {
                buffer[*flip] ^= 1 << self.random.below(8);
                line.flip_after = None;
            } else {
                *flip -= len;
            }
        }
        line.given += len;
        line.last_arrival = now;
        Ok(Some(len))
    }

    /// When a heartbeat is due on a connection; one that is due is sent.
    fn next_heartbeat(&mut self, number: u64) -> Option<Duration> {
        let now = self.now();
        let line = self.lines.get_mut(&number).filter(|line| !line.is_silent && line.session.is_dumping())?;
        let due = line.last_arrival + line.session.heartbeat_period()?;
        if due <= now {
            line.session.heartbeat(server(&mut self.hosts, &mut self.peer, line.host, line.timeline).log());
        }
        Some(due)
    }

    /// Nothing came: the time limit passes, or what is left until a heartbeat, which then is there.
    fn wait(&mut self, number: u64, timeout: Duration) {
        let end = self.now + timeout;
        let line = self.lines.get_mut(&number).filter(|line| !line.is_silent && line.session.is_dumping());
        let period = line.as_ref().and_then(|line| line.session.heartbeat_period());
        self.now = match (line, period) {
            (Some(line), Some(period)) if line.last_arrival + period <= end => {
                line.session
                    .heartbeat(server(&mut self.hosts, &mut self.peer, line.host, line.timeline).log());
                self.now.max(line.last_arrival + period)
            }
            _ => end,
        };
    }
}

/// A connection as the receiver has it.
#[derive(Debug)]
struct Stream {
    world: Arc<World>,
    number: u64,
    timeout: Option<Duration>,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(turns) = self.world.turns() {
            return self.read_in_turn(&turns, buffer);
        }
        let mut state = self.world.state();
        let (scene, environment) = &mut *state;
        scene.step();
        environment.act(scene);
        match (scene.read(self.number, buffer)?, self.timeout) {
            (Some(read), _) => Ok(read),
            (None, None) => Err(io::ErrorKind::TimedOut.into()),
            (None, Some(timeout)) => {
                environment.idle(scene);
                scene.wait(self.number, timeout);
                scene.read(self.number, buffer)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
            }
        }
    }
}

impl Stream {
    /// As [`Read::read`], beside other binlogds: who waits lets them have their turns.
    fn read_in_turn(&self, turns: &Turns, buffer: &mut [u8]) -> io::Result<usize> {
        // What was read last may have been published since.
        turns.stir();
        turns.pass();
        let end = self.timeout.map(|timeout| turns.now() + timeout);
        loop {
            let due = {
                let mut state = self.world.state();
                let (scene, environment) = &mut *state;
                scene.step();
                environment.act(scene);
                if let Some(read) = scene.read(self.number, buffer)? {
                    turns.stir();
                    return Ok(read);
                }
                environment.idle(scene);
                if std::mem::take(&mut scene.is_nudged) {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                scene.next_heartbeat(self.number)
            };
            let now = turns.now();
            match end {
                Some(end) if end <= now => return Err(io::ErrorKind::WouldBlock.into()),
                _ if due.is_some_and(|due| due <= now) => continue,
                _ => {}
            }
            let until = [end, due].into_iter().flatten().fold(now + ACTS_EVERY, Duration::min);
            turns.wait_until(until);
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.world.state();
        let scene = &mut state.0;
        scene.step();
        let line = scene.lines.get_mut(&self.number).filter(|line| !line.is_cut && !scene.disk.is_off());
        let Some(line) = line else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let host = line.host;
        let server = server(&mut scene.hosts, &mut scene.peer, host, line.timeline);
        let heard = line.session.take(bytes, server).expect("the receiver speaks the protocol");
        scene.stale.append(&mut line.session.stale);
        if let Some(peer) = scene.peer.as_mut().filter(|_| host == PEER) {
            for heard in heard {
                match &heard {
                    Heard::Query(statement) => {
                        line.timeline = OtherBinlogd::chosen(statement).or(line.timeline);
                    }
                    Heard::Dump { .. } => peer.dumps += 1,
                    Heard::Acknowledged(_) => {}
                }
                assert_eq!(heard.acknowledges(), None, "nothing is acknowledged to a peer");
            }
            return Ok(bytes.len());
        }
        for Place { file, position } in heard.into_iter().filter_map(Heard::acknowledges) {
            if scene.reader.confirms.is_some() {
                let sent = scene.hosts[host].log().file(&file).map(|sent| &sent.bytes[..position as usize]);
                assert!(
                    sent.is_none_or(|sent| scene.reader.has_confirmed(&file, sent)),
                    "{file}:{position} was acknowledged, and the receiver further down has not confirmed it"
                );
            }
            scene.disk.acknowledged(&file, position);
            scene.acknowledged.push((host, file, position));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.world.poll.as_fd()
    }
}

impl ByteStream for Stream {
    fn set_read_timeout(&mut self, timeout: Duration) {
        self.timeout = Some(timeout);
    }
}
