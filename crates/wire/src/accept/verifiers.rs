//! What is kept of an account's password: enough to check an answer to a challenge, not the password.
//!
//! Sources: `generate_sha256_scramble` and `Validate_scramble` in sql/auth/sha2_password_common.cc (MySQL),
//! `check_scramble` in sql/auth/password.c (both), plugin/auth_ed25519 (MariaDB).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use mysql_common::auth::plugins::client_ed25519::ClientEd25519;
use mysql_common::auth::plugins::{ChallengeResponsePlugin, Context};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY as SHA1, SHA256, digest};
use ring::signature::{ED25519, UnparsedPublicKey};
use subtle::ConstantTimeEq as _;

use crate::secret::Secret;

/// Length of what SHA-1 gives, in bytes.
const SHA1_BYTES: usize = 20;
/// Length of what SHA-256 gives, and of an ed25519 public key, in bytes.
const SHA256_BYTES: usize = 32;

/// What stands before the digits of our own form of a hash for caching_sha2_password.
const SHA256_PREFIX: &str = "sha256:";

/// An authentication method that we can check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `caching_sha2_password`, of MySQL since 8.0.4; always by its fast way, which needs neither TLS nor RSA.
    CachingSha2,
    /// `mysql_native_password`, which MySQL 9 no longer knows.
    Native,
    /// `client_ed25519`, of MariaDB.
    Ed25519,
}

impl Method {
    /// All of them, the best first.
    pub const ALL: [Self; 3] = [Self::CachingSha2, Self::Ed25519, Self::Native];

    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::CachingSha2 => "caching_sha2_password",
            Self::Native => "mysql_native_password",
            Self::Ed25519 => "client_ed25519",
        }
    }

    /// The method of that name, if we can check it.
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name().as_bytes() == name)
    }
}

/// Methods that an account can be let in by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Methods {
    /// [`Method::CachingSha2`].
    pub caching_sha2: bool,
    /// [`Method::Native`].
    pub native: bool,
    /// [`Method::Ed25519`].
    pub ed25519: bool,
}

impl Methods {
    /// Whether a method is among them.
    pub fn has(self, method: Method) -> bool {
        match method {
            Method::CachingSha2 => self.caching_sha2,
            Method::Native => self.native,
            Method::Ed25519 => self.ed25519,
        }
    }
}

/// What checks the password of one account, for each method that it can be let in by.
///
/// None of these is the password, and none but the ed25519 key may become known: who has one of the others and listens to
/// a login in clear can log in. `Debug` shows the methods only.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Verifiers {
    /// SHA256(SHA256(password)).
    pub sha256: Option<[u8; SHA256_BYTES]>,
    /// SHA1(SHA1(password)).
    pub native: Option<[u8; SHA1_BYTES]>,
    /// The public key whose secret the password is.
    pub ed25519: Option<[u8; SHA256_BYTES]>,
}

impl Verifiers {
    /// Those of all methods. An empty password gives verifiers that no client satisfies: an account without a password
    /// lets nobody in.
    pub fn from_password(password: &Secret) -> Self {
        let password = password.expose().as_bytes();
        Self {
            sha256: Some(sha256(&sha256(password))),
            native: Some(sha1(&sha1(password))),
            ed25519: ed25519_public_key(password),
        }
    }

    /// The methods that there is a verifier for.
    pub fn methods(&self) -> Methods {
        Methods {
            caching_sha2: self.sha256.is_some(),
            native: self.native.is_some(),
            ed25519: self.ed25519.is_some(),
        }
    }

    /// These, and those of `other` for the methods that lack one: for an account of several hashes.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            sha256: self.sha256.or(other.sha256),
            native: self.native.or(other.native),
            ed25519: self.ed25519.or(other.ed25519),
        }
    }

    /// Those of `methods` only.
    #[must_use]
    pub(super) fn only(self, methods: Methods) -> Self {
        Self {
            sha256: self.sha256.filter(|_| methods.caching_sha2),
            native: self.native.filter(|_| methods.native),
            ed25519: self.ed25519.filter(|_| methods.ed25519),
        }
    }

    /// Whether this is the password, told as it is: over TLS, or on one machine. Takes as long for a wrong one.
    pub fn admits(&self, password: &Secret) -> bool {
        let given = Self::from_password(password);
        let is_same = match (self.sha256, self.native, self.ed25519) {
            (Some(stored), ..) => given.sha256.map(|given| given.ct_eq(&stored)),
            (_, Some(stored), _) => given.native.map(|given| given.ct_eq(&stored)),
            (.., Some(stored)) => given.ed25519.map(|given| given.ct_eq(&stored)),
            _ => None,
        };
        !password.expose().is_empty() && is_same.is_some_and(bool::from)
    }

    /// Whether `answer` to `challenge` shows that the client has the password.
    pub(super) fn check(&self, method: Method, challenge: &[u8], answer: &[u8]) -> bool {
        match method {
            Method::CachingSha2 => self.sha256.is_some_and(|stored| check_sha256(&stored, challenge, answer)),
            Method::Native => self.native.is_some_and(|stored| check_native(&stored, challenge, answer)),
            Method::Ed25519 => self
                .ed25519
                .is_some_and(|key| UnparsedPublicKey::new(&ED25519, key).verify(challenge, answer).is_ok()),
        }
    }

    /// What a client of that method knows of the password too, for what MariaDB's clients want to see signed.
    pub(super) fn shared(&self, method: Method) -> Option<&[u8]> {
        match method {
            Method::CachingSha2 => self.sha256.as_ref().map(|hash| &hash[..]),
            Method::Native => self.native.as_ref().map(|hash| &hash[..]),
            Method::Ed25519 => self.ed25519.as_ref().map(|key| &key[..]),
        }
    }
}

impl fmt::Debug for Verifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.methods().fmt(f)
    }
}

/// A text that is no password hash that can be used here. It does not hold the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadVerifier {
    /// A hash of MySQL's caching_sha2_password or sha256_password.
    #[error(
        "a salted hash ($A$…, $5$…) can only be checked by somebody who is sent the password; give the password, or \
         sha256: followed by the 64 hexadecimal digits of SHA256(SHA256(password)), which for the password in the file f \
         are printed by: openssl dgst -sha256 -binary f | sha256sum"
    )]
    Salted,
    /// Anything else.
    #[error(
        "a password hash has one of these forms: sha256: and the 64 hexadecimal digits of SHA256(SHA256(password)); * and \
         40 hexadecimal digits, as servers print it for mysql_native_password; 43 characters in base64, as MariaDB prints \
         it for ed25519"
    )]
    Unknown,
}

impl FromStr for Verifiers {
    type Err = BadVerifier;

    /// Reads one hash, of whichever method its form is.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut read = Self::default();
        if let Some(digits) = text.strip_prefix(SHA256_PREFIX) {
            read.sha256 = Some(unhex(digits).ok_or(BadVerifier::Unknown)?);
        } else if let Some(digits) = text.strip_prefix('*') {
            read.native = Some(unhex(digits).ok_or(BadVerifier::Unknown)?);
        } else if text.starts_with('$') {
            return Err(BadVerifier::Salted);
        } else {
            let key = STANDARD_NO_PAD.decode(text).ok().and_then(|key| key.try_into().ok());
            read.ed25519 = Some(key.ok_or(BadVerifier::Unknown)?);
        }
        Ok(read)
    }
}

/// The answer is XOR(SHA256(password), SHA256(SHA256(SHA256(password)) || challenge)).
fn check_sha256(stored: &[u8; SHA256_BYTES], challenge: &[u8], answer: &[u8]) -> bool {
    let Ok(answer) = <[u8; SHA256_BYTES]>::try_from(answer) else { return false };
    let mask = sha256(&[&stored[..], challenge].concat());
    let hash = xor(answer, mask);
    sha256(&hash).ct_eq(stored).into()
}

/// The answer is XOR(SHA1(password), SHA1(challenge || SHA1(SHA1(password)))).
fn check_native(stored: &[u8; SHA1_BYTES], challenge: &[u8], answer: &[u8]) -> bool {
    let Ok(answer) = <[u8; SHA1_BYTES]>::try_from(answer) else { return false };
    let mask = sha1(&[challenge, &stored[..]].concat());
    let hash = xor(answer, mask);
    sha1(&hash).ct_eq(stored).into()
}

fn xor<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    std::array::from_fn(|index| a[index] ^ b[index])
}

pub(super) fn sha256(bytes: &[u8]) -> [u8; SHA256_BYTES] {
    let mut hash = [0; SHA256_BYTES];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

fn sha1(bytes: &[u8]) -> [u8; SHA1_BYTES] {
    let mut hash = [0; SHA1_BYTES];
    hash.copy_from_slice(digest(&SHA1, bytes).as_ref());
    hash
}

/// The public key of a password, as the client side computes it.
pub(super) fn ed25519_public_key(password: &[u8]) -> Option<[u8; SHA256_BYTES]> {
    let key = ClientEd25519::default().password_hash(&OnlyPassword(password));
    key.and_then(|key| key.try_into().ok())
}

/// What mysql_common wants to know for that.
struct OnlyPassword<'a>(&'a [u8]);

impl Context for &OnlyPassword<'_> {
    fn pass(&self) -> &[u8] {
        self.0
    }

    fn is_ipc_transport(&self) -> bool {
        false
    }

    fn is_tls_transport(&self) -> bool {
        false
    }

    fn scramble(&self) -> &[u8] {
        &[]
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

/// Upper case, as servers print hashes.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Exactly as many digits as `N` bytes take, of either case.
fn unhex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use mysql_common::auth::plugins::Response;
    use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
    use mysql_common::auth::plugins::mysql_native_password::scramble_native;
    use proptest::prelude::*;

    use super::*;

    const CHALLENGE: &[u8; 20] = b"abcdefghijklmnopqrst";

    fn of(password: &str) -> Verifiers {
        Verifiers::from_password(&password.into())
    }

    fn signature(password: &str, challenge: &[u8]) -> Vec<u8> {
        let response = ClientEd25519::default().run(&OnlyPassword(password.as_bytes()), challenge).unwrap();
        let (Response::Next { packet } | Response::Last { packet }) = response;
        packet.unwrap()
    }

    #[test]
    fn hashes_as_servers_print_them() {
        // SELECT PASSWORD('secret') of MariaDB, mysql_native_password.
        let native: Verifiers = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7".parse().unwrap();
        assert_eq!(native.native, of("secret").native);
        assert_eq!((native.sha256, native.ed25519), (None, None));
        // Knowledge Base, "Authentication Plugin - ed25519".
        let ed25519: Verifiers = "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY".parse().unwrap();
        assert_eq!(ed25519.ed25519, of("secret").ed25519);
        let sha256 = format!("{SHA256_PREFIX}{}", hex(&of("secret").sha256.unwrap()));
        let sha256: Verifiers = sha256.to_lowercase().parse().unwrap();
        assert_eq!((sha256.sha256, sha256.methods().native), (of("secret").sha256, false));
        assert_eq!(native.or(ed25519).or(sha256), of("secret"));
    }

    #[test]
    fn other_texts_are_refused_and_not_repeated() {
        for text in ["$A$005$7%Zs\u{1}salt", "$5$rounds"] {
            let error = text.parse::<Verifiers>().unwrap_err();
            assert_eq!(error, BadVerifier::Salted);
            assert!(error.to_string().contains("sha256:"), "{error}");
        }
        let short = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE";
        for text in ["", "secret", short, "*é14E65567ABDB5135D0CFD9A70B3032C179A49E", "sha256:", "sha256:12"]
        {
            let error = text.parse::<Verifiers>().unwrap_err();
            assert_eq!(error, BadVerifier::Unknown, "{text}");
            assert!(text.len() < 10 || !error.to_string().contains(text));
        }
    }

    #[test]
    fn nothing_is_printed() {
        let shown = format!("{:?}", of("secret"));
        assert!(shown.contains("native: true") && !shown.contains("14"), "{shown}");
    }

    #[test]
    fn an_account_without_a_password_lets_nobody_in() {
        let empty = of("");
        for answer in [&b""[..], &[0], &[0; 20], &[0; 32], &[0; 64]] {
            for method in Method::ALL {
                assert!(!empty.check(method, CHALLENGE, answer), "{method:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_right_answer_and_no_other(
            password in "\\PC{1,20}",
            other in "\\PC{1,20}",
            challenge: [u8; 20],
            long_challenge: [u8; 32],
            hostile in proptest::collection::vec(any::<u8>(), 0..70),
        ) {
            let (right, wrong) = (of(&password), of(&other));
            let answers = [
                (Method::CachingSha2, &challenge[..], scramble_sha256(&challenge, password.as_bytes()).unwrap().to_vec()),
                (Method::Native, &challenge[..], scramble_native(&challenge, password.as_bytes()).unwrap().to_vec()),
                (Method::Ed25519, &long_challenge[..], signature(&password, &long_challenge)),
            ];
            for (method, challenge, answer) in answers {
                prop_assert!(right.check(method, challenge, &answer));
                prop_assert_eq!(wrong.check(method, challenge, &answer), password == other);
                prop_assert!(!right.check(method, &[7; 20], &answer));
                prop_assert!(!right.check(method, challenge, &hostile));
                prop_assert!(!right.only(Methods::default()).check(method, challenge, &answer));
            }
        }
    }
}
