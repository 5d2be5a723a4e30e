//! The journal: where bytes become durable before an acknowledgement leaves.
//!
//! A binary log grows with each group of transactions, and a sync of a file that has grown makes the file system commit
//! its own metadata beside the bytes. The journal is a small file of a fixed length, written to its end when it is made,
//! so that a durable write into it is the bytes and nothing else. What is owed an acknowledgement goes there in one
//! write; the same bytes then go into the binary log, where the operating system may take its time to write them, and a
//! sync in the background makes the journal's space free again. docs/measured/benchmarks.md has what else was tried.
//!
//! ```text
//! <data_dir>/<source>/journal      first block, then a ring of records; see record.rs
//! ```
//!
//! # Invariants
//!
//! - The records that are kept continue one another: together they hold all bytes of the live file from the end of what
//!   a sync of that file has covered to the end of what is durable.
//! - The blocks of a record are written again only when a sync of the file has covered its bytes.
//! - A record is read as one only if it is whole: a torn one was never acknowledged.
//! - The newest record is never written over, needed or not: it says which older ones are not needed any more.
//!
//! After a crash [`Journal::open`] puts the bytes of the records back into the files. That is idempotent: most often the
//! files hold them already.

pub mod record;
mod replay;
mod ring;
mod staging;

use super::format::later;
use super::in_name;
use super::storage::{Storage, StorageFile};
use jiff::Timestamp;
use record::{BLOCK, JournalId, Newest};
use ring::Ring;
use staging::Staging;
use std::fmt;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

/// Name of the journal in a source's folder.
pub const JOURNAL_FILE: &str = "journal";

/// Bytes of a new journal. It is full, and has to wait for the background sync, only when that much has been
/// acknowledged during one sync of the binary log.
pub const JOURNAL_LEN: u64 = 8 << 20;

/// How many journals are read at a time. Each is read whole, and hundreds of sources start at once.
static READING: Gate = Gate::new(2);

/// Lets so many in at a time.
struct Gate {
    free: Mutex<usize>,
    left: Condvar,
}

/// Held while inside.
struct Entered<'a>(&'a Gate);

impl Gate {
    const fn new(places: usize) -> Gate {
        Gate { free: Mutex::new(places), left: Condvar::new() }
    }

    fn enter(&self) -> Entered<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.left.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Entered(self)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.left.notify_one();
    }
}

/// The journal of one source, used by the thread that receives from it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Each write is durable when it returns.
    file: Box<dyn StorageFile>,
    /// Bytes; it never changes.
    len: u64,
    id: JournalId,
    /// Number of the next record.
    sequence: u64,
    ring: Ring,
    staging: Staging,
    /// The newest record says that no record is needed.
    is_checkpointed: bool,
}

impl Journal {
    /// Opens the journal in a source's folder and puts what it holds back into the files; `None` when there is none.
    /// `remarks` gets in words what was put back. What has no place in the files is kept aside, named by `now`.
    ///
    /// # Errors
    /// When it is damaged, or it or a file cannot be read or written. Nothing must be appended then.
    pub fn open(
        storage: &dyn Storage,
        folder: &Path,
        now: Timestamp,
        remarks: &mut Vec<String>,
    ) -> io::Result<Option<Journal>> {
        let path = folder.join(JOURNAL_FILE);
        let _turn = READING.enter();
        let Some(bytes) = read_whole(storage, &path)? else { return Ok(None) };
        let len = bytes.len() as u64;
        if let Some(version) = record::later_version(&bytes) {
            // It may hold acknowledged transactions that nothing else does.
            let message = format!("{}: {}", path.display(), later(version));
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let Some((id, _)) = record::read_first_block(&bytes).filter(|(_, stated)| *stated == len) else {
            let message = format!(
                "{} is damaged: its first block or its length is wrong. It may hold acknowledged transactions that \
                 the binary logs beside it lack; keep a copy of it. Moved away, binlogd goes on without it and asks \
                 the source for what is missing",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        };
        let (records, newest) = record::needed(&bytes, &id);
        if !replay::put_back(storage, folder, &records, remarks)? {
            remarks.push(format!(
                "a copy of the journal is kept as {}",
                keep_aside(storage, &path, &bytes, now)?.display()
            ));
        }
        let mut journal = Journal::with(storage, path, id, newest, len)?;
        // Otherwise the next start would do it again, over files that may have changed by then.
        journal.is_checkpointed = records.is_empty();
        journal.checkpoint()?;
        Ok(Some(journal))
    }

    /// Makes a journal in a source's folder that has none. Takes as long as writing [`JOURNAL_LEN`] bytes and a sync.
    ///
    /// # Errors
    /// When there is one, or it cannot be made, for want of space for example.
    pub fn create(storage: &dyn Storage, folder: &Path) -> io::Result<Journal> {
        let path = folder.join(JOURNAL_FILE);
        if storage.exists(&path)? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", path.display())));
        }
        let temporary = folder.join(format!("{JOURNAL_FILE}.tmp"));
        match storage.remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {} // One that a crash left behind.
        }
        let mut id = JournalId::default();
        getrandom::fill(&mut id).map_err(io::Error::other)?;
        let made = fill(storage, &temporary, &id).and_then(|()| storage.rename(&temporary, &path));
        if let Err(error) = made {
            let _ = storage.remove_file(&temporary); // It may hold the last free space of the disk.
            return Err(error);
        }
        storage.sync_dir(folder)?;
        Journal::with(storage, path, id, None, JOURNAL_LEN)
    }

    fn with(
        storage: &dyn Storage,
        path: PathBuf,
        id: JournalId,
        newest: Option<Newest>,
        len: u64,
    ) -> io::Result<Journal> {
        let file = storage.open_synced(&path)?;
        let sequence = newest.map_or(1, |newest| newest.sequence + 1);
        let place = newest.map(|newest| (newest.block, newest.blocks));
        let ring = Ring::new((len / BLOCK as u64) as u32, place);
        Ok(Journal { path, file, len, id, sequence, ring, staging: Staging::new(), is_checkpointed: true })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// False when somebody has removed, moved, replaced or cut it.
    ///
    /// # Errors
    /// As the operating system says.
    pub(crate) fn is_in_place(&self) -> io::Result<bool> {
        self.file.is_whole_at(&self.path, self.len)
    }

    /// What comes next belongs to this file, from `offset` on.
    pub fn begin_file(&mut self, timeline: &str, file: &str, offset: u64) {
        self.staging.begin_file(timeline, file, offset);
    }

    /// Takes the next bytes of the file, without making them durable. When they are more than a record can hold, none
    /// is made until [`Journal::restart`].
    pub fn stage(&mut self, bytes: &[u8]) {
        self.staging.push(bytes);
    }

    /// True when a record of what is staged and `more` bytes can be written now.
    pub(crate) fn has_room_for(&self, more: usize) -> bool {
        self.staging.record_len(more).is_some_and(|len| self.ring.place(blocks(len)).is_some())
    }

    /// Makes what is staged durable, in one write. It stays staged, for `Journal::staged_from`, until
    /// [`Journal::restart`].
    ///
    /// # Errors
    /// When the write fails. The bytes are then in an unknown state.
    ///
    /// # Panics
    /// When there is no room: `Journal::has_room_for` must have said so.
    pub fn commit(&mut self) -> io::Result<()> {
        let len = self.staging.record_len(0).expect("what is staged fits a record");
        let place = self.ring.place(blocks(len)).expect("there is room for the record");
        let needed_from = self.ring.oldest().unwrap_or(self.sequence);
        self.write_record(place, needed_from)?;
        self.is_checkpointed = false;
        self.ring.keep(self.sequence - 1, place, blocks(len), self.staging.end());
        Ok(())
    }

    /// The staged bytes from `offset` of the file on.
    pub(crate) fn staged_from(&self, offset: u64) -> &[u8] {
        self.staging.from(offset)
    }

    /// Stages anew: the next bytes are those at `offset`, and what lies before is durable.
    pub fn restart(&mut self, offset: u64) {
        self.staging.restart(offset);
    }

    /// A sync of the file has covered everything before `offset`: the records of that are no longer needed.
    pub fn release(&mut self, offset: u64) {
        self.ring.release(offset);
    }

    /// True when half of the journal is in use: time to sync the binary log.
    pub(crate) fn is_half_full(&self) -> bool {
        self.ring.is_half_full()
    }

    /// A sync has covered everything in the file, or it was cut. Says so in the journal, so that no record is put back
    /// into a file that is sealed, cut or gone by then.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn checkpoint(&mut self) -> io::Result<()> {
        if self.is_checkpointed {
            return Ok(());
        }
        self.ring.clear();
        self.staging.drop_data();
        let place = self.ring.place(1).expect("an empty journal has room");
        self.write_record(place, self.sequence + 1)?;
        self.ring.pass(place, 1);
        self.is_checkpointed = true;
        Ok(())
    }

    fn write_record(&mut self, place: u32, needed_from: u64) -> io::Result<()> {
        let record = self.staging.seal(&self.id, self.sequence, needed_from);
        self.file.write_all_at(&mut [IoSlice::new(record)], u64::from(place) * BLOCK as u64)?;
        self.sequence += 1;
        Ok(())
    }
}

/// Bytes that a journal holds and their file lacks: a crash kept them from it, and the next start puts them back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The binary log, as `<timeline>/<file>`.
    pub file: String,
    /// How many bytes it will grow by.
    pub bytes: u64,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiting { file, bytes } = self;
        write!(
            f,
            "the journal holds {bytes} more bytes of {file}, which the next start of binlogd puts into it"
        )
    }
}

/// What the journal in a source's folder holds and the files lack, without a lock and without repairing anything. `None`
/// as well when there is no journal that can be read: [`Journal::open`] says why.
///
/// # Errors
/// When it is there and cannot be read.
pub fn waiting(storage: &dyn Storage, folder: &Path) -> io::Result<Option<Waiting>> {
    let bytes = match storage.read(&folder.join(JOURNAL_FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some((id, _)) = record::read_first_block(&bytes) else { return Ok(None) };
    let (records, _) = record::needed(&bytes, &id);
    let Some(last) = records.last().filter(|record| !record.data.is_empty()) else { return Ok(None) };
    let file = format!("{}/{}", last.timeline, last.file);
    let held = match storage.look(&folder.join(&file)) {
        Ok(file) => file.len,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let bytes = (last.offset + last.data.len() as u64).saturating_sub(held);
    Ok((bytes > 0).then_some(Waiting { file, bytes }))
}

/// Puts what stands in the journal's place aside, after somebody has cut or replaced the journal of a running process.
/// Everything that it was to keep must be on stable storage in the binary log. `now` names the copy. `None` when nothing stands there.
///
/// # Errors
/// As the operating system says.
pub fn put_aside(storage: &dyn Storage, folder: &Path, now: Timestamp) -> io::Result<Option<PathBuf>> {
    let aside = folder.join(format!("{JOURNAL_FILE}.cut-{}", in_name(now)));
    match storage.rename(&folder.join(JOURNAL_FILE), &aside) {
        Ok(()) => storage.sync_dir(folder).map(|()| Some(aside)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn blocks(len: usize) -> u32 {
    len.div_ceil(BLOCK) as u32
}

/// A whole new journal under a temporary name, so that one under its own name is always whole.
fn fill(storage: &dyn Storage, path: &Path, id: &JournalId) -> io::Result<()> {
    let file = storage.create(path)?;
    file.write_all_at(&mut [IoSlice::new(&record::first_block(id, JOURNAL_LEN))], 0)?;
    // Blocks that are only reserved would cost the file system a commit at their first write.
    let zeros = vec![0; 1 << 20];
    let mut at = BLOCK as u64;
    while at < JOURNAL_LEN {
        let len = (JOURNAL_LEN - at).min(zeros.len() as u64);
        file.write_all_at(&mut [IoSlice::new(&zeros[..len as usize])], at)?;
        at += len;
    }
    file.sync_data()
}

/// Keeps what has no place in the files before the journal is used again: it may be acknowledged, and its source dead.
fn keep_aside(storage: &dyn Storage, path: &Path, bytes: &[u8], now: Timestamp) -> io::Result<PathBuf> {
    let aside = path.with_file_name(format!("{JOURNAL_FILE}.kept-{}", in_name(now)));
    let copy = storage.create(&aside)?;
    let kept = copy.write_all_at(&mut [IoSlice::new(bytes)], 0).and_then(|()| copy.sync_data());
    if let Err(error) = kept {
        // On a full disk each attempt would leave a part, and take what is left of the space.
        let _ = storage.remove_file(&aside);
        return Err(error);
    }
    storage.sync_dir(path.parent().unwrap_or(Path::new(".")))?;
    Ok(aside)
}

fn read_whole(storage: &dyn Storage, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match storage.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; usize::try_from(file.size()?).map_err(io::Error::other)?];
    let read = file.read_full_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests;
