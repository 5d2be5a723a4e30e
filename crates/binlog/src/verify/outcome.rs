//! `verified.toml` in a source's folder: what `binlogd verify` found last, for the daemon, which shows it.
//!
//! Nothing but the status depends on the file: a start does not read it, and without it nothing is wrong.

use crate::storage::Storage;
use crate::timeline::index::replace_file;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Name of the file in a source's folder.
pub(crate) const VERIFIED_FILE: &str = "verified.toml";

const HEAD: &str = "# What binlogd verify found last; see docs/status.md.\n";

/// What one run found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// When it began. UTC, RFC 3339.
    pub at: Timestamp,
    /// How many problems there are; 0 for a sound copy.
    pub findings: u64,
}

/// Keeps what a run found of the copy in `source_folder`, in the place of what the one before found.
///
/// # Errors
/// As the operating system says, for instance because the folder cannot be written to.
pub fn write(storage: &dyn Storage, source_folder: &Path, outcome: &Outcome) -> io::Result<()> {
    let path = source_folder.join(VERIFIED_FILE);
    let text = HEAD.to_owned() + &toml::to_string(outcome).map_err(io::Error::other)?;
    replace_file(storage, &path, text.as_bytes())
}

/// What the last run found; `None` before the first.
///
/// # Errors
/// When there is a file and it cannot be read or understood.
pub fn read(storage: &dyn Storage, source_folder: &Path) -> io::Result<Option<Outcome>> {
    match storage.read_to_string(&source_folder.join(VERIFIED_FILE)) {
        Ok(text) => toml::from_str(&text).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::posix::PosixStorage;

    #[test]
    fn the_newest_outcome_counts_and_nonsense_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(read(&PosixStorage, path).unwrap(), None);
        for findings in [3, 0] {
            let outcome = Outcome { at: Timestamp::UNIX_EPOCH, findings };
            write(&PosixStorage, path, &outcome).unwrap();
            assert_eq!(read(&PosixStorage, path).unwrap(), Some(outcome));
        }
        assert_eq!(std::fs::read_dir(path).unwrap().count(), 1, "nothing unfinished stays");
        std::fs::write(path.join(VERIFIED_FILE), "findings = 0").unwrap();
        assert!(read(&PosixStorage, path).is_err(), "half an outcome is none");
        assert!(
            write(&PosixStorage, &path.join("absent"), &Outcome { at: Timestamp::UNIX_EPOCH, findings: 0 })
                .is_err()
        );
    }
}
