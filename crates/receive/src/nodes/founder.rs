//! Begins the quorum, and joins it: a promotion of the source from which this node receives, by a node that is blank.
//!
//! All nodes must be there to begin, and none may have a memory; the one with the lowest name begins. Where others have one, this
//! node joins them: it waits until its copy is as far as theirs, fences them for a moment, and counts from then on.

use super::ask::{ask_all, ballot_above};
use super::common::{held, is_of_size, tell_once};
use crate::attempt::context::Upstream;
use binlog::timeline::files::timeline_files;
use codec::gtid::Uuid;
use quorum::{Accepted, Ballot, Heard, Kind, Node, Place, Promotion, Reply, Request, Told, members_with};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Between two looks whether there is something to do, and as much again by chance: two who begin at once hinder each other.
const LOOK: Duration = Duration::from_millis(200);

/// After the others are fenced, this copy must have what they have within this time; else they go on without this node.
const CATCH_UP_MAX: Duration = Duration::from_secs(2);

/// Pause between two looks at that.
const CATCH_UP_LOOK: Duration = Duration::from_millis(2);

/// A place is free when its node was absent for so long. One that is restarted, or wakes up, comes back before, and the others, which
/// may not hear it again at once, are not fenced for a machine that then gets no place.
const ABSENT_MIN: Duration = Duration::from_secs(5);

/// The thread that begins and joins.
pub(super) struct Founder {
    pub(super) upstream: Upstream,
    pub(super) node: Arc<Node>,
    pub(super) end: Arc<AtomicBool>,
}

/// What a promotion of the present source goes by.
struct Present {
    uuid: Uuid,
    source: String,
}

impl Founder {
    pub(super) fn run(self) {
        let (mut last, mut free_since) = (None, None);
        while !self.end.load(SeqCst) {
            let chance = u64::from(self.upstream.clock.jitter()) % LOOK.as_millis() as u64;
            self.upstream.clock.sleep(LOOK + Duration::from_millis(chance));
            if self.node.memory().accepted().is_some() {
                continue;
            }
            if let Err(error) = self.look(&mut free_since) {
                free_since = None;
                tell_once(&self.upstream, &mut last, error);
            }
        }
    }

    /// Begins or joins when that can be done now. `free_since`: when a place was free first, without a break.
    fn look(&self, free_since: &mut Option<Instant>) -> Result<(), String> {
        let Some((uuid, (source, _))) = self.node.uuid().zip(self.node.end()) else { return Ok(()) };
        let present = Present { uuid, source };
        let heard = self.node.heard();
        let told: Vec<&Told> = heard.iter().filter_map(|heard| heard.told.as_ref()).collect();
        let members: Vec<(&Heard, &Told)> = heard
            .iter()
            .filter_map(|heard| Some((heard, heard.told.as_ref()?)))
            .filter(|(_, told)| !told.is_blank)
            .collect();
        for told in &told {
            is_of_size(&self.node, told.nodes)?;
        }
        let promised = told.iter().map(|told| told.promised).max().unwrap_or(0);
        if members.is_empty() {
            let is_lowest = told.iter().all(|told| uuid < told.node);
            return match told.len() + 1 == self.node.nodes() {
                true if is_lowest => self.found(&present, promised),
                _ => Ok(()),
            };
        }
        let kind = Kind::Joining(uuid);
        if members.len() < kind.promises_of(self.node.nodes()) {
            *free_since = None;
            return Ok(());
        }
        // Before anybody is fenced for it, this copy is where theirs are.
        let are_counting = members.iter().all(|(heard, told)| {
            let of_source = heard.accepted.as_ref().is_some_and(|accepted| accepted.source == present.source);
            let place = told.confirmation.as_ref().map(|confirmation| &confirmation.place);
            of_source && place.is_some_and(|place| self.has_nearly(place))
        });
        match are_counting {
            true => self.join(&present, promised, free_since),
            false => Ok(()),
        }
    }

    fn ballot(&self, promised: u64) -> Ballot {
        let own = self.node.memory();
        let own = own.promised().max(own.founding().promised.as_ref()).map_or(0, |ballot| ballot.epoch);
        ballot_above(promised.max(own), &*self.upstream.clock)
    }

    fn found(&self, present: &Present, promised: u64) -> Result<(), String> {
        let ballot = self.ballot(promised);
        let mut promotion = Promotion::new(ballot, Kind::Founding, self.node.nodes());
        let accepted = self.propose(&mut promotion, present)?;
        self.ask_all(&Request::Record(accepted.clone()), &mut |reply| promotion.accepted(reply.node));
        if !promotion.is_accepted() {
            return Err("not all nodes have recorded that the quorum begins; it is tried again".to_owned());
        }
        tracing::info!(
            source = self.upstream.config.name,
            epoch = ballot.epoch,
            "the quorum of {} nodes begins: a commit is acknowledged when {} of them have it",
            self.node.nodes(),
            quorum::majority(self.node.nodes())
        );
        self.ask_all(&Request::Accept(accepted), &mut |_| {});
        Ok(())
    }

    fn join(&self, present: &Present, promised: u64, free_since: &mut Option<Instant>) -> Result<(), String> {
        let since = self.node.changes();
        if self.node.memory().accepted().is_some() {
            return Ok(());
        }
        let now = self.upstream.clock.now();
        let is_member = self.is_member(present.uuid)?;
        if !is_member && now.saturating_duration_since(*free_since.get_or_insert(now)) < ABSENT_MIN {
            return Ok(());
        }
        let ballot = self.ballot(promised);
        let mut promotion = Promotion::new(ballot, Kind::Joining(present.uuid), self.node.nodes());
        let accepted = self.propose(&mut promotion, present)?;
        let until = self.upstream.clock.now() + CATCH_UP_MAX;
        while !self.has(&accepted.place) && self.upstream.clock.now() < until {
            self.upstream.clock.sleep(CATCH_UP_LOOK);
        }
        let is_ready = self.has(&accepted.place);
        // They go on with it whether this node is ready or not.
        let mut accepting = BTreeSet::new();
        self.ask_all(&Request::Accept(accepted.clone()), &mut |reply| {
            accepting.insert(reply.node);
        });
        if !is_ready {
            return Ok(());
        }
        // From here on no majority of the members before is without one that knows the new ones.
        if accepting.len() < promotion.kind().promises_of(self.node.nodes()) {
            return Err("too few nodes have accepted that this one joins; it is tried again".to_owned());
        }
        self.node.join(&accepted, since).map_err(|error| error.to_string())?;
        tracing::info!(
            source = self.upstream.config.name,
            epoch = ballot.epoch,
            "this node has joined the quorum"
        );
        Ok(())
    }

    /// Before anybody is fenced: whether this node has a place, as one of the members; else one is free. Enough of the others must answer
    /// now. A promise that is asked of a node which hangs is given when it wakes up, for a join that came to nothing meanwhile, and it would
    /// be fenced until another promotion.
    fn is_member(&self, own: Uuid) -> Result<bool, String> {
        let mut looked = Promotion::new(self.ballot(0), Kind::Joining(own), self.node.nodes());
        let mut newest: Option<Accepted> = None;
        self.ask_all(&Request::Look, &mut |reply| {
            let Some((promise, _)) = reply.promise else { return };
            let Some(accepted) = promise.accepted.clone() else { return };
            if newest.as_ref().is_none_or(|known| known.ballot < accepted.ballot) {
                newest = Some(accepted);
            }
            looked.promised(reply.node, promise);
        });
        let newest =
            newest.filter(|_| looked.promises().len() >= looked.kind().promises_of(self.node.nodes()));
        let newest = newest.ok_or("too few nodes answer for this one to join; it is tried again")?;
        self.members_with(own, &newest.members, &looked).map(|_| newest.members.contains(&own))
    }

    /// Fences the nodes, and says what is to be accepted.
    fn propose(&self, promotion: &mut Promotion, present: &Present) -> Result<Accepted, String> {
        let mut ends = BTreeMap::new();
        let kind = promotion.kind();
        self.ask_all(&Request::Promise(promotion.ballot(), kind), &mut |reply| {
            if let Some((promise, end)) = reply.promise {
                ends.insert(reply.node, end);
                promotion.promised(reply.node, promise);
            }
        });
        let agreed = promotion.agreed().map_err(|parted| parted.to_string())?;
        let agreed = agreed.ok_or("too few nodes have promised; it is tried again")?;
        let concerned =
            promotion.promises().iter().filter(|(_, promise)| promise.held.entered == agreed.held.entered);
        // Whoever confirmed or acknowledged something is at or behind it, and all of them are copies of one log.
        let mut place: Option<Place> = None;
        for (node, _) in concerned {
            let (source, end) = ends
                .get(node)
                .cloned()
                .flatten()
                .ok_or_else(|| format!("node {node} does not receive; it is tried again"))?;
            if source != present.source {
                return Err(format!(
                    "node {node} receives from {source}, and this one from {}",
                    present.source
                ));
            }
            place = Some(match place {
                Some(known) if !end.comes_after(&known)? => known,
                _ => end,
            });
        }
        let place = place.ok_or("no node receives; it is tried again")?;
        let accepted = promotion.promises().values().filter_map(|promise| promise.accepted.as_ref());
        let before = accepted.max_by_key(|accepted| accepted.ballot.epoch);
        if let Some(before) = before.filter(|before| before.source != present.source) {
            return Err(format!(
                "the source of the quorum is {}, and this node receives from {}",
                before.source, present.source
            ));
        }
        let members = match kind {
            Kind::Joining(own) => self.members_with(own, &agreed.members, promotion)?,
            _ => agreed.members,
        };
        Ok(Accepted {
            members,
            ballot: promotion.ballot(),
            founded: agreed.founded.unwrap_or(promotion.ballot()),
            source: present.source.clone(),
            history: agreed.held.gtids,
            place,
        })
    }

    /// The nodes of the epoch in which this one joins.
    fn members_with(
        &self,
        own: Uuid,
        members: &BTreeSet<Uuid>,
        promotion: &Promotion,
    ) -> Result<BTreeSet<Uuid>, String> {
        let heard = self.node.heard();
        let told = || heard.iter().filter_map(|heard| heard.told.as_ref());
        let present = promotion.promises().keys().copied();
        let present = present.chain(told().filter(|told| !told.is_blank).map(|told| told.node)).collect();
        let newcomers = told().filter(|told| told.is_blank && !members.contains(&told.node)).count();
        members_with(own, members, &present, newcomers)
    }

    /// Asks every node, this one too. Who does not answer is left out.
    fn ask_all(&self, request: &Request, answered: &mut dyn FnMut(Reply)) {
        let own = match request {
            // A blank node that joins promises nothing, and accepts when its copy has everything.
            Request::Promise(_, Kind::Joining(_)) => None,
            _ => self.node.answer(request, || held(&self.upstream)).ok(),
        };
        if let Some(own) = own {
            answered(own);
        }
        let upstream = &self.upstream;
        for (address, reply) in ask_all(upstream, &upstream.config.quorum, request) {
            match reply {
                Ok(reply) => answered(reply),
                Err(error) => tracing::info!(
                    source = upstream.config.name,
                    "quorum: node {address} does not do what it is asked for: {error}"
                ),
            }
        }
    }

    /// Whether the copy has a place.
    fn has(&self, place: &Place) -> bool {
        let Some(live) = self.upstream.published.live() else { return false };
        let files = timeline_files(&*self.upstream.storage, &live.timeline).unwrap_or_default();
        self.node.has(&files, place)
    }

    /// Whether the copy has the file of a place, so that it will have the place in a moment.
    fn has_nearly(&self, place: &Place) -> bool {
        self.has(&Place { offset: 0, ..place.clone() })
    }
}
