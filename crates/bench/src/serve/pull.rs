//! A backlog, sent by the source and by binlogd: bytes a second and processor time, to one reader and to many at once.

use super::args::ServeArgs;
use super::null_reader::NullReaders;
use super::scene::{SENDERS, Scene, Sender};
use anyhow::bail;
use rig::statistics::{Table, median, with_spread};
use rig::usage::Usage;
use std::time::Instant;

/// One pull by so many readers.
struct Pull {
    seconds: f64,
    /// Seconds that the sender used the processor.
    processor: f64,
    /// MiB that the sender's memory was larger at its highest than before.
    memory_mib: f64,
}

/// Measures and prints one table.
///
/// # Errors
/// When a reader does not get everything.
pub(super) fn run(args: &ServeArgs, scene: &Scene, what: &str) -> anyhow::Result<()> {
    let mib = scene.backlog.len() as f64 / f64::from(1 << 20);
    println!("## Sending a backlog of {mib:.0} MiB, {what}, {} rounds\n", args.common.rounds);
    let mut table = Table::new(&[
        "readers",
        "",
        "MiB/s, all together",
        "against the source",
        "processor s a GiB sent",
        "against the source",
        "MiB more a reader",
    ]);
    for readers in [1, args.readers] {
        let rounds = args.common.in_turn(&SENDERS, |round, sender| {
            let pull = pull(scene, sender, readers)?;
            eprintln!("round {}: {sender}, {readers} readers: {:.2} s", round + 1, pull.seconds);
            Ok(pull)
        })?;
        let total = mib * readers as f64;
        for (sender, pulls) in SENDERS.iter().zip(&rounds) {
            let speeds: Vec<f64> = pulls.iter().map(|pull| total / pull.seconds).collect();
            let against = |of: fn(&Pull) -> f64, swapped: bool| {
                let ratios = pulls.iter().zip(&rounds[0]).map(|(one, source)| of(one) / of(source));
                let ratios = ratios.map(|ratio| if swapped { 1.0 / ratio } else { ratio });
                with_spread(&ratios.collect::<Vec<_>>(), 2)
            };
            table.row(vec![
                readers.to_string(),
                sender.to_string(),
                with_spread(&speeds, 0),
                against(|pull| pull.seconds, true),
                format!("{:.2}", median(pulls.iter().map(|pull| pull.processor)) / (total / 1024.0)),
                against(|pull| pull.processor, false),
                format!("{:.2}", median(pulls.iter().map(|pull| pull.memory_mib)) / readers as f64),
            ]);
        }
    }
    table.print();
    Ok(())
}

fn pull(scene: &Scene, sender: Sender, readers: usize) -> anyhow::Result<Pull> {
    let (port, password, pid) = scene.sender(sender);
    let before = Usage::of(pid)?;
    let began = Instant::now();
    let pulling = NullReaders::start((port, password), (&scene.backlog.files[0].name, 4), readers, true)?;
    let bytes = pulling.finish()?;
    let seconds = began.elapsed().as_secs_f64();
    let after = Usage::of(pid)?;
    // Packets with a byte of status each, and no magic at the beginning of a file.
    let least = (scene.backlog.len() - 4 * scene.backlog.files.len() as u64) * readers as u64;
    if bytes < least {
        bail!("{readers} readers got {bytes} bytes of at least {least}: {sender} has ended a dump early");
    }
    let memory = after.memory.highest.saturating_sub(before.memory.resident);
    Ok(Pull {
        seconds,
        processor: after.since(&before).processor_seconds,
        memory_mib: memory as f64 / 1024.0,
    })
}
