//! A store that is put back to an older state; snapshots that are damaged; files that lack; a prune that is taken back.

mod scene;

use archive::chain::commit::Writer;
use archive::chain::mark::{MARK_FILE, Mark};
use archive::chain::{Chain, ChainError};
use archive::fetch::{Wanted, fetch, plan};
use archive::names;
use archive::store::Store;
use archive::upkeep::presence::first_lacking;
use archive::upkeep::prune::{PruneError, Rules, dry_run, prune, undo, undoable};
use archive::writer::{ArchiveError, Archiver, DurableEnd, Step};
use binlog::storage::posix::PosixStorage;
use jiff::{SignedDuration, Timestamp};
use scene::{SOURCE, Scene};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// All objects of a store.
type Tree = BTreeMap<PathBuf, Vec<u8>>;

fn tree(scene: &Scene) -> Tree {
    scene.objects().into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// The store has these objects, and no other.
fn put(scene: &Scene, tree: &Tree) {
    scene.objects().iter().for_each(|path| fs::remove_file(path).unwrap());
    for (path, bytes) in tree {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn is_commit(path: &Path) -> bool {
    path.to_str().unwrap().contains("/commits/")
}

/// Everything that is durable is archived; how many commits were made.
fn catch_up(archiver: &mut Archiver, durable: &DurableEnd) -> Result<u64, ArchiveError> {
    let mut commits = 0;
    loop {
        match archiver.step(Some(durable), true, Timestamp::now())? {
            Step::Idle => return Ok(commits),
            Step::Committed { .. } => commits += 1,
            Step::Behind => {}
        }
    }
}

fn is_told(result: &Result<impl std::fmt::Debug, ArchiveError>) -> bool {
    matches!(result, Err(ArchiveError::Chain(ChainError::Older(_))))
}

/// A copy with a file more than its store had at first, and the store as it was then.
fn grown() -> (Scene, Archiver, Tree, DurableEnd) {
    let scene = Scene::new();
    let live = scene.files(10).remove(2);
    let len = fs::metadata(&live).unwrap().len();
    let mut archiver = scene.archiver().with_place("here".into());
    // The end of the second transaction of the last file, or any byte behind it.
    catch_up(&mut archiver, &scene.durable(len / 2)).unwrap();
    let older = tree(&scene);
    catch_up(&mut archiver, &scene.durable(len - 4000)).unwrap();
    archiver.remember().unwrap();
    let durable = scene.durable(len);
    (scene, archiver, older, durable)
}

#[test]
fn with_a_store_that_was_put_back_nobody_goes_on() {
    let (scene, mut running, older, durable) = grown();
    let full = tree(&scene);
    let other = {
        // Under the same name, from a copy of its own: as many commits, and other ones.
        let other = Scene::new();
        other.archive_all(&other.files(30)[2]);
        let (from, to) = (other.dir.path().to_owned(), scene.dir.path().to_owned());
        let moved = |(path, bytes): (PathBuf, Vec<u8>)| (to.join(path.strip_prefix(&from).unwrap()), bytes);
        tree(&other).into_iter().map(moved).collect::<Tree>()
    };
    let last = full.keys().rfind(|path| is_commit(path)).unwrap().clone();
    let mut without_last = full.clone();
    without_last.remove(&last).unwrap();
    let mut replaced = full.clone();
    replaced.insert(last.clone(), b"{}".to_vec());
    let ways = [
        ("older", &older),
        ("the last commit is gone", &without_last),
        ("the last commit is none", &replaced),
        ("empty", &Tree::new()),
        ("another source's", &other),
    ];
    for (way, there) in ways {
        put(&scene, there);
        let mut restarted = scene.archiver().with_place("here".into());
        let (running, restarted) = (catch_up(&mut running, &durable), catch_up(&mut restarted, &durable));
        // Who reads a commit that is none says that, in place of what it was.
        let is_none = way.ends_with("is none");
        for result in [&running, &restarted] {
            assert!(if is_none { result.is_err() } else { is_told(result) }, "{way}: {result:?}");
        }
        // What was uploaded for a commit that did not come is nobody's.
        let commits = |tree: &Tree| tree.keys().filter(|path| is_commit(path)).cloned().collect::<Vec<_>>();
        assert_eq!(commits(&tree(&scene)), commits(there), "{way}");
        let text = running.unwrap_err().to_string();
        assert!(is_none || text.contains("put back") && text.contains("docs/runbook.md"), "{text}");
    }
    // Both continue what is put back into it.
    put(&scene, &full);
    assert!(catch_up(&mut running, &durable).unwrap() > 0);
    assert_eq!(catch_up(&mut scene.archiver().with_place("here".into()), &durable).unwrap(), 0);
    assert_eq!(scene.scrub().findings, []);
}

/// An append looks for the commit before it: no refresh comes in between.
#[test]
fn an_append_looks_back() {
    let (scene, _, older, _) = grown();
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    put(&scene, &older);
    let writer = Writer::of_this_run("test".into(), "0".into());
    let error = chain.append(&*scene.store, &writer, Timestamp::now(), Vec::new()).unwrap_err();
    let ChainError::Older(what) = error else { panic!("{error}") };
    assert_eq!(what.seen, chain.history().seq);
    assert!(what.end > 0 && what.end < what.seen, "{what:?}");
    assert!(tree(&scene) == older);
}

/// The way out where the objects are lost: the memory of it goes, by an operator's hand.
#[test]
fn who_forgets_goes_on_from_what_is_there() {
    let (scene, _, older, durable) = grown();
    put(&scene, &older);
    let folder = scene.timeline.parent().unwrap();
    let begun = || scene.archiver().with_place("here".into());
    assert!(is_told(&catch_up(&mut begun(), &durable)));
    // The mark is of one place.
    assert_eq!(Mark::read(&PosixStorage, folder, "elsewhere").unwrap(), None);
    fs::remove_file(folder.join(MARK_FILE)).unwrap();
    assert!(catch_up(&mut begun(), &durable).unwrap() > 0);
    assert_eq!(scene.scrub().findings, [], "the disk had all of it");
    // One that cannot be read is no memory of nothing.
    fs::write(folder.join(MARK_FILE), "seq = 'nonsense'").unwrap();
    let error = catch_up(&mut begun(), &durable).unwrap_err().to_string();
    assert!(error.contains(MARK_FILE), "{error}");
}

/// Commits that a snapshot has go in time, and with them the one that was seen last; that is no older state.
#[test]
fn a_pruned_commit_is_not_one_that_is_gone() {
    let scene = Scene::new();
    let live = scene.files(10).remove(2);
    let len = fs::metadata(&live).unwrap().len();
    let begun = || scene.archiver().with_place("here".into());
    let mut slept = begun();
    catch_up(&mut slept, &scene.durable(len / 3)).unwrap();
    slept.remember().unwrap();
    for part in [len / 2, len - 4000, len] {
        let mut other = begun();
        other.make_snapshots(1);
        catch_up(&mut other, &scene.durable(part)).unwrap();
    }
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let writer = Writer::of_this_run("test".into(), "0".into());
    let rules = Rules { grace: SignedDuration::ZERO, ..Rules::default() };
    assert!(!prune(&*scene.store, &mut chain, &writer, &rules, Timestamp::now()).unwrap().commits.is_empty());
    for archiver in [&mut slept, &mut begun()] {
        catch_up(archiver, &scene.durable(len)).unwrap();
        assert_eq!(archiver.chain().unwrap().history().hash, chain.history().hash);
    }
    slept.remember().unwrap();
    // Of another archive that goes as far, the file at the end is not that of the mark.
    let other = Scene::new();
    other.archive_all(&other.files(5)[2]);
    put(&scene, &Tree::new());
    let mut of_other = other.archiver();
    let end = fs::metadata(other.timeline.join("b.000003")).unwrap().len();
    (0..40).for_each(|_| {
        of_other.make_snapshots(1);
        catch_up(&mut of_other, &other.durable(end)).unwrap();
    });
    let mut theirs = Chain::open(&*other.store, SOURCE).unwrap();
    prune(&*other.store, &mut theirs, &writer, &rules, Timestamp::now()).unwrap();
    for (path, bytes) in tree(&other) {
        let to = scene.dir.path().join(path.strip_prefix(other.dir.path()).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, bytes).unwrap();
    }
    assert!(is_told(&slept.refresh()), "a running one");
    assert!(is_told(&begun().refresh()), "one that is started again");
}

/// Another binlogd of the same copy has never seen the archive, goes on from the older state, and makes more commits than there were,
/// and snapshots of them. The archive looks whole, and whoever remembers what it was sees that it is another one.
#[test]
fn who_goes_on_without_memory_does_not_hide_that_it_was_put_back() {
    let (scene, mut running, older, durable) = grown();
    let end = running.chain().unwrap().history().seq;
    let folder = scene.timeline.parent().unwrap();
    let mark = fs::read(folder.join(MARK_FILE)).unwrap();
    let writer = Writer::of_this_run("test".into(), "0".into());
    let mut first = older.clone();
    first.retain(|path, _| !is_commit(path) || names::commit_seq(path.to_str().unwrap()) == Some(1));
    for commits in [end, end + 1, end + 9] {
        // Of commits that were deleted since, a finished file tells that it was uploaded a second time.
        for (older, is_pruned) in [(&older, false), (&first, false), (&first, true)] {
            put(&scene, older);
            fs::remove_file(folder.join(MARK_FILE)).unwrap();
            let mut forgetful = scene.archiver().with_place("here".into());
            catch_up(&mut forgetful, &durable).unwrap();
            while forgetful.chain().unwrap().history().seq < commits {
                forgetful.make_snapshots(1);
                catch_up(&mut forgetful, &durable).unwrap();
            }
            if is_pruned {
                let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
                let rules = Rules { grace: SignedDuration::ZERO, ..Rules::default() };
                prune(&*scene.store, &mut chain, &writer, &rules, Timestamp::now()).unwrap();
            }
            assert_eq!(scene.scrub().findings, [], "it looks whole");
            fs::write(folder.join(MARK_FILE), &mark).unwrap();
            let mut restarted = scene.archiver().with_place("here".into());
            for archiver in [&mut running, &mut restarted] {
                let result = catch_up(archiver, &durable);
                assert!(is_told(&result), "up to {commits}, pruned: {is_pruned}: {result:?}");
            }
        }
    }
}

/// Without the commits that they stand for, snapshots are the archive. Both are damaged: who runs has all of it in memory.
#[test]
fn damaged_snapshots_are_found_and_made_new() {
    let scene = Scene::new();
    let live = scene.files(10).remove(2);
    let durable = scene.durable(fs::metadata(&live).unwrap().len());
    let mut running = scene.archiver();
    running.make_snapshots(3);
    catch_up(&mut running, &durable).unwrap();
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let writer = Writer::of_this_run("test".into(), "0".into());
    let rules = Rules { grace: SignedDuration::ZERO, ..Rules::default() };
    prune(&*scene.store, &mut chain, &writer, &rules, Timestamp::now()).unwrap();
    running.refresh().unwrap();
    let snapshots =
        || scene.objects().into_iter().filter(|path| path.to_str().unwrap().contains("/snapshots/"));
    assert_eq!((scene.scrub().findings, snapshots().count()), (vec![], 2));
    let harm = |path: PathBuf| {
        let mut bytes = fs::read(&path).unwrap();
        bytes[30] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    // One of two: the archive is read as ever, and the next damage would be the end of it.
    harm(snapshots().next_back().unwrap());
    let report = scene.scrub();
    assert_eq!((report.findings.len(), report.snapshots_wanted), (1, 2), "{:?}", report.findings);
    assert!(report.findings[0].what.contains("/snapshots/") && report.files == 3, "{report:?}");
    harm(snapshots().next().unwrap());
    let report = scene.scrub();
    assert!(report.findings.len() >= 3 && report.snapshots_wanted == 2, "{report:?}");
    let error = Chain::open(&*scene.store, SOURCE).unwrap_err();
    assert!(matches!(error, ChainError::Unsound(_)), "{error}");

    running.make_snapshots(report.snapshots_wanted);
    assert_eq!(catch_up(&mut running, &durable).unwrap(), 2);
    let report = scene.scrub();
    assert_eq!((report.findings, report.files), (vec![], 3));
    assert_eq!(Chain::open(&*scene.store, SOURCE).unwrap().history(), running.chain().unwrap().history());
}

/// Commits at the end are gone, and a snapshot of them is there: who has never seen them is told all the same.
#[test]
fn a_snapshot_tells_of_commits_that_are_gone() {
    let scene = Scene::new();
    let live = scene.files(10).remove(2);
    let durable = scene.durable(fs::metadata(&live).unwrap().len());
    catch_up(&mut scene.archiver().with_snapshots_after(3), &durable).unwrap();
    let newest =
        scene.objects().into_iter().rfind(|path| path.to_str().unwrap().contains("/snapshots/")).unwrap();
    let seq = names::snapshot_seq(newest.to_str().unwrap()).unwrap();
    let mut gone = scene.objects();
    gone.retain(|path| is_commit(path) && names::commit_seq(path.to_str().unwrap()).unwrap() >= seq - 1);
    gone.iter().for_each(|path| fs::remove_file(path).unwrap());
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let what = format!("a snapshot of commit {seq}");
    assert_eq!(chain.beyond_a_hole(&*scene.store).unwrap(), Some(what.clone()));
    let error = catch_up(&mut scene.archiver(), &durable).unwrap_err().to_string();
    assert!(error.contains(&what), "{error}");
    let findings = scene.scrub().findings;
    assert!(findings.iter().any(|finding| finding.text.contains("last commit is not there")), "{findings:?}");
}

/// Every object of a file in turn is gone, or damaged: the other files come, and the one is named.
#[test]
fn what_is_sound_behind_a_damaged_object_is_fetched() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let parts = plan(chain.history(), &Wanted::default()).unwrap();
    let full = tree(&scene);
    let needed: Vec<&PathBuf> = full
        .keys()
        .filter(|path| {
            let path = path.to_str().unwrap();
            path.contains("/b.000002/") && path.ends_with(".zst")
        })
        .collect();
    assert_eq!(needed.len(), 2, "the bytes, and the index: {needed:?}");
    for (place, object) in needed.into_iter().enumerate() {
        for damaged in [None, Some(b"damaged".to_vec())] {
            let mut there = full.clone();
            there.remove(object);
            there.extend(damaged.iter().map(|bytes| (object.clone(), bytes.clone())));
            put(&scene, &there);
            let to = scene.dir.path().join(format!("{place}-{}", damaged.is_some()));
            fs::create_dir(&to).unwrap();
            let again = || fetch(&scene.reader(), &PosixStorage, &to, &parts[0], 2, &|_| {}).unwrap();
            let got = again();
            let name = format!("{}/b.000002", parts[0].timeline);
            assert_eq!(got.lacking.iter().map(|(file, _)| file).collect::<Vec<_>>(), [&name]);
            let is_same = |file: &Path| {
                fs::read(file).ok() == fs::read(got.folder.join(file.file_name().unwrap())).ok()
            };
            assert_eq!(files.iter().map(|file| is_same(file)).collect::<Vec<_>>(), [true, false, true]);
            assert!(!got.folder.join("b.000002").exists(), "nothing stands there under its name");
            put(&scene, &full);
            assert!(again().lacking.is_empty());
            assert!(files.iter().all(|file| is_same(file)));
        }
    }
}

#[test]
fn a_prune_is_taken_back_until_something_was_to_be_deleted() {
    let scene = Scene::new();
    let files = scene.files(10);
    scene.archive_all(&files[2]);
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    let before = chain.history().clone();
    let writer = Writer::of_this_run("test".into(), "0".into());
    let rules = Rules { keep_files: Some(1), ..Rules::default() };
    let began = Timestamp::now();
    assert!(undoable(chain.history()).is_empty());
    let planned = dry_run(&*scene.store, &mut chain, &rules, began).unwrap();
    let other = Rules { agreed: Some(Vec::new()), ..rules.clone() };
    let refused = prune(&*scene.store, &mut chain, &writer, &other, began).unwrap_err();
    assert!(matches!(refused, PruneError::Lacks(_)), "{refused}");
    let agreed = Rules { agreed: Some(planned.expired.clone()), ..rules.clone() };
    assert_eq!(prune(&*scene.store, &mut chain, &writer, &agreed, began).unwrap().expired, planned.expired);
    let expired = chain.history().clone();
    assert_eq!(expired.timelines.values().map(|of| of.files.len()).sum::<usize>(), 1);

    // An object that is gone all the same keeps all of it from coming back in name only.
    let object = scene.object(".sha256");
    let away = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    let refused = undo(&scene.reader(), &mut chain, &writer, began).unwrap_err().to_string();
    assert!(refused.contains("nothing is taken back") && refused.contains("missing"), "{refused}");
    fs::write(&object, away).unwrap();
    assert_eq!(undo(&scene.reader(), &mut chain, &writer, began).unwrap().unwrap().len(), 1);
    assert_eq!(chain.history().timelines, before.timelines);
    assert_eq!(Chain::open(&*scene.store, SOURCE).unwrap().history(), chain.history());
    assert_eq!(scene.scrub().findings, []);
    // The copy's files are in the archive again, as a purge wants it.
    let folders = [scene.timeline.clone()];
    let wanted: Vec<(&Path, &str)> = vec![(&scene.timeline, "b.000001"), (&scene.timeline, "b.000002")];
    assert_eq!(first_lacking(&scene.reader(), &PosixStorage, SOURCE, &folders, &wanted).unwrap(), None);

    let later = began + rules.grace + SignedDuration::from_secs(60);
    prune(&*scene.store, &mut chain, &writer, &rules, began).unwrap();
    assert!(prune(&*scene.store, &mut chain, &writer, &rules, later).unwrap().objects >= 6);
    assert!(undoable(chain.history()).is_empty(), "its objects are deleted");
    assert_eq!(undo(&scene.reader(), &mut chain, &writer, later).unwrap(), Some(vec![]));
    let listed = scene.store.list(&format!("{SOURCE}/"), None).unwrap();
    assert!(!listed.iter().any(|meta| meta.name.contains("/b.000001/")));
}
