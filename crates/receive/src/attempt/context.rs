//! What the thread of one source works with.

use binlog::storage::Storage;
use binlog::storage::posix::PosixStorage;
use binlog::writer::published::Published;
use codec::gtid::GtidState;
use config::SourceConfig;
use quorum::Node;
use source::clock::{Clock, SystemClock};
use source::identify::SourceIdentity;
use source::look::Waits;
use source::stop::StopSignal;
use status::{Place, SourceMonitor};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::{Network, Tcp};

/// Everything that the thread of one source works with.
#[derive(Clone)]
pub struct Upstream {
    /// Its part of the configuration.
    pub config: SourceConfig,
    /// Folder that holds all sources.
    pub data_dir: PathBuf,
    /// The disk.
    pub storage: Arc<dyn Storage>,
    /// The way to the source.
    pub network: Arc<dyn Network>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where it publishes what it does.
    pub monitor: Arc<SourceMonitor>,
    /// Where it tells readers how far they may read.
    pub published: Arc<Published>,
    /// This binlogd as a node of the source's quorum; `None` where it has none.
    pub quorum: Option<Arc<Node>>,
    /// Tells it to end.
    pub stop: Arc<StopSignal>,
}

impl Upstream {
    /// Waits for something whose end nobody here can know: no time is too long for it.
    pub(crate) fn at_rest<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.monitor.pulse.beat(Place::Rests);
        let result = wait();
        self.monitor.pulse.beat(Place::Asks);
        result
    }

    /// Whether the server is the source of the quorum's epoch.
    pub(crate) fn is_of_epoch(&self, source: &SourceIdentity) -> bool {
        self.history_of_epoch(source).is_some()
    }

    /// The history of the quorum's epoch, where the server is the source of that.
    pub(crate) fn history_of_epoch(&self, source: &SourceIdentity) -> Option<GtidState> {
        let memory = self.quorum.as_ref()?.memory();
        let accepted = memory.accepted().filter(|accepted| accepted.source == source.uuid)?;
        Some(accepted.history.clone())
    }

    /// What asks other binlogds and servers, and neither writes nor receives.
    pub fn asking(config: SourceConfig, data_dir: &Path) -> Upstream {
        Upstream {
            monitor: Arc::new(SourceMonitor::new(&config.name)),
            config,
            data_dir: data_dir.to_owned(),
            storage: Arc::new(PosixStorage),
            network: Arc::new(Tcp),
            clock: Arc::new(SystemClock),
            quorum: None,
            published: Arc::default(),
            stop: Arc::new(StopSignal::new()),
        }
    }

    /// What waits for the source go by.
    pub(crate) fn waits(&self) -> Waits<'_> {
        Waits { stop: &self.stop, clock: &*self.clock, pulse: Some(&self.monitor.pulse) }
    }
}
