//! Who acts next: one party at a time, changed at operations of the store only, all by the seed.

use archive::store::{Created, Meta, Store, StoreError};
use archive::testing::{Memory, Network};
use binlog::testing::Random;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use std::fmt;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A process ends at once: everything that it has in memory goes, and nothing that it does is finished.
pub struct Killed;

/// The whole simulation ends.
pub struct Ended;

/// The simulated time, and whose turn it is.
pub struct Stage {
    memory: Arc<Memory>,
    state: Mutex<State>,
    woken: Vec<Condvar>,
}

struct State {
    random: Random,
    now: Timestamp,
    turn: usize,
    /// When each party goes on; `None` for one that has left.
    wakes: Vec<Option<Timestamp>>,
    operations: u64,
    has_ended: bool,
    has_trouble: bool,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stage")
    }
}

impl Stage {
    pub fn new(memory: Arc<Memory>, seed: u64, parties: usize, has_trouble: bool, now: Timestamp) -> Stage {
        memory.set_now(now);
        let state = State {
            random: Random::new(seed),
            now,
            turn: 0,
            wakes: vec![Some(now); parties],
            operations: 0,
            has_ended: false,
            has_trouble,
        };
        Stage { memory, state: Mutex::new(state), woken: (0..parties).map(|_| Condvar::new()).collect() }
    }

    pub fn now(&self) -> Timestamp {
        self.state().now
    }

    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Lets `me` wait for its first turn.
    pub fn enter(&self, me: usize) {
        self.wait(me, self.state());
    }

    /// Before an operation of `me`: others may come first, for hours; the process may be killed.
    pub fn pass(&self, me: usize) {
        let mut guard = self.state();
        let state = &mut *guard;
        state.operations += 1;
        state.now += SignedDuration::from_millis(5 + state.random.below(400) as i64);
        let mut is_killed = false;
        if state.has_trouble {
            if state.random.one_in(100) {
                let stall = SignedDuration::from_mins(1 + state.random.below(900) as i64);
                state.wakes[me] = Some(state.now + stall);
            }
            is_killed = state.random.one_in(90);
        }
        if state.wakes[me] > Some(state.now) || state.random.one_in(3) {
            self.next(state);
        }
        self.wait(me, guard);
        if is_killed {
            resume_unwind(Box::new(Killed));
        }
    }

    /// `me` does nothing for so long.
    pub fn sleep(&self, me: usize, time: SignedDuration) {
        let mut state = self.state();
        state.wakes[me] = Some(state.now + time);
        self.next(&mut state);
        self.wait(me, state);
    }

    /// `me` is done.
    pub fn leave(&self, me: usize) {
        let mut state = self.state();
        state.wakes[me] = None;
        self.next(&mut state);
    }

    /// Everybody is done, because something is wrong.
    pub fn end(&self) {
        self.state().has_ended = true;
        self.woken.iter().for_each(Condvar::notify_all);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the turn to one of those that are awake; where none is, time passes until one wakes.
    fn next(&self, state: &mut State) {
        let Some(first) = state.wakes.iter().flatten().min().copied() else { return };
        state.now = state.now.max(first);
        let now = state.now;
        let is_awake = |(party, wakes): (usize, &Option<Timestamp>)| {
            wakes.is_some_and(|wakes| wakes <= now).then_some(party)
        };
        let awake: Vec<usize> = state.wakes.iter().enumerate().filter_map(is_awake).collect();
        state.turn = *state.random.pick(&awake);
        self.woken[state.turn].notify_one();
    }

    fn wait(&self, me: usize, state: MutexGuard<'_, State>) {
        let others = |state: &mut State| state.turn != me && !state.has_ended;
        let state = self.woken[me].wait_while(state, others).unwrap_or_else(PoisonError::into_inner);
        self.memory.set_now(state.now);
        if state.has_ended {
            drop(state);
            resume_unwind(Box::new(Ended));
        }
    }
}

/// The store as one party has it.
#[derive(Debug)]
pub struct Door {
    pub network: Arc<Network>,
    pub stage: Arc<Stage>,
    pub me: usize,
}

impl Door {
    fn network(&self) -> &Network {
        self.stage.pass(self.me);
        &self.network
    }
}

impl Store for Door {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        self.network().create(name, bytes)
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        self.network().get(name)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.network().get_range(name, range)
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        self.network().head(name)
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        self.network().list(prefix, after)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.network().delete(name)
    }
}
