//! Ctrl-C: a run ends by an error, so that everything it started is stopped on the way out.

use anyhow::bail;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a wait looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Whether the run was asked to end.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT, SIGTERM and SIGHUP no longer end the process; they are found here.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn install() -> anyhow::Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, flag.clone())?;
        }
        Ok(Interrupt(flag))
    }

    /// # Errors
    /// When the run was asked to end.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            bail!("interrupted; what was measured so far is in the file of cells");
        }
        Ok(())
    }

    /// Waits until `done` gives something; `None` after `longest`.
    ///
    /// # Errors
    /// Those of `done`, and when the run was asked to end.
    pub fn wait<T>(
        &self,
        longest: Duration,
        mut done: impl FnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Option<T>> {
        let deadline = Instant::now() + longest;
        loop {
            self.check()?;
            if let Some(value) = done()? {
                return Ok(Some(value));
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
