//! `find`, `stats` and `cat` of an archive, beside the same of the copy that was archived: one history, told twice.

use super::MYSQL;
use super::place::{Place, wait_archived};
use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::readers::make_account;
use serde_json::Value;
use std::process::{Command, Stdio};

/// The answer of a verb for the copy, without the folder that is named in it.
fn of_copy(daemon: &Daemon, verb: &str, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.args([verb.as_ref(), daemon.data_dir().as_os_str()]).args(arguments).stdin(Stdio::null());
    ended_well(&mut command)
}

#[track_caller]
fn ended_well(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn sources(answer: &[u8]) -> Value {
    let mut answer: Value = serde_json::from_slice(answer).expect("JSON");
    answer["sources"].take()
}

#[test]
fn an_archive_is_searched_and_cut_as_its_copy() {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    let place = Place::s3().encrypted();
    let daemon = place.start(&source, "");
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)");
    for _ in 0..3 {
        source.sql("INSERT INTO shop.orders (v) VALUES ('a'), ('b'); FLUSH BINARY LOGS");
    }
    source.sql("SET SESSION binlog_transaction_compression = ON; DELETE FROM shop.orders WHERE v = 'a'");
    source.sql("DROP TABLE shop.orders");
    wait_archived(&daemon, &source);

    let asked: [&[&str]; 4] = [
        &["--table", "shop.orders", "--kind", "delete"],
        &["--kind", "drop"],
        &["--min-rows", "2", "--limit", "0"],
        &["--text", "create table"],
    ];
    for options in asked {
        let options = [options, &["--json"]].concat();
        let here = sources(&of_copy(&daemon, "find", &options));
        let there = sources(&ended_well(&mut place.command("find", &options)));
        assert_eq!(here[0]["transactions"], there[0]["transactions"], "{options:?}");
        assert!(!here[0]["transactions"].as_array().expect("a list").is_empty(), "{options:?}: {here:#}");
    }
    let here = sources(&of_copy(&daemon, "stats", &["--json"]));
    assert_eq!(here, sources(&ended_well(&mut place.command("stats", &["--json"]))));

    let dropped = ["--until", "before DROP TABLE shop.orders"];
    let here = of_copy(&daemon, "cat", &dropped);
    let work = super::place::folder();
    let work = ["--work", work.path().to_str().expect("a plain path")];
    let there = ended_well(&mut place.command("cat", &[dropped, work].concat()));
    assert!(here == there, "{} and {} bytes", here.len(), there.len());
}
