//! The status of a data folder whose daemon does not run.

use admin::AddressFile;
use anyhow::Context;
use binlog::folder::{LOCK_FILE, source_folders, timelines};
use binlog::forks::{Fate, Forks};
use binlog::journal::waiting;
use binlog::storage::posix::PosixStorage;
use binlog::timeline::Timeline;
use binlog::timeline::gaps::Gaps;
use binlog::timeline::offline::resume_point;
use codec::ServerKind;
use jiff::Timestamp;
use receive::attempt::open_timeline::missing;
use status::{DaemonStatus, DiskSpace, DiskStatus, GtidTexts, Ladder, SourceStatus, StateName, absolute};
use std::io;
use std::path::Path;

/// Reads the files: per source its newest timeline, and as received, written and durable the place at which a restart
/// would go on. `acknowledged` stays unknown: all of it may have been acknowledged. Locks nothing and repairs nothing.
///
/// # Errors
/// When the data folder cannot be read. A source that cannot be read says so in its `state_detail`.
pub(in crate::cli) fn from_files(data_dir: &Path) -> anyhow::Result<DaemonStatus> {
    let sources = source_folders(&PosixStorage, data_dir)
        .with_context(|| format!("cannot read {}", data_dir.display()))?;
    Ok(DaemonStatus {
        binlogd_version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: None,
        uptime_seconds: None,
        data_dir: absolute(data_dir).display().to_string(),
        disk: DiskSpace::of(data_dir).ok().map(disk_status),
        running: false,
        sources: sources.into_iter().map(|(name, folder)| source(name, &folder)).collect(),
        ..DaemonStatus::default()
    }
    .judged(Timestamp::now()))
}

/// Without a daemon there is no rate, and no watermark is known.
fn disk_status(space: DiskSpace) -> DiskStatus {
    DiskStatus { free_bytes: space.free, size_bytes: space.size, ..DiskStatus::default() }
}

fn source(name: String, folder: &Path) -> SourceStatus {
    let mut status = SourceStatus { name, state: StateName::NotRunning, ..SourceStatus::default() };
    status.semi_sync.reason = StateName::NotRunning.to_string();
    if let Err(error) = fill(&mut status, folder) {
        status.state_detail = Some(format!("the files cannot be read: {error}"));
    }
    if let Some(process) = holder(folder) {
        // The daemon writes it when it begins to listen.
        let has_listened = folder.parent().and_then(AddressFile::read).is_some();
        status.state_detail = Some(if has_listened {
            format!(
                "but process {process}, a binlogd, has the folder and does not answer: it hangs, was stopped (SIGSTOP), or listens at \
                 another address. Starting the service does nothing then; restarting it does"
            )
        } else {
            format!(
                "but process {process}, a binlogd, has the folder and may be well: it listens nowhere (listen = \"off\" in [admin]), and \
                 what stands here is what its files say. With listen it can be asked"
            )
        });
    }
    status
}

/// The process that has the folder, if one has. Its lock is not tried: that would be in the way of a daemon that starts just now.
fn holder(folder: &Path) -> Option<u32> {
    let process: u32 = std::fs::read_to_string(folder.join(LOCK_FILE)).ok()?.trim().parse().ok()?;
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    (name.trim() == "binlogd" && process != std::process::id()).then_some(process)
}

fn fill(status: &mut SourceStatus, folder: &Path) -> io::Result<()> {
    let Some(newest) = timelines(&PosixStorage, folder)?.pop() else {
        status.state_detail = Some("nothing copied yet".to_owned());
        return Ok(());
    };
    status.timeline = newest.file_name().map(|name| name.to_string_lossy().into_owned());
    status.state_detail = waiting(&PosixStorage, folder)?.map(|waiting| waiting.to_string());
    // A description that cannot be read is told below.
    let gaps = Gaps::read(&PosixStorage, folder).unwrap_or_default();
    if let Some(point) = resume_point(&PosixStorage, &newest)? {
        let position = Some(point.position);
        status.positions = Ladder {
            received: position.clone(),
            written: position.clone(),
            durable: position,
            acknowledged: None,
        };
        let durable = gaps.stored(point.gtids).to_line();
        status.gtid = GtidTexts { durable, acknowledged: String::new() };
    }
    let missing = missing(&gaps);
    status.missing = missing.gtids.to_line();
    status.missing_transactions = missing.count();
    status.gaps = missing.gaps;
    if let Some(forks) = Forks::read(&PosixStorage, folder, || true)? {
        status.gtids_given_twice = forks.count(Fate::GivenTwice);
        status.given_twice = forks.gtids(Fate::GivenTwice).to_line();
    }
    // Last, so that a description that cannot be read hides nothing of the files.
    let timeline = Timeline::read(&PosixStorage, &newest)?;
    status.server_version = Some(timeline.server_version);
    match timeline.server_kind {
        ServerKind::MySql => status.server_uuid = Some(timeline.server_uuid),
        ServerKind::MariaDb => {
            status.server_id = timeline.server_uuid.strip_prefix("mariadb-").and_then(|id| id.parse().ok());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};

    fn timeline(kind: ServerKind, server_uuid: &str) -> Timeline {
        Timeline { server_kind: kind, ..first_timeline(server_uuid) }
    }

    #[test]
    fn the_newest_timeline_of_each_source_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (orders, stock) = (dir.path().join("orders"), dir.path().join("stock"));
        std::fs::create_dir_all(&orders).unwrap();
        std::fs::create_dir_all(&stock).unwrap();
        std::fs::create_dir_all(dir.path().join("other")).unwrap();
        timeline(ServerKind::MySql, "old").create(&PosixStorage, &orders, 1).unwrap();
        let newest = timeline(ServerKind::MySql, SERVER_UUID).create(&PosixStorage, &orders, 2).unwrap();
        timeline(ServerKind::MariaDb, "mariadb-7").create(&PosixStorage, &stock, 1).unwrap();
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 10);
        let end = builder.len() as u64;
        let whole = builder.transaction(2, 10).finish();
        std::fs::write(newest.join("b.000001"), &whole[..whole.len() - 1]).unwrap();

        let status = from_files(dir.path()).unwrap();
        assert!(!status.running && status.pid.is_none());
        assert!(status.disk.as_ref().is_some_and(|disk| disk.size_bytes > 0 && disk.hours_left.is_none()));
        let [orders, stock] = &status.sources[..] else { panic!("{status:?}") };
        assert_eq!((orders.name.as_str(), &orders.state), ("orders", &StateName::NotRunning));
        assert_eq!(orders.timeline, Some(format!("0002-{SERVER_UUID}")));
        assert_eq!(orders.server_uuid.as_deref(), Some(SERVER_UUID));
        let at = Some(binlog::Position::new("b.000001", end));
        assert_eq!((&orders.positions.received, &orders.positions.durable), (&at, &at));
        assert_eq!(orders.positions.acknowledged, None);
        assert_eq!(orders.gtid.durable, format!("{SERVER_UUID}:1"));
        assert_eq!((&stock.server_uuid, stock.server_id, &stock.positions.durable), (&None, Some(7), &None));
    }

    #[test]
    fn what_cannot_be_read_is_told_and_hides_no_other_source() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("orders");
        std::fs::create_dir_all(&source).unwrap();
        let folder = timeline(ServerKind::MySql, SERVER_UUID).create(&PosixStorage, &source, 1).unwrap();
        std::fs::write(folder.join("timeline.toml"), "broken").unwrap();
        std::fs::write(folder.join("b.000001"), FileBuilder::new().finish()).unwrap();
        let status = from_files(dir.path()).unwrap().sources.remove(0);
        assert!(status.state_detail.unwrap().contains("timeline.toml"));
        assert!(status.positions.durable.is_some());
        assert!(from_files(&dir.path().join("none")).unwrap_err().to_string().contains("cannot read"));
    }
}
