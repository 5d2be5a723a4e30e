//! Rows, and the statements that take them back.

use super::literal::{condition, literal};
use super::quoting::name;
use crate::detail::{ColumnDefinition, KnownTable, Part};
use codec::rows::{Column, ColumnType, Image, Row, Value};
use std::collections::BTreeSet;

/// So many bytes of statements at most: all of them are held until the last is known, which comes first.
const BYTES_MAX: usize = 1 << 30;

/// So many reasons are told.
const REFUSALS_MAX: usize = 20;

/// Gathers what takes transactions back.
#[derive(Debug, Default)]
pub(crate) struct Inverse {
    /// What each is about for a person, and the statement; in the order of the log.
    pub(super) steps: Vec<(String, String)>,
    /// Schema and name of each table.
    pub(crate) tables: BTreeSet<(String, String)>,
    refusals: BTreeSet<String>,
    bytes: usize,
    /// No server was asked for the definition of a table.
    pub(super) is_unasked: bool,
}

impl Inverse {
    /// How many rows are taken back.
    pub(crate) fn rows(&self) -> usize {
        self.steps.len()
    }

    /// Why it cannot be done; empty when it can.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = &str> {
        self.refusals.iter().map(String::as_str)
    }

    /// It cannot be done, and why.
    pub(crate) fn refuse(&mut self, why: String) {
        if self.refusals.len() < REFUSALS_MAX {
            self.refusals.insert(why);
        }
    }

    /// Takes the next part, in the order of the log.
    pub(crate) fn add(&mut self, part: &Part<'_>) {
        match part {
            Part::Statement { is_for_people: true, .. } => {}
            Part::Statement { text, .. } => {
                let text: String = text.chars().take(200).collect();
                self.refuse(format!("a statement has no inverse in the log, only rows have: {text}"));
            }
            Part::Unknown(what) => self.refuse(format!("a part cannot be read: {what}")),
            Part::Row { table, row, .. } => match self.step(table, row) {
                Ok(Some(step)) => self.keep(table, step),
                Ok(None) => {}
                Err(why) => self.refuse(format!("{}: {why}", table.name())),
            },
        }
    }

    fn keep(&mut self, table: &KnownTable, step: (String, String)) {
        self.tables.insert((table.table.schema.clone(), table.table.name.clone()));
        self.is_unasked |= table.definition.is_none();
        self.bytes += step.0.len() + step.1.len();
        if self.bytes > BYTES_MAX {
            self.refuse("it is more than 1 GiB of statements: take fewer transactions at a time".to_owned());
            self.steps = Vec::new();
            return;
        }
        self.steps.push(step);
    }

    fn step(&self, table: &KnownTable, row: &Row<'_>) -> Result<Option<(String, String)>, String> {
        if let Some(note) = &table.note {
            return Err(note.clone());
        }
        if !table.has_names {
            return Err(
                "the log does not name its columns (binlog_row_metadata is not FULL): ask a server with --schema".to_owned()
            );
        }
        let columns = Columns { table };
        columns.check()?;
        let target = format!("{}.{}", name(&table.table.schema), name(&table.table.name));
        Ok(match (&row.before, &row.after) {
            (None, Some(after)) => Some((
                format!("inserted {}: {}", table.name(), columns.shown(after)),
                format!("DELETE FROM {target} WHERE {} LIMIT 1", columns.conditions(after)?),
            )),
            (Some(before), None) => Some((
                format!("deleted {}: {}", table.name(), columns.shown(before)),
                columns.insert(&target, before)?,
            )),
            (Some(before), Some(after)) => {
                let (conditions, sets) = (columns.conditions(after)?, columns.sets(before, after)?);
                sets.map(|sets| {
                    (
                        format!("updated {}: {}", table.name(), columns.shown(after)),
                        format!("UPDATE {target} SET {sets} WHERE {conditions} LIMIT 1"),
                    )
                })
            }
            (None, None) => None,
        })
    }
}

/// The columns of a table.
struct Columns<'a> {
    table: &'a KnownTable,
}

impl Columns<'_> {
    fn definition(&self, at: usize) -> Option<&ColumnDefinition> {
        self.table.definition.as_ref().and_then(|table| table.columns.get(at))
    }

    /// What stands against all rows of the table.
    fn check(&self) -> Result<(), String> {
        for at in 0..self.table.table.columns.len() {
            if self.definition(at).is_some_and(|definition| definition.is_version) {
                return Err(
                    "the server keeps versions of its rows (system versioning), which nobody else may write"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }

    /// Each column with its value. Those that the server computes are left out: they are not written, and may not be in the log.
    fn written<'r, 'v>(
        &'r self,
        image: &'r Image<'v>,
    ) -> impl Iterator<Item = (&'r Column, Option<&'r Value<'v>>)> {
        let all = self.table.table.columns.iter().zip(image).enumerate();
        all.filter(|(at, _)| !self.definition(*at).is_some_and(|definition| definition.is_generated))
            .map(|(_, (column, value))| (column, value.as_ref()))
    }

    fn conditions(&self, image: &Image<'_>) -> Result<String, String> {
        let mut all = Vec::new();
        for (column, value) in self.written(image) {
            let value = value.ok_or_else(|| lacks(column))?;
            all.push(condition(column, value).map_err(|why| of(column, &why))?);
        }
        Ok(all.join(" AND "))
    }

    fn insert(&self, target: &str, image: &Image<'_>) -> Result<String, String> {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for (column, value) in self.written(image) {
            let value = value.ok_or_else(|| lacks(column))?;
            names.push(name(column.name.as_deref().unwrap_or_default()));
            values.push(literal(column, value).map_err(|why| of(column, &why))?);
        }
        Ok(format!("INSERT INTO {target} ({}) VALUES ({})", names.join(", "), values.join(", ")))
    }

    /// `None` where nothing has changed.
    fn sets(&self, before: &Image<'_>, after: &Image<'_>) -> Result<Option<String>, String> {
        let (mut sets, mut is_other) = (Vec::new(), false);
        for ((column, old), (_, new)) in self.written(before).zip(self.written(after)) {
            let old = old.ok_or_else(|| lacks(column))?;
            let has_changed = Some(old) != new;
            is_other |= has_changed;
            // The server would set it to now by itself (ON UPDATE CURRENT_TIMESTAMP).
            let may_move = matches!(column.kind, ColumnType::Timestamp(_) | ColumnType::DateTime(_));
            if has_changed || may_move {
                let value = literal(column, old).map_err(|why| of(column, &why))?;
                sets.push(format!("{} = {value}", name(column.name.as_deref().unwrap_or_default())));
            }
        }
        Ok(is_other.then(|| sets.join(", ")))
    }

    /// The row for a person: its key, or its first columns.
    fn shown(&self, image: &Image<'_>) -> String {
        const SHOWN_MAX: usize = 4;
        let columns = || self.table.table.columns.iter().zip(image);
        let has_key = columns().any(|(column, _)| column.is_key == Some(true));
        let shown = columns().filter(|(column, _)| !has_key || column.is_key == Some(true)).take(SHOWN_MAX);
        let shown = shown.filter_map(|(column, value)| {
            let value: String = value.as_ref()?.text(column).chars().take(80).collect();
            Some(format!("{}={value}", column.name.as_deref().unwrap_or_default()))
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

fn lacks(column: &Column) -> String {
    format!(
        "the log does not have {} of each row (binlog_row_image is not FULL)",
        column.name.as_deref().unwrap_or_default()
    )
}

fn of(column: &Column, why: &str) -> String {
    format!("{}: {why}", column.name.as_deref().unwrap_or_default())
}
