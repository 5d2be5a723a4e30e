//! One walk over the log from the backup's point to the point: where the followed tables are changed, and what cannot be followed. Nothing was
//! changed on the target then.

use super::ddl::{Statement, concerns, links};
use super::followed::Followed;
use codec::event::{EventType, session_of};
use points::effects::Effects;
use points::statement::foreign_keys::Cascade;
use points::table::TableName;
use points::transaction::{Kind, Transaction};
use points::walk::events::{each_event, statement_of};
use repair::history::{Copied, CopiedFile, Shown, Until};
use repair::restore::{Begin, Course, NoCourse};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Longest event that is taken into memory, in bytes.
pub(super) const EVENT_BYTES_MAX: usize = 1 << 30;

/// Stretches with less between them, in bytes, are one: to walk over that costs less than to remember it.
const GAP_BYTES: u64 = 256 << 10;

/// So many tables are remembered whose rows were updated or deleted; behind that any may be.
const CHANGED_MAX: usize = 100_000;

/// A file of the log.
#[derive(Debug, Clone)]
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) name: Arc<str>,
    pub(super) end: u64,
}

/// A part of a file that holds whole transactions, among them some of followed tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) file: usize,
    pub(super) at: u64,
    pub(super) end: u64,
}

/// What a scan has found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) files: Vec<LogFile>,
    pub(super) stretches: Vec<Stretch>,
    /// Transactions that concern followed tables.
    pub(super) touched: u64,
    /// Those of them that change their rows, or may.
    pub(super) changing: u64,
    /// Tables whose rows were deleted, or updated.
    deleted: HashSet<Arc<TableName>>,
    updated: HashSet<Arc<TableName>>,
    /// Foreign keys that definitions in the log make.
    pub(super) cascades: Vec<Cascade>,
    /// Definitions in the log that may make some, of whatever table.
    pub(super) others: Vec<Statement>,
    /// Statements of other tables that stand in the place of their rows, and the first of them.
    pub(super) elsewhere: u64,
    pub(super) first_elsewhere: Option<String>,
    /// Tables that become others.
    links: Vec<(TableName, TableName)>,
    /// XA transactions that were prepared, and whether they concern followed tables.
    prepared: HashMap<String, bool>,
    /// Why it cannot be followed: the first such transaction, and why.
    refused: Option<String>,
    /// End of the last transaction that was shown, in the last file.
    shown_until: u64,
}

impl Scan {
    /// Scans. Where a table becomes one of those that are followed, it is followed too, and the scan is made again.
    ///
    /// # Errors
    /// Why there is no way to the point, or what in the log cannot be followed.
    pub(super) fn make(
        copied: &Copied,
        begin: Begin<'_>,
        until: &Until,
        followed: &mut Followed,
    ) -> Result<Result<(Scan, Course), NoCourse>, String> {
        loop {
            let mut scan = Scan::default();
            let mut take =
                |file: &CopiedFile, transaction: &Transaction| scan.take(copied, followed, file, transaction);
            let course = match Course::find_showing(copied, begin, until, &[], (&mut |_, _| (), &mut take)) {
                Ok(course) => course,
                Err(error) => return Ok(Err(error)),
            };
            if !scan.more(followed) {
                return scan.refused.take().map_or(Ok(Ok((scan, course))), Err);
            }
        }
    }

    /// Follows what becomes one of the followed tables; false where there is nothing more.
    fn more(&self, followed: &mut Followed) -> bool {
        let mut has_grown = false;
        loop {
            let next = self.links.iter().find(|(from, to)| followed.has(to) && !followed.has(from));
            let Some((from, _)) = next else { return has_grown };
            has_grown |= followed.add(from.clone());
        }
    }

    /// Whether a table that a foreign key points to may have taken rows of others with it.
    pub(super) fn may_cascade(&self, cascade: &Cascade) -> bool {
        let is_full = self.deleted.len().max(self.updated.len()) >= CHANGED_MAX;
        is_full
            || cascade.on_delete && self.deleted.contains(&cascade.parent)
            || cascade.on_update && self.updated.contains(&cascade.parent)
    }

    fn take(&mut self, copied: &Copied, followed: &Followed, file: &CopiedFile, transaction: &Transaction) {
        if self.refused.is_some() {
            return;
        }
        if self.files.last().is_none_or(|last| last.path != file.path) {
            self.files.push(LogFile { path: file.path.clone(), name: file.name.clone(), end: file.end });
            self.shown_until = 0;
        }
        match self.is_touched(copied, followed, file, transaction) {
            Ok(true) => self.touch(transaction),
            Ok(false) => {}
            Err(why) => self.refused = Some(format!("{}: {why}", Shown::of(file, transaction))),
        }
        self.shown_until = transaction.end;
    }

    /// One more that concerns followed tables. It is of the last stretch where all that is between was shown too: what the backup has, or a
    /// fork has taken, must not be walked over again.
    fn touch(&mut self, transaction: &Transaction) {
        self.touched += 1;
        let file = self.files.len() - 1;
        let last = self.stretches.last_mut().filter(|last| {
            last.file == file && transaction.at == self.shown_until && transaction.at - last.end <= GAP_BYTES
        });
        match last {
            Some(last) => last.end = transaction.end,
            None => self.stretches.push(Stretch { file, at: transaction.at, end: transaction.end }),
        }
    }

    fn is_touched(
        &mut self,
        copied: &Copied,
        followed: &Followed,
        file: &CopiedFile,
        transaction: &Transaction,
    ) -> Result<bool, String> {
        if transaction.is_incident {
            return Err("the source says that something is missing here (INCIDENT)".to_owned());
        }
        for change in &transaction.tables {
            if followed.is_doubtful(&change.name) {
                return Err(format!(
                    "it changes {}, which is a followed table only where lower_case_table_names is not 0",
                    change.name
                ));
            }
            let takes = [(Effects::DELETE, &mut self.deleted), (Effects::UPDATE, &mut self.updated)];
            for (effect, tables) in takes {
                if change.effects.contains(effect)
                    && tables.len() < CHANGED_MAX
                    && !tables.contains(&change.name)
                {
                    tables.insert(change.name.clone());
                }
            }
        }
        let mut is_touched = touches(followed, transaction);
        self.changing += u64::from(is_touched);
        if transaction.effects.contains(Effects::STATEMENT) {
            self.statement(followed, file, transaction)?;
        }
        if transaction.effects.contains(Effects::DDL) {
            is_touched |= self.definitions(copied, followed, file, transaction)?;
        }
        self.of_xa(transaction, is_touched)
    }

    /// A statement in the place of rows, which nobody can take apart.
    fn statement(
        &mut self,
        followed: &Followed,
        file: &CopiedFile,
        transaction: &Transaction,
    ) -> Result<(), String> {
        let is_own = |change: &points::transaction::TableChange| {
            change.effects.contains(Effects::STATEMENT) && followed.concerns(&change.name)
        };
        let mut texts = transaction.statements.iter().filter(|statement| !statement.is_for_people);
        let is_named = texts.any(|one| one.is_cut || followed.is_named_in(&one.shown()));
        if transaction.tables.iter().any(is_own) || is_named || transaction.has_more_statements {
            return Err("a statement stands in the log in the place of its rows (binlog_format), and it names the table, or may: only a whole server \
                        can do it again, binlogd restore --new"
                .to_owned());
        }
        self.elsewhere += 1;
        self.first_elsewhere.get_or_insert_with(|| Shown::of(file, transaction).to_string());
        Ok(())
    }

    fn definitions(
        &mut self,
        copied: &Copied,
        followed: &Followed,
        file: &CopiedFile,
        transaction: &Transaction,
    ) -> Result<bool, String> {
        let opened = copied.read(file).map_err(|error| error.to_string())?;
        let (mut is_touched, mut failed) = (false, None);
        let range = (transaction.at, transaction.end);
        each_event(&*opened, range, EVENT_BYTES_MAX, &mut |header, event| {
            let Some(statement) = event.and_then(|event| definition(header.event_type, event)) else {
                return;
            };
            self.links.extend(links(&statement));
            let taken = concerns(&statement, followed).and_then(|is_own| {
                is_touched |= is_own;
                if is_own {
                    statement.acts(followed)?;
                    self.cascades.extend(statement.cascades()?);
                }
                Ok(())
            });
            if let Err(why) = taken {
                failed.get_or_insert(why);
            }
            if statement.text.to_uppercase().contains("REFERENCES") {
                self.others.push(statement);
            }
        })
        .map_err(|error| error.to_string())?;
        failed.map_or(Ok(is_touched), Err)
    }

    fn of_xa(&mut self, transaction: &Transaction, is_touched: bool) -> Result<bool, String> {
        let Some(xid) = &transaction.xid else { return Ok(is_touched) };
        match transaction.kind() {
            Kind::XaPrepare => {
                self.prepared.insert(xid.clone(), is_touched);
                Ok(is_touched)
            }
            Kind::XaCommit => self.prepared.remove(xid).ok_or_else(|| {
                "it commits an XA transaction that was prepared before the backup, and nobody knows which tables that changes".to_owned()
            }),
            Kind::XaRollback => Ok(self.prepared.remove(xid).unwrap_or(false)),
            _ => Ok(is_touched),
        }
    }
}

/// Whether a transaction changes a followed table, by rows or else, or may.
pub(super) fn touches(followed: &Followed, transaction: &Transaction) -> bool {
    transaction.unread.is_some()
        || transaction.has_more_tables
        || transaction.tables.iter().any(|change| followed.concerns(&change.name))
}

/// The statement of an event, where it is one that does something; in UTF-8.
pub(super) fn definition(event_type: EventType, event: &[u8]) -> Option<Statement> {
    let found = statement_of(event_type, event, EVENT_BYTES_MAX).ok()??;
    let sql_mode = session_of(event).ok().and_then(|session| session.sql_mode).unwrap_or(0);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (!found.is_for_people).then(|| Statement {
        schema: text(found.schema),
        text: text(&found.text),
        sql_mode,
    })
}
