//! The tables that TABLE_MAP events name, kept over transactions: most name the same ones again.

use crate::table::TableName;
use codec::event::{EventError, HEADER_LEN, RowImages, TableColumns, TableMap};
use std::collections::HashMap;
use std::sync::Arc;

/// So many tables are kept from one transaction to the next. A server numbers its tables anew all the time, so older ones are forgotten.
const KEPT_MAX: usize = 4096;

/// So many tables of one transaction are kept: a statement names all tables that it may change before its first row.
const OF_ONE_MAX: usize = 1 << 17;

/// A table as its last TABLE_MAP event describes it.
#[derive(Debug)]
pub(super) struct MappedTable {
    pub(super) name: Arc<TableName>,
    /// `None` where its rows cannot be counted.
    pub(super) images: Option<RowImages>,
    /// The event, without its header.
    body: Vec<u8>,
    /// The number of the transaction that changed it last, and where it stands in that one's list.
    pub(super) slot: (u64, usize),
}

/// Tables by the numbers that row events have.
#[derive(Debug, Default)]
pub(super) struct Tables(HashMap<[u8; 6], MappedTable>);

impl Tables {
    /// A transaction begins, which names its tables anew.
    pub(super) fn begin(&mut self) {
        if self.0.len() > KEPT_MAX {
            self.0.clear();
        }
    }

    /// Takes a TABLE_MAP event, without its checksum.
    pub(super) fn map(&mut self, event: &[u8]) -> Result<(), EventError> {
        const CUT: EventError = EventError::Malformed("a TABLE_MAP event is cut short");
        let body = event.get(HEADER_LEN..).ok_or(CUT)?;
        let id = *body.first_chunk::<6>().ok_or(CUT)?;
        if self.0.get(&id).is_some_and(|known| known.body == body) {
            return Ok(());
        }
        let names = TableMap::parse(event)?;
        let images = TableColumns::parse(event).and_then(|columns| RowImages::of(&columns)).ok();
        let name = Arc::new(TableName::new(names.schema, names.table));
        if self.0.len() >= OF_ONE_MAX {
            self.0.clear();
        }
        self.0.insert(id, MappedTable { name, images, body: body.to_vec(), slot: (0, 0) });
        Ok(())
    }

    /// The table of that number.
    pub(super) fn get(&mut self, id: &[u8; 6]) -> Option<&mut MappedTable> {
        self.0.get_mut(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LOCK TABLES of many tables: each statement then names all of them before its first row.
    #[test]
    fn all_tables_of_one_transaction_are_kept() {
        let map = |number: u32| {
            let mut event = vec![0; HEADER_LEN];
            event.extend_from_slice(&number.to_le_bytes());
            event.extend_from_slice(b"\0\0\x01\0\x04shop\0\x01t\0\x01\x03\0\x01");
            event
        };
        let id = |number: u32| [&number.to_le_bytes()[..], &[0, 0]].concat().try_into().unwrap();
        let mut tables = Tables::default();
        tables.begin();
        (0..2 * KEPT_MAX as u32).for_each(|number| tables.map(&map(number)).unwrap());
        assert!(tables.get(&id(0)).is_some() && tables.get(&id(5000)).is_some());
        tables.begin();
        assert!(tables.get(&id(0)).is_none(), "older ones are forgotten between transactions");
    }
}
