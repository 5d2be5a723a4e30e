//! This binlogd as a node: its memory in a file, how far its copy is, and what the others have told.
//!
//! One lock holds the memory and what was heard, so that no confirmation of one epoch is counted in the next. The receiving thread
//! takes it when a session or a file begins, and while the epoch is being entered; to acknowledge it reads one atomic number.

mod behind;
mod error;
mod file;
mod identities;
#[cfg(test)]
mod tests;

use crate::ballot::{Accepted, Ballot, Kind, Place, majority};
use crate::memory::{Memory, Refusal, Standing};
use crate::promotion::{Held, Promise};
use crate::words::{Confirmation, Reply, Request, Told, to_record};
use binlog::Position;
use binlog::storage::Storage;
use binlog::timeline::index::replace_file;
use binlog::writer::published::{Live, Published};
use codec::gtid::{GtidState, Uuid};
pub use error::NodeError;
pub use file::{QUORUM_FILE, leave, memory_in};
use identities::Identities;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The session from which the copy is received.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Attached {
    timeline: PathBuf,
    source: String,
    withholds: bool,
    /// That was found by the contents of transactions.
    is_compared: bool,
}

/// Another node, as far as it was heard.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// What it told last; `None` while there is no connection.
    pub told: Option<Told>,
    /// The source that it has accepted, by its last word.
    pub accepted: Option<Accepted>,
    /// Why it is not heard.
    pub error: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    /// Name of this node: the UUID that it presents to the source as a replica. `None` before the folder was opened.
    uuid: Option<Uuid>,
    memory: Memory,
    /// What was held of the epoch that was entered, once the live timeline is another one.
    kept: Option<GtidState>,
    attached: Option<Attached>,
    heard: Vec<Heard>,
    identities: Identities,
}

impl State {
    /// Whether `joiner` is not of the quorum, and every node of it is there.
    fn is_complete_without(&self, joiner: Uuid) -> bool {
        let Some(accepted) = self.memory.accepted() else { return false };
        let is_there = |member: &Uuid| {
            let mut others = self.heard.iter().filter_map(|heard| heard.told.as_ref());
            Some(*member) == self.uuid || others.any(|told| told.node == *member)
        };
        !accepted.members.contains(&joiner) && accepted.members.iter().all(is_there)
    }
}

/// This binlogd as a node of one source's quorum.
pub struct Node {
    storage: Arc<dyn Storage>,
    folder: PathBuf,
    published: Arc<Published>,
    others: Vec<String>,
    state: Mutex<State>,
    /// The epoch in which it counts; 0 for none.
    epoch: AtomicU64,
    /// Counts up with each change of the memory.
    changes: AtomicU64,
    /// What was acknowledged last lies before it: what is published may be a moment behind.
    durable: Mutex<Position>,
    /// The source of another epoch is to be received from: the present session ends.
    on_change: Box<dyn Fn(String) + Send + Sync>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("folder", &self.folder)
            .field("others", &self.others)
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Beside `others`, by their addresses. `folder` is the source's. `on_change` ends the session, with a reason in words.
    pub fn new(
        storage: Arc<dyn Storage>,
        folder: PathBuf,
        published: Arc<Published>,
        others: Vec<String>,
        on_change: Box<dyn Fn(String) + Send + Sync>,
    ) -> Node {
        let state = State { heard: vec![Heard::default(); others.len()], ..State::default() };
        Node {
            storage,
            folder,
            published,
            others,
            state: Mutex::new(state),
            epoch: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            durable: Mutex::new(Position::new("", 0)),
            on_change,
        }
    }

    /// Reads the memory. `uuid` is what this binlogd presents to the source as a replica.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged.
    pub fn open(&self, uuid: Uuid) -> Result<(), NodeError> {
        let (memory, kept) = file::read(&*self.storage, &self.folder)?.unwrap_or_default();
        let mut state = self.state();
        (state.uuid, state.memory, state.kept) = (Some(uuid), memory, kept);
        self.show_epoch(&state);
        Ok(())
    }

    /// How many nodes there are, this one counted.
    pub fn nodes(&self) -> usize {
        self.others.len() + 1
    }

    /// How many of the others must have what is acknowledged.
    pub fn others_wanted(&self) -> u32 {
        u32::try_from(majority(self.nodes()) - 1).unwrap_or(u32::MAX)
    }

    /// Addresses of the others.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// Name of this node; `None` before its memory was read.
    pub fn uuid(&self) -> Option<Uuid> {
        self.state().uuid
    }

    /// The memory as it is now.
    pub fn memory(&self) -> Memory {
        self.state().memory.clone()
    }

    /// The epoch in which this node confirms and acknowledges; 0 for none.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(SeqCst)
    }

    /// Counts up with each change of the memory.
    pub fn changes(&self) -> u64 {
        self.changes.load(SeqCst)
    }

    /// What each of the others has told, in their order.
    pub fn heard(&self) -> Vec<Heard> {
        self.state().heard.clone()
    }

    /// A session writes `timeline`, whose server is `source`. `lacks`: whether that one lacks, or may lack, what the copy holds and a
    /// fork took from it, by the contents of the transactions; `None` where no fork took anything.
    ///
    /// # Errors
    /// When what was kept of the epoch is needed no more, and that cannot be written down.
    pub fn attached(&self, timeline: &Path, source: &str, lacks: Option<bool>) -> Result<(), NodeError> {
        let mut state = self.state();
        let of_epoch =
            state.memory.accepted().filter(|accepted| accepted.ballot.epoch == state.memory.entered());
        let is_kept_of = state.kept.is_some() && of_epoch.is_some_and(|accepted| accepted.source == source);
        // Where its logs began anew nobody has compared anything, and it may give the same GTIDs once more.
        let withholds = lacks.unwrap_or(is_kept_of);
        let is_compared = lacks.is_some();
        let attached =
            Attached { timeline: timeline.to_owned(), source: source.to_owned(), withholds, is_compared };
        if state.attached.as_ref() == Some(&attached) {
            return Ok(());
        }
        let before = state.attached.replace(attached);
        if before.is_none_or(|before| before.timeline != timeline || before.source != source) {
            // Another source may have a file of the same name.
            self.is_durable(&Position::new("", 0));
        }
        if is_kept_of && lacks.is_none() {
            tracing::error!(
                "quorum: the logs of {source} began anew without what was acknowledged in epoch {}: nothing is acknowledged to it. Promote \
                 a server that has everything, or, where this was meant, end the nodes, remove {QUORUM_FILE} at each, and start them",
                state.memory.entered()
            );
        }
        if is_kept_of && lacks == Some(false) {
            // The source has everything that was kept, so that its timeline goes on with it.
            let memory = state.memory.clone();
            self.write(&mut state, memory, None)?;
        }
        drop(state);
        self.published.wake_all();
        Ok(())
    }

    /// The source has got back what it lacked, by the contents of the transactions.
    ///
    /// # Errors
    /// As [`Node::attached`].
    pub fn released(&self) -> Result<(), NodeError> {
        let attached = self.state().attached.clone().filter(|attached| attached.is_compared);
        attached.map_or(Ok(()), |attached| self.attached(&attached.timeline, &attached.source, Some(false)))
    }

    /// The source of the epoch, in words, where the session receives from another one: it is to end.
    pub fn is_left_for(&self) -> Option<String> {
        let state = self.state();
        let accepted = state.memory.accepted()?;
        let attached = state.attached.as_ref().filter(|attached| attached.source != accepted.source)?;
        Some(format!(
            "{} is the source of epoch {}, and not {}",
            accepted.source, accepted.ballot.epoch, attached.source
        ))
    }

    /// Everything before `at` is on stable storage here, and is about to be acknowledged.
    pub fn is_durable(&self, at: &Position) {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner).clone_from(at);
    }

    /// The live timeline ends, and another one begins. `history` is what it holds.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub fn timeline_ends(&self, history: &GtidState) -> Result<(), NodeError> {
        let mut state = self.state();
        state.attached = None;
        if state.memory.entered() > 0 && state.kept.is_none() {
            let memory = state.memory.clone();
            self.write(&mut state, memory, Some(history.clone()))?;
        }
        Ok(())
    }

    /// Enters the epoch that was accepted, once `timeline` has the place of the epoch. `files` are the timeline's, in order, and
    /// `durable` is where it ends; `held` says what the copy holds on stable storage. Costs one look at an atomic number where there
    /// is nothing to enter.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn tend(
        &self,
        timeline: &Path,
        files: &[String],
        durable: &Position,
        held: impl FnOnce() -> GtidState,
    ) -> Result<(), NodeError> {
        if self.epoch() > 0 {
            return Ok(());
        }
        let mut state = self.state();
        let Standing::Entering(accepted) = state.memory.standing() else { return Ok(()) };
        let accepted = accepted.clone();
        let is_source = state.attached.as_ref().is_some_and(|attached| {
            attached.timeline == timeline && attached.source == accepted.source && !attached.withholds
        });
        if !is_source || !self.has_place(&mut state, timeline, files, durable, &accepted.place) {
            return Ok(());
        }
        // A place in a file that nothing tells from others of its name does not say by itself that the history is held.
        if accepted.place.identity == 0 && !held().contains_state(&accepted.history) {
            return Ok(());
        }
        if let Some(memory) = state.memory.enter(|_| true) {
            self.write(&mut state, memory, None)?;
            tracing::info!(
                epoch = accepted.ballot.epoch,
                "this node counts in the quorum: its copy of {} has everything that was agreed on",
                accepted.source
            );
            drop(state);
            self.published.wake_all();
        }
        Ok(())
    }

    /// Whether a timeline has a place. A file that cannot be read is looked at again. Of a place without identity: whether it has
    /// such a file so far. A new timeline of the source begins with that file or before it.
    fn has_place(
        &self,
        state: &mut State,
        timeline: &Path,
        files: &[String],
        durable: &Position,
        place: &Place,
    ) -> bool {
        let Some(index) = files.iter().position(|file| *file == place.file) else { return false };
        let is_live = index + 1 == files.len();
        let path = timeline.join(&place.file);
        let end = match is_live && *durable.file == *place.file {
            true => durable.offset,
            false => self.storage.look(&path).map_or(0, |found| found.len),
        };
        let identities = &mut state.identities;
        let mut is_same =
            || place.identity == 0 || identities.of(&*self.storage, &path, end) == Some(place.identity);
        end >= place.offset && is_same()
    }

    /// Where the copy of `live` ends, as others know it.
    fn place(&self, state: &mut State, live: &Live) -> Option<Place> {
        let end = live.end();
        let identity = state.identities.of(&*self.storage, &live.timeline.join(&*live.file), end)?;
        Some(Place { file: live.file.to_string(), identity, offset: end })
    }

    /// Where the copy ends of the server from which it is received now, and that server. Nothing that this node has confirmed or
    /// acknowledged lies behind that place.
    pub fn end(&self) -> Option<(String, Place)> {
        let live = self.published.live()?;
        let mut state = self.state();
        let source =
            state.attached.as_ref().filter(|attached| attached.timeline == live.timeline)?.source.clone();
        let mut place = self.place(&mut state, &live)?;
        let durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if *durable.file == *place.file {
            place.offset = place.offset.max(durable.offset);
        }
        Some((source, place))
    }

    /// Whether the copy of the server from which it is received has a place.
    pub fn has(&self, files: &[String], place: &Place) -> bool {
        let Some(live) = self.published.live() else { return false };
        let durable = Position { file: live.file.clone(), offset: live.end() };
        self.has_place(&mut self.state(), &live.timeline, files, &durable, place)
    }

    /// What this node tells the others. `accepted`: with the source that it has accepted.
    pub fn told(&self, with_accepted: bool) -> Option<Told> {
        let live = self.published.live();
        let mut state = self.state();
        let node = state.uuid?;
        let standing = match state.memory.standing() {
            Standing::Counting(accepted) => Some((accepted.ballot.epoch, accepted.source.clone())),
            _ => None,
        };
        let attached = state.attached.clone();
        let confirmation =
            standing.zip(attached).zip(live).and_then(|(((epoch, source), attached), live)| {
                let is_of_epoch = attached.source == source && attached.timeline == live.timeline;
                let place = is_of_epoch.then(|| self.place(&mut state, &live)).flatten()?;
                Some(Confirmation { epoch, place, withholds: attached.withholds })
            });
        Some(Told {
            node,
            nodes: self.nodes(),
            accepted: state.memory.accepted().filter(|_| with_accepted).cloned(),
            is_blank: state.memory.accepted().is_none(),
            promised: promised(&state.memory),
            confirmation,
        })
    }

    /// Another node has told something, or, with an error, is not heard any more.
    ///
    /// # Errors
    /// When what it told counts and cannot be written down.
    pub fn hear(&self, other: usize, told: Result<Told, String>) -> Result<(), NodeError> {
        let mut state = self.state();
        let told = match told {
            Ok(told) => told,
            Err(error) => {
                state.heard[other] =
                    Heard { accepted: state.heard[other].accepted.clone(), told: None, error: Some(error) };
                return Ok(());
            }
        };
        let heard = &mut state.heard[other];
        if let Some(accepted) = &told.accepted {
            heard.accepted = Some(accepted.clone());
        }
        heard.told = Some(told);
        let taken = self.follow(&mut state, other);
        state.heard[other].error = of_another_founding(&state.memory, state.heard[other].accepted.as_ref());
        self.count(&mut state, other);
        taken
    }

    /// A later epoch that another has accepted; what was promised against it, or is blank, stays as it is. That is told once, and
    /// followed at each word: where it could not be written down, it is tried again.
    fn follow(&self, state: &mut State, other: usize) -> Result<(), NodeError> {
        let Some(accepted) = state.heard[other].accepted.clone() else { return Ok(()) };
        if state.memory.accepted().map(|own| own.ballot) == Some(accepted.ballot) {
            return Ok(());
        }
        self.leave(state, &accepted)?;
        match state.memory.accept(&accepted) {
            Ok(memory) => self.take(state, memory),
            Err(_) => Ok(()),
        }
    }

    /// A file has begun: what others told of it before counts now.
    pub fn file_begins(&self) {
        let mut state = self.state();
        for other in 0..self.others.len() {
            self.count(&mut state, other);
        }
    }

    /// Counts what another node has told, where it is of this epoch and of a file that this copy has.
    fn count(&self, state: &mut State, other: usize) {
        let epoch = self.epoch();
        let Some(confirmation) = state.heard[other].told.as_ref().and_then(|told| told.confirmation.clone())
        else {
            return;
        };
        let Some(attached) = state.attached.clone().filter(|_| epoch > 0 && confirmation.epoch == epoch)
        else {
            return;
        };
        // What a source lacks that comes back is looked at by each node for itself, and counts for nobody until it has everything.
        if confirmation.withholds || attached.withholds {
            return;
        }
        let Some(live) = self.published.live().filter(|live| live.timeline == attached.timeline) else {
            return;
        };
        let place = confirmation.place;
        // Of a file before the live one nothing is waited for that the next confirmation does not cover.
        let path = live.timeline.join(&place.file);
        let is_live = *live.file == *place.file;
        let end = if is_live { live.end() } else { self.storage.look(&path).map_or(0, |found| found.len) };
        if state.identities.of(&*self.storage, &path, end) == Some(place.identity) {
            let at = Position { file: place.file.as_str().into(), offset: place.offset };
            self.published.confirmations().confirm(live.generation, &self.others[other], &at);
        }
    }

    /// Does what a promoter asks for, durably, and answers. `held` says what the copy holds on stable storage; it is asked when
    /// the promise is written down.
    ///
    /// # Errors
    /// When the memory stands against it, or cannot be written.
    pub fn answer(&self, request: &Request, held: impl FnOnce() -> GtidState) -> Result<Reply, NodeError> {
        let mut state = self.state();
        let node = state.uuid.ok_or(NodeError::NotReady)?;
        match request {
            Request::Promise(_, Kind::Joining(joiner)) if state.is_complete_without(*joiner) => {
                return Err(Refusal::Complete.into());
            }
            Request::Accept(accepted) => self.leave(&mut state, accepted)?,
            _ => {}
        }
        let memory = match request {
            Request::Look => state.memory.clone(),
            Request::Promise(ballot, kind) => state.memory.promise(*ballot, *kind)?,
            Request::Succeed(ballot, seen) => state.memory.succeed(*ballot, *seen)?,
            Request::Record(accepted) => state.memory.record(accepted)?,
            Request::Accept(accepted) => state.memory.accept(accepted)?,
        };
        self.take(&mut state, memory)?;
        let promised = promised(&state.memory);
        if matches!(request, Request::Record(_) | Request::Accept(_)) {
            return Ok(Reply { node, promised, keeps: false, promise: None });
        }
        let keeps = state.kept.is_some();
        let held = state.kept.clone().unwrap_or_else(held);
        let held = Held { entered: state.memory.entered(), gtids: held };
        let promise = Promise { held, accepted: state.memory.accepted().cloned() };
        drop(state);
        Ok(Reply { node, promised, keeps, promise: Some((promise, self.end())) })
    }

    /// A blank node has promoted the present source and joins. `since`: what [`Node::changes`] said when the node was blank and had asked
    /// for no promise yet. One that has belonged to the quorum meanwhile, and forgot it, may have confirmed what is not in the promises.
    ///
    /// # Errors
    /// When it is not blank, or was not all the time, or that cannot be written down.
    pub fn join(&self, accepted: &Accepted, since: u64) -> Result<(), NodeError> {
        let mut state = self.state();
        if self.changes() != since {
            return Err(NodeError::NotBlankSince);
        }
        let memory = state.memory.join(accepted)?;
        self.take(&mut state, memory)
    }

    /// The copy has a gap: the node votes no more before it has joined anew.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn forget(&self) -> Result<(), NodeError> {
        let mut state = self.state();
        self.write(&mut state, Memory::default(), None)
    }

    /// Another machine has taken this one's place, by a later epoch: this one votes no more before it has joined anew.
    fn leave(&self, state: &mut State, accepted: &Accepted) -> Result<(), NodeError> {
        let is_of_later = |known: &Accepted| {
            known.founded == accepted.founded && known.ballot.epoch < accepted.ballot.epoch
        };
        let is_member = state.uuid.is_none_or(|uuid| accepted.members.contains(&uuid));
        if is_member || !state.memory.accepted().is_some_and(is_of_later) {
            return Ok(());
        }
        tracing::error!(
            "quorum: another machine has taken the place of this one, by epoch {}. This node counts no more. It joins anew, in the place of \
             a node that is gone. If its folder is of a machine that was replaced, stop this binlogd for good",
            accepted.ballot.epoch
        );
        self.write(state, Memory::default(), None)
    }

    /// Takes over a memory that may have changed.
    fn take(&self, state: &mut State, memory: Memory) -> Result<(), NodeError> {
        if memory == state.memory {
            return Ok(());
        }
        let before = state.memory.accepted().map(|accepted| accepted.ballot);
        let kept = state.kept.clone();
        self.write(state, memory, kept)?;
        if let Some(accepted) = state.memory.accepted().filter(|accepted| Some(accepted.ballot) != before) {
            let source = accepted.source.clone();
            let words = format!("{source} is the source of epoch {}", accepted.ballot.epoch);
            tracing::info!("quorum: {words}");
            if state.attached.as_ref().is_some_and(|attached| attached.source != source) {
                (self.on_change)(words);
            }
        }
        self.published.wake_all();
        Ok(())
    }

    /// Nothing of a memory counts before it is durable.
    fn write(&self, state: &mut State, memory: Memory, kept: Option<GtidState>) -> Result<(), NodeError> {
        let path = self.folder.join(QUORUM_FILE);
        let text = to_record(&memory, kept.as_ref())
            .map_err(|error| NodeError::Damaged { path: path.clone(), error })?;
        replace_file(&*self.storage, &path, text.as_bytes()).map_err(|error| NodeError::Io {
            action: "write",
            path,
            error,
        })?;
        (state.memory, state.kept) = (memory, kept);
        self.changes.fetch_add(1, SeqCst);
        self.show_epoch(state);
        Ok(())
    }

    /// Shows in which epoch this node counts. What was confirmed in another one does not.
    fn show_epoch(&self, state: &State) {
        let epoch = match state.memory.standing() {
            Standing::Counting(accepted) => accepted.ballot.epoch,
            _ => 0,
        };
        if self.epoch.swap(epoch, SeqCst) != epoch {
            self.published.confirmations().forget();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a node that is heard never counts for this one: two founders at once got some of the nodes each.
fn of_another_founding(memory: &Memory, accepted: Option<&Accepted>) -> Option<String> {
    let (own, other): (&Ballot, &Ballot) = (&memory.accepted()?.founded, &accepted?.founded);
    (own != other).then(|| {
        format!(
            "it belongs to a quorum that began with {other}, and this node to one that began with {own}: at the nodes of the smaller part, \
             end binlogd, remove {QUORUM_FILE} and start it, and they join the others"
        )
    })
}

/// The highest epoch that a memory has promised, be it to a founder; 0 for none.
fn promised(memory: &Memory) -> u64 {
    memory.promised().max(memory.founding().promised.as_ref()).map_or(0, |ballot| ballot.epoch)
}
