//! What is said of a source's past beside its present: the timeline before, a loss that was made good, what was never copied.

use crate::ladder::place;
use codec::Position;
use codec::gtid::GtidState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The timeline before the one that is being written, and where its copy ends: nothing of it is lost while the newer one
/// holds nothing yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousTimeline {
    /// Folder name.
    pub name: String,
    /// End of its durable bytes; null when it held no file.
    #[serde(default, with = "place")]
    pub end: Option<Position>,
}

/// Transactions that the source lacked and has again, by GTID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regained {
    /// When that was seen: RFC 3339, UTC.
    pub at: Timestamp,
    /// Which, in the source's notation on one line.
    pub gtids: String,
}

/// Transactions that were never copied: the source had purged them, and with `on_gap = "record"` the copy went on behind them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedGap {
    /// Folder name of the timeline that begins behind it.
    pub timeline: String,
    /// When that began: RFC 3339, UTC.
    pub began_at: String,
    /// Where the timeline before it ends; null when that holds no file, or when the source began its logs anew in between.
    #[serde(default, with = "place")]
    pub after: Option<Position>,
    /// The source's file with which the copy goes on.
    pub first_file: String,
    /// What is missing by GTID, in the source's notation on one line; empty text where there are no GTIDs.
    pub missing: String,
}

/// All that was never copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// By GTID.
    pub gtids: GtidState,
    /// By place.
    pub gaps: Vec<RecordedGap>,
}

impl Missing {
    /// How many transactions; for MariaDB, whose numbers have holes, of how many servers.
    pub fn count(&self) -> u64 {
        count(&self.gtids)
    }
}

/// MariaDB's sequence numbers have holes, so that a count of transactions cannot be told.
pub fn count(gtids: &GtidState) -> u64 {
    match gtids {
        GtidState::Mysql(set) => set.len(),
        GtidState::Mariadb(state) => state.list().count() as u64,
    }
}

/// What `binlogd verify` found last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// When it began: RFC 3339, UTC.
    pub at: Timestamp,
    /// How many problems it found.
    pub findings: u64,
}

/// An error and when it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// RFC 3339, UTC.
    pub at: Timestamp,
    /// The message, without any password.
    pub message: String,
}
