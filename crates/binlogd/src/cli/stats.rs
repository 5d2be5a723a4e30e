//! `binlogd stats DATA_DIR`: what stands out in a copy.

use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::{style, units};
use crate::cli::args::store::StoreArgs;
use crate::cli::find::answer::{FoundTable, found_table, table_text, times};
use crate::cli::opened::searched::{choose, tell_error};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use points::index::Peak;
use points::statistics::Statistics;
use repair::searched::SearchedSource;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `binlogd stats`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
It is read from the search indexes of sealed files, which are made where there are none, and from the files that are written. \
binlogd may run on the folder meanwhile.

Exit codes: 0 all was read, 1 something could not be, 2 the command line is wrong.")]
pub(super) struct StatsArgs {
    /// Folder of the copies: the data_dir of the configuration; or an archive, as s3://bucket/prefix
    #[arg(value_name = "DATA_DIR|URL")]
    data_dir: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
    /// This timeline only: its number, or the name of its folder
    #[arg(long, value_name = "N")]
    timeline: Option<String>,
    /// So many lines of each list
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The whole answer in JSON.
#[derive(Debug, Serialize)]
struct Answer {
    /// Version of the binlogd that looked.
    binlogd_version: &'static str,
    /// Everything was read.
    complete: bool,
    /// One entry a source.
    sources: Vec<SourceAnswer>,
}

/// What stands out in one source.
#[derive(Debug, Serialize)]
struct SourceAnswer {
    /// Its name.
    name: String,
    /// Files that were looked at.
    files: u64,
    /// Their bytes.
    bytes: u64,
    /// Transactions in them.
    transactions: u64,
    /// When the first was committed, UTC; null where there is none.
    first: Option<String>,
    /// When the last was.
    last: Option<String>,
    /// What could not be read, and why.
    errors: Vec<String>,
    /// The biggest transactions.
    biggest: Vec<PeakAnswer>,
    /// Those that took longest.
    longest: Vec<PeakAnswer>,
    /// The busiest tables.
    tables: Vec<TableAnswer>,
    /// There are tables that are not listed, because a file has too many.
    more_tables: bool,
    /// Minutes of each of `writes`.
    minutes: u32,
    /// Writes over time.
    writes: Vec<WritesAnswer>,
}

/// A transaction that stands out.
#[derive(Debug, Serialize)]
struct PeakAnswer {
    gtid: String,
    committed: String,
    committed_local: String,
    timeline: String,
    file: String,
    position: u64,
    bytes: u64,
    rows: u64,
    uncounted: bool,
    lasted_seconds: u64,
    tables: Vec<String>,
}

/// A table.
#[derive(Debug, Serialize)]
struct TableAnswer {
    #[serde(flatten)]
    table: FoundTable,
    transactions: u64,
}

/// What was written in some minutes.
#[derive(Debug, Serialize)]
struct WritesAnswer {
    at: String,
    transactions: u64,
    rows: u64,
    bytes: u64,
}

/// Runs `binlogd stats`.
pub(super) fn execute(args: &StatsArgs) -> ExitCode {
    let sources = match choose(&args.data_dir, &args.store, args.timeline.as_deref()) {
        Ok(sources) => sources,
        Err(error) => return usage_error(&error),
    };
    let zone = TimeZone::system();
    let answers: Vec<SourceAnswer> =
        sources.iter().map(|source| of_source(source, args.limit, &zone)).collect();
    let complete = answers.iter().all(|answer| answer.errors.is_empty());
    if args.json {
        let answer = Answer { binlogd_version: env!("CARGO_PKG_VERSION"), complete, sources: answers };
        let text = serde_json::to_string_pretty(&answer).expect("an answer is plain data") + "\n";
        let _: ExitCode = print_result(&text);
    } else {
        answers.iter().for_each(|answer| outln!("{}", text(answer, args.limit)));
    }
    ExitCode::from(if complete { EXIT_OK } else { EXIT_PROBLEM })
}

fn of_source(source: &SearchedSource, limit: usize, zone: &TimeZone) -> SourceAnswer {
    let mut errors = Vec::new();
    let mut statistics = Statistics::new(limit);
    for timeline in &source.timelines {
        for file in &timeline.files {
            match file.index() {
                Ok(Some(index)) => statistics.add(&(timeline.name.clone(), file.name.clone()), &index),
                Ok(None) => {}
                Err(error) => {
                    let error = file.failed(timeline, &error);
                    tell_error(&error);
                    errors.push(error);
                }
            }
        }
    }
    answer(&source.name, statistics, errors, zone)
}

/// Where a transaction stands: timeline and file.
type Place = (String, String);

fn answer(
    name: &str,
    mut statistics: Statistics<Place>,
    errors: Vec<String>,
    zone: &TimeZone,
) -> SourceAnswer {
    let utc = |micros: i64| {
        Timestamp::from_microsecond(micros)
            .map_or_else(|_| "?".into(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    };
    let peaks = |peaks: &[(Place, Peak, Vec<String>)]| {
        peaks.iter().map(|(place, peak, tables)| peak_answer(place, peak, tables, zone)).collect::<Vec<_>>()
    };
    let tables = statistics.busiest().into_iter().map(|(name, rows, transactions)| TableAnswer {
        table: found_table(name.to_string(), &rows),
        transactions,
    });
    let tables = tables.collect();
    let histogram = statistics.histogram();
    SourceAnswer {
        name: name.to_owned(),
        files: statistics.files,
        bytes: statistics.bytes,
        transactions: statistics.transactions,
        first: statistics.committed.map(|(first, _)| utc(first)),
        last: statistics.committed.map(|(_, last)| utc(last)),
        errors,
        biggest: peaks(&statistics.biggest),
        longest: peaks(&statistics.longest),
        tables,
        more_tables: statistics.has_more_tables,
        minutes: histogram.step,
        writes: histogram
            .buckets
            .iter()
            .map(|bucket| WritesAnswer {
                at: utc(bucket.minute.saturating_mul(60_000_000)),
                transactions: bucket.transactions,
                rows: bucket.rows,
                bytes: bucket.bytes,
            })
            .collect(),
    }
}

fn peak_answer((timeline, file): &Place, peak: &Peak, tables: &[String], zone: &TimeZone) -> PeakAnswer {
    let (committed, committed_local) = times(&peak.committed, zone);
    PeakAnswer {
        gtid: peak.gtid.clone(),
        committed,
        committed_local,
        timeline: timeline.clone(),
        file: file.clone(),
        position: peak.at,
        bytes: peak.end - peak.at,
        rows: peak.rows.total(),
        uncounted: peak.rows.has_unknown,
        lasted_seconds: peak.lasted,
        tables: tables.to_vec(),
    }
}

/// For people.
fn text(answer: &SourceAnswer, limit: usize) -> String {
    let mut out = style::clean(&format!(
        "{}: {} in {}, {}, from {} to {}",
        answer.name,
        units::counted(answer.transactions, "transaction"),
        units::counted(answer.files, "file"),
        units::bytes(answer.bytes),
        answer.first.as_deref().unwrap_or("-"),
        answer.last.as_deref().unwrap_or("-"),
    ));
    let mut line = |text: &str| {
        // Writing to a String does not fail.
        let _ = write!(out, "\n{}", style::clean(text));
    };
    for (title, peaks) in
        [("biggest transactions", &answer.biggest), ("longest transactions", &answer.longest)]
    {
        line(&format!("  {title}"));
        for peak in peaks {
            let more = if peak.uncounted { "+" } else { "" };
            line(&format!(
                "    {:>9}  {:>12}{more} rows  {:>10}  {}  {}/{} at {}  {}  {}",
                units::bytes(peak.bytes),
                units::count(peak.rows),
                units::duration(peak.lasted_seconds),
                peak.committed_local,
                peak.timeline,
                peak.file,
                peak.position,
                if peak.gtid.is_empty() { "no GTID" } else { &peak.gtid },
                peak.tables.join(", "),
            ));
        }
    }
    line("  busiest tables");
    for table in &answer.tables {
        line(&format!(
            "    {} in {}",
            table_text(&table.table),
            units::counted(table.transactions, "transaction")
        ));
    }
    let each =
        if answer.minutes == 1 { "a minute".to_owned() } else { format!("each {} minutes", answer.minutes) };
    line(&format!("  writes {each}, the last {limit}"));
    for writes in &answer.writes[answer.writes.len().saturating_sub(limit)..] {
        line(&format!(
            "    {}  {:>12} transactions  {:>12} rows  {:>9}",
            writes.at,
            units::count(writes.transactions),
            units::count(writes.rows),
            units::bytes(writes.bytes)
        ));
    }
    out
}
