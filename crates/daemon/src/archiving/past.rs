//! What readers get from the archive: files that were purged here, as far as a private key opens them.

use archive::past::{HasRoom, Past, WithPast};
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::Store;
use archive::writer::Archiver;
use binlog::storage::Storage;
use config::ArchiveConfig;
use status::DaemonMonitor;
use std::path::PathBuf;
use std::sync::Arc;

/// The cache leaves this share of the disk free at least, whatever `disk_warn` says: the copy comes first.
const FREE_DIVISOR: u64 = 20;

/// What all sources have in common.
#[derive(Clone)]
pub(crate) struct Reading {
    opener: Arc<Opener>,
    cache_bytes: u64,
    at_once: usize,
    has_room: HasRoom,
}

impl Reading {
    /// As the configuration has it.
    pub(crate) fn new(config: &ArchiveConfig, opener: Arc<Opener>, monitor: Arc<DaemonMonitor>) -> Reading {
        Reading {
            opener,
            cache_bytes: config.cache_size,
            at_once: config.concurrency as usize,
            has_room: Arc::new(move |bytes| has_room(&monitor, bytes)),
        }
    }

    /// What the archive has of the source in `folder`; nothing yet.
    pub(crate) fn of(&self, folder: PathBuf, disk: Arc<dyn Storage>, store: Arc<dyn Store>) -> Readable {
        let reader = Reader { store, opener: self.opener.clone() };
        let (cache_bytes, has_room) = (self.cache_bytes, self.has_room.clone());
        Readable {
            past: Arc::new(Past::new(folder, disk, reader, cache_bytes, has_room, self.at_once)),
            as_of: None,
        }
    }
}

/// Whether the disk has so much to spare. Where nobody knows what is free, it has not.
fn has_room(monitor: &DaemonMonitor, bytes: u64) -> bool {
    monitor.disk.status().is_some_and(|disk| {
        let kept = (disk.size_bytes / FREE_DIVISOR).max(disk.warn_below_bytes.unwrap_or(0));
        disk.free_bytes > kept.saturating_add(bytes)
    })
}

/// What one source's readers find, kept up with what is archived.
pub(crate) struct Readable {
    past: Arc<Past>,
    /// The commit, and the names of timelines, that readers find.
    as_of: Option<(u64, Vec<(PathBuf, String)>)>,
}

impl Readable {
    /// What readers read.
    pub(crate) fn past(&self) -> &Arc<Past> {
        &self.past
    }

    /// Shows readers what the archive has by now.
    pub(crate) fn keep_up(&mut self, archiver: &Archiver, source: &str) {
        self.past.tend();
        let Some(chain) = archiver.chain() else { return };
        let (history, names) = (chain.history(), archiver.names());
        if self.as_of.as_ref().is_some_and(|(seq, known)| *seq == history.seq && known == names) {
            return;
        }
        match self.past.publish(history, names) {
            Ok(()) => self.as_of = Some((history.seq, names.to_vec())),
            Err(error) => {
                tracing::warn!(
                    source,
                    "readers are not shown what the archive has: the copy cannot be read: {error}"
                );
            }
        }
    }
}

/// The copy as readers see it: with what the archive has of it.
pub(crate) fn seen_by_readers(disk: Arc<dyn Storage>, past: Option<&Arc<Past>>) -> Arc<dyn Storage> {
    match past {
        Some(past) => Arc::new(WithPast::new(disk, past.clone())),
        None => disk,
    }
}
