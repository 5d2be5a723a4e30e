//! Makes an index from the transactions of a file.

use super::blocks::{Block, BlockGtids, BlockTables};
use super::details::{Bucket, Definition, Details, Histogram, Peak};
use super::file::SearchIndex;
use super::head::Head;
use super::identity::Identity;
use super::origins::Gathered;
use super::tables::IndexedTable;
use crate::effects::Effects;
use crate::table::{RowCounts, TableName};
use crate::transaction::Transaction;
use crate::walk::{Options, Walk, WalkError};
use binlog::storage::ReadAt;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A block is so many bytes of the log at least.
const BLOCK_BYTES: u64 = 128 << 10;
/// An index is no longer than the log's bytes divided by this: 0.5 %. It becomes coarser until it is.
const SHARE: usize = 200;
/// But so long any index may be: it takes a block of the disk anyway.
const ALWAYS_BYTES: usize = 4096;
/// So many transactions of a kind are listed as standing out.
const PEAKS_MAX: usize = 8;
/// So many tables of one that stands out.
const PEAK_TABLES_MAX: usize = 4;
/// So many definitions are listed.
const DEFINITIONS_MAX: usize = 1000;
/// So many characters of each.
const TEXT_CHARS_MAX: usize = 160;
/// So many buckets of writes over time are kept.
const BUCKETS_MAX: usize = 1440;
/// So many tables are named.
const TABLES_MAX: usize = 16_384;

/// Walks a sealed file of which `len` bytes are there, and makes its index. Each checksum is computed. `watch` is told the offset
/// after each transaction.
///
/// # Errors
/// When the file cannot be read or is damaged, or as `watch` says.
pub fn build(
    file: &dyn ReadAt,
    len: u64,
    watch: &mut dyn FnMut(u64) -> std::io::Result<()>,
) -> Result<SearchIndex, WalkError> {
    let identity = Identity::of(file, len)?;
    let mut builder = Builder::new(identity);
    let mut walk = Walk::open(file, len, Options { verifies: true, ..Options::default() })?;
    while let Some(transaction) = walk.next_transaction()? {
        builder.add(transaction);
        watch(transaction.end)?;
    }
    // A sealed file ends with an event, but maybe inside a transaction: its server went down.
    if walk.at() != len {
        let what = "it ends inside an event".to_owned();
        return Err(WalkError::Damaged { at: walk.at(), what });
    }
    Ok(builder.finish())
}

/// Gathers an index.
#[derive(Debug)]
pub struct Builder {
    identity: Identity,
    transactions: u64,
    end: u64,
    gtids: Gathered,
    numbers: HashMap<Arc<TableName>, u32>,
    tables: Vec<IndexedTable>,
    has_more_tables: bool,
    details: Details,
    buckets: BTreeMap<i64, Bucket>,
    step: u32,
    blocks: Vec<Block>,
}

impl Builder {
    /// Of a file with that identity.
    pub fn new(identity: Identity) -> Builder {
        Builder {
            identity,
            transactions: 0,
            end: 0,
            gtids: Gathered::default(),
            numbers: HashMap::new(),
            tables: Vec::new(),
            has_more_tables: false,
            details: Details::default(),
            buckets: BTreeMap::new(),
            step: 1,
            blocks: Vec::new(),
        }
    }

    /// Takes the next transaction.
    pub fn add(&mut self, transaction: &Transaction) {
        self.transactions += 1;
        self.end = transaction.end;
        let rows = transaction.rows();
        let tables = self.add_tables(transaction);
        let block = self.block(transaction, &rows, &tables);
        match self.blocks.last_mut() {
            Some(last) if transaction.end - last.at <= BLOCK_BYTES => last.join(&block),
            _ => self.blocks.push(block),
        }
        self.define(transaction);
        self.stand_out(transaction, rows, &tables);
        self.count(transaction, &rows);
    }

    /// The numbers of its tables; `None` for one that is not listed any more.
    fn add_tables(&mut self, transaction: &Transaction) -> Vec<Option<u32>> {
        self.has_more_tables |= transaction.has_more_tables;
        let mut numbers = Vec::with_capacity(transaction.tables.len());
        for change in &transaction.tables {
            let known = self.numbers.get(&change.name).copied();
            let number = known.or_else(|| {
                if self.tables.len() >= TABLES_MAX {
                    self.has_more_tables = true;
                    return None;
                }
                let number = self.tables.len() as u32;
                self.numbers.insert(change.name.clone(), number);
                self.tables.push(IndexedTable {
                    name: (*change.name).clone(),
                    rows: RowCounts::default(),
                    transactions: 0,
                    effects: Effects::NONE,
                });
                Some(number)
            });
            if let Some(table) = number.and_then(|number| self.tables.get_mut(number as usize)) {
                table.rows.add(&change.rows);
                table.transactions += 1;
                table.effects |= change.effects.indexed();
            }
            numbers.push(number);
        }
        numbers
    }

    fn block(&mut self, transaction: &Transaction, rows: &RowCounts, tables: &[Option<u32>]) -> Block {
        let is_open = transaction.has_more_tables || tables.contains(&None);
        let mut block = Block {
            at: transaction.at,
            committed: transaction.committed_between(),
            effects: transaction.effects.indexed(),
            tables: if is_open { BlockTables::Any } else { BlockTables::These(Vec::new()) },
            gtids: BlockGtids::These(Vec::new()),
            most_rows: if rows.has_unknown || transaction.has_more_tables { u64::MAX } else { rows.total() },
            most_bytes: transaction.size(),
            has_unread: transaction.unread.is_some() || transaction.is_incident,
        };
        tables.iter().flatten().for_each(|number| block.add_table(*number));
        if let Some(id) = &transaction.id {
            let (origin, number) = self.gtids.take(id);
            block.add_gtids(origin, number, number);
        }
        block
    }

    fn define(&mut self, transaction: &Transaction) {
        if !transaction.effects.intersects(Effects::DDL) {
            return;
        }
        if self.details.definitions.len() >= DEFINITIONS_MAX {
            self.details.has_more_definitions = true;
            return;
        }
        let statement = transaction.statements.iter().find(|statement| !statement.is_for_people);
        let text = statement.map(|statement| statement.shown()).unwrap_or_default();
        self.details.definitions.push(Definition {
            at: transaction.at,
            end: transaction.end,
            committed: transaction.committed,
            effects: transaction.effects.indexed(),
            text: cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), TEXT_CHARS_MAX),
        });
    }

    fn stand_out(&mut self, transaction: &Transaction, rows: RowCounts, tables: &[Option<u32>]) {
        let lasted = transaction.lasted().unwrap_or(0);
        let is_above = |peaks: &[Peak], of: fn(&Peak) -> u64, own: u64| {
            peaks.len() < PEAKS_MAX || peaks.last().is_some_and(|last| own > of(last))
        };
        let size = |peak: &Peak| peak.end - peak.at;
        let is_big = is_above(&self.details.biggest, size, transaction.size());
        let is_long = lasted > 0 && is_above(&self.details.longest, |peak| peak.lasted, lasted);
        if !is_big && !is_long {
            return;
        }
        let peak = Peak {
            gtid: transaction.id.map(|id| id.to_string()).unwrap_or_default(),
            at: transaction.at,
            end: transaction.end,
            committed: transaction.committed,
            lasted,
            rows,
            tables: tables.iter().flatten().copied().take(PEAK_TABLES_MAX).collect(),
        };
        if is_long {
            insert(&mut self.details.longest, peak.clone(), |peak| peak.lasted);
        }
        if is_big {
            insert(&mut self.details.biggest, peak, size);
        }
    }

    fn count(&mut self, transaction: &Transaction, rows: &RowCounts) {
        let minute = transaction.committed.micros.div_euclid(60_000_000);
        let minute = minute - minute.rem_euclid(i64::from(self.step));
        let bucket = self.buckets.entry(minute).or_insert(Bucket { minute, ..Bucket::default() });
        bucket.transactions += 1;
        bucket.rows = bucket.rows.saturating_add(rows.total());
        bucket.bytes = bucket.bytes.saturating_add(transaction.size());
        if self.buckets.len() > BUCKETS_MAX {
            self.step *= 2;
            self.buckets = coarser(self.buckets.values(), self.step);
        }
    }

    /// The index, coarse enough to be short.
    pub fn finish(mut self) -> SearchIndex {
        self.details.histogram =
            Histogram { step: self.step, buckets: self.buckets.values().copied().collect() };
        let all = |of: fn(&Block) -> i64| self.blocks.iter().map(of);
        let committed = (
            all(|block| block.committed.0).min().unwrap_or(0),
            all(|block| block.committed.1).max().unwrap_or(0),
        );
        let mut effects = Effects::NONE;
        self.blocks.iter().for_each(|block| effects |= block.effects);
        let head = Head {
            identity: self.identity,
            transactions: self.transactions,
            end: self.end,
            committed,
            gtids: self.gtids.finish(),
            effects,
            most_rows: self.blocks.iter().map(|block| block.most_rows).max().unwrap_or(0),
            most_bytes: self.blocks.iter().map(|block| block.most_bytes).max().unwrap_or(0),
            has_unread: self.blocks.iter().any(|block| block.has_unread),
            has_more_tables: self.has_more_tables,
        };
        let mut index = SearchIndex { head, tables: self.tables, details: self.details, blocks: self.blocks };
        let most = usize::try_from(self.identity.len).unwrap_or(usize::MAX) / SHARE;
        let most = most.max(ALWAYS_BYTES);
        while index.to_bytes().len() > most && coarsen(&mut index) {}
        index
    }
}

/// Makes the longest part of an index shorter; false when nothing can be.
fn coarsen(index: &mut SearchIndex) -> bool {
    let lens = index.section_lens();
    let longest = (0..lens.len()).filter(|at| can_coarsen(index, *at)).max_by_key(|at| lens[*at]);
    match longest {
        Some(0) => {
            // The rarest go; blocks that have them hold any.
            let mut busiest: Vec<u32> = (0..index.tables.len() as u32).collect();
            busiest.sort_by_key(|at| std::cmp::Reverse(index.tables[*at as usize].transactions));
            busiest.truncate(index.tables.len() / 2);
            keep_tables(index, &busiest);
        }
        Some(1) => {
            let definitions = &mut index.details.definitions;
            let longest = definitions.iter().map(|one| one.text.len()).max().unwrap_or(0);
            if longest > 16 {
                definitions.iter_mut().for_each(|one| one.text = cut(&one.text, longest / 2));
            } else {
                definitions.truncate(definitions.len() / 2);
                index.details.has_more_definitions = true;
            }
        }
        Some(2) => {
            let histogram = &mut index.details.histogram;
            histogram.step *= 2;
            histogram.buckets = coarser(histogram.buckets.iter(), histogram.step).into_values().collect();
        }
        Some(_) => {
            let blocks = std::mem::take(&mut index.blocks);
            for (number, block) in blocks.into_iter().enumerate() {
                match index.blocks.last_mut() {
                    Some(last) if number % 2 == 1 => last.join(&block),
                    _ => index.blocks.push(block),
                }
            }
        }
        None => return false,
    }
    true
}

/// Tables, definitions, writes over time, blocks.
fn can_coarsen(index: &SearchIndex, part: usize) -> bool {
    match part {
        0 => index.tables.len() > 1,
        1 => !index.details.definitions.is_empty(),
        // Ten years.
        2 => index.details.histogram.buckets.len() > 1 && index.details.histogram.step < 5_000_000,
        _ => index.blocks.len() > 1,
    }
}

fn keep_tables(index: &mut SearchIndex, kept: &[u32]) {
    let mut kept = kept.to_vec();
    kept.sort_unstable();
    let renumbered = |number: &u32| kept.binary_search(number).ok().map(|at| at as u32);
    for block in &mut index.blocks {
        if let BlockTables::These(tables) = &block.tables {
            let numbers: Option<Vec<u32>> = tables.iter().map(renumbered).collect();
            block.tables = numbers.map_or(BlockTables::Any, BlockTables::These);
        }
    }
    for peak in index.details.biggest.iter_mut().chain(&mut index.details.longest) {
        peak.tables = peak.tables.iter().filter_map(renumbered).collect();
    }
    index.tables = kept.iter().map(|at| index.tables[*at as usize].clone()).collect();
    index.head.has_more_tables = true;
}

fn coarser<'a>(buckets: impl Iterator<Item = &'a Bucket>, step: u32) -> BTreeMap<i64, Bucket> {
    let mut coarser: BTreeMap<i64, Bucket> = BTreeMap::new();
    for bucket in buckets {
        let minute = bucket.minute - bucket.minute.rem_euclid(i64::from(step));
        let sum = coarser.entry(minute).or_insert(Bucket { minute, ..Bucket::default() });
        sum.transactions += bucket.transactions;
        sum.rows = sum.rows.saturating_add(bucket.rows);
        sum.bytes = sum.bytes.saturating_add(bucket.bytes);
    }
    coarser
}

/// Keeps the highest, the highest first; of equal ones the earlier.
fn insert(peaks: &mut Vec<Peak>, peak: Peak, of: fn(&Peak) -> u64) {
    let at = peaks.partition_point(|other| of(other) >= of(&peak));
    peaks.insert(at, peak);
    peaks.truncate(PEAKS_MAX);
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
