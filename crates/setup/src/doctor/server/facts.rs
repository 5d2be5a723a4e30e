//! What a server says of itself.

use super::provider::{ASKED, Provider};
use codec::ServerKind;
use codec::packet::release;
use source::settings::{REFUSED_BY, Refusal, refusal};
use std::collections::BTreeMap;
use wire::{Connection, ResultSet, WireError};

/// ER_PARSE_ERROR: the server does not know the statement.
const ER_PARSE_ERROR: u16 = 1064;

/// The variables that are looked at, apart from those of semi-sync. What a server does not have is absent.
const VARIABLES: [&str; 22] = [
    "version",
    "version_comment",
    "server_id",
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_checksum",
    "gtid_mode",
    "enforce_gtid_consistency",
    "gtid_strict_mode",
    "sync_binlog",
    "innodb_flush_log_at_trx_commit",
    "binlog_expire_logs_seconds",
    "binlog_expire_logs_auto_purge",
    "expire_logs_days",
    "max_binlog_total_size",
    "binlog_encryption",
    "encrypt_binlog",
    "read_only",
    "super_read_only",
    "init_rpl_role",
];

/// Of a member of a group of MySQL's Group Replication: there with the plugin, empty where no group is configured.
pub(super) const GROUP_NAME: &str = "group_replication_group_name";

/// An answer, or why there is none.
pub(crate) type Answer<T> = Result<T, String>;

/// Everything that the checks look at.
#[derive(Debug, Clone)]
pub struct Facts {
    /// MySQL or MariaDB.
    pub kind: ServerKind,
    /// `@@version`.
    pub version: String,
    /// `CURRENT_USER()`: `user@host` as the server matched the account.
    pub account: String,
    /// `TLSv1.2` or `TLSv1.3`; `None` without encryption.
    pub tls_version: Option<String>,
    /// The authentication method of the account.
    pub auth_plugin: String,
    /// Whether the server is on this machine.
    pub loopback: bool,
    /// The lines of SHOW GRANTS, those of active roles among them. MariaDB's hold password hashes: never print them.
    pub grants: Answer<Vec<String>>,
    /// The replicas that are registered now.
    pub replicas: Answer<Vec<Replica>>,
    /// Global variables by name.
    pub variables: BTreeMap<String, String>,
    /// Semi-sync replicas attached now; `None` when the server does not say.
    pub semi_sync_clients: Option<u64>,
    /// Whether the source waits for acknowledgements now, though it was told to; `None` when the server does not say.
    pub semi_sync_waits: Option<bool>,
    /// Whether it is an ONLINE member of a group of MySQL's Group Replication; `None` where the account may not ask.
    pub in_group: Option<bool>,
}

/// A registered replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// Its server id.
    pub server_id: u32,
    /// The host that it reported; often empty.
    pub host: String,
    /// Its UUID; MariaDB does not tell.
    pub uuid: Option<String>,
}

impl Facts {
    /// Asks the server. Changes nothing and needs no privilege; what is refused is recorded as such.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn collect(connection: &mut Connection, loopback: bool) -> Result<Facts, WireError> {
        let account = connection.query("SELECT CURRENT_USER()")?;
        let account = account.first().ok_or_else(|| unreadable("CURRENT_USER() is no text".to_owned()))?;
        let more = ASKED.iter().chain(&REFUSED_BY).chain([&GROUP_NAME]);
        let names = VARIABLES.iter().chain(more).map(|name| format!("'{name}'"));
        let names = names.collect::<Vec<_>>().join(", ");
        let variables = connection.query(&format!(
            "SHOW GLOBAL VARIABLES WHERE Variable_name LIKE 'rpl_semi_sync%' OR Variable_name IN ({names})"
        ))?;
        let variables = variables.variables().map_err(unreadable)?;
        let status = connection.query("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync%'")?;
        let status = status.variables().map_err(unreadable)?;
        let of_status = |names: [&str; 2]| names.into_iter().find_map(|name| status.get(name));
        let clients = of_status(["rpl_semi_sync_source_clients", "rpl_semi_sync_master_clients"]);
        let waits = of_status(["rpl_semi_sync_source_status", "rpl_semi_sync_master_status"]);
        let grants = answered(connection.query("SHOW GRANTS"))?.map(|rows| first_column(&rows));
        let replicas = ask_for_replicas(connection)?;
        // The name alone stays when the server has left the group.
        let in_group = match variables.get(GROUP_NAME).is_some_and(|name| !name.is_empty()) {
            true => ask_in_group(connection)?,
            false => Some(false),
        };
        Ok(Facts {
            kind: connection.server_kind(),
            version: variables.get("version").map_or(connection.server_version(), String::as_str).to_owned(),
            account: account.to_owned(),
            tls_version: connection.tls_version().map(str::to_owned),
            auth_plugin: connection.auth_plugin().to_owned(),
            loopback,
            grants,
            replicas,
            semi_sync_clients: clients.and_then(|count| count.parse().ok()),
            semi_sync_waits: waits.map(|waits| waits == "ON"),
            in_group,
            variables,
        })
    }

    /// A global variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// A global variable that is a number. MariaDB writes days with decimals.
    pub fn number(&self, name: &str) -> Option<u64> {
        let value = self.variable(name)?;
        value.split('.').next()?.parse().ok()
    }

    /// Whether a global variable is switched on.
    pub fn is_on(&self, name: &str) -> bool {
        matches!(self.variable(name), Some("ON" | "1"))
    }

    /// What keeps it from being one of so many hosts of a source.
    pub fn refusal(&self, hosts: usize) -> Option<Refusal> {
        refusal(|name| self.variable(name), hosts)
    }

    /// Who runs it, where that is a provider.
    pub(crate) fn provider(&self) -> Option<Provider> {
        Provider::of(&self.version, &self.variables)
    }

    /// Whether it has this version or a later one. One that cannot be read is not an old one.
    pub fn is_from(&self, major: u32, minor: u32, patch: u32) -> bool {
        release(&self.version).is_none_or(|release| release >= (major, minor, patch))
    }

    /// The account for a statement: `'repl'@'%'`.
    pub fn quoted_account(&self) -> String {
        let (user, host) = self.account.rsplit_once('@').unwrap_or((&self.account, "%"));
        let quote = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
        format!("{}@{}", quote(user), quote(host))
    }

    /// Whether a variable can be set so that it lasts over a restart.
    pub fn persists(&self) -> bool {
        self.kind == ServerKind::MySql && self.is_from(8, 0, 0)
    }

    /// The statement that sets a global variable, so that it lasts where the server can do that; where a provider runs it, what is done
    /// instead, as a comment.
    pub fn set(&self, name: &str, value: &str) -> String {
        if let Some(provider) = self.provider() {
            provider.set(name, value)
        } else if self.persists() {
            format!("SET PERSIST {name} = {value};")
        } else {
            format!("SET GLOBAL {name} = {value}; -- and in the server's option file, to last")
        }
    }
}

/// Needs SELECT on the table, which the account of binlogd has not.
fn ask_in_group(connection: &mut Connection) -> Result<Option<bool>, WireError> {
    let own = "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid AND member_state = 'ONLINE'";
    let rows = answered(connection.query(own))?;
    Ok(rows.ok().and_then(|rows| rows.first().map(|count| count != "0")))
}

/// SHOW REPLICAS came with MySQL 8.0.22, and SHOW SLAVE HOSTS left with 8.4.
fn ask_for_replicas(connection: &mut Connection) -> Result<Answer<Vec<Replica>>, WireError> {
    let rows = match connection.query("SHOW REPLICAS") {
        Err(WireError::Server { code: ER_PARSE_ERROR, .. }) => connection.query("SHOW SLAVE HOSTS"),
        other => other,
    };
    Ok(answered(rows)?.map(|rows| {
        // A row that cannot be read is left out; the semi-sync counters show that there is one more.
        let replica = |row| {
            let uuid = rows.get(row, "Replica_UUID").or_else(|| rows.get(row, "Slave_UUID"));
            Some(Replica {
                server_id: rows.get(row, "Server_Id")?.parse().ok()?,
                host: rows.get(row, "Host").unwrap_or_default().to_owned(),
                uuid: uuid.map(str::to_owned),
            })
        };
        (0..rows.rows.len()).filter_map(replica).collect()
    }))
}

/// Parts an answer of the server, a refusal included, from a broken connection.
pub fn answered(result: Result<ResultSet, WireError>) -> Result<Answer<ResultSet>, WireError> {
    match result {
        Ok(rows) => Ok(Ok(rows)),
        Err(WireError::AccessDenied { message, .. } | WireError::Server { message, .. }) => Ok(Err(message)),
        Err(error) => Err(error),
    }
}

/// The first column, as text.
pub fn first_column(rows: &ResultSet) -> Vec<String> {
    let text =
        |row: &Vec<Option<Vec<u8>>>| Some(String::from_utf8_lossy(row.first()?.as_deref()?).into_owned());
    rows.rows.iter().filter_map(text).collect()
}

/// What cannot be read is not what the server does not have.
fn unreadable(what: String) -> WireError {
    WireError::Protocol { during: "asking the server what it is", what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::test_facts::{mariadb, mysql};

    #[test]
    fn later_versions_are_later() {
        let is_from_8 = |version: &str| Facts { version: version.to_owned(), ..mysql() }.is_from(8, 0, 26);
        for version in ["8.0.26", "8.0.36-28", "9.7.0", "26.7.0", "28.4.1-lts", "", "x", "99999999999.1"] {
            assert!(is_from_8(version), "{version}");
        }
        for version in ["8.0.25", "5.7.44-48-57-log", "8"] {
            assert!(!is_from_8(version), "{version}");
        }
    }

    #[test]
    fn accounts_are_quoted_for_sql() {
        for (account, quoted) in
            [("repl@%", "'repl'@'%'"), ("a@b@h", "'a@b'@'h'"), ("o'x@h", "'o''x'@'h'"), ("", "''@'%'")]
        {
            assert_eq!(Facts { account: account.to_owned(), ..mysql() }.quoted_account(), quoted);
        }
    }

    #[test]
    fn a_setting_lasts_where_it_can() {
        assert_eq!(mysql().set("a", "1"), "SET PERSIST a = 1;");
        assert!(mariadb().set("a", "1").starts_with("SET GLOBAL a = 1; -- "));
        assert!(Facts { version: "5.7.22".to_owned(), ..mysql() }.set("a", "1").starts_with("SET GLOBAL"));
    }

    #[test]
    fn numbers_with_decimals() {
        let facts = crate::doctor::test_facts::with(mariadb(), "expire_logs_days", Some("10.000000"));
        assert_eq!((facts.number("expire_logs_days"), facts.number("none")), (Some(10), None));
    }
}
