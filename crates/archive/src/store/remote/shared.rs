//! A store that several own is a store: wrappers take it as they take a store of their own.

use crate::store::{Below, Created, Meta, Store, StoreError};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

impl<S: Store + ?Sized> Store for Arc<S> {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        (**self).create(name, bytes)
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        (**self).get(name)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        (**self).get_range(name, range)
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        (**self).head(name)
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        (**self).list(prefix, after)
    }

    fn look_into(&self, prefix: &str) -> Result<Below, StoreError> {
        (**self).look_into(prefix)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        (**self).delete(name)
    }
}
