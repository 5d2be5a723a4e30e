//! The last events of a source, or of the daemon, in words: what an operator wants to know who comes in the night.

use crate::units::time::now_in_milliseconds;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Events that are remembered; an older one is forgotten.
pub(crate) const EVENTS_MAX: usize = 20;
/// The same event that comes again is counted when it is among the newest so many: a source that is not reached fails by turns.
const REPEATED_AMONG: usize = 4;
/// Longer texts are cut: a message of a server may name many GTIDs.
const TEXT_CHARACTERS_MAX: usize = 400;

/// How much something concerns an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    #[default]
    Ok,
    /// It is good to know.
    Notice,
    /// It needs somebody soon.
    Warning,
    /// It needs somebody now.
    Critical,
}

impl Level {
    /// As JSON has it.
    pub fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Notice => "notice",
            Level::Warning => "warning",
            Level::Critical => "critical",
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it happened first: RFC 3339, UTC.
    pub at: Timestamp,
    /// When it happened last.
    pub last_at: Timestamp,
    /// How often.
    pub times: u64,
    /// How much it concerns an operator.
    pub level: Level,
    /// What it is about: `state`, `semi_sync`, `commits`, `timeline`, `fork`, `gap`, `disk`, `stuck`, `quorum`, `operator`, `notify`.
    pub kind: String,
    /// What happened, in words.
    pub text: String,
}

/// The last events, the newest at the end. A fixed number of them, of a bounded length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(VecDeque<Event>);

impl Events {
    /// Adds what happens now.
    pub(crate) fn note(&mut self, level: Level, kind: &str, text: impl Into<String>) {
        let (at, mut text) = (now_in_milliseconds(), text.into());
        if let Some((cut, _)) = text.char_indices().nth(TEXT_CHARACTERS_MAX) {
            text.truncate(cut);
            text.push('…');
        }
        let newest = self.0.iter_mut().rev().take(REPEATED_AMONG);
        // What went well in between makes it another event.
        let mut newest = newest.take_while(|event| level == Level::Ok || event.level != Level::Ok);
        if let Some(same) = newest.find(|event| event.kind == kind && event.text == text) {
            same.times += 1;
            same.last_at = at;
            return;
        }
        if self.0.len() >= EVENTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Event { at, last_at: at, times: 1, level, kind: kind.to_owned(), text });
    }

    /// All of them, the newest first.
    pub(crate) fn newest_first(&self) -> Vec<Event> {
        let mut events: Vec<Event> = self.0.iter().rev().cloned().collect();
        events.sort_by_key(|event| std::cmp::Reverse(event.last_at));
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_is_one_event_until_all_was_well() {
        let mut events = Events::default();
        for _ in 0..3 {
            events.note(Level::Critical, "state", "db1: refused");
            events.note(Level::Critical, "state", "db2: no route");
        }
        let seen: Vec<_> =
            events.newest_first().iter().map(|event| (event.times, event.text.clone())).collect();
        assert_eq!(seen, [(3, "db2: no route".to_owned()), (3, "db1: refused".to_owned())]);
        events.note(Level::Ok, "state", "receiving");
        events.note(Level::Critical, "state", "db2: no route");
        assert_eq!(events.newest_first()[0].times, 1);
    }

    #[test]
    fn number_and_length_are_bounded() {
        let mut events = Events::default();
        for number in 0..3 * EVENTS_MAX {
            events.note(Level::Notice, "state", format!("{number} {}", "ä".repeat(2 * TEXT_CHARACTERS_MAX)));
        }
        let events = events.newest_first();
        assert_eq!(events.len(), EVENTS_MAX);
        assert!(events[0].text.starts_with(&format!("{} ", 3 * EVENTS_MAX - 1)));
        assert!(events.iter().all(|event| event.text.chars().count() <= TEXT_CHARACTERS_MAX + 1));
    }
}
