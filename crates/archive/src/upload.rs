//! Segments on their way: read, compressed, encrypted, named by their content, and made in the store.

use crate::commit::Segment;
use crate::keys::Recipients;
use crate::local::{Cut, read_range};
use crate::names;
use crate::runs::Walker;
use crate::segment::{SealError, Sealer};
use crate::store::{Created, Fault, Store, StoreError};
use log::storage::ReadFile;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

/// How many segments of all sources may be in memory at once, which bounds both the memory and the requests under way.
#[derive(Debug)]
pub struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
    all: usize,
}

/// One of the [`Permits`], given back when it goes.
#[derive(Debug)]
struct Permit<'a>(&'a Permits);

impl Permits {
    /// So many, at least one.
    pub fn new(segments: usize) -> Permits {
        let all = segments.max(1);
        Permits { free: Mutex::new(all), returned: Condvar::new(), all }
    }

    fn take(&self) -> Permit<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            self.returned.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}

/// Why segments are not in the store.
#[derive(Debug)]
pub enum UploadError {
    /// The store did not take one.
    Store(StoreError),
    /// The copy could not be read.
    Read(io::Error),
    /// It could not be compressed or encrypted.
    Seal(SealError),
    /// The process ends.
    Stopped,
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UploadError::Store(error) => error.fmt(f),
            UploadError::Read(error) => error.fmt(f),
            UploadError::Seal(error) => error.fmt(f),
            UploadError::Stopped => f.write_str("binlogd is ending"),
        }
    }
}

/// Whose bytes they are.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The source's name in the archive.
    pub source: &'a str,
    /// The timeline's.
    pub timeline: &'a str,
    /// The file's.
    pub file: &'a str,
}

/// Makes segments of bytes and uploads them.
#[derive(Debug, Clone)]
pub struct Uploader {
    /// Where to.
    pub store: Arc<dyn Store>,
    /// Shared by all sources.
    pub permits: Arc<Permits>,
    /// Level of zstd.
    pub level: i32,
    /// Who can decrypt; `None` for no encryption.
    pub recipients: Option<Arc<Recipients>>,
    /// Goes up when the process ends.
    pub stop: Arc<AtomicBool>,
}

impl Uploader {
    /// Uploads the bytes between the `cuts` of a file. None of the segments counts before a commit names it.
    ///
    /// # Errors
    /// When one of them could not be made. Others may be in the store; nobody needs them.
    pub fn upload(
        &self,
        owner: Owner<'_>,
        file: &dyn ReadFile,
        cuts: &[Cut],
    ) -> Result<Vec<Segment>, UploadError> {
        let pieces: Vec<(Cut, u64)> = cuts.windows(2).map(|pair| (pair[0], pair[1].at)).collect();
        let done: Mutex<Vec<Option<Segment>>> = Mutex::new(vec![None; pieces.len()]);
        let failed: Mutex<Option<UploadError>> = Mutex::new(None);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut plain = Vec::new();
            let mut sealer: Option<Sealer> = None;
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((cut, to)) = pieces.get(index) else { break };
                match self.one(owner, file, *cut, *to, &mut plain, &mut sealer) {
                    Ok(segment) => done.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(segment),
                    Err(error) => {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        // The others end with what they have.
                        next.store(pieces.len(), Ordering::Relaxed);
                    }
                }
            }
        };
        // One thread is this one: a single segment, as most tails are, needs no other.
        thread::scope(|scope| {
            for _ in 1..self.permits.all.min(pieces.len()) {
                // Without it this thread does the work alone.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(done.into_iter().flatten().collect())
    }

    fn one(
        &self,
        owner: Owner<'_>,
        file: &dyn ReadFile,
        cut: Cut,
        to: u64,
        plain: &mut Vec<u8>,
        sealer: &mut Option<Sealer>,
    ) -> Result<Segment, UploadError> {
        let _permit = self.permits.take();
        if self.stop.load(Ordering::Relaxed) {
            return Err(UploadError::Stopped);
        }
        let sealer = match sealer {
            Some(sealer) => sealer,
            None => {
                sealer.insert(Sealer::new(self.level, self.recipients.clone()).map_err(UploadError::Seal)?)
            }
        };
        read_range(file, cut.at, to, plain).map_err(UploadError::Read)?;
        // Bytes before the first event belong to one that began in the segment before.
        let skipped = usize::try_from(cut.event - cut.at).unwrap_or(usize::MAX).min(plain.len());
        let mut runs = Walker::new(cut.event).piece(&plain[skipped..]);
        for run in &mut runs {
            *run = run.start + skipped..run.end + skipped;
        }
        let sealed = sealer.seal(plain, &runs).map_err(UploadError::Seal)?;
        let Owner { source, timeline, file } = owner;
        let encrypted = self.recipients.is_some();
        let object = names::segment(source, timeline, file, cut.at, to, &sealed.stored_sha256, encrypted);
        let stored = sealed.bytes.len() as u64;
        create_data(&*self.store, &object, sealed.bytes).map_err(UploadError::Store)?;
        Ok(Segment {
            from: cut.at,
            to,
            sha256: sealed.sha256,
            object,
            stored,
            stored_sha256: sealed.stored_sha256,
            keys: sealed.keys,
        })
    }
}

/// Makes an object whose name says its content, once. Where the store has one of that name already, an earlier try of the same
/// call has arrived: its length is looked at, and its content is the name's.
///
/// # Errors
/// When it is not known to be there.
pub fn create_data(store: &dyn Store, object: &str, bytes: bytes::Bytes) -> Result<(), StoreError> {
    let len = bytes.len() as u64;
    match store.create(object, bytes)? {
        Created::New => Ok(()),
        Created::Exists => match store.head(object) {
            Ok(found) if found.size == len => Ok(()),
            Ok(found) => Err(StoreError::new(
                Fault::Refused,
                format!(
                    "{object} is there with {} bytes and should have {len}: its name is that of other content. Nothing was overwritten",
                    found.size
                ),
            )),
            Err(error) if error.is_missing() => Err(StoreError::new(
                Fault::Unavailable,
                format!("the store said that {object} exists, and then that it does not"),
            )),
            Err(error) => Err(error),
        },
    }
}
