//! Search indexes of archived files, fetched side by side ahead of who searches file by file.
//!
//! A store answers in tens of milliseconds, and an archive has thousands of files: asked one after another, the indexes would take
//! longer than a walk of what is searched for. What is fetched is bounded, and where an index cannot be had its file is walked.

use archive::chain::history::ArchivedFile;
use archive::reader::Reader;
use archive::segment::search_index::{Listed, get, list};
use points::index::{SearchIndex, VERSION};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// So many are under way, or here and not asked for yet, at a time. Each takes a few MiB at most.
const AHEAD_MAX: usize = 16;

/// Those of one source.
pub(super) struct ArchivedIndexes {
    reader: Reader,
    source: String,
    /// The files in the order in which they are searched, with the names of their timelines.
    files: Vec<(String, Arc<ArchivedFile>)>,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    /// What the store has, timeline by timeline, as far as it was asked.
    listed: BTreeMap<String, Arc<Listed>>,
    /// What was asked for, by the places of the files.
    slots: BTreeMap<usize, Slot>,
}

enum Slot {
    UnderWay,
    /// `None` where there is none to believe.
    Here(Option<Vec<u8>>),
}

impl ArchivedIndexes {
    /// For files in the order in which they will be asked for; nothing is asked of the store yet.
    pub(super) fn new(
        reader: Reader,
        source: String,
        files: Vec<(String, Arc<ArchivedFile>)>,
    ) -> ArchivedIndexes {
        ArchivedIndexes { reader, source, files, state: Mutex::default(), arrived: Condvar::new() }
    }

    /// The index of the file at `place`. Those of the next files that are wanted are on their way when it is given. `None` where the
    /// archive has none to believe.
    pub(super) fn take(
        self: &Arc<Self>,
        place: usize,
        is_wanted: &dyn Fn(&ArchivedFile) -> bool,
    ) -> Option<SearchIndex> {
        let is_meant = |place: &usize| self.files.get(*place).is_some_and(|(_, file)| is_wanted(file));
        for place in (place..self.files.len()).filter(is_meant).take(AHEAD_MAX) {
            self.begin(place);
        }
        let mut state = self.state();
        let bytes = loop {
            match state.slots.remove(&place) {
                Some(Slot::Here(bytes)) => break bytes,
                Some(slot) => {
                    state.slots.insert(place, slot);
                    state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                // The system has no thread left, or the file has no index.
                None => {
                    drop(state);
                    break self.fetched(place);
                }
            }
        };
        let index = SearchIndex::parse(&bytes?).ok()?;
        let (_, file) = self.files.get(place)?;
        (index.head.identity.len == file.end()).then_some(index)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each entry is whole between any two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the index of a file, if there is one and that was not done.
    fn begin(self: &Arc<Self>, place: usize) {
        if self.state().slots.contains_key(&place) || !self.is_listed(place) {
            return;
        }
        self.state().slots.insert(place, Slot::UnderWay);
        let this = self.clone();
        let started = thread::Builder::new().spawn(move || {
            // An error of ours must leave nobody waiting.
            let fetched = catch_unwind(AssertUnwindSafe(|| this.fetched(place))).unwrap_or_default();
            this.state().slots.insert(place, Slot::Here(fetched));
            this.arrived.notify_all();
        });
        if started.is_err() {
            self.state().slots.remove(&place);
        }
    }

    fn is_listed(&self, place: usize) -> bool {
        self.files.get(place).is_some_and(|(timeline, file)| !self.listed(timeline).of(&file.name).is_empty())
    }

    /// What the store has of a timeline; nothing where it does not say. Asked for once.
    fn listed(&self, timeline: &str) -> Arc<Listed> {
        if let Some(listed) = self.state().listed.get(timeline) {
            return listed.clone();
        }
        let listed = list(&*self.reader.store, &self.source, timeline, VERSION).unwrap_or_default();
        self.state().listed.entry(timeline.to_owned()).or_insert(Arc::new(listed)).clone()
    }

    /// The first of a file's indexes that is what was put there.
    fn fetched(&self, place: usize) -> Option<Vec<u8>> {
        let (timeline, file) = self.files.get(place)?;
        let seal = file.sealed.as_ref()?;
        let listed = self.listed(timeline);
        listed.of(&file.name).iter().find_map(|found| get(&self.reader, found, &seal.sha256).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive::keys::Identities;
    use archive::names::sha256;
    use archive::segment::Opener;
    use archive::segment::search_index::put;
    use archive::store::remote::Folder;
    use archive::writer::upload::{Owner, Permits, Uploader};
    use binlog::storage::Storage;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::FileBuilder;
    use points::search::index_of;
    use serde_json::json;

    const TIMELINE: &str = "0001-a";
    const FILES: usize = 40;
    /// It has no index.
    const LACKS: usize = 3;
    /// Its index is that of another file.
    const WRONG: usize = 5;

    fn file(place: usize, len: u64) -> ArchivedFile {
        let name = format!("b.{:06}", place + 1);
        let object = format!("shop/{TIMELINE}/{name}/x");
        let index =
            json!({"object": object, "bytes": 1, "sha256": "", "end": len, "segments": 1, "stored": 1});
        let sealed = json!({"sha256": sha256(name.as_bytes()), "list": object, "index": index});
        let file = json!({"name": name, "head": "", "gtids": "", "last_time": 0, "sealed": sealed});
        serde_json::from_value(file).unwrap()
    }

    fn archive(dir: &std::path::Path) -> Arc<ArchivedIndexes> {
        let log = FileBuilder::new().previous_gtids("").transaction(1, 50).rotate("b.000002").finish();
        std::fs::write(dir.join("b.000001"), &log).unwrap();
        let index = index_of(&PosixStorage, dir, "b.000001", true, false).unwrap().to_bytes();
        PosixStorage.create_dir(&dir.join("store")).unwrap();
        let store = Arc::new(Folder::open(&dir.join("store")).unwrap());
        let uploader = Uploader {
            store: store.clone(),
            permits: Arc::new(Permits::new(1)),
            level: 1,
            recipients: None,
            stop: Arc::default(),
        };
        let mut files = Vec::new();
        for place in 0..FILES {
            let file = file(place, log.len() as u64);
            let owner = Owner { source: "shop", timeline: TIMELINE, file: &file.name };
            let sha256 = if place == WRONG { sha256(b"another") } else { sha256(file.name.as_bytes()) };
            if place != LACKS {
                put(&uploader, owner, &sha256, VERSION, &index).unwrap();
            }
            files.push((TIMELINE.to_owned(), Arc::new(file)));
        }
        let reader = Reader { store, opener: Arc::new(Opener::new(Identities::new())) };
        Arc::new(ArchivedIndexes::new(reader, "shop".to_owned(), files))
    }

    /// Waits until all that was asked for is here, and gives the places.
    fn here(indexes: &ArchivedIndexes) -> Vec<usize> {
        let is_under_way =
            |state: &mut State| state.slots.values().any(|slot| matches!(slot, Slot::UnderWay));
        let state = indexes.arrived.wait_while(indexes.state(), is_under_way).unwrap();
        state.slots.keys().copied().collect()
    }

    #[test]
    fn indexes_are_fetched_ahead_in_order_and_no_more_than_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let indexes = archive(dir.path());
        let all = |_: &ArchivedFile| true;
        assert!(indexes.take(0, &all).is_some());
        let ahead = (1..AHEAD_MAX).filter(|place| *place != LACKS).collect::<Vec<_>>();
        assert_eq!(here(&indexes), ahead);
        // Nothing more can be had from here on.
        std::fs::rename(dir.path().join("store"), dir.path().join("away")).unwrap();
        for place in 1..AHEAD_MAX {
            assert_eq!(indexes.take(place, &all).is_some(), place != LACKS && place != WRONG, "{place}");
        }
        assert!(indexes.take(AHEAD_MAX, &all).is_none());
        std::fs::rename(dir.path().join("away"), dir.path().join("store")).unwrap();
        assert!(indexes.take(FILES - 1, &all).is_some() && indexes.take(FILES, &all).is_none());
    }

    #[test]
    fn what_is_not_wanted_is_not_fetched() {
        let dir = tempfile::tempdir().unwrap();
        let indexes = archive(dir.path());
        let wanted = |file: &ArchivedFile| file.name.ends_with('0');
        assert!(indexes.take(9, &wanted).is_some());
        assert_eq!(here(&indexes), [19, 29, 39]);
        // The same is given again where it is asked for again.
        assert!([9, 19, 19, 39].iter().all(|place| indexes.take(*place, &wanted).is_some()));
    }
}
