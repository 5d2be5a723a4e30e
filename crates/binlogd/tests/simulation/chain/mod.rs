//! A chain of binlogds: A follows the servers, B reads from A's port, C from B's. Each comes and goes, and its disk, its process
//! and its connections fail; it cannot read a timeline now and then, or does not know what its archive has. In the end B and C hold
//! what A holds, timeline by timeline and byte by byte.

pub mod follower;
pub mod port;
pub mod turns;

use crate::chain::follower::{Chain, Follower, Stage, held_gtids};
use crate::chain::port::{Doubts, Port};
use crate::chain::turns::{FOR_EVER, Turns};
use crate::disk::Disk;
use crate::disk::fate::Fate;
use crate::receiver::FOLDER;
use crate::simulate::{HeldFile, Replay, Simulation, ends_of, held_files, run_seeds};
use binlog::folder::timelines;
use binlog::storage::ReadAt;
use binlog::testing::Random;
use binlog::timeline::Timeline;
use binlog::timeline::beginning;
use codec::gtid::GtidSet;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Seeds of the short form, for each run of the tests.
const SEEDS: u64 = 24;

/// Processes of A before everything is calm.
const PROCESSES_MAX: u64 = 6;

/// Time, simulated, in which everybody has everything when nothing fails any more.
const LEVEL_MAX: Duration = Duration::from_secs(180);

/// How much longer that takes for each level while an archive does not answer.
const SILENT_ARCHIVE_MAX: Duration = Duration::from_secs(330);

/// Found once, each with or without doubts.
const KEPT: &[(u64, bool)] = &[
    (2684635761869048, false), // A ends in a file that has not begun, behind one that ends inside a transaction
    (3183799905026090, true),  // the timeline before the next one cannot be read above, but C has it
    (4047083833131026, true),  // the server of a timeline was back above while B received the next one
    (2897096280637659, true),  // the same, of a timeline of which nothing had come
    (555619980410888, true), // A has two timelines of one server, and B a part of the first of them behind a gap
];

/// The same for each level, from when A has something on, beyond the time that A took for it.
const BEHIND_MAX: Duration = Duration::from_secs(1);

/// What happened in one simulation.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub turns: u64,
    pub counts: BTreeMap<&'static str, u64>,
    ends: String,
}

/// A chain of two, or of three. With doubts one cannot always tell what it has.
fn run(seed: u64, has_doubts: bool) -> Outcome {
    let turns = Turns::new(seed ^ 0x5eed);
    let mut random = Random::new(seed ^ 0xc4a1);
    let mut first = Simulation::beside(Some(turns.clone()), seed, true);
    first.config.ack_after_replicas = u32::from(random.one_in(2));
    let is_confirmed = first.config.ack_after_replicas > 0;
    first.config.semi_sync |= is_confirmed;
    let port = Port::new(turns.clone(), first.disk.clone());
    first.port = Some(port.clone());
    let chain = Arc::new(Chain {
        turns: turns.clone(),
        world: first.world.clone(),
        past: first.past.clone(),
        stage: Mutex::new(Stage::Disturbed),
        stops: Mutex::default(),
        began: Instant::now(),
    });
    let mut ports = vec![("A", port)];
    let mut followers = Vec::new();
    for (number, name) in [(1, "B"), (2, "C")].into_iter().take(1 + random.below(2) as usize) {
        let above = ports.last().expect("there is A").1.clone();
        let mut follower = Follower::new(name, number, &chain, above, random.next());
        // The last one has nobody who confirms.
        follower.config.ack_after_replicas = 0;
        ports.push((name, follower.port.clone()));
        followers.push(turns.spawn(name, move || follower.live()));
    }
    let mut doubts = Random::new(seed ^ 0xd0b7);
    for (_, port) in ports.iter().filter(|_| has_doubts) {
        *port.doubts.lock().unwrap() = Doubts::NowAndThen(Random::new(doubts.next()));
    }
    let is_calm = Arc::new(Mutex::new(false));
    let (told, processes) = (is_calm.clone(), 1 + random.below(PROCESSES_MAX));
    let keeps = random.one_in(4).then(|| 1 + random.below(6));
    let of_chain = chain.clone();
    let first = turns.spawn("A", move || {
        for _ in 0..processes {
            first.process();
        }
        *told.lock().unwrap() = true;
        of_chain.turns.stir();
        while of_chain.stage() == Stage::Disturbed {
            of_chain.turns.wait_until(FOR_EVER);
        }
        first.calm_for_good();
        if let Some(files_max) = keeps {
            first.check();
            first.purge(files_max);
        }
        while of_chain.stage() != Stage::Over {
            first.process();
        }
        first.check();
        first
    });
    while !*is_calm.lock().unwrap() {
        turns.wait_until(FOR_EVER);
    }
    if is_confirmed {
        is_held_below(&chain, &ports[1].1.disk());
    }
    let is_silent = has_doubts && keeps.is_some() && doubts.one_in(2);
    for (_, port) in &ports {
        *port.doubts.lock().unwrap() = if is_silent { Doubts::SilentArchive } else { Doubts::None };
    }
    let quiet = Quiet { chain: &chain, ports: &ports, is_purged: keeps.is_some() };
    chain.enters(Stage::Calm);
    let levels = if is_silent { ports.len() as u32 - 1 } else { 0 };
    quiet.becomes_level(LEVEL_MAX + levels * SILENT_ARCHIVE_MAX);
    quiet.fails_over(&mut random, is_confirmed);
    quiet.becomes_level(LEVEL_MAX);
    chain.enters(Stage::Over);
    let first = turns.join(first);
    followers.into_iter().for_each(|follower| turns.join(follower));
    assert!(first.is_whole(), "{}", first.ends());
    for (name, port) in &ports[1..] {
        held_gtids(&chain, &port.disk());
        if keeps.is_none() {
            is_told_alike(name, &port.disk(), &ports[0].1.disk());
        }
    }
    let counts = chain.past.lock().unwrap().counts.clone();
    Outcome { turns: turns.count(), counts, ends: first.ends() }
}

/// Everything that was acknowledged while each acknowledgement waited for B is durable there: found by B when its power fails now.
fn is_held_below(chain: &Chain, disk: &Disk) {
    let tree = disk.image().after_power_failure(Fate::Lost);
    let disk = Disk::with(&tree, 1);
    crate::receiver::recovers(&disk, &chain.world);
    let held = held_gtids(chain, &disk);
    let past = chain.past.lock().unwrap();
    let lost: GtidSet = past.acknowledged_gtids.subtract(&held).subtract(&past.purged);
    assert!(
        lost.is_empty(),
        "{lost} was acknowledged with ack_after_replicas = 1 and is not durable at B: {}",
        ends_of(&held_files(&disk))
    );
}

/// The time in which nothing fails.
struct Quiet<'a> {
    chain: &'a Chain,
    ports: &'a [(&'static str, Arc<Port>)],
    /// Old files of A were purged: the others may have them, or not.
    is_purged: bool,
}

impl Quiet<'_> {
    /// Waits until A has all that the source has, and the others all that A has.
    fn becomes_level(&self, within: Duration) {
        let turns = &self.chain.turns;
        let began = turns.now();
        while !self.is_level() {
            assert!(
                turns.now() < began + within,
                "not level {within:?} after the last failure: {}",
                self.ends()
            );
            turns.sleep_until(turns.now() + Duration::from_millis(200));
        }
    }

    fn is_level(&self) -> bool {
        let first = whole_files(&self.ports[0].1.disk());
        let end = self.chain.world.with(|scene| scene.source().log().clone());
        let is_at_end = first.last().is_some_and(|(_, name, bytes, _)| {
            *name == end.end().file && end.file(name).is_some_and(|file| file.bytes == *bytes)
        });
        is_at_end
            && self.ports[1..].iter().all(|(_, port)| {
                let held = whole_files(&port.disk());
                held == first || self.is_purged && has_all(&held, &first)
            })
    }

    /// The source dies and a replica is promoted, with the last transactions or without them; then somebody commits. What A has,
    /// the others have within a second, and so the commit is acknowledged.
    fn fails_over(&self, random: &mut Random, is_confirmed: bool) {
        let (turns, world) = (&self.chain.turns, &self.chain.world);
        world.with(|scene| {
            let next = (scene.source + 1) % scene.hosts.len();
            crate::cluster::promote_in_calm(scene, next, random.one_in(2));
            scene.source_mut().semi_sync = true;
            scene.source_mut().history.flagged(|log| log.transaction(100));
        });
        turns.stir();
        let (end, host) = world.with(|scene| (scene.source().log().end(), scene.source));
        let began = turns.now();
        let mut arrived = None;
        loop {
            let has = |port: &Port| has_place(port, &end.file, end.position);
            if arrived.is_none() && has(&self.ports[0].1) {
                arrived = Some(turns.now());
            }
            let is_acknowledged =
                self.chain.past.lock().unwrap().acknowledged.iter().any(|((_, of, file), at)| {
                    (*of, file.as_str()) == (host, end.file.as_str()) && *at >= end.position
                });
            if self.ports.iter().all(|(_, port)| has(port)) && (is_acknowledged || !is_confirmed) {
                break;
            }
            // What a new source has written may be long, and takes A its time. Each level has its second.
            let since = arrived.unwrap_or(turns.now());
            let levels = if is_acknowledged || !is_confirmed { self.ports.len() as u32 - 1 } else { 1 };
            assert!(
                turns.now() <= since + (since - began) + levels * BEHIND_MAX,
                "{:?} after A has what the new source committed, not all have it, or it is not acknowledged ({is_acknowledged}): {}",
                turns.now() - since,
                self.ends()
            );
            assert!(turns.now() < began + LEVEL_MAX, "A does not follow: {}", self.ends());
            turns.sleep_until(turns.now() + Duration::from_millis(20));
        }
    }

    fn ends(&self) -> String {
        let end = self.chain.world.with(|scene| scene.source().log().end());
        let of =
            |(name, port): &(&str, Arc<Port>)| format!("\n{name}: {}", ends_of(&held_files(&port.disk())));
        format!("the source ends at {end:?}{}", self.ports.iter().map(of).collect::<String>())
    }
}

/// Whether readers of this port may have what stands before this place in its newest timeline.
fn has_place(port: &Port, file: &str, position: u64) -> bool {
    let live = port.process().and_then(|process| process.published.live());
    live.is_some_and(|live| *live.file == *file && live.end() >= position)
}

/// Whether all of A's files are held, in their order, each in a timeline of its server. Where A has purged what B lacked, B has
/// recorded a gap, and so another number of timelines.
fn has_all(held: &[HeldFile], first: &[HeldFile]) -> bool {
    let of_server = |(folder, name, bytes, _): &HeldFile| {
        (folder.split_once('-').map(|(_, server)| server.to_owned()), name.clone(), bytes.clone())
    };
    let mut held = held.iter().map(of_server);
    first.iter().map(of_server).all(|file| held.any(|other| other == file))
}

/// The files of all timelines, but for what has only begun and says nothing.
fn whole_files(disk: &Disk) -> Vec<HeldFile> {
    let mut files = held_files(disk);
    files.retain(|(_, _, bytes, _)| {
        beginning::is_whole(&Bytes(bytes), bytes.len() as u64).expect("bytes can be read")
    });
    // What is left out may have been the last one.
    files.iter_mut().for_each(|(.., is_last)| *is_last = false);
    files
}

struct Bytes<'a>(&'a [u8]);

impl ReadAt for Bytes<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let from = (offset as usize).min(self.0.len());
        let len = buffer.len().min(self.0.len() - from);
        buffer[..len].copy_from_slice(&self.0[from..from + len]);
        Ok(len)
    }
}

/// Each timeline is described below as it is above.
fn is_told_alike(name: &str, below: &Disk, above: &Disk) {
    let described = |disk: &Disk| -> Vec<Timeline> {
        let disk = disk.onlooker();
        let folders = timelines(&disk, &Disk::path(FOLDER)).unwrap();
        let described = folders.iter().map(|folder| Timeline::read(&disk, folder).unwrap());
        described.map(|timeline| Timeline { began_at: String::new(), ..timeline }).collect()
    };
    assert_eq!(described(below), described(above), "{name} describes its timelines in another way than A");
}

#[test]
fn a_seed_gives_the_same_history_of_a_chain_again() {
    for seed in [1, 2] {
        let _replay = Replay(seed);
        assert_eq!(run(seed, true), run(seed, true));
    }
}

#[test]
fn what_was_found_once_in_a_chain_is_not_there_again() {
    for (seed, has_doubts) in KEPT {
        let _replay = Replay(*seed);
        run(*seed, *has_doubts);
    }
}

/// As `simulate::simulated_failures_lose_nothing`, of a chain.
#[test]
fn simulated_chains_lose_nothing() {
    run_seeds(SEEDS, |seed| {
        let outcome = run(seed, true);
        (outcome.turns, outcome.counts)
    });
}
