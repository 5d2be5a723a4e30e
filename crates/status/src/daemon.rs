//! The process and its sources.

use super::disk::DiskMonitor;
use super::events::{Events, Level};
use super::lock::lock;
use super::monitor::SourceMonitor;
use super::notify::NotifyMonitor;
use super::serving::{ServeStatus, Serving};
use super::snapshot::{DaemonStatus, SourceStatus};
use crate::figures::history::HistoryStatus;
use crate::judge::verdict::Verdict;
use config::DiskWarn;
use jiff::Timestamp;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The monitors of all sources, and what they share. Readers hold it as `Arc`.
pub struct DaemonMonitor {
    data_dir: PathBuf,
    started: Instant,
    /// The file system of the data folder.
    pub disk: DiskMonitor,
    /// Who is told of changes.
    pub notify: NotifyMonitor,
    sources: Mutex<Vec<Arc<SourceMonitor>>>,
    /// Bytes by which the copies had grown of sources that went away. Changed under the lock of `sources`.
    gone_bytes: AtomicU64,
    /// Who serves readers; `None` when nobody does.
    serving: Mutex<Option<Arc<dyn Serving>>>,
    /// What concerns no single source.
    events: Mutex<Events>,
}

impl DaemonMonitor {
    /// The monitor of a daemon that starts now and stores under `data_dir`. The path is made absolute, so that a
    /// reader in another working folder can tell whose status it sees.
    pub fn new(data_dir: &Path) -> DaemonMonitor {
        DaemonMonitor {
            data_dir: absolute(data_dir),
            started: Instant::now(),
            disk: DiskMonitor::new(DiskWarn::Off),
            notify: NotifyMonitor::default(),
            sources: Mutex::default(),
            gone_bytes: AtomicU64::new(0),
            serving: Mutex::default(),
            events: Mutex::default(),
        }
    }

    /// Adds a source at the end. The daemon adds them in the order of the configuration, before they connect.
    pub fn add(&self, source: Arc<SourceMonitor>) {
        lock(&self.sources).push(source);
    }

    /// Forgets a source that a new configuration no longer names.
    pub fn remove(&self, name: &str) {
        let mut sources = lock(&self.sources);
        let now = Timestamp::now();
        let gone =
            sources.iter().filter(|source| source.name() == name).map(|source| source.bytes_grown(now));
        self.gone_bytes.fetch_add(gone.sum(), Relaxed);
        sources.retain(|source| source.name() != name);
    }

    /// Puts the sources into the order of a new configuration, the names of which these are.
    pub fn arrange(&self, names: &[&str]) {
        let places: HashMap<&str, usize> =
            names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
        lock(&self.sources).sort_by_key(|source| places.get(source.name()).copied().unwrap_or(usize::MAX));
    }

    /// The sources now, in order.
    pub fn sources(&self) -> Vec<Arc<SourceMonitor>> {
        lock(&self.sources).clone()
    }

    /// Time since the daemon started.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whole seconds since the daemon started.
    pub fn uptime_seconds(&self) -> u64 {
        self.uptime().as_secs()
    }

    /// Bytes that the sources, those that went away too, have stored since each of them had caught up for the first time. What a source had before is
    /// fetched once, and says nothing of how long the disk will last.
    pub fn bytes_grown(&self, now: Timestamp) -> u64 {
        let sources = lock(&self.sources);
        self.gone_bytes.load(Relaxed) + sources.iter().map(|source| source.bytes_grown(now)).sum::<u64>()
    }

    /// Readers are served from now on.
    pub fn serves(&self, serving: Arc<dyn Serving>) {
        *lock(&self.serving) = Some(serving);
    }

    /// How the port for readers stands; `None` when nobody is served.
    pub fn serving(&self, now: Timestamp) -> Option<ServeStatus> {
        let serving = lock(&self.serving).clone();
        serving.map(|serving| serving.status(now))
    }

    /// The absolute data folder.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Something happened that concerns no single source.
    pub fn note(&self, level: Level, kind: &str, text: impl Into<String>) {
        lock(&self.events).note(level, kind, text);
    }

    /// Takes a sample of what each source does. For a thread that has time, every [`SAMPLE_INTERVAL`](super::SAMPLE_INTERVAL).
    pub fn take_samples(&self, now: Timestamp) {
        for source in self.sources() {
            source.take_sample(self.uptime(), now);
        }
    }

    /// The last hour of a source; `None` when there is none of that name.
    pub fn history(&self, name: &str, now: Timestamp) -> Option<HistoryStatus> {
        let source = self.sources().into_iter().find(|source| source.name() == name)?;
        Some(source.history(self.uptime(), now))
    }

    /// Everything at one moment.
    pub fn status(&self, now: Timestamp) -> DaemonStatus {
        self.status_of(now, SourceMonitor::status)
    }

    /// As [`status`](Self::status), of the sources what [`SourceMonitor::glance`] shows.
    pub fn glance(&self, now: Timestamp) -> DaemonStatus {
        self.status_of(now, SourceMonitor::glance)
    }

    fn status_of(
        &self,
        now: Timestamp,
        of_source: fn(&SourceMonitor, Timestamp) -> SourceStatus,
    ) -> DaemonStatus {
        let uptime = self.uptime();
        let sources = self
            .sources()
            .into_iter()
            .map(|monitor| SourceStatus { recent: monitor.recent(uptime, now), ..of_source(&monitor, now) });
        let status = DaemonStatus {
            binlogd_version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: Some(std::process::id()),
            uptime_seconds: Some(self.uptime_seconds()),
            data_dir: self.data_dir.display().to_string(),
            disk: self.disk.status(),
            running: true,
            serve: self.serving(now),
            notify: self.notify.status(),
            verdict: Verdict::default(),
            events: lock(&self.events).newest_first(),
            sources: sources.collect(),
        };
        status.judged(now)
    }
}

/// The path with links resolved when it exists, and otherwise at least absolute.
pub fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
