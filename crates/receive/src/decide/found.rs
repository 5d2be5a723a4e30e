//! What this process has found out about the source and the newest timeline, so that it is not asked again at each attempt.

use binlog::Position;
use std::time::{Duration, Instant};

/// What was found, in the life of a copy that is held.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Up to here the source was found to have every byte that is held.
    equal_through: Option<Position>,
    /// The source refused to read on from the present end of the newest timeline.
    refusals: Option<Refusals>,
    /// A session that began here fell silent and brought nothing.
    silent_at: Option<Position>,
    /// The beginning of the newest timeline was found to be the source's.
    beginning_compared: bool,
}

impl Found {
    /// Another timeline is the newest one.
    pub(crate) fn another_timeline(&mut self) {
        self.equal_through = None;
        self.beginning_compared = false;
    }

    /// Remembers that the source was found to have every byte of the newest timeline up to its present `end`. A comparison
    /// reads a whole file of the source, so the same error at the same place does not cause another one.
    pub(crate) fn equal(&mut self, end: Option<Position>) {
        self.equal_through = end;
    }

    /// Whether that was found when the timeline ended at `at`.
    pub(crate) fn is_equal_through(&self, at: &Position) -> bool {
        self.equal_through.as_ref() == Some(at)
    }

    /// Counts that the source refused to read on from `at`: how often it did so in these words since it last said something
    /// else.
    pub(crate) fn refused(&mut self, at: &Position, words: &str, now: Instant) -> Refusals {
        let mut refusals = self
            .refusals
            .take()
            .filter(|refusals| refusals.at == *at && refusals.words == words)
            .unwrap_or_else(|| Refusals::first(at, words, now));
        refusals.times += 1;
        self.refusals.insert(refusals).clone()
    }

    /// Remembers that a session which began at `at` fell silent, if it brought nothing: if the timeline's `end` is there.
    pub(crate) fn silent(&mut self, at: &Position, end: Option<Position>) {
        self.silent_at = end.filter(|end| end == at);
    }

    /// Whether the last session that fell silent had begun at `at` and brought nothing.
    pub(crate) fn is_silent_at(&self, at: &Position) -> bool {
        self.silent_at.as_ref() == Some(at)
    }

    /// Remembers that the newest timeline begins as the source's log does.
    pub(crate) fn beginning_is_compared(&mut self) {
        self.beginning_compared = true;
    }

    /// Whether that was found in this process.
    pub(crate) fn is_beginning_compared(&self) -> bool {
        self.beginning_compared
    }
}

/// The same words about the same place, again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusals {
    at: Position,
    /// They name the place at which the source stopped reading.
    words: String,
    since: Instant,
    /// How often.
    pub(crate) times: u32,
}

impl Refusals {
    /// None yet.
    pub(crate) fn first(at: &Position, words: &str, now: Instant) -> Refusals {
        Refusals { at: at.clone(), words: words.to_owned(), since: now, times: 0 }
    }

    /// For how long, until `now`.
    pub(crate) fn lasted(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_or_another_place_begin_a_new_count() {
        let (mut found, now) = (Found::default(), Instant::now());
        let (here, there) = (Position::new("b.000007", 99), Position::new("b.000007", 300));
        let mut times = |at, words| found.refused(at, words, now).times;
        assert_eq!([times(&here, "a"), times(&here, "a"), times(&here, "b")], [1, 2, 1]);
        assert_eq!([times(&there, "b"), times(&there, "b"), times(&here, "b")], [1, 2, 1]);
    }
}
