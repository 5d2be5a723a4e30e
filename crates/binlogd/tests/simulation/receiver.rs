//! The product, as the tests run it: the whole upstream side over the doubles.

use crate::disk::Disk;
use crate::disk::image::Tree;
use crate::world::{Way, World, host_name};
use binlog::journal::JOURNAL_FILE;
use binlog::journal::record::first_block;
use config::{AckTimeoutAction, FsyncMode, HostPort, OnFork, OnGap, OnStranger, SourceConfig, Start};
use receive::Upstream;
use source::stop::StopSignal;
use status::SourceMonitor;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wire::{TlsMode, TlsOptions};

/// Name of the source, and of its folder.
pub const SOURCE: &str = "db1";

/// Path of the source's folder on the disk.
pub const FOLDER: &str = "data/db1";

/// The data folder on every disk.
pub fn data_dir() -> PathBuf {
    Disk::path("data")
}

/// A disk with the source's folder and an empty journal of `journal_len` bytes in it. A small one is full soon; and 8 MiB
/// for each state that is tried would take long.
pub fn with_journal(journal_len: u64) -> Tree {
    let mut journal = first_block(&[7; 16], journal_len).to_vec();
    journal.resize(journal_len as usize, 0);
    let mut tree = Tree { folders: vec!["data".to_owned(), FOLDER.to_owned()], ..Tree::default() };
    tree.files.insert(format!("{FOLDER}/{JOURNAL_FILE}"), journal);
    tree
}

/// A configuration for a source that answers at once.
pub fn config(fsync_mode: FsyncMode, semi_sync: bool) -> SourceConfig {
    SourceConfig {
        name: SOURCE.to_owned(),
        hosts: vec![HostPort { host: host_name(0), port: 3306 }],
        peers: Vec::new(),
        user: "any".to_owned(),
        password: "".into(),
        password_file: None,
        server_id: Some(77),
        start: Start::Resume,
        fsync_mode,
        fsync_interval: Duration::from_millis(50),
        semi_sync,
        heartbeat_period: Duration::from_secs(3),
        net_read_timeout: Duration::from_secs(10),
        // What runs the watch is the daemon, which is not simulated.
        watch_interval: Duration::ZERO,
        connect_timeout: Duration::from_secs(10),
        backoff_min: Duration::from_millis(100),
        backoff_max: Duration::from_secs(5),
        tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
        on_gap: OnGap::Stop,
        on_fork: OnFork::Follow,
        // Servers that have nothing in common take each other's place here.
        ack_after_replicas: 0,
        ack_timeout: Duration::from_secs(10),
        ack_timeout_action: AckTimeoutAction::Wait,
        quorum: Vec::new(),
        on_stranger: OnStranger::Follow,
        archive: false,
    }
}

/// Opens the copy on a disk, as a start does.
pub fn recovers(disk: &Disk, world: &Arc<World>) {
    let config = config(FsyncMode::SyncThenAcknowledge, true);
    let copy = process(disk, world, &config, Arc::default()).open();
    assert!(copy.expect("it can be opened").is_recovered(), "nothing is waited for");
}

/// A receiver process that has not begun.
pub fn process(disk: &Disk, world: &Arc<World>, config: &SourceConfig, stop: Arc<StopSignal>) -> Upstream {
    Upstream {
        config: config.clone(),
        data_dir: data_dir(),
        storage: Arc::new(disk.clone()),
        network: Arc::new(Way(world.clone())),
        clock: Arc::new(Way(world.clone())),
        monitor: Arc::new(SourceMonitor::new(SOURCE)),
        published: Arc::default(),
        quorum: None,
        stop,
    }
}
