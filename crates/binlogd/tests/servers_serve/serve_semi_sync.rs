//! Two machines have a transaction before its commit returns: a source, a binlogd that acknowledges after one receiver has
//! confirmed, and a binlogd behind it, or a replica with semi-sync. Under load, with each of them killed, over rotations and a
//! failover; and the second copy is the first one, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::common::archive::archive;
use crate::common::daemon::{Daemon, binlog_end};
use crate::common::ledger::{self, Ledger, Manner, copied_entries, entries_left};
use crate::common::pair::{promote, replicate, wait_replicated};
use crate::common::readers::{By, account_url, attach, make_account, serve_port, wait_applied};
use crate::common::semi_sync::SemiSync;
use crate::common::{Server, wait_within};
use codec::ServerKind;
use serde_json::Value;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(600);
const WRITERS: usize = 2;
const FLAGS: [&str; 6] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "200ms"];
pub(crate) const DEMAND: [&str; 4] = ["--ack-after-replicas", "1", "--ack-timeout", "500ms"];

pub(crate) fn options(name: &str, server_id: &'static str) -> Vec<&'static str> {
    let mut options = vec![server_id, "--max-binlog-size=65536"];
    if name.starts_with("mysql") {
        options.extend(["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-replica-updates=ON"]);
    } else {
        options.push("--log-slave-updates=ON");
    }
    options
}

pub(crate) fn with(flags: &[&str], serve: &str) -> Vec<String> {
    let serves = ["--serve-auto-generate-certs=false", "--serve", serve];
    FLAGS.iter().chain(flags).chain(&serves).map(|flag| (*flag).to_owned()).collect()
}

pub(crate) fn as_flags(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

pub(crate) fn copied_ids(daemon: &Daemon) -> BTreeSet<u64> {
    daemon.timeline_dirs().iter().flat_map(|timeline| copied_entries(timeline).ids).collect()
}

/// Each file of a copy, by timeline and name.
pub(crate) fn tree(daemon: &Daemon) -> BTreeMap<PathBuf, Vec<u8>> {
    let folder = daemon.data_dir().join("default");
    let files = archive(daemon).into_iter();
    files.map(|(path, bytes)| (path.strip_prefix(&folder).unwrap().to_owned(), bytes)).collect()
}

/// Waits until both copies hold the same files with the same bytes on the same timelines.
#[track_caller]
pub(crate) fn wait_equal(first: &Daemon, second: &Daemon) {
    let mut names = (Vec::new(), Vec::new());
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let trees = (tree(first), tree(second));
        if trees.0 == trees.1 {
            assert!(!trees.0.is_empty());
            return;
        }
        let sizes = |tree: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<(PathBuf, usize)> {
            tree.iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect()
        };
        names = if std::time::Instant::now() < deadline { (sizes(&trees.0), sizes(&trees.1)) } else { names };
        assert!(std::time::Instant::now() < deadline, "{names:#?}\n{}\n{}", first.log(), second.log());
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn two_machines(name: &str) {
    let old = Server::start(name, &options(name, "--server-id=1"));
    let new = Server::start(name, &options(name, "--server-id=2"));
    make_account(&old);
    ledger::create_table(&old);
    replicate(&new, &old);
    wait_replicated(&new, &old);
    let hosts = format!("{},127.0.0.1:{}", account_url(&old), new.port());
    let mut first = Daemon::start_on(&hosts, &as_flags(&with(&DEMAND, "127.0.0.1:0")));
    let port = serve_port(&first);
    let first_flags = with(&DEMAND, &format!("127.0.0.1:{port}"));
    let second_flags = with(&[], "127.0.0.1:0");
    let behind = format!("mysql://repl:secret@127.0.0.1:{port}");
    let mut second = Daemon::start_on(&behind, &as_flags(&second_flags));
    second.wait_until(|source| source["semi_sync"]["active"] == true, PATIENCE);
    let semi_sync = SemiSync::enable(&old, TIMEOUT);
    semi_sync.wait_attached();
    let ledger =
        Ledger::start_in(&old, WRITERS, Manner { pause: Duration::from_millis(2), ..Manner::default() });
    ledger.wait_for(60);

    // The first one dies: whatever clients were told of is in the second.
    first.kill();
    let told = ledger.committed();
    wait_within(PATIENCE, "the second copy has all that clients were told of", || {
        told.is_subset(&copied_ids(&second))
    });
    first.restart(&as_flags(&first_flags));
    ledger.wait_for(120);

    // The second one dies: commits wait, and the first one says so. Nothing is acknowledged that it alone has.
    second.kill();
    let status = first.wait_until(|source| source["state"] == "waiting for replicas", PATIENCE);
    assert_eq!(
        (&status["ack_replicas"]["confirmed"], &status["ack_replicas"]["waiting"]),
        (&0.into(), &true.into())
    );
    let told = ledger.committed();
    let left = entries_left(&second.timeline_dir()).ids;
    assert!(told.is_subset(&left), "commits returned that only the first copy has");
    assert_eq!(ledger.committed(), told);
    second.restart(&as_flags(&second_flags));
    ledger.wait_for(180);
    first.wait_until(|source| source["state"] == "receiving", PATIENCE);
    assert_eq!(semi_sync.counters().no_tx, 0, "each commit was acknowledged");
    assert_eq!(first.source()["counters"]["acknowledged_alone"], 0);

    // A failover of the source: both follow.
    old.kill();
    let told = ledger.of_a_dead_server();
    assert!(told.is_subset(&copied_ids(&second)), "{}", second.log());
    promote(&new);
    let is_new = |source: &Value| {
        source["state"] == "receiving" && source["host"] == format!("127.0.0.1:{}", new.port())
    };
    first.wait_until(is_new, PATIENCE);
    let semi_sync = SemiSync::enable(&new, TIMEOUT);
    semi_sync.wait_attached();
    for id in 90_000_001..90_000_004 {
        new.sql(&format!(
            "INSERT INTO ledger.entry VALUES ({id}, CONCAT('ledger', '-{id}-')); FLUSH BINARY LOGS"
        ));
    }
    assert_eq!(semi_sync.counters().no_tx, 0, "acknowledged by both");
    first.wait_caught_up(&new);
    wait_equal(&first, &second);
    assert_eq!(second.timeline_dirs().len(), 2, "{}", second.log());
    assert!(told.is_subset(&copied_ids(&second)) && copied_ids(&second).contains(&90_000_003));
    let status = second.source();
    assert_eq!(status["host"], format!("127.0.0.1:{port}"));
    let readers = first.status()["serve"]["readers"].clone();
    let reader =
        readers.as_array().unwrap().iter().find(|reader| reader["semi_sync"] == true).unwrap().clone();
    assert_eq!(reader["confirmed"], first.source()["positions"]["durable"], "{readers:#}");
}

#[test]
fn mysql_9_7() {
    two_machines("mysql-9.7");
}

#[test]
fn mariadb_11_8() {
    two_machines("mariadb-11.8");
}

/// A real replica is the receiver: it acknowledges what its relay log has.
fn replica_confirms(name: &str) {
    let source = Server::start(name, &options(name, "--server-id=1"));
    let replica = Server::start(name, &options(name, "--server-id=2"));
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (k INT PRIMARY KEY)");
    let go_on = [&DEMAND[..], &["--ack-timeout-action", "go_on"]].concat();
    let daemon = Daemon::start_on(&account_url(&source), &as_flags(&with(&go_on, "127.0.0.1:0")));
    let port = serve_port(&daemon);
    let role = if replica.kind() == ServerKind::MariaDb { "slave" } else { "replica" };
    replica.sql(&format!("SET GLOBAL rpl_semi_sync_{role}_enabled = 1"));
    attach(&replica, port, By::Gtid, ("", 4));
    let status = || replica.sql(&format!("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_{role}_status'"));
    wait_within(PATIENCE, "semi-sync is on at the replica", || status().contains("ON"));
    wait_applied(&replica, || binlog_end(&source), &daemon);
    let semi_sync = SemiSync::enable(&source, TIMEOUT);
    semi_sync.wait_attached();
    daemon.wait_until_status(|status| status["serve"]["readers"][0]["semi_sync"] == true, PATIENCE);
    // From before the replica came, or from the first statement if it was not waited for since.
    source.sql("INSERT INTO d.t VALUES (0)");
    daemon.wait_until(|source| source["ack_replicas"]["alone"] == false, PATIENCE);
    let alone = daemon.source()["counters"]["acknowledged_alone"].clone();
    for k in 1..20 {
        source.sql(&format!("INSERT INTO d.t VALUES ({k})"));
    }
    source.sql("FLUSH BINARY LOGS; INSERT INTO d.t VALUES (20)");
    assert_eq!(semi_sync.counters().no_tx, 0);
    let shown = daemon.source();
    assert_eq!(
        (&shown["counters"]["acknowledged_alone"], &shown["ack_replicas"]["confirmed"]),
        (&alone, &1.into())
    );
    wait_applied(&replica, || binlog_end(&source), &daemon);
    assert_eq!(replica.sql("SELECT COUNT(*) FROM d.t").trim(), "21");

    // Without it, commits return after the time that the operator has set, and the status says so.
    replica.sql(if replica.kind() == ServerKind::MariaDb { "STOP SLAVE" } else { "STOP REPLICA" });
    source.sql("INSERT INTO d.t VALUES (21)");
    let shown = daemon.wait_until(|source| source["ack_replicas"]["alone"] == true, PATIENCE);
    assert!(shown["counters"]["acknowledged_alone"].as_u64() > alone.as_u64(), "{shown:#}");
    assert!(daemon.log().contains("acknowledging alone from now on: 0 of 1 receivers"), "{}", daemon.log());
}

#[test]
fn a_replica_of_mysql_9_7_confirms() {
    replica_confirms("mysql-9.7");
}

#[test]
fn a_replica_of_mariadb_11_8_confirms() {
    replica_confirms("mariadb-11.8");
}
