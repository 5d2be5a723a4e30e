//! A copy is archived into a folder, damaged there in every way, scrubbed, and fetched back.

mod scene;

use archive::begin::begin;
use archive::chain::Chain;
use archive::chain::commit::{Change, Commit, FORMAT, Writer};
use archive::fetch::{Bound, Wanted, fetch, plan};
use archive::names;
use archive::segment::search_index::{get, list, put};
use archive::store::Store;
use archive::upkeep::backup::Point;
use archive::upkeep::presence::{first_lacking, look};
use archive::upkeep::prune::{PruneError, Rules, dry_run, prune};
use archive::upkeep::scrub::{Depth, scrub};
use archive::writer::upload::Owner;
use archive::writer::{ArchiveError, DurableEnd, Step};
use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
use jiff::{SignedDuration, Timestamp};
use scene::{SOURCE, Scene};
use std::fs;

#[test]
fn what_is_archived_is_fetched_byte_for_byte() {
    let scene = Scene::new();
    let files = scene.files(40);
    scene.archive_all(&files[2]);
    let report = scene.scrub();
    assert_eq!(report.findings, []);
    assert_eq!((report.files, report.unnamed), (3, 0));
    assert_eq!(report.opened, report.objects);
    let chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let parts = plan(chain.history(), &Wanted::default()).unwrap();
    let to = scene.dir.path().join("fetched");
    fs::create_dir(&to).unwrap();
    let got = fetch(&scene.reader(), &PosixStorage, &to, &parts[0], 3, &|_| {}).unwrap().folder;
    for file in &files {
        let name = file.file_name().unwrap();
        assert!(fs::read(file).unwrap() == fs::read(got.join(name)).unwrap(), "{name:?}");
    }
    // A run continues what an interrupted one has left, and a byte of it that is wrong is not believed.
    let whole = fs::read(&files[1]).unwrap();
    let mut part = whole[..whole.len() / 2].to_vec();
    part[100] ^= 1;
    fs::remove_file(got.join("b.000002")).unwrap();
    fs::write(got.join("b.000002.fetching"), part).unwrap();
    fetch(&scene.reader(), &PosixStorage, &to, &parts[0], 1, &|_| {}).unwrap();
    assert!(fs::read(got.join("b.000002")).unwrap() == whole);
}

#[test]
fn a_bound_chooses_the_files_in_which_it_lies() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let gtid = |number: u64| Bound::Gtids(format!("{SERVER_UUID}:{number}"));
    let file = |name: &str| Bound::File(name.to_owned());
    for (from, until, expected) in [
        (None, None, Some(0..3)),
        (Some(gtid(10)), None, Some(0..3)),
        (Some(gtid(11)), Some(gtid(20)), Some(1..2)),
        (Some(file("b.000002")), None, Some(1..3)),
        (None, Some(file("b.000001")), Some(0..1)),
        (Some(gtid(31)), None, None),
        (Some(file("b.000009")), None, None),
    ] {
        let wanted = Wanted { timeline: None, from: from.clone(), until: until.clone() };
        let found = plan(chain.history(), &wanted).ok().map(|parts| parts[0].files.clone());
        assert_eq!(found, expected, "{from:?} to {until:?}");
    }
}

/// The source has lost its tail and goes on: the same file begins alike on both timelines, and ends otherwise.
#[test]
fn a_fork_of_the_same_server_is_a_timeline_of_its_own() {
    let scene = Scene::new();
    let lost = scene.files(10).pop().unwrap();
    scene.archive_all(&lost);
    let fork = binlog::timeline::Timeline {
        began_at: "2026-01-02T03:04:06Z".into(),
        previous: scene.timeline.file_name().unwrap().to_str().unwrap().into(),
        reason: binlog::timeline::Reason::Fork,
        first_file: "b.000003".into(),
        ..first_timeline(SERVER_UUID)
    };
    let folder = fork.create(&PosixStorage, scene.timeline.parent().unwrap(), 2).unwrap();
    let mut builder = FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1-20"));
    for number in 21..24 {
        builder = builder.transaction(number, 2000);
    }
    let short = builder.finish();
    fs::write(folder.join("b.000003"), &short).unwrap();
    let durable =
        DurableEnd { timeline: folder.clone(), file: "b.000003".into(), offset: short.len() as u64 };
    // By the process that has archived the first one, and by one that finds both.
    for _ in 0..2 {
        let mut archiver = scene.archiver();
        while archiver.step(Some(&durable), true, Timestamp::now()).unwrap() != Step::Idle {}
        let end = archiver.end_of(&folder).unwrap();
        assert_eq!(
            (&*end.timeline, end.offset),
            (folder.file_name().unwrap().to_str().unwrap(), durable.offset)
        );
    }
    let report = scene.scrub();
    assert_eq!((report.findings, report.timelines), (vec![], 2));
}

/// A copy that has gone on since it was fetched is not put back.
#[test]
fn a_longer_file_is_never_replaced_by_a_fetched_one() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let parts = plan(chain.history(), &Wanted::default()).unwrap();
    let to = scene.timeline.parent().unwrap();
    let again = || fetch(&scene.reader(), &PosixStorage, to, &parts[0], 1, &|_| {});
    again().unwrap();
    let mut longer = fs::read(&files[2]).unwrap();
    longer.extend([0; 9]);
    fs::write(&files[2], &longer).unwrap();
    assert!(again().unwrap_err().to_string().contains("Fetch into another folder"));
    assert!(fs::read(&files[2]).unwrap() == longer);
    fs::write(scene.timeline.join("b.000004"), b"x").unwrap();
    assert!(again().unwrap_err().to_string().contains("b.000004"));
}

#[test]
fn what_expired_is_recorded_in_a_copy_that_is_fetched() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let writer = Writer::of_this_run("test".into(), "0".into());
    let rules = Rules { keep_files: Some(1), grace: SignedDuration::ZERO, ..Rules::default() };
    let pruned = prune(&*scene.store, &mut chain, &writer, &rules, Timestamp::now()).unwrap();
    assert_eq!(pruned.expired.len(), 1);
    assert!(pruned.objects >= 6, "two files with their lists and indexes: {pruned:?}");
    let left: Vec<_> =
        scene.objects().into_iter().filter(|path| path.to_str().unwrap().contains("/b.")).collect();
    assert!(
        !left.is_empty() && left.iter().all(|path| path.to_str().unwrap().contains("/b.000003/")),
        "{left:?}"
    );
    assert_eq!(scene.scrub().findings, []);
    let parts = plan(chain.history(), &Wanted::default()).unwrap();
    let to = scene.dir.path().join("fetched");
    fs::create_dir(&to).unwrap();
    let got = fetch(&scene.reader(), &PosixStorage, &to, &parts[0], 3, &|_| {}).unwrap().folder;
    let record = binlog::timeline::Timeline::read(&PosixStorage, &got).unwrap();
    let line = &record.purged[0];
    assert_eq!((&*line.from, &*line.through, line.files), ("b.000001", "b.000002", 2));
    assert_eq!(line.gtids, format!("{SERVER_UUID}:1-20"));
}

/// A reader that began before files expired, or was cached, has what it needs for the whole grace, and not a moment longer is
/// promised.
#[test]
fn a_fetch_that_began_before_files_expired_works_for_the_whole_grace() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    // What a running reader holds: the history as it was.
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let parts = plan(chain.history(), &Wanted::default()).unwrap();
    let writer = Writer::of_this_run("test".into(), "0".into());
    let grace = SignedDuration::from_hours(7 * 24);
    let rules = Rules { keep_files: Some(1), grace, ..Rules::default() };
    let began = Timestamp::now();
    let mut prune_at = |at: Timestamp| prune(&*scene.store, &mut chain, &writer, &rules, at).unwrap();
    assert_eq!(prune_at(began).expired.len(), 1);
    let fetched = |to: &str| {
        let to = scene.dir.path().join(to);
        fs::create_dir(&to).unwrap();
        let got = fetch(&scene.reader(), &PosixStorage, &to, &parts[0], 2, &|_| {}).unwrap();
        if got.lacking.len() == 2 {
            return false;
        }
        assert!(got.lacking.is_empty(), "{got:?}");
        let got = got.folder;
        let name = files[0].file_name().unwrap();
        assert!(fs::read(&files[0]).unwrap() == fs::read(got.join(name)).unwrap());
        true
    };
    assert!(fetched("at once"));
    assert_eq!(prune_at(began + grace - SignedDuration::from_secs(60)).objects, 0);
    assert!(fetched("in its last minute"));
    assert!(prune_at(began + grace + SignedDuration::from_secs(60)).objects >= 6);
    assert!(!fetched("behind it"), "the two files that went are named, and the third is there");
    assert_eq!(scene.scrub().findings, []);
}

#[test]
fn what_a_backup_needs_stays_whatever_the_rules_say() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let writer = Writer::of_this_run("test".into(), "0".into());
    let with = |points: &[String]| Rules {
        keep_files: Some(1),
        backups: points.iter().map(|point| Point::parse(point).unwrap()).collect(),
        grace: SignedDuration::ZERO,
        ..Rules::default()
    };
    let gone = |pruned: &[Change]| -> Vec<String> {
        let files = pruned.iter().flat_map(|change| match change {
            Change::Expired { files, .. } => files.clone(),
            _ => Vec::new(),
        });
        files.collect()
    };
    let second = format!("{SERVER_UUID}:1-15");
    let before = chain.history().clone();
    // One point of two that is not there: nothing goes.
    let lost = with(&[second.clone(), "b.000009:4".into()]);
    let refused = prune(&*scene.store, &mut chain, &writer, &lost, Timestamp::now()).unwrap_err();
    let PruneError::Lacks(text) = &refused else { panic!("{refused}") };
    assert!(text.contains("b.000009:4") && text.contains("nothing was pruned"), "{text}");
    assert_eq!((chain.history(), scene.scrub().findings), (&before, vec![]));
    let rules = with(&["b.000003:4".into(), second.clone()]);
    let planned = dry_run(&*scene.store, &mut chain, &rules, Timestamp::now()).unwrap();
    assert_eq!(gone(&planned.expired), ["b.000001"]);
    let kept: Vec<_> = planned.kept.iter().map(|keeps| (&*keeps.point, &*keeps.from, keeps.files)).collect();
    assert_eq!(kept, [("b.000003:4", "b.000003", 1), (&*second, "b.000002", 2)]);
    let pruned = prune(&*scene.store, &mut chain, &writer, &rules, Timestamp::now()).unwrap();
    assert_eq!(gone(&pruned.expired), ["b.000001"]);
    // Its backup is older than what is there now.
    let first = with(&[format!("{SERVER_UUID}:1-5")]);
    let refused = prune(&*scene.store, &mut chain, &writer, &first, Timestamp::now()).unwrap_err();
    assert!(refused.to_string().contains("the archive begins behind the point"), "{refused}");
    assert_eq!(scene.scrub().findings, []);
}

/// Whatever is uploaded and let go between runs: no object is passed over for ever.
#[test]
fn samples_one_after_another_come_to_all_objects() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let run =
        |from| scrub(&scene.reader(), SOURCE, Depth::Sample { every: 5, from }, false, &|_| {}).unwrap().read;
    let all = scene.scrub().objects;
    assert_eq!((0..5).map(run).sum::<usize>(), all);
    assert_eq!((7..12).map(run).sum::<usize>(), all, "counted up for ever");
}

#[test]
fn a_file_is_given_up_only_when_it_was_seen_in_the_store() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let folders = [scene.timeline.clone()];
    let places: Vec<_> = ["b.000001", "b.000002", "b.000003"].map(|name| (&*scene.timeline, name)).into();
    let lacking = |places: &[archive::upkeep::presence::Place<'_>]| {
        first_lacking(&scene.reader(), &PosixStorage, SOURCE, &folders, places).unwrap()
    };
    assert_eq!(lacking(&places[..2]), None);
    let (at, why) = lacking(&places).expect("the last one is written");
    assert!(at == 2 && why.contains("as a finished file"), "{why}");

    let chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let timeline = scene.timeline.file_name().unwrap().to_str().unwrap();
    let file = chain.history().file(timeline, "b.000002").unwrap();
    let seen = || look(&scene.reader(), SOURCE, timeline, file, 7).unwrap();
    assert_eq!(seen(), []);
    let object = scene.dir.path().join("store").join(&scene.reader().segments(file).unwrap()[0].object);
    let sound = fs::read(&object).unwrap();
    let mut bytes = sound.clone();
    bytes[20] ^= 1;
    for (harm, words) in [
        (Some(&bytes[..]), "SHA-256"),
        (Some(&sound[..9]), "has 9 bytes and was uploaded with"),
        (None, "missing"),
    ] {
        match harm {
            Some(bytes) => fs::write(&object, bytes).unwrap(),
            None => fs::remove_file(&object).unwrap(),
        }
        let found = seen();
        assert!(found.len() == 1 && found[0].to_string().contains(words), "{found:?}");
        let (at, why) = lacking(&places[..2]).unwrap();
        assert!(at == 1 && why.contains(words), "{why}");
    }
    fs::write(&object, sound).unwrap();
    // Another file of that name here, and one that is longer.
    let mut bytes = fs::read(&files[0]).unwrap();
    bytes.push(0);
    fs::write(&files[0], &bytes).unwrap();
    assert!(lacking(&places[..1]).unwrap().1.contains("and here it has"));
    bytes[30] ^= 1;
    fs::write(&files[0], &bytes).unwrap();
    assert!(lacking(&places[..1]).unwrap().1.contains("another file of this name"));
    // What has expired in the archive it does not lack.
    let writer = Writer::of_this_run("test".into(), "0".into());
    let rules = Rules { keep_files: Some(1), ..Rules::default() };
    let mut chain = chain;
    prune(&*scene.store, &mut chain, &writer, &rules, Timestamp::now()).unwrap();
    assert_eq!(lacking(&places[..2]), None);
}

#[test]
fn only_whole_transactions_up_to_the_durable_end_are_archived() {
    let scene = Scene::new();
    let files = scene.files(10);
    let whole = fs::read(&files[2]).unwrap();
    let mut archiver = scene.archiver();
    for offset in (200..whole.len() as u64).step_by(2500) {
        while archiver.step(Some(&scene.durable(offset)), true, Timestamp::now()).unwrap() != Step::Idle {}
        let Some(end) = archiver.end_of(&scene.timeline).filter(|end| end.file == "b.000003") else {
            continue;
        };
        assert!(end.offset <= offset && offset - end.offset < 3500, "{} of {offset}", end.offset);
    }
    // Each step left a small tail, and small tails become one when the file is finished.
    fs::write(scene.timeline.join("b.000004"), FileBuilder::new().finish()).unwrap();
    let durable = DurableEnd { file: "b.000004".into(), ..scene.durable(4) };
    while archiver.step(Some(&durable), true, Timestamp::now()).unwrap() != Step::Idle {}
    let chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let timeline = scene.timeline.file_name().unwrap().to_str().unwrap();
    let file = chain.history().file(timeline, "b.000003").unwrap().clone();
    assert!(file.sealed.is_some() && file.count() == 1, "{file:?}");
    assert_eq!(scene.scrub().findings, []);
}

/// Somebody has removed a commit. In its place a new one would part the history for good, and what the later ones name would be
/// nobody's.
#[test]
fn where_a_commit_is_gone_nothing_is_written_or_deleted() {
    let scene = Scene::new();
    let files = scene.files(40);
    scene.archive_all(&files[2]);
    let newest = Chain::open(&*scene.store, SOURCE).unwrap().history().seq;
    let is_of = |path: &std::path::PathBuf, seq: u64| path.ends_with(names::commit(SOURCE, seq));
    for seq in [1, 2, newest - 1] {
        let path = scene.objects().into_iter().find(|path| is_of(path, seq)).unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let there = scene.objects();
        let gone = format!("commit {seq}: it is gone, and commit {newest} is there");

        let error =
            scene.archiver().step(Some(&scene.durable(u64::MAX)), true, Timestamp::now()).unwrap_err();
        assert!(error.to_string().contains(&gone), "{error}");
        let error = scene.archiver().refresh().unwrap_err().to_string();
        assert!(error.contains(&gone), "{error}");
        let (mut chain, rules) = (Chain::open(&*scene.store, SOURCE).unwrap(), Rules::default());
        let late = Timestamp::now() + SignedDuration::from_hours(24 * 365);
        let writer = Writer { id: "w".into(), epoch: 0, host: "h".into(), version: "0".into() };
        for error in [
            dry_run(&*scene.store, &mut chain, &rules, late).unwrap_err(),
            prune(&*scene.store, &mut chain, &writer, &rules, late).unwrap_err(),
        ] {
            assert!(error.to_string().contains(&gone), "{error}");
        }
        let new = scene.dir.path().join(format!("new-{seq}"));
        fs::create_dir(&new).unwrap();
        let error = begin(&scene.reader(), &PosixStorage, &new, SOURCE, 1, &|_| ()).unwrap_err().to_string();
        assert!(error.contains(&gone), "{error}");
        assert_eq!(scene.objects(), there);
        // What is put back makes all of it sound again.
        fs::write(&path, bytes).unwrap();
        assert_eq!(scene.scrub().findings, []);
    }
}

/// One configuration on two machines: both sources have its name.
#[test]
fn two_sources_of_one_name_do_not_become_one_history() {
    let scene = Scene::new();
    let files = scene.files(40);
    scene.archive_all(&files[2]);
    let there = scene.objects();

    let stranger = "99999999-71ca-11e1-9e33-c80aa9429562";
    let folder = scene.dir.path().join("other").join(SOURCE);
    fs::create_dir_all(&folder).unwrap();
    let timeline = first_timeline(stranger).create(&PosixStorage, &folder, 1).unwrap();
    for name in ["b.000001", "b.000002"] {
        let file = FileBuilder::new().previous_gtids(&format!("{stranger}:1-7")).finish();
        fs::write(timeline.join(name), file).unwrap();
    }
    let mut archiver = scene.archiver_of(&folder);
    let durable = DurableEnd { timeline: timeline.clone(), file: "b.000002".into(), offset: 4 };
    let error = archiver.step(Some(&durable), true, Timestamp::now()).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, ArchiveError::Differs { .. }), "{said}");
    assert!(said.contains("the history of another source") && said.contains(stranger), "{said}");
    assert_eq!(scene.objects(), there);
}

#[test]
fn every_damage_is_found_and_named() {
    type Harm = fn(&Scene);
    let cases: &[(&str, &str, Harm)] = &[
        ("a flipped bit", "SHA-256", |scene| {
            let path = scene.object(".zst");
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
            fs::write(path, bytes).unwrap();
        }),
        ("a cut object", "bytes and was uploaded with", |scene| {
            let path = scene.object(".zst");
            let bytes = fs::read(&path).unwrap();
            fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
        }),
        ("a missing object", "the object is missing", |scene| fs::remove_file(scene.object(".zst")).unwrap()),
        ("a changed list", "not what was uploaded", |scene| {
            let path = scene.object(".sha256");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text.replace("0", "1")).unwrap();
        }),
        ("a missing list", "the object is missing", |scene| {
            fs::remove_file(scene.object(".sha256")).unwrap()
        }),
        ("a flipped bit in an index", "not those that its name says", |scene| {
            let path = scene.object(".segments.json.zst");
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
            fs::write(path, bytes).unwrap();
        }),
        ("an index in the place of another", "not those that its name says", |scene| {
            let objects = scene.objects();
            let mut indexes =
                objects.iter().filter(|path| path.to_str().unwrap().ends_with(".segments.json.zst"));
            fs::copy(indexes.next().unwrap(), indexes.next().unwrap()).unwrap();
        }),
        ("a missing index", "where the pieces of the file are", |scene| {
            fs::remove_file(scene.object(".segments.json.zst")).unwrap()
        }),
        ("one object in the place of another", "uploaded with", |scene| {
            let objects: Vec<_> = scene
                .objects()
                .into_iter()
                .filter(|path| path.extension().is_some_and(|e| e == "zst"))
                .collect();
            fs::copy(&objects[0], &objects[2]).unwrap();
        }),
        ("a replaced commit", "one of the two was replaced", |scene| {
            let path = scene.object("02.json");
            let text = fs::read_to_string(&path).unwrap().replace("\"host\": \"test\"", "\"host\": \"evil\"");
            fs::write(path, text).unwrap();
        }),
        ("a commit that is no JSON", "it is no commit", |scene| {
            fs::write(scene.object("02.json"), "{").unwrap()
        }),
        ("a missing commit", "does not follow", |scene| fs::remove_file(scene.object("02.json")).unwrap()),
        ("a stale epoch", "let a stale writer in", |scene| {
            let chain = Chain::open(&*scene.store, SOURCE).unwrap();
            let writer = Writer { id: "other".into(), epoch: 0, ..chain.history().writer.clone().unwrap() };
            let commit = Commit {
                format: FORMAT,
                seq: chain.history().seq + 1,
                previous: chain.history().hash.clone(),
                writer,
                at: Timestamp::now(),
                changes: Vec::<Change>::new(),
                signed: None,
            };
            let name = names::commit(SOURCE, commit.seq);
            let _ = scene.store.create(&name, commit.encode().bytes.into()).unwrap();
        }),
    ];
    for (what, words, harm) in cases {
        let scene = Scene::new();
        let files = scene.files(10);
        scene.archive_all(&files[2]);
        harm(&scene);
        let found = scene.scrub().findings;
        assert!(found.iter().any(|finding| finding.to_string().contains(words)), "{what}: {found:?}");
    }
}

#[test]
fn an_object_of_nobody_is_counted_and_harms_nothing() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let foreign = format!("{SOURCE}/0001-x/b.000001/anything");
    let _ = scene.store.create(&foreign, vec![1, 2, 3].into()).unwrap();
    let report = scene.scrub();
    assert_eq!((report.findings, report.unnamed, report.unnamed_bytes), (vec![], 1, 3));
}

/// What stands in the folder of search indexes, by file.
fn search_indexes(scene: &Scene) -> Vec<String> {
    let listed = scene.store.list(&names::search(SOURCE), None).unwrap();
    listed.into_iter().map(|meta| names::search_name(&meta.name).unwrap().file.to_owned()).collect()
}

/// Search indexes are nobody's objects for the chain, and go with their files; whoever misses one finds no damage.
#[test]
fn search_indexes_stand_beside_the_chain_and_go_with_their_files() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let mut archiver = scene.archiver();
    let durable = scene.durable(fs::metadata(&files[2]).unwrap().len());
    while archiver.step(Some(&durable), true, Timestamp::now()).unwrap() != Step::Idle {}
    let whole = archiver.whole_files();
    assert_eq!(whole.iter().map(|file| &*file.name).collect::<Vec<_>>(), ["b.000001", "b.000002"]);
    for file in &whole {
        assert_eq!(file.sha256, names::sha256(&fs::read(file.folder.join(&file.name)).unwrap()));
        let owner = Owner { source: SOURCE, timeline: &file.timeline, file: &file.name };
        put(&scene.uploader(), owner, &file.sha256, 1, file.name.as_bytes()).unwrap();
    }
    let owner = Owner { source: SOURCE, timeline: &whole[0].timeline, file: "b.000009" };
    put(&scene.uploader(), owner, &whole[0].sha256, 1, b"of a file that the archive never had").unwrap();

    let report = scene.scrub();
    assert_eq!((&report.findings, report.unnamed, report.search_indexes), (&vec![], 1, 2));
    assert_eq!(report.search_indexes_damaged, Vec::<String>::new());
    let listed = list(&*scene.store, SOURCE, &whole[0].timeline, 1).unwrap();
    for file in &whole {
        let found = &listed.of(&file.name)[0];
        assert_eq!(get(&scene.reader(), found, &file.sha256).unwrap(), file.name.as_bytes());
    }
    let damaged = scene.object(".v1.zst");
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[50] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let report = scene.scrub();
    assert_eq!((&report.findings, report.search_indexes_damaged.len()), (&vec![], 1));
    let shallow = scrub(&scene.reader(), SOURCE, Depth::Names, false, &|_| {}).unwrap();
    assert_eq!((shallow.search_indexes, shallow.search_indexes_damaged), (2, vec![]));

    // While the file that expires is kept for readers its index is.
    let rules =
        |grace| Rules { keep_files: Some(2), grace: SignedDuration::from_hours(grace), ..Rules::default() };
    let writer = Writer { id: scene::uuid(), epoch: 0, host: "test".into(), version: "0".into() };
    let now = Timestamp::now();
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let pruned = prune(&*scene.store, &mut chain, &writer, &rules(1), now).unwrap();
    assert_eq!((pruned.expired.len(), pruned.objects), (1, 0));
    assert_eq!(search_indexes(&scene), ["b.000001", "b.000002", "b.000009"]);
    assert_eq!(scene.scrub().search_indexes, 1);
    let later = now + SignedDuration::from_hours(1);
    let planned = dry_run(&*scene.store, &mut chain, &rules(1), later).unwrap();
    let pruned = prune(&*scene.store, &mut chain, &writer, &rules(1), later).unwrap();
    assert_eq!((planned.objects, pruned.is_behind), (pruned.objects, false));
    assert_eq!(search_indexes(&scene), ["b.000002"]);
    let report = scene.scrub();
    assert_eq!((report.findings, report.unnamed, report.search_indexes), (vec![], 0, 1));
}

#[test]
fn bytes_that_changed_on_the_disk_are_not_sealed_over_those_archived() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let mut bytes = fs::read(&files[2]).unwrap();
    bytes[500] ^= 1;
    fs::write(&files[2], &bytes).unwrap();
    fs::write(scene.timeline.join("b.000004"), FileBuilder::new().finish()).unwrap();
    let mut archiver = scene.archiver();
    let durable = DurableEnd { file: "b.000004".into(), ..scene.durable(4) };
    let error = loop {
        match archiver.step(Some(&durable), true, Timestamp::now()) {
            Ok(Step::Idle) => panic!("it was sealed"),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ArchiveError::Differs { .. }), "{error}");
    assert!(error.to_string().contains("Both are kept"), "{error}");
}

/// Another copy of the same server, whose last file has only just begun here while the archive has it already.
#[test]
fn a_file_that_has_only_begun_makes_no_other_timeline() {
    let scene = Scene::new();
    let files = scene.files(5);
    scene.archive_all(&files[2]);
    let folder = scene.dir.path().join("other").join(SOURCE);
    fs::create_dir_all(&folder).unwrap();
    let mut record = first_timeline(SERVER_UUID);
    record.began_at = "2026-01-02T03:04:06Z".into();
    let timeline = record.create(&PosixStorage, &folder, 1).unwrap();
    let other = Scene { dir: tempfile::tempdir().unwrap(), timeline, store: scene.store.clone() };
    for file in &files {
        fs::copy(file, other.timeline.join(file.file_name().unwrap())).unwrap();
    }
    let live = other.timeline.join("b.000003");
    fs::File::options().write(true).open(&live).unwrap().set_len(4).unwrap();
    let durable = other.durable(4);
    let mut archiver = other.archiver();
    while archiver.step(Some(&durable), true, Timestamp::now()).unwrap() != Step::Idle {}
    fs::copy(&files[2], &live).unwrap();
    other.archive_all(&live);
    let chain = Chain::open(&*scene.store, SOURCE).unwrap();
    assert_eq!(chain.history().timelines.keys().collect::<Vec<_>>(), [&format!("0001-{SERVER_UUID}")]);
}
