//! Other binlogds of the same source, as they are shown.

use super::past::LastError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Another binlogd of the source. Counts are since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerStatus {
    /// `host:port` of its port for readers.
    pub peer: String,
    /// When it was asked last, RFC 3339, UTC; null when it was not needed yet.
    pub asked_at: Option<Timestamp>,
    /// Whether it had something then that the copy lacked; null when it did not answer, or was not asked yet.
    pub had_more: Option<bool>,
    /// When something was fetched from it last; null for never.
    pub fetched_at: Option<Timestamp>,
    /// Transactions that were fetched from it.
    pub fetched_transactions: u64,
    /// The same in bytes of binary logs.
    pub fetched_bytes: u64,
    /// Transactions at the end of an older timeline that it holds and the copy lacks, by GTID; empty text for none known.
    pub only_there: String,
    /// How many those are; for MariaDB, whose numbers have holes, of how many servers.
    pub only_there_transactions: u64,
    /// The timeline of the copy that lacks them; null for none known.
    pub only_there_timeline: Option<String>,
    /// Why it did not answer or could not be read when it was asked last; null when all went well.
    pub error: Option<LastError>,
}
