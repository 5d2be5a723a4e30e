//! The backups of a source beside its log in the archive, and what they lead to.

use crate::past::LastError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is recoverable by the archive alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackupsStatus {
    /// Backups that the archive has.
    pub count: u64,
    /// Of those, how many have their log: no other counts, for it restores its own moment alone.
    pub with_log: u64,
    /// When the newest of these was finished; null where there is none.
    pub newest: Option<Timestamp>,
    /// When the oldest backup was finished from which on each moment can be restored; null where nothing is recoverable.
    pub recoverable_from: Option<Timestamp>,
    /// Up to when, by the source's clock; null as before.
    pub recoverable_to: Option<Timestamp>,
    /// Whether that is the end of all that is archived.
    pub reaches_end: bool,
    /// The newest few of them, the newest first.
    pub list: Arc<[BackupStatus]>,
}

/// One backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackupStatus {
    /// Its name in the archive.
    pub id: String,
    /// The program that made it.
    pub tool: String,
    /// Of the server that was backed up, with its kind.
    pub server_version: String,
    /// When it was finished.
    pub finished: Timestamp,
    /// Plain bytes.
    pub bytes: u64,
    /// Bytes of its objects.
    pub stored_bytes: u64,
    /// The moment of the source that it holds: GTIDs, or `FILE:POS`.
    pub point: String,
    /// Until where the log behind it is whole, as `FILE:POS`; null where it is not there.
    pub log_until: Option<String>,
    /// Until when, by the source's clock.
    pub log_until_time: Option<Timestamp>,
    /// Why it cannot be brought forward; null where it can.
    pub log_lacking: Option<String>,
}

/// The rule by which backups, and the log that none of them needs, are deleted from the archive: `keep` of `[backup]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArchivePrune {
    /// The rule.
    pub keep: String,
    /// When it was followed last, since the start; null before the first time.
    pub at: Option<Timestamp>,
    /// Why it is not followed, and since when; null while it is.
    pub error: Option<LastError>,
}
