//! Tables, and how many of their rows change.

use std::fmt;

/// The name of a table. Bytes that are no UTF-8 are replaced: it is for people and for searching.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// Its schema, the database; empty where a statement names none and its session had none.
    pub schema: String,
    /// The table; empty for the whole schema, which a DROP DATABASE is about.
    pub table: String,
}

impl TableName {
    /// Of the bytes of an event.
    pub fn new(schema: &[u8], table: &[u8]) -> TableName {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        TableName { schema: text(schema), table: text(table) }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = if self.table.is_empty() { "*" } else { &self.table };
        write!(f, "{}.{table}", self.schema)
    }
}

/// How many rows change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that are new.
    pub written: u64,
    /// Rows that are others now.
    pub updated: u64,
    /// Rows that are no more.
    pub deleted: u64,
    /// There are more, and nobody can tell how many: a statement stands in the log in the place of its rows, or a row event could
    /// not be counted.
    pub has_unknown: bool,
}

impl RowCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.written.saturating_add(self.updated).saturating_add(self.deleted)
    }

    /// Adds those of another transaction.
    pub fn add(&mut self, other: &RowCounts) {
        self.written = self.written.saturating_add(other.written);
        self.updated = self.updated.saturating_add(other.updated);
        self.deleted = self.deleted.saturating_add(other.deleted);
        self.has_unknown |= other.has_unknown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_and_counts_added() {
        assert_eq!(TableName::new(b"shop", b"orders").to_string(), "shop.orders");
        assert_eq!(TableName::new(b"shop", b"").to_string(), "shop.*");
        let mut counts = RowCounts { written: 1, ..RowCounts::default() };
        counts.add(&RowCounts { updated: 2, deleted: u64::MAX, has_unknown: true, ..RowCounts::default() });
        assert_eq!((counts.written, counts.updated, counts.has_unknown), (1, 2, true));
        assert_eq!(counts.total(), u64::MAX);
    }
}
