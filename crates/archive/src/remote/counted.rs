//! Counts what is asked of a store, for metrics.

use crate::store::{Below, Created, Fault, Meta, Store, StoreError};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was asked, and what came of it. Each counts up only, and may be read at any time.
#[derive(Debug, Default)]
pub struct Counts {
    /// Conditional creations.
    pub create: OperationCounts,
    /// Reads of whole objects.
    pub get: OperationCounts,
    /// Reads of pieces.
    pub get_range: OperationCounts,
    /// Questions after an object.
    pub head: OperationCounts,
    /// Listings.
    pub list: OperationCounts,
    /// Removals.
    pub delete: OperationCounts,
    /// Bytes of objects that were made.
    pub bytes_up: AtomicU64,
    /// Bytes that were read.
    pub bytes_down: AtomicU64,
    /// Creations whose name was taken.
    pub existed: AtomicU64,
}

/// Of one kind of operation.
#[derive(Debug, Default)]
pub struct OperationCounts {
    /// All of them, when they have ended.
    pub all: AtomicU64,
    /// Ended because there is no such object.
    pub missing: AtomicU64,
    /// Ended because the credentials do not do.
    pub denied: AtomicU64,
    /// Ended because the store, or the way to it, did not work.
    pub unavailable: AtomicU64,
    /// Ended because the store never does that.
    pub refused: AtomicU64,
}

impl OperationCounts {
    /// How many ended so.
    pub fn of(&self, fault: Fault) -> &AtomicU64 {
        match fault {
            Fault::Missing => &self.missing,
            Fault::Denied => &self.denied,
            Fault::Unavailable => &self.unavailable,
            Fault::Refused => &self.refused,
        }
    }

    fn note<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        add(&self.all, 1);
        outcome.inspect_err(|error| add(self.of(error.fault), 1))
    }
}

impl Counts {
    /// Each operation with its name, as metrics label it.
    pub fn by_name(&self) -> [(&'static str, &OperationCounts); 6] {
        [
            ("create", &self.create),
            ("get", &self.get),
            ("get_range", &self.get_range),
            ("head", &self.head),
            ("list", &self.list),
            ("delete", &self.delete),
        ]
    }
}

/// A counter orders nothing: who reads it wants to know how much, not since when.
fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// A store whose operations are counted.
#[derive(Debug)]
pub struct Counted<S> {
    store: S,
    counts: Arc<Counts>,
}

impl<S> Counted<S> {
    /// One that counts here.
    pub fn new(store: S, counts: Arc<Counts>) -> Counted<S> {
        Counted { store, counts }
    }

    /// Where it counts.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }
}

impl<S: Store> Store for Counted<S> {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        let length = bytes.len();
        let outcome = self.counts.create.note(self.store.create(name, bytes));
        match outcome {
            Ok(Created::New) => add(&self.counts.bytes_up, length),
            Ok(Created::Exists) => add(&self.counts.existed, 1),
            Err(_) => {}
        }
        outcome
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        let outcome = self.counts.get.note(self.store.get(name));
        outcome.inspect(|bytes| add(&self.counts.bytes_down, bytes.len()))
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let outcome = self.counts.get_range.note(self.store.get_range(name, range));
        outcome.inspect(|bytes| add(&self.counts.bytes_down, bytes.len()))
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        self.counts.head.note(self.store.head(name))
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        self.counts.list.note(self.store.list(prefix, after))
    }

    fn look_into(&self, prefix: &str) -> Result<Below, StoreError> {
        self.counts.list.note(self.store.look_into(prefix))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.counts.delete.note(self.store.delete(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::folder::Folder;

    #[test]
    fn operations_bytes_and_faults_are_counted() {
        let around = tempfile::tempdir().unwrap();
        let store = Counted::new(Folder::open(around.path()).unwrap(), Arc::default());
        store.create("a", Bytes::from_static(b"12345")).unwrap();
        store.create("a", Bytes::from_static(b"123")).unwrap();
        store.create("../a", Bytes::new()).unwrap_err();
        store.get("a").unwrap();
        store.get_range("a", 1..3).unwrap();
        store.get("b").unwrap_err();
        store.head("a").unwrap();
        store.list("", None).unwrap();
        store.delete("a").unwrap();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = store.counts();
        let all: Vec<u64> = counts.by_name().iter().map(|(_, counts)| read(&counts.all)).collect();
        assert_eq!(all, [3, 2, 1, 1, 1, 1]);
        assert_eq!((read(&counts.bytes_up), read(&counts.bytes_down), read(&counts.existed)), (5, 7, 1));
        assert_eq!((read(&counts.get.missing), read(&counts.create.refused)), (1, 1));
    }
}
