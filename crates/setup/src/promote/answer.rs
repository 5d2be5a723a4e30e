//! What a promotion has found and done, for people and for programs.

use super::hosts::Tail;
use super::repoint::Repointed;
use super::steps::{Done, Promote};
use serde::Serialize;

/// What a promotion has found and done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromoteAnswer {
    /// `host:port` of the server that is to be the source, as it was asked for.
    pub to: String,
    /// UUID of that server; of a MariaDB `mariadb-` and its server_id.
    pub server: String,
    /// The source before, named in the same way. That server itself where it was the source already.
    pub source_before: String,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many of them can promise.
    pub nodes_answer: usize,
    /// True when the server was the source already, be it that it was not open yet.
    pub is_source_already: bool,
    /// GTIDs that the nodes held and the server lacked when it was looked at.
    pub lacks: String,
    /// In which epoch the server is the source; null while it is not.
    pub epoch: Option<u64>,
    /// True when the steps were carried out. False of a dry run, and where nothing was left to be done.
    pub done: bool,
    /// Addresses of the nodes that have recorded it as the source now.
    pub accepted: Vec<String>,
    /// Nodes that do not answer, or cannot promise.
    pub absent: Vec<AbsentNode>,
    /// Statements that were run on the server to open it; of a dry run those that would be.
    pub statements: Vec<String>,
    /// What the other hosts have that the source lacks.
    pub tails: Vec<LostTail>,
    /// What became of the other hosts, where they were to be pointed to the server.
    pub repointed: Vec<RepointedHost>,
    /// What is left for the operator, in words. Empty while the server is not the source.
    pub notes: Vec<String>,
    /// Why the hook has failed; null when it has not, or none was asked for.
    pub hook_error: Option<String>,
}

/// A node that does not answer, or cannot promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbsentNode {
    /// Its address.
    pub node: String,
    /// Why.
    pub why: String,
}

/// What a host has that the source lacks: nobody was told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostTail {
    /// The host, as in the list.
    pub host: String,
    /// GTIDs of the transactions that it alone has.
    pub gtids: String,
    /// Commits that wait there for an acknowledgement, which does not come.
    pub waiting: u64,
}

/// What became of a host of the list that was to be a replica of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepointedHost {
    /// The host, as in the list.
    pub host: String,
    /// Why it is not pointed to the source; null when it is.
    pub refused: Option<String>,
}

impl PromoteAnswer {
    /// What was found, where nothing was done. `left`: what is left to be done on the server to open it.
    pub fn found(promote: &mut Promote, left: Vec<String>) -> PromoteAnswer {
        let tails = promote.tails().unwrap_or_default();
        let is_open = promote.present.is_some() && left.is_empty();
        PromoteAnswer {
            epoch: promote.present,
            absent: absent(promote.absent()),
            statements: left,
            notes: if is_open { notes(promote, &tails) } else { Vec::new() },
            tails: lost(&tails),
            ..PromoteAnswer::of(promote)
        }
    }

    /// What was done.
    pub fn done(promote: &mut Promote, done: Done, repointed: Vec<Repointed>) -> PromoteAnswer {
        // It is for the operator to know, and nothing depends on it.
        let tails = promote.tails().unwrap_or_default();
        let replicas =
            repointed.into_iter().map(|Repointed { host, refused }| RepointedHost { host, refused });
        PromoteAnswer {
            epoch: Some(done.epoch),
            done: true,
            accepted: done.accepted,
            absent: absent(&done.absent),
            statements: done.opened,
            repointed: replicas.collect(),
            notes: notes(promote, &tails),
            tails: lost(&tails),
            ..PromoteAnswer::of(promote)
        }
    }

    fn of(promote: &Promote) -> PromoteAnswer {
        let (nodes_answer, nodes) = promote.nodes();
        PromoteAnswer {
            to: promote.successor.host.clone(),
            server: promote.successor.identity.uuid.clone(),
            source_before: promote.before.clone(),
            nodes,
            nodes_answer,
            is_source_already: promote.present.is_some(),
            lacks: promote.lacks.to_line(),
            epoch: None,
            done: false,
            accepted: Vec::new(),
            absent: Vec::new(),
            statements: Vec::new(),
            tails: Vec::new(),
            repointed: Vec::new(),
            notes: Vec::new(),
            hook_error: None,
        }
    }
}

impl LostTail {
    fn of(tail: &Tail) -> LostTail {
        LostTail { host: tail.host.clone(), gtids: tail.gtids.to_line(), waiting: tail.waiting }
    }
}

fn lost(tails: &[Tail]) -> Vec<LostTail> {
    tails.iter().filter(|tail| tail.is_lost()).map(LostTail::of).collect()
}

fn absent(nodes: &[(String, String)]) -> Vec<AbsentNode> {
    nodes.iter().map(|(node, why)| AbsentNode { node: node.clone(), why: why.clone() }).collect()
}

/// What is left for the operator, by what is found now: whoever runs a promotion again reads the same.
fn notes(promote: &Promote, tails: &[Tail]) -> Vec<String> {
    let successor = &promote.successor;
    let mut notes = Vec::new();
    if let Some(timeout) = successor.timeout() {
        notes.push(format!(
            "a commit waits at {} for an acknowledgement for up to {timeout} ms; after that it goes on without",
            successor.host
        ));
    }
    if !successor.facts.persists() {
        notes.push("these settings last until a restart: write them into its option file".to_owned());
    }
    let before = match promote.before == successor.identity.uuid {
        true => String::new(),
        false => format!(" ({})", promote.before),
    };
    notes.push(format!(
        "the old source{before} gets no acknowledgement any more. When it is back, run this again, which says what it alone has. If that \
         is nothing, make it a replica: {}",
        successor.as_source(&promote.request.to)
    ));
    notes.extend(tails.iter().flat_map(of_tail));
    notes
}

fn of_tail(Tail { host, gtids, waiting, is_writable }: &Tail) -> Vec<String> {
    let mut notes = Vec::new();
    if *is_writable && gtids.is_empty() && *waiting == 0 {
        notes.push(format!(
            "{host} answers, has nothing of its own, and takes writes: what clients write there the source does not get. Make it a replica now"
        ));
    }
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
    notes
}
