//! The log's changes of followed tables, done to their scratch tables: rows by BINLOG statements, definitions as text in the session that they ran
//! in.
//!
//! Row events of one table that follow one another are one BINLOG statement, BINLOG statements go several in a packet, and many transactions of the
//! source are one of the target: a commit there is dear, and nobody looks at the scratch tables in between.

use super::ddl::{Act, Statement};
use super::followed::{Followed, quoted};
use super::rows::{end_statement, rows, table_map};
use super::scan::{EVENT_BYTES_MAX, LogFile, Scan, Stretch, definition, touches};
use super::target::{Target, shortened};
use binlog::forks::transactions::TransactionReader;
use codec::event::{AlterPhase, EventHeader, EventType, Query, RowsEvent, TableColumns, TableMap};
use points::statement::{Control, control};
use points::table::TableName;
use points::transaction::{Kind, Transaction};
use points::walk::events::each_event;
use points::walk::{Options, Walk};
use repair::history::Copied;
use repair::rescue::{Session, binlog, format_without_checksums};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows of one BINLOG statement, in bytes: up to one event more.
const GROUP_BYTES: usize = 512 << 10;

/// Statements of one packet, in bytes: up to one more.
const PACKET_BYTES: usize = 1 << 20;

/// So many bytes of statements are one transaction of the target: what is not committed is held in its memory.
const COMMIT_BYTES: usize = 16 << 20;

/// What was done.
#[derive(Debug, Default, Clone, Copy)]
pub struct Applied {
    /// Transactions of the source that concern the tables.
    pub transactions: u64,
    /// Row events.
    pub row_events: u64,
    /// Definitions.
    pub definitions: u64,
}

/// See [the module](self).
pub(super) struct Applier<'a> {
    target: &'a mut Target,
    followed: &'a Followed,
    session: Session,
    /// Of the transaction: the tables by the numbers that its row events have, `None` of those that are not followed.
    maps: HashMap<[u8; 6], Option<Vec<u8>>>,
    /// The TABLE_MAP of the group, and its row events.
    group: (Vec<u8>, Vec<u8>),
    /// Where in it the last event begins.
    last_at: usize,
    packet: Vec<u8>,
    statements: usize,
    /// Bytes since the target's transaction was begun; `None` where none is.
    uncommitted: Option<usize>,
    /// The transaction has changed rows of followed tables.
    has_rows: bool,
    /// Transactions that change the tables.
    changing: u64,
    /// XA transactions that are prepared, and where they stand.
    prepared: HashMap<String, Stretch>,
    /// The transaction, for errors; the first in the packet.
    now: String,
    first_in_packet: String,
    pub(super) applied: Applied,
    /// Triggers that the log makes.
    pub(super) triggers: Vec<String>,
}

impl<'a> Applier<'a> {
    pub(super) fn new(target: &'a mut Target, followed: &'a Followed) -> Applier<'a> {
        Applier {
            target,
            followed,
            session: Session::default(),
            maps: HashMap::new(),
            group: (Vec::new(), Vec::new()),
            last_at: 0,
            packet: Vec::new(),
            statements: 0,
            uncommitted: None,
            has_rows: false,
            changing: 0,
            prepared: HashMap::new(),
            now: String::new(),
            first_in_packet: String::new(),
            applied: Applied::default(),
            triggers: Vec::new(),
        }
    }

    /// Tells the target in which format rows come: without it it takes none, and with too few rights it says so here.
    ///
    /// # Errors
    /// When the target refuses it, or the file cannot be read.
    pub(super) fn tell_format(&mut self, copied: &Copied, file: &LogFile) -> Result<(), String> {
        self.commit()?;
        let reader = TransactionReader::open(&*copied.storage, &file.path);
        let reader = reader.map_err(|error| format!("{}: {error}", file.path.display()))?;
        let told =
            self.target.connection.query_bytes(&binlog(&format_without_checksums(reader.format_event())));
        told.map_err(|error| {
            format!(
                "the target takes no rows of a log from this account ({}): it needs, beside all rights to the tables and to CREATE and DROP, on MySQL \
                 BINLOG_ADMIN, REPLICATION_APPLIER and SYSTEM_VARIABLES_ADMIN, on MariaDB BINLOG REPLAY and REPLICATION SLAVE ADMIN",
                error.in_its_own_words()
            )
        })?;
        self.target.own_gtids()
    }

    /// Does all that a scan has found.
    ///
    /// # Errors
    /// In words, what cannot be done, and where.
    pub(super) fn run(&mut self, copied: &Copied, scan: &Scan, is_over: &AtomicBool) -> Result<(), String> {
        let mut told = None;
        for stretch in &scan.stretches {
            if told != Some(stretch.file) {
                self.tell_format(copied, &scan.files[stretch.file])?;
                told = Some(stretch.file);
            }
            self.stretch(copied, scan, *stretch, is_over)?;
        }
        self.commit()?;
        if self.changing == scan.changing {
            return Ok(());
        }
        let (now, then) = (self.changing, scan.changing);
        Err(format!(
            "the log has {now} that change the tables, and had {then} when it was walked before: it is not the same log any more"
        ))
    }

    fn stretch(
        &mut self,
        copied: &Copied,
        scan: &Scan,
        stretch: Stretch,
        is_over: &AtomicBool,
    ) -> Result<(), String> {
        let file = &scan.files[stretch.file];
        let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", file.path.display());
        let opened = copied.storage.open_read(&file.path).map_err(|error| in_file(&error))?;
        let mut walk = Walk::open(&*opened, file.end, Options::default()).map_err(|error| in_file(&error))?;
        walk.seek(stretch.at);
        while walk.at() < stretch.end {
            if is_over.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            let Some(transaction) = walk.next_transaction().map_err(|error| in_file(&error))? else { break };
            let at = Stretch { file: stretch.file, at: transaction.at, end: transaction.end };
            self.transaction(&*opened, &file.name, transaction, at)
                .map_err(|why| format!("{}: {why}", self.now))?;
            let Some(xid) = transaction.xid.as_ref().filter(|_| transaction.kind() == Kind::XaCommit) else {
                continue;
            };
            if let Some(place) = self.prepared.remove(xid) {
                let opened = copied
                    .storage
                    .open_read(&scan.files[place.file].path)
                    .map_err(|error| in_file(&error))?;
                self.events(&*opened, place).map_err(|why| format!("{}: {why}", self.now))?;
            }
        }
        Ok(())
    }

    fn transaction(
        &mut self,
        file: &dyn binlog::storage::ReadAt,
        name: &str,
        transaction: &Transaction,
        at: Stretch,
    ) -> Result<(), String> {
        let is_definition = transaction.effects.contains(points::effects::Effects::DDL);
        let of_xa = matches!(transaction.kind(), Kind::XaCommit | Kind::XaRollback);
        let is_changing = touches(self.followed, transaction);
        self.changing += u64::from(is_changing);
        if !is_changing && !is_definition && !of_xa {
            return Ok(());
        }
        self.now = match transaction.id {
            Some(id) => format!("{id}, {name}:{}", transaction.at),
            None => format!("{name}:{}", transaction.at),
        };
        match (transaction.kind(), &transaction.xid) {
            (Kind::XaPrepare, Some(xid)) => {
                self.prepared.insert(xid.clone(), at);
                return Ok(());
            }
            (Kind::XaRollback, Some(xid)) => {
                self.prepared.remove(xid);
                return Ok(());
            }
            (Kind::XaCommit, _) => return Ok(()),
            _ => {}
        }
        self.events(file, at)
    }

    fn events(&mut self, file: &dyn binlog::storage::ReadAt, at: Stretch) -> Result<(), String> {
        (self.has_rows, self.maps) = (false, HashMap::new());
        let before = (self.applied.row_events, self.applied.definitions);
        let mut failed = None;
        each_event(file, (at.at, at.end), EVENT_BYTES_MAX, &mut |header, event| {
            if failed.is_none() {
                let too_long =
                    || format!("it holds an event of {} bytes, too long to be sent", header.event_size);
                let done = event.ok_or_else(too_long).and_then(|event| self.event(header, event));
                failed = done.err();
            }
        })
        .map_err(|error| error.to_string())?;
        failed.map_or(Ok(()), Err)?;
        self.applied.transactions += u64::from(before != (self.applied.row_events, self.applied.definitions));
        if self.uncommitted.is_some_and(|bytes| bytes > COMMIT_BYTES) {
            self.commit()?;
        }
        Ok(())
    }

    fn event(&mut self, header: &EventHeader, event: &[u8]) -> Result<(), String> {
        let event_type = header.event_type;
        if event_type == EventType::TABLE_MAP {
            return self.map(event);
        }
        if let Some(parsed) = RowsEvent::parse(event_type, event) {
            let table = parsed.map_err(|error| error.to_string())?.table_id;
            return match self.maps.get(&table).cloned().flatten() {
                Some(map) => self.rows(event_type, event, map),
                None => Ok(()),
            };
        }
        match definition(event_type, event) {
            Some(statement) => self.statement(header, event, &statement),
            None => Ok(()),
        }
    }

    fn map(&mut self, event: &[u8]) -> Result<(), String> {
        let names = TableMap::parse(event).map_err(|error| error.to_string())?;
        let columns = TableColumns::parse(event).map_err(|error| error.to_string())?;
        let name = TableName::new(names.schema, names.table);
        let number = self.followed.names().iter().position(|one| *one == name);
        let map = match (number, self.followed.scratch(&name.schema)) {
            (Some(number), Some(scratch)) => {
                let number = u8::try_from(number + 1).map_err(|_| "more than 255 tables are followed")?;
                let map = table_map(event, number, self.target.identity.server_id, (scratch, &name.table));
                Some(map.ok_or("a TABLE_MAP event is cut short")?)
            }
            _ => None,
        };
        self.maps.insert(columns.table_id, map);
        Ok(())
    }

    fn rows(&mut self, event_type: EventType, event: &[u8], map: Vec<u8>) -> Result<(), String> {
        let number = map.get(codec::event::HEADER_LEN).copied().unwrap_or_default();
        let event = rows(event_type, event, (number, self.target.identity.server_id), EVENT_BYTES_MAX)?;
        // As long as its base64, and a word before it.
        let (needed, most) = ((map.len() + event.len()) / 3 * 4 + 64, self.target.statement_bytes_max);
        if needed > most {
            return Err(format!(
                "the statement of one of its rows has {needed} bytes, and the target takes {most}: SET GLOBAL max_allowed_packet on it, 1 GiB at most"
            ));
        }
        let is_full = self.group.1.len() + event.len() > GROUP_BYTES.min(most / 2);
        if self.group.0 != map || is_full {
            self.close_group()?;
            self.group.0 = map;
        }
        self.last_at = self.group.1.len();
        self.group.1.extend_from_slice(&event);
        self.applied.row_events += 1;
        self.has_rows = true;
        Ok(())
    }

    /// Makes a statement of the row events so far.
    fn close_group(&mut self) -> Result<(), String> {
        let (map, mut events) = std::mem::take(&mut self.group);
        if events.is_empty() {
            return Ok(());
        }
        end_statement(&mut events[self.last_at..]);
        if self.uncommitted.is_none() {
            self.push(b"START TRANSACTION")?;
            self.uncommitted = Some(0);
        }
        self.push(&binlog(&[map, events].concat()))
    }

    fn push(&mut self, statement: &[u8]) -> Result<(), String> {
        if self.packet.len() + statement.len() + 1 > PACKET_BYTES.min(self.target.statement_bytes_max) {
            self.send()?;
        }
        match self.statements {
            0 => self.first_in_packet.clone_from(&self.now),
            _ => self.packet.push(b';'),
        }
        self.packet.extend_from_slice(statement);
        self.statements += 1;
        self.uncommitted = self.uncommitted.map(|bytes| bytes + statement.len());
        Ok(())
    }

    fn send(&mut self) -> Result<(), String> {
        let (packet, count) = (std::mem::take(&mut self.packet), std::mem::take(&mut self.statements));
        if count == 0 {
            return Ok(());
        }
        let connection = &mut self.target.connection;
        connection.query_several(&packet, count, || ()).map_err(|error| {
            let mut text = error.in_its_own_words();
            // Errors of row events hide their reason there.
            let warnings = connection.query("SHOW WARNINGS").unwrap_or_default();
            for message in (0..warnings.rows.len()).filter_map(|row| warnings.get(row, "Message")) {
                if !text.contains(message) {
                    text = format!("{text}; {message}");
                }
            }
            format!("the target refused rows from {} on: {text}", self.first_in_packet)
        })
    }

    /// Sends all that there is, and ends the target's transaction.
    fn commit(&mut self) -> Result<(), String> {
        self.close_group()?;
        if self.uncommitted.take().is_some() {
            self.push(b"COMMIT")?;
        }
        self.send()
    }

    fn statement(&mut self, header: &EventHeader, event: &[u8], statement: &Statement) -> Result<(), String> {
        match control(statement.text.as_bytes()) {
            Some(Control::Mark | Control::Savepoint(_)) => return Ok(()),
            Some(Control::Back | Control::BackTo(_)) if !self.has_rows => return Ok(()),
            Some(Control::Back | Control::BackTo(_)) => {
                return Err(
                    "rows of the table are rolled back behind their events in the log, which is not followed"
                        .to_owned(),
                );
            }
            None => {}
        }
        let shown = || shortened(&codec::secrets::masked(statement.text.as_bytes()));
        let acts = statement.acts(self.followed).map_err(|why| format!("{why}: {}", shown()))?;
        if acts.is_empty() {
            return Ok(());
        }
        let plain;
        let event = if header.event_type == EventType::MARIADB_QUERY_COMPRESSED {
            plain = head_of(event);
            &plain[..]
        } else {
            event
        };
        let mut query = Query::parse(event).map_err(|error| error.to_string())?;
        match query.session.alter {
            None | Some(AlterPhase::Commit(_)) => {}
            Some(AlterPhase::Start | AlterPhase::Rollback(_)) => return Ok(()),
        }
        if query.error_code != 0 || query.session.unknown.is_some() {
            return Err(format!(
                "it ended with an error on the source, half done, or ran with a setting that is not known: {}",
                shown()
            ));
        }
        if let Some((client, ..)) = &mut query.session.character_sets {
            // utf8mb4_general_ci: as such the text was read.
            *client = 45;
        }
        self.commit()?;
        for act in acts {
            self.act(header, &query, act).map_err(|why| format!("{why}: {}", shown()))?;
        }
        self.applied.definitions += 1;
        Ok(())
    }

    fn act(&mut self, header: &EventHeader, query: &Query<'_>, act: Act) -> Result<(), String> {
        let (scratch, text) = match act {
            Act::Trigger(name) => {
                self.triggers.push(name);
                return Ok(());
            }
            Act::Instead(text) => return self.target.run(&text),
            Act::Run { scratch, text } => (scratch, text),
        };
        let of_session = Query { schema: scratch.as_bytes(), text: text.as_bytes(), ..query.clone() };
        for setting in self.session.before(self.target.identity.kind, header, &of_session) {
            self.target.run(&String::from_utf8_lossy(&setting))?;
        }
        self.target.run("SET @@session.foreign_key_checks = 0")?;
        if !scratch.is_empty() {
            // It may have been dropped and created since.
            self.target.run(&format!("USE {}", quoted(&scratch)))?;
        }
        self.target.run(&text)?;
        let created = text.get(..6).is_some_and(|verb| verb.eq_ignore_ascii_case("CREATE"));
        let made =
            self.followed.schemas().find(|(_, name)| created && scratch.is_empty() && text.contains(name));
        made.map(|(_, name)| name.to_owned()).map_or(Ok(()), |name| self.target.mark(&name))
    }
}

/// A QUERY event of MariaDB whose text is packed, without the text.
fn head_of(event: &[u8]) -> Vec<u8> {
    let text = codec::event::query_text(event).map_or(0, <[u8]>::len);
    event[..event.len() - text].to_vec()
}
