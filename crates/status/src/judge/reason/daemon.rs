//! The disk, the readers and who is told, which no single source is concerned with.

use super::told::{certificate_level, problem};
use crate::events::Level;
use crate::events::Level::{Critical, Notice, Warning};
use crate::judge::verdict::{Topic, Worry};
use crate::notify::ReceiverStatus;
use crate::serving::{ReaderStatus, SlotStatus};
use crate::snapshot::{DaemonStatus, DiskStatus};
use crate::units;
use crate::units::time::human_time;
use jiff::Timestamp;

/// A disk that lasts less long needs somebody soon, and one that lasts less than the second, now.
const DISK_HOURS_MIN: f64 = 24.0;
const DISK_HOURS_CRITICAL: f64 = 4.0;
/// A reader that is further behind needs a look.
const READER_BEHIND_SECONDS_MAX: u64 = 300;
/// A slot that is further behind while its reader is here, too: its reader may wait on purpose.
const SLOT_BEHIND_SECONDS_MAX: u64 = 3600;

/// The disk, the readers and who is told.
#[derive(Clone, Debug)]
pub(crate) enum OfDaemon<'a> {
    /// No source is configured.
    NoSource,
    /// The file system does not tell.
    DiskUnmeasured,
    /// What is free lasts for hours, for less than a day, or is less than `disk_warn`: the level, and how that is said.
    DiskFills(&'a DiskStatus, Level, &'static str),
    /// Who is to be told of changes is not reached, or not tried any more.
    ReceiverDown(&'a ReceiverStatus),
    /// A slot keeps nothing, and why.
    SlotReleased(&'a SlotStatus, &'a str),
    /// The reader of a slot is away.
    ReaderGone(&'a SlotStatus),
    /// A slot is so many seconds behind.
    SlotBehind(&'a SlotStatus, u64),
    /// A reader is so many seconds behind.
    ReaderBehind(&'a ReaderStatus, u64),
    /// The certificate of the port for readers ends then, in so many seconds.
    Certificate { at: Timestamp, left: i64 },
}

impl<'a> OfDaemon<'a> {
    /// All of them.
    pub(crate) fn of(status: &'a DaemonStatus, now: Timestamp) -> Vec<OfDaemon<'a>> {
        let mut found = Vec::new();
        if status.sources.is_empty() {
            found.push(OfDaemon::NoSource);
        }
        found.extend(status.disk.as_ref().map_or(Some(OfDaemon::DiskUnmeasured), OfDaemon::of_disk));
        found.extend(status.notify.iter().filter(|receiver| receiver.down).map(OfDaemon::ReceiverDown));
        let Some(serve) = &status.serve else { return found };
        for slot in &serve.slots {
            let is_behind = |behind: &u64| *behind > SLOT_BEHIND_SECONDS_MAX;
            found.extend(match (&slot.released, slot.connected) {
                (Some(why), _) => Some(OfDaemon::SlotReleased(slot, why)),
                (None, false) => Some(OfDaemon::ReaderGone(slot)),
                (None, true) => {
                    slot.behind_seconds.filter(is_behind).map(|behind| OfDaemon::SlotBehind(slot, behind))
                }
            });
        }
        for reader in &serve.readers {
            let behind = reader.behind_seconds.filter(|behind| *behind > READER_BEHIND_SECONDS_MAX);
            found.extend(behind.map(|behind| OfDaemon::ReaderBehind(reader, behind)));
        }
        found.extend(serve.tls_certificate_expires.and_then(|at| {
            let left = at.as_second() - now.as_second();
            certificate_level(left).map(|_| OfDaemon::Certificate { at, left })
        }));
        found
    }

    fn of_disk(disk: &'a DiskStatus) -> Option<OfDaemon<'a>> {
        let lasts_less = |than: f64| disk.hours_left.is_some_and(|hours| hours < than);
        if lasts_less(DISK_HOURS_CRITICAL) {
            Some(OfDaemon::DiskFills(disk, Critical, "is full within hours"))
        } else if disk.low {
            Some(OfDaemon::DiskFills(disk, Warning, "is running full"))
        } else if lasts_less(DISK_HOURS_MIN) {
            Some(OfDaemon::DiskFills(disk, Warning, "lasts less than a day"))
        } else {
            None
        }
    }

    pub(super) fn problem(&self) -> Worry {
        let slot_of = |slot: &SlotStatus| format!("{} of {}", slot.name, slot.source);
        match self {
            OfDaemon::NoSource => problem(
                ("no_source", Topic::State, Critical),
                "There is no source: nothing is copied.",
                "Add a [[source]].",
            ),
            OfDaemon::DiskUnmeasured => problem(
                ("disk_unmeasured", Topic::Disk, Warning),
                "The file system of the data folder cannot be measured.",
                "",
            ),
            OfDaemon::DiskFills(disk, level, how) => {
                let lasts = |hours| format!(", for {} at this rate", units::hours(hours));
                let text = format!(
                    "The disk {how}: {} of {} are free{}.",
                    units::bytes(disk.free_bytes),
                    units::bytes(disk.size_bytes),
                    disk.hours_left.map(lasts).unwrap_or_default()
                );
                let advice =
                    "Make the file system larger, or let [retention] or PURGE BINARY LOGS delete old files.";
                problem(("disk_fills", Topic::Disk, *level), text, advice)
            }
            // No more than a notice while it is tried: otherwise each failure of one receiver would be told to the others.
            OfDaemon::ReceiverDown(receiver) => {
                let why =
                    receiver.last_error.as_ref().map(|error| error.message.as_str()).unwrap_or_default();
                let (level, advice) = if receiver.ended {
                    (Warning, "Restart binlogd, and report the lines of the log.")
                } else {
                    (Notice, "It is tried again, and then told what holds.")
                };
                let text = format!("{} in [notify] is not told of changes: {why}.", receiver.key);
                problem(("receiver_down", Topic::Other, level), text, advice)
            }
            OfDaemon::SlotReleased(slot, why) => problem(
                ("slot_released", Topic::Readers, Warning),
                format!("The slot {} keeps nothing any more: {why}", slot_of(slot)),
                "Its reader may have to be set up anew.",
            ),
            OfDaemon::ReaderGone(slot) => problem(
                ("reader_gone", Topic::Readers, Warning),
                format!(
                    "The reader of the slot {} is gone since {}.",
                    slot_of(slot),
                    units::duration(slot.away_seconds)
                ),
                "",
            ),
            OfDaemon::SlotBehind(slot, seconds) => problem(
                ("slot_behind", Topic::Readers, Warning),
                format!("The slot {} is {} behind.", slot_of(slot), units::duration(*seconds)),
                "",
            ),
            OfDaemon::ReaderBehind(reader, seconds) => problem(
                ("reader_behind", Topic::Readers, Warning),
                format!(
                    "The reader {} of {} is {} behind.",
                    reader.user,
                    reader.source,
                    units::duration(*seconds)
                ),
                "",
            ),
            OfDaemon::Certificate { at, left } => {
                let has = if *left > 0 { "ends" } else { "has ended" };
                problem(
                    ("certificate", Topic::Certificate, certificate_level(*left).unwrap_or_default()),
                    format!("The certificate of the port for readers {has} at {}.", human_time(*at)),
                    "Replace tls_cert and tls_key of [serve], and reload (SIGHUP).",
                )
            }
        }
    }
}
