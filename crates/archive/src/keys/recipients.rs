//! For whom objects are encrypted.

use super::error::{KeyError, Wrong};
use super::file::{self, line_of};
use super::kind::{self, Kind};
use age::ssh::ParseRecipientKeyError;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::path::Path;

/// Public keys: whoever has the private key of any of them reads what is encrypted.
#[derive(Default)]
pub struct Recipients {
    keys: Vec<Key>,
}

struct Key {
    recipient: Box<dyn age::Recipient + Send + Sync>,
    label: String,
}

impl fmt::Debug for Recipients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.label)).finish()
    }
}

impl Recipients {
    /// Nobody yet. What is encrypted for nobody cannot be: see [`Recipients::is_empty`].
    pub fn new() -> Recipients {
        Recipients::default()
    }

    /// Adds the public key that stands at `place` (a key of the configuration). One that is there already stays once.
    ///
    /// # Errors
    /// When it is no public key that can be used; the text of the error shows nothing of it.
    pub fn add(&mut self, key: &str, place: &str) -> Result<(), KeyError> {
        let key = read(key.trim()).map_err(|wrong| KeyError::new(place, wrong))?;
        if !self.keys.iter().any(|known| known.label == key.label) {
            self.keys.push(key);
        }
        Ok(())
    }

    /// Adds the public keys in a file, one a line, as `age -R` reads them: `#` begins a comment.
    ///
    /// # Errors
    /// When the file cannot be read or has no key, and as [`Recipients::add`]. Those before the wrong one stay.
    pub fn add_file(&mut self, path: &Path) -> Result<(), KeyError> {
        let place = || path.display().to_string();
        let content = file::read(path).map_err(|error| KeyError::new(place(), error.into()))?;
        if content.bytes.len() > file::FILE_BYTES_MAX {
            return Err(KeyError::new(place(), Wrong::TooLong));
        }
        // A file in binary form that age has encrypted is none of text.
        if kind::of(&content.bytes) == Kind::Encrypted {
            return Err(KeyError::new(place(), Wrong::EncryptedRecipients));
        }
        let text = std::str::from_utf8(&content.bytes);
        let text = text.map_err(|_| KeyError::new(place(), Wrong::NotPublic))?;
        let mut found = false;
        for (line, key) in file::lines(text) {
            self.add(key, &line_of(path, line))?;
            found = true;
        }
        if found { Ok(()) } else { Err(KeyError::new(place(), Wrong::Empty)) }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True when there is none, so that nothing can be encrypted.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What [`Segment::keys`](crate::chain::commit::Segment::keys) says of an object: of each key of age the key itself, of each of SSH
    /// its fingerprint as `ssh-keygen -l` prints it.
    pub fn labels(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.label.clone()).collect()
    }

    /// Begins to encrypt one object, under a key of its own that each recipient can open.
    pub(crate) fn encryptor(&self) -> Result<age::Encryptor, age::EncryptError> {
        age::Encryptor::with_recipients(self.keys.iter().map(|key| &*key.recipient as &dyn age::Recipient))
    }
}

fn read(text: &str) -> Result<Key, Wrong> {
    match kind::of(text.as_bytes()) {
        Kind::AgePublic => {
            let recipient: age::x25519::Recipient = text.parse().map_err(Wrong::DamagedAge)?;
            let label = recipient.to_string();
            Ok(Key { recipient: Box::new(recipient), label })
        }
        Kind::SshPublic => {
            let recipient: age::ssh::Recipient = text.parse().map_err(|error| match error {
                ParseRecipientKeyError::RsaModulusTooLarge => Wrong::RsaLength("long"),
                ParseRecipientKeyError::RsaModulusTooSmall => Wrong::RsaLength("short"),
                ParseRecipientKeyError::Unsupported(kind) => Wrong::Unsupported(kind),
                _ => Wrong::DamagedSsh,
            })?;
            let label = fingerprint(&recipient);
            Ok(Key { recipient: Box::new(recipient), label })
        }
        Kind::OtherPublic(kind) => Err(Wrong::Unsupported(kind)),
        Kind::AgePrivate | Kind::OtherPrivate => Err(Wrong::PrivateAge),
        Kind::SshPrivate => Err(Wrong::PrivateSsh),
        Kind::Encrypted => Err(Wrong::EncryptedRecipients),
        Kind::Unknown => Err(Wrong::NotPublic),
    }
}

/// The fingerprint of a key of SSH, as `ssh-keygen -l` prints it.
pub(super) fn fingerprint(key: &age::ssh::Recipient) -> String {
    let (age::ssh::Recipient::SshRsa(blob, _) | age::ssh::Recipient::SshEd25519(blob, _)) = key;
    format!("SHA256:{}", BASE64_STANDARD_NO_PAD.encode(Sha256::digest(blob)))
}
