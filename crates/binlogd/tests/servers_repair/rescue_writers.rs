//! `binlogd rescue` beside others that write: they are held off or named, and a GTID that somebody else has used is never taken
//! for the copy's.

use crate::common::Server;
use crate::common::daemon::{Daemon, url};

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 4] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s"];
/// A lock that a rescue is to wait for is kept as long as the test takes.
const RELAXED: [&str; 3] =
    ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--innodb-lock-wait-timeout=600"];
const SCHEMA: &str = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT); \
                      INSERT INTO d.t (v) VALUES ('zero')";

/// A source that forgets what it did with its machine: it has done `before`, then `lost` of which only the copy knows. It is down.
/// The daemon too, so that the copy is as it was when the source died.
fn source_put_back(name: &str, before: &str, lost: &str, options: &[&str]) -> (Server, Daemon) {
    let options = [&RELAXED[..], options].concat();
    let mut source = Server::start(name, &options);
    source.sql(SCHEMA);
    source.sql(before);
    source.stop();
    let earlier = source.dir().join("earlier");
    copy_folder(source.datadir(), &earlier);
    source.restart(&options);
    let mut daemon = Daemon::start(&source, &FLAGS);
    let statements = source.dir().join("lost.sql");
    std::fs::write(&statements, lost).unwrap();
    source.sql_file(&statements, &[]);
    source.sql("SET GLOBAL event_scheduler = OFF");
    daemon.wait_caught_up(&source);
    daemon.terminate();
    source.kill();
    copy_folder(&earlier, source.datadir());
    (source, daemon)
}

fn copy_folder(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs").success());
}

fn command(daemon: &Daemon, target: &str, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.arg("rescue").arg(daemon.data_dir()).args(["--to", target]).args(flags);
    command.env_remove("BINLOGD_PASSWORD").stdin(Stdio::null());
    command
}

/// Exit code and everything that was said.
fn rescue(daemon: &Daemon, target: &str, flags: &[&str]) -> (Option<i32>, String) {
    said(&command(daemon, target, flags).output().expect("binlogd runs"))
}

fn said(output: &Output) -> (Option<i32>, String) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), format!("{out}{err}"))
}

/// Settings that rescue has noted, as a file in the copy.
fn noted(daemon: &Daemon) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(daemon.data_dir().join("default")).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("rescue-restore-"))
        .collect()
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A session of root that keeps a row of d.t locked until it is killed.
struct Holder<'a> {
    server: &'a Server,
    id: String,
    client: Child,
}

impl<'a> Holder<'a> {
    fn lock(server: &'a Server, row: u32) -> Holder<'a> {
        let statements = format!("BEGIN; SELECT * FROM d.t WHERE id = {row} FOR UPDATE; SELECT SLEEP(600)");
        let mut client = Command::new(server.env("MYSQL"));
        client
            .args(["--batch", "-e", &statements])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let client = client.spawn().expect("the client runs");
        let mut id = String::new();
        wait_for("the lock", || {
            let sql = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(600)'";
            id = server.sql(sql).trim().to_owned();
            !id.is_empty()
        });
        Holder { server, id, client }
    }

    fn release(mut self) {
        self.server.sql(&format!("KILL {}", self.id));
        let _ = self.client.wait();
    }
}

/// How long both servers keep an answer from INNODB_TRX after it was read last, with as much again: it is kept for 0.1 s from each
/// read, so that who asks more often is told the same for ever (`CACHE_MIN_IDLE_TIME` in both servers' trx0i_s.cc).
const INNODB_TRX_IS_KEPT: Duration = Duration::from_millis(200);

/// Waits until a statement of the rescue waits for a lock, so that it is in the midst of handing over.
fn wait_in_the_midst(server: &Server) {
    wait_for("the rescue in the midst", || {
        std::thread::sleep(INNODB_TRX_IS_KEPT);
        let sql = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'";
        server.sql(sql).trim() != "0"
    });
}

/// An event that is there, and one that is handed over: neither takes a GTID that is to come.
fn no_event_takes_a_gtid_that_is_to_come(name: &str) {
    // Nothing is logged while the gate is empty, so that the event takes no GTID before the rescue begins.
    let before = "CREATE TABLE d.gate (id INT PRIMARY KEY); CREATE TABLE d.ticks (id INT PRIMARY KEY AUTO_INCREMENT); \
                  CREATE EVENT d.tick ON SCHEDULE EVERY 1 SECOND DO INSERT INTO d.ticks SELECT NULL FROM d.gate";
    let mut lost = String::from(
        "INSERT INTO d.gate VALUES (1);\n\
         CREATE EVENT d.late ON SCHEDULE EVERY 1 SECOND DO INSERT INTO d.t (v) VALUES ('of the late event');\n",
    );
    for number in 0..400 {
        lost.push_str(&format!("INSERT INTO d.t (v) VALUES ('told {number}');\n"));
    }
    let (mut source, daemon) = source_put_back(name, before, &lost, &["--event-scheduler=ON"]);
    source.restart(&[&RELAXED[..], &["--event-scheduler=ON", "--read-only=ON"]].concat());
    assert_eq!(source.sql("SELECT COUNT(*) FROM d.gate").trim(), "0");
    let (code, text) = rescue(&daemon, &url(&source), &["--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("verified by GTID and by the content of its binary log"), "{text}");
    assert!(text.contains("event_scheduler = OFF on the target until all is handed over"), "{text}");
    assert!(text.contains("1 enabled: d.tick"), "{text}");
    assert!(text.contains("put back on the target: event_scheduler = ON"), "{text}");
    assert_eq!(source.sql("SELECT COUNT(*) FROM d.t WHERE v LIKE 'told %'").trim(), "400");
    assert_eq!(source.sql("SELECT @@global.event_scheduler, @@global.read_only").trim(), "ON\t1");
    assert_eq!(noted(&daemon), Vec::<PathBuf>::new());
    // The events run again.
    let late = || {
        source.sql("SELECT COUNT(*) FROM d.t WHERE v = 'of the late event'").trim().parse::<u32>().unwrap()
    };
    let then = late();
    wait_for("an event", || late() > then);
}

#[test]
fn no_event_takes_a_gtid_that_is_to_come_mysql() {
    no_event_takes_a_gtid_that_is_to_come("mysql-9.7");
}

#[test]
fn no_event_takes_a_gtid_that_is_to_come_mariadb() {
    no_event_takes_a_gtid_that_is_to_come("mariadb-11.8");
}

/// An event that has taken GTIDs before anybody thought of a rescue: what clients were told under these is named, to the last.
fn what_an_event_has_taken_is_named(name: &str) {
    let before = "CREATE TABLE d.ticks (id INT PRIMARY KEY AUTO_INCREMENT); \
                  CREATE EVENT d.tick ON SCHEDULE EVERY 1 SECOND DO INSERT INTO d.ticks VALUES (NULL)";
    let mut lost = String::new();
    for number in 0..300 {
        lost.push_str(&format!("INSERT INTO d.t (v) VALUES ('told {number}');\n"));
    }
    let (mut source, daemon) = source_put_back(name, before, &lost, &["--event-scheduler=OFF"]);
    source.restart(&[&RELAXED[..], &["--event-scheduler=ON", "--read-only=ON"]].concat());
    let target = url(&source);
    let count =
        |what: &str| source.sql(&format!("SELECT COUNT(*) FROM {what}")).trim().parse::<u64>().unwrap();
    wait_for("two events", || count("d.ticks") >= 2);
    let (code, text) = rescue(&daemon, &target, &["--dry-run"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("d.tick. Run there: SET GLOBAL event_scheduler = OFF;"), "{text}");
    let (code, text) = rescue(&daemon, &target, &["--yes"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("Both versions of each") && text.contains("d.ticks") && !text.contains("now has all"),
        "{text}"
    );
    assert_eq!(source.sql("SELECT @@global.event_scheduler").trim(), "OFF", "no more are taken");
    let taken = count("d.ticks");
    let (code, text) = rescue(&daemon, &target, &["--yes", "--compare", "all"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("under {taken} GTIDs")), "{taken}: {text}");
    assert_eq!(count("d.t WHERE v LIKE 'told%'"), 0, "nothing was sent");
    let (code, text) = rescue(&daemon, &target, &["--yes", "--compare", "none"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(count("d.t WHERE v LIKE 'told%'"), 300 - taken);
    assert_eq!(source.sql("SELECT @@global.event_scheduler").trim(), "ON");
}

#[test]
fn what_an_event_has_taken_is_named_mysql() {
    what_an_event_has_taken_is_named("mysql-9.7");
}

#[test]
fn what_an_event_has_taken_is_named_mariadb() {
    what_an_event_has_taken_is_named("mariadb-11.8");
}

/// Killed in the midst, with settings to put back; then somebody takes a GTID in the midst of the second one.
fn killed_in_the_midst_and_a_writer_in_the_midst(name: &str) {
    let mut lost = "UPDATE d.t SET v = 'one' WHERE id = 1; INSERT INTO d.t VALUES (11, 'b'); INSERT INTO d.t VALUES (12, 'c');\n"
        .to_owned();
    if name.starts_with("mysql") {
        // Prepared by the rescue that is killed, and ended by the next one.
        lost = format!(
            "XA START 'x1'; INSERT INTO d.t VALUES (10, 'a'); XA END 'x1'; XA PREPARE 'x1';\n{lost}XA COMMIT 'x1';\n"
        );
    } else {
        lost.insert_str(0, "INSERT INTO d.t VALUES (10, 'a');\n");
    }
    let (mut source, daemon) = source_put_back(name, "SELECT 1", &lost, &[]);
    source.restart(&[&RELAXED[..], &["--event-scheduler=ON"]].concat());
    let target = url(&source);
    let settings = || source.sql("SELECT @@global.event_scheduler, @@global.read_only").trim().to_owned();
    assert_eq!(settings(), "ON\t0");

    let holder = Holder::lock(&source, 1);
    let (code, text) = rescue(&daemon, &target, &["--yes"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("KILL {};", holder.id)) && text.contains("nothing was sent"), "{text}");
    assert!(text.contains("SELECT SLEEP(600)") && text.contains("root@"), "{text}");
    assert_eq!(settings(), "ON\t0", "put back at once");
    assert_eq!(noted(&daemon), Vec::<PathBuf>::new());

    let mut killed = command(&daemon, &target, &["--yes", "--allow-writers"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_in_the_midst(&source);
    assert_eq!(settings(), "OFF\t1");
    assert_eq!(noted(&daemon).len(), 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(settings(), "OFF\t1", "nobody could put it back");
    let (code, text) = rescue(&daemon, &target, &["--dry-run"]);
    assert_eq!(code, Some(1), "the holder can write, as the real one would say: {text}");
    assert!(text.contains(&format!("KILL {};", holder.id)), "{text}");
    let (code, text) = rescue(&daemon, &target, &["--dry-run", "--allow-writers"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("SET GLOBAL read_only = OFF") || text.contains("SET GLOBAL event_scheduler = ON"),
        "{text}"
    );
    assert_eq!(settings(), "OFF\t1", "a dry run sets nothing");

    // The server does not notice that it is gone, and would do the rest of what it has been sent.
    let left = || source.sql("SELECT IS_USED_LOCK('binlogd.rescue')").trim().to_owned();
    let (code, text) = rescue(&daemon, &target, &["--yes", "--allow-writers"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("KILL {};", left())), "{text}");
    source.sql(&format!("KILL {}", left()));
    wait_for("the end of the killed session", || left() == "NULL");
    let (code, text) = rescue(&daemon, &target, &["--yes"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("KILL {};", holder.id)), "{text}");
    assert_eq!(settings(), "OFF\t1", "what it lacks is lacked still");
    // The next one goes on, and while it waits for the lock somebody takes the GTID of a transaction that is to come.
    let second = command(&daemon, &target, &["--yes", "--allow-writers"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_in_the_midst(&source);
    source.sql("INSERT INTO d.t VALUES (99, 'in between')");
    holder.release();
    let (code, text) = said(&second.wait_with_output().unwrap());
    assert_eq!(code, Some(1), "{text}");
    assert!(!text.contains("now has all"), "{text}");
    assert!(text.contains("going on in spite of a session that may write"), "{text}");
    assert!(!text.contains("XA transaction"), "it ends it itself: {text}");
    let (copy, own) =
        (text.find("in the copy: ").expect(&text), text.find("  on the target: ").expect(&text));
    assert!(copy < own && text[copy..own].contains("d.t") && text[copy..own].contains("0001-"), "{text}");
    assert!(text[own..].contains("d.t") && text[own..].contains("mysql-bin.0"), "{text}");
    // MariaDB does the transaction under the GTID that is taken all the same.
    assert_eq!(text.contains("stands in its binary log twice"), name.starts_with("mariadb"), "{text}");
    assert!(text.contains("put back on the target"), "{text}");
    assert_eq!(settings(), "ON\t0");
    assert_eq!(noted(&daemon), Vec::<PathBuf>::new());

    // It is said again by every later one, before anything is sent.
    let (code, text) = rescue(&daemon, &target, &["--yes"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("has already other transactions than the copy under 1 GTID."), "{text}");
    let (code, text) = rescue(&daemon, &target, &["--dry-run", "--json"]);
    assert_eq!(code, Some(1), "{text}");
    let report = text[text.find('{').expect(&text)..].to_owned();
    let report: Value =
        serde_json::Deserializer::from_str(&report).into_iter().next().expect("a report").unwrap();
    assert_eq!(
        (&report["complete"], &report["compared"]["different"]),
        (&json!(false), &json!(1)),
        "{report:#}"
    );
    let difference = &report["compared"]["differences"][0];
    for side in ["in_the_copy", "on_the_target"] {
        assert!(difference[side]["changes"].to_string().contains("d.t"), "{report:#}");
    }
    let (code, text) = rescue(&daemon, &target, &["--yes", "--compare", "none"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn killed_in_the_midst_and_a_writer_in_the_midst_mysql() {
    killed_in_the_midst_and_a_writer_in_the_midst("mysql-9.7");
}

#[test]
fn killed_in_the_midst_and_a_writer_in_the_midst_mariadb() {
    killed_in_the_midst_and_a_writer_in_the_midst("mariadb-11.8");
}

/// A server goes on with the packet of a rescue that was killed. The next one waits for that, and only then looks what is lacking.
fn a_killed_rescue_is_not_somebody_else(name: &str) {
    let lost = "UPDATE d.t SET v = 'one' WHERE id = 1;\nINSERT INTO d.t VALUES (11, 'b');\nINSERT INTO d.t VALUES (12, 'c');\n";
    let (mut source, daemon) = source_put_back(name, "SELECT 1", lost, &[]);
    source.restart(&RELAXED);
    let target = url(&source);
    let holder = Holder::lock(&source, 1);
    let rescue_beside = || {
        let mut command = command(&daemon, &target, &["--yes", "--allow-writers"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut killed = rescue_beside();
    wait_in_the_midst(&source);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let next = rescue_beside();
    wait_for("the next one waits for the killed one's session", || {
        let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT GET_LOCK%'";
        source.sql(sql).trim() == "1"
    });
    holder.release();
    let (code, text) = said(&next.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("somebody else writes"), "{text}");
    assert_eq!(source.sql("SELECT GROUP_CONCAT(v ORDER BY id) FROM d.t").trim(), "one,b,c");
    assert_eq!(source.sql("SELECT @@global.read_only").trim(), "0");
    assert_eq!(noted(&daemon), Vec::<PathBuf>::new());
}

#[test]
fn a_killed_rescue_is_not_somebody_else_mysql() {
    a_killed_rescue_is_not_somebody_else("mysql-9.7");
}

#[test]
fn a_killed_rescue_is_not_somebody_else_mariadb() {
    a_killed_rescue_is_not_somebody_else("mariadb-11.8");
}

/// An account that may read the log, and not act as an applier: what it has is not advised.
#[test]
fn the_missing_right_is_named_and_no_other() {
    let lost = "INSERT INTO d.t VALUES (10, 'a');\n";
    let (mut source, daemon) = source_put_back("mysql-9.7", "SELECT 1", lost, &[]);
    source.restart(&RELAXED);
    source.sql(
        "SET sql_log_bin = 0; CREATE USER some@'%' IDENTIFIED BY 'p'; GRANT ALL ON d.* TO some@'%'; \
         GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS, CONNECTION_ADMIN, XA_RECOVER_ADMIN ON *.* TO some@'%'",
    );
    let some = format!("mysql://some:p@{}:{}", source.env("HOST"), source.port());
    let (code, text) = rescue(&daemon, &some, &["--yes"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("REPLICATION_APPLIER") && !text.contains("GRANT REPLICATION SLAVE"), "{text}");
}

/// Somebody wrote before the rescue began; replication, an XA transaction; an account that may not look.
fn who_can_write_is_named(name: &str) {
    let mysql = name.starts_with("mysql");
    let lost = "INSERT INTO d.t VALUES (10, 'a');\nINSERT INTO d.t VALUES (11, 'b');\nINSERT INTO d.t VALUES (12, 'c');\n";
    let (mut source, daemon) = source_put_back(name, "SELECT 1", lost, &[]);
    source.restart(&RELAXED);
    let target = url(&source);
    source.sql(if mysql {
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1, SOURCE_USER='r', SOURCE_AUTO_POSITION=1; \
         START REPLICA SQL_THREAD"
    } else {
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='r'; START SLAVE SQL_THREAD"
    });
    // Without the log, so that it takes no GTID before the rescue.
    source.sql("SET sql_log_bin = 0; XA START 'left'; INSERT INTO d.t VALUES (77, 'x'); XA END 'left'; XA PREPARE 'left'");
    let (code, text) = rescue(&daemon, &target, &["--yes"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("XA ROLLBACK X'6c656674',X'',1;") && text.contains("transaction left"), "{text}");
    assert!(text.contains("replication from 127.0.0.1"), "{text}");
    assert!(text.contains(if mysql { "STOP REPLICA;" } else { "STOP SLAVE;" }), "{text}");
    source.sql(if mysql { "STOP REPLICA" } else { "STOP SLAVE" });
    source.sql("SET sql_log_bin = 0; XA ROLLBACK 'left'");

    // An account that can hand over, but neither look nor read.
    let rights = if mysql {
        "REPLICATION_APPLIER, BINLOG_ADMIN, SYSTEM_VARIABLES_ADMIN"
    } else {
        "BINLOG REPLAY, REPLICATION SLAVE ADMIN"
    };
    source.sql(&format!(
        "SET sql_log_bin = 0; CREATE USER weak@'%' IDENTIFIED BY 'p'; GRANT {rights} ON *.* TO weak@'%'; \
         GRANT ALL ON d.* TO weak@'%'"
    ));
    let weak = format!("mysql://weak:p@{}:{}", source.env("HOST"), source.port());
    let (code, text) = rescue(&daemon, &weak, &["--yes"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("binary log cannot be read") && text.contains("REPLICATION SLAVE"), "{text}");
    let (code, text) = rescue(&daemon, &weak, &["--yes", "--compare", "none"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("GRANT PROCESS ON *.*") && text.contains("read_only is OFF"), "{text}");

    // A client that was let in too early.
    source.sql("INSERT INTO d.t VALUES (500, 'of a client'); CREATE TABLE d.u (id INT PRIMARY KEY)");
    let (code, text) = rescue(&daemon, &target, &["--dry-run"]);
    assert_eq!(code, Some(1), "{text}");
    let (code, text) = rescue(&daemon, &target, &["--yes", "--compare", "all"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("has already other transactions than the copy under 2 GTIDs"), "{text}");
    assert!(
        text.contains("CREATE TABLE d.u (id INT PRIMARY KEY)") && text.contains("Nothing was sent"),
        "{text}"
    );
    assert_eq!(source.sql("SELECT GROUP_CONCAT(id ORDER BY id) FROM d.t WHERE id > 1").trim(), "500");
    // An event that has begun is not ended by switching the scheduler off.
    source.sql(
        "SET sql_log_bin = 0; CREATE EVENT d.slow ON SCHEDULE EVERY 1 HOUR DO DO SLEEP(3); SET GLOBAL event_scheduler = ON",
    );
    let running =
        || source.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Connect'");
    wait_for("the event", || running().trim() == "1");
    let (code, text) = rescue(&daemon, &target, &["--yes", "--compare", "none"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("waiting for its end: an event that runs") && text.contains("SLEEP(3)"), "{text}");
    assert!(text.contains("now has all 1 transaction, verified by GTID alone, not compared"), "{text}");
    assert_eq!(source.sql("SELECT GROUP_CONCAT(id ORDER BY id) FROM d.t WHERE id > 1").trim(), "12,500");
}

#[test]
fn who_can_write_is_named_mysql() {
    who_can_write_is_named("mysql-9.7");
}

#[test]
fn who_can_write_is_named_mariadb() {
    who_can_write_is_named("mariadb-11.8");
}
