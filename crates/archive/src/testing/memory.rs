//! The store itself: objects by their names, each made once and at one moment, whoever asks.

use crate::store::{Created, Fault, Meta, Store, StoreError};
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sees each change at the moment at which it is made. Must not ask the store.
pub trait Witness: Send {
    /// An object was made that was not there.
    fn created(&mut self, name: &str, bytes: &Bytes, at: Timestamp);
    /// An object that was there is gone.
    fn deleted(&mut self, name: &str, at: Timestamp);
}

/// A store in memory that does what it is told. Its clock is set by the test.
#[derive(Default)]
pub struct Memory {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Object>,
    /// What was deleted last, for listings that come late.
    deleted: BTreeMap<String, (Meta, Timestamp)>,
    now: Timestamp,
    witness: Option<Box<dyn Witness>>,
}

/// All objects of a moment.
#[derive(Clone, Default)]
pub struct Saved(BTreeMap<String, Object>);

#[derive(Clone)]
struct Object {
    bytes: Bytes,
    modified: Timestamp,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("objects", &self.state().objects.len()).finish_non_exhaustive()
    }
}

impl Memory {
    /// An empty store whose changes `witness` sees.
    pub fn watched(witness: Box<dyn Witness>) -> Memory {
        let memory = Memory::default();
        memory.state().witness = Some(witness);
        memory
    }

    /// Sets the store's clock, which says when an object was made.
    pub fn set_now(&self, now: Timestamp) {
        self.state().now = now;
    }

    /// What the store has now, or had at a moment to which it is put back.
    pub fn save(&self) -> Saved {
        Saved(self.state().objects.clone())
    }

    /// From now on the store has what it had then, and nothing else. No witness is told.
    pub fn put_back(&self, to: &Saved) {
        self.state().objects.clone_from(&to.0);
    }

    /// A listing as it was up to `lag` ago, object by object: what was made since may be missing (`hides` says of a name whether
    /// it is), and what was deleted since may be there.
    pub(crate) fn list_late(
        &self,
        prefix: &str,
        after: Option<&str>,
        lag: SignedDuration,
        mut hides: impl FnMut() -> bool,
    ) -> Vec<Meta> {
        let mut listed = self.listed(prefix, after);
        let state = self.state();
        let since = state.now - lag;
        listed.retain(|meta| meta.modified <= since || !hides());
        let behind = |name: &str| name.starts_with(prefix) && after.is_none_or(|after| name > after);
        for (name, (meta, at)) in &state.deleted {
            if behind(name) && *at > since && !state.objects.contains_key(name) && hides() {
                listed.push(meta.clone());
            }
        }
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        listed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listed(&self, prefix: &str, after: Option<&str>) -> Vec<Meta> {
        let state = self.state();
        let from = after.map_or(Bound::Included(prefix), |after| Bound::Excluded(after.max(prefix)));
        let found = state.objects.range::<str, _>((from, Bound::Unbounded));
        let below = found.skip_while(|(name, _)| !name.starts_with(prefix));
        below
            .take_while(|(name, _)| name.starts_with(prefix))
            .map(|(name, object)| object.meta(name))
            .collect()
    }
}

impl Object {
    fn meta(&self, name: &str) -> Meta {
        Meta { name: name.to_owned(), size: self.bytes.len() as u64, modified: self.modified }
    }
}

fn missing(name: &str) -> StoreError {
    StoreError::new(Fault::Missing, format!("there is no object {name}"))
}

impl Store for Memory {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        let mut state = self.state();
        if state.objects.contains_key(name) {
            return Ok(Created::Exists);
        }
        let modified = state.now;
        if let Some(witness) = &mut state.witness {
            witness.created(name, &bytes, modified);
        }
        state.objects.insert(name.to_owned(), Object { bytes, modified });
        Ok(Created::New)
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        self.state().objects.get(name).map(|object| object.bytes.clone()).ok_or_else(|| missing(name))
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let bytes = self.get(name)?;
        let len = bytes.len() as u64;
        if range.start >= len {
            return Err(StoreError::new(Fault::Refused, format!("{name} ends at {len}")));
        }
        Ok(bytes.slice(range.start as usize..range.end.min(len) as usize))
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        self.state().objects.get(name).map(|object| object.meta(name)).ok_or_else(|| missing(name))
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        Ok(self.listed(prefix, after))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let mut state = self.state();
        let Some(object) = state.objects.remove(name) else { return Ok(()) };
        let at = state.now;
        state.deleted.insert(name.to_owned(), (object.meta(name), at));
        if let Some(witness) = &mut state.witness {
            witness.deleted(name, at);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_made_once_and_listed_in_order() {
        let store = Memory::default();
        for name in ["a/2", "a/1", "b/1", "a/10"] {
            assert_eq!(store.create(name, Bytes::from(name.to_owned())), Ok(Created::New));
        }
        assert_eq!(store.create("a/1", Bytes::from_static(b"x")), Ok(Created::Exists));
        assert_eq!(store.get("a/1").unwrap(), "a/1");
        let names = |after| {
            let listed = store.list("a/", after).unwrap();
            listed.into_iter().map(|meta| meta.name).collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["a/1", "a/10", "a/2"]);
        assert_eq!(names(Some("a/1")), ["a/10", "a/2"]);
        assert_eq!(store.get_range("a/10", 2..9).unwrap(), "10");
        store.delete("a/1").unwrap();
        store.delete("a/1").unwrap();
        assert!(store.head("a/1").unwrap_err().is_missing());
        let late = store.list_late("a/", None, SignedDuration::from_secs(1), || true);
        assert_eq!(late.len(), 1, "the deleted one is listed, the new ones are not: {late:?}");
    }
}
