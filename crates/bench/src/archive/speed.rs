//! How fast a backlog is archived: binlogd, and `zstd | age | aws s3 cp` of the same files, in turn.

use super::archiving::{Archive, Archived, Place};
use super::args::ArchiveArgs;
use super::pipeline::Pipeline;
use super::scene::Scene;
use anyhow::Context;
use rig::statistics::{Table, median, with_spread};
use std::fmt;

/// Who archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Binlogd(Place),
    /// So many files at a time.
    Pipeline(usize),
}

/// In the order of the table. The first is what all are held against.
const ALL: [Who; 4] =
    [Who::Pipeline(1), Who::Pipeline(2), Who::Binlogd(Place::S3), Who::Binlogd(Place::Folder)];

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Binlogd(place) => write!(f, "binlogd, to {place}"),
            Who::Pipeline(1) => f.write_str("zstd | age | aws s3 cp"),
            Who::Pipeline(files) => write!(f, "the same, {files} files at a time"),
        }
    }
}

/// Measures and prints a table.
///
/// # Errors
/// When a program does not do its work, or what is in the store is not the source's log.
pub(super) fn run(args: &ArchiveArgs, scene: &Scene) -> anyhow::Result<()> {
    let rounds = args.common.in_turn(&ALL, |round, who| {
        let archived =
            measure(args, scene, who, round).with_context(|| format!("{who}, round {}", round + 1))?;
        eprintln!("round {}: {who}: {:.2} s", round + 1, archived.seconds);
        Ok(archived)
    })?;
    let megabytes = scene.backlog.len() as f64 / 1e6;
    println!(
        "## Archiving {megabytes:.0} MB in {} files, zstd level {}, encrypted with age, {} rounds\n",
        scene.backlog.files.len(),
        args.level,
        args.common.rounds
    );
    let mut table = Table::new(&[
        "",
        "MB/s of plain log",
        "against the first",
        "processor s a GB",
        "of the store, s a GB",
        "plain / stored bytes",
        "VmHWM MiB",
    ]);
    for (who, of) in ALL.iter().zip(&rounds) {
        let column = |what: &dyn Fn(&Archived) -> f64, digits| {
            with_spread(&of.iter().map(what).collect::<Vec<_>>(), digits)
        };
        let middle = |what: fn(&Archived) -> f64| median(of.iter().map(what));
        let against = of.iter().zip(&rounds[0]).map(|(one, first)| first.seconds / one.seconds);
        let memory = middle(|archived| archived.highest_mib);
        table.row(vec![
            who.to_string(),
            column(&|archived| megabytes / archived.seconds, 0),
            with_spread(&against.collect::<Vec<_>>(), 2),
            format!("{:.2}", middle(|archived| archived.processor) / (megabytes / 1e3)),
            format!("{:.2}", middle(|archived| archived.store_processor) / (megabytes / 1e3)),
            format!("{:.2}", megabytes * 1e6 / middle(|archived| archived.stored as f64)),
            if memory > 0.0 { format!("{memory:.1}") } else { String::new() },
        ]);
    }
    table.print();
    Ok(())
}

fn measure(args: &ArchiveArgs, scene: &Scene, who: Who, round: usize) -> anyhow::Result<Archived> {
    // Reading everything back takes as long as the rest: once each is enough.
    let is_checked = round == 0;
    match who {
        Who::Binlogd(place) => {
            let archive = Archive::new(scene, place, args.level, format!("binlogd-{round}"));
            let archived = archive.fill(1)?;
            if is_checked {
                archive.check()?;
            }
            Ok(archived)
        }
        Who::Pipeline(files) => {
            let prefix = format!("pipeline-{files}-{round}");
            let pipeline = Pipeline::new(scene, &args.stores_script, args.level, prefix);
            let archived = pipeline.fill(files)?;
            if is_checked {
                pipeline.check()?;
            }
            Ok(archived)
        }
    }
}
