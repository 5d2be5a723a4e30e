//! A transaction that was found, for people and for programs.

use crate::cli::{style, units};
use codec::secrets::masked;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use points::table::RowCounts;
use points::transaction::{CommitTime, Transaction};
use serde::Serialize;
use std::fmt::Write;

/// What was found of one source.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct SourceAnswer {
    /// Its name.
    name: String,
    /// Files that were looked at.
    pub(in crate::cli) files: u64,
    /// Of these, those that had a search index.
    pub(in crate::cli) files_by_index: u64,
    /// Bytes of binary logs that were read.
    pub(in crate::cli) bytes_read: u64,
    /// Transactions of which nobody can tell whether they are what is searched for.
    pub(in crate::cli) undecided: u64,
    /// What could not be searched, and why.
    pub(in crate::cli) errors: Vec<String>,
    /// The transactions, in the order of the log.
    pub(in crate::cli) transactions: Vec<Found>,
}

impl SourceAnswer {
    /// Nothing yet.
    pub(in crate::cli) fn of(name: &str) -> SourceAnswer {
        SourceAnswer {
            name: name.to_owned(),
            files: 0,
            files_by_index: 0,
            bytes_read: 0,
            undecided: 0,
            errors: Vec::new(),
            transactions: Vec::new(),
        }
    }
}

/// One transaction.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct Found {
    /// Its GTID; null for an anonymous one.
    gtid: Option<String>,
    /// When it was committed, UTC.
    committed: String,
    /// The same in local time, with the offset.
    committed_local: String,
    /// It is the commit's own time, not the second of the last statement's beginning.
    committed_exact: bool,
    /// Whole seconds from its first statement's beginning to its commit; null where not known.
    lasted_seconds: Option<u64>,
    /// Folder of the timeline.
    timeline: String,
    /// File in it.
    file: String,
    /// Where it begins.
    position: u64,
    /// Where it ends.
    end_position: u64,
    /// Bytes.
    bytes: u64,
    /// What it is.
    kind: &'static str,
    /// What it does.
    effects: Vec<&'static str>,
    /// `server_id` of the server that committed it first.
    server_id: u32,
    /// The connection that made it; null where no event says so.
    thread: Option<u32>,
    /// Identifier of its XA transaction.
    xid: Option<String>,
    /// Its tables.
    tables: Vec<FoundTable>,
    /// There are more tables.
    more_tables: bool,
    /// Its statements, and those that its rows were made by.
    statements: Vec<String>,
    /// There are more statements.
    more_statements: bool,
    /// Why a part of it could not be looked at; null when all was.
    unread: Option<String>,
    /// Folder of another timeline on which its GTID was found before; null where it was not.
    pub(in crate::cli) found_before: Option<String>,
}

/// A table that it changes.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct FoundTable {
    /// `schema.table`; `schema.*` for a whole schema.
    pub(in crate::cli) table: String,
    /// Rows written.
    pub(in crate::cli) inserted: u64,
    /// Rows updated.
    pub(in crate::cli) updated: u64,
    /// Rows deleted.
    pub(in crate::cli) deleted: u64,
    /// There are more, which cannot be counted.
    pub(in crate::cli) uncounted: bool,
}

/// As it is told of a transaction of that file.
pub(in crate::cli) fn found(timeline: &str, file: &str, transaction: &Transaction, zone: &TimeZone) -> Found {
    let (committed, committed_local) = times(&transaction.committed, zone);
    let tables = transaction.tables.iter().map(|change| found_table(change.name.to_string(), &change.rows));
    Found {
        gtid: transaction.id.map(|id| id.to_string()),
        committed,
        committed_local,
        committed_exact: transaction.committed.is_exact,
        lasted_seconds: transaction.lasted(),
        timeline: timeline.to_owned(),
        file: file.to_owned(),
        position: transaction.at,
        end_position: transaction.end,
        bytes: transaction.size(),
        kind: transaction.kind().name(),
        effects: transaction.effects.names().collect(),
        server_id: transaction.server_id,
        thread: transaction.thread,
        xid: transaction.xid.clone(),
        tables: tables.collect(),
        more_tables: transaction.has_more_tables,
        statements: transaction.statements.iter().map(|statement| statement.shown()).collect(),
        more_statements: transaction.has_more_statements,
        unread: transaction.unread.as_deref().map(|what| masked(what.as_bytes())),
        found_before: None,
    }
}

/// A table and its rows.
pub(in crate::cli) fn found_table(table: String, rows: &RowCounts) -> FoundTable {
    FoundTable {
        table,
        inserted: rows.written,
        updated: rows.updated,
        deleted: rows.deleted,
        uncounted: rows.has_unknown,
    }
}

/// UTC and local time, with microseconds where they are known.
pub(in crate::cli) fn times(at: &CommitTime, zone: &TimeZone) -> (String, String) {
    let Ok(moment) = Timestamp::from_microsecond(at.micros) else { return ("?".into(), "?".into()) };
    let (utc, local) = match at.is_exact {
        true => ("%Y-%m-%dT%H:%M:%S.%6fZ", "%Y-%m-%d %H:%M:%S.%6f%:z"),
        false => ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S%:z"),
    };
    (moment.strftime(utc).to_string(), moment.to_zoned(zone.clone()).strftime(local).to_string())
}

/// `shop.orders: 3 inserted, 2 deleted`.
pub(in crate::cli) fn table_text(table: &FoundTable) -> String {
    let counts = [(table.inserted, "inserted"), (table.updated, "updated"), (table.deleted, "deleted")];
    let mut parts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{} {word}", units::count(count)))
        .collect();
    if table.uncounted {
        parts.push("rows that cannot be counted".to_owned());
    }
    if parts.is_empty() { table.table.clone() } else { format!("{}: {}", table.table, parts.join(", ")) }
}

/// The line with when and where.
pub(in crate::cli) fn heading(found: &Found) -> String {
    style::clean(&format!(
        "  {}  {}  {}/{} at {}  {:>9}  {}{}",
        found.committed_local,
        found.committed,
        found.timeline,
        found.file,
        found.position,
        units::bytes(found.bytes),
        found.gtid.as_deref().unwrap_or("no GTID"),
        found.thread.map_or_else(String::new, |thread| format!("  thread {thread}")),
    ))
}

/// For people: a line with when and where, then what it does.
pub(in crate::cli) fn text(found: &Found) -> String {
    const TABLES_SHOWN: usize = 8;
    const STATEMENTS_SHOWN: usize = 4;
    let mut lines = heading(found);
    let mut line = |text: &str| {
        // Writing to a String does not fail.
        let _ = write!(lines, "\n      {}", style::clean(text));
    };
    if let Some(xid) = &found.xid {
        line(&format!("{} {xid}", found.kind));
    }
    for table in found.tables.iter().take(TABLES_SHOWN) {
        line(&table_text(table));
    }
    if found.tables.len() > TABLES_SHOWN || found.more_tables {
        line("… and more tables; --json names them");
    }
    for statement in found.statements.iter().take(STATEMENTS_SHOWN) {
        line(&statement.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if found.statements.len() > STATEMENTS_SHOWN || found.more_statements {
        line("… and more statements");
    }
    if let Some(timeline) = &found.found_before {
        line(&format!(
            "its GTID stands above, on {timeline}, too: the same transaction in the log of two servers, unless binlogd forks says that \
             it was given twice"
        ));
    }
    if let Some(what) = &found.unread {
        line(&format!("not all of it could be looked at: {what}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_exactly_as_they_are_known() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let at = |is_exact| times(&CommitTime { micros: 1_700_000_001_000_042, is_exact }, &zone);
        let (utc, local) = at(true);
        assert_eq!(utc, "2023-11-14T22:13:21.000042Z");
        assert_eq!(local, "2023-11-15 00:13:21.000042+02:00");
        assert_eq!(at(false).0, "2023-11-14T22:13:21Z");
        assert_eq!(times(&CommitTime { micros: i64::MAX, is_exact: true }, &zone).0, "?");
    }

    #[test]
    fn rows_are_told_by_table() {
        let rows = RowCounts { written: 1234, deleted: 2, ..RowCounts::default() };
        assert_eq!(table_text(&found_table("d.t".into(), &rows)), "d.t: 1,234 inserted, 2 deleted");
        let unknown = RowCounts { has_unknown: true, ..RowCounts::default() };
        assert_eq!(table_text(&found_table("d.t".into(), &unknown)), "d.t: rows that cannot be counted");
        assert_eq!(table_text(&found_table("d.t".into(), &RowCounts::default())), "d.t");
    }
}
