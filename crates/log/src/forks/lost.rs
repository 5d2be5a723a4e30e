//! A transaction that a fork took from the source, and what became of it.

use super::place::Place;
use crate::content::Content;
use std::path::Path;

/// One of the transactions that had a GTID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Where it stands first.
    pub place: Place,
    /// Seconds since 1970 at which it was committed, or begun, as far as the log tells.
    pub timestamp: u32,
    /// What it changes: `schema.table` of its rows, the beginning of its statements.
    pub changes: Vec<String>,
    pub(super) content: Content,
}

/// A transaction that a fork took from the source.
#[derive(Debug, Clone, Default)]
pub struct Lost {
    /// Those that had its GTID, in the order of the timelines.
    pub versions: Vec<Version>,
    /// The timeline, counted in the present history, whose source lacked it last.
    lost_on: Option<usize>,
    /// The newest timeline that holds it.
    seen_on: usize,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The source lacks it.
    Lacking,
    /// The source has it again.
    HandedBack,
    /// The source gave its GTID to another transaction.
    GivenTwice,
}

impl Lost {
    /// Notes that `version` stands on the timeline `seen_on`, and which timeline's source lacked it last.
    pub(super) fn seen(&mut self, version: Version, seen_on: usize, lost_on: Option<usize>) {
        self.lost_on = lost_on;
        self.seen_on = self.seen_on.max(seen_on);
        let is_known =
            |known: &Version| known.place == version.place || known.content.is_same(&version.content);
        match self.versions.iter().position(is_known) {
            Some(known) => {
                // The source has this one again: it is the last of them now.
                let known = self.versions.remove(known);
                self.versions.push(known);
            }
            None => self.versions.push(version),
        }
    }

    /// The newest timeline that says anything about it.
    pub(super) fn newest(&self) -> usize {
        self.lost_on.unwrap_or(0).max(self.seen_on)
    }

    /// Whether of those that had its GTID the last one stands at that place.
    pub(super) fn is_last(&self, path: &Path, at: u64) -> bool {
        self.versions.last().is_some_and(|last| *last.place.path == *path && last.place.at == at)
    }

    /// Whether the source has none of the transactions that had its GTID.
    pub fn is_lacking(&self) -> bool {
        self.lost_on.is_some_and(|lost_on| self.seen_on < lost_on)
    }

    /// What became of it; `None` when it was never lost.
    pub(super) fn fate(&self) -> Option<Fate> {
        if self.versions.len() > 1 {
            return Some(Fate::GivenTwice);
        }
        // None: it was never lost. MariaDB's sets name the last transaction only.
        self.lost_on.map(|_| if self.is_lacking() { Fate::Lacking } else { Fate::HandedBack })
    }
}
