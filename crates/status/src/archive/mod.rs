//! How the archive of a source stands: up to where the object store has its history.

pub(crate) mod backups;
pub(crate) mod drill;

use self::backups::{ArchivePrune, BackupsStatus};
use self::drill::DrillsStatus;
use crate::ladder::place;
use crate::lock::lock;
use crate::past::LastError;
use codec::Position;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Mutex;

/// Written by the source's archiving thread, read by anybody.
#[derive(Debug, Default)]
pub struct ArchiveBook(Mutex<Option<ArchiveStatus>>);

impl ArchiveBook {
    /// Changes what is said; the first call says that there is an archive.
    pub fn update(&self, change: impl FnOnce(&mut ArchiveStatus)) {
        change(lock(&self.0).get_or_insert_default());
    }

    /// The source is archived no more.
    pub fn clear(&self) {
        *lock(&self.0) = None;
    }

    /// As of now; `None` for a source that is not archived.
    pub fn status(&self, now: Timestamp) -> Option<ArchiveStatus> {
        let mut status = lock(&self.0).clone()?;
        status.behind_seconds = status.complete_until.map(|until| {
            // Whole seconds below the pause between two looks say nothing.
            u64::try_from(now.as_second() - until.as_second()).unwrap_or(0)
        });
        Some(status)
    }
}

/// What becomes of the newest bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArchiveState {
    /// Nothing has come of it yet since the start.
    #[default]
    Starting,
    /// They are archived.
    Current,
    /// They are not, for the reason in `error`; it is tried again.
    Failing,
    /// The store was put back to an older state: it does not have the last commit that this copy has seen there. Nothing is archived
    /// and nothing is purged until an operator has done something.
    Older,
}

/// How the archive of a source stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArchiveStatus {
    /// `starting`; `current`, it is kept up; `failing`, it is not, as `error` says; `older`, it was put back to an older state: nothing is
    /// archived or purged.
    pub state: ArchiveState,
    /// Where it is, without secrets.
    pub url: String,
    /// Whether what is uploaded is encrypted.
    pub encrypted: bool,
    /// Name of the timeline in the archive, which may number it otherwise than the copy does.
    pub timeline: Option<String>,
    /// End of what the archive has of the timeline that is written: a boundary. Null before anything of it is there.
    #[serde(default, with = "place")]
    pub archived: Option<Position>,
    /// GTIDs executed up to there.
    pub gtid: String,
    /// When something was committed last; null before that, since the start.
    pub committed_at: Option<Timestamp>,
    /// Everything that was durable at this moment is in the archive; null until it has everything for the first time since the
    /// start.
    pub complete_until: Option<Timestamp>,
    /// Folder of the timeline that was written here then; null as before.
    pub complete_timeline: Option<String>,
    /// How far it was durable then; null as before.
    #[serde(default, with = "place")]
    pub complete_position: Option<Position>,
    /// Whole seconds since then; null as before.
    pub behind_seconds: Option<u64>,
    /// Why the archive is not kept up, and since when; null while it is.
    pub error: Option<LastError>,
    /// Commits since the start.
    pub commits: u64,
    /// Bytes of binary logs that came into the archive since the start.
    pub plain_bytes: u64,
    /// Bytes of binary logs that were uploaded once more since the start, to make large objects of small ones.
    pub again_bytes: u64,
    /// Bytes of the objects that were made since the start, compressed and encrypted.
    pub stored_bytes: u64,
    /// Objects that were fetched since the start, for readers of files that are not here any more.
    pub read_objects: u64,
    /// Bytes of those.
    pub read_bytes: u64,
    /// Bytes of what was fetched that are kept on this disk now, up to `cache_size`.
    pub cached_bytes: u64,
    /// Why a file that is wanted gone stays here although it was uploaded: it was not seen in the store. Null while none does.
    pub kept: Option<LastError>,
    /// Problems of objects that were found with that; 0 while the store only does not answer.
    pub kept_findings: u64,
    /// What the verification on a schedule found; null where `verify_interval` is 0s.
    pub verify: Option<ArchiveVerify>,
    /// The backups there, and from when to when they lead; null before the archive was read.
    pub backups: Option<BackupsStatus>,
    /// How the rule of `[backup]` is followed; null without one.
    pub prune: Option<ArchivePrune>,
    /// What drills have shown; null without `[drill]`, and before the copy was opened.
    pub drill: Option<DrillsStatus>,
}

/// The verification of the archive on a schedule: its last run, over restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArchiveVerify {
    /// When the last run began that came to its end; null before the first.
    pub at: Option<Timestamp>,
    /// When the next one is due.
    pub due: Option<Timestamp>,
    /// Objects that the archive had then.
    pub objects: u64,
    /// Of those, how many were read and compared.
    pub objects_read: u64,
    /// Of those, how many were decrypted and unpacked, too: none without `identity`.
    pub objects_opened: u64,
    /// How many problems the run found; 0 for a sound archive.
    pub findings: u64,
    /// The first few of them.
    pub first_findings: Vec<ArchiveFinding>,
    /// Why no run comes to its end now, and since when; null while that works.
    pub error: Option<LastError>,
}

/// Damage in the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArchiveFinding {
    /// The object, or what else it is about.
    pub object: String,
    /// The file and the bytes of it that are concerned; null where none are.
    pub range: Option<String>,
    /// In words.
    pub text: String,
}

impl ArchiveStatus {
    /// Why nothing is archived or purged before an operator has done something.
    pub fn put_back(&self) -> Option<&LastError> {
        self.error.as_ref().filter(|_| self.state == ArchiveState::Older)
    }

    /// How many problems of objects are known.
    pub fn findings(&self) -> u64 {
        self.kept_findings + self.verify.as_ref().map_or(0, |verify| verify.findings)
    }

    /// One of them in words, the first.
    pub fn first_finding(&self) -> Option<String> {
        let found = self.verify.iter().flat_map(|verify| &verify.first_findings).next();
        let kept = || self.kept.as_ref().filter(|_| self.kept_findings > 0).map(|kept| kept.message.clone());
        found.map(ToString::to_string).or_else(kept)
    }
}

impl fmt::Display for ArchiveFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.range {
            Some(range) => write!(f, "{range} ({}): {}", self.object, self.text),
            None => write!(f, "{}: {}", self.object, self.text),
        }
    }
}
