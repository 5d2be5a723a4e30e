//! `binlogd-lab report`, `advise`, `compare`, `import`, `export`, `check` and `restore`.

use super::run::JournalArgs;
use crate::advice;
use crate::machine::changes;
use crate::report;
use crate::results::run::Run;
use crate::store::{Store, Summary};
use crate::study::Study;
use crate::{check, server};
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of `binlogd-lab report`.
#[derive(Debug, clap::Args)]
pub(super) struct ReportArgs {
    /// Runs by number; default: the newest finished run of each study that was measured here, not imported, and where it
    /// has a network, of each other delay
    #[arg(value_name = "RUN")]
    runs: Vec<i64>,
    /// Report the runs of a folder that `report` has written into, or of such files packed by tar, instead of the file of
    /// results: all of them, or those of these numbers
    #[arg(long, value_name = "DIR|FILE")]
    from: Option<PathBuf>,
    /// Folder to write into, made when it is missing
    #[arg(long, value_name = "DIR", default_value = "target/lab-report")]
    out: PathBuf,
}

/// Arguments of `binlogd-lab advise`.
#[derive(Debug, clap::Args)]
pub(super) struct AdviseArgs {
    /// Runs by number; default: the newest finished run of each study that was measured here, not imported
    #[arg(value_name = "RUN")]
    runs: Vec<i64>,
    /// File to write, Markdown; default: standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Arguments of `binlogd-lab compare`.
#[derive(Debug, clap::Args)]
pub(super) struct CompareArgs {
    /// The run to compare with
    #[arg(value_name = "RUN")]
    first: i64,
    /// The run that is compared
    #[arg(value_name = "RUN")]
    second: i64,
}

/// Arguments of `binlogd-lab import`.
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// Folder that `report` has written into, or such files packed by tar: run-*.csv are read. Without run-*-series.csv the
    /// runs have no numbers of each second
    #[arg(value_name = "DIR|FILE")]
    from: PathBuf,
}

/// Arguments of `binlogd-lab export`.
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// The run
    run: i64,
    /// As CSV, one line a cell
    #[arg(long, required_unless_present = "jsonl")]
    csv: bool,
    /// The numbers of each second instead, one line a number
    #[arg(long, requires = "csv")]
    series: bool,
    /// As JSON, one line a point: medians over the rounds, and ratios within a round
    #[arg(long, conflicts_with = "csv")]
    jsonl: bool,
    /// File to write; default: standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Arguments of `binlogd-lab page`.
#[derive(Debug, clap::Args)]
pub(super) struct PageArgs {
    /// Files that `export --jsonl` has written; those that end in .gz are unpacked
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// File to write; default: standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Arguments of `binlogd-lab check`.
#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// Runs by number; default: those that `report` takes
    #[arg(value_name = "RUN")]
    runs: Vec<i64>,
}

/// Writes the report, and prints where its page is.
pub(super) fn write(studies: &[&dyn Study], args: &ReportArgs, db: &Path) -> anyhow::Result<()> {
    let runs = match &args.from {
        Some(from) => chosen(report::read_back::runs(from)?, &args.runs)?,
        None => runs(studies, &args.runs, &Store::open(db)?)?,
    };
    let files = report::write(&runs, &args.out)?;
    for file in files {
        println!("{}", file.display());
    }
    Ok(())
}

/// Of these runs those of these numbers, or all.
fn chosen(mut runs: Vec<Run>, ids: &[i64]) -> anyhow::Result<Vec<Run>> {
    if let Some(missing) = ids.iter().find(|id| !runs.iter().any(|run| run.id == **id)) {
        bail!(
            "there is no run {missing}, only 1 to {}",
            runs.iter().map(|run| run.id).max().unwrap_or_default()
        );
    }
    runs.retain(|run| ids.is_empty() || ids.contains(&run.id));
    Ok(runs)
}

/// Prints or writes one page of advice.
pub(super) fn advise(studies: &[&dyn Study], args: &AdviseArgs, db: &Path) -> anyhow::Result<()> {
    let runs = runs(studies, &args.runs, &Store::open(db)?)?;
    give(&advice::page(&runs)?, args.out.as_deref())
}

/// Prints how two runs differ.
pub(super) fn compare(args: &CompareArgs, db: &Path) -> anyhow::Result<()> {
    let store = Store::open(db)?;
    print!("{}", report::compare(&store.run(args.first)?, &store.run(args.second)?)?);
    Ok(())
}

/// Takes in the runs of a report that was written elsewhere, and prints their numbers here.
pub(super) fn import(args: &ImportArgs, db: &Path) -> anyhow::Result<()> {
    let runs = report::read_back::runs(&args.from)?;
    let mut store = Store::open_or_create(db)?;
    for run in runs {
        if let Some(id) = store.number_of(&run)? {
            println!("run {id}: {}, was here already (run {} there)", run.study, run.id);
            continue;
        }
        let id = store.keep_run(&run)?;
        println!("run {id}: {}, {} cells (run {} there)", run.study, run.cells.len(), run.id);
    }
    Ok(())
}

/// Prints or writes the cells of a run.
pub(super) fn export(studies: &[&dyn Study], args: &ExportArgs, db: &Path) -> anyhow::Result<()> {
    let run = Store::open(db)?.run(args.run)?;
    let text = match (args.jsonl, args.series) {
        (true, _) => report::lines::text(&report::lines::of(study_of(studies, &run)?, &run))?,
        (false, false) => report::csv::of(&run),
        (false, true) => {
            report::csv::series(&run).with_context(|| format!("run {} has no series", run.id))?
        }
    };
    give(&text, args.out.as_deref())
}

/// Makes a page of exported lines.
pub(super) fn page(args: &PageArgs) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for file in &args.files {
        let text = text_of(file).with_context(|| format!("cannot read {}", file.display()))?;
        let parsed = report::lines::parse(&text);
        lines
            .extend(parsed.with_context(|| format!("{} was not written by export --jsonl", file.display()))?);
    }
    give(&report::lines::page(&lines), args.out.as_deref())
}

/// The text of a file, which gzip may have packed.
fn text_of(file: &Path) -> anyhow::Result<String> {
    if file.extension().is_none_or(|extension| extension != "gz") {
        return Ok(std::fs::read_to_string(file)?);
    }
    let done = Command::new("gzip").arg("-dc").arg(file).output().context("cannot start gzip")?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr).trim());
    Ok(String::from_utf8(done.stdout)?)
}

fn give(text: &str, out: Option<&Path>) -> anyhow::Result<()> {
    match out {
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display())),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}

fn study_of<'a>(studies: &[&'a dyn Study], run: &Run) -> anyhow::Result<&'a dyn Study> {
    let study = studies.iter().find(|study| study.name() == run.study);
    study.copied().with_context(|| format!("run {} is of an unknown study, {}", run.id, run.study))
}

/// Prints what is wrong with the cells of runs; that is an error then.
pub(super) fn check(studies: &[&dyn Study], args: &CheckArgs, db: &Path) -> anyhow::Result<()> {
    let runs = runs(studies, &args.runs, &Store::open(db)?)?;
    let mut problems = 0;
    for run in &runs {
        let findings = check::look(study_of(studies, run)?, run)?;
        println!(
            "run {} of {}: {} valid cells, {} charts, {} tables, {} skipped, {} problems",
            run.id,
            run.study,
            findings.cells,
            findings.charts,
            findings.tables,
            run.skipped.len(),
            findings.problems.len()
        );
        run.skipped.iter().for_each(|skipped| println!("  skipped: {skipped}"));
        findings.problems.iter().for_each(|problem| println!("  {problem}"));
        problems += findings.problems.len();
    }
    if problems > 0 {
        bail!("not sound: {problems} problems");
    }
    Ok(())
}

/// Sets back what runs that were killed have left changed on the user's servers and on this machine.
pub(super) fn restore(args: &JournalArgs) -> anyhow::Result<()> {
    let dir = args.dir()?;
    // Both are tried, whether the other works or not.
    let restored = [changes::restore(&dir), server::restore(&dir)];
    restored.iter().flatten().flatten().for_each(|line| println!("{line}"));
    let done = restored.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    if done.iter().all(Vec::is_empty) {
        println!("nothing to restore: {} holds no journal of changes", dir.display());
    }
    Ok(())
}

/// The runs of these numbers, or the newest finished run of each study that was measured here. Where that one has a network,
/// the newest of each other delay comes before it, if it was asked for the same otherwise.
fn runs(studies: &[&dyn Study], ids: &[i64], store: &Store) -> anyhow::Result<Vec<Run>> {
    if !ids.is_empty() {
        return ids.iter().map(|id| store.run(*id)).collect();
    }
    let summaries = store.summaries()?;
    let ids: Vec<i64> = studies.iter().flat_map(|study| newest(study.name(), &summaries)).collect();
    if ids.is_empty() {
        bail!(
            "{} holds no finished run that was measured here; one that was interrupted or imported can be named by its \
             number (`binlogd-lab runs`)",
            store.path().display()
        );
    }
    ids.iter().map(|id| store.run(*id)).collect()
}

fn newest(study: &str, summaries: &[Summary]) -> Vec<i64> {
    let is_own = |run: &&Summary| run.study == study && run.finished.is_some() && !run.imported;
    let mut finished = summaries.iter().rev().filter(is_own);
    let Some(first) = finished.next() else { return Vec::new() };
    let mut chosen = vec![first];
    if first.order.apart.network.is_some() {
        let is_like_first = |run: &&Summary| {
            let mut order = run.order.clone();
            order.apart.network = first.order.apart.network;
            order == first.order
        };
        for run in finished.filter(is_like_first) {
            let network = &run.order.apart.network;
            if network.is_some() && chosen.iter().all(|other| other.order.apart.network != *network) {
                chosen.push(run);
            }
        }
    }
    chosen.sort_by_key(|run| (run.order.apart.network.map(|network| network.delay), run.id));
    chosen.into_iter().map(|run| run.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;
    use crate::model::{Order, Profile, Settings};

    #[test]
    fn beside_the_newest_run_stand_those_of_other_delays() {
        let run = |id: i64, network: Option<&str>, profile: Profile, finished: Option<u64>| Summary {
            id,
            study: "virtual-replica".to_owned(),
            order: Order {
                profile,
                servers: Vec::new(),
                settings: Settings::default(),
                apart: Apart { network: network.map(|network| network.parse().unwrap()), ..Apart::default() },
            },
            command: String::new(),
            started: 0,
            finished,
            cells: 1,
            invalid: 0,
            skipped: 0,
            imported: false,
        };
        let quick = |id, network| run(id, network, Profile::Quick, Some(1));
        let mut runs = vec![
            quick(1, Some("delay=0ms")),
            quick(2, Some("delay=1ms")),
            quick(3, Some("delay=0ms")),
            run(4, Some("delay=2ms"), Profile::Full, Some(1)),
            run(5, Some("delay=3ms"), Profile::Quick, None),
            quick(6, None),
            quick(7, Some("delay=0.5ms")),
        ];
        assert_eq!(newest("virtual-replica", &runs), [3, 7, 2]);
        assert_eq!(newest("sync-binlog", &runs), [0; 0]);
        runs.push(quick(8, None));
        runs.push(Summary { imported: true, ..quick(9, None) });
        assert_eq!(newest("virtual-replica", &runs), [8]);
    }
}
