//! Segments: pieces of a file as objects, made and read back.
//!
//! An object is frames of zstd ([`frames`]), and around them one file of age if there are
//! [`Recipients`]. So `age -d -i KEY OBJECT | zstd -d` gives the plain bytes.
//!
//! Nothing that comes back from a store is believed: the object's length and hash are compared with the commit's before a byte
//! of it is decrypted or unpacked, and those of the plain bytes after.

pub(crate) mod merge;
pub mod runs;
pub mod search_index;
pub mod segments;
pub(crate) mod whole;

use crate::chain::commit::Segment;
use crate::chain::trust::Trust;
use crate::frames;
use crate::frames::{FramesError, Packer};
use crate::keys::{Identities, Recipients};
use crate::names;
use bytes::Bytes;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::sync::Arc;

/// The most plain bytes of a segment. Whoever reads one holds all of it in memory, three times at worst: stored, decrypted, plain.
pub const SEGMENT_BYTES_MAX: usize = 8 << 20;

/// An object ready for the store, and what the commit says of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The object.
    pub bytes: Bytes,
    /// Hexadecimal SHA-256 of the plain bytes.
    pub sha256: String,
    /// Hexadecimal SHA-256 of the object.
    pub stored_sha256: String,
    /// Who can decrypt it, as [`Segment::keys`] has it.
    pub keys: Vec<String>,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sealed { bytes, sha256, stored_sha256, keys } = self;
        let mut f = f.debug_struct("Sealed");
        f.field("bytes", &bytes.len()).field("sha256", sha256).field("stored_sha256", stored_sha256);
        f.field("keys", keys).finish()
    }
}

/// An object could not be made: the machine has no memory or no random bytes left.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// By zstd.
    #[error("a segment could not be compressed: {0}")]
    Frames(#[from] FramesError),
    /// By age.
    #[error("a segment could not be encrypted: {0}")]
    Encrypt(String),
}

/// Makes objects. One for each thread; its memory is used again from one object to the next.
#[derive(Debug)]
pub struct Sealer {
    packer: Packer,
    recipients: Option<Arc<Recipients>>,
    frames: Vec<u8>,
}

impl Sealer {
    /// A sealer that compresses at `level`, and encrypts for `recipients`.
    ///
    /// # Errors
    /// When there is no memory for it.
    ///
    /// # Panics
    /// When the level is not one of `frames::LEVELS`, or `recipients` has nobody: what was to be encrypted is never stored
    /// plain.
    pub fn new(level: i32, recipients: Option<Arc<Recipients>>) -> Result<Sealer, SealError> {
        assert!(!recipients.as_ref().is_some_and(|all| all.is_empty()), "encrypted for nobody");
        Ok(Sealer { packer: Packer::new(level)?, recipients, frames: Vec::new() })
    }

    /// Whether it compresses at `level`, and encrypts for the very same `recipients`.
    pub(crate) fn is_for(&self, level: i32, recipients: Option<&Arc<Recipients>>) -> bool {
        let is_same = match (&self.recipients, recipients) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        is_same && self.packer.level() == level
    }

    /// Makes the object of `plain`. `already_compressed` are the ranges of it that the source has compressed, as
    /// [`Walker`](crate::segment::runs::Walker) gives them.
    ///
    /// # Errors
    /// When the machine has no memory or no random bytes left.
    ///
    /// # Panics
    /// When `plain` is empty or longer than [`SEGMENT_BYTES_MAX`].
    pub fn seal(&mut self, plain: &[u8], already_compressed: &[Range<usize>]) -> Result<Sealed, SealError> {
        assert!((1..=SEGMENT_BYTES_MAX).contains(&plain.len()), "a segment of {} bytes", plain.len());
        self.packer.pack(plain, already_compressed, &mut self.frames)?;
        let (bytes, keys) = match &self.recipients {
            // A copy of its exact length: the one that stays here has room for the worst case, and an upload lasts.
            None => (Bytes::copy_from_slice(&self.frames), Vec::new()),
            Some(recipients) => (encrypt(&self.frames, recipients)?, recipients.labels()),
        };
        let (sha256, stored_sha256) = (names::sha256(plain), names::sha256(&bytes));
        Ok(Sealed { bytes, sha256, stored_sha256, keys })
    }
}

fn encrypt(frames: &[u8], recipients: &Recipients) -> Result<Bytes, SealError> {
    // 16 bytes a chunk of 64 KiB, and a header: an RSA key of 4096 bits takes 700 bytes of it, any other less.
    let room = 256 + 1024 * recipients.len() + frames.len() + 16 * (frames.len() / (64 << 10) + 1);
    let encryptor = recipients.encryptor().map_err(|error| SealError::Encrypt(error.to_string()))?;
    let write = |room| {
        let mut writer = encryptor.wrap_output(Vec::with_capacity(room))?;
        writer.write_all(frames)?;
        writer.finish()
    };
    let bytes = write(room).map_err(|error: std::io::Error| SealError::Encrypt(error.to_string()))?;
    Ok(Bytes::from(bytes))
}

/// An object that cannot be used. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The commit says what no sound one says.
    #[error(
        "{object}: the commit gives it the bytes from {from} to {to}, and a segment has 1 to {SEGMENT_BYTES_MAX}: the commit is damaged, \
         or of a later version of binlogd"
    )]
    Range {
        /// The object's name.
        object: String,
        /// Where the segment begins.
        from: u64,
        /// Where the segment ends.
        to: u64,
    },
    /// The object's length differs.
    #[error(
        "{object}: the object has {actual} bytes and was uploaded with {expected}: it was replaced, or the answer was cut short. Read it \
         again; if that is the same, take it from another copy of the bucket"
    )]
    StoredLength {
        /// The object's name.
        object: String,
        /// By the commit.
        expected: u64,
        /// As it was read.
        actual: u64,
    },
    /// The object's hash differs.
    #[error(
        "{object}: the object's SHA-256 is {actual} and was {expected} at the upload: it was damaged or replaced in the store. Read it \
         again; if that is the same, take it from another copy of the bucket"
    )]
    StoredHash {
        /// The object's name.
        object: String,
        /// By the commit.
        expected: String,
        /// As it was read.
        actual: String,
    },
    /// None of the private keys opens it.
    #[error("{}", no_identity(.object, .keys, .held))]
    NoIdentity {
        /// The object's name.
        object: String,
        /// For whom it is encrypted.
        keys: Vec<String>,
        /// The public keys of those that were tried.
        held: Vec<String>,
    },
    /// It is what was uploaded, and age does not read it.
    #[error("{object}: the object is as it was uploaded, and cannot be decrypted: {reason}. {OURS}")]
    Decrypt {
        /// The object's name.
        object: String,
        /// In words.
        reason: String,
    },
    /// It is what was uploaded, and zstd does not read it.
    #[error("{object}: the object is as it was uploaded, and cannot be unpacked: {reason}. {OURS}")]
    Unpack {
        /// The object's name.
        object: String,
        /// In words.
        reason: FramesError,
    },
    /// The plain bytes' hash differs.
    #[error(
        "{object}: the object is as it was uploaded, and the SHA-256 of its plain bytes is {actual} where the commit says {expected}. \
         {OURS}"
    )]
    PlainHash {
        /// The object's name.
        object: String,
        /// By the commit.
        expected: String,
        /// Of what is in the object.
        actual: String,
    },
}

/// What is to be done where object and commit agree on what was uploaded.
const OURS: &str = "So it was wrong when it was made, or the commit was changed since: use another copy of this file, and report this";

fn no_identity(object: &str, keys: &[String], held: &[String]) -> String {
    let (keys, held) = (keys.join(", "), held.join(", "));
    let held = match &*held {
        "" => "no private key was given".to_owned(),
        held => format!("the private keys given are those of {held}"),
    };
    format!(
        "{object}: the object is encrypted for {keys}, and {held}: give the private key of one for whom it is"
    )
}

/// Whether an object is what was uploaded, as far as can be seen without a key: its length and its hash.
///
/// # Errors
/// [`OpenError::StoredLength`] or [`OpenError::StoredHash`], when it is not.
pub(crate) fn check_stored(segment: &Segment, stored: &[u8]) -> Result<(), OpenError> {
    let object = || segment.object.clone();
    let (expected, actual) = (segment.stored, stored.len() as u64);
    if expected != actual {
        return Err(OpenError::StoredLength { object: object(), expected, actual });
    }
    let actual = names::sha256(stored);
    if segment.stored_sha256 != actual {
        return Err(OpenError::StoredHash {
            object: object(),
            expected: segment.stored_sha256.clone(),
            actual,
        });
    }
    Ok(())
}

/// Reads objects back.
#[derive(Debug)]
pub struct Opener {
    identities: Identities,
    trust: Trust,
}

impl Opener {
    /// An opener that decrypts with `identities`; without any it reads what is not encrypted.
    pub fn new(identities: Identities) -> Opener {
        Opener { identities, trust: Trust::default() }
    }

    /// The same, and who must have signed the commits that say what there is to open.
    #[must_use]
    pub fn trusting(self, trust: Trust) -> Opener {
        Opener { trust, ..self }
    }

    /// Who must have signed what is read.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The public keys of the identities, as [`Segment::keys`] names them.
    pub fn labels(&self) -> Vec<String> {
        self.identities.labels()
    }

    /// The plain bytes of a segment, from its object as it was read from the store.
    ///
    /// # Errors
    /// When the object is not what the commit says, or no identity opens it.
    pub fn open(&self, segment: &Segment, stored: &[u8]) -> Result<Vec<u8>, OpenError> {
        let object = || segment.object.clone();
        let len = segment.to.checked_sub(segment.from).and_then(|len| usize::try_from(len).ok());
        let Some(len) = len.filter(|len| (1..=SEGMENT_BYTES_MAX).contains(len)) else {
            return Err(OpenError::Range { object: object(), from: segment.from, to: segment.to });
        };
        check_stored(segment, stored)?;
        let unpack = |frames: &[u8]| {
            frames::unpack(frames, len).map_err(|reason| OpenError::Unpack { object: object(), reason })
        };
        let plain = if segment.object.ends_with(".age") {
            unpack(&self.decrypt(&segment.object, &segment.keys, stored)?)?
        } else {
            unpack(stored)?
        };
        let actual = names::sha256(&plain);
        if segment.sha256 != actual {
            return Err(OpenError::PlainHash { object: object(), expected: segment.sha256.clone(), actual });
        }
        Ok(plain)
    }

    /// The plain bytes, `len` of them, of an object that no commit describes: what its name says of its content is all that is
    /// known of it.
    ///
    /// # Errors
    /// When the object is not what its name says, or no identity opens it.
    pub(crate) fn open_by_name(&self, object: &str, len: usize, stored: &[u8]) -> Result<Vec<u8>, OpenError> {
        let actual = names::sha256(stored);
        if !names::is_of_content(object, &actual) {
            let expected = "that of its name".to_owned();
            return Err(OpenError::StoredHash { object: object.to_owned(), expected, actual });
        }
        let unpack = |frames: &[u8]| {
            frames::unpack(frames, len)
                .map_err(|reason| OpenError::Unpack { object: object.to_owned(), reason })
        };
        if object.ends_with(".age") {
            return unpack(&self.decrypt(object, &[], stored)?);
        }
        unpack(stored)
    }

    fn decrypt(&self, object: &str, keys: &[String], stored: &[u8]) -> Result<Vec<u8>, OpenError> {
        let failed =
            |reason: &str| OpenError::Decrypt { object: object.to_owned(), reason: reason.to_owned() };
        let decryptor = age::Decryptor::new_buffered(stored)
            .map_err(|_| failed("that is no file of age, or one of a later version of age"))?;
        let mut reader = decryptor.decrypt(self.identities.iter()).map_err(|error| match error {
            age::DecryptError::NoMatchingKeys => OpenError::NoIdentity {
                object: object.to_owned(),
                keys: keys.to_vec(),
                held: self.identities.labels(),
            },
            age::DecryptError::InvalidMac => failed("its header was changed"),
            _ => failed("its header cannot be read"),
        })?;
        // What is encrypted is shorter than what it was encrypted to, so the memory that this takes is bounded by `stored`.
        let mut frames = Vec::with_capacity(stored.len());
        reader.read_to_end(&mut frames).map_err(|error| failed(&error.to_string()))?;
        Ok(frames)
    }
}

#[cfg(test)]
mod tests;
