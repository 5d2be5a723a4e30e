//! `binlogd restore --table shop.orders --as shop.orders_restored`: one table, or several, on a server in use.

use super::args::RestoreArgs;
use super::shown::until;
use crate::cli::args::store::is_url;
use crate::cli::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use crate::cli::opened::history::OpenedHistory;
use crate::cli::{style, units};
use backup::table::{Answer, Origin, Wanted, restore};
use points::table::TableName;
use repair::history::{Shown, Until};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wire::ConnectOptions;

/// Runs it.
pub(super) fn execute(args: &RestoreArgs) -> ExitCode {
    let asked = pairs(args).and_then(|pairs| {
        let until = until(args)?;
        let into = args.server.options("--into", "the server on which the tables are made", &args.into)?;
        let Some(url) = args.from.to_str().filter(|from| is_url(from)) else {
            return Err(
                "a table comes from a backup: name the archive with --from, as s3://bucket/prefix".to_owned()
            );
        };
        Ok((pairs, until, into, url))
    });
    let (pairs, until, into, url) = match asked {
        Ok(asked) => asked,
        Err(error) => return usage_error(&error),
    };
    match restored(args, &until, pairs, &into, url) {
        Ok(answer) => {
            tell(&answer, &format!("{}:{}", into.host, into.port));
            ExitCode::from(EXIT_OK)
        }
        Err(error) => {
            for line in error.lines() {
                errln!("error: {}", style::clean(line));
            }
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

/// `--table a.b --as c.d`, pair by pair.
fn pairs(args: &RestoreArgs) -> Result<Vec<(TableName, TableName)>, String> {
    if args.table.len() != args.names.len() {
        return Err(
            "each --table needs a name of its own on the target: --as SCHEMA.TABLE, in the same order"
                .to_owned(),
        );
    }
    let name = |flag: &str, text: &String| {
        let plain = text.replace('`', "");
        match plain.split_once('.') {
            Some((schema, table)) if !schema.is_empty() && !table.is_empty() => {
                Ok(TableName { schema: schema.to_owned(), table: table.to_owned() })
            }
            _ => Err(format!("{flag} {text:?} is no table: write SCHEMA.TABLE, as shop.orders")),
        }
    };
    let both = args.table.iter().zip(&args.names);
    both.map(|(table, other)| Ok((name("--table", table)?, name("--as", other)?))).collect()
}

fn restored(
    args: &RestoreArgs,
    until: &Until,
    pairs: Vec<(TableName, TableName)>,
    into: &ConnectOptions,
    url: &str,
) -> Result<Answer, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let from = OpenedHistory::open(&args.from, &args.store, args.work.as_deref(), args.timeline.as_deref())?;
    let opened = args.store.open(url).map_err(|error| format!("{error:#}"))?;
    let source = opened.sources.first().ok_or("the archive has no source")?;
    let mut chain = opened.reader.chain(source).map_err(|error| text(&error))?;
    chain.check_whole(&*opened.reader.store).map_err(|error| text(&error))?;
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, is_over.clone()).map_err(|error| text(&error))?;
    }
    let wanted = Wanted { pairs, until, into, accept: &args.accept, is_plan: args.plan };
    let origin = Origin { reader: &opened.reader, history: chain.history(), copied: &from.copied };
    restore(&wanted, &origin, &is_over, &|step| outln!("{}", style::clean(step)))
}

fn tell(answer: &Answer, host: &str) {
    let shown = |shown: &Option<Shown>, none: &str| {
        style::clean(&shown.as_ref().map_or_else(|| none.to_owned(), ToString::to_string))
    };
    outln!("  last before the point:   {}", shown(&answer.last, "nothing; the tables are as in the backup"));
    outln!("  first that is left out:  {}", shown(&answer.first_left_out, "nothing; the log ends there"));
    outln!("to apply: {} concern the tables", units::counted(answer.concerned, "transaction"));
    for made in &answer.made {
        let table = style::clean(&made.table.to_string());
        outln!(
            "{table} is on {host} as {}; rows: {}, CHECKSUM TABLE: {}",
            style::clean(&made.name.to_string()),
            made.rows,
            made.checksum
        );
        for key in &made.foreign_keys {
            outln!("  left out: foreign key {}", style::clean(key));
        }
    }
    for trigger in &answer.triggers {
        outln!("  left out: trigger {}", style::clean(trigger));
    }
    if !answer.made.is_empty() {
        outln!(
            "compared: the SHA-256 of backup {} with the archive's; applied: {} and {} of {}; with a row that was missing or there already it would \
             have ended",
            answer.backup,
            units::counted(answer.applied.row_events, "row event"),
            units::counted(answer.applied.definitions, "definition"),
            units::counted(answer.applied.transactions, "transaction"),
        );
    }
}
