//! The other nodes of a quorum, as far as they answer.

use super::finding::Finding;

/// What another node has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// It was not reached; why.
    Away(String),
    /// It does not let this node hear it, or is no node; why.
    Refused(String),
    /// It is a node.
    Told {
        /// By which it presents itself to the source as a replica.
        uuid: String,
        /// How many nodes there are by its configuration.
        nodes: usize,
        /// The epoch of the source that it has accepted, by its confirmation or its promise; 0 while it is blank.
        epoch: u64,
        /// It confirms.
        counts: bool,
    },
}

impl Node {
    /// The UUID by which the source lists it.
    pub fn uuid(&self) -> Option<&str> {
        match self {
            Node::Told { uuid, .. } => Some(uuid),
            _ => None,
        }
    }
}

/// Judges each of them, with its address. `own`: the UUID of this node, once its folder was made.
pub fn examine(own: Option<&str>, nodes: &[(String, Node)]) -> Vec<Finding> {
    nodes.iter().enumerate().map(|(at, (_, node))| one(own, &nodes[..at], node, nodes.len() + 1)).collect()
}

fn one(own: Option<&str>, before: &[(String, Node)], node: &Node, count: usize) -> Finding {
    let (uuid, nodes, epoch, counts) = match node {
        Node::Away(why) => {
            return Finding::warning(format!("it does not answer: {why}")).because(
                "the quorum begins when all nodes are there. Afterwards commits go on while a majority is, and bear fewer losses",
            );
        }
        Node::Refused(why) => {
            return Finding::error(format!("it cannot be heard: {why}")).because(
                "the nodes log in to one another with the user and the password of their [[source]], which must be the same on all of them, \
                 and each names the others in quorum",
            );
        }
        Node::Told { uuid, nodes, epoch, counts } => (uuid, *nodes, *epoch, *counts),
    };
    if own == Some(uuid) {
        return Finding::error("it is this binlogd itself").because(
            "it would confirm what it alone has: name the others in quorum, and no name of this machine",
        );
    }
    if let Some((other, _)) = before.iter().find(|(_, other)| other.uuid() == Some(uuid)) {
        return Finding::error(format!("it is the same binlogd as {other}")).because(
            "what it has would count twice, and a majority would be one machine: name each node once",
        );
    }
    if nodes != count {
        return Finding::error(format!(
            "it is one of {nodes} nodes by its configuration, and this one of {count}"
        ))
        .because("the nodes must name one another, all of them: compare quorum in their configurations");
    }
    Finding::ok(match (counts, epoch) {
        (true, epoch) => format!("a node, which counts in epoch {epoch}"),
        (false, 0) => "a node, which has not joined yet: the quorum begins when all nodes receive".to_owned(),
        (false, epoch) => format!("a node, which does not count at present: it has promised epoch {epoch}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_node_is_told_from_what_is_none() {
        let told =
            |uuid: &str, nodes, epoch, counts| Node::Told { uuid: uuid.to_owned(), nodes, epoch, counts };
        let of = |first, second| {
            let nodes = [("b:3307".to_owned(), first), ("c:3307".to_owned(), second)];
            let mut findings = examine(Some("own"), &nodes);
            findings.remove(1)
        };
        for (node, level, words) in [
            (told("two", 3, 4, true), Level::Ok, "counts in epoch 4"),
            (told("two", 3, 0, false), Level::Ok, "has not joined yet"),
            (told("two", 3, 5, false), Level::Ok, "has promised epoch 5"),
            (told("own", 3, 4, true), Level::Error, "this binlogd itself"),
            (told("one", 3, 4, true), Level::Error, "the same binlogd as b:3307"),
            (told("two", 5, 4, true), Level::Error, "one of 5 nodes by its configuration, and this one of 3"),
            (Node::Away("refused".to_owned()), Level::Warning, "does not answer: refused"),
            (Node::Refused("denied".to_owned()), Level::Error, "cannot be heard: denied"),
        ] {
            let finding = of(told("one", 3, 4, true), node);
            assert!(finding.level == level && finding.what.contains(words), "{finding:?}");
        }
    }
}
