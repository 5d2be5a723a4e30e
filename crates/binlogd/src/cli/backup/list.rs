//! `binlogd backups URL`: which backups an archive has, and what can be brought back.

use crate::cli::args::store::{Opened, StoreArgs, not_opened};
use crate::cli::exit::{EXIT_OK, EXIT_PROBLEM, print_result};
use crate::cli::{style, units};
use archive::chain::backup::BackupRecord;
use archive::upkeep::catalogue::{End, Listed, Log, ends, list, span};
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use std::process::ExitCode;

/// The arguments of `binlogd backups`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
A backup whose log is whole can be brought forward to any moment up to the log's end; one without its log restores its own moment alone, and does not \
count. \"recoverable from … to …\" goes from the oldest backup whose log has no gap up to the newest moment in the archive.

Exit codes: 0 something is recoverable, 1 nothing is or the archive cannot be read, 2 the command line is wrong.")]
pub(in crate::cli) struct BackupsArgs {
    /// The archive: url in [archive], as s3://bucket/prefix
    url: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The whole answer in JSON.
#[derive(Debug, Serialize)]
struct Answer {
    /// Version of the binlogd that looked.
    binlogd_version: &'static str,
    /// One entry a source.
    sources: Vec<SourceAnswer>,
}

/// The backups of one source.
#[derive(Debug, Serialize)]
struct SourceAnswer {
    /// Its name.
    name: String,
    /// When the oldest backup was finished from which any later moment can be restored.
    recoverable_from: Option<Timestamp>,
    /// Until when, by the source's clock.
    recoverable_to: Option<Timestamp>,
    /// The oldest first.
    backups: Vec<BackupAnswer>,
}

/// One backup.
#[derive(Debug, Serialize)]
struct BackupAnswer {
    /// What the commit says of it.
    #[serde(flatten)]
    record: BackupRecord,
    /// Plain bytes.
    bytes: u64,
    /// Bytes of its objects.
    stored_bytes: u64,
    /// Hexadecimal SHA-256 of the plain stream.
    sha256: String,
    /// Keys of which one opens any of its objects; empty when it is not encrypted.
    keys: Vec<String>,
    /// Whether the log behind it is whole.
    log_is_whole: bool,
    /// Until where.
    log_until: Option<String>,
    /// Until when, by the source's clock.
    log_until_time: Option<Timestamp>,
    /// Why it cannot be brought forward.
    log_lacking: Option<String>,
}

/// Runs `binlogd backups`.
pub(in crate::cli) fn execute(args: &BackupsArgs) -> ExitCode {
    let opened = match args.store.open(&args.url) {
        Ok(opened) => opened,
        Err(error) => return not_opened(&error),
    };
    let mut answer = Answer { binlogd_version: env!("CARGO_PKG_VERSION"), sources: Vec::new() };
    for source in &opened.sources {
        match one(&opened, source, args.json) {
            Ok(found) => answer.sources.push(found),
            Err(error) => {
                errln!("error: source {}: {error:#}", style::clean(source));
                return ExitCode::from(EXIT_PROBLEM);
            }
        }
    }
    let is_recoverable = answer.sources.iter().all(|source| source.recoverable_from.is_some());
    if args.json {
        let json = serde_json::to_string_pretty(&answer).expect("the answer can be written as JSON");
        print_result(&format!("{json}\n"));
    }
    ExitCode::from(if is_recoverable { EXIT_OK } else { EXIT_PROBLEM })
}

fn one(opened: &Opened, source: &str, json: bool) -> anyhow::Result<SourceAnswer> {
    let store = &*opened.reader.store;
    let mut chain = opened.reader.chain(source)?;
    chain.check_whole(store)?;
    let all = list(chain.history());
    let span = span(&all);
    if !json {
        all.iter().for_each(|listed| row(source, listed));
        let name = style::clean(source);
        match span {
            Some(span) => outln!(
                "{name}: recoverable from {} to {}",
                short(span.from.backup.record.finished),
                ends(&all, span).map_or_else(|| "the end of the log".to_owned(), short)
            ),
            None if all.is_empty() => {
                outln!("{name}: nothing is recoverable: the archive has no backup. binlogd backup makes one")
            }
            None => outln!(
                "{name}: nothing is recoverable but the moments of these backups: none of them has its log"
            ),
        }
    }
    Ok(SourceAnswer {
        name: source.to_owned(),
        recoverable_from: span.map(|span| span.from.backup.record.finished),
        recoverable_to: span.and_then(|span| ends(&all, span)),
        backups: all.iter().map(answered).collect(),
    })
}

fn row(source: &str, listed: &Listed) {
    let (record, file) = (&listed.backup.record, &listed.backup.file);
    outln!(
        "{}: {} {} of {} {}, {}, stored as {}{}; holds {}; {}",
        style::clean(source),
        record.id,
        record.tool,
        record.server_kind,
        style::clean(&record.server_version),
        units::bytes(file.end()),
        units::bytes(file.stored()),
        if file.keys().is_empty() { "" } else { ", encrypted" },
        style::clean(&shortened(&record.point.to_string())),
        log_in_words(listed)
    );
}

/// Long sets of GTIDs stand in JSON.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 120;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// What can be brought back by a backup.
pub(super) fn log_in_words(listed: &Listed) -> String {
    match &listed.log {
        Log::Whole { until, .. } => format!("its log is whole until {}", at_end(until)),
        Log::Lacking(why) => format!("its log is LACKING: {}", style::clean(why)),
    }
}

fn at_end(until: &End) -> String {
    let place = format!("{}:{}", style::clean(&until.file), until.position);
    until.at().map_or_else(|| place.clone(), |at| format!("{} ({place})", short(at)))
}

fn short(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn answered(listed: &Listed) -> BackupAnswer {
    let file = &listed.backup.file;
    let until = listed.until();
    BackupAnswer {
        record: listed.backup.record.clone(),
        bytes: file.end(),
        stored_bytes: file.stored(),
        sha256: file.sealed.as_ref().map(|seal| seal.sha256.clone()).unwrap_or_default(),
        keys: file.keys().into_iter().map(ToOwned::to_owned).collect(),
        log_is_whole: until.is_some(),
        log_until: until.map(|until| format!("{}:{}", until.file, until.position)),
        log_until_time: until.and_then(End::at),
        log_lacking: match &listed.log {
            Log::Whole { .. } => None,
            Log::Lacking(why) => Some(why.clone()),
        },
    }
}
