//! A disk with some space, but none for the next transaction. Full for that one, it looks as if it had space, whenever what did
//! not fit has been cut off.

use crate::common::compare::{AfterCrash, assert_identical};
use crate::common::daemon::{Daemon, url};
use crate::common::semi_sync::SemiSync;
use crate::common::volume::{Kind, Volume};
use crate::common::{Server, wait_within};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longer than the test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const TIMEOUT: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(40);
/// The wait is watched for so long. A measurement of the disk and several attempts would lie in it.
const WATCHED: Duration = Duration::from_secs(15);
/// Once there is room, it is seen and used within this time, on a busy machine.
const GOES_ON_WITHIN: Duration = Duration::from_secs(10);
const MIB: u64 = 1 << 20;

const FLAGS: [&str; 6] = ["--disk-warn", "off", "--backoff-min", "20ms", "--backoff-max", "200ms"];
const WAITING: &str = "waiting for disk space";

/// Exit code and words of `binlogd health`.
fn health(daemon: &Daemon) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let output = command.args(["health", "--admin", &daemon.admin_address()]).output().expect("binlogd runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).expect("text"))
}

/// What the status says while nothing fits.
#[track_caller]
fn assert_waits(daemon: &Daemon) {
    let status = daemon.status();
    let source: &Value = &status["sources"][0];
    assert_eq!(source["state"], WAITING, "{}", daemon.log());
    assert_eq!(source["semi_sync"]["active"], false, "{source:#}");
    let verdict = &source["verdict"];
    assert!(verdict.to_string().contains("The disk is full"), "{verdict:#}");
    let (code, said) = health(daemon);
    assert!(code != Some(0) && said.contains(WAITING), "{code:?} {said}\n{}", daemon.log());
}

fn stays_full_for_a_large_transaction(name: &str) {
    let Some(volume) = Volume::mount(Kind::Tmpfs, 64 * MIB) else { return };
    let server = Server::start(name, &["--max_allowed_packet=64M"]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, v LONGTEXT)");
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let daemon = Daemon::start_in(&volume.path().join("data"), &url(&server), &FLAGS);
    semi_sync.wait_attached();
    // Until some growth was measured, so that more would be seen.
    for number in 100.. {
        server.sql(&format!("INSERT INTO d.t VALUES ({number}, 'it is acknowledged')"));
        if daemon.status()["disk"]["hours_left"].is_number() {
            break;
        }
        assert!(number < 100 + PATIENCE.as_secs(), "{:#}", daemon.status()["disk"]);
        std::thread::sleep(Duration::from_secs(1));
    }
    daemon.wait_caught_up(&server);
    volume.fill_but(4 * MIB);
    // More than 8 MiB, which the journal could take.
    let insert = "INSERT INTO d.t VALUES (2, REPEAT('x', 12000000))";
    std::thread::scope(|scope| {
        let client = scope.spawn(|| server.sql(insert));
        daemon.wait_until(|source| source["state"] == WAITING, PATIENCE);
        let counters = |daemon: &Daemon| daemon.source()["counters"].clone();
        // Then what did not fit has been cut off.
        wait_within(PATIENCE, "the attempt has ended", || counters(&daemon)["reconnects"] != 0);
        let (before, logged) = (counters(&daemon), daemon.log().len());
        let began = Instant::now();
        while began.elapsed() < WATCHED {
            assert_waits(&daemon);
        }
        let after = counters(&daemon);
        for counter in ["bytes_received", "bytes_written", "reconnects"] {
            assert_eq!(before[counter], after[counter], "{counter}\n{}", daemon.log());
        }
        assert_eq!(&daemon.log()[logged..], "", "the log is quiet");
        assert_eq!(daemon.log().matches("nothing is acknowledged until there is more space").count(), 1);
        assert_eq!(daemon.log().matches(" ERROR ").count(), 1, "{}", daemon.log());
        assert!(!client.is_finished(), "nothing is acknowledged that is not stored");
        // Had the copy grown by what was cut off again, the space would be enough for a minute.
        let disk = &daemon.status()["disk"];
        assert!(disk["hours_left"].as_f64().is_some_and(|hours| hours > 0.2), "{disk:#}");

        // More, but not enough: that is tried, and then nothing more.
        volume.grow_to(67 * MIB);
        daemon.wait_log("going on after", GOES_ON_WITHIN);
        let told = || daemon.log().matches("nothing is acknowledged until there is more space").count() == 2;
        wait_within(PATIENCE, "that it is not enough is told", told);
        daemon.wait_until(|source| source["state"] == WAITING, PATIENCE);
        let began = Instant::now();
        while began.elapsed() < WATCHED / 3 {
            assert_waits(&daemon);
        }

        volume.grow_to(128 * MIB);
        wait_within(GOES_ON_WITHIN, "the client is answered", || client.is_finished());
    });
    assert_eq!(daemon.log().matches("going on after").count(), 2, "{}", daemon.log());
    daemon.wait_caught_up(&server);
    assert_eq!(health(&daemon).0, Some(0));
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(semi_sync.counters().no_tx, 0);
}

#[test]
fn mariadb_is_not_asked_again_and_again_for_what_does_not_fit() {
    stays_full_for_a_large_transaction("mariadb-11.8");
}

#[test]
fn mysql_is_not_asked_again_and_again_for_what_does_not_fit() {
    stays_full_for_a_large_transaction("mysql-9.7");
}
