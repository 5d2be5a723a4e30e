//! What can go wrong between us and a server, told apart by what helps.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::channel::{Failure, FailureKind};
use crate::connection::denied;
use crate::connection::denied::{HOST_IS_BLOCKED, SECURE_TRANSPORT_REQUIRED};
use codec::packet::{
    ERROR_MESSAGE_BYTES_MAX, ErrPacket, FrameError, MalformedPacket, ResultSetError, printable,
};

/// A connection could not be made, or failed. No variant ever holds the password, and all texts of a server are cut
/// and cleaned of control characters.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The host name has no address.
    #[error("cannot resolve host {host:?}: {reason}; check the name and this machine's DNS")]
    Resolve {
        /// The name, as configured.
        host: String,
        /// The resolver's words.
        reason: String,
    },
    /// No address of the host accepts connections.
    #[error("cannot connect to {address}: {reason}")]
    Connect {
        /// The address tried last, with its port.
        address: String,
        /// The operating system's reason.
        reason: io::Error,
    },
    /// The peer did not answer in time.
    #[error("no answer within {after:?} while {during}{}", denied::who_keeps_logins(during))]
    Timeout {
        /// What was being done.
        during: &'static str,
        /// The time that was allowed for it.
        after: Duration,
    },
    /// Encryption failed or its conditions are not met.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server knows who we are and says no: wrong user or password, locked account, missing privilege.
    #[error("the server denies access: {message} (error {code}, SQLSTATE {sqlstate}){}", denied::hint(*code, message))]
    AccessDenied {
        /// Number of the error.
        code: u16,
        /// SQLSTATE of the error.
        sqlstate: String,
        /// The server's words.
        message: String,
    },
    /// The server reports any other error.
    #[error("the server reports: {message} (error {code}, SQLSTATE {sqlstate}){}", denied::hint(*code, message))]
    Server {
        /// Number of the error.
        code: u16,
        /// SQLSTATE of the error.
        sqlstate: String,
        /// The server's words.
        message: String,
    },
    /// The peer does not follow the protocol; often it is no MySQL server at all.
    #[error("the peer does not follow the MySQL protocol while {during}: {what}")]
    Protocol {
        /// What was being done.
        during: &'static str,
        /// Which rule was broken.
        what: String,
    },
    /// The account uses an authentication method that is not supported.
    #[error(
        "the account uses the authentication method {0:?}, which is not supported; alter the user to \
         caching_sha2_password (MySQL), or ed25519 or parsec (MariaDB)"
    )]
    UnsupportedAuthPlugin(String),
    /// The peer closed the connection.
    #[error("the server closed the connection while {during}")]
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

/// Why a connection is not encrypted as asked.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The server does not speak TLS.
    #[error(
        "the server offers no TLS, but `tls` demands it; enable TLS on the server, or set `tls` to \"preferred\""
    )]
    NotOffered,
    /// A configured file cannot be used.
    #[error("cannot use {key} file {}: {reason}", path.display())]
    File {
        /// The configuration key that names the file.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The certificate is not signed by a trusted authority, expired, or not valid for another reason.
    #[error("the server's certificate is not trusted: {0}")]
    Untrusted(String),
    /// The certificate is good, but for another name.
    #[error(
        "the server's certificate is not valid for {host:?}: {reason}; connect by a name in the certificate, issue one \
         with this name as a subjectAltName, or set `tls` to \"verify-ca\""
    )]
    WrongName {
        /// The name or address that we connect to.
        host: String,
        /// The names that the certificate holds.
        reason: String,
    },
    /// The two sides have no protocol version or cipher in common, or the server refused our certificate.
    #[error(
        "the TLS handshake failed: {0}; the server must speak TLS 1.2 or 1.3 with an ECDHE key exchange (MySQL built \
         with yaSSL or OpenSSL 1.0 does not: set `tls` to \"disabled\" for it), and trust our certificate if it asks \
         for one (`tls_cert`, `tls_key`)"
    )]
    Refused(String),
    /// The handshake broke off or the encrypted stream was damaged.
    #[error("the TLS connection failed: {0}")]
    Broken(String),
}

impl WireError {
    /// What the server says, without what helps an account that copies from a source.
    pub fn in_its_own_words(&self) -> String {
        match self {
            WireError::AccessDenied { code, sqlstate, message } => {
                format!("the server denies access: {message} (error {code}, SQLSTATE {sqlstate})")
            }
            WireError::Server { code, sqlstate, message } => {
                format!("the server reports: {message} (error {code}, SQLSTATE {sqlstate})")
            }
            other => other.to_string(),
        }
    }

    /// So long the peer has said nothing, where it took the connection and never said a word.
    pub fn says_nothing_for(&self) -> Option<Duration> {
        match self {
            Self::Timeout { during: denied::GREETING, after } => Some(*after),
            _ => None,
        }
    }

    /// Whether trying again soon is pointless, because somebody has to change something first: the password, a
    /// certificate, the configuration. Other errors may pass by themselves.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::AccessDenied { .. } | Self::UnsupportedAuthPlugin(_) => true,
            Self::Tls(error) => !matches!(error, TlsError::Broken(_)),
            Self::Server { code, .. } => [SECURE_TRANSPORT_REQUIRED, HOST_IS_BLOCKED].contains(code),
            _ => false,
        }
    }

    /// Whether the server has no connection left for us at present.
    pub fn is_crowded(&self) -> bool {
        matches!(self, Self::Server { code, .. } if denied::is_crowded(*code))
    }

    pub(super) fn protocol(during: &'static str, what: impl ToString) -> Self {
        Self::Protocol { during, what: what.to_string() }
    }
}

impl From<Failure> for WireError {
    fn from(Failure { during, kind }: Failure) -> Self {
        match kind {
            FailureKind::Timeout { after } => Self::Timeout { during, after },
            FailureKind::Closed => Self::Closed { during },
            FailureKind::Frame(error) => Self::protocol(during, error),
            FailureKind::Tls(error) => Self::Tls(TlsError::from_rustls(&error)),
            FailureKind::Io(reason) => Self::Io { during, reason },
        }
    }
}

impl From<ErrPacket> for WireError {
    fn from(ErrPacket { code, sqlstate, message }: ErrPacket) -> Self {
        if denied::is_denial(code) {
            Self::AccessDenied { code, sqlstate, message }
        } else {
            Self::Server { code, sqlstate, message }
        }
    }
}

impl From<MalformedPacket> for WireError {
    fn from(error: MalformedPacket) -> Self {
        Self::protocol("reading an answer", error)
    }
}

impl From<FrameError> for WireError {
    fn from(error: FrameError) -> Self {
        Self::protocol("reading an answer", error)
    }
}

impl From<ResultSetError> for WireError {
    fn from(error: ResultSetError) -> Self {
        Self::protocol("reading a result set", error)
    }
}

impl TlsError {
    /// Tells trust from technique.
    pub(super) fn from_rustls(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(rustls::CertificateError::NotValidForNameContext {
                expected,
                presented,
            }) => Self::WrongName { host: expected.to_str().into_owned(), reason: names(presented) },
            rustls::Error::InvalidCertificate(reason) => Self::Untrusted(certificate_reason(reason)),
            // yaSSL answers with a version that it knows, TLS 1.1, and rustls takes that for damage.
            rustls::Error::InvalidMessage(rustls::InvalidMessage::UnknownProtocolVersion)
            | rustls::Error::AlertReceived(_)
            | rustls::Error::PeerIncompatible(_) => Self::Refused(error.to_string()),
            _ => Self::Broken(error.to_string()),
        }
    }
}

/// What names a certificate has; they come from the peer, so they are cut and cleaned.
fn names(presented: &[String]) -> String {
    if presented.is_empty() {
        return "it has no subjectAltName, and the common name does not count".to_owned();
    }
    format!("it is for {}", printable(presented.join(", ").as_bytes(), ERROR_MESSAGE_BYTES_MAX))
}

/// What is wrong with a certificate and what to do about it.
fn certificate_reason(error: &rustls::CertificateError) -> String {
    use rustls::CertificateError as E;
    let advice = match error {
        E::UnknownIssuer | E::BadSignature => {
            "; set `tls_ca` to the certificate of the authority that signed it (MySQL generates ca.pem in its data \
             directory)"
        }
        E::Expired | E::ExpiredContext { .. } => "; renew it on the server, and check this machine's clock",
        E::NotValidYet | E::NotValidYetContext { .. } => "; check this machine's clock",
        E::Other(other) => {
            // The webpki crate does not export its errors through rustls, so that their names must serve.
            let name = format!("{:?}", other.0);
            if name.contains("UnsupportedCertVersion") {
                return "it is an X.509 version 1 certificate, as some servers generate for themselves, and cannot be \
                        verified; issue a version 3 certificate, or set `tls` to \"required\" to encrypt without \
                        verifying"
                    .to_owned();
            }
            if name.contains("CaUsedAsEndEntity") {
                return "it is an authority's own certificate, not one issued for a server; issue a server \
                        certificate, or set `tls` to \"required\" to encrypt without verifying"
                    .to_owned();
            }
            return other.0.source().map_or(name, ToString::to_string);
        }
        _ => "",
    };
    format!("{error}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: u16) -> WireError {
        ErrPacket { code, sqlstate: "28000".into(), message: "no".into() }.into()
    }

    #[test]
    fn a_wrong_password_is_permanent_and_a_full_server_is_not() {
        assert!(matches!(error(1045), WireError::AccessDenied { .. }));
        assert!(error(1045).is_permanent());
        assert!(!error(1040).is_permanent() && error(1040).is_crowded());
        assert!(!error(1045).is_crowded());
        assert!(error(3159).is_permanent());
        assert!(WireError::UnsupportedAuthPlugin("x".into()).is_permanent());
        assert!(WireError::from(TlsError::NotOffered).is_permanent());
        assert!(!WireError::from(TlsError::Broken("x".into())).is_permanent());
        assert!(!WireError::Closed { during: "x" }.is_permanent());
    }

    #[test]
    fn a_server_without_tls_1_2_is_told_from_a_broken_connection() {
        let sorted = |error| WireError::from(Failure { during: "x", kind: FailureKind::Tls(error) });
        let old = rustls::Error::InvalidMessage(rustls::InvalidMessage::UnknownProtocolVersion);
        assert!(matches!(sorted(old), WireError::Tls(TlsError::Refused(_))));
        let alert = rustls::Error::AlertReceived(rustls::AlertDescription::HandshakeFailure);
        assert!(matches!(sorted(alert), WireError::Tls(TlsError::Refused(_))));
        assert!(matches!(sorted(rustls::Error::DecryptError), WireError::Tls(TlsError::Broken(_))));
    }

    #[test]
    fn failures_are_sorted() {
        let sorted = |kind| WireError::from(Failure { during: "x", kind });
        assert!(matches!(sorted(FailureKind::Closed), WireError::Closed { .. }));
        let untrusted = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let shown = sorted(FailureKind::Tls(untrusted)).to_string();
        assert!(shown.contains("not trusted") && shown.contains("tls_ca"), "{shown}");
        assert!(matches!(sorted(FailureKind::Io(io::ErrorKind::Other.into())), WireError::Io { .. }));
    }
}
