//! How long the connection of a semi-sync replica stays open when its session has ended.
//!
//! **Until the next session is attached**, where that follows at once. The source's thread that reads acknowledgements waits for
//! up to a second on the connections that it knew of when the wait began, and takes a new one into account after that
//! (`Ack_receiver::run` of plugin/semisync/semisync_source_ack_receiver.cc in MySQL, of sql/semisync_master_ack_receiver.cc in
//! MariaDB). The end of one of these connections ends the wait. So the old one is closed when the new one is attached: closed
//! before, it costs the first commit the rest of that second.
//!
//! **For a moment at least** with MariaDB. MariaDB's thread that reads acknowledgements sleeps while no semi-sync replica is attached. When one comes and is gone
//! again before that thread has run, the thread finds an empty list and sleeps on, and the dump thread that ends waits
//! for an answer of it that never comes (`Ack_receiver::wait_for_slave_connection` and `Ack_receiver::remove_slave` of
//! sql/semisync_master_ack_receiver.cc). The next session of the same replica has to end that dump thread first and
//! waits for it, holding what logins need: the whole server hangs until it is killed. Seen with MariaDB 11.8 when
//! sessions ended a millisecond after they began, on a full disk. So the connection is not closed that early.

use source::clock::Clock;
use source::stop::StopSignal;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Far longer than a thread needs to wake up, on a busy machine too; short beside the pauses between attempts.
const ATTACHED_MIN: Duration = Duration::from_millis(250);

/// A connection that stays open until this value is dropped, whoever else closes it.
#[derive(Debug)]
pub(crate) struct Attached {
    socket: OwnedFd,
    since: Instant,
}

impl Attached {
    /// From now on, when the dump has just been asked for.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub(crate) fn begin(socket: BorrowedFd<'_>, clock: &dyn Clock) -> io::Result<Attached> {
        Ok(Attached { socket: socket.try_clone_to_owned()?, since: clock.now() })
    }

    /// Closes the connection as soon as a MariaDB can bear it, or when a stop is requested: whoever asks for one may kill
    /// the process next, which closes the connection too.
    pub(crate) fn leave(self, clock: &dyn Clock, stop: &StopSignal) {
        let lasted = clock.now().saturating_duration_since(self.since);
        clock.pause(stop, ATTACHED_MIN.saturating_sub(lasted));
        drop(self.socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use source::clock::SystemClock;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_session_that_ends_at_once_is_not_closed_at_once() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let began = Instant::now();
        let attached = Attached::begin(ours.as_fd(), &SystemClock).unwrap();
        drop(ours);
        let source = std::thread::spawn(move || {
            assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
            began.elapsed()
        });
        attached.leave(&SystemClock, &StopSignal::new());
        assert!(source.join().unwrap() >= Duration::from_millis(200));
    }
}
