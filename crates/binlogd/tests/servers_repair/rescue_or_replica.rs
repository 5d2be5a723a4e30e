//! What is left of commits that clients were told of, when the source is lost: with a semi-sync replica whose applier stands
//! still and which is then restarted, and with binlogd and a rescue of that same replica.

use crate::common::daemon::{Daemon, url};
use crate::common::pair::{replicate, wait_replicated};
use crate::common::readers::replica_status;
use crate::common::semi_sync::SemiSync;
use crate::common::verbs::{binlogd, text};
use crate::common::{Server, wait_within};
use codec::ServerKind;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a test: no commit returns without an acknowledgement.
const NEVER: Duration = Duration::from_secs(3600);
const TOLD: u64 = 1000;
/// It is killed and never comes back, so it need not sync.
const SOURCE: [&str; 2] = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"];
const FLAGS: [&str; 4] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s"];

/// A statement about replication, in the words of the server.
fn replication(server: &Server, statement: &str) {
    let mariadb = server.kind() == ServerKind::MariaDb;
    server.sql(&if mariadb { statement.replace("REPLICA", "SLAVE") } else { statement.to_owned() });
}

/// One client commits so many rows, one after another, and is told of each. Every one was acknowledged by the one who is attached.
fn tell(source: &Server, acknowledged_by: &str) {
    let semi_sync = SemiSync::of(source);
    let before = semi_sync.wait_attached();
    let statements = source.dir().join("told.sql");
    let row = |id| format!("INSERT INTO d.t VALUES ({id}, '{acknowledged_by}');\n");
    std::fs::write(&statements, (0..TOLD).map(row).collect::<String>()).unwrap();
    source.sql_file(&statements, &[]);
    let after = semi_sync.counters();
    assert_eq!((after.yes_tx - before.yes_tx, after.no_tx, after.clients), (TOLD, before.no_tx, 1));
}

fn left(server: &Server, acknowledged_by: &str) -> u64 {
    let count = format!("SELECT COUNT(*) FROM d.t WHERE acknowledged_by = '{acknowledged_by}'");
    server.sql(&count).trim().parse().unwrap()
}

/// A source that is lost after its commits were told, the copy that acknowledged the first of them, and the replica that acknowledged
/// the others and has applied none. The replica was killed.
fn the_source_is_lost(name: &str) -> (Daemon, Server) {
    let source = Server::start(name, &[&SOURCE[..], &["--server-id=1"]].concat());
    let replica = Server::start(name, &["--server-id=2", "--log-slave-updates=ON"]);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT, acknowledged_by VARCHAR(10), PRIMARY KEY (id, acknowledged_by))");
    replicate(&replica, &source);
    wait_replicated(&replica, &source);
    replication(&replica, "STOP REPLICA");

    let semi_sync = SemiSync::enable(&source, NEVER);
    let mut daemon = Daemon::start(&source, &FLAGS);
    tell(&source, "binlogd");
    daemon.terminate();
    semi_sync.wait_until(|counters| counters.clients == 0);

    replication(&replica, "SET GLOBAL rpl_semi_sync_REPLICA_enabled = 1");
    replication(&replica, "START REPLICA IO_THREAD");
    tell(&source, "replica");
    source.kill();
    assert_eq!((left(&replica, "binlogd"), left(&replica, "replica")), (0, 0), "the applier stands still");
    replica.kill();
    (daemon, replica)
}

/// The replica comes back with everything that it had, and applies what it then still has.
fn comes_back(replica: &Server, options: &[&str]) -> Server {
    let options = [&["--server-id=2", "--log-slave-updates=ON"], options].concat();
    let back = Server::start_on(replica.name(), replica.datadir(), &options);
    replication(&back, "START REPLICA");
    let of = |key: &str| {
        let status = replica_status(&back);
        status.into_iter().find(|(name, _)| name == key).map_or_else(String::new, |(_, value)| value)
    };
    if back.kind() == ServerKind::MariaDb {
        wait_within(PATIENCE, "it applies all", || {
            of("Slave_SQL_Running_State").contains("has read all relay log")
        });
    } else {
        wait_within(PATIENCE, "it applies all", || {
            of("Replica_SQL_Running_State").contains("has read all relay log")
                && back
                    .sql(&format!("SELECT GTID_SUBSET('{}', @@gtid_executed)", of("Retrieved_Gtid_Set")))
                    .trim()
                    == "1"
        });
    }
    assert_eq!(of("Last_SQL_Errno"), "0");
    replication(&back, "STOP REPLICA");
    back
}

/// It gets from binlogd's copy what binlogd acknowledged, whole.
fn is_rescued(daemon: &Daemon, back: &Server) {
    let data_dir = daemon.data_dir();
    let target = url(back);
    let output = binlogd(&["rescue", data_dir.to_str().unwrap(), "--to", &target, "--yes"]);
    let told = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("now has all 1,000 transactions, verified by GTID"), "{told}");
    assert_eq!(left(back, "binlogd"), TOLD, "{told}");
    println!("{}: binlogd acknowledged {TOLD}, left after the rescue: {TOLD}", back.name());
}

/// How many it has of those that it acknowledged itself: a figure, and a promise only where there is one.
#[track_caller]
fn has_left(back: &Server, after: &str, recovery: &str, expected: Option<u64>) {
    let left = left(back, "replica");
    println!(
        "{}, {after} and started, relay_log_recovery={recovery}: the replica acknowledged {TOLD}, left: {left}",
        back.name()
    );
    assert_eq!(back.sql("SELECT IF(@@relay_log_recovery, 'ON', 'OFF')").trim(), recovery);
    if let Some(expected) = expected {
        assert_eq!(left, expected, "{after}");
    }
}

/// Stops the killed replica cleanly, without a start of its replication in between.
fn stop_cleanly(replica: &mut Server) {
    let skip =
        if replica.kind() == ServerKind::MariaDb { "--skip-slave-start" } else { "--skip-replica-start" };
    replica.restart(&["--server-id=2", "--log-slave-updates=ON", skip]);
    replica.stop();
}

#[test]
fn a_replica_of_mariadb_11_8() {
    let (daemon, mut replica) = the_source_is_lost("mariadb-11.8");
    let back = comes_back(&replica, &[]);
    has_left(&back, "killed", "OFF", Some(0));
    is_rescued(&daemon, &back);
    drop(back);
    stop_cleanly(&mut replica);
    has_left(&comes_back(&replica, &[]), "stopped", "OFF", Some(0));
}

#[test]
fn a_replica_of_mysql_9_7() {
    const RECOVERY: [&str; 1] = ["--relay-log-recovery=ON"];
    let (daemon, mut replica) = the_source_is_lost("mysql-9.7");
    has_left(&comes_back(&replica, &[]), "killed", "OFF", None);
    let back = comes_back(&replica, &RECOVERY);
    has_left(&back, "killed", "ON", Some(0));
    is_rescued(&daemon, &back);
    drop(back);
    stop_cleanly(&mut replica);
    has_left(&comes_back(&replica, &RECOVERY), "stopped", "ON", Some(0));
    has_left(&comes_back(&replica, &[]), "stopped", "OFF", Some(TOLD));
}
