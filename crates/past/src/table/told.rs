//! What a transaction tells of a table and of the parents of its foreign keys.

use super::cell::{Cell, To};
use super::rows::{BYTES_MAX, RowChange, Side, TOO_LARGE};
use crate::definition::{Effect, effect, is_near};
use crate::saying::{Saying, shown};
use crate::seen::Seen;
use codec::event::RowChange as Verb;
use codec::rows::{Image, Table};
use points::statement::first_words;
use points::statement::foreign_keys::{Cascade, cascades};
use points::statement::redefined::redefined;
use points::statement::whole::{Word, words};
use points::table::TableName;
use repair::detail::Part;
use std::rc::Rc;

/// See [the module](self).
#[derive(Debug)]
pub(super) enum Told {
    Row(RowChange),
    Definition(Definition),
}

/// A definition, as its session ran it.
#[derive(Debug)]
pub(super) struct Definition {
    /// Default schema; empty where none is stated.
    pub(super) schema: String,
    /// All of it, with secrets: it is read, and never shown.
    pub(super) text: String,
    /// What is shown of it.
    pub(super) shown: String,
}

impl Definition {
    pub(super) fn of(schema: &str, raw: &str, masked: &str) -> Definition {
        Definition { schema: schema.to_owned(), text: raw.to_owned(), shown: shown(masked) }
    }

    pub(super) fn verb(&self) -> String {
        first_words(self.text.as_bytes(), 1).pop().unwrap_or_default()
    }

    /// Whether it is about a schema, not a table.
    pub(super) fn is_of_schema(&self) -> bool {
        first_words(self.text.as_bytes(), 4).iter().skip(1).any(|word| word == "DATABASE" || word == "SCHEMA")
    }

    /// Whether it makes the table if there is none: CREATE TABLE IF NOT EXISTS.
    pub(super) fn may_make(&self, table: &TableName) -> bool {
        let found = redefined(self.text.as_bytes(), self.schema.as_bytes());
        self.verb() == "CREATE"
            && first_words(self.text.as_bytes(), 3)[1..] == ["TABLE", "IF"]
            && found.is_some_and(|found| found.tables.contains(table))
    }

    /// Whether old rows stand among the present ones behind it, whatever its columns are called. In doubt they do.
    pub(super) fn keeps_history(&self) -> bool {
        let lower = self.text.to_lowercase();
        let is_said = |two: &[Word]| {
            two[0].is("SYSTEM") && two[1].is("VERSIONING") || two[0].is("ROW") && two[1].is("START")
        };
        (lower.contains("versioning") || lower.contains("start"))
            // Whether these end a text depends on the sql_mode of the session.
            && (self.text.contains(['"', '\\']) && lower.contains("versioning")
                || words(&self.text, 0).map_or(true, |words| words.windows(2).any(is_said)))
    }

    /// Whether it gives a table another name.
    pub(super) fn moves(&self, table: &TableName) -> bool {
        let found = redefined(self.text.as_bytes(), self.schema.as_bytes());
        found.is_some_and(|found| {
            found.moved.iter().any(|(from, to)| is_near(from, table) || is_near(to, table))
        })
    }

    /// Whether it matters although it does nothing to rows that are there: for foreign keys, or because it makes the table.
    fn may_matter(&self, table: &TableName, cascades: &[Cascade]) -> bool {
        let found = redefined(self.text.as_bytes(), self.schema.as_bytes());
        let makes_keys = || {
            found.is_some_and(|found| found.tables.contains(table))
                && self.text.to_lowercase().contains("references")
        };
        self.may_make(table) || cascades.iter().any(|one| self.moves(&one.parent)) || makes_keys()
    }

    /// The foreign keys that it makes, as far as they change rows.
    ///
    /// # Errors
    /// In words, where it may make some that cannot be read.
    pub(super) fn cascades(&self) -> Result<Vec<Cascade>, String> {
        let lower = self.text.to_lowercase();
        if !lower.contains("references") {
            return Ok(Vec::new());
        }
        // Whether these end a text depends on the sql_mode of the session.
        if self.text.contains(['"', '\\']) && (lower.contains("cascade") || lower.contains("set")) {
            return Err("the foreign keys that it makes cannot be read with certainty".to_owned());
        }
        Ok(cascades(&words(&self.text, 0)?, &self.schema))
    }
}

/// Whose changes are listened to.
pub(super) struct Listening<'l> {
    pub(super) to: To,
    pub(super) table: &'l TableName,
    pub(super) cascades: &'l [Cascade],
    /// Bytes of rows that this transaction has told.
    pub(super) bytes: usize,
}

impl Listening<'_> {
    pub(super) fn take(&mut self, saying: &mut Saying<'_, Told>, part: &Part<'_>) {
        match part {
            Part::Statement { is_for_people: false, schema, raw, text } => {
                let definition = Definition::of(schema, raw, text);
                let does = !matches!(effect(raw, schema, self.table), Effect::Nothing | Effect::NoDefinition);
                if does || definition.may_matter(self.table, self.cascades) {
                    saying.all.push(Seen::Row(Told::Definition(definition)));
                }
            }
            Part::Row { table, change, has_cascades, row } => {
                if is_of(self.table, &table.table) {
                    let side = |image: &Option<Image<'_>>| {
                        image.as_ref().map(|image| self.side(&table.table, image))
                    };
                    let change = RowChange {
                        table: Rc::clone(table),
                        before: side(&row.before),
                        after: side(&row.after),
                        has_cascades: *has_cascades,
                    };
                    let had_room = self.bytes <= BYTES_MAX;
                    self.bytes += change.bytes();
                    match self.bytes <= BYTES_MAX {
                        true => saying.all.push(Seen::Row(Told::Row(change))),
                        false if had_room => saying.unseen(TOO_LARGE),
                        false => {}
                    }
                }
                if !has_cascades
                    && let Some(cascade) = self.cascades.iter().find(|one| {
                        let passes_on = match change {
                            Verb::Deleted => one.on_delete,
                            Verb::Updated => one.on_update,
                            Verb::Written => false,
                        };
                        // With lower_case_table_names a definition may name it in other letters.
                        let parent =
                            TableName { schema: table.table.schema.clone(), table: table.table.name.clone() };
                        passes_on && is_near(&parent, &one.parent)
                    })
                {
                    let why = format!(
                        "it changes rows of {}, to which a foreign key of the table points (CASCADE, SET NULL): what that did to rows of the table \
                         is not in the log",
                        cascade.parent
                    );
                    if !saying.all.iter().any(|seen| matches!(seen, Seen::Unseen(note) if note.words == why))
                    {
                        saying.unseen(&why);
                    }
                }
            }
            Part::Statement { .. } | Part::Unknown(_) => {}
        }
    }

    fn side(&self, table: &Table, image: &Image<'_>) -> Side {
        let cells = table.columns.iter().zip(image);
        cells.map(|(column, value)| value.as_ref().map(|value| Cell::of(self.to, column, value))).collect()
    }
}

fn is_of(name: &TableName, table: &Table) -> bool {
    table.schema == name.schema && table.name == name.table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Definition {
        Definition::of("shop", text, "")
    }

    #[test]
    fn a_table_with_history_is_known_by_its_definition() {
        for (text, wanted) in [
            ("CREATE TABLE t (id INT) WITH SYSTEM VERSIONING", true),
            ("CREATE TABLE t (a TIMESTAMP(6) GENERATED ALWAYS AS ROW START, b INT)", true),
            ("ALTER TABLE t ADD system /* x */ versioning", true),
            ("ALTER TABLE t ADD v INT COMMENT \"\\\", ADD SYSTEM VERSIONING", true),
            ("CREATE TABLE t (start INT, `row` INT COMMENT 'system versioning') START TRANSACTION", false),
            ("CREATE TABLE t (versioning INT) ROW_FORMAT = DYNAMIC", false),
        ] {
            assert_eq!(of(text).keeps_history(), wanted, "{text}");
        }
    }
}
