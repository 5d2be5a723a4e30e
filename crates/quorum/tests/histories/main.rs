//! The quorum, simulated: nodes, servers, a network that loses, doubles and delays, crashes, lost and hung disks, promoters that
//! stall anywhere. docs/internals/simulation.md says what must hold.

#![expect(unreachable_pub, reason = "modules of a test")]

mod check;
mod message;
mod node;
mod promoter;
mod server;
mod world;

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use world::{Outcome, World};

/// Steps of one history.
const STEPS: usize = 800;

/// Histories that have found something in this form of the model, or find a rule that is broken on purpose.
const KEPT: [u64; 6] = [2_301, 2_335, 15_020, 1_021_732, 5_004_736, 6_134_874];

fn history(seed: u64, trace: bool) -> Result<Outcome, String> {
    let nodes = if seed % 4 == 3 { 5 } else { 3 };
    World::new(seed, nodes, trace).run(STEPS)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[derive(Debug, Default)]
struct Sum {
    told: usize,
    epochs: u64,
    promoted: usize,
    joined: usize,
    rescued: usize,
    came_back: usize,
    /// How often each reason, and the first seed.
    left_to_a_person: BTreeMap<&'static str, (u64, u64)>,
}

impl Sum {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.told += outcome.told;
        self.epochs += outcome.epochs;
        self.promoted += outcome.promoted;
        self.joined += outcome.joined;
        self.rescued += outcome.rescued;
        self.came_back += outcome.came_back;
        if let Some(why) = outcome.left_to_a_person {
            self.left_to_a_person.entry(why).or_insert((0, seed)).0 += 1;
        }
    }
}

/// `BINLOGD_QUORUM_SEED=7` replays one history and says what happens, `BINLOGD_QUORUM_SEEDS=1000000` tries so many that were never
/// tried, or those from `BINLOGD_QUORUM_FIRST` on.
#[test]
fn what_was_acknowledged_is_in_every_agreed_history() {
    if let Some(seed) = number("BINLOGD_QUORUM_SEED") {
        println!("{:?}", history(seed, true).unwrap_or_else(|broken| panic!("seed {seed}: {broken}")));
        return;
    }
    let wanted = number("BINLOGD_QUORUM_SEEDS");
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64) << 8;
    let first = number("BINLOGD_QUORUM_FIRST").unwrap_or_else(|| if wanted.is_some() { now() } else { 0 });
    let seeds = wanted.unwrap_or(2_000);
    let (began, mut sum) = (Instant::now(), Sum::default());
    let kept = KEPT.into_iter().filter(|_| wanted.is_none());
    for seed in (first..first + seeds).chain(kept) {
        match history(seed, false) {
            Ok(outcome) => sum.add(seed, outcome),
            Err(broken) => {
                panic!("seed {seed}: {broken}. Again, with what happens: make sim-quorum SEED={seed}")
            }
        }
    }
    println!("{seeds} histories from {first} on in {:?}: {sum:#?}", began.elapsed());
    let Sum { told, epochs, joined, rescued, came_back, left_to_a_person, .. } = sum;
    assert!(
        told as u64 > 5 * seeds
            && epochs > 2 * seeds
            && joined as u64 > seeds / 20
            && rescued as u64 > seeds / 100
            && came_back as u64 > seeds / 200
    );
    assert!(left_to_a_person.values().map(|(often, _)| often).sum::<u64>() < seeds / 10);
}
