//! What the drills of a source have shown, in a small file of the source's folder: one result a line, as JSON, the oldest first.

use binlog::storage::Storage;
use binlog::timeline::index::replace_file;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use status::{DrillResult, DrillsStatus};
use std::io;
use std::path::Path;

/// Name of the file in a source's folder.
const FILE: &str = "drills.jsonl";

/// So many results are kept: two months of nights. The last that passed stays beside them.
const KEPT_MAX: usize = 60;

/// So many are shown.
const SHOWN_MAX: usize = 30;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    /// Since when the source is drilled.
    since: Timestamp,
}

/// The drills of a source, over restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    since: Timestamp,
    /// The oldest first.
    results: Vec<DrillResult>,
    /// All of it is in the file.
    pub(super) is_written: bool,
}

impl Kept {
    /// No drill yet.
    pub(super) fn new(since: Timestamp) -> Kept {
        Kept { since, results: Vec::new(), is_written: false }
    }

    /// What the file has. Where there is none, or it cannot be read, drills begin now.
    pub(super) fn recall(storage: &dyn Storage, folder: &Path, source: &str, now: Timestamp) -> Kept {
        let path = folder.join(FILE);
        let text = match storage.read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Kept::new(now),
            Err(error) => {
                tracing::warn!(source, "cannot read {}: {error}; no earlier drill is known", path.display());
                return Kept::new(now);
            }
        };
        let mut lines = text.lines();
        let head = lines.next().and_then(|line| serde_json::from_str::<Head>(line).ok());
        let results: Result<Vec<DrillResult>, _> = lines.map(serde_json::from_str).collect();
        match (head, results) {
            // A clock that was ahead makes nobody wait for years.
            (Some(head), Ok(results)) => Kept { since: head.since.min(now), results, is_written: true },
            _ => {
                tracing::warn!(
                    source,
                    "{} is not as it was written; no earlier drill is known",
                    path.display()
                );
                Kept::new(now)
            }
        }
    }

    /// One more.
    pub(super) fn add(&mut self, result: DrillResult) {
        self.results.push(result);
        while self.results.len() > KEPT_MAX {
            // The oldest, but for the last that passed.
            let last_passed = self.results.iter().rposition(|result| result.passed);
            self.results.remove(usize::from(last_passed == Some(0)));
        }
        self.is_written = false;
    }

    /// Puts all of it into the file, by one replacement.
    ///
    /// # Errors
    /// When the disk does not take it: it is tried again.
    pub(super) fn write(&mut self, storage: &dyn Storage, folder: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string(&Head { since: self.since }).map_err(io::Error::other)?;
        for result in &self.results {
            text.push('\n');
            text.push_str(&serde_json::to_string(result).map_err(io::Error::other)?);
        }
        text.push('\n');
        replace_file(storage, &folder.join(FILE), text.as_bytes())?;
        self.is_written = true;
        Ok(())
    }

    /// The last one.
    pub(super) fn last(&self) -> Option<&DrillResult> {
        self.results.last()
    }

    /// As it is shown.
    pub(super) fn status(&self, due: Timestamp, running_since: Option<Timestamp>) -> DrillsStatus {
        let passed = self.results.iter().rev().find(|result| result.passed);
        DrillsStatus {
            since: self.since,
            due: Some(due),
            running_since,
            last_passed: passed.cloned(),
            list: self.results.iter().rev().take(SHOWN_MAX).cloned().collect(),
        }
    }
}
