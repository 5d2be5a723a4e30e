//! A node: the product's memory over a disk that forgets nothing but what was not synced, and a copy.

use crate::server::{Entry, Place, Server, Transaction, gtids, server_uuid};
use codec::gtid::Uuid;
use quorum::{Accepted, Held, Memory, Standing, majority};
use std::collections::BTreeMap;

/// What a node tells the others.
#[derive(Debug, Clone, Copy)]
pub struct Confirmation {
    pub epoch: u64,
    pub server: usize,
    pub place: Place,
}

#[derive(Debug, Clone, Default)]
pub struct Node {
    pub uuid: Uuid,
    pub is_alive: bool,
    /// Its disk takes nothing.
    pub is_hung: bool,
    pub memory: Memory,
    /// The server whose log the live timeline is.
    pub timeline: Option<usize>,
    pub copy: Vec<Entry>,
    /// So much of it is on stable storage.
    pub durable: usize,
    /// What was held of the epoch that was entered, where the live timeline is another one or lost a part of that.
    pub kept: Option<Vec<Entry>>,
    /// The source lost what the copy held of this epoch.
    pub withholds: bool,
    /// Server and its start.
    pub session: Option<(usize, u32)>,
    pub heard: BTreeMap<usize, Confirmation>,
}

impl Node {
    pub fn blank(uuid: Uuid) -> Node {
        Node { uuid, is_alive: true, ..Node::default() }
    }

    /// What it answers to a promise with.
    pub fn counted(&self) -> &[Entry] {
        self.kept.as_deref().unwrap_or(&self.copy[..self.durable])
    }

    pub fn held(&self) -> Held {
        Held { entered: self.memory.entered(), gtids: gtids(transactions(self.counted())) }
    }

    /// Begins to receive from `server`.
    pub fn attach(&mut self, server: usize, of: &Server) {
        self.durable = self.copy.len();
        let shared = self.copy.iter().zip(&of.log).take_while(|(ours, theirs)| ours == theirs).count();
        let is_same = self.timeline == Some(server);
        if !is_same || shared < self.copy.len() {
            let of_epoch = self.memory.accepted().map_or(0, |accepted| accepted.ballot.epoch);
            if is_same && self.memory.entered() == of_epoch && of_epoch > 0 {
                self.withholds = true;
            }
            if self.kept.is_none() && !self.copy.is_empty() {
                self.kept = Some(self.copy.clone());
            }
            let held: Vec<Transaction> = transactions(&self.copy).copied().collect();
            let begin = match is_same {
                true => shared,
                false => of.log.iter().take_while(|entry| held.contains(&entry.transaction)).count(),
            };
            self.copy = of.log[..begin].to_vec();
            self.durable = begin;
            self.timeline = Some(server);
        }
        self.session = Some((server, of.starts));
    }

    /// What it received is synced; the copy may have come to where it counts.
    pub fn sync(&mut self) {
        if self.is_hung {
            return;
        }
        self.durable = self.copy.len();
        if let Some(memory) = self.memory.enter(|accepted| self.has_place_of(accepted)) {
            self.memory = memory;
            (self.kept, self.withholds) = (None, false);
        }
        let has = |entry: &Entry| self.copy.iter().any(|has| has.transaction == entry.transaction);
        if self.kept.as_ref().is_some_and(|kept| self.withholds && kept.iter().all(has)) {
            (self.kept, self.withholds) = (None, false);
        }
    }

    /// Whether the copy has the place of an epoch.
    pub fn has_place_of(&self, accepted: &Accepted) -> bool {
        let entries = accepted.place.offset as usize;
        let file = || self.copy[..self.durable].get(entries - 1).map(|entry| entry.file.to_string());
        let is_source = self.timeline.is_some_and(|server| server_uuid(server) == accepted.source);
        is_source && (entries == 0 || file().as_ref() == Some(&accepted.place.file))
    }

    pub fn crash(&mut self) {
        self.is_alive = false;
        self.copy.truncate(self.durable);
        self.session = None;
        self.heard.clear();
    }

    pub fn confirmation(&self) -> Option<Confirmation> {
        let Standing::Counting(accepted) = self.memory.standing() else { return None };
        let server = self.timeline.filter(|server| server_uuid(*server) == accepted.source)?;
        (!self.withholds).then(|| Confirmation {
            epoch: accepted.ballot.epoch,
            server,
            place: Server::place(&self.copy[..self.durable]),
        })
    }

    /// How far it may acknowledge to its source.
    pub fn may_acknowledge(&self, nodes: usize) -> Option<usize> {
        let own = self.confirmation()?;
        let mut places: Vec<usize> = self
            .heard
            .values()
            .filter(|heard| heard.epoch == own.epoch && heard.server == own.server)
            .filter_map(|heard| self.behind(heard.place))
            .collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        let others = *places.get(majority(nodes) - 2)?;
        Some(others.min(self.durable))
    }

    /// So much of the copy lies before a place of the same log. `None` when the copy has no such file.
    fn behind(&self, (file, entries): Place) -> Option<usize> {
        let before = self.copy.iter().take_while(|entry| entry.file < file).count();
        let to = before + self.copy[before..].iter().take_while(|entry| entry.file == file).count();
        (to > before).then(|| entries.clamp(before, to))
    }
}

pub fn transactions(log: &[Entry]) -> impl Iterator<Item = &Transaction> {
    log.iter().map(|entry| &entry.transaction)
}
