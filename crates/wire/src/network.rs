//! The seam to the network.

use super::connection::{ConnectOptions, Connection};
use super::error::WireError;
use std::fmt;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The way to servers. [`Tcp`] is the real one; a simulation has one that leads to a source in the same thread.
pub trait Network: Send + Sync + fmt::Debug {
    /// Connects and authenticates, as [`Connection::connect_with`].
    ///
    /// # Errors
    /// As [`Connection::connect`].
    fn connect(
        &self,
        options: &ConnectOptions,
        on_socket: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<Connection, WireError>;
}

/// TCP, with TLS where the options ask for it.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tcp;

impl Network for Tcp {
    fn connect(
        &self,
        options: &ConnectOptions,
        on_socket: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<Connection, WireError> {
        Connection::connect_with(options, on_socket)
    }
}

/// A byte stream that is no socket, in both directions. Its descriptor says readable when poll(2) is asked; a read then
/// gives `WouldBlock` when nothing came within the time limit of reads, `TimedOut` when nothing came and no limit was set,
/// and 0 at the end.
pub trait ByteStream: Read + Write + AsFd + Send + fmt::Debug {
    /// From now on a read waits at most that long.
    fn set_read_timeout(&mut self, timeout: Duration);
}
