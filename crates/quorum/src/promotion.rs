//! One promotion, as who carries it out sees it.

use crate::ballot::{Accepted, Ballot, Kind};
use codec::gtid::{GtidState, Uuid};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// How many of `nodes` are a majority.
pub fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

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

    /// `node` has promised the ballot. What a node says later stands: it holds more.
    pub fn promised(&mut self, node: Uuid, promise: Promise) {
        if self.kind != Kind::Joining(node) {
            self.promises.insert(node, promise);
        }
    }

    /// Those that have promised.
    pub fn promises(&self) -> &BTreeMap<Uuid, Promise> {
        &self.promises
    }

    /// What is agreed on; `None` while too few have promised.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn agreed(&self) -> Result<Option<Agreed>, Parted> {
        if self.promises.len() < self.kind.promises_of(self.nodes) {
            return Ok(None);
        }
        let entered = self.promises.values().map(|promise| promise.held.entered).max().unwrap_or(0);
        let of_epoch = || self.promises.iter().filter(|(_, promise)| promise.held.entered == entered);
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
