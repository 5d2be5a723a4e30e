//! Whether the clock can be believed when files are to go by their age.

use jiff::Timestamp;
use std::time::{Duration, Instant};

/// From one look to the next the clock may gain or lose so much, as NTP makes it. More is a jump.
const TOLERANCE: Duration = Duration::from_secs(120);

/// So long a clock that has jumped is not believed: somebody, or NTP, has the time to put it right.
const DOUBT: Duration = Duration::from_secs(3600);

/// The clock, beside one that nobody sets.
#[derive(Debug, Default)]
pub struct SteadyClock {
    last: Option<(Timestamp, Instant)>,
    doubted_until: Option<Instant>,
}

impl SteadyClock {
    /// Whether it has gone evenly for a while, by this look at both clocks. A machine that was asleep looks like a jump.
    pub fn is_steady(&mut self, now: Timestamp, at: Instant) -> bool {
        if let Some((then, instant)) = self.last.replace((now, at)) {
            let passed = at.saturating_duration_since(instant).as_secs_f64();
            let shown = now.duration_since(then).as_secs_f64();
            if (shown - passed).abs() > TOLERANCE.as_secs_f64() {
                self.doubted_until = Some(at + DOUBT);
            }
        }
        self.doubted_until.is_none_or(|until| at >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_is_doubted_for_an_hour() {
        let began = Instant::now();
        let mut clock = SteadyClock::default();
        let mut is_steady = |shown: i64, passed: u64| {
            clock.is_steady(Timestamp::from_second(shown).unwrap(), began + Duration::from_secs(passed))
        };
        assert!(is_steady(1_000_000, 0));
        assert!(is_steady(1_000_065, 5), "NTP may do that");
        assert!(!is_steady(5_000_000, 10));
        assert!(!is_steady(5_000_005, 15));
        assert!(!is_steady(1_000_020, 20), "it is put right, and so not steady either");
        assert!(!is_steady(1_003_619, 3619));
        assert!(is_steady(1_003_620, 3620));
        assert!(!is_steady(900_000, 3625), "backwards too");
    }
}
