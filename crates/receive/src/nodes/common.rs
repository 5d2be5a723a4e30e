//! What the threads of a node have in common.

use crate::attempt::context::Upstream;
use codec::gtid::GtidState;
use quorum::Node;
use wire::WireError;

/// What is held on stable storage, by its GTIDs.
pub(super) fn held(upstream: &Upstream) -> GtidState {
    (*upstream.monitor.gtids().durable).clone()
}

/// A node's memory could not be written, or was refused: said once as long as it is the same.
pub(super) fn tell_once(upstream: &Upstream, last: &mut Option<String>, words: String) {
    if last.as_ref() != Some(&words) {
        tracing::warn!(source = upstream.config.name, "quorum: {words}");
        *last = Some(words);
    }
}

/// Why a node is not reached. One that says nothing is no server whose accounts are locked.
pub(super) fn not_reached(error: &WireError) -> String {
    match error.says_nothing_for() {
        Some(time) => format!(
            "it takes the connection and says nothing for {time:?}: its process is stopped or hangs, or its machine does"
        ),
        None => error.to_string(),
    }
}

/// Whether a node says that it counts with the same number of nodes.
pub(super) fn is_of_size(node: &Node, nodes: usize) -> Result<(), String> {
    match nodes == node.nodes() {
        true => Ok(()),
        false => Err(format!(
            "it is one of {nodes} nodes by its configuration, and this one of {}: the nodes must name one another (quorum)",
            node.nodes()
        )),
    }
}
