//! The statements that make a server do one transaction again, under its own GTID or a new one.

pub(in crate::rescue) mod events;
pub(in crate::rescue) mod session;
pub(in crate::rescue) mod xa;

use crate::rescue::statements::events::{Event, format_without_checksums, unpacked};
use crate::rescue::statements::session::Session;
use crate::rescue::statements::xa::{XaStatement, prepare_statement};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
pub(super) use binlog::forks::fingerprint::beginning;
use binlog::forks::transactions::StoredTransaction;
use codec::ServerKind;
use codec::event::{AlterPhase, EventType, HEADER_LEN, IntVar, Query, Rand, TableMap};
use codec::gtid::{MariadbGtid, TransactionId};
use points::statement::first_words;

/// MariaDB's `FL_STANDALONE`: the transaction is one statement, without BEGIN.
const MARIADB_STANDALONE: u8 = 0x01;
/// MariaDB's `FL_PREPARED_XA` and `FL_COMPLETED_XA`.
const MARIADB_XA: u8 = 0x40 | 0x80;
/// `STMT_END_F` of a row event: the last of its statement.
const STATEMENT_END: u16 = 0x0001;

/// MySQL gives the next transaction a GTID itself.
const GTID_AUTOMATIC: &[u8] = b"SET @@session.gtid_next = 'AUTOMATIC'";

/// What a transaction changes, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// `schema.table` of each table whose rows are changed, in order of appearance; a statement that is no transaction control
    /// is shown by its beginning.
    pub(super) changes: Vec<String>,
    /// Seconds since 1970 at which it was begun.
    pub(super) timestamp: u32,
    /// The XA statement that it ends with. It stands among the changes too, and is there not said of what.
    pub(super) xa: Option<XaStatement>,
}

/// Makes statements of transactions for one session of the target.
#[derive(Debug, Default)]
pub struct Translator {
    session: Session,
    /// The format description that the session was told last, as it stands in the file.
    format: Vec<u8>,
    /// The server gives each transaction a GTID.
    new_gtids: bool,
    /// The account of the session, as CURRENT_USER() has it; empty where it is not known.
    account: String,
}

impl Translator {
    /// One whose transactions get new GTIDs from the server.
    pub(super) fn without_gtids() -> Translator {
        Translator { new_gtids: true, ..Translator::default() }
    }

    /// One for the session of that account.
    pub(super) fn of_account(account: &str) -> Translator {
        Translator { account: account.to_owned(), ..Translator::default() }
    }

    /// The statements of a transaction of a file with this format description, in order.
    ///
    /// # Errors
    /// What in it cannot be handed over by statements, in words.
    pub fn statements(
        &mut self,
        transaction: &StoredTransaction,
        format_event: &[u8],
    ) -> Result<Vec<Vec<u8>>, String> {
        let id = transaction.id.ok_or("it has no GTID")?;
        let mut translation = Translation {
            kind: id.kind(),
            out: Vec::new(),
            rows: Vec::new(),
            grouped: false,
            session: &mut self.session,
            account: &self.account,
        };
        if self.format != format_event {
            // Between two transactions MySQL takes no other statement while the GTID of the first is still named.
            if matches!(id, TransactionId::Mysql(_)) {
                translation.out.push(GTID_AUTOMATIC.to_vec());
            }
            translation.out.push(binlog(&format_without_checksums(format_event)));
            self.format = format_event.to_vec();
        }
        if !self.new_gtids {
            translation.push(name_transaction(&id));
        } else if matches!(id, TransactionId::Mysql(_)) {
            // Behind a format description MySQL expects the GTID of the log, and takes what comes for a transaction without one.
            translation.out.push(GTID_AUTOMATIC.to_vec());
        }
        for event in unpacked(transaction)? {
            translation.event(&event)?;
        }
        if !translation.rows.is_empty() {
            return Err("its last rows lack the mark of a statement's end".to_owned());
        }
        Ok(translation.out)
    }

    /// What must follow the last transaction, before anything else is asked in the session: MySQL wants to be told a GTID, or
    /// that it shall give one itself.
    pub(super) fn end(&self, kind: ServerKind) -> Option<&'static [u8]> {
        (kind == ServerKind::MySql).then_some(GTID_AUTOMATIC)
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
                match XaStatement::parse(query.text) {
                    Some(xa) if xa.is_mark() => continue,
                    Some(xa) => summary.xa.insert(xa).shown(),
                    None if query.is_transaction_control() => continue,
                    None => in_its_phase(&query),
                }
            }
            EventType::EXECUTE_LOAD_QUERY => {
                load_query_text(&event.bytes).map_or("LOAD DATA".to_owned(), beginning)
            }
            EventType::XA_PREPARE => {
                let Some(xa) = XaStatement::parse(prepare_statement(&event.bytes)?.as_bytes()) else {
                    continue;
                };
                summary.xa.insert(xa).shown()
            }
            _ => continue,
        };
        if !summary.changes.contains(&change) {
            summary.changes.push(change);
        }
    }
    Ok(summary)
}

/// The beginning of a statement; of an ALTER that MariaDB logs twice which half it is.
fn in_its_phase(query: &Query<'_>) -> String {
    let half = match query.session.alter {
        None => return beginning(query.text),
        Some(AlterPhase::Start) => "begins",
        Some(AlterPhase::Commit(_)) => "is done",
        Some(AlterPhase::Rollback(_)) => "has failed",
    };
    format!("{} (ALTER in two phases: it {half})", beginning(query.text))
}

/// The statement of an EXECUTE_LOAD_QUERY event: as a QUERY event, but for 13 bytes about the file behind the lengths
/// (`Execute_load_query_event`, `load_data_events.h`).
fn load_query_text(event: &[u8]) -> Option<&[u8]> {
    let fixed = event.get(HEADER_LEN..HEADER_LEN + 26)?;
    let variables = usize::from(u16::from_le_bytes([fixed[11], fixed[12]]));
    event.get(HEADER_LEN + 26 + variables + usize::from(fixed[8]) + 1..)
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
pub fn binlog(events: &[u8]) -> Vec<u8> {
    format!("BINLOG '{}'", STANDARD.encode(events)).into_bytes()
}

struct Translation<'a> {
    kind: ServerKind,
    out: Vec<Vec<u8>>,
    /// Table maps and row events of a statement that has not ended yet. A server closes its tables at the end of each BINLOG
    /// statement, so one of them must hold a whole statement of the source.
    rows: Vec<u8>,
    /// MariaDB: it has begun with START TRANSACTION.
    grouped: bool,
    session: &'a mut Session,
    account: &'a str,
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
                // An ALTER that MariaDB has begun and taken back says why, and is done nowhere.
                let is_taken_back = matches!(query.session.alter, Some(AlterPhase::Rollback(_)));
                if query.error_code != 0 && !is_taken_back {
                    return Err(format!(
                        "a statement in it ended with error {} on the source, half done: {}",
                        query.error_code,
                        beginning(query.text)
                    ));
                }
                if let Some(why) = cannot_be_carried(self.kind, &query, self.account) {
                    return Err(format!("{why}: {}", beginning(query.text)));
                }
                if self.grouped && creates_table(query.text) {
                    return Err(format!(
                        "MariaDB has logged a table and its rows as one transaction, which only its own replication can do again: \
                         {}",
                        beginning(query.text)
                    ));
                }
                self.out.extend(self.session.before(self.kind, &event.header, &query));
                self.out.push(match query.session.alter {
                    // As mysqlbinlog hands it over: MariaDB logs the half that comes first or fails, and does nothing else for it. It
                    // loses what follows in the same packet (error 1064), and a statement with a comment goes alone.
                    Some(_) => [&binlog(&event.bytes)[..], b" /* ALTER in two phases */"].concat(),
                    None => query.text.to_vec(),
                });
            }
            EventType::XID => self.push("COMMIT"),
            EventType::XA_PREPARE => self.push(prepare_statement(&event.bytes)?),
            EventType::INTVAR => match IntVar::parse(&event.bytes).map_err(malformed)? {
                IntVar::LastInsertId(value) => self.push(format!("SET LAST_INSERT_ID = {value}")),
                IntVar::InsertId(value) => self.push(format!("SET INSERT_ID = {value}")),
            },
            EventType::RAND => {
                let Rand(first, second) = Rand::parse(&event.bytes).map_err(malformed)?;
                self.push(format!("SET @@session.rand_seed1 = {first}, @@session.rand_seed2 = {second}"));
            }
            EventType::TABLE_MAP => self.rows.extend_from_slice(&event.bytes),
            event_type if event_type.is_rows() => {
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
            self.grouped = true;
            self.out.extend(self.session.at_time(event.header.timestamp, None));
            self.push("START TRANSACTION");
        }
        Ok(())
    }
}

/// What of a statement's session cannot be set in another one.
fn cannot_be_carried(kind: ServerKind, query: &Query<'_>, account: &str) -> Option<String> {
    if let Some(code) = query.session.unknown {
        return Some(format!(
            "its session had a setting of a kind that this version of binlogd does not know (status variable {code})"
        ));
    }
    let (user, host) = query.session.invoker?;
    let words = first_words(query.text, 4);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // The servers write into all others whose they become.
    let is_theirs = match words[..] {
        ["ALTER", "EVENT", ..] => true,
        ["CREATE", "ROLE", ..] | ["CREATE", "OR", "REPLACE", "ROLE"] => kind == ServerKind::MariaDb,
        _ => false,
    };
    let invoker = String::from_utf8_lossy(&[user, b"@", host].concat()).into_owned();
    (is_theirs && !account.is_empty() && account != invoker).then(|| {
        format!("what it makes belongs to whoever ran it, {invoker}, and would belong to {account}, as which this command writes")
    })
}

/// CREATE TABLE … SELECT, logged by rows: the first statement would end the transaction, and its rows take another GTID.
fn creates_table(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&text[..text.len().min(100)]).to_uppercase();
    // CREATE [OR REPLACE] [TEMPORARY] TABLE, as the server writes it.
    let words: Vec<&str> = text.split_whitespace().take(5).collect();
    let table = words.iter().position(|word| *word == "TABLE");
    words.first() == Some(&"CREATE") && table.is_some_and(|table| !words[..table].contains(&"TEMPORARY"))
}

/// The flags behind the table id of six bytes (`Rows_event`, `rows_event.h`).
fn row_flags(event: &[u8]) -> Result<u16, String> {
    let flags = event.get(HEADER_LEN + 6..HEADER_LEN + 8).ok_or("a row event is cut short")?;
    Ok(u16::from_le_bytes([flags[0], flags[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::forks::transactions::StoredEvent;
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
        let builder = binlog::testing::FileBuilder::new();
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
        assert!(told[1].starts_with("BINLOG '"), "the format first: {}", told[1]);
        assert_eq!(told[2], "SET @@session.gtid_next = '3e11fa47-71ca-11e1-9e33-c80aa9429562:7'");
        assert!(
            told[3].starts_with("SET @@session.pseudo_thread_id") && told[4].starts_with("SET TIMESTAMP")
        );
        assert_eq!(told[5], "BEGIN");
        let first = [map("shop", "orders"), rows(0, "a"), rows(1, "b")].map(|event| event.bytes).concat();
        assert_eq!(told[6], format!("BINLOG '{}'", STANDARD.encode(first)));
        assert!(told[7].starts_with("BINLOG '"));
        assert_eq!(told[8..], ["COMMIT"]);
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
        assert_eq!(told[3], "USE `shop`");
        assert_eq!(told[6], "CREATE TABLE  t\n(id INT)");
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
        let with_rows = of(vec![gtid(4), query("d", "CREATE TABLE t (a INT)"), map("d", "t"), rows(1, "a")]);
        let refused = Translator::default().statements(&with_rows, &format_event()).unwrap_err();
        assert!(refused.contains("a table and its rows as one transaction"), "{refused}");
        let temporary = of(vec![gtid(4), query("d", "CREATE TEMPORARY TABLE t (a INT)"), event(16, &[0; 8])]);
        assert!(Translator::default().statements(&temporary, &format_event()).is_ok());
        let standalone = told(&mut Translator::default(), &of(vec![gtid(1), query("d", "DROP TABLE t")]));
        assert!(!standalone.contains(&"START TRANSACTION".to_owned()));
        let xa = Translator::default().statements(&of(vec![gtid(0x40)]), &format_event());
        assert!(xa.unwrap_err().contains("XA transaction"));
    }

    #[test]
    fn what_statements_cannot_express_is_refused() {
        let refused = |events| Translator::default().statements(&mysql(events), &format_event()).unwrap_err();
        assert!(refused(vec![event(18, &[0; 30])]).contains("EXECUTE_LOAD_QUERY"));
        // What MariaDB has compressed is no row event to BINLOG.
        assert!(refused(vec![map("d", "t"), event(169, &[0; 30])]).contains("WRITE_ROWS_COMPRESSED"));
        assert!(refused(vec![map("d", "t"), rows(0, "never ended")]).contains("mark of a statement's end"));
        let mut failed = query("d", "INSERT INTO t VALUES (1), (1)");
        failed.bytes[HEADER_LEN + 9] = 38;
        assert!(refused(vec![failed]).contains("error 38"));
        let anonymous = StoredTransaction { id: None, ..mysql(vec![]) };
        assert!(
            Translator::default().statements(&anonymous, &format_event()).unwrap_err().contains("no GTID")
        );
    }
}
