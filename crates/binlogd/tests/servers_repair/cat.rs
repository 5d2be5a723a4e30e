//! `binlogd cat` on copies of real servers: stock mysqlbinlog reads what is written, and a server that is given it has the same rows.

mod failover;
mod xa;

use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::readers::checksums;
use crate::common::verbs::{binlogd, binlogd_on_a_terminal, text};
use codec::ServerKind;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn options(name: &str) -> &'static [&'static str] {
    match name.starts_with("mysql") {
        true => &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        false => &["--binlog-format=ROW"],
    }
}

struct Scene {
    source: Server,
    daemon: Daemon,
    /// GTID of the first transaction of the test.
    first: String,
    /// Check sums before the table was dropped.
    before: String,
}

impl Scene {
    /// Two files; one table is compressed on MySQL, and one transaction changes two tables.
    fn new(name: &str) -> Scene {
        let source = Server::start(name, options(name));
        let compress = match source.kind() {
            ServerKind::MySql => "SET SESSION binlog_transaction_compression = ON;",
            ServerKind::MariaDb => "",
        };
        let daemon = Daemon::start(&source, &[]);
        source.sql("CREATE DATABASE shop");
        source.sql("CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT); CREATE TABLE shop.parts (id INT PRIMARY KEY, v TEXT)");
        source.sql(&"INSERT INTO shop.orders (v) VALUES (REPEAT('o', 300)); ".repeat(30));
        source.sql(&format!("{compress} INSERT INTO shop.parts VALUES (1, REPEAT('p', 5000)), (2, 'b'); UPDATE shop.parts SET v = 'c' WHERE id = 2"));
        source.sql("FLUSH BINARY LOGS");
        source.sql(
            "BEGIN; INSERT INTO shop.parts VALUES (3, 'both'); DELETE FROM shop.orders WHERE id <= 5; COMMIT",
        );
        source.sql("INSERT INTO shop.orders (v) VALUES ('last')");
        let before = checksums(&source, "shop");
        source.sql("DROP TABLE shop.orders");
        source.sql("INSERT INTO shop.parts VALUES (4, 'behind')");
        daemon.wait_caught_up(&source);
        let mut scene = Scene { source, daemon, first: String::new(), before };
        scene.first = scene.gtid_of("create database shop");
        scene
    }

    fn data_dir(&self) -> String {
        self.daemon.data_dir().to_str().expect("a path in UTF-8").to_owned()
    }

    /// What `binlogd find` finds.
    fn found(&self, arguments: &[&str]) -> Vec<Value> {
        let found = binlogd(&[&["find", &self.data_dir(), "--json"], arguments].concat());
        let answer: Value = serde_json::from_slice(&found.stdout).expect("JSON");
        answer["sources"][0]["transactions"].as_array().expect("a list").clone()
    }

    fn gtid_of(&self, statement: &str) -> String {
        let found = self.found(&["--text", statement]);
        found[0]["gtid"].as_str().expect("it is found").to_owned()
    }

    fn cat(&self, arguments: &[&str]) -> Output {
        binlogd(&[&["cat", &self.data_dir()], arguments].concat())
    }

    /// Writes a part into a file and gives it with what was said.
    #[track_caller]
    fn written(&self, name: &str, arguments: &[&str]) -> (PathBuf, String) {
        let path = self.source.dir().join(name);
        let output = self.cat(&[arguments, &["--output", path.to_str().unwrap()]].concat());
        let said = text(&output.stderr);
        assert!(output.status.success() && output.stdout.is_empty(), "{arguments:?}: {said}");
        (path, said)
    }

    /// What stock mysqlbinlog prints of it, with all checksums verified.
    #[track_caller]
    fn printed(&self, path: &Path) -> String {
        let output = self.source.mysqlbinlog(&["--verify-binlog-checksum", "-vv", path.to_str().unwrap()]);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(!said.to_lowercase().contains("error"), "{said}");
        text(&output.stdout)
    }

    /// Gives it to an empty server of the same kind.
    #[track_caller]
    fn applied(&self, path: &Path) -> Server {
        let target = Server::start(self.source.name(), options(self.source.name()));
        self.apply(path, &target);
        target
    }

    #[track_caller]
    fn apply(&self, path: &Path, target: &Server) {
        let output = self.source.mysqlbinlog(&[path.to_str().unwrap()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let script = target.dir().join("script.sql");
        std::fs::write(&script, &output.stdout).expect("the script is written");
        target.sql_file(&script, &["--binary-mode"]);
    }
}

fn stock_tools_read_it(name: &str) {
    let scene = Scene::new(name);
    let from = ["--from", scene.first.as_str()];

    // Over two files, up to just before the mistake, into an empty server.
    let until = ["--until", "before DROP TABLE shop.orders"];
    let (path, said) = scene.written("cut", &[&from[..], &until].concat());
    assert!(said.contains("written: 37 transactions"), "{said}");
    let printed = scene.printed(&path);
    assert!(!printed.contains("DROP TABLE") && printed.contains("'last'"), "{printed}");
    assert_eq!(printed.matches("Start: binlog v 4").count(), 1, "{printed}");
    let target = scene.applied(&path);
    assert_eq!(checksums(&target, "shop"), scene.before);

    // All of it, through standard output, is what a file has.
    let (path, _) = scene.written("all", &from);
    let output = scene.cat(&from);
    assert_eq!(output.stdout, std::fs::read(&path).unwrap());
    assert_eq!(checksums(&scene.applied(&path), "shop"), checksums(&scene.source, "shop"));

    // By table: whole transactions, and it is said which of them touch others.
    let (path, said) = scene.written("parts", &["--table", "shop.parts"]);
    assert!(said.contains("note: 1 of those that were written change other tables too"), "{said}");
    let printed = scene.printed(&path);
    assert!(printed.contains("### INSERT INTO `shop`.`parts`"), "{printed}");
    assert_eq!(printed.matches("### INSERT INTO `shop`.`orders`").count(), 0, "{printed}");
    assert_eq!(printed.matches("### DELETE FROM `shop`.`orders`").count(), 5, "whole: {printed}");

    // By GTID.
    let drop = scene.gtid_of("drop table");
    let (path, said) = scene.written("one", &["--gtid", &drop]);
    assert!(
        said.contains("written: 1 transaction,") && scene.printed(&path).contains("DROP TABLE"),
        "{said}"
    );
    let (path, _) = scene.written("without", &["--exclude-gtid", &drop]);
    assert!(!scene.printed(&path).contains("DROP TABLE"));

    refused(&scene, &drop);
    standard_output(&scene, &from);

    // What comes behind a change of the checksum is a log of its own.
    scene.source.sql("SET GLOBAL binlog_checksum = NONE");
    scene.source.sql("INSERT INTO shop.parts VALUES (5, 'without a checksum')");
    scene.daemon.wait_caught_up(&scene.source);
    let output = scene.cat(&from);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("binlog_checksum from Crc32 to None"), "{said}");
    let (_, place) = said.rsplit_once("--from ").expect("it says where to go on");
    let (path, _) = scene.written("before", &[&from[..], &["--until", place.trim()]].concat());
    let target = scene.applied(&path);
    let (path, _) = scene.written("behind", &["--from", place.trim()]);
    assert!(scene.printed(&path).contains("'without a checksum'"));
    scene.apply(&path, &target);
    assert_eq!(checksums(&target, "shop"), checksums(&scene.source, "shop"));
}

/// A pipe into mysqlbinlog, and never a terminal.
fn standard_output(scene: &Scene, from: &[&str]) {
    let mut cat = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args([&["cat", &scene.data_dir()], from].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("binlogd runs");
    let log = cat.stdout.take().expect("a pipe");
    let read = Command::new(scene.source.env("MYSQLBINLOG"))
        .args(["--verify-binlog-checksum", "-v", "-"])
        .stdin(log)
        .output()
        .expect("mysqlbinlog runs");
    assert!(cat.wait().expect("binlogd ends").success() && read.status.success(), "{}", text(&read.stderr));
    let printed = text(&read.stdout);
    assert!(printed.contains("'last'") && printed.contains("'behind'"), "{printed}");

    let dir = scene.data_dir();
    let Some(seen) = binlogd_on_a_terminal(&["cat", &dir], &[]) else { return };
    let said = text(&seen.stdout);
    assert_eq!(seen.status.code(), Some(2), "{said}");
    assert!(said.contains("a binary log is nothing for a terminal") && !said.contains("binlog v"), "{said}");
    let path = scene.source.dir().join("from-a-terminal");
    let seen = binlogd_on_a_terminal(&["cat", &dir, "--output", path.to_str().unwrap()], &[]).unwrap();
    assert!(seen.status.success() && path.exists(), "{}", text(&seen.stdout));
}

fn refused(scene: &Scene, dropped: &str) {
    // MariaDB's sequence numbers say that everything behind is behind that point too.
    let ends_first = match scene.source.kind() {
        ServerKind::MySql => "comes before --from",
        ServerKind::MariaDb => "has no transaction between",
    };
    let after = format!("after {dropped}");
    for (arguments, code, words) in [
        (&["--until", "before DROP TABLE shop.nothing"][..], 1, "does not come to --until"),
        (&["--from", &after, "--until", dropped], 1, ends_first),
        (
            &["--table", "shop.nothing", "--from", dropped],
            1,
            "nothing is written: of the transactions between --from and --until (2) none",
        ),
        (&["--from", "mysql-bin.999999:4"], 1, "has no file mysql-bin.999999"),
        (&["--from", "end"], 2, "nothing comes behind the end"),
        (&["--from", "yesterday"], 2, "--from: \"yesterday\" is no point"),
        (&["--timeline", "99"], 2, "has no timeline"),
    ] {
        let output = scene.cat(arguments);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let there = scene.source.dir().join("there");
    File::create(&there).unwrap();
    let output = scene.cat(&["--output", there.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(std::fs::metadata(&there).unwrap().len(), 0);
    // A reader that has enough.
    let mut child = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["cat", &scene.data_dir()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("binlogd runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("binlogd ends");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn mysql_reads_it() {
    stock_tools_read_it("mysql-9.7");
}

#[test]
fn mariadb_reads_it() {
    stock_tools_read_it("mariadb-11.8");
}
