//! Sending transactions to the target, each under its own GTID.

pub(in crate::rescue) mod batch;

use super::plan::Plan;
use super::statements::Translator;
use crate::rescue::hold::meanwhile::taken;
use crate::rescue::plan::lacked::Lacked;
use crate::rescue::send::batch::Batch;
use binlog::forks::transactions::{StoredTransaction, TransactionReader};
use binlog::storage::posix::PosixStorage;
use codec::ServerKind;
use codec::gtid::TransactionId;
use codec::secrets::masked_message;
use source::own_session::{NotSet, Purpose, prepare};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;
use wire::{Connection, WireError};

/// How long one statement may take: an ALTER of a large table takes hours.
const STATEMENT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The longest packet of several transactions, in bytes. Longer ones spare no round trips worth the name.
const PACKET_BYTES_MAX: u64 = 1 << 20;

/// What the account needs.
pub(super) const RIGHTS: &str = "The account must be allowed to do what the transactions did, and to say under which GTID: SUPER, \
                                 or on MySQL REPLICATION_APPLIER, BINLOG_ADMIN and SYSTEM_VARIABLES_ADMIN, on MariaDB BINLOG \
                                 REPLAY and REPLICATION SLAVE ADMIN, beside the rights to the tables; and to look who else \
                                 writes, and to read the binary log: PROCESS, REPLICATION CLIENT, REPLICATION SLAVE, on MySQL \
                                 CONNECTION_ADMIN and XA_RECOVER_ADMIN, on MariaDB READ_ONLY ADMIN and SLAVE MONITOR.";

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
    /// It cannot be said in statements.
    #[error("{} at {}: {} cannot be handed over by statements: {why}", .lacked.path.display(), .lacked.at, .lacked.id)]
    NoStatements {
        /// The transaction.
        lacked: Box<Lacked>,
        /// What is in it.
        why: String,
    },
    /// A statement would be refused for its length.
    #[error(
        "the longest statement of {id} has {needed} bytes and the target takes {allowed} at most: SET GLOBAL max_allowed_packet = {} on \
         it (1 GiB is the most), then do this again",
        needed.next_multiple_of(1 << 20)
    )]
    TooLong {
        /// Its GTID.
        id: TransactionId,
        /// Bytes of the statement.
        needed: u64,
        /// `max_allowed_packet`.
        allowed: u64,
    },
    /// The target refused a statement.
    #[error(transparent)]
    Refused(Box<RefusedTransaction>),
    /// The account may not act as an applier of replicated transactions; nothing was sent.
    #[error("{0}\n{RIGHTS}")]
    MayNot(NotSet),
    /// The connection broke.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// All was accepted, but the target's GTIDs do not show it.
    #[error("the target accepted everything, but its GTIDs lack {0}")]
    NotThere(String),
    /// The target has a GTID that was about to be handed over, and not from us. Nothing was sent under it.
    #[error("the target has {0} by now, and rescue has not sent it: somebody else writes to it")]
    Taken(TransactionId),
}

/// A transaction that the target did not take. Nothing of it was kept, unless its tables know no transactions.
#[derive(Debug, Error)]
#[error("the target refused {id} ({changes}): {}{details}\n{help}", error.in_its_own_words())]
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

/// Sends transactions over one session.
///
/// Many small transactions go in one packet of several statements, of which the server itself runs one after the other and
/// stops at the first that fails: a statement of its own round trip each would wait for the network most of the time, and
/// statements sent ahead without waiting would be run behind one that failed.
pub struct Sender<'a> {
    connection: &'a mut Connection,
    kind: ServerKind,
    translator: Translator,
    batch: Batch,
    max_allowed_packet: u64,
}

impl<'a> Sender<'a> {
    /// Makes the session one that may say under which GTID it writes. `max_allowed_packet` is the target's, in bytes.
    ///
    /// # Errors
    /// When the account may not.
    pub fn begin(
        connection: &'a mut Connection,
        kind: ServerKind,
        max_allowed_packet: u64,
    ) -> Result<Sender<'a>, HandOverError> {
        connection.set_timeout(STATEMENT_MAX);
        prepare(connection, Purpose::Applier).map_err(HandOverError::MayNot)?;
        connection.allow_several_statements()?;
        // The command's own byte counts too.
        let packet_bytes_max = PACKET_BYTES_MAX.min(max_allowed_packet.saturating_sub(1)) as usize;
        let account = connection.query("SELECT CURRENT_USER()")?;
        let translator = Translator::of_account(account.first().unwrap_or_default());
        let batch = Batch::new(packet_bytes_max);
        Ok(Sender { connection, kind, translator, batch, max_allowed_packet })
    }

    /// Sends everything of a plan in order. `done` is told after each.
    ///
    /// # Errors
    /// The first thing that goes wrong; nothing is tried after it.
    pub(super) fn send(&mut self, plan: &Plan, mut done: impl FnMut(&Lacked)) -> Result<(), HandOverError> {
        let mut copy = PlannedTransactions::default();
        for lacked in &plan.transactions {
            let (transaction, format) = copy.read(lacked)?;
            self.push(lacked, &transaction, &format, &mut done)?;
        }
        self.finish(&mut done)
    }

    /// Sends a transaction of a file with this format description, by itself or, later, with others. `done` is told after each that
    /// the target has taken.
    ///
    /// # Errors
    /// As `send`.
    pub fn push(
        &mut self,
        lacked: &Lacked,
        transaction: &StoredTransaction,
        format: &[u8],
        done: &mut impl FnMut(&Lacked),
    ) -> Result<(), HandOverError> {
        let statements = self.translator.statements(transaction, format);
        let statements = statements
            .map_err(|why| HandOverError::NoStatements { lacked: Box::new(lacked.clone()), why })?;
        if self.batch.take(lacked, &statements) {
            return Ok(());
        }
        self.finish(done)?;
        if !self.batch.take(lacked, &statements) {
            self.send_alone(lacked, &statements)?;
            done(lacked);
        }
        Ok(())
    }

    /// Sends what waits for others.
    ///
    /// # Errors
    /// As `send`.
    pub fn finish(&mut self, done: &mut impl FnMut(&Lacked)) -> Result<(), HandOverError> {
        let Some(packet) = self.batch.finish(self.translator.end(self.kind)) else { return Ok(()) };
        self.look_whether_taken(&packet.transactions)?;
        let (mut answered, mut complete) = (0, 0);
        let result = self.connection.query_several(&packet.statements, packet.count, || {
            answered += 1;
            if packet.ends.get(complete) == Some(&answered) {
                done(&packet.transactions[complete]);
                complete += 1;
            }
        });
        result.map_err(|error| {
            let failed = &packet.transactions[complete.min(packet.transactions.len() - 1)];
            refused(self.connection, failed, &packet.statements, error)
        })
    }

    fn send_alone(&mut self, lacked: &Lacked, statements: &[Vec<u8>]) -> Result<(), HandOverError> {
        self.look_whether_taken(std::slice::from_ref(lacked))?;
        let needed = statements.iter().map(Vec::len).max().unwrap_or(0) as u64 + 1;
        if needed >= self.max_allowed_packet {
            return Err(HandOverError::TooLong { id: lacked.id, needed, allowed: self.max_allowed_packet });
        }
        for statement in statements.iter().map(Vec::as_slice).chain(self.translator.end(self.kind)) {
            let result = self.connection.query_bytes(statement);
            result.map_err(|error| refused(self.connection, lacked, statement, error))?;
        }
        Ok(())
    }

    fn look_whether_taken(&mut self, coming: &[Lacked]) -> Result<(), HandOverError> {
        match taken(self.connection, self.kind, coming)? {
            Some(id) => Err(HandOverError::Taken(id)),
            None => Ok(()),
        }
    }
}

/// Reads the transactions of a plan again, file by file.
#[derive(Debug, Default)]
struct PlannedTransactions {
    open: Option<(PathBuf, TransactionReader)>,
}

impl PlannedTransactions {
    /// The transaction, and the format description of its file.
    fn read(&mut self, lacked: &Lacked) -> Result<(StoredTransaction, Vec<u8>), HandOverError> {
        if self.open.as_ref().is_none_or(|(path, _)| *path != lacked.path) {
            self.open = Some((lacked.path.clone(), TransactionReader::open(&PosixStorage, &lacked.path)?));
        }
        let (_, reader) = self.open.as_mut().expect("just opened");
        reader.seek(lacked.at)?;
        let format = reader.format_event().to_vec();
        let transaction = reader.next(|_| true)?.ok_or_else(|| moved(lacked))?;
        if transaction.id != Some(lacked.id) || transaction.end != lacked.end {
            return Err(moved(lacked));
        }
        Ok((transaction, format))
    }
}

fn moved(lacked: &Lacked) -> HandOverError {
    HandOverError::Moved { path: lacked.path.clone(), at: lacked.at, id: lacked.id }
}

/// What a refused statement means, which is among `statements`. Errors of row events hide their reason in the warnings.
fn refused(
    connection: &mut Connection,
    lacked: &Lacked,
    statements: &[u8],
    mut error: WireError,
) -> HandOverError {
    let code = match &mut error {
        WireError::Server { code, message, .. } | WireError::AccessDenied { code, message, .. } => {
            *message = masked_message(message, statements);
            *code
        }
        _ => return error.into(),
    };
    let mut details = String::new();
    if let Ok(warnings) = connection.query("SHOW WARNINGS") {
        for row in 0..warnings.rows.len() {
            let message = masked_message(warnings.get(row, "Message").unwrap_or_default(), statements);
            if !error.to_string().contains(&message) {
                details.push_str("; ");
                details.push_str(&message);
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
             was kept; those before it are there. Compare the rows, repair the target, and do this again: it goes on here."
        }
        _ => {
            "Nothing of this transaction was kept; those before it are there. Repair what the message says and do this again: it \
             goes on here."
        }
    }
}
