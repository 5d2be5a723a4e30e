//! Keys of who writes an archive: commits are signed with Ed25519, so that who reads knows whose they are.
//!
//! In the forms of OpenSSL, with which a signature can be checked without binlogd: a private key is PKCS#8 in PEM (RFC 8410), as
//! `openssl genpkey -algorithm ed25519` makes it, and a public key the one line of base64 in what `openssl pkey -pubout` prints.

use super::error::{KeyError, Wrong};
use super::file::{self, line_of};
use age::secrecy::zeroize::Zeroizing;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::str::FromStr;

/// What comes before the 32 bytes of a public key of Ed25519 (RFC 8410, section 4).
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The same in base64: so each public key begins.
const PUBLIC_BEGIN: &str = "MCowBQYDK2VwAyEA";

/// The object identifier of Ed25519, 1.3.101.112, in a private key.
const OID: [u8; 5] = [0x06, 0x03, 0x2b, 0x65, 0x70];

/// A private key that signs. No text of it shows it.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: VerifyingKey,
}

/// The public key of who signs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VerifyingKey([u8; 32]);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public)
    }
}

impl SigningKey {
    /// Reads the one in a file. A group may read it, which is how a service gets at its key.
    ///
    /// # Errors
    /// When the file cannot be read, is open to everybody, or has no such key.
    pub fn read(path: &Path) -> Result<SigningKey, KeyError> {
        let of_file = |wrong| KeyError::new(path.display().to_string(), wrong);
        let content = file::read(path).map_err(|error| of_file(error.into()))?;
        let key = parse(&content.bytes).map_err(of_file)?;
        let mode = content.permissions.mode() & 0o7777;
        if mode & 0o007 != 0 {
            return Err(of_file(Wrong::OpenToAll(mode)));
        }
        Ok(key)
    }

    /// By which its signatures are known.
    pub fn public(&self) -> VerifyingKey {
        self.public
    }

    /// The signature of some bytes, in base64: 88 characters. The same bytes give the same signature.
    pub fn sign(&self, bytes: &[u8]) -> String {
        BASE64_STANDARD.encode(self.pair.sign(bytes))
    }
}

fn parse(bytes: &[u8]) -> Result<SigningKey, Wrong> {
    let text = std::str::from_utf8(bytes).map_err(|_| Wrong::NotSigning("no file of text"))?;
    let lines = || text.lines().map(str::trim);
    // What stands before the first line of PEM is a comment.
    let label = lines().find_map(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("-----"));
    match label {
        Some("PRIVATE KEY") => {}
        Some("ENCRYPTED PRIVATE KEY") => return Err(Wrong::ProtectedSigning),
        Some("OPENSSH PRIVATE KEY") => return Err(Wrong::NotSigning("a private key of SSH")),
        Some("PUBLIC KEY") => return Err(Wrong::NotSigning("a public key")),
        Some(_) => return Err(Wrong::NotSigning("a key or certificate of another kind")),
        None if text.starts_with(PUBLIC_BEGIN) => return Err(Wrong::NotSigning("a public key")),
        None => return Err(Wrong::NotSigning("no key in PEM")),
    }
    let body = lines().skip_while(|line| !line.starts_with("-----BEGIN ")).skip(1);
    let body = Zeroizing::new(body.take_while(|line| !line.starts_with("-----")).collect::<String>());
    let der = Zeroizing::new(BASE64_STANDARD.decode(&*body).map_err(|_| Wrong::NotSigning("damaged"))?);
    if !der.windows(OID.len()).any(|part| part == OID) {
        return Err(Wrong::NotSigning("a private key of another kind"));
    }
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| Wrong::NotSigning("damaged"))?;
    let public = pair.public_key().as_ref().try_into().map_err(|_| Wrong::NotSigning("damaged"))?;
    Ok(SigningKey { pair, public: VerifyingKey(public) })
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_BEGIN}{}", BASE64_STANDARD.encode(self.0))
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for VerifyingKey {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<VerifyingKey, Wrong> {
        if text.contains("PRIVATE KEY") {
            return Err(Wrong::NotVerifying("a private key"));
        }
        let der = BASE64_STANDARD.decode(text.trim()).map_err(|_| Wrong::NotVerifying("no such key"))?;
        let key = der.strip_prefix(&SPKI).and_then(|key| key.try_into().ok());
        key.map(VerifyingKey).ok_or(Wrong::NotVerifying("no such key, or not all of it"))
    }
}

impl VerifyingKey {
    /// The keys that an argument names: one itself, or those in a file, in PEM or one a line.
    ///
    /// # Errors
    /// When it is neither.
    pub fn named(argument: &str) -> Result<Vec<VerifyingKey>, KeyError> {
        if argument.starts_with(PUBLIC_BEGIN) {
            let key = argument.parse().map_err(|wrong| KeyError::new(argument, wrong))?;
            return Ok(vec![key]);
        }
        let path = Path::new(argument);
        let content = file::read(path).map_err(|error| KeyError::new(argument, error.into()))?;
        let text = String::from_utf8_lossy(&content.bytes);
        let mut keys = Vec::new();
        // The body of a public key in PEM is one line, and what is around it names no key.
        for (line, text) in file::lines(&text).filter(|(_, text)| !text.ends_with(" PUBLIC KEY-----")) {
            keys.push(text.parse().map_err(|wrong| KeyError::new(line_of(path, line), wrong))?);
        }
        if keys.is_empty() { Err(KeyError::new(argument, Wrong::Empty)) } else { Ok(keys) }
    }

    /// Whether this key has made that signature, in base64, of these bytes.
    pub fn has_signed(&self, bytes: &[u8], signature: &str) -> bool {
        let signature = BASE64_STANDARD.decode(signature).unwrap_or_default();
        UnparsedPublicKey::new(&ED25519, self.0).verify(bytes, &signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // `openssl genpkey -algorithm ed25519`, and `openssl pkey -pubout` of the same.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINtFriVaTiy+8REZCrZjfXfxOzpZ5KEkE5vqUsLUvA6o\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "MCowBQYDK2VwAyEA4QT28fIBL7L9Ynp/pocGCxxnYRSpsOb0+S+2XAzx6W8=";

    #[test]
    fn keys_of_openssl_sign_and_verify() {
        let key = parse(PRIVATE.as_bytes()).unwrap();
        assert_eq!(key.public().to_string(), PUBLIC);
        let public: VerifyingKey = PUBLIC.parse().unwrap();
        // `openssl pkeyutl -sign -rawin` of the same bytes.
        let signature =
            "QXDFakyRIgLnbO0z6mjcdQEPXR73kL/DGNEyImfgSdLNrkv+8tgT/WWY48W+E9GjYDE3bH74c7SwpD4fGk5rCA==";
        assert_eq!(key.sign(b"binlogd"), signature);
        assert!(public.has_signed(b"binlogd", signature) && !public.has_signed(b"binlogs", signature));
        for wrong in ["", "AAAA", &signature.replace('A', "B")] {
            assert!(!public.has_signed(b"binlogd", wrong), "{wrong}");
        }
        assert!(!format!("{key:?}").contains("y+8REZCrZjfXfxOzpZ5K"), "{key:?}");
    }

    #[test]
    fn public_keys_are_named_by_themselves_or_by_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys").display().to_string();
        let named = |text: &str| {
            std::fs::write(&path, text).unwrap();
            VerifyingKey::named(&path).map_err(|error| error.to_string())
        };
        let key: VerifyingKey = PUBLIC.parse().unwrap();
        assert_eq!(VerifyingKey::named(PUBLIC).unwrap(), [key]);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{PUBLIC}\n-----END PUBLIC KEY-----\n");
        assert_eq!(named(&format!("# of db1\n{PUBLIC}\n{pem}")).unwrap(), [key, key]);
        for (text, words) in [
            ("", "no key in it"),
            (PRIVATE, "line 1: this is a private key, and what is wanted is the public"),
            ("ssh-ed25519 AAAA", "line 1: this is no such key"),
            (&PUBLIC[..40], "not all of it"),
        ] {
            let error = named(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(VerifyingKey::named("nowhere").unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn a_private_key_that_cannot_be_used_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sign.key");
        let read = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            SigningKey::read(&path).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(read(PRIVATE, 0o640), Ok(()));
        assert_eq!(read(&format!("made for db1\n{PRIVATE}"), 0o600), Ok(()));
        let of =
            |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
        for (text, mode, words) in [
            (PRIVATE.to_owned(), 0o644, "everybody on this machine can read this key (mode 0644)"),
            (of("ENCRYPTED PRIVATE KEY", "AAAA"), 0o600, "openssl pkey -in OLD -out NEW"),
            (of("OPENSSH PRIVATE KEY", "AAAA"), 0o600, "a private key of SSH, and what signs"),
            (of("PUBLIC KEY", PUBLIC), 0o600, "a public key, and what signs"),
            (PUBLIC.to_owned(), 0o600, "a public key, and what signs"),
            (of("EC PRIVATE KEY", "AAAA"), 0o600, "of another kind"),
            (of("PRIVATE KEY", "AAAA"), 0o600, "of another kind"),
            (of("PRIVATE KEY", "MC4CAQAwBQYDK2VwBCIEIAAA"), 0o600, "damaged"),
            (of("PRIVATE KEY", "!"), 0o600, "damaged"),
            (String::new(), 0o600, "openssl genpkey -algorithm ed25519"),
        ] {
            let error = read(&text, mode).unwrap_err();
            assert!(error.contains(words) && error.contains("sign.key"), "{error}");
        }
    }
}
