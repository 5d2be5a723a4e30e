//! A thread beside the receiving ones that does its chore now and then: its name, its pace, its tries after a failure, its end.
//! Nobody waits for what it does.

use source::stop::StopSignal;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The end of a thread is waited for at most so long from when it was asked to end. On a disk or a store that does not answer it is
/// left alone: what it had not finished the next start does.
const END_MAX: Duration = Duration::from_secs(1);

/// How often it is looked whether a thread has ended.
const END_LOOK: Duration = Duration::from_millis(5);

/// What a thread does again and again.
pub(super) trait Chore: Send + 'static {
    /// How far the thread stands back behind everything else, as nice(2) counts.
    const NICE: i32 = 0;

    /// Does what is due, and says how long to rest. A long round looks at `stop`.
    fn round(&mut self, stop: &StopSignal) -> Duration;

    /// The thread was asked to end.
    fn end(&mut self) {}

    /// An error of ours has ended the thread, which the log says: nothing good that it said may stay.
    fn has_failed(&mut self) {}
}

impl<F: FnMut(&StopSignal) -> Duration + Send + 'static> Chore for F {
    fn round(&mut self, stop: &StopSignal) -> Duration {
        self(stop)
    }
}

/// The thread. It is asked to end, and waited for, when this is dropped.
pub(super) struct Keeper {
    stop: Arc<StopSignal>,
    asked: OnceLock<Instant>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread, which rests `pause` before its first round.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start<C: Chore>(
        name: impl Into<String>,
        mut pause: Duration,
        mut chore: C,
    ) -> io::Result<Keeper> {
        let stop = Arc::new(StopSignal::new());
        let asked = stop.clone();
        let mut run = move |chore: &mut C| {
            while !asked.wait(pause) {
                pause = chore.round(&asked);
            }
            chore.end();
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            if C::NICE > 0 {
                // Without it the work only takes more of the processor.
                let _ = rustix::process::nice(C::NICE);
            }
            if catch_unwind(AssertUnwindSafe(|| run(&mut chore))).is_err() {
                let thread = std::thread::current();
                let name = thread.name().unwrap_or_default();
                tracing::error!(
                    thread = name,
                    "an internal error of binlogd ended this thread; please report it"
                );
                chore.has_failed();
            }
        })?;
        Ok(Keeper { stop, asked: OnceLock::new(), thread: Some(thread) })
    }

    /// Asks the thread to end; nobody waits for it yet.
    pub(super) fn request_end(&self) {
        self.asked.get_or_init(Instant::now);
        self.stop.request();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.request_end();
        let asked = *self.asked.get_or_init(Instant::now);
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() && asked.elapsed() < END_MAX {
            std::thread::sleep(END_LOOK);
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

/// The pauses between tries: each failure doubles the next, up to the longest.
#[derive(Debug)]
pub(super) struct Retry {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Retry {
    /// Pauses from `min` to `max`.
    pub(super) fn new(min: Duration, max: Duration) -> Retry {
        Retry { min, max, next: min }
    }

    /// A try has failed: the pause before the next.
    pub(super) fn failed(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.max);
        pause
    }

    /// A try went well.
    pub(super) fn went_well(&mut self) {
        self.next = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    const SOON: Duration = Duration::from_millis(1);

    /// Says what it does.
    struct Says {
        to: Sender<&'static str>,
        breaks: bool,
    }

    impl Chore for Says {
        fn round(&mut self, _stop: &StopSignal) -> Duration {
            let _ = self.to.send("round");
            assert!(!self.breaks, "the error of ours");
            SOON
        }

        fn end(&mut self) {
            let _ = self.to.send("end");
        }

        fn has_failed(&mut self) {
            let _ = self.to.send("failed");
        }
    }

    #[test]
    fn rounds_follow_one_another_until_the_end() {
        let (to, said) = channel();
        let keeper = Keeper::start("says", SOON, Says { to, breaks: false }).unwrap();
        assert_eq!([said.recv().unwrap(), said.recv().unwrap()], ["round", "round"]);
        drop(keeper);
        assert_eq!(said.iter().last(), Some("end"));
    }

    #[test]
    fn an_error_of_ours_is_told_and_ends_the_thread() {
        let (to, said) = channel();
        let _keeper = Keeper::start("says", SOON, Says { to, breaks: true }).unwrap();
        assert_eq!(said.iter().collect::<Vec<_>>(), ["round", "failed"]);
    }

    #[test]
    fn a_thread_that_hangs_is_left_alone() {
        let (to, begun) = channel();
        let keeper = Keeper::start("hangs", Duration::ZERO, move |_: &StopSignal| {
            let _ = to.send(());
            std::thread::sleep(Duration::from_secs(60));
            SOON
        });
        begun.recv().unwrap();
        let asked = Instant::now();
        drop(keeper.unwrap());
        assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
    }

    #[test]
    fn pauses_double_until_a_try_goes_well() {
        let mut retry = Retry::new(Duration::from_secs(2), Duration::from_secs(5));
        let pauses = [retry.failed(), retry.failed(), retry.failed()].map(|pause| pause.as_secs());
        assert_eq!(pauses, [2, 4, 5]);
        retry.went_well();
        assert_eq!(retry.failed().as_secs(), 2);
    }
}
