//! Pauses between attempts to reach a source: growing, capped, with jitter.

use std::time::Duration;

/// A session that lasted this long counts as a success: the next pause is the shortest again. Shorter ones do not, so
/// that a source that accepts and drops connections (a clash of identities, say) is not asked in a hot loop.
const GOOD_SESSION: Duration = Duration::from_secs(10);

/// The pauses of one source.
#[derive(Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from `min` to `max`, doubling.
    pub fn new(min: Duration, max: Duration) -> Backoff {
        Backoff { min, max, next: min }
    }

    /// Tells how long the session lasted that has just ended.
    pub fn session_lasted(&mut self, duration: Duration) {
        if duration >= GOOD_SESSION {
            self.next = self.min;
        }
    }

    /// The next pause. `random` is uniform over all values; up to half of the pause is taken off by it, so that many
    /// receivers of one source do not come back all at once.
    pub fn pause(&mut self, random: u32) -> Duration {
        let pause = self.next;
        self.next = (self.next * 2).min(self.max);
        pause - pause.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
    }

    /// The shortest pause, between two hosts of a list.
    pub fn shortest(&self) -> Duration {
        self.min
    }

    /// The longest pause, for errors that only a person can mend.
    pub fn longest(&self) -> Duration {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap_and_start_again_after_a_good_session() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(500));
        let mut take = |random| backoff.pause(random).as_millis();
        assert_eq!([take(0), take(0), take(0), take(0), take(0)], [100, 200, 400, 500, 500]);
        assert_eq!(take(u32::MAX), 250);
        backoff.session_lasted(Duration::from_secs(1));
        assert_eq!(backoff.pause(0).as_millis(), 500);
        backoff.session_lasted(Duration::from_secs(60));
        assert_eq!(backoff.pause(0).as_millis(), 100);
    }
}
