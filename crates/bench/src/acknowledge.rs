//! The acknowledgement path: from the arrival of the packet that wants it to its leaving.

use crate::bare::Acknowledge;
use crate::cli::Common;
use crate::floor;
use crate::load::PingPong;
use crate::receiver::{Kind, Receiver};
use crate::statistics::{Percentiles, Table, median, with_spread};
use anyhow::Context;
use scripted_source::{Script, ScriptedSource};
use std::sync::mpsc;
use std::time::Duration;

/// Defaults of the arguments.
const BYTES: [usize; 2] = [600, 4096];
const GROUPS: usize = 3000;
const FSYNC_MODES: [u8; 2] = [1, 0];

/// Arguments of `binlogd-bench ack`.
#[derive(Debug, Clone, clap::Args)]
pub struct AckArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// Bytes of a group. Each is one transaction.
    #[arg(long, value_delimiter = ',', default_values_t = BYTES)]
    pub bytes: Vec<usize>,
    /// Groups in a round.
    #[arg(long, default_value_t = GROUPS)]
    pub groups: usize,
    /// Only these values of `fsync_mode`.
    #[arg(long, value_delimiter = ',', default_values_t = FSYNC_MODES)]
    pub fsync_modes: Vec<u8>,
}

impl AckArgs {
    /// The defaults.
    pub fn with(common: Common) -> AckArgs {
        AckArgs { common, bytes: BYTES.to_vec(), groups: GROUPS, fsync_modes: FSYNC_MODES.to_vec() }
    }
}

/// Most writes of the floor in a round.
const FLOOR_COUNT_MAX: usize = 3000;

/// Not counted at the beginning of each round.
const WARM_UP: usize = 200;

/// One program's result in one round.
struct Round {
    /// Arrival to leaving, by the receiver's own clock.
    inside: Percentiles,
    /// Write to read, by the source's clock.
    outside: Percentiles,
    /// Processor time a group, in microseconds.
    processor: f64,
}

/// Runs it and prints a table for each size.
///
/// # Errors
/// When a program under test does not do its work.
pub fn run(args: &AckArgs) -> anyhow::Result<()> {
    println!("## Acknowledgement, {} rounds of {} groups, one at a time\n", args.common.rounds, args.groups);
    let kinds: Vec<Kind> = args.fsync_modes.iter().flat_map(|mode| pair(*mode)).collect();
    for bytes in &args.bytes {
        let mut floors = Vec::new();
        let mut rounds: Vec<Vec<Round>> = kinds.iter().map(|_| Vec::new()).collect();
        for number in 0..args.common.rounds {
            let groups = args.groups.min(FLOOR_COUNT_MAX);
            floors.push(floor::write_and_sync(&args.common.dir, *bytes, groups)?.percentiles());
            for index in 0..kinds.len() {
                // Another order in each round, so that no program always follows the same one.
                let index = (index + number) % kinds.len();
                rounds[index].push(measure(args, kinds[index], *bytes)?);
            }
        }
        print(*bytes, &kinds, &floors, &rounds);
    }
    Ok(())
}

/// binlogd, and the yardstick for it.
fn pair(fsync_mode: u8) -> [Kind; 2] {
    let acknowledge = if fsync_mode == 0 { Acknowledge::Written } else { Acknowledge::Synced };
    [Kind::Bare { acknowledge, sync_each_second: false }, Kind::Binlogd { fsync_mode }]
}

fn measure(args: &AckArgs, kind: Kind, bytes: usize) -> anyhow::Result<Round> {
    let (result, results) = mpsc::channel();
    let load =
        PingPong { transactions: 1, transaction_len: bytes, warm_up: WARM_UP, groups: args.groups, result };
    let source = ScriptedSource::start(Script { load: Some(Box::new(load)), ..Script::default() })?;
    let receiver = Receiver::start(kind, &args.common.binlogd, &args.common.dir, source.port())?;
    let outside =
        results.recv_timeout(Duration::from_secs(120)).with_context(|| format!("{kind} did not finish"))?;
    let processor = receiver.processor_seconds()? * 1e6 / (args.groups + WARM_UP) as f64;
    let inside = receiver.finish(|| source.disconnect())?;
    Ok(Round { inside, outside, processor })
}

fn print(bytes: usize, kinds: &[Kind], floors: &[Percentiles], rounds: &[Vec<Round>]) {
    println!("{bytes} bytes a group, times in µs: medians of the rounds, and their range\n");
    let mut table = Table::new(&[
        "",
        "p50",
        "p95",
        "p99",
        "p50 / floor",
        "p99 / floor",
        "p50 at the source",
        "µs of processor a group",
    ]);
    let column = |of: &[Percentiles], what: fn(&Percentiles) -> f64| {
        with_spread(&of.iter().map(what).collect::<Vec<_>>(), 0)
    };
    table.row(vec![
        "floor: write, fdatasync".to_owned(),
        column(floors, |p| p.p50),
        column(floors, |p| p.p95),
        column(floors, |p| p.p99),
        "1".to_owned(),
        "1".to_owned(),
        String::new(),
        String::new(),
    ]);
    for (kind, rounds) in kinds.iter().zip(rounds) {
        let inside: Vec<Percentiles> = rounds.iter().map(|round| round.inside).collect();
        let outside: Vec<Percentiles> = rounds.iter().map(|round| round.outside).collect();
        let ratio = |what: fn(&Percentiles) -> f64| {
            let ratios: Vec<f64> =
                inside.iter().zip(floors).map(|(inside, floor)| what(inside) / what(floor)).collect();
            with_spread(&ratios, 2)
        };
        table.row(vec![
            kind.to_string(),
            column(&inside, |p| p.p50),
            column(&inside, |p| p.p95),
            column(&inside, |p| p.p99),
            ratio(|p| p.p50),
            ratio(|p| p.p99),
            column(&outside, |p| p.p50),
            format!("{:.0}", median(rounds.iter().map(|round| round.processor))),
        ]);
    }
    table.print();
}
