//! A limit on what is uploaded, in bytes a second: a bucket of tokens that may go into debt for one object.

use crate::store::{Below, Created, Fault, Meta, Store, StoreError};
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What may be sent at once after a pause, as time at the full rate.
const BURST: Duration = Duration::from_secs(1);

/// A store whose creations wait, so that over any longer time no more than so many bytes a second are sent. Everything else
/// passes: retention and reading back must not wait behind uploads.
#[derive(Debug)]
pub struct Throttled<S> {
    store: S,
    bytes_per_second: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// When everything that was let through has been sent at the full rate. May lie in the past.
    sent: Option<Instant>,
    is_stopped: bool,
}

impl<S> Throttled<S> {
    /// A store with a limit; 0 is taken for 1.
    pub fn new(store: S, bytes_per_second: u64) -> Throttled<S> {
        Throttled {
            store,
            bytes_per_second: bytes_per_second.max(1),
            state: Mutex::new(State { sent: None, is_stopped: false }),
            changed: Condvar::new(),
        }
    }

    /// Ends all waiting, now and later: what waits fails as unavailable. For the end of the process.
    pub fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }

    /// Waits until so many bytes may be sent; false when it was stopped.
    fn wait(&self, bytes: usize) -> bool {
        let mut state = self.state();
        let now = Instant::now();
        // Each takes its turn behind those that came before, and then owes the time that its own bytes take.
        let turn = state.sent.map_or(now, |sent| sent.max(now.checked_sub(BURST).unwrap_or(now)));
        state.sent = Some(turn + self.time_of(bytes));
        loop {
            if state.is_stopped {
                return false;
            }
            let left = turn.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn time_of(&self, bytes: usize) -> Duration {
        // Exact enough: a nanosecond an object.
        #[expect(clippy::cast_precision_loss, reason = "objects have less than 2^52 bytes")]
        Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Two plain values, whole between any two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> Store for Throttled<S> {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        if !self.wait(bytes.len()) {
            return Err(StoreError::new(Fault::Unavailable, format!("{name} was not created: binlogd ends")));
        }
        self.store.create(name, bytes)
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        self.store.get(name)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.store.get_range(name, range)
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        self.store.head(name)
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        self.store.list(prefix, after)
    }

    fn look_into(&self, prefix: &str) -> Result<Below, StoreError> {
        self.store.look_into(prefix)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.store.delete(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::remote::folder::Folder;
    use std::sync::Arc;

    fn store(bytes_per_second: u64) -> (tempfile::TempDir, Arc<Throttled<Folder>>) {
        let around = tempfile::tempdir().unwrap();
        let folder = Folder::open(around.path()).unwrap();
        (around, Arc::new(Throttled::new(folder, bytes_per_second)))
    }

    #[test]
    fn several_uploads_together_keep_to_the_rate() {
        let (_around, store) = store(100_000);
        let began = Instant::now();
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let store = store.clone();
                std::thread::spawn(move || {
                    store.create(&format!("{number}"), Bytes::from(vec![0; 20_000])).unwrap()
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // Three objects had to be sent before the fourth had its turn.
        assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
        assert_eq!(store.list("", None).unwrap().len(), 4);
    }

    #[test]
    fn whoever_waits_is_told_when_it_ends() {
        let (_around, store) = store(1);
        store.create("first", Bytes::from(vec![0; 1000])).unwrap();
        let waiting = {
            let store = store.clone();
            std::thread::spawn(move || store.create("second", Bytes::from_static(b"x")).unwrap_err())
        };
        store.stop();
        assert_eq!(waiting.join().unwrap().fault, Fault::Unavailable);
        assert!(store.head("second").unwrap_err().is_missing());
    }
}
