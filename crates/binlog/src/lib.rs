//! The durable log: byte-identical copies of a source's binary logs.
//!
//! # Form on disk
//!
//! ```text
//! <data_dir>/<source>/lock                    one process at a time (flock)
//! <data_dir>/<source>/replica.toml            the replica UUID and server id that binlogd presents to this source
//! <data_dir>/<source>/present.toml            which timeline is written, where that is not the newest one
//! <data_dir>/<source>/forks.toml              what an operator has decided about transactions that were lost
//! <data_dir>/<source>/journal                 what was made durable for an acknowledgement, until a sync of its file
//! <data_dir>/<source>/slots/<name>.toml       up to where a reader with a name has read
//! <data_dir>/<source>/mark                    up to where the live file need not be checked again
//! <data_dir>/<source>/0001-<server_uuid>/     one folder a timeline, counting up
//!     mysql-bin.000001 …                      the source's names, the source's bytes
//!     binlog.index                            the names in order
//!     timeline.toml                           why the timeline began, from where, what is missing before it, what was purged
//!     search-index/mysql-bin.000001           what a search need not walk the file for; derived
//!     mysql-bin.000002.torn-<time>            bytes that a crash left behind the last boundary, kept for inspection
//! ```
//!
//! The files are the truth; the index is rebuilt from them where it disagrees. All files but the last are *sealed*:
//! they never change again. Only the end of the live file may stand in the [`journal`] alone after a crash of the machine;
//! opening the copy puts it back first.
//!
//! # The ladder
//!
//! received ≥ written ≥ durable ≥ acknowledged: four positions of one stream. [`Written`] and [`Durable`] are types of
//! their own, made only by the [`writer::LogWriter`] that did the work, and an acknowledgement takes neither: it takes
//! a [`Safe`] position, which comes from a durable one, or from a written one where the operator chose
//! `fsync_mode = 0`. An acknowledgement of bytes that are only written therefore does not compile by accident.
//!
//! # Threads
//!
//! Everything here is synchronous and belongs to the one thread that receives from the source, but for the fdatasync of
//! the live file that `syncer` makes in the background. Readers (status, verify)
//! open the files for themselves; they may read a file up to its durable position at any time.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

pub mod folder;
pub mod forks;
pub mod format;
pub mod journal;
mod log_error;
pub mod purge;
pub mod recover;
pub mod scan;
pub mod search_index;
pub mod storage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod timeline;
pub mod verify;
pub mod writer;

/// A place in the source's stream of files.
pub use codec::Position;

use jiff::Timestamp;
use std::fmt;
use std::io;

/// True for an error that goes away when somebody makes space: a full file system, a full quota, or a limit for the size of
/// a file.
pub fn is_full_disk(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Whether everything before `at` lies before `by`, two places of one log whose files are `files`, in order.
pub fn is_covered(at: &Position, by: &Position, files: &[String]) -> bool {
    if *at.file == *by.file {
        return at.offset <= by.offset;
    }
    let later = files.iter().rposition(|file| **file == *by.file).unwrap_or(0);
    files[..later].iter().any(|file| **file == *at.file)
}

/// A moment as it stands in the name of a file that is kept aside.
fn in_name(moment: Timestamp) -> impl fmt::Display {
    moment.strftime("%Y%m%dT%H%M%S%.6fZ")
}

/// End of the bytes that have been handed to the operating system, in the file or in the journal. Survives the end of this
/// process, not of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written(Position);

/// End of the bytes that are on stable storage: fdatasync has covered them in their file, or they stand in the journal.
/// Always at or before [`Written`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durable(Position);

/// End of the bytes that are as safe on this machine as `fsync_mode` asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeHere(Position);

/// End of the bytes that as many others have made durable as the operator asked for. Made by
/// `Confirmations` only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed(Position);

/// End of the bytes that are as safe as the operator asked for: the only thing that may be acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Safe(Position);

impl Written {
    /// The place.
    pub fn position(&self) -> &Position {
        &self.0
    }

    /// For `fsync_mode = 0` only: the operator accepts that acknowledged bytes may stand in the page cache.
    pub fn accepted_unsynced(self) -> SafeHere {
        SafeHere(self.0)
    }
}

impl Durable {
    /// The place.
    pub fn position(&self) -> &Position {
        &self.0
    }
}

impl From<Durable> for SafeHere {
    fn from(durable: Durable) -> SafeHere {
        SafeHere(durable.0)
    }
}

impl SafeHere {
    /// The place.
    pub fn position(&self) -> &Position {
        &self.0
    }

    /// Where nobody else need have it: without `ack_after_replicas`, and where the operator accepts that it is gone on alone.
    pub fn alone(self) -> Safe {
        Safe(self.0)
    }

    /// Where others must have it too: the smaller of the two. `files` are the log's, in order.
    pub fn and_there(self, there: &Confirmed, files: &[String]) -> Safe {
        if is_covered(&self.0, &there.0, files) { Safe(self.0) } else { Safe(there.0.clone()) }
    }
}

impl Confirmed {
    /// The place.
    pub fn position(&self) -> &Position {
        &self.0
    }
}

impl Safe {
    /// The place.
    pub fn position(&self) -> &Position {
        &self.0
    }
}
