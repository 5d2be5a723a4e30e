//! Who answers: what a session must know of its source before it decides anything.

use super::complaint::ER_UNKNOWN_SYSTEM_VARIABLE;
use codec::ServerKind;
use codec::gtid::{GtidError, GtidSet, GtidState, MariadbGtid, MariadbGtidState, TransactionId, Uuid};
use codec::packet::{ResultSet, SERVER_VERSION_BYTES_MAX, printable};
use std::str::FromStr;
use wire::{Connection, WireError};

const DURING: &str = "asking for the server's identity";

/// "WSREP has not yet prepared node for application use".
const ER_UNKNOWN_COM_ERROR: u16 = 1047;

/// Bytes that are shown at most of an answer that is not what it should be.
const ANSWER_BYTES_SHOWN_MAX: usize = 64;

/// What the source says of itself.
#[derive(Debug, Clone)]
pub struct SourceIdentity {
    /// `@@version`.
    pub version: String,
    /// MySQL or MariaDB, by its greeting.
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
    /// `@@read_only` (super_read_only sets it too): by convention a replica, or a server that is being taken out of service. A node
    /// of Galera that has lost its cluster, or is not let in yet, is one too.
    pub is_read_only: bool,
    /// Of a node of a Galera cluster (`@@wsrep_on`) that one's name, `@@wsrep_cluster_name`.
    pub galera: Option<String>,
    /// False for servers before MySQL 5.6.1, whose binary logs have no checksums.
    pub knows_checksums: bool,
}

/// Whether clients can write to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// They can.
    Writable,
    /// `@@read_only`: somebody has said so.
    ReadOnly,
    /// A node of Galera that has lost its cluster, or is not let in yet.
    Closed,
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
        let kind = connection.server_kind();
        let basics = connection.query("SELECT @@global.server_id, @@version")?;
        let server_id = server_id_in(&basics)?;
        // A peer may say anything, and what it says is shown and stored. It is not understood here, so the greeting's will do.
        let version = basics.get(0, "@@version").unwrap_or(connection.server_version());
        let version = printable(version.as_bytes(), SERVER_VERSION_BYTES_MAX);
        let mut variable = |name: &str| -> Result<Option<String>, WireError> {
            let rows = connection.query(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
            if rows.rows.is_empty() {
                return Ok(None);
            }
            // What cannot be read is not what the server does not have.
            let value = rows.get(0, "Value").map(str::to_owned);
            value.map(Some).ok_or_else(|| refused(format!("the value of {name} is no text")))
        };
        let knows_checksums = variable("binlog_checksum")?.is_some();
        let semi_sync = match variable("rpl_semi_sync_source_enabled")? {
            Some(value) => Some(value),
            None => variable("rpl_semi_sync_master_enabled")?,
        };
        let semi_sync = match semi_sync.as_deref() {
            None => SourceSemiSync::Absent,
            Some("ON" | "1") => SourceSemiSync::Enabled,
            Some(_) => SourceSemiSync::Disabled,
        };
        let (uuid, has_gtids, purged) = match kind {
            ServerKind::MySql => {
                let uuid = variable("server_uuid")?.unwrap_or_default();
                let on = variable("gtid_mode")?.is_some_and(|mode| mode == "ON");
                (uuid, on, GtidState::Mysql(gtids(connection, "gtid_purged")?))
            }
            ServerKind::MariaDb => (format!("mariadb-{server_id}"), true, GtidState::empty(kind)),
        };
        let asked = connection.query(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'wsrep_cluster_name', 'wsrep_on')",
        )?;
        let asked = asked.variables().map_err(refused)?;
        let in_galera = asked.get("wsrep_on").is_some_and(|value| value == "ON");
        let galera = in_galera.then(|| asked.get("wsrep_cluster_name").cloned().unwrap_or_default());
        if in_galera {
            answer_at_once(connection)?;
        }
        let is_read_only = asked.get("read_only").is_some_and(|value| says_read_only(value))
            || in_galera && Self::access(connection, in_galera)? != Access::Writable;
        let (executed, applied) = executed(connection)?;
        // The UUID becomes part of a folder's name.
        if kind == ServerKind::MySql && uuid.parse::<Uuid>().is_err() {
            return Err(refused(format!("@@server_uuid is {}, not a UUID", shown(Some(uuid.as_bytes())))));
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
            galera,
            knows_checksums,
        })
    }

    /// Whether clients can write to a server now: one short statement, as who asks often does.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_access(&self, connection: &mut Connection) -> Result<Access, WireError> {
        Self::access(connection, self.galera.is_some())
    }

    /// A node of Galera that is not part of its cluster goes on sending its log, and says nothing there; but it refuses statements
    /// that read a table, and a derived one counts.
    fn access(connection: &mut Connection, in_galera: bool) -> Result<Access, WireError> {
        let statement = match in_galera {
            true => "SELECT @@global.read_only FROM (SELECT 1) AS one",
            false => "SELECT @@global.read_only",
        };
        match connection.query(statement) {
            Err(WireError::Server { code: ER_UNKNOWN_COM_ERROR, .. }) if in_galera => Ok(Access::Closed),
            rows => match rows?.first().map(says_read_only) {
                Some(true) => Ok(Access::ReadOnly),
                Some(false) => Ok(Access::Writable),
                None => Err(refused("@@read_only is no text".to_owned())),
            },
        }
    }

    /// Asks the same server again what it has executed, and nothing else, as who looks often does.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_executed(&mut self, connection: &mut Connection) -> Result<(), WireError> {
        (self.executed, self.applied) = executed(connection)?;
        Ok(())
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

/// Has a node of Galera answer whatever its cluster is like: without waiting for what the others have (`wsrep_sync_wait`), and with a
/// refusal when it is cut off (`wsrep_dirty_reads`). For this connection. Where it may not be set all stays as it is.
fn answer_at_once(connection: &mut Connection) -> Result<(), WireError> {
    match connection.query("SET SESSION wsrep_sync_wait = 0, wsrep_dirty_reads = OFF") {
        Ok(_) | Err(WireError::Server { .. } | WireError::AccessDenied { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// MariaDB 12 knows more values than ON; every one but OFF keeps ordinary clients from writing.
fn says_read_only(value: &str) -> bool {
    value != "OFF" && value != "0"
}

/// What a server has executed, and, of MariaDB, applied as a replica.
fn executed(connection: &mut Connection) -> Result<(GtidState, MariadbGtidState), WireError> {
    if connection.server_kind() == ServerKind::MySql {
        return Ok((GtidState::Mysql(gtids(connection, "gtid_executed")?), MariadbGtidState::new()));
    }
    let mut state: MariadbGtidState = gtids(connection, "gtid_binlog_state")?;
    let applied: MariadbGtidState = gtids(connection, "gtid_slave_pos")?;
    state.union_with(&applied);
    Ok((GtidState::Mariadb(state), applied))
}

/// Asks for a set of GTIDs; empty where the server has no such variable: MySQL before 5.6, MariaDB before 10.0. Not by SHOW
/// VARIABLES, which cuts long values.
fn gtids<S>(connection: &mut Connection, name: &str) -> Result<S, WireError>
where
    S: FromStr<Err = GtidError> + Default,
{
    match connection.query(&format!("SELECT @@global.{name}")) {
        Ok(rows) => gtids_in(&rows, &format!("@@{name}")),
        Err(WireError::Server { code: ER_UNKNOWN_SYSTEM_VARIABLE, .. }) => Ok(S::default()),
        Err(error) => Err(error),
    }
}

/// Reads the only value of an answer as a set of GTIDs. One that cannot be read must never pass for the empty set: a server
/// that has everything would look like one that lacks everything. `name` is what was asked for.
///
/// # Errors
/// With the text that was received.
pub fn gtids_in<S: FromStr<Err = GtidError>>(rows: &ResultSet, name: &str) -> Result<S, WireError> {
    let Some(text) = rows.first() else {
        let value = rows.rows.first().and_then(|row| row.first()?.as_deref());
        return Err(refused(format!("{name} is {}, not a set of GTIDs", shown(value))));
    };
    text.parse().map_err(|error| {
        refused(format!("{name} is {}, not a set of GTIDs: {error}", shown(Some(text.as_bytes()))))
    })
}

/// Reads the only row's `@@global.server_id`. For MariaDB it stands for the server, so none may be made up.
///
/// # Errors
/// With the text that was received.
pub fn server_id_in(rows: &ResultSet) -> Result<u32, WireError> {
    let id = rows.get(0, "@@global.server_id");
    id.and_then(|id| id.parse().ok())
        .ok_or_else(|| refused(format!("@@server_id is {}, not a number", shown(id.map(str::as_bytes)))))
}

fn refused(what: String) -> WireError {
    WireError::Protocol { during: DURING, what }
}

/// An answer for people. It may be as long as the peer likes.
fn shown(value: Option<&[u8]>) -> String {
    let Some(value) = value else { return "NULL".to_owned() };
    let cut = if value.len() > ANSWER_BYTES_SHOWN_MAX { "…" } else { "" };
    format!("{:?}{cut}", printable(value, ANSWER_BYTES_SHOWN_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(name: &str, value: Option<&[u8]>) -> ResultSet {
        ResultSet { columns: vec![name.to_owned()], rows: vec![vec![value.map(<[u8]>::to_vec)]] }
    }

    #[test]
    fn a_set_that_cannot_be_read_is_not_the_empty_one() {
        let executed =
            |value| gtids_in::<GtidSet>(&answer("@@global.gtid_executed", value), "@@gtid_executed");
        assert!(executed(Some(b"")).unwrap().is_empty(), "a server that has executed nothing says so");
        let set = b"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:tag:7";
        assert_eq!(executed(Some(set)).unwrap().iter().count(), 2);
        for (value, words) in [
            (None, "@@gtid_executed is NULL"),
            (
                Some(&b"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-x"[..]),
                "429562:1-x\", not a set of GTIDs: \"1-x\" is not",
            ),
            (Some(b"0-1-100"), "@@gtid_executed is \"0-1-100\", not a set of GTIDs"),
            (Some(b"\xff\x1b[2J"), "@@gtid_executed is \"\u{fffd} [2J\""),
        ] {
            let error = executed(value).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let error = gtids_in::<GtidSet>(&ResultSet::default(), "@@gtid_executed").unwrap_err().to_string();
        assert!(error.contains("@@gtid_executed is NULL"), "no row: {error}");
        let huge = "x".repeat(1 << 20);
        let error = executed(Some(huge.as_bytes())).unwrap_err().to_string();
        assert!(error.len() < 500 && error.contains("xxx\"…"), "{error}");

        let state = |value| gtids_in::<MariadbGtidState>(&answer("s", Some(value)), "@@gtid_binlog_state");
        assert!(state(b"").unwrap().is_empty());
        assert_eq!(state(b"0-1-100,0-2-130").unwrap().list().count(), 2);
        let error = state(b"0-1-100,0-2").unwrap_err().to_string();
        assert!(
            error.contains("@@gtid_binlog_state is \"0-1-100,0-2\"") && error.contains("\"0-2\""),
            "{error}"
        );
    }

    #[test]
    fn a_server_id_is_not_made_up() {
        let id = |value| server_id_in(&answer("@@global.server_id", value));
        assert_eq!((id(Some(b"0")).unwrap(), id(Some(b"4294967295")).unwrap()), (0, u32::MAX));
        for (value, words) in
            [(None, "NULL"), (Some(&b"4294967296"[..]), "\"4294967296\""), (Some(b""), "\"\"")]
        {
            let error = id(value).unwrap_err().to_string();
            assert!(error.contains(&format!("@@server_id is {words}, not a number")), "{error}");
        }
    }

    /// It knows one server of each domain by name, and has everything in that domain up to there.
    #[test]
    fn a_mariadb_replica_without_a_log_of_its_own_has_what_its_position_covers() {
        let server = SourceIdentity {
            version: String::new(),
            kind: ServerKind::MariaDb,
            server_id: 3,
            uuid: "mariadb-3".into(),
            has_gtids: true,
            executed: GtidState::parse(ServerKind::MariaDb, "0-2-50,0-3-60").unwrap(),
            applied: "0-2-50".parse().unwrap(),
            purged: GtidState::empty(ServerKind::MariaDb),
            semi_sync: SourceSemiSync::Absent,
            is_read_only: false,
            galera: None,
            knows_checksums: true,
        };
        let held = GtidState::parse(ServerKind::MariaDb, "0-1-10,0-2-55,0-3-58,4-1-1").unwrap();
        assert_eq!(server.lacks(&held), GtidState::parse(ServerKind::MariaDb, "0-2-55,4-1-1").unwrap());
        let id = |text: &str| TransactionId::Mariadb(text.parse().unwrap());
        assert!(server.has(&id("0-1-49")) && server.has(&id("0-3-60")));
        assert!(!server.has(&id("0-1-51")) && !server.has(&id("0-3-61")) && !server.has(&id("4-1-1")));
        assert_eq!(server.own(&held), GtidState::parse(ServerKind::MariaDb, "0-3-58").unwrap());
    }
}
