//! What can stand in the place of a socket.

use std::fmt;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// A byte stream that is no socket, in both directions. Its descriptor says readable when poll(2) is asked; a read then
/// gives `WouldBlock` when nothing came within the time limit of reads, `TimedOut` when nothing came and no limit was set,
/// and 0 at the end.
pub trait ByteStream: Read + Write + AsFd + Send + fmt::Debug {
    /// From now on a read waits at most that long.
    fn set_read_timeout(&mut self, timeout: Duration);
}
