//! Archived files in their places among those of the copy, for whoever reads a copy whose disk holds days and whose archive holds years.
//!
//! [`WithPast`] is a storage like the disk itself: what was purged on this machine and stands in the archive is listed, looked at
//! and opened as if it had stayed. Readers are served through it. Whoever writes, recovers or purges uses the disk, and sees
//! nothing of that.
//!
//! ```text
//! WithPast    a name that the disk does not have          mod.rs
//!   → View    is it in the archive, without a hole?       view.rs, record.rs
//!   → PastFile  which segment, and which come next        file.rs
//!   → Cache   on this disk, or from the store             cache.rs
//! ```

mod cache;
mod file;
mod record;
mod view;

pub use cache::{HasRoom, PastCounters};

use crate::chain::history::History;
use crate::reader::Reader;
use binlog::folder::by_number;
use binlog::purge::purge_record;
use binlog::storage::lock::Lock;
use binlog::storage::{BackgroundSync, Entry, Found, Kind, ReadFile, Recorded, Storage, StorageFile};
use binlog::timeline::TIMELINE_FILE;
use cache::Cache;
use file::PastFile;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use view::{Here, View};

/// Name of the cache in a source's folder.
pub(crate) const CACHE_FOLDER: &str = "cache";

/// What the archive has of one source, for those who read its copy. It knows nothing before the first [`Past::publish`].
#[derive(Debug)]
pub struct Past {
    /// The source's folder.
    folder: PathBuf,
    disk: Arc<dyn Storage>,
    reader: Reader,
    cache: Arc<Cache>,
    view: RwLock<Option<Arc<View>>>,
}

impl Past {
    /// Of the source whose copy stands in `folder` of `disk`. The cache there has at most `cache_bytes`, and takes space only while
    /// `has_room` says that there is enough. `at_once` segments are fetched ahead at a time.
    pub fn new(
        folder: PathBuf,
        disk: Arc<dyn Storage>,
        reader: Reader,
        cache_bytes: u64,
        has_room: HasRoom,
        at_once: usize,
    ) -> Past {
        let cache = Cache::new(disk.clone(), folder.join(CACHE_FOLDER), cache_bytes, has_room, at_once);
        Past { folder, disk, reader, cache: Arc::new(cache), view: RwLock::default() }
    }

    /// From now on readers find what this history has. `names` are what the archive calls timelines of the copy, by their folders, as
    /// far as that is known.
    ///
    /// # Errors
    /// When the folder of the copy cannot be read.
    pub fn publish(&self, history: &History, names: &[(PathBuf, String)]) -> io::Result<()> {
        let before = self.view();
        let folders = match by_number(&*self.disk, &self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            folders => folders?,
        };
        let labels = self.reader.opener.labels();
        let view = View::of(&*self.disk, history, names, &folders, &labels, before.as_deref());
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(view));
        Ok(())
    }

    /// Gives the space of the cache back where the disk needs it.
    pub fn tend(&self) {
        self.cache.tend();
    }

    /// What was fetched, and what is kept of it.
    pub fn counters(&self) -> PastCounters {
        self.cache.counters()
    }

    fn view(&self) -> Option<Arc<View>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// See [the module](self).
#[derive(Debug, Clone)]
pub struct WithPast {
    disk: Arc<dyn Storage>,
    past: Arc<Past>,
}

impl WithPast {
    /// What the disk has, and behind it what the archive has.
    pub fn new(disk: Arc<dyn Storage>, past: Arc<Past>) -> WithPast {
        WithPast { disk, past }
    }

    /// What the archive has for a timeline's folder, and which of it was purged here; `None` where nothing was.
    fn purged_here(&self, folder: &Path) -> io::Result<Option<Here>> {
        let Some(view) = self.past.view().filter(|view| view.has(folder)) else { return Ok(None) };
        let entries = self.disk.list(folder)?;
        // Behind the list of names, as `timeline_files` has it.
        let purged = purge_record::read(&*self.disk, folder);
        Ok(view.purged_here(folder, &entries, &purged))
    }

    /// The archived file of that path, whether it is on the disk or not.
    fn archived(&self, path: &Path) -> Option<view::Found> {
        let (folder, name) = (path.parent()?, path.file_name()?.to_str()?);
        self.past.view()?.find(folder, name)
    }

    /// `or_else` for what the disk does not have.
    fn or_archived<T>(
        &self,
        found: io::Result<T>,
        path: &Path,
        or_else: impl FnOnce(view::Found) -> T,
    ) -> io::Result<T> {
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.archived(path).map(or_else).ok_or(error)
            }
            found => found,
        }
    }
}

impl Storage for WithPast {
    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = self.disk.list(folder)?;
        if let Some(here) = self.purged_here(folder)? {
            let is_there = |name: &str| entries.iter().any(|entry| entry.name == *name);
            // One that is about to be removed is still there.
            let names: Vec<_> = here.names().filter(|name| !is_there(name)).map(Into::into).collect();
            entries.extend(names.into_iter().map(|name| Entry { name, kind: Kind::File }));
        }
        Ok(entries)
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        self.or_archived(self.disk.look(path), path, |found| Found {
            kind: Kind::File,
            len: found.file.end(),
            modified: None,
        })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let bytes = self.disk.read(path)?;
        let Some(folder) = path.parent().filter(|_| path.ends_with(TIMELINE_FILE)) else { return Ok(bytes) };
        Ok(match self.purged_here(folder)? {
            Some(here) => record::with_past(&bytes, &here).unwrap_or(bytes),
            None => bytes,
        })
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        self.or_archived(self.disk.open_read(path), path, |mut found| {
            // What is here is not fetched.
            let is_here = |name: &str| self.disk.exists(&path.with_file_name(name)).unwrap_or(true);
            found.next = found.next.filter(|next| !is_here(&next.name));
            Box::new(PastFile::new(self.past.reader.clone(), self.past.cache.clone(), found))
        })
    }

    fn recorded(&self, path: &Path) -> Option<Recorded> {
        let found = self.archived(path)?;
        if self.disk.exists(path).unwrap_or(true) { None } else { found.recorded() }
    }

    fn may_have_more(&self) -> bool {
        let was_purged = |folder: &PathBuf| !purge_record::read(&*self.disk, folder).is_empty();
        let folders = || by_number(&*self.disk, &self.past.folder).unwrap_or_default();
        self.past.view().is_none() && folders().iter().any(was_purged)
    }

    fn beside(&self) -> Arc<dyn Storage> {
        Arc::new(WithPast { disk: self.disk.beside(), past: self.past.clone() })
    }

    // Whoever writes, writes to the disk.

    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.disk.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.disk.open(path)
    }

    fn open_synced(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.disk.open_synced(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        self.disk.lock(path)
    }

    fn background_sync(&self) -> Box<dyn BackgroundSync> {
        self.disk.background_sync()
    }

    fn mark_bytes(&self) -> u64 {
        self.disk.mark_bytes()
    }
}

#[cfg(test)]
mod tests;
