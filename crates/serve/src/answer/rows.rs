//! A result set: titles, kinds and rows of text.

use crate::sql::Limit;

/// How a client is to read the values of a column. The bytes on the wire are text in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// VARCHAR.
    Text,
    /// BIGINT; clients of typed languages make numbers of it.
    Integer,
    /// BIGINT UNSIGNED, as the servers declare sizes and positions.
    Unsigned,
}

/// A column of a result set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// As a server titles it.
    pub title: String,
    /// Text or a number.
    pub kind: ColumnKind,
}

impl Column {
    /// A column of text.
    pub fn text(title: impl Into<String>) -> Column {
        Column { title: title.into(), kind: ColumnKind::Text }
    }

    /// A column of whole numbers.
    pub(crate) fn integer(title: impl Into<String>) -> Column {
        Column { title: title.into(), kind: ColumnKind::Integer }
    }

    /// A column of whole numbers that are never negative.
    pub fn unsigned(title: impl Into<String>) -> Column {
        Column { title: title.into(), kind: ColumnKind::Unsigned }
    }
}

/// One row: as many values as there are columns; `None` is NULL.
pub type Row = Vec<Option<String>>;

/// A result set, which may have no row but has at least one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Rows {
    pub(super) fn new(columns: Vec<Column>) -> Rows {
        Rows { columns, rows: Vec::new() }
    }

    pub(super) fn of(columns: Vec<Column>, rows: Vec<Row>) -> Rows {
        Rows { columns, rows }
    }

    pub(super) fn limited(self, limit: Limit) -> Rows {
        Rows { rows: limit.cut(self.rows), ..self }
    }
}

/// A value that is there.
pub(super) fn some(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// The columns of SHOW BINLOG EVENTS, whose rows the session reads from the files.
pub fn binlog_event_columns() -> Vec<Column> {
    vec![
        Column::text("Log_name"),
        Column::integer("Pos"),
        Column::text("Event_type"),
        Column::integer("Server_id"),
        Column::integer("End_log_pos"),
        Column::text("Info"),
    ]
}
