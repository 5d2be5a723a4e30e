//! `binlogd cat` over XA transactions, whose halves have other transactions between.

use super::{Scene, options};
use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::readers::checksums;
use crate::common::verbs::text;
use codec::ServerKind;

/// Two are prepared; one is committed later and one rolled back, and others come between.
fn scene(name: &str) -> Scene {
    let source = Server::start(name, options(name));
    let daemon = Daemon::start(&source, &[]);
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, v TEXT); CREATE TABLE shop.parts (id INT PRIMARY KEY, v TEXT)");
    let prepare = |xid: &str, change: &str| {
        source.sql(&format!("XA START '{xid}'; {change}; XA END '{xid}'; XA PREPARE '{xid}'"));
    };
    prepare("kept", "INSERT INTO shop.orders VALUES (1, 'in the first')");
    source.sql("INSERT INTO shop.parts VALUES (1, 'between')");
    prepare("left", "INSERT INTO shop.orders VALUES (2, 'in the second')");
    source.sql("FLUSH BINARY LOGS; INSERT INTO shop.parts VALUES (2, 'in the next file')");
    source.sql("XA COMMIT 'kept'");
    source.sql(
        "XA ROLLBACK 'left'; INSERT INTO shop.parts VALUES (3, 'behind'); UPDATE shop.orders SET v = 'seen'",
    );
    daemon.wait_caught_up(&source);
    let mut scene = Scene { source, daemon, first: String::new(), before: String::new() };
    scene.first = scene.gtid_of("create database shop");
    scene
}

/// The GTID of a transaction that has this XA transaction and is of this kind.
fn gtid_of(scene: &Scene, kind: &str) -> String {
    let found = scene.found(&["--limit", "0"]);
    let is = |one: &&serde_json::Value| one["kind"] == kind;
    let one = found.iter().find(is).unwrap_or_else(|| panic!("{kind}: {found:#?}"));
    one["gtid"].as_str().expect("it has one").to_owned()
}

/// Lines that begin so: mysqlbinlog prints them as comments too.
fn statements(printed: &str, words: &str) -> usize {
    printed.lines().filter(|line| line.starts_with(words)).count()
}

fn halves_stay_in_order(name: &str) {
    let scene = scene(name);
    let from = ["--from", scene.first.as_str()];
    let (path, said) = scene.written("all", &from);
    assert!(!said.contains("prepared"), "both have their second half: {said}");
    let printed = scene.printed(&path);
    for (words, count) in [("XA PREPARE", 2), ("XA COMMIT", 1), ("XA ROLLBACK", 1)] {
        assert_eq!(statements(&printed, words), count, "{words}: {printed}");
    }
    // A session of MariaDB cannot do another thing while it has a prepared transaction: its mysqlbinlog's script is none for it.
    if scene.source.kind() == ServerKind::MySql {
        assert_eq!(checksums(&scene.applied(&path), "shop"), checksums(&scene.source, "shop"));
    }

    // By table: the second half goes with the first.
    let (path, said) = scene.written("orders", &["--table", "shop.orders"]);
    let printed = scene.printed(&path);
    assert_eq!(statements(&printed, "XA COMMIT"), 1, "{printed}");
    assert!(!printed.contains("'between'") && printed.contains("'in the first'"), "{said}: {printed}");
    let (path, _) = scene.written("parts", &["--table", "shop.parts"]);
    let printed = scene.printed(&path);
    assert!(!printed.contains("XA COMMIT") && printed.contains("'between'"), "{printed}");

    // Up to between the halves, and from there on.
    let commit = gtid_of(&scene, "xa commit");
    let (path, said) = scene.written("first", &[&from[..], &["--until", &commit]].concat());
    assert!(said.contains("warning: at the end 2 XA transactions are prepared"), "{said}");
    assert_eq!(statements(&scene.printed(&path), "XA PREPARE"), 2);
    let (path, said) = scene.written("second", &["--from", &commit, "--table", "shop.orders"]);
    assert!(said.contains("the second half of an XA transaction"), "{said}");
    assert!(scene.printed(&path).contains("XA COMMIT"));
    let output = scene.cat(&["--gtid", &commit]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn mysql_halves() {
    halves_stay_in_order("mysql-9.7");
}

#[test]
fn mariadb_halves() {
    halves_stay_in_order("mariadb-11.8");
}
