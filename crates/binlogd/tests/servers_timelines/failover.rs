//! The source dies or is taken out of service, its replica becomes the source, and binlogd follows: on real servers, and
//! with nothing lost that a client was told of.
//!
//! What an operator can expect of `hosts` is tested here too: a server that answers is not followed for that alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::archive::{
    archive, assert_files_equal, assert_kept, described, held_gtids, reason, source_lacks, transactions,
};
use crate::common::compare::binary_logs;
use crate::common::daemon::{Daemon, url};
use crate::common::forward::Forward;
use crate::common::ledger::{self, Ledger, copied_entries};
use crate::common::pair::{demote, gtid_executed, promote, replicate, wait_replicated};
use crate::common::semi_sync::SemiSync;
use crate::common::verbs::{binlogd, text};
use codec::ServerKind;
use codec::gtid::{GtidState, TransactionId};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);
/// From the promotion to the first byte of the new source. The machine may be busy; what it took is printed.
const FOLLOWS_MAX: Duration = Duration::from_secs(20);
/// Longer than a test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const TIMEOUT: Duration = Duration::from_secs(600);
const FLAGS: [&str; 6] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s"];
const WRITERS: usize = 4;
/// Commits under load before the source is killed.
const COMMITS: usize = 200;

/// The URL of a list of two hosts.
fn hosts(first: &Server, second: &Server) -> String {
    format!("{},127.0.0.1:{}", url(first), second.port())
}

fn is_receiving_from(source: &Value, server: &Server) -> bool {
    source["state"] == "receiving" && source["host"] == format!("127.0.0.1:{}", server.port())
}

/// Every numbered row that the copy holds, on whichever timeline.
fn copied_ids(daemon: &Daemon) -> BTreeSet<u64> {
    daemon.timeline_dirs().iter().flat_map(|timeline| copied_entries(timeline).ids).collect()
}

#[track_caller]
fn assert_nothing_told_is_lost(daemon: &Daemon, told: &BTreeSet<u64>) {
    let held = copied_ids(daemon);
    let lost: Vec<_> = told.difference(&held).collect();
    assert!(lost.is_empty(), "LOST, confirmed to clients and on no timeline: {lost:?}\n{}", daemon.log());
}

/// The copy holds the union of both servers' histories and nothing is missing in it: what the new source has executed, and
/// beyond that exactly what it was found to lack.
#[track_caller]
fn assert_union(daemon: &Daemon, new: &Server) {
    let kind = new.kind();
    let lacks = source_lacks(&daemon.timeline_dir(), kind);
    let expected = if lacks.is_empty() { "source-changed" } else { "fork" };
    assert_eq!(reason(&daemon.timeline_dir()), expected);
    if kind == ServerKind::MySql {
        let executed = GtidState::parse(kind, &gtid_executed(new)).unwrap();
        let held = held_gtids(daemon, kind);
        assert_eq!(executed.subtract(&held).to_line(), "", "the new source has what the copy lacks");
        assert_eq!(held.subtract(&executed), lacks, "what only the copy has, and what it said");
        println!("the promoted replica lacks {:?}", lacks.to_line());
    } else {
        assert_sequence_is_whole(daemon, new);
    }
}

/// MariaDB numbers the transactions of a domain through, whichever server writes them.
#[track_caller]
fn assert_sequence_is_whole(daemon: &Daemon, new: &Server) {
    let timelines = daemon.timeline_dirs();
    let ids = timelines.iter().flat_map(|timeline| transactions(timeline));
    let held: BTreeSet<u64> = ids
        .map(|id| match id {
            TransactionId::Mariadb(gtid) => gtid.sequence,
            TransactionId::Mysql(gtid) => panic!("{gtid} of a MariaDB"),
        })
        .collect();
    let position = new.sql("SELECT @@global.gtid_binlog_pos");
    let last: u64 = position.trim().rsplit('-').next().and_then(|number| number.parse().ok()).unwrap();
    let missing: Vec<u64> = (1..=last).filter(|number| !held.contains(number)).collect();
    assert!(missing.is_empty(), "of 1 to {last} the copy lacks {missing:?}");
}

fn follows_the_promoted_replica(name: &str, options: &[&str]) {
    let mut old = Server::start(name, options);
    let new = Server::start(name, options);
    ledger::create_table(&old);
    replicate(&new, &old);
    wait_replicated(&new, &old);
    let mut daemon = Daemon::start_on(&hosts(&old, &new), &FLAGS);
    let semi_sync = SemiSync::enable(&old, TIMEOUT);
    semi_sync.wait_attached();
    let ledger = Ledger::start(&old, WRITERS);
    ledger.wait_for(COMMITS);
    old.kill();
    let told = ledger.of_a_dead_server();
    assert_nothing_told_is_lost(&daemon, &told);
    let before = archive(&daemon);

    promote(&new);
    let promoted = Instant::now();
    daemon.wait_until(|source| is_receiving_from(source, &new), FOLLOWS_MAX);
    println!(
        "{name}: receiving {:?} after the promotion; {} commits were confirmed",
        promoted.elapsed(),
        told.len()
    );
    let semi_sync = SemiSync::enable(&new, TIMEOUT);
    semi_sync.wait_attached();
    new.sql("INSERT INTO ledger.entry VALUES (90000001, CONCAT('ledger', '-90000001-'))");
    assert_eq!(semi_sync.counters().no_tx, 0, "acknowledged by binlogd");
    daemon.wait_caught_up(&new);
    assert_eq!(daemon.timeline_dirs().len(), 2, "one failover, one timeline\n{}", daemon.log());
    assert_kept(&before, &daemon);
    assert_nothing_told_is_lost(&daemon, &told);
    assert!(copied_ids(&daemon).contains(&90_000_001));
    assert_union(&daemon, &new);

    what_the_old_source_says_does_not_count(&mut old, &new, &mut daemon);
}

/// The dead source is started again by itself and answers first in the list, but nobody else takes it for the source.
fn what_the_old_source_says_does_not_count(old: &mut Server, new: &Server, daemon: &mut Daemon) {
    old.restart(&[]);
    for (prepare, words) in [
        ("DO 1", "lacks transactions that the copy holds"),
        ("SET GLOBAL read_only = 1", "the server is read-only"),
    ] {
        old.sql(prepare);
        daemon.terminate();
        let logged = daemon.log().len();
        daemon.restart(&FLAGS);
        daemon.wait_until(|source| is_receiving_from(source, new), PATIENCE);
        assert!(daemon.log()[logged..].contains(words), "{words}\n{}", daemon.log());
        assert_eq!(daemon.timeline_dirs().len(), 2, "{}", daemon.log());
    }
    new.sql("INSERT INTO ledger.entry VALUES (90000002, CONCAT('ledger', '-90000002-'))");
    daemon.wait_caught_up(new);
}

#[test]
fn mysql_under_load() {
    follows_the_promoted_replica("mysql-9.7", &[]);
}

#[test]
fn mariadb_under_load() {
    follows_the_promoted_replica("mariadb-11.8", &["--log-slave-updates=1"]);
}

/// The promoted replica never received the last transactions, which clients were told of and binlogd has.
fn reports_what_the_promoted_replica_lacks(name: &str, options: &[&str], stop_receiver: &str) {
    let old = Server::start(name, options);
    let new = Server::start(name, options);
    ledger::create_table(&old);
    replicate(&new, &old);
    wait_replicated(&new, &old);
    let daemon = Daemon::start_on(&hosts(&old, &new), &FLAGS);
    daemon.wait_caught_up(&old);
    let common = held_gtids(&daemon, old.kind());
    new.sql(stop_receiver);
    for id in 1..=3 {
        old.sql(&format!("INSERT INTO ledger.entry VALUES ({id}, CONCAT('ledger', '-0000000{id}-'))"));
    }
    daemon.wait_caught_up(&old);
    let lost = held_gtids(&daemon, old.kind()).subtract(&common);
    let before = archive(&daemon);
    old.kill();
    promote(&new);
    new.sql("INSERT INTO ledger.entry VALUES (9, CONCAT('ledger', '-00000009-'))");
    daemon.wait_until(|source| is_receiving_from(source, &new), FOLLOWS_MAX);
    daemon.wait_caught_up(&new);
    assert_eq!(reason(&daemon.timeline_dir()), "fork");
    assert_eq!(source_lacks(&daemon.timeline_dir(), old.kind()), lost);
    let log = daemon.log();
    assert!(
        log.contains(&format!("the copy holds transactions that the source lacks: {}", lost.to_line())),
        "{log}"
    );
    assert_kept(&before, &daemon);
    assert_union(&daemon, &new);
    assert_eq!(copied_ids(&daemon), BTreeSet::from([1, 2, 3, 9]));
}

#[test]
fn what_a_promoted_mysql_lacks_is_kept_and_named() {
    reports_what_the_promoted_replica_lacks("mysql-9.7", &[], "STOP REPLICA IO_THREAD");
}

#[test]
fn what_a_promoted_mariadb_lacks_is_kept_and_named() {
    reports_what_the_promoted_replica_lacks(
        "mariadb-11.8",
        &["--log-slave-updates=1"],
        "STOP SLAVE IO_THREAD",
    );
}

/// Planned: the address moves from A to B while binlogd is down, and back to A while it runs. A still has its old files, and
/// goes on with their numbers.
fn there_and_back(name: &str, options: &[&str]) {
    let mut a = Server::start(name, options);
    let b = Server::start(name, options);
    a.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1); FLUSH BINARY LOGS");
    replicate(&b, &a);
    let forward = Forward::to(a.port());
    let address = format!("mysql://root@127.0.0.1:{}", forward.port());
    let mut daemon = Daemon::start_on(&address, &FLAGS);
    a.sql("INSERT INTO d.t VALUES (2)");
    daemon.wait_caught_up(&a);

    // While binlogd is down. Which server it followed is known from the disk.
    daemon.terminate();
    demote(&a);
    wait_replicated(&b, &a);
    a.stop();
    promote(&b);
    b.sql("INSERT INTO d.t VALUES (3); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (4)");
    let first = archive(&daemon);
    forward.move_to(b.port());
    daemon.restart(&FLAGS);
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    daemon.wait_caught_up(&b);
    assert_kept(&first, &daemon);

    // And back, under a running binlogd.
    a.restart(&[]);
    replicate(&a, &b);
    demote(&b);
    wait_replicated(&a, &b);
    promote(&a);
    let second = archive(&daemon);
    let moved = Instant::now();
    forward.move_to(a.port());
    daemon.wait_until(
        |source| daemon.timeline_dirs().len() == 3 && source["state"] == "receiving",
        FOLLOWS_MAX,
    );
    println!("{name}: receiving {:?} after the address had moved", moved.elapsed());
    a.sql("INSERT INTO d.t VALUES (5); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (6)");
    daemon.wait_caught_up(&a);
    assert_kept(&second, &daemon);

    let timelines = daemon.timeline_dirs();
    let identity = |timeline: &Path| described(timeline, "server_uuid");
    assert_eq!(timelines.len(), 3, "{}", daemon.log());
    assert_eq!(identity(&timelines[0]), identity(&timelines[2]));
    assert_ne!(identity(&timelines[0]), identity(&timelines[1]));
    assert!(timelines[2].file_name().unwrap().to_str().unwrap().starts_with("0003-"));
    assert_eq!(described(&timelines[2], "previous"), timelines[1].file_name().unwrap().to_str().unwrap());
    for timeline in &timelines[1..] {
        assert_eq!(reason(timeline), "source-changed");
    }
    for file in binary_logs(&a).iter().rev().skip(1).take(1) {
        assert_files_equal(&a, &timelines[2], file);
    }
    assert_union(&daemon, &a);
    twice_in_the_log_is_said(&daemon);
    // What stands on more than one timeline is the same transaction: none of a timeline is there twice.
    for timeline in &timelines {
        let ids = transactions(timeline);
        let distinct: BTreeSet<String> = ids.iter().map(ToString::to_string).collect();
        assert_eq!(ids.len(), distinct.len(), "{}", timeline.display());
    }
}

/// A transaction that was replicated stands in the log of two servers, and who searches is told.
fn twice_in_the_log_is_said(daemon: &Daemon) {
    let dir = daemon.data_dir();
    let find = |flags: &[&str]| {
        let output = binlogd(&[&["find", dir.to_str().unwrap(), "--limit", "0"], flags].concat());
        text(&output.stdout)
    };
    let answer: Value = serde_json::from_str(&find(&["--json"])).expect("JSON");
    let (mut first, mut again) = (BTreeMap::new(), 0);
    for one in answer["sources"][0]["transactions"].as_array().unwrap() {
        let Some(gtid) = one["gtid"].as_str() else { continue };
        let seen = *first.entry(gtid).or_insert(&one["timeline"]);
        let before = if *seen == one["timeline"] { &Value::Null } else { seen };
        assert_eq!(one["found_before"], *before, "{one:#}");
        again += usize::from(!before.is_null());
    }
    assert!(again > 0, "{answer:#}");
    assert_eq!(find(&[]).matches("its GTID stands above, on 000").count(), again);
}

#[test]
fn mysql_there_and_back() {
    there_and_back("mysql-9.7", &[]);
}

#[test]
fn mariadb_there_and_back() {
    there_and_back("mariadb-11.8", &["--log-slave-updates=1"]);
}

/// A planned switch-over where binlogd looks at no host: the old source goes on running as a replica, and takes binlogd along
/// until its dump is ended.
#[test]
fn a_demoted_source_is_left_when_its_dump_is_ended() {
    let a = Server::start("mysql-9.7", &[]);
    let b = Server::start("mysql-9.7", &[]);
    a.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)");
    replicate(&b, &a);
    let flags = [&FLAGS[..], &["--watch-interval", "0s"]].concat();
    let daemon = Daemon::start_on(&hosts(&a, &b), &flags);
    daemon.wait_caught_up(&a);
    demote(&a);
    wait_replicated(&b, &a);
    promote(&b);
    replicate(&a, &b);
    b.sql("INSERT INTO d.t VALUES (2)");
    wait_replicated(&a, &b);
    // Complete, but from a server that nobody's commit waits for.
    daemon.wait_caught_up(&a);
    assert!(is_receiving_from(&daemon.source(), &a));
    let processes = a.sql("SHOW PROCESSLIST");
    let dump = processes.lines().find(|line| line.contains("\tBinlog Dump\t")).expect("binlogd's dump");
    a.sql(&format!("KILL {}", dump.split('\t').next().unwrap()));
    let source = daemon.wait_until(|source| is_receiving_from(source, &b), FOLLOWS_MAX);
    assert!(daemon.log().contains("the server is read-only"), "{}\n{source:#}", daemon.log());
    daemon.wait_caught_up(&b);
    assert_eq!(daemon.timeline_dirs().len(), 2);
    assert_union(&daemon, &b);
}

/// The promoted replica has everything, but no longer in its binary logs.
fn what_the_successor_purged(name: &str, options: &[&str], words: &str) {
    let old = Server::start(name, options);
    let new = Server::start(name, options);
    old.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)");
    replicate(&new, &old);
    let mut daemon = Daemon::start_on(&hosts(&old, &new), &FLAGS);
    daemon.wait_caught_up(&old);
    daemon.terminate();
    let copied = held_gtids(&daemon, old.kind());
    let before = archive(&daemon);
    old.sql("INSERT INTO d.t VALUES (2); INSERT INTO d.t VALUES (3)");
    wait_replicated(&new, &old);
    let skipped = gtid_state(&old).subtract(&copied);
    old.kill();
    promote(&new);
    new.sql("FLUSH BINARY LOGS; INSERT INTO d.t VALUES (4)");
    purge_to_newest(&new);
    daemon.restart(&FLAGS);
    let source = daemon.wait_until(|source| source["state"] == "stopped", PATIENCE);
    let detail = source["state_detail"].as_str().unwrap();
    assert!(detail.contains("a gap") && detail.contains(words), "{detail}");
    assert_eq!((archive(&daemon), daemon.timeline_dirs().len()), (before.clone(), 1));

    daemon.terminate();
    daemon.restart(&[&FLAGS[..], &["--on-gap", "record"]].concat());
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    daemon.wait_caught_up(&new);
    assert_eq!(reason(&daemon.timeline_dir()), "gap");
    let missing = described(&daemon.timeline_dir(), "missing");
    assert_eq!(GtidState::parse(new.kind(), &missing).unwrap(), skipped);
    assert_kept(&before, &daemon);
}

fn gtid_state(server: &Server) -> GtidState {
    let text = match server.kind() {
        ServerKind::MySql => gtid_executed(server),
        ServerKind::MariaDb => server.sql("SELECT @@global.gtid_binlog_state").trim().to_owned(),
    };
    GtidState::parse(server.kind(), &text).unwrap()
}

#[track_caller]
fn purge_to_newest(server: &Server) {
    let newest = binary_logs(server).pop().expect("a binary log");
    let deadline = Instant::now() + PATIENCE;
    // MariaDB keeps a log that a crash recovery could need until a checkpoint, which an idle server has soon.
    while binary_logs(server).len() > 1 {
        assert!(Instant::now() < deadline, "{:?} are not purged", binary_logs(server));
        server.sql(&format!("PURGE BINARY LOGS TO '{newest}'"));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_a_mysql_successor_purged_is_a_gap() {
    what_the_successor_purged("mysql-9.7", &[], "what follows");
}

#[test]
fn what_a_mariadb_successor_purged_is_a_gap() {
    what_the_successor_purged("mariadb-11.8", &["--log-slave-updates=1"], "what follows");
}
