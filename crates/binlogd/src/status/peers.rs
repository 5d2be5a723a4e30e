//! Other binlogds of the same source, as they are shown.

use super::past::LastError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Another binlogd of the source. Counts are since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PeerStatus {
    /// `host:port` of its port for readers.
    pub(crate) peer: String,
    /// When it was asked last, RFC 3339, UTC; null when it was not needed yet.
    pub(crate) asked_at: Option<Timestamp>,
    /// Whether it had something then that the copy lacked; null when it did not answer, or was not asked yet.
    pub(crate) had_more: Option<bool>,
    /// When something was fetched from it last; null for never.
    pub(crate) fetched_at: Option<Timestamp>,
    /// Transactions that were fetched from it.
    pub(crate) fetched_transactions: u64,
    /// The same in bytes of binary logs.
    pub(crate) fetched_bytes: u64,
    /// Transactions at the end of an older timeline that it holds and the copy lacks, by GTID; empty text for none known.
    pub(crate) only_there: String,
    /// How many those are; for MariaDB, whose numbers have holes, of how many servers.
    pub(crate) only_there_transactions: u64,
    /// The timeline of the copy that lacks them; null for none known.
    pub(crate) only_there_timeline: Option<String>,
    /// Why it did not answer or could not be read when it was asked last; null when all went well.
    pub(crate) error: Option<LastError>,
}
