//! A finished file is damaged when its search index is made, and is put back.

use super::stage::Stage;
use super::{PATIENCE, receives, source};
use crate::common::daemon::Daemon;

#[test]
#[ignore = "make test-alerts"]
fn no_search_index_can_be_made() {
    let server = source(&[]);
    let daemon = Daemon::start(&server, &[]);
    receives(&daemon);
    server.sql(
        "INSERT INTO d.t (v) VALUES (REPEAT('a', 5000)); FLUSH BINARY LOGS; INSERT INTO d.t (v) VALUES ('b')",
    );
    daemon.wait_until(
        |source| source["search_index_missing"] == 0 && source["oldest_commit"].is_string(),
        PATIENCE,
    );
    daemon.wait_caught_up(&server);
    let mut stage = Stage::new(daemon, &[]);
    stage.stop();
    let timeline = stage.daemon.timeline_dirs().remove(0);
    let damaged = timeline.join("mysql-bin.000001");
    let bytes = std::fs::read(&damaged).expect("a binary log");
    let mut harmed = bytes.clone();
    let middle = harmed.len() - 1000;
    harmed[middle] ^= 1;
    std::fs::write(&damaged, harmed).expect("a file");
    std::fs::remove_file(timeline.join("search-index/mysql-bin.000001")).expect("its index");
    stage.start();
    stage.prometheus.wait_fires("BinlogdSearchIndexFails");
    stage.play("No search index can be made", &server);
    std::fs::write(&damaged, bytes).expect("a file");
    stage.restart();
    stage.prometheus.wait_ends("BinlogdSearchIndexFails");
}
