//! Semi-sync is on and nobody is attached: which statements wait, who is locked out, and each way in and out that
//! docs/failures.md names ("Locked out"), tried on both servers.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;
use std::process::Command;
use wire::{Connection, TlsMode, WireError};

use crate::common::daemon::Daemon;
use crate::common::semi_sync::SemiSync;
use crate::common::{Server, connect_options};
use codec::ServerKind;

/// Far longer than the test: what waits, waits for an operator.
const HOUR: Duration = Duration::from_secs(3600);
/// Longest wait for what must come: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// What waits for an hour, waits for that long too.
const WAITS: Duration = Duration::from_millis(500);
/// A login that hangs takes longer. One that works does not, on a busy machine either.
const LOGIN_MAX: Duration = Duration::from_secs(3);

/// A session of root, opened while one can.
fn session(server: &Server) -> Connection {
    let mut session = Connection::connect(&connect_options(server, "root", "", TlsMode::Preferred)).unwrap();
    session.set_timeout(PATIENCE);
    session
}

/// Where it cannot, the message says what keeps everybody out, and where the way out stands.
#[track_caller]
fn can_log_in(server: &Server, within: Duration) -> bool {
    let mut options = connect_options(server, "root", "", TlsMode::Preferred);
    options.connect_timeout = within;
    let Err(error) = Connection::connect(&options) else { return true };
    assert_names_the_way_out(&error.to_string());
    false
}

#[track_caller]
fn assert_names_the_way_out(message: &str) {
    for words in
        ["lets nobody log in", "rpl_semi_sync_source_enabled = OFF", "docs/failures.md, \"Locked out\""]
    {
        assert!(message.contains(words), "no {words:?} in {message}");
    }
}

/// A statement that another session runs.
struct Running(Receiver<String>);

impl Running {
    fn new(mut session: Connection, sql: &str) -> Self {
        let (sender, receiver) = channel();
        let sql = sql.to_owned();
        std::thread::spawn(move || {
            session.set_timeout(HOUR);
            let result = session.query(&sql).map_or_else(|error| error.to_string(), |_| "done".to_owned());
            let _ = sender.send(result); // Nobody listens when the test has failed.
        });
        Self(receiver)
    }

    /// It has not ended.
    #[track_caller]
    fn waits(&self) {
        let result = self.0.recv_timeout(WAITS);
        assert_eq!(result, Err(RecvTimeoutError::Timeout), "it does not wait");
    }

    #[track_caller]
    fn ends(&self) {
        assert_eq!(self.0.recv_timeout(PATIENCE).expect("it ends"), "done");
    }
}

struct Names {
    role: &'static str,
    replica: &'static str,
}

impl Names {
    fn set(&self, setting: &str, value: &str) -> String {
        let setting = setting.replace("replica", self.replica);
        format!("SET GLOBAL rpl_semi_sync_{}_{setting} = {value}", self.role)
    }
}

/// Each of these writes the binary log, so it waits; and each ends at once with `sql_log_bin = 0`.
const WRITES: [&str; 4] = [
    "INSERT INTO t.a VALUES ()",
    "CREATE TABLE t.b (id INT PRIMARY KEY)",
    "GRANT SELECT ON t.* TO repl@'%'",
    "CREATE USER another@'%'",
];

/// What changes accounts. On MySQL it keeps everybody from logging in while it waits.
fn is_about_accounts(sql: &str) -> bool {
    !sql.contains("t.a") && !sql.contains("TABLE")
}

/// Waits until the source waits: the statement has come as far as that.
#[track_caller]
fn wait_until_it_waits(kept: &mut Connection) {
    let sql =
        "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for semi-sync ACK%'";
    let deadline = std::time::Instant::now() + PATIENCE;
    while kept.query(sql).unwrap().first() != Some("1") {
        assert!(std::time::Instant::now() < deadline, "nothing waits");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every statement that writes waits; only those about accounts lock logins out, and only on MySQL. Switching semi-sync
/// off from a session that is open already lets everything through.
fn what_waits(server: &Server, semi_sync: &SemiSync, kept: &mut Connection, names: &Names, is_mysql: bool) {
    for sql in WRITES {
        semi_sync.set_enabled(true);
        let running = Running::new(session(server), sql);
        wait_until_it_waits(kept);
        running.waits();
        kept.query("SELECT COUNT(*) FROM t.a").unwrap();
        let locked = is_mysql && is_about_accounts(sql);
        let within = if locked { LOGIN_MAX } else { PATIENCE };
        assert_eq!(can_log_in(server, within), !locked, "{}: a login while this waits: {sql}", server.name());
        kept.query(&names.set("enabled", "OFF")).unwrap();
        running.ends();
        assert!(can_log_in(server, PATIENCE));
    }
}

/// What an operator may try from a session that is open: what helps those that wait already, and what does not.
fn ways_out(server: &Server, semi_sync: &SemiSync, kept: &mut Connection, names: &Names, is_mysql: bool) {
    let grant = "GRANT INSERT ON t.* TO repl@'%'";
    semi_sync.set_enabled(true);
    let running = Running::new(session(server), grant);
    wait_until_it_waits(kept);
    kept.query(&names.set("timeout", "100")).unwrap();
    running.waits();
    kept.query(&names.set("wait_no_replica", "OFF")).unwrap();
    if is_mysql {
        running.ends();
    } else {
        running.waits();
        kept.query(&names.set("enabled", "OFF")).unwrap();
        running.ends();
    }
    kept.query(&names.set("enabled", "OFF")).unwrap();
    kept.query(&names.set("wait_no_replica", "ON")).unwrap();
    semi_sync.set_timeout(HOUR);

    // A KILL ends the client's session, and the lock stays.
    semi_sync.set_enabled(true);
    let victim = session(server);
    let id = victim.connection_id();
    let running = Running::new(victim, grant);
    wait_until_it_waits(kept);
    kept.query(&format!("KILL {id}")).unwrap();
    assert_ne!(running.0.recv_timeout(PATIENCE).expect("it ends"), "done");
    if is_mysql {
        assert!(!can_log_in(server, LOGIN_MAX));
    }
    kept.query(&names.set("enabled", "OFF")).unwrap();
    assert!(can_log_in(server, PATIENCE));
}

/// `read_only = ON`, the first step of the runbook where a source lacks transactions, waits for the commits that wait. With a limit
/// it ends by an error, and nothing is changed.
fn read_only_waits_too(server: &Server, semi_sync: &SemiSync, kept: &mut Connection, names: &Names) {
    semi_sync.set_enabled(true);
    let running = Running::new(session(server), WRITES[0]);
    wait_until_it_waits(kept);
    let mut limited = session(server);
    limited.query("SET SESSION lock_wait_timeout = 2").unwrap();
    let error = limited.query("SET GLOBAL read_only = ON").expect_err("it waits");
    assert!(matches!(error, WireError::Server { code: 1205, .. }), "{}: {error:?}", server.name());
    running.waits();
    assert!(["0", "OFF"].contains(&kept.query("SELECT @@global.read_only").unwrap().first().unwrap()));
    kept.query(&names.set("enabled", "OFF")).unwrap();
    running.ends();
}

/// Commits wait, and binlogd's account lacks the privilege: the message and the doctor name a statement that does not wait,
/// and with it binlogd gets in, and what waited goes on.
fn way_in(server: &Server, semi_sync: &SemiSync, kept: &mut Connection) {
    let url = format!("mysql://repl@127.0.0.1:{}", server.port());
    semi_sync.set_enabled(true);
    let running = Running::new(session(server), WRITES[0]);
    wait_until_it_waits(kept);
    let daemon = Daemon::start_on(&url, &[]);
    let source =
        daemon.wait_until(|source| source["last_error"]["message"].to_string().contains("GRANT"), PATIENCE);
    let message = source["last_error"]["message"].as_str().unwrap();
    assert!(message.contains("SET SESSION sql_log_bin = 0"), "{message}");
    let output =
        Command::new(env!("CARGO_BIN_EXE_binlogd")).args(["doctor", "--source", &url]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("and no semi-sync replica is connected"), "{said}");
    let grant = said.lines().find(|line| line.contains("GRANT REPLICATION SLAVE ON")).expect("the grant");
    assert!(grant.trim().starts_with("SET SESSION sql_log_bin = 0; GRANT "), "{said}");
    running.waits();
    // As the doctor says it, in a session like any other.
    server.sql(grant.trim());
    running.ends();
    daemon.wait_until(|source| source["semi_sync"]["active"] == true, PATIENCE);
    // With binlogd attached nothing waits for long.
    server.sql("GRANT SELECT ON t.* TO repl@'%'");
}

/// No session is open and nobody can log in: the server ends on SIGTERM all the same, and what waited has been committed.
fn without_a_session(server: &mut Server, is_mysql: bool) {
    {
        SemiSync::enable(server, HOUR);
        let mut kept = session(server);
        let _running = Running::new(session(server), "GRANT UPDATE ON t.* TO repl@'%'");
        wait_until_it_waits(&mut kept);
        drop(kept);
        let within = if is_mysql { LOGIN_MAX } else { PATIENCE };
        assert_eq!(can_log_in(server, within), !is_mysql);
    }
    server.stop();
    server.restart(&[]);
    assert!(server.sql("SHOW GRANTS FOR repl@'%'").contains("UPDATE"));
}

fn locked_out(name: &str) {
    let mut server = Server::start(name, &[]);
    let is_mysql = server.kind() == ServerKind::MySql;
    let names = match is_mysql {
        true => Names { role: "source", replica: "replica" },
        false => Names { role: "master", replica: "slave" },
    };
    server
        .sql("CREATE DATABASE t; CREATE TABLE t.a (id INT AUTO_INCREMENT PRIMARY KEY); CREATE USER repl@'%'");
    {
        let semi_sync = SemiSync::enable(&server, HOUR);
        let mut kept = session(&server);
        // None of these waits, though nobody is attached.
        for sql in WRITES {
            server.sql(&format!("SET SESSION sql_log_bin = 0; {sql}"));
        }
        server.sql("SET SESSION sql_log_bin = 0; DROP USER another@'%'; DROP TABLE t.b");
        what_waits(&server, &semi_sync, &mut kept, &names, is_mysql);
        ways_out(&server, &semi_sync, &mut kept, &names, is_mysql);
        read_only_waits_too(&server, &semi_sync, &mut kept, &names);
        way_in(&server, &semi_sync, &mut kept);
    }
    without_a_session(&mut server, is_mysql);
}

#[test]
fn mysql_is_locked_out_and_let_in_again() {
    locked_out("mysql-9.7");
}

#[test]
fn mariadb_waits_and_lets_logins_through() {
    locked_out("mariadb-11.8");
}

/// What docs/failures.md says of it: after a reset binlogd must log in again to get the new log, and a statement about accounts
/// that waits for it keeps it out. The status says so while it lasts, and nothing of it afterwards.
#[test]
fn a_statement_about_accounts_after_a_reset_is_seen() {
    let server = Server::start("mysql-9.7", &[]);
    let daemon = Daemon::start(&server, &["--heartbeat-period=1s", "--net-read-timeout=3s"]);
    let semi_sync = SemiSync::enable(&server, HOUR);
    semi_sync.wait_attached();
    daemon.wait_caught_up(&server);
    // The watch has got in once.
    daemon.wait_until(|source| source["semi_sync_source"]["on"] == true, PATIENCE);
    let mut kept = session(&server);
    kept.query("RESET BINARY LOGS AND GTIDS").unwrap();
    let running = Running::new(session(&server), "CREATE USER another@'%'");
    wait_until_it_waits(&mut kept);
    // Who finds the door shut depends on who came first: the look beside the session, or, where that look had still got in
    // and seen the reset, the receiver's next attempt to connect.
    let way_out = |source: &Value| {
        ["look_error", "last_error"]
            .into_iter()
            .filter_map(|key| source[key]["message"].as_str())
            .find(|message| message.contains("lets nobody log in"))
            .map(str::to_owned)
    };
    let source = daemon
        .wait_until(|source| way_out(source).is_some() && source["semi_sync"]["active"] == false, PATIENCE);
    assert_names_the_way_out(&way_out(&source).unwrap());
    let url = crate::common::daemon::url(&server);
    let doctor =
        Command::new(env!("CARGO_BIN_EXE_binlogd")).args(["doctor", "--source", &url]).output().unwrap();
    assert_names_the_way_out(&String::from_utf8_lossy(&doctor.stdout));
    running.waits();
    semi_sync_off(&mut kept);
    running.ends();
    daemon.wait_until(|source| source["look_error"].is_null() && source["state"] == "receiving", PATIENCE);
    daemon.wait_caught_up(&server);
    semi_sync.set_enabled(true);
    server.sql("CREATE DATABASE after");
    daemon.wait_until(|source| source["semi_sync"]["active"] == true, PATIENCE);
}

fn semi_sync_off(kept: &mut Connection) {
    kept.query("SET GLOBAL rpl_semi_sync_source_enabled = OFF").unwrap();
}
