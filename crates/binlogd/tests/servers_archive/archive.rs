//! The archive, end to end: real servers, real stores, the built binary, and tools that are not ours.
//!
//! What is compared is always what the source itself has: its files byte by byte, and the GTIDs that it or its own
//! mysqlbinlog tells.

mod backup;
mod begin;
mod drill;
mod kill;
mod outages;
mod past;
mod place;
mod policies;
mod put_back;
mod rivals;
mod searched;
mod shown;
mod stock;
mod table;
mod verified;

use self::place::{PATIENCE, Place, state, wait_archived};
use crate::common::compare::binary_logs;
use crate::common::daemon::Daemon;
use crate::common::ledger::{self, Ledger, Manner};
use crate::common::pair::gtid_executed;
use crate::common::readers::make_account;
use crate::common::workload::{self, Dialect};
use crate::common::{Server, seed};
use codec::ServerKind;
use codec::event::BINLOG_MAGIC;
use codec::gtid::GtidState;
use std::process::Command;
use std::time::Duration;

/// With GTIDs, and files that are closed often under load.
const MYSQL: [&str; 3] = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--max-binlog-size=1M"];
/// Slow enough for a small machine that does other things, quick enough that there is always something new.
const MANNER: Manner = Manner {
    pause: Duration::from_millis(3),
    bulk_pause: Duration::from_millis(150),
    endures: false,
    first: 0,
};

/// All kinds of events in four closed files, one of them larger than an object, and a last one that is open.
fn write(server: &Server) {
    write_by(server, workload::mixed);
}

/// As [`write`], with the transactions of `batch`.
fn write_by(server: &Server, batch: fn(Dialect, &str, u64, u64, u64) -> String) {
    let dialect = Dialect { gtid_consistency: true, create_select: false };
    let seed = seed();
    for round in 0..3 {
        let batches: Vec<String> =
            (0..2).map(|client| batch(dialect, "d", seed + round, client, 60)).collect();
        workload::run_side_by_side(server, &format!("mixed-{round}"), &batches);
        server.sql("FLUSH BINARY LOGS");
    }
    workload::run(server, "large", &workload::one_transaction(10));
    server.sql("FLUSH BINARY LOGS; INSERT INTO d.t0 (k) VALUES (1)");
}

/// What the server says that it has executed.
fn executed(server: &Server) -> GtidState {
    match server.kind() {
        ServerKind::MariaDb => state(server, &server.sql("SELECT @@global.gtid_binlog_pos")),
        _ => state(server, &gtid_executed(server)),
    }
}

/// Everything that binlogd and its verbs say of an archive.
fn everything_said(place: &Place, daemon: &Daemon) -> Vec<(&'static str, String)> {
    let mut answer = ureq::get(format!("http://{}/metrics", daemon.admin_address())).call().expect("metrics");
    let metrics = answer.body_mut().read_to_string().expect("text");
    assert!(metrics.contains("binlogd_archive_commits"), "{metrics}");
    let mut status = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let status = status.args(["status", "--data-dir"]).arg(daemon.data_dir()).output().expect("it runs");
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains(&place.url()), "{status}");
    let command_line = std::fs::read(format!("/proc/{}/cmdline", daemon.pid())).expect("it runs");
    vec![
        ("log", daemon.log()),
        ("/status", daemon.status().to_string()),
        ("/metrics", metrics),
        ("binlogd status", status),
        ("command line", String::from_utf8_lossy(&command_line).into_owned()),
        ("binlogd verify", place.run("verify", &[])),
    ]
}

/// The way that the handbook describes, from a loaded source to its files in another place.
fn everything_comes_back(name: &str) {
    let options: &[&str] = if name.starts_with("mysql") { &MYSQL } else { &[] };
    let source = Server::start(name, options);
    make_account(&source);
    workload::run(&source, "schema", &workload::schema("d", 2));
    let place = Place::s3().encrypted();
    // So that the log has all that anybody says, the client of the stores too.
    let daemon = place.start(&source, "[log]\nlevel = 'trace'\n");
    write(&source);
    let status = wait_archived(&daemon, &source);
    let archive = &status["archive"];
    assert_eq!(archive["encrypted"], true, "{archive:#}");
    assert_eq!(archive["url"], place.url(), "{archive:#}");
    assert_eq!(state(&source, archive["gtid"].as_str().expect("a set")), executed(&source), "{archive:#}");

    let said = place.run("verify", &[]);
    assert!(said.contains("no damage") && said.contains("decrypted and unpacked"), "{said}");
    let sound = place.assert_sound();
    assert_eq!(sound["unnamed_objects"], 0, "an undisturbed archive wastes nothing: {sound:#}");

    let mut names = binary_logs(&source);
    let fetched = place.fetch();
    assert_eq!(fetched.assert_is_of(&source), names);
    assert_eq!(fetched.state(&source), executed(&source), "{}", fetched.said);
    names.pop();
    assert!(names.len() >= 4, "{names:?}");
    stock::assert_read_without_us(&place, &source, &names);

    for (what, text) in everything_said(&place, &daemon) {
        for secret in place.secrets() {
            assert!(!text.contains(&secret), "a secret stands in {what}:\n{text}");
        }
    }
}

#[test]
fn everything_of_mysql_comes_back() {
    everything_comes_back("mysql-9.7");
}

#[test]
fn everything_of_mariadb_comes_back() {
    everything_comes_back("mariadb-11.8");
}

/// What the source had executed at a place, by what its own mysqlbinlog prints of its own files.
fn executed_at(source: &Server, file: &str, end: u64) -> GtidState {
    let mut files = binary_logs(source);
    files.truncate(files.iter().position(|name| name == file).expect("a file of the source") + 1);
    let mut arguments: Vec<String> =
        files.iter().map(|name| source.datadir().join(name).display().to_string()).collect();
    arguments.insert(0, format!("--stop-position={end}"));
    let output = source.mysqlbinlog(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let next = text.lines().filter_map(|line| line.strip_prefix("SET @@SESSION.GTID_NEXT= '"));
    let gtids: Vec<&str> = next.filter_map(|rest| rest.split('\'').next()).collect();
    let gtids: Vec<&str> = gtids.into_iter().filter(|gtid| *gtid != "AUTOMATIC").collect();
    assert!(!gtids.is_empty(), "{text:.2000}");
    state(source, &gtids.join(","))
}

/// binlogd and its disk are lost under load. What was durable an interval before is in the archive, and from there binlogd
/// goes on, in the copy and in the archive.
#[test]
fn of_a_lost_machine_all_but_the_last_interval_comes_back() {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    ledger::create_table(&source);
    let place = Place::s3().encrypted();
    let mut daemon = place.start(&source, "");
    let ledger = Ledger::start_in(&source, 3, MANNER);
    ledger.wait_for(200);
    // The writers may be that far before binlogd has asked the archive and received a byte.
    let receives = daemon.wait_until(|source| source["positions"]["durable"].is_object(), PATIENCE);
    let durable = receives["positions"]["durable"].clone();
    let asked = jiff::Timestamp::now();
    daemon.wait_until(
        |source| {
            let until = source["archive"]["complete_until"].as_str();
            until.is_some_and(|until| until.parse::<jiff::Timestamp>().expect("a time") >= asked)
        },
        PATIENCE,
    );
    daemon.kill();
    std::fs::remove_dir_all(daemon.data_dir()).expect("the copy is removed");

    let fetched = place.fetch();
    let (file, position) = (durable["file"].as_str().unwrap(), durable["position"].as_u64().unwrap());
    let wanted = (file.to_owned(), position);
    // Names of one server stand in the order of their numbers. A place inside a transaction is none that an archive ends at.
    // And of a file that has just begun there is nothing to archive.
    let has_all_before = || {
        let len =
            std::fs::metadata(source.datadir().join(&fetched.file)).expect("a file of the source").len();
        let next = binary_logs(&source).into_iter().find(|name| *name > fetched.file);
        position == BINLOG_MAGIC.len() as u64 && fetched.end == len && next.as_deref() == Some(file)
    };
    let has_all = (fetched.file.clone(), fetched.end) >= wanted || has_all_before();
    assert!(has_all, "{wanted:?} was durable: {}", fetched.said);
    fetched.assert_is_of(&source);
    assert_eq!(fetched.state(&source), executed_at(&source, &fetched.file, fetched.end), "{}", fetched.said);

    place.fetch_to(&daemon.data_dir());
    daemon.restart(&[]);
    ledger.wait_for(ledger.committed().len() + 100);
    ledger.finish();
    wait_archived(&daemon, &source);
    place.assert_sound();
    let fetched = place.fetch();
    assert_eq!(fetched.assert_is_of(&source), binary_logs(&source));
    assert_eq!(fetched.state(&source), executed(&source));
    assert_eq!(daemon.timeline_dirs().len(), 1, "{}", daemon.log());
}

/// What the source has compressed already is stored as it is.
#[test]
fn what_mysql_has_compressed_takes_no_more_room_than_there() {
    let options = [&MYSQL[..], &["--binlog-transaction-compression=ON"]].concat();
    let source = Server::start("mysql-8.0.31", &options);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, c VARCHAR(4000))");
    let place = Place::s3();
    let daemon = place.start(&source, "");
    // Of what a hash gives compression takes away the half, once.
    let row = format!("(CONCAT({}))", ["SHA2(RAND(), 512)"; 16].join(", "));
    let rows = vec![row.as_str(); 100].join(", ");
    let statement = format!("INSERT INTO d.t (c) VALUES {rows};");
    workload::run(&source, "hashes", &statement.repeat(20));
    source.sql("FLUSH BINARY LOGS; INSERT INTO d.t (c) VALUES ('last')");
    wait_archived(&daemon, &source);
    let sound = place.assert_sound();
    let [plain, stored] = ["plain_bytes", "stored_bytes"].map(|key| sound[key].as_f64().expect("a number"));
    assert!(plain > 1e6, "{sound:#}");
    assert!((0.9..1.02).contains(&(stored / plain)), "{sound:#}");
    place.fetch().assert_is_of(&source);
}
