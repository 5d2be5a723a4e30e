//! Puts the search indexes of files that are archived into the archive, so that a search there needs not fetch the files: a thread a
//! source that nobody waits for.
//!
//! The archiving thread says which files are finished here and there, [`crate::search_indexing`] makes their indexes on this disk.
//! What the store has is listed once, and again each day; what it lacks goes up one after another, the newest first, with a rest as
//! long as each took. An index is derived: one that cannot be put there is tried again, and its file is walked meanwhile.

use crate::keeper::{Chore, Retry};
use archive::segment::search_index::{INDEX_BYTES_MAX, Listed, is_there, list, put};
use archive::store::StoreError;
use archive::writer::WholeFile;
use archive::writer::upload::{Owner, UploadError, Uploader};
use binlog::search_index;
use binlog::storage::Storage;
use points::index::VERSION;
use points::search::sound_index;
use source::stop::StopSignal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two looks at which files are finished.
const PAUSE: Duration = Duration::from_secs(1);

/// Files whose index is not made yet are looked at again after so long.
const AGAIN: Duration = Duration::from_secs(5);

/// First pause after a failure; each further one doubles it.
const RETRY_MIN: Duration = Duration::from_secs(2);

/// The longest pause between two tries.
const RETRY_MAX: Duration = Duration::from_secs(600);

/// The store is listed again after so long: somebody may have deleted an index that was damaged.
const LIST_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// The finished files of which the archive has everything, from the thread that archives to the one that puts their indexes there.
#[derive(Debug, Default)]
pub(crate) struct WholeFiles(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By what the archiver was known to have changed.
    as_of: Option<(usize, Vec<(PathBuf, String)>)>,
    files: Arc<Vec<WholeFile>>,
    /// How often they have changed.
    changes: u64,
}

impl WholeFiles {
    /// The files are those that `files` gives, if `known` files, or the `names` of timelines, are others than before.
    pub(crate) fn are(
        &self,
        known: usize,
        names: &[(PathBuf, String)],
        files: impl FnOnce() -> Vec<WholeFile>,
    ) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.as_of.as_ref().is_some_and(|(before, of)| *before == known && of == names) {
            return;
        }
        state.as_of = Some((known, names.to_vec()));
        state.files = Arc::new(files());
        state.changes += 1;
    }

    fn now(&self) -> (u64, Arc<Vec<WholeFile>>) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.changes, state.files.clone())
    }
}

/// What the thread works on.
pub(crate) struct IndexKeeper {
    source: String,
    storage: Arc<dyn Storage>,
    uploader: Uploader,
    whole: Arc<WholeFiles>,
    /// What the store has, by timeline, and when it was listed.
    listed: BTreeMap<String, (Instant, Listed)>,
    /// Files whose index is there, or is none that is archived.
    done: BTreeSet<(String, String)>,
    /// What failed last, so that nothing is said twice.
    told: Option<String>,
    retry: Retry,
    /// Up to which change all files were looked at, and when they are looked at again though nothing changes.
    seen: u64,
    again_from: Option<Instant>,
}

/// Why no more is put there now.
enum Halt {
    /// The thread is asked to end.
    Stopped,
    /// The store, or this machine, does not do it now.
    Failed(String),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Halt {
        Halt::Failed(error.to_string())
    }
}

impl Chore for IndexKeeper {
    const NICE: i32 = 10;

    fn round(&mut self, stop: &StopSignal) -> Duration {
        let (changes, files) = self.whole.now();
        let is_due = self.again_from.is_some_and(|from| Instant::now() >= from);
        if changes == self.seen && !is_due {
            return PAUSE;
        }
        match self.put_all(&files, stop) {
            Ok(waits) => {
                self.seen = changes;
                self.retry.went_well();
                let next = if waits { AGAIN } else { LIST_INTERVAL };
                self.again_from = Some(Instant::now() + next);
                if self.told.take().is_some() {
                    tracing::info!(source = self.source.as_str(), "search indexes are archived again");
                }
                PAUSE
            }
            Err(Halt::Stopped) => PAUSE,
            Err(Halt::Failed(why)) => {
                self.again_from = Some(Instant::now());
                self.failed(why);
                self.retry.failed()
            }
        }
    }
}

impl IndexKeeper {
    /// For a source; nothing is asked of the store yet.
    pub(crate) fn new(
        source: String,
        storage: Arc<dyn Storage>,
        uploader: Uploader,
        whole: Arc<WholeFiles>,
    ) -> IndexKeeper {
        let (listed, done) = (BTreeMap::new(), BTreeSet::new());
        let retry = Retry::new(RETRY_MIN, RETRY_MAX);
        let (told, seen, again_from) = (None, 0, None);
        IndexKeeper { source, storage, uploader, whole, listed, done, told, retry, seen, again_from }
    }

    /// Puts there what is here and not there; true when files wait for their index to be made.
    fn put_all(&mut self, files: &[WholeFile], stop: &StopSignal) -> Result<bool, Halt> {
        self.forget_old();
        let mut waits = false;
        for file in files.iter().rev() {
            if self.is_done(file)? {
                continue;
            }
            let Some(index) = self.made(file) else {
                // Not made yet, or the file is purged.
                waits |= self.storage.exists(&file.folder.join(&file.name)).unwrap_or(true);
                continue;
            };
            let began = Instant::now();
            self.put(file, &index)?;
            if stop.wait(began.elapsed()) {
                return Err(Halt::Stopped);
            }
        }
        Ok(waits)
    }

    /// The index of a file on this disk.
    fn made(&self, file: &WholeFile) -> Option<Vec<u8>> {
        // Where none are made, this is asked of all files each time.
        let path = search_index::path(&file.folder, &file.name);
        if !self.storage.exists(&path).unwrap_or(false) {
            return None;
        }
        sound_index(&*self.storage, &file.folder, &file.name).ok()
    }

    /// What was listed long ago is listed again.
    fn forget_old(&mut self) {
        let is_old = |at: &Instant| at.elapsed() >= LIST_INTERVAL;
        if self.listed.values().any(|(at, _)| is_old(at)) {
            self.listed.clear();
            self.done.clear();
        }
    }

    fn is_done(&mut self, file: &WholeFile) -> Result<bool, Halt> {
        let key = (file.timeline.clone(), file.name.clone());
        if self.done.contains(&key) {
            return Ok(true);
        }
        if !self.listed.contains_key(&file.timeline) {
            let listed = list(&*self.uploader.store, &self.source, &file.timeline, VERSION)?;
            self.listed.insert(file.timeline.clone(), (Instant::now(), listed));
        }
        let is_there =
            self.listed.get(&file.timeline).is_some_and(|(_, listed)| !listed.of(&file.name).is_empty());
        if is_there {
            self.done.insert(key);
        }
        Ok(is_there)
    }

    fn put(&mut self, file: &WholeFile, index: &[u8]) -> Result<(), Halt> {
        let owner = Owner { source: &self.source, timeline: &file.timeline, file: &file.name };
        // Another binlogd of this source may have been faster.
        if index.len() <= INDEX_BYTES_MAX && !is_there(&*self.uploader.store, owner, VERSION)? {
            put(&self.uploader, owner, &file.sha256, VERSION, index).map_err(|error| match error {
                UploadError::Stopped => Halt::Stopped,
                error => Halt::Failed(error.to_string()),
            })?;
        }
        self.done.insert((file.timeline.clone(), file.name.clone()));
        Ok(())
    }

    fn failed(&mut self, why: String) {
        if self.told.as_ref() != Some(&why) {
            tracing::warn!(source = self.source.as_str(), "search indexes are not archived: {why}");
            self.told = Some(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::Keeper;
    use archive::keys::Identities;
    use archive::reader::Reader;
    use archive::segment::Opener;
    use archive::segment::search_index::get;
    use archive::store::Store;
    use archive::store::remote::Folder;
    use archive::writer::upload::Permits;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::FileBuilder;
    use points::search::make_index;

    struct Scene {
        dir: tempfile::TempDir,
        store: Arc<Folder>,
        whole: Arc<WholeFiles>,
    }

    impl Scene {
        /// Two finished files that are archived.
        fn new() -> Scene {
            let dir = tempfile::tempdir().unwrap();
            for name in ["b.000001", "b.000002"] {
                let file = FileBuilder::new().previous_gtids("").transaction(1, 50).rotate("b.000009");
                std::fs::write(dir.path().join(name), file.finish()).unwrap();
            }
            std::fs::create_dir(dir.path().join("store")).unwrap();
            let store = Arc::new(Folder::open(&dir.path().join("store")).unwrap());
            let whole = Arc::new(WholeFiles::default());
            let file = |name: &str| WholeFile {
                folder: dir.path().to_owned(),
                timeline: "0001-a".to_owned(),
                name: name.to_owned(),
                len: 0,
                sha256: sha256(name),
            };
            whole.are(2, &[], || vec![file("b.000001"), file("b.000002")]);
            whole.are(2, &[], || panic!("nothing has changed"));
            Scene { dir, store, whole }
        }

        fn keeper(&self) -> IndexKeeper {
            let uploader = Uploader {
                store: self.store.clone(),
                permits: Arc::new(Permits::new(1)),
                level: 1,
                recipients: None,
                stop: Arc::default(),
            };
            IndexKeeper::new("shop".to_owned(), Arc::new(PosixStorage), uploader, self.whole.clone())
        }

        fn round(&self, keeper: &mut IndexKeeper) -> Result<bool, Halt> {
            keeper.put_all(&self.whole.now().1, &StopSignal::new())
        }

        fn make(&self, name: &str) {
            let file = PosixStorage.open_read(&self.dir.path().join(name)).unwrap();
            make_index(&PosixStorage, self.dir.path(), name, &*file, &mut |_| Ok(())).unwrap().1.unwrap();
        }

        /// The files whose indexes come back from the store as they are here.
        fn archived(&self) -> Vec<String> {
            let opener = Arc::new(Opener::new(Identities::new()));
            let reader = Reader { store: self.store.clone(), opener };
            let listed = list(&*self.store, "shop", "0001-a", VERSION).unwrap();
            let has = |name: &&str| {
                let index = sound_index(&PosixStorage, self.dir.path(), name);
                let found = listed.of(name).first();
                found.is_some_and(|found| get(&reader, found, &sha256(name)).unwrap() == index.unwrap())
            };
            ["b.000001", "b.000002"].into_iter().filter(has).map(ToOwned::to_owned).collect()
        }
    }

    fn sha256(name: &str) -> String {
        archive::names::sha256(name.as_bytes())
    }

    fn went(round: Result<bool, Halt>) -> bool {
        round.unwrap_or_else(|_| panic!("it failed"))
    }

    #[test]
    fn an_index_goes_up_when_it_is_made_and_once() {
        let scene = Scene::new();
        let mut keeper = scene.keeper();
        assert!(went(scene.round(&mut keeper)), "both wait");
        scene.make("b.000002");
        assert!(went(scene.round(&mut keeper)));
        assert_eq!(scene.archived(), ["b.000002"]);
        scene.make("b.000001");
        assert!(!went(scene.round(&mut keeper)));
        assert_eq!(scene.archived(), ["b.000001", "b.000002"]);
        let objects = || scene.store.list("", None).unwrap();
        let before = objects();
        let [there, away] = ["store", "away"].map(|name| scene.dir.path().join(name));
        std::fs::rename(&there, &away).unwrap();
        assert!(!went(scene.round(&mut keeper)), "nothing is asked of a store that is away");
        std::fs::rename(&away, &there).unwrap();
        // The next process, and another machine that knew nothing of it.
        assert!(!went(scene.round(&mut scene.keeper())));
        let mut other = scene.keeper();
        other.listed.insert("0001-a".to_owned(), (Instant::now(), Listed::default()));
        assert!(!went(scene.round(&mut other)));
        assert_eq!(objects(), before);
    }

    #[test]
    fn what_fails_is_tried_again_and_what_is_damaged_or_purged_is_left() {
        let scene = Scene::new();
        let mut keeper = scene.keeper();
        scene.make("b.000002");
        let in_the_way = scene.dir.path().join("store/shop");
        std::fs::write(&in_the_way, "").unwrap();
        assert!(matches!(scene.round(&mut keeper), Err(Halt::Failed(_))));
        std::fs::remove_file(&in_the_way).unwrap();
        let path = search_index::path(scene.dir.path(), "b.000002");
        let sound = std::fs::read(&path).unwrap();
        let mut damaged = sound.clone();
        *damaged.last_mut().unwrap() ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert!(went(scene.round(&mut keeper)));
        assert_eq!(scene.store.list("", None).unwrap(), []);
        std::fs::write(&path, sound).unwrap();
        std::fs::remove_file(scene.dir.path().join("b.000001")).unwrap();
        assert!(!went(scene.round(&mut keeper)), "nobody waits for a file that is purged");
        assert_eq!(scene.archived(), ["b.000002"]);
    }

    #[test]
    fn an_index_that_somebody_has_deleted_goes_up_again_a_day_later() {
        let scene = Scene::new();
        let mut keeper = scene.keeper();
        ["b.000001", "b.000002"].iter().for_each(|name| scene.make(name));
        assert!(!went(scene.round(&mut keeper)));
        for meta in scene.store.list("", None).unwrap() {
            scene.store.delete(&meta.name).unwrap();
        }
        assert!(!went(scene.round(&mut keeper)));
        assert!(scene.archived().is_empty());
        if let Some((at, _)) = keeper.listed.get_mut("0001-a")
            && let Some(before) = at.checked_sub(LIST_INTERVAL)
        {
            *at = before;
            assert!(!went(scene.round(&mut keeper)));
            assert_eq!(scene.archived().len(), 2);
        }
    }

    #[test]
    fn the_thread_puts_what_there_is_and_ends_when_it_is_asked() {
        let scene = Scene::new();
        ["b.000001", "b.000002"].iter().for_each(|name| scene.make(name));
        let thread = Keeper::start("search", Duration::ZERO, scene.keeper()).unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        while scene.archived().len() < 2 {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(thread);
    }
}
