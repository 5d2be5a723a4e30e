//! The places for which a reader was asked for an acknowledgement, until it has answered.
//!
//! The thread that sends a dump writes down what it asks for; the thread that reads from the same reader (`answers.rs`) holds
//! each answer against that. What is answered is a confirmation: the reader has made everything durable up to there. It counts up
//! to a place that was asked for, which is a boundary, wherever the reader itself draws the line.

use binlog::writer::published::Published;
use codec::Position;
use codec::packet::SemiSyncAcknowledgement;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most places that wait for an answer. Of more, the newest stands for all that were asked for since the one before.
const OUTSTANDING_MAX: usize = 1024;

/// What one reader was asked for in its dump.
#[derive(Debug, Default)]
pub struct Asked(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Whoever reads, over connections: a UUID, or a `server_id`. Empty for a reader that is asked for nothing.
    receiver: String,
    /// Of what is published, when the dump began.
    generation: u64,
    /// In the order in which they were sent.
    outstanding: VecDeque<Position>,
    confirmed: Option<Position>,
    /// Behind all that was asked for: the reader had it before, by its own word.
    had: Option<Position>,
}

/// An answer that cannot be one.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadAnswer {
    /// Nothing was asked for.
    #[error("it acknowledges {0}, and was asked for nothing")]
    NotAsked(String),
    /// Of another file.
    #[error("it acknowledges {0}, and was not asked for anything in that file")]
    OtherFile(String),
    /// It cannot have that.
    #[error("it acknowledges {0}, which lies behind {1}, the last place that it was asked for")]
    Beyond(String, Position),
}

impl Asked {
    /// From now on `receiver` is asked.
    pub(crate) fn receiver_is(&self, receiver: &str) {
        receiver.clone_into(&mut self.state().receiver);
    }

    /// Whether the reader is asked at all.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.state().receiver.is_empty()
    }

    /// Up to where the reader has confirmed.
    pub fn confirmed(&self) -> Option<Position> {
        self.state().confirmed.clone()
    }

    /// A dump begins of what is published as `generation`.
    pub(crate) fn begin(&self, generation: u64) {
        let mut state = self.state();
        let receiver = std::mem::take(&mut state.receiver);
        *state = State { receiver, generation, ..State::default() };
    }

    /// The event that ends there will be sent, and an acknowledgement of it is asked for.
    pub(crate) fn asks(&self, file: &Arc<str>, end: u64) {
        let mut state = self.state();
        state.had = None;
        if state.outstanding.len() >= OUTSTANDING_MAX {
            state.outstanding.pop_back();
        }
        state.outstanding.push_back(Position { file: file.clone(), offset: end });
    }

    /// The reader had everything before `at` already when it came, by its own word, but for what it was asked for.
    pub(crate) fn has(&self, at: Position, published: &Published) {
        let mut state = self.state();
        if state.outstanding.back().or(state.confirmed.as_ref()) == Some(&at) {
            return;
        }
        state.had = Some(at);
        state.confirm_what_it_had(published);
    }

    /// Takes an answer.
    ///
    /// # Errors
    /// When the reader cannot have what it says that it has.
    pub(crate) fn hears(
        &self,
        answer: &SemiSyncAcknowledgement<'_>,
        published: &Published,
    ) -> Result<(), BadAnswer> {
        let mut state = self.state();
        let is_of_file = |at: &&Position| at.file.as_bytes() == answer.file;
        let shown = || format!("{}:{}", String::from_utf8_lossy(answer.file), answer.position);
        if state.outstanding.is_empty() && state.confirmed.is_none() {
            return Err(BadAnswer::NotAsked(shown()));
        }
        let last = state.outstanding.iter().rev().chain(&state.confirmed).find(is_of_file);
        let Some(last) = last else { return Err(BadAnswer::OtherFile(shown())) };
        if answer.position > last.offset {
            return Err(BadAnswer::Beyond(shown(), last.clone()));
        }
        // What stands before, also in earlier files, was sent before.
        let is_answered = |at: &Position| is_of_file(&at) && at.offset <= answer.position;
        let earlier_files = state.outstanding.iter().position(|at| is_of_file(&at));
        let answered = state.outstanding.iter().rposition(is_answered).map(|at| at + 1).or(earlier_files);
        let confirmed = state.outstanding.drain(..answered.unwrap_or(0)).next_back();
        if let Some(at) = confirmed {
            state.confirm(at, published);
        }
        state.confirm_what_it_had(published);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn confirm(&mut self, at: Position, published: &Published) {
        published.confirmations().confirm(self.generation, &self.receiver, &at);
        self.confirmed = Some(at);
    }

    fn confirm_what_it_had(&mut self, published: &Published) {
        if let Some(at) = self.had.take_if(|_| self.outstanding.is_empty()) {
            self.confirm(at, published);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    struct Scene {
        asked: Asked,
        published: Published,
    }

    impl Scene {
        fn new() -> Scene {
            let published = Published::default();
            published.is_at(Path::new("0001-a"), Some(&Position::new("b.000002", 900)));
            let asked = Asked::default();
            asked.receiver_is("x");
            asked.begin(published.live().unwrap().generation);
            Scene { asked, published }
        }

        fn asks(&self, places: &[(&str, u64)]) {
            places.iter().for_each(|(file, end)| self.asked.asks(&(*file).into(), *end));
        }

        fn hears(&self, file: &str, position: u64) -> Result<(), String> {
            let answer = SemiSyncAcknowledgement { position, file: file.as_bytes() };
            self.asked.hears(&answer, &self.published).map_err(|error| error.to_string())
        }

        fn confirmed(&self) -> Option<String> {
            let files = ["b.000001".to_owned(), "b.000002".to_owned()];
            let confirmed = self.published.confirmed(Path::new("0001-a"), 1, &files);
            let confirmed = confirmed.map(|confirmed| confirmed.position().to_string());
            assert_eq!(confirmed, self.asked.confirmed().map(|at| at.to_string()));
            confirmed
        }
    }

    #[test]
    fn an_answer_counts_up_to_the_last_place_that_was_asked_for() {
        let scene = Scene::new();
        scene.asks(&[("b.000001", 100), ("b.000001", 200), ("b.000002", 300), ("b.000002", 400)]);
        scene.hears("b.000001", 150).unwrap();
        assert_eq!(scene.confirmed().as_deref(), Some("b.000001:100"), "150 is no boundary");
        scene.hears("b.000002", 250).unwrap();
        assert_eq!(scene.confirmed().as_deref(), Some("b.000001:200"), "the earlier file is over");
        scene.hears("b.000002", 400).unwrap();
        assert_eq!(scene.confirmed().as_deref(), Some("b.000002:400"));
        scene.hears("b.000002", 300).unwrap();
        assert_eq!(scene.confirmed().as_deref(), Some("b.000002:400"), "nothing is taken back");
    }

    #[test]
    fn what_the_reader_cannot_have_is_no_answer() {
        let scene = Scene::new();
        assert_eq!(
            scene.hears("b.000002", 4).unwrap_err(),
            "it acknowledges b.000002:4, and was asked for nothing"
        );
        scene.asks(&[("b.000001", 200), ("b.000002", 300)]);
        assert!(scene.hears("b.000002", 301).unwrap_err().contains("lies behind b.000002:300"));
        assert!(scene.hears("b.000001", 201).unwrap_err().contains("lies behind b.000001:200"));
        assert!(scene.hears("b.000003", 4).unwrap_err().contains("not asked for anything in that file"));
        assert_eq!(scene.confirmed(), None);
        scene.hears("b.000002", 300).unwrap();
        assert!(scene.hears("b.000002", 301).unwrap_err().contains("lies behind b.000002:300"));
    }

    #[test]
    fn what_a_reader_had_counts_when_it_has_answered_what_stands_before() {
        let scene = Scene::new();
        let at = |offset| Position::new("b.000002", offset);
        scene.asked.has(at(150), &scene.published);
        assert_eq!(scene.confirmed().as_deref(), Some("b.000002:150"));
        scene.asks(&[("b.000002", 200)]);
        scene.asked.has(at(300), &scene.published);
        assert_eq!(scene.confirmed().as_deref(), Some("b.000002:150"));
        scene.hears("b.000002", 200).unwrap();
        assert_eq!(scene.confirmed().as_deref(), Some("b.000002:300"));
        scene.asks(&[("b.000002", 400)]);
        scene.asked.has(at(500), &scene.published);
        scene.asks(&[("b.000002", 600)]);
        scene.hears("b.000002", 400).unwrap();
        assert_eq!(scene.confirmed().as_deref(), Some("b.000002:400"), "something was sent behind it");
    }

    #[test]
    fn a_reader_that_never_answers_is_asked_for_no_more_than_so_many_places() {
        let scene = Scene::new();
        for end in 0..3 * OUTSTANDING_MAX as u64 {
            scene.asks(&[("b.000002", 100 + end)]);
        }
        assert_eq!(scene.asked.state().outstanding.len(), OUTSTANDING_MAX);
        let last = 99 + 3 * OUTSTANDING_MAX as u64;
        scene.hears("b.000002", last).unwrap();
        assert_eq!(scene.confirmed(), Some(format!("b.000002:{last}")));
    }

    #[test]
    fn a_dump_of_a_generation_that_is_over_confirms_nothing() {
        let scene = Scene::new();
        scene.asks(&[("b.000002", 300)]);
        scene.published.withdraw();
        scene.published.is_at(Path::new("0001-a"), Some(&Position::new("b.000002", 900)));
        scene.published.confirmations().confirm(2, "y", &Position::new("b.000002", 100));
        scene.hears("b.000002", 300).unwrap();
        let files = ["b.000002".to_owned()];
        let confirmed = |wanted| scene.published.confirmed(Path::new("0001-a"), wanted, &files);
        assert_eq!(confirmed(1).map(|it| it.position().offset), Some(100));
        assert!(confirmed(2).is_none());
    }
}
