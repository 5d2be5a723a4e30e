//! What is said of the daemon, before its sources.

use super::page::{Page, WIDTH, wrapped};
use super::rank::color;
use crate::cli::style::clean;
use crate::cli::units;
use jiff::Timestamp;
use status::{DaemonStatus, DiskStatus, Level, view};
use std::fmt::{Result, Write};

/// Width of what stands before the state of the disk.
const DISK_MARGIN: usize = "disk is low: ".len();
/// From here on nobody asks how much longer.
const YEAR_HOURS: f64 = 365.0 * 24.0;
/// What is said of the daemon, before its sources.
pub(super) fn head(status: &DaemonStatus, unanswered: Option<&str>, colored: bool, now: Timestamp) -> String {
    let mut page = Page::new(WIDTH, colored, now);
    // Writing to a String does not fail.
    let _ = page.daemon(status, unanswered);
    page.text
}

impl Page {
    fn daemon(&mut self, status: &DaemonStatus, unanswered: Option<&str>) -> Result {
        write!(self.text, "binlogd {}", clean(&status.binlogd_version))?;
        if let Some(pid) = status.pid {
            write!(self.text, ", process {pid}")?;
        }
        if let Some(uptime) = status.uptime_seconds {
            write!(self.text, ", running for {}", units::duration(uptime))?;
        }
        writeln!(self.text, "\ndata folder {}", clean(&status.data_dir))?;
        if let Some(disk) = &status.disk {
            self.disk(disk)?;
        }
        if let Some(why) = unanswered {
            for line in wrapped(&format!("Read from the files: {}.", clean(why)), self.width) {
                writeln!(self.text, "{line}")?;
            }
        }
        for sentence in view::if_this_site_burned(status, self.now) {
            for line in wrapped(&clean(&sentence), self.width) {
                writeln!(self.text, "{line}")?;
            }
        }
        if status.sources.is_empty() {
            writeln!(self.text, "\nno sources")?;
        }
        Ok(())
    }

    fn disk(&mut self, disk: &DiskStatus) -> Result {
        let mut text = space(disk);
        let mut margin = "disk        ".to_owned();
        if let Some(watermark) = disk.warn_below_bytes.filter(|_| disk.low) {
            write!(text, "; disk_warn is {}", units::bytes(watermark))?;
            margin = format!("{}: ", self.painted("disk is low", color(Level::Warning)));
        }
        for line in wrapped(&text, self.width - DISK_MARGIN) {
            writeln!(self.text, "{margin}{line}")?;
            margin = " ".repeat(DISK_MARGIN);
        }
        Ok(())
    }
}

/// What is free and how long that lasts.
fn space(disk: &DiskStatus) -> String {
    let text = free(disk);
    match time_left(disk) {
        Some(left) => format!("{text}, enough for {left} at the present rate"),
        None => text,
    }
}

/// What is free.
pub(in crate::cli) fn free(disk: &DiskStatus) -> String {
    format!("{} of {} free", units::bytes(disk.free_bytes), units::bytes(disk.size_bytes))
}

/// How long that lasts at the present rate; `None` when that is not known.
pub(in crate::cli) fn time_left(disk: &DiskStatus) -> Option<String> {
    Some(match disk.hours_left? {
        hours if hours > YEAR_HOURS => "more than a year".to_owned(),
        hours => units::duration((hours * 3600.0) as u64),
    })
}
