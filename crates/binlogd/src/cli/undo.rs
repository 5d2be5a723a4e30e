//! `binlogd undo DATA_DIR`: the inverse of row transactions, as a script, or applied.

use super::confirm::confirmed;
use super::definitions::definitions;
use super::each_found::each_found;
use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::search_args::SearchArgs;
use super::searched::{SearchedSource, choose};
use super::server_flags::ServerFlags;
use super::show::connect;
use super::store_args::StoreArgs;
use super::{style, units};
use clap::Args;
use clap::builder::UnknownArgumentValueParser;
use codec::ServerKind;
use codec::gtid::TransactionId;
use jiff::tz::TimeZone;
use points::criteria::Criteria;
use repair::detail::{Known, Place, each_part};
use repair::undo::{Inverse, Script, apply, changed, objections, shown};
use std::collections::HashSet;
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

/// What is to be taken back.
#[derive(Default)]
struct Gathered {
    inverse: Option<Inverse>,
    transactions: Vec<String>,
    seen: HashSet<TransactionId>,
}

const NOT_THERE: &str = "the copy does not have";

/// The GTIDs that are asked for and stand nowhere, in words.
fn missing(
    sources: &[SearchedSource],
    criteria: Criteria,
    seen: &mut HashSet<TransactionId>,
) -> Result<Option<String>, String> {
    let Some(wanted) = criteria.gtids else { return Ok(None) };
    if wanted.not_among(seen.iter()).is_none() {
        return Ok(None);
    }
    // What the other options leave out is there.
    let any = Criteria { gtids: Some(wanted.clone()), ..Criteria::default() };
    let outcome = each_found(sources, &any, 0, &mut |_, transaction| seen.extend(transaction.id));
    if outcome.failed {
        return Err("not everything could be searched: nothing is taken back".to_owned());
    }
    Ok(wanted.not_among(seen.iter()))
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
    let mut all = gathered(args, &sources, &criteria, &mut known, argument)?;
    let missing = if args.missing_ok { None } else { missing(&sources, criteria, &mut all.seen)? };
    let Some(mut inverse) = all.inverse else {
        let missing = missing.map_or_else(String::new, |gtids| format!(": {NOT_THERE} {gtids}"));
        return Err(format!("nothing was found{missing}"));
    };
    if let Some(gtids) = missing {
        inverse.refuse(format!("{NOT_THERE} {gtids} (--missing-ok takes back the others)"));
    }
    if let Some(server) = known.connection() {
        let objections =
            objections(server, &inverse.tables).map_err(|error| format!("{argument}: {error}"))?;
        objections.into_iter().for_each(|why| inverse.refuse(why));
    }
    let refusals: Vec<&str> = inverse.refusals().collect();
    if !refusals.is_empty() {
        return Err(format!("refused, nothing is taken back:\n{}", refusals.join("\n")));
    }
    if let Some(sequence) = inverse.sequences.iter().next().filter(|_| inverse.rows() == 0) {
        return Err(format!(
            "refused, nothing is taken back: the numbers of the sequence {sequence} are not given back"
        ));
    }
    for doubt in &inverse.doubts {
        errln!("note: {}: whether its columns are the same still, --schema compares", style::clean(doubt));
    }
    for sequence in &inverse.sequences {
        errln!("note: the numbers of the sequence {} are not given back", style::clean(sequence));
    }
    if inverse.rows() == 0 {
        return Err("nothing is to be taken back: no rows were changed".to_owned());
    }
    let mut left_out = Vec::new();
    if args.into.is_some() || args.plan || args.leave_out_changed {
        let Some(server) = known.connection() else { return Err(format!("{argument}: there is no server")) };
        let changed = changed(server, &inverse).map_err(|error| format!("{argument}: {error}"))?;
        let all = (0..).zip(inverse.in_order()).filter(|(number, _)| changed.contains(number));
        left_out = all.map(|(number, step)| shown(number + 1, step)).collect();
        if args.plan {
            return Ok(tell_plan(inverse.rows(), &left_out));
        }
        if !left_out.is_empty() && !args.leave_out_changed {
            return Err(not_as_left(inverse.rows(), &left_out));
        }
        inverse.leave_out(&changed);
        if inverse.rows() == 0 {
            return Err("nothing is to be taken back: no row is as these transactions left it".to_owned());
        }
    }
    let script = Script { inverse: &inverse, transactions: &all.transactions, left_out: &left_out };
    match known.connection().filter(|_| args.into.is_some()) {
        Some(server) => run(server, &script, args.yes),
        None => Ok(print_result(&script.text())),
    }
}

/// Everything that is asked for, in the order of the log.
fn gathered(
    args: &UndoArgs,
    sources: &[SearchedSource],
    criteria: &Criteria,
    known: &mut Known,
    argument: &str,
) -> Result<Gathered, String> {
    let asked = known.connection().map(|server| server.server_kind());
    let packet = known.connection().map(|server| server.query("SELECT @@max_allowed_packet")).transpose();
    let packet = packet.map_err(|error| format!("{argument}: {error}"))?;
    let packet_bytes_max = packet.and_then(|answer| answer.first()?.parse().ok());
    let mut all = Gathered::default();
    let outcome = each_found(sources, criteria, args.limit, &mut |at, transaction| {
        let server = match transaction.id {
            Some(TransactionId::Mariadb(_)) => ServerKind::MariaDb,
            _ => ServerKind::MySql,
        };
        let inverse = all.inverse.get_or_insert_with(Inverse::default);
        inverse.packet_bytes_max = packet_bytes_max;
        if asked.is_some_and(|kind| kind != server) {
            inverse.refuse(format!("the server of {argument} is of another kind than the log"));
        }
        let name =
            transaction.id.map_or_else(|| "a transaction without a GTID".to_owned(), |id| id.to_string());
        if transaction.id.is_some_and(|id| !all.seen.insert(id)) {
            inverse.refuse(format!("{name} stands in the log twice: choose one with --timeline"));
        }
        if transaction.xid.is_some() {
            inverse.refuse(format!(
                "{name} is a half of an XA transaction, whose other half decides whether it counts"
            ));
        }
        let (timeline, file) = (&at.timeline.name, &at.searched.name);
        all.transactions.push(format!("{name}, {timeline}/{file} at {}", transaction.at));
        let place = Place::of(&at.timeline.name, &at.searched.name, transaction.at);
        known.is_at(&at.source.name, place, transaction.committed.micros.div_euclid(1_000_000));
        if let Err(error) = each_part(at.file, transaction, known, &mut |part| inverse.add(&part)) {
            inverse.refuse(format!("{name} cannot be read: {error}"));
        }
        inverse.end();
    });
    if outcome.failed {
        return Err("not everything could be searched: nothing is taken back".to_owned());
    }
    if outcome.is_enough {
        return Err(format!(
            "there are more than {}: --limit 0 takes all",
            units::counted(args.limit, "transaction")
        ));
    }
    outcome.tell(args.limit);
    Ok(all)
}

/// Says what --plan has found.
fn tell_plan(rows: usize, changed: &[String]) -> ExitCode {
    let (as_left, others) = (units::count((rows - changed.len()) as u64), units::count(changed.len() as u64));
    outln!("rows as these transactions left them: {as_left}, others: {others}; nothing was changed");
    changed.iter().for_each(|row| outln!("  {}", style::clean(row)));
    ExitCode::from(if changed.is_empty() { EXIT_OK } else { EXIT_PROBLEM })
}

/// Why nothing is done.
fn not_as_left(rows: usize, changed: &[String]) -> String {
    const ROWS_TOLD: usize = 20;
    let (rows, others) = (units::count(rows as u64), units::count(changed.len() as u64));
    let mut text = format!(
        "rows that are not as these transactions left them: {others} of {rows}; nothing was changed. --plan tells all of them, \
         --leave-out-changed takes back the others"
    );
    changed.iter().take(ROWS_TOLD).for_each(|row| text += &format!("\n{row}"));
    text
}

/// Runs it there, after a question.
fn run(server: &mut Connection, script: &Script<'_>, yes: bool) -> Result<ExitCode, String> {
    for transaction in script.transactions {
        outln!("{}", style::clean(transaction));
    }
    for (schema, table) in script.inverse.tables.keys() {
        outln!("  {}", style::clean(&format!("{schema}.{table}")));
    }
    let rows = units::counted(script.inverse.rows() as u64, "row");
    if !script.left_out.is_empty() {
        let count = units::count(script.left_out.len() as u64);
        outln!("left out, because they are not as these transactions left them: {count}");
        script.left_out.iter().for_each(|row| outln!("  {}", style::clean(row)));
    }
    if !yes {
        let question = format!("Take back {rows} there?");
        if !confirmed(&question, "the script, without --into but with --schema")? {
            outln!("nothing was changed");
            return Ok(ExitCode::from(EXIT_PROBLEM));
        }
    }
    apply(server, script)?;
    outln!("taken back: {rows}; each was as these transactions had left it");
    Ok(ExitCode::from(EXIT_OK))
}
