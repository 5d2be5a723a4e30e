//! The request to stop, which also wakes a thread that waits for its source; and the wish that it rests for a while.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::Shutdown;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Set once, seen by every thread that holds it. It needs no descriptor of its own: with hundreds of sources they count.
#[derive(Debug, Default)]
pub struct StopSignal {
    requested: AtomicBool,
    /// No session is to go on: a stop was requested, or the thread is to rest.
    ends_session: AtomicBool,
    sockets: Mutex<Sockets>,
    /// Told of the request, under the lock of `sockets`.
    wake: Condvar,
}

/// The sockets on which threads wait.
#[derive(Debug, Default)]
struct Sockets {
    held: Vec<(u64, OwnedFd)>,
    /// Why the reads were interrupted.
    interruption: Option<Interruption>,
    /// Why the thread is to rest.
    halted: Option<String>,
    /// It does.
    rests: bool,
    /// How often it was told to rest.
    halts: u64,
    next: u64,
}

/// Why the reads of a session are interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interruption {
    /// What arrives is not the source's present log, in words.
    LeftBehind(String),
    /// Another host of the list is the source.
    SwitchedOver {
        /// Its number in the list.
        to: usize,
        /// Its name.
        host: String,
    },
    /// The quorum of the source has gone on to another epoch, in words.
    Epoch(String),
}

/// Holds a socket that a [`StopSignal`] will shut down.
#[derive(Debug)]
pub struct ShutsDown<'a> {
    stop: &'a StopSignal,
    number: u64,
}

impl Drop for ShutsDown<'_> {
    fn drop(&mut self) {
        let mut sockets = self.stop.lock();
        let at = sockets.held.iter().position(|(number, _)| *number == self.number);
        let socket = at.map(|at| sockets.held.swap_remove(at));
        drop(sockets);
        drop(socket); // Closing may take its time.
    }
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The watched descriptor is readable or closed.
    Readable,
    /// The time is up.
    TimedOut,
    /// A stop was requested.
    Stop,
}

impl StopSignal {
    /// Not yet requested.
    pub fn new() -> StopSignal {
        StopSignal::default()
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests the stop.
    pub fn request(&self) {
        let sockets = self.lock();
        self.requested.store(true, Ordering::Release);
        self.end_session(&sockets);
    }

    fn end_session(&self, sockets: &Sockets) {
        self.ends_session.store(true, Ordering::Release);
        self.wake.notify_all();
        for (_, socket) in &sockets.held {
            // Fails when the connection has ended, and then nobody waits on it.
            let _ = rustix::net::shutdown(socket, Shutdown::Read);
        }
    }

    /// Lets the thread end its session and rest until [`resume`](Self::resume) or a stop. `why` is shown.
    pub fn halt(&self, why: String) {
        let mut sockets = self.lock();
        sockets.halted = Some(why);
        sockets.halts += 1;
        self.end_session(&sockets);
    }

    /// Lets the thread go on; false when it was not to rest.
    pub fn resume(&self) -> bool {
        let mut sockets = self.lock();
        self.ends_session.store(self.is_requested(), Ordering::Release);
        self.wake.notify_all();
        sockets.halted.take().is_some()
    }

    /// Why the thread is to rest; `None` when it is not.
    pub fn halted(&self) -> Option<String> {
        self.lock().halted.clone()
    }

    /// Rests until the thread may go on, or a stop is requested.
    pub fn rest(&self) {
        let mut sockets = self.lock();
        sockets.rests = true;
        self.wake.notify_all();
        while sockets.halted.is_some() && !self.is_requested() {
            sockets = self.wake.wait(sockets).unwrap_or_else(PoisonError::into_inner);
        }
        sockets.rests = false;
    }

    /// Waits until the thread rests, or need not any more; false when it does not within `timeout`.
    pub fn wait_resting(&self, timeout: Duration) -> bool {
        let is_awaited =
            |sockets: &mut Sockets| sockets.halted.is_some() && !sockets.rests && !self.is_requested();
        let waited = self.wake.wait_timeout_while(self.lock(), timeout, is_awaited);
        let (mut sockets, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !is_awaited(&mut sockets)
    }

    /// True while no session is to go on: after a request, and while the thread is to rest.
    pub fn ends_session(&self) -> bool {
        self.ends_session.load(Ordering::Acquire)
    }

    /// As long as the answer is held, the request shuts `socket` down for reading, which ends a read that waits there.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn shuts_down(&self, socket: BorrowedFd<'_>) -> io::Result<ShutsDown<'_>> {
        let socket = socket.try_clone_to_owned()?;
        let mut sockets = self.lock();
        if self.ends_session() {
            // It came before the socket was known.
            let _ = rustix::net::shutdown(&socket, Shutdown::Read);
        }
        let number = sockets.next;
        sockets.next += 1;
        sockets.held.push((number, socket));
        Ok(ShutsDown { stop: self, number })
    }

    /// Ends the reads that wait now, without a stop: whoever reads sees the end of the stream, and
    /// [`take_interruption`](Self::take_interruption) says why. Nothing happens when no read waits.
    pub fn interrupt(&self, why: Interruption) {
        let mut sockets = self.lock();
        if sockets.held.is_empty() {
            return;
        }
        sockets.interruption = Some(why);
        for (_, socket) in &sockets.held {
            let _ = rustix::net::shutdown(socket, Shutdown::Read);
        }
    }

    /// Why a read was interrupted, once.
    pub fn take_interruption(&self) -> Option<Interruption> {
        self.lock().interruption.take()
    }

    /// True from the request on.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Waits until the socket `watched` is readable, a stop is requested or `timeout` has passed. A request shuts the socket
    /// down for reading.
    ///
    /// # Errors
    /// As poll(2), and when the process has no descriptors left.
    pub(crate) fn wait_readable(&self, watched: BorrowedFd<'_>, timeout: Duration) -> io::Result<Woken> {
        let _shut_down = self.shuts_down(watched)?;
        let timeout = Timespec::try_from(timeout).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut fds = [PollFd::from_borrowed_fd(watched, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if self.is_requested() {
            return Ok(Woken::Stop);
        }
        Ok(if fds[0].revents().is_empty() { Woken::TimedOut } else { Woken::Readable })
    }

    /// Waits for a stop; true when one was requested within `timeout`. A wish to rest that comes meanwhile ends the wait.
    pub fn wait(&self, timeout: Duration) -> bool {
        let sockets = self.lock();
        let halts = sockets.halts;
        let goes_on = |sockets: &mut Sockets| !self.is_requested() && sockets.halts == halts;
        let waited = self.wake.wait_timeout_while(sockets, timeout, goes_on);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.is_requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_request_ends_every_wait() {
        let stop = StopSignal::new();
        assert!(!stop.wait(Duration::from_millis(1)));
        let (mut ours, _theirs) = UnixStream::pair().unwrap();
        let (second, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(stop.wait_readable(second.as_fd(), Duration::ZERO).unwrap(), Woken::TimedOut);
        let long = Duration::from_secs(60);
        std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                let socket = ours.try_clone().unwrap();
                let _shut_down = stop.shuts_down(socket.as_fd()).unwrap();
                ours.read(&mut [0; 8]).unwrap()
            });
            let poll = scope.spawn(|| stop.wait_readable(second.as_fd(), long).unwrap());
            let pause = scope.spawn(|| stop.wait(long));
            std::thread::sleep(Duration::from_millis(20));
            stop.request();
            assert_eq!(read.join().unwrap(), 0);
            assert_eq!(poll.join().unwrap(), Woken::Stop);
            assert!(pause.join().unwrap());
        });
        assert!(stop.wait(Duration::ZERO) && stop.lock().held.is_empty());
        assert!(stop.ends_session());
        let (mut late, _theirs) = UnixStream::pair().unwrap();
        let socket = late.try_clone().unwrap();
        let _shut_down = stop.shuts_down(socket.as_fd()).unwrap();
        assert_eq!(
            late.read(&mut [0; 8]).unwrap(),
            0,
            "a socket that comes after the request is shut down too"
        );
    }

    #[test]
    fn a_thread_rests_until_it_may_go_on() {
        let stop = StopSignal::new();
        let long = Duration::from_secs(60);
        assert!(!stop.resume() && stop.wait_resting(long), "it was not to rest");
        let (mut ours, _theirs) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let _held = stop.shuts_down(ours.as_fd()).unwrap();
            let pause = scope.spawn(|| stop.wait(long));
            stop.halt("by somebody".to_owned());
            assert_eq!(ours.read(&mut [0]).unwrap(), 0, "its session ends");
            // Whether it had begun to wait or not.
            stop.halt("by somebody".to_owned());
            assert!(!stop.wait_resting(Duration::from_millis(5)), "it does not rest yet");
            while !pause.is_finished() {
                stop.halt("by somebody".to_owned());
            }
            assert!(!pause.join().unwrap(), "a pause ends, and that is no request to stop");
            assert!(!stop.wait(Duration::from_millis(1)), "a later pause is none shorter");
            assert_eq!(stop.halted().as_deref(), Some("by somebody"));
            let thread = scope.spawn(|| {
                assert!(stop.ends_session());
                stop.rest();
            });
            assert!(stop.wait_resting(long));
            assert!(!thread.is_finished() && stop.resume());
            thread.join().unwrap();
            assert!(!stop.ends_session() && stop.halted().is_none());
            stop.halt(String::new());
            let thread = scope.spawn(|| stop.rest());
            stop.request();
            thread.join().unwrap();
            assert!(!stop.is_requested() || stop.ends_session());
            stop.resume();
            assert!(stop.ends_session(), "who may go on is still to end");
        });
    }
}
