//! The statements of one client's session, read and answered.
//!
//! First byte: the kind and version of the server that is presented, and what the client may do. Behind it packets, with a
//! zero byte between them.

use config::Privileges;
use serve::answer::{
    Answer, Client, Facts, LogFile, Replica, SemiSync, SessionLine, SessionState, Upstream, answer,
};
use serve::sql::{Dialect, STATEMENT_BYTES_MAX, Statements};
use codec::ServerKind;
use std::time::{Duration, Instant};

/// Longer than any packet may take, on a slow machine with a sanitizer.
const PACKET_MAX: Duration = Duration::from_secs(10);

/// Sends each packet.
pub fn run(data: &[u8]) {
    let Some((which, data)) = data.split_first() else { return };
    let versions = ["5.7.22-log", "8.0.31", "9.7.4", "10.11.6-MariaDB", "11.8.6-MariaDB-log"];
    let version = versions[usize::from(which & 0x0F) % versions.len()];
    let copy = Copy { kind: ServerKind::of_version(version), version };
    let client = Client {
        connection_id: 7,
        user: "reader".to_owned(),
        host: "10.0.0.1".to_owned(),
        account_host: "%".to_owned(),
        privileges: Privileges {
            read: which & 0x40 == 0,
            purge: which & 0x80 != 0,
            control: which & 0x80 != 0,
        },
        tls: None,
    };
    let mut session = SessionState::default();
    let server = Dialect::new(copy.kind, copy.version);
    for packet in data.split(|byte| *byte == 0) {
        let begun = Instant::now();
        let mut count = 0;
        for statement in Statements::new(packet, session.dialect(server)) {
            count += 1;
            match statement {
                Ok(statement) => check(&answer(&statement, &mut session, &client, &copy)),
                Err(error) => assert!(!error.packet().message.is_empty()),
            }
        }
        assert!(count <= packet.len().min(STATEMENT_BYTES_MAX), "a statement has at least one byte");
        assert!(
            begun.elapsed() < PACKET_MAX,
            "a packet of {} bytes took {:?}",
            packet.len(),
            begun.elapsed()
        );
    }
}

fn check(answer: &Answer) {
    match answer {
        Answer::Rows(rows) => {
            assert!(!rows.columns.is_empty());
            assert!(rows.rows.iter().all(|row| row.len() == rows.columns.len()));
        }
        Answer::Error(error) | Answer::Warned(error) => {
            assert!(error.code >= 1000 && error.sqlstate.len() == 5 && !error.message.is_empty())
        }
        Answer::Done | Answer::Act(_) => {}
    }
}

/// A copy in which nothing moves.
struct Copy {
    kind: ServerKind,
    version: &'static str,
}

impl Facts for Copy {
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
        Some("3e11fa47-71ca-11e1-9e33-c80aa9429562".to_owned())
    }

    fn source_variable(&self, _: &str) -> Option<String> {
        None
    }

    fn hostname(&self) -> String {
        "copy".to_owned()
    }

    fn port(&self) -> u16 {
        3307
    }

    fn max_allowed_packet(&self) -> u64 {
        1 << 20
    }

    fn wait_timeout(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn net_write_timeout(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn connections_max(&self) -> u32 {
        100
    }

    fn requires_tls(&self) -> bool {
        false
    }

    fn now(&self) -> i64 {
        1_700_000_000_000_000
    }

    fn random(&self) -> [u8; 16] {
        [7; 16]
    }

    fn uptime_seconds(&self) -> u64 {
        60
    }

    fn binary_logs(&self) -> Vec<LogFile> {
        vec![LogFile { name: "mysql-bin.000001".to_owned(), size: 512 }]
    }

    fn gtid_executed(&self) -> String {
        match self.kind {
            ServerKind::MySql => "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9".to_owned(),
            ServerKind::MariaDb => "0-1-9".to_owned(),
        }
    }

    fn gtid_purged(&self) -> String {
        String::new()
    }

    fn gtid_binlog_state(&self) -> String {
        "0-1-9".to_owned()
    }

    fn history(&self) -> String {
        String::new()
    }

    fn timelines(&self) -> String {
        "0001-mariadb-1\tmysql-bin.000001\tmysql-bin.000002\t512".to_owned()
    }

    fn gtid_position(&self, _: &str, _: u64) -> Option<String> {
        Some("0-1-9".to_owned())
    }

    fn replicas(&self) -> Vec<Replica> {
        Vec::new()
    }

    fn sessions(&self) -> Vec<SessionLine> {
        let line = |connection_id, user: &str| SessionLine {
            connection_id,
            user: user.to_owned(),
            host: "10.0.0.1:5".to_owned(),
            command: "Query".to_owned(),
            seconds: 0,
            state: String::new(),
            statement: None,
        };
        vec![line(7, "reader"), line(8, "other")]
    }

    fn upstream(&self) -> Upstream {
        Upstream::default()
    }

    fn semi_sync(&self) -> SemiSync {
        SemiSync::default()
    }
}
