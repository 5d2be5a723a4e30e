//! `binlogd verify URL`: is what an archive has sound, and if not, exactly which object and which bytes.

use crate::cli::args::store::{Opened, StoreArgs, not_opened};
use crate::cli::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use crate::cli::{style, units};
use anyhow::Context as _;
use archive::chain::statement::{Held, Statement, newest};
use archive::upkeep::scrub::{Depth, Report, scrub};
use binlog::storage::posix::PosixStorage;
use binlog::timeline::index::replace_file;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How much is read.
const BAR: &str = "{msg} {spinner} {binary_bytes} {binary_bytes_per_sec}";

/// What is given of an archive alone.
#[derive(Debug, Args)]
pub(super) struct ArchiveArgs {
    /// Of an archive: read one of so many objects, 0 for none; without this flag all are read
    #[arg(long, value_name = "N")]
    sample: Option<u32>,
    /// Of an archive: it must have this commit, else it was put back to an older state. What --newest-to has written, which needs
    /// --signed-by; or the data_dir of a copy, which remembers it in archive_seen.toml; or number and SHA-256
    #[arg(long, value_name = "FILE|DATA_DIR|SEQ:SHA256")]
    not_before: Option<String>,
    /// Of an archive that is sound: put the newest commit, which is signed, into this file, for --not-before
    #[arg(long, value_name = "FILE", requires = "signed_by")]
    newest_to: Option<PathBuf>,
}

/// The whole answer in JSON.
#[derive(Debug, Serialize)]
struct Answer {
    /// Version of the binlogd that looked.
    binlogd_version: &'static str,
    /// Whether nothing is wrong anywhere.
    sound: bool,
    /// One entry a source.
    sources: Vec<SourceAnswer>,
}

/// What was found of one source.
#[derive(Debug, Serialize)]
struct SourceAnswer {
    /// Its name.
    name: String,
    /// Timelines.
    timelines: usize,
    /// Files in them.
    files: usize,
    /// Bytes of binary logs in these.
    plain_bytes: u64,
    /// Backups beside them.
    backups: usize,
    /// Bytes of these, unpacked.
    backup_bytes: u64,
    /// Objects that hold both.
    objects: usize,
    /// Bytes of the objects.
    stored_bytes: u64,
    /// Objects whose bytes were read and compared.
    objects_read: usize,
    /// Of those, the ones that were decrypted and unpacked as well.
    objects_opened: usize,
    /// Objects that no commit names.
    unnamed_objects: usize,
    /// Search indexes of files, which are in none of these numbers.
    search_indexes: usize,
    /// Of those that were read, the ones that are not what was put there. That is no damage: their files are walked in their place.
    search_indexes_damaged: Vec<String>,
    /// Number of the last commit.
    newest_commit: u64,
    /// Hexadecimal SHA-256 of it.
    newest_commit_sha256: String,
    /// With --signed-by: the first of the commits that were read from which on all are signed so; what came before, these cover.
    signed_since: Option<u64>,
    /// With --not-before: whether that commit is `there`, `gone`, or was `pruned`, so that nobody can tell.
    not_before: Option<&'static str>,
    /// What is wrong.
    damage: Vec<String>,
}

/// Runs `binlogd verify URL`. Exit code 0 when nothing is wrong, 1 when something is, 2 when there is nothing to verify.
pub(super) fn execute(url: &str, store: &StoreArgs, args: &ArchiveArgs, json: bool) -> ExitCode {
    let opened = match store.open(url) {
        Ok(opened) => opened,
        Err(error) => return not_opened(&error),
    };
    let kept = args.not_before.is_some() || args.newest_to.is_some();
    if kept && opened.sources.len() > 1 {
        return usage_error(&format!(
            "a commit is one of one source: add --source with one of {}",
            opened.sources.join(", ")
        ));
    }
    let depth = match args.sample {
        None => Depth::All,
        Some(0) => Depth::Names,
        Some(every) => Depth::Sample { every: every as usize, from: 0 },
    };
    let mut answer = Answer { binlogd_version: env!("CARGO_PKG_VERSION"), sound: true, sources: Vec::new() };
    for source in &opened.sources {
        let statement = match args.statement(&opened, source) {
            Ok(statement) => statement,
            Err(error) => return usage_error(&format!("--not-before: {error}")),
        };
        match one(&opened, source, depth, (args, json), statement.as_ref()) {
            Ok(found) => {
                answer.sound &= found.damage.is_empty();
                answer.sources.push(found);
            }
            Err(error) => {
                errln!("error: source {}: {error:#}", style::clean(source));
                return ExitCode::from(EXIT_PROBLEM);
            }
        }
    }
    let code = ExitCode::from(if answer.sound { EXIT_OK } else { EXIT_PROBLEM });
    if json {
        let text = serde_json::to_string_pretty(&answer).expect("an answer is plain data") + "\n";
        let _: ExitCode = print_result(&text);
    }
    code
}

fn one(
    opened: &Opened,
    source: &str,
    depth: Depth,
    (args, json): (&ArchiveArgs, bool),
    statement: Option<&Statement>,
) -> anyhow::Result<SourceAnswer> {
    let bar =
        if !json && io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    bar.set_style(ProgressStyle::with_template(BAR).expect("the template is valid"));
    bar.set_message(source.to_owned());
    let report = scrub(&opened.reader, source, depth, opened.has_identity, &|read| bar.inc(read))?;
    bar.finish_and_clear();
    let mut damage: Vec<String> = report.damage().iter().map(ToString::to_string).collect();
    // What could not be read has an end that says nothing.
    let held = match statement.filter(|_| report.newest.0 > 0 || damage.is_empty()) {
        None => None,
        Some(statement) => {
            let now = opened.reader.chain(source)?;
            Some((statement.seq(), statement.held(&*opened.reader.store, source, now.history())?))
        }
    };
    if let Some((seq, Held::No)) = held {
        damage.push(format!(
            "it was put back to an older state: commit {seq} of --not-before is not there; the last one that is there is {}",
            report.newest.0
        ));
    }
    if let Some(file) = args.newest_to.as_ref().filter(|_| damage.is_empty()) {
        keep(opened, source, &report, file)?;
    }
    if !json {
        show(source, &report, &damage, opened.has_identity);
        if let Some((seq, Held::Pruned)) = held {
            outln!(
                "  note: commit {seq} of --not-before was pruned. The archive goes further, and whether it went over that commit nobody can \
                 tell any more: keep a newer one, with --newest-to"
            );
        }
    }
    Ok(SourceAnswer {
        name: source.to_owned(),
        timelines: report.timelines,
        files: report.files,
        plain_bytes: report.plain_bytes,
        backups: report.backups,
        backup_bytes: report.backup_bytes,
        objects: report.objects,
        stored_bytes: report.stored_bytes,
        objects_read: report.read,
        objects_opened: report.opened,
        unnamed_objects: report.unnamed,
        search_indexes: report.search_indexes,
        search_indexes_damaged: report.search_indexes_damaged,
        newest_commit: report.newest.0,
        newest_commit_sha256: report.newest.1,
        signed_since: report.signed_since,
        not_before: held.map(|(_, held)| match held {
            Held::Yes => "there",
            Held::Pruned => "pruned",
            Held::No => "gone",
        }),
        damage,
    })
}

impl ArchiveArgs {
    /// What was given; `None` when nothing was.
    pub(super) fn given(&self) -> Option<&'static str> {
        let not_before = self.not_before.as_ref().map(|_| "--not-before");
        self.sample.map(|_| "--sample").or(not_before).or(self.newest_to.as_ref().map(|_| "--newest-to"))
    }

    fn statement(&self, opened: &Opened, source: &str) -> Result<Option<Statement>, String> {
        let read = |argument: &String| {
            Statement::read(argument, source, &opened.place, opened.reader.opener.trust())
        };
        self.not_before.as_ref().map(read).transpose()
    }
}

/// Puts the newest commit into a file.
fn keep(opened: &Opened, source: &str, report: &Report, file: &Path) -> anyhow::Result<()> {
    let (seq, hash) = &report.newest;
    let bytes = newest(&*opened.reader.store, source, (*seq, hash))?;
    let bytes = bytes.with_context(|| format!("commit {seq} was there, and is not any more"))?;
    replace_file(&PosixStorage, file, &bytes).with_context(|| format!("--newest-to {}", file.display()))
}

fn show(source: &str, report: &Report, damage: &[String], has_identity: bool) {
    let colored = style::stdout_is_colored();
    for text in damage {
        outln!("  {}: {}", style::paint("damage", style::RED, colored), style::clean(text));
    }
    if report.unnamed > 0 {
        outln!(
            "  note: {} ({}) named by no commit, as a broken upload leaves them",
            units::counted(report.unnamed as u64, "object"),
            units::bytes(report.unnamed_bytes)
        );
    }
    if !report.search_indexes_damaged.is_empty() {
        outln!(
            "  note: {} of {} search indexes are not what was put there; a search walks their files. Delete them: within a day binlogd puts \
             those there again whose files it still has:",
            units::count(report.search_indexes_damaged.len() as u64),
            units::count(report.search_indexes as u64)
        );
        report.search_indexes_damaged.iter().for_each(|object| outln!("    {}", style::clean(object)));
    }
    let verdict = match damage.len() {
        0 => style::paint("no damage", style::GREEN, colored),
        found => style::paint(&format!("DAMAGED ({found} found)"), style::RED, colored),
    };
    let opened = match (report.opened, has_identity) {
        (_, false) => "not decrypted: no --identity was given".to_owned(),
        (opened, true) => format!("{} decrypted and unpacked", units::count(opened as u64)),
    };
    let backups = match report.backups {
        0 => String::new(),
        count => {
            format!(", {} in {}", units::bytes(report.backup_bytes), units::counted(count as u64, "backup"))
        }
    };
    if let Some(since) = report.signed_since {
        outln!(
            "  signed: all commits from {since} to {} are by --signed-by, and what came before is as commit {since} has it",
            report.newest.0
        );
    }
    outln!(
        "{}: {verdict}: {} of binary logs in {}, timelines: {}{backups}; {} of {}, {} of them read and compared, {opened}",
        style::clean(source),
        units::bytes(report.plain_bytes),
        units::counted(report.files as u64, "file"),
        report.timelines,
        units::counted(report.objects as u64, "object"),
        units::bytes(report.stored_bytes),
        units::count(report.read as u64),
    );
}
