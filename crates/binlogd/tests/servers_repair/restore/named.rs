//! Points that are named by a statement: its verb counts, in whatever character set it stands in the log.

use super::{executed, restore_into, succeeded, with_gtids};
use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::verbs::{binlogd, text};
use codec::ServerKind;

/// A table in each of three character sets: as the client names it, the name, the bytes of the name there.
const NAMES: [(&str, &str, &[u8]); 3] = [
    ("gbk", "用户表", b"\xd3\xc3\xbb\xa7\xb1\xed"),
    ("sjis", "表の能", b"\x95\x5c\x82\xcc\x94\x5c"),
    ("latin1", "größe", b"gr\xf6\xdfe"),
];

fn found(daemon: &Daemon, flags: &[&str]) -> usize {
    let data_dir = daemon.data_dir();
    let mut arguments = vec!["find", data_dir.to_str().unwrap(), "--json", "--limit", "0"];
    arguments.extend(flags);
    let output = binlogd(&arguments);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    answer["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|source| source["transactions"].as_array().unwrap().len())
        .sum()
}

fn points(name: &str) {
    let source = Server::start(name, with_gtids(name));
    let daemon = Daemon::start(&source, &[]);
    source.sql(
        "CREATE DATABASE d; CREATE TABLE d.a (id INT PRIMARY KEY, v INT, KEY i (v)); INSERT INTO d.a VALUES (1, 1); USE d; \
         CREATE TEMPORARY TABLE d.a (id INT); DROP TEMPORARY TABLE d.a; ALTER TABLE d.a ADD w INT; DROP INDEX i ON d.a; \
         TRUNCATE d.a; DROP TABLE d.a; CREATE DATABASE e; DROP DATABASE e",
    );
    let file = source.dir().join("names.sql");
    for (charset, _, bytes) in NAMES {
        let mut sql = format!("SET NAMES {charset}; USE d;\n").into_bytes();
        for words in [
            "CREATE TABLE `\0` (id INT PRIMARY KEY) COMMENT '\0'",
            "INSERT INTO `\0` VALUES (1)",
            "DROP TABLE `\0`",
        ] {
            for (number, part) in words.split('\0').enumerate() {
                if number > 0 {
                    sql.extend_from_slice(bytes);
                }
                sql.extend_from_slice(part.as_bytes());
            }
            sql.extend_from_slice(b";\n");
        }
        std::fs::write(&file, sql).unwrap();
        source.sql_file(&file, &[&format!("--default-character-set={charset}")]);
    }
    daemon.wait_caught_up(&source);
    let target = Server::start(name, with_gtids(name));
    let plan = |until: &str| {
        let output =
            restore_into(&target, &daemon.data_dir()).args(["--plan", "--until", until]).output().unwrap();
        let said = succeeded(&output);
        said.lines().find(|line| line.contains("first that is left out:")).unwrap_or_default().to_owned()
    };
    for (until, words) in [
        ("before ALTER TABLE d.a", "ALTER TABLE d.a ADD w INT"),
        ("before CREATE TABLE d.a", "CREATE TABLE d.a (id INT PRIMARY KEY"),
        ("before DROP TABLE d.a", "DROP TABLE `a`"),
        ("before CREATE DATABASE d", "CREATE DATABASE d"),
        ("before DROP DATABASE e", "DROP DATABASE e"),
        ("before TRUNCATE d.a", "TRUNCATE d.a"),
    ] {
        let line = plan(until);
        assert!(
            line.contains(words) || line.replace('`', "").contains(&words.replace('`', "")),
            "{until}: {line}"
        );
    }
    for (charset, named, _) in NAMES {
        assert!(plan(&format!("before DROP TABLE d.{named}")).contains(named), "{charset}");
        let table = format!("d.{named}");
        assert_eq!(found(&daemon, &["--table", &table, "--kind", "drop"]), 1, "{charset}");
        let cut = source.dir().join(format!("cut-{charset}"));
        let data_dir = daemon.data_dir();
        let arguments =
            ["cat", data_dir.to_str().unwrap(), "--table", &table, "--output", cut.to_str().unwrap()];
        let output = binlogd(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let read = source.mysqlbinlog(&[&cut]);
        let read = String::from_utf8_lossy(&read.stdout).into_owned();
        assert!(read.contains("CREATE TABLE") && read.contains("DROP TABLE"), "{charset}: {read}");
        assert!(!read.contains("ADD w INT"), "{charset}: of another table");
    }
    // All of it by statements: the same bytes in the same character sets.
    succeeded(
        &restore_into(&target, &daemon.data_dir())
            .args(["--until", "end", "--yes", "--statements"])
            .output()
            .unwrap(),
    );
    assert_eq!(executed(&target), executed(&source));
    if source.kind() == ServerKind::MariaDb {
        in_two_phases(&source, &daemon, &target);
    }
}

/// MariaDB logs such an ALTER twice. It is one definition, and done once; by its own map of collations as on the source.
fn in_two_phases(source: &Server, daemon: &Daemon, target: &Server) {
    let collated = "SELECT table_name, table_collation FROM information_schema.tables WHERE table_schema = 'two' ORDER BY 1";
    source.sql(
        "SET SESSION binlog_alter_two_phase = ON; CREATE DATABASE two; CREATE TABLE two.o (id INT PRIMARY KEY, v INT); \
         INSERT INTO two.o VALUES (1, 3), (2, 3); ALTER TABLE two.o ADD w INT DEFAULT 5",
    );
    let output = std::process::Command::new(source.env("MYSQL"))
        .args(["-e", "SET SESSION binlog_alter_two_phase = ON; ALTER TABLE two.o ADD UNIQUE (v)"])
        .output()
        .unwrap();
    assert!(text(&output.stderr).contains("Duplicate entry"), "it fails, and stands in the log");
    source.sql(
        "SET character_set_collations = 'utf8mb4=utf8mb4_bin'; CREATE TABLE two.bin (v VARCHAR(9)) CHARACTER SET utf8mb4; \
         SET character_set_collations = ''; CREATE TABLE two.general (v VARCHAR(9)) CHARACTER SET utf8mb4; \
         SET check_constraint_checks = 0; SET sql_if_exists = 1; DROP TABLE two.nothing; SET sql_if_exists = 0; INSERT INTO two.o VALUES (3, 3, 3)",
    );
    daemon.wait_caught_up(source);
    assert_eq!(
        found(daemon, &["--table", "two.o", "--kind", "ddl"]),
        3,
        "CREATE DATABASE, CREATE TABLE and ALTER TABLE"
    );
    let plan = restore_into(target, &daemon.data_dir())
        .args(["--plan", "--until", "before ALTER TABLE two.o"])
        .output()
        .unwrap();
    assert!(succeeded(&plan).contains("ADD w INT DEFAULT 5"));
    let (by_channel, since) = (Server::start(source.name(), &["--server-id=1"]), ["--until", "end", "--yes"]);
    succeeded(&restore_into(target, &daemon.data_dir()).args(since).arg("--statements").output().unwrap());
    succeeded(&restore_into(&by_channel, &daemon.data_dir()).args(since).output().unwrap());
    for server in [target, &by_channel] {
        assert_eq!(
            server.sql("SHOW CREATE TABLE two.o; SELECT * FROM two.o"),
            source.sql("SHOW CREATE TABLE two.o; SELECT * FROM two.o")
        );
        assert_eq!(server.sql(collated), source.sql(collated));
        assert_eq!(executed(server), executed(source));
    }
    let shown = target.sql("SHOW BINLOG EVENTS IN 'mysql-bin.000001'");
    assert_eq!(shown.matches("START ALTER").count(), 2, "{shown}");
    assert_eq!(
        (shown.matches("COMMIT ALTER").count(), shown.matches("ROLLBACK ALTER").count()),
        (1, 1),
        "{shown}"
    );
}

#[test]
fn mysql_points_by_the_verb_in_any_character_set() {
    points("mysql-9.7");
}

#[test]
fn mariadb_points_by_the_verb_in_any_character_set() {
    points("mariadb-11.8");
}
