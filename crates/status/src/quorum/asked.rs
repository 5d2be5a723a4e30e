//! What tools ask of a quorum: how it stands, and which nodes have a set of GTIDs on stable storage.

use crate::ladder::place;
use crate::monitor::SourceMonitor;
use crate::quorum::QuorumStatus;
use codec::Position;
use codec::gtid::GtidState;
use quorum::{Reply, kept, majority};
use serde::{Deserialize, Serialize};

/// How a quorum stands, as one of its nodes sees it now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuorumAnswer {
    /// Name of the source in the configuration.
    pub source: String,
    /// `host:port` from which this node receives, or tries to; null before the first attempt.
    pub host: Option<String>,
    /// Seconds for which this node has looked for a server to receive from in vain; null while it receives, and while the reason is its
    /// own, such as a full disk.
    pub source_gone_seconds: Option<f64>,
    /// Where the copy of this node ends on stable storage.
    #[serde(with = "place")]
    pub durable: Option<Position>,
    /// As in `/status`: nodes, epoch, and where the copies of the others end.
    pub quorum: QuorumStatus,
}

impl QuorumAnswer {
    /// Of a source; `None` where it has no quorum.
    pub fn of(source: &SourceMonitor) -> Option<QuorumAnswer> {
        let quorum = source.quorum()?;
        Some(QuorumAnswer {
            source: source.name().to_owned(),
            host: source.facts().host,
            source_gone_seconds: source.source_gone_for().map(|gone| gone.as_secs_f64()),
            durable: source.positions().durable,
            quorum,
        })
    }
}

/// Which nodes have a set of GTIDs on stable storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableAnswer {
    /// Name of the source in the configuration.
    pub source: String,
    /// The set, as it was understood. Of MariaDB: the newest number of each server in each domain, and all before it.
    pub gtid_set: String,
    /// True when a majority has all of it in one epoch: whoever is promoted from now on has it. False also while a promotion is under
    /// way: ask again.
    pub agreed: bool,
    /// The newest epoch that a node has promised; 0 for none.
    pub epoch: u64,
    /// How many nodes there are, this one counted.
    pub nodes: u32,
    /// How many of them are a majority.
    pub majority: u32,
    /// Each node, the one that was asked first.
    pub holders: Vec<HolderStatus>,
}

/// What one node has of a set of GTIDs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderStatus {
    /// `host:port`; null for the node that was asked.
    pub address: Option<String>,
    /// Name of the node: the UUID that it presents to the source; null when it does not answer.
    pub node: Option<String>,
    /// Whether it has all of the set on stable storage; null when it does not answer.
    pub has: Option<bool>,
    /// What of the set it lacks; null when it does not answer.
    pub lacks: Option<String>,
    /// True when it has promised no later epoch than the one that it has entered, so that what it has counts.
    pub counts: bool,
    /// Why it does not answer; null when it does.
    pub error: Option<String>,
}

impl DurableAnswer {
    /// By what each node answered to a look, or why it did not; the own one, without address, first.
    pub fn of(
        source: &str,
        set: &GtidState,
        answers: Vec<(Option<String>, Result<Reply, String>)>,
    ) -> DurableAnswer {
        let nodes = answers.len();
        let replies: Vec<&Reply> = answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()).collect();
        let epoch = kept::epoch_of(replies.iter().copied());
        let agreed = kept::is_kept(nodes, &replies, set);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        DurableAnswer {
            source: source.to_owned(),
            gtid_set: set.to_record(),
            agreed,
            epoch,
            nodes: number(nodes),
            majority: number(majority(nodes)),
            holders: answers
                .into_iter()
                .map(|(address, answer)| HolderStatus::of(address, answer, set, epoch))
                .collect(),
        }
    }
}

impl HolderStatus {
    fn of(
        address: Option<String>,
        answer: Result<Reply, String>,
        set: &GtidState,
        epoch: u64,
    ) -> HolderStatus {
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) => {
                let error = Some(error);
                return HolderStatus { address, node: None, has: None, lacks: None, counts: false, error };
            }
        };
        let held = reply.promise.as_ref().map(|(promise, _)| &promise.held.gtids);
        HolderStatus {
            address,
            node: Some(reply.node.to_string()),
            has: Some(kept::holds(&reply, set)),
            lacks: held.map(|held| set.subtract(held).to_record()),
            counts: kept::counts(&reply, epoch),
            error: None,
        }
    }
}
