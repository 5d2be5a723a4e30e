//! How a quorum stands, as one of its nodes sees it.

use crate::ladder::place;
use codec::Position;
use quorum::{Heard, Node, Standing, majority};
use serde::{Deserialize, Serialize};

/// How a quorum stands, as one of its nodes sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuorumStatus {
    /// How many nodes there are by the configuration, this one counted.
    pub nodes: u32,
    /// How many of them must have a transaction before it is acknowledged.
    pub majority: u32,
    /// True while this node confirms and acknowledges.
    pub counts: bool,
    /// `blank`: it has not joined yet. `fenced`: a promotion was begun, and nothing is acknowledged until one has ended. `entering`: its copy
    /// lacks something of what was agreed on. `counting`: all is well.
    pub standing: String,
    /// The epoch of the source that this node has accepted; 0 for none.
    pub epoch: u64,
    /// The highest epoch that it has promised; 0 for none.
    pub promised: u64,
    /// UUID of the source of the epoch; null for none.
    pub source: Option<String>,
    /// The other nodes, in the order of the configuration.
    pub others: Vec<NodeStatus>,
}

/// Another node of a quorum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// `host:port`.
    pub address: String,
    /// True while it tells how far it is.
    pub heard: bool,
    /// Why it is not heard; null while it is.
    pub error: Option<String>,
    /// True while it confirms in the epoch of this node.
    pub counts: bool,
    /// Where its copy ends; null while it does not count.
    #[serde(with = "place")]
    pub durable: Option<Position>,
}

impl QuorumStatus {
    /// As the node has it now.
    pub(crate) fn of(node: &Node) -> QuorumStatus {
        let memory = node.memory();
        let (standing, epoch) = match memory.standing() {
            Standing::Blank => ("blank", 0),
            Standing::Fenced(_) => ("fenced", memory.accepted().map_or(0, |accepted| accepted.ballot.epoch)),
            Standing::Entering(accepted) => ("entering", accepted.ballot.epoch),
            Standing::Counting(accepted) => ("counting", accepted.ballot.epoch),
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let others = node.others().iter().zip(node.heard());
        QuorumStatus {
            nodes: number(node.nodes()),
            majority: number(majority(node.nodes())),
            counts: standing == "counting",
            standing: standing.to_owned(),
            epoch,
            promised: memory.promised().map_or(0, |ballot| ballot.epoch),
            source: memory.accepted().map(|accepted| accepted.source.clone()),
            others: others.map(|(address, heard)| NodeStatus::of(address, heard, epoch)).collect(),
        }
    }

    /// Nodes that can confirm now, this one counted.
    pub fn counting(&self) -> u32 {
        let others = self.others.iter().filter(|other| other.counts).count();
        u32::from(self.counts) + u32::try_from(others).unwrap_or(u32::MAX)
    }

    /// The nodes that cannot confirm now, in words.
    pub fn absent(&self) -> String {
        let own = (!self.counts).then(|| format!("this one ({})", self.standing));
        let others = self.others.iter().filter(|other| !other.counts).map(|other| match &other.error {
            Some(error) => format!("{} ({error})", other.address),
            None if other.heard => format!("{} (does not count in epoch {})", other.address, self.epoch),
            None => format!("{} (not heard yet)", other.address),
        });
        own.into_iter().chain(others).collect::<Vec<_>>().join(", ")
    }
}

impl NodeStatus {
    fn of(address: &str, heard: Heard, epoch: u64) -> NodeStatus {
        let confirmation = heard.told.as_ref().and_then(|told| told.confirmation.as_ref());
        let counted = confirmation.filter(|confirmation| epoch > 0 && confirmation.epoch == epoch);
        NodeStatus {
            address: address.to_owned(),
            heard: heard.told.is_some(),
            error: heard.error,
            counts: counted.is_some_and(|confirmation| !confirmation.withholds),
            durable: counted.map(|confirmation| Position {
                file: confirmation.place.file.as_str().into(),
                offset: confirmation.place.offset,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_absent_is_named() {
        let other = |address: &str, counts, error: Option<&str>| NodeStatus {
            address: address.to_owned(),
            heard: error.is_none(),
            error: error.map(str::to_owned),
            counts,
            durable: None,
        };
        let mut status = QuorumStatus {
            nodes: 3,
            majority: 2,
            counts: true,
            standing: "counting".to_owned(),
            epoch: 4,
            others: vec![other("b:3307", true, None), other("c:3307", false, Some("refused"))],
            ..QuorumStatus::default()
        };
        assert_eq!((status.counting(), status.absent().as_str()), (2, "c:3307 (refused)"));
        (status.counts, status.standing) = (false, "fenced".to_owned());
        assert_eq!((status.counting(), status.absent().as_str()), (1, "this one (fenced), c:3307 (refused)"));
    }
}
