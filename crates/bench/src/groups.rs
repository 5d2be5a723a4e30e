//! Many small groups in flight: whether a durable write is made that another has made needless.

use crate::common::Common;
use crate::load::{Flood, Flooded};
use crate::receiver::{Kind, Receiver, Report};
use anyhow::Context;
use rig::bare::Acknowledge;
use rig::statistics::{Table, median, with_spread};
use scripted_source::{Script, ScriptedSource};
use std::sync::mpsc;
use std::time::Duration;

/// What is compared.
const KINDS: [Kind; 2] = [Kind::Bare { acknowledge: Acknowledge::Synced }, Kind::Binlogd { fsync_mode: 1 }];

/// Arguments of `binlogd-bench groups`.
#[derive(Debug, Clone, clap::Args)]
pub struct GroupsArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// Most groups that are sent and not acknowledged.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32])]
    pub in_flight: Vec<usize>,
    /// Bytes of a group. Each is one transaction.
    #[arg(long, default_value_t = 600)]
    pub bytes: usize,
    /// Seconds of each round.
    #[arg(long, default_value_t = 2)]
    pub seconds: u64,
}

/// Runs it and prints one table.
///
/// # Errors
/// When a program under test does not do its work.
pub fn run(args: &GroupsArgs) -> anyhow::Result<()> {
    println!(
        "## Groups in flight, each of {} bytes and with a request for an acknowledgement, {} rounds of {} s\n",
        args.bytes, args.common.rounds, args.seconds
    );
    let mut table = Table::new(&[
        "in flight",
        "",
        "groups/s",
        "against bare",
        "syncs a group",
        "syncs an ack",
        "groups an ack",
        "p50 µs",
        "p99 µs",
    ]);
    for in_flight in &args.in_flight {
        let rounds = args.common.in_turn(&KINDS, |_, kind| measure(args, kind, *in_flight))?;
        for (kind, results) in KINDS.iter().zip(&rounds) {
            let per_second = |(seen, _): &(Flooded, Report)| seen.groups as f64 / seen.seconds;
            let ratios = results.iter().zip(&rounds[0]).map(|(one, bare)| per_second(one) / per_second(bare));
            let middle = |what: &dyn Fn(&(Flooded, Report)) -> f64| median(results.iter().map(what));
            table.row(vec![
                in_flight.to_string(),
                kind.to_string(),
                format!("{:.0}", middle(&per_second)),
                with_spread(&ratios.collect::<Vec<_>>(), 2),
                format!("{:.3}", middle(&|(seen, report)| report.syncs as f64 / seen.groups as f64)),
                format!("{:.3}", middle(&|(_, report)| report.syncs as f64 / report.acknowledgements as f64)),
                format!("{:.2}", middle(&|(seen, _)| seen.groups as f64 / seen.acknowledgements as f64)),
                format!("{:.0}", middle(&|(seen, _)| seen.latency.p50)),
                format!("{:.0}", middle(&|(seen, _)| seen.latency.p99)),
            ]);
        }
    }
    table.print();
    Ok(())
}

/// One round: what the source saw, and the receiver's own account.
fn measure(args: &GroupsArgs, kind: Kind, in_flight_max: usize) -> anyhow::Result<(Flooded, Report)> {
    let (result, results) = mpsc::channel();
    let duration = Duration::from_secs(args.seconds);
    let load = Flood { transaction_len: args.bytes, in_flight_max, duration, result };
    let source = ScriptedSource::start_with(Script::default(), load)?;
    let receiver = Receiver::start(kind, &args.common.binlogd, &args.common.dir, source.port())?;
    let seen = results
        .recv_timeout(duration + Duration::from_secs(30))
        .with_context(|| format!("{kind} did not finish"))?;
    Ok((seen, receiver.finish(|| source.disconnect())?))
}
