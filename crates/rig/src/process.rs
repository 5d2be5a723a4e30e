//! A child. What it uses says [`crate::usage`].

use anyhow::bail;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
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
}
