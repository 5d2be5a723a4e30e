//! Looks at the file system of the data folder every few seconds, and warns before it is full; and at what `binlogd verify`
//! has left there.

use crate::keeper::Keeper;
use crate::verified::VerifiedLook;
use source::stop::StopSignal;
use status::{Crossing, DaemonMonitor, DiskSpace, DiskStatus, Level};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Pause between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Looks once, then from a thread. What is found goes into `monitor`, and into the log when a watermark is passed.
///
/// # Errors
/// When the system has no thread or descriptor left.
pub(crate) fn watch(monitor: Arc<DaemonMonitor>) -> io::Result<Keeper> {
    let mut look = Look { monitor, failed: false, verified: VerifiedLook::default() };
    look.take();
    Keeper::start("disk", LOOK_INTERVAL, move |_: &StopSignal| {
        look.take();
        LOOK_INTERVAL
    })
}

struct Look {
    monitor: Arc<DaemonMonitor>,
    /// The last look failed: that is said once.
    failed: bool,
    verified: VerifiedLook,
}

impl Look {
    fn take(&mut self) {
        self.verified.take(&self.monitor);
        let data_dir = self.monitor.data_dir();
        let space = match DiskSpace::of(data_dir) {
            Ok(space) => space,
            Err(error) => {
                self.monitor.disk.forget();
                if !std::mem::replace(&mut self.failed, true) {
                    tracing::warn!(data_dir = %data_dir.display(), "cannot tell how much space is free: {error}");
                }
                return;
            }
        };
        self.failed = false;
        let crossing = self.monitor.disk.observe(
            self.monitor.uptime(),
            space,
            self.monitor.bytes_grown(jiff::Timestamp::now()),
        );
        let (Some(crossing), Some(disk)) = (crossing, self.monitor.disk.status()) else { return };
        let free = described(&disk);
        match crossing {
            Crossing::Below => {
                self.monitor.note(Level::Warning, "disk", format!("the disk is running full: {free}"));
            }
            Crossing::Above => {
                self.monitor.note(Level::Ok, "disk", format!("the disk has space again: {free}"))
            }
        }
        let (data_dir, disk_warn) = (data_dir.display(), self.monitor.disk.warn());
        match crossing {
            Crossing::Below => tracing::warn!(
                %data_dir, %disk_warn,
                "the disk is running full: {free}. When it is full nothing is acknowledged until there is space again: \
                 make the file system larger, or let [retention] or PURGE BINARY LOGS delete old files"
            ),
            Crossing::Above => tracing::info!(%data_dir, %disk_warn, "the disk has space again: {free}"),
        }
    }
}

/// What is free, in words.
fn described(disk: &DiskStatus) -> String {
    let free = format!("{} MiB of {} MiB are free", disk.free_bytes >> 20, disk.size_bytes >> 20);
    match disk.hours_left {
        Some(hours) => format!("{free}, enough for {hours:.1} hours at the present rate"),
        None => free,
    }
}
