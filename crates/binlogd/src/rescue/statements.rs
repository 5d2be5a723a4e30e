//! The statements that make a server do one transaction again, under its own GTID.

use super::events::{Event, format_without_checksums, unpacked};
use super::session::Session;
use crate::log::transactions::StoredTransaction;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use codec::event::{EventType, HEADER_LEN, IntVar, Query, Rand, TableMap};
use codec::gtid::{MariadbGtid, TransactionId};

/// MariaDB's `FL_STANDALONE`: the transaction is one statement, without BEGIN.
const MARIADB_STANDALONE: u8 = 0x01;
/// MariaDB's `FL_PREPARED_XA` and `FL_COMPLETED_XA`.
const MARIADB_XA: u8 = 0x40 | 0x80;
/// `STMT_END_F` of a row event: the last of its statement.
const STATEMENT_END: u16 = 0x0001;

/// What a transaction changes, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// `schema.table` of each table whose rows are changed, in order of appearance; a statement that is no transaction control
    /// is shown by its beginning.
    pub(super) changes: Vec<String>,
    /// Seconds since 1970 at which it was begun.
    pub(super) timestamp: u32,
}

/// Makes statements of transactions for one session of the target.
#[derive(Debug, Default)]
pub(super) struct Translator {
    session: Session,
    /// The format description that the session was told last, as it stands in the file.
    format: Vec<u8>,
}

impl Translator {
    /// The statements of a transaction of a file with this format description, in order.
    ///
    /// # Errors
    /// What in it cannot be handed over by statements, in words.
    pub(super) fn statements(
        &mut self,
        transaction: &StoredTransaction,
        format_event: &[u8],
    ) -> Result<Vec<Vec<u8>>, String> {
        let id = transaction.id.ok_or("it has no GTID")?;
        let mut translation = Translation { out: Vec::new(), rows: Vec::new(), session: &mut self.session };
        if self.format != format_event {
            translation.out.push(binlog(&format_without_checksums(format_event)));
            self.format = format_event.to_vec();
        }
        translation.push(name_transaction(&id));
        for event in unpacked(transaction)? {
            translation.event(&event)?;
        }
        if !translation.rows.is_empty() {
            return Err("its last rows lack the mark of a statement's end".to_owned());
        }
        if matches!(id, TransactionId::Mysql(_)) {
            translation.push("SET @@session.gtid_next = 'AUTOMATIC'");
        }
        Ok(translation.out)
    }
}

/// What a transaction changes.
pub(super) fn summary(transaction: &StoredTransaction) -> Result<Summary, String> {
    let mut summary = Summary {
        timestamp: transaction.events.first().map_or(0, |event| event.header.timestamp),
        ..Summary::default()
    };
    for event in unpacked(transaction)? {
        let change = match event.header.event_type {
            EventType::TABLE_MAP => {
                let map = TableMap::parse(&event.bytes).map_err(|error| error.to_string())?;
                let text = |name| String::from_utf8_lossy(name).into_owned();
                format!("{}.{}", text(map.schema), text(map.table))
            }
            EventType::QUERY => {
                let query = Query::parse(&event.bytes).map_err(|error| error.to_string())?;
                if query.is_transaction_control() {
                    continue;
                }
                beginning(query.text)
            }
            _ => continue,
        };
        if !summary.changes.contains(&change) {
            summary.changes.push(change);
        }
    }
    Ok(summary)
}

/// The beginning of a statement, on one line.
fn beginning(text: &[u8]) -> String {
    const CHARACTERS: usize = 60;
    let text = String::from_utf8_lossy(text);
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(CHARACTERS) {
        words.truncate(end);
        words.push('…');
    }
    words
}

/// MySQL names the next transaction by `gtid_next`, MariaDB by its three parts.
fn name_transaction(id: &TransactionId) -> String {
    match id {
        TransactionId::Mysql(gtid) => format!("SET @@session.gtid_next = '{gtid}'"),
        TransactionId::Mariadb(MariadbGtid { domain, server_id, sequence }) => format!(
            "SET @@session.gtid_domain_id = {domain}, @@session.server_id = {server_id}, \
             @@session.gtid_seq_no = {sequence}"
        ),
    }
}

/// `BINLOG '…'` of one or more events.
fn binlog(events: &[u8]) -> Vec<u8> {
    format!("BINLOG '{}'", STANDARD.encode(events)).into_bytes()
}

struct Translation<'a> {
    out: Vec<Vec<u8>>,
    /// Table maps and row events of a statement that has not ended yet. A server closes its tables at the end of each BINLOG
    /// statement, so one of them must hold a whole statement of the source.
    rows: Vec<u8>,
    session: &'a mut Session,
}

impl Translation<'_> {
    fn push(&mut self, statement: impl Into<String>) {
        self.out.push(statement.into().into_bytes());
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        let malformed = |error: codec::event::EventError| error.to_string();
        match event.header.event_type {
            EventType::GTID | EventType::GTID_TAGGED => {}
            EventType::MARIADB_GTID => self.begin_mariadb(event)?,
            EventType::QUERY => {
                let query = Query::parse(&event.bytes).map_err(malformed)?;
                if query.error_code != 0 {
                    return Err(format!(
                        "a statement in it ended with error {} on the source, half done: {}",
                        query.error_code,
                        beginning(query.text)
                    ));
                }
                self.out.extend(self.session.before(&event.header, &query));
                self.out.push(query.text.to_vec());
            }
            EventType::XID => self.push("COMMIT"),
            EventType::XA_PREPARE => self.push(xa_prepare(&event.bytes)?),
            EventType::INTVAR => match IntVar::parse(&event.bytes).map_err(malformed)? {
                IntVar::LastInsertId(value) => self.push(format!("SET LAST_INSERT_ID = {value}")),
                IntVar::InsertId(value) => self.push(format!("SET INSERT_ID = {value}")),
            },
            EventType::RAND => {
                let Rand(first, second) = Rand::parse(&event.bytes).map_err(malformed)?;
                self.push(format!("SET @@session.rand_seed1 = {first}, @@session.rand_seed2 = {second}"));
            }
            EventType::TABLE_MAP => self.rows.extend_from_slice(&event.bytes),
            event_type if is_rows(event_type) => {
                self.rows.extend_from_slice(&event.bytes);
                if row_flags(&event.bytes)? & STATEMENT_END != 0 {
                    let rows = std::mem::take(&mut self.rows);
                    self.out.push(binlog(&rows));
                }
            }
            // For people, and for group replication's own use.
            EventType::ROWS_QUERY
            | EventType::MARIADB_ANNOTATE_ROWS
            | EventType::IGNORABLE
            | EventType::TRANSACTION_CONTEXT
            | EventType::VIEW_CHANGE => {}
            other => return Err(format!("it holds a {other} event, which no statement can express")),
        }
        Ok(())
    }

    /// In MariaDB the GTID event stands for the BEGIN.
    fn begin_mariadb(&mut self, event: &Event) -> Result<(), String> {
        let flags = *event.bytes.get(HEADER_LEN + 12).ok_or("its GTID event is cut short")?;
        if flags & MARIADB_XA != 0 {
            return Err(
                "it is part of an XA transaction, which MariaDB takes from replication only".to_owned()
            );
        }
        if flags & MARIADB_STANDALONE == 0 {
            self.out.extend(self.session.at_time(event.header.timestamp, None));
            self.push("START TRANSACTION");
        }
        Ok(())
    }
}

fn is_rows(event_type: EventType) -> bool {
    matches!(
        event_type,
        EventType::WRITE_ROWS
            | EventType::UPDATE_ROWS
            | EventType::DELETE_ROWS
            | EventType::PARTIAL_UPDATE_ROWS
            | EventType::WRITE_ROWS_V1
            | EventType::UPDATE_ROWS_V1
            | EventType::DELETE_ROWS_V1
    )
}

/// The flags behind the table id of six bytes (`Rows_event`, `rows_event.h`).
fn row_flags(event: &[u8]) -> Result<u16, String> {
    let flags = event.get(HEADER_LEN + 6..HEADER_LEN + 8).ok_or("a row event is cut short")?;
    Ok(u16::from_le_bytes([flags[0], flags[1]]))
}

/// The statement of an XA_PREPARE event (`XA_prepare_event`, `control_events.h`): one-phase flag 1, format id 4, lengths of
/// the two parts of the name 4 and 4, the name.
fn xa_prepare(event: &[u8]) -> Result<String, String> {
    let cut = || "an XA_PREPARE event is cut short".to_owned();
    let body = event.get(HEADER_LEN..).filter(|body| body.len() >= 13).ok_or_else(cut)?;
    let number = |at: usize| u32::from_le_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
    let global = body.get(13..).and_then(|rest| rest.get(..number(5) as usize)).ok_or_else(cut)?;
    let branch = body[13 + global.len()..].get(..number(9) as usize).ok_or_else(cut)?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let name = format!("X'{}',X'{}',{}", hex(global), hex(branch), number(1));
    Ok(if body[0] != 0 { format!("XA COMMIT {name} ONE PHASE") } else { format!("XA PREPARE {name}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::transactions::StoredEvent;
    use codec::event::EventHeader;

    fn event(code: u8, body: &[u8]) -> StoredEvent {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[0] = 100;
        bytes[4] = code;
        bytes[9..13].copy_from_slice(&((HEADER_LEN + body.len()) as u32).to_le_bytes());
        bytes.extend_from_slice(body);
        StoredEvent { header: EventHeader::parse(&bytes).unwrap(), bytes }
    }

    fn query(schema: &str, text: &str) -> StoredEvent {
        let mut body = vec![0; 8];
        body.push(schema.len() as u8);
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(schema.as_bytes());
        body.push(0);
        body.extend_from_slice(text.as_bytes());
        event(2, &body)
    }

    fn rows(flags: u8, data: &str) -> StoredEvent {
        event(30, &[&[1, 0, 0, 0, 0, 0, flags, 0][..], data.as_bytes()].concat())
    }

    fn map(schema: &str, table: &str) -> StoredEvent {
        let names =
            [&[schema.len() as u8][..], schema.as_bytes(), &[0, table.len() as u8], table.as_bytes(), &[0]];
        event(19, &[&[1, 0, 0, 0, 0, 0, 1, 0][..], &names.concat()].concat())
    }

    fn mysql(events: Vec<StoredEvent>) -> StoredTransaction {
        let id = "3e11fa47-71ca-11e1-9e33-c80aa9429562:7".parse::<codec::gtid::Gtid>().unwrap().into();
        StoredTransaction { id: Some(id), at: 4, end: 500, events }
    }

    /// A format description with a checksum, as a file has it.
    fn format_event() -> Vec<u8> {
        let builder = crate::log::recover::test_files::FileBuilder::new();
        let file = builder.finish();
        let size = u32::from_le_bytes([file[13], file[14], file[15], file[16]]) as usize;
        file[4..4 + size].to_vec()
    }

    fn told(translator: &mut Translator, transaction: &StoredTransaction) -> Vec<String> {
        let statements = translator.statements(transaction, &format_event()).unwrap();
        statements.into_iter().map(|statement| String::from_utf8(statement).unwrap()).collect()
    }

    #[test]
    fn rows_go_over_a_statement_at_a_time_under_their_gtid() {
        let transaction = mysql(vec![
            query("", "BEGIN"),
            map("shop", "orders"),
            rows(0, "a"),
            rows(1, "b"),
            map("shop", "lines"),
            rows(1, "c"),
            event(16, &[0; 8]),
        ]);
        let mut translator = Translator::default();
        let told = told(&mut translator, &transaction);
        assert!(told[0].starts_with("BINLOG '"), "the format first: {}", told[0]);
        assert_eq!(told[1], "SET @@session.gtid_next = '3e11fa47-71ca-11e1-9e33-c80aa9429562:7'");
        assert!(
            told[2].starts_with("SET @@session.pseudo_thread_id") && told[3].starts_with("SET TIMESTAMP")
        );
        assert_eq!(told[4], "BEGIN");
        let first = [map("shop", "orders"), rows(0, "a"), rows(1, "b")].map(|event| event.bytes).concat();
        assert_eq!(told[5], format!("BINLOG '{}'", STANDARD.encode(first)));
        assert!(told[6].starts_with("BINLOG '"));
        assert_eq!(told[7..], ["COMMIT", "SET @@session.gtid_next = 'AUTOMATIC'"]);
        let again = self::told(&mut translator, &transaction);
        assert!(again[0].starts_with("SET @@session.gtid_next"), "the format is told once");
        let summary = summary(&transaction).unwrap();
        assert_eq!(
            (summary.changes, summary.timestamp),
            (vec!["shop.orders".into(), "shop.lines".into()], 100)
        );
    }

    #[test]
    fn statements_go_over_as_text() {
        let transaction = mysql(vec![query("shop", "CREATE TABLE  t\n(id INT)")]);
        let told = told(&mut Translator::default(), &transaction);
        assert_eq!(told[2], "USE `shop`");
        assert_eq!(told[5], "CREATE TABLE  t\n(id INT)");
        assert_eq!(summary(&transaction).unwrap().changes, ["CREATE TABLE t (id INT)"]);
        let values = mysql(vec![
            query("", "BEGIN"),
            event(5, &[2, 9, 0, 0, 0, 0, 0, 0, 0]),
            event(13, &[[1, 0, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0]].concat()),
            query("shop", "INSERT INTO t VALUES (NULL, RAND())"),
        ]);
        let told = self::told(&mut Translator::default(), &values);
        assert!(told.contains(&"SET INSERT_ID = 9".to_owned()));
        assert!(told.contains(&"SET @@session.rand_seed1 = 1, @@session.rand_seed2 = 2".to_owned()));
    }

    #[test]
    fn mariadb_transactions_begin_with_their_gtid_event() {
        let gtid = |flags: u8| {
            event(162, &[&[5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0][..], &[flags, 0, 0, 0, 0, 0, 0]].concat())
        };
        let id = TransactionId::Mariadb(MariadbGtid { domain: 2, server_id: 3, sequence: 5 });
        let of = |events| StoredTransaction { id: Some(id), at: 4, end: 500, events };
        let changed = told(
            &mut Translator::default(),
            &of(vec![gtid(4), map("d", "t"), rows(1, "a"), event(16, &[0; 8])]),
        );
        assert_eq!(
            changed[1],
            "SET @@session.gtid_domain_id = 2, @@session.server_id = 3, @@session.gtid_seq_no = 5"
        );
        assert_eq!((changed[3].as_str(), changed.last().unwrap().as_str()), ("START TRANSACTION", "COMMIT"));
        assert_eq!(changed[2], "SET TIMESTAMP = 100");
        let standalone = told(&mut Translator::default(), &of(vec![gtid(1), query("d", "DROP TABLE t")]));
        assert!(!standalone.contains(&"START TRANSACTION".to_owned()));
        let xa = Translator::default().statements(&of(vec![gtid(0x40)]), &format_event());
        assert!(xa.unwrap_err().contains("XA transaction"));
    }

    #[test]
    fn what_statements_cannot_express_is_refused() {
        let refused = |events| Translator::default().statements(&mysql(events), &format_event()).unwrap_err();
        assert!(refused(vec![event(18, &[0; 30])]).contains("EXECUTE_LOAD_QUERY"));
        assert!(refused(vec![map("d", "t"), rows(0, "never ended")]).contains("mark of a statement's end"));
        let mut failed = query("d", "INSERT INTO t VALUES (1), (1)");
        failed.bytes[HEADER_LEN + 9] = 38;
        assert!(refused(vec![failed]).contains("error 38"));
        let anonymous = StoredTransaction { id: None, ..mysql(vec![]) };
        assert!(
            Translator::default().statements(&anonymous, &format_event()).unwrap_err().contains("no GTID")
        );
    }

    #[test]
    fn xa_names_are_read() {
        let body = [&[0][..], &7u32.to_le_bytes(), &2u32.to_le_bytes(), &1u32.to_le_bytes(), b"abc"].concat();
        assert_eq!(xa_prepare(&event(38, &body).bytes).unwrap(), "XA PREPARE X'6162',X'63',7");
        assert!(xa_prepare(&event(38, &body[..15]).bytes).is_err());
        let one_phase = [&[1][..], &body[1..]].concat();
        assert_eq!(xa_prepare(&event(38, &one_phase).bytes).unwrap(), "XA COMMIT X'6162',X'63',7 ONE PHASE");
    }
}
