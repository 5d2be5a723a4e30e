//! Segments on their way: read, compressed, encrypted, named by their content, and made in the store.

use crate::chain::commit::Segment;
use crate::keys::Recipients;
use crate::names;
use crate::segment::runs::Walker;
use crate::segment::{SealError, Sealed, Sealer};
use crate::store::{Created, Fault, Store, StoreError};
use crate::writer::local::{Cut, read_range};
use binlog::storage::ReadFile;
use std::fmt;
use std::io;
use std::mem;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How many segments of all sources may be in memory at once, which bounds both the memory and the requests under way.
///
/// A segment is made of its plain bytes and its frames, and then only the object is left, for as long as the store takes. So fewer
/// are made at a time than are sent: no more than there are processors, which making them is the work of. What a segment is made
/// with goes from one to the next: kept by the threads, of which each source has several, it would be there many times more often
/// than segments are made.
#[derive(Debug)]
pub struct Permits {
    state: Mutex<State>,
    returned: Condvar,
    all: usize,
}

#[derive(Debug)]
struct State {
    /// So many more may be in memory.
    free: usize,
    /// So many more may be made.
    places: usize,
    /// Uploads of several segments that are under way. After the last of them nothing is kept.
    uploads: usize,
    /// Of places that are free.
    idle: Vec<Workplace>,
}

/// What a segment is made with.
#[derive(Debug, Default)]
struct Workplace {
    plain: Vec<u8>,
    sealer: Option<Sealer>,
}

/// One segment that may be in memory, until this goes.
#[derive(Debug)]
struct Permit<'a>(&'a Permits);

/// A place at which a segment is made, given back when this goes.
#[derive(Debug)]
struct Place<'a> {
    permits: &'a Permits,
    workplace: Workplace,
}

/// While there is one, workplaces are kept for the next segment.
#[derive(Debug)]
pub(super) struct Upload<'a>(&'a Permits);

impl Permits {
    /// So many segments at a time, at least one; as many of them are made at a time as there are processors.
    pub fn new(segments: usize) -> Permits {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Permits::with_places(segments, processors)
    }

    fn with_places(segments: usize, places: usize) -> Permits {
        let all = segments.max(1);
        let state = State { free: all, places: places.clamp(1, all), uploads: 0, idle: Vec::new() };
        Permits { state: Mutex::new(state), returned: Condvar::new(), all }
    }

    pub(super) fn begin_upload(&self) -> Upload<'_> {
        self.state().uploads += 1;
        Upload(self)
    }

    fn take(&self) -> Permit<'_> {
        self.when(|state| state.free > 0).free -= 1;
        Permit(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers and memory, right between any two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn when(&self, is: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.returned.wait_while(self.state(), |state| !is(state));
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Permit<'a> {
    /// Waits for a place to make the segment.
    fn place(&self) -> Place<'a> {
        let mut state = self.0.when(|state| state.places > 0);
        state.places -= 1;
        Place { permits: self.0, workplace: state.idle.pop().unwrap_or_default() }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.state().free += 1;
        self.0.returned.notify_all();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.permits.state();
        state.places += 1;
        if state.uploads > 0 {
            state.idle.push(mem::take(&mut self.workplace));
        }
        drop(state);
        self.permits.returned.notify_all();
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.uploads -= 1;
        let unused = if state.uploads == 0 { mem::take(&mut state.idle) } else { Vec::new() };
        drop(state);
        // The memory is given back to the system without the lock.
        drop(unused);
    }
}

impl Workplace {
    /// The sealer of the segment before, if that was made for the same readers in the same way.
    fn sealer(&mut self, level: i32, recipients: Option<&Arc<Recipients>>) -> Result<&mut Sealer, SealError> {
        let kept = self.sealer.take().filter(|sealer| sealer.is_for(level, recipients));
        let sealer = match kept {
            Some(sealer) => sealer,
            None => Sealer::new(level, recipients.cloned())?,
        };
        Ok(self.sealer.insert(sealer))
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
        let _upload = self.permits.begin_upload();
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((cut, to)) = pieces.get(index) else { break };
                match self.one(owner, file, *cut, *to) {
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

    fn one(&self, owner: Owner<'_>, file: &dyn ReadFile, cut: Cut, to: u64) -> Result<Segment, UploadError> {
        // Held until the object is in the store.
        let permit = self.permits.take();
        let mut place = permit.place();
        let mut plain = mem::take(&mut place.workplace.plain);
        read_range(file, cut.at, to, &mut plain).map_err(UploadError::Read)?;
        // Bytes before the first event belong to one that began in the segment before.
        let skipped = usize::try_from(cut.event - cut.at).unwrap_or(usize::MAX).min(plain.len());
        let mut runs = Walker::new(cut.event).piece(&plain[skipped..]);
        for run in &mut runs {
            *run = run.start + skipped..run.end + skipped;
        }
        let sealed = self.seal(&mut place, &plain, &runs);
        place.workplace.plain = plain;
        drop(place);
        self.create(owner, cut.at..to, sealed?)
    }

    /// Uploads bytes of a stream, of which the first is at `from`. No event of a binary log is looked for in them.
    ///
    /// # Errors
    /// When the object could not be made.
    pub(super) fn piece(&self, owner: Owner<'_>, from: u64, plain: &[u8]) -> Result<Segment, UploadError> {
        let permit = self.permits.take();
        let mut place = permit.place();
        let sealed = self.seal(&mut place, plain, &[]);
        drop(place);
        self.create(owner, from..from + plain.len() as u64, sealed?)
    }

    /// Makes an object of bytes. `runs` are the ranges of it that the source has compressed.
    fn seal(
        &self,
        place: &mut Place<'_>,
        plain: &[u8],
        runs: &[Range<usize>],
    ) -> Result<Sealed, UploadError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(UploadError::Stopped);
        }
        let sealer = place.workplace.sealer(self.level, self.recipients.as_ref());
        sealer.and_then(|sealer| sealer.seal(plain, runs)).map_err(UploadError::Seal)
    }

    /// Makes it in the store: then it is a segment.
    fn create(&self, owner: Owner<'_>, range: Range<u64>, sealed: Sealed) -> Result<Segment, UploadError> {
        let Owner { source, timeline, file } = owner;
        let Sealed { bytes, sha256, stored_sha256, keys } = sealed;
        let encrypted = self.recipients.is_some();
        let object =
            names::segment(source, timeline, file, range.start, range.end, &stored_sha256, encrypted);
        let stored = bytes.len() as u64;
        create_data(&*self.store, &object, bytes).map_err(UploadError::Store)?;
        Ok(Segment { from: range.start, to: range.end, sha256, object, stored, stored_sha256, keys })
    }
}

/// Makes an object whose name says its content, once. Where the store has one of that name already, an earlier try of the same
/// call has arrived: its length is looked at, and its content is the name's.
///
/// # Errors
/// When it is not known to be there.
pub(crate) fn create_data(store: &dyn Store, object: &str, bytes: bytes::Bytes) -> Result<(), StoreError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workplace_goes_from_one_segment_to_the_next_and_is_gone_behind_the_last() {
        let permits = Permits::with_places(2, 2);
        let memory = |place: &Place<'_>| place.workplace.plain.capacity();
        let upload = permits.begin_upload();
        let [one, other] = [permits.take(), permits.take()];
        let [mut first, second] = [one.place(), other.place()];
        first.workplace.plain.reserve_exact(4096);
        drop((first, second));
        // There are never more of them than places, whoever asks.
        assert_eq!(permits.state().idle.len(), 2);
        let both = [one.place(), other.place()];
        assert_eq!(both.iter().map(memory).sum::<usize>(), 4096);
        let next = permits.begin_upload();
        drop(both);
        drop(upload);
        assert_eq!(permits.state().idle.len(), 2, "one upload goes on");
        drop(next);
        drop((one, other));
        {
            let state = permits.state();
            assert_eq!((state.idle.len(), state.free, state.places), (0, 2, 2));
        }
        drop(permits.take().place());
        assert_eq!(permits.state().idle.len(), 0, "nobody uploads");
    }

    #[test]
    fn while_some_are_sent_others_are_made() {
        let permits = Permits::with_places(3, 1);
        let sent = [permits.take(), permits.take()].map(|permit| {
            drop(permit.place());
            permit
        });
        let made = permits.take();
        let place = made.place();
        let counts = || {
            let state = permits.state();
            (state.free, state.places)
        };
        assert_eq!(counts(), (0, 0));
        drop(place);
        assert_eq!(counts(), (0, 1));
        drop((sent, made));
        assert_eq!(counts(), (3, 1));
        assert_eq!(Permits::with_places(0, 8).all, 1);
    }

    #[test]
    fn a_sealer_of_others_is_not_used_again() {
        let key = || {
            let mut recipients = Recipients::new();
            let public = age::x25519::Identity::generate().to_public();
            recipients.add(&public.to_string(), "test").unwrap();
            Arc::new(recipients)
        };
        let (ours, others) = (key(), key());
        let mut workplace = Workplace::default();
        let mut keys = |recipients: Option<&Arc<Recipients>>| {
            workplace.sealer(1, recipients).unwrap().seal(b"plain", &[]).unwrap().keys
        };
        for recipients in [Some(&ours), Some(&ours), Some(&others), None, Some(&ours)] {
            assert_eq!(keys(recipients), recipients.map_or_else(Vec::new, |one| one.labels()));
        }
        assert!(workplace.sealer(3, Some(&ours)).unwrap().is_for(3, Some(&ours)));
    }
}
