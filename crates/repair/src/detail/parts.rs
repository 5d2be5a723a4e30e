//! The parts of a transaction, in the order of the log.

use super::known::{Known, KnownTable};
use binlog::storage::ReadAt;
use codec::ServerKind;
use codec::event::{EventHeader, EventType, HEADER_LEN, RowChange, RowsEvent};
use codec::gtid::TransactionId;
use codec::rows::{Row, Rows, Table};
use codec::secrets::masked;
use points::transaction::Transaction;
use points::walk::events::{each_event, rows_of, statement_of};
use std::collections::HashMap;
use std::rc::Rc;

/// Longest event that is taken into memory, in bytes; those above are said to be there.
const OPENED_BYTES_MAX: usize = 256 << 20;

/// A part of a transaction.
#[derive(Debug)]
pub enum Part<'a> {
    /// A statement that does something.
    Statement {
        /// Default schema of its session; empty where none is stated.
        schema: String,
        /// Its text without secrets, as it may be shown: at most 64 KiB.
        text: String,
        /// All of it as it ran, secrets and all: to be read, never shown.
        raw: &'a str,
        /// Its rows follow: it stands in the log for people.
        is_for_people: bool,
    },
    /// A row of a table.
    Row {
        /// The table.
        table: &'a Rc<KnownTable>,
        /// What is done to it.
        change: RowChange,
        /// What foreign keys do to other rows because of it stands in the log too.
        has_cascades: bool,
        /// How it was, and how it became.
        row: Row<'a>,
    },
    /// Something that cannot be shown, and why.
    Unknown(String),
}

/// Gives the parts of one transaction of a file.
///
/// # Errors
/// In words, when the file cannot be read; what came before was given.
pub fn each_part(
    file: &dyn ReadAt,
    transaction: &Transaction,
    known: &mut Known,
    take: &mut dyn FnMut(Part<'_>),
) -> Result<(), String> {
    let server = match transaction.id {
        Some(TransactionId::Mariadb(_)) => ServerKind::MariaDb,
        _ => ServerKind::MySql,
    };
    let mut reading = Reading { server, tables: HashMap::new(), known, take };
    each_event(file, (transaction.at, transaction.end), OPENED_BYTES_MAX, &mut |header, event| {
        let bytes = header.event_size;
        let result = match event {
            Some(event) => reading.event(header, event),
            None => Err(format!("a {} event of {bytes} bytes is too large to be opened", header.event_type)),
        };
        if let Err(what) = result {
            (reading.take)(Part::Unknown(what));
        }
    })
    .map_err(|error| error.to_string())
}

struct Reading<'a> {
    server: ServerKind,
    tables: HashMap<[u8; 6], Result<Rc<KnownTable>, String>>,
    known: &'a mut Known,
    take: &'a mut dyn FnMut(Part<'_>),
}

impl Reading<'_> {
    fn event(&mut self, header: &EventHeader, event: &[u8]) -> Result<(), String> {
        let event_type = header.event_type;
        if event_type == EventType::TABLE_MAP {
            return self.table(event);
        }
        if let Some(rows) = RowsEvent::parse(event_type, event) {
            return self.rows(&rows.map_err(|error| error.to_string())?);
        }
        if let Some(statement) = statement_of(event_type, event, OPENED_BYTES_MAX)? {
            if !is_control(&statement.text) {
                let raw = String::from_utf8_lossy(&statement.text);
                (self.take)(Part::Statement {
                    schema: String::from_utf8_lossy(statement.schema).into_owned(),
                    text: masked(&statement.text),
                    raw: &raw,
                    is_for_people: statement.is_for_people,
                });
            }
            return Ok(());
        }
        match event_type {
            EventType::INCIDENT => {
                Err("the source says that something is missing here (INCIDENT)".to_owned())
            }
            EventType::INTVAR | EventType::RAND | EventType::USER_VAR => Err(format!(
                "the next statement depends on a value of its session ({event_type}); mysqlbinlog shows it"
            )),
            EventType::BEGIN_LOAD_QUERY | EventType::APPEND_BLOCK => Err(format!(
                "the next statement loads a file, which stands in the log ({event_type}) and is not shown"
            )),
            _ => Ok(()),
        }
    }

    fn table(&mut self, event: &[u8]) -> Result<(), String> {
        let id = *event
            .get(HEADER_LEN..)
            .and_then(|body| body.first_chunk::<6>())
            .ok_or("a TABLE_MAP event is cut short")?;
        let table = Table::parse(event, self.server)
            .map(|table| self.known.table(table))
            .map_err(|error| error.to_string());
        self.tables.insert(id, table);
        Ok(())
    }

    fn rows(&mut self, event: &RowsEvent<'_>) -> Result<(), String> {
        let Some(table) = self.tables.get(&event.table_id) else {
            // A number without a table ends a statement and has no rows.
            let is_empty = event.rows.is_empty();
            return if is_empty {
                Ok(())
            } else {
                Err("it holds a row event without its TABLE_MAP".to_owned())
            };
        };
        let table = table.as_ref().map_err(|why| format!("rows that cannot be read: {why}"))?;
        let shown = || format!("{}.{}", table.table.schema, table.table.name);
        let bytes = rows_of(event, OPENED_BYTES_MAX).map_err(|why| format!("rows of {}: {why}", shown()))?;
        // A server that says that they have no fractions has told.
        if self.server == ServerKind::MariaDb
            && table.definition.is_none()
            && !table.table.is_told(event, &bytes)
        {
            return Err(format!(
                "rows of {}: dates and times of MariaDB's old form (mysql56_temporal_format) may have fractions, whose length the log does \
                 not tell: they cannot be read unless a server says that they have none (--schema)",
                shown()
            ));
        }
        let rows = Rows::new(&table.table, event, &bytes)
            .map_err(|error| format!("rows of {}: {error}", shown()))?;
        for row in rows {
            let row = row.map_err(|error| format!("rows of {}: {error}", shown()))?;
            let (change, has_cascades) = (event.change, event.has_cascades);
            (self.take)(Part::Row { table, change, has_cascades, row });
        }
        Ok(())
    }
}

/// Whether a statement only begins or ends a transaction.
fn is_control(text: &[u8]) -> bool {
    matches!(text, b"BEGIN" | b"COMMIT")
}
