//! What is searched for.

use crate::effects::Effects;
use crate::glob::TableGlob;
use crate::index::{Block, BlockGtids, BlockTables, Head, IndexedTable};
use crate::transaction::{TableChange, Transaction};
use crate::wanted_gtids::WantedGtids;

/// What a transaction must have to be found. What is not given does not matter.
#[derive(Debug, Clone, Default)]
pub struct Criteria {
    /// One of these identifiers.
    pub gtids: Option<WantedGtids>,
    /// Committed at or after this, in microseconds since 1970.
    pub from: Option<i64>,
    /// Committed before this.
    pub until: Option<i64>,
    /// It changes one of these tables.
    pub tables: Vec<TableGlob>,
    /// It does one of these; where tables are given, to one of them.
    pub kinds: Effects,
    /// So many rows at least; where tables are given, of these.
    pub min_rows: u64,
    /// So many bytes in the log at least.
    pub min_bytes: u64,
    /// Made by this connection.
    pub thread: Option<u32>,
    /// One of its statements holds this, in lower case.
    pub text: Option<Vec<u8>>,
    /// Or, of the time and the GTIDs that are asked for, it does one of these, to whatever it is. Where this is not empty, also what
    /// nobody can tell is found: a transaction with a part that cannot be looked at, and an INCIDENT.
    pub besides: Effects,
}

/// Whether a transaction is what is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// It may be: a part of it cannot be looked at, or not be counted.
    Unknown,
}

impl Criteria {
    /// Whether that transaction is searched for.
    pub fn judge(&self, transaction: &Transaction) -> Verdict {
        let is_wanted =
            self.gtids.as_ref().is_none_or(|wanted| transaction.id.is_some_and(|id| wanted.contains(&id)));
        let (first, last) = transaction.committed_between();
        if !is_wanted || !self.is_in_time(first, last) || transaction.size() < self.min_bytes {
            return Verdict::No;
        }
        if self.is_found_besides(transaction) {
            return Verdict::Yes;
        }
        if self.thread.is_some_and(|thread| transaction.thread.is_some_and(|made_by| made_by != thread)) {
            return Verdict::No;
        }
        let is_known = transaction.unread.is_none();
        // Where no event names the connection, nobody can tell.
        let thread = self.thread.is_none() || transaction.thread.is_some();
        let has_text = self.text.is_none() || transaction.has_text;
        let (changes, rows) = self.changes(transaction);
        if changes && rows == Verdict::Yes && has_text && thread {
            return Verdict::Yes;
        }
        let may_change = changes || !is_known || transaction.has_more_tables;
        let may_have_rows = rows != Verdict::No || !is_known;
        if may_change && may_have_rows && (has_text || !is_known) { Verdict::Unknown } else { Verdict::No }
    }

    fn is_found_besides(&self, transaction: &Transaction) -> bool {
        let is_untold =
            transaction.unread.is_some() || transaction.has_more_tables || transaction.is_incident;
        self.besides != Effects::NONE && (is_untold || transaction.effects.intersects(self.besides))
    }

    /// Whether it does what is asked for to the tables that are asked for, and to so many rows.
    fn changes(&self, transaction: &Transaction) -> (bool, Verdict) {
        let is_meant = |change: &&TableChange| {
            (self.tables.is_empty() || self.tables.iter().any(|glob| glob.matches(&change.name)))
                && change.effects.changes_something()
                && (self.kinds == Effects::NONE || change.effects.intersects(self.kinds))
        };
        let (mut any, mut rows, mut has_unknown) = (false, 0_u64, false);
        for change in transaction.tables.iter().filter(is_meant) {
            any = true;
            rows = rows.saturating_add(change.rows.total());
            has_unknown |= change.rows.has_unknown;
        }
        let by_itself = self.tables.is_empty()
            && (self.kinds == Effects::NONE || transaction.effects.intersects(self.kinds));
        let rows = match rows {
            enough if enough >= self.min_rows => Verdict::Yes,
            _ if has_unknown => Verdict::Unknown,
            _ => Verdict::No,
        };
        (any || by_itself, rows)
    }

    fn is_in_time(&self, first: i64, last: i64) -> bool {
        self.from.is_none_or(|from| last >= from) && self.until.is_none_or(|until| first < until)
    }

    /// Whether a file with that index may hold any, as far as its head says.
    pub(crate) fn may_be_in(&self, head: &Head) -> bool {
        if head.transactions == 0 {
            return false;
        }
        self.is_in_time(head.committed.0, head.committed.1)
            && head.most_bytes >= self.min_bytes
            && self.gtids.as_ref().is_none_or(|wanted| head.gtids.may_hold(wanted))
            && (head.has_unread
                || head.effects.intersects(self.besides)
                || self.fits(head.effects, head.most_rows))
    }

    fn fits(&self, effects: Effects, most_rows: u64) -> bool {
        most_rows >= self.min_rows && (self.kinds == Effects::NONE || effects.intersects(self.kinds))
    }

    /// The numbers of the tables that are searched for, among those of a file; `None` when any will do.
    pub(crate) fn wanted_tables(&self, tables: &[IndexedTable]) -> Option<Vec<u32>> {
        if self.tables.is_empty() {
            return None;
        }
        let is_meant = |table: &IndexedTable| {
            self.tables.iter().any(|glob| glob.matches(&table.name))
                && (self.kinds == Effects::NONE || table.effects.intersects(self.kinds))
        };
        Some((0..).zip(tables).filter(|(_, table)| is_meant(table)).map(|(at, _)| at).collect())
    }

    /// Whether a block may hold any; `tables` as [`wanted_tables`](Self::wanted_tables) gives them.
    pub(crate) fn may_be_in_block(&self, head: &Head, block: &Block, tables: Option<&[u32]>) -> bool {
        let has_table = match (tables, &block.tables) {
            (None, _) | (_, BlockTables::Any) => true,
            (Some(wanted), BlockTables::These(there)) => wanted.iter().any(|one| there.contains(one)),
        };
        let has_gtid = match (&self.gtids, &block.gtids) {
            (None, _) | (_, BlockGtids::Any) => true,
            (Some(wanted), BlockGtids::These(there)) => there.iter().any(|(origin, first, last)| {
                head.gtids.origin(*origin).is_none_or(|origin| origin.is_wanted(wanted, *first, *last))
            }),
        };
        self.is_in_time(block.committed.0, block.committed.1)
            && block.most_bytes >= self.min_bytes
            && has_gtid
            && (block.has_unread
                || block.effects.intersects(self.besides)
                || (has_table && self.fits(block.effects, block.most_rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{RowCounts, TableName};
    use crate::transaction::CommitTime;
    use std::sync::Arc;

    fn change(table: &str, rows: RowCounts, effects: Effects) -> TableChange {
        TableChange { name: Arc::new(TableName::new(b"shop", table.as_bytes())), rows, effects }
    }

    /// Five orders inserted, two lines deleted, in the second 100.
    fn transaction() -> Transaction {
        let written = RowCounts { written: 5, ..RowCounts::default() };
        let deleted = RowCounts { deleted: 2, ..RowCounts::default() };
        Transaction {
            at: 100,
            end: 300,
            committed: CommitTime { micros: 100_000_000, is_exact: false },
            effects: Effects::INSERT | Effects::DELETE,
            tables: vec![
                change("orders", written, Effects::INSERT),
                change("lines", deleted, Effects::DELETE),
            ],
            thread: Some(7),
            ..Transaction::default()
        }
    }

    fn judged(criteria: Criteria) -> Verdict {
        criteria.judge(&transaction())
    }

    fn tables(glob: &str) -> Vec<TableGlob> {
        vec![TableGlob::parse(glob).unwrap()]
    }

    #[test]
    fn each_criterion_counts_and_kinds_are_of_the_tables() {
        let any = Criteria::default;
        assert_eq!(judged(any()), Verdict::Yes);
        for (criteria, verdict) in [
            (Criteria { from: Some(100_999_999), ..any() }, Verdict::Yes),
            (Criteria { from: Some(101_000_000), ..any() }, Verdict::No),
            (Criteria { until: Some(100_000_000), ..any() }, Verdict::No),
            (Criteria { until: Some(100_000_001), ..any() }, Verdict::Yes),
            (Criteria { min_bytes: 201, ..any() }, Verdict::No),
            (Criteria { min_rows: 7, ..any() }, Verdict::Yes),
            (Criteria { min_rows: 8, ..any() }, Verdict::No),
            (Criteria { min_rows: 6, tables: tables("shop.orders"), ..any() }, Verdict::No),
            (Criteria { kinds: Effects::DELETE, tables: tables("shop.lines"), ..any() }, Verdict::Yes),
            (Criteria { kinds: Effects::DELETE, tables: tables("shop.orders"), ..any() }, Verdict::No),
            (Criteria { kinds: Effects::UPDATE, ..any() }, Verdict::No),
            (Criteria { thread: Some(8), ..any() }, Verdict::No),
            (Criteria { thread: Some(7), ..any() }, Verdict::Yes),
            (Criteria { text: Some(b"x".to_vec()), ..any() }, Verdict::No),
            (Criteria { gtids: Some(WantedGtids::parse("0-1-1").unwrap()), ..any() }, Verdict::No),
        ] {
            assert_eq!(judged(criteria.clone()), verdict, "{criteria:?}");
        }
    }

    #[test]
    fn what_is_asked_for_besides_is_found_whatever_its_tables() {
        let nowhere =
            Criteria { tables: tables("shop.none"), besides: Effects::DELETE, ..Criteria::default() };
        assert_eq!(judged(nowhere.clone()), Verdict::Yes);
        assert_eq!(judged(Criteria { besides: Effects::DDL, ..nowhere.clone() }), Verdict::No);
        assert_eq!(judged(Criteria { from: Some(101_000_000), ..nowhere.clone() }), Verdict::No);
        let untold = [
            Transaction { unread: Some("too large".into()), ..transaction() },
            Transaction { is_incident: true, ..transaction() },
            Transaction { has_more_tables: true, ..transaction() },
        ];
        let besides = Criteria { besides: Effects::XA_COMMIT, ..nowhere };
        assert!(untold.iter().all(|one| besides.judge(one) == Verdict::Yes));
    }

    #[test]
    fn what_cannot_be_told_is_unknown() {
        let mut uncounted = transaction();
        uncounted.tables[0].rows.has_unknown = true;
        let many = Criteria { min_rows: 100, ..Criteria::default() };
        assert_eq!(many.judge(&uncounted), Verdict::Unknown);
        assert_eq!(many.judge(&transaction()), Verdict::No);
        let unread = Transaction { unread: Some("too large".into()), ..transaction() };
        let updates = Criteria { kinds: Effects::UPDATE, ..Criteria::default() };
        assert_eq!(updates.judge(&unread), Verdict::Unknown);
        let thread = Criteria { thread: Some(7), ..Criteria::default() };
        assert_eq!(thread.judge(&Transaction { thread: None, ..transaction() }), Verdict::Unknown);
    }
}
