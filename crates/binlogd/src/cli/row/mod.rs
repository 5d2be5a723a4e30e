//! `binlogd row DATA_DIR SCHEMA.TABLE`: what a row was, and who changed it, by the log alone.

mod args;
mod json;
mod page;

use super::args::time_range;
use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::opened::searched::{choose, definitions};
use super::show::connect;
use super::style;
pub(super) use args::RowArgs;
use jiff::tz::TimeZone;
use past::{Key, Line, Request};
use points::table::TableName;
use repair::detail::Known;
use repair::history::Until;
use repair::searched::SearchedSource;
use std::process::ExitCode;

/// What is asked for.
struct Asked {
    sources: Vec<SearchedSource>,
    table: TableName,
    key: Key,
    at: Until,
    known: Known,
}

/// Runs `binlogd row`.
pub(super) fn execute(args: &RowArgs) -> ExitCode {
    let mut asked = match asked(args) {
        Ok(asked) => asked,
        Err(error) => return usage_error(&error),
    };
    match answer(args, &mut asked) {
        Ok(is_sure) => ExitCode::from(if is_sure { EXIT_OK } else { EXIT_PROBLEM }),
        Err(error) => {
            errln!("error: {}", style::clean(&error));
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

fn asked(args: &RowArgs) -> Result<Asked, String> {
    let zone = TimeZone::system();
    let at = Until::parse(&args.at, &|text| time_range::of_point(text, &zone))
        .map_err(|why| format!("--at: {why}"))?;
    let plain = args.table.replace('`', "");
    let Some((schema, table)) =
        plain.split_once('.').filter(|(schema, table)| !schema.is_empty() && !table.is_empty())
    else {
        return Err(format!("{:?} is no table: write SCHEMA.TABLE, as shop.orders", args.table));
    };
    let table = TableName { schema: schema.to_owned(), table: table.to_owned() };
    let sources = choose(&args.data_dir, &args.store, None)?;
    if sources.len() > 1 {
        return Err("there are several sources: choose one with --source".to_owned());
    }
    let known = match connect(args.schema.as_ref(), &args.server, "--schema")? {
        None => Known::default(),
        server => Known::new(server, definitions(&args.data_dir, &args.store)?, args.columns_as_now),
    };
    Ok(Asked { sources, table, key: Key::given(&args.key), at, known })
}

/// True when the log tells all of it.
fn answer(args: &RowArgs, asked: &mut Asked) -> Result<bool, String> {
    let source = asked.sources.first().ok_or("there is no source")?;
    let line = Line::of(source, args.timeline.as_deref())?;
    let request = Request { line: &line, table: &asked.table, key: &asked.key, at: &asked.at };
    let row = format!("{} {}, {}", asked.table, asked.key.text(), asked.at);
    let (is_sure, text) = if args.history {
        let history = past::history(&request, args.limit, &mut asked.known)?;
        let text = if args.json { json::history(&history) } else { page::history(&row, &history) };
        (history.doubts.is_empty(), text)
    } else {
        let answer = past::state(&request, &mut asked.known)?;
        let text = if args.json { json::state(&answer) } else { page::state(&row, &answer) };
        (answer.doubts.is_empty(), text)
    };
    let _: ExitCode = print_result(&text);
    Ok(is_sure)
}
