//! A certificate for a port for which nobody has configured one, as MySQL makes one at its first start.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::error::TlsError;

/// Texts in PEM form.
pub struct MadeCertificate {
    /// Certificate of the authority, for clients that are to check ours. Its key was thrown away: it signs nothing else.
    pub ca: String,
    /// Certificate of the server.
    pub cert: String,
    /// Its private key.
    pub key: String,
}

/// A day: year, month and day of month.
pub type Day = (i32, u8, u8);

impl MadeCertificate {
    /// For a server with these host names and addresses, valid from a day to another. The keys are of the curve P-256.
    ///
    /// # Errors
    /// When a name is not of ASCII letters, or there are no random bytes.
    ///
    /// # Panics
    /// When there is no such day.
    pub fn make(names: &[String], from: Day, until: Day) -> Result<MadeCertificate, TlsError> {
        make(names, from, until)
            .map_err(|error| TlsError::Broken(format!("no certificate can be made: {error}")))
    }
}

impl std::fmt::Debug for MadeCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeCertificate").finish_non_exhaustive()
    }
}

fn make(names: &[String], from: Day, until: Day) -> Result<MadeCertificate, rcgen::Error> {
    let params = |names: &[String], common_name: &str| {
        let mut params = CertificateParams::new(names)?;
        params.not_before = date_time_ymd(from.0, from.1, from.2);
        params.not_after = date_time_ymd(until.0, until.1, until.2);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        Ok::<_, rcgen::Error>(params)
    };
    let mut authority = params(&[], "binlogd auto-generated CA certificate")?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority_key = KeyPair::generate()?;
    let ca = authority.self_signed(&authority_key)?.pem();
    let mut server = params(names, "binlogd auto-generated server certificate")?;
    server.use_authority_key_identifier_extension = true;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let cert = server.signed_by(&key, &Issuer::from_params(&authority, &authority_key))?.pem();
    Ok(MadeCertificate { ca, cert, key: key.serialize_pem() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::ServerTls;

    #[test]
    fn what_is_made_can_be_used_and_is_another_one_each_time() {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        let make = || MadeCertificate::make(&names, (2024, 2, 29), (2034, 2, 28)).unwrap();
        let (one, other) = (make(), make());
        ServerTls::from_pem(&one.cert, &one.key).unwrap();
        assert!(ServerTls::from_pem(&one.cert, &other.key).is_err(), "a key of another certificate");
        assert!(one.ca != other.ca && one.key != other.key);
    }
}
