//! What a transaction does, in a few bytes: equal for the copy's transaction and for a server's own log of having done it again.
//!
//! Two logs of one transaction differ in much that does not matter: checksums, positions, table ids, the server that wrote the
//! event, the packing of a transaction, how its rows are cut into events, the words around it (BEGIN, COMMIT, XID), the comments
//! for people. What is left goes into the fingerprint: which rows of which tables, the text and the time of statements, the
//! values that statements must find, names of XA transactions.
//!
//! What a server may write in another form cannot be held against the copy byte by byte: rows in place of a statement
//! (`binlog_format`), other columns of a row (`binlog_row_image`), whole JSON documents in place of their changes. Then the time,
//! the tables, and the session or the time of the first commit are compared, and it is said ([`Verdict::OtherForm`]).

mod row_event;
mod statement;
pub mod unpacked;
mod verdict;

pub use statement::beginning;
pub use verdict::{Fingerprint, Verdict};

use codec::event::{AlterPhase, EventHeader, EventType, HEADER_LEN, Query, TableMap};
use codec::gtid::decode_gtid_tagged_event;
use row_event::RowEvent;
use sha2::{Digest, Sha256};
use statement::{essence, starts};
use std::collections::HashMap;
use unpacked::{UNPACKED_BYTES_MAX, mariadb_unpacked, packed_events};
use verdict::Hash;

/// So many tables and statements are named when a transaction is shown.
const CHANGES_SHOWN_MAX: usize = 12;
/// The schemas of so many statements are compared; the rest by their texts alone.
const SCHEMAS_MAX: usize = 64;
/// `LOG_EVENT_SUPPRESS_USE_F`: the statement does not depend on the default schema.
const SUPPRESS_USE: u16 = 0x0008;

/// A transaction's fingerprint, and what a person wants to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What it does.
    pub fingerprint: Fingerprint,
    /// Seconds since 1970 at which it was begun.
    pub began: u32,
    /// `schema.table` of its rows, the beginning of its statements; not more than a few.
    pub changes: Vec<String>,
    /// Microseconds since 1970 at which it was first committed anywhere; replicas keep that. `None` where the GTID event does not say so, as
    /// MariaDB's and those of MySQL before 8.0.1.
    pub committed: Option<u64>,
}

/// Makes a fingerprint of the events of one transaction, one by one. What it keeps is small, whatever the transaction's size.
#[derive(Debug, Default)]
pub struct Fingerprinter {
    exact: Sha256,
    form: Sha256,
    tables: Sha256,
    by_statements: bool,
    began: Option<u32>,
    gtid_at: u32,
    committed: Option<u64>,
    thread_id: Option<u32>,
    schemas: Vec<u64>,
    maps: HashMap<[u8; 6], (Vec<u8>, Vec<u8>)>,
    /// Rows of one kind that stand together, however they are cut into events.
    rows: Option<Rows>,
    changes: Vec<String>,
}

#[derive(Debug)]
struct Rows {
    /// What distinguishes it from the rows before it.
    head: Vec<u8>,
    bytes: Sha256,
}

impl Fingerprinter {
    /// Of nothing yet.
    pub fn new() -> Fingerprinter {
        Fingerprinter::default()
    }

    /// Takes the next event, without its checksum.
    ///
    /// # Errors
    /// What of it cannot be understood, in words.
    pub fn event(&mut self, header: &EventHeader, event: &[u8]) -> Result<(), String> {
        let text = |error: codec::event::EventError| error.to_string();
        let event_type = header.event_type;
        match event_type {
            EventType::GTID
            | EventType::GTID_TAGGED
            | EventType::ANONYMOUS_GTID
            | EventType::MARIADB_GTID => {
                self.gtid_at = header.timestamp;
                self.committed = original_commit(event_type, event.get(HEADER_LEN..).unwrap_or_default());
                return Ok(());
            }
            EventType::TRANSACTION_PAYLOAD => {
                return packed_events(event, |header, event| self.event(header, event));
            }
            // For people, and for group replication's own use.
            EventType::ROWS_QUERY
            | EventType::MARIADB_ANNOTATE_ROWS
            | EventType::IGNORABLE
            | EventType::TRANSACTION_CONTEXT
            | EventType::VIEW_CHANGE => return Ok(()),
            _ => {}
        }
        self.began.get_or_insert(header.timestamp);
        match event_type {
            EventType::XID => {}
            EventType::QUERY => self.statement(header, &Query::parse(event).map_err(text)?, None)?,
            EventType::MARIADB_QUERY_COMPRESSED => {
                let query = Query::parse(event).map_err(text)?;
                let unpacked = mariadb_unpacked(query.text, UNPACKED_BYTES_MAX)?;
                self.statement(header, &query, Some(&unpacked))?;
            }
            EventType::TABLE_MAP => {
                let map = TableMap::parse(event).map_err(text)?;
                let id = event.get(HEADER_LEN..).and_then(|body| body.first_chunk::<6>());
                let names = (map.schema.to_vec(), map.table.to_vec());
                self.maps.insert(*id.ok_or("a TABLE_MAP event is cut short")?, names);
            }
            EventType::INTVAR | EventType::RAND | EventType::USER_VAR => {
                self.token(b'V', &[&[event_type.0], event.get(HEADER_LEN..).unwrap_or_default()]);
            }
            EventType::XA_PREPARE => self.token(b'X', &[event.get(HEADER_LEN..).unwrap_or_default()]),
            // The first four bytes number the file on the server that read it.
            EventType::BEGIN_LOAD_QUERY | EventType::APPEND_BLOCK => {
                self.rows(b"file".to_vec(), event.get(HEADER_LEN + 4..).unwrap_or_default(), "");
            }
            EventType::EXECUTE_LOAD_QUERY => self.load(header, event)?,
            _ => match RowEvent::parse(event_type, event) {
                Some(rows) => self.row_event(&rows?)?,
                None => return Err(format!("it holds a {event_type} event, which cannot be compared")),
            },
        }
        Ok(())
    }

    /// The fingerprint of all events that were given.
    pub fn finish(mut self) -> Seen {
        self.end_rows();
        let began = self.began.unwrap_or(self.gtid_at);
        Seen {
            began,
            changes: self.changes,
            committed: self.committed,
            fingerprint: Fingerprint {
                exact: self.exact.finalize().into(),
                form: self.form.finalize().into(),
                tables: self.tables.finalize().into(),
                by_statements: self.by_statements,
                began,
                committed: self.committed,
                thread_id: self.thread_id,
                schemas: self.schemas,
            },
        }
    }

    fn statement(
        &mut self,
        header: &EventHeader,
        query: &Query<'_>,
        unpacked: Option<&[u8]>,
    ) -> Result<(), String> {
        let text = unpacked.unwrap_or(query.text);
        self.thread_id.get_or_insert(query.thread_id);
        let control = query.is_transaction_control();
        if control && !starts(text, b"XA") && !starts(text, b"ROLLBACK") {
            return Ok(()); // BEGIN and COMMIT stand for what the GTID event and XID say too.
        }
        let text = essence(text);
        if control || starts(text, b"XA END") {
            self.token(b'C', &[text]);
            self.change(beginning(text));
            return Ok(());
        }
        self.by_statements = true;
        if self.schemas.len() < SCHEMAS_MAX {
            let stated = header.flags & SUPPRESS_USE == 0 && !query.schema.is_empty();
            self.schemas.push(if stated { short(query.schema).max(1) } else { 0 });
        }
        // Why an ALTER in two phases has failed stands in the log of the source only.
        let is_taken_back = matches!(query.session.alter, Some(AlterPhase::Rollback(_)));
        let error_code = if is_taken_back { 0 } else { query.error_code };
        self.token(b'S', &[&header.timestamp.to_le_bytes(), &error_code.to_le_bytes(), text]);
        self.change(beginning(text));
        Ok(())
    }

    /// `Execute_load_query_event`: behind the 13 bytes of a QUERY event's post-header the file's number 4, the place of its name
    /// in the text 4 and 4, what to do with duplicates 1. The name is another one on each server.
    fn load(&mut self, header: &EventHeader, event: &[u8]) -> Result<(), String> {
        const CUT: &str = "an EXECUTE_LOAD_QUERY event is cut short";
        const POST_HEADER: std::ops::Range<usize> = HEADER_LEN + 13..HEADER_LEN + 26;
        let own = event.get(POST_HEADER).ok_or(CUT)?;
        let number =
            |at: usize| u32::from_le_bytes([own[at], own[at + 1], own[at + 2], own[at + 3]]) as usize;
        let as_query = [&event[..POST_HEADER.start], &event[POST_HEADER.end..]].concat();
        let query = Query::parse(&as_query).map_err(|error| error.to_string())?;
        let (before, after) = (query.text.get(..number(4)), query.text.get(number(8)..));
        let (before, after) = before.zip(after).ok_or(CUT)?;
        self.by_statements = true;
        self.thread_id.get_or_insert(query.thread_id);
        self.token(b'L', &[&header.timestamp.to_le_bytes(), before, after]);
        self.change(beginning(query.text));
        Ok(())
    }

    fn row_event(&mut self, event: &RowEvent<'_>) -> Result<(), String> {
        let (schema, table) = self.maps.get(&event.table).ok_or("a row event without its TABLE_MAP")?;
        let mut head = vec![event.kind];
        for name in [schema, table] {
            head.extend_from_slice(&(name.len() as u32).to_le_bytes());
            head.extend_from_slice(name);
        }
        head.extend_from_slice(&event.width.to_le_bytes());
        head.extend_from_slice(&event.columns);
        let lossy = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let change = format!("{}.{}", lossy(schema), lossy(table));
        self.rows(head, &event.rows, &change);
        Ok(())
    }

    fn rows(&mut self, head: Vec<u8>, bytes: &[u8], change: &str) {
        if self.rows.as_ref().is_none_or(|rows| rows.head != head) {
            self.end_rows();
            self.form.update((head.len() as u64).to_le_bytes());
            self.form.update(&head);
            self.tables.update(change.as_bytes());
            self.tables.update([0, head[0].to_ascii_uppercase()]);
            self.rows = Some(Rows { head, bytes: Sha256::new() });
            if !change.is_empty() {
                self.change(change.to_owned());
            }
        }
        if let Some(rows) = &mut self.rows {
            rows.bytes.update(bytes);
        }
    }

    fn end_rows(&mut self) {
        let Some(Rows { head, bytes }) = self.rows.take() else { return };
        let bytes: Hash = bytes.finalize().into();
        self.exact.update([b'R']);
        self.exact.update((head.len() as u64).to_le_bytes());
        self.exact.update(&head);
        self.exact.update(bytes);
    }

    /// Something that is no row: with its length, so that no two sequences of them give the same bytes.
    fn token(&mut self, kind: u8, parts: &[&[u8]]) {
        self.end_rows();
        self.form.update([kind]);
        self.exact.update([kind]);
        for part in parts {
            self.exact.update((part.len() as u64).to_le_bytes());
            self.exact.update(part);
        }
    }

    fn change(&mut self, change: String) {
        if self.changes.len() < CHANGES_SHOWN_MAX && !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }
}

fn short(bytes: &[u8]) -> u64 {
    let hash: Hash = Sha256::digest(bytes).into();
    u64::from_le_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]])
}

/// When the transaction of a GTID event was committed first. Of MySQL, behind flags 1, UUID 16, number 8 and the logical clock 17: seven
/// bytes when this server committed it, whose highest bit says that seven more follow with when the first one did
/// (`Gtid_event`, `control_events.h`).
fn original_commit(event_type: EventType, body: &[u8]) -> Option<u64> {
    let stamp = match event_type {
        // The walk over the file refuses one that cannot be decoded.
        EventType::GTID_TAGGED => decode_gtid_tagged_event(body).ok()?.original_commit_timestamp,
        EventType::GTID => {
            let stamps = body.get(42..)?;
            let number = |at: usize| -> Option<u64> {
                let bytes = stamps.get(at..at + 7)?;
                let mut number = [0; 8];
                number[..7].copy_from_slice(bytes);
                number[6] &= 0x7f;
                Some(u64::from_le_bytes(number))
            };
            let follows = stamps.get(6)? & 0x80 != 0;
            number(if follows { 7 } else { 0 })?
        }
        _ => return None,
    };
    Some(stamp).filter(|at| *at > 0)
}

#[cfg(test)]
mod tests;
