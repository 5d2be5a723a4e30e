//! Opening a timeline: find the live file, cut it at its last boundary, know where to go on.

use super::Position;
use super::in_name;
use super::purge::unfinished::remove_recorded;
use super::scan::{FileScan, Known, scan_from, scan_watched};
use super::storage::{Storage, StorageFile};
use super::verify::kept::{kept_from, without_moved};
use crate::purge::purge_record;
use crate::purge::purged::is_purged;
use crate::timeline::files::{binlog_files, files_in_order};
use crate::timeline::index;
use crate::writer::mark::{MARK_FILE, MarkWriter, Marks};
use codec::event::FormatDescription;
use codec::gtid::GtidState;
use jiff::Timestamp;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// At most this many bytes of a torn tail are kept aside. A tail can be a whole interrupted transaction of gigabytes,
/// which the source sends again; its beginning is enough to see what happened.
const TORN_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What to do with bytes past the last boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Keep a copy aside, named by this moment: the process starts, and a crash may have torn them.
    SaveAside(Timestamp),
    /// This process wrote them and knows them to be the beginning of a transaction that will be sent again.
    Discard,
}

/// A timeline that is ready to be appended to.
#[derive(Debug)]
pub struct Recovered {
    /// Names of all files, sealed ones first; the last is the live one.
    pub files: Vec<String>,
    /// The live file, cut at its last boundary; `None` when the timeline has no file yet.
    pub live: Option<LiveFile>,
    /// GTIDs executed up to that boundary.
    pub gtids: GtidState,
    /// GTIDs of the transactions in the live file, as [`Known::gtids`] has them.
    pub gtids_in_file: GtidState,
    /// Writes the next mark.
    pub marks: MarkWriter,
    /// What was found and repaired, in words for the log.
    pub remarks: Vec<String>,
}

/// The file that is appended to.
#[derive(Debug)]
pub struct LiveFile {
    /// Bare name.
    pub name: Arc<str>,
    /// Open for writing.
    pub file: Box<dyn StorageFile>,
    /// Its length, which is a boundary; 4 when it holds nothing but the magic.
    pub len: u64,
    /// Where the tail begins that a session compares; see [`tail_start`](super::scan::tail_start). Always <= `len`.
    pub tail_start: u64,
    /// Its first event, if it has one yet.
    pub format: Option<FormatDescription>,
    /// Time of its last event, seconds since 1970; 0 if it has none.
    pub last_timestamp: u32,
}

impl Recovered {
    /// Where the source must go on sending.
    pub fn resume_at(&self) -> Option<Position> {
        self.live.as_ref().map(|live| Position { file: live.name.clone(), offset: live.len })
    }
}

/// Told now and then how much of the files has been read, in bytes, and of how much. An error that it gives ends the
/// recovery with that error, and loses nothing: the next one begins again.
pub type Watch<'a> = dyn FnMut(u64, u64) -> io::Result<()> + 'a;

/// Opens the timeline in `folder`. Idempotent: a crash inside it is recovered by the next call.
///
/// # Errors
/// When the folder or a file cannot be read or repaired.
pub fn recover(storage: &dyn Storage, folder: &Path, tail: Tail) -> io::Result<Recovered> {
    recover_watched(storage, folder, tail, &mut |_, _| Ok(()))
}

/// As [`recover`], for a caller who wants to know how far it is, or to end it early.
///
/// # Errors
/// When the folder or a file cannot be read or repaired, or as `watch` says.
pub fn recover_watched(
    storage: &dyn Storage,
    folder: &Path,
    tail: Tail,
    watch: &mut Watch<'_>,
) -> io::Result<Recovered> {
    let mut remarks = Vec::new();
    let files = agree_on_files(storage, folder, &mut remarks)?;
    let source_folder = folder.parent().unwrap_or(Path::new("."));
    let marks = Marks::read(storage, source_folder);
    let Some(name) = files.last() else {
        let (gtids, gtids_in_file) = (GtidState::default(), GtidState::default());
        if !marks.is_empty() {
            remove_marks(storage, source_folder)?;
        }
        let marks = marks.writer();
        return Ok(Recovered { files, live: None, gtids, gtids_in_file, marks, remarks });
    };
    let path = folder.join(name);
    let file = storage.open(&path)?;
    let len = file.size()?;
    let timeline = folder.file_name().unwrap_or_default().to_string_lossy();
    // What is in the page cache only must be durable: the boundary is about to be called so. And what is walked must be what
    // the disk has: after a sync that failed the page cache may hold bytes that no later sync writes.
    file.sync_data()?;
    file.forget_cached_from(marks.needed_from(&timeline, name, len));
    // A process may have ended between giving a name and syncing the folder.
    storage.sync_dir(folder)?;
    let known = marks.known(&timeline, name, &*file, len)?;
    let mut watch_file = |at| watch(at, len);
    let found = known.map_or(Ok(None), |known| scan_from(&*file, known, &mut watch_file))?;
    let read_from = known.filter(|_| found.is_some()).map_or(0, |known| known.offset);
    let scan = match found {
        Some(scan) => scan,
        None => {
            file.forget_cached();
            scan_watched(&*file, u64::MAX, &mut watch_file)?
        }
    };
    // Before anything is cut: a mark that is not of what is here could be believed of what comes in its place.
    if !marks.are_of(&timeline, name, scan.boundary) {
        remove_marks(storage, source_folder)?;
    }
    if scan.boundary < len {
        cut(storage, &path, &*file, &scan, len, tail, &mut remarks)?;
    }
    if scan.boundary < 4 {
        // A crash between making the file and writing its magic.
        file.truncate(0)?;
        file.write_all_at(&mut [IoSlice::new(&codec::event::BINLOG_MAGIC)], 0)?;
        file.sync_data()?;
    }
    let gtids = match &scan.gtids_before {
        Some(_) => scan.gtids.clone(),
        None => gtids_of_earlier_files(storage, folder, &files, watch)?.unwrap_or_else(|| scan.gtids.clone()),
    };
    let gtids_in_file = scan.gtids_in_file();
    let mut marks = marks.writer();
    if scan.boundary >= read_from + storage.mark_bytes() {
        let (offset, tail_start, last_timestamp) = (scan.boundary, scan.tail_start, scan.last_timestamp);
        let known = Known { offset, tail_start, last_timestamp, gtids: gtids_in_file.clone() };
        // It only spares the next start what this one did.
        let _ = marks.write(storage, folder, name, &*file, &known);
    }
    let live = LiveFile {
        name: name.as_str().into(),
        file,
        len: scan.boundary.max(4),
        tail_start: scan.tail_start.max(4),
        format: scan.format,
        last_timestamp: scan.last_timestamp,
    };
    Ok(Recovered { files, live: Some(live), gtids, gtids_in_file, marks, remarks })
}

/// Takes the marks away, durably.
fn remove_marks(storage: &dyn Storage, source_folder: &Path) -> io::Result<()> {
    match storage.remove_file(&source_folder.join(MARK_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    storage.sync_dir(source_folder)
}

/// Writes the bytes of a file from `from` on over themselves. After a sync that failed they may stand in the page cache
/// alone, as if they were on the disk; written again, the next sync has to take them there.
///
/// # Errors
/// When the file cannot be read or written.
pub fn write_again(storage: &dyn Storage, path: &Path, from: u64) -> io::Result<()> {
    let file = storage.open(path)?;
    let mut buffer = vec![0u8; 256 * 1024];
    let mut at = from;
    loop {
        let read = file.read_at(&mut buffer, at)?;
        if read == 0 {
            return Ok(());
        }
        file.write_all_at(&mut [IoSlice::new(&buffer[..read])], at)?;
        at += read as u64;
    }
}

/// The index in agreement with the folder: the files are the truth.
fn agree_on_files(
    storage: &dyn Storage,
    folder: &Path,
    remarks: &mut Vec<String>,
) -> io::Result<Vec<String>> {
    let listed = index::read(storage, folder)?;
    let mut kept = listed.clone();
    if let Some(kept_from) = kept_from(storage, folder) {
        let present = binlog_files(storage, folder)?;
        without_moved(&mut kept, &present, &kept_from);
        let moved = listed.len() - kept.len();
        if moved > 0 {
            remarks.push(format!(
                "{moved} files before {kept_from} are not in {} any more, as its timeline.toml says (kept_from); their names are \
                 taken out of binlog.index",
                folder.display()
            ));
        }
    }
    let purged = purge_record::read(storage, folder);
    match remove_recorded(storage, folder, &purged) {
        Ok(removed) if removed.is_empty() => {}
        Ok(removed) => {
            let (count, folder) = (removed.len(), folder.display());
            remarks.push(format!(
                "{count} files in {folder} that were purged had not been removed yet: they are now"
            ));
        }
        // They are none of the copy's, whether they are there or not: nobody has to wait for them to go.
        Err(error) => remarks.push(format!("a file that was purged cannot be removed: {error}")),
    }
    // The writer of a live file lists what was purged until it begins the next one.
    kept.retain(|name| !is_purged(&purged, name));
    let files = files_in_order(storage, folder, &kept, &purged, remarks)?;
    if files != listed {
        index::write(storage, folder, &files)?;
    }
    Ok(files)
}

fn cut(
    storage: &dyn Storage,
    path: &Path,
    file: &dyn StorageFile,
    scan: &FileScan,
    len: u64,
    tail: Tail,
    remarks: &mut Vec<String>,
) -> io::Result<()> {
    let (at, bytes) = (scan.boundary, len - scan.boundary);
    let why = scan.damage.as_ref().map_or("an incomplete transaction".to_owned(), ToString::to_string);
    if let Tail::SaveAside(now) = tail {
        let aside = torn_name(path, now);
        match save_tail(storage, file, at, len, &aside) {
            Ok(()) => remarks.push(format!(
                "{} cut at its last boundary {at}: {bytes} bytes after it ({why}); saved in {}",
                path.display(),
                aside.display()
            )),
            // The tail was never acknowledged and will be sent again, so a full disk must not stop the start.
            Err(error) => remarks.push(format!(
                "{} cut at its last boundary {at}: {bytes} bytes after it ({why}); could not save them in {}: {error}",
                path.display(),
                aside.display()
            )),
        }
    }
    file.truncate(at)?;
    file.sync_data()
}

fn torn_name(path: &Path, now: Timestamp) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".torn-{}", in_name(now)));
    path.with_file_name(name)
}

fn save_tail(
    storage: &dyn Storage,
    file: &dyn StorageFile,
    from: u64,
    len: u64,
    aside: &Path,
) -> io::Result<()> {
    let copy = storage.create(aside)?;
    let end = len.min(from + TORN_BYTES_MAX);
    let mut buffer = vec![0u8; 256 * 1024];
    let mut at = from;
    while at < end {
        let want = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let read = file.read_at(&mut buffer[..want], at)?;
        if read == 0 {
            break;
        }
        copy.write_all_at(&mut [IoSlice::new(&buffer[..read])], at - from)?;
        at += read as u64;
    }
    copy.sync_data()?;
    storage.sync_dir(aside.parent().unwrap_or(Path::new(".")))
}

/// The live file does not say yet what came before it; the file before it does at its end.
fn gtids_of_earlier_files(
    storage: &dyn Storage,
    folder: &Path,
    files: &[String],
    watch: &mut Watch<'_>,
) -> io::Result<Option<GtidState>> {
    for name in files.iter().rev().skip(1) {
        let file = storage.open(&folder.join(name))?;
        let len = file.size()?;
        let scan = scan_watched(&*file, u64::MAX, &mut |at| watch(at, len))?;
        if scan.gtids_before.is_some() {
            return Ok(Some(scan.gtids));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::posix::PosixStorage;
    use crate::testing::{FileBuilder, NOW, SERVER_UUID};
    use proptest::prelude::*;

    fn folder_with(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let names: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        index::write(&PosixStorage, dir.path(), &names).unwrap();
        dir
    }

    #[test]
    fn an_empty_folder_has_nothing_to_resume() {
        let dir = tempfile::tempdir().unwrap();
        let found = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
        assert!(found.live.is_none() && found.files.is_empty() && found.remarks.is_empty());
    }

    #[test]
    fn a_torn_tail_is_cut_and_kept_aside() {
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 100);
        let boundary = builder.len();
        let whole = builder.transaction(2, 100).finish();
        let dir = folder_with(&[("mysql-bin.000001", whole[..whole.len() - 5].to_vec())]);
        let found = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
        assert_eq!(found.resume_at().unwrap().to_string(), format!("mysql-bin.000001:{boundary}"));
        assert_eq!(found.gtids.to_string(), format!("{SERVER_UUID}:1"));
        assert_eq!(found.remarks.len(), 1, "{:?}", found.remarks);
        assert_eq!(std::fs::read(dir.path().join("mysql-bin.000001")).unwrap(), whole[..boundary]);
        let torn = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.to_string_lossy().contains(".torn-"))
            .expect("the tail is saved");
        assert_eq!(std::fs::read(torn).unwrap(), whole[boundary..whole.len() - 5]);
        // A second time there is nothing left to repair.
        let again = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
        assert_eq!((again.remarks.len(), again.resume_at()), (0, found.resume_at()));
    }

    #[test]
    fn ddl_at_the_tail_is_not_cut() {
        let mut builder = FileBuilder::new().previous_gtids("");
        builder.event(34, &[0; 25]);
        let mut ddl = vec![0u8; 14];
        ddl.extend_from_slice(b"CREATE TABLE t (a int)");
        builder.event(2, &ddl);
        let whole = builder.finish();
        let dir = folder_with(&[("mysql-bin.000001", whole.clone())]);
        let found = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
        assert_eq!(found.resume_at().unwrap().offset, whole.len() as u64);
    }

    #[test]
    fn an_empty_live_file_resumes_at_its_beginning_with_the_gtids_of_the_one_before() {
        for live in [vec![], b"\xfeb".to_vec(), b"\xfebin".to_vec(), b"\xfebin\0\0".to_vec()] {
            let first =
                FileBuilder::new().previous_gtids("").transaction(1, 10).rotate("mysql-bin.000002").finish();
            let dir = folder_with(&[("mysql-bin.000001", first.clone()), ("mysql-bin.000002", live)]);
            let found = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
            assert_eq!(found.resume_at().unwrap(), Position::new("mysql-bin.000002", 4));
            assert_eq!(found.gtids.to_string(), format!("{SERVER_UUID}:1"));
            assert_eq!(std::fs::read(dir.path().join("mysql-bin.000002")).unwrap(), b"\xfebin");
            assert_eq!(std::fs::read(dir.path().join("mysql-bin.000001")).unwrap(), first);
        }
    }

    #[test]
    fn a_file_that_the_index_missed_is_added() {
        let first = FileBuilder::new().previous_gtids("").rotate("mysql-bin.000002").finish();
        let dir = folder_with(&[("mysql-bin.000001", first)]);
        std::fs::write(dir.path().join("mysql-bin.000002"), b"\xfebin").unwrap();
        std::fs::write(dir.path().join("mysql-bin.000001.torn-20260101T000000Z"), b"x").unwrap();
        let found = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
        assert_eq!(found.files, ["mysql-bin.000001", "mysql-bin.000002"]);
        assert_eq!(index::read(&PosixStorage, dir.path()).unwrap(), found.files);
    }

    #[test]
    fn a_sealed_file_that_the_index_lost_does_not_become_the_live_one() {
        let sealed = FileBuilder::new().previous_gtids("").rotate("mysql-bin.000002").finish();
        let dir = folder_with(&[("mysql-bin.000002", b"\xfebin".to_vec())]);
        std::fs::write(dir.path().join("mysql-bin.000001"), &sealed).unwrap();
        let found = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
        assert_eq!(found.files, ["mysql-bin.000001", "mysql-bin.000002"]);
        assert_eq!(found.resume_at(), Some(Position::new("mysql-bin.000002", 4)));
    }

    /// A session that resumes there compares the source's format with it.
    #[test]
    fn a_format_description_that_is_cut_off_is_not_the_files() {
        let mut file = FileBuilder::new().finish();
        file[4 + 13] ^= 1; // The position that it states.
        let checksum = file.len() - 4;
        let computed = crc32fast::hash(&file[4..checksum]);
        file[checksum..].copy_from_slice(&computed.to_le_bytes());
        let dir = folder_with(&[("mysql-bin.000001", file)]);
        let found = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
        let live = found.live.unwrap();
        assert_eq!((live.len, live.format), (4, None));
    }

    #[test]
    fn an_index_of_any_bytes_is_written_anew() {
        let dir = folder_with(&[("mysql-bin.000001", b"\xfebin".to_vec())]);
        std::fs::write(dir.path().join(index::INDEX_FILE), b"mysql-bin.000001\n\xff\n").unwrap();
        let found = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
        assert_eq!(found.files, ["mysql-bin.000001"]);
        assert_eq!(index::read(&PosixStorage, dir.path()).unwrap(), found.files);
    }

    /// Cut at its end, the stump would look unfinished to the next recovery.
    #[test]
    fn a_transaction_that_nothing_continues_goes_with_the_one_after_it() {
        let mut builder = FileBuilder::new().previous_gtids("").transaction(1, 10);
        let boundary = builder.len() as u64;
        builder.event(34, &[0; 25]);
        builder.event(34, &[0; 25]);
        let dir = folder_with(&[("mysql-bin.000001", builder.finish())]);
        for _ in 0..2 {
            let found = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
            assert_eq!(found.resume_at().unwrap().offset, boundary);
        }
    }

    proptest! {
        /// Whatever stands in the live file, recovery ends at a boundary, changes nothing before it, and is stable.
        #[test]
        fn recovery_never_panics_and_is_idempotent(
            garbage in proptest::collection::vec(any::<u8>(), 0..200),
            keep in 0usize..400,
        ) {
            let mut file = FileBuilder::new().previous_gtids("").transaction(1, 60).transaction(2, 60).finish();
            file.truncate(keep);
            file.extend_from_slice(&garbage);
            let dir = folder_with(&[("mysql-bin.000001", file.clone())]);
            let found = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
            let position = found.resume_at().unwrap();
            let after = std::fs::read(dir.path().join("mysql-bin.000001")).unwrap();
            prop_assert_eq!(after.len() as u64, position.offset);
            if position.offset > 4 {
                prop_assert_eq!(&after[..], &file[..after.len()]);
            }
            let again = recover(&PosixStorage, dir.path(), Tail::SaveAside(NOW)).unwrap();
            prop_assert_eq!(again.resume_at().unwrap(), position);
        }
    }
}
