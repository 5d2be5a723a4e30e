//! What a server needs to speak TLS.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::verifiers::sha256;
use crate::error::TlsError;
use crate::tls::expiry::expires;
use crate::tls::{provider, read_certificates, read_key};

/// A certificate chain and its private key, loaded. Cheap to clone; connections keep the one that they began with.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    /// SHA-256 of the certificate.
    fingerprint: [u8; 32],
    expires: Option<i64>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Reads the server's certificate, with those between it and the authority after it, and its private key. Both files are
    /// PEM. TLS 1.2 and 1.3; clients are asked for no certificate.
    ///
    /// # Errors
    /// [`TlsError::File`] says which file cannot be used and why, also when the key is not that of the certificate.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = read_certificates("tls_cert", cert)?;
        let secret = read_key("tls_key", key)?;
        Self::of(chain, secret, cert)
    }

    /// The same of texts.
    ///
    /// # Errors
    /// As [`load`](Self::load), without a file to name.
    pub fn from_pem(cert: &str, key: &str) -> Result<Self, TlsError> {
        let broken = |error: rustls::pki_types::pem::Error| TlsError::Broken(error.to_string());
        let chain = CertificateDer::pem_slice_iter(cert.as_bytes()).collect::<Result<Vec<_>, _>>();
        let secret = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(broken)?;
        Self::of(chain.map_err(broken)?, secret, Path::new("-"))
    }

    fn of(
        chain: Vec<CertificateDer<'static>>,
        secret: PrivateKeyDer<'static>,
        cert: &Path,
    ) -> Result<Self, TlsError> {
        let fingerprint = chain.first().map_or([0; 32], |first: &CertificateDer<'_>| sha256(first));
        let expires = chain.first().and_then(|first| expires(first));
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| TlsError::Broken(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| TlsError::File {
                key: "tls_cert",
                path: cert.to_owned(),
                reason: error.to_string(),
            })?;
        Ok(Self { config: Arc::new(config), fingerprint, expires })
    }

    /// When the certificate ends to be valid, in seconds since 1970; `None` when that cannot be read from it.
    pub fn expires(&self) -> Option<i64> {
        self.expires
    }

    /// What a server of another protocol needs for the same.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// A session with a client that has not sent anything yet.
    pub(super) fn session(&self) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(self.config.clone())
    }

    /// SHA-256 of the certificate.
    pub(super) fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let make = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (one, other) = (make(), make());
        let cert = write("cert.pem", &one.cert.pem());
        let key = write("key.pem", &one.signing_key.serialize_pem());
        let foreign = write("foreign.pem", &other.signing_key.serialize_pem());
        let empty = write("empty.pem", "");
        ServerTls::load(&cert, &key).unwrap();
        for (cert, key, named) in [
            (&empty, &key, "tls_cert"),
            (&cert, &empty, "tls_key"),
            (&cert, &dir.path().join("absent.pem"), "absent.pem"),
            (&cert, &foreign, "tls_cert"),
        ] {
            let shown = ServerTls::load(cert, key).unwrap_err().to_string();
            assert!(shown.contains(named), "{shown}");
        }
    }
}
