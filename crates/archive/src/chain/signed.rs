//! Whose a commit is: the signature in it.
//!
//! The signature stands in the commit itself, so that there is no commit without its own, whatever crashes, and the hash that the next
//! one names covers both. It is the last value of the JSON, and always as long: what is signed are the bytes of the object before it.
//! That is everything: number, hash of the commit before, changes, whose key it is, and of which source. So a commit cannot be taken
//! for one of another source whose writer has the same key.

use crate::keys::signing::{SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

/// What stands behind a signature in a commit.
const END: &str = "\"\n  }\n}\n";

/// What stands before it, and is signed too.
const BEGIN: &str = "\n    \"signature\": \"";

/// Characters of a signature: 64 bytes in base64.
const SIGNATURE_LEN: usize = 88;

/// Who signed a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// The public key.
    pub by: String,
    /// The source whose commit it is.
    pub source: String,
    /// Ed25519, in base64, over the bytes of the object up to here. The last value of the commit.
    pub signature: String,
}

impl Signed {
    /// Not signed yet.
    pub(super) fn by(key: &SigningKey, source: &str) -> Signed {
        Signed { by: key.public().to_string(), source: source.to_owned(), signature: String::new() }
    }
}

/// The signature of a commit whose bytes these are but for its signature, which is empty.
pub(super) fn signature_of(bytes: &[u8], key: &SigningKey) -> String {
    key.sign(&bytes[..bytes.len() - END.len()])
}

/// Whether the commit of these bytes is one that who is named in it has signed.
///
/// # Errors
/// In words.
pub(super) fn check(bytes: &[u8], signed: &Signed) -> Result<(), String> {
    let message = bytes.strip_suffix(END.as_bytes()).and_then(|rest| {
        let (message, signature) = rest.split_at_checked(rest.len().checked_sub(SIGNATURE_LEN)?)?;
        (signature == signed.signature.as_bytes() && message.ends_with(BEGIN.as_bytes())).then_some(message)
    });
    let key: VerifyingKey =
        signed.by.parse().map_err(|_| format!("{:?} has signed it, which is no key", signed.by))?;
    match message {
        Some(message) if key.has_signed(message, &signed.signature) => Ok(()),
        _ => Err(format!("its signature is not one that {key} has made of it: it was changed")),
    }
}
