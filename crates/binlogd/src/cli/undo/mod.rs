//! `binlogd undo DATA_DIR`: the inverse of row transactions, as a script, or applied.

mod args;

use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::opened::searched::{choose, definitions, tell_error};
use super::show::connect;
use super::terminal::confirm::confirmed;
use super::terminal::heard::Heard;
use super::{style, units};
pub(super) use args::UndoArgs;
use jiff::tz::TimeZone;
use repair::Event;
use repair::detail::Known;
use repair::undo::{NotTakenBack, Request, Rows, TakingBack, apply};
use std::process::ExitCode;
use wire::Connection;

/// Runs `binlogd undo`.
pub(super) fn execute(args: &UndoArgs) -> ExitCode {
    match undo(args) {
        Ok(code) => code,
        Err(error) => {
            for line in error.lines() {
                errln!("error: {}", style::clean(line));
            }
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

fn undo(args: &UndoArgs) -> Result<ExitCode, String> {
    let zone = TimeZone::system();
    let (url, argument) = match &args.into {
        Some(into) => (Some(into), "--into"),
        None => (args.schema.as_ref(), "--schema"),
    };
    let chosen = args.search.criteria(&zone).and_then(|criteria| {
        if !args.search.is_any() {
            return Err(
                "say what is to be taken back: --gtid SET, or other options of binlogd find".to_owned()
            );
        }
        if url.is_none() && (args.plan || args.leave_out_changed) {
            return Err("--plan and --leave-out-changed ask a server: give --into or --schema".to_owned());
        }
        Ok((criteria, choose(&args.data_dir, &args.store, args.search.timeline.as_deref())?))
    });
    let (criteria, sources) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return Ok(usage_error(&error)),
    };
    if sources.len() > 1 {
        return Ok(usage_error(&"there are several sources: choose one with --source"));
    }
    let connection = connect(url, &args.server, argument)?;
    let mut known = Known::new(connection, definitions(&args.data_dir, &args.store)?, args.columns_as_now);
    let rows = match (args.plan, args.leave_out_changed, &args.into) {
        (true, ..) => Rows::Told,
        (_, true, _) => Rows::LeftOut,
        (.., Some(_)) => Rows::Refused,
        (.., None) => Rows::NotLookedAt,
    };
    let request =
        Request { sources: &sources, criteria, limit: args.limit, missing_ok: args.missing_ok, rows };
    let hear = &mut |event: Event<'_>| Heard::of(argument, false).hear(event);
    let found = TakingBack::find(&request, &mut known, hear).map_err(|error| match error {
        NotTakenBack::Server(error) => format!("{argument}: {error}"),
        error => {
            if let NotTakenBack::Searched(errors) = &error {
                errors.iter().for_each(|error| tell_error(error));
            }
            error.to_string()
        }
    })?;
    if args.plan {
        return Ok(tell_plan(&found));
    }
    match known.connection().filter(|_| args.into.is_some()) {
        Some(server) => run(server, &found, args.yes),
        None => Ok(print_result(&found.script().text())),
    }
}

/// Says what --plan has found.
fn tell_plan(found: &TakingBack) -> ExitCode {
    let as_left = units::count((found.rows_looked_at - found.changed.len()) as u64);
    let others = units::count(found.changed.len() as u64);
    outln!("rows as these transactions left them: {as_left}, others: {others}; nothing was changed");
    found.changed.iter().for_each(|row| outln!("  {}", style::clean(row)));
    ExitCode::from(if found.changed.is_empty() { EXIT_OK } else { EXIT_PROBLEM })
}

/// Runs it there, after a question.
fn run(server: &mut Connection, found: &TakingBack, yes: bool) -> Result<ExitCode, String> {
    for transaction in &found.transactions {
        outln!("{}", style::clean(transaction));
    }
    for (schema, table) in found.tables() {
        outln!("  {}", style::clean(&format!("{schema}.{table}")));
    }
    let rows = units::counted(found.rows() as u64, "row");
    if !found.changed.is_empty() {
        let count = units::count(found.changed.len() as u64);
        outln!("left out, because they are not as these transactions left them: {count}");
        found.changed.iter().for_each(|row| outln!("  {}", style::clean(row)));
    }
    if !yes {
        let question = format!("Take back {rows} there?");
        if !confirmed(&question, "the script, without --into but with --schema")? {
            outln!("nothing was changed");
            return Ok(ExitCode::from(EXIT_PROBLEM));
        }
    }
    apply(server, &found.script())?;
    outln!("taken back: {rows}; each was as these transactions had left it");
    Ok(ExitCode::from(EXIT_OK))
}
