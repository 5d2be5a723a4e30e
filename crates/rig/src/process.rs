//! A child, and what the kernel tells of a process: processor time, memory, threads.

use anyhow::{Context, bail};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Memory of a process in KiB.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    /// Resident now (VmRSS).
    pub resident: u64,
    /// The most that was ever resident (VmHWM).
    pub highest: u64,
    /// Of `resident`, what is the process's own and not a mapped file (RssAnon).
    pub anonymous: u64,
}

/// Processor time that a process has used, all threads, user and system, in seconds. The kernel counts it in
/// hundredths; [`crate::processor`] is finer. But a process that has ended can be asked too, until it is waited for.
///
/// # Errors
/// When there is no such process.
pub fn processor_seconds(pid: u32) -> anyhow::Result<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name in brackets may hold blanks; utime and stime are fields 14 and 15.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / TICKS_PER_SECOND)
}

/// Memory of a process; all 0 for one that has ended and was not waited for.
///
/// # Errors
/// When there is no such process.
pub fn memory(pid: u32) -> anyhow::Result<Memory> {
    let status = status(pid)?;
    let field = |name| field(&status, name);
    Ok(Memory { resident: field("VmRSS:"), highest: field("VmHWM:"), anonymous: field("RssAnon:") })
}

/// Count of a process's threads.
///
/// # Errors
/// When there is no such process.
pub fn threads(pid: u32) -> anyhow::Result<u64> {
    Ok(field(&status(pid)?, "Threads:"))
}

fn status(pid: u32) -> anyhow::Result<String> {
    let path = format!("/proc/{pid}/status");
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// A child that is killed when dropped.
#[derive(Debug)]
pub struct Running(pub Child);

impl Running {
    /// Whether it has ended. It is not waited for, so that its processor time can still be asked for.
    ///
    /// # Errors
    /// When it was waited for already.
    pub fn has_ended(&self) -> anyhow::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        Ok(waitid(WaitId::Pid(Pid::from_child(&self.0)), options)?.is_some())
    }

    /// Waits for its end, `limit` at most: a test that waits without a limit hangs instead of failing.
    ///
    /// # Errors
    /// When it goes on after that.
    pub fn wait_within(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                bail!("process {} has not ended within {limit:?}", self.0.id());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_threads_and_memory() {
        let pid = std::process::id();
        assert!(threads(pid).unwrap() >= 1);
        assert!(memory(pid).unwrap().highest > 0);
        assert!(processor_seconds(pid).is_ok());
        assert!(processor_seconds(u32::MAX).is_err());
    }

    #[test]
    fn a_child_is_waited_for_until_the_limit() {
        let sleep = |seconds| Running(std::process::Command::new("sleep").arg(seconds).spawn().unwrap());
        let goes_on = sleep("60").wait_within(Duration::from_millis(10)).unwrap_err();
        assert!(goes_on.to_string().contains("has not ended within 10ms"), "{goes_on}");
        assert!(sleep("0").wait_within(Duration::from_secs(60)).unwrap().success());
    }
}
