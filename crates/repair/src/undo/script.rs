//! The script that takes transactions back, and its execution.

use super::inverse::{Inverse, Step};
use source::own_session::{Purpose, SCRIPTED, prepare};
use std::fmt::Write;
use std::time::Duration;
use wire::{Connection, WireError};

/// Literals are read as they are written: zero dates and dates that are none are let in, 0 is no number to be counted up,
/// a backslash escapes, and what does not fit is an error. TIMESTAMP is in UTC, as in the log.
pub const SESSION: [&str; 5] = [
    SCRIPTED,
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "SET SESSION time_zone = '+00:00', foreign_key_checks = 1, unique_checks = 1",
    "START TRANSACTION",
];

/// So long a server may take for a batch of statements: it waits for locks, and reads tables without a key.
const SERVER_TIME_MAX: Duration = Duration::from_secs(3600);

/// So many rows are taken back in one packet.
const ROWS_AT_ONCE: usize = 100;

/// A script.
#[derive(Debug)]
pub struct Script<'a> {
    /// What it takes back.
    pub inverse: &'a Inverse,
    /// The transactions, for the head: one line each.
    pub transactions: &'a [String],
    /// The rows that are left out, for the head: one line each.
    pub left_out: &'a [String],
}

/// One line of a comment.
fn comment(text: &str) -> String {
    let text: String = text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
    format!("-- {text}\n")
}

/// A statement that fails, and says which, where the one before has not changed exactly one row. Neither server has a condition
/// outside of a procedure; an XPath that is none is an error of both, with its text.
pub fn guard(number: usize, step: &Step) -> String {
    let warnings = match step.warnings {
        0 => String::new(),
        warnings => format!(" AND @@warning_count = {warnings}"),
    };
    format!("DO EXTRACTVALUE('<a/>', IF(ROW_COUNT() = 1{warnings}, '/a', '#undo {number}: not one row'))")
}

impl Script<'_> {
    /// Text for a person and for the `mysql` client.
    pub fn text(&self) -> String {
        let mut text = String::new();
        text.push_str(&comment("binlogd undo: takes these transactions back, the last first"));
        for transaction in self.transactions {
            text.push_str(&comment(&format!("  {transaction}")));
        }
        text.push_str(&comment("Read it before you run it: mysql --binary-mode < FILE. It is one transaction, and stops at the first row"));
        text.push_str(&comment(
            "that is not as these transactions left it; then nothing is changed. Do not run it with --force.",
        ));
        if self.inverse.is_unasked {
            text.push_str(&comment("No server was asked (--schema): rows that a foreign key changed by CASCADE may not stand in the log,"));
            text.push_str(&comment(
                "triggers would fire, and columns that the server computes cannot be told from others.",
            ));
        }
        for doubt in &self.inverse.doubts {
            text.push_str(&comment(&format!(
                "{doubt}: whether its columns are the same still, --schema compares."
            )));
        }
        if !self.left_out.is_empty() {
            text.push_str(&comment("Left out, because they are not as these transactions left them:"));
            self.left_out.iter().for_each(|row| text.push_str(&comment(&format!("  {row}"))));
        }
        for statement in SESSION {
            let _ = writeln!(text, "{statement};");
        }
        for sequence in &self.inverse.sequences {
            text.push_str(&comment(&format!("The numbers of the sequence {sequence} are not given back.")));
        }
        for (number, step) in self.statements() {
            let note = comment(&format!("{number}: {}", step.note));
            let _ = write!(text, "\n{note}{};\n{};\n", step.sql, guard(number, step));
        }
        text.push_str("\nCOMMIT;\n");
        text
    }

    /// From the last row to the first, with numbers.
    fn statements(&self) -> impl Iterator<Item = (usize, &Step)> {
        (1..).zip(self.inverse.in_order())
    }
}

/// Sets what the statements depend on, and gives the one that begins the transaction.
///
/// # Errors
/// As the server says.
pub(super) fn begin_session(connection: &mut Connection) -> Result<&'static str, String> {
    connection.set_timeout(SERVER_TIME_MAX);
    prepare(connection, Purpose::Client).map_err(|error| error.to_string())?;
    let [sets @ .., begin] = &SESSION;
    sets.iter().try_for_each(|set| connection.query(set).map(drop)).map_err(|error| error.to_string())?;
    Ok(*begin)
}

/// Runs it in one transaction. Where it fails nothing is changed: the session ends, and the server rolls back.
///
/// # Errors
/// What the server says, and at which row.
pub fn apply(connection: &mut Connection, script: &Script<'_>) -> Result<(), String> {
    let said = |error: WireError| error.to_string();
    let (begin, bytes_at_once) = (begin_session(connection)?, script.inverse.bytes_at_once());
    connection.allow_several_statements().map_err(said)?;
    connection.query(begin).map_err(said)?;
    let mut rest = script.statements().peekable();
    while rest.peek().is_some() {
        let (mut batch, mut sql) = (Vec::new(), String::new());
        while let Some((number, step)) = rest.next_if(|(_, step)| {
            batch.is_empty() || batch.len() < ROWS_AT_ONCE && sql.len() + step.sql.len() <= bytes_at_once
        }) {
            let _ = write!(sql, "{};{};", step.sql, guard(number, step));
            batch.push((number, step));
        }
        let mut done = 0;
        let result =
            connection.query_several(sql.trim_end_matches(';').as_bytes(), 2 * batch.len(), || done += 1);
        let Err(error) = result else { continue };
        let end = match connection.query("ROLLBACK") {
            Ok(_) => "nothing was changed",
            Err(_) => "the connection is lost, and nothing is committed",
        };
        let is_guard = done % 2 == 1 && error.to_string().contains("#undo");
        let why = if is_guard { CHANGED.to_owned() } else { error.to_string() };
        let row = batch.get(done / 2).map_or_else(String::new, |(number, step)| shown(*number, step));
        return Err(format!("{row}: {why}; {end}"));
    }
    connection
        .query("COMMIT")
        .map(drop)
        .map_err(|error| format!("the COMMIT has no answer, look whether it is done: {error}"))
}

/// What is wrong with a row that is another one now.
const CHANGED: &str = "it is not as these transactions left it";

/// A row for a person, with its number from 1 on.
pub(super) fn shown(number: usize, step: &Step) -> String {
    format!("row {number}, which was {}", step.note)
}
