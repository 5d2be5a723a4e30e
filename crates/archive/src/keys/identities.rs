//! Who can read what was encrypted.

use super::error::{KeyError, Wrong};
use super::file::{self, line_of};
use super::kind::{self, Kind};
use super::recipients::fingerprint;
use age::armor::ArmoredReader;
use age::secrecy::SecretString;
use age::secrecy::zeroize::Zeroizing;
use age::{DecryptError, Decryptor};
use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Asks somebody for the passphrase of what is named, which is a file. `None`: there is nobody, or he does not say.
pub type AskPassphrase<'a> = dyn FnMut(&str) -> Option<SecretString> + 'a;

/// How far a passphrase may be stretched, as stock age allows: 2^22 steps and with that 4 GiB of memory. `age -p` takes 2^18.
const STRETCH_LOG2_MAX: u8 = 22;

/// Private keys. No text of it, nor of an error, shows anything of one.
#[derive(Default)]
pub struct Identities {
    keys: Vec<Key>,
    remarks: Vec<String>,
}

struct Key {
    identity: Box<dyn age::Identity + Send + Sync>,
    label: String,
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.label)).finish()
    }
}

impl Identities {
    /// None yet: what is not encrypted can be read.
    pub fn new() -> Identities {
        Identities::default()
    }

    /// Adds the private keys in a file: those of age, as `age-keygen` writes them; the same encrypted by a passphrase (`age -p`);
    /// or one of SSH, which may have a passphrase too. `ask` is asked at most once.
    ///
    /// # Errors
    /// When the file cannot be read, has no private key, or its passphrase is not given.
    pub fn add_file(&mut self, path: &Path, ask: &mut AskPassphrase) -> Result<(), KeyError> {
        let of_file = |wrong| KeyError::new(path.display().to_string(), wrong);
        let content = file::read(path).map_err(|error| of_file(error.into()))?;
        let is_protected = match kind::of(&content.bytes) {
            Kind::Encrypted => {
                let text = decrypt(&content.bytes, path, ask).map_err(of_file)?;
                self.add_text(&text, path, ask)?;
                true
            }
            _ => self.add_text(&content.bytes, path, ask)?,
        };
        let mode = content.permissions.mode();
        // A key that a passphrase protects may lie open. So may one for the group: that is how a service gets at its key.
        if !is_protected && mode & 0o004 != 0 {
            self.remarks.push(format!(
                "{}: everybody on this machine can read this private key (mode {:04o}): chmod o-rwx",
                path.display(),
                mode & 0o7777
            ));
        }
        Ok(())
    }

    /// As [`add_file`](Self::add_file), where nobody can be asked: in a daemon.
    ///
    /// # Errors
    /// As there, and when a passphrase protects the file.
    pub fn add_unattended(&mut self, path: &Path) -> Result<(), KeyError> {
        self.add_file(path, &mut |_| None).map_err(|error| match error.wrong {
            Wrong::NoPassphrase => KeyError::new(error.place, Wrong::Protected),
            wrong => KeyError::new(error.place, wrong),
        })
    }

    /// Adds the keys in the plain content of a file; whether a passphrase protects them there.
    fn add_text(&mut self, bytes: &[u8], path: &Path, ask: &mut AskPassphrase) -> Result<bool, KeyError> {
        let of_file = |wrong| KeyError::new(path.display().to_string(), wrong);
        if bytes.len() > file::FILE_BYTES_MAX {
            return Err(of_file(Wrong::TooLong));
        }
        if kind::of(bytes) == Kind::SshPrivate {
            let (key, is_protected) = ssh(bytes, path, ask).map_err(of_file)?;
            self.push(key);
            return Ok(is_protected);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| of_file(Wrong::NotPrivate))?;
        let mut found = false;
        for (line, text) in file::lines(text) {
            let key = age_key(text).map_err(|wrong| KeyError::new(line_of(path, line), wrong))?;
            self.push(key);
            found = true;
        }
        if found { Ok(false) } else { Err(of_file(Wrong::Empty)) }
    }

    fn push(&mut self, key: Key) {
        if !self.keys.iter().any(|known| known.label == key.label) {
            self.keys.push(key);
        }
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The public keys of these, as [`Recipients::labels`](super::Recipients::labels) names them.
    pub fn labels(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.label.clone()).collect()
    }

    /// What the operator should know: files that everybody can read.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn age::Identity> {
        self.keys.iter().map(|key| &*key.identity as &dyn age::Identity)
    }
}

/// A line of an identity file.
fn age_key(text: &str) -> Result<Key, Wrong> {
    match kind::of(text.as_bytes()) {
        Kind::AgePrivate => {
            let identity: age::x25519::Identity = text.parse().map_err(|_| Wrong::DamagedIdentity)?;
            let label = identity.to_public().to_string();
            Ok(Key { identity: Box::new(identity), label })
        }
        Kind::OtherPrivate => Err(Wrong::Unsupported("AGE-PLUGIN or AGE-SECRET-KEY-PQ".to_owned())),
        Kind::AgePublic | Kind::SshPublic | Kind::OtherPublic(_) => Err(Wrong::Public),
        Kind::SshPrivate | Kind::Encrypted | Kind::Unknown => Err(Wrong::NotPrivate),
    }
}

/// The key of SSH in a file, and whether a passphrase protects it there.
fn ssh(bytes: &[u8], path: &Path, ask: &mut AskPassphrase) -> Result<(Key, bool), Wrong> {
    use age::ssh::{Identity, Recipient, UnsupportedKey};
    let identity = Identity::from_buffer(bytes, None).map_err(|_| Wrong::DamagedSshIdentity)?;
    let public = Recipient::try_from(identity.clone());
    let (identity, is_protected) = match identity {
        Identity::Unencrypted(_) => (identity, false),
        Identity::Encrypted(key) => {
            // Before anybody is asked for a passphrase that would be of no use.
            if let Err(age::ssh::ParseRecipientKeyError::Unsupported(kind)) = public {
                return Err(Wrong::Unsupported(kind));
            }
            let passphrase = ask(&path.display().to_string()).ok_or(Wrong::NoPassphrase)?;
            let key = key.decrypt(passphrase).map_err(|_| Wrong::WrongPassphrase)?;
            (Identity::from(key), true)
        }
        Identity::Unsupported(UnsupportedKey::Hardware(kind) | UnsupportedKey::Type(kind)) => {
            return Err(Wrong::Unsupported(kind));
        }
        Identity::Unsupported(_) => return Err(Wrong::UnknownProtection),
    };
    let label = fingerprint(&public.map_err(|_| Wrong::DamagedSshIdentity)?);
    Ok((Key { identity: Box::new(identity), label }, is_protected))
}

/// The plain content of a file that `age -p` has made, in either of its forms.
fn decrypt(bytes: &[u8], path: &Path, ask: &mut AskPassphrase) -> Result<Zeroizing<Vec<u8>>, Wrong> {
    let decryptor = Decryptor::new(ArmoredReader::new(bytes)).map_err(|_| Wrong::DamagedEncrypted)?;
    if !decryptor.is_scrypt() {
        return Err(Wrong::EncryptedToKey);
    }
    let passphrase = ask(&path.display().to_string()).ok_or(Wrong::NoPassphrase)?;
    let mut identity = age::scrypt::Identity::new(passphrase);
    identity.set_max_work_factor(STRETCH_LOG2_MAX);
    let reader = decryptor.decrypt(std::iter::once(&identity as &dyn age::Identity));
    let reader = reader.map_err(|error| match error {
        DecryptError::ExcessiveWork { required, .. } => Wrong::TooMuchWork(required),
        DecryptError::DecryptionFailed | DecryptError::NoMatchingKeys => Wrong::WrongPassphrase,
        _ => Wrong::DamagedEncrypted,
    })?;
    let mut text = Zeroizing::new(Vec::with_capacity(file::FILE_BYTES_MAX + 1));
    let mut reader = reader.take(file::FILE_BYTES_MAX as u64 + 1);
    reader.read_to_end(&mut text).map_err(|_| Wrong::DamagedEncrypted)?;
    Ok(text)
}
