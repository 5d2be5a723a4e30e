//! The end of an older timeline that a peer holds and the copy lacks: looked for once the peer can be asked, said, and left there.
//!
//! A timeline that another one has followed is not written any more: what was lost with the source was found out by what it held
//! when it ended. So where a peer could not be asked in time, what only the peer holds stays there, and `binlogd rescue` on the
//! peer's machine hands it over. An operator must know of it. A small thread asks those peers until each has answered, and holds
//! nothing that the copy lacks any more: what was handed over comes here with the source's log.

use super::older_look::OlderLook;
use crate::attempt::attempt_error::AttemptError;
use crate::attempt::context::Upstream;
use crate::peers::peer::{PEER_ANSWER_MAX, PeerSays, STACK_BYTES, in_words, more_than};
use crate::peers::peer_fetch::Fetch;
use binlog::Position;
use binlog::folder::timelines;
use binlog::scan::{TAIL_BYTES_MAX, scan_file};
use binlog::storage::ReadAt;
use binlog::timeline::extent::{Extent, extents_on_disk};
use binlog::timeline::gaps::Gaps;
use binlog::timeline::held::HeldGtids;
use codec::dump_stream::Frame;
use codec::event::boundary::BoundaryTracker;
use codec::event::{ChecksumAlgorithm, EventHeader, EventType, FormatDescription};
use codec::gtid::GtidState;
use source::clock::Clock;
use source::link::{End, Link};
use source::look::read_dump;
use source::negotiate::{checksum_outside_files, look_request};
use status::count;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use thiserror::Error;
use wire::WireError;

/// Pauses before peers are asked again: the first, and the longest, to which each is twice the one before.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Of one timeline of a peer so much is read at most: a time, bytes, and transactions, each of which may be an interval of its own.
/// What is told of more is the beginning.
const LOOK_MAX: Duration = Duration::from_secs(120);
const LOOK_BYTES_MAX: u64 = 4 << 30;
const LOOK_TRANSACTIONS_MAX: u64 = 1_000_000;

/// Why it could not be found out.
#[derive(Debug, Error)]
enum LookError {
    #[error("{0}")]
    Peer(String),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Attempt(#[from] AttemptError),
    #[error("the own copy cannot be read to compare it: {0}")]
    Copy(#[from] io::Error),
}

/// What a peer has behind the end of a timeline.
#[derive(Debug, PartialEq, Eq)]
struct Behind {
    /// Of ours.
    timeline: String,
    gtids: GtidState,
    transactions: u64,
}

/// What a peer holds and the copy lacks.
#[derive(Debug)]
pub struct AtPeer {
    /// Behind the end of a timeline: by GTID, empty without GTIDs, and how many transactions; for MariaDB of how many servers.
    pub behind: Vec<(GtidState, u64)>,
    /// Timelines, in words, that end in transactions in whose place the copy has others.
    pub other: Vec<String>,
}

/// A peer that is looked at until it has answered and holds nothing more.
#[derive(Default)]
struct Looked {
    known: Option<Behind>,
    /// What was read of it, by what both had of a timeline then: it is not read again as long as that stays so.
    read: Vec<((Option<Extent>, Extent), Read)>,
}

/// Transactions of a peer.
#[derive(Debug, Clone)]
struct Read {
    gtids: GtidState,
    transactions: u64,
}

impl Upstream {
    /// Where there are older timelines: looks once whether peers hold more of them.
    pub(crate) fn look_for_older(&self, look: &OlderLook) {
        if self.config.peers.is_empty() {
            return;
        }
        if timelines(&*self.storage, &self.source_folder()).is_ok_and(|all| all.len() > 1) {
            self.look_for_older_at(look, &(0..self.config.peers.len()).collect::<Vec<_>>());
        }
    }

    /// Asks those peers, by their numbers, until each has answered or a stop is requested. Nobody waits for that.
    pub(crate) fn look_for_older_at(&self, look: &OlderLook, which: &[usize]) {
        if !self.clock.has_threads() || !look.want(which) {
            return;
        }
        let (upstream, of_thread) = (self.clone(), look.clone());
        let thread = std::thread::Builder::new()
            .name(format!("older-{}", self.config.name))
            .stack_size(STACK_BYTES)
            .spawn(move || upstream.look_until_answered(&of_thread));
        if let Err(error) = thread {
            look.failed();
            tracing::warn!(
                source = self.config.name,
                "peers are not asked for older timelines: no thread is left: {error}"
            );
        }
    }

    fn look_until_answered(&self, look: &OlderLook) {
        let mut left: BTreeMap<usize, Looked> = BTreeMap::new();
        let mut pause = PAUSE_MIN;
        while let Some(added) = look.take(!left.is_empty()) {
            if !added.is_empty() {
                pause = PAUSE_MIN;
            }
            for number in added {
                left.entry(number).or_default();
            }
            left.retain(|number, looked| match self.look_at_older(*number, looked) {
                Ok(found) => {
                    if found != looked.known {
                        self.say_what_is_there(*number, found.as_ref());
                        pause = PAUSE_MIN;
                    }
                    looked.known = found;
                    looked.known.is_some()
                }
                Err(error) => {
                    self.show_peer_error(*number, error.to_string());
                    true
                }
            });
            let began = self.clock.now();
            while !left.is_empty()
                && !look.has_news()
                && self.clock.now().saturating_duration_since(began) < pause
            {
                if self.clock.pause(&self.stop, PAUSE_MIN) || self.stop.is_requested() {
                    return;
                }
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// What a peer alone holds; of several timelines, of the newest.
    fn look_at_older(&self, number: usize, looked: &mut Looked) -> Result<Option<Behind>, LookError> {
        let found = self.look_beyond(number, looked, false)?.pop();
        let now = self.clock.wall_time();
        self.update_peer(number, |peer| (peer.asked_at, peer.error) = (Some(now), None));
        Ok(found)
    }

    /// What a peer, by its number, holds and the copy lacks: all that a rescue from this copy alone would not hand over. The copy is
    /// only read.
    ///
    /// # Errors
    /// In words, when the peer could not be asked for all of it.
    pub fn lacked_of_peer(&self, number: usize) -> Result<AtPeer, String> {
        let ask = || {
            let behind = self.look_beyond(number, &mut Looked::default(), true)?;
            let behind = behind.into_iter().map(|behind| (behind.gtids, behind.transactions)).collect();
            Ok(AtPeer { behind, other: self.other_ends(number)? })
        };
        ask().map_err(|error: LookError| error.to_string())
    }

    /// Timelines of a peer that part from ours: a source that lost its tail has written on, and where this copy never had what was lost,
    /// no place tells it.
    fn other_ends(&self, number: usize) -> Result<Vec<String>, LookError> {
        let host = &self.config.peers[number];
        let says = self.ask_peer(host).map_err(|error| LookError::Peer(error.to_string()))?;
        let ours = extents_on_disk(&*self.storage, &self.source_folder())?;
        let unjoined = more_than("", &ours, &says.extents).map_err(LookError::Peer)?.unjoined;
        let mut other = Vec::new();
        for theirs in &says.extents {
            let is_of_ours = ours.iter().any(|ours| ours.server_uuid() == theirs.server_uuid());
            // Of one of our servers, and nothing of it is here: the names of its files are those of others.
            let mut joins = unjoined.contains(theirs).then_some(!is_of_ours);
            for ours in ours.iter().filter(|ours| ours.may_be(theirs)) {
                joins = Some(joins == Some(true) || self.joins(number, &says, ours, theirs)?);
            }
            if joins == Some(false) {
                other.push(in_words(theirs));
            }
        }
        Ok(other)
    }

    /// Whether both have the same bytes where the shorter one ends. True where our file is not here any more.
    fn joins(
        &self,
        number: usize,
        says: &PeerSays,
        ours: &Extent,
        theirs: &Extent,
    ) -> Result<bool, LookError> {
        let is_longer = theirs.cmp_end(&ours.last, ours.end) == Some(Ordering::Greater);
        let (last, limit) = if is_longer { (&ours.last, u64::MAX) } else { (&theirs.last, theirs.end) };
        let path = self.source_folder().join(&ours.timeline).join(last);
        if !self.storage.exists(&path)? {
            return Ok(true);
        }
        let file = self.storage.open_read(&path)?;
        let scan = scan_file(&*file, limit, |_| {})?;
        if !is_longer && scan.boundary != theirs.end {
            return Ok(false);
        }
        let tail = read_tail(&*file, scan.tail_start, scan.boundary)?;
        let at = Position::new(last.as_str(), scan.boundary);
        let end = End { at, format: scan.format.as_ref(), tail: &tail, ahead: 0 };
        let (host, until) = (&self.config.peers[number], self.clock.now() + LOOK_MAX);
        let fetch = Fetch { upstream: self, host, says, timeline: &theirs.timeline, until };
        match fetch.link(&end) {
            Ok(link) => Ok(!matches!(link, Link::OtherFile | Link::OtherHistory { .. })),
            Err(error) => {
                let error = error.into();
                if Fetch::is_other_history(&error) { Ok(false) } else { Err(error.into()) }
            }
        }
    }

    /// `with_newest`: behind the end of the newest timeline, too.
    fn look_beyond(
        &self,
        number: usize,
        looked: &mut Looked,
        with_newest: bool,
    ) -> Result<Vec<Behind>, LookError> {
        let host = &self.config.peers[number];
        let says = self.ask_peer(host).map_err(|error| LookError::Peer(error.to_string()))?;
        let folder = self.source_folder();
        let newest = timelines(&*self.storage, &folder)?.pop();
        let newest = newest.as_deref().and_then(|newest| newest.file_name()?.to_str()).unwrap_or_default();
        let ours = extents_on_disk(&*self.storage, &folder)?;
        let more = more_than(newest, &ours, &says.extents).map_err(LookError::Peer)?;
        let of_newest = ours.iter().find(|ours| with_newest && ours.timeline == newest);
        let of_newest = of_newest
            .into_iter()
            .flat_map(|ours| more.of_newest.iter().map(move |theirs| (Some(ours.clone()), theirs.clone())));
        let older = more.of_older.into_iter().map(|(ours, theirs)| (Some(ours), theirs));
        // Those of which this copy has nothing at all, too.
        let unjoined = more.unjoined.into_iter().map(|theirs| (None, theirs));
        let pairs: Vec<_> = older.chain(unjoined).chain(of_newest).collect();
        looked.read.retain(|(pair, _)| pairs.contains(pair));
        let mut found = Vec::new();
        for pair in pairs {
            let read = match looked.read.iter().find(|(known, _)| *known == pair) {
                Some((_, read)) => read.clone(),
                None => {
                    let read = self.behind(number, &says, pair.0.as_ref(), &pair.1)?;
                    looked.read.push((pair.clone(), read.clone()));
                    read
                }
            };
            found.extend(self.alone_there(&says, &pair, read)?);
        }
        Ok(found)
    }

    /// What of that no timeline of ours has.
    fn alone_there(
        &self,
        says: &PeerSays,
        (ours, theirs): &(Option<Extent>, Extent),
        read: Read,
    ) -> Result<Option<Behind>, LookError> {
        if read.transactions == 0 {
            return Ok(None);
        }
        let folder = self.source_folder();
        let held = HeldGtids::read(&*self.storage, &folder, says.identity.kind)?;
        // What was never copied is lacking here, whatever later files say of it.
        let held =
            Gaps::read(&*self.storage, &folder)?.stored(held.map(|held| held.all()).unwrap_or_default());
        let gtids = read.gtids.subtract(&held);
        let transactions = if read.gtids.is_empty() { read.transactions } else { count(&gtids) };
        let timeline = ours.as_ref().unwrap_or(theirs).timeline.clone();
        Ok((transactions > 0).then_some(Behind { timeline, gtids, transactions }))
    }

    fn say_what_is_there(&self, number: usize, found: Option<&Behind>) {
        let host = &self.config.peers[number];
        match found {
            Some(Behind { timeline, gtids, transactions }) => tracing::error!(
                source = self.config.name,
                peer = %host,
                timeline,
                transactions,
                "the peer holds transactions at the end of an older timeline that this copy lacks: {}. They were acknowledged \
                 by the peer alone. Run binlogd rescue on its machine: it hands them over",
                if gtids.is_empty() { "without GTIDs".to_owned() } else { gtids.to_line() }
            ),
            None => tracing::info!(
                source = self.config.name,
                peer = %host,
                "the peer holds nothing any more that this copy lacks"
            ),
        }
        self.update_peer(number, |peer| {
            peer.only_there_timeline = found.map(|behind| behind.timeline.clone());
            peer.only_there_transactions = found.map_or(0, |behind| behind.transactions);
            peer.only_there = found.map(|behind| behind.gtids.to_line()).unwrap_or_default();
        });
    }

    /// What the peer has behind the end of one of our older timelines, or in one of which we have nothing. Nothing when its
    /// timeline is another one.
    fn behind(
        &self,
        number: usize,
        says: &PeerSays,
        ours: Option<&Extent>,
        theirs: &Extent,
    ) -> Result<Read, LookError> {
        let nothing = Read { gtids: GtidState::empty(says.identity.kind), transactions: 0 };
        let (host, until) = (&self.config.peers[number], self.clock.now() + LOOK_MAX);
        let fetch = Fetch { upstream: self, host, says, timeline: &theirs.timeline, until };
        let (file, at) = match ours {
            None => (theirs.first.as_str(), 4),
            Some(ours) => {
                let file =
                    self.storage.open_read(&self.source_folder().join(&ours.timeline).join(&ours.last))?;
                let scan = scan_file(&*file, u64::MAX, |_| {})?;
                let Some(format) = &scan.format else { return Ok(nothing) };
                let tail = read_tail(&*file, scan.tail_start, scan.boundary)?;
                let at = Position::new(ours.last.as_str(), scan.boundary);
                let end = End { at, format: Some(format), tail: &tail, ahead: 0 };
                match fetch.link(&end) {
                    Ok(Link::GoesOn { more: true } | Link::Followed(_)) => {}
                    Ok(_) => return Ok(nothing),
                    Err(error) => {
                        let error = error.into();
                        // A timeline in which there is no such place is another one.
                        return if Fetch::is_other_history(&error) { Ok(nothing) } else { Err(error.into()) };
                    }
                }
                (ours.last.as_str(), scan.boundary)
            }
        };
        let request = look_request(self.clock.jitter().max(1), file, at);
        let mut collect = Collect {
            checksum: checksum_outside_files(&says.identity),
            at,
            tracker: BoundaryTracker::new(),
            gtids: GtidState::empty(says.identity.kind),
            transactions: 0,
            bytes: 0,
            until,
            clock: &*self.clock,
        };
        read_dump(fetch.connect()?, &request, PEER_ANSWER_MAX, &mut |frame| collect.visit(frame))?;
        Ok(Read { gtids: collect.gtids, transactions: collect.transactions })
    }

    fn source_folder(&self) -> PathBuf {
        self.data_dir.join(&self.config.name)
    }
}

fn read_tail(file: &dyn ReadAt, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let len = end.saturating_sub(start);
    if len > TAIL_BYTES_MAX {
        return Ok(Vec::new());
    }
    let mut tail = vec![0; usize::try_from(len).unwrap_or(0)];
    let read = file.read_full_at(&mut tail, start)?;
    tail.truncate(read);
    Ok(tail)
}

/// The transactions of a dump, as many of them as are read at most.
struct Collect<'a> {
    checksum: ChecksumAlgorithm,
    /// Where the next event stands in its file.
    at: u64,
    tracker: BoundaryTracker,
    gtids: GtidState,
    transactions: u64,
    /// How many were read.
    bytes: u64,
    /// When to be content with what was read.
    until: Instant,
    clock: &'a dyn Clock,
}

impl Collect<'_> {
    fn visit(&mut self, frame: Frame<'_>) -> Result<ControlFlow<()>, WireError> {
        match frame {
            Frame::Event { bytes, .. } => {
                self.bytes += bytes.len() as u64;
                self.event(bytes)?;
            }
            Frame::Part { offset, bytes, .. } => {
                self.bytes += bytes.len() as u64;
                if offset == 0 {
                    self.advance(bytes)?;
                }
            }
            Frame::EmptyPacket => {}
            Frame::End => return Ok(ControlFlow::Break(())),
            Frame::SourceError(error) => return Err((*error).into()),
        }
        let is_enough = self.bytes >= LOOK_BYTES_MAX
            || self.transactions >= LOOK_TRANSACTIONS_MAX
            || self.clock.now() >= self.until;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn event(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let header = EventHeader::parse(bytes).map_err(senseless)?;
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            self.checksum = FormatDescription::parse(bytes).map_err(senseless)?.checksum;
            if header.log_pos == 0 {
                return Ok(()); // Sent again.
            }
            (self.at, self.tracker) = (4, BoundaryTracker::new());
        }
        let is_resent = header.event_type == EventType::MARIADB_START_ENCRYPTION && header.log_pos == 0;
        if header.is_artificial() || header.event_type.is_heartbeat() || is_resent {
            return Ok(());
        }
        self.advance(&bytes[..bytes.len().saturating_sub(self.checksum.len())])
    }

    /// Follows an event, or the beginning of a large one.
    fn advance(&mut self, event: &[u8]) -> Result<(), WireError> {
        let header = EventHeader::parse(event).map_err(senseless)?;
        let end = self.at + u64::from(header.event_size);
        let step = self.tracker.advance(&header, event, self.at, end).map_err(senseless)?;
        self.at = end;
        if step.transaction {
            self.transactions += 1;
            if let Some(id) = self.tracker.committed() {
                let _ = self.gtids.insert(id);
            }
        }
        Ok(())
    }
}

fn senseless(error: codec::event::EventError) -> WireError {
    WireError::Protocol { during: "reading from a peer", what: error.to_string() }
}
