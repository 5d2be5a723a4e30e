//! Whole configurations: every key, and every error with its whole message.

mod accounts;
mod kept;
mod wrong;

use std::path::Path;

use super::key::{Key, Section};
use super::password::NotUtf8;
use super::tables::keys_of;
use super::*;
use std::time::Duration;
use wire::{Secret, TlsMode, TlsOptions};

/// The least that a source needs. Lines 1 to 3 of every text below.
pub(super) const SOURCE: &str = "[[source]]\nhosts = [\"db1:3306\"]\nuser = \"repl\"\n";

pub(super) fn parse(text: &str) -> Result<Loaded, ConfigError> {
    Config::parse(text, Path::new("b.toml"), &|name| match name {
        "SET" => Some(Ok("from-env".to_owned())),
        "BYTES" => Some(Err(NotUtf8)),
        _ => None,
    })
}

/// The one source of [`SOURCE`] with `lines` below it.
pub(super) fn source(lines: &str) -> SourceConfig {
    let loaded = parse(&format!("{SOURCE}{lines}")).unwrap_or_else(|error| panic!("{lines}: {error}"));
    loaded.config.sources.into_iter().next().unwrap()
}

fn errors(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

/// The message about line 4, which is `line` below [`SOURCE`].
pub(super) fn error(line: &str) -> String {
    errors(&format!("{SOURCE}{line}\n"))
}

fn no_serving() -> ServeConfig {
    ServeConfig {
        listen: None,
        tls: None,
        auto_generate_certs: true,
        require_tls: false,
        max_connections: 500,
        max_failed_logins: 20,
        max_statement_bytes: 1 << 20,
        slots: false,
        users: Vec::new(),
    }
}

fn no_retention() -> RetentionConfig {
    RetentionConfig {
        max_age: None,
        max_bytes: None,
        max_files: None,
        slot_max_age: Duration::from_secs(7 * 86_400),
        slot_max_bytes: None,
        slot_margin: Duration::from_secs(3600),
    }
}

/// The defaults, spelled out once more, so that none changes unnoticed.
pub(super) fn defaults() -> Config {
    Config {
        data_dir: "./data".into(),
        disk_warn: DiskWarn::Percent(10),
        search_index: true,
        admin: AdminConfig {
            listen: Some("127.0.0.1:9306".parse().unwrap()),
            tls: None,
            write: false,
            users: Vec::new(),
        },
        log: LogConfig { level: LogLevel::Info, format: LogFormat::Text },
        serve: no_serving(),
        retention: no_retention(),
        archive: None,
        backup: BackupConfig::default(),
        drill: None,
        notify: None,
        sources: vec![SourceConfig {
            name: "default".to_owned(),
            hosts: vec![HostPort { host: "127.0.0.1".to_owned(), port: 3306 }],
            peers: Vec::new(),
            quorum: Vec::new(),
            user: "repl".to_owned(),
            password: Secret::default(),
            password_file: None,
            server_id: None,
            start: Start::Resume,
            fsync_mode: FsyncMode::SyncThenAcknowledge,
            fsync_interval: Duration::from_secs(1),
            ack_after_replicas: 0,
            ack_timeout: Duration::from_secs(10),
            ack_timeout_action: AckTimeoutAction::Wait,
            semi_sync: true,
            heartbeat_period: Duration::from_secs(5),
            net_read_timeout: Duration::from_secs(15),
            watch_interval: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(10),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_millis(500),
            tls: TlsOptions { mode: TlsMode::Preferred, ca: None, cert: None, key: None },
            on_gap: OnGap::Stop,
            on_fork: OnFork::Follow,
            on_stranger: OnStranger::Refuse,
            archive: true,
        }],
    }
}

#[test]
fn reads_every_key() {
    let text = r#"
        data_dir = "/var/lib/binlogd"
        disk_warn = "20GiB"
        search_index = false
        [admin]
        listen = "[::1]:1"
        [log]
        level = "trace"
        format = "json"
        [[source]]
        name = "orders-1"
        hosts = ["db1", "db2:3307", "[::1]:3308"]
        peers = ["binlogd2:3307"]
        user = "replica"
        password = "pä ss"
        server_id = 4294967295
        start = "file:binlog.000007:1234"
        fsync_mode = 0
        fsync_interval = "10ms"
        ack_after_replicas = 0
        ack_timeout = "20ms"
        ack_timeout_action = "go_on"
        busy_wait_us = 10000
        semi_sync = false
        heartbeat_period = "1m30s"
        net_read_timeout = "2h"
        watch_interval = "0s"
        connect_timeout = "3s"
        backoff_min = "1s"
        backoff_max = "1s"
        tls = "required"
        on_gap = "record"
        on_fork = "withhold"
        on_stranger = "follow"
    "#;
    let host = |host: &str, port| HostPort { host: host.to_owned(), port };
    let expected = Config {
        data_dir: "/var/lib/binlogd".into(),
        disk_warn: DiskWarn::Bytes(20 << 30),
        search_index: false,
        admin: AdminConfig {
            listen: Some("[::1]:1".parse().unwrap()),
            tls: None,
            write: false,
            users: Vec::new(),
        },
        log: LogConfig { level: LogLevel::Trace, format: LogFormat::Json },
        serve: no_serving(),
        retention: no_retention(),
        archive: None,
        backup: BackupConfig::default(),
        drill: None,
        notify: None,
        sources: vec![SourceConfig {
            name: "orders-1".to_owned(),
            hosts: vec![host("db1", 3306), host("db2", 3307), host("::1", 3308)],
            peers: vec![host("binlogd2", 3307)],
            quorum: Vec::new(),
            user: "replica".to_owned(),
            password: Secret::new("pä ss"),
            password_file: None,
            server_id: Some(u32::MAX),
            start: Start::File { name: "binlog.000007".to_owned(), position: 1234 },
            fsync_mode: FsyncMode::WriteThenAcknowledge,
            fsync_interval: Duration::from_millis(10),
            ack_after_replicas: 0,
            ack_timeout: Duration::from_millis(20),
            ack_timeout_action: AckTimeoutAction::GoOn,
            semi_sync: false,
            heartbeat_period: Duration::from_secs(90),
            net_read_timeout: Duration::from_secs(7200),
            watch_interval: Duration::ZERO,
            connect_timeout: Duration::from_secs(3),
            backoff_min: Duration::from_secs(1),
            backoff_max: Duration::from_secs(1),
            tls: TlsOptions { mode: TlsMode::Required, ca: None, cert: None, key: None },
            on_gap: OnGap::Record,
            on_fork: OnFork::Withhold,
            on_stranger: OnStranger::Follow,
            archive: true,
        }],
    };
    assert_eq!(parse(text).unwrap().config, expected);
    assert_eq!(expected.sources[0].hosts[2].to_string(), "[::1]:3308");
    assert_eq!(
        parse(&format!("admin = {{ listen = \"off\" }}\n{SOURCE}")).unwrap().config.admin.listen,
        None
    );
    assert_eq!(source("start = \"gtid:0-1-100\"").start, Start::Gtid("0-1-100".to_owned()));
    assert_eq!(source("start = \"earliest\"").start, Start::Earliest);
    assert_eq!(source("start = \"latest\"").start, Start::Latest);
    assert_eq!(source("tls = \"verify-full\"").tls.mode, TlsMode::VerifyFull);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_reasons(text in "\\PC*|([a-z_]+ ?= ?[\"0-9a-z\\[\\]{}.:-]*\n|\\[+[a-z]+\\]+\n)*") {
        if let Err(error) = parse(&text) {
            proptest::prop_assert!(!error.problems.is_empty());
        }
    }
}
