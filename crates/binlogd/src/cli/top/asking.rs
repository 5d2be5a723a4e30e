//! Asks the daemon again and again, from a thread: one that does not answer must not hold up the keys.

use crate::cli::status::target::{Target, TargetArgs};
use status::DaemonStatus;
use std::io;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Pause between two questions.
const INTERVAL: Duration = Duration::from_secs(1);
/// A daemon that takes long for its answer is asked less often: at most this part of the time it answers.
const BUSY_DIVISOR: u32 = 5;

/// One question and what came of it.
pub(super) struct Look {
    /// When the answer was there.
    pub(super) at: Instant,
    /// The status, or in words why there is none.
    pub(super) answer: Result<DaemonStatus, String>,
}

/// Asks until nobody listens any more. Whom to ask is found anew each time, because a daemon that was started again may have
/// another address.
pub(super) fn start(target: TargetArgs) -> io::Result<Receiver<Look>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("asking".to_owned()).spawn(move || {
        loop {
            let began = Instant::now();
            let answer = match Target::of(&target) {
                Ok(target) => target.ask(),
                Err(error) => Err(format!("{error:#}")),
            };
            let at = Instant::now();
            if sender.send(Look { at, answer }).is_err() {
                return;
            }
            let took = at.duration_since(began);
            std::thread::sleep(INTERVAL.saturating_sub(took).max(took * (BUSY_DIVISOR - 1)));
        }
    })?;
    Ok(receiver)
}
