//! How to reach a server.

use std::time::Duration;

use crate::secret::Secret;
use crate::tls::TlsOptions;

/// How to reach a server and who to be there.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// A name, an IPv4 or an IPv6 address; or the path of a socket of this machine, over which there is no TLS to be asked for.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Account name.
    pub user: String,
    /// Password of the account; empty for none.
    pub password: Secret,
    /// Time for everything together: resolving the name, trying its addresses, TLS and authentication.
    pub connect_timeout: Duration,
    /// Encryption.
    pub tls: TlsOptions,
}
