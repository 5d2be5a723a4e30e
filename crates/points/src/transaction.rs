//! A transaction as a person sees it.

use crate::effects::Effects;
use crate::statement::Statement;
use crate::table::{RowCounts, TableName};
use codec::gtid::TransactionId;
use std::fmt;
use std::sync::Arc;

/// When a transaction was committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitTime {
    /// Microseconds since 1970.
    pub micros: i64,
    /// It is the commit's own time. Otherwise the log has none, and this is the second at which its last statement began.
    pub is_exact: bool,
}

/// What a transaction is in the first place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// Nothing that changes anything.
    #[default]
    Empty,
    /// Row events.
    Rows,
    /// A definition.
    Ddl,
    /// Statements that change rows, as text.
    Statement,
    /// The first half of an XA transaction, with its changes.
    XaPrepare,
    /// The second half: what was prepared counts from here on.
    XaCommit,
    /// The second half: what was prepared never counts.
    XaRollback,
    /// The half of an ALTER in two phases that comes first, or says that it has failed: it changes nothing.
    AlterHalf,
    /// The source says that something is missing here.
    Incident,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Empty => "empty",
            Kind::Rows => "rows",
            Kind::Ddl => "ddl",
            Kind::Statement => "statement",
            Kind::XaPrepare => "xa prepare",
            Kind::XaCommit => "xa commit",
            Kind::XaRollback => "xa rollback",
            Kind::AlterHalf => "alter half",
            Kind::Incident => "incident",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A table that a transaction changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableChange {
    /// Which one.
    pub name: Arc<TableName>,
    /// How many of its rows.
    pub rows: RowCounts,
    /// What is done to it.
    pub effects: Effects,
}

/// One transaction, in short. What it holds is bounded, whatever the transaction's size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Its identifier; `None` for an anonymous one.
    pub id: Option<TransactionId>,
    /// Where it begins in its file.
    pub at: u64,
    /// Where it ends.
    pub end: u64,
    /// When it was committed.
    pub committed: CommitTime,
    /// Seconds since 1970 at which its first statement began; 0 where no event says so.
    pub began: u32,
    /// `server_id` of the server on which it was committed first.
    pub server_id: u32,
    /// The connection that made it, where an event says so.
    pub thread: Option<u32>,
    /// What it does, all of it.
    pub effects: Effects,
    /// The source says that something is missing here.
    pub is_incident: bool,
    /// The tables that it changes, in the order of their first change.
    pub tables: Vec<TableChange>,
    /// The list of tables is not all of them.
    pub has_more_tables: bool,
    /// The first of its statements, and of those that its rows were made by.
    pub statements: Vec<Statement>,
    /// The list of statements is not all of them.
    pub has_more_statements: bool,
    /// The identifier of the XA transaction that it is a half of.
    pub xid: Option<String>,
    /// It was packed (TRANSACTION_PAYLOAD).
    pub is_packed: bool,
    /// Why a part of it could not be looked at. It may do more than is said here.
    pub unread: Option<String>,
    /// The text that the walk looks for stands in one of its statements.
    pub has_text: bool,
}

impl Transaction {
    /// Bytes that it takes in its file.
    pub fn size(&self) -> u64 {
        self.end - self.at
    }

    /// From when to when it may have been committed, in microseconds: a time that is a second means all of it.
    pub(crate) fn committed_between(&self) -> (i64, i64) {
        let first = self.committed.micros;
        (first, if self.committed.is_exact { first } else { first.saturating_add(999_999) })
    }

    /// All its rows.
    pub fn rows(&self) -> RowCounts {
        let mut all = RowCounts::default();
        self.tables.iter().for_each(|table| all.add(&table.rows));
        all
    }

    /// Seconds that passed at least from the beginning of its first statement, of which the log has the whole second, to its commit,
    /// where both are known.
    pub fn lasted(&self) -> Option<u64> {
        let seconds = self.committed.micros.div_euclid(1_000_000) - i64::from(self.began);
        u64::try_from(seconds).ok().filter(|_| self.began != 0).map(|seconds| seconds.saturating_sub(1))
    }

    /// What it is in the first place.
    pub fn kind(&self) -> Kind {
        let has = |effect: Effects| self.effects.intersects(effect);
        if self.is_incident {
            Kind::Incident
        } else if has(Effects::XA_PREPARE) {
            Kind::XaPrepare
        } else if has(Effects::XA_COMMIT) {
            Kind::XaCommit
        } else if has(Effects::XA_ROLLBACK) {
            Kind::XaRollback
        } else if has(Effects::DDL) {
            Kind::Ddl
        } else if has(Effects::STATEMENT) {
            Kind::Statement
        } else if has(Effects::INSERT | Effects::UPDATE | Effects::DELETE) {
            Kind::Rows
        } else if has(Effects::ALTER_START | Effects::ALTER_ROLLBACK) {
            Kind::AlterHalf
        } else {
            Kind::Empty
        }
    }

    /// Begins anew and keeps its memory.
    pub(crate) fn clear(&mut self) {
        let (mut tables, mut statements) =
            (std::mem::take(&mut self.tables), std::mem::take(&mut self.statements));
        tables.clear();
        statements.clear();
        *self = Transaction { tables, statements, ..Transaction::default() };
    }
}
