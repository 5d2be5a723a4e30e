//! The archives of the sources, as metrics.

use super::families::{SourceLabel, counters, gauges, of};
use jiff::Timestamp;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use status::{ArchiveStatus, BackupsStatus, SourceMonitor};
use std::fmt::Result;
use std::sync::Arc;

/// One series a source that is archived.
pub(crate) fn encode(
    encoder: &mut DescriptorEncoder,
    sources: &[Arc<SourceMonitor>],
    now: Timestamp,
) -> Result {
    let shown: Vec<_> =
        sources.iter().filter_map(|source| Some((of(source), source.archive.status(now)?))).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let behind = shown.iter().filter_map(|(source, archive)| Some((*source, archive.behind_seconds?)));
    let help = "Since the archive had everything that was durable; absent until it has for the first time";
    gauges(encoder, "binlogd_archive_behind", Some(&Unit::Seconds), help, behind)?;
    let failing = shown.iter().map(|(source, archive)| (*source, u64::from(archive.error.is_some())));
    gauges(
        encoder,
        "binlogd_archive_failing",
        None,
        "1 while the archive is not kept up, otherwise 0",
        failing,
    )?;
    let put_back = shown.iter().map(|(source, archive)| (*source, u64::from(archive.put_back().is_some())));
    gauges(
        encoder,
        "binlogd_archive_put_back",
        None,
        "1 while the store does not have the last commit that was seen there: nothing is archived or purged; otherwise 0",
        put_back,
    )?;
    let verified = || shown.iter().filter_map(|(source, archive)| Some((*source, archive.verify.as_ref()?)));
    gauges(
        encoder,
        "binlogd_archive_verify_last_run_timestamp",
        Some(&Unit::Seconds),
        "When the last verification of the archive on a schedule began that came to its end, absent before the first",
        verified().filter_map(|(source, verify)| Some((source, seconds(verify.at?)))),
    )?;
    gauges(
        encoder,
        "binlogd_archive_verify_due_timestamp",
        Some(&Unit::Seconds),
        "When the archive is to be verified next; what lies far back says that no run comes to its end",
        verified().filter_map(|(source, verify)| Some((source, seconds(verify.due?)))),
    )?;
    gauges(
        encoder,
        "binlogd_archive_findings",
        None,
        "Problems of objects of the archive: those that its last verification found, and those of files that were to be deleted here",
        shown.iter().map(|(source, archive)| (*source, archive.findings())),
    )?;
    backups(encoder, &shown)?;
    drills(encoder, &shown, now)?;
    let mut count = |name, unit: Option<&Unit>, help, value: fn(&ArchiveStatus) -> u64| {
        let rows = shown.iter().map(|(source, archive)| (*source, value(archive)));
        counters(encoder, name, unit, help, rows)
    };
    let bytes = Some(&Unit::Bytes);
    let help = "Bytes of binary logs that came into the archive";
    count("binlogd_archive_plain", bytes, help, |archive| archive.plain_bytes)?;
    let help = "Bytes of binary logs that were uploaded once more, to make large objects of small ones";
    count("binlogd_archive_again", bytes, help, |archive| archive.again_bytes)?;
    let help = "Bytes of the objects that were made, compressed and encrypted";
    count("binlogd_archive_stored", bytes, help, |archive| archive.stored_bytes)?;
    let help = "Bytes of objects that were fetched for readers of files that are not here any more";
    count("binlogd_archive_read", bytes, help, |archive| archive.read_bytes)?;
    count("binlogd_archive_commits", None, "Commits of the archive", |archive| archive.commits)
}

/// What the backups in the archive lead to.
fn backups(encoder: &mut DescriptorEncoder, shown: &[(SourceLabel<'_>, ArchiveStatus)]) -> Result {
    let all = || shown.iter().filter_map(|(source, archive)| Some((*source, archive.backups.as_ref()?)));
    let mut count = |name, help, value: fn(&BackupsStatus) -> u64| {
        gauges(encoder, name, None, help, all().map(|(source, backups)| (source, value(backups))))
    };
    count("binlogd_backups", "Backups in the archive", |backups| backups.count)?;
    count(
        "binlogd_backups_with_log",
        "Backups in the archive whose log is there: the others restore their own moment alone",
        |backups| backups.with_log,
    )?;
    let mut time = |name, help, value: fn(&BackupsStatus) -> Option<Timestamp>| {
        let rows = all().filter_map(|(source, backups)| Some((source, seconds(value(backups)?))));
        gauges(encoder, name, Some(&Unit::Seconds), help, rows)
    };
    time(
        "binlogd_backup_newest_timestamp",
        "When the newest backup was finished that has its log, absent without one",
        |backups| backups.newest,
    )?;
    time(
        "binlogd_recoverable_from_timestamp",
        "The oldest moment from which on the archive alone restores each one, absent where it restores none",
        |backups| backups.recoverable_from,
    )?;
    time(
        "binlogd_recoverable_to_timestamp",
        "The newest moment that the archive alone restores, by the source's clock, absent where it restores none",
        |backups| backups.recoverable_to,
    )
}

/// What drills have shown.
fn drills(
    encoder: &mut DescriptorEncoder,
    shown: &[(SourceLabel<'_>, ArchiveStatus)],
    now: Timestamp,
) -> Result {
    let all = || shown.iter().filter_map(|(source, archive)| Some((*source, archive.drill.as_ref()?)));
    let passed = || all().filter_map(|(source, drill)| Some((source, drill.last_passed.as_ref()?)));
    gauges(
        encoder,
        "binlogd_drill_last_passed",
        None,
        "1 when the last drill has brought back what it must, otherwise 0, absent before the first",
        all().filter_map(|(source, drill)| Some((source, u64::from(drill.list.first()?.passed)))),
    )?;
    gauges(
        encoder,
        "binlogd_drill_overdue",
        None,
        "1 while no drill has passed for two days, otherwise 0",
        all().map(|(source, drill)| (source, u64::from(drill.overdue(now).is_some()))),
    )?;
    gauges(
        encoder,
        "binlogd_drill_last_success_timestamp",
        Some(&Unit::Seconds),
        "When the last drill that passed ended, absent before the first",
        passed().map(|(source, result)| (source, seconds(result.finished))),
    )?;
    gauges(
        encoder,
        "binlogd_drill_duration",
        Some(&Unit::Seconds),
        "How long the last drill took that passed: the measured time to recover; absent before the first",
        passed().map(|(source, result)| (source, result.seconds.ceil() as u64)),
    )
}

fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_second()).unwrap_or(0)
}
