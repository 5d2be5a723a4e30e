//! `binlogd undo` on what stands in a log beside plain rows of plain tables: each kind is taken back, or refused with the true reason.

use crate::common::Server;
use crate::common::daemon::{Daemon, url};
use crate::common::verbs::{binlogd, text};
use serde_json::Value;
use std::process::Output;

struct Scene {
    source: Server,
    daemon: Daemon,
}

impl Scene {
    fn new(name: &str, options: &[&str]) -> Scene {
        let own: &[&str] = match name.starts_with("mysql") {
            true => &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
            false => &["--binlog-format=ROW"],
        };
        let source = Server::start(name, &[own, &["--binlog-row-metadata=FULL"], options].concat());
        let daemon = Daemon::start(&source, &[]);
        source.sql("CREATE DATABASE shop");
        Scene { source, daemon }
    }

    fn run(&self, verb: &str, arguments: &[&str]) -> Output {
        let dir = self.daemon.data_dir();
        binlogd(&[&[verb, dir.to_str().unwrap()], arguments].concat())
    }

    /// The transactions that change a table, as `find --json` tells them.
    fn found(&self, table: &str) -> Vec<Value> {
        self.daemon.wait_caught_up(&self.source);
        let found = self.run("find", &["--json", "--limit", "0", "--table", table]);
        let answer: Value = serde_json::from_slice(&found.stdout).expect("JSON");
        answer["sources"][0]["transactions"].as_array().unwrap().clone()
    }

    /// The GTID of the last one.
    fn last(&self, table: &str) -> String {
        self.found(table).last().expect(table)["gtid"].as_str().unwrap().to_owned()
    }

    fn rows(&self, query: &str) -> String {
        self.source.sql(query)
    }

    fn into(&self, gtid: &str) -> (Option<i32>, String) {
        self.as_account("root", gtid)
    }

    fn as_account(&self, account: &str, gtid: &str) -> (Option<i32>, String) {
        let url = url(&self.source).replace("root@", &format!("{account}@"));
        let output = self.run("undo", &["--gtid", gtid, "--into", &url, "--yes"]);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }

    /// It is taken back by --into, or by a script.
    #[track_caller]
    fn take_back(&self, gtid: &str, by_script: bool) {
        if by_script {
            let script = self.run("undo", &["--gtid", gtid, "--schema", &url(&self.source)]);
            assert!(script.status.success(), "{gtid}: {}", text(&script.stderr));
            let path = self.source.dir().join("undo.sql");
            std::fs::write(&path, &script.stdout).unwrap();
            self.source.sql_file(&path, &["--binary-mode"]);
        } else {
            let (code, said) = self.into(gtid);
            assert_eq!(code, Some(0), "{gtid}: {said}");
        }
    }

    /// What these statements do to the table is taken back by --into, and by a script.
    #[track_caller]
    fn undone(&self, table: &str, query: &str, statements: &str) {
        for by_script in [false, true] {
            let before = self.rows(query);
            self.source.sql(statements);
            assert_ne!(self.rows(query), before, "{statements}");
            let gtid = self.last(table);
            self.take_back(&gtid, by_script);
            assert_eq!(self.rows(query), before, "{statements}");
        }
    }

    /// What these statements do is refused, and stays.
    #[track_caller]
    fn refused(&self, table: &str, statements: &str, words: &str) {
        self.source.sql(statements);
        let after = self.rows(&format!("CHECKSUM TABLE {table}"));
        let (code, said) = self.into(&self.last(table));
        assert!(code == Some(1) && said.contains(words), "{table}: {said}");
        assert_eq!(self.rows(&format!("CHECKSUM TABLE {table}")), after);
    }
}

/// What both kinds of server have.
fn of_both(scene: &Scene) {
    let sql = |text: &str| scene.source.sql(text);
    sql(
        "CREATE TABLE shop.n (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO shop.n VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    );
    scene.undone(
        "shop.n",
        "SELECT * FROM shop.n ORDER BY id",
        "BEGIN; UPDATE shop.n SET v = 'x' WHERE id = 1; /* nested */ savepoint `S ``1`; DELETE FROM shop.n WHERE id = 2; \
         release savepoint `S ``1`; SAVEPOINT b; DELETE FROM shop.n WHERE id = 3; rollback work to savepoint B; COMMIT",
    );
    // A part of what is asked for is not there: said by name, and the rest taken back where that is wanted.
    sql("DELETE FROM shop.n WHERE id = 1");
    let gtid = scene.last("shop.n");
    let (origin, number) = gtid.rsplit_once([':', '-']).unwrap();
    let number: u64 = number.parse().unwrap();
    let absent = match gtid.contains(':') {
        true => format!("{origin}:{}", number + 1000),
        false => format!("{origin}-{}", number + 1000),
    };
    let both = format!("{gtid},{absent}");
    let (code, said) = scene.into(&both);
    assert!(code == Some(1) && said.contains(&format!("does not have {absent}")), "{said}");
    let (code, said) = scene.into(&absent);
    assert!(code == Some(1) && said.contains(&format!("does not have {absent}")), "{said}");
    let found = scene.run("undo", &["--gtid", &both, "--missing-ok", "--into", &url(&scene.source), "--yes"]);
    assert!(found.status.success(), "{}", text(&found.stderr));
    assert_eq!(scene.rows("SELECT v FROM shop.n WHERE id = 1"), "a\n");

    sql("SET sql_mode = ''; CREATE TABLE shop.e (id INT PRIMARY KEY, e ENUM('a', ''), f ENUM('x'), v INT); \
         INSERT INTO shop.e VALUES (1, 'nothing', 'z', 1), (2, '', 'x', 2)");
    let all = "SELECT id, e + 0, f + 0, v FROM shop.e ORDER BY id";
    scene.undone("shop.e", all, "DELETE FROM shop.e");
    scene.undone("shop.e", all, "UPDATE shop.e SET e = 'a', f = 'x' WHERE id = 1");
    sql("CREATE TABLE shop.d (id INT PRIMARY KEY, f FLOAT(7,2), g FLOAT(20,5), h DOUBLE(10,3)); \
         INSERT INTO shop.d VALUES (1, 1.1, 1234567.12345, 0.1), (2, -99999.99, 0.00001, -1234567.891)");
    let all = "SELECT id, f + 0e0, g + 0e0, h + 0e0 FROM shop.d ORDER BY id";
    scene.undone("shop.d", all, "UPDATE shop.d SET f = f + 1, h = 7");
    scene.undone("shop.d", all, "DELETE FROM shop.d");

    // Names that differ by case are two tables.
    sql(
        "CREATE TABLE shop.Orders (a INT PRIMARY KEY, b INT); CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT); \
         CREATE TRIGGER shop.fires BEFORE INSERT ON shop.Orders FOR EACH ROW SET @a = 1; INSERT INTO shop.orders VALUES (1, 2)",
    );
    scene.undone("shop.orders", "SELECT * FROM shop.orders", "UPDATE shop.orders SET v = 3");

    // What a foreign key does counts only where rows are deleted, or what it refers to changes.
    sql(
        "CREATE TABLE shop.parent (id INT PRIMARY KEY, v INT); CREATE TABLE shop.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) \
         REFERENCES shop.parent (id) ON DELETE CASCADE ON UPDATE CASCADE); \
         INSERT INTO shop.parent VALUES (1, 1), (2, 2), (3, 3); INSERT INTO shop.child VALUES (1, 1), (2, 2), (3, 2)",
    );
    scene.undone("shop.parent", "SELECT * FROM shop.parent", "UPDATE shop.parent SET v = v + 10");
    scene.refused(
        "shop.parent",
        "UPDATE shop.parent SET id = 7 WHERE id = 3",
        "taking back would change more",
    );
    scene.refused("shop.parent", "INSERT INTO shop.parent VALUES (9, 9)", "taking back would change more");
    an_account_must_see(scene);
    long_values(scene);
    settings_for_all_sessions(scene);
}

/// None of them keeps an undo from its work.
fn settings_for_all_sessions(scene: &Scene) {
    let sql = |text: &str| scene.source.sql(text);
    sql(r"CREATE TABLE shop.w (id INT PRIMARY KEY, v VARCHAR(20), at TIMESTAMP NULL);
          INSERT INTO shop.w VALUES (1, 'a\\b', '2026-01-01'), (2, 'c''d', NULL), (3, 'e', NULL)");
    let all = "SET SESSION sql_select_limit = DEFAULT; SELECT * FROM shop.w ORDER BY id";
    let before = scene.rows(all);
    let modes = sql("SELECT @@GLOBAL.sql_mode");
    for by_script in [false, true] {
        sql("DELETE FROM shop.w");
        let gtid = scene.last("shop.w");
        sql(
            "SET GLOBAL autocommit = 0; SET GLOBAL completion_type = 'RELEASE'; SET GLOBAL sql_select_limit = 1; SET GLOBAL sql_safe_updates \
             = 1; SET GLOBAL sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'; SET GLOBAL foreign_key_checks = 0; SET GLOBAL time_zone = '-05:00'",
        );
        if !by_script {
            sql("SET GLOBAL TRANSACTION READ ONLY; SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
        }
        scene.take_back(&gtid, by_script);
        sql(&format!(
            "SET GLOBAL autocommit = 1; SET GLOBAL completion_type = 0; SET GLOBAL sql_select_limit = DEFAULT; SET GLOBAL sql_safe_updates = 0; \
             SET GLOBAL sql_mode = '{}'; SET GLOBAL foreign_key_checks = 1; SET GLOBAL time_zone = 'SYSTEM'; SET GLOBAL TRANSACTION READ \
             WRITE; SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            modes.trim()
        ));
        assert_eq!(scene.rows(all), before, "by a script: {by_script}");
    }
}

/// `information_schema` leaves out triggers and foreign keys that an account has no right to.
fn an_account_must_see(scene: &Scene) {
    let sql = |text: &str| scene.source.sql(text);
    sql(
        "CREATE DATABASE kids; CREATE TABLE shop.seen (id INT PRIMARY KEY, v INT); CREATE TABLE kids.c (id INT PRIMARY KEY, p INT, \
         FOREIGN KEY (p) REFERENCES shop.seen (id) ON UPDATE CASCADE); INSERT INTO shop.seen VALUES (1, 1), (2, 2); \
         CREATE TRIGGER shop.fires_too BEFORE UPDATE ON shop.seen FOR EACH ROW SET @a = 1; CREATE USER sees; \
         GRANT SELECT ON shop.* TO sees; UPDATE shop.seen SET id = 3 WHERE id = 2",
    );
    let gtid = scene.last("shop.seen");
    for (granted, there, absent) in [
        (
            "SELECT ON shop.*",
            &["GRANT TRIGGER ON `shop`.`seen`", "GRANT REFERENCES ON *.*"][..],
            &["has the trigger"][..],
        ),
        (
            "TRIGGER, INSERT, UPDATE, DELETE ON shop.*",
            &["has the trigger", "GRANT REFERENCES ON *.*"],
            &["GRANT TRIGGER", "foreign key c_"],
        ),
        ("REFERENCES ON *.*", &["has the trigger", "foreign key c_"], &["GRANT"]),
    ] {
        sql(&format!("GRANT {granted} TO sees"));
        let (code, said) = scene.as_account("sees", &gtid);
        assert_eq!(code, Some(1), "{granted}: {said}");
        assert!(there.iter().all(|words| said.contains(words)), "{granted}: {said}");
        assert!(!absent.iter().any(|words| said.contains(words)), "{granted}: {said}");
    }
    sql("DROP TABLE kids.c; DROP DATABASE kids; DROP TRIGGER shop.fires_too");
    let (code, said) = scene.as_account("sees", &gtid);
    assert_eq!(code, Some(0), "{said}");
    sql("DROP USER sees");
}

/// Rows that are longer than a statement may be are found, and written where the server takes the statement.
fn long_values(scene: &Scene) {
    let sql = |text: &str| scene.source.sql(text);
    sql(
        r"CREATE TABLE shop.big (id INT PRIMARY KEY, b LONGBLOB, t LONGTEXT CHARACTER SET utf8mb4, j JSON, v INT);
          INSERT INTO shop.big VALUES (1, REPEAT(X'00FF27', 250000), REPEAT('ä\n''x', 60000), JSON_OBJECT('k', REPEAT(CONCAT('ä\/',
          CHAR(34, 10, 1, 9, 12, 127 USING utf8mb4)), 40000), 'n', 5, 'd', '2024-02-29'), 1)",
    );
    let most = sql("SELECT @@GLOBAL.max_allowed_packet");
    sql("SET GLOBAL max_allowed_packet = 1048576");
    let all = "SELECT id, SHA2(b, 256), SHA2(t, 256), SHA2(CAST(j AS CHAR), 256), v FROM shop.big";
    scene.undone("shop.big", all, "UPDATE shop.big SET v = 2");
    scene.undone("shop.big", all, "UPDATE shop.big SET t = 'short'");
    let before = scene.rows(all);
    scene.refused("shop.big", "DELETE FROM shop.big", "SET GLOBAL max_allowed_packet = ");
    sql(&format!("SET GLOBAL max_allowed_packet = {most}"));
    assert_eq!(scene.into(&scene.last("shop.big")).0, Some(0));
    assert_eq!(scene.rows(all), before);
}

#[test]
fn mysql_9_7() {
    let scene = Scene::new("mysql-9.7", &[]);
    of_both(&scene);
    let sql = |text: &str| scene.source.sql(text);
    // From 9.6 on the log has the rows that a foreign key changes.
    let all = "SELECT 'p', id, v FROM shop.parent UNION ALL SELECT 'c', id, p FROM shop.child ORDER BY 1, 2";
    scene.undone("shop.parent", all, "DELETE FROM shop.parent WHERE id < 3");
    of_generations(&scene);
    // Rows that state nothing.
    scene.refused(
        "shop.empty",
        "CREATE TABLE shop.empty (a INT DEFAULT 1); SET SESSION binlog_row_image = MINIMAL; INSERT INTO shop.empty () VALUES ()",
        "they state no column",
    );
    // A primary key that the server made, hidden in its own tables.
    sql(
        "SET GLOBAL show_gipk_in_create_table_and_information_schema = OFF; SET SESSION sql_generate_invisible_primary_key = ON; \
         CREATE TABLE shop.g (a INT, v VARCHAR(10)); INSERT INTO shop.g VALUES (1, 'x'), (2, 'y'), (2, 'y')",
    );
    let all = "SELECT my_row_id, a, v FROM shop.g ORDER BY 1";
    scene.undone("shop.g", all, "DELETE FROM shop.g WHERE a = 2");
    sql("SET GLOBAL binlog_row_metadata = MINIMAL");
    scene.undone("shop.g", all, "UPDATE shop.g SET v = 'z'");
}

/// The log has a row of the second generation before those of the third, and none of them can come back before its parent.
fn of_generations(scene: &Scene) {
    scene.source.sql(
        "CREATE TABLE shop.f1 (id INT, k VARCHAR(9), v INT, PRIMARY KEY (k, id)); \
         CREATE TABLE shop.f2 (id INT PRIMARY KEY, k VARCHAR(9), p INT, FOREIGN KEY (k, p) REFERENCES shop.f1 (k, id) ON DELETE CASCADE); \
         CREATE TABLE shop.f3 (id INT PRIMARY KEY, k VARCHAR(9), p INT, o INT, FOREIGN KEY (k, p) REFERENCES shop.f1 (k, id) ON DELETE \
         CASCADE, FOREIGN KEY (o) REFERENCES shop.f2 (id) ON DELETE CASCADE); \
         CREATE TABLE shop.f4 (id INT PRIMARY KEY, o INT, FOREIGN KEY (o) REFERENCES shop.f3 (id) ON DELETE SET NULL); \
         CREATE TABLE shop.f5 (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES shop.f5 (id) ON DELETE CASCADE); \
         CREATE TABLE shop.f6 (k VARCHAR(9) PRIMARY KEY); \
         CREATE TABLE shop.f7 (k VARCHAR(9) PRIMARY KEY, FOREIGN KEY (k) REFERENCES shop.f6 (k) ON DELETE CASCADE); \
         CREATE TABLE shop.f8 (k VARCHAR(9) PRIMARY KEY, FOREIGN KEY (k) REFERENCES shop.f7 (k) ON DELETE CASCADE); \
         INSERT INTO shop.f1 VALUES (1, 'A', 1), (2, 'a', 2), (3, 'b', 3); \
         INSERT INTO shop.f2 VALUES (1, 'a', 1), (2, 'A', 1), (3, 'b', 3); \
         INSERT INTO shop.f3 VALUES (1, 'a', 1, 1), (2, 'A', 1, 2), (3, 'b', 3, 3), (4, 'A', 1, NULL), (5, 'a', 2, 1), (6, NULL, 1, 2); \
         INSERT INTO shop.f4 VALUES (1, 1), (2, 5), (3, 6), (4, NULL); \
         INSERT INTO shop.f5 VALUES (1, NULL), (2, 1), (3, 2), (4, 1), (5, NULL), (6, 5), (7, 7), (8, 3); \
         INSERT INTO shop.f6 VALUES ('A'), ('b'); INSERT INTO shop.f7 VALUES ('a'), ('B'); INSERT INTO shop.f8 VALUES ('A'), ('b')",
    );
    let all = "CHECKSUM TABLE shop.f1, shop.f2, shop.f3, shop.f4, shop.f5, shop.f6, shop.f7, shop.f8";
    for statements in [
        "DELETE FROM shop.f1 WHERE id = 1",
        "DELETE FROM shop.f1",
        "BEGIN; DELETE FROM shop.f3 WHERE id = 2; UPDATE shop.f1 SET v = 9; SAVEPOINT a; DELETE FROM shop.f1; DELETE FROM shop.f5; COMMIT",
    ] {
        scene.undone("shop.f1", all, statements);
    }
    for statements in
        ["DELETE FROM shop.f5 WHERE id = 1", "DELETE FROM shop.f5 WHERE id <> 7 ORDER BY id DESC"]
    {
        scene.undone("shop.f5", all, statements);
    }
    scene.undone("shop.f6", all, "DELETE FROM shop.f6");
}

#[test]
fn mysql_8_0_31() {
    let scene = Scene::new("mysql-8.0.31", &[]);
    of_both(&scene);
    scene.refused(
        "shop.parent",
        "DELETE FROM shop.parent WHERE id = 2",
        "rows that it changed may not stand in the log",
    );
}

fn of_mariadb(scene: &Scene) {
    of_both(scene);
    let sql = |text: &str| scene.source.sql(text);
    scene.refused(
        "shop.parent",
        "DELETE FROM shop.parent WHERE id = 2",
        "rows that it changed may not stand in the log",
    );
    // What was rolled back to a savepoint stays in the log where a table without transactions was changed meanwhile.
    sql(
        "CREATE TABLE shop.i (id INT PRIMARY KEY); CREATE TABLE shop.m (id INT) ENGINE = MyISAM; INSERT INTO shop.i VALUES (0)",
    );
    scene.undone(
        "shop.i",
        "SELECT * FROM shop.i ORDER BY id",
        "BEGIN; INSERT INTO shop.i VALUES (1); /* x */ savepoint A1; INSERT INTO shop.m VALUES (1); INSERT INTO shop.i VALUES (2); \
         rollback to a1; INSERT INTO shop.i VALUES (3); COMMIT",
    );
    let log = scene.run("show", &["--table", "shop.i"]);
    assert!(text(&log.stdout).contains("ROLLBACK TO `a1`"), "the log has it: {}", text(&log.stdout));

    // A column that nobody can name stands in the log.
    sql(
        "CREATE TABLE shop.h (id INT PRIMARY KEY, b BLOB UNIQUE, c TEXT, UNIQUE (c)); INSERT INTO shop.h VALUES (1, 'x', 'y'), (2, NULL, 'z')",
    );
    let all = "SELECT * FROM shop.h ORDER BY id";
    scene.undone("shop.h", all, "UPDATE shop.h SET c = 'q' WHERE id = 1");
    scene.undone("shop.h", all, "DELETE FROM shop.h");
    scene.undone("shop.h", all, "INSERT INTO shop.h VALUES (3, 'b', 'b')");
    sql(
        "CREATE TABLE shop.v (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING; INSERT INTO shop.v VALUES (1, 1)",
    );
    scene.refused("shop.v", "UPDATE shop.v SET v = 2", "system versioning");

    // Numbers of a sequence are not given back; what stands beside them is.
    sql(
        "CREATE SEQUENCE shop.s CACHE 1; CREATE TABLE shop.q (id BIGINT PRIMARY KEY DEFAULT NEXTVAL(shop.s), v INT); INSERT INTO shop.q (v) VALUES (1)",
    );
    scene.undone(
        "shop.q",
        "SELECT * FROM shop.q ORDER BY id",
        "BEGIN; INSERT INTO shop.q (v) VALUES (3), (4); UPDATE shop.q SET v = 9 WHERE v = 1; COMMIT",
    );
    sql("SELECT NEXTVAL(shop.s)");
    let (code, said) = scene.into(&scene.last("shop.s"));
    assert!(code == Some(1) && said.contains("the sequence shop.s"), "{said}");

    sql("SET GLOBAL binlog_row_metadata = NO_LOG");
    scene.undone("shop.h", all, "INSERT INTO shop.h VALUES (3, 'b', 'b')");
    old_dates(scene);
}

/// Dates and times of before 10.1: with fractions their lengths stand in no log.
fn old_dates(scene: &Scene) {
    scene.source.sql(
        "SET GLOBAL binlog_row_metadata = FULL; SET GLOBAL mysql56_temporal_format = OFF; SET SESSION time_zone = '+00:00'; \
         CREATE TABLE shop.plain (id INT PRIMARY KEY, t TIME, d DATETIME, s TIMESTAMP NULL, v INT); \
         CREATE TABLE shop.six (id INT PRIMARY KEY, d DATETIME(6), v INT); \
         CREATE TABLE shop.one (id INT PRIMARY KEY, s TIMESTAMP(1) NULL, v VARCHAR(20)); \
         INSERT INTO shop.plain VALUES (1, '-838:59:59', '2016-12-21 17:57:16', '2016-12-21 17:57:16', 7), (2, '00:00:01', 0, NULL, 8); \
         INSERT INTO shop.six VALUES (1, '2016-12-21 17:57:16', 7), (2, '2016-12-21 17:57:16.5', 8); \
         INSERT INTO shop.one VALUES (1, '2016-12-21 17:57:16.5', 'a'), (2, NULL, 'b')",
    );
    let all = "SELECT * FROM shop.plain ORDER BY id";
    scene.undone("shop.plain", all, "UPDATE shop.plain SET v = 99 WHERE id = 1");
    scene.undone("shop.plain", all, "DELETE FROM shop.plain");
    let shown = |table: &str| {
        let gtid = scene.last(table);
        (text(&scene.run("show", &["--gtid", &gtid]).stdout), scene.run("undo", &["--gtid", &gtid]))
    };
    scene.source.sql("DELETE FROM shop.plain WHERE id = 1");
    let (text_of, _) = shown("shop.plain");
    assert!(
        text_of.contains("t='-838:59:59', d='2016-12-21 17:57:16', s='2016-12-21 17:57:16' UTC"),
        "{text_of}"
    );
    for (table, uncounted) in [("shop.six", false), ("shop.one", true)] {
        scene.source.sql(&format!("DELETE FROM {table} WHERE id = 1"));
        let (shown, script) = shown(table);
        assert!(shown.contains("old form") && !shown.contains("d='2"), "{shown}");
        assert!(
            script.status.code() == Some(1) && text(&script.stderr).contains("old form"),
            "{}",
            text(&script.stderr)
        );
        let counts = scene.found(table).last().unwrap()["tables"][0].clone();
        assert_eq!(counts["uncounted"], uncounted, "{counts}");
    }
}

#[test]
fn mariadb_11_8() {
    let scene = Scene::new("mariadb-11.8", &[]);
    of_mariadb(&scene);
    // After images state what changed only.
    scene.source.sql("SET GLOBAL binlog_row_image = FULL_NODUP; CREATE TABLE shop.dup (id INT PRIMARY KEY, a VARCHAR(20), b TEXT)");
    scene.source.sql("INSERT INTO shop.dup VALUES (1, 'a', 't'), (2, NULL, NULL)");
    let all = "SELECT * FROM shop.dup ORDER BY id";
    scene.undone("shop.dup", all, "UPDATE shop.dup SET b = 'y'");
    scene.undone("shop.dup", all, "UPDATE shop.dup SET id = 5, a = NULL WHERE id = 1");
}

#[test]
fn mariadb_10_11() {
    of_mariadb(&Scene::new("mariadb-10.11", &[]));
}
