//! What can go wrong between us and a client, told apart by who can help.

use std::io;
use std::time::Duration;

use codec::packet::{ErrPacket, FrameError};

use crate::channel::{Failure, FailureKind};

/// What is done until the client has sent its login.
pub(super) const AWAITS_LOGIN: &str = "waiting for the login";

/// A client was not let in, or its connection failed. No variant ever holds a password, and all texts of a client are cut
/// and cleaned of control characters. What a client has to know was sent to it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A wrong user or password; which of the two, nobody is told.
    #[error("access denied for user {user:?} (using password: {})", yes_no(*with_password))]
    Denied {
        /// The name that the client gave.
        user: String,
        /// Whether the client has answered the challenge.
        with_password: bool,
    },
    /// The client does not encrypt, and has to.
    #[error("the client does not encrypt its connection, which `require_tls` demands")]
    NotEncrypted,
    /// The client cannot change its authentication method, and the account has no verifier for the one it uses.
    #[error(
        "the client of user {user:?} cannot do any authentication method that the account has a hash for"
    )]
    NoCommonMethod {
        /// The name that the client gave.
        user: String,
        /// Whether the client has answered the challenge of the greeting.
        with_password: bool,
    },
    /// The client names a database that there is not.
    #[error("the client wants to use the database {name:?}, which there is not")]
    UnknownDatabase {
        /// As the client gave it.
        name: String,
    },
    /// What the client sent is no login.
    #[error("the client's login is malformed: {what}")]
    BadHandshake {
        /// Which rule was broken.
        what: String,
    },
    /// The TLS handshake failed, or an encrypted connection was damaged.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The client does not follow the protocol; often it is no MySQL client at all.
    #[error("the client does not follow the MySQL protocol while {during}: {what}")]
    Protocol {
        /// What was being done.
        during: &'static str,
        /// Which rule was broken.
        what: String,
    },
    /// A message is longer than was allowed.
    #[error("the client sent a message of more than the {limit} bytes accepted here")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The client was silent, or slow, for too long.
    #[error("the client was not done within {after:?} while {during}")]
    Timeout {
        /// What was being done.
        during: &'static str,
        /// The time that was allowed for it.
        after: Duration,
    },
    /// The client closed the connection.
    #[error("the client closed the connection while {during}{}", why_at_the_greeting(during))]
    Closed {
        /// What was being done.
        during: &'static str,
    },
    /// The operating system reports any other error.
    #[error("network error while {during}: {reason}")]
    Io {
        /// What was being done.
        during: &'static str,
        /// The operating system's reason.
        reason: io::Error,
    },
}

/// MySQL's clients close when they demand compression, which no greeting here offers, and so do probes.
fn why_at_the_greeting(during: &str) -> &'static str {
    match during {
        AWAITS_LOGIN => {
            " (a probe of a load balancer, or a client that demands compression, which is not offered)"
        }
        _ => "",
    }
}

fn yes_no(yes: bool) -> &'static str {
    if yes { "YES" } else { "NO" }
}

impl ClientError {
    /// What the client is told, if anything. `host` is the client's address, as servers show it.
    pub(super) fn packet(&self, host: &str) -> Option<ErrPacket> {
        let (code, sqlstate, message) = match self {
            Self::Denied { user, with_password } => {
                let password = yes_no(*with_password);
                let message = format!("Access denied for user '{user}'@'{host}' (using password: {password})");
                (1045, "28000", message)
            }
            Self::NotEncrypted => (
                3159,
                "HY000",
                "Connections using insecure transport are prohibited while --require_secure_transport=ON.".to_owned(),
            ),
            Self::NoCommonMethod { .. } => (
                1251,
                "08004",
                "Client does not support authentication protocol requested by server; consider upgrading MySQL client"
                    .to_owned(),
            ),
            Self::UnknownDatabase { name } => (1049, "42000", format!("Unknown database '{name}'")),
            Self::BadHandshake { .. } => (1043, "08S01", "Bad handshake".to_owned()),
            Self::TooLong { .. } => {
                (1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes".to_owned())
            }
            _ => return None,
        };
        Some(ErrPacket { code, sqlstate: sqlstate.to_owned(), message })
    }
}

impl From<Failure> for ClientError {
    fn from(Failure { during, kind }: Failure) -> Self {
        match kind {
            FailureKind::Timeout { after } => Self::Timeout { during, after },
            FailureKind::Closed => Self::Closed { during },
            FailureKind::Frame(FrameError::TooLong { limit }) => Self::TooLong { limit },
            FailureKind::Frame(error) => Self::Protocol { during, what: error.to_string() },
            FailureKind::Tls(error) => Self::Tls(error.to_string()),
            FailureKind::Io(reason) => Self::Io { during, reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_sorted() {
        let sorted = |kind| ClientError::from(Failure { during: "x", kind });
        assert!(matches!(sorted(FailureKind::Closed), ClientError::Closed { .. }));
        assert!(matches!(sorted(FailureKind::Tls(rustls::Error::DecryptError)), ClientError::Tls(_)));
        let long = FrameError::TooLong { limit: 7 };
        assert!(matches!(sorted(FailureKind::Frame(long)), ClientError::TooLong { limit: 7 }));
    }

    #[test]
    fn a_denial_is_told_in_the_servers_words() {
        let denied = ClientError::Denied { user: "repl".to_owned(), with_password: true };
        let packet = denied.packet("10.0.0.1").unwrap();
        assert_eq!((packet.code, packet.sqlstate.as_str()), (1045, "28000"));
        assert_eq!(packet.message, "Access denied for user 'repl'@'10.0.0.1' (using password: YES)");
        assert!(ClientError::Closed { during: "x" }.packet("").is_none());
    }
}
