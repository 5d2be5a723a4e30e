//! Who answers: what a session must know of its source before it decides anything.

use crate::log::timeline::ServerKind;
use crate::wire::{Connection, WireError};
use codec::gtid::{Flavour, GtidSet, GtidState, MariadbGtid, MariadbGtidState, TransactionId, Uuid};
use codec::packet::{SERVER_VERSION_BYTES_MAX, printable};

/// Bytes that are shown at most of what should be a UUID and is none.
const UUID_BYTES_SHOWN_MAX: usize = 64;

/// What the source says of itself.
#[derive(Debug, Clone)]
pub struct SourceIdentity {
    /// `@@version`.
    pub version: String,
    /// Whose dialect it speaks.
    pub kind: ServerKind,
    /// `@@server_id`.
    pub server_id: u32,
    /// `@@server_uuid`; `mariadb-<server_id>` for MariaDB, which has none.
    pub uuid: String,
    /// `GTID_MODE = ON`, or MariaDB, where GTIDs are always on.
    pub has_gtids: bool,
    /// GTIDs of all that the source has executed: `@@gtid_executed`; MariaDB: `@@gtid_binlog_state`, and
    /// `@@gtid_slave_pos` for what it applied as a replica without writing it to its own log (`log_slave_updates = OFF`).
    pub executed: GtidState,
    /// MariaDB's `@@gtid_slave_pos`, empty for MySQL: it names the newest transaction of each domain only, with all before it.
    pub applied: MariadbGtidState,
    /// GTIDs whose logs it no longer has (`@@gtid_purged`); empty for MariaDB, where only the beginning
    /// of the oldest file says so.
    pub purged: GtidState,
    /// Whether it knows semi-sync, and whether that is switched on.
    pub semi_sync: SourceSemiSync,
    /// `@@read_only` (super_read_only sets it too): by convention a replica, or a server that is being taken out of service.
    pub is_read_only: bool,
    /// False for servers before MySQL 5.6.1, whose binary logs have no checksums.
    pub knows_checksums: bool,
}

/// The source's side of semi-sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceSemiSync {
    /// The plugin is not installed.
    Absent,
    /// Installed and switched off.
    Disabled,
    /// Installed and switched on.
    Enabled,
}

impl SourceIdentity {
    /// Asks the source. Needs no privilege.
    ///
    /// # Errors
    /// When the connection fails or an answer makes no sense.
    pub fn ask(connection: &mut Connection) -> Result<SourceIdentity, WireError> {
        let mariadb = connection.is_mariadb();
        let basics = connection.query("SELECT @@global.server_id, @@version")?;
        let server_id = basics.get(0, "@@global.server_id").and_then(|id| id.parse().ok()).unwrap_or(0);
        // A peer may say anything, and what it says is shown and stored.
        let version = basics.get(0, "@@version").unwrap_or(connection.server_version());
        let version = printable(version.as_bytes(), SERVER_VERSION_BYTES_MAX);
        let mut variable = |name: &str| -> Result<Option<String>, WireError> {
            let rows = connection.query(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
            Ok(rows.get(0, "Value").map(str::to_owned))
        };
        let knows_checksums = variable("binlog_checksum")?.is_some();
        // MariaDB 12 knows more values than ON; every one but OFF keeps ordinary clients from writing.
        let is_read_only = variable("read_only")?.is_some_and(|value| value != "OFF" && value != "0");
        let semi_sync = match variable("rpl_semi_sync_source_enabled")? {
            Some(value) => Some(value),
            None => variable("rpl_semi_sync_master_enabled")?,
        };
        let semi_sync = match semi_sync.as_deref() {
            None => SourceSemiSync::Absent,
            Some("ON" | "1") => SourceSemiSync::Enabled,
            Some(_) => SourceSemiSync::Disabled,
        };
        let kind = if mariadb { ServerKind::Mariadb } else { ServerKind::Mysql };
        let mut applied = MariadbGtidState::new();
        let (uuid, has_gtids, executed, purged) = if mariadb {
            let state = variable("gtid_binlog_state")?.unwrap_or_default();
            let mut state: MariadbGtidState = state.parse().unwrap_or_default();
            applied = variable("gtid_slave_pos")?.unwrap_or_default().parse().unwrap_or_default();
            state.union_with(&applied);
            (
                format!("mariadb-{server_id}"),
                true,
                GtidState::Mariadb(state),
                GtidState::empty(Flavour::Mariadb),
            )
        } else {
            let uuid = variable("server_uuid")?.unwrap_or_default();
            let on = variable("gtid_mode")?.is_some_and(|mode| mode == "ON");
            // Not by SHOW VARIABLES: it cuts long values.
            let mut set = |name: &str| -> Result<GtidState, WireError> {
                let text = match connection.query(&format!("SELECT @@global.{name}")) {
                    Ok(rows) => rows.first().unwrap_or_default().to_owned(),
                    Err(WireError::Server { .. }) => String::new(), // MySQL 5.5 has no such variable.
                    Err(error) => return Err(error),
                };
                Ok(GtidState::Mysql(text.parse::<GtidSet>().unwrap_or_default()))
            };
            let (executed, purged) = (set("gtid_executed")?, set("gtid_purged")?);
            (uuid, on, executed, purged)
        };
        // The UUID becomes part of a folder's name.
        if kind == ServerKind::Mysql && uuid.parse::<Uuid>().is_err() {
            return Err(WireError::Protocol {
                during: "asking for the server's identity",
                what: format!(
                    "@@server_uuid is {:?}, not a UUID",
                    printable(uuid.as_bytes(), UUID_BYTES_SHOWN_MAX)
                ),
            });
        }
        Ok(SourceIdentity {
            version,
            kind,
            server_id,
            uuid,
            has_gtids,
            executed,
            applied,
            purged,
            semi_sync,
            is_read_only,
            knows_checksums,
        })
    }

    /// Whether it has executed a transaction.
    pub fn has(&self, id: &TransactionId) -> bool {
        let covers = |id: &MariadbGtid| {
            self.applied.positions().any(|at| at.domain == id.domain && id.sequence <= at.sequence)
        };
        self.executed.contains(id) || matches!(id, TransactionId::Mariadb(id) if covers(id))
    }

    /// What of `gtids` it wrote first itself, not as a replica.
    pub fn own(&self, gtids: &GtidState) -> GtidState {
        match gtids {
            GtidState::Mysql(set) => {
                let mut own = GtidSet::new();
                for (uuid, tag, numbers) in set.iter().filter(|(uuid, ..)| uuid.to_string() == self.uuid) {
                    own.insert_interval(uuid, tag, *numbers.start(), *numbers.end());
                }
                GtidState::Mysql(own)
            }
            GtidState::Mariadb(state) => {
                let mut own = MariadbGtidState::new();
                for id in state.list().filter(|id| id.server_id == self.server_id) {
                    own.insert(id);
                }
                GtidState::Mariadb(own)
            }
        }
    }

    /// What of `held` it has not executed.
    pub fn lacks(&self, held: &GtidState) -> GtidState {
        let GtidState::Mariadb(lacked) = held.subtract(&self.executed) else {
            return held.subtract(&self.executed);
        };
        let mut left = MariadbGtidState::new();
        for id in lacked.list().filter(|id| !self.has(&TransactionId::Mariadb(*id))) {
            left.insert(id);
        }
        GtidState::Mariadb(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It knows one server of each domain by name, and has everything in that domain up to there.
    #[test]
    fn a_mariadb_replica_without_a_log_of_its_own_has_what_its_position_covers() {
        let server = SourceIdentity {
            version: String::new(),
            kind: ServerKind::Mariadb,
            server_id: 3,
            uuid: "mariadb-3".into(),
            has_gtids: true,
            executed: GtidState::parse(Flavour::Mariadb, "0-2-50,0-3-60").unwrap(),
            applied: "0-2-50".parse().unwrap(),
            purged: GtidState::empty(Flavour::Mariadb),
            semi_sync: SourceSemiSync::Absent,
            is_read_only: false,
            knows_checksums: true,
        };
        let held = GtidState::parse(Flavour::Mariadb, "0-1-10,0-2-55,0-3-58,4-1-1").unwrap();
        assert_eq!(server.lacks(&held), GtidState::parse(Flavour::Mariadb, "0-2-55,4-1-1").unwrap());
        let id = |text: &str| TransactionId::Mariadb(text.parse().unwrap());
        assert!(server.has(&id("0-1-49")) && server.has(&id("0-3-60")));
        assert!(!server.has(&id("0-1-51")) && !server.has(&id("0-3-61")) && !server.has(&id("4-1-1")));
        assert_eq!(server.own(&held), GtidState::parse(Flavour::Mariadb, "0-3-58").unwrap());
    }
}
