//! Of which file an index is.

use super::bytes::{Bytes, Writing};
use super::error::IndexError;
use binlog::storage::ReadAt;
use sha2::{Digest, Sha256};
use std::io;

/// So many bytes at either end of a file go into its fingerprint. At its beginning stand the second in which the server made it
/// and what was executed before; at its end the last transaction and the name of the file that follows.
const ENDS_BYTES: usize = 512;

/// What tells a sealed file from others, also from one of the same name of another history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its length in bytes.
    pub len: u64,
    /// SHA-256 of its two ends.
    fingerprint: [u8; 32],
}

impl Identity {
    /// Of a file of that length.
    ///
    /// # Errors
    /// As the operating system says, or when the file is shorter.
    pub fn of(file: &dyn ReadAt, len: u64) -> io::Result<Identity> {
        let mut hash = Sha256::new();
        let mut ends = [0; ENDS_BYTES];
        let end = (len as usize).min(ENDS_BYTES);
        for at in [0, len.saturating_sub(ENDS_BYTES as u64)] {
            if file.read_full_at(&mut ends[..end], at)? != end {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            hash.update(&ends[..end]);
        }
        Ok(Identity { len, fingerprint: hash.finalize().into() })
    }

    pub(super) fn write(&self, out: &mut Writing) {
        out.number(self.len);
        out.raw(&self.fingerprint);
    }

    pub(super) fn read(bytes: &mut Bytes<'_>) -> Result<Identity, IndexError> {
        let len = bytes.number()?;
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(bytes.raw(32)?);
        Ok(Identity { len, fingerprint })
    }
}
