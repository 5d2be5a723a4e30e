//! What was purged from a timeline: whole files, the oldest first, on somebody's word.

use codec::BinlogName;
use serde::{Deserialize, Serialize};

/// Why of a line that stands for several purges.
const SEVERAL: &str = "several purges";

/// Files of a timeline that were purged together: a `[[purged]]` line of `timeline.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// Name of the first of them.
    pub from: String,
    /// Name of the last of them. This file, and those of the same base name with lower numbers, belong to the copy no more,
    /// whether they are in the folder still or not.
    pub through: String,
    /// How many they were.
    pub files: u64,
    /// Their length, in bytes.
    pub bytes: u64,
    /// GTIDs executed before `from`, by its own word. Without it nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtid_before: Option<String>,
    /// GTIDs executed up to the end of `through`. In the newest line only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gtids: String,
    /// When: UTC, RFC 3339.
    pub at: String,
    /// The statement or rule that asked for it.
    pub why: String,
    /// Whether the files were removed. From then on binlogd removes none of their names: one that is there again was put there by
    /// somebody.
    #[serde(default)]
    pub removed: bool,
}

impl Purged {
    /// Whether a file is one of them, or stood before them.
    pub fn covers(&self, name: &str) -> bool {
        match (BinlogName::parse(&self.through), BinlogName::parse(name)) {
            (Ok(through), Ok(name)) => name.base() == through.base() && name.number() <= through.number(),
            _ => false,
        }
    }

    /// Whether a file is one of them, and is to be removed still.
    pub(crate) fn is_to_remove(&self, name: &str) -> bool {
        let is_before = match (BinlogName::parse(&self.from), BinlogName::parse(name)) {
            (Ok(from), Ok(name)) => name.number() < from.number(),
            _ => true,
        };
        !self.removed && !is_before && self.covers(name)
    }

    /// Both as one line, where `later` goes on with the same series of names.
    pub(crate) fn with(&self, later: &Purged) -> Option<Purged> {
        (later.covers(&self.through) && self.removed == later.removed).then(|| Purged {
            from: self.from.clone(),
            through: later.through.clone(),
            files: self.files.saturating_add(later.files),
            bytes: self.bytes.saturating_add(later.bytes),
            gtid_before: self.gtid_before.clone(),
            gtids: later.gtids.clone(),
            at: later.at.clone(),
            why: if self.why == later.why { self.why.clone() } else { SEVERAL.to_owned() },
            removed: self.removed,
        })
    }
}

/// Whether a file was purged, by the lines of its timeline.
pub fn is_purged(lines: &[Purged], name: &str) -> bool {
    lines.iter().any(|line| line.covers(name))
}
