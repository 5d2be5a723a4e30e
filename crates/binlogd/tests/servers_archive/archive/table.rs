//! One table brought back beside the others on the running source: as it was before a mistake, whatever became of it in between. What comes back
//! is what the source had then, by its own check sums; what cannot be followed is refused by name, and nothing is left behind.

use super::place::shop::Shop;
use super::place::{PATIENCE, wait_archived};
use crate::common::proxy::{Fault, Proxy};
use crate::common::{Server, wait_within};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Of several kinds: foreign key, generated and invisible columns, partitions, no primary key, one that a foreign key empties, and two of several
/// statements in the dump, of which the second takes rows in their order only.
const TABLES: &str = "
    CREATE TABLE shop.people (id INT PRIMARY KEY, name VARCHAR(50));
    INSERT INTO shop.people VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cy'), (4, 'Di');
    CREATE TABLE shop.lines (
        id INT AUTO_INCREMENT PRIMARY KEY, person INT, price DECIMAL(8,2), twice DECIMAL(10,2) AS (price * 2) STORED,
        half DECIMAL(10,2) AS (price / 2) VIRTUAL, secret INT INVISIBLE DEFAULT 7, doc JSON, bytes BLOB, at TIMESTAMP(6) DEFAULT
        CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), KEY (half), CONSTRAINT lines_person FOREIGN KEY (person) REFERENCES people (id));
    CREATE TRIGGER shop.stamp BEFORE INSERT ON shop.lines FOR EACH ROW SET NEW.price = NEW.price + 1;
    CREATE TABLE shop.parted (id INT, y INT, KEY (y)) PARTITION BY RANGE (y) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE);
    CREATE TABLE shop.keyless (a INT, b VARCHAR(20) CHARACTER SET latin1);
    CREATE TABLE shop.kids (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES people (id) ON DELETE CASCADE);
    INSERT INTO shop.kids VALUES (1, 1), (2, 4);
    CREATE TABLE shop.grandkids (id INT PRIMARY KEY, kid INT, FOREIGN KEY (kid) REFERENCES kids (id) ON DELETE CASCADE);
    INSERT INTO shop.grandkids VALUES (1, 1), (2, 2);
    CREATE TABLE shop.other (id INT PRIMARY KEY, n INT);
    INSERT INTO shop.other VALUES (1, 1);
    INSERT INTO shop.lines (person, price, doc, bytes) VALUES (1, 10, '{\"a\": [1, 2]}', x'00275c0aff'), (2, 20, NULL, ''), (3, 30, '7', NULL);
    INSERT INTO shop.parted VALUES (1, 1), (2, 20), (3, 30);
    INSERT INTO shop.keyless VALUES (1, 'it''s\\n;'), (1, 'it''s\\n;'), (2, 'caf\u{e9}'), (NULL, NULL);
    CREATE TABLE shop.many (id INT PRIMARY KEY, t VARCHAR(200));
    INSERT INTO shop.many WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, CONCAT('it''s;', REPEAT('x', 90)) FROM n;
    CREATE TABLE shop.found (FTS_DOC_ID BIGINT UNSIGNED AUTO_INCREMENT NOT NULL PRIMARY KEY, t VARCHAR(200), FULLTEXT (t));
    INSERT INTO shop.found (t) SELECT t FROM shop.many ORDER BY id;";

/// What happens behind the backup: changes, definitions, an online change of a table as the tools make it, XA, packed transactions.
const CHANGES: &str = "
    INSERT INTO shop.lines (person, price, doc) SELECT person, price, doc FROM shop.lines;
    UPDATE shop.lines SET price = price + 0.5, secret = id WHERE id > 2;
    DELETE FROM shop.people WHERE id = 4;
    BEGIN; INSERT INTO shop.other VALUES (2, 2); SAVEPOINT s; DELETE FROM shop.lines WHERE id = 1; INSERT INTO shop.keyless VALUES (5, 'five'); COMMIT;
    ALTER TABLE shop.lines ADD note VARCHAR(20) CHARACTER SET utf8mb4 DEFAULT '\u{fc}ber' AFTER price, ADD KEY (note);
    USE shop;
    ALTER TABLE parted ADD z INT AS (y + 1) VIRTUAL;
    ALTER TABLE parted REORGANIZE PARTITION b INTO (PARTITION b VALUES LESS THAN (25), PARTITION c VALUES LESS THAN MAXVALUE);
    INSERT INTO parted (id, y) VALUES (4, 5), (5, 25), (6, 26);
    ALTER TABLE parted TRUNCATE PARTITION c;
    UPDATE parted SET y = 26 WHERE id = 1;
    CREATE INDEX i ON parted (id);
    CREATE TABLE _keyless_new LIKE keyless;
    ALTER TABLE _keyless_new ADD c INT DEFAULT 3, ADD KEY (a);
    INSERT INTO _keyless_new (a, b) SELECT a, b FROM keyless;
    RENAME TABLE keyless TO _keyless_old, _keyless_new TO keyless;
    DROP TABLE _keyless_old;
    UPDATE keyless SET c = 9 WHERE a = 1 LIMIT 1;
    DELETE FROM keyless WHERE a IS NULL;
    CREATE TABLE made AS SELECT id, price FROM `lines`;
    UPDATE made SET price = 1 WHERE id = 2;
    XA START 'x'; INSERT INTO `lines` (person, price) VALUES (2, 99); XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x';
    XA START 'y'; INSERT INTO `lines` (person, price) VALUES (2, 98); XA END 'y'; XA PREPARE 'y'; XA ROLLBACK 'y';
    CREATE TABLE late (id INT PRIMARY KEY, t TEXT); INSERT INTO late VALUES (1, REPEAT('x', 60000)), (2, 'y'); TRUNCATE TABLE late;
    INSERT INTO late VALUES (3, 'z');";

const BACK: [&str; 7] = ["lines", "parted", "keyless", "made", "late", "many", "found"];

struct Scene {
    shop: Shop,
    account: Cell<&'static str>,
}

/// A check sum a table, without their names.
fn sums(server: &Server, tables: &[String]) -> Vec<String> {
    let all = server.sql(&format!("CHECKSUM TABLE {}", tables.join(", ")));
    all.lines().map(|line| line.split('\t').nth(1).expect("a sum").to_owned()).collect()
}

/// What a table is, but for its name, its foreign keys and its counter.
fn definition(server: &Server, table: &str) -> String {
    let shown = server.sql(&format!("SHOW CREATE TABLE {table}"));
    let (_, shown) = shown.split_once('(').expect("columns");
    let lines = shown.replace("\\n", "\n");
    let kept = lines.lines().filter(|line| !line.contains("FOREIGN KEY"));
    let words = kept
        .flat_map(|line| line.trim().trim_end_matches(',').split(' '))
        .filter(|word| !word.starts_with("AUTO_INCREMENT="));
    words.collect::<Vec<_>>().join(" ")
}

impl Scene {
    fn command(&self, table_pairs: &[(&str, &str)], more: &[&str]) -> Command {
        self.command_to(&format!("127.0.0.1:{}", self.shop.source.port()), table_pairs, more)
    }

    fn command_to(&self, target: &str, table_pairs: &[(&str, &str)], more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        command.arg("restore").stdin(Stdio::null());
        for (table, name) in table_pairs {
            command.args(["--table", table, "--as", name]);
        }
        command.args([
            "--from",
            &self.shop.place.url(),
            "--into",
            &format!("mysql://{}@{target}", self.account.get()),
        ]);
        command.arg("--work").arg(self.shop.dir.path().join("work")).args(more);
        command
    }

    #[track_caller]
    fn said(&self, table_pairs: &[(&str, &str)], more: &[&str], code: i32) -> String {
        let output = self.command(table_pairs, more).output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    }

    /// It is refused with these words, and leaves nothing behind.
    #[track_caller]
    fn refused(&self, table: &str, more: &[&str], words: &str) {
        let said = self.said(&[(table, "shop.refused")], more, 1);
        assert!(said.contains(words), "{words:?} is not in:\n{said}");
        let left = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_name = 'refused' OR table_schema LIKE 'binlogd\\_%'";
        assert_eq!(self.shop.source.sql(left), "binlogd_restore_mine\tkept\n");
    }

    /// It gets a signal when some of its tables are there. Gives how many are there behind it.
    fn ended_midway(&self, signal: Signal) -> usize {
        let count = || {
            let tables = self.shop.source.sql(
                "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema LIKE 'binlogd\\_restore\\_%' AND table_name <> 'kept'",
            );
            tables.trim().parse::<usize>().expect("a number")
        };
        let way = Proxy::before(&self.shop.source);
        way.fault(Fault::Latency(Duration::from_millis(30)));
        let tables = [("shop.lines", "shop.midway"), ("shop.other", "shop.midway2")];
        let mut command = self.command_to(
            &way.address().to_string(),
            &tables,
            &["--until", "before DROP TABLE shop.lines"],
        );
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        wait_within(PATIENCE, "a table is there", || count() > 0);
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        assert!(!child.wait().expect("it ends").success(), "it was too quick");
        count()
    }
}

fn brings_tables_back(name: &str) {
    let scene = Scene { shop: Shop::new(name, ""), account: Cell::new("root") };
    let source = &scene.shop.source;
    source.sql(TABLES);
    source.sql("CREATE DATABASE binlogd_restore_mine; CREATE TABLE binlogd_restore_mine.kept (id INT)");
    wait_archived(&scene.shop.daemon, source);
    // The shortest statements of several rows that it makes, so that each session that loads gets some of the large tables.
    scene.shop.back_up(&["--", "--net-buffer-length=4096"]);
    let is_mysql = name.starts_with("mysql");
    source.sql(CHANGES);
    let packs = if is_mysql {
        "SET SESSION binlog_transaction_compression = ON"
    } else {
        "SET GLOBAL log_bin_compress = ON"
    };
    source.sql(&format!("{packs}; UPDATE shop.lines SET bytes = REPEAT('packed', 500) WHERE id > 1; INSERT INTO shop.keyless (a, b) SELECT a, REPEAT('p', 20) FROM shop.keyless"));
    source.sql("ALTER TABLE shop.lines MODIFY price DECIMAL(12,3)");
    let tables: Vec<String> = BACK.iter().map(|table| format!("shop.`{table}`")).collect();
    let before = sums(source, &tables);
    let definitions: Vec<String> = tables.iter().map(|table| definition(source, table)).collect();
    source.sql(&format!("DROP TABLE {}", tables.join(", ")));
    source.sql("CREATE TABLE shop.late (other INT); INSERT INTO shop.late VALUES (1); INSERT INTO shop.other VALUES (3, 3)");
    // What killed runs have left.
    source.sql("CREATE DATABASE binlogd_restore_deadbeef_0");
    wait_archived(&scene.shop.daemon, source);

    let names: Vec<(String, String)> =
        BACK.iter().map(|table| (format!("shop.{table}"), format!("shop.{table}_back"))).collect();
    let pairs: Vec<(&str, &str)> =
        names.iter().map(|(table, name)| (table.as_str(), name.as_str())).collect();
    let others = sums(source, &["shop.orders".to_owned(), "shop.people".to_owned(), "shop.late".to_owned()]);
    let point = ["--until", "before DROP TABLE shop.lines"];
    let plan = scene.said(&pairs, &[&point[..], &["--plan"]].concat(), 0);
    assert!(plan.contains("first that is left out:") && plan.contains("concern the tables"), "{plan}");
    let said = scene.said(&pairs, &point, 0);
    for words in [
        "left out: foreign key lines_person (person to people)",
        "left out: trigger stamp of shop.lines",
        "had left the schema binlogd_restore_deadbeef_0",
    ] {
        assert!(said.contains(words), "{words:?} is not in:\n{said}");
    }
    let made: Vec<String> = BACK.iter().map(|table| format!("shop.{table}_back")).collect();
    assert_eq!(sums(source, &made), before, "{said}");
    let again: Vec<String> = made.iter().map(|table| definition(source, table)).collect();
    assert_eq!(again, definitions);
    assert!(before.iter().all(|sum| said.contains(&format!("CHECKSUM TABLE: {sum}"))), "{said}");
    assert_eq!(
        sums(source, &["shop.orders".to_owned(), "shop.people".to_owned(), "shop.late".to_owned()]),
        others
    );

    assert_eq!(scene.ended_midway(Signal::INT), 0, "Ctrl-C leaves nothing");
    assert!(scene.ended_midway(Signal::KILL) > 0, "it could remove nothing");
    let said = scene.said(&[("shop.other", "shop.midway")], &point, 0);
    assert!(said.contains("had left the schema binlogd_restore_"), "{said}");

    // By what the source is now, and by what the log cannot tell.
    let end = ["--until", "end"];
    let taken = scene.said(&[("shop.people", "shop.lines_back")], &end, 1);
    assert!(taken.contains("the target has a table of that name already"), "{taken}");
    scene.refused("shop.lines", &end, "at the point there is no table shop.lines");
    scene.refused("shop.nothing", &end, "at the point there is no table shop.nothing");
    // What foreign keys do stands in the log of MySQL from 9.6 on.
    if name == "mysql-9.7" {
        let said = scene.said(&[("shop.kids", "shop.kids_back")], &end, 0);
        let kids = sums(source, &["shop.kids".to_owned(), "shop.kids_back".to_owned()]);
        assert_eq!(kids[0], kids[1], "{said}");
        let said = scene.said(&[("shop.grandkids", "shop.grandkids_back")], &end, 0);
        let kids = sums(source, &["shop.grandkids".to_owned(), "shop.grandkids_back".to_owned()]);
        assert_eq!(kids[0], kids[1], "{said}");
    } else {
        scene.refused("shop.kids", &end, "to which a foreign key of the table points");
        scene.refused("shop.grandkids", &end, "it changes rows of shop.people");
    }
    scene.refused("mysql.user", &end, "one of the server's own");
    source.sql("CREATE USER weak@'%' IDENTIFIED BY 'w'; GRANT SELECT, INSERT, CREATE, DROP, ALTER, INDEX, UPDATE, DELETE ON *.* TO weak@'%'; SET GLOBAL read_only = ON");
    scene.refused("shop.other", &end, "read only");
    source.sql("SET GLOBAL read_only = OFF");
    scene.account.set("weak:w");
    scene.refused("shop.other", &end, if is_mysql { "REPLICATION_APPLIER" } else { "BINLOG REPLAY" });
    scene.account.set("root");
    source.sql("CREATE TABLE shop.swapped (id INT, y INT, KEY (y)); CREATE TABLE shop.two (id INT, y INT, KEY (y)) PARTITION BY HASH (y) PARTITIONS 2");
    source.sql("ALTER TABLE shop.two EXCHANGE PARTITION p0 WITH TABLE shop.swapped");
    source.sql("SET SESSION binlog_format = STATEMENT; UPDATE shop.other SET n = n + 1");
    wait_archived(&scene.shop.daemon, source);
    scene.refused("shop.swapped", &end, "takes rows from another table");
    scene.refused("shop.other", &end, "stands in the log in the place of its rows");
    scene.refused("shop.people", &end, "--accept statements");
    let accepted = scene.said(
        &[("shop.people", "shop.people_back")],
        &[&end[..], &["--accept", "statements"]].concat(),
        0,
    );
    let people = sums(source, &["shop.people".to_owned(), "shop.people_back".to_owned()]);
    assert_eq!(people[0], people[1], "{accepted}");
    scene.shop.daemon.wait_caught_up(source);
}

#[test]
fn mysql_9_7_brings_tables_back() {
    brings_tables_back("mysql-9.7");
}

#[test]
fn mariadb_11_8_brings_tables_back() {
    brings_tables_back("mariadb-11.8");
}

/// By hand: the oldest that can be dumped here. Of MySQL 8.0 there is no mysqldump.
#[test]
#[ignore = "an older server takes as long again"]
fn mariadb_10_11_brings_tables_back() {
    brings_tables_back("mariadb-10.11");
}
