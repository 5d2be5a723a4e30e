//! `semi_sync.toml` in a source's folder: what the source had counted when it was looked at last.
//!
//! A source counts the commits of which it tells clients without an acknowledgement (`no_tx`). So a daemon that knows where
//! the one before it left off can tell at its first look how many were made while there was none.
//!
//! The thread that looks at the source writes it, and nobody waits for it. It is written without a sync: what a power failure
//! leaves of it is an older count, and some commits are told twice, or nothing that can be read, and the log says so.

use binlog::format::read_toml;
use binlog::storage::Storage;
use status::{Counted, SourceMonitor};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name of the file in a source's folder.
const REMEMBERED_FILE: &str = "semi_sync.toml";

/// The time of the last look is written that often while the count stays as it is.
const WRITE_EVERY: Duration = Duration::from_secs(60);

/// One sector, so that it is replaced at one blow.
const LEN: usize = 512;

const HEAD: &str = "# What the source had counted at binlogd's last look at it; see docs/status.md.\n";

/// The file of one source.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// Not that of the receiving thread, whose operations are counted as its own.
    storage: Arc<dyn Storage>,
    path: PathBuf,
    was_read: bool,
    /// What it holds, and since when.
    written: Option<(Counted, Instant)>,
    /// That it cannot be written was said.
    has_failed: bool,
}

impl Remembered {
    pub(crate) fn new(storage: Arc<dyn Storage>, source_folder: &Path) -> Remembered {
        let path = source_folder.join(REMEMBERED_FILE);
        Remembered { storage, path, was_read: false, written: None, has_failed: false }
    }

    /// Tells the monitor what was counted by the daemon before, once. Call it while a session lasts: until then the folder
    /// may be another process's.
    pub(crate) fn recall(&mut self, monitor: &SourceMonitor) {
        if std::mem::replace(&mut self.was_read, true) {
            return;
        }
        match read(&*self.storage, &self.path) {
            Ok(Some(counted)) => monitor.semi_sync_was_counted(counted),
            Ok(None) => {}
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(
                    source = monitor.name(),
                    "cannot read {path}: {error}; how many commits were made without an acknowledgement while binlogd was away \
                     is not known"
                );
            }
        }
    }

    /// Writes what was counted, if that is news or (`at_end`) nobody looks any more.
    pub(crate) fn keep(&mut self, monitor: &SourceMonitor, now: Instant, at_end: bool) {
        if !self.was_read {
            return; // No session, and no look.
        }
        let Some(counted) = monitor.semi_sync_counted() else { return };
        let is_kept = self.written.as_ref().is_some_and(|(written, since)| {
            let is_recent = !at_end && now.saturating_duration_since(*since) < WRITE_EVERY;
            *written == counted || is_recent && written.is_as_far_as(&counted)
        });
        if is_kept {
            return;
        }
        match write(&*self.storage, &self.path, &counted) {
            Ok(()) => self.has_failed = false,
            Err(error) if !std::mem::replace(&mut self.has_failed, true) => {
                let path = self.path.display();
                tracing::warn!(
                    source = monitor.name(),
                    "cannot write {path}: {error}; after a restart of binlogd it is not known how many commits were made \
                     without an acknowledgement meanwhile"
                );
            }
            Err(_) => {}
        }
        // If it failed, it is tried again with the next news.
        self.written = Some((counted, now));
    }
}

/// `None` where nobody has looked yet.
fn read(storage: &dyn Storage, path: &Path) -> io::Result<Option<Counted>> {
    match storage.read_to_string(path) {
        Ok(text) => read_toml(&text).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(storage: &dyn Storage, path: &Path, counted: &Counted) -> io::Result<()> {
    let mut text = HEAD.to_owned() + &toml::to_string(counted).map_err(io::Error::other)?;
    // Always of one length, so that nothing of the content before is left.
    let Some(rest) = LEN.checked_sub(text.len()) else {
        return Err(io::Error::other("the name of the server is too long"));
    };
    text.extend(std::iter::repeat_n('\n', rest));
    let file = match storage.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => storage.create(path)?,
        opened => opened?,
    };
    file.write_all_at(&mut [IoSlice::new(text.as_bytes())], 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;
    use status::SemiSyncLook;

    fn counted(no_tx: u64, second: i64) -> Counted {
        let at = jiff::Timestamp::from_second(second).unwrap();
        Counted { server: "db1:3306 \"7\"".to_owned(), no_tx, yes_tx: 7, at }
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(REMEMBERED_FILE);
        assert_eq!(read(&PosixStorage, &path).unwrap(), None);
        for no_tx in [u64::from(u32::MAX), 7] {
            write(&PosixStorage, &path, &counted(no_tx, 60)).unwrap();
            assert_eq!(read(&PosixStorage, &path).unwrap(), Some(counted(no_tx, 60)));
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 512);
        }
        std::fs::write(&path, [0; 512]).unwrap();
        assert!(read(&PosixStorage, &path).is_err(), "what a power failure may leave");
    }

    #[test]
    fn it_is_written_when_something_was_counted_and_now_and_then() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(REMEMBERED_FILE);
        let monitor = SourceMonitor::new("db1");
        monitor.set_state(status::SourceState::Receiving);
        let mut remembered = Remembered::new(Arc::new(PosixStorage), dir.path());
        remembered.recall(&monitor);
        let now = Instant::now();
        let mut look = |no_tx, second: i64, at_end| {
            let at = jiff::Timestamp::from_second(second).unwrap();
            let look = SemiSyncLook { at, no_tx, ..SemiSyncLook::default() };
            monitor.semi_sync_looked("db1", Some(look), None);
            remembered.keep(&monitor, now + Duration::from_secs(second.unsigned_abs()), at_end);
            read(&PosixStorage, &path).unwrap().map(|counted| (counted.no_tx, counted.at.as_second()))
        };
        assert_eq!(look(5, 1, false), Some((5, 1)));
        assert_eq!(look(5, 2, false), Some((5, 1)), "nothing new");
        assert_eq!(look(6, 3, false), Some((6, 3)));
        assert_eq!(look(6, 62, false), Some((6, 3)));
        assert_eq!(look(6, 63, false), Some((6, 63)), "a minute later");
        assert_eq!(look(6, 64, true), Some((6, 64)), "at the end");
        assert_eq!(look(1, 65, false), Some((1, 65)), "another count");
    }
}
