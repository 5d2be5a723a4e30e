//! The definitions of tables that stand in the log of one source.

use binlog::folder::timeline_number;
use binlog::storage::ReadAt;
use codec::BinlogName;
use codec::event::EventType;
use codec::gtid::TransactionId;
use codec::secrets::masked;
use points::statement::redefined::{Redefined, redefined};
use points::table::TableName;
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
pub struct Place {
    timeline: u32,
    file: u64,
    at: u64,
}

impl Place {
    /// Behind everything.
    pub const END: Place = Place { timeline: u32::MAX, file: u64::MAX, at: u64::MAX };

    /// Of the names of a timeline and of a file.
    pub fn of(timeline: &str, file: &str, at: u64) -> Place {
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
    moved: Rc<[(TableName, TableName)]>,
    is_drop: bool,
    /// From when to when it may have run, in seconds since 1970, on the server that committed it first.
    time: (i64, i64),
    /// Its text and its GTID.
    shown: Rc<str>,
}

/// Definitions that may have changed a table's columns.
#[derive(Debug, Clone)]
pub struct Change {
    /// Text and GTID of the first, or of one that says the most against the table.
    pub shown: Rc<str>,
    /// Names of columns may be others, also those of a table that has got the name since.
    pub renames: bool,
    /// The table is there under this name now.
    pub moved_to: Option<TableName>,
}

impl Change {
    /// As it stands against the table.
    pub(crate) fn words(&self) -> String {
        let now = self.moved_to.as_ref().map(|name| format!(", the table of these rows is {name} now"));
        format!("behind these rows comes {}{}", self.shown, now.unwrap_or_default())
    }
}

impl Definition {
    /// The name behind it of the table that has this one before it.
    fn name_behind(&self, before: &TableName) -> TableName {
        let mut name = before;
        for (from, to) in &*self.moved {
            if is_same(from, name) {
                name = to;
            }
        }
        name.clone()
    }

    fn moves(&self, name: &TableName) -> bool {
        self.moved.iter().any(|(from, _)| is_same(from, name))
    }
}

/// Names that differ by case are one where `lower_case_table_names` says so.
fn is_same(one: &TableName, other: &TableName) -> bool {
    one.schema.to_lowercase() == other.schema.to_lowercase()
        && one.table.to_lowercase() == other.table.to_lowercase()
}

/// All of them, by schema and table in lower case. An empty table stands for all of a schema, an empty schema for all tables.
#[derive(Debug, Default)]
pub struct Definitions {
    of: HashMap<(String, String), Vec<Definition>>,
    seen: HashSet<TransactionId>,
}

impl Definitions {
    /// Takes the definitions of one transaction, in the order of the history. What cannot be read may be one of any table.
    pub fn add(&mut self, place: Place, file: &dyn ReadAt, transaction: &Transaction) {
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
            let moved: Rc<[_]> = redefined.moved.as_slice().into();
            for key in keys(&redefined) {
                self.of.entry(key).or_default().push(Definition {
                    place,
                    is_new,
                    is_of_columns: redefined.is_of_columns,
                    renames_columns: redefined.renames_columns,
                    moved: moved.clone(),
                    is_drop: redefined.is_drop,
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
    pub fn add_unread(&mut self, place: Place, what: &str) {
        self.of.entry(Default::default()).or_default().push(Definition {
            place,
            is_new: true,
            is_of_columns: true,
            renames_columns: true,
            moved: Rc::new([]),
            is_drop: false,
            time: (0, 0),
            shown: what.into(),
        });
    }

    fn of_table(&self, name: &TableName) -> impl Iterator<Item = &Definition> {
        let (schema, table) = (name.schema.to_lowercase(), name.table.to_lowercase());
        let keys = [(schema.clone(), table), (schema, String::new()), Default::default()];
        keys.into_iter().filter_map(|key| self.of.get(&key)).flatten()
    }

    /// Those of a table behind a place that may have changed its columns.
    fn behind(&self, name: &TableName, since: Place) -> impl Iterator<Item = &Definition> {
        self.of_table(name).filter(move |one| {
            one.is_of_columns && one.place > since && (one.place.timeline == since.timeline || one.is_new)
        })
    }

    /// What may have changed the columns of a table behind a place.
    pub fn change(&self, schema: &str, table: &str, since: Place) -> Option<Change> {
        let name = TableName { schema: schema.to_owned(), table: table.to_owned() };
        let first = self.behind(&name, since).min_by_key(|one| one.place)?;
        // What has the name now may have had any name that it is linked to by definitions of names.
        let (mut linked, mut at, mut renames) = (vec![name.clone()], 0, None);
        while let Some(own) = linked.get(at).cloned() {
            for one in self.behind(&own, since) {
                renames = renames.or(one.renames_columns.then_some(one));
                for (from, to) in &*one.moved {
                    let of_it = if is_same(from, &own) { to } else { from };
                    let is_linked = is_same(from, &own) || is_same(to, &own);
                    if is_linked && !linked.iter().any(|other| is_same(other, of_it)) {
                        linked.push(of_it.clone());
                    }
                }
            }
            at += 1;
        }
        let (now, last) = self.now(&name, since);
        let moved_to = now.filter(|now| !is_same(now, &name));
        let shown = last.filter(|_| moved_to.is_some()).or(renames).unwrap_or(first).shown.clone();
        Some(Change { shown, renames: renames.is_some(), moved_to })
    }

    /// The name that a table has now, `None` where it is gone; and the definition that says so.
    fn now(&self, name: &TableName, since: Place) -> (Option<TableName>, Option<&Definition>) {
        let (mut name, mut since, mut last) = (name.clone(), since, None);
        loop {
            let is_about = |one: &&Definition| one.is_drop || one.moves(&name);
            let Some(next) = self.behind(&name, since).filter(is_about).min_by_key(|one| one.place) else {
                return (Some(name), last);
            };
            if !next.moves(&name) {
                return (None, Some(next));
            }
            (name, since, last) = (next.name_behind(&name), next.place, Some(next));
        }
    }

    /// Whether a definition of that table stands in the log that may have run at that time, in seconds since 1970. A replica runs it
    /// later, nobody knows how much: there it is none of that time.
    pub(crate) fn has_one_at(&self, schema: &str, table: &str, second: i64) -> bool {
        let name = TableName { schema: schema.to_owned(), table: table.to_owned() };
        self.of_table(&name).any(|one| (one.time.0..=one.time.1).contains(&second))
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
