//! Pauses between attempts to reach a source.
//!
//! Commits wait for us, so the pauses are short: `backoff_min` to `backoff_max`, for as long as the source refuses or cuts
//! connections, which costs it next to nothing. They are longer only where a peer tells us to go away, and there is none
//! where the next step is known. Each has jitter, so that many receivers of one source do not come back all at once.

use std::time::{Duration, Instant};

/// A session that lasted this long counts as a success: the next pause is the shortest again. Shorter ones do not, so
/// that a source that accepts and drops connections (a clash of identities, say) is not asked in a hot loop.
const GOOD_SESSION: Duration = Duration::from_secs(10);

/// The pause grows up to this where somebody must change something first: the password, a privilege, our identity.
pub(crate) const DENIED_MAX: Duration = Duration::from_secs(30);

/// The pause grows up to this where the server has no connection left for us. Clients that wait for our acknowledgement
/// hold theirs, so that we must get the next one that is free.
pub(crate) const CROWDED_MAX: Duration = Duration::from_secs(5);

/// A reset is answered in two steps, the end of the session and a new timeline. So two steps in this time are taken without a
/// pause; should steps follow one another for ever, they do so slowly.
const STEP_INTERVAL: Duration = Duration::from_secs(1);

/// The pauses of one source.
#[derive(Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
    /// Between steps, where one is taken.
    next_step: Duration,
    /// When a pause was left out, the last two times; the older one first.
    stepped: [Option<Instant>; 2],
}

impl Backoff {
    /// Pauses from `min` to `max`, doubling.
    pub(crate) fn new(min: Duration, max: Duration) -> Backoff {
        Backoff { min, max, next: min, next_step: min, stepped: [None; 2] }
    }

    /// Tells how long the session lasted that has just ended; true when that makes it a success.
    pub(crate) fn session_lasted(&mut self, duration: Duration) -> bool {
        if duration >= GOOD_SESSION {
            self.next = self.min;
        }
        duration >= GOOD_SESSION
    }

    /// The next pause. `random` is uniform over all values; up to half of the pause is taken off by it.
    pub(crate) fn pause(&mut self, random: u32) -> Duration {
        let pause = self.next;
        self.next = (self.next * 2).min(self.max);
        with_jitter(pause, random)
    }

    /// The pause before a step that is known to be the right one: none, unless there were two such steps a moment ago. These pauses
    /// grow by steps alone: failures of before are no reason to let commits wait now.
    pub(crate) fn step(&mut self, now: Instant, random: u32) -> Duration {
        let [before_last, last] = self.stepped;
        let is_within = |stepped: Option<Instant>, time| {
            stepped.is_some_and(|stepped| now.saturating_duration_since(stepped) < time)
        };
        if is_within(before_last, STEP_INTERVAL) {
            let pause = self.next_step;
            self.next_step = (self.next_step * 2).min(self.max);
            return with_jitter(pause, random);
        }
        if !is_within(last, GOOD_SESSION) {
            self.next_step = self.min;
        }
        self.stepped = [last, Some(now)];
        Duration::ZERO
    }

    /// What [`Backoff::pause`] grows to.
    pub(crate) fn longest(&self) -> Duration {
        self.max
    }
}

/// The pauses of a host that told us to go away. They begin where the ordinary ones end.
#[derive(Debug, Default)]
pub(crate) struct Away {
    next: Option<Duration>,
    until: Option<Instant>,
}

impl Away {
    /// It told us to go away: how long to stay. The pauses double from the longest ordinary one up to `limit`.
    pub(crate) fn stay(
        &mut self,
        now: Instant,
        ordinary: &Backoff,
        limit: Duration,
        random: u32,
    ) -> Duration {
        let nominal = self.next.unwrap_or(ordinary.longest());
        let limit = limit.max(ordinary.longest());
        self.next = Some((nominal * 2).min(limit));
        let pause = with_jitter(nominal.min(limit), random);
        self.until = Some(now + pause);
        pause
    }

    /// True while it is too early to come back.
    pub(crate) fn is_too_early(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// It did not tell us to go away, or took us for long.
    pub(crate) fn welcome(&mut self) {
        *self = Away::default();
    }
}

fn with_jitter(pause: Duration, random: u32) -> Duration {
    pause - pause.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = Duration::from_millis(100);
    const MAX: Duration = Duration::from_millis(500);

    #[test]
    fn pauses_double_up_to_the_cap_and_start_again_after_a_good_session() {
        let mut backoff = Backoff::new(MIN, MAX);
        let mut take = |random| backoff.pause(random).as_millis();
        assert_eq!([take(0), take(0), take(0), take(0), take(0)], [100, 200, 400, 500, 500]);
        assert_eq!(take(u32::MAX), 250);
        assert!(!backoff.session_lasted(Duration::from_secs(1)));
        assert_eq!(backoff.pause(0).as_millis(), 500);
        assert!(backoff.session_lasted(Duration::from_secs(60)));
        assert_eq!(backoff.pause(0).as_millis(), 100);
    }

    #[test]
    fn a_known_step_is_taken_at_once_but_not_in_a_hot_loop() {
        let mut backoff = Backoff::new(MIN, MAX);
        let now = Instant::now();
        // Failures of before do not count.
        backoff.pause(0);
        backoff.pause(0);
        assert_eq!([backoff.step(now, 0), backoff.step(now, 0)], [Duration::ZERO; 2]);
        assert_eq!([backoff.step(now, 0), backoff.step(now, 0)], [MIN, MIN * 2]);
        let next = now + STEP_INTERVAL;
        assert_eq!([backoff.step(next, 0), backoff.step(next, 0)], [Duration::ZERO; 2]);
        assert_eq!(backoff.step(next, 0), MIN * 4, "for ever, but slower each time");
        let later = next + GOOD_SESSION;
        assert_eq!([backoff.step(later, 0), backoff.step(later, 0)], [Duration::ZERO; 2]);
        assert_eq!(backoff.step(later, 0), MIN);
    }

    #[test]
    fn who_is_told_to_go_stays_away_longer_each_time() {
        let backoff = Backoff::new(MIN, MAX);
        let now = Instant::now();
        let mut away = Away::default();
        assert!(!away.is_too_early(now));
        let mut take = |limit| away.stay(now, &backoff, limit, 0).as_millis();
        assert_eq!([take(DENIED_MAX), take(DENIED_MAX), take(CROWDED_MAX)], [500, 1000, 2000]);
        assert_eq!([take(DENIED_MAX), take(CROWDED_MAX), take(DENIED_MAX)], [4000, 5000, 5000]);
        for _ in 0..3 {
            take(DENIED_MAX);
        }
        assert_eq!(take(DENIED_MAX), DENIED_MAX.as_millis());
        assert!(away.is_too_early(now + DENIED_MAX / 2) && !away.is_too_early(now + DENIED_MAX));
        away.welcome();
        assert!(!away.is_too_early(now));
        // Where the operator wants longer pauses than ours, they count.
        let patient = Backoff::new(MIN, DENIED_MAX * 2);
        assert_eq!(away.stay(now, &patient, DENIED_MAX, 0), DENIED_MAX * 2);
    }
}
