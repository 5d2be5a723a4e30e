//! Transactions that arrive and for which the source asks for no acknowledgement.
//!
//! A request covers everything before it: MySQL asks once a flush group, at the group's last event. So a transaction is
//! *unasked* when it arrived live, a boundary stood behind it, and no request that covers it came within
//! [`ASKED_WITHIN`]. *Live* means that the session had caught up before: the source has asked in it, or has said by a
//! heartbeat that it has nothing newer. What was committed before the session, and is only fetched in it, is not live.
//!
//! The receiving thread counts; the rest is looked at once a batch, and then only while something waits for a request.

use std::time::{Duration, Instant};

/// How long after its arrival a transaction must have been asked for. A flush group arrives in one go, and the request is
/// in its last packet.
pub(crate) const ASKED_WITHIN: Duration = Duration::from_secs(1);

/// The count of one session.
#[derive(Debug, Default)]
pub(crate) struct Unasked {
    /// The session has caught up once.
    live: bool,
    /// Live transactions since the last request.
    pending: u64,
    /// Of those, how many were found unasked.
    told: u64,
    /// How many were pending at `since`.
    aging: u64,
    /// When the oldest of those that are not told was looked at first.
    since: Option<Instant>,
}

impl Unasked {
    /// A transaction has arrived to its end.
    #[inline]
    pub(crate) fn transaction(&mut self) {
        self.pending += u64::from(self.live);
    }

    /// The source asks for an acknowledgement that covers all that have arrived. True when some were found unasked since
    /// the request before.
    pub(crate) fn asked(&mut self) -> bool {
        let ends_a_run = self.told > 0;
        *self = Unasked { live: true, ..Unasked::default() };
        ends_a_run
    }

    /// The source has nothing newer.
    pub(crate) fn caught_up(&mut self) {
        self.live = true;
    }

    /// True while [`found`](Self::found) may find some.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.pending > self.told
    }

    /// How many more were found unasked at `now`.
    pub(crate) fn found(&mut self, now: Instant) -> Option<u64> {
        if !self.waits() {
            return None;
        }
        let Some(since) = self.since else {
            (self.since, self.aging) = (Some(now), self.pending);
            return None;
        };
        if now.saturating_duration_since(since) < ASKED_WITHIN {
            return None;
        }
        let found = self.aging - self.told;
        self.told = self.aging;
        // Those that came meanwhile have their own time.
        (self.since, self.aging) = if self.waits() { (Some(now), self.pending) } else { (None, 0) };
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(unasked: &mut Unasked, count: usize) {
        (0..count).for_each(|_| unasked.transaction());
    }

    #[test]
    fn a_backlog_is_not_live() {
        let (mut unasked, now) = (Unasked::default(), Instant::now());
        arrive(&mut unasked, 1000);
        assert_eq!((unasked.found(now), unasked.found(now + ASKED_WITHIN * 9)), (None, None));
        assert!(!unasked.asked());
        arrive(&mut unasked, 3);
        assert!(unasked.waits());
    }

    #[test]
    fn a_group_is_covered_by_the_request_at_its_end() {
        let (mut unasked, now) = (Unasked::default(), Instant::now());
        unasked.caught_up();
        for group in 0..5 {
            arrive(&mut unasked, 100);
            assert_eq!(unasked.found(now + ASKED_WITHIN * group), None, "it has only begun");
            assert!(!unasked.asked());
        }
    }

    #[test]
    fn what_nobody_asks_for_is_found_when_its_time_is_over() {
        let (mut unasked, now) = (Unasked::default(), Instant::now());
        unasked.caught_up();
        arrive(&mut unasked, 7);
        assert_eq!(unasked.found(now), None);
        arrive(&mut unasked, 2);
        assert_eq!(unasked.found(now + ASKED_WITHIN / 2), None);
        assert_eq!(unasked.found(now + ASKED_WITHIN), Some(7));
        assert_eq!(unasked.found(now + ASKED_WITHIN), None, "the others are not as old");
        assert_eq!(unasked.found(now + ASKED_WITHIN * 2), Some(2));
        assert!(!unasked.waits());
        arrive(&mut unasked, 1);
        assert_eq!(unasked.found(now + ASKED_WITHIN * 2), None);
        assert!(unasked.asked(), "the run is over");
        assert!(!unasked.asked());
        assert_eq!(unasked.found(now + ASKED_WITHIN * 9), None, "the last one was asked for in time");
    }
}
