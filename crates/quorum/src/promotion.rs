//! One promotion, as who carries it out sees it.

use crate::ballot::{Accepted, Ballot, Kind};
use codec::gtid::{GtidState, Uuid};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// What a node holds on stable storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The newest epoch that the node has entered; 0 for none.
    pub entered: u64,
    /// What its copy holds. Where the source lost what the copy has of this epoch, what was held before.
    pub gtids: GtidState,
}

/// What a node answers that has promised a ballot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promise {
    /// What it held when the promise was durable, or later.
    pub held: Held,
    /// The source that it has accepted.
    pub accepted: Option<Accepted>,
}

/// What the promises agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The node that holds it.
    pub node: Uuid,
    /// What that node holds.
    pub held: Held,
    /// The founding of the quorum to which it belongs; `None` in a founding.
    pub founded: Option<Ballot>,
    /// Nodes whose copies of the same epoch end earlier: whether the copy of `node` has the places of their ends, byte
    /// for byte, must be seen before it is believed. One server may have given the same GTIDs to other transactions.
    pub to_compare: Vec<Uuid>,
}

/// Two copies of one epoch, neither of which holds what the other does: the source lost transactions. Only a person can say
/// which of them counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the copies of {one} and {other} part in epoch {epoch}: the source lost transactions that one of them holds"
)]
pub struct Parted {
    /// A node.
    pub one: Uuid,
    /// Another.
    pub other: Uuid,
    /// Where both received what they hold.
    pub epoch: u64,
}

/// One promotion, as who carries it out sees it.
#[derive(Debug, Clone)]
pub struct Promotion {
    ballot: Ballot,
    kind: Kind,
    nodes: usize,
    promises: BTreeMap<Uuid, Promise>,
    acceptances: BTreeSet<Uuid>,
}

impl Promotion {
    /// Of `nodes` nodes in all, the promoter's own among them.
    pub fn new(ballot: Ballot, kind: Kind, nodes: usize) -> Promotion {
        Promotion { ballot, kind, nodes, promises: BTreeMap::new(), acceptances: BTreeSet::new() }
    }

    /// What it is known by.
    pub fn ballot(&self) -> Ballot {
        self.ballot
    }

    /// Whose promises it needs.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// `node` has promised the ballot. What a node says later stands: it holds more. The name must outlive the node's disk: under
    /// a new name one machine would be counted twice, for what it promised before and after.
    pub fn promised(&mut self, node: Uuid, promise: Promise) {
        if self.kind != Kind::Joining(node) {
            self.promises.insert(node, promise);
        }
    }

    /// Those that have promised.
    pub fn promises(&self) -> &BTreeMap<Uuid, Promise> {
        &self.promises
    }

    /// What is agreed on; `None` while too few of one founding have promised: of two foundings at once each may have got some of
    /// the nodes, and what one of them has entered says nothing about what the others acknowledge.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn agreed(&self) -> Result<Option<Agreed>, Parted> {
        let founded = |promise: &Promise| promise.accepted.as_ref().map(|accepted| accepted.founded);
        let of = |founding| self.promises.iter().filter(move |(_, promise)| founded(promise) == founding);
        let enough = self.kind.promises_of(self.nodes);
        let Some(founding) =
            self.promises.values().map(founded).find(|founding| of(*founding).count() >= enough)
        else {
            return Ok(None);
        };
        let entered = of(founding).map(|(_, promise)| promise.held.entered).max().unwrap_or(0);
        let of_epoch = || of(founding).filter(|(_, promise)| promise.held.entered == entered);
        let mut best: Option<(&Uuid, &Promise)> = None;
        for (node, promise) in of_epoch() {
            best = match best {
                None => Some((node, promise)),
                Some((known, has)) => match compare(&has.held.gtids, &promise.held.gtids) {
                    Some(Ordering::Less) => Some((node, promise)),
                    Some(_) => best,
                    None => return Err(Parted { one: *known, other: *node, epoch: entered }),
                },
            };
        }
        Ok(best.map(|(best, promise)| Agreed {
            node: *best,
            held: promise.held.clone(),
            founded: founding,
            to_compare: of_epoch().map(|(node, _)| *node).filter(|node| node != best).collect(),
        }))
    }

    /// `node` has accepted the source that was proposed.
    pub fn accepted(&mut self, node: Uuid) {
        self.acceptances.insert(node);
    }

    /// Whether so many have accepted it that it is in force; of a founding, whether all have recorded it.
    pub fn is_accepted(&self) -> bool {
        self.acceptances.len() >= self.kind.acceptances_of(self.nodes)
    }
}

/// Which of two sets holds the other. `None` when neither does.
fn compare(one: &GtidState, other: &GtidState) -> Option<Ordering> {
    match (one.contains_state(other), other.contains_state(one)) {
        (true, true) => Some(Ordering::Equal),
        (true, false) => Some(Ordering::Greater),
        (false, true) => Some(Ordering::Less),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ballot::{Place, majority};
    use codec::ServerKind;

    const SOURCE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn node(number: u8) -> Uuid {
        Uuid::from_bytes([number; 16])
    }

    fn gtids(numbers: &str) -> GtidState {
        GtidState::parse(ServerKind::MySql, &format!("{SOURCE}:{numbers}")).unwrap()
    }

    fn founding(number: u8) -> Ballot {
        Ballot { epoch: 1, promoter: node(number) }
    }

    fn promise_of(founded: Ballot, entered: u64, numbers: &str) -> Promise {
        let accepted = Accepted {
            ballot: Ballot { epoch: 9, ..founded },
            founded,
            source: SOURCE.to_owned(),
            history: gtids("1"),
            place: Place { file: "binlog.000001".to_owned(), identity: 1, offset: 4 },
        };
        Promise { held: Held { entered, gtids: gtids(numbers) }, accepted: Some(accepted) }
    }

    fn promotion(kind: Kind, nodes: usize, promises: &[(u8, Promise)]) -> Promotion {
        let mut promotion = Promotion::new(Ballot { epoch: 10, promoter: node(99) }, kind, nodes);
        for (of, promise) in promises {
            promotion.promised(node(*of), promise.clone());
        }
        promotion
    }

    #[test]
    fn how_many_are_enough() {
        let joining = Kind::Joining(node(1));
        for (nodes, ordinary, others) in [(2, 2, 1), (3, 2, 2), (4, 3, 2), (5, 3, 3), (7, 4, 4)] {
            assert_eq!((Kind::Ordinary.promises_of(nodes), joining.promises_of(nodes)), (ordinary, others));
            assert_eq!(
                (Kind::Founding.promises_of(nodes), Kind::Founding.acceptances_of(nodes)),
                (nodes, nodes)
            );
            assert_eq!(joining.acceptances_of(nodes), majority(nodes));
        }
    }

    #[test]
    fn the_most_advanced_is_agreed_on_by_its_epoch_and_then_by_what_it_holds() {
        let one = founding(1);
        for (promises, expected) in [
            (vec![(3, "1-5")], None),
            (vec![(3, "1-5"), (3, "1-7")], Some((2, vec![1]))),
            (vec![(3, "1-7"), (3, "1-5")], Some((1, vec![2]))),
            (vec![(4, "1-5"), (3, "1-7")], Some((1, vec![]))),
            (vec![(3, "1-5"), (4, "1-6"), (4, "1-7")], Some((3, vec![2]))),
        ] {
            let promises: Vec<(u8, Promise)> = (1..)
                .zip(&promises)
                .map(|(of, (entered, held))| (of, promise_of(one, *entered, held)))
                .collect();
            let agreed = promotion(Kind::Ordinary, 3, &promises).agreed().unwrap();
            let found = agreed.map(|agreed| (agreed.node, agreed.to_compare));
            let expected =
                expected.map(|(best, others)| (node(best), others.into_iter().map(node).collect::<Vec<_>>()));
            assert_eq!(found, expected, "{promises:?}");
        }
    }

    #[test]
    fn copies_of_one_epoch_that_part_are_named() {
        let one = founding(1);
        let mut promotion =
            promotion(Kind::Ordinary, 3, &[(1, promise_of(one, 3, "1-5")), (2, promise_of(one, 3, "1-4:9"))]);
        assert_eq!(promotion.agreed(), Err(Parted { one: node(1), other: node(2), epoch: 3 }));
        promotion.promised(node(2), promise_of(one, 2, "1-4:9"));
        assert_eq!(promotion.agreed().unwrap().unwrap().node, node(1), "an older epoch's do not count");
    }

    #[test]
    fn nodes_of_two_foundings_are_not_counted_together() {
        let of = |founding| promise_of(founding, 3, "1-5");
        let mixed = promotion(Kind::Ordinary, 3, &[(1, of(founding(1))), (2, of(founding(2)))]);
        assert_eq!(mixed.agreed(), Ok(None));
        let later = promise_of(founding(2), 8, "1-3");
        let promises = [(1, of(founding(1))), (2, later), (3, of(founding(1)))];
        let agreed = promotion(Kind::Ordinary, 3, &promises).agreed().unwrap().unwrap();
        assert_eq!((agreed.node, agreed.founded, agreed.held.entered), (node(1), Some(founding(1)), 3));
    }

    #[test]
    fn who_joins_does_not_promise_for_itself_and_who_accepts_twice_counts_once() {
        let of = |number: u8| (number, promise_of(founding(1), 3, "1-5"));
        let mut joining = promotion(Kind::Joining(node(1)), 3, &[of(1), of(2)]);
        assert_eq!(joining.agreed(), Ok(None));
        joining.promised(node(3), of(3).1);
        assert_eq!(joining.agreed().unwrap().unwrap().node, node(2));
        for (by, is_enough) in [(2, false), (2, false), (3, true)] {
            joining.accepted(node(by));
            assert_eq!(joining.is_accepted(), is_enough);
        }
    }
}
