//! What the backups in the archive lead to, looked at when the chain has changed; and the rule of `[backup]`, followed by a thread that
//! stands back behind the uploads.

use crate::keeper::{Chore, Keeper, Retry};
use archive::chain::ChainError;
use archive::chain::commit::{Change, Writer};
use archive::chain::history::History;
use archive::keys::signing::SigningKey;
use archive::reader::Reader;
use archive::store::Fault;
use archive::upkeep::catalogue::{End, Listed, Log, ends, list, span};
use archive::upkeep::keep::Keep;
use archive::upkeep::prune::{PruneError, Pruned, Rules, prune};
use jiff::Timestamp;
use source::stop::StopSignal;
use status::{ArchivePrune, ArchiveState, BackupStatus, BackupsStatus, LastError, SourceMonitor};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// So many backups are shown; `binlogd backups` has all.
const SHOWN_MAX: usize = 40;

/// Looking takes at most about this share of the thread's time: one part of work, so many of rest. An archive of years has many files.
const REST: u32 = 20;

/// The rule is followed so long after the start, and then so often, beside each time when it lets a backup go: what it named before
/// is deleted after the grace.
const FIRST: Duration = Duration::from_secs(600);
const EVERY: Duration = Duration::from_secs(86_400);

/// Pause between two looks whether there is something to do.
const PAUSE: Duration = Duration::from_secs(1);

const RETRY_MIN: Duration = Duration::from_secs(30);
const RETRY_MAX: Duration = Duration::from_secs(3600);

/// So often others may commit in between before it is given up until the next time.
const TRIES_MAX: u32 = 20;

/// What both threads tell each other.
#[derive(Debug, Default)]
pub(super) struct Between {
    /// The rule lets a backup go.
    is_wanted: AtomicBool,
    /// The archive has changed, by who prunes.
    is_news: AtomicBool,
}

impl Between {
    /// Whether the archive is to be asked for what who prunes has changed.
    pub(super) fn takes_news(&self) -> bool {
        self.is_news.swap(false, Ordering::Relaxed)
    }
}

/// The backups as the archiving thread sees them.
pub(super) struct Backups {
    keep: Option<Keep>,
    between: Arc<Between>,
    /// The commit, and how many timelines there were.
    as_of: Option<(u64, usize)>,
    from: Instant,
}

impl Backups {
    /// Nothing was looked at yet.
    pub(super) fn new(keep: Option<Keep>, between: Arc<Between>) -> Backups {
        Backups { keep, between, as_of: None, from: Instant::now() }
    }

    /// Publishes what a history has, unless that stands already.
    pub(super) fn keep_up(&mut self, history: &History, monitor: &SourceMonitor) {
        let began = Instant::now();
        let timelines = history.timelines.len();
        // A new timeline may not go on with the one before: what leads to its end is looked at before that is called safe.
        if self.as_of == Some((history.seq, timelines))
            || began < self.from && self.as_of.is_some_and(|(_, known)| known == timelines)
        {
            return;
        }
        let listed = list(history);
        if self.keep.as_ref().is_some_and(|keep| !keep.lets_go(&listed).is_empty()) {
            self.between.is_wanted.store(true, Ordering::Relaxed);
        }
        let status = shown(history, &listed);
        monitor.archive.update(|archive| archive.backups = Some(status));
        self.as_of = Some((history.seq, timelines));
        self.from = Instant::now() + began.elapsed() * REST;
    }

    /// Nobody knows what is there.
    pub(super) fn forget(&mut self, monitor: &SourceMonitor) {
        self.as_of = None;
        monitor.archive.update(|archive| archive.backups = None);
    }
}

fn shown(history: &History, listed: &[Listed]) -> BackupsStatus {
    let whole = || listed.iter().filter(|one| one.until().is_some());
    let span = span(listed);
    BackupsStatus {
        count: listed.len() as u64,
        with_log: whole().count() as u64,
        newest: whole().map(|one| one.backup.record.finished).max(),
        recoverable_from: span.map(|span| span.from.backup.record.finished),
        recoverable_to: span.and_then(|span| ends(listed, span)),
        reaches_end: span.is_some_and(|span| is_end(history, span.until)),
        list: listed.iter().rev().take(SHOWN_MAX).map(one).collect(),
    }
}

/// Whether nothing is archived behind it.
fn is_end(history: &History, until: &End) -> bool {
    let has_files =
        history.timelines.iter().rev().find_map(|(name, archived)| Some((name, archived.files.last()?)));
    has_files.is_some_and(|(name, last)| {
        *name == until.timeline && last.name == until.file && last.end() == until.position
    })
}

fn one(listed: &Listed) -> BackupStatus {
    let (record, file) = (&listed.backup.record, &listed.backup.file);
    BackupStatus {
        id: record.id.clone(),
        tool: record.tool.to_string(),
        server_version: format!("{} {}", record.server_kind, record.server_version),
        finished: record.finished,
        bytes: file.end(),
        stored_bytes: file.stored(),
        point: record.point.to_string(),
        log_until: listed.until().map(|until| format!("{}:{}", until.file, until.position)),
        log_until_time: listed.until().and_then(End::at),
        log_lacking: match &listed.log {
            Log::Whole { .. } => None,
            Log::Lacking(why) => Some(why.clone()),
        },
    }
}

/// Follows the rule.
pub(super) struct Pruner {
    /// The source.
    pub(super) source: String,
    /// What reads and deletes; it ends when it is asked to.
    pub(super) reader: Reader,
    /// Signs what is committed, where commits are.
    pub(super) key: Option<Arc<SigningKey>>,
    pub(super) writer: Writer,
    pub(super) keep: Keep,
    pub(super) monitor: Arc<SourceMonitor>,
    pub(super) between: Arc<Between>,
}

struct Prunes {
    pruner: Pruner,
    due: Instant,
    retry: Retry,
    told: Option<String>,
}

impl Pruner {
    /// Prunes on a thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start(self) -> io::Result<Keeper> {
        let prune = ArchivePrune { keep: self.keep.to_string(), ..ArchivePrune::default() };
        self.monitor.archive.update(|archive| archive.prune = Some(prune));
        let name = format!("prune-{}", self.source);
        let retry = Retry::new(RETRY_MIN, RETRY_MAX);
        Keeper::start(name, PAUSE, Prunes { pruner: self, due: Instant::now() + FIRST, retry, told: None })
    }

    /// While the archive is damaged, put back or not kept up, nothing of it is deleted.
    fn may(&self) -> bool {
        let archive = self.monitor.archive.status(Timestamp::now());
        archive.is_some_and(|archive| archive.state == ArchiveState::Current && archive.findings() == 0)
    }

    /// `None` when others have committed all the time.
    fn prune(&self, stop: &StopSignal) -> Result<Option<Pruned>, PruneError> {
        let store = &*self.reader.store;
        let mut chain = self.reader.chain(&self.source)?.signing(self.key.clone());
        let rules = Rules { keep: Some(self.keep.clone()), ..Rules::default() };
        for _ in 0..TRIES_MAX {
            let pruned = prune(store, &mut chain, &self.writer, &rules, Timestamp::now())?;
            if !pruned.is_behind {
                return Ok(Some(pruned));
            }
            if stop.is_requested() {
                break;
            }
        }
        Ok(None)
    }

    fn tell(&self, pruned: &Pruned) {
        let source = self.source.as_str();
        for change in &pruned.expired {
            match change {
                Change::BackupsExpired { backups, why } => {
                    tracing::info!(source, "backups go from the archive: {}: {why}", backups.join(", "));
                }
                Change::Expired { timeline, files, why } => {
                    let (first, last) = (files.first().map_or("", |f| f), files.last().map_or("", |f| f));
                    tracing::info!(source, "{timeline}: {first} to {last} go from the archive: {why}");
                }
                _ => {}
            }
        }
        if pruned.objects > 0 {
            tracing::info!(source, objects = pruned.objects, "deleted from the archive what nothing names");
        }
        self.monitor.archive.update(|archive| {
            let prune = archive.prune.get_or_insert_default();
            (prune.at, prune.error) = (Some(Timestamp::now()), None);
        });
    }
}

impl Chore for Prunes {
    const NICE: i32 = 19;

    fn round(&mut self, stop: &StopSignal) -> Duration {
        let pruner = &self.pruner;
        let is_due = Instant::now() >= self.due || pruner.between.is_wanted.load(Ordering::Relaxed);
        if !is_due || !pruner.may() {
            return PAUSE;
        }
        pruner.between.is_wanted.store(false, Ordering::Relaxed);
        match pruner.prune(stop) {
            Ok(Some(pruned)) => {
                pruner.tell(&pruned);
                (self.due, self.told) = (Instant::now() + EVERY, None);
                self.retry.went_well();
                pruner.between.is_news.store(true, Ordering::Relaxed);
                PAUSE
            }
            Ok(None) | Err(_) if stop.is_requested() => PAUSE,
            Ok(None) => {
                self.due = Instant::now();
                self.retry.failed()
            }
            Err(error) => {
                self.due = Instant::now();
                self.failed(&error);
                self.retry.failed()
            }
        }
    }

    fn has_failed(&mut self) {
        self.failed(&PruneError::Lacks("an internal error of binlogd ended the thread".to_owned()));
    }
}

impl Prunes {
    fn failed(&mut self, error: &PruneError) {
        let mut message = error.to_string();
        if matches!(error, PruneError::Chain(ChainError::Store(error)) if error.fault == Fault::Denied) {
            message += ": keep in [backup] needs the right to delete in the archive";
        }
        if self.told.as_ref() != Some(&message) {
            let source = self.pruner.source.as_str();
            tracing::warn!(source, "old backups stay in the archive: {message}");
            self.told = Some(message.clone());
        }
        self.pruner.monitor.archive.update(|archive| {
            let prune = archive.prune.get_or_insert_default();
            let at = prune.error.as_ref().map_or_else(Timestamp::now, |error| error.at);
            prune.error = Some(LastError { at, message });
        });
    }
}
