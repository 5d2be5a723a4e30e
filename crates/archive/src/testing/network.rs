//! The way to a store, with everything that happens on it.

use super::memory::Memory;
use crate::store::{Created, Fault, Meta, Store, StoreError};
use binlog::testing::Random;
use bytes::Bytes;
use jiff::SignedDuration;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often what fails. Each is "once in so many operations"; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// A request does not arrive.
    pub lost_request: u64,
    /// A request is done, and the answer is an error or none.
    pub lost_answer: u64,
    /// A request arrives at any later moment, though its caller was told that it failed.
    pub delayed: u64,
    /// A request arrives twice, the second time at any later moment.
    pub doubled: u64,
    /// A creation that was done is told as refused, as after a retry of which nobody knows.
    pub refused_own: u64,
    /// A creation is refused, and nothing is there (409 of S3).
    pub refused_empty: u64,
    /// The store asks to slow down, several operations long.
    pub slow_down: u64,
    /// Listings come late by up to so much: what is new is missing, what was deleted is there.
    pub listing_lag: Option<SignedDuration>,
}

impl Faults {
    /// What stores do, about once in `operations` each.
    pub fn each(operations: u64) -> Faults {
        let often = operations;
        Faults {
            lost_request: often,
            lost_answer: often,
            delayed: often,
            doubled: often,
            refused_own: often,
            refused_empty: often,
            slow_down: often * 4,
            listing_lag: None,
        }
    }
}

/// A store behind a network. What happens is drawn from the seed, operation by operation.
#[derive(Debug)]
pub struct Network {
    memory: Arc<Memory>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: Random,
    faults: Faults,
    /// Requests that are under way though nobody waits for them.
    under_way: Vec<Request>,
    /// Operations for which the store still asks to slow down.
    slow: u64,
}

#[derive(Debug, Clone)]
enum Request {
    Create(String, Bytes),
    Delete(String),
}

/// What happens to a request that changes something.
enum Fate {
    Sound,
    Lost,
    AnswerLost,
    Delayed,
    Doubled,
    RefusedOwn,
    RefusedEmpty,
}

impl Network {
    /// A way to `memory`.
    pub fn new(memory: Arc<Memory>, seed: u64, faults: Faults) -> Network {
        let state = State { random: Random::new(seed), faults, under_way: Vec::new(), slow: 0 };
        Network { memory, state: Mutex::new(state) }
    }

    /// From now on nothing fails. Each request that is under way arrives now, or never.
    pub fn calm(&self) {
        let mut state = self.state();
        state.faults = Faults::default();
        state.slow = 0;
        for request in std::mem::take(&mut state.under_way) {
            if state.random.one_in(2) {
                self.arrive(request);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrive(&self, request: Request) {
        // Nobody hears what the store says of it.
        match request {
            Request::Create(name, bytes) => drop(self.memory.create(&name, bytes)),
            Request::Delete(name) => drop(self.memory.delete(&name)),
        }
    }

    /// Before an operation: what is under way may arrive, and the store may be slow.
    fn begin(&self, name: &str) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut guard = self.state();
        let state = &mut *guard;
        if !state.under_way.is_empty() && state.random.one_in(12) {
            let index = state.random.below(state.under_way.len() as u64) as usize;
            let request = state.under_way.swap_remove(index);
            self.arrive(request);
        }
        if state.slow == 0 && state.happens(|faults| faults.slow_down) {
            state.slow = 1 + state.random.below(6);
        }
        if state.slow > 0 {
            state.slow -= 1;
            return Err(StoreError::new(Fault::Unavailable, format!("{name}: slow down")));
        }
        Ok(guard)
    }

    fn read<T>(&self, name: &str, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut state = self.begin(name)?;
        if state.happens(|faults| faults.lost_request) {
            return Err(no_answer(name));
        }
        read()
    }
}

impl State {
    fn happens(&mut self, once_in: impl Fn(&Faults) -> u64) -> bool {
        let once_in = once_in(&self.faults);
        once_in > 0 && self.random.one_in(once_in)
    }

    fn fate(&mut self) -> Fate {
        let Faults { lost_request, lost_answer, delayed, doubled, refused_own, refused_empty, .. } =
            self.faults;
        for (once_in, fate) in [
            (lost_request, Fate::Lost),
            (lost_answer, Fate::AnswerLost),
            (delayed, Fate::Delayed),
            (doubled, Fate::Doubled),
            (refused_own, Fate::RefusedOwn),
            (refused_empty, Fate::RefusedEmpty),
        ] {
            if self.happens(|_| once_in) {
                return fate;
            }
        }
        Fate::Sound
    }
}

fn no_answer(name: &str) -> StoreError {
    StoreError::new(Fault::Unavailable, format!("{name}: no answer"))
}

impl Store for Network {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        let mut state = self.begin(name)?;
        let request = Request::Create(name.to_owned(), bytes.clone());
        match state.fate() {
            Fate::Sound => self.memory.create(name, bytes),
            Fate::Lost => Err(no_answer(name)),
            Fate::AnswerLost => self.memory.create(name, bytes).and(Err(no_answer(name))),
            Fate::Delayed => {
                state.under_way.push(request);
                Err(no_answer(name))
            }
            Fate::Doubled => {
                state.under_way.push(request);
                self.memory.create(name, bytes)
            }
            Fate::RefusedOwn => self.memory.create(name, bytes).and(Ok(Created::Exists)),
            Fate::RefusedEmpty => Ok(Created::Exists),
        }
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        self.read(name, || self.memory.get(name))
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.read(name, || self.memory.get_range(name, range))
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        self.read(name, || self.memory.head(name))
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        let mut state = self.begin(prefix)?;
        if state.happens(|faults| faults.lost_request) {
            return Err(no_answer(prefix));
        }
        match state.faults.listing_lag {
            Some(lag) => Ok(self.memory.list_late(prefix, after, lag, || state.random.one_in(2))),
            None => self.memory.list(prefix, after),
        }
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let mut state = self.begin(name)?;
        let request = Request::Delete(name.to_owned());
        match state.fate() {
            Fate::Sound | Fate::RefusedOwn => self.memory.delete(name),
            Fate::Lost | Fate::RefusedEmpty => Err(no_answer(name)),
            Fate::AnswerLost => self.memory.delete(name).and(Err(no_answer(name))),
            Fate::Delayed => {
                state.under_way.push(request);
                Err(no_answer(name))
            }
            Fate::Doubled => {
                state.under_way.push(request);
                self.memory.delete(name)
            }
        }
    }
}
