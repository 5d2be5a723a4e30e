//! Where the servers differ: MySQL 5.7, 8.0 and later, and MariaDB.

use anyhow::Context;
use codec::ServerKind;
use codec::packet::release;
use rig::server::Session;

/// A kind of server and its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    kind: ServerKind,
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
        Dialect::parse(session.server_kind(), version)
            .with_context(|| format!("the server calls its version {version:?}, which is not understood"))
    }

    fn parse(kind: ServerKind, version: &str) -> Option<Dialect> {
        release(version).map(|version| Dialect { kind, version })
    }

    /// MySQL or MariaDB.
    pub fn kind(self) -> ServerKind {
        self.kind
    }

    /// Whether it is MySQL of this version or a later one.
    pub fn is_mysql_from(self, major: u32, minor: u32, patch: u32) -> bool {
        self.kind == ServerKind::MySql && self.version >= (major, minor, patch)
    }

    /// The source's side of semi-sync.
    pub fn semi_sync_source(self) -> SemiSyncNames {
        match self {
            Dialect { kind: ServerKind::MariaDb, .. } => {
                SemiSyncNames { prefix: "rpl_semi_sync_master_", plugin: None }
            }
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
            Dialect { kind: ServerKind::MariaDb, .. } => {
                SemiSyncNames { prefix: "rpl_semi_sync_slave_", plugin: None }
            }
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
        let (name, versions) = match self.kind {
            ServerKind::MySql => ("mysql-9.7", (8, 0)..=(9, 7)),
            ServerKind::MariaDb => ("mariadb-11.8", (10, 2)..=(11, 8)),
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
        } else if self.kind == ServerKind::MariaDb {
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

    fn mysql(version: &str) -> Dialect {
        Dialect::parse(ServerKind::MySql, version).unwrap()
    }

    fn mariadb(version: &str) -> Dialect {
        Dialect::parse(ServerKind::MariaDb, version).unwrap()
    }

    #[test]
    fn versions_are_read_as_servers_print_them() {
        assert!(mysql("9.7.0").is_mysql_from(9, 7, 0));
        assert!(mysql("8.0.31-debug").is_mysql_from(8, 0, 26));
        assert!(!mysql("8.0.15").is_mysql_from(8, 0, 26));
        assert_eq!(mariadb("11.8.6-MariaDB-0+deb13u1").version, (11, 8, 6));
        assert_eq!(Dialect::parse(ServerKind::MySql, "unknown"), None);
        for version in ["26.7.0", "28.4.1-lts", "9.7.0-1.1-percona"] {
            assert!(mysql(version).is_mysql_from(8, 4, 0), "{version}");
            assert_eq!(mysql(version).kind(), ServerKind::MySql);
        }
        assert!(mysql("28.4.1-lts").is_mysql_from(26, 7, 0));
        assert!(!mysql("8.0.36-28").is_mysql_from(8, 2, 0));
        let mariadb_11 = mariadb("11.8.3-MariaDB");
        assert_eq!(mariadb_11.version, (11, 8, 3));
        assert!(!mariadb_11.is_mysql_from(8, 0, 0) && !mariadb("12.1.2-MariaDB").is_mysql_from(8, 0, 0));
    }

    #[test]
    fn each_server_is_spoken_to_in_its_own_words() {
        let (old, middle, new) = (mysql("5.7.22"), mysql("8.0.31"), mysql("9.7.0"));
        let mariadb_11 = mariadb("11.8.6-MariaDB");
        assert_eq!(old.semi_sync_source().plugin, Some(("rpl_semi_sync_master", "semisync_master.so")));
        assert_eq!(middle.semi_sync_source().prefix, "rpl_semi_sync_source_");
        assert_eq!(
            mariadb_11.semi_sync_source(),
            SemiSyncNames { prefix: "rpl_semi_sync_master_", plugin: None }
        );
        assert_eq!(
            [old, middle, new, mariadb_11].map(Dialect::replica),
            ["SLAVE", "REPLICA", "REPLICA", "SLAVE"]
        );
        assert_eq!(middle.reset_logs(), "RESET MASTER");
        assert_eq!(new.reset_logs(), "RESET BINARY LOGS AND GTIDS");
        assert_eq!(middle.redo_log_option(1024), "--innodb-redo-log-capacity=1024M");
        assert_eq!(old.redo_log_option(1024), "--innodb-log-file-size=512M");
        assert!(!old.compresses_transactions() && new.compresses_transactions());
        assert_eq!(
            [old, middle, new, mariadb_11].map(Dialect::replica_server),
            [None, Some("mysql-9.7"), Some("mysql-9.7"), Some("mariadb-11.8")]
        );
        assert_eq!(mysql("9.8.0").replica_server(), None);
        assert_eq!(mysql("26.7.0").replica_server(), None, "newer than the lab's own");
        assert_eq!(mariadb("12.1.2-MariaDB").replica_server(), None);
        assert_eq!(mysql("26.7.0").semi_sync_source(), new.semi_sync_source());
        assert_eq!(mysql("28.4.1-lts").reset_logs(), "RESET BINARY LOGS AND GTIDS");
    }
}
