//! What is on its way, and what comes of it.

use crate::node::{Confirmation, History};
use crate::server::transactions;
use crate::world::{Broken, World};
use codec::gtid::Uuid;
use quorum::{Accepted, Ballot, Kind, Promise};

/// Messages that are on their way; of more, the oldest are lost.
const ON_THEIR_WAY_MAX: usize = 60;

#[derive(Debug, Clone)]
pub enum Message {
    Tell {
        confirmation: Option<Confirmation>,
        accepted: Accepted,
    },
    /// To the node, of the promoter of this number.
    Promise {
        promoter: usize,
        ballot: Ballot,
        kind: Kind,
    },
    Promised {
        promoter: usize,
        ballot: Ballot,
        by: Uuid,
        promise: Promise,
        history: History,
    },
    Accept {
        promoter: usize,
        accepted: Accepted,
        is_founding: bool,
    },
    AcceptedBy {
        promoter: usize,
        ballot: Ballot,
        by: Uuid,
        is_founding: bool,
    },
    /// To a server, of one start.
    Acknowledge {
        start: u32,
        entries: usize,
        epoch: u64,
    },
}

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    Node(usize),
    Server(usize),
}

impl World {
    pub fn send(&mut self, from: usize, to: To, message: Message) {
        if self.messages.len() >= ON_THEIR_WAY_MAX {
            self.messages.remove(0);
        }
        self.messages.push((from, to, message));
    }

    pub fn deliver_one(&mut self) -> Result<(), Broken> {
        if self.messages.is_empty() {
            return Ok(());
        }
        // Mostly in order.
        let newest = match self.random.one_in(4) {
            true => self.messages.len(),
            false => self.messages.len().min(6),
        };
        let index = self.random.below(newest as u64) as usize;
        let (from, to, message) = match self.random.below(30) {
            // Twice, or never.
            0 | 1 => self.messages[index].clone(),
            2 => {
                self.messages.remove(index);
                return Ok(());
            }
            _ => self.messages.remove(index),
        };
        match to {
            To::Node(node) if self.nodes[node].is_alive && self.reaches(from, node) => {
                self.deliver(from, node, message)
            }
            To::Server(server) if !self.cut_off.contains(&(from, server)) => {
                self.acknowledge(server, message)
            }
            _ => Ok(()),
        }
    }

    pub fn deliver_all(&mut self) -> Result<(), Broken> {
        while !self.messages.is_empty() {
            for (from, to, message) in std::mem::take(&mut self.messages) {
                match to {
                    To::Node(node) => self.deliver(from, node, message)?,
                    To::Server(server) => self.acknowledge(server, message)?,
                }
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, server: usize, message: Message) -> Result<(), Broken> {
        let Message::Acknowledge { start, entries, epoch } = message else { return Ok(()) };
        let of = &self.servers[server];
        if !of.is_alive || of.starts != start {
            return Ok(());
        }
        let log = &of.log[..entries.min(of.log.len())];
        let new: Vec<_> = transactions(log)
            .filter(|one| !self.told.iter().any(|(told, _)| told == *one))
            .copied()
            .collect();
        if let Some(other) = self.sources.insert(epoch, server).filter(|other| *other != server) {
            return Err(format!("servers {other} and {server} were acknowledged in epoch {epoch}"));
        }
        if let Some(last) = new.last() {
            self.say(|| format!("server {server} is acknowledged to {last:?} in epoch {epoch}"));
            self.told.extend(new.iter().map(|one| (*one, epoch)));
            self.check_agreed(epoch)?;
            self.is_to_check = true;
        }
        Ok(())
    }

    fn deliver(&mut self, from: usize, node: usize, message: Message) -> Result<(), Broken> {
        let ours = &mut self.nodes[node];
        match message {
            Message::Tell { confirmation, accepted } => {
                ours.leave(&accepted);
                if !ours.is_hung
                    && let Ok(memory) = ours.memory.accept(&accepted)
                {
                    ours.memory = memory;
                }
                let Some(confirmation) = confirmation else { return Ok(()) };
                let of = |one: &Confirmation| (one.epoch, one.place.file, one.place.entries);
                if ours.heard.get(&from).is_none_or(|heard| of(heard) <= of(&confirmation)) {
                    ours.heard.insert(from, confirmation);
                }
            }
            Message::Promise { promoter, ballot, kind } => {
                if ours.is_hung {
                    return Ok(());
                }
                if let Kind::Joining(joiner) = kind
                    && self.is_complete_without(node, joiner)
                {
                    return Ok(());
                }
                let ours = &mut self.nodes[node];
                let Ok(memory) = ours.memory.promise(ballot, kind) else { return Ok(()) };
                ours.memory = memory;
                ours.safe_durable = ours.safe.clone();
                if ours.has_forgotten && kind != Kind::Founding {
                    return Err(format!("node {node} lost its disk, and promises {ballot}"));
                }
                let promise = Promise { held: ours.held(), accepted: ours.memory.accepted().cloned() };
                let (by, history) = (ours.uuid, ours.counted().clone());
                self.say(|| format!("node {node} promises {ballot}"));
                self.send(node, To::Node(from), Message::Promised { promoter, ballot, by, promise, history });
            }
            Message::Promised { promoter, ballot, by, promise, history } => {
                if let Some(known) = self.promoter_of(promoter, ballot) {
                    known.promotion.promised(by, promise);
                    known.histories.insert(by, history);
                }
            }
            Message::Accept { promoter, accepted, is_founding } => {
                if ours.is_hung {
                    return Ok(());
                }
                ours.leave(&accepted);
                let memory = match is_founding {
                    true => ours.memory.record(&accepted),
                    false => ours.memory.accept(&accepted),
                };
                let Ok(memory) = memory else { return Ok(()) };
                ours.memory = memory;
                ours.has_forgotten &= !is_founding;
                let (ballot, by) = (accepted.ballot, ours.uuid);
                self.say(|| {
                    let what = if is_founding { "records" } else { "accepts" };
                    format!("node {node} {what} {} in {ballot}", accepted.source)
                });
                let message = Message::AcceptedBy { promoter, ballot, by, is_founding };
                self.send(node, To::Node(from), message);
            }
            Message::AcceptedBy { promoter, ballot, by, is_founding } => {
                if let Some(known) = self.promoter_of(promoter, ballot)
                    && is_founding == (known.promotion.kind() == Kind::Founding)
                {
                    known.promotion.accepted(by);
                }
            }
            Message::Acknowledge { .. } => {}
        }
        Ok(())
    }
}
