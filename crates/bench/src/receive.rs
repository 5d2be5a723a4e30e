//! binlogd's own receive loop in a process of its own, with another storage behind it.

use crate::strategies::{JournalOpen, Strategy};
use anyhow::{Context, bail};
use binlogd::config::{
    AckTimeoutAction, FsyncMode, HostPort, OnFork, OnGap, OnStranger, SourceConfig, Start,
};
use binlogd::status::SourceMonitor;
use binlogd::upstream::Upstream;
use binlogd::upstream::clock::SystemClock;
use binlogd::upstream::stop::StopSignal;
use log::journal::JOURNAL_FILE;
use rig::statistics::Percentiles;
use rustix::fs::OFlags;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wire::{Secret, Tcp, TlsMode, TlsOptions};

/// O_DSYNC, as fdinfo shows it. rustix means O_SYNC by its DSYNC, which has another bit too.
const DSYNC: u32 = 0o10000;

/// Arguments of `binlogd-bench receive`.
#[derive(Debug, Clone, clap::Args)]
pub struct ReceiveArgs {
    /// How it stores.
    #[arg(long, value_enum, default_value = "product")]
    pub storage: Strategy,
    /// Port of the source on 127.0.0.1.
    #[arg(long)]
    pub port: u16,
    /// Folder for the data; it is made.
    #[arg(long)]
    pub dir: PathBuf,
}

/// Receives until standard input is closed, and prints the times from the arrival of a request to the leaving of its
/// acknowledgement, and the counts of acknowledgements and syncs, as JSON.
///
/// # Errors
/// When something fails, or the journal was not used as `--storage` says: a number would then have the wrong name.
pub fn run(args: &ReceiveArgs) -> anyhow::Result<()> {
    let monitor = Arc::new(SourceMonitor::new("bench"));
    let stop = Arc::new(StopSignal::new());
    let upstream = Upstream {
        config: config(args),
        data_dir: args.dir.clone(),
        storage: args.storage.storage(),
        network: Arc::new(Tcp),
        clock: Arc::new(SystemClock),
        monitor: monitor.clone(),
        published: Arc::default(),
        stop: stop.clone(),
    };
    let copy = upstream.open()?;
    let receiver = std::thread::Builder::new().name("recv-bench".to_owned()).spawn(|| upstream.run(copy))?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let open = journal_of_this_process(&args.dir); // Before the end, which closes it.
    stop.request();
    if receiver.join().is_err() {
        bail!("the receiver has panicked");
    }
    // After the end: the last acknowledgement is counted when it has left, and whoever got it may be here sooner.
    let counters = monitor.counters.values();
    let latency = monitor.acknowledge_latency.summary();
    let open = open?;
    if open != args.storage.journal() {
        bail!(
            "{}: the journal should be open as {:?} and was as {open:?}. A file system without direct output cannot be \
             measured so: choose another disk with --dir, or leave this one out with --strategies",
            args.storage,
            args.storage.journal()
        );
    }
    if counters.reconnects > 0 {
        bail!(
            "{}: the connection to the source broke: the numbers are of more than one session",
            args.storage
        );
    }
    let mut json = Percentiles::from_json(&serde_json::to_value(latency)?).to_json();
    json["syncs"] = counters.syncs.into();
    json["acknowledgements"] = counters.acknowledgements.into();
    println!("{json}");
    Ok(())
}

fn config(args: &ReceiveArgs) -> SourceConfig {
    SourceConfig {
        name: "bench".to_owned(),
        hosts: vec![HostPort { host: "127.0.0.1".to_owned(), port: args.port }],
        peers: Vec::new(),
        user: "bench".to_owned(),
        password: Secret::default(),
        password_file: None,
        server_id: None,
        start: Start::Resume,
        fsync_mode: FsyncMode::SyncThenAcknowledge,
        fsync_interval: Duration::from_secs(1),
        semi_sync: true,
        heartbeat_period: Duration::from_secs(5),
        net_read_timeout: Duration::from_secs(15),
        watch_interval: Duration::ZERO,
        connect_timeout: Duration::from_secs(10),
        backoff_min: Duration::from_millis(100),
        backoff_max: Duration::from_secs(30),
        tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
        on_gap: OnGap::Stop,
        on_fork: OnFork::Follow,
        ack_after_replicas: 0,
        ack_timeout: Duration::from_secs(10),
        ack_timeout_action: AckTimeoutAction::Wait,
        on_stranger: OnStranger::Refuse,
        archive: false,
    }
}

/// How this process has the journal below `dir` open; `None` when it has not.
fn journal_of_this_process(dir: &Path) -> anyhow::Result<Option<JournalOpen>> {
    let dir = dir.canonicalize()?;
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let Ok(target) = std::fs::read_link(entry.path()) else { continue };
        if target.starts_with(&dir) && target.file_name().is_some_and(|name| name == JOURNAL_FILE) {
            let info = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(entry.file_name()))?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = u32::from_str_radix(flags.context("no flags in fdinfo")?.trim(), 8)?;
            return Ok(Some(JournalOpen {
                direct: flags & OFlags::DIRECT.bits() != 0,
                dsync: flags & DSYNC != 0,
            }));
        }
    }
    Ok(None)
}
