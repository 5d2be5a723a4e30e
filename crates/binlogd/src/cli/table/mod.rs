//! `binlogd table DATA_DIR SCHEMA.TABLE`: all rows of a small table at a point, by the log alone.

use super::args::output_file::{self, whole_file};
use super::args::past::{Asked, PastArgs};
use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::{style, units};
use clap::{Args, ValueEnum};
use past::{Contents, Line, TableRequest};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `binlogd table`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Nothing is restored, and no backup is read: the log is followed from where it knows that the table had no row (CREATE TABLE, TRUNCATE, CREATE \
DATABASE) to the point. Where it does not have that, or something that it cannot follow stands between, nothing is written, and the reason is told: \
binlogd restore --table makes the table of a backup and the log then. Its rows must fit in 256 MiB of memory.

Names of columns stand in the log with binlog_row_metadata = FULL; otherwise --schema asks a server. Rows stand in the order of the primary key. \
CSV is that of RFC 4180, in UTF-8 with a line of names: NULL is \\N without quotes, an empty text is \"\", bytes are 0x…, TIMESTAMP is in UTC. SQL is \
INSERT statements that name the columns and not the schema, for a table that you make.

  binlogd table /var/lib/binlogd shop.orders --at '2026-03-01 15:09' > orders.csv
  binlogd table /var/lib/binlogd shop.orders --at 'before DROP TABLE shop.orders' --to sql --output orders.sql

Exit codes: 0 all rows are written, 1 the log does not tell them, or there is a doubt, 2 the command line is wrong.")]
pub(crate) struct TableArgs {
    #[command(flatten)]
    past: PastArgs,
    /// How the rows are written
    #[arg(long, value_name = "csv|sql", value_enum, hide_possible_values = true, default_value = "csv")]
    to: To,
    /// Write to this file, which must not exist yet, and not to standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum To {
    Csv,
    Sql,
}

/// Runs `binlogd table`.
pub(super) fn execute(args: &TableArgs) -> ExitCode {
    let checked = args.output.as_deref().map_or(Ok(()), output_file::check);
    let mut asked = match checked.and_then(|()| args.past.asked()) {
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

/// True when there is no doubt.
fn answer(args: &TableArgs, asked: &mut Asked) -> Result<bool, String> {
    let line = Line::of(&asked.source, args.past.timeline.as_deref())?;
    let to = match args.to {
        To::Csv => past::To::Csv,
        To::Sql => past::To::Sql,
    };
    let request = TableRequest { line: &line, table: &asked.table, at: &asked.at, to };
    let contents = past::table(&request, &mut asked.known)?;
    let write = |out: &mut dyn Write| {
        let mut out = BufWriter::new(out);
        contents.write(&mut out).and_then(|()| out.flush())
    };
    let written = match &args.output {
        Some(path) => whole_file(path, |error| error, |file| write(file)),
        None => match write(&mut io::stdout().lock()) {
            // As `| head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        },
    };
    written.map_err(|error| format!("the rows cannot be written: {error}"))?;
    tell(&contents, &asked.at.to_string());
    Ok(contents.doubts.is_empty())
}

/// Says on standard error what was written; standard output has the rows.
fn tell(contents: &Contents, at: &str) {
    let told = |text: &str| errln!("{}", style::clean(text));
    told(&format!("{}, {at}: {}", contents.table, units::counted(contents.count(), "row")));
    told(&format!("empty at:    {}", contents.base));
    told(&format!("last change: {}", contents.last));
    let (changes, files) =
        (units::counted(contents.changes, "change"), units::counted(contents.files, "file"));
    told(&format!("followed:    {changes} of rows, through {files}"));
    if contents.is_unnamed() {
        told("note: it has no row, and the log has not named its columns since it was made");
    }
    contents.doubts.iter().for_each(|doubt| told(&format!("doubt: {doubt}")));
}
