//! Reading archived files as if they lay on this disk: bytes at an offset, up to the end of what the archive has.

use crate::chain::commit::Segment;
use crate::chain::history::ArchivedFile;
use crate::chain::{Chain, ChainError};
use crate::segment::segments::{segment_at, unpack};
use crate::segment::{OpenError, Opener};
use crate::store::{Fault, Store, StoreError};
use binlog::storage::{ReadAt, ReadFile};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why a segment cannot be had.
#[derive(Debug)]
pub enum ReadError {
    /// The store did not give it.
    Store(StoreError),
    /// What it gave is not what was uploaded, or cannot be decrypted.
    Open(OpenError),
    /// The object that has a finished file's segments is not what was committed.
    Index {
        /// Its name.
        object: String,
        /// In words.
        why: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Store(error) => error.fmt(f),
            ReadError::Open(error) => error.fmt(f),
            ReadError::Index { object, why } => write!(
                f,
                "{object}, which says where the pieces of its file are, cannot be used: {why}. Read it again; if that is the same, take it \
                 from another copy of the bucket"
            ),
        }
    }
}

impl std::error::Error for ReadError {}

impl ReadError {
    /// Whether an object is gone, or is not what was uploaded: no key and no other try helps.
    pub fn is_damage(&self) -> bool {
        match self {
            ReadError::Store(error) => error.is_missing(),
            ReadError::Open(error) => !matches!(error, OpenError::NoIdentity { .. }),
            ReadError::Index { .. } => true,
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> io::Error {
        let kind = match &error {
            ReadError::Store(StoreError { fault: Fault::Missing, .. }) => io::ErrorKind::NotFound,
            ReadError::Store(StoreError { fault: Fault::Denied, .. }) => io::ErrorKind::PermissionDenied,
            ReadError::Store(_) => io::ErrorKind::Other,
            ReadError::Open(_) | ReadError::Index { .. } => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error.to_string())
    }
}

/// Gets segments from a store, and believes none of them before it is compared with its commit.
#[derive(Debug, Clone)]
pub struct Reader {
    /// Where they are.
    pub store: Arc<dyn Store>,
    /// What opens them.
    pub opener: Arc<Opener>,
}

impl Reader {
    /// The chain of a source, if those have signed it whom the opener believes.
    ///
    /// # Errors
    /// As [`Chain::open_trusting`].
    pub fn chain(&self, source: &str) -> Result<Chain, ChainError> {
        Chain::open_trusting(&*self.store, source, self.opener.trust())
    }

    /// The plain bytes of a segment.
    ///
    /// # Errors
    /// When the store does not give them, or gives others.
    pub fn segment(&self, segment: &Segment) -> Result<Vec<u8>, ReadError> {
        let stored = self.store.get(&segment.object).map_err(ReadError::Store)?;
        self.opener.open(segment, &stored).map_err(ReadError::Open)
    }

    /// The segments of a file, from 0 to its end, one behind the other. Of a finished file the history does not have them: they are
    /// read from the store, in one request, and held against the commit. Whoever reads on in a file keeps them.
    ///
    /// # Errors
    /// When the store does not give them, or gives others.
    pub fn segments(&self, file: &ArchivedFile) -> Result<Arc<[Segment]>, ReadError> {
        read_segments(&*self.store, file)
    }

    /// A file as of now; what is added to it later is not seen.
    pub fn file(&self, file: Arc<ArchivedFile>) -> RemoteFile {
        RemoteFile { reader: self.clone(), file, state: Mutex::default() }
    }
}

/// As [`Reader::segments`], which needs no key.
///
/// # Errors
/// When the store does not give the object that has them, or gives another one.
pub(crate) fn read_segments(store: &dyn Store, file: &ArchivedFile) -> Result<Arc<[Segment]>, ReadError> {
    let Some(index) = file.index() else { return Ok(file.inline().unwrap_or_default().into()) };
    let stored = store.get(&index.object).map_err(ReadError::Store)?;
    let found = unpack(index, &stored);
    found.map(Arc::from).map_err(|why| ReadError::Index { object: index.object.clone(), why })
}

/// An archived file. It keeps its segments' places and the segment that was read last, so that a walk costs one request a
/// segment, and one before the first.
#[derive(Debug)]
pub struct RemoteFile {
    reader: Reader,
    file: Arc<ArchivedFile>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    segments: Option<Arc<[Segment]>>,
    last: Option<(u64, Arc<Vec<u8>>)>,
}

impl RemoteFile {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each of the two is whole between any two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn segments(&self) -> io::Result<Arc<[Segment]>> {
        let mut state = self.state();
        if let Some(segments) = &state.segments {
            return Ok(segments.clone());
        }
        Ok(state.segments.insert(self.reader.segments(&self.file)?).clone())
    }

    fn plain(&self, segment: &Segment) -> io::Result<Arc<Vec<u8>>> {
        let mut state = self.state();
        if let Some((_, plain)) = state.last.as_ref().filter(|(from, _)| *from == segment.from) {
            return Ok(plain.clone());
        }
        state.last = None; // Two at a time would double the memory.
        let plain = Arc::new(self.reader.segment(segment)?);
        state.last = Some((segment.from, plain.clone()));
        Ok(plain)
    }
}

impl ReadAt for RemoteFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.file.end() {
            return Ok(0);
        }
        let segments = self.segments()?;
        let Some(segment) = segment_at(&segments, offset) else { return Ok(0) };
        let plain = self.plain(segment)?;
        let rest = plain.get((offset - segment.from) as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

impl ReadFile for RemoteFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.end())
    }
}
