//! `binlogd row DATA_DIR SCHEMA.TABLE`: what a row was, and who changed it, by the log alone.

mod args;
mod json;
mod page;

use super::args::past::Asked;
use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::style;
pub(super) use args::RowArgs;
use past::{Key, Line, Request};
use std::process::ExitCode;

/// Runs `binlogd row`.
pub(super) fn execute(args: &RowArgs) -> ExitCode {
    let mut asked = match args.past.asked() {
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

/// True when the log tells all of it.
fn answer(args: &RowArgs, asked: &mut Asked) -> Result<bool, String> {
    let line = Line::of(&asked.source, args.past.timeline.as_deref())?;
    let key = Key::given(&args.key);
    let request = Request { line: &line, table: &asked.table, key: &key, at: &asked.at };
    let row = format!("{} {}, {}", asked.table, key.text(), asked.at);
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
