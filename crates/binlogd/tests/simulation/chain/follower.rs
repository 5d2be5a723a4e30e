//! A binlogd that reads from another one: the product over a disk of its own and a pipe to the other one's port.

use crate::chain::port::{PASSWORD, Pipe, Port, Serving};
use crate::chain::turns::{FOR_EVER, Turns};
use crate::disk::fate::Fate;
use crate::disk::image::Tree;
use crate::disk::{Disk, Judge, Verdict};
use crate::history::History;
use crate::receiver::{SOURCE, config, data_dir};
use crate::simulate::{compare_files, held_files};
use crate::turmoil::{Past, Weather, judge};
use crate::world::{BEGINNING, World};
use binlog::testing::Random;
use codec::gtid::GtidSet;
use config::{FsyncMode, HostPort, OnGap, SourceConfig};
use jiff::Timestamp;
use receive::Upstream;
use source::clock::Clock;
use source::stop::StopSignal;
use status::SourceMonitor;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wire::{ByteStream, ConnectOptions, Connection, Network, WireError};

/// Limits by the clock of the machine, and of a silence that has no meaning here.
const REAL_TIME_MAX: Duration = Duration::from_secs(3600);

/// Most bytes that a read gives when nothing fails any more.
const CALM_CHUNK_MAX: u64 = 100_000;

/// What all binlogds of a chain are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Everything may fail.
    Disturbed,
    /// Nothing fails any more.
    Calm,
    /// All stop.
    Over,
}

/// What the threads of a chain share.
pub struct Chain {
    pub turns: Arc<Turns>,
    pub world: Arc<World>,
    pub past: Arc<Mutex<Past>>,
    pub stage: Mutex<Stage>,
    /// Of the processes that run.
    pub stops: Mutex<Vec<Arc<StopSignal>>>,
    pub began: Instant,
}

impl Chain {
    pub fn stage(&self) -> Stage {
        *self.stage.lock().unwrap()
    }

    /// From now on it is another stage.
    pub fn enters(&self, stage: Stage) {
        *self.stage.lock().unwrap() = stage;
        if stage == Stage::Over {
            self.stops.lock().unwrap().iter().for_each(|stop| stop.request());
            self.world.with(|scene| scene.stop.request());
        }
        self.turns.stir();
    }

    /// How often the first binlogd has done something.
    fn steps(&self) -> u64 {
        self.world.with(|scene| scene.steps)
    }
}

/// A binlogd that reads from another one.
pub struct Follower {
    pub name: &'static str,
    pub chain: Arc<Chain>,
    /// From where it reads.
    pub above: Arc<Port>,
    /// Where others read from it.
    pub port: Arc<Port>,
    pub random: Random,
    pub config: SourceConfig,
    disk: Disk,
    weather: Arc<Mutex<Weather>>,
}

impl Follower {
    /// A new one, with nothing on its disk.
    pub fn new(name: &'static str, number: u32, chain: &Arc<Chain>, above: Arc<Port>, seed: u64) -> Follower {
        let mut random = Random::new(seed);
        let disk = Disk::with(&Tree::default(), random.next());
        let weather: Arc<Mutex<Weather>> = Arc::default();
        disk.judged_by(judge_of(chain, &weather));
        let mut config = config(FsyncMode::SyncThenAcknowledge, true);
        config.hosts = vec![HostPort { host: "above".to_owned(), port: 3307 }];
        config.password = PASSWORD.into();
        config.server_id = Some(77 + number);
        config.on_gap = OnGap::Record;
        config.net_read_timeout = REAL_TIME_MAX;
        config.heartbeat_period = REAL_TIME_MAX;
        config.connect_timeout = REAL_TIME_MAX;
        let port = Port::new(chain.turns.clone(), disk.clone());
        Follower { name, chain: chain.clone(), above, port, random, config, disk, weather }
    }

    /// Comes and goes, until everything is over.
    pub fn live(mut self) {
        while self.chain.stage() != Stage::Over {
            if self.chain.stage() == Stage::Disturbed && self.random.one_in(2) {
                self.be_absent();
            }
            self.process();
        }
    }

    /// Nobody runs it while the first binlogd does so much, or until nothing fails any more.
    fn be_absent(&self) {
        let mut random = self.random.clone();
        let until = match random.one_in(4) {
            true => u64::MAX,
            false => self.chain.steps() + random.below(3000),
        };
        self.chain.past.lock().unwrap().count("absence of a binlogd that reads from another one");
        while self.chain.stage() == Stage::Disturbed && self.chain.steps() < until {
            self.chain.turns.wait_until(FOR_EVER);
        }
    }

    fn process(&mut self) {
        let stop = Arc::new(StopSignal::new());
        let is_calm = self.chain.stage() != Stage::Disturbed;
        *self.weather.lock().unwrap() = Weather::default();
        let mut way = Way {
            chain: self.chain.clone(),
            disk: self.disk.clone(),
            stop: stop.clone(),
            above: self.above.clone(),
            random: Arc::new(Mutex::new(Random::new(self.random.next()))),
            steps_left: Arc::new(Mutex::new(None)),
            is_nudged: Arc::default(),
        };
        if !is_calm {
            let mut weather = self.weather.lock().unwrap();
            let random = &mut self.random;
            match random.below(4) {
                0 => weather.stops_after = Some(random.below(400)),
                1 => weather.fails_after = Some(random.below(400)),
                2 => way.steps_left = Arc::new(Mutex::new(Some((random.below(600), Ending::Kill)))),
                _ => way.steps_left = Arc::new(Mutex::new(Some((random.below(600), Ending::Stop)))),
            }
        }
        self.chain.stops.lock().unwrap().push(stop.clone());
        let upstream = self.upstream(&way, stop);
        let nudged = way.is_nudged.clone();
        let nudge = Arc::new(move || nudged.store(true, SeqCst));
        self.port.open(Serving::of(&upstream, self.disk.clone(), nudge));
        match upstream.open() {
            Ok(copy) => {
                if copy.is_recovered() {
                    self.compare();
                }
                upstream.run(copy);
            }
            Err(error) => {
                let is_excused = self.disk.is_off() || self.weather.lock().unwrap().failures > 0;
                assert!(is_excused, "{}: the copy cannot be opened: {error}", self.name);
            }
        }
        self.port.close();
        if self.disk.is_off() {
            self.after_the_end();
        }
        // The next process may find that nothing has changed.
        self.chain.turns.wait_until(self.chain.turns.now() + Duration::from_millis(50));
    }

    fn upstream(&self, way: &Way, stop: Arc<StopSignal>) -> Upstream {
        Upstream {
            config: self.config.clone(),
            data_dir: data_dir(),
            storage: Arc::new(self.disk.clone()),
            network: Arc::new(way.clone()),
            clock: Arc::new(way.clone()),
            monitor: Arc::new(SourceMonitor::new(SOURCE)),
            published: Arc::default(),
            quorum: None,
            stop,
        }
    }

    /// The process was killed, or the machine has stopped.
    fn after_the_end(&mut self) {
        if !self.disk.has_stopped() && self.random.one_in(2) {
            self.disk.switch_on();
            return;
        }
        let fate = Fate::Random(self.random.next());
        let tree = self.disk.image().after_power_failure(fate);
        tracing::debug!("{}: power failure", self.name);
        self.disk = Disk::with(&tree, self.random.next());
        self.disk.judged_by(judge_of(&self.chain, &self.weather));
    }

    /// Each timeline has files of its server alone.
    fn compare(&self) {
        held_gtids(&self.chain, &self.disk);
    }
}

/// A judge that follows the weather until nothing fails any more: a process that began before that may still run.
fn judge_of(chain: &Arc<Chain>, weather: &Arc<Mutex<Weather>>) -> Judge {
    let (chain, mut judge) = (chain.clone(), judge(weather.clone()));
    Box::new(move |kind| match chain.stage() {
        Stage::Disturbed => judge(kind),
        Stage::Calm | Stage::Over => Verdict::Do,
    })
}

/// Compares what a disk holds with all that the servers have written, and says which GTIDs are in it.
pub fn held_gtids(chain: &Chain, disk: &Disk) -> GtidSet {
    let past = chain.past.lock().unwrap();
    let present: Vec<History> =
        chain.world.with(|scene| scene.hosts.iter().map(|host| host.history.clone()).collect());
    let histories: Vec<&History> =
        past.histories.iter().map(|(_, history)| history).chain(present.iter()).collect();
    compare_files(&held_files(disk), &histories)
}

/// How a process ends after some steps.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Kill,
    Stop,
}

/// The way of one process to the binlogd above it, and its clock.
#[derive(Clone)]
struct Way {
    chain: Arc<Chain>,
    disk: Disk,
    stop: Arc<StopSignal>,
    above: Arc<Port>,
    random: Arc<Mutex<Random>>,
    steps_left: Arc<Mutex<Option<(u64, Ending)>>>,
    /// Who reads from it has confirmed something.
    is_nudged: Arc<AtomicBool>,
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Way")
    }
}

impl Way {
    /// A step of the process; the last one ends it.
    fn step(&self) {
        if self.disk.is_off() {
            self.stop.request();
        }
        let mut left = self.steps_left.lock().unwrap();
        match left.as_mut() {
            None => {}
            Some((0, Ending::Kill)) => self.disk.switch_off(),
            Some((0, Ending::Stop)) => self.stop.request(),
            Some((left, _)) => *left -= 1,
        }
        if self.chain.stage() != Stage::Disturbed {
            *left = None;
        }
    }

    fn is_over(&self) -> bool {
        self.disk.is_off() || self.stop.is_requested()
    }
}

impl Clock for Way {
    fn has_threads(&self) -> bool {
        false
    }

    fn now(&self) -> Instant {
        self.chain.began + self.chain.turns.now()
    }

    fn wall_time(&self) -> Timestamp {
        self.chain.turns.take_time(Duration::from_micros(1));
        BEGINNING + self.chain.turns.now()
    }

    fn sleep(&self, pause: Duration) {
        self.chain.turns.take_time(pause);
    }

    fn pause(&self, stop: &StopSignal, pause: Duration) -> bool {
        let turns = &self.chain.turns;
        let until = turns.now() + pause;
        self.step();
        turns.stir();
        while turns.now() < until && !stop.is_requested() {
            turns.wait_until(until);
            if self.disk.is_off() {
                self.stop.request();
            }
        }
        stop.is_requested()
    }

    fn jitter(&self) -> u32 {
        self.random.lock().unwrap().next() as u32
    }
}

impl Network for Way {
    fn connect(
        &self,
        options: &ConnectOptions,
        _on_socket: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<Connection, WireError> {
        self.step();
        self.chain.turns.pass();
        let refused = || WireError::Connect {
            address: options.host.clone(),
            reason: io::ErrorKind::ConnectionRefused.into(),
        };
        if self.is_over() {
            return Err(refused());
        }
        let pipe = self.above.connect().ok_or_else(refused)?;
        let mut random = self.random.lock().unwrap();
        let is_disturbed = self.chain.stage() == Stage::Disturbed;
        let cut_after = (is_disturbed && random.one_in(3)).then(|| random.below(20_000) as usize);
        let chunk_max = *random.pick(&[60, 600, 6_000, 100_000]);
        drop(random);
        let poll = File::open("/dev/null").expect("a file that can be polled");
        let stream = Stream { way: self.clone(), pipe, timeout: None, cut_after, chunk_max, poll };
        Connection::over(Box::new(stream), options)
    }
}

/// A connection, as the process has it.
struct Stream {
    way: Way,
    pipe: Pipe,
    timeout: Option<Duration>,
    /// It breaks after so many more bytes.
    cut_after: Option<usize>,
    chunk_max: u64,
    poll: File,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.pipe.ends().client_is_gone = true;
        self.way.chain.turns.stir();
    }
}

impl Stream {
    /// Takes what has come, if anything has.
    fn take(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let is_disturbed = self.way.chain.stage() == Stage::Disturbed;
        let chunk_max = if is_disturbed { self.chunk_max } else { CALM_CHUNK_MAX };
        let most = 1 + self.way.random.lock().unwrap().below(chunk_max) as usize;
        let mut ends = self.pipe.ends();
        let mut len = ends.to_client.len().min(buffer.len()).min(most);
        if let Some(cut) = self.cut_after.as_mut().filter(|_| is_disturbed) {
            len = len.min(*cut);
            *cut -= len;
            if *cut == 0 {
                ends.client_is_gone = true;
            }
        }
        for (place, byte) in buffer.iter_mut().zip(ends.to_client.drain(..len)) {
            *place = byte;
        }
        (len > 0).then_some(len)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let turns = self.way.chain.turns.clone();
        self.way.step();
        // What was read last may have been published since.
        turns.stir();
        turns.pass();
        let end = self.timeout.map(|timeout| turns.now() + timeout);
        loop {
            if self.way.is_over() {
                return Ok(0);
            }
            if let Some(len) = self.take(buffer) {
                turns.take_time(Duration::from_micros(200));
                turns.stir();
                return Ok(len);
            }
            if self.pipe.is_closed() {
                return Ok(0);
            }
            let is_nudged = self.way.is_nudged.swap(false, SeqCst);
            if is_nudged || end.is_some_and(|end| end <= turns.now()) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            turns.wait_until(end.unwrap_or(FOR_EVER));
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.way.step();
        if self.way.is_over() || self.pipe.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.pipe.ends().to_server.extend(bytes);
        self.way.chain.turns.stir();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.as_fd()
    }
}

impl ByteStream for Stream {
    fn set_read_timeout(&mut self, timeout: Duration) {
        self.timeout = Some(timeout);
    }
}
