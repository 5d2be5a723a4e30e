//! The seam to the network.

use super::connection::Connection;
use super::error::WireError;
use crate::connection::options::ConnectOptions;
use std::fmt;
use std::os::fd::BorrowedFd;

/// The way to servers. [`Tcp`] is the real one; a simulation has one that leads to a source in the same thread.
pub trait Network: Send + Sync + fmt::Debug {
    /// Connects and authenticates, as `Connection::connect_with`.
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
