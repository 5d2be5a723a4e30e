//! Notices that the source writes another log than the one whose end the stream waits at.
//!
//! After a reset (RESET BINARY LOGS AND GTIDS, RESET MASTER) while its live file is the first one, the source's dump waits at
//! the end of the old file, which has the name of the new one: it sends heartbeats, commits wait for ever, and a replica
//! hangs as well. Only the source itself shows it. So where nothing arrives the watch asks for the place that was reached,
//! by a dump of its own, which needs no privilege but REPLICATION SLAVE and no GTIDs:
//!
//! | when nothing has arrived for a moment and | it asks |
//! |---|---|
//! | commits wait on the source (`Rpl_semi_sync_source_wait_sessions`) | at once, then more and more rarely |
//! | the source's executed set has changed | once |
//! | neither is known | after 3 s, then more and more rarely |
//!
//! What it finds decides nothing: it ends the session, and the next one compares.

use binlog::Position;
use source::clock::Clock;
use source::complaint::ER_FATAL_READING_BINLOG;
use source::identify::SourceIdentity;
use source::link::{End, Link, link};
use source::look::Waits;
use source::negotiate::{ask_for_events_as_they_are, look_request};
use source::stop::StopSignal;
use status::SourceMonitor;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use wire::{Connection, WireError};

/// The first pause between two questions for one place while commits wait.
const WAITING_PAUSE: Duration = Duration::from_millis(500);

/// The first question for a place where nobody waits.
const IDLE_PAUSE: Duration = Duration::from_secs(3);

/// For so long after the last arrival a source counts as busy.
const LIVELY: Duration = Duration::from_secs(2);

/// Longest pause between two questions for one place. MariaDB logs each dump.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// With fewer bytes than this since the last look nothing but heartbeats arrives. With more an event is on its way that is not
/// whole yet: a large one, or a slow network.
const ARRIVES_BYTES: u64 = 1024;

/// The dump stood still while its file went on, at so many questions one after the other.
const STANDS_MAX: u32 = 2;

/// What a look at the source says of its commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Commits {
    /// Sessions whose commit waits for an acknowledgement.
    pub(crate) waiting: u64,
    /// A digest of the executed set (MySQL) or the state of its binary log (MariaDB).
    pub(crate) executed: Option<String>,
}

/// A place at which nothing arrives.
#[derive(Debug)]
struct Idle {
    at: Position,
    /// Bytes that had arrived at the last look.
    bytes: u64,
    executed: Option<String>,
    /// When the place was first seen.
    reached: Instant,
    /// The last question, or when the place was first seen.
    since: Instant,
    /// Until the next question, when nobody waits.
    pause: Duration,
    /// Until the next question, when somebody waits.
    waiting_pause: Duration,
    stands: u32,
}

impl Idle {
    fn arrives(&self, bytes: u64) -> bool {
        bytes.saturating_sub(self.bytes) >= ARRIVES_BYTES
    }
}

/// What is known of the place that was reached last.
#[derive(Debug, Default)]
pub(crate) struct LeftBehind {
    idle: Option<Idle>,
}

impl LeftBehind {
    /// Takes down what has arrived: the place, and the bytes in all. True when nothing has since that was done last.
    pub(crate) fn is_at_rest(&mut self, received: Option<Position>, bytes: u64, now: Instant) -> bool {
        let Some(at) = received else {
            self.idle = None;
            return false;
        };
        if self.idle.as_ref().is_some_and(|idle| idle.at == at && !idle.arrives(bytes)) {
            return true;
        }
        let (pause, waiting_pause) = (IDLE_PAUSE, Duration::ZERO);
        self.idle = Some(Idle {
            at,
            bytes,
            executed: None,
            reached: now,
            since: now,
            pause,
            waiting_pause,
            stands: 0,
        });
        false
    }

    /// Whether a commit that waits at this place is a reason to ask.
    pub(crate) fn minds_who_waits(&self, now: Instant) -> bool {
        let is_due = |idle: &Idle| now.saturating_duration_since(idle.since) >= idle.waiting_pause;
        self.stands() || self.idle.as_ref().is_some_and(is_due)
    }

    /// Whether the dump stood still while its file went on, at the last question.
    fn stands(&self) -> bool {
        self.idle.as_ref().is_some_and(|idle| idle.stands > 0)
    }

    /// Whether something has just happened: the source is busy, or its dump stands still.
    pub(crate) fn is_lively(&self, now: Instant) -> bool {
        let is_new = |idle: &Idle| now.saturating_duration_since(idle.reached) < LIVELY;
        self.stands() || self.idle.as_ref().is_some_and(is_new)
    }

    /// After a look: whether the source is to be asked for the place that was reached. `bytes`: what has arrived in all.
    pub(crate) fn is_suspicious(
        &mut self,
        received: Option<Position>,
        bytes: u64,
        commits: &Commits,
        now: Instant,
    ) -> bool {
        let is_at_rest = self.is_at_rest(received, bytes, now);
        let minds_who_waits = self.minds_who_waits(now);
        let Some(idle) = self.idle.as_mut() else { return false };
        idle.bytes = bytes;
        let has_changed = idle.executed.is_some() && idle.executed != commits.executed;
        idle.executed.clone_from(&commits.executed);
        if !is_at_rest {
            return false;
        }
        let passed = now.saturating_duration_since(idle.since);
        let somebody_waits = commits.waiting > 0 && minds_who_waits;
        let is_due = has_changed || somebody_waits || passed >= idle.pause || idle.stands > 0;
        if is_due {
            if commits.waiting > 0 {
                idle.waiting_pause = (idle.waiting_pause * 2).clamp(WAITING_PAUSE, PAUSE_MAX);
            }
            if passed >= idle.pause {
                idle.pause = (idle.pause * 2).min(PAUSE_MAX);
            }
            idle.since = now;
        }
        is_due
    }

    /// Takes the answer. Gives the reason where the stream cannot be that of the source's present log.
    pub(crate) fn hear(&mut self, link: Result<Link, WireError>, monitor: &SourceMonitor) -> Option<String> {
        let idle = self.idle.as_mut()?;
        let bytes = monitor.counters.bytes_received.load(Relaxed);
        // Who waits for his own disk has not read what has arrived meanwhile.
        let still_there = monitor.is_reading()
            && monitor.positions().received.as_ref() == Some(&idle.at)
            && !idle.arrives(bytes);
        match link {
            Ok(Link::GoesOn { more: false }) => {
                idle.stands = 0;
                None
            }
            Ok(Link::GoesOn { more: true } | Link::Refused(_) | Link::Followed(_)) => {
                idle.stands = if still_there { idle.stands + 1 } else { 0 };
                (idle.stands >= STANDS_MAX)
                    .then(|| {
                        format!(
                            "its log goes on behind {}:{}, but nothing arrives: its logs were reset, or the connection is dead",
                            idle.at.file, idle.at.offset
                        )
                    })
            }
            Ok(Link::OtherFile | Link::OtherHistory { .. }) => {
                Some(format!("its file {} is another one by now: its logs were reset", idle.at.file))
            }
            // The place is not there, or no event begins at it. Another error is no word about the log: one connection more
            // than the account may have, for example, at the login.
            Err(WireError::Server { code: ER_FATAL_READING_BINLOG, message, .. }) => Some(message),
            Err(error) => {
                tracing::debug!(source = monitor.name(), "cannot ask the source for its log: {error}");
                None
            }
        }
        .filter(|_| still_there)
    }
}

/// Asks the source for the place that was reached, of the timeline that the connection has chosen where it is a binlogd.
pub(crate) fn ask(
    mut connection: Connection,
    at: Position,
    monitor: &SourceMonitor,
    clock: &dyn Clock,
    timeout: Duration,
) -> Result<Link, WireError> {
    // A place past 4 GiB cannot be asked for without all before it.
    if u32::try_from(at.offset).is_err() {
        return Ok(Link::GoesOn { more: false });
    }
    let source = SourceIdentity::ask(&mut connection)?;
    ask_for_events_as_they_are(&mut connection, &source)?;
    let format = monitor.live_format().filter(|(file, _)| *file == at.file).map(|(_, format)| format);
    let request = look_request(clock.jitter().max(1), &at.file, at.offset);
    let end = End { at, format: format.as_ref(), tail: &[], ahead: 0 };
    // The end of the process does not wait for this thread.
    link(connection, &source, &request, &end, timeout, Waits { stop: &StopSignal::new(), clock, pulse: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use status::Ladder;

    fn commits(waiting: u64, executed: &str) -> Commits {
        Commits { waiting, executed: Some(executed.to_owned()) }
    }

    fn at(offset: u64) -> Option<Position> {
        Some(Position::new("b.000001", offset))
    }

    #[test]
    fn who_waits_while_nothing_arrives_is_a_reason_to_ask() {
        let (mut behind, now) = (LeftBehind::default(), Instant::now());
        assert!(!behind.is_suspicious(at(100), 0, &commits(1, "a"), now), "the place is new");
        assert!(!behind.is_suspicious(at(200), 0, &commits(1, "a"), now), "something arrives");
        let mut ask = |seconds: u64, commits| {
            behind.is_suspicious(at(200), 0, &commits, now + Duration::from_secs(seconds))
        };
        assert!(!ask(1, commits(0, "a")));
        assert!(ask(2, commits(1, "a")), "somebody waits");
        assert!(ask(3, commits(1, "a")));
        assert!(!ask(3, commits(1, "a")), "just asked");
        assert!(ask(4, commits(0, "b")), "something was committed");
        assert!(!ask(5, commits(0, "b")));
        assert!(ask(7, commits(0, "b")), "now and then");
        assert!(!ask(12, commits(0, "b")) && ask(13, commits(0, "b")), "more and more rarely");
    }

    #[test]
    fn a_place_that_was_reached_between_two_looks_counts() {
        let (mut behind, now) = (LeftBehind::default(), Instant::now());
        let after = |millis| now + Duration::from_millis(millis);
        assert!(!behind.is_suspicious(at(100), 0, &commits(0, "a"), now), "the place is new");
        assert!(!behind.is_at_rest(at(200), 500, after(200)), "something has arrived");
        assert!(behind.is_at_rest(at(200), 1_000, after(400)), "a heartbeat at most");
        assert!(behind.minds_who_waits(after(400)));
        assert!(behind.is_suspicious(at(200), 1_000, &commits(1, "b"), after(400)), "somebody waits");
        assert!(!behind.minds_who_waits(after(600)), "just asked");
        assert!(behind.minds_who_waits(after(900)));
        assert!(!behind.is_at_rest(at(200), 9_000, after(1000)), "an event is on its way");
    }

    #[test]
    fn who_waits_for_his_own_disk_is_not_left_behind() {
        let (mut behind, now) = (LeftBehind::default(), Instant::now());
        let monitor = SourceMonitor::new("s");
        let ladder = Ladder { received: at(200), written: at(200), ..Ladder::default() };
        monitor.publish_positions(&ladder);
        behind.is_at_rest(at(200), 0, now);
        let mut hear = |reads| {
            monitor.publish_reading(reads);
            behind.hear(Ok(Link::GoesOn { more: true }), &monitor)
        };
        assert_eq!([hear(false), hear(false), hear(false)], [None, None, None]);
        assert_eq!([hear(true), hear(false), hear(true)], [None, None, None], "not two in a row");
        let reason = hear(true).unwrap();
        assert!(reason.starts_with("its log goes on behind b.000001:200, but nothing arrives"), "{reason}");
    }

    #[test]
    fn a_look_that_is_refused_a_connection_says_nothing_of_the_log() {
        let (mut behind, monitor) = (LeftBehind::default(), SourceMonitor::new("s"));
        monitor.publish_positions(&Ladder { received: at(200), written: at(200), ..Ladder::default() });
        behind.is_at_rest(at(200), 0, Instant::now());
        monitor.publish_reading(true);
        let refused = |code, message: &str| {
            let (sqlstate, message) = ("HY000".to_owned(), message.to_owned());
            Err(WireError::Server { code, sqlstate, message })
        };
        let too_many = refused(1226, "User 'binlogd' has exceeded the 'max_user_connections' resource");
        assert_eq!(behind.hear(too_many, &monitor), None);
        let gone = "Could not find first log file name in binary log index file";
        assert_eq!(behind.hear(refused(1236, gone), &monitor).as_deref(), Some(gone));
    }

    /// Commits wait on purpose while acknowledgements are withheld.
    #[test]
    fn who_waits_for_hours_is_a_reason_to_ask_ever_more_rarely() {
        let (mut behind, now) = (LeftBehind::default(), Instant::now());
        let mut asked = Vec::new();
        for tick in 0..4 * 3600 * 5 {
            let millis = tick * 200;
            let now = now + Duration::from_millis(millis);
            // As the watch does: a glance in between, a look every second and where the glance says so.
            let is_wanted = behind.is_at_rest(at(200), millis / 10, now) && behind.minds_who_waits(now);
            if (is_wanted || millis % 1000 == 0)
                && behind.is_suspicious(at(200), millis / 10, &commits(1, "a"), now)
            {
                asked.push(millis / 1000);
            }
        }
        let within = |seconds| asked.iter().filter(|at| **at < seconds).count();
        assert_eq!((within(10), within(60), within(600), within(4 * 3600)), (5, 8, 11, 34), "{asked:?}");
    }

    #[test]
    fn an_event_that_takes_long_to_arrive_is_no_reason() {
        let (mut behind, now) = (LeftBehind::default(), Instant::now());
        let mut ask = |seconds: u64, bytes| {
            behind.is_suspicious(at(200), bytes, &commits(1, "a"), now + Duration::from_secs(seconds))
        };
        assert!(!ask(0, 0) && !ask(1, 5_000) && !ask(2, 1_000_000), "bytes arrive, though no whole event");
        assert!(ask(3, 1_000_080), "only a heartbeat");
    }
}
