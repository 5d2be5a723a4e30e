//! How fast what is stored grows.

use std::collections::VecDeque;
use std::time::Duration;

/// The present rate is the mean over this time, or since the start if that was later.
const RATE_WINDOW: Duration = Duration::from_secs(600);

/// How fast the copies grow.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// Times since the start, and the bytes stored until then. The first is as old as the window or younger, but for
    /// one that is needed to reach so far back.
    samples: VecDeque<(Duration, u64)>,
}

impl Rate {
    /// `stored` falls when the beginning of a transaction that did not arrive to its end is cut off: that was no growth.
    pub(crate) fn record(&mut self, at: Duration, stored: u64) {
        self.samples.push_back((at, stored));
        while self.samples.get(1).is_some_and(|second| at.saturating_sub(second.0) >= RATE_WINDOW) {
            self.samples.pop_front();
        }
    }

    /// `None` while nothing is stored: then the disk is not filling up.
    pub(crate) fn bytes_per_second(&self) -> Option<f64> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        let (bytes, time) = (last.1.saturating_sub(first.1), last.0.saturating_sub(first.0));
        (bytes > 0 && !time.is_zero()).then(|| bytes as f64 / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn what_was_cut_off_again_is_no_growth() {
        let mut rate = Rate::default();
        for (at, stored) in [(0, 500), (10, 1_500), (20, 500)] {
            rate.record(seconds(at), stored);
        }
        assert_eq!(rate.bytes_per_second(), None);
        rate.record(seconds(25), 100);
        assert_eq!(rate.bytes_per_second(), None);
        rate.record(seconds(30), 1_100);
        assert_eq!(rate.bytes_per_second(), Some(600.0 / 30.0));
    }

    #[test]
    fn the_samples_kept_are_bounded_by_the_window() {
        let mut rate = Rate::default();
        for at in 0..10_000 {
            rate.record(seconds(at), at * 7);
        }
        assert_eq!(rate.bytes_per_second(), Some(7.0));
        assert_eq!(rate.samples.len() as u64, RATE_WINDOW.as_secs() + 1);
    }
}
