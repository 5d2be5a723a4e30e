//! `binlogd restore` on real servers: from a backup to just before the mistake, and what is refused.

mod backups;
mod by_position;
mod in_use;
mod named;
mod rights;
mod settings;
mod skip;
mod statements;

use crate::called::restored;
use crate::common::daemon::{Daemon, url};
use crate::common::pair::{promote, replicate, wait_replicated};
use crate::common::readers::{checksums, replica_status};
use crate::common::{Server, connect_options, wait_within};
use codec::ServerKind;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use wire::{Connection, TlsMode};

const PATIENCE: Duration = Duration::from_secs(60);

/// A source with a copy, a server that has a backup of it, and what was done since.
struct Scene {
    source: Server,
    daemon: Daemon,
    target: Server,
    /// Check sums of the tables just before the mistake.
    before: String,
    /// Where the backup was made.
    backup_at: String,
}

/// A server that is restored by GTIDs.
fn with_gtids(name: &str) -> &'static [&'static str] {
    match name.starts_with("mysql") {
        true => &["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        false => &["--server-id=1"],
    }
}

fn copy_folder(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(done.success());
}

impl Scene {
    /// Load, a backup of the stopped server's folder in the middle, more load, and a table that goes.
    fn new(name: &str) -> Scene {
        Scene::with(name, with_gtids(name))
    }

    fn with(name: &str, options: &[&str]) -> Scene {
        let mut source = Server::start(name, options);
        source.sql(
            "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT, at TIMESTAMP(6) DEFAULT \
             CURRENT_TIMESTAMP(6)); CREATE TABLE shop.parts (id INT PRIMARY KEY, n INT)",
        );
        source.sql(&"INSERT INTO shop.orders (v) VALUES ('early'); ".repeat(20));
        let daemon = Daemon::start(&source, &[]);
        daemon.wait_caught_up(&source);
        let mut target = Server::start(name, options);
        let logs = source.sql("SHOW BINARY LOGS");
        let mut last = logs.lines().last().expect("a binary log").split('\t');
        let backup_at = format!("{}:{}", last.next().unwrap(), last.next().unwrap());
        source.stop();
        target.stop();
        let place = target.datadir().to_owned();
        std::fs::remove_dir_all(&place).expect("the empty server's folder goes");
        copy_folder(source.datadir(), &place);
        source.restart(options);
        // As after a restored physical backup: the source's own UUID, and its server_id from its configuration.
        target.restart(options);
        source.sql(&"INSERT INTO shop.orders (v) VALUES (REPEAT('late', 50)); ".repeat(200));
        source.sql("FLUSH BINARY LOGS; INSERT INTO shop.parts VALUES (1, 1), (2, 2), (3, 3); UPDATE shop.parts SET n = n + 1");
        source
            .sql("BEGIN; DELETE FROM shop.orders WHERE id < 5; INSERT INTO shop.parts VALUES (4, 4); COMMIT");
        let before = checksums(&source, "shop");
        source.sql("DROP TABLE shop.orders; INSERT INTO shop.parts VALUES (9, 9)");
        daemon.wait_caught_up(&source);
        Scene { source, daemon, target, before, backup_at }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = restore_into(&self.target, &self.daemon.data_dir());
        command.args(arguments);
        command
    }

    fn restore(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("binlogd runs")
    }

    /// What it says when it refuses.
    #[track_caller]
    fn refused(&self, arguments: &[&str]) -> String {
        let executed = executed(&self.target);
        let output = self.restore(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            output.status.code(),
            Some(1),
            "{arguments:?}: {}{said}",
            String::from_utf8_lossy(&output.stdout)
        );
        assert_eq!(self::executed(&self.target), executed, "nothing is applied");
        self.is_detached();
        said
    }

    #[track_caller]
    fn is_detached(&self) {
        is_detached(&self.target);
    }
}

/// The command without its point.
fn restore_into(target: &Server, from: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.arg("restore").arg("--into").arg(url(target)).arg("--from").arg(from).stdin(Stdio::null());
    command
}

/// No replication is left on a server, and its number is its own.
#[track_caller]
fn is_detached(server: &Server) {
    let state = replica_status(server);
    assert!(state.is_empty(), "{state:?}");
    assert_eq!(server.sql("SELECT @@global.server_id").trim(), "1");
}

fn executed(server: &Server) -> String {
    match server.kind() {
        ServerKind::MySql => server.sql("SELECT @@global.gtid_executed"),
        ServerKind::MariaDb => server.sql("SELECT @@global.gtid_current_pos"),
    }
    .trim()
    .replace("\\n", "")
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn to_just_before_the_mistake(name: &str) {
    let scene = Scene::new(name);
    let point = ["--until", "before DROP TABLE shop.orders"];
    let before = executed(&scene.target);
    let said = succeeded(&scene.restore(&[&point[..], &["--plan"]].concat()));
    assert!(said.contains("first that is left out:") && said.contains("DROP TABLE"), "{said}");
    assert!(said.contains("to apply: 203 transactions"), "{said}");
    let left_out =
        said.split("first that is left out:").nth(1).and_then(|rest| rest.trim().split(", ").next());
    let drop = format!("after {}", left_out.expect("a GTID"));
    assert_eq!(executed(&scene.target), before, "--plan changes nothing");

    let refused = scene.refused(&point);
    assert!(refused.contains("look at --plan, then give --yes"), "{refused}");

    let said = succeeded(&scene.restore(&[&point[..], &["--yes"]].concat()));
    assert!(said.contains("restored: 203 transactions were applied"), "{said}");
    assert_eq!(checksums(&scene.target, "shop"), scene.before);
    scene.is_detached();

    // To do it again does nothing; to go on takes the rest.
    let said = succeeded(&scene.restore(&[&point[..], &["--yes"]].concat()));
    assert!(said.contains("nothing is to be done"), "{said}");
    let (applied, has) = restored(&scene.daemon, &scene.target, &drop);
    assert_eq!((applied, has.as_str()), (1, executed(&scene.target).as_str()));
    scene.is_detached();
    // Over a port that others may reach, so encrypted.
    let said = succeeded(&scene.restore(&["--until", "end", "--yes", "--listen", "0.0.0.0:0"]));
    assert!(said.contains("restored: 1 transaction was applied"), "{said}");
    assert!(scene.daemon.data_dir().join("server-cert.pem").exists(), "a certificate was made");
    assert_eq!(checksums(&scene.target, "shop"), checksums(&scene.source, "shop"));
    assert_eq!(executed(&scene.target), executed(&scene.source));
    scene.is_detached();

    // What it has cannot be taken back.
    let refused = scene.refused(&[&point[..], &["--yes"]].concat());
    assert!(refused.contains("is past the point already"), "{refused}");
}

/// The same point in all its forms.
fn each_form_of_the_point(scene: &Scene) {
    let plan = |until: &str| {
        let said = succeeded(&scene.restore(&["--until", until, "--plan"]));
        let line = said.lines().find(|line| line.contains("first that is left out:")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{until}: {said}"))
    };
    let wanted = plan("before DROP TABLE shop.orders");
    let mut words = wanted.split("left out:").nth(1).unwrap().trim().split(", ");
    let (gtid, time) = (words.next().unwrap(), words.next().unwrap());
    let place = words.next().unwrap().split(" of ").next().unwrap();
    let (head, number) = gtid.rsplit_once([':', '-']).unwrap();
    let number: u64 = number.parse().unwrap();
    let before = format!("{head}{}{}", &gtid[head.len()..=head.len()], number - 1);
    for until in [gtid, &format!("before {gtid}"), &format!("after {before}"), place] {
        assert_eq!(plan(until), wanted, "{until}");
    }
    if scene.source.kind() == ServerKind::MySql {
        // Microseconds tell it apart from the one before.
        assert_eq!(plan(time), wanted, "{time}");
    }
}

fn refusals(name: &str) {
    let mut scene = Scene::new(name);
    each_form_of_the_point(&scene);
    let uuid = match scene.source.kind() {
        ServerKind::MySql => scene.source.sql("SELECT @@server_uuid").trim().to_owned(),
        ServerKind::MariaDb => String::new(),
    };
    let kind = scene.source.kind();
    let gtid = |number: u64| match kind {
        ServerKind::MySql => format!("{uuid}:{number}"),
        ServerKind::MariaDb => format!("0-1-{number}"),
    };
    for until in ["2099-01-01T00:00:00Z".to_owned(), gtid(99_999), "before TRUNCATE shop.orders".to_owned()] {
        let said = scene.refused(&["--until", &until, "--yes"]);
        assert!(
            said.contains("the copy does not come to the point") && said.contains("--until end"),
            "{said}"
        );
    }
    let said = scene.refused(&["--until", &gtid(3), "--yes"]);
    assert!(said.contains("is past the point already"), "{said}");
    let output = scene.restore(&["--until", "end", "--timeline", "7", "--yes"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "the command line is wrong");
    assert!(said.contains("has no timeline \"7\"; there are: 0001-"), "{said}");

    // Whoever uses it is named.
    let options = connect_options(&scene.target, "root", "", TlsMode::Disabled);
    let client = Connection::connect(&options).unwrap();
    let said = scene.refused(&["--until", "end", "--yes"]);
    assert!(said.contains("the target is in use") && said.contains("of root from"), "{said}");
    client.close();
    let quiet = || {
        let sessions = scene.target.sql("SHOW PROCESSLIST");
        sessions.lines().filter(|line| line.contains("\troot\t")).count() == 1
    };
    wait_within(PATIENCE, "the client has gone", quiet);

    // A second mistake of the same kind: which is meant?
    scene.source.sql("CREATE TABLE shop.orders (id INT); DROP TABLE shop.orders");
    scene.daemon.wait_caught_up(&scene.source);
    let said = scene.refused(&["--until", "before DROP TABLE shop.orders", "--yes"]);
    assert!(
        said.contains("may be 2 transactions") && said.matches("DROP TABLE `shop`").count() >= 2,
        "{said}"
    );

    // The transaction that cannot be applied is named, and can be passed over.
    scene.target.sql(
        "SET sql_log_bin = 0; INSERT INTO shop.orders (id, v) VALUES (100, 'in the way'); SET sql_log_bin = 1",
    );
    let output = scene.restore(&["--until", &gtid(110), "--yes", "--compare", "none"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot apply") && said.contains("Duplicate entry '100'"), "{said}");
    scene.is_detached();
    assert!(said.contains(&format!("--skip {}", gtid(103))), "{said}");
    let refused = scene.refused(&["--until", &gtid(110), "--yes", "--skip", &gtid(110)]);
    assert!(refused.contains("it is not one of those that are to be applied"), "{refused}");
    let skip = gtid(103);
    let said = succeeded(&scene.restore(&["--until", &gtid(110), "--yes", "--skip", &skip]));
    assert!(said.contains("restored: "), "{said}");
    scene.is_detached();
    killed(&mut scene, &gtid(150));

    // What was written to it got a GTID of the source, whose UUID it has.
    scene.target.sql("CREATE DATABASE ours");
    let said = scene.refused(&["--until", &gtid(200), "--yes"]);
    assert!(said.contains("has already other transactions than the copy"), "{said}");
}

/// Killed in the middle of the work: the next one puts back what was changed, and goes on.
fn killed(scene: &mut Scene, until: &str) {
    let options = connect_options(&scene.target, "root", "", TlsMode::Disabled);
    let mut client = Connection::connect(&options).unwrap();
    client.query("LOCK TABLES shop.orders WRITE").unwrap();
    // What was passed over differs, and is meant to.
    let arguments = ["--until", until, "--yes", "--allow-clients", "--compare", "none"];
    let mut restore = scene.command(&arguments).spawn().expect("binlogd runs");
    let is_attached = || scene.target.sql("SHOW PROCESSLIST").contains("system user");
    wait_within(PATIENCE, "the target applies", is_attached);
    wait_within(PATIENCE, "it was lent a server_id", || {
        scene.target.sql("SELECT @@global.server_id").trim() != "1"
    });
    restore.kill().unwrap();
    restore.wait().unwrap();
    client.query("UNLOCK TABLES").unwrap();
    client.close();
    let output = scene.restore(&arguments);
    let said = succeeded(&output);
    let noted = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(noted.contains("what an earlier restore had left"), "{noted}");
    assert!(said.contains("restored: ") || said.contains("nothing is to be done"), "{said}");
    scene.is_detached();
}

/// A backup of the source that died, the log of two servers, and nothing left of it but the archive.
#[test]
fn over_a_failover_from_an_archive_on_an_empty_disk() {
    let name = "mysql-9.7";
    let options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    let mut old = Server::start(name, &options);
    old.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)");
    let mut target = Server::start(name, &options);
    old.stop();
    target.stop();
    std::fs::remove_dir_all(target.datadir()).expect("the empty server's folder goes");
    copy_folder(old.datadir(), target.datadir());
    old.restart(&options);
    target.restart(&options);
    let new = Server::start(name, &options);
    replicate(&new, &old);

    let work = tempfile::tempdir().unwrap();
    let archive = format!("file://{}", work.path().join("archive").display());
    let hosts = format!("{},127.0.0.1:{}", url(&old), new.port());
    let flags = ["--archive-url", &archive, "--archive-interval", "1s", "--backoff-max", "1s"];
    let mut daemon = Daemon::start_on(&hosts, &flags);
    old.sql(&"INSERT INTO shop.orders (v) VALUES ('old'); ".repeat(50));
    old.sql("FLUSH BINARY LOGS");
    old.sql(&"INSERT INTO shop.orders (v) VALUES ('older'); ".repeat(50));
    daemon.wait_caught_up(&old);
    wait_replicated(&new, &old);
    old.kill();
    promote(&new);
    new.sql(&"INSERT INTO shop.orders (v) VALUES ('new'); ".repeat(30));
    let before = checksums(&new, "shop");
    new.sql("DROP TABLE shop.orders; CREATE TABLE shop.later (id INT)");
    daemon.wait_until(|source| source["host"] == format!("127.0.0.1:{}", new.port()), PATIENCE);
    daemon.wait_caught_up(&new);
    let is_archived = |source: &serde_json::Value| {
        let archived = &source["archive"]["archived"];
        !archived.is_null() && *archived == source["positions"]["durable"]
    };
    daemon.wait_until(is_archived, PATIENCE);
    assert_eq!(daemon.timeline_dirs().len(), 2, "{}", daemon.log());
    daemon.terminate();
    std::fs::remove_dir_all(daemon.data_dir()).unwrap();

    let place = work.path().join("work");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        command.arg("restore").arg("--into").arg(url(&target)).args(["--from", &archive]).args(arguments);
        command.stdin(Stdio::null()).output().expect("binlogd runs")
    };
    let point = ["--until", "before drop table shop.orders", "--yes"];
    let output = run(&point);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("with --work too"), "{said}");
    let said = succeeded(&run(&[&point[..], &["--work", place.to_str().unwrap()]].concat()));
    assert!(said.contains("restored: 130 transactions were applied"), "{said}");
    assert_eq!(checksums(&target, "shop"), before);
    assert!(replica_status(&target).is_empty());
}

#[test]
fn mysql_refusals_failures_and_a_kill() {
    refusals("mysql-9.7");
}

#[test]
fn mariadb_refusals_failures_and_a_kill() {
    refusals("mariadb-11.8");
}

#[test]
fn mysql_9_7_to_just_before_the_mistake() {
    to_just_before_the_mistake("mysql-9.7");
}

#[test]
fn mysql_8_0_31_to_just_before_the_mistake() {
    to_just_before_the_mistake("mysql-8.0.31");
}

#[test]
fn mariadb_11_8_to_just_before_the_mistake() {
    to_just_before_the_mistake("mariadb-11.8");
}

#[test]
fn mariadb_10_11_to_just_before_the_mistake() {
    to_just_before_the_mistake("mariadb-10.11");
}
