//! The archive of one source, kept by several writers at once over a store that fails: docs/internals/simulation.md.
#![expect(unreachable_pub, reason = "modules of a test")]

mod ledger;
mod scenario;
mod source;
mod stage;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// Seeds that every run of the tests takes.
const SEEDS: u64 = 500;

/// So many of the seeds that failed are told.
const FAILED_SHOWN: usize = 20;

/// Seeds that have found something, wherever the others begin.
const FOUND: &[u64] = &[676, 3581, 4720, 5479, 59_783];

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, and is {text:?}")))
}

/// `BINLOGD_STORE_SEED` replays one seed; `BINLOGD_STORE_SEEDS` runs so many, from `BINLOGD_STORE_FIRST` (0) on.
#[test]
fn simulated_store() {
    let begun = Instant::now();
    let first = number("BINLOGD_STORE_FIRST").unwrap_or(0);
    let seeds: Vec<u64> = match number("BINLOGD_STORE_SEED") {
        Some(seed) => vec![seed],
        None => FOUND
            .iter()
            .copied()
            .chain(first..first + number("BINLOGD_STORE_SEEDS").unwrap_or(SEEDS))
            .collect(),
    };
    let next = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut mine = Vec::new();
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    match scenario::run(*seed) {
                        Ok(outcome) => mine.push(outcome),
                        Err(what) => {
                            failed.lock().unwrap().push((*seed, what));
                        }
                    }
                }
                outcomes.lock().unwrap().extend(mine);
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort();
    for (seed, what) in failed.iter().take(FAILED_SHOWN) {
        println!("seed {seed}: {what}");
    }
    if let Some((seed, what)) = failed.first() {
        panic!(
            "{} of {} seeds failed; seed {seed}: {what}\nagain: BINLOGD_STORE_SEED={seed} cargo test --locked -p binlogd-archive --test simulation",
            failed.len(),
            seeds.len()
        );
    }
    report(&outcomes.into_inner().unwrap(), begun);
}

fn report(outcomes: &[scenario::Outcome], begun: Instant) {
    let sum = |of: fn(&scenario::Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    println!(
        "{} seeds, {} operations of the store, {:.1} s: {} commits ({} belated), {} merges, {} sealed, {} expired ({} restored), {} snapshots, \
         {} objects and {} commits deleted, {} kills, {} times copies differed, {} times put back; {} search indexes put there, {} read, {} deleted",
        outcomes.len(),
        sum(|outcome| outcome.operations),
        begun.elapsed().as_secs_f64(),
        sum(|outcome| outcome.counts.commits),
        sum(|outcome| outcome.counts.belated),
        sum(|outcome| outcome.counts.merged),
        sum(|outcome| outcome.counts.sealed),
        sum(|outcome| outcome.counts.expired),
        sum(|outcome| outcome.counts.restored),
        sum(|outcome| outcome.counts.snapshots),
        sum(|outcome| outcome.counts.deleted_objects),
        sum(|outcome| outcome.counts.deleted_commits),
        sum(|outcome| outcome.counts.killed),
        sum(|outcome| outcome.counts.differs),
        sum(|outcome| outcome.counts.put_back),
        sum(|outcome| outcome.counts.indexes),
        sum(|outcome| outcome.counts.indexes_read),
        sum(|outcome| outcome.counts.deleted_indexes),
    );
}
