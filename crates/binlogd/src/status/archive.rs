//! How the archive of a source stands: up to where the object store has its history.

use super::lock::lock;
use super::past::LastError;
use super::place;
use codec::Position;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// Written by the source's archiving thread, read by anybody.
#[derive(Debug, Default)]
pub(crate) struct ArchiveBook(Mutex<Option<ArchiveStatus>>);

impl ArchiveBook {
    /// Changes what is said; the first call says that there is an archive.
    pub(crate) fn update(&self, change: impl FnOnce(&mut ArchiveStatus)) {
        change(lock(&self.0).get_or_insert_default());
    }

    /// The source is archived no more.
    pub(crate) fn clear(&self) {
        *lock(&self.0) = None;
    }

    /// As of now; `None` for a source that is not archived.
    pub(crate) fn status(&self, now: Timestamp) -> Option<ArchiveStatus> {
        let mut status = lock(&self.0).clone()?;
        status.behind_seconds = status.complete_until.map(|until| {
            // Whole seconds below the pause between two looks say nothing.
            u64::try_from(now.as_second() - until.as_second()).unwrap_or(0)
        });
        Some(status)
    }
}

/// How the archive of a source stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ArchiveStatus {
    /// Where it is, without secrets.
    pub(crate) url: String,
    /// Whether what is uploaded is encrypted.
    pub(crate) encrypted: bool,
    /// Name of the timeline in the archive, which may number it otherwise than the copy does.
    pub(crate) timeline: Option<String>,
    /// End of what the archive has of the timeline that is written: a boundary. Null before anything of it is there.
    #[serde(default, with = "place")]
    pub(crate) archived: Option<Position>,
    /// GTIDs executed up to there.
    pub(crate) gtid: String,
    /// When something was committed last; null before that, since the start.
    pub(crate) committed_at: Option<Timestamp>,
    /// Everything that was durable at this moment is in the archive; null until it has everything for the first time since the
    /// start.
    pub(crate) complete_until: Option<Timestamp>,
    /// Whole seconds since then; null as before.
    pub(crate) behind_seconds: Option<u64>,
    /// Why the archive is not kept up, and since when; null while it is.
    pub(crate) error: Option<LastError>,
    /// Commits since the start.
    pub(crate) commits: u64,
    /// Bytes of binary logs that came into the archive since the start.
    pub(crate) plain_bytes: u64,
    /// Bytes of binary logs that were uploaded once more since the start, to make large objects of small ones.
    pub(crate) again_bytes: u64,
    /// Bytes of the objects that were made since the start, compressed and encrypted.
    pub(crate) stored_bytes: u64,
    /// Objects that were fetched since the start, for readers of files that are not here any more.
    pub(crate) read_objects: u64,
    /// Bytes of those.
    pub(crate) read_bytes: u64,
    /// Bytes of what was fetched that are kept on this disk now, up to `cache_size`.
    pub(crate) cached_bytes: u64,
}
