//! `binlogd prune URL`: deletes old files of an archive, and objects that nothing names any more.

use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::{style, units};
use crate::cli::args::store::{Opened, StoreArgs, not_opened};
use crate::cli::terminal::confirm::confirmed;
use anyhow::Context as _;
use archive::chain::Chain;
use archive::chain::commit::{Change, Writer};
use archive::keys::signing::SigningKey;
use archive::upkeep::backup::Point;
use archive::upkeep::prune::{Pruned, Rules, dry_run, prune, undo, undoable};
use clap::Args;
use config::duration;
use jiff::{SignedDuration, Timestamp};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// So often others may commit in between before it is given up: they do so each `interval`.
const TRIES_MAX: u32 = 20;

const BEHIND: &str = "others commit faster than this can: run it again";

/// The arguments of `binlogd prune`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Whole files go, the oldest of a timeline first, and never its last one. What goes is committed first, so that no reader finds a hole, and is \
deleted when it has been named by nothing for the grace: readers that began before then have what they need. Without --max-age and \
--max-files no file goes, only what was replaced, broken uploads, and commits that a snapshot has.

A backup is brought forward by what was written after it. --keep-for-backup keeps that, whatever the other rules say: from the file in \
which the point lies on all of its timeline, and all timelines that continue it. A point is what gtid_executed, xtrabackup_binlog_info or \
mysqldump --source-data say: a set of GTIDs, or FILE:POS. One that the archive does not have is an error, and nothing goes.

Backups of binlogd backup need no point: each keeps the log behind it for as long as it is in the archive. --keep-backups lets the others go, \
and is one rule for both: the log before the oldest backup that stays goes too. A backup whose log is not whole does not count.

What goes is shown first, and prune asks; --yes does not ask. --undo takes back what earlier runs have marked for deletion, for as long as nothing \
of it was deleted: for the grace, and after it until the next run.

binlogd may run and archive meanwhile. The credentials need the right to delete, which binlogd run needs with keep in [backup] only. A bucket with versions \
hides what is deleted and keeps its bytes, under Object Lock too. Other stores refuse to delete what a lock or a policy holds: run it again \
when that has expired.

Exit codes: 0 done, 1 it could not be done, 2 the command line is wrong.")]
pub(super) struct PruneArgs {
    /// The archive: url in [archive], as s3://bucket/prefix
    url: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Files whose last event is older go: 400d
    #[arg(long, value_name = "DURATION")]
    max_age: Option<String>,
    /// So many of the newest files of each timeline stay
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_files: Option<u32>,
    /// Keep everything from this point of a backup on: a set of GTIDs, or FILE:POS; several times for several backups
    #[arg(long, value_name = "POINT")]
    keep_for_backup: Vec<String>,
    /// Keep everything from the points in this file on: one a line; a set of GTIDs goes on in the next line behind a comma
    #[arg(long, value_name = "FILE")]
    backups_file: Vec<PathBuf>,
    /// Of the backups in the archive the newest of each of so many days, weeks, months and years stay (7d 4w 12m): the others go, and
    /// the log before the oldest that stays
    #[arg(long, value_name = "RULE")]
    keep_backups: Option<String>,
    /// How long objects stay that nothing names any more
    #[arg(long, value_name = "DURATION", default_value = "7d")]
    grace: String,
    /// File of the private key with which what this commits is signed, where the commits of the archive are
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
    /// Say what would go, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Take back the files that went and were not deleted yet
    #[arg(long, conflicts_with_all = ["max_age", "max_files", "keep_for_backup", "backups_file", "keep_backups", "grace"])]
    undo: bool,
}

/// Runs `binlogd prune`.
pub(super) fn execute(args: &PruneArgs) -> ExitCode {
    let rules = match args.rules() {
        Ok(rules) => rules,
        Err(error) => return usage_error(&error),
    };
    let opened = match args.store.open(&args.url) {
        Ok(opened) => opened,
        Err(error) => return not_opened(&error),
    };
    // A file's name is one in each of them, and a point that one has the others lack.
    if !rules.backups.is_empty() && opened.sources.len() > 1 {
        return usage_error(&format!(
            "a point of a backup is one of one source: add --source with one of {}",
            opened.sources.join(", ")
        ));
    }
    let mut all_well = true;
    for source in &opened.sources {
        let done = match args.undo {
            true => take_back(args, &opened, source),
            false => one(args, &opened, source, &rules),
        };
        if let Err(error) = done {
            errln!("error: source {}: {error:#}", style::clean(source));
            all_well = false;
        }
    }
    ExitCode::from(if all_well { EXIT_OK } else { EXIT_PROBLEM })
}

impl PruneArgs {
    fn rules(&self) -> Result<Rules, String> {
        let read = |flag: &str, text: &str| -> Result<SignedDuration, String> {
            let duration: Duration = duration::parse(text).map_err(|error| format!("--{flag}: {error}"))?;
            SignedDuration::try_from(duration).map_err(|error| format!("--{flag}: {error}"))
        };
        Ok(Rules {
            keep_for: self.max_age.as_deref().map(|text| read("max-age", text)).transpose()?,
            keep_files: self.max_files.map(|files| files as usize),
            backups: self.backups()?,
            keep: self
                .keep_backups
                .as_deref()
                .map(str::parse)
                .transpose()
                .map_err(|why| format!("--keep-backups: {why}"))?,
            grace: read("grace", &self.grace)?,
            agreed: None,
        })
    }

    /// The chain of a source; what is added to it is signed.
    fn chain(&self, opened: &Opened, source: &str) -> anyhow::Result<Chain> {
        let key = self.sign_key.as_deref().map(SigningKey::read).transpose().context("--sign-key")?;
        Ok(opened.reader.chain(source)?.signing(key.map(Arc::new)))
    }

    /// Whether what was shown may be done.
    fn is_agreed(&self, question: &str) -> anyhow::Result<()> {
        let is_agreed = self.yes || confirmed(question, "--dry-run").map_err(anyhow::Error::msg)?;
        anyhow::ensure!(is_agreed, "nothing was changed");
        Ok(())
    }

    /// The points of all backups.
    fn backups(&self) -> Result<Vec<Point>, String> {
        let given = self.keep_for_backup.iter().map(|text| Point::parse(text));
        let mut points: Vec<Point> =
            given.collect::<Result<_, _>>().map_err(|why| format!("--keep-for-backup: {why}"))?;
        for path in &self.backups_file {
            let shown = path.display();
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("--backups-file: {shown}: {error}"))?;
            let of_file =
                Point::parse_lines(&text).map_err(|why| format!("--backups-file: {shown}, {why}"))?;
            // An empty file is a backup that was not listed, most likely.
            if of_file.is_empty() {
                return Err(format!("--backups-file: {shown} has no point"));
            }
            points.extend(of_file);
        }
        Ok(points)
    }
}

fn one(args: &PruneArgs, opened: &Opened, source: &str, rules: &Rules) -> anyhow::Result<()> {
    let store = &*opened.reader.store;
    let mut chain = args.chain(opened, source)?;
    let now = Timestamp::now();
    let mut rules = rules.clone();
    if !args.yes {
        let planned = dry_run(store, &mut chain, &rules, now)?;
        show(source, &planned, "would go");
        if args.dry_run || planned.is_nothing() {
            return Ok(());
        }
        args.is_agreed(&format!("Delete this from the archive of {}?", style::clean(source)))?;
        rules.agreed = Some(planned.expired);
    }
    let writer = this_run();
    for _ in 0..TRIES_MAX {
        let pruned = prune(store, &mut chain, &writer, &rules, now)?;
        show(source, &pruned, "gone");
        if !pruned.is_behind {
            return Ok(());
        }
    }
    anyhow::bail!(BEHIND)
}

/// Who commits.
pub(super) fn this_run() -> Writer {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Writer::of_this_run(host, env!("CARGO_PKG_VERSION").to_owned())
}

/// What earlier runs have marked for deletion is there again.
fn take_back(args: &PruneArgs, opened: &Opened, source: &str) -> anyhow::Result<()> {
    let mut chain = args.chain(opened, source)?;
    let back = undoable(chain.history());
    anyhow::ensure!(
        !back.is_empty(),
        "prune has marked no file that is not deleted, or about to be: there is nothing to take back"
    );
    show_files(source, &back, "can be taken back");
    if args.dry_run {
        return Ok(());
    }
    args.is_agreed(&format!("Take this back into the archive of {}?", style::clean(source)))?;
    let writer = this_run();
    for _ in 0..TRIES_MAX {
        if let Some(back) = undo(&opened.reader, &mut chain, &writer, Timestamp::now())? {
            show_files(source, &back, "are there again");
            return Ok(());
        }
    }
    anyhow::bail!(BEHIND)
}

/// Files of timelines, and what becomes of them.
fn show_files(source: &str, changes: &[Change], word: &str) {
    for change in changes {
        let (timeline, files, why) = match change {
            Change::Expired { timeline, files, why } => (timeline, files, format!(": {why}")),
            Change::Restored { timeline, files } => (timeline, files, String::new()),
            Change::BackupsExpired { backups, why } => {
                let source = style::clean(source);
                backups.iter().for_each(|id| outln!("{source}: backup {id} {word}: {why}"));
                continue;
            }
            _ => continue,
        };
        if let (Some(first), Some(last)) = (files.first(), files.last()) {
            let source = style::clean(source);
            let count = units::counted(files.len() as u64, "file");
            outln!("{source}/{timeline}: {first} to {last}, {count}, {word}{why}");
        }
    }
}

fn show(source: &str, pruned: &Pruned, word: &str) {
    for keeps in &pruned.kept {
        outln!(
            "{}/{}: {} and all behind it, {}, kept for the backup at {}",
            style::clean(source),
            keeps.timeline,
            keeps.from,
            units::counted(keeps.files as u64, "file"),
            style::clean(&keeps.point)
        );
    }
    show_files(source, &pruned.expired, word);
    outln!(
        "{}: {} that nothing names, {} and {} {word}",
        style::clean(source),
        units::counted(pruned.objects, "object"),
        units::counted(pruned.snapshots.len() as u64, "snapshot"),
        units::counted(pruned.commits.len() as u64, "commit")
    );
}
