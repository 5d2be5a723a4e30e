//! One promotion, as who carries it out sees it.

use crate::ballot::{Accepted, Ballot, Kind};
use crate::memory::Refusal;
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
    /// The nodes of the quorum, by the newest epoch that one of them has accepted; in a founding those that have promised.
    pub members: BTreeSet<Uuid>,
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

    /// `node` has promised the ballot. What a node says later stands: it holds more. A machine that has lost its disk has another
    /// name, and counts under that one only where it is a member of the newest epoch.
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
    /// the nodes, and what one of them has entered says nothing about what the others acknowledge. Only the members of the newest
    /// epoch count: a node that was replaced does not know what was acknowledged without it.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn agreed(&self) -> Result<Option<Agreed>, Parted> {
        let founded = |promise: &Promise| promise.accepted.as_ref().map(|accepted| accepted.founded);
        let of_founding =
            |founding| self.promises.iter().filter(move |(_, promise)| founded(promise) == founding);
        let members = |founding| -> BTreeSet<Uuid> {
            let accepted = of_founding(founding).filter_map(|(_, promise)| promise.accepted.as_ref());
            match accepted.max_by_key(|accepted| accepted.ballot.epoch) {
                Some(newest) => newest.members.clone(),
                None => of_founding(founding).map(|(node, _)| *node).collect(),
            }
        };
        let of = |founding| {
            let members = members(founding);
            of_founding(founding).filter(move |(node, _)| members.contains(node))
        };
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
            members: members(founding),
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

/// The nodes of the epoch in which `joiner` joins those of the epoch before, `members`: it takes the place of one that is absent.
/// `present` are the nodes that are there, and `newcomers` counts the others that join, which each take a place, too.
///
/// # Errors
/// In words, when no place is free, or it cannot be told whose place it takes.
pub fn members_with(
    joiner: Uuid,
    members: &BTreeSet<Uuid>,
    present: &BTreeSet<Uuid>,
    newcomers: usize,
) -> Result<BTreeSet<Uuid>, String> {
    if members.contains(&joiner) {
        return Ok(members.clone());
    }
    let absent: Vec<&Uuid> = members.difference(present).collect();
    let Some(replaced) = absent.first().filter(|_| absent.len() <= newcomers + 1) else {
        return Err(match absent.len() {
            0 => Refusal::Complete.to_string(),
            count => format!(
                "{count} nodes of the quorum are absent, and whose place this one takes cannot be told: start the others first, or \
                 those in their places"
            ),
        });
    };
    Ok(members.iter().filter(|member| member != replaced).copied().chain([joiner]).collect())
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
            members: (1..=5).map(node).collect(),
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
    fn who_was_replaced_does_not_count_and_who_joins_takes_a_place_that_is_free() {
        let one = founding(1);
        let mut newer = promise_of(one, 3, "1-5");
        newer.accepted.as_mut().unwrap().members = [1, 2, 4].map(node).into();
        newer.accepted.as_mut().unwrap().ballot.epoch = 11;
        let mut promotion = promotion(Kind::Ordinary, 3, &[(2, newer), (3, promise_of(one, 3, "1-9"))]);
        assert_eq!(
            promotion.agreed(),
            Ok(None),
            "3 was replaced by 4, and has what only 1 may have acknowledged"
        );
        promotion.promised(node(4), promise_of(one, 3, "1-4"));
        let agreed = promotion.agreed().unwrap().unwrap();
        assert_eq!((agreed.node, agreed.members.contains(&node(3))), (node(2), false));

        let of = |numbers: &[u8]| numbers.iter().map(|of| node(*of)).collect::<BTreeSet<Uuid>>();
        let with = |members: &[u8], present: &[u8], newcomers| {
            members_with(node(9), &of(members), &of(present), newcomers)
        };
        assert_eq!(with(&[1, 2, 3], &[1, 2], 0), Ok(of(&[1, 2, 9])));
        assert_eq!(with(&[1, 2, 9], &[1, 2], 0), Ok(of(&[1, 2, 9])));
        assert_eq!(with(&[1, 2, 3], &[1, 2, 3], 0), Err(Refusal::Complete.to_string()));
        // Of two that are absent one may come back, unless another one joins in its place, too.
        assert!(
            with(&[1, 2, 3, 4, 5], &[1, 2, 3], 0)
                .unwrap_err()
                .starts_with("2 nodes of the quorum are absent")
        );
        assert_eq!(with(&[1, 2, 3, 4, 5], &[1, 2, 3], 1), Ok(of(&[1, 2, 3, 5, 9])));
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
