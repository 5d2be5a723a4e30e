//! A transaction that a fork took from the source, and what became of it.

use super::place::Place;
use crate::forks::content::Content;
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
    /// The timelines that hold it, counted in the present history.
    pub(super) seen_on: Vec<usize>,
}

/// A transaction that a fork took from the source.
#[derive(Debug, Clone, Default)]
pub struct Lost {
    /// Those that had its GTID, in the order of the timelines.
    pub versions: Vec<Version>,
    /// The timeline, counted in the present history, whose source lacked it last.
    lost_on: Option<usize>,
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
    /// Notes that `version` stands on its timeline, and which timeline's source lacked it last.
    pub(super) fn seen(&mut self, mut version: Version, lost_on: Option<usize>) {
        self.lost_on = lost_on;
        let is_known =
            |known: &Version| known.place == version.place || known.content.is_same(&version.content);
        if let Some(known) = self.versions.iter().position(is_known) {
            // The source has this one again: it is the last of them now.
            let mut known = self.versions.remove(known);
            known.seen_on.append(&mut version.seen_on);
            version = known;
        }
        self.versions.push(version);
    }

    /// The newest timeline that holds any.
    fn seen_on(&self) -> usize {
        self.versions.iter().flat_map(|version| &version.seen_on).copied().max().unwrap_or(0)
    }

    /// The newest timeline that says anything about it.
    pub(super) fn newest(&self) -> usize {
        self.lost_on.unwrap_or(0).max(self.seen_on())
    }

    /// Whether of those that had its GTID the last one stands at that place.
    pub(super) fn is_last(&self, path: &Path, at: u64) -> bool {
        self.versions.last().is_some_and(|last| *last.place.path == *path && last.place.at == at)
    }

    /// Whether the source has none of the transactions that had its GTID.
    pub fn is_lacking(&self) -> bool {
        self.is_lacking_since(self.lost_on)
    }

    /// Whether no timeline from this one on holds any.
    pub(super) fn is_lacking_since(&self, timeline: Option<usize>) -> bool {
        timeline.is_some_and(|timeline| self.seen_on() < timeline)
    }

    /// Whether several of them stood on the timelines of that time, and later ones hold none but the one that was the last then: who decided
    /// about them then has decided for later servers too.
    pub(super) fn is_chosen_by(&self, is_of_that_time: impl Fn(usize) -> bool) -> bool {
        let last =
            |version: &Version| version.seen_on.iter().copied().filter(|on| is_of_that_time(*on)).max();
        let then: Vec<Option<usize>> = self.versions.iter().map(last).collect();
        let newest = then.iter().max().copied().flatten();
        let is_same = |(version, last): (&Version, &Option<usize>)| {
            *last == newest || version.seen_on.iter().all(|on| is_of_that_time(*on))
        };
        then.iter().flatten().count() > 1 && self.versions.iter().zip(&then).all(is_same)
    }

    /// What became of it; `None` when it was never lost. `is_chosen`: of several that had its GTID the last one counts.
    pub(super) fn fate(&self, is_chosen: bool) -> Option<Fate> {
        if self.versions.len() > 1 && !is_chosen {
            return Some(Fate::GivenTwice);
        }
        // None: it was never lost. MariaDB's sets name the last transaction only.
        self.lost_on.map(|_| if self.is_lacking() { Fate::Lacking } else { Fate::HandedBack })
    }
}
