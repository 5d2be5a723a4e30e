//! `binlogd find DATA_DIR`: the transactions of a copy that are asked for.

use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::find_answer::{Found, SourceAnswer, found, text};
use super::searched::{SearchedSource, choose};
use super::store_args::StoreArgs;
use super::{style, time_range, units};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use points::criteria::Criteria;
use points::effects::Effects;
use points::glob::TableGlob;
use points::search::Searched;
use points::transaction::Transaction;
use points::wanted_gtids::WantedGtids;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `binlogd find`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
All that is given must hold: --table shop.orders --kind delete finds what deleted rows of that table. Of several --table, --kind \
or GTIDs one must hold. Sealed files are searched by their search indexes, which are made where there are none. binlogd may run \
on the folder meanwhile.

A time is that of the commit where the log has it (MySQL 8.0.1 and later); otherwise it is the second in which the transaction's \
last statement began, and is shown without microseconds.

  binlogd find /var/lib/binlogd --kind drop --kind truncate
  binlogd find /var/lib/binlogd --table 'shop.ord*' --kind delete --min-rows 1000 --time '2026-03-01 15:00..2026-03-01 15:20'

Exit codes: 0 something was found, 1 nothing was, or not everything could be searched, 2 the command line is wrong.")]
pub(super) struct FindArgs {
    /// Folder of the copies: the data_dir of the configuration; or an archive, as s3://bucket/prefix
    #[arg(value_name = "DATA_DIR|URL")]
    data_dir: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
    /// This timeline only: its number, or the name of its folder
    #[arg(long, value_name = "N")]
    timeline: Option<String>,
    /// With one of these GTIDs: a set of MySQL, or GTIDs of MariaDB with commas between
    #[arg(long, value_name = "SET")]
    gtid: Option<String>,
    /// Committed from A on and before B; either may be left out. A time without a zone is local
    #[arg(long, value_name = "A..B")]
    time: Option<String>,
    /// That changes this table; * and ? stand for any characters
    #[arg(long, value_name = "SCHEMA.TABLE")]
    table: Vec<String>,
    /// That does this
    #[arg(long, value_enum)]
    kind: Vec<KindArg>,
    /// Of so many rows at least
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    min_rows: u64,
    /// Of so many bytes in the log at least
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true)]
    min_bytes: u64,
    /// Made by this connection (the thread's id)
    #[arg(long, value_name = "ID")]
    thread: Option<u32>,
    /// With this text in a statement, or in the statement that its rows were made by; in any case
    #[arg(long)]
    text: Option<String>,
    /// Stop after so many; 0 for none
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a transaction may be asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindArg {
    /// Rows deleted
    Delete,
    /// Rows updated
    Update,
    /// Rows inserted
    Insert,
    /// A definition changed
    Ddl,
    /// A table emptied
    Truncate,
    /// A table, schema or anything else dropped
    Drop,
}

impl KindArg {
    fn effect(self) -> Effects {
        match self {
            KindArg::Delete => Effects::DELETE,
            KindArg::Update => Effects::UPDATE,
            KindArg::Insert => Effects::INSERT,
            KindArg::Ddl => Effects::DDL,
            KindArg::Truncate => Effects::TRUNCATE,
            KindArg::Drop => Effects::DROP,
        }
    }
}

/// The whole answer in JSON.
#[derive(Debug, Serialize)]
struct Answer {
    /// Version of the binlogd that looked.
    binlogd_version: &'static str,
    /// Everything was searched, and nothing is left out by --limit.
    complete: bool,
    /// One entry a source.
    sources: Vec<SourceAnswer>,
}

/// Runs `binlogd find`.
pub(super) fn execute(args: &FindArgs) -> ExitCode {
    let zone = TimeZone::system();
    let chosen = criteria(args, &zone)
        .and_then(|criteria| Ok((criteria, choose(&args.data_dir, &args.store, args.timeline.as_deref())?)));
    let (criteria, sources) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return usage_error(&error),
    };
    let mut find = Find { args, criteria, zone, count: 0, is_enough: false, failed: false };
    let mut answers = Vec::new();
    for source in &sources {
        answers.push(find.source(source));
    }
    let unknown: u64 = answers.iter().map(|answer| answer.undecided).sum();
    if unknown > 0 {
        errln!(
            "note: of {} more transactions nobody can tell: their rows cannot be counted, a part is too large to be opened, or \
             no event names their connection",
            units::count(unknown)
        );
    }
    if find.is_enough {
        errln!("note: stopped after {}; there may be more: --limit 0 shows all", units::count(args.limit));
    }
    if args.json {
        let answer = Answer {
            binlogd_version: env!("CARGO_PKG_VERSION"),
            complete: !find.failed && !find.is_enough,
            sources: answers,
        };
        let text = serde_json::to_string_pretty(&answer).expect("an answer is plain data") + "\n";
        let _: ExitCode = print_result(&text);
    } else if find.count == 0 && !find.failed {
        outln!("nothing was found");
    }
    ExitCode::from(if find.failed || find.count == 0 { EXIT_PROBLEM } else { EXIT_OK })
}

/// What is searched for, or what is wrong with the command line.
fn criteria(args: &FindArgs, zone: &TimeZone) -> Result<Criteria, String> {
    let range = args.time.as_ref().map(|text| time_range::parse(text, zone)).transpose()?;
    let gtids = args.gtid.as_ref().map(|text| WantedGtids::parse(text)).transpose();
    let tables: Result<Vec<TableGlob>, _> = args.table.iter().map(|text| TableGlob::parse(text)).collect();
    let mut kinds = Effects::NONE;
    args.kind.iter().for_each(|kind| kinds |= kind.effect());
    if args.text.as_ref().is_some_and(String::is_empty) {
        return Err("--text is empty: give the text that the statement holds".to_owned());
    }
    Ok(Criteria {
        gtids: gtids.map_err(|error| format!("--gtid: {error}"))?,
        from: range.and_then(|range| range.from),
        until: range.and_then(|range| range.until),
        tables: tables.map_err(|error| format!("--table: {error}"))?,
        kinds,
        min_rows: args.min_rows,
        min_bytes: args.min_bytes,
        thread: args.thread,
        text: args.text.as_ref().map(|text| text.to_ascii_lowercase().into_bytes()),
    })
}

struct Find<'a> {
    args: &'a FindArgs,
    criteria: Criteria,
    zone: TimeZone,
    count: u64,
    is_enough: bool,
    failed: bool,
}

impl Find<'_> {
    fn source(&mut self, source: &SearchedSource) -> SourceAnswer {
        let mut answer = SourceAnswer::of(&source.name);
        let mut is_named = false;
        for timeline in &source.timelines {
            for file in &timeline.files {
                if self.is_enough {
                    return answer;
                }
                let mut transactions = Vec::new();
                let (count, limit, json, zone) =
                    (&mut self.count, self.args.limit, self.args.json, &self.zone);
                let mut sink = |transaction: &Transaction| {
                    if limit != 0 && *count >= limit {
                        return false;
                    }
                    *count += 1;
                    let one = found(&timeline.name, &file.name, transaction, zone);
                    if json {
                        transactions.push(one);
                    } else {
                        show(&source.name, &mut is_named, &one);
                    }
                    true
                };
                let searched = file.search(&self.criteria, &mut sink);
                answer.transactions.append(&mut transactions);
                answer.files += 1;
                match searched {
                    Ok(Some(searched)) => self.add(&mut answer, &searched),
                    Ok(None) => answer.files -= 1,
                    Err(error) => {
                        self.failed = true;
                        answer.errors.push(file.tell(timeline, &error));
                    }
                }
            }
        }
        answer
    }

    fn add(&mut self, answer: &mut SourceAnswer, searched: &Searched) {
        self.is_enough |= searched.is_enough;
        answer.files_by_index += u64::from(searched.had_index);
        answer.bytes_read += searched.walked;
        answer.undecided += searched.unknown;
    }
}

fn show(source: &str, is_named: &mut bool, found: &Found) {
    if !std::mem::replace(is_named, true) {
        outln!("{}", style::clean(source));
    }
    outln!("{}", text(found));
}
