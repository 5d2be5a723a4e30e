//! Where the copy begins, and where it goes on after a restart of binlogd, on real servers.

use std::fs::File;
use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::compare::{AfterCrash, assert_holds, assert_identical, binary_logs};
use crate::common::daemon::Daemon;
use crate::common::proxy::{Direction, Fault, Proxy};
use crate::common::workload;

/// So that an asynchronous source's tail is durable soon.
const SOON: &str = "--fsync-interval=50ms";

#[test]
fn mysql_begins_where_it_is_told() {
    begins_where_it_is_told("mysql-9.7", "gtid_executed");
}

#[test]
fn mariadb_begins_where_it_is_told() {
    begins_where_it_is_told("mariadb-11.8", "gtid_binlog_pos");
}

#[test]
fn mysql_goes_on_where_it_stopped() {
    goes_on_where_it_stopped("mysql-9.7", "gtid_executed");
}

#[test]
fn mariadb_goes_on_where_it_stopped() {
    goes_on_where_it_stopped("mariadb-11.8", "gtid_binlog_pos");
}

fn begins_where_it_is_told(name: &str, gtid_variable: &str) {
    let server = Server::start(name, &[]);
    let gtids = || server.sql(&format!("SELECT @@global.{gtid_variable}")).trim().replace("\\n", "");
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT); INSERT INTO d.t VALUES (1); FLUSH BINARY LOGS");
    let through_first = gtids();
    server.sql("INSERT INTO d.t VALUES (2)");
    let inside_second = gtids();
    server.sql("INSERT INTO d.t VALUES (3); FLUSH BINARY LOGS");
    let through_second = gtids();
    server.sql("INSERT INTO d.t VALUES (4), (5)");
    let names = binary_logs(&server);
    assert_eq!(names.len(), 3);

    let (second, inside) = (&names[1], 200);
    let starts = [
        ("resume".to_owned(), 0),
        ("earliest".to_owned(), 0),
        ("latest".to_owned(), 2),
        (format!("file:{second}:4"), 1),
        (format!("file:{second}:{inside}"), 1),
        (format!("gtid:{through_first}"), 1),
        (format!("gtid:{inside_second}"), 1),
        (format!("gtid:{through_second}"), 2),
    ];
    for (start, first) in &starts {
        println!("--start {start}");
        let daemon = Daemon::start(&server, &["--start", start, SOON]);
        let source = daemon.wait_caught_up(&server);
        assert_holds(&server, &daemon, &names[*first..], AfterCrash::Identical);
        // The first file says which transactions came before it, so the set is whole wherever the copy begins.
        assert_eq!(source["gtid"]["durable"], gtids(), "--start {start}");
    }

    // What the source purged cannot be had; the oldest file is then another one.
    server.sql(&format!("PURGE BINARY LOGS TO '{second}'"));
    let mut daemon = Daemon::start(&server, &["--start=earliest", SOON]);
    daemon.wait_caught_up(&server);
    assert_holds(&server, &daemon, &names[1..], AfterCrash::Identical);

    // Once there is a copy, it goes on, whatever the flag says.
    daemon.terminate();
    server
        .sql("INSERT INTO d.t VALUES (6); FLUSH BINARY LOGS; FLUSH BINARY LOGS; INSERT INTO d.t VALUES (7)");
    daemon.restart(&["--start=latest", SOON]);
    daemon.wait_caught_up(&server);
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(daemon.timeline_dirs().len(), 1);
}

fn goes_on_where_it_stopped(name: &str, gtid_variable: &str) {
    let server = Server::start(name, &["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT); INSERT INTO d.t VALUES (1)");
    let proxy = Proxy::before(&server);
    let mut daemon = Daemon::start_on(&proxy.url(), &[SOON]);
    let check = |daemon: &mut Daemon, what: &str| {
        println!("{what}");
        daemon.restart(&[SOON]);
        daemon.wait_caught_up(&server);
        assert_identical(&server, daemon, AfterCrash::Identical);
        // It goes on receiving, too.
        server.sql("INSERT INTO d.t VALUES (2)");
        daemon.wait_caught_up(&server);
        assert_identical(&server, daemon, AfterCrash::Identical);
        assert_eq!(daemon.timeline_dirs().len(), 1, "{what}");
        let gtids = server.sql(&format!("SELECT @@global.{gtid_variable}"));
        assert_eq!(daemon.source()["gtid"]["durable"], gtids.trim().replace("\\n", ""), "{what}");
        assert_eq!(daemon.source()["counters"]["reconnects"], 0, "{what}\n{}", daemon.log());
    };

    daemon.wait_caught_up(&server);
    daemon.terminate();
    check(&mut daemon, "while the source idles");
    daemon.kill();
    check(&mut daemon, "killed while the source idles");
    server.sql("FLUSH BINARY LOGS");
    daemon.kill();
    check(&mut daemon, "killed right after a rotation");
    daemon.terminate();
    server.sql("FLUSH BINARY LOGS");
    check(&mut daemon, "stopped before a rotation");
    daemon.terminate();
    server
        .sql("INSERT INTO d.t VALUES (3); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (4); FLUSH BINARY LOGS");
    check(&mut daemon, "stopped before two rotations");
    for len in [4, 0, 3, 60, 130] {
        daemon.terminate();
        truncate_live_file(&daemon, &server, len);
        check(&mut daemon, &format!("the live file cut to {len} bytes"));
    }
    server.sql("FLUSH BINARY LOGS");
    daemon.wait_caught_up(&server);
    daemon.terminate();
    truncate_live_file(&daemon, &server, 0);
    server.sql("INSERT INTO d.t VALUES (5); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (6)");
    check(&mut daemon, "an empty live file, which the source has closed since");

    in_a_huge_transaction(&server, &proxy, &mut daemon);
}

/// Ends binlogd several times while one transaction of some 80 MB arrives.
fn in_a_huge_transaction(server: &Server, proxy: &Proxy, daemon: &mut Daemon) {
    daemon.terminate();
    let start = binlog_size(server);
    workload::run(server, "huge", &workload::one_transaction(14));
    let end = binlog_size(server);
    assert!(end - start > 70 << 20, "{start} to {end}");
    let live = daemon.timeline_dir().join(binary_logs(server).pop().unwrap());
    // Some ten seconds for the whole of it: whoever looks late still finds it in the middle.
    proxy.fault(Fault::Drip {
        direction: Direction::ToReceiver,
        bytes: 64 << 10,
        pause: Duration::from_millis(8),
    });
    for kill in [true, false, true, true] {
        daemon.restart(&[SOON]);
        let len = || std::fs::metadata(&live).map_or(0, |file| file.len());
        let deadline = Instant::now() + Duration::from_secs(60);
        while len() < start + (8 << 20) {
            assert!(Instant::now() < deadline, "nothing arrives\n{}", daemon.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        if kill {
            daemon.kill();
            let len = len();
            assert!(
                len > start && len < end,
                "the transaction from {start} to {end} was not in the middle, but at {len}"
            );
        } else {
            daemon.terminate();
            // The table's definition comes before the transaction.
            assert!(len() < start + 1000, "what is not whole is cut when binlogd stops");
        }
    }
    proxy.fault(Fault::None);
    daemon.restart(&[SOON]);
    daemon.wait_caught_up(server);
    assert_identical(server, daemon, AfterCrash::Identical);
    assert_eq!(daemon.timeline_dirs().len(), 1);
}

fn binlog_size(server: &Server) -> u64 {
    crate::common::daemon::binlog_end(server).1
}

/// Does to the copy's live file what a crash of the machine could.
fn truncate_live_file(daemon: &Daemon, server: &Server, len: u64) {
    let name = binary_logs(server).pop().expect("a binary log");
    let file = File::options().write(true).open(daemon.timeline_dir().join(name)).expect("the live file");
    file.set_len(len).expect("a shorter file");
}
