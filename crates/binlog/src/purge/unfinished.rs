//! A purge that was recorded and has not removed all of its files: the machine stopped, or a file could not be removed.

use crate::folder::by_number;
use crate::purge::purge_record;
use crate::purge::purged::Purged;
use crate::search_index;
use crate::storage::Storage;
use crate::storage::failed::during;
use crate::timeline::files::binlog_files;
use std::io;
use std::path::Path;

/// Finishes the purges of all timelines of a source, and notes that they are; gives how many files it removed. For who may purge.
///
/// # Errors
/// As `remove_recorded`, the first after all timelines were tried; or when the record cannot be written.
pub fn finish(storage: &dyn Storage, source_folder: &Path) -> io::Result<usize> {
    of_all(storage, source_folder, true)
}

/// As [`finish`], for who opens a copy: the record belongs to those who purge, so it stays as it is.
///
/// # Errors
/// As `remove_recorded`, the first after all timelines were tried.
pub fn remove_left(storage: &dyn Storage, source_folder: &Path) -> io::Result<usize> {
    of_all(storage, source_folder, false)
}

fn of_all(storage: &dyn Storage, source_folder: &Path, marks: bool) -> io::Result<usize> {
    let (mut count, mut failed) = (0, None);
    for folder in by_number(storage, source_folder)? {
        let removed = match marks {
            true => remove_and_mark(storage, &folder),
            false => remove_recorded(storage, &folder, &purge_record::read(storage, &folder)),
        };
        match removed {
            Ok(removed) => count += removed.len(),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(count), Err)
}

/// Removes what is recorded in a timeline's folder, and notes that it is.
fn remove_and_mark(storage: &dyn Storage, folder: &Path) -> io::Result<Vec<String>> {
    let lines = purge_record::read(storage, folder);
    let removed = remove_recorded(storage, folder, &lines)?;
    if lines.iter().any(|line| !line.removed) {
        purge_record::mark_removed(storage, folder)?;
    }
    Ok(removed)
}

/// Removes the files that are recorded as purged and not yet as removed, and makes that durable; gives their names. What another
/// thread removes at the same time is no error.
///
/// # Errors
/// When the folder cannot be read, or a file cannot be removed: the others are, the record stands, and the next call tries again.
pub(crate) fn remove_recorded(
    storage: &dyn Storage,
    folder: &Path,
    lines: &[Purged],
) -> io::Result<Vec<String>> {
    if lines.iter().all(|line| line.removed) {
        return Ok(Vec::new());
    }
    let (mut removed, mut failed) = (Vec::new(), None);
    let is_left = |name: &String| lines.iter().any(|line| line.is_to_remove(name));
    for name in binlog_files(storage, folder)?.into_iter().filter(is_left) {
        let path = folder.join(&name);
        // Before the file: one that stays behind would stay for good. It is derived, so a failure is no reason to keep the file.
        let _ = search_index::remove(storage, folder, &name);
        match storage.remove_file(&path) {
            Ok(()) => removed.push(name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => failed = failed.or(Some(during("remove", &path)(error))),
        }
    }
    if !removed.is_empty() {
        storage.sync_dir(folder)?;
    }
    failed.map_or(Ok(removed), Err)
}
