//! Certificate verification weaker than the usual one, for the modes that ask for it.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// For `preferred` and `required`: encrypts with whoever answers.
///
/// Not even the handshake's signature is checked. A peer that we do not identify can sign with any key, so the check
/// would keep nobody out; and it would fail on the X.509 version 1 certificates that some servers generate.
#[derive(Debug)]
pub(crate) struct AcceptAny {
    schemes: Vec<SignatureScheme>,
}

impl AcceptAny {
    pub(crate) fn new(provider: &CryptoProvider) -> Self {
        Self { schemes: provider.signature_verification_algorithms.supported_schemes() }
    }
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// For `verify-ca`: a trusted authority must have signed the certificate; its names do not matter.
#[derive(Debug)]
pub(crate) struct TrustChain {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl TrustChain {
    pub(crate) fn new(roots: RootCertStore, provider: &CryptoProvider) -> Self {
        Self { roots, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for TrustChain {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::TlsError;

    /// Self-signed, ECDSA P-256, X.509 version 1, as `openssl x509 -req -signkey` makes it without extensions.
    const VERSION_1: &[u8] = b"-----BEGIN CERTIFICATE-----
MIIBFDCBuwIUUhJqSXPq/fP+0hJxHTT0RREPRDEwCgYIKoZIzj0EAwIwDTELMAkG
A1UEAwwCdjEwHhcNMjYxMTIxMDczMjMxWhcNMzYxMTE4MDczMjMxWjANMQswCQYD
VQQDDAJ2MTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOMWsU3z7PaDoiICqCA4
lcyCE8v6FbPBDfOJZXidMWMbB/XgwseJZybXOHbhPlnkgySrOp5S+zKRrT9JZGL0
X1IwCgYIKoZIzj0EAwIDSAAwRQIgA2HRknYT+VB3LlAV26HtrQkarapelsQi4abT
h6c9GbYCIQCwFljtI/BIcA0POp4qwnpf4iP1tR8xIex2EVsLt9T4iw==
-----END CERTIFICATE-----
";

    /// What `verify-ca` says to a certificate when `authority` is the only one trusted.
    fn verdict(authority: &CertificateDer<'_>, certificate: &CertificateDer<'_>) -> Result<(), String> {
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned()).unwrap();
        let verifier = TrustChain::new(roots, &rustls::crypto::ring::default_provider());
        let name = ServerName::try_from("any.example").unwrap();
        let verified = verifier.verify_server_cert(certificate, &[], &name, &[], UnixTime::now());
        verified.map(drop).map_err(|error| TlsError::from_rustls(&error).to_string())
    }

    fn authority() -> CertifiedIssuer<'static, KeyPair> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    #[test]
    fn a_certificate_of_the_authority_is_trusted_under_any_name() {
        let authority = authority();
        let params = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
        let certificate = params.signed_by(&KeyPair::generate().unwrap(), &authority).unwrap();
        assert_eq!(verdict(authority.der(), certificate.der()), Ok(()));
        let shown = verdict(self::authority().der(), certificate.der()).unwrap_err();
        assert!(shown.contains("tls_ca"), "{shown}");
    }

    #[test]
    fn certificates_that_cannot_be_verified_come_with_advice() {
        let version_1 = CertificateDer::from_pem_slice(VERSION_1).unwrap();
        let shown = verdict(&version_1, &version_1).unwrap_err();
        assert!(shown.contains("version 1") && shown.contains("\"required\""), "{shown}");

        let authority = authority();
        let shown = verdict(authority.der(), authority.der()).unwrap_err();
        assert!(shown.contains("authority's own certificate"), "{shown}");
    }
}
