//! Every moment at which a crash can come, and for each the states that it can leave on the disk.
//!
//! A run over a scripted history is recorded, operation by operation. Before each operation and in the middle of each
//! durable write the world is stopped: the power fails, with each [`Fate`] of what no sync has covered, and the product's
//! own code opens what is left. What it then holds must be a beginning of what the source has sent, cut at a boundary, with
//! everything in it that was acknowledged. Power failures inside that recovery are tried too, and so are crashes of the
//! process alone, after which the copy is received to its end before the power fails.

use crate::disk::fate::Fate;
use crate::disk::image::{Image, Operation, Tree};
use crate::disk::{Disk, Kind, Verdict};
use crate::history::{History, every_kind, large_events};
use crate::receiver::{FOLDER, SOURCE, config, data_dir, process, with_journal};
use crate::source::Source;
use crate::world::{Environment, Scene, World};
use binlog::folder::timelines;
use binlog::purge::plan::{Plan, Rules, Wanted};
use binlog::purge::purge_record;
use binlog::purge::purged::is_purged;
use binlog::purge::{Indexes, carry_out};
use binlog::storage::Storage;
use binlog::timeline::files::binlog_files;
use binlog::timeline::index;
use binlog::writer::mark::MARK_FILE;
use config::{FsyncMode, SourceConfig};
use jiff::Timestamp;
use receive::attempt::copy::HeldCopy;
use scripted_source::LogOptions;
use source::clock::SystemClock;
use source::stop::StopSignal;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Reads that find nothing new before a run is over: long enough for background syncs to begin and end.
const IDLE_READS: u32 = 12;

/// A run that takes more steps than this makes no progress.
const STEPS_MAX: u64 = 10_000;

/// Every `CONTINUED_EVERY`th power failure is followed by a run to the end of the history.
const CONTINUED_EVERY: usize = 5;

/// Error of a device.
const EIO: i32 = 5;

/// What is received, and how.
struct Scenario {
    history: History,
    config: SourceConfig,
    /// `None`: the receiver makes its own.
    journal_len: Option<u64>,
    /// Most bytes that one read gives.
    chunk_max: u64,
    /// Fates of each kind that are left to chance.
    random_fates: u64,
    /// At every so-manieth step all but the newest files are purged, as by a thread beside the receiving one.
    purge_every: Option<u64>,
}

/// What was tried.
#[derive(Debug, Default, Clone, Copy)]
struct Tried {
    stop_points: usize,
    disk_states: usize,
    /// Of these, with a mark on the disk, whole or not.
    marked_states: usize,
    second_crashes: usize,
    killed_processes: usize,
    /// Ends that a reader was given.
    reads: usize,
}

/// Receives until everything was sent and a while has passed.
struct UntilSent {
    idle_left: u32,
    purge_every: Option<u64>,
}

impl Environment for UntilSent {
    fn act(&mut self, scene: &mut Scene) {
        if self.purge_every.is_some_and(|every| scene.steps.is_multiple_of(every)) {
            purge(&scene.disk);
        }
    }

    fn idle(&mut self, scene: &mut Scene) {
        self.idle_left -= u32::from(scene.everything_is_sent() && self.idle_left > 0);
        if self.idle_left == 0 {
            scene.stop.request();
        }
    }
}

/// Purges all that may go.
fn purge(disk: &Disk) {
    let folder = Disk::path(FOLDER);
    let wanted = Wanted::Rules(Rules { max_files: Some(1), ..Rules::default() }, Timestamp::UNIX_EPOCH);
    let plan = Plan::make(disk, &folder, &wanted, &[]).unwrap();
    carry_out(disk, &plan.goes(), "the simulation", Timestamp::UNIX_EPOCH, Indexes::OfOlderTimelines)
        .unwrap();
}

impl Scenario {
    fn new(history: History, fsync_mode: FsyncMode, semi_sync: bool) -> Scenario {
        let config = config(fsync_mode, semi_sync);
        Scenario {
            history,
            config,
            journal_len: Some(64 << 10),
            chunk_max: 1500,
            random_fates: 3,
            purge_every: None,
        }
    }

    fn begin(&self) -> Tree {
        self.journal_len.map_or_else(Tree::default, with_journal)
    }

    /// Receives the history to its end; gives what was acknowledged.
    fn receive(&self, disk: &Disk, seed: u64) -> Vec<(String, u64)> {
        let stop = Arc::new(StopSignal::new());
        let source = Source::new(self.history.clone(), true);
        let environment = Box::new(UntilSent { idle_left: IDLE_READS, purge_every: self.purge_every });
        let world = World::new(vec![source], disk.clone(), stop.clone(), self.chunk_max, seed, environment);
        let world = Arc::new(world);
        world.with(|scene| scene.steps_left = STEPS_MAX);
        let process = process(disk, &world, &self.config, stop);
        world.with(|scene| scene.reader.attach(process.published.clone()));
        let (copy, monitor) = (process.open().unwrap(), process.monitor.clone());
        process.run(copy);
        let (acknowledged, left) =
            world.with(|scene| (std::mem::take(&mut scene.acknowledged), scene.steps_left));
        let error = monitor.status(Default::default()).last_error;
        assert!(left > 0, "no progress in {STEPS_MAX} steps: {error:?}");
        acknowledged.into_iter().map(|(_, file, position)| (file, position)).collect()
    }

    /// Records a run.
    fn record(&self) -> Vec<Operation> {
        let disk = Disk::with(&self.begin(), 1);
        disk.record();
        // By this seed the reads are cut so that a mark is made while the session lasts: see `marked_states`.
        let acknowledged = self.receive(&disk, 3);
        let end = self.history.log.end();
        self.check(&disk, &acknowledged, &[], true)
            .unwrap_or_else(|wrong| panic!("without a crash: {wrong}"));
        if self.config.semi_sync {
            assert_eq!(acknowledged.last(), Some(&(end.file, end.position)), "the last event asks for it");
        }
        disk.take_trace()
    }

    /// Opens the copy on a disk, and compares it with the history.
    fn check(
        &self,
        disk: &Disk,
        acknowledged: &[(String, u64)],
        read: &[(String, u64)],
        is_whole: bool,
    ) -> Result<(), String> {
        let (copy, _) = HeldCopy::open(Arc::new(disk.clone()), Arc::new(SystemClock), &data_dir(), SOURCE)
            .map_err(|error| format!("it cannot be opened: {error}"))?;
        let folder = timelines(disk, &Disk::path(FOLDER)).unwrap();
        let [folder] = &folder[..] else {
            let is_lost = !acknowledged.is_empty() || !read.is_empty() || !folder.is_empty() || is_whole;
            return if is_lost { Err(format!("{} timelines", folder.len())) } else { Ok(()) };
        };
        let timeline = copy.timeline().ok_or("it has a folder and is not open")?;
        let end = timeline.end();
        let names = index::read(disk, folder).unwrap();
        let held = self.compare_files(disk, folder, &names)?;
        let names: Vec<String> = self.history.log.files().iter().map(|file| file.name.clone()).collect();
        let at = end.as_ref().map(|end| (end.file.to_string(), end.offset));
        if at != held {
            return Err(format!("it goes on at {at:?}, but the files end at {held:?}"));
        }
        for position in acknowledged {
            if !is_within(position, held.as_ref(), &names) {
                return Err(format!("{position:?} was acknowledged, but the copy ends at {held:?}"));
            }
        }
        for position in read {
            // All files are the source's, so what was read is what is held.
            if !is_within(position, held.as_ref(), &names) {
                return Err(format!(
                    "a reader has everything up to {position:?}, but the copy ends at {held:?}"
                ));
            }
            if self.history.boundary(&position.0, position.1).is_none() {
                return Err(format!("a reader was at {position:?}, which is no boundary"));
            }
        }
        if let Some((file, offset)) = &held {
            let boundary = self.history.boundary(file, *offset);
            let expected =
                boundary.ok_or_else(|| format!("it ends at {file}:{offset}, which is no boundary"))?;
            let found = timeline.gtids.to_line();
            if expected.as_ref().is_some_and(|expected| expected.to_line() != found) {
                return Err(format!("at {file}:{offset} its GTID set is {found}, not {expected:?}"));
            }
        }
        let last = self.history.log.end();
        if is_whole && held.as_ref() != Some(&(last.file.clone(), last.position)) {
            return Err(format!("it ends at {held:?}, not at {last:?}"));
        }
        Ok(())
    }

    /// All files must equal the source's, but the last one may be shorter. Gives the end of the last one.
    fn compare_files(
        &self,
        disk: &Disk,
        folder: &Path,
        names: &[String],
    ) -> Result<Option<(String, u64)>, String> {
        let sent = self.history.log.files();
        let purged = purge_record::read(disk, folder);
        // What is held goes on to the end without a hole, and what is missing before it was purged.
        let skipped =
            names.first().and_then(|first| sent.iter().position(|file| file.name == *first)).unwrap_or(0);
        if let Some(file) = sent[..skipped].iter().find(|file| !is_purged(&purged, &file.name)) {
            return Err(format!("{} is not there, and was not purged: {purged:?}", file.name));
        }
        if let Some(name) = names.iter().find(|name| is_purged(&purged, name)) {
            return Err(format!("{name} is held although it was purged: {purged:?}"));
        }
        let present = binlog_files(disk, folder).unwrap();
        if present != names {
            return Err(format!("{present:?} are in the folder, and {names:?} in the index"));
        }
        let sent = &sent[skipped..];
        for (index, name) in names.iter().enumerate() {
            let bytes = disk.read(&folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
            let original = sent.get(index).filter(|file| file.name == *name);
            let original = &original.ok_or_else(|| format!("{name} is file {index} of the copy"))?.bytes;
            let is_last = index + 1 == names.len();
            if !original.starts_with(&bytes) || !is_last && bytes.len() != original.len() {
                let same = original.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
                let (held, whole) = (bytes.len(), original.len());
                return Err(format!("{name} has {held} of {whole} bytes, and the first {same} are right"));
            }
            if is_last {
                return Ok(Some((name.clone(), bytes.len() as u64)));
            }
        }
        Ok(None)
    }

    /// Crashes everywhere.
    fn explore(&self) -> Tried {
        let trace = self.record();
        let mut explorer = Explorer {
            scenario: self,
            acknowledged: Vec::new(),
            read: Vec::new(),
            seen: HashSet::new(),
            tried: Tried::default(),
        };
        let mut image = Image::of(&self.begin());
        for (index, operation) in trace.iter().enumerate() {
            explorer.stop_before(index, &image);
            if matches!(operation, Operation::Write { synced: true, .. }) {
                let mut during = image.clone();
                during.begin(operation);
                explorer.stop_within(index, &during);
            }
            if let Operation::Acknowledged { file, position } = operation {
                explorer.acknowledged.push((file.clone(), *position));
            }
            if let Operation::Published { file, end } = operation {
                explorer.read.push((file.clone(), *end));
            }
            image.apply(operation);
        }
        explorer.stop_before(trace.len(), &image);
        explorer.tried.reads = explorer.read.len();
        explorer.tried
    }
}

/// True when `position` lies within a copy that ends at `held`.
fn is_within(position: &(String, u64), held: Option<&(String, u64)>, names: &[String]) -> bool {
    let number = |name: &str| names.iter().position(|held| held == name);
    held.is_some_and(|held| match (number(&position.0), number(&held.0)) {
        (Some(acknowledged), Some(last)) => acknowledged < last || position.1 <= held.1,
        _ => false,
    })
}

/// Tries the states of one scenario.
struct Explorer<'a> {
    scenario: &'a Scenario,
    /// What the source has been told so far.
    acknowledged: Vec<(String, u64)>,
    /// Where a reader has been so far.
    read: Vec<(String, u64)>,
    /// States that were tried, and how much was acknowledged then.
    seen: HashSet<u64>,
    tried: Tried,
}

impl Explorer<'_> {
    /// The world stops before the operation number `index`.
    fn stop_before(&mut self, index: usize, image: &Image) {
        self.tried.stop_points += 1;
        if self.scenario.config.fsync_mode == FsyncMode::SyncThenAcknowledge {
            let fixed = [
                Fate::Lost,
                Fate::Kept,
                Fate::NamesOnly,
                Fate::BytesOnly,
                Fate::Zeros,
                Fate::Garbage,
                Fate::LastSector,
            ];
            let random =
                (0..self.scenario.random_fates).map(move |seed| Fate::Random(seed << 32 | index as u64));
            for fate in fixed.into_iter().chain(random) {
                self.power_failure(index, image, fate);
            }
        }
        self.kill(index, image);
    }

    /// The world stops in the middle of a durable write.
    fn stop_within(&mut self, index: usize, image: &Image) {
        self.tried.stop_points += 1;
        if self.scenario.config.fsync_mode == FsyncMode::SyncThenAcknowledge {
            let random = (0..3).map(move |seed| Fate::Random(seed << 40 | index as u64));
            for fate in [Fate::Zeros, Fate::LastSector].into_iter().chain(random) {
                self.power_failure(index, image, fate);
            }
        }
    }

    fn power_failure(&mut self, index: usize, image: &Image, fate: Fate) {
        let tree = image.after_power_failure(fate);
        let mut hasher = DefaultHasher::new();
        (&tree, self.acknowledged.len(), self.read.len()).hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return;
        }
        self.tried.disk_states += 1;
        self.tried.marked_states += usize::from(tree.files.contains_key(&format!("{FOLDER}/{MARK_FILE}")));
        let disk = Disk::with(&tree, 3);
        disk.record();
        self.verify(&disk, &format!("power failure before operation {index}, {fate:?}"), false);
        let trace = disk.take_trace();
        if self.tried.disk_states.is_multiple_of(CONTINUED_EVERY) {
            self.scenario.receive(&disk, index as u64);
            let context =
                format!("received to its end after a power failure before operation {index}, {fate:?}");
            self.verify(&disk, &context, true);
        }
        if matches!(fate, Fate::Lost | Fate::Random(_)) {
            self.crash_again(index, &tree, fate, &trace);
        }
    }

    /// The power fails again, at each moment of the recovery.
    fn crash_again(&mut self, index: usize, tree: &Tree, fate: Fate, trace: &[Operation]) {
        let mut image = Image::of(tree);
        for (second, operation) in trace.iter().enumerate() {
            image.apply(operation);
            if image.is_sure() {
                continue; // As before it, or as after the next one.
            }
            for again in [Fate::Lost, Fate::Zeros, Fate::Random(second as u64)] {
                self.tried.second_crashes += 1;
                let disk = Disk::with(&image.after_power_failure(again), 4);
                let context = format!(
                    "power failure before operation {index}, {fate:?}, and another one in the recovery after operation \
                     {second}, {again:?}"
                );
                self.verify(&disk, &context, false);
            }
        }
    }

    /// The process alone is killed; another one receives to the end; then the power fails.
    fn kill(&mut self, index: usize, image: &Image) {
        self.tried.killed_processes += 1;
        let disk = Disk::new(image.clone(), 5);
        self.verify(&disk, &format!("killed before operation {index}"), false);
        let again = self.scenario.receive(&disk, index as u64);
        self.verify(&disk, &format!("received to its end after a kill before operation {index}"), true);
        let tree = disk.image().after_power_failure(Fate::Lost);
        if self.scenario.config.fsync_mode == FsyncMode::SyncThenAcknowledge {
            let disk = Disk::with(&tree, 6);
            let before = self.acknowledged.len();
            self.acknowledged.extend(again);
            let context = format!("power failure after a kill before operation {index} and a run to the end");
            self.verify(&disk, &context, false);
            self.acknowledged.truncate(before);
        }
    }

    fn verify(&self, disk: &Disk, context: &str, is_whole: bool) {
        if let Err(wrong) = self.scenario.check(disk, &self.acknowledged, &self.read, is_whole) {
            panic!("{context}: {wrong}");
        }
    }
}

#[test]
fn a_crash_anywhere_keeps_what_was_acknowledged() {
    let history = every_kind(LogOptions::default());
    let tried = Scenario::new(history, FsyncMode::SyncThenAcknowledge, true).explore();
    println!("{tried:?}");
    assert!(tried.stop_points >= 200 && tried.disk_states >= 600 && tried.second_crashes >= 3_500);
    assert!(tried.marked_states >= 400);
}

#[test]
fn a_crash_anywhere_without_semi_sync() {
    let history = every_kind(LogOptions { gtids: false, ..LogOptions::default() });
    let tried = Scenario::new(history, FsyncMode::SyncThenAcknowledge, false).explore();
    println!("{tried:?}");
    assert!(tried.stop_points >= 120 && tried.disk_states >= 285 && tried.second_crashes >= 800);
}

/// Nobody waits for an acknowledgement, so no journal has what a sync in the background has not covered: a mark that said more
/// than that would be believed of bytes that are lost.
#[test]
fn a_crash_anywhere_with_a_mark_after_each_of_many_syncs() {
    let history = every_kind(LogOptions { rotate_after: 1 << 30, ..LogOptions::default() });
    let mut scenario = Scenario::new(history, FsyncMode::SyncThenAcknowledge, false);
    scenario.config.fsync_interval = Duration::from_millis(30);
    (scenario.chunk_max, scenario.random_fates) = (300, 6);
    let tried = scenario.explore();
    println!("{tried:?}");
    assert!(tried.stop_points >= 120 && tried.marked_states >= 250);
}

#[test]
fn a_kill_anywhere_with_fsync_mode_0() {
    let history = every_kind(LogOptions::default());
    let tried = Scenario::new(history, FsyncMode::WriteThenAcknowledge, true).explore();
    println!("{tried:?}");
    assert!(tried.killed_processes >= 140);
}

#[test]
fn a_crash_anywhere_with_events_larger_than_the_buffers() {
    let mut scenario = Scenario::new(large_events(), FsyncMode::SyncThenAcknowledge, true);
    (scenario.chunk_max, scenario.random_fates) = (400_000, 1);
    let tried = scenario.explore();
    println!("{tried:?}");
    assert!(tried.stop_points >= 70 && tried.disk_states >= 130 && tried.second_crashes >= 300);
}

#[test]
fn a_crash_anywhere_while_everything_is_made() {
    let mut history = History::new(LogOptions::default());
    history.flagged(|log| log.transaction(10));
    history.flagged(|log| log.rotate());
    history.flagged(|log| log.transaction(10));
    let mut scenario = Scenario::new(history, FsyncMode::SyncThenAcknowledge, true);
    (scenario.journal_len, scenario.random_fates) = (None, 1);
    let tried = scenario.explore();
    println!("{tried:?}");
    assert!(tried.stop_points >= 65 && tried.disk_states >= 90 && tried.second_crashes >= 40);
}

/// Files go while others are received: wherever the power fails, what is held is the end of the history without a hole, and
/// what was acknowledged is there or was purged.
#[test]
fn a_crash_anywhere_while_files_are_purged() {
    let mut history = History::new(LogOptions::default());
    for _ in 0..6 {
        history.flagged(|log| log.transaction(200));
        history.flagged(|log| log.rotate());
    }
    history.flagged(|log| log.transaction(10));
    let mut scenario = Scenario::new(history, FsyncMode::SyncThenAcknowledge, true);
    (scenario.chunk_max, scenario.purge_every) = (300, Some(5));
    let disk = Disk::with(&scenario.begin(), 1);
    scenario.receive(&disk, 3);
    let folder = timelines(&disk, &Disk::path(FOLDER)).unwrap().remove(0);
    assert!(purge_record::read(&disk, &folder).len() >= 3, "files went one after another");
    let tried = scenario.explore();
    println!("{tried:?}");
    assert!(tried.stop_points >= 200 && tried.disk_states >= 600 && tried.second_crashes >= 1_000);
}

/// Nobody was told, and the source may be dead by now: what a sync that failed has left in the page cache alone is written again.
#[test]
fn what_a_failed_sync_should_have_written_is_kept() {
    let mut history = History::new(LogOptions::default());
    history.unit(|log| log.transaction(100));
    let begun = history.log.end().position as usize;
    let scenario = Scenario::new(history, FsyncMode::SyncThenAcknowledge, false);
    let mut longer = Scenario::new(scenario.history.clone(), FsyncMode::SyncThenAcknowledge, false);
    longer.history.unit(|log| log.transaction(9_000));
    let more = longer.history.log.files()[0].bytes[begun..].to_vec();
    for seed in 0..8 {
        let disk = Disk::with(&scenario.begin(), seed);
        scenario.receive(&disk, seed);
        let (mut copy, _) =
            HeldCopy::open(Arc::new(disk.clone()), Arc::new(SystemClock), &data_dir(), SOURCE).unwrap();
        let log = &mut copy.timeline_mut().unwrap().log;
        log.append(&mut [IoSlice::new(&more)]).unwrap();
        disk.judged_by(Box::new(|kind| if kind == Kind::Sync { Verdict::Fail(EIO) } else { Verdict::Do }));
        log.sync().unwrap_err();
        disk.judged_by(Box::new(|_| Verdict::Do));
        copy.reopen().unwrap();
        drop(copy);
        let tree = disk.image().after_power_failure(Fate::Lost);
        let disk = Disk::with(&tree, seed);
        longer.check(&disk, &[], &[], true).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

/// Fails every sync from the moment on in which everything was received and is read.
struct SyncsFail {
    has_begun: bool,
}

impl Environment for SyncsFail {
    fn act(&mut self, _: &mut Scene) {}

    fn idle(&mut self, scene: &mut Scene) {
        if !self.has_begun && scene.everything_is_sent() && scene.reader.taken().next().is_some() {
            self.has_begun = true;
            let fail = |kind| if kind == Kind::Sync { Verdict::Fail(EIO) } else { Verdict::Do };
            scene.disk.judged_by(Box::new(fail));
            scene.source_mut().history.unit(|log| log.transaction(100));
        }
    }
}

/// The page cache may give what the disk does not have, until the copy is opened again.
#[test]
fn nothing_can_be_read_after_a_failed_sync() {
    for fsync_mode in [FsyncMode::SyncThenAcknowledge, FsyncMode::WriteThenAcknowledge] {
        let mut history = History::new(LogOptions::default());
        history.unit(|log| log.transaction(100));
        let scenario = Scenario::new(history, fsync_mode, false);
        let (disk, stop) = (Disk::with(&scenario.begin(), 1), Arc::new(StopSignal::new()));
        let source = Source::new(scenario.history.clone(), true);
        let environment = Box::new(SyncsFail { has_begun: false });
        let world = World::new(vec![source], disk.clone(), stop.clone(), 1500, 1, environment);
        let world = Arc::new(world);
        world.with(|scene| scene.steps_left = 400);
        let process = process(&disk, &world, &scenario.config, stop);
        let published = process.published.clone();
        world.with(|scene| scene.reader.attach(published.clone()));
        let copy = process.open().unwrap();
        process.run(copy);
        let (was_read, was_sent_away) =
            world.with(|scene| (scene.reader.taken().next().is_some(), scene.reader.was_sent_away()));
        assert!(disk.take_failed_syncs() > 0 && was_read, "{fsync_mode:?}");
        assert!(was_sent_away && published.live().is_none(), "{fsync_mode:?}");
    }
}
