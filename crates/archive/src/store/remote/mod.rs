//! The real stores: S3 and what speaks its protocol, Google Cloud Storage, Azure, and folders. The only user of
//! `object_store`.

#![allow(
    clippy::disallowed_methods,
    reason = "the door to the store, which is outside and in real time; a folder is one"
)]

mod answer;
mod aws_profile;
mod client;
mod connector;
mod fault;
mod folder;
mod location;
mod mask;
mod options;
mod pool;
mod shared;
mod throttle;

pub use folder::Folder;
pub use location::{FORMS, Location};
pub use options::{Options, WrongOption};
pub use throttle::Throttled;

use crate::names;
use crate::store::{Below, Created, Fault, Meta, Store, StoreError};
use answer::{Answer, Seen};
use bytes::Bytes;
use client::Client;
use fault::Operation;
use futures_util::TryStreamExt;
use jiff::Timestamp;
use mask::Mask;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};
use pool::Pool;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// How often a creation is repeated that met another one under way.
const CONFLICTS_MAX: u32 = 5;
/// How long such another one is given, each time.
const CONFLICT_PAUSE: Duration = Duration::from_millis(200);

/// Opens the store at a location, with the credentials of the environment. No request is sent: whether the store works, only
/// using it tells.
///
/// # Errors
/// When the options mean nothing, or there are no credentials that could be used, or a folder is not there.
pub fn open(location: &Location, options: &Options) -> Result<Arc<dyn Store>, StoreError> {
    match location {
        Location::Folder(path) => {
            check(location, options)?;
            Ok(Arc::new(Folder::open(path)?))
        }
        _ => Ok(Arc::new(Remote::open(location, options)?)),
    }
}

fn check(location: &Location, options: &Options) -> Result<(), StoreError> {
    options
        .check(location)
        .map_err(|wrong| StoreError::new(Fault::Refused, format!("{} {}", wrong.name, wrong.why)))
}

/// An object store behind a network.
#[derive(Debug)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    /// In front of each name, with a slash at its end, or empty.
    root: String,
    mask: Mask,
    pool: Pool,
}

impl Remote {
    /// Opens a bucket or container, with the credentials of the environment. No request is sent.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(location: &Location, options: &Options) -> Result<Remote, StoreError> {
        Remote::open_with(location, options, &|name| std::env::var(name).ok())
    }

    /// As [`Remote::open`], with another environment.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open_with(
        location: &Location,
        options: &Options,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Remote, StoreError> {
        check(location, options)?;
        let refused =
            |text: String| StoreError::new(Fault::Refused, format!("cannot open {location}: {text}"));
        let Client { store, mask } = client::client(location, options, environment).map_err(refused)?;
        let prefix = match location {
            Location::S3 { prefix, .. }
            | Location::Google { prefix, .. }
            | Location::Azure { prefix, .. } => prefix,
            Location::Folder(_) => return Err(refused("a folder is no bucket".to_owned())),
        };
        let root = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let pool = Pool::start().map_err(|error| refused(format!("no thread for its requests: {error}")))?;
        Ok(Remote { store, root, mask, pool })
    }

    /// How an object is locked against deletion, in the store's words; `None` when the store says nothing of a lock, or does
    /// not let this account see one.
    ///
    /// # Errors
    /// As [`Store::head`].
    pub fn lock_of(&self, name: &str) -> Result<Option<String>, StoreError> {
        let path = self.path(name)?;
        let store = self.store.clone();
        let (outcome, seen) = self.watch(async move { store.head(&path).await })?;
        match outcome {
            Ok(_) => Ok(seen.lock),
            Err(error) => Err(fault::error(Operation::Head, name, &seen, &error, &self.mask)),
        }
    }

    /// The library's form of a name, below the root.
    fn path(&self, name: &str) -> Result<Path, StoreError> {
        if !name.split('/').all(names::is_part) {
            return Err(StoreError::new(Fault::Refused, format!("{name:?} is no name of an object")));
        }
        Path::parse(format!("{}{name}", self.root)).map_err(|error| {
            StoreError::new(Fault::Refused, format!("{name:?} is no name of an object: {error}"))
        })
    }

    /// The library's form of a prefix of names; `None` for all there are.
    fn prefix(&self, prefix: &str) -> Result<Option<Path>, StoreError> {
        let folder = prefix.strip_suffix('/').unwrap_or(prefix);
        let whole = format!("{}{folder}", self.root);
        let whole = whole.strip_suffix('/').unwrap_or(&whole);
        let path = Path::parse(whole).map_err(|error| no_prefix(prefix, &error))?;
        Ok(Some(path).filter(|_| !whole.is_empty()))
    }

    /// Runs an operation on the thread of the requests.
    fn watch<T: Send + 'static>(
        &self,
        operation: impl Future<Output = T> + Send + 'static,
    ) -> Result<(T, Seen), StoreError> {
        let gone = || StoreError::new(Fault::Unavailable, "the thread of the archive's requests has failed");
        self.pool.run(answer::watch(operation)).ok_or_else(gone)
    }

    /// Runs an operation on one object.
    fn run<T: Send + 'static>(
        &self,
        operation: Operation,
        name: &str,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (outcome, seen) = self.watch(work)?;
        outcome.map_err(|error| fault::error(operation, name, &seen, &error, &self.mask))
    }

    /// What a listing says of an object; `None` for one that is not ours by its name.
    fn meta(&self, meta: &ObjectMeta) -> Option<Meta> {
        let name = meta.location.as_ref().strip_prefix(self.root.as_str())?;
        if !name.split('/').all(names::is_part) {
            return None;
        }
        let at = &meta.last_modified;
        // A date that no clock shows cannot be the reason why an object is not seen.
        let modified =
            Timestamp::new(at.timestamp(), i32::try_from(at.timestamp_subsec_nanos()).unwrap_or(0))
                .unwrap_or(Timestamp::UNIX_EPOCH);
        Some(Meta { name: name.to_owned(), size: meta.size, modified })
    }

    /// One conditional creation. `Ok(None)`: another one of the same name is, or was, under way.
    fn try_create(&self, name: &str, path: &Path, bytes: &Bytes) -> Result<Option<Created>, StoreError> {
        let (store, path, payload) = (self.store.clone(), path.clone(), PutPayload::from(bytes.clone()));
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let (outcome, seen) = self.watch(async move { store.put_opts(&path, payload, options).await })?;
        let Err(error) = outcome else { return Ok(Some(Created::New)) };
        if let Some(Answer::Refusal(refusal)) = &seen.answer {
            match (refusal.status, refusal.code.as_deref()) {
                (412, _) | (409, Some("BlobAlreadyExists")) => return Ok(Some(Created::Exists)),
                (409, _) => return Ok(None),
                _ => {}
            }
        } else if matches!(
            error,
            object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. }
                | object_store::Error::NotModified { .. }
        ) {
            return Ok(Some(Created::Exists));
        }
        Err(fault::error(Operation::Create, name, &seen, &error, &self.mask))
    }
}

fn no_prefix(prefix: &str, error: &object_store::path::Error) -> StoreError {
    StoreError::new(Fault::Refused, format!("{prefix:?} is no prefix of names: {error}"))
}

impl Store for Remote {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        let path = self.path(name)?;
        for _ in 0..CONFLICTS_MAX {
            match self.try_create(name, &path, &bytes) {
                Ok(Some(created)) => return Ok(created),
                Ok(None) => {}
                // Who may create and not overwrite is refused where the name is taken, before the store looks at the condition:
                // by a signature of Azure with the right c alone, and where a lock holds the object.
                Err(error) if error.fault == Fault::Denied => {
                    return self.head(name).map(|_| Created::Exists).map_err(|_| error);
                }
                Err(error) => return Err(error),
            }
            // The other may have failed in the end, and then nothing is there.
            match self.head(name) {
                Ok(_) => return Ok(Created::Exists),
                Err(error) if error.is_missing() => std::thread::sleep(CONFLICT_PAUSE),
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::new(
            Fault::Unavailable,
            format!(
                "cannot create {name}: {CONFLICTS_MAX} times the store said that somebody else writes that name, and nothing is there"
            ),
        ))
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        let (store, path) = (self.store.clone(), self.path(name)?);
        self.run(Operation::Get, name, async move { store.get(&path).await?.bytes().await })
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let (store, path) = (self.store.clone(), self.path(name)?);
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let start = range.start;
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let read = async move { store.get_opts(&path, options).await?.bytes().await };
        let (outcome, seen) = self.watch(read)?;
        match outcome {
            Ok(bytes) => Ok(bytes),
            // Azure answers such a range with the whole object, which the library does not take.
            Err(_) if seen.answer.is_none() && self.head(name)?.size <= start => Err(StoreError::new(
                Fault::Refused,
                format!("cannot read {name}: the range begins behind the end of the object"),
            )),
            Err(error) => Err(fault::error(Operation::Get, name, &seen, &error, &self.mask)),
        }
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        let path = self.path(name)?;
        let (store, asked) = (self.store.clone(), path.clone());
        let missing = match self.run(Operation::Head, name, async move { store.head(&asked).await }) {
            Ok(meta) => {
                let odd =
                    || StoreError::new(Fault::Refused, format!("the store gave another object for {name}"));
                return self.meta(&meta).ok_or_else(odd);
            }
            Err(error) if error.is_missing() => error,
            Err(error) => return Err(error),
        };
        // An answer to HEAD has no words, and a bucket that is gone looks like an object that is not there: reading says which.
        let store = self.store.clone();
        let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        let (outcome, seen) = self.watch(async move { store.get_opts(&path, options).await.map(drop) })?;
        match (outcome, &seen.answer) {
            (Err(error), Some(Answer::Refusal(refusal))) if refusal.status == 404 => {
                Err(fault::error(Operation::Head, name, &seen, &error, &self.mask))
            }
            // It has come in between: whoever asks again sees it.
            _ => Err(missing),
        }
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        let path = self.prefix(prefix)?;
        let offset = match after.filter(|after| !after.is_empty()) {
            Some(after) => Some(
                Path::parse(format!("{}{after}", self.root)).map_err(|error| no_prefix(prefix, &error))?,
            ),
            None => None,
        };
        let store = self.store.clone();
        let found = self.run(Operation::List, prefix, async move {
            let stream = match &offset {
                Some(offset) => store.list_with_offset(path.as_ref(), offset),
                None => store.list(path.as_ref()),
            };
            stream.try_collect::<Vec<ObjectMeta>>().await
        })?;
        // Not every store knows where to begin, and not every one lists in the order of bytes.
        let mut found: Vec<Meta> = found
            .iter()
            .filter_map(|meta| self.meta(meta))
            .filter(|meta| after.is_none_or(|after| meta.name.as_str() > after))
            .collect();
        found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    fn look_into(&self, prefix: &str) -> Result<Below, StoreError> {
        let (store, path) = (self.store.clone(), self.prefix(prefix)?);
        let found =
            self.run(Operation::List, prefix, async move { store.list_with_delimiter(path.as_ref()).await })?;
        let folder = |path: &Path| {
            let name = path.as_ref().strip_prefix(self.root.as_str())?;
            name.split('/').all(names::is_part).then(|| format!("{name}/"))
        };
        let mut objects: Vec<Meta> = found.objects.iter().filter_map(|meta| self.meta(meta)).collect();
        objects.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(Below { folders: found.common_prefixes.iter().filter_map(folder).collect(), objects })
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let (store, path) = (self.store.clone(), self.path(name)?);
        match self.run(Operation::Delete, name, async move { store.delete(&path).await }) {
            Err(error) if error.is_missing() => Ok(()),
            outcome => outcome,
        }
    }
}
