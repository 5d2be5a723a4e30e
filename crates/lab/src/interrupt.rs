//! Ctrl-C: a run ends by an error, so that everything it started is stopped on the way out.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a wait looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Whether the run was asked to end. The default hears no signal.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The error of a run that was asked to end; found in an error by `downcast_ref`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

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

    /// Asks the run to end, as a signal does.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// [`Interrupted`] when the run was asked to end.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_by_what_it_waits_for_by_time_and_by_a_request() {
        let interrupt = Interrupt::default();
        let short = Duration::from_millis(20);
        assert_eq!(interrupt.wait(short, || Ok(Some(1))).unwrap(), Some(1));
        assert_eq!(interrupt.wait(short, || Ok(None::<u8>)).unwrap(), None);
        interrupt.clone().request();
        let error = interrupt.wait(short, || Ok(Some(1))).unwrap_err();
        assert_eq!(error.downcast_ref::<Interrupted>(), Some(&Interrupted));
    }
}
