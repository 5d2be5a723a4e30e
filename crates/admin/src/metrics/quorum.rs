//! The quorums of the sources, as metrics.

use super::families::gauges;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use status::{NodeStatus, QuorumStatus, SourceMonitor};
use std::fmt::Result;
use std::sync::Arc;

/// One series a source and one a node; none where no source has a quorum.
pub(crate) fn encode(encoder: &mut DescriptorEncoder, sources: &[Arc<SourceMonitor>]) -> Result {
    let quorums: Vec<(&str, QuorumStatus)> =
        sources.iter().filter_map(|source| Some((source.name(), source.quorum()?))).collect();
    if quorums.is_empty() {
        return Ok(());
    }
    let mut of_source = |name, help, value: fn(&QuorumStatus) -> u64| {
        let rows = quorums.iter().map(|(source, quorum)| ([("source", *source)], value(quorum)));
        gauges(encoder, name, None, help, rows)
    };
    let help = "The epoch of the source that this node has accepted; 0 before the quorum has begun";
    of_source("binlogd_quorum_epoch", help, |quorum| quorum.epoch)?;
    let help = "The highest epoch that this node has promised; above binlogd_quorum_epoch the node is fenced and acknowledges nothing";
    of_source("binlogd_quorum_promised_epoch", help, |quorum| quorum.promised)?;
    let help = "Nodes of the quorum by the configuration, this one counted";
    of_source("binlogd_quorum_nodes", help, |quorum| quorum.nodes.into())?;
    let help = "Nodes that can confirm now, as this one sees it, itself counted";
    of_source("binlogd_quorum_nodes_counting", help, |quorum| quorum.counting().into())?;
    let help = "Nodes that must have a transaction before it is acknowledged";
    of_source("binlogd_quorum_nodes_needed", help, |quorum| quorum.majority.into())?;
    let nodes: Vec<_> = quorums
        .iter()
        .flat_map(|(source, quorum)| quorum.others.iter().map(move |node| (*source, node)))
        .map(|(source, node)| ([("source", source), ("node", node.address.as_str())], node))
        .collect();
    let mut of_node = |name, unit: Option<&Unit>, help, value: fn(&NodeStatus) -> Option<u64>| {
        let rows = nodes.iter().filter_map(|(labels, node)| Some((*labels, value(node)?)));
        gauges(encoder, name, unit, help, rows)
    };
    let help = "1 while the other node tells this one how far it is, otherwise 0";
    of_node("binlogd_quorum_node_heard", None, help, |node| Some(node.heard.into()))?;
    let help = "1 while the other node confirms in the epoch of this one, otherwise 0";
    of_node("binlogd_quorum_node_counts", None, help, |node| Some(node.counts.into()))?;
    let help = "Bytes that this node has and the other one has not, 0 where it has more, absent while it does not count";
    of_node("binlogd_quorum_node_behind", Some(&Unit::Bytes), help, |node| node.behind_bytes)
}
