//! A reader beside the receiver: whatever is published, it takes at once.
//!
//! It reads from the page cache, as every reader does. What it holds is compared with what is found after a crash: nothing
//! of it may be missing there, and it ends between two transactions wherever it could have ended.

use crate::disk::Disk;
use log::beginning;
use log::published::{Live, Published};
use log::storage::Storage;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Folder name of a timeline, and a file in it.
pub type FileOf = (String, String);

/// What the reader holds of a file.
#[derive(Debug, Default)]
pub struct Taken {
    /// From the file's beginning.
    pub bytes: Vec<u8>,
    /// Where the reader could have been when everything stopped: each end that was published while the file was the live one.
    pub ends: BTreeSet<usize>,
}

/// The reader.
#[derive(Debug, Default)]
pub struct Reader {
    published: Arc<Published>,
    live: Option<Arc<Live>>,
    taken: BTreeMap<FileOf, Taken>,
    /// Something could be read, and then nothing.
    was_sent_away: bool,
}

impl Reader {
    /// From now on it reads from this process.
    pub fn attach(&mut self, published: Arc<Published>) {
        (self.published, self.live, self.was_sent_away) = (published, None, false);
    }

    /// Takes what is published. The value is the end of it, when that is news.
    pub fn look(&mut self, disk: &Disk) -> Option<(String, u64)> {
        let before = self.live.take();
        let Some(live) = self.published.live() else {
            self.was_sent_away |= before.is_some();
            return None;
        };
        if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, &live))
            && before.generation == live.generation
        {
            self.take(disk, &before, None); // It is sealed: all of it may be read.
        }
        let end = live.end();
        // Who found a file that does not say what came before it would be told that what he needs was purged.
        let file = disk.onlooker().open_read(&live.timeline.join(&*live.file)).expect("a published file");
        assert!(beginning::is_whole(&*file, end).expect("it can be read"), "{live:?} is no beginning");
        self.live = Some(live.clone());
        let is_news = self.take(disk, &live, Some(end as usize));
        is_news.then(|| (live.file.to_string(), end))
    }

    fn take(&mut self, disk: &Disk, live: &Live, end: Option<usize>) -> bool {
        let path = live.timeline.join(&*live.file);
        let shown = disk.onlooker().read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let readable = end.unwrap_or(shown.len());
        assert!(
            readable <= shown.len(),
            "{} may be read up to {readable} and has {} bytes",
            path.display(),
            shown.len()
        );
        let taken = self.taken.entry(file_of(live)).or_default();
        let both = taken.bytes.len().min(readable);
        assert!(
            taken.bytes[..both] == shown[..both],
            "a reader of {} gets other bytes than one before it",
            path.display()
        );
        if readable > both {
            taken.bytes.extend_from_slice(&shown[both..readable]);
        }
        end.is_some_and(|end| taken.ends.insert(end))
    }

    /// Everything that the reader holds.
    pub fn taken(&self) -> impl Iterator<Item = (&FileOf, &Taken)> {
        self.taken.iter()
    }

    /// Whether there was a moment, since something could be read of this process, in which nothing could.
    pub fn was_sent_away(&self) -> bool {
        self.was_sent_away
    }

    /// What it holds may be gone: the operator has accepted that.
    pub fn forget(&mut self) {
        self.taken.clear();
    }
}

fn file_of(live: &Live) -> FileOf {
    let folder = live.timeline.file_name().map(PathBuf::from).unwrap_or_default();
    (folder.display().to_string(), live.file.to_string())
}
