//! Statements that are understood, as the grammar gives them.

use super::expression::{Expression, Scope};
use super::refusal::Refusal;

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// SELECT without a table.
    Select(Select),
    /// DO: expressions whose values nobody asks for.
    Do(Vec<Expression>),
    /// SET, in the order written.
    Set(Vec<Assignment>),
    /// SHOW.
    Show(Show),
    /// USE.
    Use(String),
    /// KILL.
    Kill {
        /// The connection.
        connection: Expression,
        /// KILL QUERY: its statement only.
        query_only: bool,
    },
    /// PURGE BINARY LOGS.
    Purge(Purge),
    /// START and STOP REPLICA.
    Replica(ReplicaCommand),
    /// BEGIN, START TRANSACTION.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// Understood, and nothing that binlogd does.
    Refused(Refusal),
}

/// SELECT of expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// At least one.
    pub items: Vec<SelectItem>,
    /// Whether the one row is wanted at all.
    pub condition: Option<Expression>,
    /// Which rows are wanted.
    pub limit: Limit,
}

/// An expression of a SELECT list and its title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectItem {
    /// The expression.
    pub expression: Expression,
    /// The alias; without one the text as typed, of a string its content.
    pub title: String,
}

/// LIMIT. Without one everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// So many rows are passed over.
    pub offset: u64,
    /// At most so many are given.
    pub rows: u64,
}

impl Limit {
    /// Everything.
    pub const NONE: Limit = Limit { offset: 0, rows: u64::MAX };

    /// The rows that are wanted.
    pub fn cut<T>(&self, rows: impl IntoIterator<Item = T>) -> Vec<T> {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        rows.into_iter().skip(whole(self.offset)).take(whole(self.rows)).collect()
    }
}

/// One assignment of a SET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// `@name = value`; the name in lower case.
    User {
        /// The variable.
        name: String,
        /// Its value.
        value: Expression,
    },
    /// `[scope] name = value`; the name in lower case.
    System {
        /// As written; none is the session.
        scope: Option<Scope>,
        /// The variable.
        name: String,
        /// Its value; `None` is DEFAULT.
        value: Option<Expression>,
    },
    /// `NAMES set [COLLATE collation]`.
    Names {
        /// The character set; `None` is DEFAULT.
        character_set: Option<String>,
        /// The collation.
        collation: Option<String>,
    },
    /// `CHARACTER SET set`; `None` is DEFAULT.
    CharacterSet(Option<String>),
    /// `[scope] TRANSACTION …`.
    Transaction {
        /// As written; none is the next transaction.
        scope: Option<Scope>,
        /// As `transaction_isolation` has it.
        isolation: Option<&'static str>,
        /// READ ONLY or READ WRITE.
        read_only: Option<bool>,
    },
}

/// What SHOW is to keep of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Everything.
    None,
    /// Rows whose first column is like this.
    Like(String),
    /// Rows of which this holds.
    Where(Expression),
}

/// Which words a statement used, and so which its answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// REPLICA, BINARY LOG STATUS.
    New,
    /// SLAVE, MASTER STATUS.
    Old,
}

/// SHOW.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// VARIABLES.
    Variables {
        /// The session's by default.
        scope: Scope,
        /// What is kept.
        filter: Filter,
    },
    /// STATUS.
    Status {
        /// The session's by default.
        scope: Scope,
        /// What is kept.
        filter: Filter,
    },
    /// BINARY LOGS, MASTER LOGS.
    BinaryLogs,
    /// BINARY LOG STATUS, MASTER STATUS, BINLOG STATUS.
    BinaryLogStatus,
    /// BINLOG EVENTS.
    BinlogEvents {
        /// IN: the file; by default the oldest.
        file: Option<String>,
        /// FROM: offset of the first event, in bytes.
        from: Option<u64>,
        /// How many.
        limit: Limit,
    },
    /// REPLICAS, SLAVE HOSTS.
    Replicas(Words),
    /// REPLICA STATUS, SLAVE STATUS.
    ReplicaStatus {
        /// REPLICA or SLAVE.
        words: Words,
        /// MariaDB's SHOW ALL SLAVES STATUS.
        all: bool,
        /// FOR CHANNEL, or MariaDB's name of a connection.
        channel: Option<String>,
    },
    /// PROCESSLIST.
    ProcessList {
        /// Statements are not cut.
        full: bool,
    },
    /// WARNINGS, or ERRORS only.
    Warnings {
        /// Errors only.
        errors_only: bool,
        /// Their number instead of themselves.
        count: bool,
        /// How many.
        limit: Limit,
    },
    /// DATABASES, SCHEMAS.
    Databases(Filter),
    /// TABLES, TABLE STATUS and others that look into a database; its name where one is given.
    InDatabase(Option<String>),
    /// GRANTS; of whom, where that is not the session's own user.
    Grants(Option<String>),
    /// ENGINES.
    Engines,
    /// PLUGINS.
    Plugins,
    /// CHARACTER SET.
    CharacterSets(Filter),
    /// COLLATION.
    Collations(Filter),
}

/// Until where PURGE BINARY LOGS goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// TO: files before this one.
    To(String),
    /// BEFORE: files that were last written before this moment.
    Before(Expression),
}

/// START or STOP of our own receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaCommand {
    /// START REPLICA.
    Start,
    /// STOP REPLICA.
    Stop,
}
