//! The disk gets full, is full, does not answer, and is slow.

use std::time::{Duration, Instant};

use super::stage::Stage;
use super::{PATIENCE, receives, source};
use crate::common::daemon::{Daemon, url};
use crate::common::ledger::{self, Ledger};
use crate::common::semi_sync::SemiSync;
use crate::common::volume::{Kind, Volume};

const TIMEOUT: Duration = Duration::from_secs(600);
const FLAGS: [&str; 3] = ["--backoff-max", "500ms", "--disk-warn=30%"];
const VOLUME_BYTES: u64 = 160 << 20;
const LEFT_BYTES: u64 = 6 << 20;

#[test]
#[ignore = "make test-alerts"]
fn the_disk_gets_full_and_is_full() {
    let Some(volume) = Volume::mount(Kind::Tmpfs, VOLUME_BYTES) else { return };
    let server = source(&[]);
    ledger::create_table(&server);
    let daemon = Daemon::start_in(&volume.path().join("data"), &url(&server), &FLAGS);
    receives(&daemon);
    SemiSync::enable(&server, TIMEOUT).wait_attached();
    let mut stage = Stage::new(daemon, &FLAGS);
    let ledger = Ledger::start(&server, 4);
    stage.daemon.wait_until_status(|status| status["disk"]["hours_left"].is_number(), PATIENCE);
    volume.fill_but(LEFT_BYTES);
    stage.prometheus.wait_fires("BinlogdDiskFull");
    stage.prometheus.wait_fires("BinlogdDiskLow");
    stage.prometheus.wait_fires("BinlogdDiskFullSoon");
    stage.play("The disk gets full", &server);
    stage.play("The disk is full", &server);
    volume.make_space();
    stage.prometheus.wait_ends("BinlogdDiskFull");
    ledger.finish();
    // The rate of the last ten minutes would go on saying that there is little room.
    stage.restart();
    stage.prometheus.wait_ends("BinlogdDiskFullSoon");
    stage.prometheus.wait_ends("BinlogdDiskLow");
}

#[test]
#[ignore = "make test-alerts"]
fn the_disk_does_not_answer_and_is_slow() {
    let Some(volume) = Volume::mount(Kind::Ext4, VOLUME_BYTES) else { return };
    let server = source(&[]);
    let daemon = Daemon::start_in(&volume.path().join("data"), &url(&server), &[]);
    receives(&daemon);
    SemiSync::enable(&server, TIMEOUT).wait_attached();
    let mut stage = Stage::new(daemon, &[]);
    let insert = || server.sql("INSERT INTO d.t (v) VALUES ('x')");
    std::thread::scope(|scope| {
        let frozen = volume.freeze();
        scope.spawn(insert);
        stage.prometheus.wait_fires("BinlogdDiskHangs");
        // Asking it would wait for the disk, too, where something is to be written.
        stage.play("The disk does not answer", &server);
        drop(frozen);
    });
    stage.prometheus.wait_ends("BinlogdDiskHangs");
    let deadline = Instant::now() + PATIENCE;
    while stage.prometheus.firing("BinlogdSyncSlow").is_empty() {
        assert!(Instant::now() < deadline, "BinlogdSyncSlow does not fire\n{}", stage.daemon.log());
        std::thread::scope(|scope| {
            let frozen = volume.freeze();
            scope.spawn(insert);
            std::thread::sleep(Duration::from_millis(600));
            drop(frozen);
        });
    }
    stage.prometheus.wait_fires("BinlogdSyncSlow");
    stage.play("Syncs are slow", &server);
    stage.prometheus.wait_ends("BinlogdSyncSlow");
}
