//! What the published test of `sync_binlog` says of the stall at a rotation; its tables are in
//! [`sync_binlog`](mod@super::sync_binlog).

use super::publication::Publication;
use super::sync_binlog;
use crate::outline::{Entry, Part, Table};

/// Seconds in which a file was full.
const PERIOD_S: f64 = 40.0;
/// 10⁶ bytes of a file.
const FILE_MB: f64 = 1000.0;

/// The study, as far as it is about the stall.
pub fn publication() -> Publication {
    let whole = sync_binlog::publication();
    Publication {
        title: "What sync_binlog costs: the stall at a rotation",
        conclusions: &[
            "With sync_binlog = 0 throughput falls to 0 for one or two seconds every 40 seconds, and applications stand: \
             the log of 1 GB is rotated, and all that was cached of it is synced at once.",
            "To sync more often is the way out. 1 costs most; 1000 is a good compromise; 10000 varies too much still.",
        ],
        remarks: &[
            "The text gives the period and the length in words, no figures over time. The threads are not given, nor is \
             how often throughput was looked at.",
            "1 GB in 40 s is 25 MB a second. The period says how fast the log was filled, and nothing else: with another \
             load it is another one.",
        ],
        figures: vec![Part::Table(stall())],
        ..whole
    }
}

fn stall() -> Table {
    let row = |what: &str, entry| vec![Entry::Text(what.to_owned()), entry];
    Table::new(
        "The stall with sync_binlog = 0, as published",
        &["what", "figure"],
        vec![
            row("size of a log file (MB)", Entry::Number(FILE_MB, 0)),
            row("period (s)", Entry::Number(PERIOD_S, 0)),
            row("log that is filled, from these (MB/s)", Entry::Number(FILE_MB / PERIOD_S, 0)),
            row("lowest throughput", Entry::Number(0.0, 0)),
            row("at least so long (s)", Entry::Number(1.0, 0)),
            row("at most so long (s)", Entry::Number(2.0, 0)),
        ],
        &[],
    )
}
