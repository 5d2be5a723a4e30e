//! Segments that were fetched for readers, on this disk: bounded, and disposable. What is in it was compared with its commit; what an
//! earlier process has left is compared before it is used. Nothing is synced.
//!
//! Each segment is fetched by a thread of its own, once for all who wait for it, and ahead of those who read on.

use crate::chain::commit::Segment;
use crate::chain::history::ArchivedFile;
use crate::names;
use crate::reader::Reader;
use binlog::folder::make_folder;
use binlog::storage::{ReadFile, Storage};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Stands behind the name of a segment, which is the SHA-256 of its plain bytes.
const ENDING: &str = ".segment";

/// Stands behind the name of one that is being written.
const UNFINISHED: &str = ".unfinished";

/// A segment that was put into the cache may be pushed out before its reader comes to it; then it is fetched again, so often.
const TRIES_MAX: usize = 8;

/// So many files' segments are kept in memory, of 100 kB for a file of 1 GiB.
const INDEXES_MAX: usize = 8;

/// What was read from the archive for readers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PastCounters {
    /// Objects fetched since the start.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes in the cache now.
    pub cached_bytes: u64,
}

/// Says whether so many bytes more may be written to the disk of the copy.
pub type HasRoom = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// See [the module](self).
pub(super) struct Cache {
    disk: Arc<dyn Storage>,
    folder: PathBuf,
    /// Most bytes in it.
    limit: u64,
    has_room: HasRoom,
    /// Most segments that are fetched ahead at a time.
    at_once: usize,
    state: Mutex<State>,
    /// Segments of the files that were read last, by the objects that have them; the newest last.
    indexes: Mutex<Vec<(String, Arc<[Segment]>)>>,
    objects: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// What is in the folder; `None` before that was read.
    kept: Option<HashMap<String, Entry>>,
    /// Bytes of all entries. Never more than the limit, once the folder was read.
    bytes: u64,
    /// Counts uses.
    turn: u64,
    /// What is being fetched, by the names of segments.
    jobs: HashMap<String, Arc<Job>>,
}

#[derive(Debug)]
struct Entry {
    len: u64,
    /// The turn of the last use.
    used: u64,
    /// Compared by this process.
    is_checked: bool,
}

/// One segment on its way.
#[derive(Debug, Default)]
struct Job {
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
}

/// The plain bytes where the cache has not taken them, and nothing where it has; or why there are none.
type Outcome = Result<Option<Arc<Vec<u8>>>, (io::ErrorKind, String)>;

/// A segment to read from. It stays what it is, whatever becomes of the cache.
#[derive(Debug)]
pub(super) enum Held {
    /// On this disk.
    File(Box<dyn ReadFile>),
    /// There was no room for it there.
    Memory(Arc<Vec<u8>>),
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("folder", &self.folder)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Held {
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Held::File(file) => file.read_at(buffer, offset),
            Held::Memory(plain) => {
                let rest = plain.get(offset as usize..).unwrap_or_default();
                let len = rest.len().min(buffer.len());
                buffer[..len].copy_from_slice(&rest[..len]);
                Ok(len)
            }
        }
    }
}

impl Job {
    fn wait(&self) -> Outcome {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = self
            .ended
            .wait_while(outcome, |outcome| outcome.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        outcome.clone().unwrap_or(Ok(None))
    }

    fn ends(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        self.ended.notify_all();
    }
}

/// A fetch that ends by an error of ours is one that has failed, for who waits for it.
struct EndGuard {
    cache: Arc<Cache>,
    name: String,
    job: Arc<Job>,
    outcome: Outcome,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.cache.state().jobs.remove(&self.name);
        let nothing = (io::ErrorKind::Other, String::new());
        self.job.ends(std::mem::replace(&mut self.outcome, Err(nothing)));
    }
}

impl Cache {
    pub(super) fn new(
        disk: Arc<dyn Storage>,
        folder: PathBuf,
        limit: u64,
        has_room: HasRoom,
        at_once: usize,
    ) -> Cache {
        Cache {
            disk,
            folder,
            limit,
            has_room,
            at_once: at_once.max(1),
            state: Mutex::default(),
            indexes: Mutex::default(),
            objects: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn counters(&self) -> PastCounters {
        PastCounters {
            objects: self.objects.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            cached_bytes: self.state().bytes,
        }
    }

    /// Empties it while there is no room for it, and takes from it what an earlier process with a larger limit has left.
    pub(super) fn tend(&self) {
        self.make_room(if (self.has_room)(0) { 0 } else { self.limit });
    }

    /// A segment; fetched and waited for if it is not here.
    ///
    /// # Errors
    /// When the store does not give it, or gives something else.
    pub(super) fn get(self: &Arc<Cache>, reader: &Reader, segment: &Segment) -> io::Result<Held> {
        for _ in 0..TRIES_MAX {
            if let Some(held) = self.kept(segment) {
                return Ok(held);
            }
            match self.job(reader, segment, usize::MAX)?.map(|job| job.wait()) {
                Some(Ok(Some(plain))) => return Ok(Held::Memory(plain)),
                Some(Err((kind, text))) => return Err(io::Error::new(kind, text)),
                Some(Ok(None)) | None => {}
            }
        }
        let what = format!(
            "{}: it is pushed out of the cache before it is read, again and again; make cache_size in [archive] larger",
            segment.object
        );
        Err(io::Error::other(what))
    }

    /// The segments of a file, of which the history has those of an unfinished one only.
    pub(super) fn segments(&self, reader: &Reader, file: &ArchivedFile) -> io::Result<Arc<[Segment]>> {
        let Some(index) = file.index() else { return Ok(file.inline().unwrap_or_default().into()) };
        let indexes = || self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, segments)) = indexes().iter().find(|(object, _)| *object == index.object) {
            return Ok(segments.clone());
        }
        // The stack of a reader's thread is too small for what unpacks.
        let found = thread::scope(|scope| {
            let thread = thread::Builder::new().name("archive-read".to_owned());
            let fetching = thread.spawn_scoped(scope, || reader.segments(file))?;
            let ended = fetching.join().map_err(|_| {
                let what = "an internal error of binlogd ended its fetching";
                io::Error::other(format!("{}: {what}", index.object))
            })?;
            ended.map_err(io::Error::from)
        });
        let segments = found?;
        let mut indexes = indexes();
        if indexes.len() >= INDEXES_MAX {
            indexes.remove(0);
        }
        indexes.push((index.object.clone(), segments.clone()));
        Ok(segments)
    }

    /// Begins to fetch a segment that will be waited for, if it is not here.
    pub(super) fn begin(self: &Arc<Cache>, reader: &Reader, segment: &Segment) {
        // Where no thread is to be had, whoever waits is told.
        let _ = self.job(reader, segment, usize::MAX);
    }

    /// Begins to fetch those that are not here, as far as that is worth it.
    pub(super) fn prepare(self: &Arc<Cache>, reader: &Reader, segments: &[&Segment]) {
        let bytes: u64 = segments.iter().map(|segment| segment.len()).sum();
        // What the cache cannot keep would be fetched twice.
        if bytes.saturating_mul(2) > self.limit || !(self.has_room)(bytes) {
            return;
        }
        for segment in segments {
            let _ = self.job(reader, segment, self.at_once);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job that fetches a segment, begun if need be; `None` when the cache has it, or there are `jobs_max` already.
    fn job(
        self: &Arc<Cache>,
        reader: &Reader,
        segment: &Segment,
        jobs_max: usize,
    ) -> io::Result<Option<Arc<Job>>> {
        let mut state = self.state();
        if let Some(job) = state.jobs.get(&segment.sha256) {
            return Ok(Some(job.clone()));
        }
        if self.entries(&mut state).contains_key(&segment.sha256) || state.jobs.len() >= jobs_max {
            return Ok(None);
        }
        let job: Arc<Job> = Arc::default();
        state.jobs.insert(segment.sha256.clone(), job.clone());
        drop(state);
        let gone = (
            io::ErrorKind::Other,
            format!("{}: an internal error of binlogd ended its fetching", segment.object),
        );
        let guard = EndGuard {
            cache: self.clone(),
            name: segment.sha256.clone(),
            job: job.clone(),
            outcome: Err(gone),
        };
        let (cache, reader, segment) = (self.clone(), reader.clone(), segment.clone());
        // The stack of a reader's thread is too small for what unpacks.
        thread::Builder::new().name("archive-read".to_owned()).spawn(move || {
            // As a whole, so that it is dropped behind the fetch.
            let mut guard = guard;
            guard.outcome = cache.fetch(&reader, &segment);
        })?;
        Ok(Some(job))
    }

    fn fetch(&self, reader: &Reader, segment: &Segment) -> Outcome {
        let plain = reader.segment(segment).map_err(|error| {
            let error = io::Error::from(error);
            (error.kind(), error.to_string())
        })?;
        self.objects.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(segment.stored, Ordering::Relaxed);
        // A disk that does not take it keeps nobody from reading.
        Ok(match self.keep(&segment.sha256, &plain) {
            Ok(true) => None,
            _ => Some(Arc::new(plain)),
        })
    }

    /// A segment that is in the cache.
    fn kept(&self, segment: &Segment) -> Option<Held> {
        let mut state = self.state();
        state.turn += 1;
        let turn = state.turn;
        let entry = self.entries(&mut state).get_mut(&segment.sha256)?;
        entry.used = turn;
        let is_checked = entry.is_checked;
        drop(state);
        let file = self.disk.open_read(&self.path(&segment.sha256));
        let sound = file.and_then(|file| {
            let is_sound = is_checked || is_whole(&*file, segment)?;
            Ok(is_sound.then_some(file))
        });
        let mut state = self.state();
        match sound {
            Ok(Some(file)) => {
                if let Some(entry) = self.entries(&mut state).get_mut(&segment.sha256) {
                    entry.is_checked = true;
                }
                Some(Held::File(file))
            }
            _ => {
                self.forget(&mut state, &segment.sha256);
                None
            }
        }
    }

    /// Puts a segment into the cache; false where there is no room for it.
    fn keep(&self, name: &str, plain: &[u8]) -> io::Result<bool> {
        let len = plain.len() as u64;
        if len > self.limit || !(self.has_room)(len) {
            return Ok(false);
        }
        self.make_room(len);
        make_folder(&*self.disk, &self.folder)?;
        let unfinished = self.folder.join(format!("{name}{UNFINISHED}"));
        let written = self.disk.create(&unfinished).and_then(|file| {
            file.write_all_at(&mut [IoSlice::new(plain)], 0)?;
            drop(file);
            self.disk.rename(&unfinished, &self.path(name))
        });
        if let Err(error) = written {
            let _ = self.disk.remove_file(&unfinished);
            return Err(error);
        }
        let mut state = self.state();
        state.turn += 1;
        let entry = Entry { len, used: state.turn, is_checked: true };
        if self.entries(&mut state).insert(name.to_owned(), entry).is_none() {
            state.bytes += len;
        }
        Ok(true)
    }

    /// Pushes out what was used longest ago until `len` bytes more are within the limit.
    fn make_room(&self, len: u64) {
        let mut state = self.state();
        let _ = self.entries(&mut state);
        while state.bytes + len > self.limit {
            let kept = state.kept.get_or_insert_default();
            let Some(oldest) = kept.iter().min_by_key(|(_, entry)| entry.used) else { return };
            let oldest = oldest.0.clone();
            self.forget(&mut state, &oldest);
        }
    }

    fn forget(&self, state: &mut State, name: &str) {
        if let Some(entry) = self.entries(state).remove(name) {
            state.bytes -= entry.len;
        }
        // Who has it open reads on.
        let _ = self.disk.remove_file(&self.path(name));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{ENDING}"))
    }

    /// What is in the folder, which is read once.
    fn entries<'s>(&self, state: &'s mut State) -> &'s mut HashMap<String, Entry> {
        if state.kept.is_none() {
            let found = self.left_behind();
            state.bytes = found.values().map(|entry| entry.len).sum();
            state.kept = Some(found);
        }
        state.kept.get_or_insert_default()
    }

    /// What an earlier process has left. What it had not finished goes.
    fn left_behind(&self) -> HashMap<String, Entry> {
        let mut found = HashMap::new();
        for entry in self.disk.list(&self.folder).unwrap_or_default() {
            let Some(name) = entry.name.to_str() else { continue };
            let path = self.folder.join(name);
            if name.ends_with(UNFINISHED) {
                let _ = self.disk.remove_file(&path);
            } else if let Some(hash) = name.strip_suffix(ENDING)
                && let Ok(there) = self.disk.look(&path)
            {
                found.insert(hash.to_owned(), Entry { len: there.len, used: 0, is_checked: false });
            }
        }
        found
    }
}

/// Whether a file has just the plain bytes of a segment.
fn is_whole(file: &dyn ReadFile, segment: &Segment) -> io::Result<bool> {
    if file.size()? != segment.len() {
        return Ok(false);
    }
    let mut plain = vec![0; segment.len() as usize];
    let read = file.read_full_at(&mut plain, 0)?;
    Ok(read == plain.len() && names::sha256(&plain) == segment.sha256)
}
