//! What the source says of itself in its variables and counters: semi-sync, and its commits. Any account may read them.

use crate::session::left_behind::Commits;
use codec::ServerKind;
use codec::packet::printable;
use jiff::Timestamp;
use source::identify::server_id_in;
use status::{SemiSyncLook, Watched};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{Connection, ResultSet, WireError};

/// Longest time for a look, if `connect_timeout` is not shorter: a source that takes longer tells nothing new.
pub(crate) const LOOK_MAX: Duration = Duration::from_secs(5);

/// Bytes that are shown at most of the name of a wait point.
const WAIT_POINT_BYTES_MAX: usize = 32;

/// What one look has found: facts of one moment, of the server that the session receives from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceLook {
    /// Semi-sync at the source; `None` when it has none.
    pub(crate) semi_sync: Option<SemiSyncLook>,
    /// Another replica that has taken our place in the source's list; see `rival.rs`.
    pub(crate) rival: Option<String>,
    /// When the server began to run, by its word.
    pub(crate) started: Option<Timestamp>,
    /// Its commits.
    pub(crate) commits: Commits,
}

/// Asks for everything that a look holds, which begins at that moment. Needs no privilege.
pub(crate) fn ask(
    connection: &mut Connection,
    watched: &Watched,
    at: Timestamp,
) -> Result<SourceLook, WireError> {
    connection.set_timeout(LOOK_MAX);
    check_server(connection, watched)?;
    let variables = named(&connection.query("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync%'")?)?;
    let status = named(&connection.query("SHOW GLOBAL STATUS LIKE 'rpl_semi_sync%'")?)?;
    Ok(SourceLook {
        semi_sync: semi_sync(at, &variables, &status)?,
        rival: None,
        started: None,
        commits: commits(connection, &status)?,
    })
}

/// When the server began to run, by our clock, which shows `now`; `None` where the server does not say.
pub(crate) fn started(connection: &mut Connection, now: Timestamp) -> Result<Option<Timestamp>, WireError> {
    let status = named(&connection.query("SHOW GLOBAL STATUS LIKE 'Uptime'")?)?;
    if !status.contains_key("uptime") {
        return Ok(None);
    }
    let uptime = Duration::from_secs(number("uptime", &status)?);
    Ok(now.checked_sub(uptime).ok())
}

/// Reads what tells that something is committed which does not arrive.
fn commits(connection: &mut Connection, status: &BTreeMap<String, String>) -> Result<Commits, WireError> {
    let set = match connection.server_kind() {
        ServerKind::MySql => "gtid_executed",
        ServerKind::MariaDb => "gtid_binlog_state",
    };
    // A set can have megabytes. MD5, which would do, is no function of MySQL 9.7 any more.
    let executed = match connection.query(&format!("SELECT SHA2(@@global.{set}, 256)")) {
        Ok(rows) => rows.first().map(str::to_owned),
        // MySQL 5.5 has no such variable. `None` is not known, which is asked about as often as what changes.
        Err(WireError::Server { .. }) => None,
        Err(error) => return Err(error),
    };
    // Without semi-sync nobody waits.
    Ok(Commits { waiting: waiting(status)?.unwrap_or(0), executed })
}

/// Whether a commit waits on the source for an acknowledgement, or that cannot be asked.
pub(crate) fn may_wait(connection: &mut Connection) -> bool {
    ask_waiting(connection).map_or(true, |waiting| waiting != Some(0))
}

/// Sessions whose commit waits for an acknowledgement now, where the server says how many.
pub(super) fn ask_waiting(connection: &mut Connection) -> Result<Option<u64>, WireError> {
    let status = connection.query("SHOW GLOBAL STATUS LIKE 'rpl_semi_sync%wait_sessions'")?;
    waiting(&named(&status)?)
}

/// Sessions whose commit waits for an acknowledgement, where the source says how many.
fn waiting(status: &BTreeMap<String, String>) -> Result<Option<u64>, WireError> {
    let mut names = ["source", "master"].iter().map(|role| format!("rpl_semi_sync_{role}_wait_sessions"));
    names.find(|name| status.contains_key(name)).map(|name| number(&name, status)).transpose()
}

/// An address can lead to several servers, through a proxy for instance.
pub(crate) fn check_server(connection: &mut Connection, watched: &Watched) -> Result<(), WireError> {
    let is_the_same = match &watched.server_uuid {
        Some(uuid) if connection.server_kind() == ServerKind::MySql => {
            connection.query("SELECT @@global.server_uuid")?.first() == Some(uuid)
        }
        Some(_) => false,
        None => Some(server_id_in(&connection.query("SELECT @@global.server_id")?)?) == watched.server_id,
    };
    if is_the_same {
        return Ok(());
    }
    Err(WireError::Protocol {
        during: "looking at the source",
        what: format!("a second connection to {} leads to another server", watched.host),
    })
}

/// Reads what the source says of its side of semi-sync; `None` when it has none.
fn semi_sync(
    at: Timestamp,
    variables: &BTreeMap<String, String>,
    status: &BTreeMap<String, String>,
) -> Result<Option<SemiSyncLook>, WireError> {
    // MySQL since 8.0.26, and before; MariaDB has the old names.
    let Some((role, replica)) = [("source", "replica"), ("master", "slave")]
        .into_iter()
        .find(|(role, _)| variables.contains_key(&format!("rpl_semi_sync_{role}_enabled")))
    else {
        return Ok(None);
    };
    let variable = |name: &str| variables.get(&format!("rpl_semi_sync_{role}_{name}")).map(String::as_str);
    let counter = |name: &str| number(&format!("rpl_semi_sync_{role}_{name}"), status);
    Ok(Some(SemiSyncLook {
        at,
        enabled: is_on(variable("enabled")),
        on: is_on(status.get(&format!("rpl_semi_sync_{role}_status")).map(String::as_str)),
        clients: counter("clients")?,
        wait_sessions: waiting(status)?,
        yes_tx: counter("yes_tx")?,
        no_tx: counter("no_tx")?,
        timeout_ms: number(&format!("rpl_semi_sync_{role}_timeout"), variables)?,
        wait_point: variable("wait_point").map(|text| printable(text.as_bytes(), WAIT_POINT_BYTES_MAX)),
        wait_no_replica: variable(&format!("wait_no_{replica}")).map(|value| is_on(Some(value))),
        wait_for_replica_count: match variable(&format!("wait_for_{replica}_count")) {
            Some(_) => Some(number(&format!("rpl_semi_sync_{role}_wait_for_{replica}_count"), variables)?),
            None => None,
        },
        waiting_since: None,
    }))
}

fn is_on(value: Option<&str>) -> bool {
    matches!(value, Some("ON" | "1"))
}

fn number(name: &str, values: &BTreeMap<String, String>) -> Result<u64, WireError> {
    let value = values.get(name).map(String::as_str);
    value.and_then(|text| text.parse().ok()).ok_or_else(|| WireError::Protocol {
        during: "looking at the source",
        what: format!("{name} is {value:?}, not a number"),
    })
}

fn named(rows: &ResultSet) -> Result<BTreeMap<String, String>, WireError> {
    rows.variables().map_err(|what| WireError::Protocol { during: "looking at the source", what })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn both_families_of_names_are_read() {
        let mysql = semi_sync(
            Timestamp::UNIX_EPOCH,
            &values(&[
                ("rpl_semi_sync_source_enabled", "ON"),
                ("rpl_semi_sync_source_timeout", "10000"),
                ("rpl_semi_sync_source_wait_for_replica_count", "1"),
                ("rpl_semi_sync_source_wait_no_replica", "ON"),
                ("rpl_semi_sync_source_wait_point", "AFTER_SYNC"),
            ]),
            &values(&[
                ("rpl_semi_sync_source_clients", "2"),
                ("rpl_semi_sync_source_no_tx", "3871"),
                ("rpl_semi_sync_source_status", "OFF"),
                ("rpl_semi_sync_source_wait_sessions", "4"),
                ("rpl_semi_sync_source_yes_tx", "5"),
            ]),
        );
        let look = mysql.unwrap().unwrap();
        assert_eq!((look.enabled, look.on, look.clients, look.no_tx, look.yes_tx), (true, false, 2, 3871, 5));
        assert_eq!((look.timeout_ms, look.wait_for_replica_count), (10_000, Some(1)));
        assert_eq!(look.wait_sessions, Some(4));
        assert_eq!((look.wait_point.as_deref(), look.wait_no_replica), (Some("AFTER_SYNC"), Some(true)));
        let mariadb = semi_sync(
            Timestamp::UNIX_EPOCH,
            &values(&[
                ("rpl_semi_sync_master_enabled", "OFF"),
                ("rpl_semi_sync_master_timeout", "10000"),
                ("rpl_semi_sync_master_wait_no_slave", "ON"),
                ("rpl_semi_sync_slave_enabled", "OFF"),
            ]),
            &values(&[
                ("rpl_semi_sync_master_clients", "0"),
                ("rpl_semi_sync_master_no_tx", "0"),
                ("rpl_semi_sync_master_status", "OFF"),
                ("rpl_semi_sync_master_yes_tx", "0"),
            ]),
        );
        let look = mariadb.unwrap().unwrap();
        assert_eq!(
            (look.enabled, look.wait_no_replica, look.wait_for_replica_count),
            (false, Some(true), None)
        );
    }

    #[test]
    fn a_count_that_cannot_be_read_is_not_zero() {
        let count = |text| waiting(&values(&[("rpl_semi_sync_master_wait_sessions", text)]));
        assert_eq!((count("0").unwrap(), count("3").unwrap()), (Some(0), Some(3)));
        assert_eq!(waiting(&values(&[])).unwrap(), None);
        let error = count("-1").unwrap_err().to_string();
        assert!(error.contains("wait_sessions is Some(\"-1\"), not a number"), "{error}");
    }

    #[test]
    fn a_server_without_semi_sync_and_one_that_makes_no_sense() {
        assert_eq!(semi_sync(Timestamp::UNIX_EPOCH, &values(&[]), &values(&[])).unwrap(), None);
        let enabled =
            values(&[("rpl_semi_sync_source_enabled", "ON"), ("rpl_semi_sync_source_timeout", "many")]);
        let error = semi_sync(Timestamp::UNIX_EPOCH, &enabled, &values(&[])).unwrap_err();
        assert!(error.to_string().contains("rpl_semi_sync_source_clients"), "{error}");
    }
}
