//! What a promotion has found and done, for people and for programs.

use super::super::style;
use serde_json::{Value, json};
use setup::promote::{Done, Promote, Repointed, Tail};
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
    pub(super) fn done(&self, promote: &mut Promote, done: &Done, repointed: &[Repointed]) {
        let host = promote.successor.host.clone();
        for statement in &done.opened {
            outln!("done on {host}: {statement};");
        }
        outln!("{host} is the source of epoch {}", done.epoch);
        for (node, why) in &done.absent {
            outln!("not there: {node}: {}", style::clean(why));
        }
        for Repointed { host: replica, refused } in repointed {
            match refused {
                None => outln!("{replica} replicates from {host}"),
                Some(why) => outln!("{replica} does not replicate from {host}: {}", style::clean(why)),
            }
        }
        let tails = tails(promote);
        for note in self.notes(promote, &tails) {
            outln!("{}", style::clean(&note));
        }
    }

    /// It was the source already, and nothing is left to be done: what the other hosts have that nobody was told of.
    pub(super) fn nothing_to_do(&self, promote: &mut Promote) {
        for note in of_tails(&tails(promote)) {
            outln!("{}", style::clean(&note));
        }
    }

    fn notes(&self, promote: &Promote, tails: &[Tail]) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(timeout) = promote.successor.timeout() {
            notes.push(format!(
                "a commit waits there for an acknowledgement for up to {timeout} ms; after that it goes on without"
            ));
        }
        if !promote.successor.facts.persists() {
            notes.push("these settings last until a restart: write them into its option file".to_owned());
        }
        let before = match promote.before == promote.successor.identity.uuid {
            true => String::new(),
            false => format!(" ({})", promote.before),
        };
        notes.push(format!(
            "the old source{before} gets no acknowledgement any more. When it is back, run this again, which says what it alone has. If that \
             is nothing, make it a replica: {}",
            promote.successor.as_source(self.to)
        ));
        notes.extend(of_tails(tails));
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

    pub(super) fn json_found(&self, promote: &mut Promote, left: &[String], hooked: Option<&Hooked>) {
        let tails = tails(promote);
        let mut value = self.head(promote);
        value["tails"] = tails_json(&tails);
        value["epoch"] = json!(promote.present);
        value["done"] = json!(false);
        value["absent"] = absent(promote.absent());
        value["statements"] = json!(left);
        value["hook_error"] = json!(hook_error(hooked));
        outln!("{value:#}");
    }

    pub(super) fn json_done(
        &self,
        promote: &mut Promote,
        done: &Done,
        repointed: &[Repointed],
        hooked: Option<&Hooked>,
    ) {
        let replicas = repointed.iter().map(|one| json!({ "host": one.host, "refused": one.refused }));
        let replicas: Value = replicas.collect();
        let tails = tails(promote);
        let mut value = self.head(promote);
        value["tails"] = tails_json(&tails);
        value["epoch"] = json!(done.epoch);
        value["done"] = json!(true);
        value["accepted"] = json!(done.accepted);
        value["absent"] = absent(&done.absent);
        value["statements"] = json!(done.opened);
        value["repointed"] = replicas;
        value["notes"] = json!(self.notes(promote, &tails));
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

/// What hosts have that the source lacks. It is for the operator to know, and nothing depends on it here.
fn tails(promote: &mut Promote) -> Vec<Tail> {
    promote.tails().unwrap_or_default()
}

fn of_tails(tails: &[Tail]) -> Vec<String> {
    let mut notes = Vec::new();
    for Tail { host, gtids, waiting } in tails {
        if *waiting > 0 {
            notes.push(format!(
                "{host}: {} there for an acknowledgement that does not come. Who switches semi-sync off there tells those clients that \
                 they have committed what is lost: end the server instead (kill -9, or its machine), and start it with skip_networking",
                if *waiting == 1 { "a commit waits".to_owned() } else { format!("{waiting} commits wait") }
            ));
        }
        if !gtids.is_empty() {
            notes.push(format!(
                "{host} has transactions of its own that were acknowledged to nobody, and the source lacks them: {}. It cannot be a replica \
                 as it is: look at them (mysqlbinlog there; binlogd forks here, as far as the copy has them), then build it anew from a \
                 backup or by CLONE",
                gtids.to_line()
            ));
        }
    }
    notes
}

fn tails_json(tails: &[Tail]) -> Value {
    let object =
        |tail: &Tail| json!({ "host": tail.host, "gtids": tail.gtids.to_line(), "waiting": tail.waiting });
    tails.iter().map(object).collect()
}
