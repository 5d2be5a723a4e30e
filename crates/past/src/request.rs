//! What is asked for.

use crate::key::Key;
use crate::line::Line;
use points::table::TableName;
use repair::history::Until;

/// The row that is asked for.
pub struct Request<'a> {
    /// The log.
    pub line: &'a Line<'a>,
    /// The table, by the name that it has at the point.
    pub table: &'a TableName,
    /// The row's primary key at the point.
    pub key: &'a Key,
    /// The point.
    pub at: &'a Until,
}
