//! The timelines of a source, as they are shown.

use serde::{Deserialize, Serialize};

/// A timeline: an unbroken history of the source, in a folder of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimelineStatus {
    /// Folder name.
    pub name: String,
    /// When it began: RFC 3339, UTC.
    pub began_at: String,
    /// Why, as `timeline.toml` says it: `first`, `source-changed`, `source-reset`, `fork`, `gap`, `stranger`.
    pub reason: String,
    /// The same in words.
    pub why: String,
    /// Its first file.
    pub first_file: String,
    /// The server's own version text.
    pub server_version: String,
    /// Folder name of the timeline before it; empty for none.
    pub previous: String,
    /// What the copy held when it began and the source lacked, by GTID; empty text for nothing.
    pub source_lacked: String,
    /// What was never copied before it, by GTID; empty text for nothing.
    pub missing: String,
}
