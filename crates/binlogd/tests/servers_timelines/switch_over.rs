//! Planned switch-overs with all hosts in the list: nothing breaks, so binlogd sees by itself that another host is the source, before
//! the commits there have waited for long. And what only looks like one.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

use crate::common::Server;
use crate::common::daemon::{Daemon, url};
use crate::common::ledger::copied_entries;
use crate::common::pair::{demote, wait_replicated};
use crate::common::readers::serve_port;
use crate::common::semi_sync::SemiSync;
use crate::common::switching::{Clients, TIMEOUT, become_source, in_words, rounds, servers, switch_over};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 6] = ["--heartbeat-period", "1s", "--net-read-timeout", "10s", "--backoff-max", "1s"];

fn list(servers: &[Server]) -> String {
    let others = servers[1..].iter().map(|server| format!(",127.0.0.1:{}", server.port()));
    format!("{}{}", url(&servers[0]), others.collect::<String>())
}

fn copied_ids(daemon: &Daemon) -> BTreeSet<u64> {
    daemon.timeline_dirs().iter().flat_map(|timeline| copied_entries(timeline).ids).collect()
}

#[track_caller]
fn assert_holds(daemon: &Daemon, told: &BTreeSet<u64>) {
    let held = copied_ids(daemon);
    let lost: Vec<_> = told.difference(&held).collect();
    assert!(lost.is_empty(), "LOST, confirmed to clients and on no timeline: {lost:?}\n{}", daemon.log());
}

fn follows(name: &str, count: usize, usual: usize) {
    let servers = servers(name, count);
    // Another host takes connections and says nothing: nobody waits for that one.
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let daemon = Daemon::start_on(&format!("{},{}", list(&servers), hung.local_addr().unwrap()), &FLAGS);
    SemiSync::enable(&servers[0], TIMEOUT).wait_attached();
    let clients = Clients::start(&servers);
    let (mut source, mut took) = (0, Vec::new());
    for _ in 0..rounds(usual) {
        let next = (source + 1) % count;
        took.push(switch_over(&servers, source, next, &clients));
        println!("{name}: {:?}", took.last());
        source = next;
    }
    println!("{name}, {count} hosts: {}", in_words(&took));
    let told = clients.finish();
    daemon.wait_caught_up(&servers[source]);
    assert_holds(&daemon, &told);
    assert_eq!(daemon.timeline_dirs().len(), took.len() + 1, "one timeline each\n{}", daemon.log());
    assert!(
        daemon.source()["hosts_in_doubt"].is_null() && !daemon.log().contains("which host is the source?")
    );
    if count == 2 {
        back_within_a_second(&servers[source], &servers[1 - source]);
        what_only_looks_like_one(&servers[source], &servers[1 - source], &daemon);
    }
}

fn strs(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

/// Two binlogds of the source that name each other, and a third one that both name does not answer: nobody is waited for in vain.
fn follows_beside_peers(name: &str) {
    let servers = servers(name, 2);
    servers[0].sql("CREATE USER repl@'%' IDENTIFIED BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'");
    wait_replicated(&servers[1], &servers[0]);
    let hosts =
        format!("mysql://repl:secret@127.0.0.1:{},127.0.0.1:{}", servers[0].port(), servers[1].port());
    // It takes connections and says nothing.
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let hung = hung.local_addr().unwrap();
    let flags = |serve: u16, peers: String| {
        let flags =
            ["--serve-auto-generate-certs=false".to_owned(), format!("--serve=127.0.0.1:{serve}"), peers];
        FLAGS.iter().map(|flag| (*flag).to_owned()).chain(flags).collect::<Vec<_>>()
    };
    let mut first = Daemon::start_on(&hosts, &strs(&flags(0, format!("--peers={hung}"))));
    let port = serve_port(&first);
    let second = Daemon::start_on(&hosts, &strs(&flags(0, format!("--peers=127.0.0.1:{port},{hung}"))));
    first.terminate();
    first.restart(&strs(&flags(port, format!("--peers=127.0.0.1:{},{hung}", serve_port(&second)))));
    let daemons = [first, second];
    SemiSync::enable(&servers[0], TIMEOUT).wait_until(|counters| counters.on && counters.clients == 2);
    let clients = Clients::start(&servers);
    let (mut source, mut took) = (0, Vec::new());
    for _ in 0..rounds(2) {
        took.push(switch_over(&servers, source, 1 - source, &clients));
        source = 1 - source;
    }
    println!("{name}, peers: {}", in_words(&took));
    let told = clients.finish();
    for daemon in &daemons {
        daemon.wait_caught_up(&servers[source]);
        assert_holds(daemon, &told);
    }
}

/// What the session is, so that another one is told from it.
fn session(source: &Value) -> (Value, Value) {
    (source["host"].clone(), source["connected_since"].clone())
}

/// The switch-over is taken back at once: whether binlogd has gone along or not, commits do not wait for long.
fn back_within_a_second(source: &Server, replica: &Server) {
    let semi_sync = SemiSync::of(source);
    let acknowledged = semi_sync.counters().yes_tx;
    demote(source);
    become_source(replica);
    demote(replica);
    become_source(source);
    source.sql("INSERT INTO ledger.entry VALUES (90000001, '')");
    let counters = semi_sync.wait_until(|counters| counters.yes_tx > acknowledged);
    assert!(counters.on && counters.no_tx == 0, "{counters:?}");
}

/// A replica that was left writable, and a source that is read-only for a while: both have everything.
fn what_only_looks_like_one(source: &Server, replica: &Server, daemon: &Daemon) {
    let before = session(&daemon.source());
    demote(source);
    become_source(source);
    become_source(replica);
    let port = replica.port();
    let doubt = |words: &'static str| {
        let doubted = daemon.wait_until(|source| text(source).contains(words), PATIENCE);
        assert!(text(&doubted).contains(&format!(":{port}")), "{}", text(&doubted));
        assert!(doubted["verdict"]["problems"].to_string().contains("hosts_in_doubt"), "{doubted:#}");
    };
    doubt("the source, and to");
    demote(source);
    doubt("but they could before");
    become_source(source);
    doubt("the source, and to");
    demote(replica);
    daemon.wait_until(|source| source["hosts_in_doubt"].is_null(), PATIENCE);
    assert!(daemon.log().contains("no doubt any more"), "{}", daemon.log());
    assert_eq!(session(&daemon.source()), before, "{}", daemon.log());
}

fn text(source: &Value) -> String {
    source["hosts_in_doubt"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn to_and_fro_between_two_mysql_9_7() {
    follows("mysql-9.7", 2, 4);
}

#[test]
fn to_and_fro_between_two_mariadb_11_8() {
    follows("mariadb-11.8", 2, 4);
}

#[test]
fn round_three_mysql_9_7() {
    follows("mysql-9.7", 3, 3);
}

#[test]
fn round_three_mariadb_11_8() {
    follows("mariadb-11.8", 3, 3);
}

#[test]
fn beside_peers_mysql_9_7() {
    follows_beside_peers("mysql-9.7");
}

#[test]
fn beside_peers_mariadb_11_8() {
    follows_beside_peers("mariadb-11.8");
}
