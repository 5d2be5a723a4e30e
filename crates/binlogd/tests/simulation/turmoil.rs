//! What goes wrong in a simulation: the source, the network, the disk and the process, at random.

use crate::disk::{Judge, Kind, Verdict};
use crate::history::{History, any_unit};
use crate::world::{Environment, Scene};
use binlog::testing::Random;
use codec::gtid::{GtidSet, GtidState};
use scripted_source::LogOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// One in so many reads is given a disaster, when it is not calm.
const DISASTER_ONE_IN: u64 = 40;

/// One in so many reads finds that something happens to another binlogd.
const PEER_CHANGE_ONE_IN: u64 = 60;

/// What the disk does to operations.
#[derive(Debug, Default)]
pub struct Weather {
    /// There is no space.
    pub is_full: bool,
    /// So many operations succeed before one fails.
    pub fails_after: Option<u64>,
    /// So many operations are done before the machine stops.
    pub stops_after: Option<u64>,
    /// Operations that failed.
    pub failures: u64,
}

/// A judge that follows the weather.
pub fn judge(weather: Arc<Mutex<Weather>>) -> Judge {
    Box::new(move |kind| {
        let mut weather = weather.lock().expect("no panic in the weather");
        if comes_due(&mut weather.stops_after) {
            return Verdict::Crash;
        }
        let error = if comes_due(&mut weather.fails_after) {
            EIO
        } else if weather.is_full && matches!(kind, Kind::Create | Kind::Write) {
            ENOSPC
        } else {
            return Verdict::Do;
        };
        weather.failures += 1;
        Verdict::Fail(error)
    })
}

/// Counts down to one event.
fn comes_due(after: &mut Option<u64>) -> bool {
    match after {
        Some(0) => {
            *after = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

/// What the source has been, and what it was told.
#[derive(Debug, Default)]
pub struct Past {
    /// The servers' histories before the present ones, each with its server: before it lost a tail, was reset, replaced or
    /// purged.
    pub histories: Vec<(usize, History)>,
    /// The highest position that was acknowledged, by the count of `histories` then, the server and the file.
    pub acknowledged: BTreeMap<(usize, usize, String), u64>,
    /// GTIDs of everything that was acknowledged so.
    pub acknowledged_gtids: GtidSet,
    /// GTIDs whose logs a server had purged before they were acknowledged: a copy may never have had them.
    pub purged: GtidSet,
    /// How often each thing has happened.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Past {
    /// What was acknowledged may be gone: the operator has accepted that.
    pub fn forget_acknowledgements(&mut self) {
        self.acknowledged.clear();
        self.purged.union_with(&std::mem::take(&mut self.acknowledged_gtids));
    }

    /// A server has no logs of these GTIDs any more. What was acknowledged is held all the same.
    pub fn nobody_has(&mut self, gtids: &GtidSet) {
        self.purged.union_with(&gtids.subtract(&self.acknowledged_gtids));
    }

    pub fn count(&mut self, what: &'static str) {
        tracing::debug!("{what}");
        *self.counts.entry(what).or_default() += 1;
    }
}

/// Everything that can go wrong.
pub struct Turmoil {
    pub random: Random,
    pub weather: Arc<Mutex<Weather>>,
    pub past: Arc<Mutex<Past>>,
    /// Nothing goes wrong any more.
    pub is_calm: Arc<Mutex<bool>>,
    /// The history at some earlier moment: what a crash of the source may leave of it.
    pub snapshot: Option<History>,
    /// Seconds since 1970 of the source's next restart.
    pub timestamp: u32,
    /// Servers that apply nothing for now.
    pub lagging: BTreeSet<usize>,
    /// Idle looks at the end, until the run is over.
    pub idle_left: u32,
    /// The servers rotate their logs each by itself, so that their files have other boundaries and other names.
    pub rotates_apart: bool,
}

impl Turmoil {
    pub fn new(
        seed: u64,
        weather: Arc<Mutex<Weather>>,
        past: Arc<Mutex<Past>>,
        is_calm: Arc<Mutex<bool>>,
    ) -> Turmoil {
        let (random, timestamp) = (Random::new(seed), 1_800_000_000);
        Turmoil {
            random,
            weather,
            past,
            is_calm,
            snapshot: None,
            timestamp,
            lagging: BTreeSet::new(),
            idle_left: 20,
            rotates_apart: false,
        }
    }

    fn note_acknowledgements(&mut self, scene: &mut Scene) {
        let mut past = self.past.lock().expect("no panic in the past");
        let epoch = past.histories.len();
        for (host, file, position) in scene.acknowledged.drain(..) {
            let history = &scene.hosts[host].history;
            assert!(
                history.boundary(&file, position).is_some(),
                "{file}:{position} was acknowledged, no boundary"
            );
            if let Some(Some(GtidState::Mysql(executed))) = history.boundary(&file, position) {
                let executed = executed.subtract(history.log.purged_set());
                past.acknowledged_gtids.union_with(&executed);
            }
            let highest = past.acknowledged.entry((epoch, host, file)).or_default();
            *highest = position.max(*highest);
            past.count("acknowledgement");
        }
    }

    pub fn write(&mut self, history: &mut History) {
        for _ in 0..1 + self.random.below(3) {
            any_unit(history, &mut self.random);
        }
    }

    fn disaster(&mut self, scene: &mut Scene) -> &'static str {
        match self.random.below(23) {
            0 => {
                scene.source_mut().history.unit(|log| log.restart());
                scene.disconnect_from(scene.source);
                "clean restart of the source"
            }
            1 => {
                scene.source_mut().history.stump();
                scene.disconnect_from(scene.source);
                "crash of the source inside a transaction"
            }
            2 => self.lose_tail(scene),
            3 => self.reset(scene),
            4 => {
                let options = scene.source().log().options().clone();
                // One of few, so that a server comes back whose older timeline is held.
                let uuid = [scene.source as u8 * 8 + self.random.below(3) as u8; 16];
                self.replace(scene, LogOptions { uuid, timestamp: self.timestamp, ..options });
                "another server in the source's place"
            }
            5 | 6 => {
                self.remember(scene, scene.source);
                let count = self.random.below(4) as usize;
                let log = &mut scene.source_mut().history.log;
                log.purge(count);
                let purged = log.purged_set().clone();
                self.past.lock().expect("no panic in the past").nobody_has(&purged);
                "purge of old logs"
            }
            7..=9 => {
                self.line(scene, |line, random| line.cut_after = Some(random.below(3000) as usize), "cut")
            }
            10..=12 => self.line(
                scene,
                |line, random| line.flip_after = Some(random.below(3000) as usize),
                "wrong bit",
            ),
            13 => self.line(scene, |line, _| line.is_silent = true, "silence"),
            21 => {
                scene.source_mut().history.unit(|log| log.rotate());
                self.write(&mut scene.source_mut().history);
                scene.source_mut().history.unit(|log| log.crash());
                self.line(scene, |line, _| line.session.skip_file(), "file left out of a dump")
            }
            14 => {
                scene.is_reachable = false;
                scene.disconnect();
                "source out of reach"
            }
            15 => {
                scene.source_mut().semi_sync ^= true;
                "semi-sync switched on or off"
            }
            16 => {
                self.weather.lock().expect("no panic in the weather").is_full = true;
                "full disk"
            }
            17 | 18 => {
                self.weather.lock().expect("no panic in the weather").fails_after =
                    Some(self.random.below(12));
                "failing operation of the disk"
            }
            19 => {
                scene.disk.switch_off();
                "kill"
            }
            20 => {
                self.weather.lock().expect("no panic in the weather").stops_after =
                    Some(self.random.below(30));
                "power failure"
            }
            _ => {
                scene.stop.request();
                "stop in good order"
            }
        }
    }

    /// The source crashes and forgets what it wrote last.
    fn lose_tail(&mut self, scene: &mut Scene) -> &'static str {
        let Some(mut snapshot) = self.snapshot.take() else { return "nothing" };
        self.remember(scene, scene.source);
        snapshot.log.set_timestamp(self.timestamp);
        self.timestamp += 1000;
        snapshot.unit(|log| log.crash());
        scene.source_mut().history = snapshot;
        scene.disconnect_from(scene.source);
        "source lost its tail"
    }

    /// RESET BINARY LOGS AND GTIDS: the dumps stay, and nobody tells them. Sometimes the same names are there again at once.
    /// Sometimes it is the second in which the logs had begun, but only before they were rotated: a dump that is behind by a
    /// file while two logs go through the same names in one second is more than anybody can tell without GTIDs.
    fn reset(&mut self, scene: &mut Scene) -> &'static str {
        let old = scene.source().log().clone();
        let is_first = old.files().len() == 1;
        let timestamp =
            if is_first && self.random.one_in(3) { old.options().timestamp } else { self.timestamp };
        let microseconds = old.options().microseconds + 1;
        self.begin_anew(scene, LogOptions { timestamp, microseconds, ..old.options().clone() });
        let host = scene.source;
        if self.random.one_in(4) {
            scene.disconnect_from(host);
        } else {
            let lines = scene.lines.values_mut().filter(|line| line.host == host);
            lines.for_each(|line| line.session.reset(&old));
        }
        for _ in 0..self.random.below(3) {
            self.write(&mut scene.source_mut().history);
            scene.source_mut().history.unit(|log| log.rotate());
        }
        if is_first { "reset on the first file" } else { "reset of the source's logs" }
    }

    /// The source begins with new logs.
    fn replace(&mut self, scene: &mut Scene, options: LogOptions) {
        self.begin_anew(scene, options);
        scene.disconnect_from(scene.source);
    }

    fn begin_anew(&mut self, scene: &mut Scene, options: LogOptions) {
        self.remember(scene, scene.source);
        self.timestamp += 1000;
        self.snapshot = None;
        scene.source_mut().history = History::new(options);
    }

    pub fn remember(&mut self, scene: &mut Scene, host: usize) {
        self.note_acknowledgements(scene);
        let history = scene.hosts[host].history.clone();
        scene.hosts[host].generation += 1;
        self.past.lock().expect("no panic in the past").histories.push((host, history));
    }

    /// Something happens to one connection that streams.
    fn line(
        &mut self,
        scene: &mut Scene,
        change: impl FnOnce(&mut crate::world::Line, &mut Random),
        what: &'static str,
    ) -> &'static str {
        match scene.lines.values_mut().find(|line| line.session.is_dumping()) {
            Some(line) => change(line, &mut self.random),
            None => return "nothing",
        }
        what
    }

    fn heal(&mut self, scene: &mut Scene) {
        scene.is_reachable = true;
        scene.hosts.iter_mut().for_each(|host| host.is_up = true);
        let mut weather = self.weather.lock().expect("no panic in the weather");
        (weather.is_full, weather.fails_after, weather.stops_after) = (false, None, None);
        scene.lines.values_mut().for_each(|line| line.is_silent = false);
    }
}

impl Environment for Turmoil {
    fn act(&mut self, scene: &mut Scene) {
        self.note_acknowledgements(scene);
        if *self.is_calm.lock().expect("no panic in the calm") {
            return;
        }
        if self.random.one_in(4) {
            self.write(&mut scene.source_mut().history);
        }
        if self.random.one_in(30) {
            self.snapshot = Some(scene.source().history.clone());
        }
        if scene.hosts.len() > 1 {
            self.cluster(scene);
        }
        if let Some(peer) = &mut scene.peer {
            if peer.is_attached && self.random.one_in(3) {
                peer.receive(&scene.hosts[scene.source], self.random.one_in(8));
            }
            if self.random.one_in(PEER_CHANGE_ONE_IN) {
                let what = if self.random.one_in(2) {
                    peer.is_attached ^= true;
                    "another binlogd cut off from the source, or attached again"
                } else {
                    peer.is_up ^= true;
                    "another binlogd goes or comes"
                };
                self.past.lock().expect("no panic in the past").count(what);
            }
        }
        if self.random.one_in(DISASTER_ONE_IN) {
            let what = self.disaster(scene);
            self.past.lock().expect("no panic in the past").count(what);
        }
    }

    fn idle(&mut self, scene: &mut Scene) {
        self.note_acknowledgements(scene);
        if scene.disk.is_off() {
            // Nobody is left to wait.
            scene.stop.request();
            return;
        }
        let is_calm = *self.is_calm.lock().expect("no panic in the calm");
        if is_calm || self.random.one_in(3) {
            self.heal(scene);
        }
        if is_calm && scene.everything_is_sent() {
            self.idle_left = self.idle_left.saturating_sub(1);
            if self.idle_left == 0 {
                scene.stop.request();
            }
        }
    }
}
