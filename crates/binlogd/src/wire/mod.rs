//! Sockets, TLS and authentication around `codec::packet`.

mod secret;
pub mod tls;

pub use secret::Secret;
pub use tls::{TlsMode, TlsOptions};
