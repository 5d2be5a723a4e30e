//! A node: the product's memory over a disk that forgets nothing but what was not synced, and a copy.

use crate::server::{Entry, Place, Server, Transaction, gtids, place_of, server_name, transactions};
use codec::gtid::{GtidState, Uuid};
use quorum::{Accepted, Held, Memory, Standing, majority};
use std::collections::BTreeMap;

/// What a node tells the others.
#[derive(Debug, Clone, Copy)]
pub struct Confirmation {
    pub epoch: u64,
    pub server: usize,
    pub place: Place,
}

/// What a node holds on stable storage: older timelines, and a part of the log of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    pub older: Vec<Transaction>,
    pub server: Option<usize>,
    /// So many entries of that server's log lie before the copy.
    pub base: usize,
    pub copy: Vec<Entry>,
}

impl History {
    pub fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        self.older.iter().chain(transactions(&self.copy))
    }

    pub fn gtids(&self) -> GtidState {
        gtids(self.transactions())
    }

    /// What a reader gets of a GTID is what comes first.
    pub fn holds(&self, transaction: &Transaction) -> bool {
        let mut of_gtid = self.transactions().filter(|has| has.gtid() == transaction.gtid());
        of_gtid.next() == Some(transaction)
    }

    pub fn end(&self) -> Place {
        place_of(self.copy.last(), self.base + self.copy.len())
    }

    /// Whether the copy is one of `server` and has a place of its log.
    pub fn has_place(&self, server: usize, place: Place) -> bool {
        let before = || place.entries.checked_sub(1 + self.base).and_then(|index| self.copy.get(index));
        self.server == Some(server)
            && (place.entries == 0
                || before().is_some_and(|entry| place_of(Some(entry), place.entries) == place))
    }

    /// Whether all that `other` has of the same server's log is here too.
    pub fn goes_on_from(&self, other: &History) -> bool {
        other.copy.is_empty() || other.server.is_some_and(|server| self.has_place(server, other.end()))
    }

    /// So much of the server's log lies before a place of it. `None` when the copy has no such file.
    fn behind(&self, place: Place) -> Option<usize> {
        let before = self.copy.iter().take_while(|entry| entry.file < place.file).count();
        let of_file = |entry: &&Entry| (entry.file, entry.identity) == (place.file, place.identity);
        let len = self.copy[before..].iter().take_while(of_file).count();
        let from = self.base + before;
        (len > 0).then(|| place.entries.clamp(from, from + len))
    }
}

#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Its name. Another one when its disk was lost.
    pub uuid: Uuid,
    pub is_alive: bool,
    /// Its disk takes nothing.
    pub is_hung: bool,
    pub memory: Memory,
    /// The live timeline, as far as it is on stable storage.
    pub live: History,
    /// Received, and not on stable storage yet.
    pub pending: Vec<Entry>,
    /// What was held of the epoch that was entered, where the live timeline is another one or lost a part of that.
    pub kept: Option<History>,
    /// The source lost what the copy held of this epoch.
    pub withholds: bool,
    /// What a majority has confirmed: no history that is ever agreed on has anything else under these GTIDs.
    pub safe: Vec<Transaction>,
    /// That, as far as it was written down.
    pub safe_durable: Vec<Transaction>,
    /// Server and its start.
    pub session: Option<(usize, u32)>,
    pub heard: BTreeMap<usize, Confirmation>,
    /// It has lost its disk, and not joined since: for what is checked only.
    pub has_forgotten: bool,
}

impl Node {
    pub fn blank(uuid: Uuid) -> Node {
        Node { uuid, is_alive: true, ..Node::default() }
    }

    pub fn is_blank(&self) -> bool {
        self.memory.accepted().is_none()
    }

    /// The epoch that it has accepted.
    pub fn epoch(&self) -> u64 {
        self.memory.accepted().map_or(0, |accepted| accepted.ballot.epoch)
    }

    /// Another one has taken its place by this epoch.
    pub fn leave(&mut self, accepted: &Accepted) {
        let is_later = |known: &Accepted| {
            known.founded == accepted.founded && known.ballot.epoch < accepted.ballot.epoch
        };
        if !self.is_hung
            && !accepted.members.contains(&self.uuid)
            && self.memory.accepted().is_some_and(is_later)
        {
            (self.memory, self.kept, self.has_forgotten) = (Memory::default(), None, true);
        }
    }

    /// What it answers to a promise with.
    pub fn counted(&self) -> &History {
        self.kept.as_ref().unwrap_or(&self.live)
    }

    pub fn held(&self) -> Held {
        Held { entered: self.memory.entered(), gtids: self.counted().gtids() }
    }

    /// Begins to receive from `server`.
    pub fn attach(&mut self, server: usize, of: &Server) {
        let is_same = self.live.server == Some(server);
        let of_base = of.log.get(self.live.base..).unwrap_or_default();
        let shared = self.live.copy.iter().zip(of_base).take_while(|(ours, theirs)| ours == theirs).count();
        let has_lost = is_same && shared < self.live.copy.len();
        if has_lost || !is_same {
            if has_lost && self.memory.entered() > 0 && self.memory.entered() == self.epoch() {
                self.withholds = true;
            }
            if self.kept.is_none() && self.live.server.is_some() {
                self.kept = Some(self.live.clone());
            }
        }
        match is_same {
            true if shared > 0 => self.live.copy.truncate(shared),
            // Nothing of the copy is left: all of the log is received once more.
            true => (self.live.base, self.live.copy) = (0, Vec::new()),
            false => self.live = self.begins(server, of),
        }
        self.session = Some((server, of.starts));
    }

    /// A new timeline. It begins behind what a majority has confirmed, not behind all that is held: another node may hold other
    /// transactions under the GTIDs of the rest. The place of the epoch is in it.
    fn begins(&self, server: usize, of: &Server) -> History {
        let older = self.safe.clone();
        let has = |one: &Transaction| older.iter().any(|has| has.gtid() == one.gtid());
        let lacks = transactions(&of.log).take_while(|one| has(one)).count();
        let accepted = self.memory.accepted().filter(|accepted| accepted.source == server_name(server));
        let place = accepted.map_or(0, |accepted| (accepted.place.offset as usize).saturating_sub(1));
        History { older, server: Some(server), base: lacks.min(place), copy: Vec::new() }
    }

    /// What it received is synced; the copy may have come to where it counts.
    pub fn sync(&mut self) {
        if self.is_hung {
            return;
        }
        self.live.copy.append(&mut self.pending);
        let is_copy = self.session.is_some();
        if let Some(memory) = self.memory.enter(|accepted| is_copy && has_place_of(&self.live, accepted)) {
            self.memory = memory;
            (self.kept, self.withholds) = (None, false);
        }
        let is_of_epoch = self.memory.entered() == self.epoch();
        if self.withholds && is_of_epoch && self.kept.as_ref().is_some_and(|kept| has_all(&self.live, kept)) {
            (self.kept, self.withholds) = (None, false);
        }
    }

    pub fn crash(&mut self) {
        self.is_alive = false;
        self.pending.clear();
        self.session = None;
        self.heard.clear();
        self.safe = self.safe_durable.clone();
    }

    pub fn confirmation(&self) -> Option<Confirmation> {
        let Standing::Counting(accepted) = self.memory.standing() else { return None };
        let server = self.live.server.filter(|server| server_name(*server) == accepted.source)?;
        (!self.withholds).then(|| Confirmation {
            epoch: accepted.ballot.epoch,
            server,
            place: self.live.end(),
        })
    }

    /// How far it may acknowledge to its source.
    pub fn may_acknowledge(&self, nodes: usize) -> Option<usize> {
        let own = self.confirmation()?;
        let mut places: Vec<usize> = self
            .heard
            .values()
            .filter(|heard| heard.epoch == own.epoch && heard.server == own.server)
            .filter_map(|heard| self.live.behind(heard.place))
            .collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        let others = *places.get(majority(nodes) - 2)?;
        Some(others.min(own.place.entries))
    }

    /// A majority has confirmed so much of the source's log.
    pub fn is_safe(&mut self, entries: usize) {
        let of_copy = entries.saturating_sub(self.live.base).min(self.live.copy.len());
        let safe = self.live.older.iter().chain(transactions(&self.live.copy[..of_copy]));
        self.safe = safe.copied().collect();
    }
}

/// Whether a copy has the place of an epoch.
pub fn has_place_of(live: &History, accepted: &Accepted) -> bool {
    let place = Place {
        file: accepted.place.file.parse().unwrap_or_default(),
        identity: accepted.place.identity as u32,
        entries: accepted.place.offset as usize,
    };
    live.server.is_some_and(|server| server_name(server) == accepted.source && live.has_place(server, place))
}

/// Whether the source has again what it lost.
fn has_all(live: &History, kept: &History) -> bool {
    transactions(&kept.copy).all(|one| transactions(&live.copy).any(|has| has == one))
}
