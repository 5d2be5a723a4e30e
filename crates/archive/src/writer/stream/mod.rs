//! A backup's stream on its way into the store, and the commit that names it.
//!
//! The stream is read once, and never stands on a disk: while some pieces of it are uploaded the next one is read. What is in the
//! store counts when the commit is made, which is after the last piece, and after the store has listed all of them.

use super::file::list_text;
use super::upload::{Owner, UploadError, Uploader, create_data};
use crate::chain::backup::BackupRecord;
use crate::chain::commit::{Change, Segment, WholeBackup, Writer};
use crate::chain::history::ArchivedBackup;
use crate::chain::{Appended, Chain, ChainError};
use crate::keys::Identities;
use crate::names;
use crate::reader::Reader;
use crate::segment::Opener;
use crate::segment::segments;
use crate::store::{Fault, StoreError};
use crate::upkeep::presence::{any, look};
use codec::rows::hex;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Plain bytes of a piece.
const PIECE_BYTES: usize = 4 << 20;

/// So many threads read, make and upload a piece each: this bounds the memory, at two pieces a thread.
const THREADS: usize = 6;

/// So often an upload, or the commit, is tried again while the store does not work. A server that waits to send more gives up by
/// itself after its `net_write_timeout`, 60 s where nothing else is set.
const TRIES_MAX: u32 = 6;

/// The pause before the first of these tries; each further one is twice as long.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// So often others may commit before the backup is: they do so each `interval`.
const BEHIND_MAX: u32 = 50;

/// Waits between tries: the clock is the caller's.
pub type Pause<'a> = &'a (dyn Fn(Duration) + Sync);

/// Why a stream is not in the store.
#[derive(Debug)]
pub enum StreamError {
    /// It could not be read.
    Read(io::Error),
    /// It has no byte.
    Empty,
    /// Its pieces could not be uploaded.
    Upload(UploadError),
    /// The chain cannot be read or added to.
    Chain(ChainError),
    /// The store does not have what it has taken; in words.
    Lacks(String),
    /// Others commit faster.
    Behind,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Read(error) => write!(f, "the stream cannot be read: {error}"),
            StreamError::Empty => f.write_str("the stream has no byte"),
            StreamError::Upload(error) => error.fmt(f),
            StreamError::Chain(error) => error.fmt(f),
            StreamError::Lacks(text) => write!(f, "the store does not have all that it has taken: {text}"),
            StreamError::Behind => f.write_str("others commit faster than this can"),
        }
    }
}

impl std::error::Error for StreamError {}

impl From<ChainError> for StreamError {
    fn from(error: ChainError) -> StreamError {
        StreamError::Chain(error)
    }
}

impl From<StoreError> for StreamError {
    fn from(error: StoreError) -> StreamError {
        StreamError::Chain(error.into())
    }
}

/// A stream whose pieces are in the store, and that no commit names yet.
#[derive(Debug, Clone)]
pub struct Uploaded {
    /// Its pieces.
    pub segments: Vec<Segment>,
    /// Hexadecimal SHA-256 of the whole.
    pub sha256: String,
}

impl Uploaded {
    /// Plain bytes.
    pub fn bytes(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.to)
    }

    /// Bytes of the objects.
    pub fn stored(&self) -> u64 {
        self.segments.iter().map(|segment| segment.stored).sum()
    }
}

/// A stream that several threads read, a piece each at a time.
struct Incoming<'a> {
    stream: &'a mut (dyn Read + Send),
    /// Bytes that were read.
    at: u64,
    /// Of all of them.
    sum: Sha256,
    /// Nothing more is read: it has ended, or something failed.
    ended: bool,
}

impl Incoming<'_> {
    /// Reads the next piece into `plain`, and says where it ends; `None` behind the last.
    fn next(&mut self, plain: &mut [u8]) -> io::Result<Option<usize>> {
        let mut len = 0;
        while len < plain.len() && !self.ended {
            match self.stream.read(&mut plain[len..]) {
                Ok(0) => self.ended = true,
                Ok(read) => {
                    // While its writer fills the pipe again, and not after all of the piece.
                    self.sum.update(&plain[len..len + read]);
                    len += read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        self.at += len as u64;
        Ok((len > 0).then_some(len))
    }
}

/// Uploads a stream to its end, as the backup `id` of a source. `progress` is told plain bytes as they are in the store.
///
/// Each of several threads reads a piece, and makes and uploads its object, while the next thread reads: who writes the stream waits
/// only when all of them are busy.
///
/// # Errors
/// When it cannot be read, or the store does not take it. What is in the store then is named by nothing.
pub fn upload(
    uploader: &Uploader,
    source: &str,
    id: &str,
    stream: &mut (dyn Read + Send),
    pause: Pause<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Uploaded, StreamError> {
    let owner = Owner { source, timeline: names::BACKUPS, file: id };
    let incoming = Mutex::new(Incoming { stream, at: 0, sum: Sha256::new(), ended: false });
    let incoming = || incoming.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        let (mut plain, mut made) = (vec![0; PIECE_BYTES], Vec::new());
        loop {
            let (from, len) = {
                let mut incoming = incoming();
                let from = incoming.at;
                match incoming.next(&mut plain).map_err(StreamError::Read)? {
                    Some(len) => (from, len),
                    None => return Ok(made),
                }
            };
            let uploaded = again(pause, is_lost, || uploader.piece(owner, from, &plain[..len]));
            made.push(uploaded.map_err(|error| {
                incoming().ended = true;
                StreamError::Upload(error)
            })?);
            progress(len as u64);
        }
    };
    let _kept = uploader.permits.begin_upload();
    let made: Result<Vec<Vec<Segment>>, StreamError> = thread::scope(|scope| {
        // Without one of them the others do the work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let threads: Vec<_> = (1..THREADS).filter_map(spawn).collect();
        let failed = || StreamError::Read(io::Error::other("a thread that uploads has failed"));
        let others = || threads.into_iter().map(|thread| thread.join().map_err(|_| failed())?);
        [work()].into_iter().chain(others()).collect()
    });
    let mut segments = made?.concat();
    segments.sort_by_key(|segment| segment.from);
    match segments.is_empty() {
        true => Err(StreamError::Empty),
        false => Ok(Uploaded { segments, sha256: hex(&incoming().sum.finalize_reset()) }),
    }
}

fn is_lost(error: &UploadError) -> bool {
    matches!(error, UploadError::Store(StoreError { fault: Fault::Unavailable, .. }))
}

/// Does something until it is done, or fails for another reason than that the store does not work now.
fn again<T, E>(
    pause: Pause<'_>,
    is_unavailable: impl Fn(&E) -> bool,
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut rest = RETRY_MIN;
    for _ in 1..TRIES_MAX {
        match work() {
            Err(error) if is_unavailable(&error) => pause(rest),
            done => return done,
        }
        rest *= 2;
    }
    work()
}

/// Names an uploaded stream in a commit: from then on the archive has the backup. Before that each of its objects was listed by the
/// store with its length, and one of them was read back.
///
/// # Errors
/// When the store lacks something, or the commit could not be made. Then it may be there all the same, where the store did not answer.
pub fn commit(
    uploader: &Uploader,
    chain: &mut Chain,
    writer: &Writer,
    (record, uploaded): (BackupRecord, &Uploaded),
    now: Timestamp,
    pause: Pause<'_>,
) -> Result<Arc<ArchivedBackup>, StreamError> {
    let (store, source, id) = (&*uploader.store, chain.source().to_owned(), record.id.clone());
    let whole = again(pause, is_unavailable, || put_lists(uploader, &source, &record, uploaded, writer))?;
    let backup = ArchivedBackup::of(&whole, now).map_err(StreamError::Lacks)?;
    let reader = Reader { store: uploader.store.clone(), opener: Arc::new(Opener::new(Identities::new())) };
    let found = again(pause, is_unavailable, || {
        look(&reader, &source, names::BACKUPS, &backup.file, any()).map_err(StreamError::from)
    })?;
    if let Some(finding) = found.first() {
        return Err(StreamError::Lacks(finding.to_string()));
    }
    let change = Change::Backup(whole);
    for _ in 0..BEHIND_MAX {
        let appended = again(pause, is_unavailable, || {
            chain.refresh(store)?;
            // An answer that was lost.
            if chain.history().backups.contains_key(&id) {
                return Ok(Appended::Done);
            }
            chain.check_whole(store)?;
            Ok(chain.append(store, writer, now, vec![change.clone()])?)
        })?;
        if appended == Appended::Done {
            let done = chain.history().backups.get(&id).cloned();
            return done.ok_or(StreamError::Behind);
        }
    }
    Err(StreamError::Behind)
}

fn is_unavailable(error: &StreamError) -> bool {
    matches!(error, StreamError::Chain(ChainError::Store(StoreError { fault: Fault::Unavailable, .. })))
}

/// The objects that say which objects are the backup's.
fn put_lists(
    uploader: &Uploader,
    source: &str,
    record: &BackupRecord,
    uploaded: &Uploaded,
    writer: &Writer,
) -> Result<WholeBackup, StreamError> {
    let owner = Owner { source, timeline: names::BACKUPS, file: &record.id };
    let what = format!("backup {} by {}", record.id, record.tool);
    let by = format!("writer {}", writer.id);
    let text = list_text(&what, &uploaded.segments, &uploaded.sha256, &by);
    let list = names::list(source, names::BACKUPS, &record.id, &names::sha256(text.as_bytes()));
    let (index, bytes) =
        segments::pack(owner, &uploaded.segments).map_err(|error| StreamError::Lacks(error.to_string()))?;
    create_data(&*uploader.store, &list, text.into())?;
    create_data(&*uploader.store, &index.object, bytes)?;
    Ok(WholeBackup { record: record.clone(), sha256: uploaded.sha256.clone(), list, index })
}

#[cfg(test)]
mod tests;
