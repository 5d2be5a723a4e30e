//! `binlogd restore` after what backup tools make, each used as docs/recovery/restore-backups.md says, while the source is written to.

use super::{PATIENCE, executed, is_detached, restore_into, succeeded};
use crate::common::daemon::Daemon;
use crate::common::readers::checksums;
use crate::common::{Server, connect_options, script, wait_within};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wire::{Connection, TlsMode};

const POINT: [&str; 3] = ["--until", "before DROP TABLE shop.orders", "--yes"];

fn options(name: &str) -> &'static [&'static str] {
    match name.starts_with("mysql") {
        true => &["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        false => &["--server-id=1"],
    }
}

/// A source with a copy, which was loaded before, during and after its backups; then a table went.
struct Shop {
    source: Server,
    daemon: Daemon,
    /// Check sums of the tables just before that.
    before: String,
}

impl Shop {
    /// Backups are what `back_up` makes of the source.
    fn new<T>(name: &str, back_up: impl FnOnce(&Server) -> T) -> (Shop, T) {
        let source = Server::start(name, options(name));
        source.sql(
            "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT); CREATE TABLE shop.parts \
             (id INT PRIMARY KEY, n INT); INSERT INTO shop.parts VALUES (1, 0), (2, 0), (3, 0)",
        );
        source.sql(&"INSERT INTO shop.orders (v) VALUES ('early'); ".repeat(50));
        let daemon = Daemon::start(&source, &[]);
        let backups = under_load(&source, || back_up(&source));
        source.sql("FLUSH BINARY LOGS");
        source.sql(&"INSERT INTO shop.orders (v) VALUES (REPEAT('late', 50)); ".repeat(50));
        let before = checksums(&source, "shop");
        source.sql("DROP TABLE shop.orders; INSERT INTO shop.parts VALUES (9, 9)");
        daemon.wait_caught_up(&source);
        (Shop { source, daemon, before }, backups)
    }

    fn restore(&self, target: &Server, arguments: &[&str]) -> Output {
        restore_into(target, &self.daemon.data_dir()).args(arguments).output().expect("binlogd runs")
    }

    /// Every row is there again; to do it again finds nothing to do; and all that is left can follow.
    #[track_caller]
    fn restored(&self, target: &Server, arguments: &[&str]) {
        let said = succeeded(&self.restore(target, &[&POINT[..], arguments].concat()));
        assert!(said.contains("restored: "), "{said}");
        assert_eq!(checksums(target, "shop"), self.before);
        is_detached(target);
        let said = succeeded(&self.restore(target, &[&POINT[..], arguments].concat()));
        assert!(said.contains("nothing is to be done"), "{said}");
        succeeded(&self.restore(target, &["--until", "end", "--yes"]));
        assert_eq!(checksums(target, "shop"), checksums(&self.source, "shop"));
        assert_eq!(executed(target), executed(&self.source));
    }

    #[track_caller]
    fn refused(&self, target: &Server, arguments: &[&str]) -> String {
        let was = executed(target);
        let output = self.restore(target, &[&POINT[..], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {printed}{said}");
        assert_eq!(executed(target), was, "nothing is changed");
        is_detached(target);
        said
    }
}

/// Says that it is over, when what it stands beside has failed, too: else the load would go on for ever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does something while a session inserts, changes and deletes rows, some of them before and some behind it.
fn under_load<T>(source: &Server, work: impl FnOnce() -> T) -> T {
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut client =
        Connection::connect(&connect_options(source, "root", "", TlsMode::Disabled)).expect("a session");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for sql in [
                    "BEGIN",
                    "INSERT INTO shop.orders (v) VALUES ('between')",
                    "UPDATE shop.parts SET n = n + 1",
                    "DELETE FROM shop.orders ORDER BY id LIMIT 1",
                    "INSERT INTO shop.orders (v) VALUES ('more')",
                    "COMMIT",
                ] {
                    client.query(sql).expect("the load goes on");
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _over = Over(&is_over);
        let wait_for_more = || {
            let wanted = done.load(Ordering::Relaxed) + 20;
            wait_within(PATIENCE, "the load goes on", || done.load(Ordering::Relaxed) >= wanted);
        };
        wait_for_more();
        let worked = work();
        wait_for_more();
        worked
    })
}

/// Runs a program of a backup.
#[track_caller]
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn dump(source: &Server, name: &str, flags: &[&str]) -> PathBuf {
    let all = ["--single-transaction", "--all-databases", "--routines", "--events"];
    let path = source.dir().join(name);
    std::fs::write(&path, run(source.env("MYSQLDUMP"), &[&all[..], flags].concat())).unwrap();
    path
}

/// The line of a dump that has this in it.
fn line_of(dump: &Path, part: &str) -> String {
    let text = std::fs::read(dump).unwrap();
    let text = String::from_utf8_lossy(&text);
    text.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("no {part}")).to_owned()
}

/// What stands between quotes or behind an equals sign after `name`.
fn value(line: &str, name: &str) -> String {
    let rest = line.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("{line}")).1;
    rest.trim_start_matches('\'').split(['\'', ',', ';']).next().unwrap().to_owned()
}

/// `FILE:POSITION` of a dump, of its comment CHANGE … TO.
fn position_of(dump: &Path) -> String {
    let line = line_of(dump, "_LOG_POS=");
    format!("{}:{}", value(&line, "_LOG_FILE"), value(&line, "_LOG_POS"))
}

fn loaded(dump: &Path, name: &str) -> Server {
    let target = Server::start(name, options(name));
    target.sql_file(dump, &[]);
    target
}

/// The folder of a stopped server is replaced by what `bring` brings there.
fn replaced(name: &str, bring: impl FnOnce(&Path)) -> Server {
    let mut target = Server::start(name, options(name));
    target.stop();
    std::fs::remove_dir_all(target.datadir()).expect("the empty server's folder goes");
    bring(target.datadir());
    target.restart(options(name));
    target
}

/// MySQL 9.7: `mysqldump` with its GTIDs and without, and a clone.
#[test]
fn mysql_9_7_after_mysqldump_and_clone() {
    let name = "mysql-9.7";
    let (shop, (with, without, cloned)) = Shop::new(name, |source| {
        let with = dump(source, "with.sql", &["--source-data=2"]);
        let without = dump(source, "without.sql", &["--source-data=2", "--set-gtid-purged=OFF"]);
        (with, without, clone_of(source))
    });
    shop.restored(&loaded(&with, name), &[]);
    shop.restored(&cloned, &[]);
    by_hand(&shop, &without, &loaded(&without, name));
}

/// A server that wrote the load of its dump under GTIDs of its own, and the refusals on the way.
fn by_hand(shop: &Shop, dump: &Path, target: &Server) {
    let at = position_of(dump);
    let said = shop.refused(target, &[]);
    assert!(said.contains("which is in no file of the copy"), "{said}");
    let said = shop.refused(target, &["--backup-at", &at]);
    assert!(
        said.contains("cannot be told that it has") && said.contains("RESET BINARY LOGS AND GTIDS"),
        "{said}"
    );
    target.sql("RESET BINARY LOGS AND GTIDS");
    let said = shop.refused(target, &[]);
    assert!(said.contains("has tables, in shop"), "{said}");
    let (file, offset) = at.split_once(':').unwrap();
    let offset: u64 = offset.parse().unwrap();
    let said = shop.refused(target, &["--backup-at", &format!("{file}:{}", offset - 1)]);
    assert!(said.contains("no transaction ends there"), "{said}");
    let said = shop.refused(target, &["--backup-at", "mysql-bin.000099:4"]);
    assert!(said.contains("no file of that name; it goes from mysql-bin.000001 to"), "{said}");
    let said = shop.refused(target, &["--backup-at", &format!("{file}:999999999")]);
    assert!(said.contains("the file ends at"), "{said}");
    let said = shop.refused(target, &["--backup-at", "99999999-71ca-11e1-9e33-c80aa9429562:1-7"]);
    assert!(said.contains("is in no file of the copy: the backup is another source's"), "{said}");

    let said = succeeded(&shop.restore(target, &["--until", POINT[1], "--backup-at", &at, "--plan"]));
    assert!(said.contains("does not know what it has; by --backup-at it has "), "{said}");
    assert_eq!(executed(target), "", "--plan tells it nothing");
    shop.restored(target, &["--backup-at", &at]);
}

/// A server made by the CLONE plugin, over the network.
fn clone_of(source: &Server) -> Server {
    let mut target = Server::start(source.name(), options(source.name()));
    source.sql("INSTALL PLUGIN clone SONAME 'mysql_clone.so'");
    let port = source.port();
    target.sql(&format!(
        "INSTALL PLUGIN clone SONAME 'mysql_clone.so'; SET GLOBAL clone_valid_donor_list = '127.0.0.1:{port}'"
    ));
    let sql = format!("CLONE INSTANCE FROM 'root'@'127.0.0.1':{port} IDENTIFIED BY ''");
    let output = Command::new(target.env("MYSQL")).args(["-e", &sql]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // Nobody starts it again but we.
    assert!(said.contains("Restart server failed"), "{said}");
    target.stop();
    target.restart(options(source.name()));
    target
}

/// MySQL 8.0.31: `mysqldump` with its GTIDs. It is that of 9.7, whose `--source-data` asks in words that 8.0 does not know.
#[test]
fn mysql_8_0_31_after_mysqldump() {
    let name = "mysql-8.0.31";
    let (shop, with) = Shop::new(name, |source| dump(source, "with.sql", &["--set-gtid-purged=ON"]));
    shop.restored(&loaded(&with, name), &[]);
}

/// MariaDB: a dump that tells the server, one whose note is given by hand, and a copy of the folder.
fn after_mariadb_tools(name: &str) {
    let tool = script().args(["mariadb-backup", name]).output().expect("scripts/servers runs");
    assert!(tool.status.success(), "{}", String::from_utf8_lossy(&tool.stderr));
    let tool = String::from_utf8(tool.stdout).unwrap().trim().to_owned();
    let (shop, (with, noted, folder)) = Shop::new(name, |source| {
        let with = dump(source, "with.sql", &["--master-data=1", "--gtid"]);
        let noted = dump(source, "noted.sql", &["--master-data=2", "--gtid"]);
        let folder = source.dir().join("backup");
        let to = format!("--target-dir={}", folder.display());
        let port = format!("--port={}", source.port());
        run(&tool, &["--no-defaults", "--backup", &to, "--host=127.0.0.1", &port, "--user=root"]);
        run(&tool, &["--no-defaults", "--prepare", &to]);
        (with, noted, folder)
    });

    let target = loaded(&with, name);
    let said = shop.refused(&target, &[]);
    // It wrote the load under GTIDs that the source has, as it has its server_id.
    assert!(said.contains("or on MariaDB the server_id") && said.contains("RESET MASTER"), "{said}");
    target.sql("RESET MASTER; RESET SLAVE ALL");
    shop.restored(&target, &[]);

    let target = loaded(&noted, name);
    target.sql("RESET MASTER; SET GLOBAL server_id = 2; CREATE DATABASE ours; DROP DATABASE ours; SET GLOBAL server_id = 1");
    let said = shop.refused(&target, &[]);
    assert!(said.contains("which is in no file of the copy") && said.contains("RESET MASTER"), "{said}");
    let at = position_of(&noted);
    let said = shop.refused(&target, &["--backup-at", &at]);
    assert!(said.contains("cannot be told that it has") && said.contains("RESET MASTER"), "{said}");
    target.sql("RESET MASTER");
    let gtids = value(&line_of(&noted, "-- SET GLOBAL gtid_slave_pos="), "gtid_slave_pos");
    assert_eq!(
        plan(&shop, &target, &gtids),
        plan(&shop, &target, &at),
        "both notes of the dump mean the same"
    );
    shop.restored(&target, &["--backup-at", &at]);

    let target = replaced(name, |place| {
        let (from, to) =
            (format!("--target-dir={}", folder.display()), format!("--datadir={}", place.display()));
        std::fs::create_dir(place).unwrap();
        run(&tool, &["--no-defaults", "--copy-back", &from, &to]);
    });
    // As a replica MariaDB would take CREATE TABLE for CREATE OR REPLACE, and apply everything from the first transaction on.
    let said = shop.refused(&target, &[]);
    assert!(said.contains("has tables, in shop") && said.contains("--backup-at FILE:POSITION"), "{said}");
    let note = std::fs::read_to_string(folder.join(if name == "mariadb-11.8" {
        "mariadb_backup_binlog_info"
    } else {
        "xtrabackup_binlog_info"
    }));
    shop.restored(&target, &["--backup-at", &note.unwrap()]);
}

/// How many transactions a plan would apply, and what it takes the backup to have.
fn plan(shop: &Shop, target: &Server, at: &str) -> Vec<String> {
    let said = succeeded(&shop.restore(target, &["--until", POINT[1], "--backup-at", at, "--plan"]));
    let told = |line: &&str| line.starts_with("target:") || line.starts_with("to apply:");
    said.lines().filter(told).map(str::to_owned).collect()
}

#[test]
fn mariadb_11_8_after_dumps_and_mariadb_backup() {
    after_mariadb_tools("mariadb-11.8");
}

#[test]
fn mariadb_10_11_after_dumps_and_mariadb_backup() {
    after_mariadb_tools("mariadb-10.11");
}
