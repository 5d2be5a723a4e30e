//! Why a server is not promoted, or not yet.

use config::HostPort;
use quorum::{Ballot, Parted};
use std::path::Path;
use std::time::Duration;
use wire::ConnectOptions;

/// Why. Up to [`NoPromotion::Lacks`] nothing was changed anywhere.
#[derive(Debug, thiserror::Error)]
pub enum NoPromotion {
    /// It cannot be reached or asked.
    #[error("{0}: {1}")]
    Successor(String, String),
    /// It cannot be the source as it is; each reason by name.
    #[error("{0} cannot be the source: {1}")]
    Unfit(String, String),
    /// Too few nodes answer.
    #[error("{answered} of {nodes} nodes can promise, and {needed} must: {why}")]
    TooFew {
        /// Those that can.
        answered: usize,
        /// All.
        nodes: usize,
        /// A majority.
        needed: usize,
        /// What each of the others says.
        why: String,
    },
    /// Two addresses lead to one node.
    #[error("{0} and {1} are one node: quorum names the others, and --node this one")]
    Twice(String, String),
    /// Somebody else has promoted since the caller looked.
    #[error("the source is of epoch {found}, and not of {asked}: somebody else has promoted since")]
    OtherEpoch {
        /// As the caller knew it.
        asked: u64,
        /// As it is.
        found: u64,
    },
    /// It lacks what the nodes hold, and its replication does not bring it.
    #[error(
        "{host} lacks transactions that the nodes hold, and does not get them by replication, because {why}: {lacks}. {rescue} hands them over; then \
         the same promote again"
    )]
    Lacks {
        /// The successor.
        host: String,
        /// What.
        lacks: String,
        /// Why replication does not bring it.
        why: String,
        /// The command that hands them over.
        rescue: String,
    },
    /// Another promotion has ended meanwhile.
    #[error(
        "another promotion has ended meanwhile: {source_uuid} is the source of epoch {epoch}, and stays so. Run this one again if that is not \
         what you want{promised}"
    )]
    Overtaken {
        /// The source that it has made.
        source_uuid: String,
        /// Of which epoch.
        epoch: u64,
        /// Nodes that have promised this one and so do not count, and what to do, in words.
        promised: String,
    },
    /// Its transactions cannot be compared with those of the nodes.
    #[error("whether its transactions are those that the nodes hold could not be compared: {0}")]
    NotCompared(String),
    /// Under the GTIDs of the history it has other transactions.
    #[error(
        "{host} has other transactions than the nodes hold, under the same GTIDs: a source lost the end of its log, and gave them once \
         more. Promote a server that has those of the nodes; binlogd forks says what the copy holds of each. If the nodes are fenced already, \
         nothing is acknowledged until a promotion has ended.{differences}"
    )]
    Different {
        /// The successor.
        host: String,
        /// A few lines for each.
        differences: String,
    },
    /// Another promoter came later.
    #[error(
        "another promotion (epoch {other}) is under way: this one, {ballot}, has ended. If nobody else promotes, run it again"
    )]
    Outbid {
        /// This promotion.
        ballot: Ballot,
        /// The epoch of the other.
        other: u64,
    },
    /// Too few have promised.
    #[error(
        "{count} of {needed} nodes have promised {ballot}: {why}. Those acknowledge nothing until a promotion ends: run it again, or promote \
         the present source"
    )]
    NotFenced {
        /// This promotion.
        ballot: Ballot,
        /// Those that have.
        count: usize,
        /// A majority.
        needed: usize,
        /// What the others say.
        why: String,
    },
    /// The copies part.
    #[error(
        "{0}. Nothing is acknowledged any more: binlogd forks and binlogd find, run at both, show what each holds"
    )]
    Parted(#[from] Parted),
    /// The copies are not of one log.
    #[error(
        "the copies of the nodes are not of one log: {0}. Nothing is acknowledged any more, and nothing was promoted"
    )]
    OtherLogs(String),
    /// The successor does not come to the history.
    #[error(
        "{host} lacks {lacks} of what the nodes agreed on, and nothing of that has come for {wait:?}. Since epoch {epoch} nothing is acknowledged \
         to any server. Go on: {rescue}, and then the same promote again. Or go back: promote the old source"
    )]
    NotFed {
        /// The successor.
        host: String,
        /// How long it was waited.
        wait: Duration,
        /// What it lacks, and what was in the way of each node that it should have read from.
        lacks: String,
        /// The epoch that was promised.
        epoch: u64,
        /// The command that hands them over.
        rescue: String,
    },
    /// Too few have accepted.
    #[error(
        "{count} of {needed} nodes have accepted {host} as the source of epoch {epoch}: {why}. It stays read-only. Run it again"
    )]
    NotAccepted {
        /// The successor.
        host: String,
        /// The epoch.
        epoch: u64,
        /// Those that have.
        count: usize,
        /// A majority.
        needed: usize,
        /// What the others say.
        why: String,
    },
    /// It is the source, and is not open yet.
    #[error(
        "{host} is the source of epoch {epoch}, and could not be opened: {error}. Run it again, or do by hand: {left}"
    )]
    NotOpen {
        /// The successor.
        host: String,
        /// The epoch.
        epoch: u64,
        /// Why.
        error: String,
        /// What is left to be done.
        left: String,
    },
}

/// The command that gives a server what it lacks, for [`Request::rescue`](super::Request::rescue).
pub fn rescue_command(data_dir: &Path, source: &str, to: &ConnectOptions) -> String {
    let address = HostPort { host: to.host.clone(), port: to.port };
    format!("binlogd rescue {} --source {source} --to mysql://{}@{address}", data_dir.display(), to.user)
}

impl NoPromotion {
    /// For these reasons.
    pub(super) fn unfit(host: String, faults: &[String]) -> NoPromotion {
        match faults {
            [one] => NoPromotion::Unfit(host, one.clone()),
            several => {
                let lines: Vec<String> = several.iter().map(|fault| format!("\n  {fault}")).collect();
                NoPromotion::Unfit(host, lines.concat())
            }
        }
    }
}
