//! A transaction of the copy, as it is compared.

use super::compared::Version;
use binlog::forks::fingerprint::{Fingerprinter, Seen, Verdict};
use binlog::forks::transactions::TransactionReader;
use binlog::storage::posix::PosixStorage;
use codec::gtid::TransactionId;
use std::io;
use std::path::{Path, PathBuf};

/// A transaction of the copy that is to be compared.
pub(in crate::rescue) struct Ours {
    /// What it does, or why nobody can say.
    pub(in crate::rescue) seen: Result<Seen, String>,
    /// Place in the files that were read.
    pub(in crate::rescue) file: usize,
    /// Where it begins.
    pub(in crate::rescue) at: u64,
    /// Where it ends.
    end: u64,
}

/// The next one that is wanted.
pub(in crate::rescue) fn next_of_ours(
    reader: &mut TransactionReader,
    file: usize,
    wanted: &dyn Fn(&TransactionId) -> bool,
) -> io::Result<Option<(TransactionId, Ours)>> {
    let (mut fingerprinter, mut unclear) = (Fingerprinter::new(), None);
    let passed = reader.pass(|id| id.is_some_and(wanted), &mut |event| {
        match event {
            None => (fingerprinter, unclear) = (Fingerprinter::new(), None),
            Some((header, bytes)) if unclear.is_none() => unclear = fingerprinter.event(header, bytes).err(),
            Some(_) => {}
        }
        Ok(())
    })?;
    let Some((Some(id), at, end)) = passed else { return Ok(None) };
    let seen = unclear.map_or_else(|| Ok(fingerprinter.finish()), Err);
    Ok(Some((id, Ours { seen, file, at, end })))
}

/// A transaction of the copy at a place that is known.
pub(in crate::rescue) fn read_again(
    open: &mut Option<(PathBuf, TransactionReader)>,
    path: &Path,
    at: u64,
) -> io::Result<Ours> {
    if open.as_ref().is_none_or(|(other, _)| other != path) {
        *open = Some((path.to_owned(), TransactionReader::open(&PosixStorage, path)?));
    }
    let gone =
        || io::Error::other(format!("{} at {at}: no transaction stands there any more", path.display()));
    let (_, reader) = open.as_mut().ok_or_else(gone)?;
    reader.seek(at)?;
    next_of_ours(reader, 0, &|_| true)?.map(|(_, ours)| ours).ok_or_else(gone)
}

/// Whether two versions are the same transaction, as far as anybody can say.
pub(in crate::rescue) fn is_same(one: &Result<Seen, String>, other: &Result<Seen, String>) -> bool {
    matches!((one, other), (Ok(one), Ok(other)) if one.fingerprint.compare(&other.fingerprint) == Verdict::Same)
}

/// As the copy has it.
pub(in crate::rescue) fn version(path: &Path, ours: &Ours) -> Version {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let (began, changes) =
        ours.seen.as_ref().map_or((0, Vec::new()), |seen| (seen.began, seen.changes.clone()));
    Version { began, size: ours.end - ours.at, changes, place: format!("{folder}/{file} at {}", ours.at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::testing::FileBuilder;

    /// Of the versions that the copy holds of one GTID, those that are the same are held against the target once, and others each.
    #[test]
    fn versions_of_a_gtid_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let version = |name: &str, image: &[u8]| {
            let path = dir.path().join(name);
            let mut file = FileBuilder::new();
            file.event(33, &[&[0][..], &[0xab; 16], &1u64.to_le_bytes()].concat());
            file.event(2, &[&[0; 14][..], b"BEGIN"].concat());
            file.event(19, b"\x01\0\0\0\0\0\x01\0\x01d\0\x01t\0\x01\x0f\x02\x50\0\0");
            file.event(30, &[b"\x01\0\0\0\0\0\x01\0\x02\0\x01\x01", image].concat());
            file.event(16, &1u64.to_le_bytes());
            std::fs::write(&path, file.finish()).unwrap();
            let mut reader = TransactionReader::open(&PosixStorage, &path).unwrap();
            next_of_ours(&mut reader, 0, &|_| true).unwrap().unwrap().1.seen
        };
        let [one, again] = ["b.000001", "b.000002"].map(|name| version(name, b"one"));
        let other = version("b.000003", b"two");
        assert!(is_same(&one, &again));
        assert!(!is_same(&one, &other));
        let unclear = Err("an event that nobody knows".to_owned());
        assert!(!is_same(&unclear, &unclear), "nobody can say so");
    }
}
