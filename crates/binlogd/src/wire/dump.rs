//! The byte stream that a binlog dump command starts.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::transport::{Deadline, Patience, Transport};

/// The raw stream in both directions after a dump command: framed packets in, acknowledgements out.
///
/// The socket is non-blocking. The usual loop is: while [`pending`](Self::pending) or poll(2) says readable,
/// [`read`](Self::read); the packets' sequence numbers start at 1.
pub struct DumpStream {
    transport: Transport,
    /// Bytes that arrived before the hand-over and were not read yet; empty soon after.
    leftover: Vec<u8>,
}

impl fmt::Debug for DumpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DumpStream").field("fd", &self.as_fd()).finish_non_exhaustive()
    }
}

impl DumpStream {
    pub(super) fn new(transport: Transport, leftover: Vec<u8>) -> Self {
        Self { transport, leftover }
    }

    /// Reads what is there: `WouldBlock` when nothing is, 0 when the peer has closed the connection (or `buffer` is
    /// empty). Without TLS this is one recv(2) into `buffer`.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.leftover.is_empty() { self.transport.read(buffer) } else { Ok(self.read_leftover(buffer)) }
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
        self.transport.write_all(bytes, Patience::Until(Deadline::after(timeout)))
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
