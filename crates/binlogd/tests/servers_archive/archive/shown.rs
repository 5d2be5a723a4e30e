//! `show` and `undo` of an archive, beside the same of the copy that was archived.

use super::MYSQL;
use super::place::{Place, wait_archived};
use crate::common::Server;
use crate::common::readers::make_account;
use crate::common::verbs::{binlogd, text};
use serde_json::Value;

#[test]
fn an_archive_is_shown_and_undone_as_its_copy() {
    let source = Server::start("mysql-9.7", &[&MYSQL[..], &["--binlog-row-metadata=FULL"]].concat());
    make_account(&source);
    for place in [Place::s3().encrypted(), Place::folder()] {
        let daemon = place.start(&source, "");
        source.sql("DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, v TEXT)");
        source.sql("INSERT INTO shop.orders VALUES (1, 'a'), (2, 'b'); FLUSH BINARY LOGS");
        source.sql("SET SESSION binlog_transaction_compression = ON; DELETE FROM shop.orders WHERE v = 'a'");
        wait_archived(&daemon, &source);
        let dir = daemon.data_dir();
        for (verb, options) in [
            ("show", &["--table", "shop.orders", "--json"][..]),
            ("show", &["--kind", "delete"]),
            ("undo", &["--kind", "delete"]),
        ] {
            let here = binlogd(&[&[verb, dir.to_str().unwrap()], options].concat());
            let there = place.command(verb, options).env("TZ", "UTC").output().expect("it runs");
            assert!(there.status.success(), "{verb} {options:?}: {}", text(&there.stderr));
            assert!(!here.stdout.is_empty(), "{verb} {options:?}: {}", text(&here.stderr));
            let lines = |output: &[u8]| {
                let told = text(output).lines().map(str::to_owned).collect::<Vec<_>>();
                told.into_iter()
                    .filter(|line| line.trim() != "default")
                    .map(|line| of_any_source(&line))
                    .collect::<Vec<_>>()
            };
            assert_eq!(lines(&there.stdout), lines(&here.stdout), "{verb} {options:?}");
        }
    }
}

/// A source has its name from its folder, and an archive has it of its own.
fn of_any_source(line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(mut one) => {
            one["source"].take();
            one.to_string()
        }
        Err(_) => line.to_owned(),
    }
}
