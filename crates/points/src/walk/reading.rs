//! What the events of a transaction say, gathered.

use super::packed::{Section, Unpacker};
use super::tables::Tables;
use super::window::Window;
use crate::effects::Effects;
use crate::statement::{Statement, classify};
use crate::table::{RowCounts, TableName};
use crate::transaction::{CommitTime, TableChange, Transaction};
use binlog::forks::fingerprint::unpacked::mariadb_unpacked;
use codec::event::{
    AlterPhase, EventHeader, EventType, GtidEvent, HEADER_LEN, MariadbGtidDetails, PayloadHead, RowChange,
    RowsEvent, TransactionPayload, XaPrepare, query_text, session_of,
};
use codec::gtid::TransactionId;
use codec::rows::Charset;
use std::io::BufReader;
use std::sync::Arc;

/// So many tables of a transaction are told.
const TABLES_MAX: usize = 1024;

/// So many statements of a transaction are told.
const STATEMENTS_MAX: usize = 16;

/// Where a QUERY event states the lengths of the schema's name and of the status variables.
const SCHEMA_LEN_AT: usize = HEADER_LEN + 8;
const STATUS_LEN_AT: usize = HEADER_LEN + 11;

/// Gathers one transaction after another.
pub(super) struct Reading {
    pub(super) transaction: Transaction,
    /// The number of the transaction, for [`slot`](super::tables::MappedTable::slot).
    number: u64,
    tables: Tables,
    unpacker: Unpacker,
    opened_bytes_max: usize,
    text: Option<Vec<u8>>,
    /// Header time of the last event.
    last: u32,
}

impl Reading {
    pub(super) fn new(opened_bytes_max: usize, text: Option<Vec<u8>>) -> Reading {
        Reading {
            transaction: Transaction::default(),
            number: 0,
            tables: Tables::default(),
            unpacker: Unpacker::default(),
            opened_bytes_max,
            text: text.filter(|text| !text.is_empty()),
            last: 0,
        }
    }

    /// A transaction begins.
    pub(super) fn begin(&mut self, at: u64) {
        self.transaction.clear();
        (self.transaction.at, self.last) = (at, 0);
        self.number += 1;
        self.tables.begin();
    }

    /// It has ended.
    pub(super) fn end(&mut self) {
        let transaction = &mut self.transaction;
        if !transaction.committed.is_exact {
            let micros = i64::from(self.last) * 1_000_000;
            transaction.committed = CommitTime { micros, is_exact: false };
        }
    }

    /// Takes a whole event of it, without its checksum.
    pub(super) fn event(&mut self, header: &EventHeader, event: &[u8], at: u64) {
        if let Err(what) = self.take(header, event, at) {
            self.unread(what);
        }
    }

    /// A part of it cannot be looked at.
    fn unread(&mut self, what: String) {
        self.transaction.unread.get_or_insert(what);
    }

    /// Takes the beginning of an event that is not taken into memory.
    pub(super) fn too_large(&mut self, header: &EventHeader, head: &[u8], at: u64) {
        self.time(header);
        let event_type = header.event_type;
        let bytes = header.event_size;
        self.unread(format!("it holds a {event_type} event of {bytes} bytes, too large to be opened"));
        match event_type {
            EventType::QUERY => drop(self.query(head, at)),
            EventType::ROWS_QUERY | EventType::MARIADB_ANNOTATE_ROWS => self.for_people(event_type, head, at),
            _ => {
                if let Some(Ok(rows)) = RowsEvent::parse(event_type, head) {
                    self.rows(&rows, None);
                }
            }
        }
    }

    /// Takes a packed transaction that is not taken into memory.
    pub(super) fn packed_in_file(&mut self, window: &Window<'_>, head: &PayloadHead, at: u64, end: u64) {
        let section = Section { file: window.file(), at: at + head.payload_at as u64, end };
        self.packed(head.compression, BufReader::new(section), at);
    }

    fn packed(
        &mut self,
        compression: codec::event::PayloadCompression,
        payload: impl std::io::BufRead,
        at: u64,
    ) {
        self.transaction.is_packed = true;
        let mut unpacker = std::mem::take(&mut self.unpacker);
        let unpacked =
            unpacker.each(compression, payload, self.opened_bytes_max, &mut |header, event, is_whole| {
                if header.event_type == EventType::TRANSACTION_PAYLOAD {
                    self.unread("it holds a packed transaction inside a packed transaction".to_owned());
                } else if is_whole {
                    self.event(header, event, at);
                } else {
                    self.too_large(header, event, at);
                }
            });
        self.unpacker = unpacker;
        if let Err(what) = unpacked {
            self.unread(what);
        }
    }

    fn time(&mut self, header: &EventHeader) {
        if header.timestamp != 0 {
            self.last = header.timestamp;
            if self.transaction.began == 0 || header.timestamp < self.transaction.began {
                self.transaction.began = header.timestamp;
            }
        }
    }

    fn take(&mut self, header: &EventHeader, event: &[u8], at: u64) -> Result<(), String> {
        let event_type = header.event_type;
        if GtidEvent::is_gtid(event_type) {
            return self.gtid(header, event);
        }
        self.time(header);
        match event_type {
            EventType::XID => {}
            EventType::TABLE_MAP => self.tables.map(event).map_err(|error| error.to_string())?,
            EventType::QUERY => self.query(event, at)?,
            EventType::MARIADB_QUERY_COMPRESSED => self.packed_query(event, at)?,
            EventType::EXECUTE_LOAD_QUERY => self.load_query(event, at)?,
            EventType::ROWS_QUERY | EventType::MARIADB_ANNOTATE_ROWS => {
                self.for_people(event_type, event, at)
            }
            EventType::XA_PREPARE => {
                let prepare = XaPrepare::parse(event).map_err(|error| error.to_string())?;
                self.transaction.xid = Some(prepare.xid.to_string());
                if !prepare.one_phase {
                    self.transaction.effects |= Effects::XA_PREPARE;
                }
            }
            EventType::INCIDENT => self.transaction.is_incident = true,
            EventType::TRANSACTION_PAYLOAD => {
                let payload = TransactionPayload::parse(event).map_err(|error| error.to_string())?;
                self.packed(payload.compression, payload.payload, at);
            }
            _ => {
                if let Some(rows) = RowsEvent::parse(event_type, event) {
                    let rows = rows.map_err(|error| error.to_string())?;
                    self.whole_rows(&rows)?;
                }
            }
        }
        Ok(())
    }

    fn gtid(&mut self, header: &EventHeader, event: &[u8]) -> Result<(), String> {
        let gtid = GtidEvent::parse(header, event).map_err(|error| error.to_string())?;
        let transaction = &mut self.transaction;
        transaction.id = gtid.id;
        transaction.server_id = header.server_id;
        if let Some(micros) = GtidEvent::commit_time(header, event) {
            transaction.committed = CommitTime { micros, is_exact: true };
        }
        if header.event_type == EventType::MARIADB_GTID {
            let details = MariadbGtidDetails::parse(event).map_err(|error| error.to_string())?;
            if let Some(xid) = details.prepared_xa {
                transaction.xid = Some(xid.to_string());
                transaction.effects |= Effects::XA_PREPARE;
            }
        }
        self.last = header.timestamp;
        Ok(())
    }

    fn whole_rows(&mut self, rows: &RowsEvent<'_>) -> Result<(), String> {
        if !rows.is_compressed {
            self.rows(rows, Some(rows.rows));
            return Ok(());
        }
        let most = self.opened_bytes_max as u64;
        match mariadb_unpacked(rows.rows, most + 1) {
            Ok(unpacked) if unpacked.len() as u64 <= most => {
                self.rows(rows, Some(&unpacked));
                Ok(())
            }
            Ok(_) => {
                self.rows(rows, None);
                Err("it holds compressed rows too large to be opened".to_owned())
            }
            Err(what) => {
                self.rows(rows, None);
                Err(what)
            }
        }
    }

    /// Counts rows, `None` for those that cannot be looked at.
    fn rows(&mut self, event: &RowsEvent<'_>, rows: Option<&[u8]>) {
        let transaction = &mut self.transaction;
        let effect = match event.change {
            RowChange::Written => Effects::INSERT,
            RowChange::Updated => Effects::UPDATE,
            RowChange::Deleted => Effects::DELETE,
        };
        transaction.effects |= effect;
        // A number without a table ends a statement and has no rows.
        let Some(table) = self.tables.get(&event.table_id) else {
            if rows.is_none_or(|rows| !rows.is_empty()) {
                self.unread("it holds a row event without its TABLE_MAP".to_owned());
            }
            return;
        };
        let is_mariadb = matches!(transaction.id, Some(TransactionId::Mariadb(_)));
        let count = rows.and_then(|rows| {
            let images = table.images.as_ref()?;
            if is_mariadb && !event.is_told(images, rows) { None } else { event.count(images, rows) }
        });
        let mut counts = RowCounts { has_unknown: count.is_none(), ..RowCounts::default() };
        let of_change = match event.change {
            RowChange::Written => &mut counts.written,
            RowChange::Updated => &mut counts.updated,
            RowChange::Deleted => &mut counts.deleted,
        };
        *of_change = count.unwrap_or(0);
        if table.slot.0 == self.number
            && transaction.tables.get(table.slot.1).is_some_and(|one| one.name == table.name)
        {
            transaction.tables[table.slot.1].rows.add(&counts);
            transaction.tables[table.slot.1].effects |= effect;
            return;
        }
        let name = table.name.clone();
        if let Some(slot) = change(transaction, name, &counts, effect) {
            table.slot = (self.number, slot);
        }
    }

    fn query(&mut self, event: &[u8], at: u64) -> Result<(), String> {
        const CUT: &str = "a QUERY event is cut short";
        let text = query_text(event).ok_or(CUT)?;
        let schema = schema_of(event).ok_or(CUT)?;
        self.statement(event, schema, text, at, 0);
        Ok(())
    }

    fn packed_query(&mut self, event: &[u8], at: u64) -> Result<(), String> {
        const CUT: &str = "a QUERY_COMPRESSED event is cut short";
        let packed = query_text(event).ok_or(CUT)?;
        let schema = schema_of(event).ok_or(CUT)?;
        let most = self.opened_bytes_max as u64;
        let text = mariadb_unpacked(packed, most + 1)?;
        self.statement(event, schema, &text, at, 0);
        if text.len() as u64 > most {
            return Err("it holds a compressed statement too large to be opened".to_owned());
        }
        Ok(())
    }

    fn load_query(&mut self, event: &[u8], at: u64) -> Result<(), String> {
        const CUT: &str = "an EXECUTE_LOAD_QUERY event is cut short";
        let (schema, text) = load_query(event).ok_or(CUT)?;
        self.statement(event, schema, text, at, LOAD_BYTES);
        Ok(())
    }

    fn statement(&mut self, event: &[u8], schema: &[u8], text: &[u8], at: u64, own_bytes: usize) {
        if let Some(thread) = event.get(HEADER_LEN..).and_then(|body| body.first_chunk::<4>()) {
            self.transaction.thread.get_or_insert(u32::from_le_bytes(*thread));
        }
        // Most are these.
        if text == b"BEGIN" || text == b"COMMIT" {
            return;
        }
        let Session { client, alter } = Session::of(event, own_bytes);
        let text = &*client.to_utf8(text);
        let mut classified = classify(text, schema);
        match alter {
            None | Some(AlterPhase::Commit(_)) => {}
            // The half that is done is the definition; this one stands in the log beside it.
            Some(AlterPhase::Start) => classified.effects = Effects::ALTER_START,
            Some(AlterPhase::Rollback(_)) => classified.effects = Effects::ALTER_ROLLBACK,
        }
        if classified.effects == Effects::NONE {
            return;
        }
        let has_unknown_name = |name: &TableName| name.table.contains('\u{fffd}');
        if classified.targets.iter().any(has_unknown_name) {
            self.unread("a statement names a table in a character set that is not read here".to_owned());
        }
        self.transaction.effects |= classified.effects;
        if classified.effects.intersects(Effects::XA_COMMIT | Effects::XA_ROLLBACK) {
            self.transaction.xid = xid_of(text);
        }
        let changes_rows = classified.effects.intersects(Effects::STATEMENT);
        let counts = RowCounts { has_unknown: changes_rows, ..RowCounts::default() };
        for name in classified.targets {
            change(&mut self.transaction, Arc::new(name), &counts, classified.effects);
        }
        self.keep(Statement::new(at, false, schema, text), text);
    }

    /// ROWS_QUERY has a byte before its text that counts for nothing.
    fn for_people(&mut self, event_type: EventType, event: &[u8], at: u64) {
        let before = usize::from(event_type == EventType::ROWS_QUERY);
        let text = event.get(HEADER_LEN + before..).unwrap_or_default();
        if self.text.is_none() && self.transaction.statements.len() >= STATEMENTS_MAX {
            self.transaction.has_more_statements = true;
            return;
        }
        self.keep(Statement::new(at, true, b"", text), text);
    }

    fn keep(&mut self, statement: Statement, text: &[u8]) {
        let is_found = self.text.as_ref().is_some_and(|wanted| holds(text, wanted));
        let transaction = &mut self.transaction;
        if transaction.statements.len() < STATEMENTS_MAX {
            transaction.statements.push(statement);
        } else {
            transaction.has_more_statements = true;
            // What was looked for is shown.
            if is_found && !transaction.has_text {
                transaction.statements[STATEMENTS_MAX - 1] = statement;
            }
        }
        transaction.has_text |= is_found;
    }
}

/// Adds to a table's rows, and says where it stands in the list; `None` where the list is full.
fn change(
    transaction: &mut Transaction,
    name: Arc<TableName>,
    counts: &RowCounts,
    effects: Effects,
) -> Option<usize> {
    let known = transaction.tables.iter().position(|table| table.name == name);
    if let Some(slot) = known {
        transaction.tables[slot].rows.add(counts);
        transaction.tables[slot].effects |= effects;
        return Some(slot);
    }
    if transaction.tables.len() >= TABLES_MAX {
        transaction.has_more_tables = true;
        return None;
    }
    transaction.tables.push(TableChange { name, rows: *counts, effects });
    Some(transaction.tables.len() - 1)
}

/// What of a statement's session tells how to read it.
#[derive(Clone, Copy)]
pub(super) struct Session {
    /// The character set of its text (`character_set_client`); names of schemas are in UTF-8.
    pub(super) client: Charset,
    alter: Option<AlterPhase>,
}

impl Session {
    /// Of an event with so many bytes between the fixed part of a QUERY and its status variables.
    pub(super) fn of(event: &[u8], own_bytes: usize) -> Session {
        let moved;
        let event = match event.split_at_checked(HEADER_LEN + 13).filter(|_| own_bytes > 0) {
            None => event,
            Some((fixed, rest)) => {
                moved = [fixed, rest.get(own_bytes..).unwrap_or_default()].concat();
                &moved
            }
        };
        // Without a word it is taken for UTF-8, as most are.
        let session = session_of(event).unwrap_or_default();
        let client =
            session.character_sets.map_or(Charset::Utf8, |(client, ..)| Charset::of_collation(client.into()));
        Session { client, alter: session.alter }
    }
}

/// Bytes that an EXECUTE_LOAD_QUERY event (`Execute_load_query_event`) has more in its post-header than a QUERY.
pub(super) const LOAD_BYTES: usize = 13;

/// Schema and text of an EXECUTE_LOAD_QUERY event.
pub(super) fn load_query(event: &[u8]) -> Option<(&[u8], &[u8])> {
    let schema_len = usize::from(*event.get(SCHEMA_LEN_AT)?);
    let schema_at = schema_at(event)? + LOAD_BYTES;
    Some((event.get(schema_at..schema_at + schema_len)?, event.get(schema_at + schema_len + 1..)?))
}

fn schema_at(event: &[u8]) -> Option<usize> {
    let status_len = event.get(STATUS_LEN_AT..)?.first_chunk::<2>()?;
    Some(HEADER_LEN + 13 + usize::from(u16::from_le_bytes(*status_len)))
}

pub(super) fn schema_of(event: &[u8]) -> Option<&[u8]> {
    let len = usize::from(*event.get(SCHEMA_LEN_AT)?);
    let at = schema_at(event)?;
    event.get(at..at + len)
}

/// `X'…',X'…',1` of `XA COMMIT X'…',X'…',1`.
fn xid_of(text: &[u8]) -> Option<String> {
    const SHOWN_MAX: usize = 512;
    let text = std::str::from_utf8(text.get(..text.len().min(SHOWN_MAX))?).ok()?;
    text.split_ascii_whitespace().nth(2).map(str::to_owned)
}

/// Whether `wanted`, in lower case, stands in a text in any case.
fn holds(text: &[u8], wanted: &[u8]) -> bool {
    let Some(first) = wanted.first() else { return true };
    let mut rest = text;
    while rest.len() >= wanted.len() {
        let Some(at) = rest.iter().position(|byte| byte.to_ascii_lowercase() == *first) else { return false };
        rest = &rest[at..];
        if rest.len() >= wanted.len() && rest[..wanted.len()].eq_ignore_ascii_case(wanted) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_in_any_case() {
        assert!(holds(b"DELETE FROM Orders", b"from ord") && holds(b"aab", b"ab") && holds(b"x", b""));
        assert!(!holds(b"DELETE", b"deleted") && !holds(b"", b"a") && !holds(b"aaaa", b"ab"));
    }

    #[test]
    fn the_identifier_of_an_xa_transaction_is_read() {
        assert_eq!(xid_of(b"XA COMMIT X'31',X'',1").as_deref(), Some("X'31',X'',1"));
        assert_eq!(xid_of(b"XA COMMIT"), None);
    }
}
