//! `binlogd undo` on copies of real servers: random changes of every type are taken back, by the script and by --into, and the
//! tables' check sums are what they were.

mod columns;
mod conditions;
mod plan;

use crate::common::daemon::{Daemon, url};
use crate::common::readers::checksums;
use crate::common::verbs::{binlogd, text};
use crate::common::{Server, seed};
use crate::show::types::{self, Typed};
use binlog::testing::Random;
use codec::ServerKind;
use serde_json::Value;
use std::process::{Command, Output};

/// Zero dates are let in.
const SESSION: &str = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'";

struct Scene {
    source: Server,
    daemon: Daemon,
}

impl Scene {
    fn new(name: &str) -> Scene {
        Scene::with(name, &["--binlog-row-metadata=FULL"])
    }

    fn with(name: &str, options: &[&str]) -> Scene {
        let own: &[&str] = match name.starts_with("mysql") {
            true => &["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates=ON"],
            false => &["--binlog-format=ROW"],
        };
        let source = Server::start(name, &[own, options].concat());
        let daemon = Daemon::start(&source, &[]);
        source.sql("CREATE DATABASE shop");
        Scene { source, daemon }
    }

    fn run(&self, verb: &str, arguments: &[&str]) -> Output {
        let dir = self.daemon.data_dir();
        binlogd(&[&[verb, dir.to_str().unwrap()], arguments].concat())
    }

    /// GTIDs of the transactions that change rows of this table, in order.
    fn gtids(&self, table: &str) -> Vec<String> {
        self.daemon.wait_caught_up(&self.source);
        let kinds = ["--kind", "insert", "--kind", "update", "--kind", "delete"];
        let found = self.run("find", &[&["--json", "--limit", "0", "--table", table][..], &kinds].concat());
        let answer: Value = serde_json::from_slice(&found.stdout).expect("JSON");
        let found = answer["sources"][0]["transactions"].as_array().unwrap().clone();
        found.iter().map(|one| one["gtid"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn refused(&self, arguments: &[&str], words: &str) {
        let output = self.run("undo", arguments);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

/// A few statements in one transaction.
fn random_changes(random: &mut Random, table: &str, typed: &[Typed], next_id: &mut u64) -> String {
    let mut statements = vec![SESSION.to_owned(), "BEGIN".to_owned()];
    let value = |random: &mut Random, (_, _, values): &Typed| {
        if random.one_in(6) { "NULL".to_owned() } else { (*random.pick(values)).to_owned() }
    };
    for _ in 0..=random.below(6) {
        let statement = match random.below(4) {
            0 | 1 => {
                *next_id += 1;
                let values: Vec<String> = typed.iter().map(|typed| value(random, typed)).collect();
                format!("INSERT INTO {table} VALUES ({next_id}, {})", values.join(", "))
            }
            2 => {
                let sets: Vec<String> = (0..1 + random.below(5))
                    .map(|_| {
                        let at = random.below(typed.len() as u64) as usize;
                        format!("{} = {}", types::name(at), value(random, &typed[at]))
                    })
                    .collect();
                format!("UPDATE {table} SET {} WHERE id % 3 = {}", sets.join(", "), random.below(3))
            }
            _ => format!("DELETE FROM {table} WHERE id % 5 = {}", random.below(5)),
        };
        statements.push(statement);
    }
    statements.push("COMMIT".to_owned());
    statements.join(";\n")
}

fn all_is_as_before(name: &str) {
    let scene = Scene::new(name);
    let typed = types::all(&scene.source);
    let mut random = Random::new(seed());
    scene.source.sql(&types::create("shop.wide", &typed));
    scene.source.sql(&format!("{SESSION}; {}", types::insert("shop.wide", &typed)));
    let mut next_id = 1000;
    let schema = url(&scene.source);
    for round in 0..6 {
        let done = scene.gtids("shop.wide").len();
        let before = checksums(&scene.source, "shop");
        for _ in 0..3 {
            scene.source.sql(&random_changes(&mut random, "shop.wide", &typed, &mut next_id));
        }
        let gtids = scene.gtids("shop.wide")[done..].join(",");
        if gtids.is_empty() {
            continue;
        }
        let output = match round % 3 {
            0 => scene.run("undo", &["--gtid", &gtids, "--into", &schema, "--yes"]),
            1 => scene.run("undo", &["--gtid", &gtids, "--schema", &schema]),
            _ => scene.run("undo", &["--gtid", &gtids]),
        };
        assert!(output.status.success(), "round {round}: {}", text(&output.stderr));
        if round % 3 != 0 {
            let script = scene.source.dir().join("undo.sql");
            std::fs::write(&script, &output.stdout).unwrap();
            scene.source.sql_file(&script, &["--binary-mode"]);
        }
        assert_eq!(checksums(&scene.source, "shop"), before, "round {round}: {gtids}");
    }
    it_stops_where_a_row_is_another(&scene);
    conditions::hold_for_one_value(&scene);
    conditions::find_rows_by_their_key(&scene);
    plan::looks_before_it_locks(&scene);
    it_is_refused_by_name(&scene);
}

fn it_stops_where_a_row_is_another(scene: &Scene) {
    let url = url(&scene.source);
    scene.source.sql("CREATE TABLE shop.t (id INT, v VARCHAR(20), w TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP)");
    scene.source.sql("INSERT INTO shop.t (id, v) VALUES (1, 'a'), (1, 'a'), (2, 'b'), (0, 'c')");
    scene.source.sql("UPDATE shop.t SET v = 'A' WHERE v = 'a'; DELETE FROM shop.t WHERE id = 0");
    let gtids = scene.gtids("shop.t");
    let (update, delete) = (gtids[1].as_str(), gtids[2].as_str());
    let script = scene.run("undo", &["--gtid", update]);
    assert!(script.status.success(), "{}", text(&script.stderr));
    let path = scene.source.dir().join("stops.sql");
    std::fs::write(&path, &script.stdout).unwrap();
    // One of two rows has become another that its collation takes for the same.
    scene.source.sql("UPDATE shop.t SET v = 'a' WHERE v = 'A' LIMIT 1");
    let before = checksums(&scene.source, "shop");
    let client = Command::new(scene.source.env("MYSQL"))
        .stdin(std::fs::File::open(&path).unwrap())
        .output()
        .expect("the client runs");
    assert!(
        !client.status.success() && text(&client.stderr).contains("#undo 2: not one row"),
        "{}",
        text(&client.stderr)
    );
    assert_eq!(checksums(&scene.source, "shop"), before);
    let output = scene.run("undo", &["--gtid", update, "--into", &url, "--yes"]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("row 2, which was updated shop.t"), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(checksums(&scene.source, "shop"), before);
    // A row whose number is 0, into a column that could count up.
    let output = scene.run("undo", &["--gtid", delete, "--into", &url, "--yes"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(scene.source.sql("SELECT v FROM shop.t WHERE id = 0"), "c\n");
    // Nobody is there to be asked.
    let output = scene.run("undo", &["--gtid", delete, "--into", &url]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("nobody is there to be asked"), "{said}");
}

fn it_is_refused_by_name(scene: &Scene) {
    let url = &url(&scene.source);
    let sql = |text: &str| scene.source.sql(text);
    sql(
        "CREATE TABLE shop.parent (id INT PRIMARY KEY); CREATE TABLE shop.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES shop.parent (id) ON DELETE CASCADE)",
    );
    sql("INSERT INTO shop.parent VALUES (1)");
    scene.refused(&["--gtid", &scene.gtids("shop.parent")[0], "--schema", url], "CASCADE");
    sql(
        "CREATE TABLE shop.fires (id INT PRIMARY KEY); CREATE TRIGGER shop.again BEFORE INSERT ON shop.fires FOR EACH ROW SET @a = 1",
    );
    sql("INSERT INTO shop.fires VALUES (1)");
    scene.refused(&["--gtid", &scene.gtids("shop.fires")[0], "--schema", url], "has the trigger again");
    sql("CREATE TABLE shop.plain (id INT PRIMARY KEY, v TEXT) ENGINE = MyISAM");
    sql("INSERT INTO shop.plain VALUES (1, 'x')");
    scene.refused(&["--gtid", &scene.gtids("shop.plain")[0], "--schema", url], "without transactions");
    scene.refused(&["--table", "shop.plain"], "a statement has no inverse");
    sql("CREATE TABLE shop.image (id INT PRIMARY KEY, v INT); INSERT INTO shop.image VALUES (1, 2)");
    sql("SET SESSION binlog_row_image = MINIMAL; UPDATE shop.image SET v = 3");
    scene
        .refused(&["--gtid", &scene.gtids("shop.image")[1], "--schema", url], "binlog_row_image is not FULL");
    // Columns that the server computes are not written.
    sql(
        "CREATE TABLE shop.made (id INT PRIMARY KEY, v INT, w INT AS (v + 1) STORED, x INT AS (v + 2) VIRTUAL); INSERT INTO shop.made (id, v) VALUES (1, 2)",
    );
    let before = checksums(&scene.source, "shop");
    sql("DELETE FROM shop.made");
    let output = scene.run("undo", &["--gtid", &scene.gtids("shop.made")[1], "--into", url, "--yes"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(checksums(&scene.source, "shop"), before);
    if scene.source.kind() == ServerKind::MySql {
        sql(
            "CREATE TABLE shop.part (id INT PRIMARY KEY, v JSON); INSERT INTO shop.part VALUES (1, JSON_OBJECT('a', REPEAT('x', 200), 'b', 1))",
        );
        sql(
            "SET SESSION binlog_row_value_options = PARTIAL_JSON; UPDATE shop.part SET v = JSON_SET(v, '$.b', 2)",
        );
        let gtid = &scene.gtids("shop.part")[1];
        scene.refused(&["--gtid", gtid, "--schema", url], "partial update");
        let shown = text(&scene.run("show", &["--gtid", gtid]).stdout);
        assert!(shown.contains("JSON_REPLACE($.b, 2)"), "{shown}");
    }
    sql(
        "SET GLOBAL binlog_row_metadata = MINIMAL; CREATE TABLE shop.unnamed (id INT PRIMARY KEY); INSERT INTO shop.unnamed VALUES (1)",
    );
    scene.refused(&["--gtid", &scene.gtids("shop.unnamed")[0]], "does not name its columns");
    for (arguments, words) in [
        (&[][..], "say what is to be taken back"),
        (&["--find"], "write the options of binlogd find by themselves"),
        (&["--find", "--table", "shop.t"], "write the options of binlogd find by themselves"),
    ] {
        let output = scene.run("undo", arguments);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn mysql_is_as_before() {
    all_is_as_before("mysql-9.7");
}

#[test]
fn mariadb_is_as_before() {
    all_is_as_before("mariadb-11.8");
}

#[test]
fn mysql_5_7_conditions_hold() {
    let scene = Scene::with("mysql-5.7.22", &[]);
    conditions::hold_for_one_value(&scene);
    conditions::find_rows_by_their_key(&scene);
    plan::looks_before_it_locks(&scene);
}

#[test]
fn mysql_8_0_31_is_as_before() {
    all_is_as_before("mysql-8.0.31");
}

#[test]
fn mariadb_10_11_is_as_before() {
    all_is_as_before("mariadb-10.11");
}
