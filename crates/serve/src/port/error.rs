//! Why readers are not served at all.

use std::io;
use std::net::SocketAddr;

/// Why readers are not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on: in use, not of this machine, or reserved.
    #[error(
        "cannot listen on {address} for readers; choose another address with the key `listen` in section [serve], or with \
         --serve"
    )]
    Listen {
        /// The address of the configuration.
        address: SocketAddr,
        /// The operating system's reason.
        #[source]
        error: io::Error,
    },
    /// The certificate cannot be used.
    #[error("[serve]: {0}")]
    Tls(wire::TlsError),
    /// The operating system refused a thread.
    #[error("cannot start a thread for readers")]
    Thread(#[source] io::Error),
}
