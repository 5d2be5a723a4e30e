//! A row for a person.

use crate::cli::find::answer::times;
use crate::cli::style::clean;
use jiff::tz::TimeZone;
use past::{Answer, At, Cell, Change, History, Image, Item, NamedColumn, State};
use std::fmt::Write;

/// A row at a point.
pub(super) fn state(row: &str, answer: &Answer) -> String {
    let mut page = Page(format!("{}\n", clean(row)));
    match &answer.state {
        State::There { columns, values } => {
            for (column, value) in columns.iter().zip(values) {
                page.line(2, &format!("{} = {}", column.name, text(value.as_ref())));
            }
        }
        State::NotThere => page.line(2, "there was no such row"),
        State::NotKnown => page.line(2, "not known"),
    }
    if let Some(change) = &answer.made_by {
        page.change("last changed", change, None);
    }
    if let Some(note) = &answer.made_so {
        page.line(2, &format!("since {note}"));
    }
    if let Some(change) = &answer.next {
        page.change("next changed", change, None);
    }
    answer.notes.iter().for_each(|note| page.line(2, &format!("note: {note}")));
    answer.doubts.iter().for_each(|doubt| page.line(2, &format!("doubt: {doubt}")));
    page.0
}

/// All that became of it.
pub(super) fn history(row: &str, history: &History) -> String {
    let mut page = Page(format!("{}\n", clean(row)));
    for item in &history.items {
        match item {
            Item::Change { change, no_effect, unlike_next } => {
                if !unlike_next.is_empty() {
                    page.line(
                        2,
                        &format!(
                            "doubt: something changed it here that the log does not have: {}",
                            unlike_next.join(", ")
                        ),
                    );
                }
                page.change(change.verb(), change, *no_effect);
            }
            Item::Definition(note) => page.line(2, &format!("definition: {note}")),
            Item::Unseen(note) => page.line(
                2,
                &format!("doubt: rows may have changed here, and the log does not have them: {note}"),
            ),
        }
    }
    match &history.older {
        Some(older) => page.line(
            2,
            &format!(
                "older changes: binlogd row … {} {} --history --at '{}'",
                older.table,
                older.key.text(),
                older.at
            ),
        ),
        None => page.line(2, history.edge.as_deref().unwrap_or_default()),
    }
    if !history.near.is_empty() {
        page.line(
            2,
            &format!(
                "note: a collation may take other keys of the log for this one: {}",
                history.near.join(", ")
            ),
        );
    }
    page.0
}

struct Page(String);

impl Page {
    fn line(&mut self, indent: usize, text: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "{:indent$}{}", "", clean(text));
    }

    fn change(&mut self, word: &str, change: &Change, no_effect: Option<&str>) {
        let no_effect = no_effect.map_or_else(String::new, |why| format!(" ({why})"));
        self.line(2, &format!("{word}{no_effect}  {}", place(&change.at)));
        if let Some(statement) = &change.statement {
            let one: String = statement.split_whitespace().collect::<Vec<_>>().join(" ");
            self.line(6, &format!("# {one}"));
        }
        self.line(6, &values(change));
    }
}

/// When, where and who.
fn place(at: &At) -> String {
    let (utc, local) = times(&at.committed, &TimeZone::system());
    format!(
        "{local}  {utc}  {}/{} at {}  {}  server {}{}",
        at.timeline,
        at.file,
        at.position,
        at.gtid.as_deref().unwrap_or("no GTID"),
        at.server_id,
        at.thread.map_or_else(String::new, |thread| format!("  thread {thread}"))
    )
}

/// `id=5, total: 3.00 → 4.00`.
fn values(change: &Change) -> String {
    let one = |column: &NamedColumn, value: Option<&Cell>| format!("{}={}", column.name, text(value));
    let all = |image: &Image| {
        let values = change.columns.iter().zip(image);
        values.map(|(column, value)| one(column, value.as_ref())).collect::<Vec<_>>()
    };
    let parts = match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            let columns = change.columns.iter().zip(before.iter().zip(after));
            columns
                .filter_map(|(column, (before, after))| update(column, before.as_ref(), after.as_ref()))
                .collect()
        }
        (Some(image), None) | (None, Some(image)) => all(image),
        (None, None) => Vec::new(),
    };
    parts.join(", ")
}

fn update(column: &NamedColumn, before: Option<&Cell>, after: Option<&Cell>) -> Option<String> {
    match (before, after) {
        (before, Some(after)) if before.is_none_or(|before| before.text != after.text) => {
            Some(format!("{}: {} → {}", column.name, text(before), after.text))
        }
        (Some(before), _) if column.is_key => Some(format!("{}={}", column.name, before.text)),
        _ => None,
    }
}

fn text(value: Option<&Cell>) -> &str {
    value.map_or("(not in the log)", |cell| &cell.text)
}
