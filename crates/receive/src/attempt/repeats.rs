//! What the log says of errors that come again and again: each once, then at growing intervals, with their number.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// An error that has been said is said again after this time at the earliest; after twice that, and so on.
const INTERVAL_MIN: Duration = Duration::from_secs(60);

/// The longest time between two lines about one error that goes on.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// Different errors that are remembered. A text that names something new each time must not fill the memory.
const ERRORS_MAX: usize = 16;

#[derive(Debug)]
struct Said {
    error: String,
    at: Instant,
    interval: Duration,
    /// How often it came since then.
    unsaid: u64,
}

/// The errors of one source since it was last received for some time.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// The one that was said last comes last.
    said: VecDeque<Said>,
}

/// How often an error came since it was said last, as an addition to the line that says it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Again {
    times: u64,
    within: Duration,
}

impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times {
            0 => Ok(()),
            times => {
                write!(f, " ({times} more times in the last {} min)", self.within.as_secs().div_ceil(60))
            }
        }
    }
}

impl Repeats {
    /// An error has come: `Some` when the log should say so.
    pub(crate) fn hear(&mut self, error: &str, now: Instant) -> Option<Again> {
        let Some(at) = self.said.iter().position(|said| said.error == error) else {
            if self.said.len() == ERRORS_MAX {
                self.said.pop_front();
            }
            let first = Said { error: error.to_owned(), at: now, interval: INTERVAL_MIN, unsaid: 0 };
            self.said.push_back(first);
            return Some(Again { times: 0, within: Duration::ZERO });
        };
        let said = &mut self.said[at];
        let within = now.saturating_duration_since(said.at);
        if within < said.interval {
            said.unsaid += 1;
            return None;
        }
        let again = Again { times: std::mem::take(&mut said.unsaid), within };
        said.at = now;
        said.interval = (said.interval * 2).min(INTERVAL_MAX);
        if let Some(said) = self.said.remove(at) {
            self.said.push_back(said);
        }
        Some(again)
    }

    /// The source was received: whatever breaks next is news.
    pub(crate) fn forget(&mut self) {
        self.said.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_is_down_for_a_day_does_not_fill_the_log() {
        let began = Instant::now();
        let mut repeats = Repeats::default();
        let mut lines = Vec::new();
        for attempt in 0..2 * 24 * 3600u32 {
            let at = Duration::from_millis(500) * attempt;
            if let Some(again) = repeats.hear("connection refused", began + at) {
                lines.push((at.as_secs(), again.to_string()));
            }
        }
        assert_eq!(lines[0], (0, String::new()));
        assert_eq!(lines[1], (60, " (119 more times in the last 1 min)".to_owned()));
        assert_eq!(lines[2], (180, " (239 more times in the last 2 min)".to_owned()));
        assert!(lines.len() < 35, "{lines:?}");
        assert_eq!(lines[9].0 - lines[8].0, 3600, "it is said again once an hour");
    }

    #[test]
    fn another_error_is_said_at_once_and_all_are_news_after_a_success() {
        let now = Instant::now();
        let mut repeats = Repeats::default();
        let mut hear = |error: &str| repeats.hear(error, now).is_some();
        assert_eq!(
            [hear("refused"), hear("closed"), hear("refused"), hear("closed")],
            [true, true, false, false]
        );
        repeats.forget();
        assert!(repeats.hear("refused", now).is_some());
        for number in 0..100 {
            assert!(repeats.hear(&format!("position {number}"), now).is_some());
        }
        assert_eq!(repeats.said.len(), ERRORS_MAX);
    }
}
