//! What is there on the server.

use super::step::quote;
use super::wish::Wish;
use crate::doctor::{Facts, answered, first_column};
use codec::ServerKind;
use rustix::net::getsockname;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use wire::{Connection, ResultSet, WireError};

/// ER_PARSE_ERROR: the server does not know the statement.
const ER_PARSE_ERROR: u16 = 1064;

/// What is there on the server.
#[derive(Debug, Clone)]
pub struct Server {
    /// What doctor looks at, as an administrator sees it.
    pub facts: Facts,
    /// From where the account may log in: as wished, or as the server sees this machine.
    pub pattern: String,
    /// The account.
    pub account: AccountSeen,
    /// An account of that name is there for another host.
    pub is_elsewhere: bool,
    /// The host from which the server replicates, or did; `None` when that is none or not to be seen.
    pub replica_of: Option<String>,
}

/// An account on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountSeen {
    /// It does not exist.
    Absent,
    /// It exists.
    There {
        /// The lines of SHOW GRANTS. MariaDB's hold password hashes: never print them.
        grants: Vec<String>,
        /// It must use TLS.
        requires_tls: bool,
    },
    /// The server does not say.
    Unknown(String),
}

impl Server {
    /// Asks the server. Changes nothing.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn ask(connection: &mut Connection, wish: &Wish) -> Result<Server, WireError> {
        let local = local_address(connection);
        let loopback = local.is_some_and(|address| address.is_loopback());
        let facts = Facts::collect(connection, loopback)?;
        let user = connection.query("SELECT USER()")?;
        let seen_as = user.first().and_then(|user| user.rsplit_once('@')).map_or("%", |(_, host)| host);
        let pattern = wish.pattern.clone().unwrap_or_else(|| pattern(seen_as, local));
        let account = ask_for_account(connection, &wish.account, &pattern)?;
        let others = format!(
            "SELECT 1 FROM mysql.user WHERE User = {} AND Host <> {}",
            quote(&wish.account),
            quote(&pattern)
        );
        let is_elsewhere = answered(connection.query(&others))?.is_ok_and(|rows| !rows.rows.is_empty());
        let replica_of = ask_for_source(connection, &facts)?;
        Ok(Server { facts, pattern, account, is_elsewhere, replica_of })
    }

    /// Whether the account is there.
    pub fn has_account(&self) -> bool {
        matches!(self.account, AccountSeen::There { .. })
    }

    /// The end of its binary log: file and position. `None` when it does not say.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn end_of_log(connection: &mut Connection) -> Result<Option<(String, u64)>, WireError> {
        let Some(rows) = Server::log_status(connection)? else { return Ok(None) };
        let position = rows.get(0, "Position").and_then(|position| position.parse().ok());
        Ok(rows.get(0, "File").map(str::to_owned).zip(position))
    }

    /// What it says of its binary log. `None` when it does not.
    pub(crate) fn log_status(connection: &mut Connection) -> Result<Option<ResultSet>, WireError> {
        // MySQL 8.2 brought the new word, and 8.4 lost the old one. MariaDB has the old one.
        let rows = match connection.query("SHOW BINARY LOG STATUS") {
            Err(WireError::Server { code: ER_PARSE_ERROR, .. }) => connection.query("SHOW MASTER STATUS"),
            other => other,
        };
        Ok(answered(rows)?.ok())
    }
}

/// This end of the connection.
fn local_address(connection: &Connection) -> Option<IpAddr> {
    let address = getsockname(connection.as_fd()).ok()?;
    SocketAddr::try_from(address).ok().map(|address| address.ip().to_canonical())
}

fn ask_for_account(connection: &mut Connection, user: &str, host: &str) -> Result<AccountSeen, WireError> {
    let (user, host) = (quote(user), quote(host));
    let sql = format!("SELECT ssl_type FROM mysql.user WHERE User = {user} AND Host = {host}");
    let rows = match answered(connection.query(&sql))? {
        Ok(rows) => rows,
        Err(refusal) => return Ok(AccountSeen::Unknown(refusal)),
    };
    if rows.rows.is_empty() {
        return Ok(AccountSeen::Absent);
    }
    let requires_tls = rows.first().is_some_and(|ssl_type| !ssl_type.is_empty());
    Ok(match answered(connection.query(&format!("SHOW GRANTS FOR {user}@{host}")))? {
        Ok(grants) => AccountSeen::There { grants: first_column(&grants), requires_tls },
        Err(refusal) => AccountSeen::Unknown(refusal),
    })
}

/// The host that the server is, or was, a replica of.
fn ask_for_source(connection: &mut Connection, facts: &Facts) -> Result<Option<String>, WireError> {
    let sql = match facts.kind {
        ServerKind::MariaDb => "SHOW ALL SLAVES STATUS",
        ServerKind::MySql if facts.is_from(8, 0, 22) => "SHOW REPLICA STATUS",
        ServerKind::MySql => "SHOW SLAVE STATUS",
    };
    // Who may not see it has rights enough for nothing else either, and is told so.
    let Some(rows) = answered(connection.query(sql))?.ok() else { return Ok(None) };
    Ok(rows.get(0, "Source_Host").or_else(|| rows.get(0, "Master_Host")).map(str::to_owned))
}

/// From where the account may log in, by how the server sees this machine: by an address, and by a name only where the
/// server says one and this end of the connection is not known.
fn pattern(seen_as: &str, local: Option<IpAddr>) -> String {
    match (seen_as.parse::<IpAddr>(), local) {
        (Ok(_), _) | (Err(_), None) => seen_as.to_owned(),
        // A name needs the server's DNS at each login.
        (Err(_), Some(local)) => local.to_canonical().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_for_this_machine_as_the_server_sees_it() {
        let local = |text: &str| Some(text.parse().unwrap());
        for (seen_as, at, expected) in [
            ("10.0.0.5", local("192.168.1.2"), "10.0.0.5"), // Behind an address translation.
            ("::1", local("::1"), "::1"),
            ("localhost", local("127.0.0.1"), "127.0.0.1"),
            ("binlogd1.example", local("::ffff:10.0.0.5"), "10.0.0.5"),
            ("binlogd1.example", None, "binlogd1.example"),
        ] {
            assert_eq!(pattern(seen_as, at), expected);
        }
    }
}
