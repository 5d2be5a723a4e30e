//! An open file of the storage double, and its background sync.

use crate::disk::image::{Inode, Node, Operation};
use crate::disk::{Disk, Kind, Verdict};
use binlog::storage::{BackgroundSync, ReadAt, ReadFile, StorageFile, Synced};
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How many looks at a background sync find it still running, at most.
const LOOKS_MAX: u64 = 4;

/// One open file.
#[derive(Debug)]
pub struct DiskFile {
    pub disk: Disk,
    pub file: Inode,
    /// Each write is durable when it returns.
    pub is_synced: bool,
}

impl ReadAt for DiskFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.while_on()?;
        let state = self.disk.state();
        let left = state.image.shown(self.file).get(offset as usize..).unwrap_or_default();
        let len = left.len().min(buffer.len());
        buffer[..len].copy_from_slice(&left[..len]);
        Ok(len)
    }
}

impl ReadFile for DiskFile {
    fn size(&self) -> io::Result<u64> {
        self.disk.while_on()?;
        Ok(self.disk.state().image.shown(self.file).len() as u64)
    }
}

impl StorageFile for DiskFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let bytes = parts.iter().map(|part| &part[..]).collect::<Vec<_>>().concat();
        let (file, synced) = (self.file, self.is_synced);
        let kind = if synced { Kind::SyncedWrite } else { Kind::Write };
        let mut state = self.disk.state();
        match state.judge(kind)? {
            Verdict::Do => {
                state.done(Operation::Write { file, offset, bytes, synced });
                Ok(())
            }
            Verdict::Fail(error) => {
                // A full disk takes part of the bytes. Of a write that goes past the cache, what is there is there now.
                let half = bytes[..bytes.len() / 2].to_vec();
                if !synced || state.random.one_in(2) {
                    state.done(Operation::Write { file, offset, bytes: half, synced });
                }
                Err(io::Error::from_raw_os_error(error))
            }
            Verdict::Crash => {
                state.image.begin(&Operation::Write { file, offset, bytes, synced });
                Err(io::Error::other("the machine stops"))
            }
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let newest = state.image.newest_change();
        let through = state.sync_through.take().unwrap_or(newest);
        state.sync(self.file, through)
    }

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        match self.disk.find(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            found => Ok(found? == Node::File(self.file)),
        }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let operation = Operation::SetLen { file: self.file, len };
        state.admit(Kind::Other, &operation)?;
        state.done(operation);
        Ok(())
    }

    fn forget_cached_from(&self, from: u64) {
        let mut state = self.disk.state();
        if state.is_off || !state.image.has_orphans(self.file) {
            return;
        }
        let seed = state.random.next();
        state.done(Operation::Forget { file: self.file, from, seed });
    }
}

/// A background sync in the same thread: it begins when it is asked for, and ends after some looks. What is written
/// meanwhile is not covered by it.
#[derive(Debug)]
pub struct LaterSync {
    disk: Disk,
    running: Option<Running>,
}

impl LaterSync {
    pub fn of(disk: Disk) -> LaterSync {
        LaterSync { disk, running: None }
    }
}

#[derive(Debug)]
struct Running {
    file: Arc<dyn StorageFile>,
    through: u64,
    /// Number of the last change that it covers.
    newest_change: u64,
    looks_left: u64,
}

impl BackgroundSync for LaterSync {
    fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    fn begin(&mut self, file: Arc<dyn StorageFile>, through: u64) -> io::Result<()> {
        assert!(self.running.is_none(), "one background sync at a time");
        let mut state = self.disk.state();
        let (newest_change, looks_left) = (state.image.newest_change(), state.random.below(LOOKS_MAX));
        drop(state);
        self.running = Some(Running { file, through, newest_change, looks_left });
        Ok(())
    }

    fn take_ended(&mut self) -> Option<Synced> {
        let running = self.running.as_mut()?;
        if running.looks_left > 0 {
            running.looks_left -= 1;
            return None;
        }
        self.wait()
    }

    fn wait(&mut self) -> Option<Synced> {
        let Running { file, through, newest_change, .. } = self.running.take()?;
        self.disk.state().sync_through = Some(newest_change);
        Some(Synced { through, took: Duration::ZERO, result: file.sync_data() })
    }
}
