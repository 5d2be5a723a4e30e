//! Files of keys, and their lines.

#![allow(clippy::disallowed_methods, reason = "the operator's files of keys")]

use age::secrecy::zeroize::Zeroizing;
use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::path::Path;

/// The longest file of keys that is read.
pub(super) const FILE_BYTES_MAX: usize = 1 << 20;

/// A file's content, which is overwritten when it is dropped.
pub(super) struct Content {
    /// At most one byte more than [`FILE_BYTES_MAX`]: then the file is longer.
    pub bytes: Zeroizing<Vec<u8>>,
    /// Who may read the file.
    pub permissions: Permissions,
}

/// Reads a file, which may be a pipe.
pub(super) fn read(path: &Path) -> io::Result<Content> {
    let file = File::open(path)?;
    let permissions = file.metadata()?.permissions();
    // A vector that grows leaves copies of the secret behind where it was.
    let mut bytes = Zeroizing::new(Vec::with_capacity(FILE_BYTES_MAX + 1));
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Content { bytes, permissions })
}

/// The lines that say something, each with its number from 1 on.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// A line of a file, as an error names it.
pub(super) fn line_of(path: &Path, line: usize) -> String {
    format!("{}, line {line}", path.display())
}
