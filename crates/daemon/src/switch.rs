//! The switch by which an operator stops the receiving of a source, and starts it again: by a statement, or on the web page.

use serve::ReceiverSwitch;
use source::clock::Clock;
use source::clock::SystemClock;
use source::stop::StopSignal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a statement waits for the end of the session, which finishes its batch first.
const STOP_MAX: Duration = Duration::from_secs(30);

/// How often it is looked whether the thread has ended meanwhile, of which nobody is told.
const ENDED_LOOK: Duration = Duration::from_millis(100);

/// Of one source's thread.
pub(super) struct Switch {
    /// Name of the source.
    pub(super) name: String,
    pub(super) stop: Arc<StopSignal>,
    /// The thread has ended.
    pub(super) ended: Arc<AtomicBool>,
}

impl Switch {
    fn stop_within(&self, by: &str, again: &str, max: Duration) -> bool {
        if self.ended.load(Ordering::Acquire) {
            return true;
        }
        // After an earlier statement the thread may still be waited for.
        if self.stop.halted().is_none() {
            let at = SystemClock.wall_time().strftime("%Y-%m-%d %H:%M:%S UTC");
            let why = format!("by {by} at {at}; {again}");
            tracing::warn!(
                source = self.name,
                "receiving is stopped {why}. Until then nothing is acknowledged: a commit on a source that waits for nobody else \
                 takes as long as the source's semi-sync timeout, and is then safe on the source alone"
            );
            self.stop.halt(why);
        }
        let mut left = max;
        loop {
            let step = left.min(ENDED_LOOK);
            if self.stop.wait_resting(step) || self.ended.load(Ordering::Acquire) {
                return true;
            }
            left -= step;
            if left.is_zero() {
                return false;
            }
        }
    }
}

impl ReceiverSwitch for Switch {
    fn stop(&self, by: &str, again: &str) -> bool {
        self.stop_within(by, again, STOP_MAX)
    }

    fn start(&self, by: &str) -> bool {
        if self.ended.load(Ordering::Acquire) {
            return false;
        }
        if self.stop.resume() {
            tracing::info!(source = self.name, "receiving is started by {by}");
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn switch() -> Switch {
        Switch { name: "s".to_owned(), stop: Arc::default(), ended: Arc::default() }
    }

    #[test]
    fn a_statement_that_comes_again_says_no_more_than_the_first_one() {
        let switch = switch();
        for _ in 0..2 {
            assert!(
                !switch.stop_within("somebody", "somebody", Duration::from_millis(1)),
                "the session still runs"
            );
        }
        std::thread::scope(|scope| {
            scope.spawn(|| switch.stop.rest());
            assert!(switch.stop("somebody else", "somebody"));
            assert!(switch.start("somebody"));
        });
    }

    #[test]
    fn a_thread_that_has_ended_is_not_waited_for() {
        let switch = switch();
        std::thread::scope(|scope| {
            let began = Instant::now();
            let stopped = scope.spawn(|| switch.stop("somebody", "somebody"));
            while switch.stop.halted().is_none() {
                std::thread::yield_now();
            }
            switch.ended.store(true, Ordering::Release);
            assert!(stopped.join().unwrap() && began.elapsed() < STOP_MAX / 2, "{:?}", began.elapsed());
        });
    }
}
