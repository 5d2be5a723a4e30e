//! The live values of one source: written by its receiver thread, read by anybody.

mod semi_sync;

use super::archive::ArchiveBook;
use super::events::{Events, Level};
use super::facts::{SourceFacts, Watched};
use super::gtids::{GtidChanges, GtidRungs, PublishedGtids};
use super::ladder::Ladder;
use super::lock::lock;
use super::past::LastError;
use super::session::Session;
use super::snapshot::{GtidTexts, Latencies, SourceStatus};
use super::state::{DiskHang, RecoveryStatus, SourceState, Stuck};
use crate::figures::counters::Counters;
use crate::figures::history::{History, HistoryStatus, Reading, Recent};
use crate::figures::known_count::KnownCount;
use crate::figures::latency::LatencyHistogram;
use crate::figures::resources::Resources;
use crate::judge::verdict::Verdict;
use crate::quorum::QuorumStatus;
use crate::semi_sync::ack_replicas::AckReplicas;
use crate::semi_sync::book::{SemiSyncBook, SemiSyncSignal};
use crate::state::name::StateName;
use crate::state::pulse::{Place, Pulse};
use crate::units::time::now_in_milliseconds;
use codec::event::FormatDescription;
use config::FsyncMode;
use jiff::Timestamp;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// No backlog is known yet.
const NOT_YET: u64 = u64::MAX;
/// A copy that is no further behind counts as caught up: a busy source never says that it has nothing newer.
const CAUGHT_UP_SECONDS: u64 = 60;

/// Set in `event_time` when the source said that it has nothing newer; the low 32 bits hold seconds since 1970.
const CAUGHT_UP: u64 = 1 << 63;
/// Set in `event_time` when its low 32 bits hold the timestamp of an event.
const TIME_KNOWN: u64 = 1 << 62;

/// The live values of one source, shared as `Arc` between its receiver thread and all readers.
///
/// The methods named `publish_` and the public fields are for every batch: they do not allocate, and their locks are
/// only ever held for a copy of a few words. The others are for changes of state and may allocate.
pub struct SourceMonitor {
    name: String,
    /// Counts since the daemon started: `monitor.counters.events.fetch_add(n, Relaxed)`.
    pub counters: Counters,
    /// How long each durable write of the journal and each fdatasync of the binary log took.
    pub sync_latency: LatencyHistogram,
    /// From the arrival of a packet that wants an acknowledgement to the acknowledgement leaving.
    pub acknowledge_latency: LatencyHistogram,
    /// The receivers further down that acknowledgements wait for.
    pub ack_replicas: AckReplicas,
    quorum: Mutex<Option<Arc<dyn Fn() -> QuorumStatus + Send + Sync>>>,
    /// Up to where the archive has the history.
    pub archive: ArchiveBook,
    /// Sealed files without a search index.
    pub search_index_missing: KnownCount,
    /// Of these, those of which none could be made.
    pub search_index_failed: KnownCount,
    /// Commit of the oldest transaction that is held, in microseconds since 1970.
    pub oldest_commit: KnownCount,
    /// What the source takes of the machine.
    pub resources: Resources,
    fsync_mode: AtomicU8,
    event_time: AtomicU64,
    /// How much of the live file a recovery has checked, and of how much, in bytes; both 0 outside one.
    recovery: [AtomicU64; 2],
    /// Bytes that were stored when the copy had caught up for the first time; [`NOT_YET`] before.
    backlog: AtomicU64,
    /// Bytes that were written and cut off again.
    discarded: AtomicU64,
    /// Of the receiving thread.
    pub pulse: Pulse,
    ladder: Mutex<Ladder>,
    gtids: PublishedGtids,
    /// The live file and its format description.
    live_format: Mutex<Option<(Arc<str>, FormatDescription)>>,
    session: Mutex<Session>,
    semi_sync_signal: SemiSyncSignal,
    /// The last hour. No receiving thread touches it.
    history: Mutex<History>,
}

impl SourceMonitor {
    /// The monitor of the source `name` before its receiver starts.
    pub fn new(name: &str) -> SourceMonitor {
        SourceMonitor {
            name: name.to_owned(),
            counters: Counters::default(),
            sync_latency: LatencyHistogram::new(),
            acknowledge_latency: LatencyHistogram::new(),
            ack_replicas: AckReplicas::default(),
            quorum: Mutex::default(),
            archive: ArchiveBook::default(),
            search_index_missing: KnownCount::default(),
            search_index_failed: KnownCount::default(),
            oldest_commit: KnownCount::default(),
            resources: Resources::default(),
            fsync_mode: AtomicU8::new(FsyncMode::SyncThenAcknowledge as u8),
            event_time: AtomicU64::new(0),
            recovery: [AtomicU64::new(0), AtomicU64::new(0)],
            backlog: AtomicU64::new(NOT_YET),
            discarded: AtomicU64::new(0),
            pulse: Pulse::default(),
            ladder: Mutex::default(),
            gtids: PublishedGtids::default(),
            live_format: Mutex::default(),
            session: Mutex::new(Session {
                state: SourceState::Starting,
                without_since: Instant::now(),
                facts: SourceFacts::default(),
                last_error: None,
                disk_hang: None,
                stuck: None,
                semi_sync: SemiSyncBook::default(),
                disk_was_full: false,
                events: Events::default(),
                epoch: None,
            }),
            semi_sync_signal: SemiSyncSignal::new(name),
            history: Mutex::default(),
        }
    }

    /// This binlogd is a node of the source's quorum: `status` says how that stands.
    pub fn is_node(&self, status: impl Fn() -> QuorumStatus + Send + Sync + 'static) {
        *lock(&self.quorum) = Some(Arc::new(status));
    }

    /// The source has no quorum, or none any more after a reload.
    pub fn is_no_node(&self) {
        *lock(&self.quorum) = None;
    }

    /// How the quorum stands; `None` where the source has none.
    pub fn quorum(&self) -> Option<QuorumStatus> {
        let status = lock(&self.quorum).clone();
        status.map(|status| status())
    }

    /// The source's name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Publishes all four positions at once. No allocation; file names are shared, not copied.
    pub fn publish_positions(&self, ladder: &Ladder) {
        debug_assert!(ladder.is_ordered(self.fsync_mode()), "rungs out of order: {ladder:?}");
        lock(&self.ladder).advance_to(ladder);
    }

    /// The four positions of one moment.
    pub fn positions(&self) -> Ladder {
        lock(&self.ladder).clone()
    }

    /// Publishes the timestamp of the newest stored event, in seconds since 1970 as its header says. Leave out
    /// artificial events, whose timestamp is 0. The source is no longer known to have nothing newer.
    pub fn publish_event_time(&self, seconds: u32) {
        self.event_time.store(TIME_KNOWN | u64::from(seconds), Relaxed);
    }

    /// The source said by a heartbeat at the received position that it has nothing newer.
    pub fn publish_caught_up(&self) {
        self.event_time.fetch_or(CAUGHT_UP, Relaxed);
    }

    /// The receiving thread begins to wait for the source, or has something to do with what came. The price is a store.
    pub fn publish_reading(&self, reads: bool) {
        self.pulse.beat(if reads { Place::Reads } else { Place::Works });
    }

    /// Whether the receiving thread waits for the source. One that waits for its disk reads nothing, whatever has arrived.
    pub fn is_reading(&self) -> bool {
        self.pulse.feel().1 == Place::Reads
    }

    /// How much of the live file a recovery has checked, in bytes, and of how much; 0 and 0 at its end.
    pub fn publish_recovery(&self, checked: u64, of: u64) {
        self.recovery[0].store(checked, Relaxed);
        self.recovery[1].store(of, Relaxed);
    }

    /// How far a recovery is; `None` outside one.
    fn recovery(&self) -> Option<RecoveryStatus> {
        let [checked_bytes, of_bytes] = [self.recovery[0].load(Relaxed), self.recovery[1].load(Relaxed)];
        (of_bytes > 0).then_some(RecoveryStatus { checked_bytes, of_bytes })
    }

    /// Changes the GTID sets: they grow as the rungs advance, and are put in place whole at the start and at a new timeline. Both
    /// are seen together. Whoever reads them is not waited for.
    pub fn publish_gtids(&self, change: impl FnOnce(&mut GtidChanges)) {
        self.gtids.change(change);
    }

    /// The GTID sets of one moment. Give them back soon: as long as they are kept, the next reader needs a copy.
    pub fn gtids(&self) -> GtidRungs {
        self.gtids.read()
    }

    /// The mode in use, [`FsyncMode::SyncThenAcknowledge`] until this is called.
    pub fn set_fsync_mode(&self, mode: FsyncMode) {
        self.fsync_mode.store(mode as u8, Relaxed);
    }

    fn fsync_mode(&self) -> FsyncMode {
        match self.fsync_mode.load(Relaxed) {
            0 => FsyncMode::WriteThenAcknowledge,
            _ => FsyncMode::SyncThenAcknowledge,
        }
    }

    /// Changes the state. Whatever belongs to the session that ended is cleared: connection time, TLS, semi-sync, and
    /// how far the copy is behind. An error in the state becomes the last error.
    pub fn set_state(&self, state: SourceState) {
        let now = now_in_milliseconds();
        let mut session = lock(&self.session);
        let session = &mut *session;
        if session.state == state {
            return;
        }
        match &state {
            SourceState::Connecting { host } => session.facts.turn_to(host),
            SourceState::BackingOff { error, .. } | SourceState::WaitingForSpace { error } => {
                session.last_error = Some(LastError { at: now, message: error.clone() });
            }
            _ => {}
        }
        session.disk_was_full = match &state {
            SourceState::WaitingForSpace { .. } => true,
            SourceState::Recovering | SourceState::Connecting { .. } => session.disk_was_full,
            _ => false,
        };
        if state.is_session() {
            session.facts.connected_since.get_or_insert(now);
            if session.state == SourceState::Withholding {
                session.semi_sync.withheld_no_more(&mut session.facts, &self.semi_sync_signal);
            }
            self.semi_sync_signal.ring();
        } else {
            if !session.state.seeks_source() {
                session.without_since = Instant::now();
            }
            session.facts.connected_since = None;
            session.facts.tls = None;
            session.facts.look_error = None;
            self.ack_replicas.session_ends();
            session.semi_sync.ends(&mut session.facts, &self.semi_sync_signal);
            self.event_time.store(0, Relaxed);
        }
        session.state = state;
        session.note_state();
    }

    /// The disk does not answer an operation of this source's, or (`None`) it does again.
    pub fn set_disk_hang(&self, hang: Option<DiskHang>) {
        let mut session = lock(&self.session);
        let was = std::mem::replace(&mut session.disk_hang, hang.clone());
        match (was, hang) {
            (None, Some(hang)) => {
                let text = format!("the disk does not answer: {}", hang.operation);
                session.events.note(Level::Critical, "disk", text);
            }
            (Some(_), None) => session.events.note(Level::Ok, "disk", "the disk answers again"),
            _ => {}
        }
    }

    /// The operation that the disk does not answer.
    pub fn disk_hang(&self) -> Option<DiskHang> {
        lock(&self.session).disk_hang.clone()
    }

    /// Something happened that no state tells.
    pub fn note(&self, level: Level, kind: &str, text: impl Into<String>) {
        lock(&self.session).events.note(level, kind, text);
    }

    /// The receiving thread does not come round, or (`None`) it does again.
    pub fn set_stuck(&self, stuck: Option<Stuck>) {
        let mut session = lock(&self.session);
        let was = std::mem::replace(&mut session.stuck, stuck.clone());
        match (was, stuck) {
            (None, Some(stuck)) => session.events.note(Level::Critical, "stuck", stuck.what),
            (Some(_), None) => {
                session.events.note(Level::Ok, "stuck", "the thread that was stuck comes round again");
            }
            _ => {}
        }
    }

    /// That the receiving thread does not come round.
    pub fn stuck(&self) -> Option<Stuck> {
        lock(&self.session).stuck.clone()
    }

    /// The state now.
    pub fn state(&self) -> SourceState {
        lock(&self.session).state()
    }

    /// How long no server could be received from, while that is tried; `None` while one is, and where the reason is here.
    pub fn source_gone_for(&self) -> Option<Duration> {
        let session = lock(&self.session);
        session.state().seeks_source().then(|| session.without_since.elapsed())
    }

    /// The state now as status shows it: the word, and what it is about.
    pub fn state_in_words(&self) -> (StateName, Option<String>) {
        let session = lock(&self.session);
        let state = session.state();
        let quorum = self.quorum();
        let replicas = self.ack_replicas.status();
        (state.name(), state.detail(&session.facts, self.recovery(), replicas, quorum.as_ref()))
    }

    /// Records an error that does not change the state by itself. The message must not hold a password.
    pub fn set_error(&self, message: impl Into<String>) {
        let error = LastError { at: now_in_milliseconds(), message: message.into() };
        lock(&self.session).last_error = Some(error);
    }

    /// Changes what is known of the source.
    pub fn update_facts(&self, change: impl FnOnce(&mut SourceFacts)) {
        lock(&self.session).change_facts(change);
    }

    /// The format description of the file whose events arrive, which tells it from another of that name.
    pub fn publish_live_format(&self, file: &Arc<str>, format: &FormatDescription) {
        *lock(&self.live_format) = Some((file.clone(), format.clone()));
    }

    /// As it was published last, with the name of its file.
    pub fn live_format(&self) -> Option<(Arc<str>, FormatDescription)> {
        lock(&self.live_format).clone()
    }

    /// The server that is being received from, acknowledged or not; `None` while no session lasts.
    pub fn watched(&self) -> Option<Watched> {
        let session = lock(&self.session);
        let facts = &session.facts;
        let host = facts.host.clone().filter(|_| session.state.is_session())?;
        Some(Watched {
            host,
            server_uuid: facts.server_uuid.clone(),
            server_id: facts.server_id,
            timeline_above: facts.timeline_above.clone(),
            since: facts.connected_since,
        })
    }

    /// What is known of the source now.
    pub fn facts(&self) -> SourceFacts {
        lock(&self.session).facts()
    }

    /// Settings of the source that readers decide by, as of the last connection.
    pub fn settings(&self) -> Arc<[(String, String)]> {
        lock(&self.session).facts.settings.clone()
    }

    /// Everything at one moment. `now` is the clock for seconds behind.
    pub fn status(&self, now: Timestamp) -> SourceStatus {
        // The positions first: the GTIDs are published before, so that who sees a place finds everything before it among them.
        let glance = self.glance(now);
        SourceStatus {
            gtid: self.gtid_texts(),
            latency: Latencies {
                sync: self.sync_latency.summary(),
                acknowledge: self.acknowledge_latency.summary(),
            },
            ..glance
        }
    }

    /// As [`status`](Self::status), without what takes long to put together: GTID sets of the copy, which may be large, and
    /// latencies since the start. For a page that is made again and again.
    pub fn glance(&self, now: Timestamp) -> SourceStatus {
        let (state, facts, last_error, semi_sync, events, disk_was_full) = {
            let session = lock(&self.session);
            let semi_sync = session.semi_sync.shown();
            let events = session.events.newest_first();
            (
                session.state(),
                session.facts(),
                session.last_error.clone(),
                semi_sync,
                events,
                session.disk_was_full,
            )
        };
        let recovery = self.recovery();
        let quorum = self.quorum();
        let (semi_sync_source, unacknowledged_commits, unasked_transactions) = semi_sync;
        SourceStatus {
            name: self.name.clone(),
            state: state.name(),
            state_detail: state.detail(&facts, recovery, self.ack_replicas.status(), quorum.as_ref()),
            stopped_by: state.stopped_by(),
            disk_was_full,
            recovery: recovery.filter(|_| state == SourceState::Recovering),
            last_error,
            seconds_behind: self.seconds_behind(now),
            host: facts.host,
            server_version: facts.server_version,
            server_uuid: facts.server_uuid,
            server_id: facts.server_id,
            timeline: facts.timeline,
            semi_sync_wanted: Some(facts.semi_sync_wanted),
            semi_sync: facts.semi_sync,
            semi_sync_source,
            look_error: facts.look_error,
            unacknowledged_commits,
            unasked_transactions,
            ack_replicas: self.ack_replicas.status(),
            quorum,
            archive: self.archive.status(now),
            search_index_missing: self.search_index_missing.get(),
            search_index_failed: self.search_index_failed.get(),
            oldest_commit: self
                .oldest_commit
                .get()
                .and_then(|micros| Timestamp::from_microsecond(i64::try_from(micros).ok()?).ok()),
            tls: facts.tls,
            tls_certificate_expires: facts.certificate_expires,
            fsync_mode: Some(self.fsync_mode() as u8),
            positions: self.positions(),
            gtid: GtidTexts::default(),
            source_lacks: facts.source_lacked.map(|lacked| lacked.to_line()),
            source_regained: facts.regained,
            gtids_given_twice: facts.given_twice.as_ref().map_or(0, |(count, _)| *count),
            given_twice: facts.given_twice.map(|(_, twice)| twice.to_line()).unwrap_or_default(),
            missing: facts.missing.gtids.to_line(),
            missing_transactions: facts.missing.count(),
            gaps: facts.missing.gaps,
            previous_timeline: facts.previous_timeline,
            peers: facts.peers,
            server_id_rival: facts.rival,
            hosts_in_doubt: facts.hosts_in_doubt,
            verified: facts.verified,
            resources: self.resources.status(),
            counters: self.counters.values(),
            latency: Latencies::default(),
            timelines: facts.timelines,
            events,
            recent: None,
            verdict: Verdict::default(),
        }
    }

    /// Takes a sample of what the source does, at a time since the start of the daemon.
    pub(crate) fn take_sample(&self, uptime: Duration, now: Timestamp) {
        let reading = Reading {
            transactions: self.counters.transactions.load(Relaxed),
            bytes: self.counters.bytes_written.load(Relaxed),
            behind: self.seconds_behind(now),
            acknowledge: &self.acknowledge_latency,
            sync: &self.sync_latency,
        };
        lock(&self.history).take(uptime, &reading);
        self.note_epoch();
    }

    /// Another epoch than at the last sample is an event.
    fn note_epoch(&self) {
        let Some(quorum) = self.quorum() else { return };
        let mut session = lock(&self.session);
        let before = session.epoch.replace(quorum.epoch);
        if let (Some(source), true) = (quorum.source, before.is_some_and(|before| before != quorum.epoch)) {
            let text = format!("{source} is the source of epoch {}", quorum.epoch);
            session.events.note(Level::Notice, "quorum", text);
        }
    }

    /// The newest sample.
    pub(crate) fn recent(&self, uptime: Duration, now: Timestamp) -> Option<Recent> {
        lock(&self.history).recent(uptime, now)
    }

    /// Transactions a second over the last hour in at most so many points, the oldest first.
    pub fn spark(&self, points: usize) -> Vec<f32> {
        lock(&self.history).spark(points)
    }

    /// The samples of the last hour.
    pub(crate) fn history(&self, uptime: Duration, now: Timestamp) -> HistoryStatus {
        lock(&self.history).columns(uptime, now)
    }

    /// Seconds from the timestamp of the newest event to `now`; 0 when the source said that it has nothing newer,
    /// `None` when that is not known, as always outside [`SourceState::Receiving`].
    pub fn seconds_behind(&self, now: Timestamp) -> Option<u64> {
        if self.disk_hang().is_some() {
            return None;
        }
        let event_time = self.event_time.load(Relaxed);
        if event_time & CAUGHT_UP != 0 {
            return Some(0);
        }
        // A source whose clock is ahead of ours counts as not behind.
        let seconds = i64::from(event_time as u32);
        (event_time & TIME_KNOWN != 0).then(|| u64::try_from(now.as_second() - seconds).unwrap_or(0))
    }

    /// The beginning of a transaction that did not arrive to its end was cut off: the copy has not grown by it.
    pub fn discarded(&self, bytes: u64) {
        self.discarded.fetch_add(bytes, Relaxed);
    }

    /// Bytes stored since the copy had caught up for the first time, which is noticed here.
    pub fn bytes_grown(&self, now: Timestamp) -> u64 {
        let written = self.counters.bytes_written.load(Relaxed).saturating_sub(self.discarded.load(Relaxed));
        if self.backlog.load(Relaxed) == NOT_YET
            && self.seconds_behind(now).is_some_and(|behind| behind < CAUGHT_UP_SECONDS)
        {
            self.backlog.store(written, Relaxed);
        }
        written.saturating_sub(self.backlog.load(Relaxed))
    }

    /// GTID sets, which may be large.
    pub fn gtid_texts(&self) -> GtidTexts {
        let gtids = self.gtids();
        GtidTexts { durable: gtids.durable.to_line(), acknowledged: gtids.acknowledged.to_line() }
    }
}

#[cfg(test)]
mod tests;
