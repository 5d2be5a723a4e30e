//! The request to stop, which also wakes a thread that waits for its source.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::Shutdown;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Set once, seen by every thread that holds it.
#[derive(Debug)]
pub struct StopSignal {
    requested: AtomicBool,
    wake: OwnedFd,
    /// A socket on which a thread waits.
    socket: Mutex<Option<OwnedFd>>,
}

/// Holds a socket that a [`StopSignal`] will shut down.
#[derive(Debug)]
pub struct ShutsDown<'a>(&'a StopSignal);

impl Drop for ShutsDown<'_> {
    fn drop(&mut self) {
        *self.0.socket.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The watched descriptor is readable or closed.
    Readable,
    /// The time is up.
    TimedOut,
    /// A stop was requested.
    Stop,
}

impl StopSignal {
    /// Not yet requested.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn new() -> io::Result<StopSignal> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(StopSignal { requested: AtomicBool::new(false), wake, socket: Mutex::default() })
    }

    /// Requests the stop.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Release);
        // It stays readable, so that each later wait ends at once too.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        if let Some(socket) = &*self.socket.lock().unwrap_or_else(PoisonError::into_inner) {
            // Fails when the connection has ended, and then nobody waits on it.
            let _ = rustix::net::shutdown(socket, Shutdown::Read);
        }
    }

    /// As long as the answer is held, the request shuts `socket` down for reading, which ends a read that waits there.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn shuts_down(&self, socket: BorrowedFd<'_>) -> io::Result<ShutsDown<'_>> {
        let socket = socket.try_clone_to_owned()?;
        let mut held = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(socket);
        drop(held);
        if self.is_requested() {
            self.request(); // It may have come before the socket was known.
        }
        Ok(ShutsDown(self))
    }

    /// True from the request on.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Waits until `watched` is readable, a stop is requested or `timeout` has passed.
    ///
    /// # Errors
    /// As poll(2).
    pub fn wait_readable(&self, watched: BorrowedFd<'_>, timeout: Duration) -> io::Result<Woken> {
        let mut fds = [
            PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(watched, PollFlags::IN),
        ];
        self.poll(&mut fds, timeout)
    }

    /// Waits for a stop; true when one was requested within `timeout`.
    pub fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN)];
            match self.poll(&mut fds, left) {
                Ok(Woken::Stop) => return true,
                Ok(_) if left.is_zero() => return false,
                Ok(_) => {}
                // poll on one eventfd cannot fail lastingly; do not spin if it does.
                Err(_) => {
                    std::thread::sleep(left.min(Duration::from_millis(100)));
                    return self.is_requested();
                }
            }
        }
    }

    fn poll(&self, fds: &mut [PollFd<'_>], timeout: Duration) -> io::Result<Woken> {
        let timeout = Timespec::try_from(timeout).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if self.is_requested() {
            return Ok(Woken::Stop);
        }
        let readable = fds.iter().skip(1).any(|fd| !fd.revents().is_empty());
        Ok(if readable { Woken::Readable } else { Woken::TimedOut })
    }
}
