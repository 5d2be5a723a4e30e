//! A transaction that the copy holds and the target lacks.

use crate::rescue::compare::compared::time;
use crate::rescue::statements::summary;
use binlog::forks::transactions::StoredTransaction;
use codec::gtid::TransactionId;
use std::path::{Path, PathBuf};

/// A transaction that the copy holds and the target lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacked {
    /// Its GTID.
    pub id: TransactionId,
    /// Folder name of the timeline that holds it.
    pub timeline: String,
    /// The file that holds it.
    pub path: PathBuf,
    /// Where it begins there.
    pub at: u64,
    /// Where it ends there.
    pub end: u64,
    /// Seconds since 1970 at which it was begun on its source.
    pub timestamp: u32,
    /// What it changes: `schema.table` of its rows, the beginning of its statements.
    pub changes: Vec<String>,
}

impl Lacked {
    /// A transaction of a file of that timeline, which has this GTID.
    pub fn of(timeline: &str, path: &Path, transaction: &StoredTransaction, id: TransactionId) -> Lacked {
        let summary = summary(transaction).unwrap_or_default();
        Lacked {
            id,
            timeline: timeline.to_owned(),
            path: path.to_owned(),
            at: transaction.at,
            end: transaction.end,
            timestamp: summary.timestamp,
            changes: summary.changes,
        }
    }

    /// Length in the binary log, in bytes.
    pub fn size(&self) -> u64 {
        self.end - self.at
    }

    /// When it was begun on its source, UTC.
    pub fn began(&self) -> String {
        time(self.timestamp)
    }

    /// Name of the file that holds it.
    pub fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}
