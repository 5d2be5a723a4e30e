//! The steps of a promotion.

use super::contents::Contents;
use super::feed::Feed;
use super::fitness::Quorum;
use super::group::{Answers, Group};
use super::hosts::{Hosts, Tail};
use super::no_promotion::NoPromotion;
use super::progress::Progress;
use super::successor::Successor;
use codec::gtid::{GtidState, Uuid};
use config::HostPort;
use quorum::{Accepted, Agreed, Ballot, Kind, Place, Promise, Promotion, Reply, Request as Asked};
use status::units;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::ConnectOptions;

/// Pause between two looks at what the successor has.
const FEED_LOOK: Duration = Duration::from_millis(20);

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The server that is to be the source.
    pub to: ConnectOptions,
    /// So long the successor is waited for while it comes no nearer to what was agreed on.
    pub wait: Duration,
    /// The present source must be of this epoch: nobody else has promoted since the caller saw it.
    pub epoch: Option<u64>,
    /// The command that gives a server what it lacks, for messages.
    pub rescue: String,
    /// Settings of the server that stay as they are, though they change what its replication makes of a log.
    pub accept: Vec<String>,
}

/// A promotion: what was found, and what is to be done.
pub struct Promote {
    pub(super) group: Group,
    pub(super) request: Request,
    /// The server.
    pub successor: Successor,
    answers: Answers,
    /// The epoch in which the successor is the source already; `None` when it is not.
    pub present: Option<u64>,
    /// The source before.
    pub before: String,
    /// What that one was accepted with.
    of: Ballot,
    /// What the successor lacks now of what the nodes hold.
    pub lacks: GtidState,
    /// Its replication is on, and is to be on again where this comes to nothing.
    replicates: bool,
    /// Of the source before, in milliseconds.
    timeout: Option<String>,
    /// What was compared of its transactions.
    contents: Contents,
}

/// What was done.
#[derive(Debug)]
pub struct Done {
    /// In which epoch the successor is the source.
    pub epoch: u64,
    /// Nodes that have accepted it.
    pub accepted: Vec<String>,
    /// Those that were not there, and why.
    pub absent: Vec<(String, String)>,
    /// Statements that were run to open it.
    pub opened: Vec<String>,
}

/// What the nodes agreed on in an epoch that is not accepted yet.
struct Fenced {
    promotion: Promotion,
    agreed: Agreed,
    founded: Ballot,
    /// Nodes that hold all of it; the best to read from first.
    holders: Vec<HostPort>,
    /// The node that holds the history, and whether that is more than it serves.
    holder: (HostPort, bool),
}

impl Promote {
    /// Looks at everything, and refuses what cannot end well. Changes nothing.
    ///
    /// # Errors
    /// Why there is no promotion.
    pub fn look(group: Group, request: Request) -> Result<Promote, NoPromotion> {
        let host = HostPort { host: request.to.host.clone(), port: request.to.port }.to_string();
        let mut answers = group.look()?;
        let accepted = answers.accepted().cloned();
        let accepted = accepted.ok_or_else(|| no_memory(&group))?;
        if let Some(asked) = request.epoch.filter(|asked| *asked != accepted.ballot.epoch) {
            return Err(NoPromotion::OtherEpoch { asked, found: accepted.ballot.epoch });
        }
        let mut successor = Successor::reach(&request.to, &host)?;
        let is_source = accepted.source == successor.identity.uuid;
        if is_source {
            answers = group.look_at_all()?;
        }
        let hosts = Hosts::look(&group);
        let mut servers = hosts.servers();
        servers.push(accepted.source.clone());
        let quorum = Quorum {
            kind: accepted.history.kind(),
            nodes: group.nodes(),
            held: &answers.all_held(),
            servers: &servers,
            attached: if is_source { group.nodes() } else { answers.attached_to(&successor.identity.uuid) },
        };
        let mut faults = successor.faults(&quorum, &request.accept)?;
        let user = &group.upstream.config.user;
        faults.extend(hosts.not_received(&host, &successor.identity.uuid, user));
        if !faults.is_empty() {
            return Err(NoPromotion::unfit(host, &faults));
        }
        let timeout = hosts.timeout_of(&accepted.source);
        // A node that has promised a later epoch, for a promotion that has not ended, counts again in no other than one that is later still.
        let is_in_force = answers.is_in_force(&accepted, group.majority());
        let is_present = is_source && is_in_force && answers.promised() == accepted.ballot.epoch;
        let mut promote = Promote {
            present: is_present.then_some(accepted.ballot.epoch),
            before: accepted.source.clone(),
            of: accepted.ballot,
            lacks: GtidState::empty(accepted.history.kind()),
            replicates: false,
            timeout: timeout.filter(|_| !is_source),
            group,
            request,
            successor,
            answers,
            contents: Contents::default(),
        };
        if !is_present {
            promote.look_at_gtids(is_source)?;
            let Promote { group, request, successor, .. } = &promote;
            promote.contents = Contents::of_this_node(group, &request.to, successor)?;
        }
        Ok(promote)
    }

    /// Whether the successor has nothing of its own, and has, or can get, what the nodes hold. A source that is alive is always a
    /// little ahead.
    fn look_at_gtids(&mut self, is_source: bool) -> Result<(), NoPromotion> {
        self.refuse_own(&self.answers.all_held(), is_source)?;
        let expected = self.answers.agreed(self.group.nodes())?;
        self.lacks = self.successor.lacks(&expected.held.gtids)?;
        self.replicates = self.successor.replicates()?;
        if let Some(why) = self.successor.waits_for_acknowledgements()?.filter(|_| !is_source) {
            return Err(NoPromotion::Unfit(self.successor.host.clone(), why));
        }
        match self.successor.takes_nothing(&self.before)?.filter(|_| !self.lacks.is_empty()) {
            None => Ok(()),
            Some(why) => Err(self.not_brought(why)),
        }
    }

    fn not_brought(&self, why: String) -> NoPromotion {
        NoPromotion::Lacks {
            host: self.successor.host.clone(),
            lacks: self.lacks.to_line(),
            why,
            rescue: self.request.rescue.clone(),
        }
    }

    /// What the source of the newest epoch wrote is received from it.
    fn refuse_own(&self, held: &GtidState, is_source: bool) -> Result<(), NoPromotion> {
        let own = self.successor.of_its_own(held);
        if is_source || own.is_empty() {
            return Ok(());
        }
        let why = format!(
            "it has transactions of its own, or from elsewhere, that no node holds: {}. They were acknowledged to nobody, or were never meant for \
             the others. Build it anew from a backup of the source or by CLONE",
            own.to_line()
        );
        Err(NoPromotion::Unfit(self.successor.host.clone(), why))
    }

    /// How many nodes can promise, of how many.
    pub fn nodes(&self) -> (usize, usize) {
        (self.answers.replies.len(), self.group.nodes())
    }

    /// Nodes that do not answer, or cannot promise, and why.
    pub fn absent(&self) -> &[(String, String)] {
        &self.answers.failures
    }

    /// What is to be done on the server in the end.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn left_to_open(&mut self) -> Result<Vec<String>, NoPromotion> {
        self.successor.left_to_open(self.timeout.as_deref())
    }

    /// What the other hosts that answer have written and the successor lacks: it was acknowledged to nobody.
    ///
    /// # Errors
    /// When the successor cannot be asked.
    pub(super) fn tails(&mut self) -> Result<Vec<Tail>, NoPromotion> {
        self.successor.ask_executed()?;
        Ok(Hosts::look(&self.group).tails(&self.successor.identity))
    }

    /// Carries it out, and tells `hear` of each step that has ended.
    ///
    /// # Errors
    /// Why it has not ended; the next one goes on from there.
    pub fn carry_out(&mut self, hear: &mut dyn FnMut(&str)) -> Result<Done, NoPromotion> {
        self.successor.lock()?;
        self.look_again()?;
        let mut done = Done {
            epoch: self.present.unwrap_or(0),
            accepted: Vec::new(),
            absent: self.answers.failures.clone(),
            opened: Vec::new(),
        };
        if self.present.is_none() {
            self.feed_before(hear)?;
            let fenced = self.fence()?;
            let epoch = fenced.promotion.ballot().epoch;
            hear(&format!(
                "fenced: {} of {} nodes have promised epoch {epoch}; the old source is acknowledged nothing any more",
                fenced.promotion.promises().len(),
                self.group.nodes()
            ));
            hear(&format!("agreed: the history is what node {} holds", fenced.agreed.node));
            let accepted = self.feed_rest(&fenced, hear).and_then(|()| {
                let same = self.compare(&fenced)?;
                hear(&format!(
                    "fed: {} has all of it; {} compared, and the same{}",
                    self.successor.host,
                    units::counted(same, "newest transaction"),
                    self.contents.remarks
                ));
                self.accept(fenced)
            });
            let answers = accepted.inspect_err(|_| {
                self.stays_a_replica();
            })?;
            hear(&format!(
                "accepted: {} nodes have recorded it as the source of epoch {epoch}",
                answers.replies.len()
            ));
            done.epoch = epoch;
            done.accepted = answers.replies.iter().map(|(node, _)| node.clone()).collect();
            done.absent = answers.failures;
        }
        done.opened = self.open(done.epoch)?;
        Ok(done)
    }

    /// A majority promises a new ballot, and what they hold is agreed on.
    fn fence(&self) -> Result<Fenced, NoPromotion> {
        let ballot = self.group.ballot_above(self.answers.promised());
        let promotion_by = |replies: &mut dyn Iterator<Item = &Reply>| {
            let mut promotion = Promotion::new(ballot, Kind::Ordinary, self.group.nodes());
            for reply in replies {
                if let Some((promise, _)) = reply.promise.clone() {
                    promotion.promised(reply.node, promise);
                }
            }
            promotion
        };
        // Whoever has not promised by then is no more to be waited for than one that is away.
        let is_agreed =
            |replies: &[&Reply]| matches!(promotion_by(&mut replies.iter().copied()).agreed(), Ok(Some(_)));
        let answers = self.group.ask_until(&Asked::Succeed(ballot, self.of.epoch), is_agreed);
        let promotion = promotion_by(&mut answers.replies.iter().map(|(_, reply)| reply));
        let end = |reply: &Reply| Some((reply.node, reply.promise.clone()?.1));
        let ends: BTreeMap<_, _> = answers.replies.iter().filter_map(|(_, reply)| end(reply)).collect();
        let Some(agreed) = promotion.agreed()? else {
            self.not_overtaken_by(&self.group.ask(&Asked::Look), &answers)?;
            self.not_outbid(ballot)?;
            let (count, needed) = (promotion.promises().len(), self.group.majority());
            return Err(NoPromotion::NotFenced { ballot, count, needed, why: answers.why() });
        };
        compare_ends(&agreed, &ends).map_err(NoPromotion::OtherLogs)?;
        let founded = agreed.founded.unwrap_or(ballot);
        let holders = self.holders(&answers, &agreed.held.gtids);
        let of_agreed = answers.replies.iter().find(|(_, reply)| reply.node == agreed.node);
        let holder =
            of_agreed.and_then(|(name, reply)| Some((self.group.address(name)?.clone(), reply.keeps)));
        // Who promised has answered.
        let holder =
            holder.ok_or_else(|| NoPromotion::OtherLogs("nobody holds what was agreed on".to_owned()))?;
        Ok(Fenced { promotion, agreed, founded, holders, holder })
    }

    fn not_outbid(&self, ballot: Ballot) -> Result<(), NoPromotion> {
        let other = self.group.ask(&Asked::Look).promised();
        match other > ballot.epoch || (other == ballot.epoch && !self.has_promised(ballot)) {
            true => Err(NoPromotion::Outbid { ballot, other }),
            false => Ok(()),
        }
    }

    /// Whether a majority promises this very ballot, once more.
    fn has_promised(&self, ballot: Ballot) -> bool {
        let again = self.group.ask(&Asked::Succeed(ballot, self.of.epoch));
        again.replies.len() >= self.group.majority()
    }

    /// Another promotion may have ended since, while a person was asked or the server was locked.
    fn look_again(&mut self) -> Result<(), NoPromotion> {
        self.answers = self.group.look()?;
        self.not_overtaken_by(&self.answers, &Answers::default())
    }

    /// Nobody else has promoted, by what nodes answer now. `promised`: what they answered to this promotion.
    fn not_overtaken_by(&self, now: &Answers, promised: &Answers) -> Result<(), NoPromotion> {
        let Some(later) = now.accepted().filter(|accepted| accepted.ballot != self.of) else { return Ok(()) };
        let nodes: Vec<&str> = promised.replies.iter().map(|(node, _)| node.as_str()).collect();
        let promised = match nodes.is_empty() {
            true => String::new(),
            false => format!(
                ". {} had promised this one before it heard of that, and does not count: promote that source once more, and it does",
                nodes.join(", ")
            ),
        };
        Err(NoPromotion::Overtaken { source_uuid: later.source.clone(), epoch: later.ballot.epoch, promised })
    }

    /// Before the fence, while the old source is acknowledged still: the successor has what the nodes held when they were looked at. What
    /// does not come is refused with nothing changed, and behind the fence only a little is left.
    fn feed_before(&mut self, hear: &mut dyn FnMut(&str)) -> Result<(), NoPromotion> {
        let expected = self.answers.agreed(self.group.nodes())?;
        let is_source = self.before == self.successor.identity.uuid;
        if is_source {
            return Ok(());
        }
        self.successor.applies_at_once()?;
        let holders = self.holders(&self.answers, &expected.held.gtids);
        let fed = self.feed(&expected.held.gtids, holders, hear).and_then(|left| match left {
            None => Ok(()),
            Some((lacks, problems)) => {
                self.lacks = lacks;
                Err(self.not_brought(format!("nothing of it has come for {:?}{problems}", self.request.wait)))
            }
        });
        fed.inspect_err(|_| self.stays_a_replica())
    }

    /// Where it comes to nothing; where that is not possible, the error before says more.
    fn stays_a_replica(&mut self) {
        let _ = self.successor.end_feed();
        if self.replicates {
            let _ = self.successor.start_replication();
        }
    }

    /// Nodes that hold all of it; the best to read from first.
    fn holders(&self, answers: &Answers, gtids: &GtidState) -> Vec<HostPort> {
        let holds = |promise: &Promise| promise.held.gtids.contains_state(gtids);
        let has = |reply: &Reply| reply.promise.as_ref().is_some_and(|(promise, _)| holds(promise));
        let holders = answers.replies.iter().filter(|(_, reply)| has(reply)).map(|(address, _)| address);
        self.group.reached_from(&self.request.to.host, holders)
    }

    /// Waits until the successor has this, and has it read from a node where its own replication does not bring that. Returns what it lacks
    /// in the end, and what was in the way.
    fn feed(
        &mut self,
        wanted: &GtidState,
        holders: Vec<HostPort>,
        hear: &mut dyn FnMut(&str),
    ) -> Result<Option<(GtidState, String)>, NoPromotion> {
        let clock = self.group.upstream.clock.clone();
        let mut progress = Progress::new(self.request.wait, clock.now());
        let mut feed = Feed::by(&self.group.upstream, holders);
        loop {
            let lacks = self.successor.lacks(wanted)?;
            if lacks.is_empty() {
                self.successor.end_feed().map_err(|error| self.successor.failed(error))?;
                return Ok(None);
            }
            if !progress.goes_on(&self.successor.identity.executed, &lacks, clock.now()) {
                return Ok(Some((lacks, feed.problems())));
            }
            if let Some(left) = progress.words(&lacks, clock.now()) {
                hear(&format!("feeding: {left} to go"));
            }
            if let Some(node) = feed.look(&mut self.successor)? {
                hear(&format!("feeding: its own replication does not bring it; it reads from {node}"));
            }
            clock.sleep(FEED_LOOK);
        }
    }

    fn feed_rest(&mut self, fenced: &Fenced, hear: &mut dyn FnMut(&str)) -> Result<(), NoPromotion> {
        match self.feed(&fenced.agreed.held.gtids, fenced.holders.clone(), hear)? {
            None => Ok(()),
            Some((lacks, problems)) => Err(self.not_fed(fenced, &(lacks.to_line() + &problems))),
        }
    }

    /// Of what was agreed on the successor has the transactions, and not only their GTIDs. Gives how many were compared in all.
    fn compare(&self, fenced: &Fenced) -> Result<u64, NoPromotion> {
        let (address, keeps) = &fenced.holder;
        let agreed = &fenced.agreed.held.gtids;
        self.contents.of_agreed(&self.group, &self.request.to, &self.successor, (address, *keeps), agreed)
    }

    fn not_fed(&self, fenced: &Fenced, lacks: &str) -> NoPromotion {
        NoPromotion::NotFed {
            host: self.successor.host.clone(),
            wait: self.request.wait,
            lacks: lacks.to_owned(),
            epoch: fenced.promotion.ballot().epoch,
            rescue: self.request.rescue.clone(),
        }
    }

    /// The successor stands still, has everything, and a majority records it as the source.
    fn accept(&mut self, fenced: Fenced) -> Result<Answers, NoPromotion> {
        let is_source = self.before == self.successor.identity.uuid;
        self.successor.stop_replication()?;
        let lacks = self.successor.lacks(&fenced.agreed.held.gtids)?;
        if !lacks.is_empty() {
            return Err(self.not_fed(&fenced, &lacks.to_line()));
        }
        self.refuse_own(&self.answers.all_held(), is_source)?;
        let (file, offset) = self.successor.end_of_log()?;
        let Fenced { mut promotion, agreed, founded, .. } = fenced;
        let ballot = promotion.ballot();
        let accepted = Accepted {
            ballot,
            founded,
            source: self.successor.identity.uuid.clone(),
            members: agreed.members,
            history: agreed.held.gtids,
            place: Place { file, identity: 0, offset },
        };
        let is_majority = |replies: &[&Reply]| {
            let nodes: BTreeSet<Uuid> = replies.iter().map(|reply| reply.node).collect();
            nodes.len() >= self.group.majority()
        };
        let answers = self.group.ask_until(&Asked::Accept(accepted), is_majority);
        for (_, reply) in &answers.replies {
            promotion.accepted(reply.node);
        }
        if promotion.is_accepted() {
            return Ok(answers);
        }
        let promised = self.group.ask(&Asked::Look).promised();
        if promised > ballot.epoch {
            return Err(NoPromotion::Outbid { ballot, other: promised });
        }
        Err(NoPromotion::NotAccepted {
            host: self.successor.host.clone(),
            epoch: ballot.epoch,
            count: answers.replies.len(),
            needed: self.group.majority(),
            why: answers.why(),
        })
    }

    /// Forgets its source, waits for acknowledgements, and only then can be written to.
    fn open(&mut self, epoch: u64) -> Result<Vec<String>, NoPromotion> {
        let left = self.left_to_open()?;
        if left.iter().any(|statement| statement.starts_with("RESET")) {
            // Of a promotion that was interrupted it may go on.
            self.successor.stop_replication()?;
        }
        for (index, statement) in left.iter().enumerate() {
            self.successor.run(statement).map_err(|error| NoPromotion::NotOpen {
                host: self.successor.host.clone(),
                epoch,
                error: format!("{statement}: {error}"),
                left: left[index..].join("; "),
            })?;
        }
        // It is open, whether or not it tells.
        let _ = self.successor.ask_settings();
        Ok(left)
    }
}

fn no_memory(group: &Group) -> NoPromotion {
    let why = "the quorum has not begun".to_owned();
    NoPromotion::TooFew { answered: 0, nodes: group.nodes(), needed: group.majority(), why }
}

/// Copies of one server, of which one holds what the other does, end in this order in one log. What has no end now, or is of another
/// server by now, was compared by GTIDs alone.
fn compare_ends(agreed: &Agreed, ends: &BTreeMap<Uuid, Option<(String, Place)>>) -> Result<(), String> {
    let end = |node: &Uuid| ends.get(node).and_then(Option::as_ref);
    let Some((source, best)) = end(&agreed.node) else { return Ok(()) };
    for node in &agreed.to_compare {
        if let Some((_, place)) = end(node).filter(|(of, _)| of == source) {
            // It is known by then what is different: an earlier end is no error.
            best.comes_after(place)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;
    use quorum::Held;

    #[test]
    fn copies_of_different_files_of_one_name_are_not_of_one_log() {
        let node = |number| Uuid::from_bytes([number; 16]);
        let end = |source: &str, identity, offset| {
            Some((source.to_owned(), Place { file: "b.000001".to_owned(), identity, offset }))
        };
        let held = Held { entered: 1, gtids: GtidState::empty(ServerKind::MySql) };
        let members = [node(1), node(2)].into();
        let agreed = Agreed { node: node(1), founded: None, held, members, to_compare: vec![node(2)] };
        let compare =
            |other| compare_ends(&agreed, &BTreeMap::from([(node(1), end("a", 7, 9)), (node(2), other)]));
        assert_eq!(compare(end("a", 7, 5)), Ok(()));
        assert_eq!(compare(None), Ok(()));
        assert_eq!(compare(end("b", 8, 5)), Ok(()), "another server's");
        assert!(compare(end("a", 8, 5)).unwrap_err().contains("began its logs anew"));
    }
}
