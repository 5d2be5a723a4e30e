//! A deterministic simulation: one seed, one thread, one history of everything that can go wrong.
//!
//! A receiver process after the other runs against a source that writes, restarts, is reset, replaced and purged, over a
//! network and a disk that fail. After each process what the disk holds is opened by the next one and compared with all
//! that the source has ever been. In the end nothing fails any more, and the copy must be whole again.

use crate::chain::port::{Port, Serving};
use crate::chain::turns::Turns;
use crate::cluster::{apart, options};
use crate::disk::Disk;
use crate::disk::fate::Fate;
use crate::disk::image::Tree;
use crate::history::History;
use crate::peer::{OtherBinlogd, PEER_NAME};
use crate::receiver::{FOLDER, config, process, with_journal};
use crate::source::Source;
use crate::turmoil::{Past, Turmoil, Weather, judge};
use crate::world::{BEGINNING, Scene, World, host_name};
use binlog::folder::timelines;
use binlog::purge::plan::{Plan, Rules, Wanted};
use binlog::purge::{Indexes, carry_out};
use binlog::storage::Storage;
use binlog::testing::Random;
use binlog::timeline::index;
use binlog::timeline::{Reason, Timeline};
use codec::gtid::{GtidSet, Uuid};
use config::{FsyncMode, HostPort, OnFork, OnGap, SourceConfig};
use receive::attempt::copy::HeldCopy;
use scripted_source::LogOptions;
use source::stop::StopSignal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Seeds of the short form, for each run of the tests.
const SEEDS: u64 = 600;

/// The same, with a list of servers.
const LIST_SEEDS: u64 = 200;

/// The same, with another binlogd of the source.
const PEER_SEEDS: u64 = 100;

/// Receiver processes in one simulation, before everything is calm.
const PROCESSES_MAX: u64 = 8;

/// A process that takes more steps than this in calm weather does not catch up.
const CALM_STEPS_MAX: u64 = 60_000;

/// Steps of one process before it is asked to stop, should nothing else end it.
const PROCESS_STEPS_MAX: u64 = 600;

/// Limit by the clock of the machine, where simulated time is not that of one thread.
const REAL_TIME_MAX: Duration = Duration::from_secs(3600);

/// Prints how to replay a simulation that fails.
pub struct Replay(pub u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay it with: make sim SEED={}", self.0);
        }
    }
}

/// What makes a server begin its logs anew, or go back to before what it had sent.
const ANEW: [&str; 4] = [
    "reset on the first file",
    "reset of the source's logs",
    "another server in the source's place",
    "source lost its tail",
];

/// What happened in one simulation.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// Operations of the disk, and what the receiver asked of the world.
    steps: u64,
    /// How often each thing happened.
    counts: BTreeMap<&'static str, u64>,
    /// Where everything ends.
    ends: String,
}

/// One simulation.
pub struct Simulation {
    pub random: Random,
    pub config: SourceConfig,
    pub disk: Disk,
    pub world: Arc<World>,
    weather: Arc<Mutex<Weather>>,
    pub past: Arc<Mutex<Past>>,
    is_calm: Arc<Mutex<bool>>,
    /// Content of the files of older timelines when they were last seen.
    archive: BTreeMap<String, Vec<u8>>,
    steps: u64,
    /// Where other binlogds read from it.
    pub port: Option<Arc<Port>>,
}

impl Simulation {
    /// With another binlogd of the source beside the receiver.
    fn with_peer(seed: u64, has_list: bool) -> Simulation {
        let mut simulation = Simulation::new(seed, has_list);
        simulation.config.peers = vec![HostPort { host: PEER_NAME.to_owned(), port: 3307 }];
        simulation.world.with(|scene| {
            let mut peer = OtherBinlogd::default();
            (peer.is_up, peer.is_attached) = (true, true);
            peer.receive(scene.source(), false);
            scene.peer = Some(peer);
        });
        simulation
    }

    /// Of one server, or of a list of some of which one is the source at a time.
    fn new(seed: u64, has_list: bool) -> Simulation {
        Simulation::beside(None, seed, has_list)
    }

    /// As [`Simulation::new`]. With `turns` other binlogds run beside the receiver; then the servers name their files each in its
    /// own way, and each rotates by itself.
    pub fn beside(turns: Option<Arc<Turns>>, seed: u64, has_list: bool) -> Simulation {
        let mut random = Random::new(seed);
        let fsync_mode = if random.one_in(4) && turns.is_none() {
            FsyncMode::WriteThenAcknowledge
        } else {
            FsyncMode::SyncThenAcknowledge
        };
        let mut config = config(fsync_mode, !random.one_in(5));
        // Not drawn, so that seeds that have found something stay what they were.
        config.ack_after_replicas = u32::from(seed % 3 == 1);
        config.on_gap = if random.one_in(2) { OnGap::Record } else { OnGap::Stop };
        let tree = match random.below(16) {
            0 => Tree::default(), // The receiver makes its own, of 8 MiB.
            1..=10 => with_journal(32 << 10),
            _ => with_journal(256 << 10),
        };
        let disk = Disk::with(&tree, random.next());
        let (weather, past, is_calm) = (Arc::default(), Arc::default(), Arc::default());
        let mut turmoil =
            Turmoil::new(random.next(), Arc::clone(&weather), Arc::clone(&past), Arc::clone(&is_calm));
        disk.judged_by(judge(weather.clone()));
        let mut hosts = Vec::new();
        if has_list {
            config.on_fork = if random.one_in(3) { OnFork::Withhold } else { OnFork::Follow };
            for host in 0..2 + random.below(2) as usize {
                let options = if turns.is_some() { apart(host, &mut random) } else { options(host) };
                let mut server = Source::new(History::new(options), !random.one_in(5));
                server.is_read_only = host > 0;
                hosts.push(server);
            }
        } else {
            let options = LogOptions { gtids: !random.one_in(4), ..LogOptions::default() };
            hosts.push(Source::new(History::new(options), !random.one_in(5)));
        }
        config.hosts = (0..hosts.len()).map(|host| HostPort { host: host_name(host), port: 3306 }).collect();
        let stop = Arc::new(StopSignal::new());
        let chunk_max = *random.pick(&[60, 600, 6_000, 100_000]);
        if turns.is_some() {
            (turmoil.rotates_apart, turmoil.idle_left) = (true, u32::MAX);
            config.connect_timeout = REAL_TIME_MAX;
        }
        let is_alone = turns.is_none();
        let world = World::new(hosts, disk.clone(), stop, chunk_max, random.next(), Box::new(turmoil));
        let (world, archive) = (Arc::new(world), BTreeMap::new());
        // Soon, or so late that sessions begin meanwhile.
        let confirms = (is_alone && config.ack_after_replicas > 0).then_some(if seed.is_multiple_of(2) {
            5
        } else {
            400
        });
        world.with(|scene: &mut Scene| (scene.reader.confirms, scene.turns) = (confirms, turns));
        Simulation { random, config, disk, world, weather, past, is_calm, archive, steps: 0, port: None }
    }

    fn run(mut self) -> Outcome {
        for _ in 0..1 + self.random.below(PROCESSES_MAX) {
            self.process();
        }
        self.calm_for_good();
        let before = self.world.with(|scene| scene.steps);
        // A history that was replaced may take some attempts; an operator's stop was answered above.
        for _ in 0..3 {
            self.process();
            if self.is_whole() {
                break;
            }
        }
        let took = self.world.with(|scene| scene.steps) - before;
        assert!(
            self.is_whole(),
            "the copy is not whole {took} steps after the last failure: {}",
            self.ends()
        );
        self.check();
        let mut past = std::mem::take(&mut *self.past.lock().unwrap());
        if let Some(dumps) = self.world.with(|scene| scene.peer.as_ref().map(|peer| peer.dumps)) {
            past.counts.insert("dump of another binlogd's timeline", dumps);
        }
        let steps = self.steps + self.disk.operations() + self.world.with(|scene| scene.steps);
        Outcome { steps, counts: past.counts, ends: self.ends() }
    }

    /// Nothing goes wrong from now on.
    pub fn calm(&self) {
        *self.weather.lock().unwrap() = Weather::default();
        self.world.with(|scene| {
            scene.is_reachable = true;
            scene.hosts.iter_mut().for_each(|host| host.is_up = true);
        });
    }

    /// Nothing goes wrong any more, and one server alone takes writes.
    pub fn calm_for_good(&mut self) {
        *self.is_calm.lock().unwrap() = true;
        self.calm();
        self.world.with(|scene| {
            let source = scene.source;
            let servers = scene.hosts.iter_mut().enumerate();
            servers.for_each(|(host, server)| server.is_read_only = host != source);
            scene.chunk_max = 100_000;
        });
        (self.config.on_gap, self.config.on_fork) = (OnGap::Record, OnFork::Follow);
    }

    /// An operator purges the oldest files of the copy, but for so many. What was acknowledged of them need not be held any more.
    pub fn purge(&mut self, files_max: u64) {
        let (folder, at) = (Disk::path(FOLDER), BEGINNING);
        let rules = Rules { max_files: Some(files_max), ..Rules::default() };
        let plan = Plan::make(&self.disk, &folder, &Wanted::Rules(rules, at), &[]).expect("a sound copy");
        carry_out(&self.disk, &plan.goes(), "a test", at, Indexes::Ours).expect("in calm weather");
        let files = self.files();
        let is_left = |path: &String| files.iter().any(|(of, name, ..)| *path == format!("{of}/{name}"));
        self.archive.retain(|path, _| is_left(path));
        self.forget_what_was_promised();
        let mut past = self.past.lock().unwrap();
        self.world.with(|scene| {
            scene.hosts.iter().for_each(|host| past.purged.union_with(&host.log().executed_set()));
        });
        past.count("purge of the first binlogd's files");
    }

    /// One receiver process, from its start to its end, however that comes.
    pub fn process(&mut self) {
        let stop = Arc::new(StopSignal::new());
        let disk = self.disk.clone();
        let is_calm = *self.is_calm.lock().unwrap();
        let limit = match (is_calm, &self.port) {
            (true, None) => CALM_STEPS_MAX,
            (false, None) => PROCESS_STEPS_MAX,
            // Who looks whether something has changed takes a step.
            (true, Some(_)) => u64::MAX,
            (false, Some(_)) => 4 * PROCESS_STEPS_MAX,
        };
        self.world.with(|scene| {
            (scene.stop, scene.disk) = (stop.clone(), disk);
            scene.lines.clear();
            scene.steps_left = limit;
        });
        let process = process(&self.disk, &self.world, &self.config, stop);
        self.world.with(|scene| scene.reader.attach(process.published.clone()));
        tracing::debug!(
            "a process begins: {:?}, semi_sync {}",
            self.config.fsync_mode,
            self.config.semi_sync
        );
        let failures_before = self.weather.lock().unwrap().failures;
        if let Some(port) = &self.port {
            let world = self.world.clone();
            let nudge = Arc::new(move || world.with(|scene| scene.is_nudged = true));
            port.open(Serving::of(&process, self.disk.clone(), nudge));
        }
        match process.open() {
            Ok(copy) => {
                // On a full disk it is opened without having been recovered, and waits for space.
                if copy.is_recovered() {
                    self.compare(&copy);
                }
                process.run(copy);
            }
            Err(error) => {
                let is_excused =
                    self.disk.is_off() || self.weather.lock().unwrap().failures > failures_before;
                assert!(is_excused, "the copy cannot be opened: {error}");
                self.calm(); // Somebody made room, or replaced the disk's cable.
            }
        }
        if let Some(port) = &self.port {
            port.close();
        }
        if self.disk.take_failed_syncs() > 0 && self.config.fsync_mode == FsyncMode::WriteThenAcknowledge {
            // The next process trusts the disk alone, which may lack what was only written.
            self.forget_what_was_promised();
        }
        let has_failed = self.disk.is_off() || self.weather.lock().unwrap().failures > failures_before;
        let was_sent_away = self.world.with(|scene| scene.reader.was_sent_away());
        assert!(has_failed || !was_sent_away, "readers were refused for a while, though nothing failed");
        if self.disk.is_off() {
            self.after_the_end();
        }
    }

    /// The process was killed, or the machine has stopped.
    fn after_the_end(&mut self) {
        let is_power_failure = self.disk.has_stopped() || self.random.one_in(2);
        if !is_power_failure {
            self.disk.switch_on();
            return;
        }
        let fates = [Fate::Lost, Fate::Kept, Fate::Zeros, Fate::Garbage, Fate::LastSector, Fate::NamesOnly];
        let fate =
            if self.random.one_in(2) { Fate::Random(self.random.next()) } else { *self.random.pick(&fates) };
        tracing::debug!("power failure, {fate:?}");
        let tree = self.disk.image().after_power_failure(fate);
        self.steps += self.disk.operations();
        self.disk = Disk::with(&tree, self.random.next());
        self.disk.judged_by(judge(self.weather.clone()));
        self.past.lock().unwrap().count("state after a power failure");
        if self.config.fsync_mode == FsyncMode::WriteThenAcknowledge {
            self.forget_what_was_promised();
        }
    }

    /// What was acknowledged, and what readers have, may be gone: the operator has accepted that.
    fn forget_what_was_promised(&self) {
        self.past.lock().unwrap().forget_acknowledgements();
        self.world.with(|scene| scene.reader.forget());
    }

    /// Compares all timelines with all that the source has been. The newest one was just opened, and recovered.
    fn compare(&mut self, copy: &HeldCopy) {
        let (past, files) = (self.past.lock().unwrap(), self.files());
        let present: Vec<_> =
            self.world.with(|scene| scene.hosts.iter().map(|host| host.history.clone()).collect());
        let past_ones = past.histories.iter().map(|(host, history)| (*host, history));
        let of_hosts: Vec<(usize, &History)> = past_ones.chain(present.iter().enumerate()).collect();
        let histories: Vec<&History> = of_hosts.iter().map(|(_, history)| *history).collect();
        let held_gtids = compare_files(&files, &histories);
        self.world.with(|scene| {
            for ((folder, name), taken) in scene.reader.taken() {
                let held = files.iter().find(|(of, held, ..)| (of, held) == (folder, name));
                let held = held.map_or(&[][..], |(_, _, bytes, _)| bytes);
                assert!(
                    held.starts_with(&taken.bytes),
                    "a reader has {} bytes of {folder}/{name}, and the copy lacks some of them: {}",
                    taken.bytes.len(),
                    ends_of(&files)
                );
                for end in &taken.ends {
                    let is_boundary = histories.iter().any(|history| {
                        let sent = history.log.file(name);
                        sent.is_some_and(|sent| sent.bytes.starts_with(&taken.bytes[..*end]))
                            && history.boundary(name, *end as u64).is_some()
                    });
                    assert!(is_boundary, "a reader of {folder}/{name} was at {end}, which is no boundary");
                }
            }
        });
        for ((epoch, host, name), position) in &past.acknowledged {
            let of_host = |(_, (of, _)): &(usize, &(usize, &History))| of == host;
            let then =
                of_hosts.iter().enumerate().skip(*epoch).find(of_host).expect("each server has a history").0;
            // What was purged after it was sent stands in the history before.
            let before = of_hosts[..=then].iter().rev().filter(|(of, _)| of == host);
            let sent = before.map(|(_, history)| history).find_map(|history| history.log.file(name));
            let sent = &sent.expect("only what was sent is acknowledged").bytes[..*position as usize];
            let is_held = files.iter().any(|(_, held, bytes, _)| held == name && bytes.starts_with(sent));
            assert!(
                is_held,
                "{name}:{position} of history {epoch} was acknowledged and is not held: {}",
                self.ends()
            );
        }
        let lost = past.acknowledged_gtids.subtract(&held_gtids).subtract(&past.purged);
        assert!(lost.is_empty(), "{lost} was acknowledged and is in no timeline: {}", self.ends());
        self.compare_reasons(&past, present.len());
        let newest = copy.timeline().map(|timeline| timeline.name.clone());
        let mut archive = BTreeMap::new();
        for (folder, name, bytes, _) in &files {
            let path = format!("{folder}/{name}");
            let before = self.archive.remove(&path);
            if let Some(before) = &before {
                // A timeline whose server has come back goes on.
                assert!(bytes.starts_with(before), "{path} of an older timeline has changed");
            }
            match before {
                Some(before) if Some(folder) == newest.as_ref() => drop(archive.insert(path, before)),
                None if Some(folder) == newest.as_ref() => {}
                _ => drop(archive.insert(path, bytes.clone())),
            }
        }
        assert_eq!(self.archive.keys().next(), None, "a file of an older timeline is gone");
        drop(past);
        self.archive = archive;
    }

    /// Where the only server's logs never began anew, no timeline says that they did: a gap that is called a reset is a gap that
    /// nobody is told of.
    fn compare_reasons(&self, past: &Past, servers: usize) {
        if servers > 1 || ANEW.iter().any(|what| past.counts.contains_key(what)) {
            return;
        }
        let disk = self.disk.onlooker();
        for folder in timelines(&disk, &Disk::path(FOLDER)).unwrap() {
            let info = Timeline::read(&disk, &folder).expect("a timeline says how it began");
            assert_ne!(
                info.reason,
                Reason::SourceReset,
                "{} was never reset: {}",
                folder.display(),
                self.ends()
            );
        }
    }

    /// Opens the copy and compares it.
    pub fn check(&mut self) {
        let stop = Arc::new(StopSignal::new());
        let copy = process(&self.disk, &self.world, &self.config, stop).open();
        let copy = copy.expect("in calm weather a copy can be opened");
        assert!(copy.is_recovered(), "in calm weather nothing is waited for");
        self.compare(&copy);
    }

    fn files(&self) -> Vec<HeldFile> {
        held_files(&self.disk)
    }

    /// The newest timeline ends where the source does, and its files are the source's.
    pub fn is_whole(&self) -> bool {
        let files = self.files();
        let Some((newest, ..)) = files.last() else { return false };
        let source = self.world.with(|scene| scene.source().log().clone());
        let held = || files.iter().filter(|(folder, ..)| folder == newest);
        let equal = held().all(|(_, name, bytes, _)| {
            // What was purged meanwhile cannot be compared.
            source.file(name).is_none_or(|file| file.bytes == *bytes)
        });
        let is_held = |file: &&scripted_source::LogFile| held().any(|(_, name, ..)| *name == file.name);
        let missing = source.files().iter().skip_while(|file| !is_held(file)).find(|file| !is_held(file));
        equal
            && missing.is_none()
            && held().next_back().is_some_and(|(_, name, ..)| *name == source.end().file)
    }

    pub fn ends(&self) -> String {
        let end = self.world.with(|scene| scene.source().log().end());
        format!("the source ends at {end:?}, {}", ends_of(&self.files()))
    }
}

/// A file of a copy: folder of its timeline, name, content, and whether it is the timeline's last one.
pub type HeldFile = (String, String, Vec<u8>, bool);

/// The files of all timelines on a disk, in order.
pub fn held_files(disk: &Disk) -> Vec<HeldFile> {
    let (mut files, disk) = (Vec::new(), disk.onlooker());
    let Ok(folders) = timelines(&disk, &Disk::path(FOLDER)) else { return files };
    for folder in folders {
        let timeline = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let names = index::read(&disk, &folder).unwrap();
        for name in &names {
            let bytes = disk.read(&folder.join(name)).unwrap();
            files.push((timeline.clone(), name.clone(), bytes, Some(name) == names.last()));
        }
    }
    files
}

/// Where the files of a copy end.
pub fn ends_of(files: &[HeldFile]) -> String {
    let end_of = |(folder, name, bytes, _): &HeldFile| format!("{folder}/{name}:{}", bytes.len());
    format!("held are {:?}", files.iter().map(end_of).collect::<Vec<_>>())
}

/// Compares the files of a copy's timelines with what the servers have written, and says which GTIDs they hold.
pub fn compare_files(files: &[HeldFile], histories: &[&History]) -> GtidSet {
    let mut held_gtids = GtidSet::new();
    for (folder, name, bytes, is_last) in files {
        let is_beginning = |history: &&&History| {
            let sent = history.log.file(name).filter(|_| is_of(folder, history));
            sent.is_some_and(|sent| {
                sent.bytes.starts_with(bytes) && (*is_last || sent.bytes.len() == bytes.len())
            })
        };
        let of: Vec<_> = histories.iter().filter(is_beginning).collect();
        let len = bytes.len();
        of.iter().for_each(|history| held_gtids.union_with(&history.gtids_within(name, len as u64)));
        assert!(
            !of.is_empty(),
            "{folder}/{name} of {len} bytes is no file that a source ever had: {:?}",
            histories.iter().filter_map(|history| differ(history, name, bytes)).collect::<Vec<_>>()
        );
        let is_boundary = of.iter().any(|history| history.boundary(name, len as u64).is_some());
        assert!(!is_last || is_boundary, "{folder}/{name} ends at {len}, which is no boundary");
    }
    for pair in files.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let [(folder, sealed, whole, _), (_, next, bytes, _)] = pair else { continue };
        let follow = |history: &&&History| {
            let sent = |name: &String| {
                history.log.file(name).filter(|_| is_of(folder, history)).map(|file| &file.bytes[..])
            };
            let is_next = |sent: &[u8]| sent.starts_with(bytes) || bytes.starts_with(sent);
            sent(sealed) == Some(&whole[..]) && sent(next).is_some_and(is_next)
        };
        let is_one_history = histories.iter().any(|history| follow(&history));
        assert!(is_one_history, "{folder}/{next} does not follow {sealed} in any history of the source");
    }
    held_gtids
}

/// Whether a timeline is named after the server of this history.
fn is_of(folder: &str, history: &History) -> bool {
    let uuid = Uuid::from_bytes(history.log.options().uuid).to_string();
    folder.split_once('-').is_some_and(|(_, server)| server == uuid)
}

/// In words, where a file differs from the one of that name that a source had.
fn differ(history: &History, name: &str, bytes: &[u8]) -> Option<String> {
    let sent = &history.log.file(name)?.bytes;
    let same = sent.iter().zip(bytes).take_while(|(sent, held)| sent == held).count();
    Some(format!("one had {} bytes, the first {same} were these", sent.len()))
}

#[test]
fn a_seed_gives_the_same_history_again() {
    for seed in [3, 17, 40] {
        let _replay = Replay(seed);
        for has_list in [false, true] {
            assert_eq!(Simulation::new(seed, has_list).run(), Simulation::new(seed, has_list).run());
            let with_peer = || Simulation::with_peer(seed, has_list).run();
            assert_eq!(with_peer(), with_peer());
        }
    }
}

/// Seeds that have found something, and whether with a list of servers.
const KEPT: &[(u64, bool)] = &[
    // A reset under the dump of a comparison, which had the old file open.
    (336, true),
    // A session passed over what is held, and a reset came before its dump began.
    (547, false),
    // A loss of power at the unsynced beginning of a timeline's only file.
    (1_499_586_986_247_215, false),
    // A dump left out a file behind one that ended with a STOP event.
    (741_474_935_243_238, true),
    (2_225_054_824_793_214, false),
    // The newest record of the journal was written over.
    (3_907_470_842_922_613, false),
    // A wrong bit of the network in the place of the flag "in use".
    (2_762_360_903_173_107, true),
    // A successor's logs began anew between the look that chose a file and the dump of that file.
    (2_870_651_637_465_854, true),
    // Everything that the copy holds was purged between a complaint of the source and the look at it.
    (1_798_554_698_908_045, false),
];

#[test]
fn what_was_found_once_is_not_there_again() {
    for (seed, has_list) in KEPT {
        let _replay = Replay(*seed);
        Simulation::new(*seed, *has_list).run();
    }
}

/// `BINLOGD_SIM_SEED` replays one seed; `BINLOGD_SIM_STEPS` runs new seeds until that many steps were taken;
/// `BINLOGD_SIM_SEEDS` runs fewer or more of the seeds that every run of the tests takes; with a list of servers in proportion.
#[test]
fn simulated_failures_lose_nothing() {
    simulate(SEEDS, |seed| Simulation::new(seed, false));
}

/// As [`simulated_failures_lose_nothing`], with a list of servers of which one is the source at a time.
#[test]
fn simulated_failovers_lose_nothing() {
    simulate(LIST_SEEDS, |seed| Simulation::new(seed, true));
}

/// With another binlogd of the source, which has what the receiver lacks or lacks what it has; every other seed with a list.
#[test]
fn simulated_peers_lose_nothing() {
    simulate(PEER_SEEDS, |seed| Simulation::with_peer(seed, seed % 2 == 1));
}

fn simulate(seeds_always: u64, simulation: impl Fn(u64) -> Simulation) {
    run_seeds(seeds_always, |seed| {
        let outcome = simulation(seed).run();
        (outcome.steps, outcome.counts)
    });
}

/// Runs one simulation after the other, each by its seed. `run` gives its steps, and how often each thing happened.
pub fn run_seeds(seeds_always: u64, run: impl Fn(u64) -> (u64, BTreeMap<&'static str, u64>)) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, steps_wanted) = (number("BINLOGD_SIM_SEED"), number("BINLOGD_SIM_STEPS"));
    let seeds_wanted = number("BINLOGD_SIM_SEEDS").map_or(seeds_always, |seeds| seeds * seeds_always / SEEDS);
    let first = match (seed, steps_wanted) {
        (Some(seed), _) => seed,
        (None, Some(_)) => u64::from(getrandom::u32().unwrap()) << 20,
        (None, None) => 0,
    };
    if seed.is_some() {
        // One seed is replayed to see what happens.
        let level = tracing_subscriber::filter::LevelFilter::TRACE;
        let _ = tracing_subscriber::fmt().with_max_level(level).without_time().with_target(false).try_init();
    }
    let (began, mut steps, mut seeds) = (Instant::now(), 0, 0);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let is_enough = |steps: u64, seeds: u64| match (seed, steps_wanted) {
        (Some(_), _) => seeds >= 1,
        (None, Some(wanted)) => steps >= wanted,
        (None, None) => seeds >= seeds_wanted,
    };
    while !is_enough(steps, seeds) {
        let replay = Replay(first + seeds);
        let (taken, counted) = run(first + seeds);
        drop(replay);
        (steps, seeds) = (steps + taken, seeds + 1);
        for (what, count) in counted {
            *counts.entry(what).or_default() += count;
        }
    }
    println!("{steps} steps, {seeds} seeds from {first} on, {:.1} s", began.elapsed().as_secs_f64());
    println!("{counts:#?}");
    if seed.is_none() && steps_wanted.is_none() && seeds_wanted >= seeds_always {
        assert!(steps >= 100_000 && counts.len() > 15, "{steps} steps, {counts:?}");
    }
}
