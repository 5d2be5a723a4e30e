//! What readers say that they have made durable themselves: what an acknowledgement to the source can wait for.
//!
//! A reader confirms a place of what was published to it, and a confirmation counts for that generation alone: when the files
//! below a reader may have become others, it comes back and confirms anew. Whoever waits for confirmations sleeps on a
//! descriptor, beside the source's socket, and is woken by each. Where nobody waits there is no descriptor, and a confirmation
//! costs its reader a lock and nobody else anything.

use crate::{Confirmed, Position};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Most receivers that are remembered; of more, those that have confirmed nothing for the longest time are forgotten.
const RECEIVERS_MAX: usize = 1000;

/// What the receivers below one source have confirmed.
#[derive(Debug, Default)]
pub struct Confirmations {
    state: Mutex<State>,
    /// Counts up with each confirmation.
    changes: AtomicU64,
    /// There once somebody waits.
    wake: OnceLock<OwnedFd>,
}

#[derive(Debug, Default)]
struct State {
    /// Of what was published, as [`Live::generation`](super::published::Live::generation) counts.
    generation: u64,
    /// The last to confirm stands last.
    receivers: Vec<Receiver>,
}

#[derive(Debug)]
struct Receiver {
    name: String,
    at: Position,
}

impl Confirmations {
    /// `receiver` has made durable everything before `at`, a boundary of the live timeline of that generation. One that stands
    /// before what it has confirmed already is none: the caller hears of a reader's confirmations in their order.
    pub fn confirm(&self, generation: u64, receiver: &str, at: &Position) {
        let mut state = self.state();
        if generation < state.generation {
            return; // Of files that may be others by now.
        }
        if generation > state.generation {
            *state = State { generation, receivers: Vec::new() };
        }
        let known = state.receivers.iter().position(|known| known.name == receiver);
        let mut confirmed = match known {
            Some(index) => state.receivers.remove(index),
            None => Receiver { name: receiver.to_owned(), at: at.clone() },
        };
        confirmed.at = at.clone();
        if state.receivers.len() >= RECEIVERS_MAX {
            state.receivers.remove(0);
        }
        state.receivers.push(confirmed);
        drop(state);
        self.tell();
    }

    fn tell(&self) {
        self.changes.fetch_add(1, SeqCst);
        if let Some(wake) = self.wake.get() {
            // Fails when the counter is full, and then it is awake.
            let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
        }
    }

    /// What was confirmed counts no more, and whoever waits looks again.
    pub fn forget(&self) {
        self.state().receivers.clear();
        self.tell();
    }

    /// Counts up with each confirmation.
    pub fn changes(&self) -> u64 {
        self.changes.load(SeqCst)
    }

    /// Up to where `wanted` different receivers have confirmed what is published as `generation`. `files` are those of its
    /// timeline, in order. `None` when there are fewer.
    pub fn by(&self, wanted: u32, generation: u64, files: &[String]) -> Option<Confirmed> {
        let state = self.state();
        if state.generation != generation || wanted == 0 {
            return None;
        }
        let mut places: Vec<(usize, u64)> =
            state.receivers.iter().filter_map(|receiver| place(&receiver.at, files)).collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        let (file, offset) = *places.get(wanted as usize - 1)?;
        Some(Confirmed(Position::new(files[file].as_str(), offset)))
    }

    /// How many different receivers have confirmed everything before `at`.
    pub fn count(&self, at: &Position, generation: u64, files: &[String]) -> u32 {
        let state = self.state();
        let Some(at) = place(at, files).filter(|_| state.generation == generation) else { return 0 };
        let counts = |receiver: &&Receiver| place(&receiver.at, files).is_some_and(|has| has >= at);
        u32::try_from(state.receivers.iter().filter(counts).count()).unwrap_or(u32::MAX)
    }

    /// A descriptor that is readable from a confirmation on, until [`Confirmations::heard`].
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn listen(&self) -> io::Result<BorrowedFd<'_>> {
        if self.wake.get().is_none() {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            // Another one may have come first, which serves as well.
            let _ = self.wake.set(made);
        }
        self.wake.get().map(AsFd::as_fd).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// What has come is looked at now: the descriptor is readable again when more comes.
    pub fn heard(&self) {
        if let Some(wake) = self.wake.get() {
            // Fails when nothing has come.
            let _ = rustix::io::read(wake, &mut [0; 8]);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A position as a place among the files; the newest are looked at first. A file that is not among them has none.
fn place(at: &Position, files: &[String]) -> Option<(usize, u64)> {
    files.iter().rposition(|file| **file == *at.file).map(|file| (file, at.offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<String> {
        vec!["b.000009".to_owned(), "b.000010".to_owned(), "other.000001".to_owned()]
    }

    fn at(file: usize, offset: u64) -> Position {
        Position::new(files()[file].as_str(), offset)
    }

    #[test]
    fn so_many_different_receivers_count_by_the_order_of_the_files() {
        let confirmations = Confirmations::default();
        let by = |wanted| confirmations.by(wanted, 1, &files()).map(|confirmed| confirmed.position().clone());
        assert_eq!(by(1), None);
        confirmations.confirm(1, "x", &at(0, 900));
        confirmations.confirm(1, "x", &at(1, 100));
        assert_eq!((by(1), by(2)), (Some(at(1, 100)), None), "one receiver is one, whatever it says");
        confirmations.confirm(1, "y", &at(0, 950));
        assert_eq!((by(1), by(2), by(3)), (Some(at(1, 100)), Some(at(0, 950)), None));
        confirmations.confirm(1, "z", &at(2, 4));
        assert_eq!((by(1), by(2), by(3)), (Some(at(2, 4)), Some(at(1, 100)), Some(at(0, 950))));
        let count = |at| confirmations.count(&at, 1, &files());
        assert_eq!((count(at(0, 950)), count(at(1, 100)), count(at(1, 101)), count(at(2, 5))), (3, 2, 1, 0));
        assert_eq!(by(0), None, "nobody is asked");
        confirmations.confirm(1, "w", &Position::new("gone.000001", 4));
        assert_eq!(by(4), None, "a file that the log does not have");
    }

    #[test]
    fn an_older_generation_counts_for_nothing() {
        let confirmations = Confirmations::default();
        confirmations.confirm(1, "x", &at(0, 500));
        confirmations.confirm(2, "y", &at(0, 100));
        confirmations.confirm(1, "x", &at(0, 600));
        let by = |generation| confirmations.by(1, generation, &files());
        assert_eq!(by(2).map(|confirmed| confirmed.position().offset), Some(100));
        assert_eq!((by(1), by(3)), (None, None), "nor does a present one for what is published by now");
        assert_eq!(confirmations.count(&at(0, 4), 3, &files()), 0);
    }

    #[test]
    fn receivers_that_say_nothing_any_more_make_room() {
        let confirmations = Confirmations::default();
        confirmations.confirm(1, "kept", &at(0, 5));
        for number in 0..RECEIVERS_MAX {
            confirmations.confirm(1, &number.to_string(), &at(0, 4));
            if number == RECEIVERS_MAX / 2 {
                confirmations.confirm(1, "kept", &at(0, 5));
            }
        }
        assert_eq!(confirmations.by(1, 1, &files()).map(|it| it.position().offset), Some(5));
        assert_eq!(confirmations.count(&at(0, 4), 1, &files()), RECEIVERS_MAX as u32);
    }

    #[test]
    fn who_listens_is_woken_by_each() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let confirmations = Confirmations::default();
        let is_woken = || {
            let wake = confirmations.listen().unwrap();
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(&wake, PollFlags::IN)], Some(&now)).unwrap() > 0
        };
        assert!(!is_woken());
        for round in 1..3 {
            let before = confirmations.changes();
            confirmations.confirm(1, "x", &at(0, 100 * round));
            confirmations.confirm(1, "y", &at(0, 100 * round));
            assert!(is_woken() && confirmations.changes() == before + 2);
            confirmations.heard();
            assert!(!is_woken());
        }
    }
}
