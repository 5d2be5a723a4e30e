//! Bulk receive: bytes a second of a backlog, beside a copy from socket to file.

use crate::bulk_load::{Bulk, Image};
use crate::common::Common;
use crate::receiver::{Kind, Receiver};
use anyhow::{Context, bail};
use rig::bare::Acknowledge;
use rig::statistics::{Table, median, with_spread};
use scripted_source::{LogOptions, Script, ScriptedSource, SemiSync, SourceLog};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Arguments of `binlogd-bench bulk`.
#[derive(Debug, Clone, clap::Args)]
pub struct BulkArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// MiB to send in a round.
    #[arg(long, default_value_t = 1024)]
    pub mib: usize,
    /// MiB of a log file.
    #[arg(long, default_value_t = 256)]
    pub file_mib: usize,
    /// Bytes of a rows event.
    #[arg(long, value_delimiter = ',', default_values_t = [8192, 200])]
    pub event_bytes: Vec<usize>,
}

/// One program's result in one round.
struct Round {
    mib_per_second: f64,
    processor_seconds: f64,
    highest_mib: f64,
}

/// Longest time for one round.
const ROUND_TIME_MAX: Duration = Duration::from_secs(300);

/// Runs it and prints a table for each event size.
///
/// # Errors
/// When a program under test does not do its work.
pub fn run(args: &BulkArgs) -> anyhow::Result<()> {
    let never = Acknowledge::Never;
    let kinds = [
        Kind::Bare { acknowledge: never, sync_each_second: false },
        Kind::Bare { acknowledge: never, sync_each_second: true },
        Kind::Binlogd { fsync_mode: 1 },
    ];
    for event_bytes in &args.event_bytes {
        let rounds = args.common.in_turn(&kinds, |_, kind| measure(args, kind, *event_bytes))?;
        println!(
            "## Bulk, {} MiB a round, rows events of {event_bytes} bytes, {} rounds\n",
            args.mib, args.common.rounds
        );
        print(args, &kinds, &rounds);
    }
    Ok(())
}

fn print(args: &BulkArgs, kinds: &[Kind], rounds: &[Vec<Round>]) {
    let mut table = Table::new(&[
        "",
        "MiB/s",
        "against the copy",
        "against the synced copy",
        "processor s a GiB",
        "VmHWM MiB",
    ]);
    for (kind, results) in kinds.iter().zip(rounds) {
        let against = |copy: &[Round]| {
            let ratios: Vec<f64> = results
                .iter()
                .zip(copy)
                .map(|(one, copy)| one.mib_per_second / copy.mib_per_second)
                .collect();
            with_spread(&ratios, 2)
        };
        let gib = args.mib as f64 / 1024.0;
        table.row(vec![
            kind.to_string(),
            with_spread(&results.iter().map(|round| round.mib_per_second).collect::<Vec<_>>(), 0),
            against(&rounds[0]),
            against(&rounds[1]),
            format!("{:.2}", median(results.iter().map(|round| round.processor_seconds)) / gib),
            format!("{:.1}", median(results.iter().map(|round| round.highest_mib))),
        ]);
    }
    table.print();
}

fn measure(args: &BulkArgs, kind: Kind, event_bytes: usize) -> anyhow::Result<Round> {
    let options = LogOptions { gtids: false, ..LogOptions::default() };
    let image = Image::new(options.clone(), args.file_mib << 20, event_bytes);
    let files = (args.mib << 20).div_ceil(image.len());
    let (log_len, image_len) = (SourceLog::new(options.clone()).end().position as usize, image.len());
    let ((ready, is_ready), (start, on_start), (began, has_begun)) =
        (mpsc::channel(), mpsc::channel(), mpsc::channel());
    let load = Bulk { image, files, ready, start: on_start, began };
    let total = files * image_len;
    let wire_len = load.wire_len();
    let log = SourceLog::new(options.clone());
    let script = Script { semi_sync: SemiSync::Absent, ..Script::new(log) };
    let source = ScriptedSource::start_with(script, load)?;
    let receiver = Receiver::start(kind, &args.common.binlogd, &args.common.dir, source.port())?;
    is_ready.recv_timeout(ROUND_TIME_MAX).with_context(|| format!("{kind} did not ask for a dump"))?;
    // What came before the load must be on disk, so that only the load is timed.
    let first = receiver.wait_for_file(&format!("{}.000001", options.base_name))?;
    wait_for_len(&first, log_len.min(100), kind)?;
    let len_before = std::fs::metadata(&first)?.len() as usize;
    let before = receiver.usage()?;
    start.send(())?;
    let began = has_begun.recv_timeout(ROUND_TIME_MAX)?;
    let (last, len) = match kind {
        Kind::Binlogd { .. } | Kind::Encrypted { .. } | Kind::Archiving { .. } | Kind::Strategy(_) => {
            (receiver.wait_for_file(&Bulk::last_file(&options, files))?, image_len)
        }
        Kind::Bare { .. } => (first, len_before + wire_len),
    };
    wait_for_len(&last, len, kind)?;
    let seconds = began.elapsed().as_secs_f64();
    let after = receiver.usage()?;
    let processor_seconds = after.since(&before).processor_seconds;
    let highest_mib = after.memory.highest as f64 / 1024.0;
    drop(source);
    Ok(Round { mib_per_second: total as f64 / f64::from(1 << 20) / seconds, processor_seconds, highest_mib })
}

/// Waits until a file is that long. Looking at a length costs the receiver nothing, unlike asking it.
fn wait_for_len(path: &std::path::Path, len: usize, kind: Kind) -> anyhow::Result<()> {
    let deadline = Instant::now() + ROUND_TIME_MAX;
    loop {
        let reached = std::fs::metadata(path)?.len() as usize;
        if reached >= len {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!(
                "{kind} has written {reached} of {len} bytes of {} after {ROUND_TIME_MAX:?}",
                path.display()
            );
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}
