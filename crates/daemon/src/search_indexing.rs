//! Makes the search indexes of sealed files: one thread for all sources, that nobody waits for and that stands back.
//!
//! Once a second it looks whether another file is the live one, which costs the receiving thread nothing. What lacks an index is
//! read slowly, the newest first, and one file of each source in turn. An index is derived: one that cannot be made is no
//! trouble for anybody, and `binlogd find` makes what it lacks.

use super::keeper::{Chore, Keeper};
use binlog::folder::by_number;
use binlog::storage::{ReadAt, ReadFile, Storage};
use binlog::timeline::files::timeline_files;
use binlog::writer::published::Published;
use points::index::Identity;
use points::search::{make_index, open_index};
use points::walk::{Options, Walk};
use source::stop::StopSignal;
use status::SourceMonitor;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two looks at which files are sealed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A file of which no index could be made is tried again after so long.
const RETRY: Duration = Duration::from_secs(600);

/// Most bytes a second that are read.
const READ_BYTES_PER_SECOND: u64 = 64 << 20;

/// A source whose files get indexes.
pub(super) struct Indexed {
    /// The source's folder.
    pub(super) folder: PathBuf,
    pub(super) storage: Arc<dyn Storage>,
    /// The folder is this process's while something is published.
    pub(super) published: Arc<Published>,
    pub(super) monitor: Arc<SourceMonitor>,
}

type Sources = Arc<Mutex<BTreeMap<String, Arc<Indexed>>>>;

/// The thread that makes them. It ends when this is dropped.
pub(super) struct SearchIndexing {
    sources: Sources,
    _keeper: Keeper,
}

impl SearchIndexing {
    /// Begins, without a source.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start() -> io::Result<SearchIndexing> {
        let sources = Sources::default();
        let work = Work { sources: sources.clone(), known: BTreeMap::new() };
        Ok(SearchIndexing { sources, _keeper: Keeper::start("search-index", LOOK_INTERVAL, work)? })
    }

    /// From now on the files of this source get indexes.
    pub(super) fn add(&self, name: &str, source: Indexed) {
        lock(&self.sources).insert(name.to_owned(), Arc::new(source));
    }

    /// The source is received no more.
    pub(super) fn remove(&self, name: &str) {
        lock(&self.sources).remove(name);
    }
}

fn lock(sources: &Sources) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Indexed>>> {
    sources.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of one source's files.
#[derive(Default)]
struct Known {
    /// Timeline and name of the live file when the folders were read.
    as_of: Option<(PathBuf, Arc<str>)>,
    /// Sealed files without an index, the newest last.
    missing: Vec<(PathBuf, String)>,
    /// Files that have one, so that they are not opened again.
    indexed: HashSet<PathBuf>,
    /// Files of which none could be made, and when to try again.
    failed: HashMap<PathBuf, Instant>,
    /// The first file that holds a transaction, and when that was committed, in microseconds since 1970.
    oldest: Option<(PathBuf, u64)>,
}

struct Work {
    sources: Sources,
    known: BTreeMap<String, Known>,
}

impl Chore for Work {
    const NICE: i32 = 19;

    fn round(&mut self, stop: &StopSignal) -> Duration {
        // One file of each source at a time, until none lacks one.
        while self.one_each(stop) && !stop.is_requested() {}
        LOOK_INTERVAL
    }
}

impl Work {
    /// Makes one index a source at most; false when there was nothing to do.
    fn one_each(&mut self, stop: &StopSignal) -> bool {
        let sources: Vec<(String, Arc<Indexed>)> =
            lock(&self.sources).iter().map(|(name, source)| (name.clone(), source.clone())).collect();
        self.known.retain(|name, _| sources.iter().any(|(other, _)| other == name));
        let mut did = false;
        for (name, source) in sources {
            let known = self.known.entry(name.clone()).or_default();
            let Some(live) = source.published.live() else { continue };
            let live = (live.timeline.clone(), live.file.clone());
            if known.as_of.as_ref() != Some(&live) {
                match look(&source, known) {
                    Ok(()) => known.as_of = Some(live),
                    Err(error) => {
                        tracing::debug!(source = name, "search indexes: the folders cannot be read: {error}");
                    }
                }
            }
            did |= self.one(&name, &source, stop);
            if let Some(known) = self.known.get(&name) {
                source.monitor.search_index_missing.set(known.missing.len() as u64);
                source.monitor.search_index_failed.set(known.failed.len() as u64);
                if let Some((_, micros)) = known.oldest {
                    source.monitor.oldest_commit.set(micros);
                }
            }
            if stop.is_requested() {
                return false;
            }
        }
        did
    }

    fn one(&mut self, name: &str, source: &Indexed, stop: &StopSignal) -> bool {
        let Some(known) = self.known.get_mut(name) else { return false };
        let now = Instant::now();
        let is_due = |path: &Path| known.failed.get(path).is_none_or(|again| *again <= now);
        let due = known.missing.iter().rposition(|(folder, file)| is_due(&folder.join(file)));
        let Some(due) = due else { return false };
        let (folder, file) = known.missing[due].clone();
        let path = folder.join(&file);
        match make(&*source.storage, &folder, &file, stop) {
            Ok(()) => {
                known.missing.remove(due);
                known.failed.remove(&path);
                known.indexed.insert(path);
            }
            Err(_) if stop.is_requested() => return false,
            // Purged meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                known.missing.remove(due);
            }
            Err(error) => {
                if known.failed.insert(path.clone(), now + RETRY).is_none() {
                    tracing::warn!(source = name, "no search index of {}: {error}", path.display());
                }
            }
        }
        true
    }
}

/// Which sealed files lack an index.
fn look(source: &Indexed, known: &mut Known) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut there = HashSet::new();
    let mut all = Vec::new();
    for folder in by_number(&*source.storage, &source.folder)? {
        let mut files = timeline_files(&*source.storage, &folder)?;
        all.extend(files.iter().map(|file| folder.join(file)));
        // The last one may be written.
        files.pop();
        for file in files {
            let path = folder.join(&file);
            if known.indexed.contains(&path) || has_index(&*source.storage, &folder, &file) {
                there.insert(path);
            } else {
                missing.push((folder.clone(), file));
            }
        }
    }
    known.failed.retain(|path, _| missing.iter().any(|(folder, file)| folder.join(file) == *path));
    (known.missing, known.indexed) = (missing, there);
    find_oldest(&*source.storage, &all, known);
    Ok(())
}

/// When the first transaction of these files, in their order, was committed. What cannot be read tells nothing.
fn find_oldest(storage: &dyn Storage, files: &[PathBuf], known: &mut Known) {
    for path in files {
        if known.oldest.as_ref().is_some_and(|(of, _)| of == path) {
            return;
        }
        if let Some(micros) = first_commit(storage, path) {
            known.oldest = Some((path.clone(), micros));
            return;
        }
    }
}

fn first_commit(storage: &dyn Storage, path: &Path) -> Option<u64> {
    let file = storage.open_read(path).ok()?;
    let mut walk = Walk::open(&*file, file.size().ok()?, Options::default()).ok()?;
    u64::try_from(walk.next_transaction().ok()??.committed.micros).ok()
}

fn has_index(storage: &dyn Storage, folder: &Path, file: &str) -> bool {
    let identity = || {
        let opened = storage.open_read(&folder.join(file))?;
        Identity::of(&*opened, opened.size()?)
    };
    identity().is_ok_and(|identity| open_index(storage, folder, file, &identity).is_ok())
}

fn make(storage: &dyn Storage, folder: &Path, file: &str, stop: &StopSignal) -> io::Result<()> {
    let opened = storage.open_read(&folder.join(file))?;
    let slow = SlowFile { file: opened, stop, pace: Mutex::new((Instant::now(), 0)) };
    let (_, kept) =
        make_index(storage, folder, file, &slow, &mut |_| Ok(())).map_err(|error| match error {
            points::walk::WalkError::Read(error) => error,
            damaged => io::Error::new(io::ErrorKind::InvalidData, damaged.to_string()),
        })?;
    kept
}

/// A file that is read no faster than [`READ_BYTES_PER_SECOND`], and no more when the thread is asked to end.
#[derive(Debug)]
struct SlowFile<'a> {
    file: Box<dyn ReadFile>,
    stop: &'a StopSignal,
    /// Since when, and how many bytes.
    pace: Mutex<(Instant, u64)>,
}

impl ReadAt for SlowFile<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(buffer, offset)?;
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.1 += read as u64;
        let due = Duration::from_micros(pace.1.saturating_mul(1_000_000) / READ_BYTES_PER_SECOND);
        let ahead = due.saturating_sub(pace.0.elapsed());
        let is_asked = if ahead.is_zero() { self.stop.is_requested() } else { self.stop.wait(ahead) };
        if is_asked { Err(io::Error::other("asked to end")) } else { Ok(read) }
    }
}

impl ReadFile for SlowFile<'_> {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::Position;
    use binlog::search_index;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};

    /// Three files, of which the last is written.
    fn copy(dir: &Path) -> (Indexed, PathBuf) {
        let folder = first_timeline(SERVER_UUID).create(&PosixStorage, dir, 1).unwrap();
        for number in 1..=3 {
            let name = |number: u64| format!("b.00000{number}");
            let file =
                FileBuilder::new().previous_gtids("").transaction(number, 50).rotate(&name(number + 1));
            std::fs::write(folder.join(name(number)), file.finish()).unwrap();
        }
        let published = Arc::new(Published::default());
        published.is_at(&folder, Some(&Position::new("b.000003", 100)));
        let indexed = Indexed {
            folder: dir.to_owned(),
            storage: Arc::new(PosixStorage),
            published,
            monitor: Arc::new(SourceMonitor::new("orders")),
        };
        (indexed, folder)
    }

    fn work(source: Indexed) -> (Work, Arc<SourceMonitor>, Sources) {
        let sources = Sources::default();
        let monitor = source.monitor.clone();
        lock(&sources).insert("orders".to_owned(), Arc::new(source));
        (Work { sources: sources.clone(), known: BTreeMap::new() }, monitor, sources)
    }

    #[test]
    fn sealed_files_get_indexes_the_newest_first_and_the_live_one_none() {
        let dir = tempfile::tempdir().unwrap();
        let (source, folder) = copy(dir.path());
        let (published, has) =
            (source.published.clone(), |name: &str| search_index::path(&folder, name).exists());
        let (mut work, monitor, _) = work(source);
        assert!(work.one_each(&StopSignal::new()));
        assert_eq!(
            (has("b.000001"), has("b.000002"), monitor.search_index_missing.get()),
            (false, true, Some(1))
        );
        assert!(work.one_each(&StopSignal::new()));
        assert!(!work.one_each(&StopSignal::new()), "nothing is left");
        assert_eq!(
            (has("b.000001"), has("b.000003"), monitor.search_index_missing.get()),
            (true, false, Some(0))
        );
        std::fs::write(folder.join("b.000004"), FileBuilder::new().finish()).unwrap();
        published.is_at(&folder, Some(&Position::new("b.000004", 100)));
        assert!(work.one_each(&StopSignal::new()));
        assert!(has("b.000003"));
    }

    #[test]
    fn a_damaged_file_is_told_once_and_holds_up_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (source, folder) = copy(dir.path());
        let path = folder.join("b.000002");
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let (mut work, monitor, _) = work(source);
        assert!(
            work.one_each(&StopSignal::new())
                && work.one_each(&StopSignal::new())
                && !work.one_each(&StopSignal::new())
        );
        assert!(search_index::path(&folder, "b.000001").exists());
        assert_eq!(monitor.search_index_missing.get(), Some(1));
        assert_eq!(monitor.search_index_failed.get(), Some(1));
    }

    #[test]
    fn the_oldest_transaction_is_told_and_again_when_its_file_has_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (source, folder) = copy(dir.path());
        let published = source.published.clone();
        // One that begins the history without a transaction says nothing.
        std::fs::write(folder.join("b.000000"), FileBuilder::new().previous_gtids("").finish()).unwrap();
        let first = first_commit(&PosixStorage, &folder.join("b.000001")).unwrap();
        assert_eq!(first_commit(&PosixStorage, &folder.join("b.000000")), None);
        let (mut work, monitor, _) = work(source);
        work.one_each(&StopSignal::new());
        assert_eq!(monitor.oldest_commit.get(), Some(first));
        std::fs::remove_file(folder.join("b.000000")).unwrap();
        std::fs::remove_file(folder.join("b.000001")).unwrap();
        std::fs::write(folder.join("b.000004"), FileBuilder::new().finish()).unwrap();
        published.is_at(&folder, Some(&Position::new("b.000004", 100)));
        work.one_each(&StopSignal::new());
        assert_eq!(work.known["orders"].oldest.as_ref().unwrap().0, folder.join("b.000002"));
    }

    #[test]
    fn nothing_is_read_before_the_folder_is_ours_nor_when_asked_to_end() {
        let dir = tempfile::tempdir().unwrap();
        let (source, folder) = copy(dir.path());
        source.published.withdraw();
        let published = source.published.clone();
        let (mut work, monitor, sources) = work(source);
        assert!(!work.one_each(&StopSignal::new()) && monitor.search_index_missing.get().is_none());
        published.is_at(&folder, Some(&Position::new("b.000003", 100)));
        let stopped = StopSignal::new();
        stopped.request();
        assert!(!work.one_each(&stopped));
        assert!(!search_index::path(&folder, "b.000002").exists());
        lock(&sources).clear();
        work.one_each(&StopSignal::new());
        assert!(work.known.is_empty());
    }

    #[test]
    fn the_thread_ends_soon() {
        let indexing = SearchIndexing::start().unwrap();
        let asked = Instant::now();
        drop(indexing);
        assert!(asked.elapsed() < Duration::from_secs(1));
    }
}
