//! The server that is completed.

use super::plan::{Lacked, Plan};
use super::statements::Translator;
use crate::log::timeline::ServerKind;
use crate::log::transactions::TransactionReader;
use crate::upstream::identify::SourceIdentity;
use crate::wire::{ConnectOptions, Connection, WireError};
use codec::gtid::TransactionId;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// How long one statement may take: an ALTER of a large table takes hours.
const STATEMENT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// What the account needs.
const RIGHTS: &str = "The account must be allowed to do what the transactions did, and to say under which GTID: SUPER, or on \
                      MySQL REPLICATION_APPLIER, BINLOG_ADMIN and SYSTEM_VARIABLES_ADMIN, on MariaDB BINLOG REPLAY and \
                      REPLICATION SLAVE ADMIN, beside the rights to the tables.";

/// `ER_UNKNOWN_SYSTEM_VARIABLE`.
const ER_UNKNOWN_VARIABLE: u16 = 1193;

/// A server to hand transactions to.
#[derive(Debug)]
pub struct Target {
    connection: Connection,
    /// What it says of itself, its executed GTIDs among it.
    pub identity: SourceIdentity,
    /// `max_allowed_packet`, in bytes.
    max_allowed_packet: u64,
}

/// Why a server cannot be handed anything.
#[derive(Debug, Error)]
pub enum TargetError {
    /// It cannot be reached or asked.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Transactions cannot be told apart on it.
    #[error(
        "the target has gtid_mode = {0}, and without GTIDs nobody can say what it lacks: set gtid_mode = ON (and \
         enforce_gtid_consistency = ON) on it"
    )]
    NoGtids(String),
    /// It takes no changes.
    #[error("the target is {0}: promote it first, or SET GLOBAL {0} = OFF")]
    ReadOnly(&'static str),
    /// A MariaDB server cannot take the transactions of MySQL, nor the other way round.
    #[error("the copy is of {copy} and the target is {target}: neither understands the other's row events")]
    OtherKind {
        /// Whose binary logs are held.
        copy: &'static str,
        /// What answers.
        target: &'static str,
    },
    /// A statement would be refused for its length.
    #[error(
        "the longest statement has {needed} bytes and the target takes {allowed} at most: SET GLOBAL \
         max_allowed_packet = {} on it (1 GiB is the most), then do this again", needed.next_multiple_of(1 << 20)
    )]
    PacketTooSmall {
        /// Bytes of the longest statement.
        needed: u64,
        /// `max_allowed_packet`.
        allowed: u64,
    },
}

/// Why the handing over ended early. What was handed over before is there and stays.
#[derive(Debug, Error)]
pub enum HandOverError {
    /// The copy cannot be read any more as it was planned.
    #[error("cannot read the copy: {0}")]
    Read(#[from] io::Error),
    /// A transaction changed between the plan and its turn.
    #[error("{path} at {at} does not hold {id} any more: is the copy being changed by somebody?")]
    Moved {
        /// The file.
        path: PathBuf,
        /// The place.
        at: u64,
        /// What was there.
        id: TransactionId,
    },
    /// The target refused a statement.
    #[error(transparent)]
    Refused(Box<RefusedTransaction>),
    /// The account may not act as an applier of replicated transactions; nothing was sent.
    #[error("{0}\n{RIGHTS}")]
    MayNot(WireError),
    /// The connection broke.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// All was accepted, but the target's GTIDs do not show it.
    #[error("the target accepted everything, but its GTIDs lack {0}")]
    NotThere(String),
}

/// A transaction that the target did not take. Nothing of it was kept, unless its tables know no transactions.
#[derive(Debug, Error)]
#[error("the target refused {id} ({changes}): {error}{details}\n{help}")]
pub struct RefusedTransaction {
    /// Its GTID.
    pub id: TransactionId,
    /// What it changes.
    pub changes: String,
    /// The server's words.
    pub error: WireError,
    /// What SHOW WARNINGS added.
    pub details: String,
    /// What to do.
    pub help: &'static str,
}

impl HandOverError {
    fn may_not(error: WireError) -> HandOverError {
        match error {
            error @ WireError::AccessDenied { .. } => HandOverError::MayNot(error),
            error => error.into(),
        }
    }
}

impl Target {
    /// Connects, and makes sure that the server can take transactions of a copy of this kind.
    ///
    /// # Errors
    /// When it cannot be reached, or cannot take any.
    pub fn connect(options: &ConnectOptions, copy: ServerKind) -> Result<Target, TargetError> {
        let mut connection = Connection::connect(options)?;
        let identity = SourceIdentity::ask(&mut connection)?;
        if identity.kind != copy {
            return Err(TargetError::OtherKind { copy: name(copy), target: name(identity.kind) });
        }
        let mut variable = |name: &str| -> Result<String, WireError> {
            let rows = connection.query(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
            Ok(rows.get(0, "Value").unwrap_or_default().to_owned())
        };
        if !identity.has_gtids {
            return Err(TargetError::NoGtids(variable("gtid_mode")?));
        }
        // A user with the right to may write in spite of read_only, which replicas have.
        if variable("super_read_only")? == "ON" {
            return Err(TargetError::ReadOnly("super_read_only"));
        }
        let max_allowed_packet = variable("max_allowed_packet")?.parse().unwrap_or(u64::MAX);
        Ok(Target { connection, identity, max_allowed_packet })
    }

    /// Makes sure that every statement of the plan fits.
    ///
    /// # Errors
    /// [`TargetError::PacketTooSmall`].
    pub fn check(&self, plan: &Plan) -> Result<(), TargetError> {
        let needed = plan.longest_statement + 1;
        if needed > self.max_allowed_packet {
            return Err(TargetError::PacketTooSmall { needed, allowed: self.max_allowed_packet });
        }
        Ok(())
    }

    /// Hands over every transaction of the plan in order, and verifies by GTID that all are there. `done` is told after each.
    ///
    /// # Errors
    /// The first thing that goes wrong; nothing is tried after it. All of it can be repeated.
    pub fn hand_over(&mut self, plan: &Plan, mut done: impl FnMut(&Lacked)) -> Result<(), HandOverError> {
        self.connection.set_timeout(STATEMENT_MAX);
        self.act_as_applier().map_err(HandOverError::may_not)?;
        let mut translator = Translator::default();
        let mut open: Option<(PathBuf, TransactionReader)> = None;
        for lacked in &plan.transactions {
            if open.as_ref().is_none_or(|(path, _)| *path != lacked.path) {
                open = Some((lacked.path.clone(), TransactionReader::open(&lacked.path)?));
            }
            let (_, reader) = open.as_mut().expect("just opened");
            let moved = || HandOverError::Moved { path: lacked.path.clone(), at: lacked.at, id: lacked.id };
            reader.seek(lacked.at)?;
            let format = reader.format_event().to_vec();
            let transaction = reader.next(|_| true)?.ok_or_else(moved)?;
            if transaction.id != Some(lacked.id) || transaction.end != lacked.end {
                return Err(moved());
            }
            if !self.has_meanwhile(lacked)? {
                let statements = translator.statements(&transaction, &format).map_err(|_| moved())?;
                for statement in &statements {
                    self.connection
                        .query_bytes(statement)
                        .map_err(|error| refused(&mut self.connection, lacked, error))?;
                }
            }
            done(lacked);
        }
        let lacking = SourceIdentity::ask(&mut self.connection)?.lacks(&plan.gtids);
        if lacking.is_empty() { Ok(()) } else { Err(HandOverError::NotThere(lacking.to_line())) }
    }

    /// As mysqlbinlog does it: rows may come by BINLOG, and a prepared XA transaction leaves the session.
    fn act_as_applier(&mut self) -> Result<(), WireError> {
        match self.connection.query("SET @@session.pseudo_replica_mode = 1") {
            Err(WireError::Server { code: ER_UNKNOWN_VARIABLE, .. }) => {
                self.connection.query("SET @@session.pseudo_slave_mode = 1").map(drop)
            }
            other => other.map(drop),
        }
    }

    /// MySQL passes over a GTID that it has executed. MariaDB would do the transaction twice, so it is asked first.
    fn has_meanwhile(&mut self, lacked: &Lacked) -> Result<bool, WireError> {
        if self.identity.kind == ServerKind::Mysql {
            return Ok(false);
        }
        Ok(SourceIdentity::ask(&mut self.connection)?.has(&lacked.id))
    }
}

fn name(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Mysql => "MySQL",
        ServerKind::Mariadb => "MariaDB",
    }
}

/// What a refused statement means. Errors of row events hide their reason in the warnings.
fn refused(connection: &mut Connection, lacked: &Lacked, error: WireError) -> HandOverError {
    let code = match &error {
        WireError::Server { code, .. } | WireError::AccessDenied { code, .. } => *code,
        _ => return error.into(),
    };
    let mut details = String::new();
    if let Ok(warnings) = connection.query("SHOW WARNINGS") {
        for row in 0..warnings.rows.len() {
            let message = warnings.get(row, "Message").unwrap_or_default();
            if !error.to_string().contains(message) {
                details.push_str("; ");
                details.push_str(message);
            }
        }
    }
    // The transaction was begun in this session; it must not linger until the connection is dropped.
    let _ = connection.query("ROLLBACK");
    let changes = lacked.changes.join(", ");
    HandOverError::Refused(Box::new(RefusedTransaction {
        id: lacked.id,
        changes,
        error,
        details,
        help: help(code),
    }))
}

fn help(code: u16) -> &'static str {
    match code {
        // ER_SPECIFIC_ACCESS_DENIED_ERROR, ER_ACCESS_DENIED_NO_PASSWORD_ERROR, ER_TABLEACCESS_DENIED_ERROR
        1227 | 1698 | 1142 | 1044 | 1045 => RIGHTS,
        // ER_GTID_STRICT_OUT_OF_ORDER
        1950 => {
            "The target has written transactions of this domain since, and gtid_strict_mode = ON forbids to go back: SET \
             GLOBAL gtid_strict_mode = OFF on it, do this again, and set it ON afterwards."
        }
        // ER_DUP_ENTRY, ER_KEY_NOT_FOUND
        1062 | 1032 => {
            "A row is not as it was on the source: something else has changed the target since. Nothing of this transaction \
             was kept; those before it are there. Compare the rows, mend the target, and do this again: it goes on here."
        }
        _ => {
            "Nothing of this transaction was kept; those before it are there. Mend what the message says and do this again: it \
             goes on here."
        }
    }
}
