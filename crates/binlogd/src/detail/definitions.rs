//! The definitions of tables that stand in the log of one source.

use codec::BinlogName;
use codec::event::EventType;
use codec::gtid::TransactionId;
use codec::secrets::masked;
use log::folder::timeline_number;
use log::storage::ReadAt;
use points::statement::redefined::{Redefined, redefined};
use points::transaction::Transaction;
use points::walk::events::{each_event, statement_of};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A statement is shown so far, in characters.
const SHOWN_MAX: usize = 200;

/// Longest statement that is read, in bytes.
const STATEMENT_BYTES_MAX: usize = 64 << 20;

/// A place in the log of a source, in the order of its history: timeline, file, byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    timeline: u32,
    file: u64,
    at: u64,
}

impl Place {
    /// Behind everything.
    pub(crate) const END: Place = Place { timeline: u32::MAX, file: u64::MAX, at: u64::MAX };

    /// Of the names of a timeline and of a file.
    pub(crate) fn of(timeline: &str, file: &str, at: u64) -> Place {
        let file = BinlogName::parse(file).map_or(0, |name| name.number());
        Place { timeline: timeline_number(timeline).unwrap_or(0), file, at }
    }
}

/// One statement that is a definition of a table.
#[derive(Debug)]
struct Definition {
    place: Place,
    /// No older timeline has it: of those that begin with what an older one holds, it is behind that.
    is_new: bool,
    is_of_columns: bool,
    renames_columns: bool,
    /// From when to when it may have run, in seconds since 1970.
    time: (i64, i64),
    /// Its text and its GTID.
    shown: Rc<str>,
}

/// A definition that may have changed a table's columns.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// Its text and its GTID.
    pub(crate) shown: Rc<str>,
    /// Names of columns may be others.
    pub(crate) renames: bool,
}

/// All of them, by schema and table in lower case. An empty table stands for all of a schema, an empty schema for all tables.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    of: HashMap<(String, String), Vec<Definition>>,
    seen: HashSet<TransactionId>,
}

impl Definitions {
    /// Takes the definitions of one transaction, in the order of the history. What cannot be read may be one of any table.
    pub(crate) fn add(&mut self, place: Place, file: &dyn ReadAt, transaction: &Transaction) {
        let is_new = transaction.id.is_none_or(|id| self.seen.insert(id));
        let committed = transaction.committed.micros.div_euclid(1_000_000);
        let began = if transaction.began == 0 { committed } else { i64::from(transaction.began) };
        // A second later the file system's clock may be a tick behind, or the log has only the beginning.
        let time = (began.min(committed) - 1, committed + i64::from(!transaction.committed.is_exact));
        let id = transaction.id.map_or_else(|| "without a GTID".to_owned(), |id| id.to_string());
        let mut failed = transaction.unread.clone();
        let range = (transaction.at, transaction.end);
        let read = each_event(file, range, STATEMENT_BYTES_MAX, &mut |header, event| {
            let statement =
                match event.map(|event| statement_of(header.event_type, event, STATEMENT_BYTES_MAX)) {
                    Some(Ok(Some(statement))) if !statement.is_for_people => statement,
                    Some(Err(error)) => {
                        failed = Some(error);
                        return;
                    }
                    None if is_statement(header.event_type) => {
                        failed = Some("a statement too large to be opened".to_owned());
                        return;
                    }
                    _ => return,
                };
            let Some(redefined) = redefined(&statement.text, statement.schema) else { return };
            let text = masked(&statement.text).split_whitespace().collect::<Vec<_>>().join(" ");
            let text: String = text.chars().take(SHOWN_MAX).collect();
            let shown: Rc<str> = format!("{text} ({id})").into();
            for key in keys(&redefined) {
                self.of.entry(key).or_default().push(Definition {
                    place,
                    is_new,
                    is_of_columns: redefined.is_of_columns,
                    renames_columns: redefined.renames_columns,
                    time,
                    shown: shown.clone(),
                });
            }
        });
        if let Some(why) = failed.or_else(|| read.err().map(|error| error.to_string())) {
            self.add_unread(place, &format!("a transaction that cannot be read ({id}: {why})"));
        }
    }

    /// Something that may be a definition of any table.
    pub(crate) fn add_unread(&mut self, place: Place, what: &str) {
        self.of.entry(Default::default()).or_default().push(Definition {
            place,
            is_new: true,
            is_of_columns: true,
            renames_columns: true,
            time: (0, 0),
            shown: what.into(),
        });
    }

    fn of_table(&self, schema: &str, table: &str) -> impl Iterator<Item = &Definition> {
        let (schema, table) = (schema.to_lowercase(), table.to_lowercase());
        let keys = [(schema.clone(), table), (schema, String::new()), Default::default()];
        keys.into_iter().filter_map(|key| self.of.get(&key)).flatten()
    }

    /// The first definition behind a place that may have changed the columns of a table.
    pub(crate) fn change(&self, schema: &str, table: &str, since: Place) -> Option<Change> {
        let is_behind = |one: &&Definition| {
            one.is_of_columns
                && match one.place.timeline == since.timeline {
                    true => one.place > since,
                    false => one.place > since && one.is_new,
                }
        };
        let renames = self.of_table(schema, table).filter(is_behind).any(|one| one.renames_columns);
        let first = self.of_table(schema, table).filter(is_behind).min_by_key(|one| one.place)?;
        Some(Change { shown: first.shown.clone(), renames })
    }

    /// Whether a definition of that table stands in the log that may have run at that time, in seconds since 1970.
    pub(crate) fn has_one_at(&self, schema: &str, table: &str, second: i64) -> bool {
        self.of_table(schema, table).any(|one| (one.time.0..=one.time.1).contains(&second))
    }
}

/// Whether a definition can stand in an event of that type.
fn is_statement(event_type: EventType) -> bool {
    matches!(
        event_type,
        EventType::QUERY | EventType::MARIADB_QUERY_COMPRESSED | EventType::EXECUTE_LOAD_QUERY
    )
}

/// Under which keys it is found.
fn keys(redefined: &Redefined) -> Vec<(String, String)> {
    if redefined.may_be_any {
        return vec![(String::new(), String::new())];
    }
    let lower = |name: &points::table::TableName| (name.schema.to_lowercase(), name.table.to_lowercase());
    redefined.tables.iter().map(lower).collect()
}
