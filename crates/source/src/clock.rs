//! The seam to time: what the receiving thread asks the clock for, and the pauses that it makes.
#![allow(clippy::disallowed_methods, reason = "the door to the time")]

use super::stop::StopSignal;
use jiff::Timestamp;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Time as one source's thread sees it. [`SystemClock`] is the real one; a simulation has one that it moves itself.
pub trait Clock: Send + Sync + Debug {
    /// The present moment, on a clock that only goes forward.
    fn now(&self) -> Instant;

    /// The present moment as people write it: for names, records and what is shown.
    fn wall_time(&self) -> Timestamp;

    /// Waits for a stop; true when one was requested within `pause`.
    fn pause(&self, stop: &StopSignal, pause: Duration) -> bool;

    /// Waits, whatever happens meanwhile. For short pauses of threads that nobody waits for.
    fn sleep(&self, pause: Duration);

    /// A number for the jitter of pauses, uniform over all values.
    fn jitter(&self) -> u32;

    /// Whether other threads run beside the one that receives. In a simulation what they do is done when it is asked for, so
    /// that it happens the same way again.
    fn has_threads(&self) -> bool {
        true
    }
}

/// The operating system's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall_time(&self) -> Timestamp {
        Timestamp::now()
    }

    fn pause(&self, stop: &StopSignal, pause: Duration) -> bool {
        stop.wait(pause)
    }

    fn sleep(&self, pause: Duration) {
        std::thread::sleep(pause);
    }

    fn jitter(&self) -> u32 {
        getrandom::u32().unwrap_or(0)
    }
}
