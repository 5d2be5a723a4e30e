//! Another replica with our `server_id`.
//!
//! A source ends the older of two dumps with one replica UUID (MySQL) or one `server_id` (MariaDB) and says so. Of two
//! with one `server_id` and different UUIDs MySQL keeps both dumps: the newer one takes the older one's place in SHOW
//! REPLICAS without a word (`register_replica` of sql/rpl_source.cc), and both count as one replica where the source counts
//! acknowledgements by `server_id` (`AckContainer` of plugin/semisync/semisync_source.h).
//!
//! A MariaDB whose dump is ended in this way while semi-sync is on can hang for as long as the older one does not go away, and
//! with it the newer one and all commits (seen with 11.8: ten seconds and more). So the one that comes second asks before its first dump, and where the `server_id` is
//! taken it comes with another one, which disturbs nobody.

use codec::ServerKind;
use source::complaint::ER_PARSE_ERROR;
use wire::{Connection, ResultSet, WireError};

/// The replica that is registered with our `server_id` and another UUID than ours, in words. The one that comes second is told
/// by asking before it registers, and takes the other's place in the list; the one that was first by asking later. `None` too
/// where the server does not tell.
///
/// # Errors
/// When the connection fails.
pub(crate) fn rival(
    connection: &mut Connection,
    server_id: u32,
    replica_uuid: &str,
) -> Result<Option<String>, WireError> {
    if connection.server_kind() == ServerKind::MariaDb {
        return Ok(None);
    }
    let Some(rows) = listed(connection)? else { return Ok(None) };
    let other = (0..rows.rows.len()).find_map(|row| {
        // A row that cannot be read names no rival: this is a warning, and it accuses nobody on a guess.
        let id: u32 = rows.get(row, "Server_Id").or_else(|| rows.get(row, "Server_id"))?.parse().ok()?;
        let uuid = rows.get(row, "Replica_UUID").or_else(|| rows.get(row, "Slave_UUID"))?;
        let is_other = id == server_id && !uuid.is_empty() && !uuid.eq_ignore_ascii_case(replica_uuid);
        let host = rows.get(row, "Host").unwrap_or_default();
        let host = if host.is_empty() { String::new() } else { format!(" on {host}") };
        is_other.then(|| {
            format!("another replica{host} ({uuid}) is registered with {server_id}, ours: give each its own")
        })
    });
    Ok(other)
}

/// The registered replicas; `None` where the server does not tell.
fn listed(connection: &mut Connection) -> Result<Option<ResultSet>, WireError> {
    let rows = match connection.query("SHOW REPLICAS") {
        // SHOW REPLICAS came with MySQL 8.0.22.
        Err(WireError::Server { code: ER_PARSE_ERROR, .. }) => connection.query("SHOW SLAVE HOSTS"),
        other => other,
    };
    match rows {
        Ok(rows) => Ok(Some(rows)),
        Err(WireError::Server { .. } | WireError::AccessDenied { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Who may have a dump from a MariaDB with our `server_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nobody, as far as can be seen.
    No,
    /// A replica, or a connection of ours of before that the server has not found dead yet.
    Yes,
    /// The account may not see who is registered, and has another dump.
    Perhaps,
}

/// Asks a MariaDB who has our `server_id`. SHOW SLAVE HOSTS needs REPLICATION MASTER ADMIN; its own dumps any account sees.
///
/// # Errors
/// When the connection fails.
pub(crate) fn taken(connection: &mut Connection, server_id: u32) -> Result<Taken, WireError> {
    if let Some(rows) = listed(connection)? {
        return Ok(if is_listed(&rows, server_id) { Taken::Yes } else { Taken::No });
    }
    let dumps = "SELECT COUNT(*) FROM information_schema.processlist \
        WHERE command = 'Binlog Dump' AND user = SUBSTRING_INDEX(USER(), '@', 1)";
    match connection.query(dumps) {
        Ok(rows) if rows.first().is_some_and(|count| count != "0") => Ok(Taken::Perhaps),
        Ok(_) | Err(WireError::Server { .. } | WireError::AccessDenied { .. }) => Ok(Taken::No),
        Err(error) => Err(error),
    }
}

/// As [`rival`], of a MariaDB that we came to with another `server_id` than ours, because that was taken.
///
/// # Errors
/// When the connection fails.
pub(crate) fn rival_beside(connection: &mut Connection, server_id: u32) -> Result<Option<String>, WireError> {
    let is_taken = listed(connection)?.is_some_and(|rows| is_listed(&rows, server_id));
    Ok(is_taken.then(|| {
        format!(
            "another replica is registered with {server_id}, ours, so binlogd has come with a random one: give each its own"
        )
    }))
}

fn is_listed(rows: &ResultSet, server_id: u32) -> bool {
    (0..rows.rows.len()).any(|row| {
        let id = rows.get(row, "Server_Id").or_else(|| rows.get(row, "Server_id"));
        id.and_then(|id| id.parse().ok()) == Some(server_id)
    })
}
