//! The script that takes transactions back, and its execution.

use super::inverse::Inverse;
use std::fmt::Write;
use wire::{Connection, WireError};

/// Literals are read as they are written: zero dates and dates that are none are let in, 0 is no number to be counted up,
/// a backslash escapes, and what does not fit is an error. TIMESTAMP is in UTC, as in the log.
const SESSION: [&str; 4] = [
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
fn guard(number: usize) -> String {
    format!("DO EXTRACTVALUE('<a/>', IF(ROW_COUNT() = 1, '/a', '#undo {number}: not one row'))")
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
        for (number, (note, sql)) in self.statements() {
            let _ = write!(text, "\n{}{sql};\n{};\n", comment(&format!("{number}: {note}")), guard(number));
        }
        text.push_str("\nCOMMIT;\n");
        text
    }

    /// From the last row to the first, with numbers.
    fn statements(&self) -> impl Iterator<Item = (usize, &(String, String))> {
        (1..).zip(self.inverse.steps.iter().rev())
    }
}

/// Runs it in one transaction. Where it fails nothing is changed: the session ends, and the server rolls back.
///
/// # Errors
/// What the server says, and at which row.
pub(crate) fn apply(connection: &mut Connection, script: &Script<'_>) -> Result<(), String> {
    let said = |error: WireError| error.to_string();
    for statement in SESSION {
        connection.query(statement).map_err(said)?;
    }
    for (number, (note, sql)) in script.statements() {
        let result = connection.query(sql).and_then(|_| connection.query(&guard(number)));
        if let Err(error) = result {
            let rolled_back = connection.query("ROLLBACK").map(drop);
            let end = if rolled_back.is_ok() {
                "nothing was changed"
            } else {
                "the connection is lost, and nothing is committed"
            };
            return Err(format!("row {number}, which was {note}: {error}; {end}"));
        }
    }
    connection
        .query("COMMIT")
        .map(drop)
        .map_err(|error| format!("the COMMIT has no answer, look whether it is done: {error}"))
}
