//! The other binlogds of the sources, as metrics.

use super::families::{counters, gauges};
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use status::{PeerStatus, SourceMonitor};
use std::fmt::Result;
use std::sync::Arc;

/// One series a source and peer; none where no peers are configured.
pub(crate) fn encode(encoder: &mut DescriptorEncoder, sources: &[Arc<SourceMonitor>]) -> Result {
    let of = |source: &Arc<SourceMonitor>, peer: PeerStatus| {
        ([("source", source.name().to_owned()), ("peer", peer.peer.clone())], peer)
    };
    let peers: Vec<_> = sources
        .iter()
        .flat_map(|source| source.facts().peers.into_iter().map(move |peer| of(source, peer)))
        .collect();
    if peers.is_empty() {
        return Ok(());
    }
    let asked = peers.iter().filter(|(_, peer)| peer.asked_at.is_some());
    gauges(
        encoder,
        "binlogd_peer_answered",
        None,
        "1 when the peer could be used when it was asked last, otherwise 0; absent before it was asked",
        asked.map(|(labels, peer)| (labels.clone(), u64::from(peer.error.is_none()))),
    )?;
    gauges(
        encoder,
        "binlogd_peer_only_there_transactions",
        None,
        "Transactions of an older timeline that the peer holds and the copy lacks; for MariaDB of how many servers",
        peers.iter().map(|(labels, peer)| (labels.clone(), peer.only_there_transactions)),
    )?;
    counters(
        encoder,
        "binlogd_peer_fetched_transactions",
        None,
        "Transactions that were fetched from the peer",
        peers.iter().map(|(labels, peer)| (labels.clone(), peer.fetched_transactions)),
    )?;
    counters(
        encoder,
        "binlogd_peer_fetched",
        Some(&Unit::Bytes),
        "Bytes of binary logs that were fetched from the peer",
        peers.iter().map(|(labels, peer)| (labels.clone(), peer.fetched_bytes)),
    )
}
