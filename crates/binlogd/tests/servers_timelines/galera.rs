//! Galera of MariaDB: three nodes, all of them `hosts` of one source. Each node writes a binary log of its own, with other files, and
//! may be written to. binlogd reads from one, goes to another when that one dies, loses the cluster or is shut down, and has each
//! transaction once; where the nodes give other GTIDs to the same transactions, it says so and copies nothing.
//!
//! Semi-sync works on the node that binlogd reads from, beside the cluster's own agreement: its clients wait for binlogd, and so does
//! its applier with what other nodes committed. Clients of the others are told without.

use crate::common::daemon::Daemon;
use crate::common::doctor::{doctor, line};
use crate::common::ledger::{self, Ledger};
use crate::common::nodes::nobody;
use crate::common::readers::{By, SERVE, account_url, attach, make_account, serve_port};
use crate::common::semi_sync::SemiSync;
use crate::common::verbs::{binlogd, text, verifies};
use crate::common::{Server, wait_within};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// A node that is silent is given up after 3 s here; the state of another comes in seconds.
const PATIENCE: Duration = Duration::from_secs(90);
/// Longer than a test: a commit that nobody acknowledges hangs.
const NEVER: Duration = Duration::from_secs(600);
const COMMITS: usize = 50;
const FLAGS: [&str; 6] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s"];
/// Of the cluster: with `wsrep_gtid_mode = ON` every node gives this domain to what all of them have.
const DOMAIN: &str = "9";

struct Cluster {
    nodes: Vec<Server>,
    /// Where the nodes find each other.
    addresses: Vec<String>,
    more: Vec<&'static str>,
}

impl Cluster {
    /// The first node begins it, the others get its state.
    fn start(nodes: usize, more: &[&'static str]) -> Cluster {
        let addresses: Vec<String> = (0..nodes).map(|_| nobody().to_string()).collect();
        let mut cluster = Cluster { nodes: Vec::new(), addresses, more: more.to_vec() };
        for node in 0..nodes {
            let options = cluster.options(node, node == 0);
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            cluster.nodes.push(Server::start("mariadb-10.11", &options));
            cluster.wait_synced(node);
        }
        make_account(&cluster.nodes[0]);
        ledger::create_table(&cluster.nodes[0]);
        cluster
    }

    fn options(&self, node: usize, begins: bool) -> Vec<String> {
        let address = &self.addresses[node];
        let others = if begins { String::new() } else { self.addresses.join(",") };
        let mut options = vec![
            "--wsrep-on=ON".to_owned(),
            format!("--wsrep-cluster-address=gcomm://{others}"),
            format!("--wsrep-node-address={address}"),
            format!(
                "--wsrep-provider-options=gmcast.listen_addr=tcp://{address};ist.recv_addr={};gcache.size=16M;\
                 evs.suspect_timeout=PT3S",
                nobody()
            ),
            format!("--wsrep-sst-receive-address={}", nobody()),
            // A node that is cut off answers such sessions as if it were not, or keeps them waiting.
            "--wsrep-dirty-reads=ON".to_owned(),
            "--wsrep-sync-wait=1".to_owned(),
            "--rpl-semi-sync-master-wait-point=AFTER_SYNC".to_owned(),
            "--rpl-semi-sync-master-wait-no-slave=OFF".to_owned(),
        ];
        if self.more.contains(&"--wsrep-gtid-mode=ON") {
            options.push(format!("--gtid-domain-id={}", 100 + node));
            options.push(format!("--wsrep-gtid-domain-id={DOMAIN}"));
        }
        options.extend(self.more.iter().map(|&option| option.to_owned()));
        options
    }

    /// A node that was down: it gets what it lacks from the others, or, where it died, all of their state.
    fn join(&mut self, node: usize, more: &[&str]) {
        let options = self.options(node, false);
        let options: Vec<&str> = options.iter().map(String::as_str).chain(more.iter().copied()).collect();
        self.nodes[node].restart(&options);
        self.wait_synced(node);
    }

    fn wait_synced(&self, node: usize) {
        wait_within(PATIENCE, "it is a node", || {
            self.nodes[node].sql("SHOW STATUS LIKE 'wsrep_local_state_comment'").contains("Synced")
        });
    }

    fn urls(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(host).collect();
        format!("mysql://repl:secret@{}", hosts.join(","))
    }
}

fn host(node: &Server) -> String {
    format!("127.0.0.1:{}", node.port())
}

/// Waits until it reads from another node than that one, which waits for it; gives its number.
fn wait_elsewhere(daemon: &Daemon, cluster: &Cluster, than: usize) -> usize {
    let old = host(&cluster.nodes[than]);
    let is_elsewhere = |source: &Value| {
        source["state"] == "receiving" && source["host"] != *old && source["semi_sync"]["active"] == true
    };
    let status = daemon.wait_until(is_elsewhere, PATIENCE);
    cluster.nodes.iter().position(|node| status["host"] == *host(node)).expect("one of the hosts")
}

/// A commit on that node when all three can take it, with a row of its own. The copy has it.
fn commit(daemon: &Daemon, cluster: &Cluster, told: &mut BTreeSet<u64>, on: usize, reads_from: usize) {
    let id = 90_000_000 + told.len() as u64;
    wait_within(PATIENCE, "the cluster goes on", || {
        cluster.nodes[on].sql("SHOW STATUS LIKE 'wsrep_ready'").contains("ON")
    });
    cluster.nodes[on].sql(&format!("INSERT INTO ledger.entry VALUES ({id}, 'one')"));
    told.insert(id);
    let has = format!("SELECT COUNT(*) FROM ledger.entry WHERE id = {id}");
    wait_within(PATIENCE, "it has come", || cluster.nodes[reads_from].sql(&has).trim() == "1");
    daemon.wait_caught_up(&cluster.nodes[reads_from]);
    nothing_told_is_lost(daemon, &cluster.nodes[reads_from], told);
}

/// Everything that a client was told of is on the node, and in the copy.
#[track_caller]
fn nothing_told_is_lost(daemon: &Daemon, node: &Server, told: &BTreeSet<u64>) {
    let rows = node.sql("SELECT id FROM ledger.entry");
    let has: BTreeSet<u64> = rows.lines().filter_map(|id| id.trim().parse().ok()).collect();
    let lost: Vec<_> = told.difference(&has).collect();
    assert!(lost.is_empty(), "told to clients, and not on the node: {lost:?}");
    let written = node.sql("SELECT @@global.gtid_binlog_state");
    assert_eq!(daemon.source()["gtid"]["durable"], *written.trim(), "{}", daemon.log());
}

#[test]
fn every_node_has_one_history_with_wsrep_gtid_mode_on() {
    let mut cluster = Cluster::start(3, &["--log-slave-updates=ON", "--wsrep-gtid-mode=ON"]);
    let daemon = Daemon::start_on(&cluster.urls(), &[&FLAGS[..], &SERVE].concat());
    let replica = Server::start("mariadb-10.11", &[]);
    attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
    for node in &cluster.nodes {
        SemiSync::enable(node, NEVER);
    }
    daemon.wait_until(|source| source["semi_sync"]["active"] == true, PATIENCE);
    assert_eq!(daemon.source()["host"], *host(&cluster.nodes[0]));

    // Clients of another node are told without binlogd; the applier of this one waits for it.
    let mut told = BTreeSet::from([80_000_000]);
    daemon.signal(Signal::STOP);
    cluster.nodes[1].sql("INSERT INTO ledger.entry VALUES (80000000, 'elsewhere')");
    wait_within(PATIENCE, "it waits", || cluster.nodes[0].sql("SHOW PROCESSLIST").contains("semi-sync ACK"));
    assert_eq!(cluster.nodes[0].sql("SELECT COUNT(*) FROM ledger.entry").trim(), "0");
    daemon.signal(Signal::CONT);

    // The node that it reads from dies under load.
    let ledger = Ledger::start(&cluster.nodes[0], 4);
    ledger.wait_for(COMMITS);
    let counters = SemiSync::of(&cluster.nodes[0]).counters();
    assert!(counters.on && counters.yes_tx as usize >= COMMITS && counters.no_tx == 0, "{counters:?}");
    cluster.nodes[0].kill();
    told.extend(ledger.of_a_dead_server());
    let second = wait_elsewhere(&daemon, &cluster, 0);
    commit(&daemon, &cluster, &mut told, second, second);

    // It comes back with the state and the newest log of another. The files of no two nodes are the same.
    cluster.join(0, &[]);
    assert!(log_says(&cluster.nodes[0], "SST succeeded"), "its state was sent");
    SemiSync::enable(&cluster.nodes[0], NEVER);
    for node in [0, 2, 1, 2] {
        cluster.nodes[node].sql("FLUSH BINARY LOGS");
        commit(&daemon, &cluster, &mut told, node, second);
    }

    // Cut off from the cluster, a node goes on sending what it has, and takes nothing any more.
    cluster.nodes[second].sql("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'");
    let third = wait_elsewhere(&daemon, &cluster, second);
    commit(&daemon, &cluster, &mut told, third, third);
    cluster.nodes[second].sql("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'");
    cluster.wait_synced(second);

    // Shut down as planned, and back with what it lacks.
    cluster.nodes[third].stop();
    let fourth = wait_elsewhere(&daemon, &cluster, third);
    commit(&daemon, &cluster, &mut told, second, fourth);
    cluster.join(third, &[]);
    assert!(log_says(&cluster.nodes[third], "IST received"), "what it lacked was sent");
    commit(&daemon, &cluster, &mut told, third, fourth);

    each_once(&daemon);
    verifies(&daemon.data_dir());
    let end = cluster.nodes[fourth].sql("SELECT @@global.gtid_binlog_pos");
    let wait = format!("SELECT MASTER_GTID_WAIT('{}', 60)", end.trim());
    assert_eq!(replica.sql(&wait).trim(), "0", "{}", replica.sql("SHOW SLAVE STATUS"));
    let sum = "CHECKSUM TABLE ledger.entry";
    let sums: BTreeSet<String> =
        cluster.nodes.iter().chain([&replica]).map(|server| server.sql(sum)).collect();
    assert_eq!(sums.len(), 1, "{sums:?}");
}

fn log_says(node: &Server, words: &str) -> bool {
    std::fs::read_to_string(node.dir().join("error.log")).expect("its log").contains(words)
}

/// What several nodes wrote into their logs is said to be the same, and nothing lies on a fork.
fn each_once(daemon: &Daemon) {
    let output = binlogd(&["find", daemon.data_dir().to_str().expect("a path"), "--limit", "0", "--json"]);
    let answer: Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
    let (mut firsts, mut again) = (BTreeSet::new(), 0);
    for one in answer["sources"][0]["transactions"].as_array().expect("a list") {
        let gtid = one["gtid"].as_str().expect("a GTID");
        let (domain, number) = (gtid.split('-').next(), gtid.rsplit('-').next());
        assert_eq!(domain, Some(DOMAIN), "{one:#}");
        match one["found_before"].is_null() {
            true => assert!(firsts.insert(number.unwrap().parse::<u64>().unwrap()), "twice: {one:#}"),
            false => again += 1,
        }
    }
    assert!(firsts.len() > COMMITS && again > 0, "{} and {again}", firsts.len());
    let last = *firsts.last().unwrap();
    assert!((1..=last).all(|number| firsts.contains(&number)), "a gap below {last}");
    let (code, said) = crate::common::fork_scene::forks(daemon, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("no fork took anything from it"), "{said}");
}

#[test]
fn nodes_whose_logs_are_no_history_are_refused_by_name() {
    let mut cluster = Cluster::start(2, &["--log-slave-updates=ON", "--wsrep-gtid-mode=OFF"]);
    // One write that Galera does not replicate, and the same transaction has two GTIDs.
    let [first, second] = &cluster.nodes[..] else { unreachable!("two") };
    first.sql("CREATE TABLE ledger.local (id INT) ENGINE = MyISAM; INSERT INTO ledger.local VALUES (1)");
    first.sql("INSERT INTO ledger.entry VALUES (1, 'everywhere')");
    wait_within(PATIENCE, "it has come", || second.sql("SELECT COUNT(*) FROM ledger.entry").trim() == "1");
    let pos = |node: &Server| node.sql("SELECT @@global.gtid_binlog_pos").trim().to_owned();
    assert_ne!(pos(first), pos(second), "each numbers for itself");

    let refused = |url: &str, words: &str| {
        let daemon = Daemon::start_on(url, &FLAGS);
        let is_said =
            |source: &Value| source["last_error"]["message"].as_str().is_some_and(|it| it.contains(words));
        let status = daemon.wait_until(is_said, PATIENCE);
        assert!(daemon.timeline_dirs().is_empty(), "nothing is copied: {status:#}");
        doctor(url, &daemon.data_dir(), &[])
    };
    let (code, said) = refused(&cluster.urls(), "wsrep_gtid_mode = OFF, and `hosts` names several");
    line(&said, "error", "wsrep_gtid_mode: OFF");
    assert_eq!(code, 1, "{said}");

    // Alone it is a source like any other.
    let alone = Daemon::start_on(&account_url(first), &FLAGS);
    alone.wait_caught_up(first);
    let (_, said) = doctor(&account_url(first), &alone.data_dir(), &[]);
    line(&said, "warning", "wsrep_gtid_mode: OFF");
    assert!(!said.contains("SET GLOBAL wsrep"), "no statement does it: {said}");

    // Switched on, in the domain that each node uses for itself: GTIDs are given twice.
    let switch = |value| {
        for node in [first, second] {
            node.sql(&format!("SET GLOBAL wsrep_gtid_mode = {value}"));
        }
    };
    switch("ON");
    let (code, said) = refused(&cluster.urls(), "wsrep_gtid_domain_id is its gtid_domain_id too (0)");
    line(&said, "error", "wsrep_gtid_domain_id: 0");
    assert_eq!(code, 1, "{said}");
    let (_, said) = doctor(&account_url(first), &alone.data_dir(), &[]);
    line(&said, "warning", "wsrep_gtid_domain_id: 0");
    switch("OFF");

    // And what the others wrote is missing where the applier does not log.
    cluster.nodes[1].stop();
    cluster.join(1, &["--log-slave-updates=OFF"]);
    let (code, said) = refused(&account_url(&cluster.nodes[1]), "with log_slave_updates = OFF");
    line(&said, "error", "log_slave_updates: OFF");
    assert_eq!(code, 1, "{said}");
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("binlogd.toml");
    let url = format!("mysql://root@{}", host(&cluster.nodes[1]));
    let output = binlogd(&["setup", &url, "--config", config.to_str().expect("a path")]);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(!output.status.success() && said.contains("with log_slave_updates = OFF"), "{said}");
}
