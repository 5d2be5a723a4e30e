//! Rows, and the statements that take them back.

use super::cascades::{Links, parents_first};
use super::literal::{condition, key_condition, literal};
use super::quoting::name;
use crate::detail::{ColumnDefinition, KnownTable, Part};
use codec::rows::{Column, ColumnType, Image, Row, Value};
use points::statement::{Control, control};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// So many bytes of statements at most: all of them are held until the last is known, which comes first.
const BYTES_MAX: usize = 1 << 30;

/// So many bytes of a packet are not the statement of a row: that and what guards it.
const BESIDE_BYTES: usize = 512;

/// A packet is not longer, in bytes, where it is of more than one row.
const BYTES_AT_ONCE: usize = 256 << 10;

/// So many reasons are told.
const REFUSALS_MAX: usize = 20;

/// What is done with rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// They are taken back.
    #[default]
    Back,
    /// The same is done again, by the primary key where there is one. With `new_keys` the server numbers new rows anew.
    Again {
        /// Rows get new numbers of AUTO_INCREMENT.
        new_keys: bool,
    },
}

/// A statement about one row.
#[derive(Debug, Default)]
pub struct Step {
    /// What it is about, for a person.
    pub note: String,
    /// The statement.
    pub sql: String,
    /// So many of its values are the error value of ENUM: no literal makes one, so that the server warns of each.
    pub(super) warnings: usize,
    /// The table, quoted.
    pub(super) table: String,
    /// Where in the statement its condition stands.
    condition: Option<(usize, usize)>,
    /// The row that must be there, and the one that is there then, told apart by their conditions.
    pub(super) needs: Option<u64>,
    pub(super) makes: Option<u64>,
    /// Conditions on a primary key that is free then, and on one that must be.
    pub(super) frees: Option<String>,
    pub(super) takes: Option<String>,
    pub(super) links: Links,
}

impl Step {
    /// The condition for the row that must be there.
    pub(super) fn condition(&self) -> Option<&str> {
        self.condition.and_then(|(from, to)| self.sql.get(from..to))
    }

    /// A statement that needs a row: `head`, its condition, and that it is about one row only.
    fn with_condition(self, head: &str, condition: &str) -> Step {
        let end = head.len() + condition.len();
        let sql = format!("{head}{condition} LIMIT 1");
        Step { sql, condition: Some((head.len(), end)), needs: Some(told_apart(condition)), ..self }
    }

    fn bytes(&self) -> usize {
        let keys = self.frees.as_ref().map_or(0, String::len) + self.takes.as_ref().map_or(0, String::len);
        size_of::<Step>() + self.note.len() + self.sql.len() + self.table.len() + keys + self.links.bytes()
    }
}

fn told_apart(condition: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    condition.hash(&mut hasher);
    hasher.finish()
}

/// What was done to the rows of a table.
#[derive(Debug, Default)]
pub struct Touched {
    pub(super) inserted: bool,
    /// What foreign keys did to other rows then does not stand in the log.
    pub(super) deleted_without_cascades: bool,
    /// The columns whose values changed.
    pub(super) updated: BTreeSet<String>,
}

/// Gathers what takes transactions back.
#[derive(Debug, Default)]
pub struct Inverse {
    /// In the order of the log.
    pub steps: Vec<Step>,
    direction: Direction,
    /// By schema and name.
    pub tables: BTreeMap<(String, String), Touched>,
    /// Sequences, whose numbers are not given back.
    pub sequences: BTreeSet<String>,
    /// The savepoints of the present transaction, and how many steps there were.
    savepoints: Vec<(Vec<u8>, usize)>,
    /// From this step on rows were deleted or updated, and what foreign keys did because of that is among them.
    cascades_from: Option<usize>,
    refusals: BTreeSet<String>,
    bytes: usize,
    /// `max_allowed_packet` of the server, in bytes, where one was asked: it takes no longer statement.
    pub packet_bytes_max: Option<usize>,
    /// No server was asked for the definition of a table.
    pub(super) is_unasked: bool,
    /// What nobody has compared of tables.
    pub doubts: BTreeSet<String>,
}

impl Inverse {
    /// One that does this.
    pub fn of(direction: Direction) -> Inverse {
        Inverse { direction, ..Inverse::default() }
    }

    /// The steps from the last row to the first, as they are run.
    pub fn in_order(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().rev()
    }

    /// So many bytes of statements go in one packet, where these are of more than one row.
    pub(super) fn bytes_at_once(&self) -> usize {
        self.packet_bytes_max.map_or(BYTES_AT_ONCE, |max| BYTES_AT_ONCE.min(max / 2))
    }

    /// Leaves out steps, by their numbers in that order, from 0 on.
    pub fn leave_out(&mut self, numbers: &BTreeSet<usize>) {
        let mut left = (0..self.steps.len()).rev();
        self.steps.retain(|_| left.next().is_none_or(|number| !numbers.contains(&number)));
    }

    /// How many rows are taken back.
    pub fn rows(&self) -> usize {
        self.steps.len()
    }

    /// Why it cannot be done; empty when it can.
    pub fn refusals(&self) -> impl Iterator<Item = &str> {
        self.refusals.iter().map(String::as_str)
    }

    /// It cannot be done, and why.
    pub fn refuse(&mut self, why: String) {
        if self.refusals.len() < REFUSALS_MAX {
            self.refusals.insert(why);
        }
    }

    /// A transaction ends.
    pub fn end(&mut self) {
        self.savepoints.clear();
        self.end_cascades();
    }

    fn end_cascades(&mut self) {
        if let Some(cascaded) = self.cascades_from.take().and_then(|from| self.steps.get_mut(from..)) {
            parents_first(cascaded, |step| &step.links);
        }
    }

    /// Takes the next part, in the order of the log.
    pub fn add(&mut self, part: &Part<'_>) {
        match part {
            Part::Statement { is_for_people: true, .. } => {}
            Part::Statement { text, .. } => {
                self.end_cascades();
                self.statement(text);
            }
            Part::Unknown(what) => self.refuse(format!("a part cannot be read: {what}")),
            Part::Row { table, .. } if is_sequence(table) => drop(self.sequences.insert(table.name())),
            Part::Row { table, .. } if table.note.is_some() => {
                self.refuse(table.note.clone().unwrap_or_default())
            }
            Part::Row { table, row, has_cascades, .. } => match step(self.direction, table, row) {
                Ok(Some(step)) => {
                    let is_cascade = *has_cascades && row.before.is_some() && !step.links.moves_parent;
                    if !is_cascade {
                        self.end_cascades();
                    } else if self.cascades_from.is_none() {
                        self.cascades_from = Some(self.steps.len());
                    }
                    self.keep(table, row, *has_cascades, step);
                }
                Ok(None) => {}
                Err(why) => self.refuse(format!("{}: {why}", table.name())),
            },
        }
    }

    /// SAVEPOINT stands between the rows of nested transactions. MariaDB leaves what is rolled back to one in the log, and ROLLBACK TO
    /// behind it, where a table without transactions was changed meanwhile, whose own rows stand in a transaction of their own
    /// (`binlog_savepoint_rollback`, `sql/log.cc`).
    fn statement(&mut self, text: &str) {
        match control(text.as_bytes()) {
            Some(Control::Mark) => {}
            Some(Control::Savepoint(name)) => {
                self.savepoints.retain(|(other, _)| *other != name);
                self.savepoints.push((name, self.steps.len()));
            }
            Some(Control::BackTo(name)) => match self.savepoints.iter().position(|(other, _)| *other == name)
            {
                Some(at) => {
                    self.steps.truncate(self.savepoints[at].1);
                    self.savepoints.truncate(at + 1);
                }
                None => self.refuse("it is rolled back to a savepoint that the log does not have".to_owned()),
            },
            Some(Control::Back) => self.refuse(
                "it ends with ROLLBACK: what it did to tables with transactions did not stay".to_owned(),
            ),
            None => {
                let text: String = text.chars().take(200).collect();
                self.refuse(format!("a statement has no inverse in the log, only rows have: {text}"));
            }
        }
    }

    fn keep(&mut self, table: &KnownTable, row: &Row<'_>, has_cascades: bool, step: Step) {
        let key = (table.table.schema.clone(), table.table.name.clone());
        let touched = self.tables.entry(key).or_default();
        match (&row.before, &row.after) {
            (Some(before), Some(after)) => {
                let changed = table.table.columns.iter().zip(before.iter().zip(after));
                let changed = changed.filter(|(_, (before, after))| after.is_some() && before != after);
                touched.updated.extend(changed.filter_map(|(column, _)| column.name.clone()));
            }
            (None, _) => touched.inserted = true,
            (Some(_), None) => touched.deleted_without_cascades |= !has_cascades,
        }
        self.is_unasked |= table.definition.is_none();
        self.doubts.extend(table.doubt.iter().map(|doubt| format!("{}: {doubt}", table.name())));
        let needed = step.sql.len() + BESIDE_BYTES;
        if let Some(max) = self.packet_bytes_max.filter(|max| needed > *max) {
            self.refuse(format!(
                "{}: its statement needs {needed} bytes and the server takes {max} at most: SET GLOBAL max_allowed_packet = {} on it \
                 (1 GiB is the most), then do this again",
                step.note,
                needed.next_multiple_of(1 << 20)
            ));
            return;
        }
        self.bytes += step.bytes();
        if self.bytes > BYTES_MAX {
            self.refuse("it is more than 1 GiB of statements: take fewer transactions at a time".to_owned());
            self.steps = Vec::new();
            return;
        }
        self.steps.push(step);
    }
}

/// A sequence of MariaDB is a table of one row to a log, with these columns.
fn is_sequence(table: &KnownTable) -> bool {
    let columns = &table.table.columns;
    let is = |at: usize, name| columns.get(at).is_some_and(|column| column.name.as_deref() == Some(name));
    columns.len() == 8 && is(0, "next_not_cached_value") && is(5, "cache_size") && is(7, "cycle_count")
}

/// What takes the row back, or does the same again; `None` where nothing of it changed.
fn step(direction: Direction, table: &KnownTable, row: &Row<'_>) -> Result<Option<Step>, String> {
    let columns = Columns { table, new_keys: direction == Direction::Again { new_keys: true } };
    columns.check()?;
    let is_back = direction == Direction::Back;
    let target = format!("{}.{}", name(&table.table.schema), name(&table.table.name));
    let of = |what: &str, image: &Image<'_>| format!("{what} {}: {}", table.name(), columns.shown(image));
    let named = |did: &str, image: &Image<'_>| Step {
        note: of(did, image),
        table: target.clone(),
        ..Step::default()
    };
    Ok(match (&row.before, &row.after) {
        (None, Some(after)) if !is_back => Some(columns.insert(named("inserted", after), after)?),
        (None, Some(after)) => {
            let step = Step { frees: columns.key(after)?, ..named("inserted", after) };
            Some(step.with_condition(&format!("DELETE FROM {target} WHERE "), &columns.conditions(after)?))
        }
        (Some(before), None) if !is_back => {
            let step = Step { links: columns.links(before, None), ..named("deleted", before) };
            Some(step.with_condition(&format!("DELETE FROM {target} WHERE "), &columns.of_key(before)?))
        }
        (Some(before), None) => Some(Step {
            makes: Some(told_apart(&columns.conditions(before)?)),
            takes: columns.key(before)?,
            links: columns.links(before, None),
            ..columns.insert(named("deleted", before), before)?
        }),
        (Some(before), Some(after)) => {
            // What a smaller image does not repeat has not changed (binlog_row_image = FULL_NODUP).
            let after: Image<'_> = after
                .iter()
                .zip(before)
                .map(|(after, before)| after.clone().or_else(|| before.clone()))
                .collect();
            let (conditions, sets) = match is_back {
                true => (columns.conditions(&after)?, columns.sets(before, &after)?),
                false => (columns.of_key(before)?, columns.sets(&after, before)?),
            };
            let Some((sets, warnings)) = sets else { return Ok(None) };
            let links = columns.links(before, Some(&after));
            let mut step = Step { warnings, links, ..named("updated", &after) };
            if is_back {
                step.makes = Some(told_apart(&columns.conditions(before)?));
                (step.frees, step.takes) = (columns.key(&after)?, columns.key(before)?);
                if step.frees == step.takes {
                    (step.frees, step.takes) = (None, None);
                }
            }
            let head = format!("UPDATE {}{target} SET {sets} WHERE ", ignore(warnings));
            Some(step.with_condition(&head, &conditions))
        }
        (None, None) => None,
    })
}

/// The error value of ENUM is a warning then, which is counted, and not an error.
fn ignore(warnings: usize) -> &'static str {
    if warnings > 0 { "IGNORE " } else { "" }
}

/// The columns of a table.
struct Columns<'a> {
    table: &'a KnownTable,
    /// The server numbers new rows.
    new_keys: bool,
}

impl Columns<'_> {
    fn definition(&self, at: usize) -> Option<&ColumnDefinition> {
        self.table.definition.as_ref().and_then(|table| table.columns.get(at))
    }

    /// What stands against all rows of the table.
    fn check(&self) -> Result<(), String> {
        if !self.table.has_names {
            return Err(
                "the log does not name its columns (binlog_row_metadata is not FULL): ask a server with --schema".to_owned()
            );
        }
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

    /// The server computes it. MariaDB compares a UNIQUE text or BLOB by a column that no statement may name.
    fn is_computed(&self, at: usize, column: &Column) -> bool {
        self.definition(at).is_some_and(|definition| definition.is_generated)
            || column.name.as_ref().is_some_and(|name| name.starts_with("DB_ROW_HASH_"))
    }

    /// Each column with its value. Those that the server computes are left out: they are not written, and may not be in the log.
    fn written<'r, 'v>(
        &'r self,
        image: &'r Image<'v>,
    ) -> impl Iterator<Item = (usize, (&'r Column, Option<&'r Value<'v>>))> {
        let all = self.table.table.columns.iter().zip(image).enumerate();
        all.filter(|(at, (column, _))| !self.is_computed(*at, column))
            .map(|(at, (column, value))| (at, (column, value.as_ref())))
    }

    fn conditions(&self, image: &Image<'_>) -> Result<String, String> {
        self.conditions_of(image, |_| true)
    }

    fn conditions_of(&self, image: &Image<'_>, is_meant: impl Fn(&Column) -> bool) -> Result<String, String> {
        // Where nobody told what the keys are, each column may begin one.
        let no_keys = self.table.table.columns.iter().all(|column| column.is_key != Some(true));
        let mut all = Vec::new();
        for (at, (column, value)) in self.written(image).filter(|(_, (column, _))| is_meant(column)) {
            let value = value.ok_or_else(|| lacks(column))?;
            let definition = self.definition(at);
            let finds =
                column.is_key == Some(true) || definition.map_or(no_keys, |definition| definition.is_indexed);
            all.push(condition(column, value, finds, self.charset(at)).map_err(|why| of(column, &why))?);
        }
        Ok(all.join(" AND "))
    }

    /// A condition that holds for all rows that cannot be beside this one; `None` where nobody tells what the primary key is.
    fn key(&self, image: &Image<'_>) -> Result<Option<String>, String> {
        let mut all = Vec::new();
        for (at, (column, value)) in
            self.written(image).filter(|(_, (column, _))| column.is_key == Some(true))
        {
            let value = value.ok_or_else(|| lacks(column))?;
            all.push(key_condition(column, value, self.charset(at)).map_err(|why| of(column, &why))?);
        }
        Ok((!all.is_empty()).then(|| all.join(" AND ")))
    }

    /// What foreign keys see of the row before; it was deleted where there is none after.
    fn links(&self, before: &Image<'_>, after: Option<&Image<'_>>) -> Links {
        let mut links = Links::default();
        for side in self.table.definition.iter().flat_map(|table| &table.foreign_keys) {
            // Nothing refers to NULL. A collation may take texts for one that differ by case or by spaces at the end.
            let of = |image: &Image<'_>| {
                let mut seen = side.key.clone();
                for at in &side.columns {
                    let value = image.get(*at)?.as_ref().filter(|value| **value != Value::Null)?;
                    let text = value.text(self.table.table.columns.get(*at)?).to_lowercase();
                    seen.push('\n');
                    seen.push_str(text.trim_end());
                }
                Some(told_apart(&seen))
            };
            match (of(before), after) {
                (was, Some(after)) if side.is_parent => links.moves_parent |= was != of(after),
                (Some(was), None) if side.is_parent => links.parent_of.push(was),
                (Some(was), _) => links.child_of.push(was),
                (None, _) => {}
            }
        }
        links
    }

    /// The name of a column's character set, where a server told it.
    fn charset(&self, at: usize) -> Option<&str> {
        self.definition(at).and_then(|definition| definition.charset.as_deref())
    }

    /// A condition by the primary key, or by all that is known of the row where there is none.
    fn of_key(&self, image: &Image<'_>) -> Result<String, String> {
        let is_key = |column: &Column| column.is_key == Some(true);
        let has_key = self.table.table.columns.iter().any(is_key);
        self.conditions_of(image, |column| !has_key || is_key(column))
    }

    fn insert(&self, step: Step, image: &Image<'_>) -> Result<Step, String> {
        let (mut names, mut values, mut warnings) = (Vec::new(), Vec::new(), 0);
        let definitions = self.table.definition.iter().flat_map(|table| &table.columns);
        let counted: Vec<&str> =
            definitions.filter(|one| self.new_keys && one.is_counted).map(|one| one.name.as_str()).collect();
        for (_, (column, value)) in self.written(image) {
            if column.name.as_deref().is_some_and(|name| counted.contains(&name)) {
                continue;
            }
            let value = value.ok_or_else(|| lacks(column))?;
            names.push(name(column.name.as_deref().unwrap_or_default()));
            values.push(literal(column, value).map_err(|why| of(column, &why))?);
            warnings += usize::from(*value == Value::Enum(0));
        }
        let (names, values, ignore) = (names.join(", "), values.join(", "), ignore(warnings));
        let sql = format!("INSERT {ignore}INTO {} ({names}) VALUES ({values})", step.table);
        Ok(Step { sql, warnings, ..step })
    }

    /// What sets the row back, and how many warnings that gives; `None` where nothing has changed.
    fn sets(&self, before: &Image<'_>, after: &Image<'_>) -> Result<Option<(String, usize)>, String> {
        let (mut sets, mut is_other, mut warnings) = (Vec::new(), false, 0);
        for ((_, (column, old)), (_, (_, new))) in self.written(before).zip(self.written(after)) {
            let old = old.ok_or_else(|| lacks(column))?;
            let has_changed = new.is_none_or(|new| !is_same(old, new));
            is_other |= has_changed;
            // The server would set it to now by itself (ON UPDATE CURRENT_TIMESTAMP).
            let may_move = matches!(
                column.kind,
                ColumnType::Timestamp(_) | ColumnType::DateTime(_) | ColumnType::OldDateTime
            );
            if has_changed || may_move {
                let value = literal(column, old).map_err(|why| of(column, &why))?;
                sets.push(format!("{} = {value}", name(column.name.as_deref().unwrap_or_default())));
                warnings += usize::from(*old == Value::Enum(0));
            }
        }
        Ok(is_other.then(|| (sets.join(", "), warnings)))
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

/// Whether two values are one; 0 and -0 are two.
fn is_same(one: &Value<'_>, other: &Value<'_>) -> bool {
    match (one, other) {
        (Value::Float(one), Value::Float(other)) => one.to_bits() == other.to_bits(),
        (Value::Double(one), Value::Double(other)) => one.to_bits() == other.to_bits(),
        // Its text has the sign of a 0.
        (Value::Json(one), Value::Json(other)) => one == other && one.to_string() == other.to_string(),
        _ => one == other,
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
