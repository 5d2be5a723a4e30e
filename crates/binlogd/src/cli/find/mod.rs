//! `binlogd find DATA_DIR`: the transactions of a copy that are asked for.

pub(in crate::cli) mod answer;

use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::{style, units};
use crate::cli::args::search::SearchArgs;
use crate::cli::args::store::StoreArgs;
use crate::cli::find::answer::{Found, SourceAnswer, found, text};
use crate::cli::opened::searched::{choose, tell_error};
use clap::Args;
use codec::gtid::TransactionId;
use jiff::tz::TimeZone;
use points::criteria::Criteria;
use points::search::Searched;
use points::transaction::Transaction;
use repair::searched::SearchedSource;
use serde::Serialize;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `binlogd find`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
All that is given must hold: --table shop.orders --kind delete finds what deleted rows of that table. Of several --table, --kind \
or GTIDs one must hold. Sealed files are searched by their search indexes, which are made where there are none; those of an archive by the indexes there. \
binlogd may run on the folder meanwhile.

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
    #[command(flatten)]
    search: SearchArgs,
    /// Stop after so many; 0 for none
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
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
    let chosen = args.search.criteria(&zone).and_then(|criteria| {
        Ok((criteria, choose(&args.data_dir, &args.store, args.search.timeline.as_deref())?))
    });
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
            "note: of {} more nobody can tell: their rows cannot be counted, a part is too large to be opened, or \
             no event names their connection",
            units::counted(unknown, "transaction")
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
        let mut seen: HashMap<TransactionId, &str> = HashMap::new();
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
                    let mut one = found(&timeline.name, &file.name, transaction, zone);
                    if let Some(id) = transaction.id.filter(|_| source.timelines.len() > 1) {
                        let first = *seen.entry(id).or_insert(&timeline.name);
                        one.found_before = (first != timeline.name).then(|| first.to_owned());
                    }
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
                        let error = file.failed(timeline, &error);
                        tell_error(&error);
                        answer.errors.push(error);
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
