//! Checks a server's RSA public key before mysql_common encrypts the password with it.
//!
//! mysql_common's own parser panics on a key that is cut short or has absurd lengths, and any server, or anybody on a
//! path without TLS, can send such a key.

use mysql_common::crypto::der::{PubKeyFileType, pem_to_der};

use super::der::{BIT_STRING, INTEGER, SEQUENCE, element};

/// The longest key accepted, in bytes of PEM text; 8192 bits take less than 1500.
const PEM_BYTES_MAX: usize = 8 << 10;

/// Length of a modulus, in bytes: 1024 to 8192 bits. MySQL generates 2048.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 128..=1024;

/// What OAEP padding with SHA-1 takes of a modulus, in bytes (RFC 8017, section 7.1.1).
const OAEP_BYTES: usize = 42;

/// Says what is wrong with a key in PEM form that has to encrypt `message_bytes` bytes at once.
pub(crate) fn check(pem: &[u8], message_bytes: usize) -> Result<(), &'static str> {
    if pem.len() > PEM_BYTES_MAX {
        return Err("its RSA key is too long");
    }
    let (der, kind) = pem_to_der(pem).map_err(|_| "its RSA key is not in PEM form")?;
    let (modulus, exponent) = numbers(&der, kind).ok_or("its RSA key is malformed")?;
    if !MODULUS_BYTES.contains(&modulus.len()) {
        return Err("its RSA key has not between 1024 and 8192 bits");
    }
    // The top bit of the modulus must be set, so that the key has the length that it seems to have.
    if modulus[0] & 0x80 == 0 || modulus[modulus.len() - 1] & 1 == 0 {
        return Err("its RSA modulus is not one");
    }
    if exponent.len() > 4 || exponent[exponent.len() - 1] & 1 == 0 || exponent == [1] {
        return Err("its RSA exponent is not one");
    }
    if message_bytes + OAEP_BYTES > modulus.len() {
        return Err("its RSA key is too short for this password");
    }
    Ok(())
}

/// Modulus and exponent without leading zeros, neither of them empty.
fn numbers(der: &[u8], kind: PubKeyFileType) -> Option<(&[u8], &[u8])> {
    let key = match kind {
        PubKeyFileType::Pkcs1 => der,
        PubKeyFileType::Pkcs8 => {
            let (info, rest) = element(der, SEQUENCE)?;
            let (_algorithm, info) = element(info, SEQUENCE)?;
            let (bits, tail) = element(info, BIT_STRING)?;
            let (0, key) = bits.split_first().map(|(unused, key)| (*unused, key))? else { return None };
            if !rest.is_empty() || !tail.is_empty() {
                return None;
            }
            key
        }
    };
    let (fields, rest) = element(key, SEQUENCE)?;
    let (modulus, fields) = element(fields, INTEGER)?;
    let (exponent, fields) = element(fields, INTEGER)?;
    if !rest.is_empty() || !fields.is_empty() {
        return None;
    }
    Some((without_zeros(modulus)?, without_zeros(exponent)?))
}

fn without_zeros(number: &[u8]) -> Option<&[u8]> {
    let start = number.iter().position(|byte| *byte != 0)?;
    Some(&number[start..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The public_key.pem that a throw-away MySQL 9.7 generated.
    const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAsnvEeP+3cfd0IpLqVjKu
KZ7yNC6CUzU3pBuYv3ygmoktYLNCwaPJv6BOKONOdCh8h44V5MGDZnfPu8X2ru4g
16kyC9enp3tgVFoxkVYk9YIpB6gTj7zIvEX0hWfEF1/rjt+XWewQiKBdjivTeouC
Pm+oFbiVdl2ittRizhx6sb35PeV4X0uY9sgC7nIHXGHy2Cq9WATKqgNFekZuOpNJ
siU6MdbWr5lyTMiBQV+ElOcUC/2/bWI3N/O7SygdgyidZfK+8JS27t9E63guRoWv
/aaBiF3Ul/vUIB6wAS9FeoimNb+72BhU3U8S5TBev7Kdwt6XRbyByu7G0TzL6Ge8
sQIDAQAB
-----END PUBLIC KEY-----
";

    /// Length of the modulus of `KEY`, in bytes.
    const MODULUS: usize = 256;

    #[test]
    fn a_servers_key_is_good_for_passwords_that_fit() {
        assert_eq!(check(KEY.as_bytes(), MODULUS - OAEP_BYTES), Ok(()));
        mysql_common::crypto::encrypt(&[b'x'; MODULUS - OAEP_BYTES], KEY.as_bytes()).unwrap();
        assert!(check(KEY.as_bytes(), MODULUS - OAEP_BYTES + 1).is_err());
    }

    #[test]
    fn what_is_no_key_is_refused() {
        assert!(check(b"", 9).is_err());
        assert!(check(b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----", 9).is_err());
        assert!(check(&vec![b'-'; PEM_BYTES_MAX + 1], 9).is_err());
        // SEQUENCE { SEQUENCE {}, BIT STRING { SEQUENCE { INTEGER 0, INTEGER 0 } } }
        let zeros = "-----BEGIN PUBLIC KEY-----\nMA8wAAMLADAIAgEAAgMAAAA=\n-----END PUBLIC KEY-----";
        assert!(check(zeros.as_bytes(), 9).is_err());
    }

    #[test]
    fn every_key_cut_short_is_refused() {
        let body: String = KEY.lines().filter(|line| !line.starts_with('-')).collect();
        // Whole groups of four characters, so that the base64 stays valid and the DER is what is cut.
        for end in (0..body.len() - 4).step_by(4) {
            let cut = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----", &body[..end]);
            assert!(check(cut.as_bytes(), 9).is_err(), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn a_key_that_passes_does_not_break_the_encryption(
            changes in proptest::collection::vec((28_usize..420, "[A-Za-z0-9+/]"), 1..4),
            message in 1_usize..250,
        ) {
            let mut key = KEY.to_owned();
            for (at, character) in changes {
                if key.as_bytes()[at] != b'\n' {
                    key.replace_range(at..=at, &character);
                }
            }
            if check(key.as_bytes(), message).is_ok() {
                let _ = mysql_common::crypto::encrypt(&vec![b'x'; message], key.as_bytes());
            }
        }
    }
}
