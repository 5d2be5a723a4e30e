//! Without a journal: the binary log itself is synced before each acknowledgement.

use super::dsync::DsyncFile;
use log::posix::PosixStorage;
use log::posix_instead::PosixInstead;
use log::storage::{ReadAt, ReadFile, Storage, StorageFile};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes by which the reserved space grows.
pub const STEP: u64 = 16 << 20;

/// How a binary log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFile {
    /// It grows at each write.
    Growing,
    /// Its space is reserved and its length extended ahead, and cut back at its end. Whoever reads the live file, stock
    /// mysqlbinlog for one, finds zeros behind the events, so binlogd could not do this as it stands.
    Extended,
    /// Its space is reserved ahead, its length is that of its events.
    Reserved,
    /// It grows at each write, and the write returns when its bytes are durable.
    Dsync,
}

/// The file system without a journal: [`Storage::open_synced`] is refused, and binlogd then syncs the binary log for each
/// acknowledgement. Files other than binary logs are plain.
#[derive(Debug, Clone, Copy)]
pub struct AppendStorage(pub LogFile);

impl AppendStorage {
    fn wrap(self, file: File) -> io::Result<Box<dyn StorageFile>> {
        Ok(match self.0 {
            LogFile::Growing => Box::new(file),
            LogFile::Extended => Box::new(AheadFile::new(file, FallocateFlags::empty())?),
            LogFile::Reserved => Box::new(AheadFile::new(file, FallocateFlags::KEEP_SIZE)?),
            LogFile::Dsync => Box::new(DsyncFile::new(file)),
        })
    }
}

impl PosixInstead for AppendStorage {
    fn create_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        if !is_binary_log(path) {
            return PosixStorage.create(path);
        }
        self.wrap(OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?)
    }

    fn open_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        if !is_binary_log(path) {
            return PosixStorage.open(path);
        }
        self.wrap(OpenOptions::new().read(true).write(true).open(path)?)
    }

    fn open_synced_file(&self, _: &Path) -> io::Result<Box<dyn StorageFile>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this way of storing has no journal"))
    }
}

/// A name that ends in a dot and a number.
fn is_binary_log(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.as_encoded_bytes().iter().all(|byte| byte.is_ascii_digit()))
}

/// A file whose space is reserved in steps, ahead of what is written. What is behind its last written byte is cut off
/// when it is dropped.
#[derive(Debug)]
struct AheadFile {
    file: File,
    flags: FallocateFlags,
    /// End of what was written.
    end: AtomicU64,
    /// End of the reserved space.
    reserved: AtomicU64,
}

impl AheadFile {
    fn new(file: File, flags: FallocateFlags) -> io::Result<AheadFile> {
        let len = file.metadata()?.len();
        Ok(AheadFile { file, flags, end: AtomicU64::new(len), reserved: AtomicU64::new(len) })
    }
}

impl ReadAt for AheadFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.end.load(Relaxed).saturating_sub(offset);
        let len = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        FileExt::read_at(&self.file, &mut buffer[..len], offset)
    }
}

impl ReadFile for AheadFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.end.load(Relaxed))
    }
}

impl StorageFile for AheadFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let end = offset + parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let reserved = self.reserved.load(Relaxed);
        if end > reserved {
            let ahead = end.next_multiple_of(STEP);
            fallocate(&self.file, self.flags, reserved, ahead - reserved)?;
            self.reserved.store(ahead, Relaxed);
        }
        StorageFile::write_all_at(&self.file, parts, offset)?;
        self.end.fetch_max(end, Relaxed);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.end.store(len, Relaxed);
        self.reserved.store(len, Relaxed);
        Ok(())
    }

    fn forget_cached_from(&self, from: u64) {
        self.file.forget_cached_from(from);
    }
}

impl Drop for AheadFile {
    fn drop(&mut self) {
        let end = self.end.load(Relaxed);
        if self.reserved.load(Relaxed) > end {
            // A benchmark's files are thrown away; a reader of one that was not cut would see it.
            let _ = self.file.set_len(end).and_then(|()| self.file.sync_data());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// What a file holds and how it looks while it is open, and after it was dropped.
    fn written(log: LogFile) -> (u64, std::fs::Metadata, std::fs::Metadata) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        let storage = AppendStorage(log);
        let file = storage.create(&path).unwrap();
        file.write_all_at(&mut [IoSlice::new(b"four"), IoSlice::new(b" and"), IoSlice::new(b"")], 0).unwrap();
        file.sync_data().unwrap();
        file.write_all_at(&mut [IoSlice::new(b" more, cut")], 8).unwrap();
        file.truncate(13).unwrap();
        file.write_all_at(&mut [IoSlice::new(b".")], 13).unwrap();
        file.sync_data().unwrap();
        let mut held = [0; 64];
        let read = file.read_at(&mut held, 0).unwrap();
        assert_eq!(&held[..read], b"four and more.", "{log:?}");
        assert_eq!(file.read_at(&mut held, 14).unwrap(), 0);
        let (size, live) = (file.size().unwrap(), std::fs::metadata(&path).unwrap());
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"four and more.", "{log:?}");
        let sealed = std::fs::metadata(&path).unwrap();
        assert_eq!(storage.open(&path).unwrap().size().unwrap(), 14);
        (size, live, sealed)
    }

    #[test]
    fn every_file_holds_what_was_written_and_nothing_else_when_it_is_closed() {
        for log in [LogFile::Growing, LogFile::Dsync] {
            let (size, live, _) = written(log);
            assert_eq!((size, live.len()), (14, 14), "{log:?}");
        }
    }

    #[test]
    fn space_is_reserved_ahead_and_given_back() {
        let (size, live, sealed) = written(LogFile::Extended);
        assert_eq!((size, live.len(), sealed.len()), (14, STEP, 14));
        assert!(live.blocks() * 512 >= STEP && sealed.blocks() * 512 < STEP);
        let (size, live, sealed) = written(LogFile::Reserved);
        assert_eq!((size, live.len(), sealed.len()), (14, 14, 14));
        assert!(live.blocks() * 512 >= STEP && sealed.blocks() * 512 < STEP);
    }

    #[test]
    fn only_binary_logs_are_special_and_there_is_no_journal() {
        let dir = tempfile::tempdir().unwrap();
        let storage = AppendStorage(LogFile::Extended);
        for name in ["binlog.index.tmp", "timeline.toml", "journal.tmp"] {
            let path = dir.path().join(name);
            storage.create(&path).unwrap().write_all_at(&mut [IoSlice::new(b"x")], 0).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 1);
            assert_eq!(storage.open_synced(&path).unwrap_err().kind(), io::ErrorKind::Unsupported);
        }
    }
}
