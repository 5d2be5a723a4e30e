//! Whether a copy is right: files compared byte by byte.

use anyhow::{Context, bail};
use binlog::search_index::SEARCH_INDEX_FOLDER;
use rig::server::LogFile;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Compares the source's `files`, whose folder is `source`, with the copies that `copy_of` finds by their names.
///
/// # Errors
/// Names the first file that differs, and where.
pub fn same_bytes(
    source: &Path,
    files: &[LogFile],
    copy_of: impl Fn(&str) -> anyhow::Result<PathBuf>,
) -> anyhow::Result<()> {
    for (index, file) in files.iter().enumerate() {
        let original = source.join(&file.name);
        let copy = copy_of(&file.name)?;
        let live = index + 1 == files.len();
        if let Some(at) = first_difference(&original, &copy, live)? {
            bail!(
                "{} differs from {} at byte {at}: no speed of it counts",
                copy.display(),
                original.display()
            );
        }
    }
    Ok(())
}

/// A file of that name in a folder, or in one inside. Search indexes have the names of their files.
pub fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    if dir.file_name().is_some_and(|folder| folder == SEARCH_INDEX_FOLDER) {
        return None;
    }
    for entry in std::fs::read_dir(dir).ok()?.flatten() {
        let path = entry.path();
        if entry.file_name() == name {
            return Some(path);
        }
        if path.is_dir()
            && let Some(found) = find(&path, name)
        {
            return Some(found);
        }
    }
    None
}

/// Where the "in use" flag of the first event stands, which only the file being written has, and no stream.
const IN_USE_FLAG_AT: usize = 4 + 17;

/// Position of the first byte that differs; for files of different lengths at the latest the end of the shorter one.
fn first_difference(one: &Path, other: &Path, live: bool) -> anyhow::Result<Option<u64>> {
    let open = |path: &Path| {
        File::open(path).with_context(|| format!("cannot read {} to compare it", path.display()))
    };
    let (mut one, mut other) = (open(one)?, open(other)?);
    let (mut of_one, mut of_other) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let mut position = 0;
    loop {
        let read = one.read(&mut of_one)?;
        let len = if read == 0 { 1 } else { read };
        // As much of the other; at the end of the first, one byte more than there should be.
        let mut filled = 0;
        while filled < len {
            match other.read(&mut of_other[filled..len])? {
                0 => break,
                more => filled += more,
            }
        }
        if live && position == 0 && read > IN_USE_FLAG_AT {
            of_one[IN_USE_FLAG_AT] &= !1;
        }
        let same = read.min(filled);
        if of_one[..same] != of_other[..same]
            && let Some(at) = (0..same).find(|at| of_one[*at] != of_other[*at])
        {
            return Ok(Some(position + at as u64));
        }
        if read != filled {
            return Ok(Some(position + same as u64));
        }
        if read == 0 {
            return Ok(None);
        }
        position += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let mut bytes = vec![7; 3 << 20];
        let original = write("original", &bytes);
        assert_eq!(first_difference(&original, &write("same", &bytes), false).unwrap(), None);
        let end = bytes.len() as u64;
        assert_eq!(first_difference(&original, &write("short", &bytes[1..]), false).unwrap(), Some(end - 1));
        bytes.push(7);
        assert_eq!(first_difference(&original, &write("long", &bytes), false).unwrap(), Some(end));
        bytes.pop();
        bytes[2_500_000] = 8;
        assert_eq!(first_difference(&original, &write("other", &bytes), false).unwrap(), Some(2_500_000));
    }

    #[test]
    fn the_flag_of_a_file_in_use_is_no_difference() {
        let dir = tempfile::tempdir().unwrap();
        let (original, copy) = (dir.path().join("original"), dir.path().join("copy"));
        std::fs::write(&original, [1; 100]).unwrap();
        let mut bytes = [1; 100];
        bytes[IN_USE_FLAG_AT] = 0;
        std::fs::write(&copy, bytes).unwrap();
        assert_eq!(first_difference(&original, &copy, true).unwrap(), None);
        assert_eq!(first_difference(&original, &copy, false).unwrap(), Some(IN_USE_FLAG_AT as u64));
    }
}
