//! What this machine must still keep for the archive: what is not uploaded, and what was uploaded and not yet seen in the store.
//!
//! Looking costs requests, so only files are looked for that somebody wants gone, the oldest first. Who purges says which
//! ([`Readers::are_wanted_gone`]), the archiving thread says what the archive has of them, another thread looks
//! ([`crate::archiving::look`]). What was seen once counts for this run of the process.

use archive::writer::Finished;
use binlog::purge::needs::{Need, NeedFrom};
use binlog::purge::order::{LogFile, list};
use binlog::storage::Storage;
use serve::retention::{InSlot, Readers};
use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the archive has is believed for so long after the store was asked for the archive's last commit. More than the pause between
/// two such looks ([`Kept::asks`]).
const ASKED_MAX: Duration = Duration::from_secs(60);

/// So many files are handed over at a time.
const HANDED_OVER_MAX: usize = 32;

/// A file of the copy: folder name of its timeline, and its name.
pub(crate) type FileKey = (String, String);

/// See [the module](self).
pub(crate) struct Kept {
    /// The source's folder.
    folder: PathBuf,
    storage: Arc<dyn Storage>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first file of which the archive does not have everything; `None` while that is not known.
    first: Option<FileKey>,
    /// When the store was asked for the last commit of the archive, and had it.
    asked: Option<Instant>,
    /// Files of which everything was seen in the store.
    seen: BTreeSet<FileKey>,
    /// Files that are wanted gone and were not seen, the oldest first.
    wanted: Vec<FileKey>,
    /// What the archive has of the next of them.
    next: VecDeque<(FileKey, Finished)>,
    /// Names of timelines in the archive, by their folders' names here, as far as files of them were looked for.
    timelines: BTreeSet<(String, String)>,
    /// Why the oldest wanted file was not seen.
    trouble: Option<(FileKey, String)>,
    /// Files are being looked for, or will be in a moment.
    is_busy: bool,
}

impl State {
    fn is_believed(&self) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() < ASKED_MAX)
    }
}

impl Kept {
    /// For the source in `folder`; everything is kept.
    pub(crate) fn new(folder: PathBuf, storage: Arc<dyn Storage>) -> Kept {
        Kept { folder, storage, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody knows any more what the archive lacks.
    pub(crate) fn knows_nothing(&self) {
        let mut state = self.state();
        state.first = None;
        state.is_busy = false;
    }

    /// Whether something is wanted gone, so that the archive's last commit is to be looked for in the store from time to time.
    pub(crate) fn asks(&self) -> bool {
        let state = self.state();
        !state.wanted.is_empty() || !state.seen.is_empty()
    }

    /// The first file of which the archive does not have everything is known, as it was when the store was `asked` for the archive's
    /// last commit; and `finished` tells what the archive has of one that is finished here.
    pub(crate) fn knows(
        &self,
        first: Option<FileKey>,
        asked: Instant,
        finished: impl Fn(&FileKey) -> Option<Finished>,
    ) {
        let mut state = self.state();
        state.first = first;
        state.asked = Some(asked);
        if !state.next.is_empty() || !state.is_believed() {
            return;
        }
        let known: Vec<_> = state
            .wanted
            .iter()
            .filter(|file| !state.seen.contains(*file))
            .map_while(|file| Some((file.clone(), finished(file)?)))
            .take(HANDED_OVER_MAX)
            .collect();
        for ((folder, _), finished) in &known {
            let name = (folder.clone(), finished.timeline.clone());
            if state.timelines.iter().any(|(of, before)| of == folder && *before != finished.timeline) {
                // What was seen was of another one.
                state.seen.clear();
                state.timelines.clear();
            }
            state.timelines.insert(name);
        }
        state.is_busy = !known.is_empty();
        state.next.extend(known);
    }

    /// The next file that is to be looked for; it stays the next until it was [`seen`](Self::was_seen) or
    /// [given back](Self::not_seen).
    pub(crate) fn next(&self) -> Option<(FileKey, Finished)> {
        self.state().next.front().cloned()
    }

    /// Everything of the file was seen in the store, or it has expired in the archive.
    pub(crate) fn was_seen(&self, file: &FileKey) {
        let mut state = self.state();
        state.next.pop_front();
        state.wanted.retain(|wanted| wanted != file);
        state.seen.insert(file.clone());
        state.is_busy = !state.wanted.is_empty();
        state.trouble = None;
    }

    /// The file was not seen. What the archive has of it is asked for again, for it may have let go meanwhile.
    pub(crate) fn not_seen(&self, file: &FileKey, why: String) {
        let mut state = self.state();
        state.next.clear();
        state.is_busy = false;
        state.trouble = Some((file.clone(), why));
    }

    /// Whether nothing is wanted gone that was not seen.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.state().wanted.is_empty()
    }
}

impl Readers for Kept {
    fn needs(&self, _source: &str) -> Vec<Need> {
        let everything = |who: String| vec![Need { who, from: NeedFrom::Everything }];
        let place = |(timeline, file): FileKey| NeedFrom::Place { timeline, file, before: 0 };
        let lacks = "the archive does not have it yet".to_owned();
        let files = match list(&*self.storage, &self.folder) {
            Ok(files) => files,
            Err(error) => return everything(format!("{}: {error}", self.folder.display())),
        };
        let mut state = self.state();
        let Some(first) = state.first.clone() else { return everything(lacks) };
        let unseen =
            || "it is archived, and was not looked for in the store yet; that is done now".to_owned();
        if !state.is_believed() {
            return everything(unseen());
        }
        let files: Vec<FileKey> = files.iter().map(key).collect();
        state.seen.retain(|seen| files.contains(seen));
        let mut needs = vec![Need { who: lacks, from: place(first.clone()) }];
        // Behind `first` the archive lacks something anyway.
        let before = files.iter().take_while(|file| **file != first);
        if let Some(file) = before.into_iter().find(|file| !state.seen.contains(*file)) {
            let trouble = state.trouble.as_ref().filter(|(of, _)| of == file);
            let who = trouble.map_or_else(unseen, |(_, why)| why.clone());
            needs.push(Need { who, from: place(file.clone()) });
        }
        needs
    }

    fn in_slots(&self, _source: &str) -> Vec<InSlot> {
        Vec::new()
    }

    fn are_wanted_gone(&self, _source: &str, files: &[&LogFile]) -> bool {
        let mut state = self.state();
        let wanted: Vec<FileKey> =
            files.iter().map(|file| key(file)).filter(|file| !state.seen.contains(file)).collect();
        if wanted != state.wanted {
            state.is_busy = state.first.is_some() && !wanted.is_empty();
            state.next.clear();
            state.wanted = wanted;
        }
        state.is_busy
    }
}

fn key(file: &LogFile) -> FileKey {
    (file.timeline(), file.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};

    /// The files 1 to 4, of which the archive lacks the last.
    fn copy() -> (tempfile::TempDir, Kept, Vec<FileKey>) {
        let dir = tempfile::tempdir().unwrap();
        let folder = first_timeline(SERVER_UUID).create(&PosixStorage, dir.path(), 1).unwrap();
        for number in 1..=4_u64 {
            let file = FileBuilder::new().previous_gtids("").transaction(number, 50);
            std::fs::write(folder.join(format!("b.{number:06}")), file.finish()).unwrap();
        }
        let kept = Kept::new(dir.path().to_owned(), Arc::new(PosixStorage));
        let files = list(&PosixStorage, dir.path()).unwrap().iter().map(key).collect();
        (dir, kept, files)
    }

    fn finished(timeline: &str) -> Option<Finished> {
        Some(Finished { timeline: timeline.to_owned(), file: None })
    }

    /// From which file on something is needed, and why.
    fn needed(kept: &Kept) -> Vec<(Option<String>, String)> {
        let needs = kept.needs("a").into_iter().map(|need| match need.from {
            NeedFrom::Place { file, .. } => (Some(file), need.who),
            _ => (None, need.who),
        });
        needs.collect()
    }

    fn want(kept: &Kept, dir: &std::path::Path, count: usize) -> bool {
        let files = list(&PosixStorage, dir).unwrap();
        kept.are_wanted_gone("a", &files.iter().take(count).collect::<Vec<_>>())
    }

    #[test]
    fn a_file_is_kept_until_it_was_seen_in_the_store() {
        let (dir, kept, files) = copy();
        let nothing = "the archive does not have it yet";
        assert_eq!(needed(&kept), [(None, nothing.to_owned())]);
        assert!(!want(&kept, dir.path(), 2), "nobody knows what the archive has");
        kept.knows(Some(files[3].clone()), Instant::now(), |_| finished("0001-a"));
        let lacking = (Some("b.000004".to_owned()), nothing.to_owned());
        let needs = needed(&kept);
        assert_eq!((&needs[0], needs[1].0.as_deref()), (&lacking, Some("b.000001")));
        assert!(want(&kept, dir.path(), 2));
        assert_eq!(kept.next().unwrap().0, files[0]);
        kept.was_seen(&files[0]);
        assert_eq!(needed(&kept)[1].0.as_deref(), Some("b.000002"));
        kept.not_seen(&files[1], "an object is missing".into());
        assert_eq!(needed(&kept)[1], (Some("b.000002".into()), "an object is missing".into()));
        assert!(kept.next().is_none(), "it is asked for again");
        kept.knows(Some(files[3].clone()), Instant::now(), |_| finished("0001-a"));
        kept.was_seen(&files[1]);
        assert!(kept.is_at_rest(), "nobody wants the third gone");
        assert_eq!(needed(&kept)[1].0.as_deref(), Some("b.000003"));
        kept.knows_nothing();
        assert_eq!(needed(&kept), [(None, nothing.to_owned())]);
    }

    #[test]
    fn nothing_goes_by_what_the_store_was_not_asked_for_of_late() {
        let (dir, kept, files) = copy();
        want(&kept, dir.path(), 2);
        kept.knows(Some(files[3].clone()), Instant::now(), |_| finished("0001-a"));
        kept.was_seen(&files[0]);
        kept.was_seen(&files[1]);
        assert!(kept.asks(), "what was seen was not purged yet");
        assert_eq!(needed(&kept)[1].0.as_deref(), Some("b.000003"));
        kept.knows(Some(files[3].clone()), Instant::now() - ASKED_MAX, |_| finished("0001-a"));
        assert_eq!(needed(&kept)[0].0, None, "a bucket may be put back meanwhile");
    }

    #[test]
    fn what_was_seen_of_another_timeline_counts_for_nothing() {
        let (dir, kept, files) = copy();
        kept.knows(Some(files[3].clone()), Instant::now(), |_| None);
        want(&kept, dir.path(), 3);
        kept.knows(Some(files[3].clone()), Instant::now(), |file| {
            finished("0001-a").filter(|_| *file == files[0])
        });
        kept.was_seen(&files[0]);
        assert_eq!(needed(&kept)[1].0.as_deref(), Some("b.000002"));
        kept.knows(Some(files[3].clone()), Instant::now(), |_| finished("0002-a"));
        assert_eq!(needed(&kept)[1].0.as_deref(), Some("b.000001"));
    }
}
