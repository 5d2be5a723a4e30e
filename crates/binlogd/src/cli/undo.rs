//! `binlogd undo DATA_DIR`: the inverse of row transactions, as a script, or applied.

use super::confirm::confirmed;
use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::heard::Heard;
use super::search_args::SearchArgs;
use super::searched::{choose, definitions, tell_error};
use super::server_flags::ServerFlags;
use super::show::connect;
use super::store_args::StoreArgs;
use super::{style, units};
use clap::Args;
use clap::builder::UnknownArgumentValueParser;
use jiff::tz::TimeZone;
use repair::Event;
use repair::detail::Known;
use repair::undo::{NotTakenBack, Request, Rows, TakingBack, apply};
use std::path::PathBuf;
use std::process::ExitCode;
use wire::{Connection, Secret};

const FIND_HINT: &str = "write the options of binlogd find by themselves, as: binlogd undo DATA_DIR --table shop.orders --kind delete";

/// The arguments of `binlogd undo`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
What is taken back is asked for as with binlogd find: all transactions that are found, whole, the last first. Look at them with binlogd \
show. The script is one transaction: each statement names the whole row as it was left, and where there is not exactly one such row the \
script stops and nothing is changed. With --into binlogd runs it there, after a question, and looks first, without a lock, whether each row \
is as it was left: --plan only looks, --leave-out-changed takes back the others.

Refused are definitions (DDL), statements in the place of rows, rows that the log has not in full (binlog_row_image other than FULL, \
partial JSON), rows behind which a statement may have changed the columns of their table, GTIDs that the copy does not have, and, where a \
server is asked, tables with triggers, without transactions, and with foreign keys whose work does not stand in the log or would be done anew.

  binlogd undo /var/lib/binlogd --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 > undo.sql
  binlogd undo /var/lib/binlogd --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 --into mysql://root@db1

Exit codes: 0 the script was printed, or applied, or --plan found every row as it was left, 1 a problem, or it is refused, 2 the command \
line is wrong.")]
pub(super) struct UndoArgs {
    /// Folder of the copies: the data_dir of the configuration; or an archive, as s3://bucket/prefix
    #[arg(value_name = "DATA_DIR|URL")]
    data_dir: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    search: SearchArgs,
    /// None of ours: who expects an option for a search is told how to ask.
    #[arg(
        long,
        hide = true,
        num_args = 0,
        default_missing_value = "",
        value_parser = UnknownArgumentValueParser::suggest(FIND_HINT)
    )]
    find: Option<String>,
    /// Refuse more transactions than so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// A server to ask for columns that the log does not name, and for triggers and foreign keys: mysql://user@host:port
    #[arg(long, value_name = "URL", conflicts_with = "into")]
    schema: Option<Secret>,
    /// Apply it to this server, in one transaction: mysql://user@host:port
    #[arg(long, value_name = "URL")]
    into: Option<Secret>,
    /// The columns of the tables were as they are on that server now: take their names without proof
    #[arg(long)]
    columns_as_now: bool,
    /// Say which rows are not as these transactions left them, and change nothing; with --into or --schema
    #[arg(long)]
    plan: bool,
    /// Take back only the rows that are as these transactions left them, and list the others; with --into or --schema
    #[arg(long, conflicts_with = "plan")]
    leave_out_changed: bool,
    #[command(flatten)]
    server: ServerFlags,
    /// Take back what is there where the copy does not have all of the GTIDs that --gtid names
    #[arg(long)]
    missing_ok: bool,
    /// With --into: do not ask
    #[arg(long, requires = "into")]
    yes: bool,
}

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
