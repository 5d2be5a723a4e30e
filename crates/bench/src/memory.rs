//! Resident memory in a steady stream.

use crate::common::Common;
use crate::load::Clients;
use crate::receiver::{Kind, Receiver};
use anyhow::Context;
use rig::statistics::{Table, median};
use rig::usage::Memory;
use scripted_source::{Script, ScriptedSource};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Arguments of `binlogd-bench memory`.
#[derive(Debug, Clone, clap::Args)]
pub struct MemoryArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// Seconds of each round.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Clients that commit.
    #[arg(long, default_value_t = 8)]
    pub clients: usize,
    /// Bytes of a transaction.
    #[arg(long, default_value_t = 600)]
    pub bytes: usize,
}

/// Runs it and prints one table.
///
/// # Errors
/// When binlogd does not do its work.
pub fn run(args: &MemoryArgs) -> anyhow::Result<()> {
    println!(
        "## Memory of binlogd in a steady stream, {} clients, {} bytes a transaction, {} rounds of {} s\n",
        args.clients, args.bytes, args.common.rounds, args.seconds
    );
    let rounds = (0..args.common.rounds).map(|_| measure(args)).collect::<anyhow::Result<Vec<_>>>()?;
    let mib = |what: fn(&Memory) -> u64| {
        format!("{:.1}", median(rounds.iter().map(|(memory, _)| what(memory) as f64 / 1024.0)))
    };
    let mut table = Table::new(&["VmRSS MiB", "of it RssAnon MiB", "VmHWM MiB", "transactions/s"]);
    let per_second = median(rounds.iter().map(|(_, per_second)| *per_second));
    table.row(vec![
        mib(|memory| memory.resident),
        mib(|memory| memory.anonymous),
        mib(|memory| memory.highest),
        format!("{per_second:.0}"),
    ]);
    table.print();
    Ok(())
}

/// The last look at the memory, taken while the stream ran, and transactions a second.
fn measure(args: &MemoryArgs) -> anyhow::Result<(Memory, f64)> {
    let (result, results) = mpsc::channel();
    let duration = Duration::from_secs(args.seconds);
    let load = Clients {
        clients: args.clients,
        transaction_len: args.bytes,
        in_flight_max: 2,
        think_max: Duration::from_micros(200),
        duration,
        result,
    };
    let source = ScriptedSource::start_with(Script::default(), load)?;
    let kind = Kind::Binlogd { fsync_mode: 1 };
    let receiver = Receiver::start(kind, &args.common.binlogd, &args.common.dir, source.port())?;
    let mut memory = Memory::default();
    for _ in 0..(args.seconds + 30) * 10 {
        match results.recv_timeout(Duration::from_millis(100)) {
            Ok(commits) => {
                receiver.finish(|| source.disconnect())?;
                return Ok((memory, commits.per_second));
            }
            Err(RecvTimeoutError::Timeout) => memory = receiver.usage()?.memory,
            Err(error) => return Err(error).context("binlogd ended the stream"),
        }
    }
    anyhow::bail!("binlogd did not finish")
}
