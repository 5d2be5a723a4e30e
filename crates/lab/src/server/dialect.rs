//! Where the servers differ: MySQL 5.7, 8.0 and later, and MariaDB.

use anyhow::Context;
use rig::server::Session;

/// A kind of server and its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    mariadb: bool,
    version: (u32, u32, u32),
}

/// The names of one role of semi-sync: the source's or the replica's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SemiSyncNames {
    /// What its variables and counters begin with, with the last underscore.
    pub prefix: &'static str,
    /// The plugin and its file; `None` where it is built in.
    pub plugin: Option<(&'static str, &'static str)>,
}

impl Dialect {
    /// That of the server of a session.
    ///
    /// # Errors
    /// When its version is not understood.
    pub fn of(session: &Session) -> anyhow::Result<Dialect> {
        let version = session.version();
        Dialect::parse(version, session.is_mariadb())
            .with_context(|| format!("the server calls its version {version:?}, which is not understood"))
    }

    fn parse(version: &str, mariadb: bool) -> Option<Dialect> {
        // MariaDB before 11 pretends to be 5.5.5, so that old clients replicate from it.
        let version = version.strip_prefix("5.5.5-").filter(|_| mariadb).unwrap_or(version);
        let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
        let mut next = || numbers.next()?.ok();
        Some(Dialect { mariadb, version: (next()?, next()?, next()?) })
    }

    /// Whether it is MariaDB.
    pub fn is_mariadb(self) -> bool {
        self.mariadb
    }

    /// Whether it is MySQL of this version or a later one.
    pub fn is_mysql_from(self, major: u32, minor: u32, patch: u32) -> bool {
        !self.mariadb && self.version >= (major, minor, patch)
    }

    /// `mysql` or `mariadb`.
    pub fn kind(self) -> &'static str {
        if self.mariadb { "mariadb" } else { "mysql" }
    }

    /// The source's side of semi-sync.
    pub fn semi_sync_source(self) -> SemiSyncNames {
        match self {
            Dialect { mariadb: true, .. } => SemiSyncNames { prefix: "rpl_semi_sync_master_", plugin: None },
            _ if self.is_mysql_from(8, 0, 26) => SemiSyncNames {
                prefix: "rpl_semi_sync_source_",
                plugin: Some(("rpl_semi_sync_source", "semisync_source.so")),
            },
            _ => SemiSyncNames {
                prefix: "rpl_semi_sync_master_",
                plugin: Some(("rpl_semi_sync_master", "semisync_master.so")),
            },
        }
    }

    /// The replica's side of semi-sync.
    pub fn semi_sync_replica(self) -> SemiSyncNames {
        match self {
            Dialect { mariadb: true, .. } => SemiSyncNames { prefix: "rpl_semi_sync_slave_", plugin: None },
            _ if self.is_mysql_from(8, 0, 26) => SemiSyncNames {
                prefix: "rpl_semi_sync_replica_",
                plugin: Some(("rpl_semi_sync_replica", "semisync_replica.so")),
            },
            _ => SemiSyncNames {
                prefix: "rpl_semi_sync_slave_",
                plugin: Some(("rpl_semi_sync_slave", "semisync_slave.so")),
            },
        }
    }

    /// Throws away a server's binary logs.
    pub fn reset_logs(self) -> &'static str {
        if self.is_mysql_from(8, 2, 0) { "RESET BINARY LOGS AND GTIDS" } else { "RESET MASTER" }
    }

    /// Shows where the binary log ends.
    pub fn show_end(self) -> &'static str {
        if self.is_mysql_from(8, 2, 0) { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" }
    }

    /// `REPLICA`, or the older word for it in the names of statements.
    pub fn replica(self) -> &'static str {
        if self.is_mysql_from(8, 0, 22) { "REPLICA" } else { "SLAVE" }
    }

    /// The lab's own server that can be a semi-sync replica of this one: of the same kind, and not older.
    pub fn replica_server(self) -> Option<&'static str> {
        let (name, versions) = match self.mariadb {
            true => ("mariadb-11.8", (10, 2)..=(11, 8)),
            false => ("mysql-9.7", (8, 0)..=(9, 7)),
        };
        versions.contains(&(self.version.0, self.version.1)).then_some(name)
    }

    /// The option that lets a replica go on where rows that it is to change are absent.
    pub fn exec_mode_option(self) -> &'static str {
        if self.is_mysql_from(8, 0, 26) {
            "--replica-exec-mode=IDEMPOTENT"
        } else {
            "--slave-exec-mode=IDEMPOTENT"
        }
    }

    /// The size of the redo log.
    pub fn redo_log_option(self, mib: u32) -> String {
        if self.is_mysql_from(8, 0, 30) {
            format!("--innodb-redo-log-capacity={mib}M")
        } else if self.mariadb {
            format!("--innodb-log-file-size={mib}M")
        } else {
            // Two files, unless it is told otherwise.
            format!("--innodb-log-file-size={}M", mib / 2)
        }
    }

    /// Whether it compresses transactions of its binary log (`binlog_transaction_compression`).
    pub fn compresses_transactions(self) -> bool {
        self.is_mysql_from(8, 0, 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(version: &str, mariadb: bool) -> Dialect {
        Dialect::parse(version, mariadb).unwrap()
    }

    #[test]
    fn versions_are_read_as_servers_print_them() {
        assert!(dialect("9.7.0", false).is_mysql_from(9, 7, 0));
        assert!(dialect("8.0.31-debug", false).is_mysql_from(8, 0, 26));
        assert!(!dialect("8.0.15", false).is_mysql_from(8, 0, 26));
        assert_eq!(dialect("5.5.5-10.11.14-MariaDB-log", true).version, (10, 11, 14));
        assert_eq!(dialect("11.8.6-MariaDB-0+deb13u1", true).version, (11, 8, 6));
        assert_eq!(Dialect::parse("unknown", false), None);
        for version in ["26.7.0", "28.4.1-lts", "9.7.0-1.1-percona"] {
            assert!(dialect(version, false).is_mysql_from(8, 4, 0), "{version}");
            assert_eq!(dialect(version, false).kind(), "mysql");
        }
        assert!(dialect("28.4.1-lts", false).is_mysql_from(26, 7, 0));
        assert!(!dialect("8.0.36-28", false).is_mysql_from(8, 2, 0));
        let mariadb = dialect("5.5.5-11.8.3-MariaDB", true);
        assert_eq!(mariadb.version, (11, 8, 3));
        assert!(!mariadb.is_mysql_from(8, 0, 0) && !dialect("12.1.2-MariaDB", true).is_mysql_from(8, 0, 0));
    }

    #[test]
    fn each_server_is_spoken_to_in_its_own_words() {
        let (old, middle, new) =
            (dialect("5.7.22", false), dialect("8.0.31", false), dialect("9.7.0", false));
        let mariadb = dialect("11.8.6-MariaDB", true);
        assert_eq!(old.semi_sync_source().plugin, Some(("rpl_semi_sync_master", "semisync_master.so")));
        assert_eq!(middle.semi_sync_source().prefix, "rpl_semi_sync_source_");
        assert_eq!(
            mariadb.semi_sync_source(),
            SemiSyncNames { prefix: "rpl_semi_sync_master_", plugin: None }
        );
        assert_eq!(
            [old, middle, new, mariadb].map(Dialect::replica),
            ["SLAVE", "REPLICA", "REPLICA", "SLAVE"]
        );
        assert_eq!(middle.reset_logs(), "RESET MASTER");
        assert_eq!(new.reset_logs(), "RESET BINARY LOGS AND GTIDS");
        assert_eq!(middle.redo_log_option(1024), "--innodb-redo-log-capacity=1024M");
        assert_eq!(old.redo_log_option(1024), "--innodb-log-file-size=512M");
        assert!(!old.compresses_transactions() && new.compresses_transactions());
        assert_eq!(
            [old, middle, new, mariadb].map(Dialect::replica_server),
            [None, Some("mysql-9.7"), Some("mysql-9.7"), Some("mariadb-11.8")]
        );
        assert_eq!(dialect("9.8.0", false).replica_server(), None);
        assert_eq!(dialect("26.7.0", false).replica_server(), None, "newer than the lab's own");
        assert_eq!(dialect("12.1.2-MariaDB", true).replica_server(), None);
        assert_eq!(dialect("26.7.0", false).semi_sync_source(), new.semi_sync_source());
        assert_eq!(dialect("28.4.1-lts", false).reset_logs(), "RESET BINARY LOGS AND GTIDS");
    }
}
