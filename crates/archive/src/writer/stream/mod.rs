//! A backup's stream on its way into the store, and the commit that names it.
//!
//! The stream is read once, and never stands on a disk: while some pieces of it are uploaded the next ones are read. What is in the
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
use crate::writer::local::Cut;
use binlog::storage::{ReadAt, ReadFile};
use codec::rows::hex;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// Plain bytes of a piece.
const PIECE_BYTES: usize = 4 << 20;

/// So many pieces are uploaded side by side while as many are read: this bounds the memory.
const PIECES_AT_ONCE: usize = 4;

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

/// Bytes of a stream from `from` on.
#[derive(Debug)]
struct Batch {
    from: u64,
    bytes: Vec<u8>,
}

impl ReadAt for Batch {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let at = usize::try_from(offset.saturating_sub(self.from)).unwrap_or(usize::MAX);
        let rest = self.bytes.get(at..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

impl ReadFile for Batch {
    fn size(&self) -> io::Result<u64> {
        Ok(self.end())
    }
}

impl Batch {
    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    /// Its pieces. No event of a binary log is looked for in them.
    fn cuts(&self) -> Vec<Cut> {
        let end = self.end();
        let starts = (self.from..end).step_by(PIECE_BYTES);
        starts.chain([end]).map(|at| Cut { at, event: end.min(at + PIECE_BYTES as u64) }).collect()
    }
}

/// Uploads a stream to its end, as the backup `id` of a source. `progress` is told plain bytes as they are in the store.
///
/// # Errors
/// When it cannot be read, or the store does not take it. What is in the store then is named by nothing.
pub fn upload(
    uploader: &Uploader,
    source: &str,
    id: &str,
    stream: &mut dyn Read,
    pause: Pause<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Uploaded, StreamError> {
    let owner = Owner { source, timeline: names::BACKUPS, file: id };
    let (to_send, batches) = sync_channel::<Batch>(0);
    thread::scope(|scope| {
        let send = move || {
            let mut segments = Vec::new();
            for batch in batches {
                segments.extend(one_batch(uploader, owner, &batch, pause)?);
                progress(batch.bytes.len() as u64);
            }
            Ok(segments)
        };
        let sender = thread::Builder::new().spawn_scoped(scope, send).map_err(StreamError::Read)?;
        let (mut sum, mut from) = (Sha256::new(), 0);
        let read = loop {
            let mut bytes = Vec::with_capacity(PIECES_AT_ONCE * PIECE_BYTES);
            if let Err(error) = stream.take((PIECES_AT_ONCE * PIECE_BYTES) as u64).read_to_end(&mut bytes) {
                break Err(StreamError::Read(error));
            }
            if bytes.is_empty() {
                break Ok(());
            }
            sum.update(&bytes);
            let batch = Batch { from, bytes };
            from = batch.end();
            // Who sends has ended early, and says why below.
            if to_send.send(batch).is_err() {
                break Ok(());
            }
        };
        drop(to_send);
        let failed = || StreamError::Read(io::Error::other("the thread that uploads has failed"));
        let segments: Vec<Segment> = sender.join().map_err(|_| failed())?.map_err(StreamError::Upload)?;
        read?;
        if segments.is_empty() {
            Err(StreamError::Empty)
        } else {
            Ok(Uploaded { segments, sha256: hex(&sum.finalize()) })
        }
    })
}

fn one_batch(
    uploader: &Uploader,
    owner: Owner<'_>,
    batch: &Batch,
    pause: Pause<'_>,
) -> Result<Vec<Segment>, UploadError> {
    let cuts = batch.cuts();
    let is_unavailable = |error: &UploadError| {
        matches!(error, UploadError::Store(StoreError { fault: Fault::Unavailable, .. }))
    };
    again(pause, is_unavailable, || uploader.upload(owner, batch, &cuts))
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
