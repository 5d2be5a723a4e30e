//! Settings of the target that change what is made of a log: set aside and put back, or refused by name.

use super::{copy_folder, executed, restore_into, succeeded, with_gtids};
use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::readers::checksums;
use codec::ServerKind;
use std::process::{Command, Output};

/// What would be passed over, cut, or doubled.
const WORK: &str = "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, v VARCHAR(20)); \
                    INSERT INTO shop.orders VALUES (1, 'a'), (2, 'b'); UPDATE shop.orders SET v = 'c' WHERE id = 1; \
                    DELETE FROM shop.orders WHERE id = 2; CREATE TABLE shop.plain (id INT); INSERT INTO shop.plain VALUES (1)";

/// Settings of the option file, and those that are changed while the server runs.
fn hostile(kind: ServerKind) -> (&'static [&'static str], &'static [(&'static str, &'static str)]) {
    match kind {
        ServerKind::MySql => (
            &[
                "--replicate-do-db=nix",
                "--replicate-wild-ignore-table=shop.%",
                "--replicate-rewrite-db=shop->elsewhere",
                "--replica-skip-errors=1062,1032",
            ],
            &[
                ("replica_exec_mode", "IDEMPOTENT"),
                ("replica_type_conversions", "ALL_LOSSY"),
                ("init_replica", "SET SESSION foreign_key_checks = 0"),
                ("autocommit", "OFF"),
                ("completion_type", "RELEASE"),
                ("transaction_read_only", "ON"),
            ],
        ),
        ServerKind::MariaDb => (
            &[
                "--replicate-do-db=nix",
                "--replicate-wild-ignore-table=shop.%",
                "--slave-skip-errors=1062,1032",
            ],
            &[
                ("slave_exec_mode", "IDEMPOTENT"),
                ("slave_ddl_exec_mode", "IDEMPOTENT"),
                ("slave_run_triggers_for_rbr", "YES"),
                ("slave_type_conversions", "ALL_LOSSY"),
                ("init_slave", "SET SESSION foreign_key_checks = 0"),
                ("replicate_events_marked_for_skip", "FILTER_ON_SLAVE"),
                ("gtid_ignore_duplicates", "ON"),
                ("enforce_storage_engine", "MyISAM"),
                ("system_versioning_asof", "2001-01-01 00:00:00.000000"),
                ("autocommit", "OFF"),
                ("completion_type", "RELEASE"),
                ("tx_read_only", "ON"),
            ],
        ),
    }
}

fn shown(server: &Server, name: &str) -> String {
    let line = server.sql(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"));
    line.trim_end().split_once('\t').map_or(String::new(), |(_, value)| value.to_owned())
}

fn restore(target: &Server, daemon: &Daemon, flags: &[&str]) -> Output {
    let mut command: Command = restore_into(target, &daemon.data_dir());
    command.args(["--until", "end", "--yes", "--compare", "none"]).args(flags).output().expect("binlogd runs")
}

fn each_setting(name: &str) {
    let source = Server::start(name, with_gtids(name));
    let daemon = Daemon::start(&source, &[]);
    source.sql(WORK);
    if source.kind() == ServerKind::MariaDb {
        source.sql("SET skip_replication = 1; INSERT INTO shop.orders VALUES (7, 'marked')");
    }
    daemon.wait_caught_up(&source);
    let (options, settings) = hostile(source.kind());
    let target = Server::start(name, &[with_gtids(name), options].concat());
    let skips = if source.kind() == ServerKind::MySql { "replica_skip_errors" } else { "slave_skip_errors" };
    for way in [&["--statements"][..], &[]] {
        for (setting, value) in settings {
            let is_word = matches!(*value, "ON" | "OFF");
            let value = if is_word { (*value).to_owned() } else { format!("'{value}'") };
            target.sql(&format!("SET GLOBAL {setting} = {value}"));
        }
        target.sql("SET GLOBAL default_storage_engine = MyISAM");
        let output = restore(&target, &daemon, way);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(1) && said.contains("default_storage_engine is \"MyISAM\""),
            "{said}"
        );
        assert_eq!(said.contains(skips), way.is_empty(), "{said}");
        assert!(target.sql("SHOW DATABASES LIKE 'shop'").is_empty(), "nothing is applied");

        target.sql("SET GLOBAL default_storage_engine = InnoDB");
        let before: Vec<String> = settings.iter().map(|(setting, _)| shown(&target, setting)).collect();
        let said = succeeded(&restore(&target, &daemon, &[way, &["--accept", skips]].concat()));
        assert!(said.contains("for the time of the restore"), "{said}");
        assert_eq!(checksums(&target, "shop"), checksums(&source, "shop"), "{name} {way:?}: {said}");
        assert_eq!(executed(&target), executed(&source));
        let engines = "SELECT DISTINCT engine FROM information_schema.tables WHERE table_schema = 'shop'";
        assert_eq!(target.sql(engines).trim(), "InnoDB", "{name} {way:?}");
        let after: Vec<String> = settings.iter().map(|(setting, _)| shown(&target, setting)).collect();
        assert_eq!(after, before, "put back");
        if !way.is_empty() {
            let forget = match source.kind() {
                ServerKind::MySql => "RESET BINARY LOGS AND GTIDS",
                ServerKind::MariaDb => "RESET MASTER; SET GLOBAL gtid_slave_pos = ''",
            };
            target.sql(&format!("SET SESSION autocommit = 1, SESSION completion_type = 0; SET SESSION TRANSACTION READ WRITE; DROP DATABASE shop; {forget}"));
        }
    }
    super::is_detached(&target);
}

#[test]
fn mysql_settings_of_the_target_change_nothing() {
    each_setting("mysql-9.7");
}

#[test]
fn mariadb_settings_of_the_target_change_nothing() {
    each_setting("mariadb-11.8");
}

/// MySQL 5.7 has filters of all channels only.
#[test]
fn mysql_5_7_filters_are_refused_by_name() {
    let name = "mysql-5.7.22";
    let options =
        ["--log-slave-updates", "--master-info-repository=TABLE", "--relay-log-info-repository=TABLE"];
    let options = [with_gtids(name), &options].concat();
    let source = Server::start(name, &options);
    let daemon = Daemon::start(&source, &[]);
    source.sql(WORK);
    daemon.wait_caught_up(&source);
    let target = Server::start(name, &[&options[..], &["--replicate-ignore-table=shop.orders"]].concat());
    let output = restore(&target, &daemon, &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Replicate_Ignore_Table is \"shop.orders\""), "{said}");
    super::is_detached(&target);
    succeeded(&restore(&target, &daemon, &["--statements"]));
    assert_eq!(checksums(&target, "shop"), checksums(&source, "shop"));
}

/// A backup that was written to, with the source's UUID: from the archive as from the copy.
#[test]
fn what_was_written_under_the_sources_gtids_is_found_from_an_archive() {
    let name = "mysql-9.7";
    let options = with_gtids(name);
    let mut source = Server::start(name, options);
    let work = tempfile::tempdir().unwrap();
    let archive = format!("file://{}", work.path().join("archive").display());
    let daemon = Daemon::start(&source, &["--archive-url", &archive, "--archive-interval", "1s"]);
    source.sql(&WORK.replace("'a'", "'first'"));
    source.sql("FLUSH BINARY LOGS; INSERT INTO shop.plain VALUES (2)");
    daemon.wait_caught_up(&source);
    let mut target = Server::start(name, options);
    source.stop();
    target.stop();
    std::fs::remove_dir_all(target.datadir()).expect("the empty server's folder goes");
    copy_folder(source.datadir(), target.datadir());
    source.restart(options);
    target.restart(options);
    source.sql("INSERT INTO shop.plain VALUES (3); INSERT INTO shop.plain VALUES (4); INSERT INTO shop.plain VALUES (5)");
    target.sql("CREATE USER a; CREATE USER b; CREATE USER c");
    daemon.wait_caught_up(&source);
    let is_archived = |source: &serde_json::Value| {
        let archived = &source["archive"]["archived"];
        !archived.is_null() && *archived == source["positions"]["durable"]
    };
    daemon.wait_until(is_archived, super::PATIENCE);
    let place = work.path().join("work");
    let run = |flags: &[&str]| {
        let mut command = restore_into(&target, std::path::Path::new(&archive));
        command.args(["--until", "end", "--yes", "--work", place.to_str().unwrap()]).args(flags);
        command.output().expect("binlogd runs")
    };
    let output = run(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{}{said}", String::from_utf8_lossy(&output.stdout));
    assert!(said.contains("has already other transactions than the copy under 3 GTIDs"), "{said}");
    assert!(said.contains("CREATE USER") && said.contains("shop.plain"), "both versions: {said}");
}
