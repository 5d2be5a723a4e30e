//! Replicas and programs of real servers read from binlogd, and end with what the source has.

use crate::common::daemon::{Daemon, binlog_end};
use crate::common::fork_scene::{FLAGS, PATIENCE, Scene};
use crate::common::proxy::{Ending, Proxy, address_of};
use crate::common::readers::{
    By, SERVE, account_url, attach, checksums, client, executed, make_account, replica_status, serve_port,
    wait_applied,
};
use crate::common::workload::{self, Dialect, run, schema};
use crate::common::{Server, connect_options, wait_within};
use codec::packet::{EOF, ERR, HEADER_BYTES, Header, command};
use std::time::{Duration, Instant};
use wire::{Connection, TlsMode};

/// Longest wait for the next bytes of a dump, or for its end.
const DUMP_MAX: Duration = Duration::from_secs(30);

/// Writers' transactions before and while the replica reads.
const TRANSACTIONS: u64 = 150;

fn options(name: &str) -> &'static [&'static str] {
    match name {
        name if name.starts_with("mariadb") => &["--server-id=1"],
        _ => &["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    }
}

fn replica_options(name: &str) -> &'static [&'static str] {
    match name {
        name if name.starts_with("mariadb") => &["--server-id=2"],
        _ => &["--server-id=2", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    }
}

/// Transactions that do the same on a replica.
fn safe(dialect: Dialect, seed: u64, client: u64) -> String {
    workload::safe(dialect, "d", seed, client, TRANSACTIONS)
}

/// A replica of `replica` reads from binlogd all that a source of `source` has written, and what it writes meanwhile, over
/// rotations and a restart of binlogd; then it goes on at the source itself, and back at binlogd.
fn replicates(source: &str, replica: &str, by: By) {
    let source = Server::start(source, options(source));
    let replica = Server::start(replica, replica_options(replica));
    let dialect = Dialect { gtid_consistency: true, create_select: false };
    make_account(&source);
    run(&source, "schema", &schema("d", 2));
    run(&source, "before", &safe(dialect, 1, 0));
    let mut daemon = Daemon::start_on(&account_url(&source), &SERVE);
    source.sql("FLUSH BINARY LOGS");
    let port = serve_port(&daemon);
    let first = source.sql("SHOW BINARY LOGS").split('\t').next().unwrap().to_owned();
    attach(&replica, port, by, (&first, 4));
    run(&source, "meanwhile", &safe(dialect, 2, 1));
    source.sql("FLUSH BINARY LOGS");
    let applied = |daemon: &Daemon| {
        wait_applied(&replica, || binlog_end(&source), daemon);
        assert_eq!(checksums(&replica, "d"), checksums(&source, "d"));
        // A replica that is sent away waits for its MASTER_CONNECT_RETRY, which is a minute for others.
        let log = daemon.log();
        assert!(!log.contains("cannot be served") && !log.contains("was refused"), "{log}");
    };
    applied(&daemon);
    source.sql("INSERT INTO d.t0 (k) VALUES (1)");
    applied(&daemon);

    // To the source and back, with nothing but CHANGE REPLICATION SOURCE TO.
    let (file, position) = executed(&replica);
    attach(&replica, source.port(), by, (&file, position));
    source.sql("INSERT INTO d.t0 (k) VALUES (2)");
    applied(&daemon);
    let (file, position) = executed(&replica);
    attach(&replica, port, by, (&file, position));
    source.sql("INSERT INTO d.t0 (k) VALUES (3)");
    applied(&daemon);

    // A restart of binlogd: the replica comes back by itself.
    daemon.terminate();
    source.sql("INSERT INTO d.t0 (k) VALUES (4)");
    daemon.restart(&["--serve", &format!("127.0.0.1:{port}")]);
    applied(&daemon);
}

#[test]
fn mysql_9_7_by_gtid() {
    replicates("mysql-9.7", "mysql-9.7", By::Gtid);
}

#[test]
fn mysql_9_7_by_position() {
    replicates("mysql-9.7", "mysql-9.7", By::Position);
}

#[test]
fn mysql_8_0_31() {
    replicates("mysql-8.0.31", "mysql-8.0.31", By::Gtid);
}

#[test]
fn mysql_8_0_15() {
    replicates("mysql-8.0.15", "mysql-8.0.15", By::Gtid);
}

#[test]
fn mysql_5_7_22() {
    replicates("mysql-5.7.22", "mysql-5.7.22", By::Gtid);
}

#[test]
fn mariadb_11_8_by_gtid() {
    replicates("mariadb-11.8", "mariadb-11.8", By::Gtid);
}

#[test]
fn mariadb_11_8_by_position() {
    replicates("mariadb-11.8", "mariadb-11.8", By::Position);
}

#[test]
fn mariadb_10_11() {
    replicates("mariadb-10.11", "mariadb-10.11", By::Gtid);
}

/// As at a source: after the end of a dump that does not wait, and after its refusal, nothing more can be asked.
#[test]
fn a_connection_ends_with_its_dump() {
    const NON_BLOCKING: u16 = 1;
    let source = Server::start("mysql-9.7", options("mysql-9.7"));
    make_account(&source);
    let daemon = Daemon::start_on(&account_url(&source), &SERVE);
    daemon.wait_caught_up(&source);
    for port in [source.port(), serve_port(&daemon)] {
        for (file, status) in [("mysql-bin.000001", EOF), ("mysql-bin.000099", ERR)] {
            let mut options = connect_options(&source, "repl", "secret", TlsMode::Disabled);
            options.port = port;
            let mut connection = Connection::connect(&options).expect("a connection");
            connection.query("SET @source_binlog_checksum = 'CRC32'").expect("a variable");
            let asked = command::binlog_dump(4, NON_BLOCKING, 4711, file.as_bytes());
            let mut stream = connection.start_dump(&asked).expect("a dump");
            stream.set_blocking(DUMP_MAX).expect("a socket");
            stream.set_read_timeout(DUMP_MAX).expect("a socket");
            let (mut bytes, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
            loop {
                match stream.read(&mut buffer).unwrap_or_else(|error| panic!("{port}, {file}: {error}")) {
                    0 => break,
                    read => bytes.extend_from_slice(&buffer[..read]),
                }
            }
            let mut rest = &bytes[..];
            let mut last = 0;
            while let Some((head, payload)) = rest.split_first_chunk::<HEADER_BYTES>() {
                last = payload[0];
                rest = &payload[Header::parse(*head).length..];
            }
            assert_eq!((last, rest), (status, &[][..]), "{port}, {file}");
        }
    }
}

/// The source has died: the replica catches up from binlogd alone.
#[test]
fn a_replica_catches_up_without_the_source() {
    let source = Server::start("mysql-9.7", options("mysql-9.7"));
    let replica = Server::start("mysql-9.7", replica_options("mysql-9.7"));
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let daemon = Daemon::start_on(&account_url(&source), &SERVE);
    for value in 0..20 {
        source.sql(&format!("INSERT INTO d.t (v) VALUES ({value})"));
    }
    let expected = checksums(&source, "d");
    daemon.wait_caught_up(&source);
    let end = binlog_end(&source);
    source.kill();
    attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
    wait_applied(&replica, || end.clone(), &daemon);
    assert_eq!(checksums(&replica, "d"), expected);
}

/// A daemon that was started when the source was dead knows by its copy alone that there are no GTIDs; a replica without them takes
/// nothing from a source with them.
#[test]
fn a_replica_without_gtids_catches_up_without_the_source() {
    const OFF: [&str; 2] = ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"];
    let source = Server::start("mysql-9.7", &[&OFF[..], &["--server-id=1"]].concat());
    let replica = Server::start("mysql-9.7", &[&OFF[..], &["--server-id=2"]].concat());
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT); INSERT INTO d.t (v) VALUES (1)");
    let mut daemon = Daemon::start_on(&account_url(&source), &SERVE);
    daemon.wait_caught_up(&source);
    let (expected, end) = (checksums(&source, "d"), binlog_end(&source));
    source.kill();
    daemon.terminate();
    daemon.restart(&SERVE);
    attach(&replica, serve_port(&daemon), By::Position, ("mysql-bin.000001", 4));
    wait_applied(&replica, || end.clone(), &daemon);
    assert_eq!(checksums(&replica, "d"), expected);
}

/// A replica that comes from the source has more than a copy without a connection to it: it comes again by itself until the
/// copy has as much, and is not stopped.
fn ahead_of_a_copy_that_lags(name: &str) {
    let source = Server::start(name, options(name));
    let replica = Server::start(name, replica_options(name));
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let proxy = Proxy::before(&source);
    let url = format!("mysql://repl:secret@{}", proxy.address());
    let daemon = Daemon::start_on(&url, &[&SERVE[..], &["--backoff-max", "1s"]].concat());
    daemon.wait_caught_up(&source);
    attach(&replica, source.port(), By::Gtid, ("", 4));
    // Nobody listens at port 1.
    proxy.move_to("127.0.0.1:1".parse().unwrap());
    proxy.cut(Ending::Reset);
    source.sql("INSERT INTO d.t (v) VALUES (1); INSERT INTO d.t (v) VALUES (2)");
    wait_applied(&replica, || binlog_end(&source), &daemon);
    attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
    let sent_away = || daemon.log().matches("is to come again: binlogd is behind its").count();
    // It is told so for 10 s after the connection was lost, not for ever; half of that has passed when it is sent away first.
    wait_within(Duration::from_secs(120), "the replica was sent away", || {
        let status = replica_status(&replica);
        let io = status.iter().find(|(name, _)| name == "Replica_IO_Running" || name == "Slave_IO_Running");
        assert_ne!(io.expect("the receiver's state").1, "No", "{status:#?}\n{}", daemon.log());
        sent_away() >= 1
    });
    proxy.move_to(address_of(&source));
    source.sql("INSERT INTO d.t (v) VALUES (3)");
    wait_applied(&replica, || binlog_end(&source), &daemon);
    assert_eq!(checksums(&replica, "d"), checksums(&source, "d"));
    assert!(!daemon.log().contains("was refused"), "{}", daemon.log());
}

#[test]
fn a_mysql_replica_ahead_of_a_copy_that_lags_comes_again() {
    ahead_of_a_copy_that_lags("mysql-9.7");
}

#[test]
fn a_mariadb_replica_ahead_of_a_copy_that_lags_comes_again() {
    ahead_of_a_copy_that_lags("mariadb-11.8");
}

/// The source was put back to an earlier state and goes on from there: a new replica, which begins with the oldest file, is led
/// over that place, and gets nothing of what the source has lost.
fn over_a_fork(name: &str) {
    let server = Server::start(name, options(name));
    make_account(&server);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(200)); INSERT INTO d.t VALUES (0, 'kept')");
    let daemon = Daemon::start_on(&account_url(&server), &[&FLAGS[..], &SERVE[..]].concat());
    daemon.wait_caught_up(&server);
    let mut scene = Scene { server, daemon };
    scene.write_what_is_lost(1, options(name));
    scene.put_back(options(name));
    scene.server.sql("INSERT INTO d.t VALUES (10, 'after')");
    scene
        .server
        .sql("INSERT INTO d.t VALUES (11, 'after'); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (12, 'after')");
    scene.daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    scene.daemon.wait_caught_up(&scene.server);
    assert_eq!(scene.daemon.timeline_dirs().len(), 2, "{}", scene.daemon.log());
    let replica = Server::start(name, replica_options(name));
    attach(&replica, serve_port(&scene.daemon), By::Gtid, ("", 4));
    wait_applied(&replica, || binlog_end(&scene.server), &scene.daemon);
    assert_eq!(checksums(&replica, "d"), checksums(&scene.server, "d"));
    assert!(!scene.daemon.log().contains("was refused"), "{}", scene.daemon.log());
}

#[test]
fn a_new_mysql_replica_is_led_over_a_fork() {
    over_a_fork("mysql-9.7");
}

#[test]
fn a_new_mariadb_replica_is_led_over_a_fork() {
    over_a_fork("mariadb-11.8");
}

/// Stock mysqlbinlog gets the files as the source has them.
fn mysqlbinlog(name: &str) {
    let source = Server::start(name, options(name));
    let daemon = Daemon::start_on(&account_url(&source), &SERVE);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)");
    for _ in 0..3 {
        source.sql("INSERT INTO d.t (v) VALUES (REPEAT('x', 200000)); FLUSH BINARY LOGS");
    }
    daemon.wait_caught_up(&source);
    let port = serve_port(&daemon);
    let files = crate::common::compare::binary_logs(&source);
    let folder = tempfile::tempdir().unwrap();
    let prefix = format!("--result-file={}/", folder.path().display());
    let first = files[0].clone();
    let output = client(
        &source,
        "MYSQLBINLOG",
        port,
        &["--read-from-remote-server", "--raw", "--to-last-log", &prefix, &first],
    );
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), daemon.log());
    for file in &files[..files.len() - 1] {
        let ours = std::fs::read(folder.path().join(file)).unwrap();
        let theirs = std::fs::read(source.datadir().join(file)).unwrap();
        assert!(ours == theirs, "{file} differs");
    }
    let statements = |port| -> Vec<String> {
        let output =
            client(&source, "MYSQLBINLOG", port, &["--read-from-remote-server", "--to-last-log", &first]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().filter(|line| !line.starts_with("# at") || line.len() > 4).map(str::to_owned).collect()
    };
    // MariaDB may write a checkpoint of its own between the two.
    let until = Instant::now() + PATIENCE;
    let (mut ours, mut theirs) = (statements(port), statements(source.port()));
    while ours != theirs && Instant::now() < until {
        (ours, theirs) = (statements(port), statements(source.port()));
    }
    let parts = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
    assert!(ours == theirs, "{} and {} lines; the first that differ: {parts:?}", ours.len(), theirs.len());
}

#[test]
fn mysqlbinlog_9_7() {
    mysqlbinlog("mysql-9.7");
}

#[test]
fn mysqlbinlog_8_0() {
    mysqlbinlog("mysql-8.0.31");
}

#[test]
fn mariadb_binlog() {
    mysqlbinlog("mariadb-11.8");
}
