//! `binlogd cat DATA_DIR`: a part of the history as one binary log, for stock tools.

use super::args::output_file::{self, whole_file};
use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::{style, units};
use crate::cli::args::store::StoreArgs;
use crate::cli::args::time_range;
use crate::cli::opened::history::OpenedHistory;
use crate::cli::terminal::heard::Heard;
use clap::Args;
use jiff::tz::TimeZone;
use points::glob::TableGlob;
use points::wanted_gtids::WantedGtids;
use repair::Event;
use repair::cut::{Choice, Counts, NoCut, Request, Span, write};
use repair::history::{Copied, Until};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// So many XA transactions are named.
const PREPARED_SHOWN_MAX: usize = 10;

/// The arguments of `binlogd cat`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
What is written is one binary log: a format description, what was executed before (PREVIOUS_GTIDS, on MariaDB GTID_LIST), and whole \
transactions, byte for byte, over all files and timelines of the present history. mysqlbinlog reads it from its standard input, as \
a file named -. Everything is walked first; nothing is written where a point is not reached, or something is missing between.

A point is a GTID, FILE:POSITION, a time (local where it names no zone), or a statement. 'before', which is meant where nothing is \
said, is before the transaction, 'after' is behind it: --from GTID begins with it, --until GTID ends before it.

  binlogd cat /var/lib/binlogd --until 'before DROP TABLE shop.orders' | mysqlbinlog - | mysql
  binlogd cat /var/lib/binlogd --table shop.orders --from '2026-03-01 15:00' --output orders.binlog

Exit codes: 0 it was written, 1 a problem, or nothing was found, 2 the command line is wrong.")]
pub(super) struct CatArgs {
    /// Folder of the copies: the data_dir of the configuration, on which binlogd may run meanwhile; or an archive, as
    /// s3://bucket/prefix
    #[arg(value_name = "DATA_DIR|URL")]
    data_dir: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
    /// Folder for what is fetched of an archive: the newest binary log, and up to 1 GiB of others. It may be removed afterwards
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Along the history that ends with this timeline: its number, or the name of its folder
    #[arg(long, value_name = "N")]
    timeline: Option<String>,
    /// Where to begin: a GTID, FILE:POSITION, a time, or 'before DROP TABLE shop.orders'; without it where the copy begins
    #[arg(long, value_name = "POINT")]
    from: Option<String>,
    /// Where to stop: as --from, or end
    #[arg(long, value_name = "POINT", default_value = "end")]
    until: String,
    /// Only transactions that change this table; * and ? stand for any characters. They are written whole, also where they
    /// change other tables
    #[arg(long, value_name = "SCHEMA.TABLE")]
    table: Vec<String>,
    /// Only these: a set of MySQL, or GTIDs of MariaDB with commas between
    #[arg(long, value_name = "SET")]
    gtid: Option<String>,
    /// Without these
    #[arg(long, value_name = "SET")]
    exclude_gtid: Option<String>,
    /// Write to this file, which must not exist yet, and not to standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs `binlogd cat`.
pub(super) fn execute(args: &CatArgs) -> ExitCode {
    let chosen = request(args).and_then(|request| {
        check_output(args.output.as_deref())?;
        let history =
            OpenedHistory::open(&args.data_dir, &args.store, args.work.as_deref(), args.timeline.as_deref())?;
        Ok((request, history))
    });
    let (request, history) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return usage_error(&error),
    };
    match cat(args, &request, &history.copied) {
        Ok(()) => ExitCode::from(EXIT_OK),
        // Whoever read it has enough.
        Err(NoCut::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(EXIT_OK),
        Err(error) => {
            for line in error.to_string().lines() {
                errln!("error: {}", style::clean(line));
            }
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

/// What is asked for, or what is wrong with the command line.
fn request(args: &CatArgs) -> Result<Request, String> {
    let zone = TimeZone::system();
    let point = |flag: &str, text: &str| {
        Until::parse(text, &|text| time_range::of_point(text, &zone)).map_err(|why| format!("{flag}: {why}"))
    };
    let gtids = |flag: &str, text: &Option<String>| {
        let set = text.as_ref().map(|text| WantedGtids::parse(text)).transpose();
        set.map_err(|error| format!("{flag}: {error}"))
    };
    let from = args.from.as_ref().map(|text| point("--from", text)).transpose()?;
    if matches!(from, Some(Until::End)) {
        return Err("--from: nothing comes behind the end: name a GTID, FILE:POSITION or a time".to_owned());
    }
    let tables: Result<Vec<TableGlob>, _> = args.table.iter().map(|text| TableGlob::parse(text)).collect();
    let choice = Choice {
        tables: tables.map_err(|error| format!("--table: {error}"))?,
        gtids: gtids("--gtid", &args.gtid)?,
        excluded: gtids("--exclude-gtid", &args.exclude_gtid)?,
    };
    Ok(Request { from, until: point("--until", &args.until)?, choice })
}

fn check_output(output: Option<&Path>) -> Result<(), String> {
    match output {
        None if io::stdout().is_terminal() => {
            Err("a binary log is nothing for a terminal: write it to a file with --output, \
                                                   or pipe it on, as binlogd cat … | mysqlbinlog -"
                .to_owned())
        }
        Some(path) => output_file::check(path),
        None => Ok(()),
    }
}

fn cat(args: &CatArgs, request: &Request, copied: &Copied) -> Result<(), NoCut> {
    let mut heard = Heard::of(&copied.name, false);
    let span = Span::find(copied, request, &mut |bytes, of| heard.hear(Event::Walked { bytes, of }));
    heard.clear();
    let span = span?;
    match &args.output {
        Some(path) => {
            whole_file(path, NoCut::Write, |file| write(copied, request, &span, file, &mut |_| ()))?;
        }
        None => write(copied, request, &span, &mut io::stdout().lock(), &mut |_| ())?,
    }
    say(&span);
    Ok(())
}

/// Says on standard error what was written; standard output has the log.
fn say(span: &Span) {
    let Counts { taken, bytes, mixed, unjudged, left_out, incidents } = span.counts;
    errln!("first: {}", style::clean(&span.first.to_string()));
    errln!("last:  {}", style::clean(&span.last.to_string()));
    errln!("written: {}, {}", units::counted(taken, "transaction"), units::bytes(bytes));
    if left_out > 0 {
        errln!("left out, because not asked for: {}", units::counted(left_out, "transaction"));
    }
    if mixed > 0 {
        errln!(
            "note: {} of those that were written change other tables too: a transaction is written whole",
            units::count(mixed)
        );
    }
    if unjudged > 0 {
        errln!(
            "note: {} more were written although nobody can tell whether they change what is asked for: statements, definitions \
             without a table, the second half of an XA transaction, or what is too large to be opened",
            units::count(unjudged)
        );
    }
    if incidents > 0 {
        errln!(
            "warning: {} times the source itself says that events are missing (INCIDENT)",
            units::count(incidents)
        );
    }
    if !span.prepared.is_empty() {
        let shown: Vec<&str> = span.prepared.iter().take(PREPARED_SHOWN_MAX).map(String::as_str).collect();
        errln!(
            "warning: at the end {} XA transactions are prepared, and neither committed nor rolled back: {}",
            span.prepared.len(),
            style::clean(&shown.join(", "))
        );
    }
}
