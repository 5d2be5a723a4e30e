//! When the next sync in the background is due.

use source::clock::Clock;
use std::time::{Duration, Instant};

/// A sync in the background that covers so much is one of a bulk.
const BULK_BYTES: u64 = 1 << 20;

/// How long a background sync that has ended may go unnoticed while nothing arrives.
pub(super) const BACKGROUND_SYNC_LOOK: Duration = Duration::from_millis(5);

/// How old written bytes get before a sync of them begins.
pub(super) struct SyncPace {
    /// See `fsync_interval`.
    interval: Duration,
    /// When the oldest byte was written that no sync covers, or will when it ends.
    unsynced_since: Option<Instant>,
    /// The last sync in the background covered much: the next one follows at once, so that what is durable advances
    /// steadily and the end of a backlog does not wait for the interval.
    in_bulk: bool,
}

impl SyncPace {
    pub(super) fn new(interval: Duration) -> SyncPace {
        SyncPace { interval, unsynced_since: None, in_bulk: false }
    }

    /// Something was written.
    pub(super) fn written(&mut self, now: Instant) {
        self.unsynced_since.get_or_insert(now);
    }

    /// Everything written is durable.
    pub(super) fn everything_is_durable(&mut self) {
        self.unsynced_since = None;
    }

    /// A sync in the background has begun that covers everything written, of which so much was new.
    pub(super) fn background_sync_began(&mut self, bytes: u64) {
        self.in_bulk = bytes >= BULK_BYTES;
        self.unsynced_since = None;
    }

    pub(super) fn is_due(&self, clock: &dyn Clock) -> bool {
        self.unsynced_since
            .is_some_and(|since| clock.now().saturating_duration_since(since) >= self.sync_after())
    }

    /// Longest time until it must be asked again whether one is due.
    pub(super) fn look_within(&self) -> Option<Duration> {
        self.unsynced_since.map(|_| self.sync_after())
    }

    /// Age of written bytes at which a sync of them begins.
    fn sync_after(&self) -> Duration {
        // Half of the limit: the thread may sleep as long again.
        if self.in_bulk { BACKGROUND_SYNC_LOOK } else { self.interval / 2 }
    }
}
