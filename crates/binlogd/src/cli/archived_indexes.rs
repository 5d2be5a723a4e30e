//! Search indexes of archived files, fetched side by side ahead of who searches file by file.
//!
//! A store answers in tens of milliseconds, and an archive has thousands of files: asked one after another, the indexes would take
//! longer than a walk of what is searched for. What is fetched is bounded, and where an index cannot be had its file is walked.

use archive::history::ArchivedFile;
use archive::reader::Reader;
use archive::search_index::{Listed, get, list};
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
