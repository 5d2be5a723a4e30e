//! What a process has used of the processor and the disk.

use anyhow::Context;
use rig::processor::ProcessorTime;
use rustix::fs::{major, minor};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Bytes of what the kernel counts as a sector, whatever the disk's own is.
const SECTOR: u64 = 512;

/// The process under test.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number, told when it has been started.
    pub pid: Arc<OnceLock<u32>>,
    /// A folder on the disk that it writes to.
    pub dir: PathBuf,
}

impl Process {
    /// One that will be started and write to `dir`.
    pub fn new(dir: &Path) -> Process {
        Process { pid: Arc::default(), dir: dir.to_owned() }
    }

    /// What it has used until now. Waits for its start.
    ///
    /// # Errors
    /// When it is gone, or belongs to somebody else.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(*self.pid.wait(), &self.dir)
    }
}

/// What a process has used since its start; or, from [`Usage::since`], between two moments.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    at: Instant,
    /// Seconds of wall clock, between two moments only.
    pub seconds: f64,
    /// Seconds on a processor, user and system, of the threads that are alive.
    pub processor_seconds: f64,
    /// Bytes that it made the kernel write to a disk: pages of the page cache that it made dirty, and what it wrote past
    /// the page cache. What the file system writes of its own is not among them. Linux counts a page of the cache whole,
    /// and where a file was written in large pieces its pages are as large as a MiB, though only dirty blocks are written.
    pub written_bytes: u64,
    /// Bytes that were written to the disk, by whomever; 0 when it is no block device of its own.
    pub disk_bytes: u64,
}

impl Usage {
    fn of(pid: u32, dir: &Path) -> anyhow::Result<Usage> {
        let at = Instant::now();
        let processor_seconds = ProcessorTime::of(pid)?.seconds();
        let io = std::fs::read_to_string(format!("/proc/{pid}/io"))?;
        let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        let written_bytes =
            written.and_then(|number| number.parse().ok()).context("no write_bytes in /proc/<pid>/io")?;
        Ok(Usage { at, seconds: 0.0, processor_seconds, written_bytes, disk_bytes: disk_bytes(dir)? })
    }

    /// What was used after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            at: self.at,
            seconds: (self.at - earlier.at).as_secs_f64(),
            processor_seconds: self.processor_seconds - earlier.processor_seconds,
            written_bytes: self.written_bytes - earlier.written_bytes,
            disk_bytes: self.disk_bytes - earlier.disk_bytes,
        }
    }
}

/// Bytes written to the disk that holds `dir`, since the machine's start.
fn disk_bytes(dir: &Path) -> anyhow::Result<u64> {
    let device = std::fs::metadata(dir)?.dev();
    let stat = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    let Ok(stat) = std::fs::read_to_string(stat) else { return Ok(0) };
    let sectors = stat.split_whitespace().nth(6).and_then(|field| field.parse::<u64>().ok());
    Ok(sectors.context("no sectors written in the disk's stat")? * SECTOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Not of this process: other tests' threads end in between, and what they used is then gone from the sum.
    #[test]
    fn work_between_two_moments_is_seen() {
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let process = Process::new(Path::new("."));
        process.pid.set(busy.id()).unwrap();
        let before = process.usage().unwrap();
        let used = loop {
            let used = process.usage().unwrap().since(&before);
            if used.processor_seconds > 0.0 || used.seconds > 30.0 {
                break used;
            }
        };
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(used.processor_seconds > 0.0, "{used:?}");
    }
}
