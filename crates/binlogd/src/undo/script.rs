//! The script that takes transactions back, and its execution.

use super::inverse::{Inverse, Step};
use crate::own_session::{Purpose, SCRIPTED, prepare};
use std::fmt::Write;
use wire::{Connection, WireError};

/// Literals are read as they are written: zero dates and dates that are none are let in, 0 is no number to be counted up,
/// a backslash escapes, and what does not fit is an error. TIMESTAMP is in UTC, as in the log.
pub(crate) const SESSION: [&str; 5] = [
    SCRIPTED,
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "SET SESSION time_zone = '+00:00', foreign_key_checks = 1, unique_checks = 1",
    "START TRANSACTION",
];

/// A script.
#[derive(Debug)]
pub(crate) struct Script<'a> {
    /// What it takes back.
    pub(crate) inverse: &'a Inverse,
    /// The transactions, for the head: one line each.
    pub(crate) transactions: &'a [String],
}

/// One line of a comment.
fn comment(text: &str) -> String {
    let text: String = text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
    format!("-- {text}\n")
}

/// A statement that fails, and says which, where the one before has not changed exactly one row. Neither server has a condition
/// outside of a procedure; an XPath that is none is an error of both, with its text.
pub(crate) fn guard(number: usize, step: &Step) -> String {
    let warnings = match step.warnings {
        0 => String::new(),
        warnings => format!(" AND @@warning_count = {warnings}"),
    };
    format!("DO EXTRACTVALUE('<a/>', IF(ROW_COUNT() = 1{warnings}, '/a', '#undo {number}: not one row'))")
}

impl Script<'_> {
    /// Text for a person and for the `mysql` client.
    pub(crate) fn text(&self) -> String {
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
        (1..).zip(self.inverse.steps.iter().rev())
    }
}

/// Runs it in one transaction. Where it fails nothing is changed: the session ends, and the server rolls back.
///
/// # Errors
/// What the server says, and at which row.
pub(crate) fn apply(connection: &mut Connection, script: &Script<'_>) -> Result<(), String> {
    let said = |error: WireError| error.to_string();
    prepare(connection, Purpose::Client).map_err(|error| error.to_string())?;
    for statement in SESSION {
        connection.query(statement).map_err(said)?;
    }
    for (number, step) in script.statements() {
        let result = connection.query(&step.sql).and_then(|_| connection.query(&guard(number, step)));
        if let Err(error) = result {
            let rolled_back = connection.query("ROLLBACK").map(drop);
            let end = if rolled_back.is_ok() {
                "nothing was changed"
            } else {
                "the connection is lost, and nothing is committed"
            };
            return Err(format!("row {number}, which was {}: {error}; {end}", step.note));
        }
    }
    connection
        .query("COMMIT")
        .map(drop)
        .map_err(|error| format!("the COMMIT has no answer, look whether it is done: {error}"))
}
