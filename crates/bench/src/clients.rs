//! Group commit: many clients that wait for their acknowledgements at once.

use crate::common::Common;
use crate::load::{Clients, Commits};
use crate::receiver::{Kind, Receiver};
use anyhow::Context;
use rig::bare::Acknowledge;
use rig::statistics::{Table, median, with_spread};
use scripted_source::{Script, ScriptedSource};
use std::sync::mpsc;
use std::time::Duration;

/// Arguments of `binlogd-bench clients`.
#[derive(Debug, Clone, clap::Args)]
pub struct ClientsArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 8, 64])]
    pub clients: Vec<usize>,
    /// Bytes of a transaction.
    #[arg(long, default_value_t = 600)]
    pub bytes: usize,
    /// Seconds of each round.
    #[arg(long, default_value_t = 3)]
    pub seconds: u64,
    /// Longest time in microseconds between an acknowledgement and the client's next commit.
    #[arg(long, default_value_t = 200)]
    pub think_max_us: u64,
}

/// Runs it and prints one table.
///
/// # Errors
/// When a program under test does not do its work.
pub fn run(args: &ClientsArgs) -> anyhow::Result<()> {
    let Common { rounds, .. } = args.common;
    println!(
        "## Clients that commit at once, {} bytes a transaction, {rounds} rounds of {} s\n",
        args.bytes, args.seconds
    );
    let pairs = [(Acknowledge::Synced, 1), (Acknowledge::Written, 0)];
    let mut table = Table::new(&[
        "clients",
        "",
        "commits/s",
        "against bare",
        "p50 µs",
        "p99 µs",
        "commits a group",
        "processor, cores",
    ]);
    for clients in &args.clients {
        for (acknowledge, fsync_mode) in pairs {
            let kinds = [Kind::Bare { acknowledge, sync_each_second: false }, Kind::Binlogd { fsync_mode }];
            let rounds = args.common.in_turn(&kinds, |_, kind| measure(args, kind, *clients))?;
            for (kind, results) in kinds.iter().zip(&rounds) {
                let ratios: Vec<f64> = results
                    .iter()
                    .zip(&rounds[0])
                    .map(|((one, _), (bare, _))| one.per_second / bare.per_second)
                    .collect();
                let middle = |what: &dyn Fn(&(Commits, f64)) -> f64| median(results.iter().map(what));
                table.row(vec![
                    clients.to_string(),
                    kind.to_string(),
                    format!("{:.0}", middle(&|(commits, _)| commits.per_second)),
                    with_spread(&ratios, 2),
                    format!("{:.0}", middle(&|(commits, _)| commits.latency.p50)),
                    format!("{:.0}", middle(&|(commits, _)| commits.latency.p99)),
                    format!(
                        "{:.1}",
                        middle(&|(commits, _)| commits.latency.count as f64 / commits.groups.max(1) as f64)
                    ),
                    format!("{:.2}", middle(&|(_, cores)| *cores)),
                ]);
            }
        }
    }
    table.print();
    Ok(())
}

/// One round: what the clients saw, and the cores that the receiver used.
fn measure(args: &ClientsArgs, kind: Kind, clients: usize) -> anyhow::Result<(Commits, f64)> {
    let (result, results) = mpsc::channel();
    let duration = Duration::from_secs(args.seconds);
    let think_max = Duration::from_micros(args.think_max_us);
    let load =
        Clients { clients, transaction_len: args.bytes, in_flight_max: 2, think_max, duration, result };
    let source = ScriptedSource::start_with(Script::default(), load)?;
    let receiver = Receiver::start(kind, &args.common.binlogd, &args.common.dir, source.port())?;
    let commits = results
        .recv_timeout(duration + Duration::from_secs(30))
        .with_context(|| format!("{kind} did not finish"))?;
    let cores = receiver.usage()?.processor_seconds() / duration.as_secs_f64();
    receiver.finish(|| source.disconnect())?;
    Ok((commits, cores))
}
