//! Putting the bytes of the records back into the files.

use super::super::storage::{ReadAt, Storage, StorageFile};
use super::record::Record;
use std::io::{self, IoSlice};
use std::path::{Component, Path};

/// Writes the data of `records`, oldest first, where it belongs, and syncs each file that was touched. `folder` is the
/// source's. False when some of it has no place: its file is gone, or was cut.
///
/// # Errors
/// When a file cannot be read, written or synced.
pub(super) fn put_back(
    storage: &dyn Storage,
    folder: &Path,
    records: &[Record<'_>],
    remarks: &mut Vec<String>,
) -> io::Result<bool> {
    let mut all_placed = true;
    // A journal holds records of one file, and of the one before it if a crash came right after a rotation.
    for run in records.chunk_by(|a, b| (a.timeline, a.file) == (b.timeline, b.file)) {
        let Some(Record { timeline, file, .. }) = run.iter().find(|record| !record.data.is_empty()) else {
            continue;
        };
        let path = folder.join(timeline).join(file);
        if !is_plain(timeline) || !is_plain(file) {
            let message = format!("the journal in {} names {}", folder.display(), path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        match storage.open(&path) {
            Ok(open) => all_placed &= put_back_into(&*open, &path, run, remarks)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                all_placed = false;
                remarks.push(format!(
                    "the journal holds bytes of {} that a crash may have kept from it, but the file is gone; the \
                     source is asked for them",
                    path.display()
                ));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all_placed)
}

fn put_back_into(
    file: &dyn StorageFile,
    path: &Path,
    records: &[Record<'_>],
    remarks: &mut Vec<String>,
) -> io::Result<bool> {
    let (mut changed, mut all_placed) = (0, true);
    // Compare with the disk: after a sync that failed the page cache may hold bytes that no later sync writes.
    file.sync_data()?;
    file.forget_cached_from(records.iter().map(|record| record.offset).min().unwrap_or(0));
    for record in records {
        let len = file.size()?;
        if len < record.offset {
            // Everything before the oldest record was synced in the file, so somebody has cut it.
            remarks.push(format!(
                "{} ends at {len}, but the journal goes on at {}: the file was cut from outside; the source is asked \
                 for what is missing",
                path.display(),
                record.offset
            ));
            all_placed = false;
            break;
        }
        if !holds(file, record.offset, record.data)? {
            file.write_all_at(&mut [IoSlice::new(record.data)], record.offset)?;
            changed += record.data.len();
        }
    }
    if changed > 0 {
        remarks.push(format!(
            "{changed} bytes of {} were put back from the journal: a crash had kept them from the file",
            path.display()
        ));
    }
    // What the file holds may stand in the page cache only, and the journal is about to give it up.
    file.sync_data().map(|()| all_placed)
}

fn holds(file: &dyn ReadAt, offset: u64, data: &[u8]) -> io::Result<bool> {
    let mut held = vec![0; data.len()];
    Ok(file.read_full_at(&mut held, offset)? == data.len() && held == data)
}

/// A bare name, which cannot lead out of the folder.
fn is_plain(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(only)), None) if only == name)
}
