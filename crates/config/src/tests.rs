//! Whole configurations: every key, and every error with its whole message.

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
        sources: vec![SourceConfig {
            name: "default".to_owned(),
            hosts: vec![HostPort { host: "127.0.0.1".to_owned(), port: 3306 }],
            peers: Vec::new(),
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
        sources: vec![SourceConfig {
            name: "orders-1".to_owned(),
            hosts: vec![host("db1", 3306), host("db2", 3307), host("::1", 3308)],
            peers: vec![host("binlogd2", 3307)],
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

#[test]
fn receivers_that_cannot_come_or_are_never_asked_are_refused() {
    let told = errors(&format!("{SOURCE}ack_after_replicas = 1\n"));
    assert!(told.contains("ack_after_replicas needs a port at which the receivers read"), "{told}");
    let served = format!("serve = {{ listen = \"127.0.0.1:0\" }}\n{SOURCE}password = \"x\"\n");
    let source = |lines: &str| parse(&format!("{served}{lines}"));
    let told = source("ack_after_replicas = 2\nsemi_sync = false\n").unwrap_err().to_string();
    assert!(told.contains("ack_after_replicas needs semi_sync = true"), "{told}");
    let config = source("ack_after_replicas = 2\n").unwrap().config.sources.remove(0);
    let demanded = (config.ack_after_replicas, config.ack_timeout, config.ack_timeout_action);
    assert_eq!(demanded, (2, Duration::from_secs(10), AckTimeoutAction::Wait));
}

#[test]
fn every_limit_is_inclusive_and_one_beyond_is_refused() {
    for key in keys_of(Section::Source) {
        let key::Kind::Duration { min, max } = key.kind else { continue };
        let tick = Duration::from_millis(1);
        let with = |value: Duration| {
            // Companions far away, so that only the key's own range speaks.
            let companions = match key.name {
                "heartbeat_period" => "net_read_timeout = \"24h\"\n",
                "net_read_timeout" => "heartbeat_period = \"100ms\"\n",
                "backoff_min" => "backoff_max = \"1h\"\n",
                "backoff_max" => "backoff_min = \"10ms\"\n",
                _ => "",
            };
            parse(&format!("{SOURCE}{} = \"{}\"\n{companions}", key.name, duration::format(value)))
        };
        assert!(with(min).is_ok() && with(max).is_ok(), "{}", key.name);
        for beyond in min.checked_sub(tick).into_iter().chain([max + tick]) {
            let expected = format!(
                "b.toml:4:{}: {} = \"{}\": must be {}",
                key.name.len() + 4,
                key.name,
                duration::format(beyond),
                key.allowed()
            );
            assert_eq!(with(beyond).unwrap_err().to_string(), expected);
        }
    }
}

#[test]
fn every_wrong_value_is_named_with_what_is_allowed() {
    for (line, message) in [
        (
            "fsync_mode = 2",
            "fsync_mode = 2: must be one of 0 (written: survives a crash of binlogd, not of its machine), 1 (on stable storage: survives both)",
        ),
        (
            "fsync_mode = true",
            "fsync_mode = true: must be one of 0 (written: survives a crash of binlogd, not of its machine), 1 (on stable storage: survives both)",
        ),
        (
            "fsync_interval = 1",
            "fsync_interval = 1: has no unit: write 1s for seconds, 1ms for milliseconds, 1m for minutes or 1h for hours",
        ),
        (
            "fsync_interval = \"1\"",
            "fsync_interval = \"1\": has no unit: write 1s for seconds, 1ms for milliseconds, 1m for minutes or 1h for hours",
        ),
        (
            "fsync_interval = 1.5",
            "fsync_interval = a float: is not a duration: write a number and a unit, such as 5s, 250ms, 1m30s or 2h",
        ),
        (
            "connect_timeout = \"5 sec\"",
            "connect_timeout = \"5 sec\": is not a duration: write a number and a unit, such as 5s, 250ms, 1m30s or 2h",
        ),
        (
            "connect_timeout = \"5sec\"",
            "connect_timeout = \"5sec\": has the unknown unit \"sec\": the units are d, h, m, s and ms",
        ),
        ("semi_sync = \"yes\"", "semi_sync = \"yes\": must be true or false"),
        ("semi_sync = \"true\"", "semi_sync = \"true\": must be true or false"),
        ("server_id = 0", "server_id = 0: must be a whole number from 1 to 4294967295"),
        ("server_id = 4294967296", "server_id = 4294967296: must be a whole number from 1 to 4294967295"),
        ("server_id = -1", "server_id = -1: must be a whole number from 1 to 4294967295"),
        ("server_id = \"7\"", "server_id = \"7\": must be a whole number from 1 to 4294967295"),
        (
            "name = \"../x\"",
            "name = \"../x\": must be 1 to 64 of the characters A-Z a-z 0-9 _ . - and not begin with a dot",
        ),
        (
            "name = 7",
            "name = 7: must be 1 to 64 of the characters A-Z a-z 0-9 _ . - and not begin with a dot",
        ),
        (
            "start = \"newest\"",
            "start = \"newest\": must be resume, earliest, latest, gtid:<set> or file:<name>:<position>",
        ),
        ("start = 4", "start = 4: must be resume, earliest, latest, gtid:<set> or file:<name>:<position>"),
        (
            "start = \"file:binlog.000001\"",
            "start = \"file:binlog.000001\": lacks the position: write file:<name>:<position>",
        ),
        (
            "start = \"file:a/b:4\"",
            "start = \"file:a/b:4\": needs the bare name of a binlog file, as in file:binlog.000042:4",
        ),
        (
            "start = \"file:b.1:3\"",
            "start = \"file:b.1:3\": needs a position of at least 4, which is where the first event of a file stands",
        ),
        (
            "start = \"gtid:\"",
            "start = \"gtid:\": holds no transaction: to begin with the oldest file, write earliest",
        ),
        (
            "tls = \"on\"",
            "tls = \"on\": must be one of disabled (never), preferred (where the server offers it), required (always, the certificate unchecked), verify-ca (always, the certificate from a trusted authority), verify-full (as verify-ca, and it names the host)",
        ),
        (
            "on_gap = \"skip\"",
            "on_gap = \"skip\": must be one of stop (wait for an operator), record (record what is missing and go on with the file after it)",
        ),
        ("password_env = 3", "password_env is a whole number: it must be a text in quotes"),
    ] {
        let column = line.find('=').unwrap() + 3;
        assert_eq!(error(line), format!("b.toml:4:{column}: {message}"), "{line}");
    }
    assert!(
        error("start = \"gtid:0-1\"")
            .starts_with("b.toml:4:9: start = \"gtid:0-1\": is not a GTID set: \"0-1\" is not")
    );
}

#[test]
fn hosts_and_user_are_needed_and_checked_one_by_one() {
    for (text, message) in [
        ("[[source]]\nuser = \"u\"", "b.toml:1:1: [[source]] lacks hosts: add hosts = [\"127.0.0.1:3306\"]"),
        ("[[source]]\nhosts = [\"a\"]", "b.toml:1:1: [[source]] lacks user: add user = \"repl\""),
        (
            "[[source]]\nuser = \"\"\nhosts = [\"a\"]",
            "b.toml:2:8: user = \"\": must be a text that is not empty",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = []",
            "b.toml:3:9: hosts = []: must be a list of \"host:port\", such as [\"db1:3306\", \"[::1]:3306\"]",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = \"db1\"",
            "b.toml:3:9: hosts = \"db1\": must be a list of \"host:port\", such as [\"db1:3306\", \"[::1]:3306\"]",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = [\"db1\", \"db1:3306\", 5, \"db2:x\"]",
            "b.toml:3:17: hosts = \"db1:3306\": is listed twice\n\
             b.toml:3:29: hosts = 5: must be a list of \"host:port\", such as [\"db1:3306\", \"[::1]:3306\"]\n\
             b.toml:3:32: hosts = \"db2:x\": has a port that is not a number",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = [\"a\"]\npeers = [\"b\", \"a:3306\"]",
            "b.toml:4:9: peers: a:3306 is among the hosts: a peer is another binlogd, and never taken for the source",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = [\"a\"]\npeers = []",
            "b.toml:4:9: peers = []: must be a list of \"host:port\", such as [\"db1:3306\", \"[::1]:3306\"]",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = [\"mysql://u:secret@db1:3306\"]",
            "b.toml:3:10: hosts = \"mysql://u:***@db1:3306\": is not host:port alone: user and password have keys of their own",
        ),
    ] {
        assert_eq!(errors(text), message, "{text}");
    }
}

#[test]
fn the_other_sections_are_checked_too() {
    for (text, message) in [
        ("data_dir = \"\"", "b.toml:1:12: data_dir = \"\": must be a path"),
        ("data_dir = 5", "b.toml:1:12: data_dir = 5: must be a path"),
        ("disk_warn = 10", "b.toml:1:13: disk_warn = 10: has no unit: write 10GiB, 10MiB or 10%"),
        (
            "disk_warn = \"10GB\"",
            "b.toml:1:13: disk_warn = \"10GB\": has the unknown unit \"GB\": the units are KiB, MiB, GiB, TiB and %",
        ),
        (
            "disk_warn = true",
            "b.toml:1:13: disk_warn = true: must be an amount of free space from 1MiB to 1024TiB, such as 10GiB, a percentage of the file system from 1% to 99%, or off",
        ),
        (
            "[admin]\nlisten = \"9306\"",
            "b.toml:2:10: listen = \"9306\": must be an IP address and port, such as 127.0.0.1:9306 or [::1]:9306, or off",
        ),
        (
            "[log]\nformat = \"xml\"",
            "b.toml:2:10: format = \"xml\": must be one of text (one readable line a message), json (one JSON object a line)",
        ),
        ("admin = 5", "b.toml:1:1: admin is a whole number: write it as [admin]"),
        ("[[log]]", "b.toml:1:3: log is a list: write it as [log]"),
    ] {
        assert_eq!(errors(&format!("{text}\n{SOURCE}")), message, "{text}");
    }
    assert!(
        errors("[log]\nlevel = \"verbose\"\n")
            .contains("must be one of error (what needs an operator), warn")
    );
    assert_eq!(errors(""), "b.toml: there is no [[source]]: add one table for each server to copy");
    assert_eq!(
        errors("[source]\nhosts = [\"a\"]\nuser = \"u\""),
        "b.toml:1:2: write [[source]], with two brackets on each side: there may be several"
    );
    assert_eq!(
        errors("source = [5]"),
        "b.toml: there is no [[source]]: add one table for each server to copy".replace(
            "b.toml: there",
            "b.toml:1:11: a whole number stands in the list: write each as a [[source]] table\nb.toml: there"
        )
    );
}

#[test]
fn unknown_keys_come_with_a_suggestion_and_the_known_ones() {
    let source_keys: Vec<&str> = keys_of(Section::Source).iter().map(|key: &Key| key.name).collect();
    let allowed = format!("Allowed: {}", source_keys.join(", "));
    for (line, hint) in [
        ("host = [\"a\"]", "did you mean hosts? "),
        ("heartbeat = \"5s\"", "did you mean heartbeat_period? "),
        ("net_read_time_out = \"5s\"", "did you mean net_read_timeout? "),
        ("fsync-mode = 1", "did you mean fsync_mode? "),
        ("listen = \"off\"", "it belongs to [admin]. "),
        ("data_dir = \"x\"", "it belongs to the top level. "),
        ("colour = \"blue\"", ""),
    ] {
        let key = line.split(' ').next().unwrap();
        assert_eq!(error(line), format!("b.toml:4:1: unknown key {key} in [[source]]: {hint}{allowed}"));
    }
    assert_eq!(
        errors(&format!("fsync_mode = 1\n[logs]\nlevel = \"info\"\n{SOURCE}[[sources]]\n")),
        "b.toml:1:1: unknown key fsync_mode in the top level: it belongs to [[source]]. Allowed: data_dir, disk_warn, search_index, include, [admin], [log], [serve], [retention], [archive], [[source]]\n\
         b.toml:2:2: unknown key logs in the top level: did you mean [log]? Allowed: data_dir, disk_warn, search_index, include, [admin], [log], [serve], [retention], [archive], [[source]]\n\
         b.toml:7:3: unknown key sources in the top level: did you mean [[source]]? Allowed: data_dir, disk_warn, search_index, include, [admin], [log], [serve], [retention], [archive], [[source]]"
    );
}

#[test]
fn every_error_is_reported_at_once_in_the_order_of_the_file() {
    let text = "[[source]]\nuser = 5\nfsync_mode = 9\nbogus = 1\ntls = \"x\"\n[admin]\nlisten = 1\n";
    let lines: Vec<String> =
        errors(text).lines().map(|line| line.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["b.toml:1:1", "b.toml:2:8", "b.toml:3:14", "b.toml:4:1", "b.toml:5:7", "b.toml:7:10"]);
}

#[test]
fn syntax_errors_have_a_place_and_never_quote_the_line() {
    for text in [
        "password = SECRET\n",
        "password = \"SECRET\n",
        "password = \"SECRET\\q\"\n",
        "password = 'SECRET' 'SECRET'\n",
        "password = \"SECRET\"\npassword = \"SECRET\"\n",
        "SECRET\n",
        "[[source]\npassword = \"SECRET\"\n",
    ] {
        let message = errors(&format!("\n{text}"));
        for line in message.lines() {
            assert!(line.starts_with("b.toml:") && line.contains(": not valid TOML: "), "{message}");
        }
        assert!(!message.contains("SECRET"), "{message}");
    }
}

#[test]
fn relations_between_durations() {
    for (lines, message) in [
        (
            "net_read_timeout = \"5s\"",
            "b.toml:4:20: net_read_timeout = \"5s\" must exceed heartbeat_period (default 5s): a source with nothing to send would count as lost between two heartbeats",
        ),
        (
            "heartbeat_period = \"20s\"",
            "b.toml:4:20: net_read_timeout (default 15s) must exceed heartbeat_period = \"20s\": a source with nothing to send would count as lost between two heartbeats",
        ),
        (
            "backoff_max = \"1s\"\nbackoff_min = \"2s\"",
            "b.toml:4:15: backoff_max = \"1s\" must not be below backoff_min = \"2s\": the longest pause cannot be shorter than the first one",
        ),
    ] {
        assert_eq!(error(lines), message);
    }
    assert_eq!(source("net_read_timeout = \"5001ms\"").net_read_timeout, Duration::from_millis(5001));
}

#[test]
fn names_and_server_ids_are_unique() {
    let two = |first: &str, second: &str| format!("{SOURCE}{first}\n{SOURCE}{second}\n");
    assert_eq!(
        errors(&two("", "")),
        "b.toml:5:1: name = \"default\" is taken by the source at b.toml:1:1: give each [[source]] its own name"
    );
    assert_eq!(
        errors(&two("name = \"a\"", "name = \"a\"")),
        "b.toml:8:8: name = \"a\" is taken by the source at b.toml:4:8: give each [[source]] its own name"
    );
    assert_eq!(
        errors(&two("name = \"a\"\nserver_id = 7", "server_id = 7")),
        "b.toml:9:13: server_id = 7 is used for db1:3306 already, at b.toml:5:13: each replica of a server needs its own"
    );
    // Whatever else is wrong with one of them.
    let said = errors(&two(
        "name = \"a\"\nserver_id = 7\nfsync_mode = 5",
        "name = \"a\"\nserver_id = 7\nsemi_sync = 5",
    ));
    for wanted in ["fsync_mode = 5", "name = \"a\" is taken by", "server_id = 7 is used for db1:3306 already"]
    {
        assert!(said.contains(wanted), "no {wanted:?} in {said}");
    }
    assert!(parse(&two("name = \"a\"\nserver_id = 7", "server_id = 8")).is_ok());
    let elsewhere = two("name = \"a\"\nserver_id = 7", "server_id = 7").replacen("db1", "db2", 1);
    assert!(parse(&elsewhere).is_ok());
}

#[test]
fn a_configuration_that_cannot_be_read_is_one_error() {
    assert_eq!(
        Config::load(Path::new("/nonexistent/b.toml")).unwrap_err().to_string(),
        "/nonexistent/b.toml: the configuration file cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn tls_files_must_exist_and_fit_the_mode() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("b.toml");
    std::fs::write(folder.path().join("a.pem"), "").unwrap();
    let parse = |lines: &str| Config::parse(&format!("{SOURCE}{lines}"), &config, &|_| None);
    let at = config.display();
    for (lines, message) in [
        (
            "tls_ca = \"a.pem\"",
            "4:10: tls_ca is not used while tls is preferred: set tls to verify-ca or verify-full, or remove tls_ca",
        ),
        ("tls_cert = \"a.pem\"", "4:12: tls_cert needs tls_key, its private key"),
        ("tls_key = \"a.pem\"", "4:11: tls_key needs tls_cert, the certificate that it belongs to"),
        (
            "tls = \"disabled\"\ntls_cert = \"a.pem\"\ntls_key = \"a.pem\"",
            "5:12: tls_cert and tls_key are not used while tls is disabled",
        ),
        (
            "tls = \"verify-ca\"\ntls_ca = \"none.pem\"",
            "5:10: tls_ca = \"none.pem\": cannot be read: No such file or directory (os error 2)",
        ),
        ("tls = \"verify-ca\"\ntls_ca = \".\"", "5:10: tls_ca = \".\": is a folder, not a PEM file"),
        ("tls = \"verify-ca\"\ntls_ca = 1", "5:10: tls_ca = 1: must be a path"),
    ] {
        assert_eq!(parse(lines).expect_err(lines).to_string(), format!("{at}:{message}"), "{lines}");
    }
    let loaded =
        parse("tls = \"verify-full\"\ntls_ca = \"a.pem\"\ntls_cert = \"a.pem\"\ntls_key = \"a.pem\"")
            .unwrap();
    let file = Some(folder.path().join("a.pem"));
    assert_eq!(
        loaded.config.sources[0].tls,
        TlsOptions { mode: TlsMode::VerifyFull, ca: file.clone(), cert: file.clone(), key: file }
    );
    assert!(
        loaded.warnings[0].to_string().contains("a.pem is a private key and others"),
        "{:?}",
        loaded.warnings
    );
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_reasons(text in "\\PC*|([a-z_]+ ?= ?[\"0-9a-z\\[\\]{}.:-]*\n|\\[+[a-z]+\\]+\n)*") {
        if let Err(error) = parse(&text) {
            proptest::prop_assert!(!error.problems.is_empty());
        }
    }
}

#[test]
fn readers_have_accounts() {
    let text = format!(
        "{SOURCE}[serve]\nlisten = \"[::1]:3307\"\nmax_connections = 7\n\
         [[serve.user]]\nname = \"a\"\npassword = \"s\"\n\
         [[serve.user]]\nname = \"b\"\npassword_hash = \"*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9\"\nsources = [\"default\"]\n\
         privileges = [\"read\", \"purge\"]\n"
    );
    let serve = parse(&text).unwrap().config.serve;
    let hash = "*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9";
    let user = |name: &str, proof, privileges| ServeUser {
        name: name.to_owned(),
        proof,
        sources: vec!["default".to_owned()],
        privileges,
        slot: None,
        bounds: Bounds::default(),
    };
    let users = vec![
        user("a", Proof::Password(Secret::new("s")), Privileges::READ),
        user("b", Proof::Hash(Secret::new(hash)), Privileges { read: true, purge: true, control: false }),
    ];
    let listen = Some("[::1]:3307".parse().unwrap());
    assert_eq!(serve, ServeConfig { listen, max_connections: 7, users, ..no_serving() });
}

#[test]
fn what_is_wrong_with_readers_is_said() {
    let serve = |text: &str| errors(&format!("{SOURCE}[serve]\n{text}\n"));
    let user = |text: &str| serve(&format!("[[serve.user]]\n{text}"));
    let named = "name = \"a\"\npassword = \"hunter2\"\n";
    for (error, words) in [
        (serve("require_tls = true\nauto_generate_certs = false"), "require_tls needs a certificate"),
        (serve("listen = \"here\""), "must be an IP address and port, such as 127.0.0.1:3307"),
        (serve("user = 1"), "write it as [[serve.user]]"),
        (serve("[serve.user]\nname = \"a\""), "write [[serve.user]], with two brackets"),
        (user("password = \"x\""), "[[serve.user]] lacks name"),
        (
            user(&format!("{named}privileges = [\"super\"]")),
            "must be a list of \"read\", \"purge\", \"control\", \"all\"",
        ),
        (user(&format!("{named}privileges = []")), "must be a list of"),
        (user(&format!("{named}stop_before = \"2026-11-23\"")), "can be a day and a GTID of MariaDB"),
        (user(&format!("{named}stop_after = \"soon\"")), "must be a GTID set of MySQL"),
        (
            user(&format!("{named}stop_after = \"0-1-2\"\nstop_before = \"0-1-2\"")),
            "dumps stop at one point: remove one of them",
        ),
        (user(&format!("{named}delay = 5")), "delay = 5"),
        (user("name = \"a\""), "[[serve.user]] lacks a password: add password_file"),
        (
            user("name = \"a\"\npassword_hash = \"$A$005$x\""),
            "a salted hash ($A$…, $5$…) can only be checked by",
        ),
        (user("name = \"a\"\npassword_hash = \"x\""), "a password hash has one of these forms"),
        (user(&format!("{named}sources = [\"orders\"]")), "there is no [[source]] with the name \"orders\""),
        (user(&format!("{named}[[serve.user]]\n{named}")), "name = \"a\" is taken by the [[serve.user]] at"),
        (user(&format!("{named}password_env = \"X\"")), "both give the password"),
    ] {
        assert!(error.contains(words), "{words}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let two = "[[source]]\nname = \"b\"\nhosts = [\"db2\"]\nuser = \"r\"\n";
    let several = errors(&format!("{SOURCE}{two}[[serve.user]]\n{named}"));
    assert!(several.contains("lacks sources: there are several"), "{several}");
    let both = errors(&format!("{SOURCE}{two}[[serve.user]]\n{named}sources = [\"default\", \"b\"]\n"));
    assert!(
        both.contains("a user is served one source")
            && both.contains("[[serve.user]] with a name of its own"),
        "{both}"
    );
    let listen = "[serve]\nlisten = \"127.0.0.1:3307\"\n";
    let other = two.replace("\"r\"", "\"other\"");
    assert!(parse(&format!("{SOURCE}{other}{listen}")).is_ok());
    assert!(parse(&format!("{SOURCE}{other}")).is_ok());
    let user = parse(SOURCE).unwrap().config.sources[0].user.clone();
    let same = two.replace("\"r\"", &format!("\"{user}\""));
    assert!(parse(&format!("{SOURCE}{same}")).is_ok(), "nobody is served");
    let shared = errors(&format!("{SOURCE}{same}{listen}"));
    assert!(shared.contains("cannot say which they want: give readers accounts of their own"), "{shared}");
}

#[test]
fn a_certificate_for_readers_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let make = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (one, other) = (make(), make());
    write("cert.pem", &one.cert.pem());
    write("key.pem", &one.signing_key.serialize_pem());
    write("foreign.pem", &other.signing_key.serialize_pem());
    write("empty.pem", "");
    let parse = |cert: &str, key: &str| {
        let text = format!("{SOURCE}[serve]\ntls_cert = \"{cert}\"\ntls_key = \"{key}\"\n");
        Config::parse(&text, &folder.path().join("b.toml"), &|_| None)
    };
    parse("cert.pem", "key.pem").unwrap();
    for (cert, key, words) in [
        ("cert.pem", "foreign.pem", "and tls_key the private key of that certificate"),
        ("empty.pem", "key.pem", "tls_cert must hold the server's certificate"),
        ("cert.pem", "empty.pem", "cannot use tls_key file"),
        ("none.pem", "key.pem", "cannot be read: No such file"),
    ] {
        let error = parse(cert, key).unwrap_err();
        assert!(error.problems.len() == 1 && error.to_string().contains(words), "{words}: {error}");
    }
}

#[test]
fn retention_has_no_rule_unless_one_is_given() {
    let rules = |lines: &str| parse(&format!("[retention]\n{lines}\n{SOURCE}"));
    assert_eq!(rules("").unwrap().config.retention, no_retention());
    let all = "max_age = \"30d\"\nmax_bytes = \"500GiB\"\nmax_files = 1000\nslot_max_age = \"1d12h\"\nslot_max_bytes = \"1TiB\"\n\
               slot_margin = \"0s\"";
    let expected = RetentionConfig {
        max_age: Some(Duration::from_secs(30 * 86_400)),
        max_bytes: Some(500 << 30),
        max_files: Some(1000),
        slot_max_age: Duration::from_secs(36 * 3600),
        slot_max_bytes: Some(1 << 40),
        slot_margin: Duration::ZERO,
    };
    assert_eq!(rules(all).unwrap().config.retention, expected);
    for (line, wrong) in [
        ("max_bytes = \"10%\"", "must be an amount from 1MiB to 1024TiB"),
        ("max_bytes = \"10GB\"", "unknown unit"),
        ("max_files = 1", "must be a whole number from 2"),
        ("max_age = \"30\"", "has no unit"),
        ("max_size = 1", "unknown key max_size in [retention]"),
    ] {
        let error = rules(line).unwrap_err().to_string();
        assert!(error.contains(wrong), "{line}: {error}");
    }
}

#[test]
fn users_of_the_admin_address_are_read_and_their_passwords_do_not_leave_in_clear() {
    let admin = |listen: &str, more: &str| {
        parse(&format!("[admin]\nlisten = \"{listen}\"\n{more}{SOURCE}")).map(|loaded| loaded.config.admin)
    };
    let user = "[[admin.user]]\nname = \"dba\"\npassword = \"secret\"\n";
    assert_eq!(admin("127.0.0.1:1", user).unwrap().users[0].name, "dba");
    assert!(admin("10.1.2.3:1", "").unwrap().users.is_empty(), "whoever reaches it may read, as before");
    let refused = admin("10.1.2.3:1", user).unwrap_err().to_string();
    assert!(refused.contains("[[admin.user]] needs tls_cert and tls_key"), "{refused}");
    assert!(admin("10.1.2.3:1", "write = false\n").is_ok());
    for near in ["127.0.0.1:1", "[::1]:1"] {
        assert!(admin(near, "write = true\n").unwrap().write, "who is on this machine may");
    }
    for far in ["10.1.2.3:1", "0.0.0.0:1", "[::]:1"] {
        let refused = admin(far, "write = true\n").unwrap_err().to_string();
        assert!(
            refused.contains("write = true needs an [[admin.user]] where listen is no loopback"),
            "{refused}"
        );
    }
    let writes =
        admin("[::1]:1", &format!("write = true\n{user}write = true\n{}", user.replace("dba", "b"))).unwrap();
    assert_eq!(writes.users.iter().map(|user| user.write).collect::<Vec<_>>(), [true, false]);
    let text = format!("[admin]\n{user}write = true\n{SOURCE}");
    let warnings = parse(&text).unwrap().warnings;
    let warning =
        warnings.iter().map(ToString::to_string).find(|warning| warning.contains("does nothing without"));
    assert!(warning.is_some_and(|warning| warning.contains("b.toml:5")), "{warnings:?}");
    let twice = admin("[::1]:1", &user.repeat(2)).unwrap_err().to_string();
    assert!(twice.contains("is taken by the [[admin.user]]"), "{twice}");
    let nobody = admin("[::1]:1", "[[admin.user]]\nname = \"dba\"\n").unwrap_err().to_string();
    assert!(nobody.contains("lacks a password"), "{nobody}");
}

/// A private key of age that opens nothing: 32 times the byte 0x42.
const PRIVATE_KEY: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";

#[test]
fn an_archive_is_read_whole_and_with_its_defaults() {
    let archive =
        |lines: &str| parse(&format!("{SOURCE}[archive]\n{lines}")).map(|loaded| loaded.config.archive);
    assert_eq!(archive(""), Ok(None));
    let found = archive("url = \"s3://bucket/x/\"\n").unwrap().unwrap();
    let defaults = (found.level, found.interval, found.bandwidth, found.concurrency, found.single_writer);
    assert_eq!(defaults, (3, Duration::from_secs(10), None, 4, false));
    assert_eq!((found.verify_interval, found.verify_sample), (Duration::from_secs(86_400), 100));
    assert_eq!(found.location.to_string(), "s3://bucket/x");
    assert!(found.recipients.is_empty() && found.recipients_file.is_none() && found.identity.is_empty());

    let folder = tempfile::tempdir().unwrap();
    let key = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
    std::fs::write(folder.path().join("keys"), format!("# ours\n{key}\n")).unwrap();
    std::fs::write(folder.path().join("a.key"), PRIVATE_KEY).unwrap();
    let text = format!(
        "{SOURCE}archive = false\n[archive]\nurl = \"s3://bucket\"\nendpoint = \"http://minio:9000\"\nregion = \"eu\"\n\
         path_style = false\nallow_http = true\nlevel = 19\nrecipients = [\"{key}\"]\nrecipients_file = \"keys\"\n\
         identity = [\"a.key\"]\ninterval = \"1s\"\nbandwidth = \"20MiB\"\nconcurrency = 32\nsingle_writer = true\n\
         verify_interval = \"0s\"\nverify_sample = 1\n"
    );
    let config = Config::parse(&text, &folder.path().join("b.toml"), &|_| None).unwrap().config;
    assert!(!config.sources[0].archive);
    let found = config.archive.unwrap();
    assert_eq!((found.level, found.bandwidth, found.concurrency), (19, Some(20 << 20), 32));
    assert_eq!((found.verify_interval, found.verify_sample), (Duration::ZERO, 1));
    assert_eq!(found.recipients, [key]);
    assert_eq!(found.recipients_file, Some(folder.path().join("keys")));
    assert_eq!(found.identity, [folder.path().join("a.key")]);
    assert!(found.single_writer && found.options.allow_http && found.options.path_style == Some(false));
}

#[test]
fn what_an_archive_cannot_mean_is_refused_by_name() {
    let secret = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ";
    let private = format!("url = \"s3://b\"\nrecipients = [\"{secret}\"]");
    for (lines, why) in [
        ("level = 3", "level means nothing without url"),
        ("recipients = [\"x\"]", "recipients means nothing without url"),
        ("url = \"ftp://x\"", "unknown kind of store"),
        ("url = \"s3://b\"\nurll = 1", "did you mean url?"),
        ("url = \"s3://b\"\nlevel = 20", "from 1 to 19"),
        ("url = \"s3://b\"\nlevel = 0", "from 1 to 19"),
        ("url = \"s3://b\"\nconcurrency = 33", "from 1 to 32"),
        ("url = \"s3://b\"\ninterval = \"500ms\"", "from 1s to 1h"),
        ("url = \"s3://b\"\nbandwidth = 5", "bandwidth"),
        ("url = \"s3://b\"\nallow_http = true", "allow_http needs an endpoint"),
        ("url = \"s3://b\"\nendpoint = \"http://x\"", "allow_http = true"),
        ("url = \"file:///srv/a\"\nendpoint = \"https://x\"", "endpoint means nothing for a folder"),
        ("url = \"gs://b\"\nregion = \"eu\"", "region means nothing for gs://"),
        ("url = \"s3://b\"\nrecipients = []", "recipients must be a list"),
        ("url = \"s3://b\"\nrecipients = [\"\"]", "recipients must be a list"),
        ("url = \"s3://b\"\nrecipients = [\"my passphrase\"]", "recipients, key 1: this is no public key"),
        (&private, "recipients, key 1: this is a private key"),
        ("url = \"s3://b\"\nrecipients_file = \"nowhere.keys\"", "nowhere.keys: it cannot be read"),
        ("identity = [\"a.key\"]", "identity means nothing without url"),
        ("url = \"s3://b\"\nidentity = \"a.key\"", "identity must be a list of paths"),
        ("url = \"s3://b\"\nidentity = [\"nowhere.key\"]", "nowhere.key: it cannot be read"),
    ] {
        let error = errors(&format!("{SOURCE}[archive]\n{lines}\n"));
        assert!(error.contains(why), "{lines}: {error}");
        assert!(!error.contains("QQQQ") && !error.contains("my passphrase"), "{error}");
    }
    let error = errors(&format!("{SOURCE}archive = true\n"));
    assert!(error.contains("archive = true needs url in [archive]"), "{error}");
    let error = errors("archive = \"s3://b\"\n[[source]]\nhosts = [\"db1:3306\"]\nuser = \"repl\"\n");
    assert!(error.contains("write it as [archive]"), "{error}");
}
