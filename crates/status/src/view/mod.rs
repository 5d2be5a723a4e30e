//! What every surface shows of a source and its readers, in rows: a name, what is said, and the level of the one judgement. `binlogd status`, `top` and
//! the page differ in how they write a row, not in what it says.

mod burned;
mod readers;
mod row;
mod rows;

use crate::{GtidTexts, Level, SourceStatus, StateName};
use jiff::Timestamp;
use std::cmp::Reverse;

pub use burned::if_this_site_burned;
pub use readers::{ReaderRow, Readers, SlotRow};
pub use row::{Piece, Row, semi_sync};

/// The rows of a source, by what they are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRows {
    /// The connection, and whether commits wait for this copy.
    pub connection: Vec<Row>,
    /// The archive, and from when on a backup can be brought to any point.
    pub kept: Vec<Row>,
    /// What the source lacks, gave twice, or never gave.
    pub histories: Vec<Row>,
    /// The other binlogds of the source.
    pub peers: Vec<Row>,
    /// The last verification of the copy.
    pub verified: Option<Row>,
    /// What the source takes of the machine.
    pub takes: Option<Row>,
}

impl SourceRows {
    /// Of a source with its verdict.
    pub fn of(source: &SourceStatus, now: Timestamp) -> SourceRows {
        SourceRows {
            connection: rows::connection(source, now),
            kept: rows::archived(source)
                .into_iter()
                .chain(rows::recoverable(source))
                .chain(rows::drilled(source))
                .chain(rows::points(source))
                .collect(),
            histories: rows::histories(source),
            peers: rows::peers(source),
            verified: rows::verified(source),
            takes: rows::resources(source),
        }
    }
}

/// Up to where the archive has the history, in one line; `None` for a source that is not archived.
pub fn archived(source: &SourceStatus) -> Option<Row> {
    rows::archived_to(source)
}

/// The two sets of GTIDs. From files nobody can tell what was acknowledged: it may be all of them.
pub fn gtids(state: &StateName, gtids: &GtidTexts) -> [Row; 2] {
    let durable = Row::new("durable", Level::Ok).gtids(&gtids.durable);
    let acknowledged = Row::new("acknowledged", Level::Ok);
    let acknowledged = if *state == StateName::NotRunning {
        acknowledged.text("not known")
    } else if gtids.acknowledged == gtids.durable && !gtids.durable.is_empty() {
        acknowledged.text("the same")
    } else {
        acknowledged.gtids(&gtids.acknowledged)
    };
    [durable, acknowledged]
}

/// The worst first; of equals those that are not received, those whose commits do not wait, then the one that is behind most, by whole
/// minutes: seconds of lag on a busy source must not shuffle a table. The order of the configuration stays among the rest.
pub fn worst_first(sources: &[SourceStatus]) -> Vec<&SourceStatus> {
    let mut rows: Vec<&SourceStatus> = sources.iter().collect();
    rows.sort_by_key(|source| {
        let minutes = Reverse(source.seconds_behind.map(|behind| behind / 60).unwrap_or(0));
        (Reverse(source.verdict.level), source.is_receiving(), source.semi_sync.active, minutes)
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn the_worst_source_comes_first_and_equals_keep_their_order() {
        let source = |name: &str, level, behind| SourceStatus {
            name: name.to_owned(),
            state: StateName::Receiving,
            seconds_behind: behind,
            verdict: Verdict { level, ..Verdict::default() },
            ..SourceStatus::default()
        };
        let sources = [
            source("a", Level::Ok, Some(0)),
            source("b", Level::Ok, Some(3)),
            source("c", Level::Warning, Some(90)),
            source("d", Level::Critical, None),
            source("e", Level::Warning, Some(900)),
        ];
        let names: String = worst_first(&sources).iter().map(|source| source.name.as_str()).collect();
        assert_eq!(names, "decab");
    }
}
