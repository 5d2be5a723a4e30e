//! The seam to the object store: the few operations of which the archive is made. Nothing goes past it.
//!
//! [`ObjectStore`](crate::store::remote) is the real one, for S3, Google Cloud Storage, Azure and folders. Tests put a double behind
//! the same trait that loses answers, delays and reorders as stores do.
//!
//! Every operation blocks: who waits for the network is a thread that nobody waits for.

pub mod abandon;
pub mod gentle;
pub mod lazy;
pub mod probe;
pub mod remote;

use bytes::Bytes;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// What a conditional creation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The object is there, and was made by this call.
    New,
    /// The store refused: there is an object of that name already, or there was when an earlier try of the same call arrived.
    /// Whose it is, only reading it tells.
    Exists,
}

/// What a listing says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// Its whole name, below the archive's root.
    pub name: String,
    /// Its length in bytes, as it is stored.
    pub size: u64,
    /// When it was made, by the store's clock.
    pub modified: Timestamp,
}

/// What stands directly below a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Below {
    /// Prefixes of objects further down: whole names up to the next slash, with the slash.
    pub folders: BTreeSet<String>,
    /// Objects.
    pub objects: Vec<Meta>,
}

/// Whose fault an error is, and with that what is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is no object of that name.
    Missing,
    /// The credentials are wrong, or do not allow this. Nothing was done.
    Denied,
    /// The store, or the way to it, does not work now: trying again later is right. Whatever was to be written may have been
    /// written all the same, now or later: an answer may have been lost, and a request may still be under way.
    Unavailable,
    /// The store does not do what was asked, and never will: a wrong bucket, a wrong address, a request that it does not know.
    Refused,
}

/// An operation that failed. The text names the object and what the store said, and no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    /// Whose fault.
    pub fault: Fault,
    /// In words.
    pub text: String,
}

impl StoreError {
    /// An error of this fault.
    pub fn new(fault: Fault, text: impl Into<String>) -> StoreError {
        StoreError { fault, text: text.into() }
    }

    /// True when there is no such object.
    pub fn is_missing(&self) -> bool {
        self.fault == Fault::Missing
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StoreError {}

/// An object store below one root. Names are relative to the root: parts of `[A-Za-z0-9._-]` between slashes.
pub trait Store: Send + Sync + fmt::Debug {
    /// Makes an object of `bytes`, if there is none of that name. Nothing is ever overwritten.
    ///
    /// # Errors
    /// When it could not be made; after [`Fault::Unavailable`] it may be there all the same, or come later.
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError>;

    /// The whole object.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    fn get(&self, name: &str) -> Result<Bytes, StoreError>;

    /// A piece of an object; shorter than asked where the object ends.
    ///
    /// # Errors
    /// As [`Store::get`], and when the range begins behind the end.
    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError>;

    /// Whether there is an object, and how long it is.
    ///
    /// # Errors
    /// When there is none, or the store cannot say.
    fn head(&self, name: &str) -> Result<Meta, StoreError>;

    /// Objects whose names begin with `prefix`, which ends with a slash or is empty, and come after `after` in the order of
    /// bytes; all of them, in that order.
    ///
    /// # Errors
    /// When the store cannot list.
    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError>;

    /// What stands directly below `prefix`, which ends with a slash or is empty: so an archive of years is gone through folder by
    /// folder.
    ///
    /// # Errors
    /// When the store cannot list.
    fn look_into(&self, prefix: &str) -> Result<Below, StoreError> {
        let mut below = Below::default();
        for meta in self.list(prefix, None)? {
            match meta.name[prefix.len()..].find('/') {
                Some(slash) => drop(below.folders.insert(meta.name[..=prefix.len() + slash].to_owned())),
                None => below.objects.push(meta),
            }
        }
        Ok(below)
    }

    /// Removes an object. One that is gone already is no error.
    ///
    /// # Errors
    /// When it may still be there.
    fn delete(&self, name: &str) -> Result<(), StoreError>;
}
