//! Nodes, servers, a network between them, and promoters: one seed gives one history.

use crate::node::{Confirmation, Node, transactions};
use crate::promoter::{Promoter, Step};
use crate::server::{Entry, Server, Transaction, gtids, server_uuid};
use binlog::testing::Random;
use codec::gtid::Uuid;
use quorum::{Accepted, Ballot, Kind, Place, Promise, Promotion, majority};
use std::collections::{BTreeMap, BTreeSet};

/// Messages that are on their way; of more, the oldest are lost.
const ON_THEIR_WAY_MAX: usize = 60;
const LOG_MAX: usize = 40;

#[derive(Debug, Clone)]
enum Message {
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
        content: Vec<Entry>,
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
    },
    /// To a server, of one start.
    Acknowledge {
        start: u32,
        place: usize,
        epoch: u64,
    },
}

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Node(usize),
    Server(usize),
}

/// What came of a history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    pub told: usize,
    pub epochs: u64,
    pub joined: usize,
    /// A source lost what only a person can decide about.
    pub undecided: bool,
}

pub struct World {
    random: Random,
    nodes: Vec<Node>,
    servers: Vec<Server>,
    /// Node to node.
    cut: BTreeSet<(usize, usize)>,
    /// Node to server.
    cut_off: BTreeSet<(usize, usize)>,
    messages: Vec<(usize, To, Message)>,
    promoters: Vec<Option<Promoter>>,
    /// What clients were told.
    told: Vec<Transaction>,
    /// The server that was acknowledged in an epoch.
    sources: BTreeMap<u64, usize>,
    contents: u32,
    uuids: u8,
    lost_tails: usize,
    outcome: Outcome,
    trace: bool,
}

/// What must hold does not.
pub type Broken = String;

impl World {
    pub fn new(seed: u64, nodes: usize, trace: bool) -> World {
        let mut random = Random::new(seed);
        let servers = 2 + random.below(2) as usize;
        let mut world = World {
            random,
            nodes: Vec::new(),
            servers: vec![Server { is_alive: true, starts: 1, ..Server::default() }; servers],
            cut: BTreeSet::new(),
            cut_off: BTreeSet::new(),
            messages: Vec::new(),
            promoters: Vec::new(),
            told: Vec::new(),
            sources: BTreeMap::new(),
            contents: 0,
            uuids: 0,
            lost_tails: 0,
            outcome: Outcome::default(),
            trace,
        };
        for _ in 0..nodes {
            let uuid = world.new_uuid();
            world.nodes.push(Node::blank(uuid));
        }
        world.servers[0].is_writable = true;
        world
    }

    fn say(&self, words: impl FnOnce() -> String) {
        if self.trace {
            println!("{}", words());
        }
    }

    fn new_uuid(&mut self) -> Uuid {
        self.uuids = self.uuids.wrapping_add(1);
        Uuid::from_bytes([self.uuids; 16])
    }

    fn node(&mut self) -> usize {
        self.random.below(self.nodes.len() as u64) as usize
    }

    fn server(&mut self) -> usize {
        self.random.below(self.servers.len() as u64) as usize
    }

    fn reaches(&self, node: usize, other: usize) -> bool {
        node == other || !self.cut.contains(&(node.min(other), node.max(other)))
    }

    fn send(&mut self, from: usize, to: To, message: Message) {
        if self.messages.len() >= ON_THEIR_WAY_MAX {
            self.messages.remove(0);
        }
        self.messages.push((from, to, message));
    }

    /// The whole history.
    pub fn run(&mut self, steps: usize) -> Result<Outcome, Broken> {
        if !self.random.one_in(8) {
            // It begins well.
            self.promote(0, 0);
            for _ in 0..4 {
                self.go_on(0)?;
                self.deliver_all()?;
            }
        }
        for _ in 0..steps {
            self.step()?;
        }
        self.check_majorities("at the end")?;
        self.heal()?;
        self.check_majorities("after healing")?;
        self.outcome.told = self.told.len();
        self.outcome.epochs = self.sources.len() as u64;
        Ok(self.outcome)
    }

    fn step(&mut self) -> Result<(), Broken> {
        match self.random.below(200) {
            0..80 => {
                for _ in 0..1 + self.random.below(8) {
                    self.deliver_one()?;
                }
            }
            80..112 => {
                let node = self.node();
                self.receive(node);
            }
            112..138 => {
                let node = self.node();
                self.tell(node);
            }
            138..152 => self.write(),
            152..160 => self.replicate(),
            160..184 => self.promote_on()?,
            184..187 => self.begin_promotion(),
            187..190 => self.partition(),
            190..195 => self.fail_node(),
            195..198 => self.fail_server(),
            198 => self.stall_promoter(),
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self) {
        let server = self.server();
        let of = &mut self.servers[server];
        if !of.is_alive || !of.is_writable || of.log.len() >= LOG_MAX {
            return;
        }
        self.contents += 1;
        let transaction = Transaction { server, number: of.next_number(server), content: self.contents };
        of.append(transaction);
        self.say(|| format!("server {server} writes {transaction:?}"));
    }

    /// A replica takes one transaction of another server.
    fn replicate(&mut self) {
        let (replica, source) = (self.server(), self.server());
        let (from, to) = (self.servers[source].clone(), &mut self.servers[replica]);
        if replica == source || !from.is_alive || !to.is_alive || to.is_writable || to.is_fed {
            return;
        }
        // What it has under the same GTID it passes over, as a replica does.
        let next = transactions(&from.log).find(|next| !to.has(next) && !to.has_other(next));
        // A replica of a server that lacks what it has is none.
        if let Some(next) = next.filter(|_| to.log.len() < LOG_MAX) {
            to.append(*next);
        }
    }

    fn receive(&mut self, node: usize) {
        if !self.nodes[node].is_alive {
            return;
        }
        // A blank one receives before it joins.
        let accepted = self.nodes[node].memory.accepted().cloned().or_else(|| self.newest());
        let wanted = accepted.and_then(|accepted| self.number_of(accepted.source));
        let Some(server) = wanted else { return };
        let of = self.servers[server].clone();
        let is_there = of.is_alive && !self.cut_off.contains(&(node, server));
        let ours = &mut self.nodes[node];
        if !is_there {
            ours.session = None;
            return;
        }
        if ours.session != Some((server, of.starts)) {
            ours.attach(server, &of);
        }
        let more = 1 + self.random.below(4) as usize;
        let from = ours.copy.len();
        ours.copy.extend(of.log.iter().skip(from).take(more));
        ours.sync();
    }

    /// A node tells the others how far it is, and its source what a majority has.
    fn tell(&mut self, node: usize) {
        let ours = &self.nodes[node];
        if !ours.is_alive {
            return;
        }
        let (confirmation, accepted) = (ours.confirmation(), ours.memory.accepted().cloned());
        if let Some(accepted) = accepted {
            for other in (0..self.nodes.len()).filter(|other| *other != node) {
                let message = Message::Tell { confirmation, accepted: accepted.clone() };
                self.send(node, To::Node(other), message);
            }
        }
        let ours = &self.nodes[node];
        let place = ours.may_acknowledge(self.nodes.len());
        if let Some(((server, start), place)) = ours.session.zip(place)
            && ours.timeline == Some(server)
            && let Some(confirmation) = confirmation.filter(|confirmation| confirmation.server == server)
        {
            let message = Message::Acknowledge { start, place, epoch: confirmation.epoch };
            self.send(node, To::Server(server), message);
        }
    }

    fn deliver_one(&mut self) -> Result<(), Broken> {
        if self.messages.is_empty() {
            return Ok(());
        }
        let index = self.random.below(self.messages.len() as u64) as usize;
        let (from, to, message) = match self.random.below(20) {
            // Twice, or never.
            0 => self.messages[index].clone(),
            1 => {
                self.messages.swap_remove(index);
                return Ok(());
            }
            _ => self.messages.swap_remove(index),
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

    fn acknowledge(&mut self, server: usize, message: Message) -> Result<(), Broken> {
        let Message::Acknowledge { start, place, epoch } = message else { return Ok(()) };
        let of = &self.servers[server];
        if !of.is_alive || of.starts != start {
            return Ok(());
        }
        let told: Vec<Transaction> = transactions(&of.log[..place.min(of.log.len())]).copied().collect();
        if let Some(other) = self.sources.insert(epoch, server).filter(|other| *other != server) {
            return Err(format!("servers {other} and {server} were acknowledged in epoch {epoch}"));
        }
        let before = self.told.len();
        for transaction in told {
            if !self.told.contains(&transaction) {
                self.told.push(transaction);
            }
        }
        if self.told.len() > before {
            self.say(|| format!("server {server} is acknowledged to {place} in epoch {epoch}"));
            self.check_majorities("when it was acknowledged")?;
        }
        Ok(())
    }

    fn deliver(&mut self, from: usize, node: usize, message: Message) -> Result<(), Broken> {
        match message {
            Message::Tell { confirmation, accepted } => {
                let ours = &mut self.nodes[node];
                if let Ok(memory) = ours.memory.accept(&accepted) {
                    ours.memory = memory;
                }
                let Some(confirmation) = confirmation else { return Ok(()) };
                let heard = ours.heard.get(&from);
                if heard.is_none_or(|heard| {
                    (heard.epoch, heard.place.0, heard.place.1)
                        <= (confirmation.epoch, confirmation.place.0, confirmation.place.1)
                }) {
                    ours.heard.insert(from, confirmation);
                }
            }
            Message::Promise { promoter, ballot, kind } => {
                let ours = &mut self.nodes[node];
                if ours.is_hung {
                    return Ok(());
                }
                let Ok(memory) = ours.memory.promise(ballot, kind) else { return Ok(()) };
                ours.memory = memory;
                let promise = Promise { held: ours.held(), accepted: ours.memory.accepted().cloned() };
                let message = Message::Promised {
                    promoter,
                    ballot,
                    by: ours.uuid,
                    promise,
                    content: ours.counted().to_vec(),
                };
                self.say(|| format!("node {node} promises {ballot}"));
                self.send(node, To::Node(from), message);
            }
            Message::Promised { promoter, ballot, by, promise, content } => {
                if let Some(known) = &mut self.promoters[promoter]
                    && known.promotion.ballot() == ballot
                {
                    known.promotion.promised(by, promise);
                    known.copies.insert(by, content);
                }
            }
            Message::Accept { promoter, accepted, is_founding } => {
                let ours = &mut self.nodes[node];
                if ours.is_hung {
                    return Ok(());
                }
                let memory = match is_founding {
                    true => ours.memory.record(&accepted),
                    false => ours.memory.accept(&accepted),
                };
                if let Ok(memory) = memory {
                    ours.memory = memory;
                    let (ballot, by) = (accepted.ballot, ours.uuid);
                    self.say(|| format!("node {node} accepts {} in {ballot}", accepted.source));
                    self.send(node, To::Node(from), Message::AcceptedBy { promoter, ballot, by });
                }
            }
            Message::AcceptedBy { promoter, ballot, by } => {
                if let Some(known) = &mut self.promoters[promoter]
                    && known.promotion.ballot() == ballot
                {
                    known.promotion.accepted(by);
                }
            }
            Message::Acknowledge { .. } => {}
        }
        Ok(())
    }

    fn number_of(&self, uuid: Uuid) -> Option<usize> {
        (0..self.servers.len()).find(|server| server_uuid(*server) == uuid)
    }

    /// The present source, as far as `node` has heard.
    fn newest(&self) -> Option<Accepted> {
        let accepted =
            self.nodes.iter().filter(|node| node.is_alive).filter_map(|node| node.memory.accepted());
        accepted.max_by_key(|accepted| accepted.ballot.epoch).cloned()
    }

    fn begin_promotion(&mut self) {
        let (at, successor) = (self.node(), self.server());
        if self.nodes[at].is_alive && self.promoters.iter().flatten().count() < 3 {
            self.promote(at, successor);
        }
    }

    fn promote(&mut self, at: usize, successor: usize) {
        let mut epoch = 1 + self.random.below(2);
        let alive = self.nodes.iter().filter(|node| node.is_alive).map(|node| &node.memory);
        let highest = alive.filter_map(|memory| memory.promised().max(memory.founding().promised.as_ref()));
        epoch += highest.map(|ballot| ballot.epoch).max().unwrap_or(0);
        let is_blank = self.nodes[at].memory.accepted().is_none();
        let (kind, successor) = match self.newest() {
            None => (Kind::Founding, successor),
            Some(_) if !is_blank => (Kind::Ordinary, successor),
            Some(accepted) => {
                let present = self.number_of(accepted.source).expect("one of the servers");
                (Kind::Joining(self.nodes[at].uuid), present)
            }
        };
        let ballot = Ballot { epoch, promoter: self.new_uuid() };
        let promotion = Promotion::new(ballot, kind, self.nodes.len());
        self.say(|| format!("node {at} begins to promote {successor}: {kind:?} {ballot}"));
        let is_follower = self.servers[successor].is_writable;
        self.promoters.push(Some(Promoter {
            at,
            successor,
            is_follower,
            promotion,
            step: Step::Fence,
            copies: BTreeMap::new(),
            fed_start: 0,
        }));
    }

    fn promote_on(&mut self) -> Result<(), Broken> {
        let under_way: Vec<usize> =
            (0..self.promoters.len()).filter(|index| self.promoters[*index].is_some()).collect();
        if under_way.is_empty() {
            return Ok(());
        }
        let number = *self.random.pick(&under_way);
        self.go_on(number)
    }

    fn give_up(&mut self, number: usize, why: &str) {
        if let Some(promoter) = self.promoters[number].take() {
            self.servers[promoter.successor].is_fed = false;
            self.say(|| format!("the promotion of {} is given up: {why}", promoter.promotion.ballot()));
        }
    }

    /// One step of a promotion.
    fn go_on(&mut self, number: usize) -> Result<(), Broken> {
        let Some(promoter) = self.promoters[number].clone() else { return Ok(()) };
        let (at, nodes) = (promoter.at, self.nodes.len());
        if !self.nodes[at].is_alive {
            self.give_up(number, "its node is down");
            return Ok(());
        }
        match promoter.step.clone() {
            Step::Fence => match promoter.promotion.agreed() {
                Ok(None) => {
                    let (ballot, kind) = (promoter.promotion.ballot(), promoter.promotion.kind());
                    for node in 0..nodes {
                        self.send(at, To::Node(node), Message::Promise { promoter: number, ballot, kind });
                    }
                }
                Ok(Some(agreed)) => {
                    let log = promoter.copies[&agreed.node].clone();
                    let is_beginning = |node: &Uuid| log.starts_with(&promoter.copies[node]);
                    if !agreed.to_compare.iter().all(is_beginning) && agreed.held.entered > 0 {
                        self.outcome.undecided = true;
                        self.give_up(number, "the copies part");
                        return Ok(());
                    }
                    self.set_step(number, Step::Feed { log });
                }
                Err(_) if promoter.promotion.kind() == Kind::Founding => {
                    self.give_up(number, "copies of different servers");
                }
                Err(parted) => {
                    self.outcome.undecided = true;
                    self.give_up(number, &parted.to_string());
                }
            },
            Step::Feed { log } => self.feed(number, &promoter, &log),
            Step::CatchUp { accepted } => {
                let ours = &mut self.nodes[at];
                if ours.has_place_of(&accepted) {
                    if let Ok(memory) = ours.memory.join(&accepted) {
                        ours.memory = memory;
                        (ours.kept, ours.withholds) = (None, false);
                        self.outcome.joined += 1;
                        self.say(|| format!("node {at} joins in {}", accepted.ballot));
                        let by = self.nodes[at].uuid;
                        if let Some(promoter) = &mut self.promoters[number] {
                            promoter.promotion.accepted(by);
                        }
                    }
                    self.set_step(number, Step::Accept { accepted });
                } else if self.random.one_in(6) {
                    // Without it, so that commits go on.
                    self.set_step(number, Step::Accept { accepted });
                }
            }
            Step::Accept { accepted } => {
                let is_accepted = promoter.promotion.is_accepted();
                let is_founding = promoter.promotion.kind() == Kind::Founding && !is_accepted;
                // Once more when it is in force: a founding is recorded only, and others hear of it sooner.
                for node in 0..nodes {
                    let accepted = accepted.clone();
                    self.send(
                        at,
                        To::Node(node),
                        Message::Accept { promoter: number, accepted, is_founding },
                    );
                }
                if !is_accepted {
                    return Ok(());
                }
                let of = &mut self.servers[promoter.successor];
                of.is_fed = false;
                let is_as_it_was = of.is_alive && of.starts == promoter.fed_start;
                of.is_writable |= is_as_it_was;
                if is_as_it_was && !promoter.is_follower {
                    self.check_successor(promoter.successor, accepted.ballot.epoch)?;
                }
                self.say(|| format!("server {} is the source of {}", promoter.successor, accepted.ballot));
                self.promoters[number] = None;
            }
        }
        Ok(())
    }

    fn set_step(&mut self, number: usize, step: Step) {
        if let Some(promoter) = &mut self.promoters[number] {
            promoter.step = step;
        }
    }

    /// Gives the successor what it lacks, and sees that it has it.
    fn feed(&mut self, number: usize, promoter: &Promoter, log: &[Entry]) {
        let server = promoter.successor;
        if !self.servers[server].is_alive || self.cut_off.contains(&(promoter.at, server)) {
            return self.give_up(number, "the successor cannot be reached");
        }
        let kind = promoter.promotion.kind();
        let is_present = kind != Kind::Ordinary || self.servers[server].is_writable;
        if transactions(log).any(|one| self.servers[server].has_other(one)) {
            self.outcome.undecided = true;
            return self.give_up(number, "the successor has other transactions under the same GTIDs");
        }
        let lacks = transactions(log).filter(|one| !self.servers[server].has(one)).count();
        if is_present && lacks > 0 {
            return self.give_up(number, "the source lacks what was agreed on");
        }
        let own = transactions(&self.servers[server].log)
            .filter(|one| one.server == server && !transactions(log).any(|agreed| agreed == *one))
            .count();
        if !is_present && own > 0 {
            return self.give_up(number, "the successor has transactions of its own");
        }
        let of = &mut self.servers[server];
        if !is_present {
            of.is_fed = true;
            for one in transactions(log) {
                if !of.has(one) {
                    of.append(*one);
                }
            }
        }
        let fed_start = of.starts;
        let history = gtids(transactions(log));
        let ballot = promoter.promotion.ballot();
        let founded = promoter.promotion.promises().values().find_map(|promise| promise.accepted.as_ref());
        let founded = founded.map_or(ballot, |accepted| accepted.founded);
        let (file, entries) = Server::place(&of.log);
        let place = Place { file: file.to_string(), identity: 0, offset: entries as u64 };
        let accepted = Accepted { ballot, founded, source: server_uuid(server), history, place };
        let step = match kind {
            Kind::Joining(_) => Step::CatchUp { accepted },
            _ => Step::Accept { accepted },
        };
        if let Some(promoter) = &mut self.promoters[number] {
            promoter.fed_start = fed_start;
        }
        self.set_step(number, step);
    }

    fn partition(&mut self) {
        match self.random.below(4) {
            0 => {
                let (one, other) = (self.node(), self.node());
                self.cut.insert((one.min(other), one.max(other)));
            }
            1 => {
                let (node, server) = (self.node(), self.server());
                self.cut_off.insert((node, server));
                self.nodes[node].session = None;
            }
            2 => self.cut.clear(),
            _ => self.cut_off.clear(),
        }
    }

    fn fail_node(&mut self) {
        let node = self.node();
        match self.random.below(7) {
            0..2 => self.nodes[node].crash(),
            2 => self.nodes[node].is_hung ^= true,
            3 if self.random.one_in(4) => self.lose_disk(node),
            _ => self.nodes[node].is_alive = true,
        }
    }

    /// As many as a quorum can bear, and no more before these have joined again.
    fn lose_disk(&mut self, node: usize) {
        let without = self.nodes.iter().filter(|node| node.memory.accepted().is_none()).count();
        let has_begun = self.nodes.iter().any(|node| !node.memory.founding().recorded.is_empty());
        let bearable = self.nodes.len() - majority(self.nodes.len());
        if without < bearable || without == self.nodes.len() && !has_begun {
            self.say(|| format!("node {node} loses its disk"));
            let uuid = self.new_uuid();
            self.nodes[node] = Node::blank(uuid);
        }
    }

    fn fail_server(&mut self) {
        let server = self.server();
        let loses = self.random.one_in(3);
        let of = &mut self.servers[server];
        if of.is_alive {
            of.is_alive = false;
            if loses && !of.log.is_empty() {
                let left = self.random.below(of.log.len() as u64 + 1) as usize;
                if left < of.log.len() {
                    of.log.truncate(left);
                    self.lost_tails += 1;
                    self.say(|| format!("server {server} loses its tail, {left} are left"));
                }
            }
            return;
        }
        of.is_alive = true;
        of.starts += 1;
        of.is_writable = self.random.one_in(2);
        let source = self.newest().and_then(|accepted| self.number_of(accepted.source));
        if let Some(source) = source.filter(|source| *source != server && self.random.one_in(3)) {
            // It is built anew, of the source.
            let starts = self.servers[server].starts;
            let log =
                transactions(&self.servers[source].log).map(|one| Entry { transaction: *one, file: starts });
            self.servers[server] = Server { is_alive: true, starts, log: log.collect(), ..Server::default() };
        }
    }

    fn stall_promoter(&mut self) {
        let number = self.random.below(self.promoters.len() as u64 + 1) as usize;
        if number < self.promoters.len() {
            self.give_up(number, "it stalls");
        }
    }

    /// Whatever majority promises next agrees on a history that has everything that a client was told, or cannot agree.
    fn check_majorities(&self, when: &str) -> Result<(), Broken> {
        let nodes = self.nodes.len();
        let ballot = Ballot { epoch: u64::MAX, promoter: Uuid::default() };
        for chosen in 0_u32..1 << nodes {
            if chosen.count_ones() as usize != majority(nodes) {
                continue;
            }
            let members =
                || (0..nodes).filter(|node| chosen & (1 << node) != 0).map(|node| &self.nodes[node]);
            if members().any(|node| node.memory.accepted().is_none()) {
                continue;
            }
            let mut promotion = Promotion::new(ballot, Kind::Ordinary, nodes);
            for node in members() {
                let promise = Promise { held: node.held(), accepted: node.memory.accepted().cloned() };
                promotion.promised(node.uuid, promise);
            }
            let Ok(Some(agreed)) = promotion.agreed() else { continue };
            let of = |uuid: &Uuid| members().find(|node| node.uuid == *uuid).map(Node::counted);
            let Some(log) = of(&agreed.node) else { return Err("agreed on a node that is none".to_owned()) };
            if !agreed.to_compare.iter().filter_map(of).all(|copy| log.starts_with(copy)) {
                continue;
            }
            let lost = self.told.iter().find(|told| !transactions(log).any(|has| has == *told));
            if let Some(lost) = lost {
                return Err(format!(
                    "{when}: {lost:?} was acknowledged, and nodes {chosen:b} agree on a history without it"
                ));
            }
        }
        Ok(())
    }

    fn check_successor(&self, server: usize, epoch: u64) -> Result<(), Broken> {
        match self.told.iter().find(|told| !self.servers[server].has(told)) {
            Some(lost) => Err(format!(
                "server {server} is the source of epoch {epoch} and lacks {lost:?}, which was acknowledged"
            )),
            None => Ok(()),
        }
    }

    /// Everything is mended, and a person promotes: commits go on.
    fn heal(&mut self) -> Result<(), Broken> {
        (self.cut, self.cut_off) = (BTreeSet::new(), BTreeSet::new());
        self.messages.clear();
        for number in 0..self.promoters.len() {
            self.give_up(number, "the faults are over");
        }
        for node in &mut self.nodes {
            (node.is_alive, node.is_hung) = (true, false);
        }
        for server in &mut self.servers {
            if !server.is_alive {
                server.is_alive = true;
                server.starts += 1;
            }
        }
        let servers = self.servers.len();
        for attempt in 0..8 * servers {
            if self.goes_on()? {
                return Ok(());
            }
            let is_blank = |node: &Node| node.memory.accepted().is_none();
            let is_founded = !self.nodes.iter().all(is_blank);
            let blank = (0..self.nodes.len()).filter(|node| is_founded && is_blank(&self.nodes[*node]));
            let at = match blank.clone().next().filter(|_| attempt % 2 == 1) {
                Some(blank) => blank,
                None => (0..self.nodes.len())
                    .find(|node| !is_founded || !is_blank(&self.nodes[*node]))
                    .unwrap_or(0),
            };
            let successor = attempt / 2 % servers;
            if attempt >= 4 * servers
                && self.newest().is_none_or(|source| source.source != server_uuid(successor))
            {
                // It is built anew, and follows.
                let starts = self.servers[successor].starts + 1;
                self.servers[successor] = Server { is_alive: true, starts, ..Server::default() };
            }
            self.promote(at, successor);
            let number = self.promoters.len() - 1;
            for _ in 0..12 {
                for node in 0..self.nodes.len() {
                    for _ in 0..LOG_MAX / 2 {
                        self.receive(node);
                    }
                }
                self.go_on(number)?;
                self.deliver_all()?;
            }
            self.give_up(number, "it takes too long");
        }
        match self.outcome.undecided || self.lost_tails > 0 {
            true => {
                self.outcome.undecided = true;
                Ok(())
            }
            false => Err("all is well again, and no commit is acknowledged".to_owned()),
        }
    }

    fn deliver_all(&mut self) -> Result<(), Broken> {
        while let Some((from, to, message)) = (!self.messages.is_empty()).then(|| self.messages.remove(0)) {
            match to {
                To::Node(node) => self.deliver(from, node, message)?,
                To::Server(server) => self.acknowledge(server, message)?,
            }
        }
        Ok(())
    }

    /// Whether a commit at the present source is acknowledged.
    fn goes_on(&mut self) -> Result<bool, Broken> {
        let Some(accepted) = self.newest() else { return Ok(false) };
        let Some(source) = (0..self.servers.len()).find(|server| server_uuid(*server) == accepted.source)
        else {
            return Ok(false);
        };
        if !self.servers[source].is_writable {
            return Ok(false);
        }
        self.contents += 1;
        let number = self.servers[source].next_number(source);
        let transaction = Transaction { server: source, number, content: self.contents };
        self.servers[source].append(transaction);
        for _ in 0..4 {
            for node in 0..self.nodes.len() {
                for _ in 0..2 * LOG_MAX {
                    self.receive(node);
                }
                self.tell(node);
                self.deliver_all()?;
            }
        }
        Ok(self.told.contains(&transaction))
    }
}
