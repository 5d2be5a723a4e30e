//! What is asked for between the points.

use points::effects::Effects;
use points::glob::TableGlob;
use points::transaction::{Kind, Transaction};
use points::wanted_gtids::WantedGtids;
use std::collections::HashMap;

/// Which transactions are written. What is not given does not matter.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Those that change one of these tables.
    pub tables: Vec<TableGlob>,
    /// Those with one of these GTIDs.
    pub gtids: Option<WantedGtids>,
    /// But for these.
    pub excluded: Option<WantedGtids>,
}

/// How many transactions were decided how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Written.
    pub taken: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Written, and they change tables that are not asked for too.
    pub mixed: u64,
    /// Written because nobody can tell whether they change a table that is asked for.
    pub unjudged: u64,
    /// Left out.
    pub left_out: u64,
    /// Written, and the source says there that something is missing.
    pub incidents: u64,
}

/// What is decided of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ruling {
    Take,
    Mixed,
    Unjudged,
    Leave,
}

/// Decides of one transaction after the other, in the order of the log.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    choice: &'a Choice,
    /// XA transactions that are prepared and neither committed nor rolled back; what was decided of their first half.
    prepared: HashMap<String, Ruling>,
    pub(super) counts: Counts,
}

impl<'a> Judge<'a> {
    pub(super) fn new(choice: &'a Choice) -> Judge<'a> {
        Judge { choice, prepared: HashMap::new(), counts: Counts::default() }
    }

    /// Whether it is written.
    pub(super) fn takes(&mut self, transaction: &Transaction) -> bool {
        let ruling = self.rule(transaction);
        if let (Some(xid), Kind::XaPrepare) = (&transaction.xid, transaction.kind()) {
            self.prepared.insert(xid.clone(), ruling);
        }
        match ruling {
            Ruling::Leave => {
                self.counts.left_out += 1;
                return false;
            }
            Ruling::Mixed => self.counts.mixed += 1,
            Ruling::Unjudged => self.counts.unjudged += 1,
            Ruling::Take => {}
        }
        self.counts.taken += 1;
        self.counts.bytes += transaction.size();
        self.counts.incidents += u64::from(transaction.is_incident);
        true
    }

    /// XA transactions that are written up to their first half only.
    pub(super) fn prepared(&self) -> Vec<String> {
        let taken = self.prepared.iter().filter(|(_, ruling)| **ruling != Ruling::Leave);
        let mut names: Vec<String> = taken.map(|(xid, _)| xid.clone()).collect();
        names.sort_unstable();
        names
    }

    fn rule(&mut self, transaction: &Transaction) -> Ruling {
        let is_in = |set: &WantedGtids| transaction.id.is_some_and(|id| set.contains(&id));
        let is_second_half = matches!(transaction.kind(), Kind::XaCommit | Kind::XaRollback);
        let first_half = match &transaction.xid {
            Some(xid) if is_second_half => self.prepared.remove(xid),
            _ => None,
        };
        if self.choice.gtids.as_ref().is_some_and(|wanted| !is_in(wanted))
            || self.choice.excluded.as_ref().is_some_and(is_in)
        {
            return Ruling::Leave;
        }
        if self.choice.tables.is_empty() {
            return Ruling::Take;
        }
        if is_second_half {
            // Without the first half nobody knows what it commits.
            return match first_half {
                Some(Ruling::Leave) => Ruling::Leave,
                Some(_) => Ruling::Take,
                None => Ruling::Unjudged,
            };
        }
        self.by_tables(transaction)
    }

    fn by_tables(&self, transaction: &Transaction) -> Ruling {
        let is_wanted = |change: &points::transaction::TableChange| {
            self.choice.tables.iter().any(|glob| glob.matches(&change.name))
        };
        let wanted = transaction.tables.iter().filter(|change| is_wanted(change)).count();
        if wanted > 0 {
            let has_others = wanted < transaction.tables.len() || transaction.has_more_tables;
            return if has_others { Ruling::Mixed } else { Ruling::Take };
        }
        // Of a statement only the first tables are known; a definition without one is of an account or a routine.
        let is_nameless = transaction.tables.is_empty() && transaction.effects.intersects(Effects::DDL);
        let is_unknown = transaction.unread.is_some()
            || transaction.has_more_tables
            || transaction.is_incident
            || transaction.effects.intersects(Effects::STATEMENT)
            || is_nameless;
        if is_unknown { Ruling::Unjudged } else { Ruling::Leave }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use points::table::{RowCounts, TableName};
    use points::transaction::TableChange;
    use std::sync::Arc;

    fn of(tables: &[&str], effects: Effects) -> Transaction {
        let change = |table: &&str| TableChange {
            name: Arc::new(TableName::new(b"shop", table.as_bytes())),
            rows: RowCounts::default(),
            effects,
        };
        Transaction {
            end: 10,
            effects,
            tables: tables.iter().map(change).collect(),
            ..Transaction::default()
        }
    }

    fn orders() -> Choice {
        Choice { tables: vec![TableGlob::parse("shop.orders").unwrap()], ..Choice::default() }
    }

    #[test]
    fn whole_transactions_are_taken_by_their_tables() {
        let choice = orders();
        let mut judge = Judge::new(&choice);
        assert!(judge.takes(&of(&["orders"], Effects::INSERT)));
        assert!(judge.takes(&of(&["parts", "orders"], Effects::INSERT)), "whole");
        assert!(!judge.takes(&of(&["parts"], Effects::INSERT)));
        assert!(!judge.takes(&of(&["parts"], Effects::DDL)));
        assert!(!judge.takes(&of(&[], Effects::NONE)), "an empty one");
        assert!(judge.takes(&of(&["parts"], Effects::UPDATE | Effects::STATEMENT)), "it may have a join");
        assert!(judge.takes(&of(&[], Effects::DDL)), "an account, or a routine");
        let unread = Transaction { unread: Some("too large".into()), ..of(&[], Effects::NONE) };
        assert!(judge.takes(&unread));
        let expected =
            Counts { taken: 5, bytes: 50, mixed: 1, unjudged: 3, left_out: 3, ..Counts::default() };
        assert_eq!(judge.counts, expected);
    }

    #[test]
    fn both_halves_of_an_xa_transaction_share_their_fate() {
        let choice = orders();
        let mut judge = Judge::new(&choice);
        let half = |xid: &str, tables: &[&str], effects: Effects| Transaction {
            xid: Some(xid.to_owned()),
            ..of(tables, effects)
        };
        assert!(judge.takes(&half("a", &["orders"], Effects::INSERT | Effects::XA_PREPARE)));
        assert!(!judge.takes(&half("b", &["parts"], Effects::INSERT | Effects::XA_PREPARE)));
        assert_eq!(judge.prepared(), ["a"]);
        assert!(!judge.takes(&half("b", &[], Effects::XA_COMMIT)));
        assert!(judge.takes(&half("a", &[], Effects::XA_ROLLBACK)));
        assert!(judge.prepared().is_empty());
        assert_eq!(judge.counts.unjudged, 0);
        assert!(judge.takes(&half("c", &[], Effects::XA_COMMIT)), "its first half is not in the part");
        assert_eq!(judge.counts.unjudged, 1);
    }

    #[test]
    fn gtids_are_taken_and_left_out_exactly() {
        let gtids = |text: &str| Some(WantedGtids::parse(text).unwrap());
        let choice = Choice { gtids: gtids("0-1-1,0-1-2"), excluded: gtids("0-1-2"), ..Choice::default() };
        let mut judge = Judge::new(&choice);
        let with = |id: &str| Transaction {
            id: Some(codec::gtid::TransactionId::Mariadb(id.parse().unwrap())),
            ..of(&["orders"], Effects::INSERT)
        };
        let taken = ["0-1-1", "0-1-2", "0-1-3"].map(|id| judge.takes(&with(id)));
        assert_eq!(taken, [true, false, false]);
        assert!(!judge.takes(&of(&["orders"], Effects::INSERT)), "one without a GTID");
    }
}
