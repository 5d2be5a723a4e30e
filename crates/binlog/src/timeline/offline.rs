//! What a stopped copy holds, read without a lock and without repairing anything.

use super::files::timeline_files;
use crate::Position;
use crate::scan::{FileScan, scan_file, scan_from};
use crate::storage::Storage;
use crate::writer::mark::{MARK_FILE, Marks};
use codec::event::BINLOG_MAGIC;
use codec::gtid::GtidState;
use std::io;
use std::path::Path;

/// Where a restart would go on in a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePoint {
    /// The last boundary of the live file.
    pub position: Position,
    /// GTIDs executed up to it.
    pub gtids: GtidState,
}

/// Finds the place at which [`recover`](crate::recover::recover) would cut and go on; `None` when the timeline has no
/// file yet. Walks the live file.
///
/// # Errors
/// When the folder or a file cannot be read.
pub fn resume_point(storage: &dyn Storage, folder: &Path) -> io::Result<Option<ResumePoint>> {
    let files = timeline_files(storage, folder)?;
    let Some((live, sealed)) = files.split_last() else { return Ok(None) };
    if let Some(recorded) = storage.recorded(&folder.join(live)) {
        let position = Position::new(live.as_str(), recorded.end);
        return Ok(Some(ResumePoint { position, gtids: recorded.gtids }));
    }
    let found = scan_live(storage, folder, live)?;
    let position = Position::new(live.as_str(), found.boundary.max(4));
    let mut gtids = found.gtids;
    if found.gtids_before.is_none() {
        // The live file does not say yet what came before it; the file before it does at its end.
        gtids = gtids_until(storage, folder, sealed, u64::MAX)?.unwrap_or(gtids);
    }
    Ok(Some(ResumePoint { position, gtids }))
}

/// GTIDs of the history up to byte `at` of the last of `names`, which are files of a timeline in their order; `None` when none
/// of them says what came before it. A limit within the last file is no end of a transaction: those that end before it count.
///
/// # Errors
/// When a file cannot be read; the message names it.
pub fn gtids_until(
    storage: &dyn Storage,
    folder: &Path,
    names: &[String],
    at: u64,
) -> io::Result<Option<GtidState>> {
    let mut limit = at.max(BINLOG_MAGIC.len() as u64);
    for name in names.iter().rev() {
        let found = scan(storage, folder, name, limit)?;
        if found.gtids_before.is_some() {
            return Ok(Some(found.gtids));
        }
        // It ends before it says what came before it, so the file before it does at its end.
        limit = u64::MAX;
    }
    Ok(None)
}

/// Walks the live file from where a mark says that the rest is sound.
fn scan_live(storage: &dyn Storage, folder: &Path, name: &str) -> io::Result<FileScan> {
    let path = folder.join(name);
    // A mark only spares reading. Without one the file is walked from its beginning.
    let marks = folder.parent().and_then(|source| storage.open_read(&source.join(MARK_FILE)).ok());
    let marks = marks.map_or_else(Marks::default, |file| Marks::read_from(&*file));
    let timeline = folder.file_name().unwrap_or_default().to_string_lossy();
    let walk = || {
        let file = storage.open_read(&path)?;
        match marks.known(&timeline, name, &*file, file.size()?)? {
            Some(known) => scan_from(&*file, known, &mut |_| Ok(())),
            None => Ok(None),
        }
    };
    match walk().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))? {
        Some(found) => Ok(found),
        None => scan(storage, folder, name, u64::MAX),
    }
}

fn scan(storage: &dyn Storage, folder: &Path, name: &str, limit: u64) -> io::Result<FileScan> {
    let path = folder.join(name);
    storage
        .open_read(&path)
        .and_then(|file| scan_file(&*file, limit, |_| {}))
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recover::{Tail, recover};
    use crate::storage::posix::PosixStorage;
    use crate::testing::{FileBuilder, NOW};

    #[test]
    fn a_timeline_without_files_has_none() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(resume_point(&PosixStorage, dir.path()).unwrap(), None);
    }

    /// `at` lies before the second file says what came before it, and within its transactions.
    #[test]
    fn the_gtids_of_a_place_are_told_by_its_file_or_by_the_one_before() {
        const UUID: &str = "abababab-abab-abab-abab-abababababab";
        let first = FileBuilder::new().previous_gtids("").transaction(1, 10).rotate("b.000002").finish();
        let begun = || FileBuilder::new().previous_gtids(&format!("{UUID}:1")).transaction(2, 100);
        let end = begun().finish().len() as u64;
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b.000001"), &first).unwrap();
        std::fs::write(dir.path().join("b.000002"), begun().transaction(3, 100).finish()).unwrap();
        let names = ["b.000001".to_owned(), "b.000002".to_owned()];
        let until = |names: &[String], at| gtids_until(&PosixStorage, dir.path(), names, at).unwrap();
        for (at, numbers) in
            [(0, "1"), (30, "1"), (end - 1, "1"), (end, "1-2"), (end + 1, "1-2"), (u64::MAX, "1-3")]
        {
            assert_eq!(until(&names, at).unwrap().to_line(), format!("{UUID}:{numbers}"), "{at}");
        }
        assert_eq!(until(&names[1..], 30), None);
        assert_eq!(until(&[], 30), None);
    }

    #[test]
    fn it_is_where_recovery_goes_on_and_nothing_is_changed() {
        let first = FileBuilder::new().previous_gtids("").transaction(1, 10).rotate("b.000002").finish();
        let begun = FileBuilder::new().previous_gtids("abababab-abab-abab-abab-abababababab:1");
        let torn = begun.transaction(2, 100).transaction(3, 100).finish();
        for live in [torn[..torn.len() - 7].to_vec(), b"\xfebin".to_vec(), vec![]] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("b.000001"), &first).unwrap();
            std::fs::write(dir.path().join("b.000002"), &live).unwrap();
            let point = resume_point(&PosixStorage, dir.path()).unwrap().unwrap();
            assert_eq!(std::fs::read(dir.path().join("b.000002")).unwrap(), live);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is added");
            let recovered = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
            assert_eq!(Some(&point.position), recovered.resume_at().as_ref());
            assert_eq!(point.gtids, recovered.gtids);
        }
    }
}
