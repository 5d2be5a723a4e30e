//! Waits for a key, and notices when the terminal is gone.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// What the terminal has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A key, or a part of one.
    Key,
    /// Nothing within the time, or a signal came.
    Nothing,
    /// It hung up: its window was closed, its connection is gone.
    HungUp,
}

/// Waits for a key, so long at most. crossterm (0.29) must not be asked before: it reads a terminal that has hung up again and again,
/// for ever, and no signal that is only noted ends that.
///
/// # Errors
/// Those of poll(2).
pub(super) fn wait(time: Duration) -> io::Result<Said> {
    let limit = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    let terminal = io::stdin();
    let mut asked = [PollFd::new(&terminal, PollFlags::IN)];
    match poll(&mut asked, Some(&limit)) {
        Ok(0) | Err(Errno::INTR) => return Ok(Said::Nothing),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    Ok(if asked[0].revents().intersects(gone) { Said::HungUp } else { Said::Key })
}
