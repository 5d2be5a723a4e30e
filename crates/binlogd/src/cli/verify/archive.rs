//! `binlogd verify URL`: is what an archive has sound, and if not, exactly which object and which bytes.

use crate::cli::args::store::{Opened, StoreArgs, not_opened};
use crate::cli::exit::{EXIT_OK, EXIT_PROBLEM, print_result};
use crate::cli::{style, units};
use archive::upkeep::scrub::{Depth, Report, scrub};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// How much is read.
const BAR: &str = "{msg} {spinner} {binary_bytes} {binary_bytes_per_sec}";

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
    /// What is wrong.
    damage: Vec<String>,
}

/// Runs `binlogd verify URL`. Exit code 0 when nothing is wrong, 1 when something is, 2 when there is nothing to verify.
pub(in crate::cli) fn execute(url: &str, args: &StoreArgs, sample: Option<u32>, json: bool) -> ExitCode {
    let opened = match args.open(url) {
        Ok(opened) => opened,
        Err(error) => return not_opened(&error),
    };
    let depth = match sample {
        None => Depth::All,
        Some(0) => Depth::Names,
        Some(every) => Depth::Sample { every: every as usize, from: 0 },
    };
    let mut answer = Answer { binlogd_version: env!("CARGO_PKG_VERSION"), sound: true, sources: Vec::new() };
    for source in &opened.sources {
        match one(&opened, source, depth, json) {
            Ok(found) => {
                answer.sound &= found.damage.is_empty();
                answer.sources.push(found);
            }
            Err(error) => {
                errln!("error: source {}: {error}", style::clean(source));
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
    json: bool,
) -> Result<SourceAnswer, archive::store::StoreError> {
    let bar =
        if !json && io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    bar.set_style(ProgressStyle::with_template(BAR).expect("the template is valid"));
    bar.set_message(source.to_owned());
    let report = scrub(&opened.reader, source, depth, opened.has_identity, &|read| bar.inc(read))?;
    bar.finish_and_clear();
    let damage: Vec<String> = report.damage().iter().map(ToString::to_string).collect();
    if !json {
        show(source, &report, &damage, opened.has_identity);
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
        damage,
    })
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
