//! A lost semi-sync is seen within seconds: switched off at the source, or given up by it after its timeout. Status, metrics
//! and log tell it, and the packaged alert fires; the watch over the source disturbs nothing.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::alert::{Scrape, alert, fires};
use crate::common::daemon::Daemon;
use crate::common::semi_sync::SemiSync;
use crate::common::{Server, wait_within};

/// Longer than the test.
const NEVER: Duration = Duration::from_secs(600);
/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Commits that nobody is asked for.
const COMMITS: u64 = 50;

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).expect("a process id"), signal).expect("it runs");
}

fn insert(server: &Server, count: u64) {
    server.sql(&"INSERT INTO t.a VALUES ();".repeat(usize::try_from(count).expect("few")));
}

fn is_active(source: &Value) -> bool {
    source["semi_sync"]["active"] == true
}

/// How often the log says so.
fn said(daemon: &Daemon, text: &str) -> usize {
    daemon.log().lines().filter(|line| line.contains(text)).count()
}

fn scrape(daemon: &Daemon) -> Scrape {
    Scrape::of(&daemon.admin_address())
}

fn prepared(name: &str) -> Server {
    let server = Server::start(name, &[]);
    server.sql("CREATE DATABASE t; CREATE TABLE t.a (id INT AUTO_INCREMENT PRIMARY KEY)");
    server
}

/// Switches semi-sync at the source, and waits until the status says so.
#[track_caller]
fn switch(server: &Server, semi_sync: &SemiSync, daemon: &Daemon, on: bool) {
    semi_sync.set_enabled(on);
    let began = Instant::now();
    daemon.wait_until(|source| is_active(source) == on, PATIENCE);
    println!("{}: semi-sync switched to {on}, seen after {:?}", server.name(), began.elapsed());
}

fn switched_off_at_the_source(server: &Server, semi_sync: &SemiSync, daemon: &Daemon, alert: &str) {
    let before = scrape(daemon);
    assert!(!fires(alert, &before, &before));
    assert_eq!(before.value("binlogd_source_semi_sync_status"), Some(1.0));
    switch(server, semi_sync, daemon, false);
    insert(server, COMMITS);
    // The last one of them is told, and becomes durable, in either order.
    let last_is_durable = |source: &Value| {
        let last = source["unasked_transactions"]["last_gtid"].as_str().expect("a GTID");
        let number = last.rsplit([':', '-']).next().expect("a number");
        source["gtid"]["durable"].as_str().expect("a set").ends_with(&format!("-{number}"))
    };
    let source = daemon.wait_until(
        |source| source["unasked_transactions"]["transactions"] == COMMITS && last_is_durable(source),
        PATIENCE,
    );
    let unasked = &source["unasked_transactions"];
    assert!(unasked["since"].is_string() && unasked["until"].is_null(), "{source:#}");
    assert_eq!(source["counters"]["unasked_transactions"], COMMITS);
    assert!(source["semi_sync"]["reason"].as_str().unwrap().contains("switched off on the source"));
    assert_eq!(source["semi_sync_source"]["enabled"], false, "{source:#}");
    let now = scrape(daemon);
    assert!(fires(alert, &before, &now), "{alert}");
    assert_eq!(now.value("binlogd_unasked_transactions_total"), Some(COMMITS as f64));
    assert_eq!(said(daemon, "semi-sync is not active any more: negotiated, but switched off"), 1);

    assert_eq!(said(daemon, "semi-sync is active"), 1);
    switch(server, semi_sync, daemon, true);
    insert(server, 1);
    let source = daemon.wait_until(|source| !source["unasked_transactions"]["until"].is_null(), PATIENCE);
    assert_eq!(source["unasked_transactions"]["transactions"], COMMITS, "{source:#}");
    assert_eq!((said(daemon, "semi-sync is active"), said(daemon, "semi-sync is not active")), (2, 1));
}

fn given_up_after_the_timeout(server: &Server, semi_sync: &SemiSync, daemon: &Daemon, alert: &str) {
    let counted = semi_sync.counters().no_tx;
    let before = scrape(daemon);
    assert_eq!(before.value("binlogd_source_semi_sync_no_tx_total"), Some(0.0));
    semi_sync.set_timeout(Duration::from_secs(1));
    signal(daemon.pid(), Signal::STOP);
    insert(server, COMMITS);
    let lost = semi_sync.wait_until(|counters| !counters.on).no_tx - counted;
    assert!(lost > 0);
    signal(daemon.pid(), Signal::CONT);
    semi_sync.set_timeout(NEVER);
    // The source waits again as soon as it knows that the copy has everything.
    daemon.wait_caught_up(server);
    insert(server, 1);
    let lost = lost.max(semi_sync.wait_until(|counters| counters.on).no_tx - counted);
    let told = |source: &Value| source["unacknowledged_commits"]["commits"] == lost;
    let source = daemon.wait_until(|source| told(source) && is_active(source), PATIENCE);
    assert!(source["unacknowledged_commits"]["since"].is_string(), "{source:#}");
    daemon.wait_until(|source| source["unacknowledged_commits"]["until"].is_string(), PATIENCE);
    println!("{}: {lost} commits without an acknowledgement are told", server.name());
    let now = scrape(daemon);
    assert!(fires(alert, &before, &now), "{alert}");
    assert_eq!(now.value("binlogd_source_semi_sync_no_tx_total"), Some(lost as f64));
    assert!(said(daemon, "the source told clients that commits were made") >= 1, "{}", daemon.log());
}

/// With the watch switched off the stream tells what it can, and there is no second connection.
fn without_the_watch(server: &Server, semi_sync: &SemiSync, daemon: &mut Daemon) {
    daemon.terminate();
    daemon.restart(&["--watch-interval=0s"]);
    semi_sync.wait_attached();
    insert(server, 1);
    daemon.wait_until(is_active, PATIENCE);
    // The client that inserted may not be out of the list yet; a watch would stay in it.
    wait_within(PATIENCE, "the dump is the only connection", || connections(server) == 1);
    assert_eq!(scrape(daemon).value("binlogd_source_watched"), Some(0.0));
    semi_sync.set_enabled(false);
    insert(server, 3);
    daemon.wait_until(|source| !is_active(source), PATIENCE);
    daemon.wait_until(|source| source["unasked_transactions"]["transactions"] == 3, PATIENCE);
    semi_sync.set_enabled(true);
    insert(server, 1);
    daemon.wait_until(is_active, PATIENCE);
}

/// Connections to the server, apart from the one that asks.
fn connections(server: &Server) -> usize {
    let rows = server.sql("SELECT command FROM information_schema.processlist WHERE user = 'root'");
    rows.lines().count() - 1
}

/// The connection of the watch, which may be asking just now, and beside which a client may be about to end.
fn watch_connection(server: &Server) -> String {
    let list = "SELECT id FROM information_schema.processlist WHERE user = 'root' \
                AND command NOT LIKE 'Binlog Dump%' AND id <> CONNECTION_ID()";
    let mut ids = String::new();
    wait_within(PATIENCE, "the watch is the only other connection", || {
        ids = server.sql(list);
        ids.lines().count() == 1
    });
    ids.trim().to_owned()
}

/// Its connection is killed; the server hangs; receiving does not notice, and the process ends all the same.
fn the_watch_disturbs_nothing(server: &Server, daemon: &mut Daemon) {
    let reconnects = daemon.source()["counters"]["reconnects"].clone();
    let looked_at = || daemon.source()["semi_sync_source"]["at"].as_str().map(str::to_owned);
    let id = watch_connection(server);
    server.sql(&format!("KILL {id}"));
    let before = looked_at();
    daemon.wait_until(|source| source["semi_sync_source"]["at"].as_str() != before.as_deref(), PATIENCE);
    let pid = server.env("PID").parse().expect("a process id");
    signal(pid, Signal::STOP);
    // Long enough for a look that waits in vain.
    std::thread::sleep(Duration::from_secs(3));
    let source = daemon.source();
    assert_eq!((&source["state"], &source["counters"]["reconnects"]), (&"receiving".into(), &reconnects));
    let began = Instant::now();
    daemon.terminate();
    let took = began.elapsed();
    signal(pid, Signal::CONT);
    println!("{}: ended after {took:?} beside a server that hangs", server.name());
}

fn is_seen(name: &str) {
    let server = prepared(name);
    let semi_sync = SemiSync::enable(&server, NEVER);
    let mut daemon = Daemon::start(&server, &[]);
    semi_sync.wait_attached();
    insert(&server, 3);
    daemon.wait_until(|source| is_active(source) && source["semi_sync_source"]["on"] == true, PATIENCE);
    switched_off_at_the_source(&server, &semi_sync, &daemon, &alert("BinlogdSemiSyncOff"));
    given_up_after_the_timeout(&server, &semi_sync, &daemon, &alert("BinlogdUnacknowledgedCommits"));
    without_the_watch(&server, &semi_sync, &mut daemon);
    daemon.terminate();
    daemon.restart(&[]);
    semi_sync.wait_attached();
    daemon.wait_until(|source| source["semi_sync_source"]["on"] == true, PATIENCE);
    the_watch_disturbs_nothing(&server, &mut daemon);
}

#[test]
fn a_lost_semi_sync_of_mysql_is_seen() {
    is_seen("mysql-9.7");
}

#[test]
fn a_lost_semi_sync_of_mariadb_is_seen() {
    is_seen("mariadb-11.8");
}

/// What the source told its clients while binlogd was not there is told at the first look afterwards.
fn while_binlogd_was_away(name: &str) {
    let mut server = prepared(name);
    let mut daemon = {
        let semi_sync = SemiSync::enable(&server, Duration::from_secs(1));
        let daemon = Daemon::start(&server, &[]);
        semi_sync.wait_attached();
        insert(&server, 3);
        daemon.wait_until(|source| is_active(source) && source["semi_sync_source"]["on"] == true, PATIENCE);
        daemon
    };
    let told = |daemon: &Daemon, lost: u64| {
        let source = daemon.wait_until(
            |source| is_active(source) && source["unacknowledged_commits"]["until"].is_string(),
            PATIENCE,
        );
        let commits = &source["unacknowledged_commits"];
        assert_eq!((&commits["commits"], &commits["while_away"]), (&lost.into(), &lost.into()), "{source:#}");
        assert!(commits["since"].is_string(), "{source:#}");
        let metrics = scrape(daemon);
        assert_eq!(metrics.value("binlogd_source_semi_sync_no_tx_total"), Some(lost as f64));
        assert_eq!(metrics.value("binlogd_source_semi_sync_no_tx_while_away"), Some(lost as f64));
        said(daemon, "while binlogd was away")
    };
    let before = scrape(&daemon);
    assert_eq!(
        before.value("binlogd_source_semi_sync_no_tx_while_away"),
        None,
        "it has never been there before"
    );
    let counted = SemiSync::of(&server).counters().no_tx;
    daemon.terminate();
    insert(&server, COMMITS);
    let lost = SemiSync::of(&server).counters().no_tx - counted;
    assert!(lost > 0);
    daemon.restart(&[]);
    assert_eq!(told(&daemon, lost), 1, "{}", daemon.log());
    assert!(fires(&alert("BinlogdUnacknowledgedWhileAway"), &before, &scrape(&daemon)));

    // Killed, and nothing went without.
    daemon.kill();
    daemon.restart(&[]);
    daemon.wait_until(|source| source["unacknowledged_commits"]["while_away"] == 0, PATIENCE);
    assert_eq!(said(&daemon, "while binlogd was away"), 1, "{}", daemon.log());

    // The source restarts meanwhile, and counts further than it had.
    daemon.kill();
    let role = if name.starts_with("mysql") { "source" } else { "master" };
    server.stop();
    server.restart(&[
        &format!("--rpl-semi-sync-{role}-enabled=1"),
        &format!("--rpl-semi-sync-{role}-timeout=1000"),
    ]);
    insert(&server, lost + COMMITS);
    let lost = SemiSync::of(&server).counters().no_tx;
    daemon.restart(&[]);
    assert_eq!(told(&daemon, lost), 2, "{}", daemon.log());
    daemon.wait_log("its counter began anew", PATIENCE);
}

#[test]
fn what_went_unacknowledged_while_binlogd_was_away_is_told_mysql() {
    while_binlogd_was_away("mysql-9.7");
}

#[test]
fn what_went_unacknowledged_while_binlogd_was_away_is_told_mariadb() {
    while_binlogd_was_away("mariadb-11.8");
}
