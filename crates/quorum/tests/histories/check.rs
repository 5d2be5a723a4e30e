//! What must hold, and that commits go on when nothing fails any more.

use crate::node::Node;
use crate::promoter::Step;
use crate::server::{Server, Transaction, server_name};
use crate::world::{Broken, World};
use codec::gtid::Uuid;
use quorum::{Ballot, Kind, Promise, Promotion, majority};

impl World {
    /// Whatever majority promises next agrees on a history that has everything that a client was told, or cannot agree.
    pub fn check_majorities(&mut self) -> Result<(), Broken> {
        self.is_to_check = false;
        let nodes = self.nodes.len();
        let ballot = Ballot { epoch: u64::MAX, promoter: Uuid::default() };
        let promise = |node: &Node| Promise { held: node.held(), accepted: node.memory.accepted().cloned() };
        let promises: Vec<Option<Promise>> =
            self.nodes.iter().map(|node| (!node.is_blank()).then(|| promise(node))).collect();
        for chosen in 0_u32..1 << nodes {
            if chosen.count_ones() as usize != majority(nodes) {
                continue;
            }
            let mut promotion = Promotion::new(ballot, Kind::Ordinary, nodes);
            for (node, promise) in promises.iter().enumerate().filter(|(node, _)| chosen & (1 << node) != 0) {
                if let Some(promise) = promise {
                    promotion.promised(self.nodes[node].uuid, promise.clone());
                }
            }
            let Ok(Some(agreed)) = promotion.agreed() else { continue };
            let of = |uuid: &Uuid| self.nodes.iter().find(|node| node.uuid == *uuid).map(Node::counted);
            let Some(history) = of(&agreed.node) else {
                return Err("agreed on a node that is none".to_owned());
            };
            if !agreed.to_compare.iter().filter_map(of).all(|other| history.goes_on_from(other)) {
                continue;
            }
            if let Some((lost, epoch)) = self.told.iter().find(|(told, _)| !history.holds(told)) {
                return Err(format!(
                    "{lost:?} was acknowledged in epoch {epoch}, and nodes {chosen:b} agree on a history without it"
                ));
            }
        }
        Ok(())
    }

    /// What was acknowledged in an epoch, of `from` or later, is in what every later promotion has agreed on.
    pub fn check_agreed(&self, from: u64) -> Result<(), Broken> {
        for (ballot, history) in &self.agreed {
            let before = self.told.iter().filter(|(_, epoch)| (from..*ballot).contains(epoch));
            if let Some((lost, epoch)) = before.clone().find(|(told, _)| !history.contains(told)) {
                return Err(format!(
                    "{lost:?} was acknowledged in epoch {epoch}, and a majority agreed on less in epoch {ballot}"
                ));
            }
        }
        Ok(())
    }

    pub fn check_successor(&self, server: usize, epoch: u64) -> Result<(), Broken> {
        let mut before = self.told.iter().filter(|(_, of)| *of < epoch);
        match before.find(|(told, _)| !self.servers[server].has(told)) {
            Some((lost, _)) => Err(format!(
                "server {server} is the source of epoch {epoch} and lacks {lost:?}, which was acknowledged"
            )),
            None => Ok(()),
        }
    }

    /// Nothing fails any more, and a person promotes: commits go on.
    pub fn heal(&mut self) -> Result<(), Broken> {
        self.all_is_well();
        for number in 0..self.promoters.len() {
            self.give_up(number, "the faults are over");
        }
        self.messages.clear();
        let servers = self.servers.len();
        for attempt in 0..6 * servers {
            if self.goes_on()? {
                return Ok(());
            }
            self.leave_lesser_foundings();
            let has_begun = self.known().is_some();
            let blank = (0..self.nodes.len()).filter(|node| has_begun && self.nodes[*node].is_blank());
            let others = (0..self.nodes.len()).filter(|node| !has_begun || !self.nodes[*node].is_blank());
            let mut by_turns: Vec<usize> =
                if attempt % 2 == 1 { blank.chain(others).collect() } else { others.collect() };
            by_turns.truncate(1);
            let successor = attempt / 2 % servers;
            let is_source = self.known().is_some_and(|source| source.source == server_name(successor));
            if attempt >= 2 * servers && !is_source {
                // It is built anew, and is given everything.
                let (starts, file) = (self.servers[successor].starts + 1, self.servers[successor].file + 1);
                self.servers[successor] = Server::empty(starts, file);
            }
            self.promote_at_once(by_turns.first().copied().unwrap_or(0), successor)?;
        }
        if !self.has_lost_tail && !self.is_split {
            return Err(format!("all is well again, and no commit is acknowledged: {}", self.last_failure));
        }
        self.decide()
    }

    /// Two foundings at once may have got some nodes each. A person empties those of the one that has no majority: they join.
    fn leave_lesser_foundings(&mut self) {
        let founded = |node: &Node| node.memory.accepted().map(|accepted| accepted.founded);
        let all: Vec<Option<Ballot>> = self.nodes.iter().map(founded).collect();
        let of = |founding| all.iter().filter(|one| **one == founding).count();
        let majority = majority(self.nodes.len());
        if let Some(greater) = all.iter().find(|one| one.is_some() && of(**one) >= majority) {
            for node in
                self.nodes.iter_mut().filter(|node| founded(node).is_some_and(|of| Some(of) != *greater))
            {
                *node = Node { has_forgotten: true, ..Node::blank(node.uuid) };
            }
        } else if all.iter().flatten().any(|one| Some(*one) != all.iter().flatten().next().copied()) {
            self.is_split = true;
        }
    }

    /// Without anything that fails, to its end.
    fn promote_at_once(&mut self, at: usize, successor: usize) -> Result<(), Broken> {
        self.promote(at, successor);
        let number = self.promoters.len() - 1;
        for _ in 0..8 {
            self.settle()?;
            self.go_on(number)?;
            if self.promoters[number].is_none() {
                self.deliver_all()?;
                return Ok(());
            }
        }
        self.last_failure = match self.promoters[number].as_ref().map(|promoter| &promoter.step) {
            Some(Step::Fence) => "too few promise",
            Some(Step::CatchUp { .. }) => "the source lost what was agreed on",
            _ => "too few accept",
        };
        self.give_up(number, self.last_failure);
        Ok(())
    }

    /// A person begins the quorum anew with a server, and accepts what that one lacks as lost.
    fn decide(&mut self) -> Result<(), Broken> {
        let split = "two foundings, neither of a majority";
        self.outcome.left_to_a_person = Some(if self.is_split { split } else { self.last_failure });
        let epoch = |node: &Node| node.memory.promised().map_or(0, |ballot| ballot.epoch);
        let highest = self.nodes.iter().map(epoch).max().unwrap_or(0);
        let source = self.known().and_then(|accepted| self.number_of(&accepted.source)).unwrap_or(0);
        for node in &mut self.nodes {
            *node = Node::blank(node.uuid);
        }
        self.say(|| format!("a person begins anew with server {source}, after epoch {highest}"));
        (self.sources, self.agreed) = Default::default();
        self.servers[source].is_writable = true;
        let log: Vec<Transaction> = self.servers[source].log.iter().map(|entry| entry.transaction).collect();
        self.told.retain(|(told, _)| log.contains(told));
        self.promote_at_once(0, source)?;
        match self.goes_on()? {
            true => Ok(()),
            false => Err("a person has decided, and no commit is acknowledged".to_owned()),
        }
    }

    /// Everybody receives and tells until all know all.
    fn settle(&mut self) -> Result<(), Broken> {
        for _ in 0..2 {
            for node in 0..self.nodes.len() {
                self.receive(node, usize::MAX);
                self.tell(node)?;
            }
            self.deliver_all()?;
        }
        Ok(())
    }

    /// Whether a commit at the present source is acknowledged.
    fn goes_on(&mut self) -> Result<bool, Broken> {
        self.settle()?;
        let Some(source) = self.known().and_then(|accepted| self.number_of(&accepted.source)) else {
            return Ok(false);
        };
        if !self.servers[source].is_writable {
            return Ok(false);
        }
        let transaction = self.append(source);
        self.settle()?;
        Ok(self.told.iter().any(|(told, _)| *told == transaction))
    }
}
