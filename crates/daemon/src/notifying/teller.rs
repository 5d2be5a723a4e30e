//! What one receiver was told, and what it must be told next: no I/O, no clock. What waits for a receiver is the difference between
//! what it was told and what holds now, so the newest state wins and nothing grows while it is down.

use crate::keeper::Retry;
use serde::Serialize;
use status::{Level, SourceStatus, Worry};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The pauses between tries of a receiver that is down.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A source's judgement, as far as a change of it is told: what is good to know and no more is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) level: Level,
    /// The kinds, sorted, each once.
    reasons: Vec<String>,
}

impl State {
    fn of(problems: &[Worry]) -> State {
        let told = || problems.iter().filter(|problem| problem.level >= Level::Warning);
        let mut reasons: Vec<String> = told().map(|problem| problem.kind.clone()).collect();
        reasons.sort();
        reasons.dedup();
        State { level: told().map(|problem| problem.level).max().unwrap_or_default(), reasons }
    }
}

/// What is told, as a line of JSON.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Message {
    /// Name of the source; null for what concerns the daemon.
    pub(super) source: Option<String>,
    pub(super) level: Level,
    /// The level that this receiver was told before; null for the first time since the start.
    pub(super) before: Option<Level>,
    /// Nothing is a warning or worse any more.
    pub(super) all_clear: bool,
    pub(super) headline: String,
    /// What is a warning or worse, the worst first, as `/status` has it.
    pub(super) problems: Vec<Worry>,
    pub(super) time: String,
    #[serde(skip)]
    state: State,
}

/// What holds now of a source.
pub(super) struct Now {
    /// Empty for the daemon.
    pub(super) source: String,
    pub(super) headline: String,
    pub(super) problems: Vec<Worry>,
}

impl Now {
    pub(super) fn of(source: &SourceStatus) -> Now {
        let verdict = &source.verdict;
        Now {
            source: source.name.clone(),
            headline: verdict.headline.clone(),
            problems: verdict.problems.clone(),
        }
    }
}

struct Told {
    /// `None` before the first time.
    state: Option<State>,
    /// When it was told, or first seen.
    at: Instant,
}

/// One receiver.
pub(super) struct Teller {
    every: Duration,
    told: BTreeMap<String, Told>,
    retry: Retry,
    not_before: Option<Instant>,
    /// The last try failed.
    pub(super) is_down: bool,
}

impl Teller {
    /// Of a receiver that was told nothing. A source is not told of more often than `every`.
    pub(super) fn new(every: Duration) -> Teller {
        let retry = Retry::new(RETRY_MIN, RETRY_MAX);
        Teller { every, told: BTreeMap::new(), retry, not_before: None, is_down: false }
    }

    /// What is to be told now, the worst first. Sources that are gone are forgotten. What a source is at first is told as well, because
    /// nobody knows what an earlier process told; but not before it has had time to connect.
    pub(super) fn due(&mut self, sources: Vec<Now>, now: Instant, time: &str) -> Vec<Message> {
        self.told.retain(|name, _| sources.iter().any(|source| source.source == *name));
        let mut due = Vec::new();
        for source in sources {
            let state = State::of(&source.problems);
            let told = self.told.entry(source.source.clone()).or_insert(Told { state: None, at: now });
            if told.state.as_ref() == Some(&state) || now.duration_since(told.at) < self.every {
                continue;
            }
            due.push(Message {
                source: (!source.source.is_empty()).then_some(source.source),
                level: state.level,
                before: told.state.as_ref().map(|state| state.level),
                all_clear: state.level == Level::Ok,
                headline: source.headline,
                problems: source
                    .problems
                    .into_iter()
                    .filter(|problem| problem.level >= Level::Warning)
                    .collect(),
                time: time.to_owned(),
                state,
            });
        }
        if self.not_before.is_some_and(|not_before| now < not_before) {
            due.clear();
        }
        due.sort_by_key(|message| std::cmp::Reverse(message.level));
        due
    }

    /// It has been told.
    pub(super) fn was_told(&mut self, message: &Message, now: Instant) {
        let name = message.source.clone().unwrap_or_default();
        self.told.insert(name, Told { state: Some(message.state.clone()), at: now });
        self.retry.went_well();
        (self.not_before, self.is_down) = (None, false);
    }

    /// It could not be told: it is left alone for a while.
    pub(super) fn failed(&mut self, now: Instant) {
        self.not_before = Some(now + self.retry.failed());
        self.is_down = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn problem(level: Level, kind: &str) -> Worry {
        Worry { level, kind: kind.to_owned(), ..Worry::default() }
    }

    fn now(source: &str, problems: &[Worry]) -> Now {
        Now { source: source.to_owned(), headline: String::new(), problems: problems.to_vec() }
    }

    /// A receiver that knows that `a` is well, and the moment from which another thing may be told.
    fn knows_a() -> (Teller, Instant) {
        let (mut teller, began) = (Teller::new(EVERY), Instant::now());
        assert_eq!(teller.due(vec![now("a", &[])], began, "").len(), 0, "it has had no time to connect");
        let first = teller.due(vec![now("a", &[])], began + EVERY, "");
        assert!(first.len() == 1 && first[0].before.is_none() && first[0].all_clear);
        teller.was_told(&first[0], began + EVERY);
        (teller, began + EVERY * 2)
    }

    #[test]
    fn changes_and_the_all_clear_are_told_once() {
        let (mut teller, at) = knows_a();
        let gone = || vec![now("a", &[problem(Level::Critical, "gone"), problem(Level::Notice, "old")])];
        let told = teller.due(gone(), at, "");
        assert_eq!((told.len(), told[0].level, told[0].before), (1, Level::Critical, Some(Level::Ok)));
        assert_eq!((told[0].problems.len(), told[0].all_clear), (1, false));
        teller.was_told(&told[0], at);
        assert!(teller.due(gone(), at + EVERY, "").is_empty());
        // The same level for another reason is a change; what is only good to know is none.
        let other = vec![now("a", &[problem(Level::Critical, "disk")])];
        assert_eq!(teller.due(other, at + EVERY, "").len(), 1);
        let clear = teller.due(vec![now("a", &[problem(Level::Notice, "old")])], at + EVERY, "");
        assert!(clear[0].all_clear && clear[0].before == Some(Level::Critical));
    }

    #[test]
    fn a_state_that_flaps_is_told_at_most_so_often() {
        let (mut teller, at) = knows_a();
        let mut told = 0;
        for second in 0..100 {
            let problems = [problem(Level::Warning, "behind")];
            let problems = if second % 2 == 0 { &problems[..] } else { &[] };
            for message in teller.due(vec![now("a", problems)], at + Duration::from_secs(second), "") {
                told += 1;
                teller.was_told(&message, at + Duration::from_secs(second));
            }
        }
        assert!((5..=10).contains(&told), "{told}");
    }

    #[test]
    fn a_receiver_that_is_down_is_told_the_newest_and_nothing_grows() {
        let (mut teller, at) = knows_a();
        let (mut tries, mut second) = (0, 0);
        while second < 1000 {
            let kind = format!("reason_{second}");
            let due = teller.due(
                vec![now("a", &[problem(Level::Warning, &kind)])],
                at + Duration::from_secs(second),
                "",
            );
            assert!(due.len() <= 1);
            if !due.is_empty() {
                tries += 1;
                teller.failed(at + Duration::from_secs(second));
            }
            second += 1;
        }
        assert!((15..=25).contains(&tries) && teller.is_down && teller.told.len() == 1, "{tries}");
        let later = at + Duration::from_secs(1000) + RETRY_MAX;
        let newest = teller.due(vec![now("a", &[problem(Level::Critical, "newest")])], later, "");
        assert_eq!((newest.len(), newest[0].problems[0].kind.as_str()), (1, "newest"));
        teller.was_told(&newest[0], later);
        assert!(!teller.is_down);
        // A source that is not there any more is forgotten.
        assert!(teller.due(Vec::new(), later, "").is_empty() && teller.told.is_empty());
    }
}
