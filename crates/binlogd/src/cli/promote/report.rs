//! What a promotion has found and done, for a person.

use super::super::style;
use serde_json::json;
use setup::promote::{Promote, PromoteAnswer};

/// What was found, and what would be done.
pub(super) fn found(promote: &Promote, left: &[String]) {
    let host = &promote.successor.host;
    let (answered, nodes) = promote.nodes();
    outln!("nodes: {answered} of {nodes} can promise; {} are needed", nodes / 2 + 1);
    for (node, why) in promote.absent() {
        outln!("  {node}: {}", style::clean(why));
    }
    match promote.present {
        Some(epoch) if left.is_empty() => outln!("{host} is the source already, of epoch {epoch}"),
        Some(epoch) => {
            outln!("{host} is the source of epoch {epoch} already, and is not open yet");
        }
        None => {
            outln!(
                "source now: {}; the next one: {host} ({})",
                promote.before,
                promote.successor.identity.uuid
            );
            if !promote.lacks.is_empty() {
                outln!(
                    "it lacks {} as yet: its own replication brings that, or it reads from a node",
                    promote.lacks.to_line()
                );
            }
            outln!("to be done: feed, fence, agree, accept; then on {host}:");
        }
    }
    for statement in left {
        outln!("  {statement};");
    }
}

/// What was done.
pub(super) fn done(answer: &PromoteAnswer) {
    let host = &answer.to;
    for statement in &answer.statements {
        outln!("done on {host}: {statement};");
    }
    if let Some(epoch) = answer.epoch {
        outln!("{host} is the source of epoch {epoch}");
    }
    for absent in &answer.absent {
        outln!("not there: {}: {}", absent.node, style::clean(&absent.why));
    }
    for replica in &answer.repointed {
        match &replica.refused {
            None => outln!("{} replicates from {host}", replica.host),
            Some(why) => outln!("{} does not replicate from {host}: {}", replica.host, style::clean(why)),
        }
    }
}

/// What is left for the operator.
pub(super) fn notes(answer: &PromoteAnswer) {
    for note in &answer.notes {
        outln!("{}", style::clean(note));
    }
}

/// As JSON.
pub(super) fn json(answer: &PromoteAnswer) {
    outln!("{:#}", json!(answer));
}

/// It did not come to its end; the reason is on standard error too.
pub(super) fn failed(error: &str) {
    outln!("{:#}", json!({ "done": false, "error": error }));
}
