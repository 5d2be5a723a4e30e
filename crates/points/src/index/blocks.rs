//! Where transactions begin, coarsely, and what they do there.

use super::bytes::{Bytes, Writing};
use super::error::IndexError;
use super::head::read_effects;
use crate::effects::Effects;

/// So many tables of a block are named; one with more may hold any.
pub(super) const TABLES_MAX: usize = 48;
/// So many origins of GTIDs of a block are told; one with more may hold any.
pub(super) const ORIGINS_MAX: usize = 8;

/// Tables of a block, by their numbers in the list of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockTables {
    /// These and no others, in order.
    These(Vec<u32>),
    /// Any.
    Any,
}

/// GTIDs of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockGtids {
    /// Number of the origin, smallest and largest number in the block.
    These(Vec<(u32, u64, u64)>),
    /// Any.
    Any,
}

/// Some transactions that stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Where the first begins. The last ends where the next block begins, or before.
    pub at: u64,
    /// When they were committed, the first and the last by the clock, in microseconds since 1970.
    pub committed: (i64, i64),
    /// What they do.
    pub effects: Effects,
    /// To which tables.
    pub tables: BlockTables,
    /// Their GTIDs.
    pub gtids: BlockGtids,
    /// Rows of the one with the most; `u64::MAX` where one cannot be counted.
    pub most_rows: u64,
    /// Bytes of the biggest.
    pub most_bytes: u64,
    /// A part of one could not be looked at.
    pub has_unread: bool,
}

impl Block {
    /// Takes the block behind it in.
    pub(super) fn join(&mut self, other: &Block) {
        self.committed = (self.committed.0.min(other.committed.0), self.committed.1.max(other.committed.1));
        self.effects |= other.effects;
        self.most_rows = self.most_rows.max(other.most_rows);
        self.most_bytes = self.most_bytes.max(other.most_bytes);
        self.has_unread |= other.has_unread;
        match &other.tables {
            BlockTables::These(tables) => tables.iter().for_each(|table| self.add_table(*table)),
            BlockTables::Any => self.tables = BlockTables::Any,
        }
        match &other.gtids {
            BlockGtids::These(gtids) => {
                gtids.iter().for_each(|(origin, first, last)| self.add_gtids(*origin, *first, *last));
            }
            BlockGtids::Any => self.gtids = BlockGtids::Any,
        }
    }

    pub(super) fn add_table(&mut self, number: u32) {
        let BlockTables::These(tables) = &mut self.tables else { return };
        if let Err(at) = tables.binary_search(&number) {
            tables.insert(at, number);
            if tables.len() > TABLES_MAX {
                self.tables = BlockTables::Any;
            }
        }
    }

    pub(super) fn add_gtids(&mut self, origin: u32, first: u64, last: u64) {
        let BlockGtids::These(gtids) = &mut self.gtids else { return };
        match gtids.iter_mut().find(|(of, ..)| *of == origin) {
            Some(known) => (known.1, known.2) = (known.1.min(first), known.2.max(last)),
            None => gtids.push((origin, first, last)),
        }
        if gtids.len() > ORIGINS_MAX {
            self.gtids = BlockGtids::Any;
        }
    }

    fn write(&self, before: &Before, out: &mut Writing) {
        out.number(self.at - before.at);
        out.signed(self.committed.0.wrapping_sub(before.committed));
        out.number(self.committed.1.abs_diff(self.committed.0));
        out.number(u64::from(self.effects.bits()));
        match &self.tables {
            BlockTables::Any => out.number(0),
            BlockTables::These(tables) => {
                out.number(tables.len() as u64 + 1);
                let mut last = 0;
                for table in tables {
                    out.number(u64::from(table - last));
                    last = *table;
                }
            }
        }
        match &self.gtids {
            BlockGtids::Any => out.number(0),
            BlockGtids::These(gtids) => {
                out.number(gtids.len() as u64 + 1);
                for (origin, first, last) in gtids {
                    out.number(u64::from(*origin));
                    out.number(*first);
                    out.number(last - first);
                }
            }
        }
        out.number(self.most_rows);
        out.number(self.most_bytes);
        out.flag(self.has_unread);
    }

    fn read(before: &Before, bytes: &mut Bytes<'_>) -> Result<Block, IndexError> {
        const TOO_LARGE: IndexError = IndexError::Damaged("a block's place, time or number is too large");
        let at = before.at.checked_add(bytes.number()?).ok_or(TOO_LARGE)?;
        let first = before.committed.wrapping_add(bytes.signed()?);
        let last = first.checked_add_unsigned(bytes.number()?).ok_or(TOO_LARGE)?;
        let effects = read_effects(bytes)?;
        let tables = match bytes.count()? {
            0 => BlockTables::Any,
            count => {
                let (mut tables, mut last) = (Vec::new(), 0_u32);
                for _ in 1..count {
                    last = last.checked_add(bytes.small()?).ok_or(TOO_LARGE)?;
                    tables.push(last);
                }
                BlockTables::These(tables)
            }
        };
        let gtids = match bytes.count()? {
            0 => BlockGtids::Any,
            count => {
                let mut gtids = Vec::new();
                for _ in 1..count {
                    let (origin, first) = (bytes.small()?, bytes.number()?);
                    gtids.push((origin, first, first.checked_add(bytes.number()?).ok_or(TOO_LARGE)?));
                }
                BlockGtids::These(gtids)
            }
        };
        Ok(Block {
            at,
            committed: (first, last),
            effects,
            tables,
            gtids,
            most_rows: bytes.number()?,
            most_bytes: bytes.number()?,
            has_unread: bytes.flag()?,
        })
    }
}

/// What a block's numbers are counted from.
#[derive(Debug, Default)]
struct Before {
    at: u64,
    committed: i64,
}

impl Before {
    fn of(block: &Block) -> Before {
        Before { at: block.at, committed: block.committed.0 }
    }
}

pub(super) fn write(blocks: &[Block], out: &mut Writing) {
    out.number(blocks.len() as u64);
    let mut before = Before::default();
    for block in blocks {
        block.write(&before, out);
        before = Before::of(block);
    }
}

pub(super) fn read(section: &[u8]) -> Result<Vec<Block>, IndexError> {
    let mut bytes = Bytes(section);
    let (mut blocks, mut before) = (Vec::new(), Before::default());
    for _ in 0..bytes.count()? {
        let block = Block::read(&before, &mut bytes)?;
        before = Before::of(&block);
        blocks.push(block);
    }
    bytes.end()?;
    Ok(blocks)
}
