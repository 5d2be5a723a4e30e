//! Semi-sync under load: the source never falls back, and its counters and ours tell the same story.
//!
//! The timeout is longer than the test, so that a commit whose acknowledgement is lost would hang it, and not pass as one
//! that the source gave up waiting for.

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::common::Server;
use crate::common::daemon::{Daemon, binlog_end};
use crate::common::semi_sync::{SemiSync, SemiSyncCounters};
use codec::ServerKind;
use codec::gtid::GtidSet;
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(600);
/// Time of each load. sysbench is ended by force some time after it.
const LOAD_SECONDS: u32 = 4;
const LOAD_SECONDS_MAX: u32 = 90;

/// What sysbench runs.
#[derive(Clone, Copy)]
struct Load {
    /// `update_non_index`: one statement a transaction. `write_only`: four, with waits for each other's rows.
    script: &'static str,
    threads: u32,
}

const LOADS: [Load; 4] = [
    Load { script: "oltp_update_non_index", threads: 1 },
    Load { script: "oltp_update_non_index", threads: 8 },
    Load { script: "oltp_update_non_index", threads: 64 },
    Load { script: "oltp_write_only", threads: 8 },
];

/// Counts of both sides at a moment at which nothing is under way.
struct Counts {
    /// Transactions in the source's binary log since its first file.
    written: u64,
    source: SemiSyncCounters,
    transactions: u64,
    acknowledgements: u64,
    unexpected_ack_requests: u64,
}

impl Counts {
    fn take(server: &Server, semi_sync: &SemiSync, daemon: &Daemon) -> Self {
        let status = daemon.wait_caught_up(server);
        let ours =
            |name: &str| status["counters"][name].as_u64().unwrap_or_else(|| panic!("no counter {name}"));
        Self {
            written: transactions_of(server),
            source: semi_sync.counters(),
            transactions: ours("transactions"),
            acknowledgements: ours("acknowledgements"),
            unexpected_ack_requests: ours("unexpected_ack_requests"),
        }
    }
}

/// How many transactions the source has written, by its own GTIDs.
fn transactions_of(server: &Server) -> u64 {
    if server.kind() == ServerKind::MariaDb {
        let position = server.sql("SELECT @@global.gtid_binlog_pos");
        let sequence = position.trim().rsplit('-').next().and_then(|text| text.parse().ok());
        return sequence.unwrap_or_else(|| panic!("no sequence number in {position:?}"));
    }
    let set = server.sql("SELECT @@global.gtid_executed");
    set.replace("\\n", "").trim().parse::<GtidSet>().expect("a GTID set").len()
}

fn sysbench(server: &Server, load: Load, action: &str) -> String {
    static SYSBENCH: OnceLock<String> = OnceLock::new();
    let path = SYSBENCH.get_or_init(|| {
        let output =
            Command::new(crate::common::workspace().join("scripts/servers")).arg("sysbench").output();
        String::from_utf8(output.expect("the script runs").stdout).expect("a path").trim().to_owned()
    });
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", &LOAD_SECONDS_MAX.to_string(), path, load.script]);
    command.args([
        "--db-driver=mysql",
        "--mysql-user=root",
        "--mysql-db=sbtest",
        "--tables=4",
        "--table-size=1000",
    ]);
    command.args([format!("--mysql-host={}", server.env("HOST")), format!("--mysql-port={}", server.port())]);
    command.args([
        format!("--threads={}", load.threads),
        format!("--time={LOAD_SECONDS}"),
        action.to_owned(),
    ]);
    let output = command.stdin(Stdio::null()).output().expect("sysbench runs");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "sysbench {action}: {}\n{text}", output.status);
    text
}

/// `transactions:   1234  (…)` in sysbench's report.
fn committed_by_sysbench(report: &str) -> u64 {
    let line = report.lines().find_map(|line| line.trim().strip_prefix("transactions:"));
    let number = line.and_then(|line| line.split_whitespace().next()).and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("no number of transactions in\n{report}"))
}

/// Runs the load with binlogd attached, and compares what both sides counted.
fn run_load(server: &Server, semi_sync: &SemiSync, daemon: &Daemon, load: Load) {
    let before = Counts::take(server, semi_sync, daemon);
    let report = sysbench(server, load, "run");
    let after = Counts::take(server, semi_sync, daemon);
    let committed = committed_by_sysbench(&report);
    let transactions = after.transactions - before.transactions;
    let acknowledgements = after.acknowledgements - before.acknowledgements;
    let asked = after.source.asked - before.source.asked;
    let acknowledged_commits = after.source.yes_tx - before.source.yes_tx;
    let Load { script, threads } = load;
    println!(
        "{} {script} with {threads} threads: {transactions} transactions, {asked} requests for an acknowledgement, \
         {acknowledgements} acknowledgements",
        server.name()
    );
    assert!(committed > 0, "{report}");
    assert!(after.source.on && after.source.clients == 1, "{:?}", after.source);
    assert_eq!(after.source.no_tx, before.source.no_tx, "commits without acknowledgement");
    assert_eq!(after.unexpected_ack_requests, 0);

    // sysbench may have been told of fewer than were made: its last ones when the time was over.
    assert!(
        (committed..=committed + u64::from(threads)).contains(&transactions),
        "{committed}, {transactions}"
    );
    assert_eq!(after.written - before.written, transactions, "the source's own count");
    // One acknowledgement answers all requests that one sync has covered.
    assert!((1..=asked).contains(&acknowledgements) && asked <= transactions);
    assert!((1..=transactions).contains(&acknowledged_commits), "{acknowledged_commits}");
    if threads == 1 {
        assert_eq!(
            [asked, acknowledgements, acknowledged_commits],
            [transactions; 3],
            "each commit waits alone"
        );
    }
    if let (Some(before), Some(after)) = (before.source.received, after.source.received) {
        assert_eq!(after - before, acknowledgements, "acknowledgements that the source has received");
        assert_eq!(acknowledged_commits, transactions, "MariaDB counts each commit");
    }
}

/// Everything is acknowledged: up to the end of the source's binary log, by position and by GTID.
fn assert_all_acknowledged(server: &Server, source: &Value) {
    let (file, position) = binlog_end(server);
    let acknowledged = &source["positions"]["acknowledged"];
    assert_eq!(
        (&acknowledged["file"], &acknowledged["position"]),
        (&file.into(), &position.into()),
        "{source:#}"
    );
    assert_eq!(source["gtid"]["acknowledged"], source["gtid"]["durable"], "{source:#}");
    assert_eq!(source["semi_sync"]["active"], true, "{source:#}");
}

fn stays_on(server_name: &str, fsync_mode: &str, loads: &[Load]) {
    let server = Server::start(server_name, &[]);
    server.sql("CREATE DATABASE sbtest");
    sysbench(&server, LOADS[0], "prepare");
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let daemon = Daemon::start(&server, &["--fsync-mode", fsync_mode, "--fsync-interval", "200ms"]);
    semi_sync.wait_attached();
    for load in loads {
        run_load(&server, &semi_sync, &daemon, *load);
        assert_all_acknowledged(&server, &daemon.wait_caught_up(&server));
    }
    assert_eq!(daemon.source()["counters"]["reconnects"], 0);
}

#[test]
fn mysql_stays_in_semi_sync() {
    stays_on("mysql-9.7", "1", &LOADS);
}

#[test]
fn mariadb_stays_in_semi_sync() {
    stays_on("mariadb-11.8", "1", &LOADS);
}

#[test]
fn mysql_stays_in_semi_sync_without_syncs() {
    stays_on("mysql-9.7", "0", &LOADS[1..2]);
}

#[test]
fn mariadb_stays_in_semi_sync_without_syncs() {
    stays_on("mariadb-11.8", "0", &LOADS[1..2]);
}
