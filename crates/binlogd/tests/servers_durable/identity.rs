//! The copy equals the source's binary log, byte for byte, whatever the source wrote and whatever happened to it.
//!
//! Each test takes one server through the same life: thousands of transactions of every kind, large ones, rotation,
//! changed checksums, a clean restart, a kill under load. In the end every closed file of the source must equal the
//! copy's, the live one must be the same as far as it goes, and the GTID sets must agree.

use std::process::Command;
use std::time::Duration;

use crate::common::Server;
use crate::common::compare::{AfterCrash, assert_identical, binary_logs, event_sizes};
use crate::common::daemon::Daemon;
use crate::common::workload::{self, Dialect};
use codec::ServerKind;
use codec::gtid::GtidState;

/// Writers side by side.
const CLIENTS: u64 = 3;
/// Transactions of each of them in the mixed load.
const TRANSACTIONS: u64 = 700;
/// The bytes of one packet; a longer payload goes on in the next one.
const PACKET_MAX: u64 = 0xff_ffff;

/// One server and how it is set up.
struct Case {
    server: &'static str,
    options: &'static [&'static str],
    semi_sync: bool,
    gtid_consistency: bool,
    create_select: bool,
    /// Whether values of all sizes around the packet's limit are tried, or only one.
    every_packet_limit: bool,
    after_crash: AfterCrash,
    /// Statements of this server alone, after the mixed load.
    special: &'static [&'static str],
}

const DEFAULTS: Case = Case {
    server: "",
    options: &[],
    semi_sync: false,
    gtid_consistency: false,
    create_select: true,
    every_packet_limit: false,
    after_crash: AfterCrash::Identical,
    special: &[],
};

/// A crash of the process loses nothing of what it gave to the operating system, so syncing only costs time here.
const QUICK: [&str; 4] = [
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
    "--max-allowed-packet=64M",
    "--max-binlog-size=1M",
];

/// A compressed transaction, small and large.
const MYSQL_COMPRESSED: &str = "SET SESSION binlog_transaction_compression = ON;
    INSERT INTO d.t0 (k, c) VALUES (1, REPEAT('compressed ', 100));
    BEGIN; INSERT INTO d.t1 (k, c) SELECT k, c FROM d.t0; SAVEPOINT a; DELETE FROM d.t1 WHERE k = 1; ROLLBACK TO a; COMMIT;
    INSERT INTO d.m0 (k, c) SELECT k, c FROM d.t0;
    CREATE TABLE d.z AS SELECT k, c FROM d.t0; DROP TABLE d.z;
    XA START 'z'; INSERT INTO d.t0 (k, c) VALUES (1, REPEAT('z', 2000)); XA END 'z'; XA PREPARE 'z'; XA COMMIT 'z';";

/// Transactions with a tag in their GTID.
const TAGGED: &str = "SET gtid_next = 'AUTOMATIC:orders'; INSERT INTO d.t0 (k) VALUES (1); INSERT INTO d.t0 (k) VALUES (2);
    SET gtid_next = 'AUTOMATIC:returns_2'; INSERT INTO d.t0 (k) VALUES (3); CREATE TABLE d.z (a INT); DROP TABLE d.z;
    SET gtid_next = 'AUTOMATIC'; INSERT INTO d.t0 (k) VALUES (4);
    SET gtid_next = 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:far:7'; INSERT INTO d.t0 (k) VALUES (5); SET gtid_next = 'AUTOMATIC';
    SET gtid_next = 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:9'; BEGIN; COMMIT; SET gtid_next = 'AUTOMATIC';";

/// MariaDB's compressed events: queries and rows.
const MARIADB_COMPRESSED: &str = "SET GLOBAL log_bin_compress = ON; SET GLOBAL log_bin_compress_min_len = 10;
    INSERT INTO d.t0 (k, c) VALUES (1, REPEAT('compressed ', 100));
    BEGIN; INSERT INTO d.t1 (k, c) SELECT k, c FROM d.t0; UPDATE d.t1 SET c = 'less'; DELETE FROM d.t1 WHERE k = 1; COMMIT;
    SET SESSION binlog_format = STATEMENT; INSERT INTO d.t0 (k, c) VALUES (1, 'a statement that is long enough to be compressed');
    CREATE TABLE d.z (a INT COMMENT 'a definition that is long enough to be compressed'); DROP TABLE d.z;
    SET GLOBAL log_bin_compress = OFF;";

/// Several domains, and rows without the statement that made them.
const MARIADB_SPECIAL: &str =
    "SET SESSION gtid_domain_id = 5; INSERT INTO d.t0 (k) VALUES (1); INSERT INTO d.t1 (k) VALUES (2);
    SET SESSION gtid_domain_id = 0; SET SESSION server_id = 77; INSERT INTO d.t0 (k) VALUES (3);
    SET SESSION binlog_annotate_row_events = OFF; INSERT INTO d.t0 (k) VALUES (4);
    SET SESSION binlog_annotate_row_events = ON; INSERT INTO d.t0 (k) VALUES (5);
    CREATE SEQUENCE d.s; SELECT NEXTVAL(d.s); INSERT INTO d.t0 (k) VALUES (NEXTVAL(d.s)); DROP SEQUENCE d.s;
    CREATE OR REPLACE TABLE d.z (a INT); CREATE OR REPLACE TABLE d.z AS SELECT k FROM d.t0; DROP TABLE d.z;";

#[test]
fn mysql_9_7() {
    live(&Case {
        server: "mysql-9.7",
        semi_sync: true,
        gtid_consistency: true,
        every_packet_limit: true,
        special: &[MYSQL_COMPRESSED, TAGGED],
        ..DEFAULTS
    });
}

#[test]
fn mysql_9_7_without_gtids() {
    live(&Case {
        server: "mysql-9.7",
        options: &["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"],
        special: &[MYSQL_COMPRESSED],
        ..DEFAULTS
    });
}

#[test]
fn mysql_9_7_on_the_way_to_gtids() {
    live(&Case {
        server: "mysql-9.7",
        options: &["--gtid-mode=ON_PERMISSIVE", "--enforce-gtid-consistency=ON"],
        gtid_consistency: true,
        special: &[
            "SET GLOBAL gtid_mode = OFF_PERMISSIVE; INSERT INTO d.t0 (k) VALUES (1);
             SET gtid_next = 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:1'; INSERT INTO d.t0 (k) VALUES (2); SET gtid_next = 'AUTOMATIC';
             SET GLOBAL gtid_mode = OFF; INSERT INTO d.t0 (k) VALUES (3);
             SET GLOBAL gtid_mode = OFF_PERMISSIVE; SET GLOBAL gtid_mode = ON_PERMISSIVE; INSERT INTO d.t0 (k) VALUES (4);
             SET GLOBAL gtid_mode = ON; INSERT INTO d.t0 (k) VALUES (5); SET GLOBAL gtid_mode = ON_PERMISSIVE;",
            MYSQL_COMPRESSED,
        ],
        ..DEFAULTS
    });
}

#[test]
fn mysql_8_0_31() {
    live(&Case { server: "mysql-8.0.31", special: &[MYSQL_COMPRESSED], ..DEFAULTS });
}

#[test]
fn mysql_8_0_15() {
    live(&Case {
        server: "mysql-8.0.15",
        options: &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        gtid_consistency: true,
        create_select: false,
        ..DEFAULTS
    });
}

#[test]
fn mysql_5_7_22() {
    live(&Case { server: "mysql-5.7.22", ..DEFAULTS });
}

#[test]
fn mariadb_10_11() {
    live(&Case {
        server: "mariadb-10.11",
        semi_sync: true,
        after_crash: AfterCrash::InUseIn(1),
        special: &[MARIADB_COMPRESSED, MARIADB_SPECIAL],
        ..DEFAULTS
    });
}

#[test]
fn mariadb_11_8() {
    live(&Case {
        server: "mariadb-11.8",
        semi_sync: true,
        every_packet_limit: true,
        after_crash: AfterCrash::InUseIn(1),
        special: &[MARIADB_COMPRESSED, MARIADB_SPECIAL],
        ..DEFAULTS
    });
}

/// The whole life of one source.
fn live(case: &Case) {
    let seed = crate::common::seed();
    let options: Vec<&str> = QUICK.iter().chain(case.options).copied().collect();
    let mut server = Server::start(case.server, &options);
    let dialect = Dialect { gtid_consistency: case.gtid_consistency, create_select: case.create_select };
    workload::run(&server, "schema", &workload::schema("d", CLIENTS));
    let mut daemon = Daemon::start(&server, &["--fsync-interval=100ms", "--backoff-max=500ms"]);
    attach(case, &server, &daemon);

    mixed_load(&server, dialect, "d", seed, TRANSACTIONS);
    workload::run(&server, "xa", &workload::xa(40));
    workload::run(&server, "load-data", &workload::load_data(server.dir()));
    for (number, sql) in case.special.iter().enumerate() {
        workload::run(&server, &format!("special-{number}"), sql);
    }
    server.sql("FLUSH BINARY LOGS; FLUSH BINARY LOGS; INSERT INTO d.t0 (k) VALUES (1)");
    change_checksums(&server, dialect, seed);
    large(case, &server, &daemon);
    check(case, &server, &daemon, AfterCrash::Identical);

    // A STOP event ends the file, and nobody says which one follows.
    server.stop();
    server.restart(&[]);
    attach(case, &server, &daemon);
    mixed_load(&server, dialect, "d", seed + 1, 40);
    check(case, &server, &daemon, AfterCrash::Identical);

    kill_under_load(&server, dialect, seed + 2);
    server.restart(&[]);
    attach(case, &server, &daemon);
    // Elsewhere: the kill may have left a definition half done.
    workload::run(&server, "schema-after", &workload::schema("after", CLIENTS));
    mixed_load(&server, dialect, "after", seed + 3, 40);
    server.sql("FLUSH BINARY LOGS");
    let source = check(case, &server, &daemon, case.after_crash);
    assert_eq!(source["counters"]["checksum_failures"], 0);
    assert_eq!(source["counters"]["unexpected_ack_requests"], 0);

    daemon.terminate();
    verify(&daemon);
}

/// Waits until binlogd receives, and then, where the case wants it, lets the source wait for acknowledgements.
fn attach(case: &Case, server: &Server, daemon: &Daemon) {
    daemon.wait_until(|source| source["state"] == "receiving", Duration::from_secs(20));
    if !case.semi_sync {
        return;
    }
    let word = match server.kind() {
        ServerKind::MySql => "source",
        ServerKind::MariaDb => "master",
    };
    // An acknowledgement that is never sent shows as a client that hangs until its time limit, and as a failure.
    server.sql(&format!(
        "SET GLOBAL rpl_semi_sync_{word}_timeout = 600000; SET GLOBAL rpl_semi_sync_{word}_enabled = 1"
    ));
    let clients = || semi_sync_status(server, "clients");
    for _ in 0..100 {
        if clients() == "1" {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{} semi-sync replicas\n{}", clients(), daemon.log());
}

/// A status variable of semi-sync, whatever the server calls its side.
fn semi_sync_status(server: &Server, name: &str) -> String {
    let answer = server.sql(&format!(
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Rpl_semi_sync_source_{name}', 'Rpl_semi_sync_master_{name}')"
    ));
    answer.split('\t').nth(1).unwrap_or_default().trim().to_owned()
}

fn mixed_load(server: &Server, dialect: Dialect, database: &str, seed: u64, count: u64) {
    let batch = |client| workload::mixed(dialect, database, seed, client, count);
    let batches: Vec<String> = (0..CLIENTS).map(batch).collect();
    workload::run_side_by_side(server, &format!("mixed-{seed}"), &batches);
}

/// Each change begins a file; what is sent outside any file keeps the checksum that was negotiated.
fn change_checksums(server: &Server, dialect: Dialect, seed: u64) {
    for (number, checksum) in ["NONE", "CRC32", "NONE"].iter().enumerate() {
        server.sql(&format!("SET GLOBAL binlog_checksum = {checksum}"));
        mixed_load(server, dialect, "d", seed + 100 + number as u64, 15);
        server.sql("FLUSH BINARY LOGS");
    }
    large_value_without_checksum(server);
    server.sql("SET GLOBAL binlog_checksum = CRC32");
}

fn large_value_without_checksum(server: &Server) {
    workload::run(server, "large-unchecked", &workload::large_values(&[17 << 20]));
}

/// A transaction and events that need more than one packet, and events that end exactly where a packet does.
fn large(case: &Case, server: &Server, daemon: &Daemon) {
    workload::run(server, "large-transaction", &workload::one_transaction(12));
    server.sql("FLUSH BINARY LOGS");
    const PROBE: u64 = 3 << 20;
    workload::run(server, "large-probe", &workload::large_values(&[20 << 20, PROBE]));
    daemon.wait_caught_up(server);
    // What the probe's event has beside its value, every other one of that size has too.
    let copies = daemon.timeline_dir();
    let names = binary_logs(server);
    let sizes =
        names.iter().rev().take(4).flat_map(|name| event_sizes(&std::fs::read(copies.join(name)).unwrap()));
    let probe = sizes
        .map(|(_, size)| u64::from(size))
        .find(|size| (PROBE..PROBE + 200).contains(size))
        .expect("the probe");
    // The length prefix of a value has 4 bytes whatever its length.
    let overhead = probe - PROBE;
    // Before the event stand a status byte and, with semi-sync, two more.
    let limits: &[u64] = if case.every_packet_limit { &[0, 1, 2, 3, 4] } else { &[1] };
    let mut values: Vec<u64> = limits.iter().map(|less| PACKET_MAX - less - overhead).collect();
    if case.every_packet_limit {
        values.push(2 * PACKET_MAX - 3 - overhead);
    }
    workload::run(server, "large-limits", &workload::large_values(&values));
}

/// Kills the source while clients write.
fn kill_under_load(server: &Server, dialect: Dialect, seed: u64) {
    // MySQL 5.7 and 8.0.15 cut the end of their own log after a crash when its last transaction ends with ROLLBACK, which only one
    // that writes to both kinds of table does. That is a fork, and has a test of its own in timelines.rs.
    let dialect = Dialect { gtid_consistency: true, ..dialect };
    // MySQL 5.7 does not survive a kill in the midst of an ALTER TABLE: each start crashes, because its purge looks for the
    // temporary table. Its definitions are not atomic; those of the others are.
    let load = if server.name() == "mysql-5.7.22" { workload::transactions } else { workload::mixed };
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let batch = load(dialect, "d", seed, client, 20_000);
            let path = workload::write(server, &format!("killed-{client}"), &batch);
            let mut command = Command::new("timeout");
            command.args(["--signal=KILL", "60", server.env("MYSQL")]);
            command.stdin(std::fs::File::open(path).unwrap()).stdout(std::process::Stdio::null());
            command.stderr(std::process::Stdio::null()).spawn().expect("the client starts")
        })
        .collect();
    std::thread::sleep(Duration::from_millis(1500));
    server.kill();
    for client in &mut clients {
        let status = client.wait().expect("a child of ours");
        assert!(!status.success(), "the load ended before the source was killed");
    }
}

/// Everything that must agree once the copy is caught up. Returns the status.
#[track_caller]
fn check(case: &Case, server: &Server, daemon: &Daemon, after_crash: AfterCrash) -> serde_json::Value {
    let source = daemon.wait_caught_up(server);
    assert_identical(server, daemon, after_crash);
    let variable = match server.kind() {
        ServerKind::MySql => "gtid_executed",
        ServerKind::MariaDb => "gtid_binlog_state",
    };
    // The client shows the line breaks within a long set as two characters.
    let theirs = server.sql(&format!("SELECT @@global.{variable}")).trim().replace("\\n", "");
    let theirs = GtidState::parse(server.kind(), &theirs).expect("a GTID set");
    let ours = source["gtid"]["durable"].as_str().expect("a GTID set");
    assert_eq!(ours, theirs.to_line(), "GTIDs of the durable position");
    if case.semi_sync {
        assert_eq!(semi_sync_status(server, "status"), "ON");
        assert_eq!(semi_sync_status(server, "no_tx"), "0", "transactions without an acknowledgement");
        assert_eq!(source["semi_sync"]["active"], true, "{source:#}");
        // By GTID: what is no transaction, such as the end of a file, is durable and never acknowledged.
        assert_eq!(source["gtid"]["acknowledged"], source["gtid"]["durable"], "{source:#}");
    }
    source
}

/// `binlogd verify` finds nothing wrong.
fn verify(daemon: &Daemon) {
    let binlogd = || Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let help = binlogd().arg("--help").output().expect("binlogd runs");
    if !String::from_utf8_lossy(&help.stdout).contains("\n  verify ") {
        return;
    }
    let output = binlogd().arg("verify").arg(daemon.data_dir()).output().expect("binlogd runs");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}
