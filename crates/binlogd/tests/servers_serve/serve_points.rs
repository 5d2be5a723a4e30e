//! Replicas that stop at a point, or lag on purpose: what they have executed is exactly what was asked for.

use crate::common::daemon::Daemon;
use crate::common::pair::gtid_executed;
use crate::common::readers::{By, attach, client, make_account, replica_status, serve_port};
use crate::common::{Server, connect_options, wait_within};
use codec::ServerKind;
use codec::packet::{DUMP_NON_BLOCKING, ERR, command};
use std::time::Duration;
use wire::{Connection, TlsMode};

const PATIENCE: Duration = Duration::from_secs(60);

/// A source, and the account by which it is read as the one of readers too, with further keys.
fn config(source: &Server, keys: &str) -> String {
    let port = source.port();
    format!(
        "[[serve.user]]\nname = 'repl'\npassword = 'secret'\n{keys}\n\
         [[source]]\nhosts = ['127.0.0.1:{port}']\nuser = 'repl'\npassword = 'secret'\n"
    )
}

/// What the server has executed as a replica, or written as a source.
fn executed(server: &Server) -> String {
    match server.kind() {
        ServerKind::MySql => gtid_executed(server),
        ServerKind::MariaDb => server.sql("SELECT @@global.gtid_current_pos").trim().to_owned(),
    }
}

/// Waits until the one reader of the port has stopped and its replica has executed `expected`, no more.
fn wait_stopped(daemon: &Daemon, replica: &Server, expected: &str) {
    let status =
        daemon.wait_until_status(|status| status["serve"]["readers"][0]["stopped"] == true, PATIENCE);
    let reader = &status["serve"]["readers"][0];
    assert!(reader["behind_seconds"] == 0 && reader["caught_up"] == false, "{reader:#}");
    wait_within(PATIENCE, expected, || executed(replica) == expected);
    let state = replica_status(replica);
    let receiving = state.iter().find(|(name, _)| name.ends_with("_IO_Running")).unwrap();
    assert_eq!(receiving.1, "Yes", "{state:?}");
}

fn insert(source: &Server, count: u64) {
    source.sql(&"INSERT INTO d.t (v) VALUES (1); ".repeat(count as usize));
}

fn dumps(daemon: &Daemon) -> usize {
    daemon.log().matches("a reader reads from").count()
}

fn stops(name: &str, options: &[&str], workers: &str, place: impl Fn(&str, u64) -> String) {
    let of = |id| [&[id][..], options].concat();
    let source = Server::start(name, &of("--server-id=1"));
    let replica = Server::start(name, &[&of("--server-id=2")[..], &[workers]].concat());
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    insert(&source, 30);
    let uuid = match source.kind() {
        ServerKind::MySql => source.sql("SELECT @@server_uuid").trim().to_owned(),
        ServerKind::MariaDb => String::new(),
    };
    let gtid = |number| place(&uuid, number);
    let at = |number: u64| match source.kind() {
        ServerKind::MySql => format!("{uuid}:1-{number}"),
        ServerKind::MariaDb => gtid(number),
    };
    let daemon = Daemon::start_from(&config(&source, &format!("stop_before = '{}'", gtid(21))));
    daemon.wait_caught_up(&source);
    let port = serve_port(&daemon);
    attach(&replica, port, By::Gtid, ("", 4));
    insert(&source, 5);
    wait_stopped(&daemon, &replica, &at(20));
    daemon.wait_caught_up(&source);
    assert!(executed(&source) != executed(&replica), "the source has more");
    let shown = client(&source, "MYSQL", port, &["--batch", "-e", "SHOW PROCESSLIST"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("Stopped at ") && shown.contains(&format!(", before {}", gtid(21))), "{shown}");
    // Heartbeats come each second: the connection stays, and no more comes.
    let sent = || daemon.status()["serve"]["readers"][0]["sent_bytes"].as_u64();
    let before = sent();
    wait_within(PATIENCE, "a heartbeat is sent", || sent() > before);
    assert_eq!((dumps(&daemon), executed(&replica)), (1, at(20)), "{}", daemon.log());

    // Another point: the replica comes back by itself, and stops there.
    source.sql("FLUSH BINARY LOGS");
    insert(&source, 3);
    daemon.wait_caught_up(&source);
    daemon.write_config(&config(&source, &format!("stop_after = '{}'", gtid(37))));
    daemon.reload();
    wait_stopped(&daemon, &replica, &at(37));
    assert_eq!(dumps(&daemon), 2);
    let first = crate::common::compare::binary_logs(&source)[0].clone();
    let read = client(&source, "MYSQLBINLOG", port, &["--read-from-remote-server", "--to-last-log", &first]);
    let read_text = String::from_utf8_lossy(&read.stdout).into_owned();
    let inserts = read_text.matches("Write_rows").count();
    // Four transactions are accounts and definitions.
    assert!(read.status.success() && inserts == 37 - 4, "{inserts}: {read_text}");

    // A delay: what is younger is not sent; without it everything is.
    daemon.write_config(&config(&source, "delay = '1h'"));
    daemon.reload();
    let delayed = |status: &serde_json::Value| {
        let reader = &status["serve"]["readers"][0];
        reader["delay_seconds"] == 3600
            && reader["stopped"] == false
            && reader["behind_bytes"].as_u64() > Some(0)
    };
    let status = daemon.wait_until_status(delayed, PATIENCE);
    let reader = &status["serve"]["readers"][0];
    assert_eq!(reader["behind_seconds"], 0, "{reader:#}");
    assert_eq!(executed(&replica), at(37));
    daemon.write_config(&config(&source, ""));
    daemon.reload();
    wait_within(PATIENCE, "the replica has everything", || executed(&replica) == executed(&source));
    if source.kind() == ServerKind::MySql {
        session_says_where_it_stops(&source, &daemon);
    }
}

#[test]
fn a_replica_of_mysql_stops_where_it_is_to() {
    let options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--replica-preserve-commit-order=ON"];
    stops("mysql-9.7", &options, "--replica-parallel-workers=4", |uuid, number| format!("{uuid}:{number}"));
}

#[test]
fn a_replica_of_mariadb_stops_where_it_is_to() {
    stops("mariadb-11.8", &[], "--slave-parallel-threads=4", |_, number| format!("0-1-{number}"));
}

/// What a session sets counts too, and what is no point is refused.
fn session_says_where_it_stops(source: &Server, daemon: &Daemon) {
    let ask = |variables: &str| {
        let mut options = connect_options(source, "repl", "secret", TlsMode::Preferred);
        options.port = serve_port(daemon);
        let mut connection = Connection::connect(&options).unwrap();
        connection.query("SET @source_binlog_checksum = 'CRC32'").unwrap();
        connection.query(&format!("SET {variables}")).unwrap();
        let dump = command::binlog_dump(4, DUMP_NON_BLOCKING, 77, b"");
        let mut stream = connection.start_dump(&dump).unwrap();
        stream.set_blocking(PATIENCE).unwrap();
        stream.set_read_timeout(PATIENCE).unwrap();
        let (mut said, mut part) = (Vec::new(), vec![0; 65_536]);
        loop {
            match stream.read(&mut part) {
                Ok(0) => return String::from_utf8_lossy(&said).into_owned(),
                // A dump that was refused before it began ends no session.
                Ok(read) if part[..read].get(4) == Some(&ERR) => {
                    return String::from_utf8_lossy(&part[..read]).into_owned();
                }
                Ok(read) => said.extend_from_slice(&part[..read]),
                Err(error) => panic!("{variables}: {error}"),
            }
        }
    };
    let early = ask("@binlogd_stop_before = '2000-01-01 00:00:00'");
    assert!(early.contains("mysql-bin.000001") && !early.contains("CREATE DATABASE"), "{early}");
    assert!(ask("@binlogd_stop_after = '2100-01-01T00:00:00Z'").contains("CREATE DATABASE"));
    assert!(!ask("@binlogd_delay = 100000").contains("CREATE DATABASE"));
    for (variable, words) in [
        ("@binlogd_stop_before = '0-1-7'", "names GTIDs of MariaDB, and the source is MySQL"),
        ("@binlogd_stop_after = '2026-11-23'", "a day and a GTID of MariaDB"),
        ("@binlogd_stop_before = 'tomorrow'", "it must be a GTID set of MySQL"),
        ("@binlogd_delay = '1h'", "a whole number of seconds"),
    ] {
        let said = ask(variable);
        assert!(said.contains(words) && said.contains("HY000"), "{variable}: {said}");
    }
}
