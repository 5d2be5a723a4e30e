//! Readers that have everything and wait: memory and processor time.

use super::args::ServeArgs;
use super::null_reader::NullReaders;
use super::serving::{PASSWORD, Serving};
use anyhow::Context;
use rig::statistics::{Table, with_spread};
use scripted_source::{Script, ScriptedSource};
use std::time::Duration;

/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(5);

/// What so many readers use.
struct Round {
    /// MiB that binlogd's memory is larger by with them.
    memory_mib: f64,
    /// Seconds of processor in a second.
    cores: f64,
}

/// Measures and prints one table.
///
/// # Errors
/// When a reader is refused.
pub(super) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    println!(
        "## Readers that have everything, watched for {WATCHED:?}, {} rounds; heartbeats each 30 s\n",
        args.common.rounds
    );
    let counts = [0, args.idle];
    let rounds = args.common.in_turn(&counts, |_, readers| measure(args, readers))?;
    let mut table = Table::new(&["readers", "% of a core", "KiB more a reader"]);
    for (readers, rounds) in counts.iter().zip(&rounds) {
        let percent: Vec<f64> = rounds.iter().map(|round| round.cores * 100.0).collect();
        let kib: Vec<f64> =
            rounds.iter().map(|round| round.memory_mib * 1024.0 / (*readers).max(1) as f64).collect();
        let kib = if *readers == 0 { String::new() } else { with_spread(&kib, 0) };
        table.row(vec![readers.to_string(), with_spread(&percent, 2), kib]);
    }
    table.print();
    Ok(())
}

fn measure(args: &ServeArgs, readers: usize) -> anyhow::Result<Round> {
    let mut script = Script::default();
    script.log.transaction(600);
    let source = ScriptedSource::start(script)?;
    let binlogd = Serving::start(&args.common.binlogd, &args.common.dir, source.port())?;
    let status = binlogd.wait("the first transaction is durable", |status| {
        status["sources"][0]["counters"]["transactions"].as_u64().is_some_and(|count| count >= 1)
            && status["sources"][0]["positions"]["durable"] == status["sources"][0]["positions"]["written"]
    })?;
    let durable = &status["sources"][0]["positions"]["durable"];
    let file = durable["file"].as_str().context("no durable file")?.to_owned();
    let position = durable["position"].as_u64().context("no durable position")?;
    let alone = binlogd.usage()?;
    let waiting = match readers {
        0 => None,
        _ => Some(NullReaders::start((binlogd.port(), PASSWORD), (&file, position), readers, false)?),
    };
    binlogd.wait("the readers have everything", |status| {
        let connected = status["serve"]["readers"].as_array();
        let caught_up = connected.map(|all| all.iter().filter(|reader| reader["caught_up"] == true).count());
        caught_up == Some(readers)
    })?;
    let before = binlogd.usage()?;
    std::thread::sleep(WATCHED);
    let after = binlogd.usage()?;
    if let Some(waiting) = waiting {
        waiting.finish()?;
    }
    Ok(Round {
        memory_mib: after.resident_mib() - alone.resident_mib(),
        cores: after.since(&before).processor_seconds / WATCHED.as_secs_f64(),
    })
}
