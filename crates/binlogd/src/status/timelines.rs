//! The timelines of a source, as they are shown.

use serde::{Deserialize, Serialize};

/// A timeline: an unbroken history of the source, in a folder of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TimelineStatus {
    /// Folder name.
    pub(crate) name: String,
    /// When it began: RFC 3339, UTC.
    pub(crate) began_at: String,
    /// Why, as `timeline.toml` says it: `first`, `source-changed`, `source-reset`, `fork`, `gap`, `stranger`.
    pub(crate) reason: String,
    /// The same in words.
    pub(crate) why: String,
    /// Its first file.
    pub(crate) first_file: String,
    /// The server's own version text.
    pub(crate) server_version: String,
    /// Folder name of the timeline before it; empty for none.
    pub(crate) previous: String,
    /// What the copy held when it began and the source lacked, by GTID; empty text for nothing.
    pub(crate) source_lacked: String,
    /// What was never copied before it, by GTID; empty text for nothing.
    pub(crate) missing: String,
}
