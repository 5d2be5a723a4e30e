//! The server that is completed.

use super::plan::Plan;
use super::send::{HandOverError, Sender};
use crate::rescue::hold::hold_error::HoldError;
use crate::rescue::plan::lacked::Lacked;
use codec::ServerKind;
use codec::gtid::TransactionId;
use source::identify::SourceIdentity;
use source::own_session::{NotSet, Purpose, prepare};
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;
use wire::{ConnectOptions, Connection, WireError};

/// A commit that waits for nobody for longer than this is no rescue.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(60);

/// The lock that two rescues of one server cannot both have.
const LOCK: &str = "binlogd.rescue";

/// A server to hand transactions to.
#[derive(Debug)]
pub struct Target {
    pub(super) connection: Connection,
    /// What it says of itself, its executed GTIDs among it.
    pub identity: SourceIdentity,
    /// `max_allowed_packet`, in bytes.
    max_allowed_packet: u64,
    /// Settings that stay as they are, by the operator's word.
    pub(super) accepted: Vec<String>,
}

/// Why a server cannot be handed anything.
#[derive(Debug, Error)]
pub enum TargetError {
    /// It cannot be reached or asked.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The session cannot have what its questions depend on.
    #[error(transparent)]
    NotSet(#[from] NotSet),
    /// Transactions cannot be told apart on it.
    #[error(
        "the target has gtid_mode = {0}, and without GTIDs nobody can say what it lacks: set gtid_mode = ON (and \
         enforce_gtid_consistency = ON) on it"
    )]
    NoGtids(String),
    /// It takes no changes.
    #[error(
        "the target is {0}, which keeps rescue out too: SET GLOBAL {0} = OFF. read_only = ON may stay, and keeps clients out meanwhile"
    )]
    ReadOnly(&'static str),
    /// A MariaDB server cannot take the transactions of MySQL, nor the other way round.
    #[error("the copy is of {copy} and the target is {target}: neither understands the other's row events")]
    OtherKind {
        /// Whose binary logs are held.
        copy: ServerKind,
        /// What answers.
        target: ServerKind,
    },
    /// Its commits wait for acknowledgements that nobody sends.
    #[error(
        "nothing was sent: a commit on the target waits for acknowledgements, up to {after:?} ({timeout}), and too few semi-sync replicas \
         are connected: {clients} of {wanted}. All that would be handed over stands in the copy, so run there: SET GLOBAL {enabled} = OFF; and, \
         when the rescue has ended, SET GLOBAL {enabled} = ON; (a commit of a client that waits there now returns then). Or let \
         binlogd receive meanwhile (on_fork = \"withhold\" or \"follow\"): it acknowledges what is handed over"
    )]
    Unacknowledged {
        /// How many replicas must acknowledge.
        wanted: u64,
        /// How many are attached.
        clients: u64,
        /// How long.
        after: Duration,
        /// Name of the variable that says so.
        timeout: String,
        /// Name of the variable that switches semi-sync.
        enabled: String,
    },
    /// A statement would be refused for its length.
    #[error(
        "the longest statement, of {id}, has {needed} bytes and the target takes {allowed} at most: SET GLOBAL \
         max_allowed_packet = {} on it (1 GiB is the most), then do this again; or leave it out by --leave-out {id}",
        needed.next_multiple_of(1 << 20)
    )]
    PacketTooSmall {
        /// The transaction.
        id: TransactionId,
        /// Bytes of the longest statement.
        needed: u64,
        /// `max_allowed_packet`.
        allowed: u64,
    },
}

impl Target {
    /// Connects, and makes sure that the server can take transactions of a copy of this kind.
    ///
    /// # Errors
    /// When it cannot be reached, or cannot take any.
    pub fn connect(options: &ConnectOptions, copy: ServerKind) -> Result<Target, TargetError> {
        let mut connection = Connection::connect(options)?;
        prepare(&mut connection, Purpose::Client)?;
        let identity = SourceIdentity::ask(&mut connection)?;
        if identity.kind != copy {
            return Err(TargetError::OtherKind { copy, target: identity.kind });
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
        let max_allowed_packet = variable("max_allowed_packet")?;
        let max_allowed_packet = max_allowed_packet.parse().map_err(|_| WireError::Protocol {
            during: "asking how long a statement may be",
            what: format!("max_allowed_packet is {max_allowed_packet:?}, not a number"),
        })?;
        Ok(Target { connection, identity, max_allowed_packet, accepted: Vec::new() })
    }

    /// Keeps other rescues of this server out, and asks again what it has: one that was killed may have gone on until now, because
    /// a server ends the packet that it was sent.
    ///
    /// # Errors
    /// [`HoldError::Busy`] when another one works on it.
    pub fn take(&mut self) -> Result<(), HoldError> {
        self.lock()?;
        self.identity = SourceIdentity::ask(&mut self.connection)?;
        Ok(())
    }

    /// The same session may take it again.
    pub(super) fn lock(&mut self) -> Result<(), HoldError> {
        let answer =
            self.connection.query(&format!("SELECT GET_LOCK('{LOCK}', 5), IS_USED_LOCK('{LOCK}')"))?;
        if answer.first() == Some("1") {
            return Ok(());
        }
        let cell = answer.rows.first().and_then(|row| row.get(1)?.clone()).unwrap_or_default();
        Err(HoldError::Busy(String::from_utf8_lossy(&cell).into_owned()))
    }

    /// Makes sure that every statement of the plan fits.
    ///
    /// # Errors
    /// `TargetError::PacketTooSmall`.
    pub fn check(&self, plan: &Plan) -> Result<(), TargetError> {
        let (needed, allowed) = (plan.longest_statement + 1, self.max_allowed_packet);
        match plan.longest_of {
            Some(id) if needed > allowed => Err(TargetError::PacketTooSmall { id, needed, allowed }),
            _ => Ok(()),
        }
    }

    /// Makes sure that commits do not wait for acknowledgements without anybody to send them. A wait after which the target goes
    /// on by itself does no harm: what is handed over stands in the copy.
    ///
    /// # Errors
    /// `TargetError::Unacknowledged`, or when the target cannot be asked.
    pub fn is_acknowledged(&mut self) -> Result<(), TargetError> {
        let mut values = BTreeMap::new();
        for sql in ["SHOW GLOBAL STATUS LIKE 'rpl_semi_sync%'", "SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync%'"]
        {
            let rows = self.connection.query(sql)?;
            values.extend((0..rows.rows.len()).filter_map(|row| {
                Some((rows.get(row, "Variable_name")?.to_lowercase(), rows.get(row, "Value")?.to_owned()))
            }));
        }
        for role in ["source", "master"] {
            let name = |name: &str| format!("rpl_semi_sync_{role}_{name}");
            let value = |of: &str| values.get(&name(of)).map(String::as_str);
            let number = |of: &str| value(of).and_then(|text| text.parse::<u64>().ok());
            let clients = number("clients").unwrap_or(u64::MAX);
            let wanted = number("wait_for_replica_count").or(number("wait_for_slave_count")).unwrap_or(1);
            let waits = value("status") == Some("ON") && clients < wanted;
            let after = Duration::from_millis(number("timeout").unwrap_or(0));
            if waits && after > UNACKNOWLEDGED_MAX {
                let (timeout, enabled) = (name("timeout"), name("enabled"));
                return Err(TargetError::Unacknowledged { wanted, clients, after, timeout, enabled });
            }
        }
        Ok(())
    }

    /// Whether each commit waits for the disk, as with the servers' defaults.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn syncs_each_commit(&mut self) -> Result<bool, WireError> {
        let rows = self.connection.query(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('sync_binlog', 'innodb_flush_log_at_trx_commit')",
        )?;
        Ok((0..rows.rows.len()).any(|row| rows.get(row, "Value") == Some("1")))
    }

    /// Hands over every transaction of the plan in order, and verifies by GTID that all are there. `done` is told after each.
    ///
    /// # Errors
    /// The first thing that goes wrong; nothing is tried after it. All of it can be repeated.
    pub fn hand_over(&mut self, plan: &Plan, done: impl FnMut(&Lacked)) -> Result<(), HandOverError> {
        Sender::begin(&mut self.connection, self.identity.kind, self.max_allowed_packet)?.send(plan, done)?;
        let lacking = SourceIdentity::ask(&mut self.connection)?.lacks(&plan.gtids);
        if lacking.is_empty() { Ok(()) } else { Err(HandOverError::NotThere(lacking.to_line())) }
    }
}
