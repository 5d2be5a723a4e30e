//! A transaction on a terminal.

use super::super::{style, units};
use crate::cli::find::answer::{Found, heading};
use codec::event::RowChange;
use codec::rows::{Column, Image, Row, Value};
use repair::detail::{KnownTable, Part};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Longest value that is shown, in characters; --json has all of it.
const VALUE_CHARS_MAX: usize = 400;

/// Longest statement that is shown, in characters.
const STATEMENT_CHARS_MAX: usize = 4000;

/// Prints the parts of one transaction.
pub(super) struct Page {
    rows_max: u64,
    colored: bool,
    rows: u64,
    /// What the rows before were: of which table, and what was done.
    last: Option<(Rc<KnownTable>, RowChange)>,
    notes: BTreeSet<String>,
}

impl Page {
    pub(super) fn new(rows_max: u64, colored: bool) -> Page {
        Page { rows_max, colored, rows: 0, last: None, notes: BTreeSet::new() }
    }

    pub(super) fn heading(&self, found: &Found) {
        outln!("{}", style::paint(&heading(found), style::YELLOW, self.colored));
    }

    pub(super) fn add(&mut self, part: &Part<'_>) {
        match part {
            Part::Statement { schema, text, is_for_people, .. } => {
                self.statement(schema, text, *is_for_people)
            }
            Part::Row { table, change, row, .. } => self.row(table, *change, row),
            Part::Unknown(what) => {
                outln!(
                    "      {}",
                    style::paint(&style::clean(&format!("not shown: {what}")), style::RED, self.colored)
                );
            }
        }
    }

    fn statement(&mut self, schema: &str, text: &str, is_for_people: bool) {
        self.last = None;
        let text = cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), STATEMENT_CHARS_MAX);
        let before = match (is_for_people, schema.is_empty()) {
            (true, _) => "# ".to_owned(),
            (false, true) => String::new(),
            (false, false) => format!("[{schema}] "),
        };
        outln!("      {}", style::clean(&format!("{before}{text}")));
    }

    fn row(&mut self, table: &Rc<KnownTable>, change: RowChange, row: &Row<'_>) {
        self.rows += 1;
        if self.rows_max != 0 && self.rows > self.rows_max {
            return;
        }
        let is_same =
            self.last.as_ref().is_some_and(|(last, done)| Rc::ptr_eq(last, table) && *done == change);
        if !is_same {
            let (verb, color) = match change {
                RowChange::Written => ("INSERT", style::GREEN),
                RowChange::Updated => ("UPDATE", style::YELLOW),
                RowChange::Deleted => ("DELETE", style::RED),
            };
            let name = style::clean(&table.name());
            outln!("      {} {name}", style::paint(verb, color, self.colored));
            self.last = Some((table.clone(), change));
            self.note(table);
        }
        outln!("        {}", self.row_text(table, row));
    }

    fn note(&mut self, table: &KnownTable) {
        if let Some(note) = &table.note {
            self.notes.insert(note.clone());
        }
        if !table.has_names && table.note.is_none() {
            self.notes.insert(
                "the log does not name the columns: --schema mysql://… asks a server, and binlog_row_metadata = FULL on the source \
                 puts them into the log"
                    .to_owned(),
            );
        }
    }

    /// `id=5, total: 3.00 → 4.00`.
    fn row_text(&self, table: &KnownTable, row: &Row<'_>) -> String {
        let columns = &table.table.columns;
        let parts: Vec<String> = match (&row.before, &row.after) {
            (Some(before), Some(after)) => self.update(columns, before, after),
            (Some(image), None) | (None, Some(image)) => {
                let values = columns.iter().zip(image);
                values.map(|(column, value)| one(column, value.as_ref())).collect()
            }
            (None, None) => Vec::new(),
        };
        parts.join(", ")
    }

    fn update(&self, columns: &[Column], before: &Image<'_>, after: &Image<'_>) -> Vec<String> {
        let mut parts = Vec::new();
        let has_key = columns.iter().any(|column| column.is_key == Some(true));
        for ((column, before), after) in columns.iter().zip(before).zip(after) {
            let name = style::clean(column.name.as_deref().unwrap_or_default());
            let text = |value: &Option<Value<'_>>| {
                value.as_ref().map_or_else(|| "not in the log".to_owned(), |value| shown(value, column))
            };
            match (before, after) {
                (None, None) => {}
                (before, after) if before == after => {
                    if !has_key || column.is_key == Some(true) {
                        parts.push(one(column, before.as_ref()));
                    }
                }
                // With a smaller image what did not change is left out behind it.
                (Some(_), None) if has_key && column.is_key != Some(true) => {}
                (Some(_), None) => parts.push(one(column, before.as_ref())),
                (before, after) => parts.push(format!(
                    "{name}: {} → {}",
                    style::paint(&text(before), style::RED, self.colored),
                    style::paint(&text(after), style::GREEN, self.colored)
                )),
            }
        }
        parts
    }

    pub(super) fn end(&self) {
        if self.rows_max != 0 && self.rows > self.rows_max {
            let left = units::counted(self.rows - self.rows_max, "more row");
            outln!("        … and {left}: --rows 0 shows all");
        }
        for note in &self.notes {
            outln!("      note: {}", style::clean(note));
        }
    }
}

fn one(column: &Column, value: Option<&Value<'_>>) -> String {
    let name = style::clean(column.name.as_deref().unwrap_or_default());
    match value {
        Some(value) => format!("{name}={}", shown(value, column)),
        None => format!("{name} is not in the log"),
    }
}

fn shown(value: &Value<'_>, column: &Column) -> String {
    cut(&style::clean(&value.text(column)), VALUE_CHARS_MAX)
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], units::count(text.len() as u64)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_and_it_is_said() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöü", 2), "äö… (6 bytes)");
    }
}
