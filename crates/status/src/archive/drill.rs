//! What the drills of a source have shown: a backup and the log behind it, brought back in a throw-away server.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A drill a day is wanted. When none has passed for so long, two have not.
const OVERDUE: SignedDuration = SignedDuration::from_hours(48);

/// The drills of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DrillsStatus {
    /// Since when binlogd drills this source.
    pub since: Timestamp,
    /// When the next drill begins.
    pub due: Option<Timestamp>,
    /// Since when one is under way; null while none is.
    pub running_since: Option<Timestamp>,
    /// The last one that passed; null before the first.
    pub last_passed: Option<DrillResult>,
    /// The last few, the newest first.
    pub list: Arc<[DrillResult]>,
}

/// What one drill has shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DrillResult {
    /// The backup from which it began; empty where none was chosen.
    pub backup: String,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub finished: Timestamp,
    /// Seconds that it took: the measured time to recover.
    pub seconds: f64,
    /// The point that was reached: GTIDs, or `FILE:POS`.
    pub until: String,
    /// When that was, by the source's clock.
    pub until_time: Option<Timestamp>,
    /// What was compared: `next-backup`, each table with the next backup's; `gtids-and-check`, the GTIDs, and CHECK TABLE; empty: nothing.
    pub proof: String,
    /// The same in words.
    pub proof_in_words: String,
    /// Tables that were there.
    pub tables: u64,
    /// Bytes of the data that were there.
    pub bytes: u64,
    /// Whether all of it was as it must be.
    pub passed: bool,
    /// Why not, in words; empty where it passed.
    pub fault: String,
    /// What took how long, in the order in which it was done.
    pub steps: Vec<DrillStep>,
}

/// A part of a drill.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DrillStep {
    /// What was done.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
}

/// Seconds come from a clock: they are numbers.
impl Eq for DrillResult {}
impl Eq for DrillStep {}

impl DrillsStatus {
    /// Why the last one failed; `None` where it passed, or there was none.
    pub fn failed(&self) -> Option<&DrillResult> {
        self.list.first().filter(|last| !last.passed)
    }

    /// Since when none has passed, where that is too long ago.
    pub fn overdue(&self, now: Timestamp) -> Option<Timestamp> {
        let since = self.last_passed.as_ref().map_or(self.since, |passed| passed.finished);
        (now.duration_since(since) > OVERDUE).then_some(since)
    }
}
