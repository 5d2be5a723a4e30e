//! Whether the threads that receive come round: the rule by which the watchdog of systemd is fed.
//!
//! A thread is stuck when it does not come round for longer than what it does there may take. Not stuck is one that
//!
//! - rests: it pauses before the next attempt, an operator has stopped it, it has ended, or the disk is full;
//! - waits for the disk, which [`hang_watch`](crate::watch::hang) tells: a restart would wait for the same disk;
//! - recovers the copy, however many gigabytes that reads: a restart would begin the same again;
//! - does operations of the disk one after the other, as the comparison of long logs does;
//! - waits for a source that is quiet, for as long as `net_read_timeout` allows, or for one that does not answer, within the
//!   limits of what it asks;
//! - waits for receivers further down: the loop goes round meanwhile.
//!
//! What a thread may wait for always has an end of its own (`connect_timeout`, `net_read_timeout`), so one that stays longer by
//! the patience of the watchdog has met an error of ours or of the system, and nothing but a restart is known to help.

use binlog::storage::activity::DiskActivity;
use config::SourceConfig;
use status::{Place, SourceMonitor, Stuck};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Most statements, each with an end of its own, that the thread asks from one beat of the pulse to the next.
const ASKED_MAX: u32 = 16;

/// The log and the state say that a thread is stuck when half of the patience is over.
const TOLD_SHARE: u32 = 2;

/// Time between two looks counts up to so much: what is longer, the whole machine or process was asleep.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// The thread of one source.
pub(crate) struct Progress {
    monitor: Arc<SourceMonitor>,
    /// Gone when the receiver's storage is.
    activity: Weak<DiskActivity>,
    net_read_timeout: Duration,
    connect_timeout: Duration,
    /// The pulse, and how many operations of the disk had ended, at the last look.
    seen: (u64, u64),
    /// For how long neither has changed.
    still: Duration,
    /// The log said so, when it had lasted so long.
    told: Option<Duration>,
}

/// What a look has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It comes round, or may stay where it is.
    Well,
    /// It is stuck, but may yet come round.
    Late,
    /// It is stuck for good.
    Stuck,
    /// The thread and its storage are gone.
    Gone,
}

impl Progress {
    pub(crate) fn new(
        monitor: Arc<SourceMonitor>,
        activity: &Arc<DiskActivity>,
        config: &SourceConfig,
    ) -> Progress {
        Progress {
            monitor,
            activity: Arc::downgrade(activity),
            net_read_timeout: config.net_read_timeout,
            connect_timeout: config.connect_timeout,
            seen: (0, 0),
            still: Duration::ZERO,
            told: None,
        }
    }

    /// Looks, `passed` after the last time. `patience` is how much longer than it may a thread is waited for.
    pub(crate) fn look(&mut self, passed: Duration, patience: Duration) -> Seen {
        let Some(activity) = self.activity.upgrade() else {
            self.goes_on();
            return Seen::Gone;
        };
        let (pulse, place) = self.monitor.pulse.feel();
        let seen = (pulse, activity.ended());
        let allowed = self.allowed(place);
        let (Some(allowed), false, true) = (allowed, activity.is_any_under_way(), seen == self.seen) else {
            self.seen = seen;
            self.still = Duration::ZERO;
            self.goes_on();
            return Seen::Well;
        };
        self.still += passed.min(LOOK_MAX);
        if self.still < allowed + patience / TOLD_SHARE {
            return Seen::Well;
        }
        let is_for_good = self.still >= allowed + patience;
        self.tell(place, is_for_good);
        if is_for_good { Seen::Stuck } else { Seen::Late }
    }

    /// How long the thread may stay there without coming round; `None` is for ever.
    fn allowed(&self, place: Place) -> Option<Duration> {
        match place {
            Place::Rests => None,
            Place::Asks => Some(self.net_read_timeout.max(self.connect_timeout * ASKED_MAX)),
            // A source that takes nothing may be written to for that long, too.
            Place::Works | Place::Reads => Some(self.net_read_timeout),
        }
    }

    fn tell(&mut self, place: Place, is_for_good: bool) {
        let name = self.monitor.name();
        let seconds = self.still.as_secs();
        let what = format!(
            "the thread recv-{name} is stuck: it has not come round for {seconds} s, while {}; nothing is acknowledged until it does",
            place.words()
        );
        let was_for_good = self.monitor.stuck().is_some_and(|stuck| stuck.is_for_good);
        // Once in the beginning, once when it is for good, and then after twice the time.
        if is_for_good != was_for_good || self.told.is_none_or(|told| self.still >= told * 2) {
            let then = if is_for_good {
                ". It is given up: /livez is 503, and systemd, where it watches, restarts binlogd"
            } else {
                ""
            };
            tracing::error!(source = name, "{what}{then}");
            self.monitor.set_error(what.clone());
            self.told = Some(self.still);
        }
        self.monitor.set_stuck(Some(Stuck { what, is_for_good }));
    }

    fn goes_on(&mut self) {
        if self.told.take().is_some() {
            tracing::warn!(source = self.monitor.name(), "the thread that was stuck comes round again");
            self.monitor.set_stuck(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::Storage;
    use binlog::storage::activity::WatchedStorage;
    use binlog::storage::posix::PosixStorage;
    use status::SourceState;

    const SECOND: Duration = Duration::from_secs(1);
    const PATIENCE: Duration = Duration::from_secs(60);

    fn progress() -> (Progress, Arc<SourceMonitor>, Arc<DiskActivity>) {
        let (monitor, activity) = (Arc::new(SourceMonitor::new("db1")), Arc::default());
        let progress = Progress {
            monitor: monitor.clone(),
            activity: Arc::downgrade(&activity),
            net_read_timeout: SECOND * 15,
            connect_timeout: SECOND * 10,
            seen: (0, 0),
            still: Duration::ZERO,
            told: None,
        };
        (progress, monitor, activity)
    }

    /// The seconds after which it is late, and stuck; `None` when that does not come within an hour.
    fn limits(progress: &mut Progress) -> (Option<u64>, Option<u64>) {
        let (mut late, mut stuck) = (None, None);
        for second in 0..3600 {
            match progress.look(SECOND, PATIENCE) {
                Seen::Late if late.is_none() => late = Some(second),
                Seen::Stuck if stuck.is_none() => stuck = Some(second),
                _ => {}
            }
        }
        (late, stuck)
    }

    #[test]
    fn each_place_has_its_limit() {
        let (mut progress, monitor, _activity) = progress();
        let mut at = |place| {
            monitor.pulse.beat(place);
            limits(&mut progress)
        };
        assert_eq!(at(Place::Rests), (None, None));
        assert_eq!(at(Place::Reads), (Some(45), Some(75)));
        assert_eq!(at(Place::Works), (Some(45), Some(75)));
        assert_eq!(at(Place::Asks), (Some(190), Some(220)));
    }

    #[test]
    fn a_quiet_source_and_a_busy_disk_are_not_stuck() {
        let (mut progress, monitor, activity) = progress();
        // A heartbeat, or the end of a wait, every fifteen seconds.
        for second in 0..3600 {
            if second % 15 == 0 {
                monitor.pulse.beat(Place::Works);
                monitor.pulse.beat(Place::Reads);
            }
            assert_eq!(progress.look(SECOND, PATIENCE), Seen::Well);
        }
        monitor.pulse.beat(Place::Asks);
        let disk = WatchedStorage::new(PosixStorage, activity);
        for _ in 0..3600 {
            let _ = disk.look(std::path::Path::new("/"));
            assert_eq!(progress.look(SECOND, PATIENCE), Seen::Well);
        }
        assert!(monitor.stuck().is_none());
    }

    #[test]
    fn a_stuck_thread_is_shown_until_it_comes_round() {
        let (mut progress, monitor, activity) = progress();
        monitor.set_state(SourceState::Receiving);
        monitor.pulse.beat(Place::Reads);
        while progress.look(SECOND, PATIENCE) != Seen::Late {}
        let stuck = monitor.stuck().unwrap();
        assert!(!stuck.is_for_good && stuck.what.contains("recv-db1"), "{stuck:?}");
        assert!(stuck.what.contains("45 s, while reading from the source"), "{stuck:?}");
        assert_eq!(monitor.state_in_words().0.word(), "stuck");
        while progress.look(SECOND, PATIENCE) != Seen::Stuck {}
        assert!(monitor.stuck().unwrap().is_for_good);
        monitor.pulse.beat(Place::Reads);
        assert_eq!(progress.look(SECOND, PATIENCE), Seen::Well);
        assert!(monitor.stuck().is_none() && monitor.state() == SourceState::Receiving);
        drop(activity);
        assert_eq!(progress.look(SECOND, PATIENCE), Seen::Gone);
    }

    #[test]
    fn a_machine_that_slept_is_not_taken_for_a_stuck_thread() {
        let (mut progress, monitor, _activity) = progress();
        monitor.pulse.beat(Place::Works);
        progress.look(SECOND, PATIENCE);
        assert_eq!(progress.look(SECOND * 86_400, PATIENCE), Seen::Well);
    }

    #[test]
    fn an_operation_of_the_disk_that_hangs_is_the_disks_affair() {
        let (mut progress, monitor, activity) = progress();
        monitor.pulse.beat(Place::Works);
        activity.during_any(|| assert_eq!(limits(&mut progress), (None, None)));
        assert_eq!(limits(&mut progress), (Some(45), Some(75)));
    }
}
