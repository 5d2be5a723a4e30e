//! Until when a certificate is valid.

use x509_parser::certificate::X509CertificateParser;
use x509_parser::nom::Parser as _;

/// Seconds since 1970 after which a certificate in DER form is not valid any more; `None` for one that cannot be read.
pub(super) fn expires(der: &[u8]) -> Option<i64> {
    // Names, keys and extensions of a certificate of somebody else may be odd; only its dates count.
    let mut parser = X509CertificateParser::new().with_deep_parse_extensions(false);
    let (_, certificate) = parser.parse(der).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    #[test]
    fn the_end_of_a_certificate_is_read_from_it() {
        let of = |year| {
            let mut params = CertificateParams::new(vec!["db1".to_owned()]).unwrap();
            params.not_after = date_time_ymd(year, 3, 1);
            params.self_signed(&KeyPair::generate().unwrap()).unwrap()
        };
        // Up to 2049 the year has two digits in the certificate, and four from then on.
        assert_eq!(expires(of(2026).der()), Some(1_772_323_200));
        assert_eq!(expires(of(2050).der()), Some(2_529_705_600));
        assert_eq!(expires(&of(2026).der()[..100]), None);
        assert_eq!(expires(b""), None);
    }
}
