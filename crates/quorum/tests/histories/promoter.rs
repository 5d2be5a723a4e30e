//! Who carries out a promotion: at any moment it may sleep, or stall for ever.

use crate::message::{Message, To};
use crate::node::{History, Node, has_place_of};
use crate::server::{Transaction, gtids, server_name, transactions};
use crate::world::{Broken, World};
use codec::gtid::Uuid;
use quorum::{Accepted, Ballot, Kind, Place, Promise, Promotion, members_with};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
pub enum Step {
    /// Before anything is fenced the successor gets what the nodes hold.
    FeedBefore,
    /// Promises are asked for.
    Fence,
    /// They agree on what this node holds: the successor is to have it.
    Feed { history: Vec<Transaction>, founded: Option<Ballot>, members: BTreeSet<Uuid> },
    /// A blank node waits until its copy holds what was agreed on.
    CatchUp { accepted: Accepted },
    /// The nodes are asked to accept it.
    Accept { accepted: Accepted },
}

#[derive(Debug, Clone)]
pub struct Promoter {
    /// The node where it runs.
    pub at: usize,
    pub successor: usize,
    pub promotion: Promotion,
    pub step: Step,
    /// What the nodes hold that have promised, with its content: the product asks for the places of their ends.
    pub histories: BTreeMap<Uuid, History>,
    /// The start of the successor that was fed.
    pub fed_start: u32,
    /// It does nothing before this step of the history.
    pub asleep_until: usize,
}

impl World {
    pub fn promoter_of(&mut self, number: usize, ballot: Ballot) -> Option<&mut Promoter> {
        self.promoters[number].as_mut().filter(|known| known.promotion.ballot() == ballot)
    }

    pub fn promote(&mut self, at: usize, successor: usize) {
        let reachable = self.nodes_reached(at);
        let memories = || reachable.iter().map(|node| &self.nodes[*node].memory);
        let highest = memories().filter_map(|of| of.promised().max(of.founding().promised.as_ref())).max();
        let epoch = 1 + highest.map_or(0, |ballot| ballot.epoch) + self.random.below(2);
        let (kind, successor) = match self.known_at(at).and_then(|accepted| self.number_of(&accepted.source))
        {
            None => (Kind::Founding, successor),
            Some(present) if self.nodes[at].is_blank() => (Kind::Joining(self.nodes[at].uuid), present),
            Some(_) => (Kind::Ordinary, successor),
        };
        let ballot = Ballot { epoch, promoter: self.new_uuid() };
        self.say(|| format!("node {at} begins to promote {successor}: {kind:?} {ballot}"));
        self.promoters.push(Some(Promoter {
            at,
            successor,
            promotion: Promotion::new(ballot, kind, self.nodes.len()),
            step: if self.has_newer_rules && kind == Kind::Ordinary { Step::FeedBefore } else { Step::Fence },
            histories: BTreeMap::new(),
            fed_start: 0,
            asleep_until: 0,
        }));
    }

    pub fn give_up(&mut self, number: usize, why: &'static str) {
        if let Some(promoter) = self.promoters[number].take() {
            self.servers[promoter.successor].is_fed = false;
            self.last_failure = why;
            self.say(|| format!("the promotion of {} is given up: {why}", promoter.promotion.ballot()));
        }
    }

    fn set_step(&mut self, number: usize, step: Step) {
        if let Some(promoter) = &mut self.promoters[number] {
            promoter.step = step;
        }
    }

    /// One step of a promotion.
    pub fn go_on(&mut self, number: usize) -> Result<(), Broken> {
        let Some(promoter) = self.promoters[number].clone() else { return Ok(()) };
        if promoter.asleep_until > self.now {
            return Ok(());
        }
        if !self.nodes[promoter.at].is_alive {
            self.give_up(number, "its node is down");
            return Ok(());
        }
        match &promoter.step {
            Step::FeedBefore => self.feed_before(number, &promoter),
            Step::Fence => return self.fence(number, &promoter),
            Step::Feed { history, founded, members } => {
                self.feed(number, &promoter, history, *founded, members);
            }
            Step::CatchUp { accepted } => self.catch_up(number, promoter.at, accepted),
            Step::Accept { accepted } => return self.accept(number, &promoter, accepted),
        }
        Ok(())
    }

    /// What a majority would agree on is given to the successor, which lacks nothing that is acknowledged since but for a little. The
    /// old source goes on meanwhile, and a transaction may be given that is never agreed on.
    fn feed_before(&mut self, number: usize, promoter: &Promoter) {
        let server = promoter.successor;
        if !self.servers[server].is_alive || self.cut_off.contains(&(promoter.at, server)) {
            return self.give_up(number, "the successor cannot be reached");
        }
        let mut looked = Promotion::new(promoter.promotion.ballot(), Kind::Ordinary, self.nodes.len());
        let reached = self.nodes_reached(promoter.at);
        for node in reached.iter().map(|node| &self.nodes[*node]).filter(|node| !node.is_blank()) {
            let accepted = node.memory.accepted().cloned();
            looked.promised(node.uuid, Promise { held: node.held(), accepted });
        }
        let agreed = match looked.agreed() {
            Ok(Some(agreed)) => agreed,
            Ok(None) => return self.give_up(number, "too few can promise"),
            Err(_) => return self.give_up(number, "the copies part"),
        };
        let of = reached.iter().map(|node| &self.nodes[*node]).find(|node| node.uuid == agreed.node);
        let held: Vec<Transaction> =
            of.map(|node| node.counted().transactions().copied().collect()).unwrap_or_default();
        if !self.servers[server].is_writable {
            if held.iter().any(|one| self.servers[server].has_other(one)) {
                return self.give_up(number, "the successor has other transactions under the same GTIDs");
            }
            self.say(|| format!("server {server} is fed before the fence"));
            let of = &mut self.servers[server];
            of.is_fed = true;
            for one in held {
                if !of.has(&one) {
                    of.append(one);
                }
            }
        }
        self.set_step(number, Step::Fence);
    }

    fn fence(&mut self, number: usize, promoter: &Promoter) -> Result<(), Broken> {
        let (ballot, kind) = (promoter.promotion.ballot(), promoter.promotion.kind());
        let agreed = match promoter.promotion.agreed() {
            Ok(Some(agreed)) => agreed,
            Ok(None) => {
                for node in 0..self.nodes.len() {
                    let message = Message::Promise { promoter: number, ballot, kind };
                    self.send(promoter.at, To::Node(node), message);
                }
                return Ok(());
            }
            Err(_) => {
                self.give_up(number, "the copies part");
                return Ok(());
            }
        };
        let history = &promoter.histories[&agreed.node];
        let is_beginning = |node: &Uuid| history.goes_on_from(&promoter.histories[node]);
        if agreed.held.entered > 0 && !agreed.to_compare.iter().all(is_beginning) {
            self.give_up(number, "the copies part");
            return Ok(());
        }
        let (by, entered, founded) = (agreed.node, agreed.held.entered, agreed.founded);
        let members = match kind {
            Kind::Joining(own) => self.members_with(own, &agreed.members, promoter),
            _ => Ok(agreed.members),
        };
        let Ok(members) = members else {
            self.give_up(number, "no place is free");
            return Ok(());
        };
        let mut agreed: Vec<Transaction> = Vec::new();
        for one in history.transactions() {
            if !agreed.iter().any(|has| has.gtid() == one.gtid()) {
                agreed.push(*one);
            }
        }
        self.say(|| format!("{ballot} agrees on what {by} holds, which entered epoch {entered}: {agreed:?}"));
        // A founding that does not come into force fences nobody.
        if kind != Kind::Founding {
            self.agreed.push((ballot.epoch, agreed.clone()));
            self.check_agreed(0)?;
        }
        self.set_step(number, Step::Feed { history: agreed, founded, members });
        Ok(())
    }

    /// The nodes with one that joins.
    fn members_with(
        &self,
        own: Uuid,
        members: &BTreeSet<Uuid>,
        promoter: &Promoter,
    ) -> Result<BTreeSet<Uuid>, String> {
        let reached = || self.nodes_reached(promoter.at).into_iter().map(|node| &self.nodes[node]);
        let present = promoter.promotion.promises().keys().copied();
        let present =
            present.chain(reached().filter(|node| !node.is_blank()).map(|node| node.uuid)).collect();
        let is_newcomer = |node: &&Node| node.is_blank() && node.uuid != own && !members.contains(&node.uuid);
        members_with(own, members, &present, reached().filter(is_newcomer).count())
    }

    /// Whether all nodes are there, as a node sees it, and `joiner` is none of them.
    pub fn is_complete_without(&self, node: usize, joiner: Uuid) -> bool {
        let reached = self.nodes_reached(node);
        let is_there = |member: &Uuid| reached.iter().any(|node| self.nodes[*node].uuid == *member);
        let accepted = self.nodes[node].memory.accepted();
        accepted.is_some_and(|of| !of.members.contains(&joiner) && of.members.iter().all(is_there))
    }

    /// Gives the successor what it lacks, and sees that it has it.
    fn feed(
        &mut self,
        number: usize,
        promoter: &Promoter,
        history: &[Transaction],
        founded: Option<Ballot>,
        members: &BTreeSet<Uuid>,
    ) {
        let server = promoter.successor;
        if !self.servers[server].is_alive || self.cut_off.contains(&(promoter.at, server)) {
            return self.give_up(number, "the successor cannot be reached");
        }
        let kind = promoter.promotion.kind();
        let promises = promoter.promotion.promises().values();
        let accepted = promises.filter_map(|promise| promise.accepted.as_ref());
        let newest = accepted.filter(|one| Some(one.founded) == founded).max_by_key(|one| one.ballot);
        if let (Kind::Joining(_), Some(newest)) = (kind, newest)
            && newest.source != server_name(server)
        {
            return self.give_up(number, "another server is the source by now");
        }
        let is_present = kind != Kind::Ordinary || self.servers[server].is_writable;
        if history.iter().any(|one| self.servers[server].has_other(one)) {
            return self.give_up(number, "the successor has other transactions under the same GTIDs");
        }
        let lacks = history.iter().filter(|one| !self.servers[server].has(one)).count();
        if is_present && lacks > 0 {
            return self.give_up(number, "the source lacks what was agreed on");
        }
        let is_own = |one: &Transaction| one.server == server && !history.contains(one);
        if !is_present && transactions(&self.servers[server].log).any(is_own) {
            return self.give_up(number, "the successor has transactions of its own");
        }
        let of = &mut self.servers[server];
        if !is_present {
            of.is_fed = true;
            for one in history {
                if !of.has(one) {
                    of.append(*one);
                }
            }
        }
        let (fed_start, end) = (of.starts, of.end());
        let ballot = promoter.promotion.ballot();
        let place =
            Place { file: end.file.to_string(), identity: end.identity.into(), offset: end.entries as u64 };
        let accepted = Accepted {
            ballot,
            founded: founded.unwrap_or(ballot),
            source: server_name(server),
            members: members.clone(),
            history: gtids(history),
            place,
        };
        if let Some(promoter) = &mut self.promoters[number] {
            promoter.fed_start = fed_start;
            promoter.step = match kind {
                Kind::Joining(_) => Step::CatchUp { accepted },
                _ => Step::Accept { accepted },
            };
        }
    }

    fn catch_up(&mut self, number: usize, at: usize, accepted: &Accepted) {
        let ours = &mut self.nodes[at];
        if ours.is_hung || !has_place_of(&ours.live, accepted) {
            if self.random.one_in(6) {
                // Without it, so that commits go on.
                self.set_step(number, Step::Accept { accepted: accepted.clone() });
            }
            return;
        }
        self.set_step(number, Step::Accept { accepted: accepted.clone() });
    }

    /// Enough of the others have accepted that it joins.
    fn join(&mut self, at: usize, accepted: &Accepted) {
        let ours = &mut self.nodes[at];
        if !ours.is_hung
            && has_place_of(&ours.live, accepted)
            && let Ok(memory) = ours.memory.join(accepted)
        {
            (ours.memory, ours.kept, ours.withholds, ours.has_forgotten) = (memory, None, false, false);
            self.outcome.joined += 1;
            self.is_to_check = true;
            self.say(|| format!("node {at} joins in {}", accepted.ballot));
        }
    }

    fn accept(&mut self, number: usize, promoter: &Promoter, accepted: &Accepted) -> Result<(), Broken> {
        let is_accepted = promoter.promotion.is_accepted();
        let is_founding = promoter.promotion.kind() == Kind::Founding;
        // Once more when it is in force: others hear of it sooner.
        for node in 0..self.nodes.len() {
            let accepted = accepted.clone();
            self.send(
                promoter.at,
                To::Node(node),
                Message::Accept { promoter: number, accepted, is_founding },
            );
        }
        if !is_accepted {
            return Ok(());
        }
        if is_founding && let Some(promoter) = &mut self.promoters[number] {
            // All have recorded it. It is in force where a majority accepts it: one before may have come as far.
            promoter.promotion = Promotion::new(accepted.ballot, Kind::Ordinary, self.nodes.len());
            return Ok(());
        }
        if let Kind::Joining(_) = promoter.promotion.kind() {
            self.join(promoter.at, accepted);
        }
        let of = &mut self.servers[promoter.successor];
        of.is_fed = false;
        let is_as_it_was = of.is_alive && of.starts == promoter.fed_start;
        of.is_writable |= is_as_it_was;
        if is_as_it_was {
            self.check_successor(promoter.successor, accepted.ballot.epoch)?;
        }
        self.say(|| format!("server {} is the source of {}", promoter.successor, accepted.ballot));
        self.outcome.promoted += 1;
        self.promoters[number] = None;
        Ok(())
    }
}
