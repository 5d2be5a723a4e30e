//! A file of the operating system that knows its path, so that each error says what was being done, and to what.

use super::failed::during;
use super::storage::{ReadAt, ReadFile, StorageFile};
use std::fs::File;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

/// An open file and its path.
#[derive(Debug)]
pub(super) struct NamedFile {
    file: File,
    path: PathBuf,
}

impl NamedFile {
    pub(super) fn new(file: File, path: &Path) -> NamedFile {
        NamedFile { file, path: path.to_owned() }
    }
}

impl ReadAt for NamedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        ReadAt::read_at(&self.file, buffer, offset).map_err(during("read", &self.path))
    }
}

impl ReadFile for NamedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size().map_err(during("look at", &self.path))
    }
}

impl StorageFile for NamedFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.file.write_all_at(parts, offset).map_err(during("write to", &self.path))
    }

    fn sync_data(&self) -> io::Result<()> {
        StorageFile::sync_data(&self.file).map_err(during("sync", &self.path))
    }

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.file.stands_at(path).map_err(during("look at", path))
    }

    fn is_whole_at(&self, path: &Path, len: u64) -> io::Result<bool> {
        self.file.is_whole_at(path, len).map_err(during("look at", path))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len).map_err(during("cut", &self.path))
    }

    fn forget_cached(&self) {
        self.file.forget_cached();
    }

    fn forget_cached_from(&self, from: u64) {
        self.file.forget_cached_from(from);
    }
}
