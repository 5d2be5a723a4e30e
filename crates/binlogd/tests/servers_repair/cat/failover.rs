//! `binlogd cat` over a failover: what the replica wrote as the source stands on another timeline.

use super::{Scene, options};
use crate::common::Server;
use crate::common::daemon::{Daemon, url};
use crate::common::pair::{promote, replicate, wait_replicated};
use crate::common::readers::checksums;
use crate::common::verbs::text;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 8] = [
    "--heartbeat-period",
    "1s",
    "--net-read-timeout",
    "3s",
    "--backoff-max",
    "1s",
    "--connect-timeout",
    "2s",
];

fn both_timelines_are_one_log(name: &str) {
    let old = Server::start(name, &[options(name), &["--log-bin=old-bin"]].concat());
    let new = Server::start(name, options(name));
    old.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, v TEXT)");
    replicate(&new, &old);
    let daemon = Daemon::start_on(&format!("{},127.0.0.1:{}", url(&old), new.port()), &FLAGS);
    old.sql("INSERT INTO shop.orders VALUES (1, 'of the old source'); FLUSH BINARY LOGS");
    old.sql("INSERT INTO shop.orders VALUES (2, 'the last of the old source')");
    daemon.wait_caught_up(&old);
    wait_replicated(&new, &old);
    old.kill();
    promote(&new);
    new.sql("INSERT INTO shop.orders VALUES (3, 'the first of the new source')");
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    daemon.wait_caught_up(&new);
    assert_eq!(daemon.timeline_dirs().len(), 2, "{}", daemon.log());
    let mut scene = Scene { source: new, daemon, first: String::new(), before: String::new() };
    scene.first = scene.gtid_of("create database shop");

    let from = ["--from", scene.first.as_str()];
    let (path, said) = scene.written("all", &from);
    // Each once, although both servers have those of the old one in their logs.
    assert!(said.contains("written: 5 transactions"), "{said}");
    let printed = scene.printed(&path);
    assert_eq!(printed.matches("Start: binlog v 4").count(), 1, "{printed}");
    for words in ["'of the old source'", "'the last of the old source'", "'the first of the new source'"] {
        // As a value of a row: a statement for people has the words too.
        assert_eq!(printed.matches(&format!("@2={words}")).count(), 1, "{words}: {printed}");
    }
    assert_eq!(checksums(&scene.applied(&path), "shop"), checksums(&scene.source, "shop"));

    // The first timeline alone, and the second's own.
    let (path, said) = scene.written("old", &[&from[..], &["--timeline", "1"]].concat());
    assert!(said.contains("written: 4 transactions"), "{said}");
    assert!(!scene.printed(&path).contains("of the new source"));
    let inserted = scene.found(&["--kind", "insert"]);
    let last = inserted.last().and_then(|one| one["gtid"].as_str()).expect("it is found").to_owned();
    let (path, said) = scene.written("new", &["--from", &last]);
    assert!(said.contains("written: 1 transaction,"), "{said}");
    assert!(scene.printed(&path).contains("'the first of the new source'"));
    let output = scene.cat(&["--timeline", "1", "--from", &last]);
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(1)
            && said.contains("does not come to --from")
            && output.stdout.is_empty(),
        "{said}"
    );
}

#[test]
fn mysql_both_timelines() {
    both_timelines_are_one_log("mysql-9.7");
}

#[test]
fn mariadb_both_timelines() {
    both_timelines_are_one_log("mariadb-11.8");
}
