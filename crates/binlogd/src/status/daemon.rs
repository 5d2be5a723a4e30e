//! The process and its sources.

use super::disk::DiskMonitor;
use super::lock::lock;
use super::monitor::SourceMonitor;
use super::serving::{ServeStatus, Serving};
use super::snapshot::DaemonStatus;
use crate::config::DiskWarn;
use jiff::Timestamp;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The monitors of all sources, and what they share. Readers hold it as `Arc`.
pub(crate) struct DaemonMonitor {
    data_dir: PathBuf,
    started: Instant,
    /// The file system of the data folder.
    pub disk: DiskMonitor,
    sources: Mutex<Vec<Arc<SourceMonitor>>>,
    /// Who serves readers; `None` when nobody does.
    serving: Mutex<Option<Arc<dyn Serving>>>,
}

impl DaemonMonitor {
    /// The monitor of a daemon that starts now and stores under `data_dir`. The path is made absolute, so that a
    /// reader in another working folder can tell whose status it sees.
    pub(crate) fn new(data_dir: &Path) -> DaemonMonitor {
        DaemonMonitor {
            data_dir: absolute(data_dir),
            started: Instant::now(),
            disk: DiskMonitor::new(DiskWarn::Off),
            sources: Mutex::default(),
            serving: Mutex::default(),
        }
    }

    /// Adds a source at the end. The daemon adds them in the order of the configuration, before they connect.
    pub(crate) fn add(&self, source: Arc<SourceMonitor>) {
        lock(&self.sources).push(source);
    }

    /// Forgets a source that a new configuration no longer names.
    pub(crate) fn remove(&self, name: &str) {
        lock(&self.sources).retain(|source| source.name() != name);
    }

    /// Puts the sources into the order of a new configuration, the names of which these are.
    pub(crate) fn arrange(&self, names: &[&str]) {
        let places: HashMap<&str, usize> =
            names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
        lock(&self.sources).sort_by_key(|source| places.get(source.name()).copied().unwrap_or(usize::MAX));
    }

    /// The sources now, in order.
    pub(crate) fn sources(&self) -> Vec<Arc<SourceMonitor>> {
        lock(&self.sources).clone()
    }

    /// Time since the daemon started.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whole seconds since the daemon started.
    pub(crate) fn uptime_seconds(&self) -> u64 {
        self.uptime().as_secs()
    }

    /// Bytes that the sources of now have stored since each of them had caught up for the first time. What a source had before is
    /// fetched once, and says nothing of how long the disk will last.
    pub(crate) fn bytes_grown(&self, now: Timestamp) -> u64 {
        lock(&self.sources).iter().map(|source| source.bytes_grown(now)).sum()
    }

    /// Readers are served from now on.
    pub(crate) fn serves(&self, serving: Arc<dyn Serving>) {
        *lock(&self.serving) = Some(serving);
    }

    /// How the port for readers stands; `None` when nobody is served.
    pub(crate) fn serving(&self, now: Timestamp) -> Option<ServeStatus> {
        let serving = lock(&self.serving).clone();
        serving.map(|serving| serving.status(now))
    }

    /// The absolute data folder.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Everything at one moment.
    pub(crate) fn status(&self, now: Timestamp) -> DaemonStatus {
        DaemonStatus {
            binlogd_version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: Some(std::process::id()),
            uptime_seconds: Some(self.uptime_seconds()),
            data_dir: self.data_dir.display().to_string(),
            disk: self.disk.status(),
            running: true,
            serve: self.serving(now),
            sources: self.sources().iter().map(|source| source.status(now)).collect(),
        }
    }
}

/// The path with links resolved when it exists, and otherwise at least absolute.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
