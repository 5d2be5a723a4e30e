//! A full disk: when a session is worth another try.
//!
//! What did not fit is cut off again, so that the disk looks as if it had space. A session that is begun with no more than that
//! ends in the same way: the source sends the transaction anew, its commits wait for a replica that cannot acknowledge, and
//! whoever looks in between is told that all is well. So the receiver stays away until more is free than was not enough.

use std::time::{Duration, Instant};

/// With less free space than this no session is begun, in bytes.
pub(crate) const SESSION_BYTES_MIN: u64 = 1 << 20;

/// Between two looks at the free space, which cost next to nothing.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A write that fails although more than this is free, in bytes, fails for another reason: a quota, a limit of the size of a
/// file, no inodes. What is free does not tell then when that is over.
const FULL_BYTES_MAX: u64 = 4 << 20;

/// Bytes that a failed write may have stored in part: the receive buffer.
const PART_BYTES_MAX: u64 = 1 << 20;

/// So much must have become free, in bytes: file systems say a little more or less without a cause.
const GROWTH_BYTES_MIN: u64 = 64 << 10;

/// After a failure no session is begun for so long, which doubles with each failure, up to the longest.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(20);

/// After so long a session is tried though nothing has become free, which doubles each time, up to the longest. What was enough
/// is an estimate where others use the disk too, and nothing is to wait for ever while there is space.
const ANYWAY_MIN: Duration = Duration::from_secs(5 * 60);
const ANYWAY_MAX: Duration = Duration::from_secs(60 * 60);

/// What was seen when a write failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failed {
    /// Bytes that were free then.
    pub(crate) free: u64,
    /// Bytes that were cut off after it: the beginning of the transaction that did not fit.
    pub(crate) discarded: u64,
    /// Bytes that were free when they were cut off.
    pub(crate) free_after: u64,
    /// Transactions that were stored until then.
    pub(crate) stored: u64,
}

/// Why a session is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    /// There is space again.
    Space,
    /// What is free tells nothing.
    Untold,
    /// Nothing has become free for long.
    Anyway,
}

/// A disk that was full, until a session ends for another reason.
#[derive(Debug)]
pub(crate) struct Shortage {
    /// What the status shows.
    pub(crate) error: String,
    /// Since when space is waited for.
    pub(crate) since: Instant,
    /// So many free bytes were not enough; `None` where what is free tells nothing.
    not_enough: Option<u64>,
    /// What was free when the last session began.
    tried_with: Option<u64>,
    /// Transactions that were stored when the write failed.
    stored: u64,
    no_sooner: Instant,
    rest: Duration,
    anyway_at: Instant,
    anyway: Duration,
}

impl Shortage {
    /// So little is free that nothing is tried.
    pub(crate) fn nearly_full(now: Instant, error: String) -> Shortage {
        Shortage {
            error,
            since: now,
            not_enough: Some(0),
            tried_with: None,
            stored: 0,
            no_sooner: now,
            rest: REST_MIN,
            anyway_at: now + ANYWAY_MIN,
            anyway: ANYWAY_MIN,
        }
    }

    /// A write failed. `before` tells of the one before, if no session has ended for another reason since.
    pub(crate) fn after(before: Option<Shortage>, now: Instant, failed: Failed, error: String) -> Shortage {
        let Failed { free, discarded, free_after, stored } = failed;
        // Once something was stored it is another transaction that does not fit.
        let before = before.filter(|before| before.stored == stored);
        let (rest, anyway) = match &before {
            Some(before) => ((before.rest * 2).min(REST_MAX), before.anyway),
            None => (REST_MIN, ANYWAY_MIN),
        };
        // Space that somebody made since the write failed was not tried.
        let not_enough = free_after.min(free + discarded + PART_BYTES_MAX);
        // A file system may give back more than was written. But what a session began with was not enough for it.
        let tried_with = before.and_then(|before| before.tried_with).map_or(0, |with| with.min(free_after));
        Shortage {
            error,
            since: now,
            not_enough: (free < FULL_BYTES_MAX).then_some(not_enough.max(tried_with)),
            tried_with: None,
            stored,
            no_sooner: now + rest,
            rest,
            anyway_at: now + anyway,
            anyway,
        }
    }

    /// Whether a session is to be begun while so many bytes are free, and why.
    pub(crate) fn look(&mut self, now: Instant, free: u64) -> Option<Go> {
        let go = if now < self.no_sooner || free < SESSION_BYTES_MIN {
            return None;
        } else if self.tried_with.is_some() {
            Go::Untold // The last attempt did not come so far.
        } else {
            match self.not_enough {
                None => Go::Untold,
                Some(0) => Go::Space,
                Some(not_enough) if free >= not_enough + GROWTH_BYTES_MIN => Go::Space,
                Some(_) if now >= self.anyway_at => {
                    self.anyway = (self.anyway * 2).min(ANYWAY_MAX);
                    Go::Anyway
                }
                Some(_) => return None,
            }
        };
        if go == Go::Space {
            self.anyway = ANYWAY_MIN;
        }
        self.tried_with = Some(free);
        Some(go)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const SECOND: Duration = Duration::from_secs(1);

    fn failed(free: u64, discarded: u64, free_after: u64) -> Failed {
        Failed { free, discarded, free_after, stored: 7 }
    }

    fn after(before: Option<Shortage>, now: Instant, failed: Failed) -> Shortage {
        Shortage::after(before, now, failed, "full".to_owned())
    }

    #[test]
    fn the_space_that_was_not_enough_is_not_tried_again() {
        let now = Instant::now();
        let mut shortage = after(None, now, failed(0, 3 * MIB, 4 * MIB));
        let mut look = |seconds, free| shortage.look(now + SECOND * seconds, free);
        assert_eq!(look(0, 60 * MIB), None, "a moment ago");
        for seconds in 1..300 {
            assert_eq!(look(seconds, 4 * MIB + GROWTH_BYTES_MIN - 1), None);
        }
        assert_eq!(look(300, 4 * MIB + GROWTH_BYTES_MIN), Some(Go::Space));
    }

    #[test]
    fn space_that_was_made_since_the_failure_is_tried() {
        let now = Instant::now();
        let mut shortage = after(None, now, failed(0, 3 * MIB, 60 * MIB));
        assert_eq!(shortage.look(now + SECOND, 60 * MIB), Some(Go::Space));
        // It was not enough either; or it was, and then the disk ran full again.
        let other = after(
            Some(after(None, now, failed(0, 3 * MIB, 60 * MIB))),
            now,
            Failed { stored: 8, ..failed(0, 3 * MIB, 60 * MIB) },
        );
        assert_eq!((other.rest, other.not_enough), (REST_MIN, Some(4 * MIB)));
        let mut shortage = after(Some(shortage), now + SECOND, failed(0, 3 * MIB, 60 * MIB));
        assert_eq!(shortage.look(now + SECOND * 30, 60 * MIB), None);
        assert_eq!(shortage.look(now + SECOND * 30, 61 * MIB), Some(Go::Space));
    }

    #[test]
    fn nothing_waits_for_ever() {
        let mut now = Instant::now();
        let mut shortage = after(None, now, failed(0, 3 * MIB, 4 * MIB));
        let mut waited = Vec::new();
        for _ in 0..6 {
            let began = now;
            while shortage.look(now, 4 * MIB).is_none() {
                now += SECOND;
            }
            waited.push((now - began).as_secs() / 60);
            shortage = after(Some(shortage), now, failed(0, 3 * MIB, 4 * MIB));
        }
        assert_eq!(waited, [5, 10, 20, 40, 60, 60]);
    }

    #[test]
    fn where_free_space_tells_nothing_the_pauses_grow() {
        let mut now = Instant::now();
        let mut shortage = None;
        let mut waited = Vec::new();
        for _ in 0..7 {
            let mut full = after(shortage, now, failed(900 * MIB, 3 * MIB, 903 * MIB));
            let began = now;
            while full.look(now, 903 * MIB).is_none() {
                now += SECOND;
            }
            waited.push((now - began).as_secs());
            shortage = Some(full);
        }
        assert_eq!(waited, [1, 2, 4, 8, 16, 20, 20]);
    }

    #[test]
    fn a_disk_that_is_nearly_full_is_left_alone() {
        let now = Instant::now();
        let mut shortage = Shortage::nearly_full(now, "full".to_owned());
        assert_eq!(shortage.look(now + ANYWAY_MAX, SESSION_BYTES_MIN - 1), None);
        assert_eq!(shortage.look(now, SESSION_BYTES_MIN), Some(Go::Space));
        assert_eq!(shortage.look(now, SESSION_BYTES_MIN), Some(Go::Untold), "not received yet");
    }
}
