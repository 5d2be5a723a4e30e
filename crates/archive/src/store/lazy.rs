//! A store that is opened when it is used first, and tried again until that works: a folder that is not mounted yet, or
//! credentials that are not there yet, keep nobody else from starting.

use crate::store::remote::{Location, Options, Throttled, open};
use crate::store::{Below, Created, Meta, Store, StoreError};
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// See [the module](self).
#[derive(Debug)]
pub struct Lazy {
    location: Location,
    options: Options,
    /// Most bytes a second that are uploaded.
    bandwidth: Option<u64>,
    opened: Mutex<Option<Arc<dyn Store>>>,
}

impl Lazy {
    /// For the store at a location; nothing is asked of it yet.
    pub fn new(location: Location, options: Options, bandwidth: Option<u64>) -> Lazy {
        Lazy { location, options, bandwidth, opened: Mutex::new(None) }
    }

    fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*opened {
            return Ok(store.clone());
        }
        let store = open(&self.location, &self.options)?;
        let store: Arc<dyn Store> = match self.bandwidth {
            Some(bandwidth) => Arc::new(Throttled::new(store, bandwidth)),
            None => store,
        };
        Ok(opened.insert(store).clone())
    }
}

impl Store for Lazy {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        self.store()?.create(name, bytes)
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        self.store()?.get(name)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.store()?.get_range(name, range)
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        self.store()?.head(name)
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        self.store()?.list(prefix, after)
    }

    fn look_into(&self, prefix: &str) -> Result<Below, StoreError> {
        self.store()?.look_into(prefix)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.store()?.delete(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_comes_later_is_used_then() {
        let dir = tempfile::tempdir().unwrap();
        let around = dir.path().join("mount");
        let url = format!("file://{}", around.join("archive").display());
        let store = Lazy::new(url.parse().unwrap(), Options::default(), None);
        assert!(store.list("", None).unwrap_err().to_string().contains("Is it mounted?"));
        std::fs::create_dir(around).unwrap();
        assert_eq!(store.create("a/b", Bytes::from_static(b"x")), Ok(Created::New));
        assert_eq!(store.get("a/b").unwrap(), "x");
    }
}
