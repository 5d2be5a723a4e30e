//! How a quorum stands, as one of its nodes sees it.

pub(crate) mod asked;

use crate::ladder::place;
use crate::units;
use codec::Position;
use quorum::{Heard, Node, Standing, Told, majority};
use serde::{Deserialize, Serialize};

/// How a quorum stands, as one of its nodes sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuorumStatus {
    /// Name of this node: the UUID that it presents to the source; null before it has read its memory.
    pub node: Option<String>,
    /// How many nodes there are by the configuration, this one counted.
    pub nodes: u32,
    /// How many of them must have a transaction before it is acknowledged.
    pub majority: u32,
    /// True while this node confirms and acknowledges.
    pub counts: bool,
    /// What this node may do.
    pub standing: NodeStanding,
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
    /// What it may do, by its last word.
    pub standing: NodeStanding,
    /// The epoch of the source that it has accepted; 0 for none, and when it was not heard yet.
    pub epoch: u64,
    /// The highest epoch that it has promised; 0 for none, and while it is not heard.
    pub promised: u64,
    /// Where its copy ends; null while it does not count.
    #[serde(with = "place")]
    pub durable: Option<Position>,
    /// Bytes that this copy has and that one has not; 0 where it has more. Null while it does not count.
    pub behind_bytes: Option<u64>,
}

/// What a node of a quorum may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeStanding {
    /// It is not heard, so that nothing is known.
    Absent,
    /// Nothing: it has not joined yet.
    Blank,
    /// Nothing: it has promised a later epoch, whose source it has not accepted. A promotion was begun and has not ended.
    Fenced,
    /// Receive: its copy lacks something of what was agreed on, or is not of the epoch's source.
    Entering,
    /// Receive: the source lacks what the node holds.
    Withholding,
    /// Confirm and acknowledge.
    Counting,
    /// Something that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

impl QuorumStatus {
    /// As the node has it now.
    pub fn of(node: &Node) -> QuorumStatus {
        let memory = node.memory();
        let epoch = memory.accepted().map_or(0, |accepted| accepted.ballot.epoch);
        let standing = match memory.standing() {
            Standing::Blank => NodeStanding::Blank,
            Standing::Fenced(_) => NodeStanding::Fenced,
            Standing::Entering(_) => NodeStanding::Entering,
            Standing::Counting(_) => NodeStanding::Counting,
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let others = node.others().iter().zip(node.heard());
        QuorumStatus {
            node: node.uuid().map(|uuid| uuid.to_string()),
            nodes: number(node.nodes()),
            majority: number(majority(node.nodes())),
            counts: standing == NodeStanding::Counting,
            standing,
            epoch,
            promised: memory.promised().map_or(0, |ballot| ballot.epoch),
            source: memory.accepted().map(|accepted| accepted.source.clone()),
            others: others.map(|(address, heard)| NodeStatus::of(node, address, heard, epoch)).collect(),
        }
    }

    /// Nodes that can confirm now, this one counted.
    pub fn counting(&self) -> u32 {
        let others = self.others.iter().filter(|other| other.counts).count();
        u32::from(self.counts) + u32::try_from(others).unwrap_or(u32::MAX)
    }

    /// Whether too few of them can, so that commits wait.
    pub fn is_lost(&self) -> bool {
        self.counting() < self.majority
    }

    /// The nodes that cannot confirm now, in words.
    pub fn absent(&self) -> String {
        let own = self.own_trouble().map(|trouble| format!("this one ({trouble})"));
        let others = self.others.iter().filter(|other| !other.counts);
        let others = others.map(|other| format!("{} ({})", other.address, other.trouble(self.epoch)));
        own.into_iter().chain(others).collect::<Vec<_>>().join(", ")
    }

    /// For whom commits wait, in words: so many of the others have confirmed what the source waits for.
    pub(crate) fn waits(&self, confirmed: u32) -> String {
        let missing = self.others.iter().filter_map(|other| match other.behind_bytes {
            _ if !other.counts => Some(format!("{} ({})", other.address, other.trouble(self.epoch))),
            Some(behind) if behind > 0 => {
                Some(format!("{} ({} behind this node)", other.address, units::bytes(behind)))
            }
            _ => None,
        });
        format!(
            "{} of {} nodes have what the source waits for, and {} must. Missing: {}",
            confirmed.saturating_add(1),
            self.nodes,
            self.majority,
            missing.collect::<Vec<_>>().join(", ")
        )
    }

    /// Why this node cannot confirm, in words; `None` while it can.
    pub(crate) fn own_trouble(&self) -> Option<String> {
        (!self.counts).then(|| self.standing.in_words(self.promised))
    }
}

impl NodeStanding {
    /// Why a node that has promised so high an epoch cannot confirm.
    fn in_words(self, promised: u64) -> String {
        match self {
            NodeStanding::Absent => "not heard yet".to_owned(),
            NodeStanding::Blank => "has not joined yet".to_owned(),
            NodeStanding::Fenced => {
                format!("fenced: it has promised epoch {promised}, and knows no source of that yet")
            }
            NodeStanding::Entering => "lacks something of what was agreed on, and receives it".to_owned(),
            NodeStanding::Withholding => "the source lacks what it holds".to_owned(),
            NodeStanding::Counting => "counts in another epoch".to_owned(),
            NodeStanding::Other => "is of another version".to_owned(),
        }
    }
}

impl NodeStatus {
    fn of(node: &Node, address: &str, heard: Heard, epoch: u64) -> NodeStatus {
        let told = heard.told.as_ref();
        let its_epoch = heard.accepted.as_ref().map_or(0, |accepted| accepted.ballot.epoch);
        let promised = told.map_or(0, |told| told.promised);
        let standing = told.map_or(NodeStanding::Absent, |told| standing_of(told, its_epoch));
        let confirmation = told.and_then(|told| told.confirmation.as_ref());
        let counted = confirmation.filter(|confirmation| epoch > 0 && confirmation.epoch == epoch);
        NodeStatus {
            address: address.to_owned(),
            heard: told.is_some(),
            counts: counted.is_some() && standing == NodeStanding::Counting,
            standing,
            epoch: its_epoch,
            promised,
            durable: counted.map(|confirmation| Position {
                file: confirmation.place.file.as_str().into(),
                offset: confirmation.place.offset,
            }),
            behind_bytes: counted.and_then(|confirmation| node.bytes_behind(&confirmation.place)),
            error: heard.error,
        }
    }

    /// Why it cannot confirm in this epoch, in words.
    pub(crate) fn trouble(&self, epoch: u64) -> String {
        match (&self.error, self.standing) {
            (Some(error), NodeStanding::Absent) => error.clone(),
            (_, NodeStanding::Counting) => {
                format!("counts in epoch {}, and this one is in {epoch}", self.epoch)
            }
            (_, standing) => standing.in_words(self.promised),
        }
    }
}

/// By what another node has told.
fn standing_of(told: &Told, epoch: u64) -> NodeStanding {
    match &told.confirmation {
        Some(confirmation) if confirmation.withholds => NodeStanding::Withholding,
        Some(_) => NodeStanding::Counting,
        None if told.is_blank => NodeStanding::Blank,
        None if told.promised > epoch => NodeStanding::Fenced,
        None => NodeStanding::Entering,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_absent_is_named() {
        let other = |address: &str, standing, error: Option<&str>| NodeStatus {
            address: address.to_owned(),
            heard: error.is_none(),
            error: error.map(str::to_owned),
            counts: standing == NodeStanding::Counting,
            standing,
            promised: 5,
            ..NodeStatus::default()
        };
        let absent = other("c:3307", NodeStanding::Absent, Some("refused"));
        let mut status = QuorumStatus {
            nodes: 3,
            majority: 2,
            counts: true,
            standing: NodeStanding::Counting,
            epoch: 4,
            promised: 4,
            others: vec![other("b:3307", NodeStanding::Counting, None), absent],
            ..QuorumStatus::default()
        };
        assert_eq!((status.counting(), status.absent().as_str()), (2, "c:3307 (refused)"));
        assert!(!status.is_lost());
        (status.counts, status.standing, status.promised) = (false, NodeStanding::Fenced, 5);
        let fenced = "(fenced: it has promised epoch 5, and knows no source of that yet)";
        assert_eq!(status.absent(), format!("this one {fenced}, c:3307 (refused)"));
        assert!(status.counting() == 1 && status.is_lost());
        // One that counts in an epoch of which this node knows nothing yet.
        (status.others[0].counts, status.others[0].epoch) = (false, 5);
        assert!(
            status.absent().contains("b:3307 (counts in epoch 5, and this one is in 4)"),
            "{}",
            status.absent()
        );
    }
}
