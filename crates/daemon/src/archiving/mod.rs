//! Keeps the archive up: one thread a source, that nobody waits for.
//!
//! The thread looks once a second how far the copy is, which costs the receiving thread nothing. What it reads it reads as any
//! reader does, and a store that hangs, refuses or is gone holds only this thread.

mod backups;
pub(crate) mod beginning;
pub(crate) mod kept;
pub(crate) mod look;
pub(crate) mod past;
pub(crate) mod search;
pub(crate) mod verify;

use super::keeper::{Chore, Keeper, Retry};
use crate::archiving::backups::{Backups, Between, Pruner};
use crate::archiving::beginning::Beginning;
use crate::archiving::kept::Kept;
use crate::archiving::look::Looker;
use crate::archiving::past::{Readable, Reading};
use crate::archiving::search::{IndexKeeper, WholeFiles};
use crate::archiving::verify::{Schedule, Verifier};
use anyhow::Context as _;
use archive::chain::ChainError;
use archive::chain::commit::Writer;
use archive::chain::trust::Signing;
use archive::past::Past;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::Store;
use archive::store::gentle::Gentle;
use archive::store::lazy::Lazy;
use archive::store::probe::refuses_to_overwrite;
use archive::upkeep::keep::Keep;
use archive::writer::upload::{Permits, Uploader};
use archive::writer::{ArchiveError, Archiver, DurableEnd, Step};
use binlog::storage::Storage;
use binlog::writer::published::Published;
use config::{ArchiveConfig, FsyncMode};
use jiff::Timestamp;
use source::stop::StopSignal;
use status::{ArchiveState, ArchiveStatus, DaemonMonitor, LastError, Level, SourceMonitor};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Pause between two looks at how far the copy is.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// First pause after a failure; each further one doubles it.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// The longest pause between two tries.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Looks past what others have committed come at least this often where nothing is to be done.
const REFRESH_INTERVAL: Duration = Duration::from_secs(600);

/// While something is wanted gone here, the archive's last commit is looked for in the store so often.
const ASK_INTERVAL: Duration = Duration::from_secs(20);

/// What is known of the archive is put on this disk so often, for the next start; and always before something is purged.
const REMEMBER_INTERVAL: Duration = Duration::from_secs(10);

/// What all sources share: the store, and how much may be under way.
#[derive(Clone)]
pub(super) struct Archive {
    interval: Duration,
    single_writer: bool,
    uploader: Uploader,
    signing: Signing,
    reading: Reading,
    /// The archive's place in words, without secrets.
    place: String,
    /// What opens what is read back here, and whether there is a key.
    opener: Arc<Opener>,
    has_identity: bool,
    /// Requests that are made side by side.
    at_once: usize,
    /// See [`Beginning::turn`].
    begins: Arc<Mutex<()>>,
    /// When it is verified; `None` for never.
    schedule: Option<Schedule>,
    /// Most bytes a second that are read by who verifies.
    bandwidth: Option<u64>,
    /// Held by the source that is verified.
    turn: Arc<Mutex<()>>,
    /// Which backups stay; `None` for all.
    keep: Option<Keep>,
}

/// The threads of one source. They are asked to end when this is dropped.
pub(super) struct Archiving {
    uploads_end: Arc<AtomicBool>,
    threads: Vec<Keeper>,
    kept: Arc<Kept>,
    past: Arc<Past>,
}

/// Nothing is archived any more: "archived" must not stay.
fn ends(monitor: &SourceMonitor, message: &str) {
    monitor.archive.update(|status| {
        status.state = ArchiveState::Failing;
        status.error = Some(LastError { at: Timestamp::now(), message: message.to_owned() });
    });
}

/// What the thread works on.
pub(super) struct Copy {
    pub(super) name: String,
    /// The source's folder.
    pub(super) folder: PathBuf,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) published: Arc<Published>,
    pub(super) monitor: Arc<SourceMonitor>,
    pub(super) fsync_mode: FsyncMode,
}

impl Archive {
    /// For the store of the configuration; nothing is asked of it yet.
    ///
    /// # Errors
    /// When a public key is none, or a private one cannot be read, or cannot sign.
    pub(super) fn new(
        config: &ArchiveConfig,
        keep: Option<Keep>,
        monitor: Arc<DaemonMonitor>,
    ) -> anyhow::Result<Archive> {
        let store = Arc::new(Lazy::new(config.location.clone(), config.options.clone(), config.bandwidth));
        let uploader = Uploader {
            store,
            permits: Arc::new(Permits::new(config.concurrency as usize)),
            level: i32::try_from(config.level).unwrap_or(i32::MAX),
            recipients: config.readers()?,
            stop: Arc::default(),
        };
        let identities = config.identities().context("identity in [archive]")?;
        for remark in identities.remarks() {
            tracing::warn!("{remark}");
        }
        let has_identity = !identities.is_empty();
        let signing = config.signing().context("sign_key in [archive]")?;
        if let Some(key) = &signing.key {
            tracing::info!("commits of the archive are signed; the public key is {}", key.public());
        }
        let opener = Arc::new(Opener::new(identities).trusting(signing.trust.clone()));
        let schedule = Schedule { interval: config.verify_interval, every: config.verify_sample };
        Ok(Archive {
            interval: config.interval,
            single_writer: config.single_writer,
            uploader,
            signing,
            reading: Reading::new(config, opener.clone(), monitor),
            place: config.location.to_string(),
            opener,
            has_identity,
            at_once: config.concurrency as usize,
            begins: Arc::default(),
            schedule: Some(schedule).filter(|schedule| !schedule.interval.is_zero()),
            bandwidth: config.bandwidth,
            turn: Arc::default(),
            keep,
        })
    }

    /// What a copy begins from on an empty disk.
    pub(super) fn beginning(&self) -> Beginning {
        Beginning {
            store: self.uploader.store.clone(),
            opener: self.opener.clone(),
            place: self.place.clone(),
            at_once: self.at_once,
            turn: self.begins.clone(),
        }
    }

    /// Starts the threads of a source. Where the system has none left, that is an error in the status, and nothing may be purged.
    pub(super) fn start(&self, copy: Copy) -> Archiving {
        let uploads_end = Arc::new(AtomicBool::new(false));
        let kept = Arc::new(Kept::new(copy.folder.clone(), copy.storage.clone()));
        let snapshots_wanted = Arc::new(AtomicUsize::new(0));
        let mut threads = self.beside(&copy, &kept, &snapshots_wanted, &uploads_end);
        let uploader = Uploader { stop: uploads_end.clone(), ..self.uploader.clone() };
        let whole = Arc::new(WholeFiles::default());
        let keeper =
            IndexKeeper::new(copy.name.clone(), copy.storage.clone(), uploader.clone(), whole.clone());
        threads.extend(started(Keeper::start(format!("search-{}", copy.name), LOOK_INTERVAL, keeper)));
        let between = Arc::new(Between::default());
        threads.extend(self.pruner(&copy, &between, &uploads_end));
        let sync_first = copy.fsync_mode == FsyncMode::WriteThenAcknowledge;
        let archiver = Archiver::new(
            copy.name.clone(),
            copy.folder.clone(),
            copy.storage.clone(),
            uploader,
            writer(),
            sync_first,
        )
        .with_place(self.place.clone())
        .with_signing(self.signing.clone());
        copy.monitor.archive.update(|status| {
            self.place.clone_into(&mut status.url);
            status.encrypted = self.uploader.recipients.is_some();
        });
        let readable =
            self.reading.of(copy.folder.clone(), copy.storage.beside(), self.uploader.store.clone());
        let past = readable.past().clone();
        let monitor = copy.monitor.clone();
        let work = Work {
            interval: self.interval,
            copy,
            place: self.place.clone(),
            store: self.uploader.store.clone(),
            is_refused_to_overwrite: self.single_writer,
            archiver,
            kept: kept.clone(),
            whole,
            readable,
            backups: Backups::new(self.keep.clone(), between.clone()),
            between,
            told: None,
            tails_from: None,
            goal: None,
            asked: None,
            snapshots_wanted,
            remember_from: Instant::now(),
            disk_told: None,
            retry: Retry::new(RETRY_MIN, RETRY_MAX),
        };
        match started(Keeper::start(format!("archive-{}", work.copy.name), Duration::ZERO, work)) {
            Some(thread) => threads.push(thread),
            None => ends(&monitor, "nothing is archived: the thread could not be started"),
        }
        Archiving { uploads_end, threads, kept, past }
    }

    /// Deletes what the rule of `[backup]` lets go, where there is one.
    fn pruner(&self, copy: &Copy, between: &Arc<Between>, ends: &Arc<AtomicBool>) -> Option<Keeper> {
        let store = Arc::new(Gentle::writing(self.uploader.store.clone(), ends.clone()));
        let pruner = Pruner {
            source: copy.name.clone(),
            reader: Reader { store, opener: self.opener.clone() },
            key: self.signing.key.clone(),
            writer: writer(),
            keep: self.keep.clone()?,
            monitor: copy.monitor.clone(),
            between: between.clone(),
        };
        started(pruner.start())
    }

    /// The threads beside the one that uploads: they only read the store, and stand back.
    fn beside(
        &self,
        copy: &Copy,
        kept: &Arc<Kept>,
        snapshots_wanted: &Arc<AtomicUsize>,
        ends: &Arc<AtomicBool>,
    ) -> Vec<Keeper> {
        let reader = |bandwidth| {
            let store = Gentle::new(self.uploader.store.clone(), bandwidth, ends.clone());
            Reader { store: Arc::new(store), opener: self.opener.clone() }
        };
        let looker = Looker {
            source: copy.name.clone(),
            reader: reader(None),
            kept: kept.clone(),
            monitor: copy.monitor.clone(),
            told: None,
        };
        let mut threads = vec![started(Keeper::start(format!("look-{}", copy.name), LOOK_INTERVAL, looker))];
        if let Some(schedule) = self.schedule {
            let verifier = Verifier {
                source: copy.name.clone(),
                folder: copy.folder.clone(),
                storage: copy.storage.clone(),
                published: copy.published.clone(),
                monitor: copy.monitor.clone(),
                reader: reader(self.bandwidth),
                opens: self.has_identity,
                place: self.place.clone(),
                schedule,
                snapshots_wanted: snapshots_wanted.clone(),
                turn: self.turn.clone(),
            };
            threads.push(started(verifier.start()));
        }
        threads.into_iter().flatten().collect()
    }
}

/// Who commits.
fn writer() -> Writer {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Writer::of_this_run(host, env!("CARGO_PKG_VERSION").to_owned())
}

/// `None` when the system has no thread left: nothing that was not looked at goes, what is not verified is overdue, and searches
/// walk files.
fn started(thread: io::Result<Keeper>) -> Option<Keeper> {
    thread.inspect_err(|error| tracing::error!("cannot start a thread of the archive: {error}")).ok()
}

impl Archiving {
    /// Asks the threads to end; nobody waits for them yet.
    pub(super) fn request_end(&self) {
        self.uploads_end.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(Keeper::request_end);
    }

    /// What the archive has, for readers.
    pub(super) fn past(&self) -> &Arc<Past> {
        &self.past
    }

    /// Who keeps what is not archived yet from a purge.
    pub(super) fn needs(&self) -> Arc<Kept> {
        self.kept.clone()
    }
}

impl Drop for Archiving {
    fn drop(&mut self) {
        self.request_end();
    }
}

/// Everything that was durable at a moment, up to there, is in the archive.
fn is_complete(status: &mut ArchiveStatus, at: Timestamp, durable: &DurableEnd) {
    let timeline = durable.timeline.file_name().map(|name| name.to_string_lossy().into_owned());
    status.complete_until = Some(at);
    status.complete_timeline = timeline;
    status.complete_position = Some(codec::Position::new(durable.file.as_str(), durable.offset));
}

struct Work {
    interval: Duration,
    copy: Copy,
    place: String,
    store: Arc<dyn Store>,
    /// Known once, or vouched for by the operator.
    is_refused_to_overwrite: bool,
    archiver: Archiver,
    kept: Arc<Kept>,
    /// Of which files the search indexes may be archived.
    whole: Arc<WholeFiles>,
    readable: Readable,
    backups: Backups,
    between: Arc<Between>,
    /// What failed last, so that nothing is said twice.
    told: Option<String>,
    /// When the newest bytes are to be archived, however few; `None`: now.
    tails_from: Option<Instant>,
    /// A moment, and what was durable then; the archive does not have all of that yet.
    goal: Option<(Timestamp, DurableEnd)>,
    /// When the store was asked for what others have committed, and for the last commit; `None` before that.
    asked: Option<Instant>,
    /// So many new snapshots are to take the place of damaged ones.
    snapshots_wanted: Arc<AtomicUsize>,
    remember_from: Instant,
    /// Why what is known of the archive was not put on this disk, as it was said last.
    disk_told: Option<String>,
    retry: Retry,
}

impl Chore for Work {
    /// Compressing takes a processor for a while.
    const NICE: i32 = 10;

    fn round(&mut self, _stop: &StopSignal) -> Duration {
        match self.look() {
            Ok(()) => {
                self.retry.went_well();
                LOOK_INTERVAL
            }
            // The end was asked for.
            Err(ArchiveError::Stopped) => LOOK_INTERVAL,
            Err(error) => {
                let pause = self.retry.failed();
                self.failed(&error, pause);
                pause
            }
        }
    }

    fn end(&mut self) {
        self.remember(true);
    }

    fn has_failed(&mut self) {
        ends(
            &self.copy.monitor,
            "an internal error of binlogd ended the archiving; see its log, restart it, and please report it",
        );
    }
}

impl Work {
    /// Puts what is known of the archive on this disk. Where the disk does not take it, the next start knows an older commit: that is
    /// no reason to archive nothing, nor to purge nothing while the disk is full.
    fn remember(&mut self, at_once: bool) {
        let now = Instant::now();
        // Before that the folder may be another process's.
        if self.copy.published.live().is_none() || !(at_once || now >= self.remember_from) {
            return;
        }
        self.remember_from = now + REMEMBER_INTERVAL;
        let failed = self.archiver.remember().err().map(|error| error.to_string());
        if failed.is_some() && failed != self.disk_told {
            let (source, error) = (self.copy.name.as_str(), failed.as_deref().unwrap_or_default());
            tracing::warn!(source, "the last commit of the archive cannot be put on this disk: {error}");
        }
        self.disk_told = failed;
    }

    /// Takes notice of what others have committed, and looks for the last commit that was seen.
    fn ask(&mut self) -> Result<(), ArchiveError> {
        let now = Instant::now();
        self.archiver.refresh()?;
        self.asked = Some(now);
        Ok(())
    }

    /// Brings the archive to where the copy is.
    fn look(&mut self) -> Result<(), ArchiveError> {
        if self.archiver.chain().is_none() {
            // Whatever is wrong with writing, what is there can be read.
            self.ask()?;
        }
        self.show_readers();
        if !self.is_refused_to_overwrite {
            if !refuses_to_overwrite(&*self.store)? {
                return Err(ArchiveError::Overwrites);
            }
            self.is_refused_to_overwrite = true;
            tracing::info!(source = self.copy.name, "the history is archived in {}", self.place);
        }
        let pause = if self.kept.asks() { ASK_INTERVAL } else { REFRESH_INTERVAL };
        if self.between.takes_news() || self.asked.is_none_or(|asked| asked.elapsed() >= pause) {
            self.ask()?;
        }
        self.archiver.make_snapshots(self.snapshots_wanted.swap(0, Ordering::Relaxed));
        loop {
            let began = Timestamp::now();
            let at = Instant::now();
            let tails = self.tails_from.is_none_or(|from| at >= from);
            let durable = self.durable();
            if self.goal.is_none() {
                self.goal = durable.clone().map(|durable| (began, durable));
            }
            match self.archiver.step(durable.as_ref(), tails, began)? {
                Step::Idle => {
                    self.is_idle(durable.as_ref(), tails.then_some(began));
                    return Ok(());
                }
                Step::Behind => {}
                Step::Committed { new, again, stored } => {
                    // The commit before it was looked for.
                    self.asked = Some(at);
                    self.copy.monitor.archive.update(|status| {
                        status.commits += 1;
                        status.plain_bytes += new;
                        status.again_bytes += again;
                        status.stored_bytes += stored;
                        status.committed_at = Some(Timestamp::now());
                    });
                    self.publish(durable.as_ref());
                    self.works();
                }
            }
        }
    }

    fn show_readers(&mut self) {
        self.readable.keep_up(&self.archiver, &self.copy.name);
        if let Some(chain) = self.archiver.chain() {
            self.backups.keep_up(chain.history(), &self.copy.monitor);
        }
        let read = self.readable.past().counters();
        self.copy.monitor.archive.update(|status| {
            status.read_objects = read.objects;
            status.read_bytes = read.bytes;
            status.cached_bytes = read.cached_bytes;
        });
    }

    /// How far the copy may be archived.
    fn durable(&self) -> Option<DurableEnd> {
        let live = self.copy.published.live()?;
        Some(DurableEnd { timeline: live.timeline.clone(), file: live.file.to_string(), offset: live.end() })
    }

    /// The archive has everything that is to be there; with `complete`, everything that was durable at that moment.
    fn is_idle(&mut self, durable: Option<&DurableEnd>, complete: Option<Timestamp>) {
        if complete.is_some() {
            self.tails_from = Some(Instant::now() + self.interval);
        }
        self.publish(durable);
        let end = durable.and_then(|durable| self.archiver.end_of(&durable.timeline));
        let has_all = durable
            .zip(end)
            .is_some_and(|(durable, end)| end.file == durable.file && end.offset >= durable.offset);
        if let Some((at, durable)) = complete.filter(|_| has_all).zip(durable) {
            self.copy.monitor.archive.update(|status| is_complete(status, at, durable));
            self.goal = None;
        }
        self.works();
    }

    /// A source that writes all the while never lets the archive have everything of one moment at that moment; but soon after.
    fn reaches_goal(&mut self) {
        let Some((at, goal)) = &self.goal else { return };
        // A number with more digits is a later one.
        let order = |file: &str| (file.len(), file.to_owned());
        let is_whole_before = match self.archiver.first_lacking() {
            // Not known.
            None => return,
            Some((folder, file)) if *folder == *goal.timeline => order(file) >= order(&goal.file),
            // Another timeline is written by now: the next goal is there.
            Some(_) => return self.goal = None,
        };
        let end = self.archiver.end_of(&goal.timeline);
        let is_there =
            end.is_some_and(|end| (order(&end.file), end.offset) >= (order(&goal.file), goal.offset));
        if is_whole_before && is_there {
            let (at, goal) = (*at, goal.clone());
            self.goal = None;
            self.copy.monitor.archive.update(|status| {
                if status.complete_until < Some(at) {
                    is_complete(status, at, &goal);
                }
            });
        }
    }

    fn publish(&mut self, durable: Option<&DurableEnd>) {
        self.show_readers();
        let first = self.archiver.first_lacking().map(|(folder, file)| {
            (folder.file_name().unwrap_or_default().to_string_lossy().into_owned(), file.to_owned())
        });
        self.remember(self.kept.asks());
        if let Some(asked) = self.asked {
            self.kept.knows(first, asked, |(timeline, file)| {
                self.archiver.finished_file(&self.copy.folder.join(timeline), file)
            });
        }
        let archiver = &self.archiver;
        self.whole.are(archiver.whole_files_known(), archiver.names(), || archiver.whole_files());
        self.reaches_goal();
        let Some(durable) = durable else { return };
        let Some(end) = self.archiver.end_of(&durable.timeline) else { return };
        self.copy.monitor.archive.update(|status| {
            status.timeline = Some(end.timeline);
            status.archived = Some(codec::Position::new(end.file.as_str(), end.offset));
            status.gtid = end.gtids;
        });
    }

    fn works(&mut self) {
        if self.told.take().is_some() {
            let source = self.copy.name.as_str();
            tracing::info!(source, "the archive is kept up again");
            self.copy.monitor.note(Level::Ok, "archive", "the archive is kept up again");
        }
        self.copy.monitor.archive.update(|status| {
            status.state = ArchiveState::Current;
            status.error = None;
        });
    }

    fn failed(&mut self, error: &ArchiveError, retry: Duration) {
        // Until the next look that succeeds nobody knows what the archive lacks: timelines may come and go meanwhile.
        self.kept.knows_nothing();
        let text = error.to_string();
        let is_put_back = matches!(error, ArchiveError::Chain(ChainError::Older(_)));
        let source = self.copy.name.as_str();
        if self.told.as_ref() != Some(&text) {
            tracing::error!(
                source,
                "the archive is not kept up, the next try is in {} s: {text}",
                retry.as_secs()
            );
            if self.told.is_none() || is_put_back {
                let level = if is_put_back { Level::Critical } else { Level::Warning };
                self.copy.monitor.note(level, "archive", format!("the archive is not kept up: {text}"));
            }
            self.told = Some(text.clone());
        }
        self.copy.monitor.archive.update(|status| {
            let at = status.error.as_ref().map_or_else(Timestamp::now, |error| error.at);
            status.error = Some(LastError { at, message: text });
            status.state = ArchiveState::Failing;
            if is_put_back {
                status.state = ArchiveState::Older;
                // It had all that, and has not.
                (status.complete_until, status.archived) = (None, None);
                (status.complete_timeline, status.complete_position) = (None, None);
            }
        });
        if is_put_back {
            self.goal = None;
            self.backups.forget(&self.copy.monitor);
        }
    }
}
