//! The file system of the data folder: what is free, how long that lasts, and when to warn.

use super::lock::lock;
use super::snapshot::DiskStatus;
use crate::figures::rate::Rate;
use config::DiskWarn;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// A warning ends when this share of the watermark is free above it, so that a value that goes to and fro about the
/// watermark warns once.
const HYSTERESIS_DIVISOR: u64 = 10;

/// A file system at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that an ordinary user can still write; less than what is free where some is reserved for root.
    pub free: u64,
    /// Bytes that only root can still write.
    pub reserved: u64,
    /// Bytes in all.
    pub size: u64,
}

impl DiskSpace {
    /// Of the file system that `path` lies on (statvfs).
    ///
    /// # Errors
    /// When the path cannot be reached, or its file system does not tell, as ramfs does not.
    pub fn of(path: &Path) -> io::Result<DiskSpace> {
        let found = rustix::fs::statvfs(path)?;
        if found.f_blocks == 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "its file system has no size of its own"));
        }
        Ok(DiskSpace {
            free: found.f_bavail.saturating_mul(found.f_frsize),
            reserved: found.f_bfree.saturating_sub(found.f_bavail).saturating_mul(found.f_frsize),
            size: found.f_blocks.saturating_mul(found.f_frsize),
        })
    }

    /// Bytes that this process can still write.
    pub fn writable(&self) -> u64 {
        if rustix::process::geteuid().is_root() { self.free + self.reserved } else { self.free }
    }
}

/// A watermark that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// What is free has fallen below it.
    Below,
    /// What is free is well above it again.
    Above,
}

/// What the daemon knows of the file system of its data folder. One thread measures; anybody reads.
#[derive(Debug)]
pub struct DiskMonitor {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    warn: DiskWarn,
    space: Option<DiskSpace>,
    is_low: bool,
    rate: Rate,
}

impl DiskMonitor {
    /// Nothing measured yet.
    pub fn new(warn: DiskWarn) -> DiskMonitor {
        DiskMonitor { state: Mutex::new(State { warn, space: None, is_low: false, rate: Rate::default() }) }
    }

    /// Sets the watermark. It counts from the next measurement on.
    pub fn set_warn(&self, warn: DiskWarn) {
        lock(&self.state).warn = warn;
    }

    /// The watermark as it was configured.
    pub fn warn(&self) -> DiskWarn {
        lock(&self.state).warn
    }

    /// Takes a measurement. `at` is the time since the start, `stored` the bytes that all sources have stored since
    /// then, without what was cut off again. Says whether the watermark was passed since the one before.
    pub fn observe(&self, at: Duration, space: DiskSpace, stored: u64) -> Option<Crossing> {
        let mut state = lock(&self.state);
        state.space = Some(space);
        state.rate.record(at, stored);
        let is_low = is_low(state.is_low, space, state.warn.threshold(space.size));
        match (std::mem::replace(&mut state.is_low, is_low), is_low) {
            (false, true) => Some(Crossing::Below),
            (true, false) => Some(Crossing::Above),
            _ => None,
        }
    }

    /// The file system cannot be measured any more.
    pub fn forget(&self) {
        lock(&self.state).space = None;
    }

    /// The last measurement; `None` before the first one and while there is none.
    pub fn status(&self) -> Option<DiskStatus> {
        let state = lock(&self.state);
        let space = state.space?;
        Some(DiskStatus {
            free_bytes: space.free,
            size_bytes: space.size,
            warn_below_bytes: state.warn.threshold(space.size),
            low: state.is_low,
            hours_left: state.rate.bytes_per_second().map(|rate| hours_left(space.free, rate)),
        })
    }
}

/// Whether so little is free that it is worth a warning, after it `was_low`.
fn is_low(was_low: bool, space: DiskSpace, threshold: Option<u64>) -> bool {
    let Some(threshold) = threshold else { return false };
    // A watermark near the size of the file system must be left below that size.
    let margin = (threshold / HYSTERESIS_DIVISOR).min(space.size.saturating_sub(threshold) / 2);
    space.free < if was_low { threshold + margin } else { threshold }
}

/// To two decimals, which are half a minute.
fn hours_left(free: u64, bytes_per_second: f64) -> f64 {
    (free as f64 / bytes_per_second / 36.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn free(free: u64) -> DiskSpace {
        DiskSpace { free, reserved: 0, size: 100 * GIB }
    }

    #[test]
    fn a_watermark_is_passed_once_each_way() {
        for warn in [DiskWarn::Percent(10), DiskWarn::Bytes(10 * GIB)] {
            let disk = DiskMonitor::new(warn);
            let crossings: Vec<_> =
                [11 * GIB, 10 * GIB, 10 * GIB - 1, 10 * GIB, 0, 11 * GIB - 1, 11 * GIB, 9 * GIB]
                    .into_iter()
                    .map(|bytes| disk.observe(seconds(1), free(bytes), 0))
                    .collect();
            use Crossing::{Above, Below};
            assert_eq!(
                crossings,
                [None, None, Some(Below), None, None, None, Some(Above), Some(Below)],
                "{warn}"
            );
            assert!(disk.status().unwrap().low);
        }
    }

    #[test]
    fn the_highest_watermark_can_be_left() {
        let disk = DiskMonitor::new(DiskWarn::Percent(99));
        assert_eq!(disk.observe(seconds(1), free(98 * GIB), 0), Some(Crossing::Below));
        assert_eq!(disk.observe(seconds(2), free(99 * GIB), 0), None);
        assert_eq!(disk.observe(seconds(3), free(100 * GIB), 0), Some(Crossing::Above));
        // An amount that is more than the file system has is never reached, and the warning stays.
        let disk = DiskMonitor::new(DiskWarn::Bytes(200 * GIB));
        assert_eq!(disk.observe(seconds(1), free(100 * GIB), 0), Some(Crossing::Below));
        assert_eq!(disk.observe(seconds(2), free(100 * GIB), 0), None);
    }

    #[test]
    fn a_changed_watermark_counts_from_the_next_measurement_on() {
        let disk = DiskMonitor::new(DiskWarn::Off);
        assert_eq!(
            (disk.observe(seconds(1), free(0), 0), disk.status().unwrap().warn_below_bytes),
            (None, None)
        );
        disk.set_warn(DiskWarn::Percent(1));
        assert_eq!(disk.observe(seconds(2), free(0), 0), Some(Crossing::Below));
        disk.set_warn(DiskWarn::Off);
        assert_eq!(disk.observe(seconds(3), free(0), 0), Some(Crossing::Above));
    }

    #[test]
    fn hours_left_follow_the_rate_of_the_window() {
        let disk = DiskMonitor::new(DiskWarn::Off);
        assert_eq!(disk.status(), None);
        let hours = |at: u64, stored| {
            disk.observe(seconds(at), free(36 * GIB), stored);
            disk.status().unwrap().hours_left
        };
        assert_eq!(hours(0, 0), None, "one measurement is no rate");
        assert_eq!(hours(10, 0), None, "idle");
        assert_eq!(hours(20, 20 * (1 << 20)), Some(10.24), "1 MiB a second");
        // The burst leaves the window, and the rate falls to nothing.
        assert_eq!(hours(610, 20 * (1 << 20)), Some(307.2), "from second 10 on, 20 MiB in 600 s");
        assert_eq!(hours(620, 20 * (1 << 20)), None);
        disk.forget();
        assert_eq!(disk.status(), None);
    }

    #[test]
    fn a_file_system_is_measured() {
        let space = DiskSpace::of(Path::new("/")).unwrap();
        assert!(space.free <= space.size && space.size > 0, "{space:?}");
        assert!(DiskSpace::of(Path::new("/nonexistent")).is_err());
    }
}
