//! Sockets, TLS and authentication: both sides of a MySQL or MariaDB connection.
//!
//! ```text
//! ConnectOptions ──► Connection::connect ──► query · command ──► start_dump ──► DumpStream
//!                    resolve, TCP, greeting,                                    raw bytes, for poll(2)
//!                    TLS, authentication
//!
//! AcceptOptions ──► accept ──► Accepted: receive · send
//! Accounts          greeting, TLS, authentication
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `connection.rs` | an authenticated session and its commands |
//! | `accept/` | the server's side: from a socket to a client that was let in |
//! | `dump.rs` | the byte stream after a binlog dump command |
//! | `authenticate.rs`, `rsa_key.rs` | the authentication methods, on top of mysql_common's state machines |
//! | `tls.rs`, `verify.rs` | options, certificates and their verification |
//! | `expiry.rs` | until when a certificate is valid |
//! | `options.rs` | how to reach a server and who to be there |
//! | `dial.rs` | from a host name to a TCP connection within a deadline |
//! | `transport.rs`, `channel.rs` | non-blocking bytes, plain or TLS; whole messages on top |
//! | `network.rs`, `byte_stream.rs` | the seam to the network, for simulations; what stands in the place of a socket |
//! | `error.rs`, `denied.rs` | errors that say whose fault it is, and what helps when we are not let in |
//! | `failed_logins.rs` | addresses from which too many logins fail |
//! | `secret.rs` | passwords that do not print |
//!
//! All sockets are non-blocking from the start; waiting is done with poll(2) and always has an end.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

mod accept;
mod byte_stream;
mod channel;
mod connection;
mod error;
mod failed_logins;
mod network;
mod secret;
mod tls;
mod transport;

pub use crate::connection::dump::DumpStream;
pub use crate::connection::options::ConnectOptions;
pub use accept::{
    AcceptOptions, Accepted, Accounts, BadVerifier, Client, ClientError, Closer, Day, MadeCertificate,
    Method, Methods, Reader, ServerTls, Verifiers, accept, accept_over,
};
pub use byte_stream::ByteStream;
pub use codec::packet::ResultSet;
pub use connection::Connection;
pub use error::{TlsError, WireError};
pub use failed_logins::{FailedLogins, Verdict, network_of};
pub use network::{Network, Tcp};
pub use secret::Secret;
pub use tls::{ParseTlsModeError, TlsMode, TlsOptions};
