//! Reading archived files as if they lay on this disk: bytes at an offset, up to the end of what the archive has.

use crate::commit::Segment;
use crate::history::ArchivedFile;
use crate::segment::{OpenError, Opener};
use crate::store::{Fault, Store, StoreError};
use log::storage::{ReadAt, ReadFile};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a segment cannot be had.
#[derive(Debug)]
pub enum ReadError {
    /// The store did not give it.
    Store(StoreError),
    /// What it gave is not what was uploaded, or cannot be decrypted.
    Open(OpenError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Store(error) => error.fmt(f),
            ReadError::Open(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> io::Error {
        let kind = match &error {
            ReadError::Store(StoreError { fault: Fault::Missing, .. }) => io::ErrorKind::NotFound,
            ReadError::Store(StoreError { fault: Fault::Denied, .. }) => io::ErrorKind::PermissionDenied,
            ReadError::Store(_) => io::ErrorKind::Other,
            ReadError::Open(_) => io::ErrorKind::InvalidData,
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
    /// The plain bytes of a segment.
    ///
    /// # Errors
    /// When the store does not give them, or gives others.
    pub fn segment(&self, segment: &Segment) -> Result<Vec<u8>, ReadError> {
        let stored = self.store.get(&segment.object).map_err(ReadError::Store)?;
        self.opener.open(segment, &stored).map_err(ReadError::Open)
    }

    /// A file as of now; what is added to it later is not seen.
    pub fn file(&self, file: Arc<ArchivedFile>) -> RemoteFile {
        RemoteFile { reader: self.clone(), file, last: Mutex::new(None) }
    }
}

/// An archived file. It keeps the segment that was read last, so that a walk costs one request a segment.
#[derive(Debug)]
pub struct RemoteFile {
    reader: Reader,
    file: Arc<ArchivedFile>,
    last: Mutex<Option<(u64, Arc<Vec<u8>>)>>,
}

impl RemoteFile {
    fn plain(&self, segment: &Segment) -> io::Result<Arc<Vec<u8>>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, plain)) = last.as_ref().filter(|(from, _)| *from == segment.from) {
            return Ok(plain.clone());
        }
        *last = None; // Two at a time would double the memory.
        let plain = Arc::new(self.reader.segment(segment)?);
        *last = Some((segment.from, plain.clone()));
        Ok(plain)
    }
}

impl ReadAt for RemoteFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(segment) = self.file.segment_at(offset) else { return Ok(0) };
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
