//! What stands out over many files, from their indexes.

use crate::index::{Bucket, Histogram, Peak, SearchIndex};
use crate::table::{RowCounts, TableName};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// A transaction that stands out: where its file is, the transaction, names of some of its tables.
pub(crate) type Placed<P> = (P, Peak, Vec<String>);

/// Gathers over files; `P` says where a file is.
#[derive(Debug)]
pub struct Statistics<P> {
    limit: usize,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// When the first was committed and when the last, by the clock, in microseconds since 1970.
    pub committed: Option<(i64, i64)>,
    /// The biggest transactions, the biggest first.
    pub biggest: Vec<Placed<P>>,
    /// Those that took longest, the longest first.
    pub longest: Vec<Placed<P>>,
    /// There are tables that no list names.
    pub has_more_tables: bool,
    tables: HashMap<TableName, (RowCounts, u64)>,
    step: u32,
    buckets: BTreeMap<i64, Bucket>,
}

impl<P: Clone> Statistics<P> {
    /// Of nothing yet, with so many of each list.
    pub fn new(limit: usize) -> Statistics<P> {
        Statistics {
            limit,
            files: 0,
            bytes: 0,
            transactions: 0,
            committed: None,
            biggest: Vec::new(),
            longest: Vec::new(),
            has_more_tables: false,
            tables: HashMap::new(),
            step: 1,
            buckets: BTreeMap::new(),
        }
    }

    /// Takes a file.
    pub fn add(&mut self, place: &P, index: &SearchIndex) {
        self.files += 1;
        self.bytes += index.head.identity.len;
        self.transactions += index.head.transactions;
        if index.head.transactions > 0 {
            let (first, last) = index.head.committed;
            let (before, after) = self.committed.unwrap_or((first, last));
            self.committed = Some((before.min(first), after.max(last)));
        }
        self.has_more_tables |= index.head.has_more_tables;
        for table in &index.tables {
            let sum = self.tables.entry(table.name.clone()).or_default();
            sum.0.add(&table.rows);
            sum.1 += table.transactions;
        }
        let placed = |peak: &Peak| {
            let names = peak.tables.iter().filter_map(|at| index.tables.get(*at as usize));
            (place.clone(), peak.clone(), names.map(|table| table.name.to_string()).collect())
        };
        self.biggest.extend(index.details.biggest.iter().map(placed));
        self.biggest.sort_by_key(|(_, peak, _)| Reverse(peak.end - peak.at));
        self.biggest.truncate(self.limit);
        self.longest.extend(index.details.longest.iter().map(placed));
        self.longest.sort_by_key(|(_, peak, _)| Reverse(peak.lasted));
        self.longest.truncate(self.limit);
        let histogram = &index.details.histogram;
        if histogram.step > self.step {
            self.step = histogram.step;
            let finer = std::mem::take(&mut self.buckets);
            finer.values().for_each(|bucket| self.count(bucket));
        }
        histogram.buckets.iter().for_each(|bucket| self.count(bucket));
    }

    fn count(&mut self, bucket: &Bucket) {
        let minute = bucket.minute - bucket.minute.rem_euclid(i64::from(self.step.max(1)));
        let sum = self.buckets.entry(minute).or_insert(Bucket { minute, ..Bucket::default() });
        sum.transactions += bucket.transactions;
        sum.rows = sum.rows.saturating_add(bucket.rows);
        sum.bytes = sum.bytes.saturating_add(bucket.bytes);
    }

    /// The tables with the most rows that change, with the transactions that change them.
    pub fn busiest(&self) -> Vec<(&TableName, RowCounts, u64)> {
        let mut tables: Vec<_> =
            self.tables.iter().map(|(name, (rows, count))| (name, *rows, *count)).collect();
        tables.sort_by(|one, two| (two.1.total(), two.2, one.0).cmp(&(one.1.total(), one.2, two.0)));
        tables.truncate(self.limit);
        tables
    }

    /// Writes over time, each bucket as long as the longest of a file.
    pub fn histogram(&mut self) -> Histogram {
        Histogram { step: self.step, buckets: self.buckets.values().copied().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::build;
    use crate::testing::{Bytes, insert};
    use binlog::testing::FileBuilder;

    #[test]
    fn files_are_added_up() {
        let mut statistics = Statistics::new(3);
        for file in 0..2 {
            let mut log = FileBuilder::new().previous_gtids("");
            for number in 1..=10 {
                insert(
                    &mut log,
                    number,
                    if number == 3 { "rare" } else { "orders" },
                    (number + file) as usize,
                );
            }
            let bytes = log.finish();
            let index = build(&Bytes(bytes.clone()), bytes.len() as u64, &mut |_| Ok(())).unwrap();
            statistics.add(&file, &index);
        }
        assert_eq!((statistics.files, statistics.transactions), (2, 20));
        let rows: Vec<(u64, u64)> =
            statistics.biggest.iter().map(|(file, peak, _)| (*file, peak.rows.written)).collect();
        assert_eq!(rows, [(1, 11), (0, 10), (1, 10)]);
        assert_eq!(statistics.biggest[0].2, ["shop.orders"]);
        let tables: Vec<(String, u64)> = statistics
            .busiest()
            .into_iter()
            .map(|(name, rows, _)| (name.to_string(), rows.written))
            .collect();
        assert_eq!(tables, [("shop.orders".to_owned(), 52 + 61), ("shop.rare".to_owned(), 7)]);
        let counted: u64 = statistics.histogram().buckets.iter().map(|bucket| bucket.transactions).sum();
        assert_eq!(counted, 20);
    }
}
