//! A disk in memory that never fails and forgets nothing: for tests of what reads a copy, thousands of times a second.

use crate::storage::lock::{HeldLock, Lock};
use crate::storage::{BackgroundSync, Entry, Found, Kind, ReadAt, ReadFile, Storage, StorageFile};
use crate::writer::syncer::Syncer;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Bytes = Arc<Mutex<Vec<u8>>>;

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files and folders by their paths. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryStorage {
    /// A folder has no bytes.
    nodes: Arc<Mutex<BTreeMap<PathBuf, Option<Bytes>>>>,
}

impl MemoryStorage {
    /// Adds bytes to the end of a file, which is made if there is none; its folders too.
    pub fn append(&self, path: &Path, bytes: &[u8]) {
        let mut nodes = held(&self.nodes);
        for folder in path.ancestors().skip(1) {
            nodes.entry(folder.to_owned()).or_insert(None);
        }
        let node = nodes.entry(path.to_owned()).or_insert_with(|| Some(Bytes::default()));
        if let Some(file) = node {
            held(file).extend_from_slice(bytes);
        }
    }

    fn file(&self, path: &Path) -> io::Result<Box<MemoryFile>> {
        match held(&self.nodes).get(path) {
            Some(Some(bytes)) => Ok(Box::new(MemoryFile(bytes.clone()))),
            Some(None) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn make(&self, path: &Path, node: Option<Bytes>) -> io::Result<()> {
        let mut nodes = held(&self.nodes);
        if nodes.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        nodes.insert(path.to_owned(), node);
        Ok(())
    }
}

impl Storage for MemoryStorage {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.make(path, Some(Bytes::default()))?;
        Ok(self.file(path)?)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(self.file(path)?)
    }

    fn open_synced(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(self.file(path)?)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.make(path, None)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.file(path)?;
        held(&self.nodes).remove(path);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.file(from)?;
        let mut nodes = held(&self.nodes);
        nodes.remove(from);
        nodes.insert(to.to_owned(), Some(file.0));
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let nodes = held(&self.nodes);
        if !matches!(nodes.get(folder), Some(None)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = nodes.iter().filter(|(path, _)| path.parent() == Some(folder));
        let entry = |(path, node): (&PathBuf, &Option<Bytes>)| {
            Some(Entry { name: path.file_name()?.to_owned(), kind: kind(node) })
        };
        Ok(inside.filter_map(entry).collect())
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        let nodes = held(&self.nodes);
        let node = nodes.get(path).ok_or(io::ErrorKind::NotFound)?;
        let len = node.as_ref().map_or(0, |bytes| held(bytes).len() as u64);
        Ok(Found { kind: kind(node), len, modified: None })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(held(&self.file(path)?.0).clone())
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        Ok(self.file(path)?)
    }

    fn lock(&self, _: &Path) -> io::Result<Lock> {
        Ok(Lock::Taken(Box::new(NoLock)))
    }

    fn beside(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }

    fn background_sync(&self) -> Box<dyn BackgroundSync> {
        Box::new(Syncer::default())
    }
}

fn kind(node: &Option<Bytes>) -> Kind {
    if node.is_some() { Kind::File } else { Kind::Folder }
}

#[derive(Debug)]
struct NoLock;

impl HeldLock for NoLock {}

#[derive(Debug)]
struct MemoryFile(Bytes);

impl ReadAt for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = held(&self.0);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let len = buffer.len().min(bytes.len() - from);
        buffer[..len].copy_from_slice(&bytes[from..from + len]);
        Ok(len)
    }
}

impl ReadFile for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(held(&self.0).len() as u64)
    }
}

impl StorageFile for MemoryFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let mut bytes = held(&self.0);
        let mut at = offset as usize;
        for part in parts.iter() {
            let end = at + part.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[at..end].copy_from_slice(part);
            at = end;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        held(&self.0).truncate(len as usize);
        Ok(())
    }

    fn forget_cached_from(&self, _: u64) {}
}
