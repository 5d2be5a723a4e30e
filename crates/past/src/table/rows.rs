//! The rows of a table, changed one after another.

use super::alter::{Clause, Place};
use super::cell::{Cell, Fill, To};
use codec::rows::{Column, ColumnType};
use repair::detail::KnownTable;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// So many bytes of rows are held.
pub(super) const BYTES_MAX: usize = 256 << 20;

/// A row: its values in the order of the columns.
type Row = Box<[Cell]>;

/// What a row is found by, in order: whole numbers by their value, the rest by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(i128),
    Text(Box<str>),
}

/// One side of a change: `None` for a value that is not in the log.
pub(super) type Side = Vec<Option<Cell>>;

/// A change of one row.
#[derive(Debug)]
pub(super) struct RowChange {
    pub(super) table: Rc<KnownTable>,
    pub(super) before: Option<Side>,
    pub(super) after: Option<Side>,
    /// What foreign keys do to other rows because of it stands in the log too.
    pub(super) has_cascades: bool,
}

/// A column.
#[derive(Debug)]
struct Held {
    name: String,
    /// As the log describes it; `None` of one that was added, until the log does.
    described: Option<Column>,
    fill: Fill,
    is_generated: bool,
}

/// See [the module](self).
#[derive(Debug)]
pub(super) struct Rows {
    to: To,
    /// None where nobody has told them.
    columns: Vec<Held>,
    /// The columns of the primary key, by their numbers. Where there is none, rows are found by all that they are.
    key: Vec<usize>,
    described_by: Option<Rc<KnownTable>>,
    /// Without a primary key several may be the same.
    rows: BTreeMap<Vec<Part>, Vec<Row>>,
    pub(super) count: u64,
    pub(super) bytes: usize,
}

impl RowChange {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let side = |side: &Option<Side>| -> usize {
            let cells = side.iter().flatten();
            cells.map(|cell| size_of::<Option<Cell>>() + cell.as_ref().map_or(0, Cell::bytes)).sum()
        };
        size_of::<RowChange>() + side(&self.before) + side(&self.after)
    }
}

impl Rows {
    pub(super) fn new(to: To) -> Rows {
        Rows {
            to,
            columns: Vec::new(),
            key: Vec::new(),
            described_by: None,
            rows: BTreeMap::new(),
            count: 0,
            bytes: 0,
        }
    }

    /// There are none any more. The columns stay, unless the table is another one.
    pub(super) fn empty(&mut self, is_same_table: bool) {
        (self.count, self.bytes) = (0, 0);
        self.rows.clear();
        if !is_same_table {
            self.forget_columns();
        }
    }

    fn forget_columns(&mut self) {
        self.columns.clear();
        self.described_by = None;
    }

    /// Does a change.
    ///
    /// # Errors
    /// In words, when the rows are not those that it was made to.
    pub(super) fn change(&mut self, change: RowChange) -> Result<(), String> {
        self.describe(&change.table)?;
        let old = match &change.before {
            Some(before) => Some(self.take_out(before)?),
            None => None,
        };
        let Some(after) = change.after else { return Ok(()) };
        let of_new =
            || Cell::NotKnown("the log does not have it of a new row (binlog_row_image is not FULL)".into());
        let mut old = old.map(|row| row.into_vec()).unwrap_or_default().into_iter();
        let row: Row = after
            .into_iter()
            .map(|cell| {
                let before = old.next();
                cell.or(before).unwrap_or_else(of_new)
            })
            .collect();
        self.put(row)
    }

    fn put(&mut self, row: Row) -> Result<(), String> {
        let (parts, bytes) = (self.parts(&row)?, self.bytes_of(&row));
        let there = self.rows.entry(parts).or_default();
        if !there.is_empty() && !self.key.is_empty() {
            return Err(format!("a row with this primary key is there already; {OTHERWISE}"));
        }
        self.bytes += bytes;
        self.count += 1;
        there.push(row);
        match self.bytes > BYTES_MAX {
            true => Err(TOO_LARGE.to_owned()),
            false => Ok(()),
        }
    }

    /// Takes out the row that a change found.
    fn take_out(&mut self, before: &Side) -> Result<Row, String> {
        let gone = || format!("a row that it changes is not there; {OTHERWISE}");
        let parts = self.find(before)?;
        let there = self.rows.get_mut(&parts).ok_or_else(gone)?;
        let mut row = there.pop().ok_or_else(gone)?;
        if there.is_empty() {
            self.rows.remove(&parts);
        }
        self.bytes = self.bytes.saturating_sub(self.bytes_of(&row));
        self.count -= 1;
        for ((own, found), column) in row.iter_mut().zip(before).zip(&self.columns) {
            match (&*own, found) {
                (Cell::Is(own), Some(Cell::Is(found))) if own != found => {
                    return Err(format!("it found another {} in a row; {OTHERWISE}", column.name));
                }
                (Cell::NotKnown(_), Some(found)) => *own = found.clone(),
                _ => {}
            }
        }
        Ok(row)
    }

    /// By what a row is found.
    fn find(&self, before: &Side) -> Result<Vec<Part>, String> {
        let is_whole = |at: &usize| matches!(before.get(*at), Some(Some(Cell::Is(_))));
        let cells = self.key_columns();
        if cells.clone().all(|at| is_whole(&at)) {
            return Ok(cells.filter_map(|at| before[at].as_ref().map(part)).collect());
        }
        if !self.key.is_empty() {
            return Err("a row stands in the log without its primary key (binlog_row_image)".to_owned());
        }
        // By a unique key, which the log does not name.
        let fits = |row: &Row| {
            row.iter().zip(before).all(|(own, found)| found.as_ref().is_none_or(|found| found == own))
        };
        let mut found = self.rows.iter().filter(|(_, rows)| rows.first().is_some_and(&fits));
        match (found.next(), found.next()) {
            (Some((parts, _)), None) => Ok(parts.clone()),
            (None, _) => Err(format!("a row that it changes is not there; {OTHERWISE}")),
            _ => Err("the table has no primary key, and what the log has of a row is true of several (binlog_row_image)".to_owned()),
        }
    }

    fn key_columns(&self) -> impl Iterator<Item = usize> + Clone + use<'_> {
        let all = if self.key.is_empty() { 0..self.columns.len() } else { 0..0 };
        self.key.iter().copied().chain(all)
    }

    /// Bytes that a row takes, with what it is found by.
    fn bytes_of(&self, row: &Row) -> usize {
        const BESIDE: usize = 64;
        let own = row.iter().map(|cell| size_of::<Cell>() + cell.bytes());
        let key = self.key_columns().map(|at| size_of::<Part>() + row[at].bytes());
        BESIDE + own.chain(key).sum::<usize>()
    }

    fn parts(&self, row: &Row) -> Result<Vec<Part>, String> {
        let one = |at: usize| match &row[at] {
            Cell::NotKnown(why) => {
                let what = if self.key.is_empty() { "the table has no primary key, and " } else { "" };
                Err(format!("{what}the value of {} in a row is not known: {why}", self.columns[at].name))
            }
            cell => Ok(part(cell)),
        };
        self.key_columns().map(one).collect()
    }

    /// Takes the columns as the log describes them from now on.
    fn describe(&mut self, table: &Rc<KnownTable>) -> Result<(), String> {
        let columns = &table.table.columns;
        let is_same = |own: &Rc<KnownTable>| {
            Rc::ptr_eq(own, table) || own.table.columns == *columns && own.has_names == table.has_names
        };
        if self.described_by.as_ref().is_some_and(is_same) {
            self.described_by = Some(table.clone());
            return Ok(());
        }
        refuse(table)?;
        let held = |(at, column): (usize, &Column)| Held {
            name: column.name.clone().unwrap_or_default(),
            described: Some(column.clone()),
            fill: Fill::Null,
            is_generated: table.definition.as_ref().is_some_and(|all| all.columns[at].is_generated),
        };
        let columns: Vec<Held> = columns.iter().enumerate().map(held).collect();
        let order = if self.count == 0 { Vec::new() } else { self.order(&columns)? };
        self.columns = columns;
        self.described_by = Some(table.clone());
        let is_key = |at: &usize| table.table.columns[*at].is_key == Some(true);
        self.key = (0..self.columns.len()).filter(is_key).collect();
        if self.count > 0 {
            self.again(&mut |row| {
                order.iter().map(|(at, fill)| fill.clone().unwrap_or_else(|| row[*at].clone())).collect()
            })?;
        }
        Ok(())
    }

    /// Where each of these columns is held; and what it has, where it was added and not described before.
    fn order(&self, columns: &[Held]) -> Result<Vec<(usize, Option<Cell>)>, String> {
        let names = |all: &[Held]| all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        let others = || {
            format!(
                "the log has the columns ({}), and by its definitions they are ({})",
                names(columns),
                names(&self.columns)
            )
        };
        if columns.len() != self.columns.len() {
            return Err(others());
        }
        let one = |column: &Held| {
            let at = self.at(&column.name).ok_or_else(others)?;
            let now = column.described.as_ref().ok_or_else(others)?;
            match &self.columns[at].described {
                Some(then) if !is_same_type(then, now) => Err(format!(
                    "{} is of another type than before, and no definition in the log says so",
                    column.name
                )),
                Some(_) => Ok((at, None)),
                None => Ok((at, Some(self.columns[at].fill.cell(self.to, now)))),
            }
        };
        columns.iter().map(one).collect()
    }

    fn at(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|one| one.name.eq_ignore_ascii_case(name))
    }

    /// Makes another row of each.
    fn again(&mut self, other: &mut dyn FnMut(&Row) -> Row) -> Result<(), String> {
        let rows = std::mem::take(&mut self.rows);
        (self.count, self.bytes) = (0, 0);
        rows.into_values().flatten().try_for_each(|row| self.put(other(&row)))
    }

    /// Does what an ALTER TABLE does.
    ///
    /// # Errors
    /// In words, when it cannot be done.
    pub(super) fn alter(&mut self, clauses: Vec<Clause>) -> Result<(), String> {
        if self.count == 0 {
            self.forget_columns();
            return Ok(());
        }
        one_by_one(&clauses)?;
        self.described_by = None;
        clauses.into_iter().try_for_each(|clause| self.clause(clause))
    }

    fn clause(&mut self, clause: Clause) -> Result<(), String> {
        let no = |name: &str| format!("it names the column {name}, which is not there");
        match clause {
            Clause::Add { name, if_not_there, .. } if if_not_there && self.at(&name).is_some() => Ok(()),
            Clause::Add { name, fill, place, .. } => {
                let at = match place {
                    Place::Last => self.columns.len(),
                    Place::First => 0,
                    Place::After(other) => self.at(&other).ok_or_else(|| no(&other))? + 1,
                };
                let cell = fill.cell(self.to, &Column::of(ColumnType::Blob(1)));
                self.columns.insert(at, Held { name, described: None, fill, is_generated: false });
                self.key.iter_mut().filter(|key| **key >= at).for_each(|key| *key += 1);
                self.again(&mut |row| {
                    let (before, behind) = row.split_at(at);
                    [before, std::slice::from_ref(&cell), behind].concat().into()
                })
            }
            Clause::Drop(name) => {
                let at = self.at(&name).ok_or_else(|| no(&name))?;
                if self.key.contains(&at) {
                    return Err(format!("it drops {name}, which is of the primary key"));
                }
                self.columns.remove(at);
                self.key.iter_mut().filter(|key| **key > at).for_each(|key| *key -= 1);
                self.again(&mut |row| [&row[..at], &row[at + 1..]].concat().into())
            }
            Clause::Rename { from, to, keeps_values } => {
                let at = self.at(&from).ok_or_else(|| no(&from))?;
                self.columns[at].name = to;
                if keeps_values {
                    return Ok(());
                }
                let why: Rc<str> = format!(
                    "the log does not tell what MODIFY or CHANGE made of {from} in rows that were there"
                )
                .into();
                self.columns[at].described = None;
                self.columns[at].fill = Fill::NotKnown(why.clone());
                self.again(&mut |row| {
                    let mut row = row.to_vec();
                    row[at] = Cell::NotKnown(why.clone());
                    row.into()
                })
            }
        }
    }

    /// Values that nobody knows: of which column, why, and in how many rows.
    pub(super) fn not_known(&self) -> BTreeMap<(String, String), u64> {
        let mut found = BTreeMap::new();
        for row in self.rows.values().flatten() {
            for (cell, column) in row.iter().zip(&self.columns) {
                if let Cell::NotKnown(why) = cell {
                    *found.entry((column.name.clone(), why.to_string())).or_insert(0) += 1;
                }
            }
        }
        found
    }

    /// The names of the columns that are written; those that the server computes are left out of SQL.
    pub(super) fn names(&self) -> Vec<&str> {
        let is_written = |column: &&Held| self.is_written(column);
        self.columns.iter().filter(is_written).map(|column| column.name.as_str()).collect()
    }

    fn is_written(&self, column: &Held) -> bool {
        self.to == To::Csv || !column.is_generated
    }

    /// Gives each row as it is written.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn each(&self, mut take: impl FnMut(&[&str]) -> io::Result<()>) -> io::Result<()> {
        let mut row = Vec::new();
        for cells in self.rows.values().flatten() {
            let written = cells.iter().zip(&self.columns).filter(|(_, column)| self.is_written(column));
            row.clear();
            row.extend(written.map(|(cell, _)| match cell {
                Cell::Is(text) => &**text,
                Cell::NotKnown(_) => "",
            }));
            take(&row)?;
        }
        Ok(())
    }
}

/// What may be behind it.
const OTHERWISE: &str = "something changed the table that the log does not have, as sql_log_bin = 0, a foreign key (CASCADE, SET NULL) or \
                         a filter at the source";

/// What is said of too much.
pub(super) const TOO_LARGE: &str =
    "its rows take more than 256 MiB of memory, which is the limit: this is for small tables";

/// A server does all clauses at once, by the names before the statement. One after another is the same only where none names what one
/// before it has made, renamed or dropped.
fn one_by_one(clauses: &[Clause]) -> Result<(), String> {
    let (mut new, mut other): (Vec<String>, Vec<String>) = Default::default();
    for clause in clauses {
        let (named, is_place) = match clause {
            Clause::Drop(name) | Clause::Rename { from: name, .. } => (Some(name), false),
            Clause::Add { name, if_not_there: true, .. } => (Some(name), false),
            Clause::Add { place: Place::After(name), .. } => (Some(name), true),
            Clause::Add { .. } => (None, false),
        };
        let is_in = |names: &[String], name: &String| names.contains(&name.to_lowercase());
        // AFTER may name a new column.
        if let Some(name) = named.filter(|name| is_in(&other, name) || !is_place && is_in(&new, name)) {
            return Err(format!("what its clauses do to the column {name} together is not followed"));
        }
        match clause {
            Clause::Add { name, .. } => new.push(name.to_lowercase()),
            Clause::Drop(name) => new.push(name.to_lowercase()),
            Clause::Rename { from, to, .. } if from.eq_ignore_ascii_case(to) => {}
            Clause::Rename { from, to, .. } => other.extend([from.to_lowercase(), to.to_lowercase()]),
        }
    }
    Ok(())
}

/// Tables whose rows in the log cannot be written.
fn refuse(table: &KnownTable) -> Result<(), String> {
    if !table.has_names {
        let why = table.note.as_ref().map_or_else(String::new, |note| format!("; {note}"));
        return Err(format!(
            "the log does not name the columns of {} (binlog_row_metadata is not FULL): ask a server with --schema{why}",
            table.name()
        ));
    }
    let columns = &table.table.columns;
    let has = |name: &str| columns.iter().any(|one| one.name.as_deref() == Some(name));
    let is_told = table.definition.as_ref().is_some_and(|all| all.columns.iter().any(|one| one.is_version));
    if is_told || has("row_start") && has("row_end") {
        return Err(format!(
            "{} is system versioned: its old rows stand among the present ones",
            table.name()
        ));
    }
    Ok(())
}

/// As far as it matters for how values are written.
fn is_same_type(one: &Column, other: &Column) -> bool {
    one.kind == other.kind
        && one.unsigned == other.unsigned
        && one.charset == other.charset
        && one.members == other.members
}

fn part(cell: &Cell) -> Part {
    let Cell::Is(text) = cell else { return Part::Text("".into()) };
    match text.parse::<i128>() {
        Ok(number) if *number.to_string() == **text => Part::Number(number),
        _ => Part::Text(text.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::alter::clauses;
    use super::*;

    #[test]
    fn clauses_that_depend_on_each_other_are_refused() {
        for (does, column) in [
            ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", Some("b")),
            ("CHANGE a b INT, CHANGE b a INT", Some("b")),
            ("RENAME COLUMN a TO b, DROP COLUMN B", Some("B")),
            ("ADD a INT FIRST, DROP a", Some("a")),
            ("RENAME COLUMN a TO b, ADD c INT AFTER b", Some("b")),
            ("DROP a, ADD COLUMN IF NOT EXISTS a INT", Some("a")),
            ("DROP b, RENAME COLUMN a TO b", None),
            ("ADD c INT, ADD d INT AFTER c, RENAME COLUMN a TO b", None),
            ("MODIFY a BIGINT, ADD c INT AFTER a", None),
        ] {
            let found = one_by_one(&clauses(&format!("ALTER TABLE t {does}")).unwrap());
            let wanted = column
                .map(|name| format!("what its clauses do to the column {name} together is not followed"));
            assert_eq!(found.err(), wanted, "{does}");
        }
    }
}
