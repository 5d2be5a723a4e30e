//! A made-up copy and its source, for tests.

use super::facts::{Client, Facts, LogFile, Receiving, Replica, SemiSync, SessionLine, Upstream};
use crate::sql::Dialect;
use codec::ServerKind;
use config::Privileges;
use std::time::Duration;

/// What is true in these tests.
pub(super) struct Server {
    pub(super) kind: ServerKind,
    pub(super) version: &'static str,
    pub(super) privileges: Privileges,
}

pub(super) const MYSQL: Server =
    Server { kind: ServerKind::MySql, version: "9.7.4", privileges: Privileges::READ };
pub(super) const MARIADB: Server =
    Server { kind: ServerKind::MariaDb, version: "11.8.6-MariaDB-log", privileges: Privileges::READ };
pub(super) const ADMINISTERED: Server = Server { privileges: Privileges::ALL, ..MYSQL };

pub(super) const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

impl Server {
    pub(super) fn dialect(&self) -> Dialect {
        Dialect::new(self.kind, self.version)
    }

    pub(super) fn client(&self) -> Client {
        Client {
            connection_id: 7,
            user: "repl".to_owned(),
            host: "10.0.0.1".to_owned(),
            account_host: "%".to_owned(),
            privileges: self.privileges,
            tls: Some(("TLSv1.3".to_owned(), "TLS_AES_256_GCM_SHA384".to_owned())),
        }
    }
}

impl Facts for Server {
    fn kind(&self) -> ServerKind {
        self.kind
    }

    fn version(&self) -> String {
        self.version.to_owned()
    }

    fn server_id(&self) -> u32 {
        1
    }

    fn server_uuid(&self) -> Option<String> {
        (self.kind == ServerKind::MySql).then(|| UUID.to_owned())
    }

    fn source_variable(&self, name: &str) -> Option<String> {
        (name == "max_binlog_size").then(|| "4096".to_owned())
    }

    fn hostname(&self) -> String {
        "copy".to_owned()
    }

    fn port(&self) -> u16 {
        3307
    }

    fn max_allowed_packet(&self) -> u64 {
        16 << 20
    }

    fn wait_timeout(&self) -> Duration {
        Duration::from_secs(28_800)
    }

    fn net_write_timeout(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn connections_max(&self) -> u32 {
        500
    }

    fn requires_tls(&self) -> bool {
        true
    }

    fn now(&self) -> i64 {
        1_700_000_000_123_456
    }

    fn random(&self) -> [u8; 16] {
        [0xFF; 16]
    }

    fn uptime_seconds(&self) -> u64 {
        77
    }

    fn binary_logs(&self) -> Vec<LogFile> {
        let file = |name: &str, size| LogFile { name: name.to_owned(), size };
        vec![file("mysql-bin.000001", 1000), file("mysql-bin.000002", 512)]
    }

    fn gtid_executed(&self) -> String {
        match self.kind {
            ServerKind::MySql => format!("{UUID}:1-9"),
            ServerKind::MariaDb => "0-1-9".to_owned(),
        }
    }

    fn gtid_purged(&self) -> String {
        String::new()
    }

    fn gtid_binlog_state(&self) -> String {
        "0-1-9,0-2-8".to_owned()
    }

    fn history(&self) -> String {
        String::new()
    }

    fn timelines(&self) -> String {
        "0001-mariadb-1\tmysql-bin.000001\tmysql-bin.000002\t512".to_owned()
    }

    fn gtid_position(&self, file: &str, offset: u64) -> Option<String> {
        (file == "mysql-bin.000002" && offset == 300).then(|| "0-1-7".to_owned())
    }

    fn replicas(&self) -> Vec<Replica> {
        vec![Replica { server_id: 12, host: "reader".to_owned(), port: 3306, uuid: "c0ffee".to_owned() }]
    }

    fn sessions(&self) -> Vec<SessionLine> {
        let line = |connection_id, user: &str, statement: &str| SessionLine {
            connection_id,
            user: user.to_owned(),
            host: "10.0.0.1:5".to_owned(),
            command: "Query".to_owned(),
            seconds: 0,
            state: "starting".to_owned(),
            statement: Some(statement.to_owned()),
        };
        vec![line(7, "repl", "show processlist"), line(8, "other", &"x".repeat(200))]
    }

    fn upstream(&self) -> Upstream {
        Upstream {
            state: "receiving".to_owned(),
            host: "db1".to_owned(),
            port: 3306,
            user: "binlogd".to_owned(),
            receiving: Receiving::Yes,
            file: "mysql-bin.000002".to_owned(),
            received: 600,
            durable: 512,
            durable_gtids: self.gtid_executed(),
            server_id: 9,
            server_uuid: UUID.to_owned(),
            seconds_behind: Some(0),
            error_number: 2003,
            error: "refused".to_owned(),
            error_time: Some(1_700_000_000_000_000),
            tls: Some("TLSv1.3".to_owned()),
        }
    }

    fn semi_sync(&self) -> SemiSync {
        SemiSync {
            enabled: true,
            wait_for: 1,
            timeout: Duration::from_secs(10),
            clients: 1,
            waiting: 0,
            acknowledged: 2,
            not_acknowledged: 3,
        }
    }
}
