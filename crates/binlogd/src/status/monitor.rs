//! The live values of one source: written by its receiver thread, read by anybody.

use super::{GtidTexts, Ladder, LastError, Latencies, LatencyHistogram, SemiSyncStatus, SourceStatus};
use crate::config::FsyncMode;
use codec::gtid::GtidState;
use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The transactions at two of the rungs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidRungs {
    /// Transactions whose end is at or below the durable position.
    pub durable: GtidState,
    /// Transactions whose end is at or below the acknowledged position.
    pub acknowledged: GtidState,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the start of the daemon. The receiver adds with relaxed ordering, once a batch where it can.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: AtomicU64,)* }

        /// The [`Counters`] at one moment.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct CounterValues { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            /// The values now.
            pub fn values(&self) -> CounterValues {
                CounterValues { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Events stored.
    events,
    /// Transactions stored to their end.
    transactions,
    /// Acknowledgements sent. One may cover many transactions.
    acknowledgements,
    /// Sessions with the source that ended and were followed by another attempt.
    reconnects,
    /// Events refused because their CRC32 did not match.
    checksum_failures,
    /// Bytes read from the source's connection, packet headers included.
    bytes_received,
    /// Bytes appended to the log.
    bytes_written,
    /// Durable writes of the journal, and completed calls of fdatasync on the binary log.
    syncs,
    /// Packets that wanted an acknowledgement where this session does not expect one, such as inside a transaction.
    unexpected_ack_requests,
}

/// What the receiver of a source is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// The thread has not begun.
    Starting,
    /// The live file is being checked, and cut at its last boundary if needed.
    Recovering,
    /// A connection is being made and the session negotiated.
    Connecting {
        /// `host:port` tried.
        host: String,
    },
    /// Connected, and the stream is being stored. The only healthy state.
    Receiving,
    /// Waiting before the next attempt to connect.
    BackingOff {
        /// When the next attempt begins.
        until: Timestamp,
        /// What ended the last attempt.
        error: String,
    },
    /// The disk is full. Nothing is acknowledged; goes on by itself when there is space.
    WaitingForSpace {
        /// The folder and the operating system's words.
        error: String,
    },
    /// Ended for good: nothing happens until an operator acts or the daemon starts again.
    Stopped {
        /// Why, and what to do.
        reason: String,
    },
}

impl SourceState {
    /// Every word that [`word`](SourceState::word) can give.
    pub const WORDS: [&'static str; 7] = [
        "starting",
        "recovering",
        "connecting",
        "receiving",
        "backing off",
        "waiting for disk space",
        "stopped",
    ];

    /// The state in words, as status, metrics and `/healthz` show it.
    pub fn word(&self) -> &'static str {
        let index = match self {
            SourceState::Starting => 0,
            SourceState::Recovering => 1,
            SourceState::Connecting { .. } => 2,
            SourceState::Receiving => 3,
            SourceState::BackingOff { .. } => 4,
            SourceState::WaitingForSpace { .. } => 5,
            SourceState::Stopped { .. } => 6,
        };
        Self::WORDS[index]
    }

    fn detail(&self, facts: &SourceFacts) -> Option<String> {
        match self {
            SourceState::Starting | SourceState::Recovering => None,
            SourceState::Connecting { host } => Some(format!("to {host}")),
            SourceState::Receiving => facts.connected_since.map(|since| format!("since {since}")),
            SourceState::BackingOff { until, error } => {
                Some(format!("{error}; next attempt at {}", human_time(*until)))
            }
            SourceState::WaitingForSpace { error } => Some(error.clone()),
            SourceState::Stopped { reason } => Some(reason.clone()),
        }
    }
}

/// What is known of a source and of the connection to it. Changes at most a few times a session.
#[derive(Clone, Debug, Default)]
pub struct SourceFacts {
    /// `host:port` in use or tried last. [`SourceMonitor::set_state`] fills it when connecting.
    pub host: Option<String>,
    /// The server's own version text.
    pub server_version: Option<String>,
    /// `server_uuid`; `None` for MariaDB, which has none.
    pub server_uuid: Option<String>,
    /// `server_id` of the source.
    pub server_id: Option<u32>,
    /// Folder name of the timeline being written.
    pub timeline: Option<String>,
    /// Whether this session acknowledges, and why or why not.
    pub semi_sync: SemiSyncStatus,
    /// TLS version in use, such as `TLSv1.3`; `None` for a connection in clear.
    pub tls: Option<String>,
    /// Transactions that forks took from the source and that it lacked at the last connection; `None` when not known.
    pub source_lacked: Option<GtidState>,
    /// When the source began to receive. [`SourceMonitor::set_state`] fills and clears it.
    pub connected_since: Option<Timestamp>,
}

/// State and facts under one lock, so that no reader sees the facts of one session with the state of another.
struct Session {
    state: SourceState,
    facts: SourceFacts,
    last_error: Option<LastError>,
}

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
    fsync_mode: AtomicU8,
    event_time: AtomicU64,
    ladder: Mutex<Ladder>,
    gtids: Mutex<GtidRungs>,
    session: Mutex<Session>,
}

impl SourceMonitor {
    /// The monitor of the source `name` before its receiver starts.
    pub fn new(name: &str) -> SourceMonitor {
        SourceMonitor {
            name: name.to_owned(),
            counters: Counters::default(),
            sync_latency: LatencyHistogram::new(),
            acknowledge_latency: LatencyHistogram::new(),
            fsync_mode: AtomicU8::new(FsyncMode::SyncThenAcknowledge as u8),
            event_time: AtomicU64::new(0),
            ladder: Mutex::default(),
            gtids: Mutex::default(),
            session: Mutex::new(Session {
                state: SourceState::Starting,
                facts: SourceFacts::default(),
                last_error: None,
            }),
        }
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

    /// Changes the GTID sets in place: by insertion as the rungs advance, whole at the start and at a new timeline.
    /// Both are seen together. Allocates only where the sets themselves do.
    pub fn publish_gtids(&self, change: impl FnOnce(&mut GtidRungs)) {
        change(&mut lock(&self.gtids));
    }

    /// The GTID sets of one moment.
    pub fn gtids(&self) -> GtidRungs {
        lock(&self.gtids).clone()
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
        if session.state == state {
            return;
        }
        match &state {
            SourceState::Connecting { host } => session.facts.host = Some(host.clone()),
            SourceState::BackingOff { error, .. } | SourceState::WaitingForSpace { error } => {
                session.last_error = Some(LastError { at: now, message: error.clone() });
            }
            _ => {}
        }
        if state == SourceState::Receiving {
            session.facts.connected_since = Some(now);
        } else {
            session.facts.connected_since = None;
            session.facts.tls = None;
            session.facts.semi_sync = SemiSyncStatus::default();
            self.event_time.store(0, Relaxed);
        }
        session.state = state;
    }

    /// The state now.
    pub fn state(&self) -> SourceState {
        lock(&self.session).state.clone()
    }

    /// The state now as status shows it: the word, and what it is about.
    pub fn state_in_words(&self) -> (&'static str, Option<String>) {
        let session = lock(&self.session);
        (session.state.word(), session.state.detail(&session.facts))
    }

    /// Records an error that does not change the state by itself. The message must not hold a password.
    pub fn set_error(&self, message: impl Into<String>) {
        let error = LastError { at: now_in_milliseconds(), message: message.into() };
        lock(&self.session).last_error = Some(error);
    }

    /// Changes what is known of the source.
    pub fn update_facts(&self, change: impl FnOnce(&mut SourceFacts)) {
        change(&mut lock(&self.session).facts);
    }

    /// What is known of the source now.
    pub fn facts(&self) -> SourceFacts {
        lock(&self.session).facts.clone()
    }

    /// Everything at one moment. `now` is the clock for seconds behind.
    pub fn status(&self, now: Timestamp) -> SourceStatus {
        let (state, facts, last_error) = {
            let session = lock(&self.session);
            (session.state.clone(), session.facts.clone(), session.last_error.clone())
        };
        SourceStatus {
            name: self.name.clone(),
            state: state.word().to_owned(),
            state_detail: state.detail(&facts),
            last_error,
            seconds_behind: self.seconds_behind(now),
            host: facts.host,
            server_version: facts.server_version,
            server_uuid: facts.server_uuid,
            server_id: facts.server_id,
            timeline: facts.timeline,
            semi_sync: facts.semi_sync,
            tls: facts.tls,
            fsync_mode: Some(self.fsync_mode() as u8),
            positions: self.positions(),
            gtid: self.gtid_texts(),
            source_lacks: self.source_lacks(facts.source_lacked.as_ref()).map(|lacks| lacks.to_line()),
            counters: self.counters.values(),
            latency: Latencies {
                sync: self.sync_latency.summary(),
                acknowledge: self.acknowledge_latency.summary(),
            },
        }
    }

    /// Seconds from the timestamp of the newest event to `now`; 0 when the source said that it has nothing newer,
    /// `None` when that is not known, as always outside [`SourceState::Receiving`].
    pub fn seconds_behind(&self, now: Timestamp) -> Option<u64> {
        let event_time = self.event_time.load(Relaxed);
        if event_time & CAUGHT_UP != 0 {
            return Some(0);
        }
        // A source whose clock is ahead of ours counts as not behind.
        let seconds = i64::from(event_time as u32);
        (event_time & TIME_KNOWN != 0).then(|| u64::try_from(now.as_second() - seconds).unwrap_or(0))
    }

    /// What the source lacks now: what it lacked when it was asked, without what it has sent since, after a rescue for
    /// instance. `None` when it is not known.
    pub fn source_lacks(&self, lacked: Option<&GtidState>) -> Option<GtidState> {
        lacked.map(
            |lacked| if lacked.is_empty() { lacked.clone() } else { lacked.subtract(&self.gtids().durable) },
        )
    }

    fn gtid_texts(&self) -> GtidTexts {
        // Text is made of a copy, because that of a set with many intervals takes longer than the receiver may wait.
        let gtids = self.gtids();
        GtidTexts { durable: gtids.durable.to_line(), acknowledged: gtids.acknowledged.to_line() }
    }
}

/// Locks, also after another thread panicked with the lock held: every value here is replaced whole, and a reader's
/// panic must not end a receiver.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A time as people read it, in UTC to the second.
pub fn human_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn now_in_milliseconds() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::LogPosition;
    use std::sync::{Arc, atomic::AtomicBool};

    fn receiving(name: &str) -> SourceMonitor {
        let monitor = SourceMonitor::new(name);
        monitor.set_state(SourceState::Connecting { host: "db1:3306".to_owned() });
        monitor.update_facts(|facts| {
            facts.semi_sync = SemiSyncStatus { active: true, reason: "negotiated".to_owned() };
            facts.tls = Some("TLSv1.3".to_owned());
        });
        monitor.set_state(SourceState::Receiving);
        monitor
    }

    #[test]
    fn readers_never_see_rungs_of_two_moments() {
        let monitor = SourceMonitor::new("db1");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut reads = 0u64;
                while !done.load(Relaxed) || reads == 0 {
                    let seen = monitor.positions();
                    assert!(seen.is_ordered(FsyncMode::SyncThenAcknowledge), "{seen:?}");
                    if let (Some(received), Some(acknowledged)) = (&seen.received, &seen.acknowledged) {
                        let names = (&acknowledged.file, &received.file);
                        assert!(names.0 <= names.1, "{seen:?}");
                        // The writer below keeps rungs exactly this far apart within a file.
                        assert!(
                            names.0 != names.1 || received.position - acknowledged.position == 30,
                            "{seen:?}"
                        );
                    }
                    reads += 1;
                }
            });
            publish_through_files(&monitor, 200, 500);
            done.store(true, Relaxed);
            reader.join().unwrap();
        });
    }

    fn publish_through_files(monitor: &SourceMonitor, files: u32, steps: u64) {
        let mut ladder = Ladder::default();
        for number in 1..=files {
            let file: Arc<str> = format!("bin.{number:06}").into();
            for step in 0..steps {
                let at = |below: u64| Some(LogPosition::new(file.clone(), 100 + step - below));
                ladder.received = at(0);
                ladder.written = at(10);
                ladder.durable = at(20);
                // The first acknowledgement in a new file comes late.
                if step >= steps / 2 || number == 1 {
                    ladder.acknowledged = at(30);
                }
                monitor.publish_positions(&ladder);
            }
        }
    }

    #[test]
    fn seconds_behind_is_unknown_then_measured_then_zero_then_unknown_again() {
        let monitor = receiving("db1");
        let behind = |seconds| monitor.status(Timestamp::from_second(seconds).unwrap()).seconds_behind;
        assert_eq!(behind(1_000), None);
        monitor.publish_event_time(990);
        assert_eq!(behind(1_000), Some(10));
        assert_eq!(behind(980), Some(0), "a source whose clock is ahead");
        monitor.publish_caught_up();
        assert_eq!(behind(5_000), Some(0));
        monitor.publish_event_time(4_000);
        assert_eq!(behind(5_000), Some(1_000));
        monitor.set_state(SourceState::Stopped { reason: "asked to".to_owned() });
        assert_eq!(behind(5_000), None);
    }

    #[test]
    fn ending_a_session_clears_what_belonged_to_it_and_keeps_the_error() {
        let monitor = receiving("db1");
        let until = Timestamp::from_second(1_800_000_000).unwrap();
        monitor.set_state(SourceState::BackingOff { until, error: "connection refused".to_owned() });
        let status = monitor.status(Timestamp::UNIX_EPOCH);
        assert_eq!(status.state, "backing off");
        assert_eq!(
            status.state_detail.as_deref(),
            Some("connection refused; next attempt at 2027-01-15 08:00:00 UTC")
        );
        assert_eq!(status.tls, None);
        assert!(!status.semi_sync.active);
        assert_eq!(status.host.as_deref(), Some("db1:3306"));
        monitor.set_state(SourceState::Receiving);
        let status = monitor.status(Timestamp::UNIX_EPOCH);
        assert_eq!(status.last_error.map(|error| error.message).as_deref(), Some("connection refused"));
    }

    #[test]
    fn gtid_texts_stand_on_one_line() {
        let monitor = SourceMonitor::new("db1");
        assert_eq!(monitor.status(Timestamp::UNIX_EPOCH).gtid, GtidTexts::default());
        let two = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7,4e11fa47-71ca-11e1-9e33-c80aa9429562:1";
        let set = |text: &str| GtidState::from(text.parse::<codec::gtid::GtidSet>().unwrap());
        monitor.publish_gtids(|gtids| gtids.durable = set(two));
        monitor.publish_gtids(|gtids| gtids.acknowledged.union_with(&set(&two[..40])).unwrap());
        let texts = monitor.status(Timestamp::UNIX_EPOCH).gtid;
        assert_eq!((texts.durable.as_str(), texts.acknowledged.as_str()), (two, &two[..40]));
    }

    #[test]
    fn a_panic_under_a_lock_does_not_end_the_receiver() {
        let monitor = SourceMonitor::new("db1");
        std::thread::scope(|scope| {
            let panicked = scope.spawn(|| monitor.update_facts(|_| panic!("expected by this test"))).join();
            assert!(panicked.is_err());
        });
        monitor.set_state(SourceState::Receiving);
        assert_eq!(monitor.state(), SourceState::Receiving);
    }
}
