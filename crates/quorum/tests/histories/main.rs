//! The quorum, simulated: nodes, servers, a network that loses, doubles and delays, crashes, lost and hung disks, promoters that
//! stall anywhere. docs/simulation.md says what must hold.

#![expect(unreachable_pub, reason = "modules of a test")]

mod node;
mod promoter;
mod server;
mod world;

use std::time::{Instant, SystemTime, UNIX_EPOCH};
use world::{Outcome, World};

/// Steps of one history.
const STEPS: usize = 500;

fn history(seed: u64, trace: bool) -> Result<Outcome, String> {
    let nodes = if seed % 4 == 3 { 5 } else { 3 };
    World::new(seed, nodes, trace).run(STEPS)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// `SEED=7` replays one history and says what happens, `SEEDS=1000000` tries so many that were never tried.
#[test]
fn what_was_acknowledged_is_in_every_agreed_history() {
    if let Some(seed) = number("SEED") {
        println!("{:?}", history(seed, true).unwrap_or_else(|broken| panic!("seed {seed}: {broken}")));
        return;
    }
    let first = match number("SEEDS") {
        Some(_) => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64) << 8,
        None => 0,
    };
    let seeds = number("SEEDS").unwrap_or(4_000);
    let (began, mut sum, mut undecided) = (Instant::now(), Outcome::default(), 0_u64);
    for seed in first..first + seeds {
        match history(seed, false) {
            Ok(outcome) => {
                sum.told += outcome.told;
                sum.epochs += outcome.epochs;
                sum.joined += outcome.joined;
                undecided += u64::from(outcome.undecided);
            }
            Err(broken) => panic!("seed {seed}: {broken}. Again, with what happens: SEED={seed}"),
        }
    }
    println!(
        "{seeds} histories from {first} on in {:?}: {} acknowledged transactions, {} epochs that acknowledged, {} nodes that joined \
         without memory, {undecided} histories left to a person",
        began.elapsed(),
        sum.told,
        sum.epochs,
        sum.joined
    );
    assert!(sum.told as u64 > seeds && sum.epochs > seeds && sum.joined as u64 > seeds / 50, "{sum:?}");
}
