//! Columns that somebody has changed since: what the log does not name is not taken from the server.

use super::Scene;
use crate::common::daemon::url;
use crate::common::verbs::text;
use crate::common::{Server, wait_within};
use codec::ServerKind;
use std::time::Duration;

/// A row is deleted from `shop.t`, then that happens; where it is harmless, the row comes back.
const CHANGES: &[(&str, bool)] = &[
    ("ALTER TABLE shop.t MODIFY first_name VARCHAR(30) AFTER last_name", false),
    ("ALTER TABLE shop.t DROP last_name, ADD note VARCHAR(30) AFTER first_name", false),
    ("ALTER TABLE shop.t CHANGE last_name note VARCHAR(30)", false),
    (
        "CREATE TABLE shop.u LIKE shop.t; ALTER TABLE shop.u MODIFY last_name VARCHAR(30) AFTER id; RENAME TABLE shop.t TO shop.v, shop.u TO shop.t",
        false,
    ),
    ("CREATE TABLE shop.u LIKE shop.t; DROP TABLE shop.t; USE shop; ALTER TABLE u RENAME t", false),
    (
        "DROP DATABASE shop; CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, last_name VARCHAR(30), first_name VARCHAR(30), e ENUM('x','y'))",
        false,
    ),
    ("ALTER TABLE shop.t MODIFY e ENUM('y','x')", false),
    ("CREATE TABLE other.t (a INT); ALTER TABLE other.t ADD b INT", true),
    (
        "CREATE INDEX i ON shop.t (last_name); ALTER TABLE shop.t ADD UNIQUE u (id, e), DROP INDEX i, COMMENT = 'it''s, fine', \
         AUTO_INCREMENT = 9, ROW_FORMAT = DYNAMIC, ALTER e SET DEFAULT 'x'; ANALYZE TABLE shop.t",
        true,
    ),
    ("CREATE TABLE IF NOT EXISTS shop.t (id INT)", true),
    // Of this nothing stands in the log.
    ("SET SESSION sql_log_bin = 0; ALTER TABLE shop.t MODIFY first_name VARCHAR(30) AFTER last_name", false),
];

fn create(scene: &Scene) -> String {
    scene.source.sql(
        "DROP DATABASE IF EXISTS shop; DROP DATABASE IF EXISTS other; CREATE DATABASE shop; CREATE DATABASE other; \
         CREATE TABLE shop.t (id INT PRIMARY KEY, first_name VARCHAR(30), last_name VARCHAR(30), e ENUM('x','y')); \
         INSERT INTO shop.t VALUES (1, 'Ada', 'Lovelace', 'y'), (2, 'Alan', 'Turing', 'x')",
    );
    scene.source.sql("DELETE FROM shop.t WHERE id = 1");
    scene.gtids("shop.t").pop().unwrap()
}

/// A definition that is not logged is told by its time, which is in seconds.
fn some_seconds_later(scene: &Scene) {
    let now = || scene.source.sql("SELECT UNIX_TIMESTAMP()").trim().parse::<u64>().unwrap();
    let before = now();
    wait_within(Duration::from_secs(60), "three seconds later", || now() > before + 2);
}

fn are_proven(name: &str) {
    let scene = Scene::with(name, &[]);
    let url = &url(&scene.source);
    let row = "SELECT first_name, last_name, e FROM shop.t WHERE id = 1";
    for (change, is_harmless) in CHANGES {
        let gtid = create(&scene);
        if change.contains("sql_log_bin") {
            some_seconds_later(&scene);
        }
        scene.source.sql(change);
        scene.gtids("shop.t");
        let output = scene.run("undo", &["--gtid", &gtid, "--into", url, "--yes"]);
        let said = text(&output.stderr);
        let shown = text(&scene.run("show", &["--gtid", &gtid, "--schema", url]).stdout);
        if *is_harmless {
            assert!(output.status.success(), "{change}: {said}");
            assert_eq!(scene.source.sql(row), "Ada\tLovelace\ty\n", "{change}");
            assert!(shown.contains("first_name='Ada'"), "{change}: {shown}");
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{change}: {said}");
        assert_eq!(scene.source.sql("SELECT COUNT(*) FROM shop.t WHERE id = 1"), "0\n", "{change}: {said}");
        let is_named = said.contains("behind these rows comes ") && said.contains(" (");
        let is_unlogged =
            change.contains("sql_log_bin") && said.contains("no statement of that time stands in the log");
        assert!(is_named || is_unlogged, "{change}: {said}");
        assert!(shown.contains("@2='Ada'") && shown.contains("not proven"), "{change}: {shown}");
    }
    // Who knows better may say so.
    let gtid = create(&scene);
    scene.source.sql("ALTER TABLE shop.t MODIFY last_name VARCHAR(60)");
    scene.gtids("shop.t");
    let output = scene.run("undo", &["--gtid", &gtid, "--into", url, "--yes", "--columns-as-now"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(scene.source.sql(row), "Ada\tLovelace\ty\n");
}

/// A replica has run a definition later than the source, which an ALTER without the log could have been.
fn a_replica_is_later(name: &str) {
    let scene = Scene::with(name, &[]);
    let gtid = create(&scene);
    let replica = Server::start(name, &[]);
    some_seconds_later(&scene);
    replica.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, first_name VARCHAR(30), last_name VARCHAR(30), e ENUM('x','y')); \
         CREATE INDEX i ON shop.t (e)",
    );
    let url = url(&replica);
    scene.refused(&["--gtid", &gtid, "--into", &url, "--yes"], "no statement of that time stands in the log");
    let output = scene.run("undo", &["--gtid", &gtid, "--into", &url, "--yes", "--columns-as-now"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(replica.sql("SELECT first_name, last_name FROM shop.t"), "Ada\tLovelace\n");
}

/// With names in the log a definition that says the same is taken; ENUM and SET go by their names.
fn are_compared(name: &str) {
    let scene = Scene::new(name);
    let url = &url(&scene.source);
    let row = "SELECT first_name, last_name, e FROM shop.t WHERE id = 1";
    for (change, words) in [
        ("ALTER TABLE shop.t MODIFY e ENUM('z','y','x'), ADD INDEX (e)", ""),
        ("CREATE TABLE shop.u LIKE shop.t; DROP TABLE shop.t; RENAME TABLE shop.u TO shop.t", ""),
        ("RENAME TABLE shop.t TO shop.v, shop.v TO other.w; ALTER TABLE other.w RENAME TO shop.t", ""),
        // Under another name columns get other names, then the table gets that of these rows.
        (
            "CREATE TABLE shop.u LIKE shop.t; ALTER TABLE shop.u CHANGE first_name x VARCHAR(30), CHANGE last_name first_name VARCHAR(30); \
             ALTER TABLE shop.u CHANGE x last_name VARCHAR(30); ALTER TABLE shop.u MODIFY last_name VARCHAR(30) AFTER first_name; \
             DROP TABLE shop.t; RENAME TABLE shop.u TO other.w, other.w TO shop.t",
            "other names",
        ),
        // The table of these rows is another one now.
        (
            "CREATE TABLE shop.u LIKE shop.t; RENAME TABLE shop.t TO other.v, shop.u TO shop.t",
            "the table of these rows is other.v now",
        ),
        (
            "CREATE TABLE shop.u LIKE shop.t; RENAME TABLE shop.t TO shop.x, shop.u TO shop.t, shop.x TO shop.u",
            "the table of these rows is shop.u now",
        ),
        (
            "ALTER TABLE shop.t RENAME TO shop.u; USE shop; CREATE TABLE t LIKE u; RENAME TABLE u TO v",
            "these rows is shop.v now",
        ),
        (
            "ALTER TABLE shop.t MODIFY first_name VARCHAR(30) AFTER last_name",
            "is last_name there and first_name in the log",
        ),
        ("ALTER TABLE shop.t MODIFY last_name VARCHAR(30) CHARACTER SET latin1", "character set latin1"),
        ("ALTER TABLE shop.t MODIFY e ENUM('x')", "other members"),
        ("ALTER TABLE shop.t MODIFY id INT UNSIGNED", "unsigned"),
        (
            "ALTER TABLE shop.t DROP last_name, ADD last_name VARCHAR(30) AS (first_name) STORED AFTER first_name",
            "computed",
        ),
    ] {
        let gtid = create(&scene);
        scene.source.sql(change);
        scene.gtids("shop.t");
        if words.contains("these rows is") {
            scene.refused(&["--gtid", &gtid], words);
            scene.refused(&["--gtid", &gtid, "--into", url, "--yes"], words);
            let shown = scene.run("show", &["--gtid", &gtid, "--schema", url]);
            assert!(text(&shown.stdout).contains(words), "{change}: {}", text(&shown.stdout));
            continue;
        }
        let script = scene.run("undo", &["--gtid", &gtid]);
        assert!(script.status.success(), "{change}: {}", text(&script.stderr));
        let is_told = |said: &[u8]| text(said).contains("shop.t: behind these rows comes ");
        assert!(is_told(&script.stdout) && is_told(&script.stderr), "{change}: {}", text(&script.stdout));
        if words.is_empty() {
            let output = scene.run("undo", &["--gtid", &gtid, "--into", url, "--yes"]);
            assert!(output.status.success(), "{change}: {}", text(&output.stderr));
            assert_eq!(scene.source.sql(row), "Ada\tLovelace\ty\n", "{change}");
        } else {
            scene.refused(&["--gtid", &gtid, "--into", url, "--yes"], words);
        }
    }
    if scene.source.kind() == ServerKind::MySql || name == "mariadb-11.8" {
        let gtid = create(&scene);
        scene.source.sql("ALTER TABLE shop.t RENAME COLUMN first_name TO x, RENAME COLUMN last_name TO first_name; ALTER TABLE shop.t RENAME COLUMN x TO last_name; ALTER TABLE shop.t MODIFY last_name VARCHAR(30) AFTER first_name");
        scene.gtids("shop.t");
        scene.refused(&["--gtid", &gtid, "--into", url, "--yes"], "other names");
    }
}

#[test]
fn mysql_columns_are_proven() {
    are_proven("mysql-9.7");
    are_compared("mysql-9.7");
    a_replica_is_later("mysql-9.7");
}

#[test]
fn mariadb_columns_are_proven() {
    are_proven("mariadb-11.8");
    are_compared("mariadb-11.8");
    a_replica_is_later("mariadb-11.8");
}
