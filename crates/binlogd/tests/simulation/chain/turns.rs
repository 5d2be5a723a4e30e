//! Whose turn it is: of the threads of one simulation one runs at a time, and hands its turn on where it waits. So a seed gives
//! one history, though several binlogds run, each on threads of its own.
//!
//! Time passes when everybody waits, to the first moment that somebody waits for.

use binlog::testing::Random;
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

/// A wait for something that another thread does.
pub const FOR_EVER: Duration = Duration::MAX;

/// More turns than this are no history, but threads that wake each other for nothing.
const TURNS_MAX: u64 = 20_000_000;

thread_local! {
    static THIS: Cell<usize> = const { Cell::new(0) };
}

/// What a thread wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Turn,
    /// A turn at that moment, or when something has changed.
    Later(Duration),
    /// A turn at that moment.
    At(Duration),
    /// It has ended.
    Nothing,
}

struct State {
    threads: Vec<(Thread, Wants)>,
    turn: usize,
    turns: u64,
    now: Duration,
    random: Random,
    has_failed: bool,
}

/// The turns of one simulation.
pub struct Turns(Mutex<State>);

/// A thread of a simulation.
pub struct Party<T> {
    number: usize,
    handle: JoinHandle<T>,
}

impl Turns {
    /// It is the calling thread's turn.
    pub fn new(seed: u64) -> Arc<Turns> {
        THIS.set(0);
        Arc::new(Turns(Mutex::new(State {
            threads: vec![(std::thread::current(), Wants::Turn)],
            turn: 0,
            turns: 0,
            now: Duration::ZERO,
            random: Random::new(seed),
            has_failed: false,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since the beginning.
    pub fn now(&self) -> Duration {
        self.state().now
    }

    /// So much time passes while the caller has the turn.
    pub fn take_time(&self, time: Duration) {
        self.state().now += time;
    }

    /// How many turns there were.
    pub fn count(&self) -> u64 {
        self.state().turns
    }

    /// Something has changed: who waits is to look.
    pub fn stir(&self) {
        for (_, wants) in &mut self.state().threads {
            if matches!(wants, Wants::Later(_)) {
                *wants = Wants::Turn;
            }
        }
    }

    /// Others may have their turn.
    pub fn pass(&self) {
        self.hand_on(Wants::Turn);
    }

    /// Waits until that moment, or until something has changed.
    pub fn wait_until(&self, moment: Duration) {
        self.hand_on(Wants::Later(moment));
    }

    /// Waits until that moment, whatever changes.
    pub fn sleep_until(&self, moment: Duration) {
        self.hand_on(Wants::At(moment));
    }

    fn hand_on(&self, wants: Wants) {
        if std::thread::panicking() {
            return;
        }
        let this = THIS.get();
        let mut state = self.state();
        state.threads[this].1 = wants;
        let next = state.next();
        let thread = state.threads[next].0.clone();
        drop(state);
        if next != this {
            thread.unpark();
            self.await_turn(this);
        }
        self.state().threads[this].1 = Wants::Turn;
    }

    fn await_turn(&self, this: usize) {
        loop {
            let state = self.state();
            let (has_failed, turn) = (state.has_failed, state.turn);
            drop(state);
            assert!(!has_failed, "another thread of the simulation has failed");
            if turn == this {
                return;
            }
            std::thread::park();
        }
    }

    /// A thread that has its turns from now on.
    pub fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        does: impl FnOnce() -> T + Send + 'static,
    ) -> Party<T> {
        let mut state = self.state();
        let (turns, number) = (self.clone(), state.threads.len());
        let runs = move || {
            THIS.set(number);
            turns.await_turn(number);
            let _ends = Ends(&turns);
            does()
        };
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(runs);
        let handle = spawned.expect("a thread can be had");
        state.threads.push((handle.thread().clone(), Wants::Turn));
        Party { number, handle }
    }

    /// Waits for the end of a thread.
    pub fn join<T>(&self, party: Party<T>) -> T {
        while !self.has_ended(&party) {
            self.wait_until(FOR_EVER);
        }
        party.handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Whether a thread has ended.
    pub fn has_ended<T>(&self, party: &Party<T>) -> bool {
        self.state().threads[party.number].1 == Wants::Nothing
    }
}

/// Hands the turn on when its thread ends.
struct Ends<'a>(&'a Turns);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.threads[THIS.get()].1 = Wants::Nothing;
        if std::thread::panicking() {
            state.has_failed = true;
            state.threads.iter().for_each(|(thread, _)| thread.unpark());
            return;
        }
        drop(state);
        self.0.stir();
        let mut state = self.0.state();
        let next = state.next();
        state.threads[next].0.unpark();
    }
}

impl State {
    /// Gives the turn to one of those who want it; where all wait, at the first moment that one of them waits for.
    fn next(&mut self) -> usize {
        self.turns += 1;
        assert!(self.turns < TURNS_MAX, "the simulation does not end");
        if !self.threads.iter().any(|(_, wants)| *wants == Wants::Turn) {
            let moments = self.threads.iter().filter_map(|(_, wants)| match wants {
                Wants::Later(moment) | Wants::At(moment) => Some(*moment),
                Wants::Turn | Wants::Nothing => None,
            });
            let moment = moments.min().filter(|moment| *moment != FOR_EVER);
            self.now = self.now.max(moment.expect("somebody waits for a moment, or has the turn"));
            for (_, wants) in &mut self.threads {
                if matches!(wants, Wants::Later(moment) | Wants::At(moment) if *moment <= self.now) {
                    *wants = Wants::Turn;
                }
            }
        }
        for (_, wants) in &mut self.threads {
            if matches!(wants, Wants::At(moment) if *moment <= self.now) {
                *wants = Wants::Turn;
            }
        }
        let ready: Vec<usize> =
            (0..self.threads.len()).filter(|number| self.threads[*number].1 == Wants::Turn).collect();
        self.turn = *self.random.pick(&ready);
        self.turn
    }
}
