//! A copy begins from the archive on an empty disk: with what it takes, at whichever step it is killed.

mod scene;

use archive::begin::{Begun, There, begin, finish, look};
use archive::chain::Chain;
use archive::writer::{DurableEnd, Step};
use binlog::folder::by_number;
use binlog::recover::{Tail, recover};
use binlog::storage::Storage;
use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, KilledStorage, NOW, SERVER_UUID, first_timeline};
use binlog::timeline::files::timeline_files;
use binlog::timeline::held::{HeldGtids, present_history};
use binlog::timeline::offline::resume_point;
use binlog::timeline::{Reason, Timeline};
use jiff::Timestamp;
use scene::{SOURCE, Scene};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Another server, which was promoted.
const SUCCESSOR: &str = "11111111-2222-3333-4444-555555555555";

fn begin_in(scene: &Scene, storage: &dyn Storage, folder: &Path) -> Result<Option<Begun>, String> {
    begin(&scene.reader(), storage, folder, SOURCE, 2, &|_| {}).map_err(|error| error.to_string())
}

/// An empty source's folder.
fn empty(scene: &Scene, name: &str) -> PathBuf {
    let folder = scene.dir.path().join(name).join(SOURCE);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A second timeline of the copy, with files of a server that was promoted and lacks `lacks`; archived with the first.
fn fail_over(scene: &Scene, files: &[Vec<u8>], lacks: &str) -> PathBuf {
    let description = Timeline {
        began_at: "2026-01-02T03:04:06Z".into(),
        previous: scene.timeline.file_name().unwrap().to_str().unwrap().into(),
        reason: if lacks.is_empty() { Reason::SourceChanged } else { Reason::Fork },
        first_file: "n.000001".into(),
        gtid_before: format!("{SERVER_UUID}:1-30"),
        source_lacks: lacks.into(),
        ..first_timeline(SUCCESSOR)
    };
    let folder = description.create(&PosixStorage, scene.timeline.parent().unwrap(), 2).unwrap();
    for (number, bytes) in files.iter().enumerate() {
        fs::write(folder.join(format!("n.{:06}", number + 1)), bytes).unwrap();
    }
    let last = format!("n.{:06}", files.len());
    let offset = files.last().unwrap().len() as u64;
    let durable = DurableEnd { timeline: folder.clone(), file: last, offset };
    let mut archiver = scene.archiver();
    while archiver.step(Some(&durable), true, Timestamp::now()).unwrap() != Step::Idle {}
    folder
}

/// A file of the successor, which had executed these before it.
fn file_of_successor(executed: &str, next: Option<&str>) -> Vec<u8> {
    let file = FileBuilder::new().previous_gtids(executed).transaction(900, 500);
    next.map_or_else(|| file, |next| FileBuilder::new().previous_gtids(executed).rotate(next)).finish()
}

/// What stands in a folder, by path. The time of a purge, which is never the same, is left out.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for timeline in by_number(&PosixStorage, folder).unwrap() {
        for entry in fs::read_dir(&timeline).unwrap().flatten() {
            let mut bytes = fs::read(entry.path()).unwrap();
            if entry.file_name() == "timeline.toml" {
                let text = String::from_utf8(bytes).unwrap();
                let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("at = ")).collect();
                bytes = lines.join("\n").into_bytes();
            }
            let name = entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            found.insert(name, bytes);
        }
    }
    found
}

fn names(timeline: &Path) -> Vec<String> {
    timeline_files(&PosixStorage, timeline).unwrap()
}

#[test]
fn the_end_of_one_timeline_is_fetched_and_the_rest_stays() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let folder = empty(&scene, "new");
    assert_eq!(look(&PosixStorage, &folder).unwrap(), There::Nothing);
    assert_eq!(look(&PosixStorage, &folder.join("missing")).unwrap(), There::Nothing);
    let begun = begin_in(&scene, &PosixStorage, &folder).unwrap().unwrap();
    assert_eq!((begun.files, begun.timelines, &*begun.file), (2, 1, "b.000003"));
    assert_eq!(
        (begun.offset, &*begun.gtids),
        (fs::metadata(&files[2]).unwrap().len(), &*format!("{SERVER_UUID}:1-30"))
    );
    assert_eq!(look(&PosixStorage, &folder).unwrap(), There::Copy);
    let timeline = folder.join(scene.timeline.file_name().unwrap());
    assert_eq!(names(&timeline), ["b.000002", "b.000003"]);
    for file in &files[1..] {
        assert!(fs::read(file).unwrap() == fs::read(timeline.join(file.file_name().unwrap())).unwrap());
    }
    let record = Timeline::read(&PosixStorage, &timeline).unwrap();
    let line = &record.purged[0];
    assert_eq!((&*line.from, &*line.through, line.files, line.removed), ("b.000001", "b.000001", 1, true));
    assert_eq!((&*line.gtids, line.gtid_before.as_deref()), (&*format!("{SERVER_UUID}:1-10"), Some("")));
    let recovered = recover(&PosixStorage, &timeline, Tail::SaveAside(NOW)).unwrap();
    assert_eq!(recovered.remarks, [] as [String; 0]);
    assert_eq!(recovered.resume_at().unwrap().offset, begun.offset);
    assert_eq!(recovered.gtids.to_line(), begun.gtids);
}

#[test]
fn where_the_archive_has_nothing_nothing_is_made() {
    let scene = Scene::new();
    let folder = empty(&scene, "new");
    assert_eq!(begin_in(&scene, &PosixStorage, &folder).unwrap(), None);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

/// The archive goes on with the timelines that it has, and no byte is uploaded again.
#[test]
fn what_has_begun_is_archived_as_what_it_is() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let before = scene.objects().len();
    let folder = empty(&scene, "new");
    let begun = begin_in(&scene, &PosixStorage, &folder).unwrap().unwrap();
    let scene = Scene { timeline: folder.join(&begun.timeline), ..scene };
    let live = scene.timeline.join("b.000003");
    scene.archive_all(&live);
    assert_eq!(scene.objects().len(), before, "nothing is committed either");
    let more = FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1-20"));
    let more = (21..36).fold(more, |file, number| file.transaction(number, 3000)).finish();
    assert!(more.starts_with(&fs::read(&live).unwrap()), "the source has gone on");
    fs::write(&live, more).unwrap();
    scene.archive_all(&live);
    let chain = Chain::open(&*scene.store, SOURCE).unwrap();
    assert_eq!(chain.history().timelines.len(), 1);
    assert_eq!(scene.scrub().findings, []);
}

#[test]
fn older_timelines_are_there_with_all_of_them_in_the_archive() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let all = format!("{SERVER_UUID}:1-30");
    let successor: Vec<Vec<u8>> =
        [Some("n.000002"), Some("n.000003"), None].map(|next| file_of_successor(&all, next)).into();
    let second = fail_over(&scene, &successor, "");
    let folder = empty(&scene, "new");
    let begun = begin_in(&scene, &PosixStorage, &folder).unwrap().unwrap();
    assert_eq!((begun.files, begun.timelines, &*begun.file), (2, 2, "n.000003"));
    let [older, newest] = &by_number(&PosixStorage, &folder).unwrap()[..] else { panic!("two") };
    assert_eq!(newest.file_name(), second.file_name());
    assert_eq!(older.file_name(), scene.timeline.file_name());
    assert_eq!((names(older), names(newest).len()), (vec![], 2));
    assert_eq!(resume_point(&PosixStorage, older).unwrap(), None);
    let record = Timeline::read(&PosixStorage, older).unwrap();
    assert_eq!((record.purged[0].files, record.purged_gtids().unwrap().to_line()), (3, all));
    assert_eq!(present_history(&PosixStorage, &folder).unwrap().len(), 2);
    let kind = record.server_kind;
    let held = |folder: &Path| HeldGtids::read(&PosixStorage, folder, kind).unwrap();
    assert_eq!(held(&folder), held(scene.timeline.parent().unwrap()), "what a successor must have");
}

/// Where the newest timeline has little, the end of the one before is needed, as a purge leaves it.
#[test]
fn of_a_timeline_that_has_only_begun_the_one_before_is_needed_too() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    fail_over(&scene, &[file_of_successor(&format!("{SERVER_UUID}:1-30"), None)], "");
    let folder = empty(&scene, "new");
    begin_in(&scene, &PosixStorage, &folder).unwrap().unwrap();
    let timelines = by_number(&PosixStorage, &folder).unwrap();
    assert_eq!(
        (names(&timelines[0]), names(&timelines[1])),
        (vec!["b.000002".into(), "b.000003".into()], vec!["n.000001".into()])
    );
}

/// `binlogd rescue` needs the files with what a fork took, as long as the source does not have that.
#[test]
fn what_the_source_lacks_is_fetched_too() {
    for (executed, expected) in
        [("1-15", &["b.000002", "b.000003"][..]), ("1-25", &["b.000003"][..]), ("1-30", &[][..])]
    {
        let scene = Scene::new();
        let files = scene.files(10);
        scene.archive_all(&files[2]);
        let executed = format!("{SERVER_UUID}:{executed}");
        let successor: Vec<Vec<u8>> =
            [Some("n.000002"), Some("n.000003"), None].map(|next| file_of_successor(&executed, next)).into();
        fail_over(&scene, &successor, &format!("{SERVER_UUID}:14-30"));
        let folder = empty(&scene, "new");
        begin_in(&scene, &PosixStorage, &folder).unwrap().unwrap();
        let timelines = by_number(&PosixStorage, &folder).unwrap();
        assert_eq!(names(&timelines[0]), expected, "the source has {executed}");
    }
}

/// What an earlier try has left and is not wanted any more goes, and a file that has grown since is continued.
#[test]
fn the_archive_may_go_on_between_two_tries() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let folder = empty(&scene, "new");
    // Up to where both files are there and nothing has its name.
    let mut steps = 0;
    let staged = folder.join(format!(".{}.archived", scene.timeline.file_name().unwrap().to_str().unwrap()));
    while !staged.join("b.000003").exists() {
        steps += 1;
        begin_in(&scene, &KilledStorage::after(steps), &folder).unwrap_err();
    }
    assert_eq!(look(&PosixStorage, &folder).unwrap(), There::Nothing);
    fs::write(scene.timeline.join("b.000004"), file_of_successor(&format!("{SERVER_UUID}:1-30"), None))
        .unwrap();
    let durable = DurableEnd {
        file: "b.000004".into(),
        ..scene.durable(fs::metadata(scene.timeline.join("b.000004")).unwrap().len())
    };
    let mut archiver = scene.archiver();
    while archiver.step(Some(&durable), true, Timestamp::now()).unwrap() != Step::Idle {}
    let begun = begin_in(&scene, &PosixStorage, &folder).unwrap().unwrap();
    let timeline = folder.join(&begun.timeline);
    assert_eq!(names(&timeline), ["b.000003", "b.000004"]);
    assert!(!timeline.join("b.000002").exists());
    for name in names(&timeline) {
        assert!(
            fs::read(timeline.join(&name)).unwrap() == fs::read(scene.timeline.join(&name)).unwrap(),
            "{name}"
        );
    }
}

/// Killed at each step: nothing looks like a copy that is none, and the next start makes the same of it, with or without the archive
/// from the list on.
#[test]
fn killed_at_any_step_it_goes_on() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let executed = format!("{SERVER_UUID}:1-25");
    let successor: Vec<Vec<u8>> =
        [Some("n.000002"), Some("n.000003"), None].map(|next| file_of_successor(&executed, next)).into();
    fail_over(&scene, &successor, &format!("{SERVER_UUID}:26-30"));
    let whole = empty(&scene, "whole");
    begin_in(&scene, &PosixStorage, &whole).unwrap().unwrap();
    let expected = tree(&whole);
    assert!(expected.len() >= 7, "{:?}", expected.keys());
    let mut seen = BTreeMap::new();
    for steps in 0.. {
        let folder = empty(&scene, &format!("killed-{steps}"));
        let storage = KilledStorage::after(steps);
        let outcome = begin_in(&scene, &storage, &folder);
        assert_eq!(outcome.is_err(), storage.is_dead(), "{outcome:?}");
        let there = look(&PosixStorage, &folder).unwrap();
        *seen.entry(format!("{there:?}")).or_insert(0) += 1;
        let timelines = by_number(&PosixStorage, &folder).unwrap();
        match there {
            There::Nothing => drop(begin_in(&scene, &PosixStorage, &folder).unwrap().unwrap()),
            There::Unfinished => {
                // No moment shows an older one as the last.
                assert!(
                    timelines.is_empty() || timelines.last().unwrap().to_str().unwrap().contains(SUCCESSOR)
                );
                // It may be killed once more.
                for again in 0..2 {
                    let _ = finish(&KilledStorage::after(again), &folder);
                }
                if look(&PosixStorage, &folder).unwrap() == There::Unfinished {
                    finish(&PosixStorage, &folder).unwrap();
                }
            }
            There::Copy => {}
        }
        assert!(tree(&folder) == expected, "killed after {steps} steps: {:?}", tree(&folder).keys());
        assert_eq!(look(&PosixStorage, &folder).unwrap(), There::Copy);
        if !storage.is_dead() {
            println!("{steps} steps: {seen:?}");
            assert!(seen["Nothing"] > 20 && seen["Unfinished"] > 4, "{seen:?}");
            return;
        }
    }
}

/// Nothing that the store has changed comes into a copy.
#[test]
fn of_a_damaged_archive_nothing_begins() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let is_needed = |path: &Path| {
        let path = path.to_str().unwrap();
        path.ends_with(".zst") && ["/b.000002/", "/b.000003/"].iter().any(|file| path.contains(file))
    };
    let needed: Vec<_> = scene.objects().into_iter().filter(|path| is_needed(path)).collect();
    assert!(needed.len() >= 3, "two files, and the index of one: {needed:?}");
    for (place, object) in needed.iter().enumerate() {
        let sound = fs::read(object).unwrap();
        let mut flipped = sound.clone();
        flipped[20] ^= 1;
        // Sound frames too, of other bytes: nothing but the hash tells.
        let others = fs::read(&needed[(place + 1) % needed.len()]).unwrap();
        for (way, bytes) in [flipped, others].into_iter().enumerate() {
            fs::write(object, &bytes).unwrap();
            let folder = empty(&scene, &format!("{place}-{way}"));
            let error = begin_in(&scene, &PosixStorage, &folder).unwrap_err();
            assert!(error.contains(object.file_name().unwrap().to_str().unwrap()), "{error}");
            assert_eq!(look(&PosixStorage, &folder).unwrap(), There::Nothing);
        }
        fs::write(object, sound).unwrap();
    }
    let folder = empty(&scene, "new");
    let begun = begin_in(&scene, &PosixStorage, &folder).unwrap().unwrap();
    assert_eq!(
        fs::read(folder.join(&begun.timeline).join(&begun.file)).unwrap(),
        fs::read(&files[2]).unwrap()
    );
}
