//! The tables of a file.

use super::bytes::{Bytes, Writing};
use super::error::IndexError;
use super::head::read_effects;
use crate::effects::Effects;
use crate::table::{RowCounts, TableName};

/// A table that the file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedTable {
    /// Which one.
    pub name: TableName,
    /// Its rows that change.
    pub rows: RowCounts,
    /// Transactions that change it.
    pub transactions: u64,
    /// What is done to it.
    pub effects: Effects,
}

pub(super) fn write(tables: &[IndexedTable], out: &mut Writing) {
    out.number(tables.len() as u64);
    for table in tables {
        out.text(&table.name.schema);
        out.text(&table.name.table);
        write_rows(&table.rows, out);
        out.number(table.transactions);
        out.number(u64::from(table.effects.bits()));
    }
}

pub(super) fn read(section: &[u8]) -> Result<Vec<IndexedTable>, IndexError> {
    let mut bytes = Bytes(section);
    let mut tables = Vec::new();
    for _ in 0..bytes.count()? {
        tables.push(IndexedTable {
            name: TableName { schema: bytes.text()?, table: bytes.text()? },
            rows: read_rows(&mut bytes)?,
            transactions: bytes.number()?,
            effects: read_effects(&mut bytes)?,
        });
    }
    bytes.end()?;
    Ok(tables)
}

pub(super) fn write_rows(rows: &RowCounts, out: &mut Writing) {
    out.number(rows.written);
    out.number(rows.updated);
    out.number(rows.deleted);
    out.flag(rows.has_unknown);
}

pub(super) fn read_rows(bytes: &mut Bytes<'_>) -> Result<RowCounts, IndexError> {
    Ok(RowCounts {
        written: bytes.number()?,
        updated: bytes.number()?,
        deleted: bytes.number()?,
        has_unknown: bytes.flag()?,
    })
}
