use super::*;
use crate::chain::Chain;
use crate::chain::commit::Writer;
use crate::keys::{Identities, Recipients};
use crate::segment::Opener;
use crate::store::Store;
use crate::testing::Memory;
use crate::writer::upload::{Permits, Uploader};
use crate::writer::{Archiver, DurableEnd, Step};
use binlog::purge::plan::{Plan, Wanted};
use binlog::purge::{Indexes, carry_out};
use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
use binlog::timeline::Timeline;
use binlog::timeline::files::timeline_files;
use jiff::Timestamp;
use std::fs;

const SOURCE: &str = "shop";
const FILES: u64 = 7;
const CACHE: u64 = 64 << 20;

/// A copy with [`FILES`] files, of which the last is written, its archive, and what readers see of both.
struct Scene {
    dir: tempfile::TempDir,
    timeline: PathBuf,
    store: Arc<Memory>,
    recipients: Option<Arc<Recipients>>,
    /// What each file was.
    bytes: Vec<Vec<u8>>,
}

fn name(number: u64) -> String {
    format!("b.{number:06}")
}

impl Scene {
    fn new() -> Scene {
        Scene::encrypted(None)
    }

    fn encrypted(recipients: Option<Arc<Recipients>>) -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(SOURCE);
        fs::create_dir(&folder).unwrap();
        let info = Timeline { first_file: name(1), ..first_timeline(SERVER_UUID) };
        let timeline = info.create(&PosixStorage, &folder, 1).unwrap();
        let (mut transaction, mut bytes) = (0, Vec::new());
        for number in 1..=FILES {
            let before =
                if transaction == 0 { String::new() } else { format!("{SERVER_UUID}:1-{transaction}") };
            let mut file = FileBuilder::new().previous_gtids(&before);
            for _ in 0..3 {
                transaction += 1;
                // Several segments a file.
                file = file.transaction(transaction, 3 << 20);
            }
            bytes.push(if number < FILES { file.rotate(&name(number + 1)) } else { file }.finish());
            fs::write(timeline.join(name(number)), bytes.last().unwrap()).unwrap();
        }
        Scene { dir, timeline, store: Arc::default(), recipients, bytes }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join(SOURCE)
    }

    fn archive(&self) -> Archiver {
        let store: Arc<dyn Store> = self.store.clone();
        let (permits, recipients) = (Arc::new(Permits::new(2)), self.recipients.clone());
        let uploader = Uploader { store, permits, level: 1, recipients, stop: Arc::default() };
        let writer = Writer::of_this_run("test".into(), "0".into());
        let mut archiver =
            Archiver::new(SOURCE.into(), self.folder(), Arc::new(PosixStorage), uploader, writer, false);
        let offset = self.bytes.last().unwrap().len() as u64;
        let durable = DurableEnd { timeline: self.timeline.clone(), file: name(FILES), offset };
        while archiver.step(Some(&durable), true, Timestamp::now()).unwrap() != Step::Idle {}
        archiver
    }

    /// Takes the files before that number from the disk.
    fn purge_to(&self, number: u64) {
        let folder = self.folder();
        let plan = Plan::make(&PosixStorage, &folder, &Wanted::To(name(number)), &[]).unwrap();
        carry_out(&PosixStorage, &plan.goes(), "a test", Timestamp::now(), Indexes::Ours).unwrap();
        assert!(!self.timeline.join(name(number - 1)).exists());
    }

    fn reader(&self, identities: Identities) -> Reader {
        Reader { store: self.store.clone(), opener: Arc::new(Opener::new(identities)) }
    }

    fn past(&self, identities: Identities, cache_bytes: u64, has_room: bool) -> Arc<Past> {
        let reader = self.reader(identities);
        let has_room: HasRoom = Arc::new(move |_| has_room);
        Arc::new(Past::new(self.folder(), Arc::new(PosixStorage), reader, cache_bytes, has_room, 3))
    }

    /// What readers see.
    fn seen(&self, archiver: &Archiver) -> (WithPast, Arc<Past>) {
        let past = self.past(Identities::new(), CACHE, true);
        past.publish(archiver.chain().unwrap().history(), archiver.names()).unwrap();
        (WithPast::new(Arc::new(PosixStorage), past.clone()), past)
    }

    fn assert_read(&self, storage: &WithPast, number: u64) {
        let path = self.timeline.join(name(number));
        let expected = &self.bytes[number as usize - 1];
        assert_eq!(storage.look(&path).unwrap().len, expected.len() as u64);
        let file = storage.open_read(&path).unwrap();
        let mut bytes = vec![0; expected.len() + 1];
        assert_eq!(file.read_full_at(&mut bytes, 0).unwrap(), expected.len());
        assert!(bytes[..expected.len()] == **expected, "{number}");
    }
}

fn seen_files(storage: &WithPast, timeline: &Path) -> Vec<String> {
    timeline_files(storage, timeline).unwrap()
}

fn names(numbers: std::ops::RangeInclusive<u64>) -> Vec<String> {
    numbers.map(name).collect()
}

#[test]
fn what_was_purged_is_read_as_if_it_had_stayed() {
    let scene = Scene::new();
    let archiver = scene.archive();
    scene.purge_to(5);
    assert_eq!(timeline_files(&PosixStorage, &scene.timeline).unwrap(), names(5..=7));
    let (storage, past) = scene.seen(&archiver);
    assert_eq!(seen_files(&storage, &scene.timeline), names(1..=7));
    assert_eq!(Timeline::read(&storage, &scene.timeline).unwrap().purged, []);
    (1..=7).for_each(|number| scene.assert_read(&storage, number));
    let read = past.counters();
    assert!(read.objects >= 4 * 2 && read.cached_bytes > 30 << 20, "{read:?}");
    // From the cache, the second time.
    (1..=4).for_each(|number| scene.assert_read(&storage, number));
    assert_eq!(past.counters().objects, read.objects);
    let recorded = storage.recorded(&scene.timeline.join(name(2))).unwrap();
    assert_eq!(recorded.gtids_before.unwrap().to_line(), format!("{SERVER_UUID}:1-3"));
    assert_eq!(recorded.gtids.to_line(), format!("{SERVER_UUID}:1-6"));
    assert_eq!(storage.recorded(&scene.timeline.join(name(5))), None, "it is here");
}

#[test]
fn nothing_is_known_before_the_archive_has_answered() {
    let scene = Scene::new();
    let archiver = scene.archive();
    let past = scene.past(Identities::new(), CACHE, true);
    let storage = WithPast::new(Arc::new(PosixStorage), past.clone());
    assert!(!storage.may_have_more(), "nothing was purged");
    scene.purge_to(3);
    assert!(storage.may_have_more());
    assert_eq!(seen_files(&storage, &scene.timeline), names(3..=7));
    past.publish(archiver.chain().unwrap().history(), &[]).unwrap();
    assert!(!storage.may_have_more());
    assert_eq!(seen_files(&storage, &scene.timeline), names(1..=7), "known by when it began");
}

#[test]
fn behind_a_hole_nothing_is_shown() {
    let scene = Scene::new();
    let archiver = scene.archive();
    scene.purge_to(5);
    // Somebody took a file away by hand.
    fs::remove_file(scene.timeline.join(name(5))).unwrap();
    let (storage, _) = scene.seen(&archiver);
    assert_eq!(seen_files(&storage, &scene.timeline), names(6..=7));
}

#[test]
fn what_expired_in_the_archive_stays_purged() {
    let scene = Scene::new();
    let archiver = scene.archive();
    scene.purge_to(5);
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let rules = crate::upkeep::prune::Rules { keep_files: Some(5), ..Default::default() };
    let writer = Writer::of_this_run("test".into(), "0".into());
    crate::upkeep::prune::prune(&*scene.store, &mut chain, &writer, &rules, Timestamp::now()).unwrap();
    let past = scene.past(Identities::new(), CACHE, true);
    past.publish(chain.history(), archiver.names()).unwrap();
    let storage = WithPast::new(Arc::new(PosixStorage), past);
    assert_eq!(seen_files(&storage, &scene.timeline), names(3..=7));
    let timeline = Timeline::read(&storage, &scene.timeline).unwrap();
    let [line] = &timeline.purged[..] else { panic!("{timeline:?}") };
    assert_eq!((&*line.from, &*line.through), ("b.000001", "b.000002"));
    assert_eq!(timeline.purged_gtids().unwrap().to_line(), format!("{SERVER_UUID}:1-6"));
}

#[test]
fn what_no_key_opens_is_not_shown() {
    let key = age::x25519::Identity::generate();
    let mut recipients = Recipients::new();
    recipients.add(&key.to_public().to_string(), "a test").unwrap();
    let scene = Scene::encrypted(Some(Arc::new(recipients)));
    let archiver = scene.archive();
    scene.purge_to(5);
    let (storage, _) = scene.seen(&archiver);
    assert_eq!(seen_files(&storage, &scene.timeline), names(5..=7));
    let file = scene.dir.path().join("key");
    fs::write(&file, age::secrecy::ExposeSecret::expose_secret(&key.to_string())).unwrap();
    let mut identities = Identities::new();
    identities.add_unattended(&file).unwrap();
    let past = scene.past(identities, CACHE, true);
    past.publish(archiver.chain().unwrap().history(), archiver.names()).unwrap();
    let storage = WithPast::new(Arc::new(PosixStorage), past);
    assert_eq!(seen_files(&storage, &scene.timeline), names(1..=7));
    scene.assert_read(&storage, 2);
}

#[test]
fn a_cache_is_bounded_and_not_believed() {
    let scene = Scene::new();
    let archiver = scene.archive();
    scene.purge_to(5);
    for (cache_bytes, has_room) in [(10 << 20, true), (1 << 20, true), (CACHE, false)] {
        let past = scene.past(Identities::new(), cache_bytes, has_room);
        past.publish(archiver.chain().unwrap().history(), archiver.names()).unwrap();
        let storage = WithPast::new(Arc::new(PosixStorage), past.clone());
        for number in [1, 2, 3, 4, 1] {
            scene.assert_read(&storage, number);
            let kept = fs::read_dir(scene.folder().join(CACHE_FOLDER)).unwrap();
            let bytes: u64 = kept.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
            assert!(bytes <= 10 << 20, "{bytes}");
        }
        past.tend();
        assert_eq!(past.counters().cached_bytes == 0, !has_room || cache_bytes < 2 << 20);
    }
    // What another process has left, and what became of it.
    let past = scene.past(Identities::new(), CACHE, true);
    past.publish(archiver.chain().unwrap().history(), archiver.names()).unwrap();
    let storage = WithPast::new(Arc::new(PosixStorage), past);
    (1..=4).for_each(|number| scene.assert_read(&storage, number));
    for (place, entry) in fs::read_dir(scene.folder().join(CACHE_FOLDER)).unwrap().enumerate() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        match place % 3 {
            0 => bytes[1000] ^= 1,
            1 => bytes.truncate(2000),
            _ => {}
        }
        fs::write(&path, bytes).unwrap();
    }
    fs::write(scene.folder().join(CACHE_FOLDER).join("x.unfinished"), b"x").unwrap();
    let (storage, past) = scene.seen(&archiver);
    (1..=4).for_each(|number| scene.assert_read(&storage, number));
    assert!(past.counters().objects > 0);
    assert!(!scene.folder().join(CACHE_FOLDER).join("x.unfinished").exists());
}

#[test]
fn many_readers_fetch_a_segment_once() {
    let scene = Scene::new();
    let archiver = scene.archive();
    scene.purge_to(5);
    let (storage, past) = scene.seen(&archiver);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| (1..=4).for_each(|number| scene.assert_read(&storage, number)));
        }
    });
    let objects: u64 = archiver.chain().unwrap().history().timelines.values().next().unwrap().files[..4]
        .iter()
        .map(|file| file.count())
        .sum();
    assert_eq!(past.counters().objects, objects);
}

#[test]
fn a_missing_object_is_an_error_that_names_it() {
    let scene = Scene::new();
    let archiver = scene.archive();
    scene.purge_to(5);
    let history = archiver.chain().unwrap().history();
    let second = &history.timelines.values().next().unwrap().files[1];
    let object = scene.reader(Identities::new()).segments(second).unwrap()[0].object.clone();
    scene.store.delete(&object).unwrap();
    let (storage, _) = scene.seen(&archiver);
    let file = storage.open_read(&scene.timeline.join(name(2))).unwrap();
    let error = file.read_at(&mut [0; 10], 0).unwrap_err();
    assert!(error.to_string().contains(&object), "{error}");
    scene.assert_read(&storage, 3);
}
