//! A look at a source before anything is started.
//!
//! [`Facts::collect`] asks the server, without changing anything; [`examine`] judges what came back. The judging is a
//! pure function of the facts, so that every answer a server can give is tested without one.
//!
//! | file | noun |
//! |---|---|
//! | `look/` | what is looked at: a server and the copy, another binlogd, the port, the archive |
//! | `server/` | `Facts`: what a server says of itself; versions, privileges, settings, semi-sync, ids |
//! | `wanted.rs` | [`Wanted`]: what the configuration wants of it |
//! | `finding.rs` | [`Finding`]: one line of the answer |
//! | `disk.rs` | the file system of the data folder |
//! | `held.rs` | what the server lacks of the copy |
//! | `logs.rs` | whether the copy can go on in the server's logs |
//! | `forks.rs`, `gaps.rs` | GTIDs given twice; what was never copied |
//! | `nodes.rs` | the other nodes of a quorum |
//! | `peers.rs` | other binlogds of the source |
//! | `serve.rs` | the port for readers |

pub mod disk;
mod finding;
pub mod forks;
pub mod gaps;
pub mod held;
pub mod logs;
pub mod look;
pub mod nodes;
pub mod peers;
mod serve;
pub mod server;
mod wanted;

pub use finding::{Finding, Level};
pub use serve::{Listener, Port, examine as examine_port};
pub use server::facts::{Facts, answered, first_column};
pub use server::{examine, examine_server, is_binlogd};
pub use wanted::{Nodes, Running, Wanted};

#[cfg(test)]
pub(crate) mod test_facts {
    //! Servers with nothing to find fault with.

    use super::*;
    use crate::doctor::server::facts::Replica;
    use codec::ServerKind;
    use std::collections::BTreeMap;
    use std::time::Duration;
    use wire::TlsMode;

    pub(crate) fn wanted() -> Wanted {
        Wanted {
            server_id: Some(4_100_000_001),
            replica_uuid: Some("cccccccc-cccc-cccc-cccc-cccccccccccc".to_owned()),
            starts_at_latest: false,
            hosts: 1,
            semi_sync: true,
            tls: TlsMode::Preferred,
            backoff_max: Duration::from_millis(500),
            running: None,
            quorum: None,
        }
    }

    fn facts(kind: ServerKind, version: &str, variables: &[(&str, &str)]) -> Facts {
        let common = [
            ("log_bin", "ON"),
            ("server_id", "1"),
            ("binlog_format", "ROW"),
            ("binlog_row_image", "FULL"),
            ("binlog_checksum", "CRC32"),
            ("sync_binlog", "1"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("binlog_expire_logs_seconds", "2592000"),
        ];
        let variables: BTreeMap<String, String> = common
            .iter()
            .chain(variables)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Facts {
            kind,
            version: version.to_owned(),
            account: "repl@%".to_owned(),
            tls_version: Some("TLSv1.3".to_owned()),
            auth_plugin: match kind {
                ServerKind::MySql => "caching_sha2_password".to_owned(),
                ServerKind::MariaDb => "ed25519".to_owned(),
            },
            loopback: false,
            grants: Ok(vec!["GRANT REPLICATION SLAVE ON *.* TO `repl`@`%`".to_owned()]),
            replicas: Ok(vec![Replica { server_id: 2, host: "db2".to_owned(), uuid: None }]),
            variables,
            semi_sync_clients: Some(1),
            semi_sync_waits: Some(true),
            in_group: Some(false),
        }
    }

    pub(crate) fn mysql() -> Facts {
        facts(
            ServerKind::MySql,
            "9.7.0",
            &[
                ("gtid_mode", "ON"),
                ("enforce_gtid_consistency", "ON"),
                ("rpl_semi_sync_source_enabled", "ON"),
                ("rpl_semi_sync_source_timeout", "10000"),
                ("rpl_semi_sync_source_wait_point", "AFTER_SYNC"),
                ("rpl_semi_sync_source_wait_for_replica_count", "1"),
                ("rpl_semi_sync_source_wait_no_replica", "ON"),
            ],
        )
    }

    pub(crate) fn mariadb() -> Facts {
        facts(
            ServerKind::MariaDb,
            "11.8.3-MariaDB-log",
            &[
                ("rpl_semi_sync_master_enabled", "ON"),
                ("rpl_semi_sync_master_timeout", "10000"),
                ("rpl_semi_sync_master_wait_point", "AFTER_SYNC"),
                ("rpl_semi_sync_master_wait_no_slave", "ON"),
            ],
        )
    }

    /// `facts` with one variable changed, or removed.
    pub(crate) fn with(mut facts: Facts, name: &str, value: Option<&str>) -> Facts {
        match value {
            Some(value) => facts.variables.insert(name.to_owned(), value.to_owned()),
            None => facts.variables.remove(name),
        };
        facts
    }

    /// The one finding that is not ok.
    #[track_caller]
    pub(super) fn only_fault(facts: &Facts, wanted: &Wanted) -> Finding {
        let mut faults: Vec<Finding> =
            examine(facts, wanted).into_iter().filter(|finding| finding.level > Level::Ok).collect();
        assert_eq!(faults.len(), 1, "{faults:#?}");
        faults.remove(0)
    }
}

#[cfg(test)]
mod tests {
    use super::test_facts::{mariadb, mysql, wanted};
    use super::*;

    #[test]
    fn servers_that_are_well_set_up_have_no_fault() {
        for facts in [mysql(), mariadb()] {
            let findings = examine(&facts, &wanted());
            assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:#?}");
            assert!(findings.iter().all(|finding| finding.sql.is_none()), "{findings:#?}");
            assert!(findings.len() > 10, "{findings:#?}");
        }
    }

    #[test]
    fn a_server_that_tells_nothing_is_judged_all_the_same() {
        let facts = Facts {
            variables: Default::default(),
            grants: Err("denied".to_owned()),
            replicas: Err("denied".to_owned()),
            semi_sync_clients: None,
            semi_sync_waits: None,
            version: String::new(),
            ..mysql()
        };
        assert!(!examine(&facts, &wanted()).is_empty());
    }
}
