//! MySQL or MariaDB: which of the two a server, a file or a set of GTIDs is of.

use std::fmt;
use std::str::FromStr;

/// The capability that MySQL calls CLIENT_LONG_PASSWORD and always sets. MariaDB calls it CLIENT_MYSQL and leaves it out.
const CLIENT_MYSQL: u32 = 1;

/// The two kinds of server. They differ in their GTIDs, in some events and in the texts of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// MySQL and its relatives, such as Percona Server and Aurora. Its GTIDs are `uuid:number` or `uuid:tag:number`.
    MySql,
    /// MariaDB. Its GTIDs are `domain-server-sequence`.
    MariaDb,
}

impl ServerKind {
    /// By a server's version alone, as it stands in the format description of a file. MariaDB says its name there. The
    /// numbers say nothing: MySQL has versions above 9 too, and counts them by years (26.7).
    pub fn of_version(version: &str) -> ServerKind {
        if version.contains("MariaDB") { ServerKind::MariaDb } else { ServerKind::MySql }
    }

    /// By the version and the capabilities (CLIENT_* bits) of a server's greeting. MariaDB 10.2 and later leave out
    /// CLIENT_MYSQL, even when a distribution has changed the text of the version (MariaDB Knowledge Base, "Connection").
    pub fn of_greeting(version: &str, capabilities: u32) -> ServerKind {
        if capabilities & CLIENT_MYSQL == 0 { ServerKind::MariaDb } else { ServerKind::of_version(version) }
    }

    /// The one that this is not.
    pub const fn other(self) -> ServerKind {
        match self {
            ServerKind::MySql => ServerKind::MariaDb,
            ServerKind::MariaDb => ServerKind::MySql,
        }
    }

    /// `mysql` or `mariadb`, for files and for the arguments of programs. [`FromStr`] reads it back.
    pub const fn name(self) -> &'static str {
        match self {
            ServerKind::MySql => "mysql",
            ServerKind::MariaDb => "mariadb",
        }
    }
}

/// For people: `MySQL` or `MariaDB`.
impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ServerKind::MySql => "MySQL",
            ServerKind::MariaDb => "MariaDB",
        })
    }
}

/// A text that names no kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a kind of server is `mysql` or `mariadb`")]
pub struct UnknownServerKind;

impl FromStr for ServerKind {
    type Err = UnknownServerKind;

    /// Reads what [`ServerKind::name`] gives.
    fn from_str(name: &str) -> Result<ServerKind, UnknownServerKind> {
        let kinds = [ServerKind::MySql, ServerKind::MariaDb];
        kinds.into_iter().find(|kind| kind.name() == name).ok_or(UnknownServerKind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MySQL 9.7 is followed by 26.7; MariaDB is at 12.
    #[test]
    fn a_number_does_not_tell_the_kind() {
        for version in ["5.7.22-log", "9.7.0", "10.0.1", "11.8.3", "26.7.0", "28.4.1-lts", "5.5.5-m3-log"] {
            assert_eq!(ServerKind::of_version(version), ServerKind::MySql, "{version}");
            assert_eq!(ServerKind::of_greeting(version, 0xDFFF_FFFF), ServerKind::MySql, "{version}");
            assert_eq!(ServerKind::of_greeting(version, 0xDFFF_FFFE), ServerKind::MariaDb, "{version}");
        }
        for version in ["12.1.2-MariaDB", "5.5.5-11.8.3-MariaDB", "11.8.6-MariaDB-0+deb13u1-log"] {
            assert_eq!(ServerKind::of_version(version), ServerKind::MariaDb, "{version}");
            assert_eq!(ServerKind::of_greeting(version, 0xDFFF_FFFF), ServerKind::MariaDb, "{version}");
        }
    }

    #[test]
    fn a_name_is_read_back() {
        for kind in [ServerKind::MySql, ServerKind::MariaDb] {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.to_string().to_lowercase(), kind.name());
            assert_eq!(kind.other().other(), kind);
            assert_ne!(kind.other(), kind);
        }
        assert_eq!("MySQL".parse::<ServerKind>(), Err(UnknownServerKind));
        assert_eq!("".parse::<ServerKind>(), Err(UnknownServerKind));
    }
}
