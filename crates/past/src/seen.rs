//! What the log says of a row, one thing after another.

use crate::key::Key;
use codec::rows::{Column, Image as LoggedImage, Value};
use points::table::TableName;
use points::transaction::{CommitTime, Transaction};
use repair::detail::{KnownTable, as_json};
use repair::searched::FoundAt;
use serde_json::Value as Json;
use std::fmt;
use std::rc::Rc;

/// The transaction in which something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    /// Its GTID; `None` for an anonymous one.
    pub gtid: Option<String>,
    /// When it was committed.
    pub committed: CommitTime,
    /// `server_id` of the server that committed it first.
    pub server_id: u32,
    /// The connection that made it, where an event says so.
    pub thread: Option<u32>,
    /// Folder of its timeline.
    pub timeline: String,
    /// Its file.
    pub file: String,
    /// Where it begins there.
    pub position: u64,
}

impl At {
    pub(crate) fn of(found: FoundAt<'_>, transaction: &Transaction) -> At {
        At {
            gtid: transaction.id.map(|id| id.to_string()),
            committed: transaction.committed,
            server_id: transaction.server_id,
            thread: transaction.thread,
            timeline: found.timeline.name.clone(),
            file: found.searched.name.clone(),
            position: transaction.at,
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_microsecond(self.committed.micros).unwrap_or_default();
        write!(f, "{time:.0}, {}:{}", self.file, self.position)?;
        self.gtid.as_ref().map_or(Ok(()), |gtid| write!(f, ", {gtid}"))
    }
}

/// Something that is no change of the row, and matters for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it stands.
    pub at: Rc<At>,
    /// What it is, in words.
    pub words: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.words, self.at)
    }
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// For a person, on one line.
    pub text: String,
    /// For a program.
    pub json: Json,
    /// It is a part of a value: a change within a JSON document.
    pub is_partial: bool,
}

/// A value for each column; `None` for one that the log does not have.
pub type Image = Vec<Option<Cell>>;

/// A column, as the log or a server names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedColumn {
    /// Its name, or `@1`.
    pub name: String,
    /// It belongs to the key that was asked for.
    pub is_key: bool,
}

/// A change of the row.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The transaction.
    pub at: Rc<At>,
    /// The table's name then.
    pub table: String,
    /// The statement that made it, where the log has it.
    pub statement: Option<Rc<str>>,
    /// The columns.
    pub columns: Rc<[NamedColumn]>,
    /// The row before; `None` where it is new.
    pub before: Option<Image>,
    /// The row behind it; `None` where it is gone.
    pub after: Option<Image>,
    /// The row had the key before.
    pub had_key: bool,
    /// The row has the key behind it.
    pub has_key: bool,
    /// The key of the other side, where an update changed the key.
    pub other_key: Option<Key>,
    /// It counts from the end of this XA transaction on, if that was committed.
    pub(crate) xid: Option<String>,
}

impl Change {
    /// `insert`, `update`, `delete`.
    pub fn verb(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "insert",
            (_, None) => "delete",
            _ => "update",
        }
    }

    /// The values of one side, which lacks what did not change where the log has no whole rows (`binlog_row_image`).
    pub(crate) fn side(&self, is_after: bool) -> Option<Image> {
        let (own, other) = match is_after {
            true => (self.after.as_ref()?, &self.before),
            false => (self.before.as_ref()?, &None),
        };
        let cell =
            |(at, cell): (usize, &Option<Cell>)| cell.clone().or_else(|| other.as_ref()?.get(at)?.clone());
        Some(own.iter().enumerate().map(cell).collect())
    }
}

/// What stands in the log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen<R = Box<Change>> {
    /// A change of the row.
    Row(R),
    /// The table has no row behind it: it was emptied, dropped or made.
    Emptied(Note),
    /// The table had, or got, another name.
    Moved { from: Option<TableName>, to: Option<TableName>, note: Note },
    /// The columns may be others behind it.
    Altered(Note),
    /// Rows may have changed, and the log does not have them.
    Unseen(Note),
    /// An XA transaction ends.
    Ended { xid: String, is_commit: bool },
}

/// The values of a row.
pub(crate) fn image(columns: &[Column], image: &LoggedImage<'_>) -> Image {
    let cell = |(column, value): (&Column, &Option<Value<'_>>)| {
        let value = value.as_ref()?;
        Some(Cell {
            text: value.text(column),
            json: as_json(column, value),
            is_partial: matches!(value, Value::JsonDiffs(_)),
        })
    };
    columns.iter().zip(image).map(cell).collect()
}

/// The columns of a table, with those of the key.
pub(crate) fn columns(table: &KnownTable, key: &crate::key::Wanted) -> Rc<[NamedColumn]> {
    let of = |(at, column): (usize, &Column)| NamedColumn {
        name: column.name.clone().unwrap_or_default(),
        is_key: key.iter().any(|(own, _)| *own == at),
    };
    table.table.columns.iter().enumerate().map(of).collect()
}
