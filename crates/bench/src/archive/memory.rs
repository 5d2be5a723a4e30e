//! The memory of a binlogd that archives the copies of several sources at full speed, beside the same one without an archive.

use super::archiving::{Archive, Place};
use super::args::ArchiveArgs;
use super::scene::Scene;
use rig::statistics::{Table, with_spread};
use std::fmt;
use std::time::{Duration, Instant};

/// How long the one without an archive is looked at, once it has said of all sources that it receives.
const IDLE: Duration = Duration::from_secs(5);

/// Whether there is an archive, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Without,
    With(Place),
}

/// In the order of the table. The first is what all are held against.
const ALL: [Which; 3] = [Which::Without, Which::With(Place::S3), Which::With(Place::Folder)];

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Which::Without => f.write_str("binlogd without an archive"),
            Which::With(place) => write!(f, "binlogd, archives to {place}"),
        }
    }
}

/// One run.
struct Run {
    highest_mib: f64,
    /// 0 without an archive.
    megabytes_a_second: f64,
}

/// Measures and prints a table.
///
/// # Errors
/// When a program does not do its work.
pub(super) fn run(args: &ArchiveArgs, scene: &Scene) -> anyhow::Result<()> {
    let sources = args.sources();
    let rounds = args.common.in_turn(&ALL, |round, which| {
        let run = measure(args, scene, which, round)?;
        eprintln!("round {}: {which}, {sources} sources: {:.1} MiB", round + 1, run.highest_mib);
        Ok(run)
    })?;
    println!(
        "## Memory of one binlogd with {sources} sources, of each {:.0} MB to be archived, {} rounds\n",
        scene.backlog.len() as f64 / 1e6,
        args.common.rounds
    );
    let mut table = Table::new(&["", "VmHWM MiB", "more than without", "MB/s of plain log, all together"]);
    for (which, of) in ALL.iter().zip(&rounds) {
        let more = of.iter().zip(&rounds[0]).map(|(one, without)| one.highest_mib - without.highest_mib);
        let speed = of.iter().map(|run| run.megabytes_a_second).collect::<Vec<_>>();
        table.row(vec![
            which.to_string(),
            with_spread(&of.iter().map(|run| run.highest_mib).collect::<Vec<_>>(), 1),
            with_spread(&more.collect::<Vec<_>>(), 1),
            if *which == Which::Without { String::new() } else { with_spread(&speed, 0) },
        ]);
    }
    table.print();
    Ok(())
}

fn measure(args: &ArchiveArgs, scene: &Scene, which: Which, round: usize) -> anyhow::Result<Run> {
    let sources = args.sources();
    if let Which::With(place) = which {
        let archive = Archive::new(scene, place, args.level, format!("memory-{round}"));
        let archived = archive.fill(sources)?;
        let megabytes = scene.backlog.len() as f64 / 1e6 * sources as f64;
        return Ok(Run {
            highest_mib: archived.highest_mib,
            megabytes_a_second: megabytes / archived.seconds,
        });
    }
    let daemon = scene.start("", sources, &[])?;
    daemon.wait("all sources are received from", |status| {
        scene.is_all(status, sources, |source| source["state"] == "receiving")
    })?;
    let began = Instant::now();
    while began.elapsed() < IDLE {
        // Whoever looks at the status costs memory, too, and looks at the others as well.
        daemon.wait("an answer", |_| true)?;
        std::thread::sleep(Duration::from_millis(5));
    }
    let highest_mib = daemon.usage()?.memory.highest as f64 / 1024.0;
    daemon.end()?;
    Ok(Run { highest_mib, megabytes_a_second: 0.0 })
}
