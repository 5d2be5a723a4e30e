//! The byte stream that a binlog dump command starts.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::transport::{Deadline, Transport};

/// The raw stream in both directions after a dump command: framed packets in, acknowledgements out.
///
/// The socket is non-blocking at first: while [`pending`](Self::pending) or poll(2) says readable, [`read`](Self::read).
/// After [`set_blocking`](Self::set_blocking) reads wait. The packets' sequence numbers start at 1.
pub struct DumpStream {
    transport: Transport,
    /// As the socket has it.
    read_timeout: Option<Duration>,
    /// Bytes that arrived before the hand-over and were not read yet; empty soon after.
    leftover: Vec<u8>,
}

impl fmt::Debug for DumpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DumpStream").field("fd", &self.as_fd()).finish_non_exhaustive()
    }
}

impl DumpStream {
    pub(crate) fn new(transport: Transport, leftover: Vec<u8>) -> Self {
        Self { transport, leftover, read_timeout: None }
    }

    /// Reads what is there: `WouldBlock` when nothing is, 0 when the peer has closed the connection (or `buffer` is
    /// empty). Without TLS this is one recv(2) into `buffer`.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.leftover.is_empty() { self.transport.read(buffer) } else { Ok(self.read_leftover(buffer)) }
    }

    /// From now on reads wait for bytes, and each single write waits at most `write_timeout`.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn set_blocking(&mut self, write_timeout: Duration) -> io::Result<()> {
        self.transport.set_blocking(write_timeout)
    }

    /// How long a read that waits may take; `WouldBlock` after it. A system call only when it changes.
    ///
    /// # Errors
    /// When `timeout` is zero.
    #[inline]
    pub fn set_read_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        if self.read_timeout != Some(timeout) {
            self.transport.set_read_timeout(timeout)?;
            self.read_timeout = Some(timeout);
        }
        Ok(())
    }

    /// Whether bytes have arrived since the last call that were too few to read any (a part of a record of TLS), so that a
    /// [`read`](Self::read) gave `WouldBlock` although the peer is not silent.
    pub fn take_part_arrived(&mut self) -> bool {
        self.transport.take_part_arrived()
    }

    /// Whether [`read`](Self::read) has bytes that poll(2) does not know of: decrypted ones, or some that arrived
    /// before the hand-over. Ask before each poll.
    #[inline]
    pub fn pending(&self) -> bool {
        !self.leftover.is_empty() || self.transport.has_buffered()
    }

    /// Writes all of `bytes`, at most `timeout` for everything (`TimedOut` after it). In the ordinary case, without
    /// TLS, this is one send(2).
    pub fn write_all_blocking(&mut self, bytes: &[u8], timeout: Duration) -> io::Result<()> {
        self.transport.write_all(bytes, Deadline::after(timeout))
    }

    #[cold]
    fn read_leftover(&mut self, buffer: &mut [u8]) -> usize {
        let taken = self.leftover.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&self.leftover[..taken]);
        self.leftover.drain(..taken);
        taken
    }
}

impl AsFd for DumpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }
}
