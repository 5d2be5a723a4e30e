//! Reading that stands back: a store behind which nobody else has to wait for long, and that ends when it is asked to.
//!
//! Verifying reads for hours. It has one request under way at a time, rests as long as each has taken, and longer where a limit
//! says so, so at least half of what the way to the store can do is left to uploads.

#![allow(clippy::disallowed_methods, reason = "the store is outside, and in real time")]

use crate::store::{Below, Created, Fault, Meta, Store, StoreError};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a rest goes on at most after somebody has asked for the end.
const SLICE: Duration = Duration::from_millis(50);

/// See [the module](self). It writes nothing, unless [`Gentle::writing`] made it.
#[derive(Debug)]
pub struct Gentle {
    may_write: bool,
    store: Arc<dyn Store>,
    /// Most bytes a second, over any longer time.
    bandwidth: Option<u64>,
    stop: Arc<AtomicBool>,
}

impl Gentle {
    /// A store that fails as unavailable once `stop` is true.
    pub fn new(store: Arc<dyn Store>, bandwidth: Option<u64>, stop: Arc<AtomicBool>) -> Gentle {
        Gentle { may_write: false, store, bandwidth, stop }
    }

    /// The same, for who prunes: it writes and deletes.
    pub fn writing(store: Arc<dyn Store>, stop: Arc<AtomicBool>) -> Gentle {
        Gentle { may_write: true, store, bandwidth: None, stop }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn then_rest<T>(
        &self,
        request: impl FnOnce() -> Result<T, StoreError>,
        len: fn(&T) -> usize,
    ) -> Result<T, StoreError> {
        let stopped = || Err(StoreError::new(Fault::Unavailable, "binlogd is ending"));
        if self.is_stopped() {
            return stopped();
        }
        let began = Instant::now();
        let answer = request()?;
        let took = began.elapsed();
        // Exact enough: a nanosecond an object.
        #[expect(clippy::cast_precision_loss, reason = "objects have less than 2^52 bytes")]
        let due =
            self.bandwidth.map(|bandwidth| Duration::from_secs_f64(len(&answer) as f64 / bandwidth as f64));
        let rest = due.map_or(took, |due| took.max(due.saturating_sub(took)));
        let until = Instant::now() + rest;
        loop {
            if self.is_stopped() {
                return stopped();
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(answer);
            }
            thread::sleep(left.min(SLICE));
        }
    }

    fn write<T>(&self, name: &str, request: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.may_write {
            return self.then_rest(request, |_| 0);
        }
        Err(StoreError::new(Fault::Refused, format!("{name}: nothing is written by who verifies")))
    }
}

impl Store for Gentle {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        self.write(name, || self.store.create(name, bytes))
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        self.then_rest(|| self.store.get(name), Bytes::len)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.then_rest(|| self.store.get_range(name, range), Bytes::len)
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        self.then_rest(|| self.store.head(name), |_| 0)
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        self.then_rest(|| self.store.list(prefix, after), |_| 0)
    }

    fn look_into(&self, prefix: &str) -> Result<Below, StoreError> {
        self.then_rest(|| self.store.look_into(prefix), |_| 0)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.write(name, || self.store.delete(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::remote::Folder;

    fn store() -> (tempfile::TempDir, Arc<Folder>) {
        let around = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::open(around.path()).unwrap());
        for name in ["a", "b", "c"] {
            assert_eq!(folder.create(name, Bytes::from(vec![0; 20_000])).unwrap(), Created::New);
        }
        (around, folder)
    }

    #[test]
    fn reading_keeps_to_the_rate() {
        let (_around, store) = store();
        let gentle = Gentle::new(store, Some(100_000), Arc::default());
        let began = Instant::now();
        for name in ["a", "b", "c"] {
            assert_eq!(gentle.get(name).unwrap().len(), 20_000);
        }
        assert!(began.elapsed() >= Duration::from_millis(590), "{:?}", began.elapsed());
    }

    #[test]
    fn whoever_rests_ends_when_it_is_asked() {
        let (_around, store) = store();
        let stop = Arc::new(AtomicBool::new(false));
        // 20,000 seconds of rest.
        let gentle = Gentle::new(store, Some(1), stop.clone());
        let resting = thread::spawn(move || gentle.get("a").unwrap_err());
        let began = Instant::now();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(resting.join().unwrap().fault, Fault::Unavailable);
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[test]
    fn nothing_is_written() {
        let (_around, store) = store();
        let gentle = Gentle::new(store.clone(), None, Arc::default());
        assert_eq!(gentle.create("d", Bytes::new()).unwrap_err().fault, Fault::Refused);
        assert_eq!(gentle.delete("a").unwrap_err().fault, Fault::Refused);
        assert_eq!(store.list("", None).unwrap().len(), 3);
    }
}
