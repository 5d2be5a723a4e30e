//! What a promotion has found and done, for people and for programs.

use super::super::style;
use serde_json::{Value, json};
use setup::promote::{Done, Promote};
use wire::ConnectOptions;

/// What a promotion has found and done.
pub(super) struct Report<'a> {
    pub(super) to: &'a ConnectOptions,
}

impl Report<'_> {
    /// What was found, and what would be done.
    pub(super) fn found(&self, promote: &Promote, left: &[String]) {
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

    /// What was done, and what is left for the operator.
    pub(super) fn done(&self, promote: &Promote, done: &Done) {
        let host = &promote.successor.host;
        for statement in &done.opened {
            outln!("done on {host}: {statement};");
        }
        outln!("{host} is the source of epoch {}", done.epoch);
        for (node, why) in &done.absent {
            outln!("not there: {node}: {}", style::clean(why));
        }
        for note in self.notes(promote) {
            outln!("{note}");
        }
    }

    fn notes(&self, promote: &Promote) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(timeout) = promote.successor.timeout() {
            notes.push(format!(
                "a commit waits there for an acknowledgement for up to {timeout} ms; after that it goes on without"
            ));
        }
        if !promote.successor.facts.persists() {
            notes.push("these settings last until a restart: write them into its option file".to_owned());
        }
        if promote.before != promote.successor.identity.uuid {
            notes.push(format!(
                "the old source ({}) is acknowledged nothing any more. When it is back: {}",
                promote.before,
                promote.successor.as_source(self.to)
            ));
            notes.push(
                "What it alone wrote was acknowledged to nobody; binlogd status and binlogd forks list what the copies have of it. A server that \
                 has such transactions cannot be a replica before they are taken out: build it anew from a backup or by CLONE"
                    .to_owned(),
            );
        }
        notes
    }

    fn head(&self, promote: &Promote) -> Value {
        let (answered, nodes) = promote.nodes();
        json!({
            "to": promote.successor.host,
            "server": promote.successor.identity.uuid,
            "source_before": promote.before,
            "nodes": nodes,
            "nodes_answer": answered,
            "is_source_already": promote.present.is_some(),
            "lacks": promote.lacks.to_line(),
        })
    }

    pub(super) fn json_found(&self, promote: &Promote, left: &[String], hooked: Option<&Hooked>) {
        let mut value = self.head(promote);
        value["epoch"] = json!(promote.present);
        value["done"] = json!(false);
        value["absent"] = absent(promote.absent());
        value["statements"] = json!(left);
        value["hook_error"] = json!(hook_error(hooked));
        outln!("{value:#}");
    }

    pub(super) fn json_done(&self, promote: &Promote, done: &Done, hooked: Option<&Hooked>) {
        let mut value = self.head(promote);
        value["epoch"] = json!(done.epoch);
        value["done"] = json!(true);
        value["accepted"] = json!(done.accepted);
        value["absent"] = absent(&done.absent);
        value["statements"] = json!(done.opened);
        value["notes"] = json!(self.notes(promote));
        value["hook_error"] = json!(hook_error(hooked));
        outln!("{value:#}");
    }
}

/// It did not come to its end; the reason is on standard error too.
pub(super) fn failed(error: &str) {
    outln!("{:#}", json!({ "done": false, "error": error }));
}

/// What came of the hook.
type Hooked = Result<(), String>;

fn hook_error(hooked: Option<&Hooked>) -> Option<&String> {
    hooked.and_then(|hooked| hooked.as_ref().err())
}

fn absent(nodes: &[(String, String)]) -> Value {
    nodes.iter().map(|(node, why)| json!({ "node": node, "why": why })).collect()
}
