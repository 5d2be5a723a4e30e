//! Nodes, servers, a network between them, and promoters: one seed gives one history.

use crate::message::{Message, To};
use crate::node::Node;
use crate::promoter::Promoter;
use crate::server::{Entry, Server, Transaction, server_name, transactions};
use binlog::testing::Random;
use codec::gtid::Uuid;
use quorum::{Accepted, Kind, majority};
use std::collections::{BTreeMap, BTreeSet};

const LOG_MAX: usize = 40;
const PROMOTERS_MAX: usize = 4;

/// What came of a history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    pub told: usize,
    pub epochs: u64,
    pub promoted: usize,
    pub joined: usize,
    pub rescued: usize,
    /// Machines that were replaced and came back.
    pub came_back: usize,
    /// Why nobody but a person could go on: a source lost what it had given away.
    pub left_to_a_person: Option<&'static str>,
}

pub struct World {
    pub random: Random,
    pub nodes: Vec<Node>,
    pub servers: Vec<Server>,
    /// Node to node.
    cut: BTreeSet<(usize, usize)>,
    /// Node to server.
    pub cut_off: BTreeSet<(usize, usize)>,
    pub messages: Vec<(usize, To, Message)>,
    /// Machines that are gone and may come back with their disks: each in the place of the one that came after it.
    gone: Vec<Option<Node>>,
    pub promoters: Vec<Option<Promoter>>,
    /// What clients were told, and in which epoch first.
    pub told: Vec<(Transaction, u64)>,
    /// The server that was acknowledged in an epoch.
    pub sources: BTreeMap<u64, usize>,
    /// What promotions have agreed on, by their epochs.
    pub agreed: Vec<(u64, Vec<Transaction>)>,
    contents: u32,
    uuids: u8,
    pub now: usize,
    /// Nothing fails before this step.
    calm_until: usize,
    /// How often what fails: crashes and hung disks of nodes, lost disks, servers, lost tails, partitions, promoters.
    rates: [u64; 6],
    pub has_lost_tail: bool,
    /// Two foundings, neither of a majority.
    pub is_split: bool,
    pub last_failure: &'static str,
    pub is_to_check: bool,
    pub outcome: Outcome,
    /// Machines that were replaced come back; the successor is fed before anything is fenced. Not in each history, so that those which
    /// found something before both were simulated stay what they are.
    pub has_newer_rules: bool,
    trace: bool,
}

/// What must hold does not.
pub type Broken = String;

impl World {
    pub fn new(seed: u64, nodes: usize, trace: bool) -> World {
        let mut random = Random::new(seed);
        let servers = 2 + random.below(2) as usize;
        let rates = std::array::from_fn(|_| *random.pick(&[0, 1, 1, 3]));
        let uuid = |node: usize| Uuid::from_bytes([201 + node as u8; 16]);
        let mut world = World {
            random,
            nodes: (0..nodes).map(|node| Node::blank(uuid(node))).collect(),
            servers: vec![Server::empty(1, 1); servers],
            cut: BTreeSet::new(),
            cut_off: BTreeSet::new(),
            messages: Vec::new(),
            gone: vec![None; nodes],
            promoters: Vec::new(),
            told: Vec::new(),
            sources: BTreeMap::new(),
            agreed: Vec::new(),
            contents: 0,
            uuids: 0,
            now: 0,
            calm_until: 0,
            rates,
            has_lost_tail: false,
            is_split: false,
            last_failure: "nothing",
            is_to_check: false,
            outcome: Outcome::default(),
            has_newer_rules: [7, 13].contains(&(seed % 16)),
            trace,
        };
        world.servers[0].is_writable = true;
        world
    }

    pub fn say(&self, words: impl FnOnce() -> String) {
        if self.trace {
            println!("{:4} {}", self.now, words());
        }
    }

    pub fn new_uuid(&mut self) -> Uuid {
        self.uuids = self.uuids.wrapping_add(1);
        Uuid::from_bytes([self.uuids; 16])
    }

    fn node(&mut self) -> usize {
        self.random.below(self.nodes.len() as u64) as usize
    }

    fn server(&mut self) -> usize {
        self.random.below(self.servers.len() as u64) as usize
    }

    pub fn reaches(&self, node: usize, other: usize) -> bool {
        node == other || !self.cut.contains(&(node.min(other), node.max(other)))
    }

    pub fn nodes_reached(&self, from: usize) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].is_alive && self.reaches(from, *node)).collect()
    }

    pub fn number_of(&self, name: &str) -> Option<usize> {
        (0..self.servers.len()).find(|server| server_name(*server) == name)
    }

    /// The present source, as far as a node can hear of it.
    pub fn known_at(&self, node: usize) -> Option<Accepted> {
        let reached =
            (0..self.nodes.len()).filter(|one| self.nodes[*one].is_alive && self.reaches(node, *one));
        let accepted = reached.filter_map(|node| self.nodes[node].memory.accepted());
        accepted.max_by_key(|accepted| accepted.ballot).cloned()
    }

    /// The present source.
    pub fn known(&self) -> Option<Accepted> {
        let accepted = self.nodes.iter().filter_map(|node| node.memory.accepted());
        accepted.max_by_key(|accepted| accepted.ballot).cloned()
    }

    /// The whole history.
    pub fn run(&mut self, steps: usize) -> Result<Outcome, Broken> {
        match self.random.below(8) {
            // It begins with whatever happens, or with founders who do not agree.
            0 => {}
            1 => {
                for founder in 0..2 {
                    let successor = self.server();
                    self.promote(founder, successor);
                }
            }
            _ => {
                self.promote(0, 0);
                for _ in 0..4 {
                    self.go_on(0)?;
                    self.deliver_all()?;
                }
            }
        }
        for step in 0..steps {
            self.now = step;
            self.step()?;
            if self.is_to_check {
                self.check_majorities()?;
            }
        }
        self.check_majorities()?;
        self.now = usize::MAX;
        self.heal()?;
        self.check_majorities()?;
        self.outcome.told = self.told.len();
        self.outcome.epochs = self.sources.len() as u64;
        Ok(self.outcome)
    }

    fn step(&mut self) -> Result<(), Broken> {
        match self.random.below(200) {
            0..76 => {
                for _ in 0..1 + self.random.below(10) {
                    self.deliver_one()?;
                }
            }
            76..124 => {
                let (node, more) = (self.node(), 1 + self.random.below(6) as usize);
                self.receive(node, more);
                if self.random.one_in(2) {
                    self.tell(node)?;
                }
            }
            124..132 => {
                let node = self.node();
                self.tell(node)?;
            }
            132..144 => self.write(),
            144..152 => self.replicate(),
            152..184 => self.promote_on()?,
            184..186 => self.begin_promotion(),
            186 => self.rescue(),
            187..199 if self.now >= self.calm_until => self.fail(),
            _ => {}
        }
        Ok(())
    }

    pub fn append(&mut self, server: usize) -> Transaction {
        self.contents += 1;
        let number = self.servers[server].next_number(server);
        let transaction = Transaction { server, number, content: self.contents };
        self.servers[server].append(transaction);
        transaction
    }

    fn write(&mut self) {
        let writable = |server: &usize| self.servers[*server].is_alive && self.servers[*server].is_writable;
        let writable: Vec<usize> = (0..self.servers.len()).filter(writable).collect();
        if writable.is_empty() {
            return;
        }
        let server = *self.random.pick(&writable);
        if self.servers[server].log.len() < LOG_MAX {
            let transaction = self.append(server);
            self.say(|| format!("server {server} writes {transaction:?}"));
        }
    }

    /// A replica takes a few transactions of another server.
    fn replicate(&mut self) {
        let (replica, source) = (self.server(), self.server());
        for _ in 0..1 + self.random.below(4) {
            let (from, to) = (&self.servers[source], &self.servers[replica]);
            if replica == source || !from.is_alive || !to.is_alive || to.is_writable || to.is_fed {
                return;
            }
            // What it has under the same GTID it passes over, as a replica does.
            let next = transactions(&from.log).find(|next| !to.has(next) && !to.has_other(next)).copied();
            if let Some(next) = next.filter(|_| to.log.len() < LOG_MAX) {
                self.servers[replica].append(next);
            }
        }
    }

    pub fn receive(&mut self, node: usize, more: usize) {
        let ours = &self.nodes[node];
        if !ours.is_alive || ours.is_hung && ours.session.is_none() {
            return;
        }
        // A blank one receives before it joins.
        let accepted = ours.memory.accepted().cloned().or_else(|| self.known_at(node));
        let Some(server) = accepted.and_then(|accepted| self.number_of(&accepted.source)) else { return };
        let is_there = self.servers[server].is_alive && !self.cut_off.contains(&(node, server));
        let (ours, of) = (&mut self.nodes[node], &self.servers[server]);
        if !is_there {
            ours.session = None;
            return;
        }
        let entered = ours.memory.entered();
        if ours.session != Some((server, of.starts)) {
            ours.session = None;
        }
        ours.sync();
        if ours.session.is_none() {
            if ours.is_hung {
                return;
            }
            ours.attach(server, of);
            self.is_to_check = true;
            self.say(|| format!("node {node} attaches to server {server}"));
            self.begin_session(node);
        }
        let (ours, of) = (&mut self.nodes[node], &self.servers[server]);
        let from = ours.live.base + ours.live.copy.len() + ours.pending.len();
        ours.pending.extend(of.log.iter().skip(from).take(more));
        ours.sync();
        self.is_to_check |= ours.memory.entered() != entered;
    }

    /// A source takes the place at which a session begins for an acknowledgement of all that comes before it.
    fn begin_session(&mut self, node: usize) {
        let ours = &self.nodes[node];
        let place = ours.may_acknowledge(self.nodes.len());
        if let Some(((server, start), entries)) = ours.session.zip(place) {
            let epoch = ours.epoch();
            self.send(node, To::Server(server), Message::Acknowledge { start, entries, epoch });
        }
    }

    /// A node tells the others how far it is, and its source what a majority has.
    pub fn tell(&mut self, node: usize) -> Result<(), Broken> {
        if !self.nodes[node].is_alive {
            return Ok(());
        }
        let ours = &self.nodes[node];
        let (confirmation, accepted) = (ours.confirmation(), ours.memory.accepted().cloned());
        if ours.has_forgotten && confirmation.is_some() {
            return Err(format!("node {node} lost its disk, and confirms"));
        }
        if let Some(accepted) = accepted {
            for other in (0..self.nodes.len()).filter(|other| *other != node) {
                let message = Message::Tell { confirmation, accepted: accepted.clone() };
                self.send(node, To::Node(other), message);
            }
        }
        let writes_down = self.random.one_in(4);
        let place = self.nodes[node].may_acknowledge(self.nodes.len());
        let Some((confirmation, entries)) = confirmation.zip(place) else { return Ok(()) };
        let ours = &mut self.nodes[node];
        ours.is_safe(entries);
        if writes_down && !ours.is_hung {
            ours.safe_durable = ours.safe.clone();
        }
        if let Some((server, start)) = ours.session.filter(|(server, _)| *server == confirmation.server) {
            let message = Message::Acknowledge { start, entries, epoch: confirmation.epoch };
            self.send(node, To::Server(server), message);
        }
        Ok(())
    }

    fn begin_promotion(&mut self) {
        let (at, mut successor) = (self.node(), self.server());
        // Often the one of a promotion that came to nothing, or was not seen to end.
        if let Some(Some(last)) = self.promoters.last().filter(|_| self.random.one_in(2)) {
            successor = last.successor;
        }
        if self.nodes[at].is_alive && self.promoters.iter().flatten().count() < PROMOTERS_MAX {
            self.promote(at, successor);
        }
    }

    fn promote_on(&mut self) -> Result<(), Broken> {
        let under_way: Vec<usize> =
            (0..self.promoters.len()).filter(|index| self.promoters[*index].is_some()).collect();
        match under_way.is_empty() {
            true => Ok(()),
            false => {
                let number = *self.random.pick(&under_way);
                self.go_on(number)
            }
        }
    }

    /// The source gets back what it lost and a node holds.
    fn rescue(&mut self) {
        let node = self.node();
        let ours = &self.nodes[node];
        let Some(kept) = ours.kept.clone().filter(|_| ours.withholds && ours.is_alive) else { return };
        let Some(server) = ours.live.server.filter(|server| self.servers[*server].is_alive) else { return };
        if kept.transactions().any(|one| self.servers[server].has_other(one)) {
            return;
        }
        self.outcome.rescued += 1;
        self.say(|| format!("server {server} gets back what node {node} holds"));
        for one in kept.transactions() {
            if !self.servers[server].has(one) {
                self.servers[server].append(*one);
            }
        }
    }

    fn fail(&mut self) {
        let [nodes, disks, servers, tails, partitions, promoters] = self.rates;
        let weights = [2, 2 * nodes, disks, 2 * servers, tails, 2 * partitions, 2 * promoters];
        let mut chosen = self.random.below(weights.iter().sum());
        let of = weights.iter().position(|weight| {
            let is_it = chosen < *weight;
            chosen = chosen.saturating_sub(*weight);
            is_it
        });
        match of {
            Some(1) => self.fail_node(),
            Some(2) if self.has_newer_rules && self.random.one_in(2) => self.come_back(),
            Some(2) => self.lose_disk(),
            Some(3) => self.fail_server(false),
            Some(4) => self.fail_server(true),
            Some(5) => self.partition(),
            Some(6) => self.fail_promoter(),
            _ if self.random.one_in(3) => {
                self.all_is_well();
                self.calm_until = self.now + 60;
            }
            _ => {}
        }
    }

    pub fn all_is_well(&mut self) {
        (self.cut, self.cut_off) = (BTreeSet::new(), BTreeSet::new());
        for node in &mut self.nodes {
            (node.is_alive, node.is_hung) = (true, false);
        }
        for server in self.servers.iter_mut().filter(|server| !server.is_alive) {
            server.start();
        }
    }

    fn partition(&mut self) {
        match self.random.below(5) {
            0 => {
                let (one, other) = (self.node(), self.node());
                self.cut.insert((one.min(other), one.max(other)));
            }
            1 => {
                let one = self.node();
                self.cut.extend((0..self.nodes.len()).map(|other| (one.min(other), one.max(other))));
            }
            2 => {
                let (node, server) = (self.node(), self.server());
                self.cut_off.insert((node, server));
                self.nodes[node].session = None;
            }
            3 => self.cut.clear(),
            _ => self.cut_off.clear(),
        }
    }

    fn fail_node(&mut self) {
        let node = self.node();
        match self.random.below(7) {
            0..2 => self.nodes[node].crash(),
            2 => self.nodes[node].is_hung ^= true,
            _ => self.nodes[node].is_alive = true,
        }
    }

    /// Whether another machine than a member of the newest epoch stands there: it does not vote, or its votes are void.
    fn is_without(&self, node: &Node) -> bool {
        let is_member = self.known().is_none_or(|newest| newest.members.contains(&node.uuid));
        node.is_blank() || !is_member
    }

    /// Whether the others can bear that the machine of a node is another one.
    fn bears_without(&self, node: usize) -> bool {
        let without = self.nodes.iter().filter(|node| self.is_without(node)).count();
        let bearable = self.nodes.len() - majority(self.nodes.len());
        without < bearable || self.is_without(&self.nodes[node]) && without <= bearable
    }

    /// As many as a quorum can bear, and no more before these have joined again.
    fn lose_disk(&mut self) {
        let node = self.node();
        let without = self.nodes.iter().filter(|node| node.is_blank()).count();
        let has_begun = self.nodes.iter().any(|node| !node.memory.founding().recorded.is_empty());
        let is_all = without == self.nodes.len();
        if self.bears_without(node) || is_all && !has_begun {
            self.say(|| format!("node {node} loses its disk"));
            // The new disk has another name.
            let name = self.new_uuid();
            let new = Node { has_forgotten: !is_all, ..Node::blank(name) };
            let old = self.is_another(node, new);
            if self.has_newer_rules && self.random.one_in(2) && !old.is_blank() {
                self.gone[node] = Some(old);
            }
        }
    }

    /// A machine that was replaced comes back with its disk, and the one that took its place is gone.
    fn come_back(&mut self) {
        let node = self.node();
        if !self.bears_without(node) {
            return;
        }
        let Some(mut old) = self.gone[node].take() else { return };
        old.crash();
        (old.is_alive, old.is_hung) = (true, false);
        self.say(|| format!("node {node} comes back as it was before it was replaced"));
        let other = self.is_another(node, old);
        self.outcome.came_back += 1;
        self.gone[node] = Some(other).filter(|other| !other.is_blank());
    }

    /// The machine of a node is another one from now on. Gives the one before.
    fn is_another(&mut self, node: usize, new: Node) -> Node {
        let old = std::mem::replace(&mut self.nodes[node], new);
        // What a founder has asked for goes with the connection on which it did.
        self.messages.retain(|(_, to, message)| {
            let is_founders = matches!(
                message,
                Message::Promise { kind: Kind::Founding, .. } | Message::Accept { is_founding: true, .. }
            );
            *to != To::Node(node) || !is_founders
        });
        // It joins by what the others say after that.
        for number in 0..self.promoters.len() {
            let is_ended =
                |of: &Promoter| [Kind::Joining(old.uuid), Kind::Founding].contains(&of.promotion.kind());
            if self.promoters[number].as_ref().is_some_and(is_ended) {
                self.give_up(number, "its node has lost its disk");
            }
        }
        self.is_to_check = true;
        old
    }

    fn fail_server(&mut self, loses: bool) {
        let server = self.server();
        let len = self.servers[server].log.len();
        if self.servers[server].is_alive {
            let left = if loses { self.random.below(len as u64 + 1) as usize } else { len };
            // Mostly the last few.
            let left = if self.random.one_in(4) { left } else { left.max(len.saturating_sub(3)) };
            self.servers[server].crash(left);
            self.has_lost_tail |= left < len;
            self.say(|| format!("server {server} crashes, {left} of {len} are left"));
            return;
        }
        self.servers[server].start();
        self.servers[server].is_writable = self.random.one_in(2);
        let source = self.known().and_then(|accepted| self.number_of(&accepted.source));
        let is_source =
            |node: &Node| node.memory.accepted().is_some_and(|of| of.source == server_name(server));
        let is_of_some = self.nodes.iter().any(is_source);
        if let Some(source) = source.filter(|_| !is_of_some && self.random.one_in(2)) {
            // It is built anew, of the source. A source that is has lost its log.
            let Server { starts, file, .. } = self.servers[server];
            let entry = |one: &Transaction| Entry { transaction: *one, file, identity: starts };
            let log = transactions(&self.servers[source].log).map(entry).collect();
            self.servers[server] = Server { log, ..Server::empty(starts, file) };
            self.say(|| format!("server {server} is built anew of {source}"));
        }
    }

    fn fail_promoter(&mut self) {
        let number = self.random.below(self.promoters.len() as u64 + 1) as usize;
        if number >= self.promoters.len() {
            return;
        }
        let (until, sleeps) = (self.now + 20 + self.random.below(200) as usize, self.random.one_in(2));
        match &mut self.promoters[number] {
            Some(promoter) if sleeps => promoter.asleep_until = until,
            _ => self.give_up(number, "it is killed"),
        }
    }
}
