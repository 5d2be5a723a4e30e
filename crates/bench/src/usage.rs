//! What a process has used of the processor and the disk.

use anyhow::Context;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The number of the process under test, told when it has been started.
pub type Pid = Arc<OnceLock<u32>>;

/// What a process has used since its start; or, from [`Usage::since`], between two moments.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    at: Instant,
    /// Seconds of wall clock, between two moments only.
    pub seconds: f64,
    /// Seconds on a processor, user and system, of the threads that are alive.
    pub processor_seconds: f64,
    /// Bytes that it made the kernel write to a disk: pages of the page cache that it made dirty, and what it wrote past
    /// the page cache. What the file system writes of its own is not among them.
    pub written_bytes: u64,
}

impl Usage {
    /// Of the process `pid`, until now.
    ///
    /// # Errors
    /// When the process is gone, or belongs to somebody else.
    pub fn of(pid: u32) -> anyhow::Result<Usage> {
        let at = Instant::now();
        let mut nanoseconds = 0u64;
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            // A thread may end meanwhile. The first number is its time on a processor, exact, not in clock ticks.
            let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
            nanoseconds += text.split(' ').next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        }
        let io = std::fs::read_to_string(format!("/proc/{pid}/io"))?;
        let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        let written_bytes =
            written.and_then(|number| number.parse().ok()).context("no write_bytes in /proc/<pid>/io")?;
        Ok(Usage { at, seconds: 0.0, processor_seconds: nanoseconds as f64 / 1e9, written_bytes })
    }

    /// What was used after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            at: self.at,
            seconds: (self.at - earlier.at).as_secs_f64(),
            processor_seconds: self.processor_seconds - earlier.processor_seconds,
            written_bytes: self.written_bytes - earlier.written_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_between_two_moments_is_seen() {
        let pid = std::process::id();
        let before = Usage::of(pid).unwrap();
        while before.at.elapsed().as_millis() < 30 {}
        let used = Usage::of(pid).unwrap().since(&before);
        assert!(used.seconds >= 0.03 && used.processor_seconds > 0.0, "{used:?}");
    }
}
