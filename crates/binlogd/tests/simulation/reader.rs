//! A reader beside the receiver: whatever is published, it takes at once.
//!
//! It reads from the page cache, as every reader does. What it holds is compared with what is found after a crash: nothing
//! of it may be missing there, and it ends between two transactions wherever it could have ended.
//!
//! With `ack_after_replicas` it is the receiver further down, too: now and then it confirms what it has, and nothing else may be
//! acknowledged.

use crate::disk::Disk;
use binlog::storage::Storage;
use binlog::timeline::{beginning, index};
use binlog::writer::published::{Live, Published};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
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
    /// So many bytes from the file's beginning it has confirmed.
    confirmed: usize,
}

/// The name under which it confirms.
const RECEIVER: &str = "downstream";

/// The reader.
#[derive(Debug, Default)]
pub struct Reader {
    published: Arc<Published>,
    live: Option<Arc<Live>>,
    taken: BTreeMap<FileOf, Taken>,
    /// Something could be read, and then nothing.
    was_sent_away: bool,
    /// It confirms what it has, at each look whose number can be divided by this.
    pub confirms: Option<u64>,
    looks: u64,
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
        if !before.is_some_and(|before| Arc::ptr_eq(&before, &live)) {
            self.take_sealed(disk, &live);
        }
        let end = live.end();
        // Who found a file that does not say what came before it would be told that what he needs was purged.
        let file = disk.onlooker().open_read(&live.timeline.join(&*live.file)).expect("a published file");
        assert!(beginning::is_whole(&*file, end).expect("it can be read"), "{live:?} is no beginning");
        assert!(!is_left_behind(disk, &live), "{live:?} is published, and files behind it are finished");
        self.live = Some(live.clone());
        let is_news = self.take(disk, &live.timeline, &live.file, Some(end as usize));
        self.looks += 1;
        if self.confirms.is_some_and(|each| self.looks.is_multiple_of(each)) {
            self.confirm(&live, end);
        }
        is_news.then(|| (live.file.to_string(), end))
    }

    /// Takes what stands before the live file, from where the reader was on: sealed files may be read whole.
    fn take_sealed(&mut self, disk: &Disk, live: &Live) {
        let names = index::read(&disk.onlooker(), &live.timeline).expect("it can be read");
        let of_timeline = file_of(&live.timeline, "").0;
        let last = self.taken.keys().rev().find(|(folder, _)| *folder == of_timeline);
        let last = last.map(|(_, name)| name.clone());
        let sealed = names.iter().skip_while(|name| last.as_ref().is_some_and(|last| *name != last));
        for name in sealed.take_while(|name| ***name != *live.file) {
            self.take(disk, &live.timeline, name, None);
        }
    }

    fn take(&mut self, disk: &Disk, timeline: &Path, file: &str, end: Option<usize>) -> bool {
        let path = timeline.join(file);
        let shown = disk.onlooker().read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let readable = end.unwrap_or(shown.len());
        assert!(
            readable <= shown.len(),
            "{} may be read up to {readable} and has {} bytes",
            path.display(),
            shown.len()
        );
        let taken = self.taken.entry(file_of(timeline, file)).or_default();
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

    /// Confirms what was published up to `end`, and so all before it.
    fn confirm(&mut self, live: &Live, end: u64) {
        let (folder, file) = file_of(&live.timeline, &live.file);
        for ((of, name), taken) in &mut self.taken {
            if *of == folder && *name < file {
                taken.confirmed = taken.bytes.len();
            } else if *of == folder && *name == file {
                taken.confirmed = taken.confirmed.max(end as usize);
            }
        }
        let at = codec::Position::new(live.file.clone(), end);
        self.published.confirmations().confirm(live.generation, RECEIVER, &at);
    }

    /// Whether it has confirmed these bytes, with which a source's file begins.
    pub fn has_confirmed(&self, file: &str, bytes: &[u8]) -> bool {
        self.taken
            .iter()
            .any(|((_, name), taken)| name == file && taken.bytes[..taken.confirmed].starts_with(bytes))
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

fn file_of(timeline: &Path, file: &str) -> FileOf {
    let folder = timeline.file_name().map(PathBuf::from).unwrap_or_default();
    (folder.display().to_string(), file.to_owned())
}

/// Whether a file behind the published one is finished: whoever follows would wait, however much arrives.
fn is_left_behind(disk: &Disk, live: &Live) -> bool {
    let names = index::read(&disk.onlooker(), &live.timeline).expect("it can be read");
    let place = names.iter().position(|name| **name == *live.file);
    place.is_some_and(|place| place + 2 < names.len())
}
