//! An archive that was written in format 1, in which the history kept all segments: it is read, verified, continued, and pruned.
//!
//! `tests/data/format-1` was made by the code before format 2, from the files that [`Scene`] writes: the first file has expired,
//! two are finished, and of the last one the beginning is there. Each was archived in two tails and merged.

use archive::chain::Chain;
use archive::chain::commit::{Commit, FORMAT, Writer};
use archive::chain::history::ArchivedFile;
use archive::fetch::{Wanted, fetch, plan};
use archive::keys::Identities;
use archive::names;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::Store;
use archive::store::remote::Folder;
use archive::upkeep::prune::{Rules, prune};
use archive::upkeep::scrub::{Depth, Report, scrub};
use archive::writer::upload::{Permits, Uploader};
use archive::writer::{Archiver, DurableEnd, Step};
use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
use jiff::{SignedDuration, Timestamp};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SOURCE: &str = "shop";

/// Files of the copy.
const FILES: u64 = 5;

struct Scene {
    dir: tempfile::TempDir,
    timeline: PathBuf,
    store: Arc<Folder>,
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("data").join(SOURCE);
        fs::create_dir_all(&folder).unwrap();
        let timeline = first_timeline(SERVER_UUID).create(&PosixStorage, &folder, 1).unwrap();
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/format-1");
        let root = dir.path().join("store");
        copy(&golden, &root);
        let store = Arc::new(Folder::open(&root).unwrap());
        let scene = Scene { dir, timeline, store };
        scene.write_files();
        scene
    }

    /// Those from which the archive was made, and one more that came later.
    fn write_files(&self) {
        let mut number = 0;
        for place in 1..=FILES {
            let before = if number == 0 { String::new() } else { format!("{SERVER_UUID}:1-{number}") };
            let mut builder = FileBuilder::new().previous_gtids(&before);
            for _ in 0..5 {
                number += 1;
                builder = builder.transaction(number, 300);
            }
            let builder =
                if place == FILES { builder } else { builder.rotate(&format!("b.{:06}", place + 1)) };
            fs::write(self.timeline.join(name(place)), builder.finish()).unwrap();
        }
    }

    fn go_on(&self) {
        let store: Arc<dyn Store> = self.store.clone();
        let uploader = Uploader {
            store,
            permits: Arc::new(Permits::new(1)),
            level: 1,
            recipients: None,
            stop: Arc::default(),
        };
        let folder = self.timeline.parent().unwrap().to_owned();
        let mut archiver =
            Archiver::new(SOURCE.into(), folder, Arc::new(PosixStorage), uploader, writer("later"), false)
                .with_snapshots_after(4);
        let last = self.timeline.join(name(FILES));
        let offset = fs::metadata(last).unwrap().len();
        let durable = DurableEnd { timeline: self.timeline.clone(), file: name(FILES), offset };
        while archiver.step(Some(&durable), true, now()).unwrap() != Step::Idle {}
    }

    fn chain(&self) -> Chain {
        Chain::open(&*self.store, SOURCE).unwrap()
    }

    fn file(&self, place: u64) -> Arc<ArchivedFile> {
        self.chain().history().file(&format!("0001-{SERVER_UUID}"), &name(place)).unwrap().clone()
    }

    fn reader(&self) -> Reader {
        Reader { store: self.store.clone(), opener: Arc::new(Opener::new(Identities::new())) }
    }

    fn scrub(&self) -> Report {
        scrub(&self.reader(), SOURCE, Depth::All, true, &|_| {}).unwrap()
    }

    /// Fetches all there is, and compares what is there whole.
    fn fetch(&self, whole: std::ops::RangeInclusive<u64>) {
        let chain = self.chain();
        let to = tempfile::tempdir_in(self.dir.path()).unwrap();
        let parts = plan(chain.history(), &Wanted::default()).unwrap();
        let got = fetch(&self.reader(), &PosixStorage, to.path(), &parts[0], 2, &|_| {}).unwrap().folder;
        for place in whole {
            let (ours, theirs) = (self.timeline.join(name(place)), got.join(name(place)));
            assert!(fs::read(ours).unwrap() == fs::read(theirs).unwrap(), "{}", name(place));
        }
    }

    fn objects(&self, place: u64) -> usize {
        self.store
            .list(&names::file(SOURCE, &format!("0001-{SERVER_UUID}"), &name(place)), None)
            .unwrap()
            .len()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn name(place: u64) -> String {
    format!("b.{place:06}")
}

fn writer(id: &str) -> Writer {
    Writer { id: id.into(), epoch: 0, host: "test".into(), version: "0".into() }
}

fn now() -> Timestamp {
    Timestamp::now()
}

/// Without the first `commits`, as after a prune: who reads begins with the snapshot of format 1.
fn without_commits(scene: &Scene, commits: u64) {
    for seq in 1..=commits {
        scene.store.delete(&names::commit(SOURCE, seq)).unwrap();
    }
}

#[test]
fn an_archive_of_format_1_is_read_gone_on_with_verified_and_pruned() {
    for from_snapshot in [false, true] {
        let scene = Scene::new();
        let first = scene.store.get(&names::commit(SOURCE, 9)).unwrap();
        assert_eq!(Commit::decode(&first).unwrap().format, 1);
        if from_snapshot {
            without_commits(&scene, 8);
        }
        let report = scene.scrub();
        assert_eq!((report.findings, report.files, report.unnamed), (vec![], 3, 0));
        assert!(scene.file(2).index().is_none() && scene.file(2).inline().unwrap().len() == 1);
        scene.fetch(2..=3);

        scene.go_on();
        let chain = scene.chain();
        let last = scene.store.get(&names::commit(SOURCE, chain.history().seq)).unwrap();
        assert_eq!(Commit::decode(&last).unwrap().format, FORMAT);
        // What was finished before stays as it is, and what is finished now has an index.
        assert!(scene.file(3).inline().is_some() && scene.file(4).index().is_some());
        let report = scene.scrub();
        assert_eq!((report.findings, report.files, report.unnamed), (vec![], 4, 0));
        scene.fetch(2..=FILES);

        // The grace has not begun for what expires now, and is over for what was retired then, the first file.
        let mut chain = scene.chain();
        let rules = Rules { keep_files: Some(2), ..Rules::default() };
        let soon = now() + SignedDuration::from_hours(24);
        let pruned = prune(&*scene.store, &mut chain, &writer("pruner"), &rules, soon).unwrap();
        assert_eq!((pruned.expired.len(), pruned.is_behind), (1, false));
        assert_eq!((scene.objects(1), scene.objects(2)), (0, 2), "a segment and a list");
        let later = soon + rules.grace;
        let pruned = prune(&*scene.store, &mut chain, &writer("pruner"), &rules, later).unwrap();
        assert_eq!(pruned.objects, 4 + 2, "two files, and what became one segment of the third that is left");
        assert_eq!((scene.objects(2), scene.objects(3)), (0, 0));
        assert_eq!(chain.history().retired, []);
        let report = scene.scrub();
        assert_eq!((report.findings, report.files, report.unnamed), (vec![], 2, 0));
        scene.fetch(4..=FILES);
    }
}

/// A binlogd of before says that a newer one is needed, and does not take an index for something else.
#[test]
fn a_commit_with_an_index_says_that_it_is_of_a_later_format() {
    let scene = Scene::new();
    scene.go_on();
    let seqs = 1..=scene.chain().history().seq;
    let texts = seqs.map(|seq| scene.store.get(&names::commit(SOURCE, seq)).unwrap());
    let with_index: Vec<Commit> = texts
        .filter(|text| String::from_utf8_lossy(text).contains("\"index\""))
        .map(|text| Commit::decode(&text).unwrap())
        .collect();
    assert!(!with_index.is_empty() && with_index.iter().all(|commit| commit.format >= 2));
}
