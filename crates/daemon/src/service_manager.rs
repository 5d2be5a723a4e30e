//! What systemd is told (sd_notify(3)): that binlogd is ready, reloads or stops, how its sources are in one line, and that its
//! threads come round. Where no systemd listens, the same looks go into the status and the log alone.
//!
//! A thread of its own looks. It touches no disk and waits for nobody, so nothing but its own end keeps the watchdog hungry,
//! and a thread that is stuck: `progress.rs` has the rule. All sources share one watchdog, because a thread cannot be ended
//! from outside: what is stuck in one of 200 sources is helped by a restart alone, which costs the others about a second.

use super::keeper::Keeper;
use crate::watch::progress::{Progress, Seen};
use binlog::storage::activity::DiskActivity;
use config::SourceConfig;
use sd_notify::NotifyState;
use source::stop::StopSignal;
use status::{DaemonMonitor, SourceMonitor, SourceState};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much longer than it may a thread is waited for where no watchdog says so.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks, where the watchdog asks for no shorter one. The status is told at most that often.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// So many looks fall into the time of the watchdog at least.
const LOOKS_PER_WATCHDOG: u32 = 8;

/// The time of the watchdog is the sum of two: so much of it is the patience with a thread, and what is left passes without
/// a word to systemd.
const PATIENCE_SHARE: u32 = 2;

/// While a stop goes on, systemd is asked for so much more time at each look, counted from then.
const STOP_EXTENSION: Duration = Duration::from_secs(30);

/// Longest line of status, in characters.
const STATUS_LEN_MAX: usize = 300;

#[derive(Default)]
struct Shared {
    progress: Mutex<Vec<Progress>>,
    stopping: AtomicBool,
}

/// The thread that looks and tells. It ends when this is dropped.
pub(super) struct ServiceManager {
    shared: Arc<Shared>,
    _keeper: Keeper,
}

impl ServiceManager {
    /// Looks from a thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start(monitor: Arc<DaemonMonitor>) -> io::Result<ServiceManager> {
        let shared = Arc::<Shared>::default();
        let mut teller = Teller::new(monitor, sd_notify::watchdog_enabled());
        let (seen, mut last) = (shared.clone(), Instant::now());
        let keeper = Keeper::start("watchdog", teller.interval, move |_: &StopSignal| {
            let now = Instant::now();
            teller.look(&seen, now.saturating_duration_since(last));
            last = now;
            teller.interval
        })?;
        Ok(ServiceManager { shared, _keeper: keeper })
    }

    /// Watches the thread of a source from now on, until its storage is dropped.
    pub(super) fn watch(
        &self,
        monitor: Arc<SourceMonitor>,
        activity: &Arc<DiskActivity>,
        config: &SourceConfig,
    ) {
        lock(&self.shared.progress).push(Progress::new(monitor, activity, config));
    }

    /// The start is over, or a reload.
    pub(super) fn ready(&self) {
        tell(&[NotifyState::Ready]);
    }

    /// The configuration is being reloaded; [`ready`](Self::ready) must follow.
    pub(super) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            // Type=notify-reload asks for the time.
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(_) => tell(&[NotifyState::Reloading]),
        }
    }

    /// The end has begun.
    pub(super) fn stopping(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        tell(&[NotifyState::Stopping, NotifyState::Status("Stopping: finishing what has arrived")]);
    }
}

/// What the thread works with.
struct Teller {
    monitor: Arc<DaemonMonitor>,
    feeds_watchdog: bool,
    /// A thread is stuck, and the watchdog was told.
    is_starving: bool,
    patience: Duration,
    interval: Duration,
    /// The line that was told last, and how long ago.
    status: String,
    status_age: Duration,
}

impl Teller {
    fn new(monitor: Arc<DaemonMonitor>, watchdog: Option<Duration>) -> Teller {
        let watchdog = watchdog.filter(|time| !time.is_zero());
        Teller {
            monitor,
            feeds_watchdog: watchdog.is_some(),
            is_starving: false,
            patience: watchdog.map_or(PATIENCE, |time| time / PATIENCE_SHARE),
            interval: watchdog.map_or(LOOK_INTERVAL, |time| LOOK_INTERVAL.min(time / LOOKS_PER_WATCHDOG)),
            status: String::new(),
            status_age: LOOK_INTERVAL,
        }
    }

    fn look(&mut self, shared: &Shared, passed: Duration) {
        let (mut is_stuck, mut all_ended) = (false, true);
        lock(&shared.progress).retain_mut(|progress| {
            let seen = progress.look(passed, self.patience);
            is_stuck |= seen == Seen::Stuck;
            all_ended &= seen == Seen::Gone;
            seen != Seen::Gone
        });
        if shared.stopping.load(Ordering::Acquire) {
            // A disk that is slow takes its time; one that does not answer is given up by the stop itself.
            if !is_stuck && !all_ended {
                let micros = u32::try_from(STOP_EXTENSION.as_micros()).unwrap_or(u32::MAX);
                tell(&[NotifyState::ExtendTimeoutUsec(micros)]);
            }
            return;
        }
        if self.feeds_watchdog {
            match (is_stuck, std::mem::replace(&mut self.is_starving, is_stuck)) {
                (false, _) => tell(&[NotifyState::Watchdog]),
                // At once; who does not know the word finds the watchdog starved.
                (true, false) => tell(&[NotifyState::WatchdogTrigger]),
                (true, true) => {}
            }
        }
        self.status_age += passed;
        if self.status_age >= LOOK_INTERVAL {
            let status = in_one_line(&self.monitor);
            if status != self.status {
                tell(&[NotifyState::Status(&status)]);
                (self.status, self.status_age) = (status, Duration::ZERO);
            }
        }
    }
}

/// Nobody listens where there is no systemd, and one that cannot be told is told again.
fn tell(state: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(state);
}

/// How many sources receive, and the worst of the others.
fn in_one_line(monitor: &DaemonMonitor) -> String {
    let sources = monitor.sources();
    let states: Vec<_> =
        sources.iter().map(|source| (source.name(), source.state(), source.state_in_words().1)).collect();
    let receive = states.iter().filter(|(_, state, _)| *state == SourceState::Receiving).count();
    let verb = if receive == 1 { "receives" } else { "receive" };
    let mut line = format!("{receive} of {} sources {verb}", states.len());
    if let Some((name, state, detail)) = states.iter().max_by_key(|(_, state, _)| severity(state))
        && *state != SourceState::Receiving
    {
        line.push_str(&format!("; {name}: {}", state.name()));
        let detail = match state {
            // Without the time of the next attempt, which is another one each time.
            SourceState::BackingOff { error, .. } => Some(error.clone()),
            _ => detail.clone(),
        };
        if let Some(detail) = detail {
            line.push_str(&format!(": {}", detail.replace(['\r', '\n'], " ")));
        }
    }
    match line.char_indices().nth(STATUS_LEN_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The worse, the larger.
fn severity(state: &SourceState) -> u8 {
    match state {
        SourceState::Receiving => 0,
        SourceState::Starting
        | SourceState::Recovering
        | SourceState::BeginningFromArchive { .. }
        | SourceState::Connecting { .. } => 1,
        SourceState::WaitingForReplicas => 2,
        SourceState::BackingOff { .. } | SourceState::WaitingForArchive { .. } => 3,
        SourceState::Withholding => 4,
        SourceState::WaitingForSpace { .. } => 5,
        SourceState::DiskHangs(_) => 6,
        SourceState::Stuck(_) => 7,
        SourceState::Stopped { .. } => 8,
    }
}

fn lock(progress: &Mutex<Vec<Progress>>) -> MutexGuard<'_, Vec<Progress>> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_worst_source_is_named() {
        let daemon = DaemonMonitor::new(Path::new("data"));
        for name in ["orders", "stock", "users"] {
            daemon.add(Arc::new(SourceMonitor::new(name)));
        }
        let sources = daemon.sources();
        sources.iter().for_each(|source| source.set_state(SourceState::Receiving));
        assert_eq!(in_one_line(&daemon), "3 of 3 sources receive");
        let until = jiff::Timestamp::UNIX_EPOCH;
        sources[0].set_state(SourceState::BackingOff { until, error: "refused\nfor now".to_owned() });
        assert_eq!(in_one_line(&daemon), "2 of 3 sources receive; orders: backing off: refused for now");
        sources[2].set_state(SourceState::stopped("é".repeat(STATUS_LEN_MAX)));
        let line = in_one_line(&daemon);
        assert!(line.starts_with("1 of 3 sources receives; users: stopped: é") && line.ends_with("é…"));
        assert_eq!(line.chars().count(), STATUS_LEN_MAX + 1);
    }

    #[test]
    fn the_watchdogs_time_is_patience_and_silence() {
        let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
        let teller = |seconds: Option<u64>| Teller::new(daemon.clone(), seconds.map(Duration::from_secs));
        let unwatched = teller(None);
        assert_eq!(
            (unwatched.patience, unwatched.interval, unwatched.feeds_watchdog),
            (PATIENCE, LOOK_INTERVAL, false)
        );
        let watched = teller(Some(120));
        assert_eq!((watched.patience, watched.interval), (PATIENCE, LOOK_INTERVAL));
        assert!(watched.feeds_watchdog && !teller(Some(0)).feeds_watchdog);
        assert_eq!(teller(Some(4)).interval, Duration::from_millis(500));
    }
}
