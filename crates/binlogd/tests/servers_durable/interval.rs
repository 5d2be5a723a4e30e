//! A quiet stream does not stay unsynced: without semi-sync nobody asks for a sync, and after one transaction no further
//! event comes that could cause one. The copy must be durable within `fsync_interval` all the same.

use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::daemon::{Daemon, binlog_end};
use serde_json::Value;

/// What the machine may add: the tests of several crates run side by side on it.
const MARGIN: Duration = Duration::from_millis(1_500);
/// Pause between two looks at the status.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// How long one row took to become durable.
struct Took {
    /// From before it was inserted: never less than it truly took.
    from_insert: Duration,
    /// From when it was seen to be written: never more, but for the pause between two looks.
    from_written: Duration,
}

/// Inserts one row and waits until it is durable.
#[track_caller]
fn measure(server: &Server, daemon: &Daemon, row: u64) -> Took {
    let begin = Instant::now();
    server.sql(&format!("INSERT INTO d.t VALUES ({row})"));
    let (file, position) = binlog_end(server);
    let reached = |source: &Value, rung: &str| {
        source["positions"][rung]["file"] == *file && source["positions"][rung]["position"] == position
    };
    daemon.wait_until(|source| reached(source, "written"), Duration::from_secs(30));
    let written = Instant::now();
    loop {
        let source = daemon.source();
        if reached(&source, "durable") {
            return Took { from_insert: begin.elapsed(), from_written: written.elapsed() };
        }
        assert!(
            written.elapsed() < Duration::from_secs(30),
            "written, but not durable after 30 s:\n{source:#}"
        );
        std::thread::sleep(LOOK_INTERVAL);
    }
}

#[test]
fn a_quiet_stream_becomes_durable_within_the_interval() {
    let server = Server::start("mysql-8.0.31", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY)");
    // No heartbeat comes while a measurement runs: it would wake the receiver.
    let quiet = ["--heartbeat-period", "60s", "--net-read-timeout", "180s"];
    for (round, interval) in [Duration::from_millis(300), Duration::from_secs(2)].into_iter().enumerate() {
        let text = format!("{}ms", interval.as_millis());
        let daemon = Daemon::start(&server, &[&quiet[..], &["--fsync-interval", &text]].concat());
        daemon.wait_caught_up(&server);
        let before = daemon.source()["counters"]["syncs"].clone();
        for row in 0..3 {
            let Took { from_insert, from_written } = measure(&server, &daemon, 10 * round as u64 + row);
            println!("fsync_interval {interval:?}: durable {from_written:?} after it was written");
            // How long the disk takes is its own matter.
            let sync_max = daemon.source()["latency"]["sync"]["max_us"].as_f64().expect("a sync was made");
            assert!(
                from_written <= interval + MARGIN + Duration::from_secs_f64(sync_max / 1e6),
                "{from_written:?} after it was written\n{}",
                daemon.log()
            );
            // It is the interval that causes the sync: it begins at half of it, so that it ends within the whole.
            assert!(
                from_insert >= interval / 2,
                "synced {from_insert:?} after the insert, before half of the interval was over"
            );
        }
        let after = daemon.source()["counters"]["syncs"].clone();
        assert_eq!(
            after.as_u64().zip(before.as_u64()).map(|(after, before)| after - before),
            Some(3),
            "one a row"
        );
    }
}
