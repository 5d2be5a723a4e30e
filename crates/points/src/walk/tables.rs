//! The tables that TABLE_MAP events name, kept over transactions: most name the same ones again.

use crate::table::TableName;
use codec::event::{EventError, HEADER_LEN, RowImages, TableColumns, TableMap};
use std::collections::HashMap;
use std::sync::Arc;

/// So many tables are kept. A server numbers its tables anew all the time, so older ones are forgotten.
const KEPT_MAX: usize = 4096;

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
        if self.0.len() >= KEPT_MAX {
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
