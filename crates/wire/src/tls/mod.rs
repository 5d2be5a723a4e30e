//! How a connection is encrypted: the options, and the rustls configuration made from them.

pub(crate) mod der;
pub(crate) mod expiry;
pub(crate) mod rsa_key;
pub(crate) mod verify;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::error::TlsError;
use crate::tls::verify::{AcceptAny, TrustChain};

/// Where Debian, and most distributions after it, keep the trusted authorities.
const SYSTEM_ROOTS: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// How much encryption and trust a connection needs. The names are those of MySQL's `--ssl-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TlsMode {
    /// Never encrypt.
    Disabled,
    /// Encrypt if the server can; whoever sits on the path can prevent it.
    #[default]
    Preferred,
    /// Encrypt or fail, without asking who the server is.
    Required,
    /// Encrypt, and verify that a trusted authority signed the server's certificate.
    VerifyCa,
    /// As `VerifyCa`, and verify that the certificate is for the host connected to.
    VerifyFull,
}

impl TlsMode {
    /// All modes, weakest first.
    pub const ALL: [Self; 5] =
        [Self::Disabled, Self::Preferred, Self::Required, Self::VerifyCa, Self::VerifyFull];

    /// The name in configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Preferred => "preferred",
            Self::Required => "required",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

impl fmt::Display for TlsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no TLS mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown TLS mode {0:?}; one of disabled, preferred, required, verify-ca, verify-full is allowed")]
pub struct ParseTlsModeError(String);

impl FromStr for TlsMode {
    type Err = ParseTlsModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mode = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        mode.ok_or_else(|| ParseTlsModeError(text.to_owned()))
    }
}

/// The TLS part of [`ConnectOptions`](super::ConnectOptions). Files are PEM, read at every connect, so that renewed
/// certificates are taken up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// How much encryption and trust is needed.
    pub mode: TlsMode,
    /// Certificates of the trusted authorities; the system's when absent. Only the verifying modes use it.
    pub ca: Option<PathBuf>,
    /// Our certificate chain, for accounts with REQUIRE X509 and the like. Goes with `key`.
    pub cert: Option<PathBuf>,
    /// The private key of `cert`.
    pub key: Option<PathBuf>,
}

/// A rustls session with `host` that has not sent anything yet.
pub(super) fn new_session(options: &TlsOptions, host: &str) -> Result<ClientConnection, TlsError> {
    let config = client_config(options)?;
    let name = match ServerName::try_from(host.to_owned()) {
        Ok(name) => name,
        // Without a verification of names any host will do, such as a name that DNS knows and rustls finds odd.
        Err(_) if options.mode != TlsMode::VerifyFull => ServerName::from(std::net::Ipv4Addr::UNSPECIFIED),
        Err(error) => {
            return Err(TlsError::WrongName { host: host.to_owned(), reason: error.to_string() });
        }
    };
    ClientConnection::new(Arc::new(config), name).map_err(|error| TlsError::from_rustls(&error))
}

fn client_config(options: &TlsOptions) -> Result<ClientConfig, TlsError> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| TlsError::Broken(error.to_string()))?;
    let builder = match options.mode {
        TlsMode::VerifyFull => builder.with_root_certificates(trusted_roots(options.ca.as_deref())?),
        TlsMode::VerifyCa => {
            let roots = trusted_roots(options.ca.as_deref())?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(TrustChain::new(roots, &provider)))
        }
        TlsMode::Disabled | TlsMode::Preferred | TlsMode::Required => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAny::new(&provider)))
        }
    };
    match own_certificate(options)? {
        None => Ok(builder.with_no_client_auth()),
        Some((path, chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| TlsError::File { key: "tls_cert", path, reason: error.to_string() }),
    }
}

/// The cryptography of both sides.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[allow(clippy::disallowed_methods, reason = "looks for the system's certificates")]
fn trusted_roots(ca: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let path = match ca {
        Some(path) => path,
        None => SYSTEM_ROOTS.iter().map(Path::new).find(|path| path.exists()).ok_or_else(|| {
            let reason =
                "this machine has no such file; set `tls_ca`, or install the package ca-certificates";
            TlsError::File { key: "tls_ca", path: SYSTEM_ROOTS[0].into(), reason: reason.into() }
        })?,
    };
    let refuse = |reason: String| TlsError::File { key: "tls_ca", path: path.to_owned(), reason };
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates("tls_ca", path)? {
        match roots.add(certificate) {
            Ok(()) => {}
            // A system's bundle may hold an old certificate that cannot be parsed; the others still count.
            Err(_) if ca.is_none() => {}
            Err(error) => return Err(refuse(error.to_string())),
        }
    }
    if roots.is_empty() { Err(refuse("it holds no certificate".into())) } else { Ok(roots) }
}

type OwnCertificate = (PathBuf, Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn own_certificate(options: &TlsOptions) -> Result<Option<OwnCertificate>, TlsError> {
    let (cert, key) = match (&options.cert, &options.key) {
        (None, None) => return Ok(None),
        (Some(cert), Some(key)) => (cert, key),
        (Some(cert), None) => {
            let reason = "`tls_key` is missing; the two go together".to_owned();
            return Err(TlsError::File { key: "tls_cert", path: cert.clone(), reason });
        }
        (None, Some(key)) => {
            let reason = "`tls_cert` is missing; the two go together".to_owned();
            return Err(TlsError::File { key: "tls_key", path: key.clone(), reason });
        }
    };
    let chain = read_certificates("tls_cert", cert)?;
    let secret = read_key("tls_key", key)?;
    Ok(Some((cert.clone(), chain, secret)))
}

/// The private key in a file that the configuration key `key` names.
pub(super) fn read_key(key: &'static str, path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| TlsError::File {
        key,
        path: path.to_owned(),
        reason: pem_reason(&error),
    })
}

/// The certificates, at least one, in a file that the configuration key `key` names.
pub(super) fn read_certificates(
    key: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let refuse =
        |error: pem::Error| TlsError::File { key, path: path.to_owned(), reason: pem_reason(&error) };
    let certificates = CertificateDer::pem_file_iter(path).map_err(refuse)?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(refuse)?;
    if certificates.is_empty() {
        return Err(refuse(pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

fn pem_reason(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(reason) if reason.kind() == io::ErrorKind::NotFound => "there is no such file".into(),
        pem::Error::Io(reason) => reason.to_string(),
        pem::Error::NoItemsFound => "it holds nothing of that kind in PEM form".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_text_forms() {
        for mode in TlsMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "verify_full".parse::<TlsMode>().unwrap_err();
        assert!(error.to_string().contains("verify-full"));
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let absent = dir.path().join("absent.pem");
        let empty = dir.path().join("empty.pem");
        std::fs::write(&empty, "no certificate").unwrap();

        let session = |ca: Option<&PathBuf>, cert: Option<&PathBuf>| {
            let options =
                TlsOptions { mode: TlsMode::VerifyFull, ca: ca.cloned(), cert: cert.cloned(), key: None };
            new_session(&options, "localhost").map(drop).unwrap_err().to_string()
        };
        let shown = session(Some(&absent), None);
        assert!(shown.contains("tls_ca") && shown.contains("absent.pem") && shown.contains("no such file"));
        let shown = session(Some(&empty), None);
        assert!(shown.contains("tls_ca") && shown.contains("empty.pem"), "{shown}");
    }

    #[test]
    fn a_certificate_without_its_key_is_an_error() {
        let options =
            TlsOptions { mode: TlsMode::Required, cert: Some("c.pem".into()), ..Default::default() };
        let shown = new_session(&options, "localhost").map(drop).unwrap_err().to_string();
        assert!(shown.contains("tls_key"), "{shown}");
    }
}
