//! The disk hangs at any one operation, and meanwhile the source's logs are reset, which tells a replica nothing: what was asked for
//! before must not be acknowledged to the new logs, where the same place is another transaction.

use crate::disk::{Disk, Verdict};
use crate::history::History;
use crate::receiver::{FOLDER, config, process, with_journal};
use crate::source::Source;
use crate::world::{Environment, Scene, World};
use binlog::folder::timelines;
use binlog::storage::Storage;
use config::{FsyncMode, OnGap, SourceConfig};
use scripted_source::LogOptions;
use source::stop::StopSignal;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// For how long the disk does not answer.
const STALL: Duration = Duration::from_secs(8);

/// Transactions that the source writes before and after.
const TRANSACTIONS: u32 = 12;

/// The source writes, and when the copy has all of that, the receiver is asked to stop.
struct Writes {
    left: u32,
}

/// The newest timeline is the source's only file.
fn is_whole(scene: &Scene) -> bool {
    let disk = scene.disk.onlooker();
    let newest = timelines(&disk, &Disk::path(FOLDER)).unwrap_or_default().pop();
    let end = scene.source().log().end();
    let held = newest.and_then(|folder| disk.read(&folder.join(&end.file)).ok());
    held.is_some_and(|held| held == scene.source().log().files()[0].bytes)
}

impl Environment for Writes {
    fn act(&mut self, scene: &mut Scene) {
        if self.left > 0 && scene.random.one_in(2) {
            self.left -= 1;
            let history = &mut scene.source_mut().history;
            match self.left % 4 {
                0 => history.unit(|log| log.transaction(90)),
                _ => history.flagged(|log| log.transaction(200)),
            }
        }
    }

    fn idle(&mut self, scene: &mut Scene) {
        if self.left == 0 && is_whole(scene) {
            scene.stop.request();
        }
    }
}

/// What the disk does not notice: two more transactions are on their way, clients wait for the second; then the logs begin anew
/// and come to the same places.
fn reset_while_the_disk_hangs(scene: &mut Scene) {
    let history = &mut scene.source_mut().history;
    history.unit(|log| log.transaction(70));
    history.flagged(|log| log.transaction(200));
    let old = scene.source().log().clone();
    let (timestamp, microseconds) = (old.options().timestamp + 1000, old.options().microseconds + 1);
    let source = scene.source_mut();
    source.generation += 1;
    source.history = History::new(LogOptions { timestamp, microseconds, ..old.options().clone() });
    for _ in 0..2 * TRANSACTIONS {
        source.history.flagged(|log| log.transaction(200));
    }
    scene.lines.values_mut().for_each(|line| line.session.reset(&old));
    scene.now += STALL;
}

/// What became of one history.
struct Outcome {
    /// Operations of the disk before the receiver was asked to stop.
    operations: u64,
    /// The disk has hung while a dump was under way.
    was_receiving: bool,
    /// Acknowledgements of what the source has in the end.
    of_new: usize,
}

/// A source that writes, and a receiver whose disk hangs at the operation of this number.
fn receive(fsync_mode: FsyncMode, hangs_at: u64) -> Outcome {
    let disk = Disk::with(&with_journal(32 << 10), 1);
    let stop = Arc::new(StopSignal::new());
    let writes = Writes { left: TRANSACTIONS };
    let hosts = vec![Source::new(History::new(LogOptions::default()), true)];
    let world = Arc::new(World::new(hosts, disk.clone(), stop.clone(), 400, 1, Box::new(writes)));
    let was_receiving = Arc::new(AtomicBool::new(false));
    let (onlooker, seen): (Weak<World>, _) = (Arc::downgrade(&world), was_receiving.clone());
    let mut operations = 0;
    disk.judged_by(Box::new(move |_| {
        operations += 1;
        if let Some(world) = onlooker.upgrade().filter(|_| operations == hangs_at) {
            world.with(|scene| {
                // At the end nothing is received any more.
                let is_dumping = scene.lines.values().any(|line| line.session.is_dumping());
                seen.store(is_dumping && !scene.stop.is_requested(), Relaxed);
                scene.acknowledged.clear();
                reset_while_the_disk_hangs(scene);
            });
        }
        Verdict::Do
    }));
    world.with(|scene| scene.steps_left = 20_000);
    // That the old logs are gone is a gap, which is none of this test.
    let config = SourceConfig { on_gap: OnGap::Record, ..config(fsync_mode, true) };
    let process = process(&disk, &world, &config, stop);
    world.with(|scene| scene.reader.attach(process.published.clone()));
    let copy = process.open().expect("a disk that does not fail");
    process.run(copy);
    let was_receiving = was_receiving.load(Relaxed);
    world.with(|scene| {
        let is_at_end = scene.steps_left > 0 && (is_whole(scene) || !was_receiving);
        assert_eq!(scene.stale, [], "operation {hangs_at}: acknowledged to logs that began anew 8 s before");
        assert!(is_at_end, "operation {hangs_at}: it does not catch up");
        Outcome { operations: disk.operations(), was_receiving, of_new: scene.acknowledged.len() }
    })
}

#[test]
fn what_was_asked_for_before_the_disk_hung_is_not_acknowledged_to_logs_that_were_reset_meanwhile() {
    for fsync_mode in [FsyncMode::SyncThenAcknowledge, FsyncMode::WriteThenAcknowledge] {
        let operations = receive(fsync_mode, u64::MAX).operations;
        let outcomes: Vec<Outcome> = (1..=operations).map(|at| receive(fsync_mode, at)).collect();
        let receiving = outcomes.iter().filter(|outcome| outcome.was_receiving).count();
        println!("{fsync_mode:?}: {operations} operations, {receiving} of them while receiving");
        assert!(receiving >= 20, "{receiving} of {operations}");
        assert!(outcomes.iter().all(|outcome| !outcome.was_receiving || outcome.of_new > 0));
    }
}
