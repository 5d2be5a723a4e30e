//! A child, and a process that is stopped for a while. What one uses says [`crate::usage`].

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

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

/// Longest wait for a process to take SIGSTOP.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Stops a process with SIGSTOP, until somebody sends it SIGCONT. At the return none of its threads runs: the signal alone
/// is taken by one thread when that gets a processor, and until then the others go on.
///
/// # Errors
/// When there is no such process, it may not be stopped, or a thread of it still runs after a minute.
pub fn pause(process: Pid) -> anyhow::Result<()> {
    kill_process(process, Signal::STOP)
        .with_context(|| format!("process {process:?} does not take SIGSTOP"))?;
    let deadline = Instant::now() + PAUSE_MAX;
    while !is_paused(process)? {
        if Instant::now() >= deadline {
            bail!("process {process:?} has taken SIGSTOP and still runs after {PAUSE_MAX:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Whether every thread of a process is stopped.
fn is_paused(process: Pid) -> anyhow::Result<bool> {
    for thread in std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()))? {
        let Ok(stat) = std::fs::read_to_string(thread?.path().join("stat")) else { continue };
        // The state stands behind the name, which may hold anything.
        if stat.rsplit_once(") ").is_none_or(|(_, rest)| !rest.starts_with('T')) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The last lines that say something, as one.
pub fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_waited_for_until_the_limit() {
        let sleep = |seconds| Running(std::process::Command::new("sleep").arg(seconds).spawn().unwrap());
        let goes_on = sleep("60").wait_within(Duration::from_millis(10)).unwrap_err();
        assert!(goes_on.to_string().contains("has not ended within 10ms"), "{goes_on}");
        assert!(sleep("0").wait_within(Duration::from_secs(60)).unwrap().success());
    }

    /// Writes lines without a pause; stopped, it writes none.
    #[test]
    fn a_process_that_is_paused_does_nothing() {
        let lines = tempfile::NamedTempFile::new().unwrap();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "while :; do echo line; done"]).stdout(lines.reopen().unwrap());
        let child = Running(command.spawn().unwrap());
        let written = || lines.as_file().metadata().unwrap().len();
        for _ in 0..20 {
            let deadline = Instant::now() + PAUSE_MAX;
            let before = written();
            while written() == before {
                assert!(Instant::now() < deadline, "it writes");
            }
            pause(Pid::from_child(&child.0)).unwrap();
            let at_once = written();
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(written(), at_once);
            kill_process(Pid::from_child(&child.0), Signal::CONT).unwrap();
        }
    }

    #[test]
    fn nobody_cannot_be_paused() {
        let mut child = Running(std::process::Command::new("true").spawn().unwrap());
        child.wait_within(PAUSE_MAX).unwrap();
        assert!(pause(Pid::from_child(&child.0)).is_err());
    }
}
