//! `binlogd verify DATA_DIR`: is the copy sound, and if not, exactly where and what is wrong.

pub(in crate::cli) mod archive;

use self::archive::ArchiveArgs;
use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::{style, units};
use crate::cli::args::store::{StoreArgs, is_url};
use binlog::folder::{is_source_folder, source_folders, timelines};
use binlog::journal::waiting;
use binlog::storage::posix::PosixStorage;
use binlog::timeline::Timeline;
use binlog::verify::outcome::{self, Outcome};
use binlog::verify::report::{FileEnd, FileReport, TimelineReport};
use binlog::verify::{Progress, compare_timelines, verify_timeline};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Narrowest column of file names.
const NAME_WIDTH: usize = 18;
/// The bar is told of every so many bytes.
const BAR_STEP_BYTES: u64 = 1 << 20;
/// Two lines would not fit a narrow terminal.
const BAR: &str = "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}";

/// The arguments of `binlogd verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Folder of the copies, one folder a source inside: the data_dir of the configuration; or an archive, as s3://bucket/prefix
    #[arg(value_name = "DATA_DIR|URL")]
    data_dir: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `binlogd verify`. Exit code 0 when nothing is wrong, 1 when something is, 2 when there is nothing to verify.
pub(super) fn execute(args: &VerifyArgs) -> ExitCode {
    if let Some(url) = args.data_dir.to_str().filter(|text| is_url(text)) {
        return archive::execute(url, &args.store, &args.archive, args.json);
    }
    let given = args.store.given().or(args.archive.given());
    if let Some(flag) = given {
        return usage_error(&format!(
            "{flag} is for an archive, as s3://bucket/prefix, and not for a folder"
        ));
    }
    let sources = match choose(args) {
        Ok(sources) => sources,
        Err(error) => return usage_error(&error),
    };
    let mut screen = Screen::new(args.json);
    let mut reports = Vec::new();
    for (name, folder) in sources {
        let at = Timestamp::now();
        let report = verify_source(name, &folder, &mut screen);
        keep(&folder, &Outcome { at, findings: report.problems().count() as u64 });
        reports.push(report);
    }
    let report = Report {
        sound: reports.iter().all(|source| source.problems().next().is_none()),
        binlogd_version: env!("CARGO_PKG_VERSION"),
        sources: reports,
    };
    if args.json {
        screen.print(&(serde_json::to_string_pretty(&report).expect("a report is plain data") + "\n"));
    } else {
        screen.summary(&report);
    }
    screen.exit_code(report.sound)
}

/// The outcome is for the daemon's metrics. A copy that cannot be written to, as on a backup, is verified all the same.
fn keep(folder: &Path, outcome: &Outcome) {
    if let Err(error) = outcome::write(&PosixStorage, folder, outcome) {
        errln!(
            "note: no daemon will show this result, for it cannot be kept in {}: {error}",
            folder.display()
        );
    }
}

/// The sources to verify, or what is wrong with the command line.
fn choose(args: &VerifyArgs) -> Result<Vec<(String, PathBuf)>, String> {
    let folder = &args.data_dir;
    let shown = folder.display();
    let mut sources =
        source_folders(&PosixStorage, folder).map_err(|error| format!("cannot read {shown}: {error}"))?;
    if sources.is_empty() {
        return Err(no_source(folder));
    }
    if let Some(wanted) = &args.store.source {
        let names: Vec<String> = sources.iter().map(|(name, _)| name.clone()).collect();
        sources.retain(|(name, _)| name == wanted);
        if sources.is_empty() {
            return Err(format!("{shown} holds no source {wanted:?}; there are: {}", names.join(", ")));
        }
    }
    Ok(sources)
}

/// Why a folder holds no source; the likely mistake is to name one too deep.
fn no_source(folder: &Path) -> String {
    let shown = folder.display();
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    for (depth, path) in real.ancestors().take(2).enumerate() {
        if let (true, Some(name), Some(parent)) =
            (is_source_folder(&PosixStorage, path), path.file_name(), path.parent())
        {
            let what = if depth == 0 { "the folder of one source" } else { "one timeline of a source" };
            return format!(
                "{shown} is {what}: name the folder above, as in binlogd verify {} --source {}",
                parent.display(),
                name.to_string_lossy()
            );
        }
    }
    format!("{shown} holds no source: name the data_dir of the configuration, which has one folder a source")
}

/// The whole answer in JSON.
#[derive(Debug, Serialize)]
struct Report {
    /// Version of the binlogd that looked.
    binlogd_version: &'static str,
    /// Whether nothing is wrong anywhere.
    sound: bool,
    /// One entry a source.
    sources: Vec<SourceReport>,
}

/// What was found of one source.
#[derive(Debug, Serialize)]
struct SourceReport {
    /// Name of its folder.
    name: String,
    /// Why its folder or its journal cannot be read; null when it can.
    unreadable: Option<String>,
    /// What the journal holds and the files lack, if anything. No damage: the next start puts it into them.
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<String>,
    /// Its timelines, the oldest first.
    timelines: Vec<TimelineReport>,
}

impl SourceReport {
    fn problems(&self) -> impl Iterator<Item = String> {
        let timelines = self.timelines.iter().flat_map(TimelineReport::all_problems).map(ToString::to_string);
        self.unreadable.clone().into_iter().chain(timelines)
    }
}

fn verify_source(name: String, folder: &Path, screen: &mut Screen) -> SourceReport {
    screen.line(&style::clean(&name));
    let (journal, mut unreadable) = match waiting(&PosixStorage, folder) {
        Ok(waiting) => (waiting.map(|waiting| waiting.to_string()), None),
        Err(error) => (None, Some(format!("the journal in {} cannot be read: {error}", folder.display()))),
    };
    if let Some(journal) = &journal {
        screen.line(&format!("  {journal}"));
    }
    if let Some(what) = &unreadable {
        screen.damage(what);
    }
    let mut report = SourceReport { name, unreadable: None, journal, timelines: Vec::new() };
    match timelines(&PosixStorage, folder) {
        Ok(found) if found.is_empty() => screen.line("  nothing copied yet"),
        Ok(found) => {
            for timeline in found {
                let timeline = verify_timeline(&PosixStorage, &timeline, screen);
                screen.about_timeline(&timeline);
                report.timelines.push(timeline);
            }
            screen.about_writers(&mut report.timelines);
        }
        Err(error) => {
            let what = format!("{} cannot be read: {error}", folder.display());
            screen.damage(&what);
            unreadable = Some(what);
        }
    }
    report.unreadable = unreadable;
    report
}

/// What is printed while the files are walked.
struct Screen {
    json: bool,
    colored: bool,
    bar: ProgressBar,
    done_bytes: u64,
    shown_bytes: u64,
    /// Set when standard output no longer takes anything.
    broken: Option<io::Error>,
}

impl Screen {
    fn new(json: bool) -> Screen {
        let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        bar.set_style(ProgressStyle::with_template(BAR).expect("the template is valid"));
        let colored = style::stdout_is_colored();
        Screen { json, colored, bar, done_bytes: 0, shown_bytes: 0, broken: None }
    }

    fn line(&mut self, text: &str) {
        if !self.json {
            self.print(&format!("{text}\n"));
        }
    }

    fn print(&mut self, text: &str) {
        if self.broken.is_none() {
            let mut out = io::stdout().lock();
            let written = self.bar.suspend(|| out.write_all(text.as_bytes()).and_then(|()| out.flush()));
            self.broken = written.err();
        }
    }

    fn damage(&mut self, what: &str) {
        let word = style::paint("damage", style::RED, self.colored);
        self.line(&format!("      {word}: {}", style::clean(what)));
    }

    fn note(&mut self, what: &str) {
        self.line(&format!("      note: {}", style::clean(what)));
    }

    /// What concerns no single file.
    fn about_timeline(&mut self, report: &TimelineReport) {
        self.bar.set_message("");
        for problem in &report.problems {
            self.damage(&problem.to_string());
        }
        for note in &report.notes {
            self.note(note);
        }
    }

    /// What all timelines together tell of who wrote their files. The files' own lines are printed by now.
    fn about_writers(&mut self, timelines: &mut [TimelineReport]) {
        let counts: Vec<usize> = timelines.iter().map(|timeline| timeline.all_problems().count()).collect();
        let before: Vec<_> = timelines.iter().flat_map(TimelineReport::all_problems).cloned().collect();
        compare_timelines(timelines);
        for (timeline, count) in timelines.iter().zip(counts) {
            if timeline.all_problems().count() == count {
                continue;
            }
            self.line(&style::clean(&format!("  {}", timeline.name)));
            for problem in timeline.all_problems().filter(|problem| !before.contains(problem)) {
                self.damage(&problem.to_string());
            }
        }
    }

    fn summary(&mut self, report: &Report) {
        self.bar.finish_and_clear();
        let timelines: Vec<_> = report.sources.iter().flat_map(|source| &source.timelines).collect();
        let files: Vec<_> = timelines.iter().flat_map(|timeline| &timeline.files).collect();
        let damage = report.sources.iter().flat_map(SourceReport::problems).count();
        let verdict = match damage {
            0 => style::paint("no damage", style::GREEN, self.colored),
            found => style::paint(
                &format!("DAMAGED ({} found)", units::counted(found as u64, "problem")),
                style::RED,
                self.colored,
            ),
        };
        self.line(&format!(
            "{verdict}: {}, {}, {} in {} of {}",
            units::counted(files.len() as u64, "file"),
            units::bytes(files.iter().map(|file| file.bytes).sum()),
            units::counted(files.iter().map(|file| file.transactions).sum(), "transaction"),
            units::counted(timelines.len() as u64, "timeline"),
            units::counted(report.sources.len() as u64, "source"),
        ));
    }

    fn exit_code(self, sound: bool) -> ExitCode {
        match self.broken {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                errln!("error: cannot write to standard output: {error}");
                ExitCode::from(EXIT_PROBLEM)
            }
            _ if sound => ExitCode::from(EXIT_OK),
            _ => ExitCode::from(EXIT_PROBLEM),
        }
    }
}

impl Progress for Screen {
    fn timeline(&mut self, name: &str, description: Option<&Timeline>, bytes: u64) {
        let about = description.map_or_else(String::new, |timeline| {
            let Timeline { server_version, began_at, reason, .. } = timeline;
            format!(": {server_version}, since {began_at}, {}", reason.words())
        });
        self.line(&style::clean(&format!("  {name}{about}")));
        self.line(&format!(
            "    {:<NAME_WIDTH$} {:>15} {:>11} {:>12}",
            "file", "bytes", "events", "transactions"
        ));
        self.bar.inc_length(bytes);
        self.bar.set_message(name.to_owned());
    }

    fn offset(&mut self, offset: u64) {
        let at = self.done_bytes + offset;
        // A bar that is told of every event would cost more than the walk.
        if at.abs_diff(self.shown_bytes) >= BAR_STEP_BYTES {
            self.bar.set_position(at);
            self.shown_bytes = at;
        }
    }

    fn file(&mut self, report: &FileReport) {
        self.done_bytes += report.bytes;
        self.line(&format!(
            "    {:<NAME_WIDTH$} {:>15} {:>11} {:>12}  {}",
            style::clean(&report.name),
            units::count(report.bytes),
            units::count(report.events),
            units::count(report.transactions),
            verdict(report, self.colored)
        ));
        for problem in &report.problems {
            self.damage(&problem.to_string());
        }
        for note in &report.notes {
            self.note(note);
        }
    }
}

fn verdict(report: &FileReport, colored: bool) -> String {
    if !report.problems.is_empty() {
        return style::paint("DAMAGED", style::RED, colored);
    }
    let ok = style::paint("ok", style::GREEN, colored);
    match report.end {
        FileEnd::Live { after_boundary } => {
            format!("{ok}, live, {} after the last boundary", units::counted(after_boundary, "byte"))
        }
        FileEnd::Stop => format!("{ok}, the source was stopped"),
        // A note says what an end of neither kind means.
        FileEnd::None | FileEnd::Rotate { .. } | FileEnd::Unknown => ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::journal::JOURNAL_FILE;

    #[test]
    fn a_journal_that_cannot_be_read_is_not_one_that_holds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let verify = || {
            verify_source("s".to_owned(), dir.path(), &mut Screen::new(true)).problems().collect::<Vec<_>>()
        };
        assert_eq!(verify(), Vec::<String>::new());
        std::fs::create_dir(dir.path().join(JOURNAL_FILE)).unwrap();
        let problems = verify();
        assert!(problems.len() == 1 && problems[0].starts_with("the journal in "), "{problems:?}");
    }
}
