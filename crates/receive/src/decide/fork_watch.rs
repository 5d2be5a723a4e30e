//! The watch over what forks took from the source: what is handed back, what is still lacking, which GTIDs are given twice.
//!
//! Beside the thread that receives: that one only tells when a transaction has arrived whose GTID was lost once, and is told
//! whether its acknowledgements are wanted. To compare is the work of a thread of its own, which lasts as long as the session
//! and is there only when something was lost. Only while acknowledgements are [withheld](config::OnFork::Withhold) the
//! receiving thread compares for itself: a rescue waits for each of its transactions to be acknowledged.

use crate::attempt::context::Upstream;
use binlog::forks::settlement::SETTLEMENTS_FILE;
use binlog::forks::{Fate, Forks, Losses, Lost};
use binlog::storage::Storage;
use binlog::timeline::Timeline;
use codec::gtid::{GtidState, TransactionId};
use config::OnFork;
use source::clock::Clock;
use source::identify::SourceIdentity;
use status::{Place, Regained, SourceMonitor, units};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Pause between two looks at what has arrived and what was decided.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Pause after the copy could not be read.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// So many GTIDs that are given twice are logged one by one.
const LOGGED_MAX: usize = 10;

/// A transaction that has arrived, and whose GTID was lost once.
#[derive(Debug)]
struct Arrival {
    path: Arc<Path>,
    at: u64,
}

/// What the last look has left for the next one.
#[derive(Default)]
struct Progress {
    /// When somebody decided last.
    decided: Option<SystemTime>,
    /// How many GTIDs were told of that are given twice; `None` before the first time.
    told: Option<u64>,
}

/// What the threads share.
struct Shared {
    source_folder: PathBuf,
    monitor: Arc<SourceMonitor>,
    clock: Arc<dyn Clock>,
    /// The receiving thread does not wait for what is read here.
    storage: Arc<dyn Storage>,
    source: SourceIdentity,
    on_fork: OnFork,
    losses: Losses,
    /// In a quorum whose source this is: the history with which it became that.
    history: Option<GtidState>,
    arrivals: Mutex<Vec<Arrival>>,
    /// `None` until the copy was read.
    forks: Mutex<Option<Forks>>,
    progress: Mutex<Progress>,
    /// Something was compared since it was published last.
    is_news: AtomicBool,
    /// The copy was read, and what follows from it is decided.
    has_decided: AtomicBool,
    /// Acknowledgements are not wanted now.
    withholds: AtomicBool,
    /// The session is to end: a GTID was given twice, and the operator wants to decide.
    stops: AtomicBool,
    ended: Mutex<bool>,
    ends: Condvar,
}

/// The watch of one session.
pub struct ForkWatch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for ForkWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForkWatch").field("withholds", &self.withholds()).finish_non_exhaustive()
    }
}

impl ForkWatch {
    /// Begins to watch; `None` where nothing was lost.
    ///
    /// # Errors
    /// When the descriptions of the timelines cannot be read, or there can be no thread.
    pub fn start(
        upstream: &Upstream,
        source_folder: &Path,
        source: &SourceIdentity,
    ) -> io::Result<Option<ForkWatch>> {
        let (monitor, on_fork) = (&upstream.monitor, upstream.config.on_fork);
        let storage = upstream.storage.beside();
        let Some(losses) = Losses::read(&*storage, source_folder)? else {
            monitor.update_facts(|facts| {
                facts.source_lacked = source.has_gtids.then(|| GtidState::empty(source.executed.kind()));
                facts.given_twice = None;
            });
            return Ok(None);
        };
        let shared = Arc::new(Shared {
            source_folder: source_folder.to_owned(),
            monitor: monitor.clone(),
            clock: upstream.clock.clone(),
            storage,
            source: source.clone(),
            on_fork,
            losses,
            history: upstream.history_of_epoch(source),
            arrivals: Mutex::default(),
            forks: Mutex::default(),
            progress: Mutex::default(),
            is_news: AtomicBool::new(true),
            has_decided: AtomicBool::new(false),
            // Until the copy was read nobody knows that nothing is lacking.
            withholds: AtomicBool::new(on_fork == OnFork::Withhold),
            stops: AtomicBool::new(false),
            ended: Mutex::new(false),
            ends: Condvar::new(),
        });
        if !upstream.clock.has_threads() {
            shared.look();
            return Ok(Some(ForkWatch { shared, thread: None }));
        }
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name(format!("{} forks", monitor.name()))
            .spawn(move || for_thread.run())?;
        Ok(Some(ForkWatch { shared, thread: Some(thread) }))
    }

    /// Whether a transaction may be one that was lost once. Quick.
    pub(crate) fn concerns(&self, id: &TransactionId) -> bool {
        self.shared.losses.took(id)
    }

    /// Tells of such a one, which begins at that place of a file of the newest timeline. It may not be written yet.
    pub fn arrived(&self, path: PathBuf, at: u64) {
        lock(&self.shared.arrivals).push(Arrival { path: path.into(), at });
    }

    /// Whether what it finds changes what the session does.
    pub(crate) fn may_decide(&self) -> bool {
        self.shared.on_fork != OnFork::Follow
    }

    /// Whether it knows yet what became of what was lost. Until then acknowledgements are withheld where they may be.
    pub(crate) fn has_decided(&self) -> bool {
        self.look_without_thread();
        self.shared.has_decided.load(Relaxed)
    }

    /// Whether acknowledgements are withheld now.
    pub(crate) fn withholds(&self) -> bool {
        self.shared.withholds.load(Relaxed)
    }

    /// Why the session is to end, if it is.
    pub fn stops(&self) -> Option<String> {
        self.look_without_thread();
        self.shared.stops.load(Relaxed).then(|| self.shared.monitor.facts().lost_in_words())
    }

    fn look_without_thread(&self) {
        if self.thread.is_none() {
            self.shared.look();
        }
    }

    /// Compares what has arrived. What is not written yet stays for the next time.
    pub fn compare(&self) {
        self.shared.compare();
    }

    /// Whether the transaction was handed back; `None` when that is not known yet.
    pub(crate) fn is_handed_back(&self, id: &TransactionId) -> Option<bool> {
        let forks = lock(&self.shared.forks);
        Some(forks.as_ref()?.fate(id) == Some(Fate::HandedBack))
    }
}

impl Drop for ForkWatch {
    fn drop(&mut self) {
        *lock(&self.shared.ended) = true;
        self.shared.ends.notify_all();
        if let Some(thread) = self.thread.take() {
            // It may be reading a file, from a disk that hangs perhaps.
            let pulse = &self.shared.monitor.pulse;
            pulse.beat(Place::Rests);
            let _ = thread.join();
            pulse.beat(Place::Asks);
        }
    }
}

impl Shared {
    fn run(&self) {
        while !self.ended_within(self.look()) {}
    }

    /// One look at the copy, at what has arrived, and at what was decided; how long to wait before the next one.
    fn look(&self) -> Duration {
        let mut progress = lock(&self.progress);
        if lock(&self.forks).is_none() {
            match self.read() {
                Ok(Some(forks)) => {
                    *lock(&self.forks) = Some(forks);
                    progress.decided = self.decided_at();
                }
                // The new timeline has not begun yet; or this is the end.
                Ok(None) => return LOOK_INTERVAL,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return LOOK_INTERVAL,
                Err(error) => {
                    self.cannot("the copy cannot be compared with what the source had lost", &error);
                    return RETRY_INTERVAL;
                }
            }
        }
        self.compare();
        let now = self.decided_at();
        if now != progress.decided {
            let reread = match lock(&self.forks).as_mut() {
                Some(forks) => forks.reread_settlements(&*self.storage),
                None => Ok(()),
            };
            match reread {
                Ok(()) => self.is_news.store(true, Relaxed),
                Err(error) => self.cannot("what was decided cannot be read", &error),
            }
            progress.decided = now;
        }
        if self.is_news.swap(false, Relaxed)
            && let Some(forks) = &*lock(&self.forks)
        {
            progress.told = Some(self.publish(forks, progress.told));
            self.has_decided.store(true, Relaxed);
        }
        LOOK_INTERVAL
    }

    /// Reads what became of everything; `None` while it is not known what exactly was lost.
    fn read(&self) -> io::Result<Option<Forks>> {
        let losses = if self.losses.is_known() {
            Some(self.losses.clone())
        } else {
            self.losses.reread(&*self.storage)?
        };
        let Some(losses) = losses.filter(Losses::is_known) else { return Ok(None) };
        Forks::of(&*self.storage, losses, || !*lock(&self.ended)).map(Some)
    }

    fn ended_within(&self, time: Duration) -> bool {
        let ended = lock(&self.ended);
        let waited = self.ends.wait_timeout_while(ended, time, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn compare(&self) {
        let mut forks = lock(&self.forks);
        let Some(forks) = forks.as_mut() else { return };
        let arrivals = std::mem::take(&mut *lock(&self.arrivals));
        if arrivals.is_empty() {
            return;
        }
        let mut later = Vec::new();
        for arrival in arrivals {
            match forks.arrived(&*self.storage, &arrival.path, arrival.at) {
                Ok(true) => self.is_news.store(true, Relaxed),
                // Not whole in the file yet.
                Ok(false) => later.push(arrival),
                Err(error) => {
                    self.cannot("a transaction cannot be compared with the one that was lost", &error)
                }
            }
        }
        lock(&self.arrivals).append(&mut later);
    }

    /// Publishes what is known, and decides by it. `told`: how many GTIDs were known to be given twice the last time, if there
    /// was one; the value is how many are now.
    fn publish(&self, forks: &Forks, told: Option<u64>) -> u64 {
        let mut lacked = GtidState::empty(self.source.executed.kind());
        let lacking: Vec<_> = forks.open(Fate::Lacking);
        let lost = lacking.iter().filter(|(id, lost)| !self.was_for_nobody(id, lost)).count();
        for (id, _) in lacking {
            // What it has executed and not sent yet is compared when it comes.
            if !self.source.has_gtids || !self.source.has(&id) {
                let _ = lacked.insert(id);
            }
        }
        // No file has these any more; what the source has executed it has from elsewhere.
        let gone = if self.source.has_gtids { self.source.lacks(&forks.gone()) } else { forks.gone() };
        let _ = lacked.union_with(&gone);
        let twice = forks.gtids(Fate::GivenTwice);
        let count = forks.count(Fate::GivenTwice);
        let is_closed = lost == 0 && count == 0 && gone.is_empty();
        let back = forks.gtids(Fate::HandedBack);
        let is_clear = is_closed && !back.is_empty();
        let (mut had_lacked, mut is_new) = (false, false);
        self.monitor.update_facts(|facts| {
            had_lacked = facts.source_lacked.as_ref().is_some_and(|lacked| !lacked.is_empty());
            facts.source_lacked = Some(lacked.clone());
            facts.given_twice = Some((count, twice.clone()));
            is_new = is_clear && facts.regained.is_none();
            if is_new {
                facts.regained = Some(Regained { at: self.clock.wall_time(), gtids: back.to_line() });
            } else if !is_clear {
                facts.regained = None;
            }
        });
        let name = self.monitor.name();
        // The session has told of what it knew when it began.
        if !lacked.is_empty() && told.is_none() && !had_lacked {
            tracing::error!(
                source = name,
                "the source lacks transactions that the copy holds: {}; binlogd rescue hands them over",
                lacked.to_line()
            );
        }
        if !gone.is_empty() && told.is_none() {
            tracing::error!(
                source = name,
                "of what the source lacks, {} stood in files that were purged before the loss was known: only a backup has them;                  binlogd forks --accept-loss records that they are given up",
                gone.to_line()
            );
        }
        if count > told.unwrap_or(0) {
            tracing::error!(
                source = name,
                "the source gave {} twice: the copy holds other transactions under them that it lost: {}; both are \
                 kept, and a person must decide: binlogd forks {} lists them",
                units::counted(count, "GTID"),
                twice.to_line(),
                self.data_dir().display()
            );
            for (id, lost) in forks.open(Fate::GivenTwice).into_iter().take(LOGGED_MAX) {
                let places: Vec<_> = lost
                    .versions
                    .iter()
                    .map(|version| {
                        let place = &version.place;
                        format!(
                            "{}/{} at {} ({})",
                            place.timeline(),
                            place.file(),
                            place.at,
                            version.changes.join(", ")
                        )
                    })
                    .collect();
                tracing::error!(source = name, gtid = %id, "given twice: {}", places.join("; then "));
            }
        }
        if is_new {
            let gtids = back.to_line();
            tracing::info!(source = name, "the source has everything again that it lacked: {gtids}");
        }
        self.withholds.store(self.on_fork == OnFork::Withhold && !is_closed, Relaxed);
        self.stops.store(self.on_fork == OnFork::Stop && (count > 0 || !lacked.is_empty()), Relaxed);
        count
    }

    /// Whether a transaction was acknowledged to nobody: the source of a quorum lacks it, another server wrote it, and what the nodes
    /// agreed on when this one became the source does not hold it. It is shown, and holds nothing up.
    fn was_for_nobody(&self, id: &TransactionId, lost: &Lost) -> bool {
        let Some(history) = &self.history else { return false };
        let is_of_other = |folder: &Path| {
            Timeline::read(&*self.storage, folder)
                .is_ok_and(|timeline| timeline.server_uuid != self.source.uuid)
        };
        let mut folders = lost.versions.iter().filter_map(|version| version.place.path.parent());
        !history.contains(id) && !lost.versions.is_empty() && folders.all(is_of_other)
    }

    /// When somebody decided last. `None` too where that cannot be told; who reads the decisions then says why.
    fn decided_at(&self) -> Option<SystemTime> {
        self.storage.look(&self.source_folder.join(SETTLEMENTS_FILE)).ok()?.modified
    }

    fn data_dir(&self) -> &Path {
        self.source_folder.parent().unwrap_or(Path::new("."))
    }

    fn cannot(&self, what: &str, error: &io::Error) {
        tracing::error!(source = self.monitor.name(), "{what}: {error}");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
