//! Looks, from a thread that never touches the disk, whether the disk answers those that do.

use crate::keeper::Keeper;
use binlog::storage::activity::{DiskActivity, Operation};
use source::stop::StopSignal;
use status::{DiskHang, SourceMonitor};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// An operation that is under way for so long makes a state of its own: shorter than the patience of people whose commits
/// wait, far longer than a slow disk takes for a record of the journal.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// As [`ANSWER_MAX`], for a sync of a binary log. While a backlog is received it has as much to write as arrived during the
/// one before.
const SYNC_ANSWER_MAX: Duration = Duration::from_secs(15);

/// Pause between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The operations of one source.
struct Watched {
    monitor: Arc<SourceMonitor>,
    /// Gone when the receiver's storage is.
    activity: Weak<DiskActivity>,
    /// What was under way at the last look, and since when.
    waiting: [Option<Waiting>; Operation::ALL.len()],
    /// The operation that takes too long, and when the log says so again.
    told: Option<(Operation, Instant)>,
}

#[derive(Clone, Copy)]
struct Waiting {
    ended: u64,
    since: Instant,
}

/// The thread that looks. It ends when this is dropped.
pub(crate) struct HangWatch {
    watched: Arc<Mutex<Vec<Watched>>>,
    _keeper: Keeper,
}

impl HangWatch {
    /// Looks from a thread.
    ///
    /// # Errors
    /// When the system has no thread or descriptor left.
    pub(crate) fn start() -> io::Result<HangWatch> {
        let watched: Arc<Mutex<Vec<Watched>>> = Arc::default();
        let list = watched.clone();
        let keeper = Keeper::start("disk-hang", LOOK_INTERVAL, move |_: &StopSignal| {
            let now = Instant::now();
            lock(&list).retain_mut(|watched| watched.look(now));
            LOOK_INTERVAL
        })?;
        Ok(HangWatch { watched, _keeper: keeper })
    }

    /// Watches the operations of a source from now on, until its storage is dropped.
    pub(crate) fn watch(&self, monitor: Arc<SourceMonitor>, activity: &Arc<DiskActivity>) {
        let activity = Arc::downgrade(activity);
        lock(&self.watched).push(Watched { monitor, activity, waiting: Default::default(), told: None });
    }
}

impl Watched {
    /// False when there is nothing to look at any more.
    fn look(&mut self, now: Instant) -> bool {
        let Some(activity) = self.activity.upgrade() else {
            self.answers();
            return false;
        };
        let mut longest: Option<(Operation, Instant)> = None;
        for operation in Operation::ALL {
            let waiting = &mut self.waiting[operation as usize];
            *waiting = activity.under_way(operation).map(|ended| match *waiting {
                Some(before) if before.ended == ended => before,
                _ => Waiting { ended, since: now },
            });
            if let Some(Waiting { since, .. }) = *waiting
                && now.saturating_duration_since(since) >= answer_max(operation)
                && longest.is_none_or(|(_, earlier)| since < earlier)
            {
                longest = Some((operation, since));
            }
        }
        match longest {
            Some((operation, since)) => self.does_not_answer(operation, since, now),
            None => self.answers(),
        }
        true
    }

    fn does_not_answer(&mut self, operation: Operation, since: Instant, now: Instant) {
        let lasted = now.saturating_duration_since(since);
        if self.told.is_none_or(|(told, again)| told != operation || now >= again) {
            let text = format!(
                "the disk does not answer: {operation} has been under way for {} s; nothing is acknowledged until it ends",
                lasted.as_secs()
            );
            tracing::error!(source = self.monitor.name(), "{text}");
            self.monitor.set_error(text);
            // After 5 s, 10 s, 20 s, and so on.
            self.told = Some((operation, now + lasted));
        }
        // Last: who sees the state finds its error, and the line in the log.
        self.monitor.set_disk_hang(Some(DiskHang { operation: operation.to_string(), since }));
    }

    fn answers(&mut self) {
        if self.told.take().is_some() {
            tracing::warn!(source = self.monitor.name(), "the disk answers again");
            self.monitor.set_disk_hang(None);
        }
    }
}

fn answer_max(operation: Operation) -> Duration {
    if operation == Operation::Sync { SYNC_ANSWER_MAX } else { ANSWER_MAX }
}

fn lock(watched: &Mutex<Vec<Watched>>) -> MutexGuard<'_, Vec<Watched>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}
