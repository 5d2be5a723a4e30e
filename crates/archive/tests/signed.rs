//! Commits that are signed: what somebody can do who may write to the store, holds no key of a writer, and makes all hashes fit.

mod scene;

use archive::chain::commit::{Change, Commit, FORMAT, Writer};
use archive::chain::mark::MARK_FILE;
use archive::chain::statement::{Held, Statement, newest};
use archive::chain::trust::{Signing, Trust};
use archive::chain::{Appended, Chain, ChainError};
use archive::keys::Identities;
use archive::keys::signing::{SigningKey, VerifyingKey};
use archive::names;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::Store;
use archive::upkeep::prune::{Rules, prune};
use archive::upkeep::scrub::{Depth, Report, scrub};
use archive::writer::{ArchiveError, Archiver, Step};
use base64::Engine as _;
use codec::event::ChecksumAlgorithm;
use jiff::{SignedDuration, Timestamp};
use scene::{SOURCE, Scene};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// The key that is made of one byte, as a file of OpenSSL has it.
fn key(of: u8) -> SigningKey {
    let mut der = vec![0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    der.extend([of; 32]);
    let body = base64::prelude::BASE64_STANDARD.encode(der);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sign.key");
    fs::write(&path, format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    SigningKey::read(&path).unwrap()
}

fn public(of: u8) -> VerifyingKey {
    key(of).public()
}

/// The writer's, one that came after it, and one of nobody here.
const OURS: u8 = 1;
const NEXT: u8 = 2;
const EVIL: u8 = 66;

fn signing(of: u8, others: &[u8]) -> Signing {
    Signing::new(Some(key(of)), &others.iter().map(|of| public(*of)).collect::<Vec<_>>())
}

/// Everything that is on the disk is archived; how many commits were made.
fn catch_up(scene: &Scene, archiver: &mut Archiver) -> Result<u64, ArchiveError> {
    let len = fs::metadata(scene.timeline.join("b.000003")).unwrap().len();
    let mut commits = 0;
    loop {
        match archiver.step(Some(&scene.durable(len)), true, Timestamp::now())? {
            Step::Idle => return Ok(commits),
            Step::Committed { .. } => commits += 1,
            Step::Behind => {}
        }
    }
}

fn archived(signing: &Signing) -> Scene {
    let scene = Scene::new();
    scene.files(10);
    assert!(catch_up(&scene, &mut scene.archiver().with_signing(signing.clone())).unwrap() >= 3);
    scene
}

/// One transaction more in the last file: something to be archived.
fn grow(scene: &Scene) {
    let path = scene.timeline.join("b.000003");
    let number = 31 + fs::metadata(&path).unwrap().len() / 3000;
    let builder = binlog::testing::FileBuilder::from_bytes(fs::read(&path).unwrap());
    fs::write(&path, builder.transaction(number, 3000).finish()).unwrap();
}

fn reader(scene: &Scene, believed: &[u8]) -> Reader {
    let trust = Trust::required(believed.iter().map(|of| public(*of)));
    Reader { store: scene.store.clone(), opener: Arc::new(Opener::new(Identities::new()).trusting(trust)) }
}

fn verified(scene: &Scene, believed: &[u8]) -> Report {
    scrub(&reader(scene, believed), SOURCE, Depth::All, true, &|_| {}).unwrap()
}

/// What is found, in words.
fn found(scene: &Scene, believed: &[u8]) -> String {
    let findings = verified(scene, believed).findings;
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

/// A row of a finished file is another one, and the checksum of its event fits.
fn change_a_row(scene: &Scene) {
    let path = scene.timeline.join("b.000002");
    let mut bytes = fs::read(&path).unwrap();
    let mut at = 4;
    loop {
        let len = u32::from_le_bytes(bytes[at + 9..at + 13].try_into().unwrap()) as usize;
        if len > 3000 {
            bytes[at + len / 2] ^= 1;
            ChecksumAlgorithm::Crc32.put(&mut bytes[at..at + len]);
            break;
        }
        at += len;
    }
    fs::write(&path, bytes).unwrap();
}

/// The forger runs binlogd on a copy of the copy: every object, list, index and commit fits the next.
#[test]
fn a_row_that_was_changed_with_all_hashes_made_to_fit_is_found() {
    let genuine = archived(&signing(OURS, &[]));
    assert_eq!(found(&genuine, &[OURS]), "");
    assert_eq!(verified(&genuine, &[OURS]).signed_since, Some(1));
    for (forger, whose) in
        [(None, "it is not signed".to_owned()), (Some(EVIL), format!("it is signed by {}", public(EVIL)))]
    {
        let forged = Scene::new();
        forged.files(10);
        change_a_row(&forged);
        let signing = forger.map_or_else(Signing::default, |of| signing(of, &[]));
        catch_up(&forged, &mut forged.archiver().with_signing(signing)).unwrap();
        let name = forged.timeline.join("b.000002");
        let here = genuine.timeline.join("b.000002");
        assert_ne!(fs::read(&name).unwrap(), fs::read(here).unwrap());
        assert_eq!(forged.scrub().findings, [], "nothing else tells");
        let end = reader(&forged, &[]).chain(SOURCE).unwrap().history().seq;
        let told = found(&forged, &[OURS]);
        assert!(
            told.contains(&format!("{}: {whose}, and no commit before it", names::commit(SOURCE, end))),
            "{told}"
        );
        // Whoever reads in order to act is told the same.
        assert!(matches!(reader(&forged, &[OURS]).chain(SOURCE), Err(ChainError::Unsound(_))));
    }
    // Another source of the same writer is not this one.
    let folder = genuine.dir.path().join("store");
    fs::rename(folder.join(SOURCE), folder.join("stock")).unwrap();
    let error = Chain::open(&*genuine.store, "stock").unwrap_err().to_string();
    assert!(error.contains("commit 1: it is signed as one of source \"shop\""), "{error}");
}

/// What stands in the last commit, which no other one names.
#[test]
fn a_commit_of_somebody_else_is_found() {
    let last = |scene: &Scene| {
        let end = Chain::open(&*scene.store, SOURCE).unwrap().history().seq;
        (end, scene.dir.path().join("store").join(names::commit(SOURCE, end)))
    };
    let put = |path: &PathBuf, commit: &Commit| fs::write(path, commit.encode().bytes).unwrap();
    let read = |path: &PathBuf| Commit::decode(&fs::read(path).unwrap()).unwrap();

    // A byte of it is changed.
    let scene = archived(&signing(OURS, &[]));
    let (end, path) = last(&scene);
    let mut commit = read(&path);
    commit.writer.host = "evil".into();
    put(&path, &commit);
    let told = found(&scene, &[]);
    assert!(
        told.contains(&names::commit(SOURCE, end)) && told.contains("its signature is not one that"),
        "{told}"
    );
    // Its signature is cut off.
    commit.signed = None;
    put(&path, &commit);
    let told = found(&scene, &[]);
    assert!(told.contains("it is not signed, and the one before it is"), "{told}");

    // One that nobody signed comes behind it, or one that is signed by somebody else.
    for forger in [None, Some(EVIL)] {
        let scene = archived(&signing(OURS, &[]));
        let (end, path) = last(&scene);
        let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
        let gone = Change::Expired {
            timeline: chain.history().timelines.keys().next().unwrap().clone(),
            files: vec!["b.000001".into()],
            why: "evil".into(),
        };
        let writer = Writer::of_this_run("evil".into(), "0".into());
        let refused = chain.append(&*scene.store, &writer, Timestamp::now(), vec![gone.clone()]);
        assert_eq!(refused, Err(ChainError::NoKey), "who has no key by mistake is told");
        match forger {
            Some(of) => {
                let done = chain.signing(Some(Arc::new(key(of)))).append(
                    &*scene.store,
                    &writer,
                    Timestamp::now(),
                    vec![gone],
                );
                assert_eq!(done, Ok(Appended::Done));
                assert_eq!(scene.scrub().findings, []);
            }
            None => {
                let history = chain.history();
                let before = history.writer.clone().unwrap();
                let writer = Writer { epoch: before.epoch + 1, ..writer };
                let commit = Commit {
                    format: FORMAT,
                    seq: end + 1,
                    previous: history.hash.clone(),
                    writer,
                    at: Timestamp::now(),
                    changes: vec![gone],
                    signed: None,
                };
                put(
                    &path.with_file_name(names::commit(SOURCE, end + 1).rsplit('/').next().unwrap()),
                    &commit,
                );
                assert!(found(&scene, &[]).contains("it is not signed, and the one before it is"));
            }
        }
        let told = found(&scene, &[OURS]);
        assert!(told.contains(&names::commit(SOURCE, end + 1)), "{told}");
        assert!(forger.is_none() || told.contains("it is a foreign one"), "{told}");
        // The writer does not go on behind it.
        grow(&scene);
        let error =
            catch_up(&scene, &mut scene.archiver().with_signing(signing(OURS, &[]))).unwrap_err().to_string();
        assert!(error.contains(&format!("commit {}: it is ", end + 1)), "{error}");
    }
}

#[test]
fn a_store_that_was_put_back_is_older_than_what_was_kept() {
    let scene = Scene::new();
    scene.files(10);
    let mut archiver = scene.archiver().with_place("here".into()).with_signing(signing(OURS, &[]));
    catch_up(&scene, &mut archiver).unwrap();
    let older: Vec<(PathBuf, Vec<u8>)> =
        scene.objects().into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    grow(&scene);
    catch_up(&scene, &mut archiver).unwrap();
    archiver.remember().unwrap();
    let report = verified(&scene, &[OURS]);
    let (seq, hash) = report.newest.clone();
    let bytes = newest(&*scene.store, SOURCE, (seq, &hash)).unwrap().unwrap();
    let file = scene.dir.path().join("newest");
    fs::write(&file, &bytes).unwrap();
    let [file, data] = [file, scene.dir.path().join("data")].map(|path| path.display().to_string());
    let written = format!("{seq}:{}", hash.to_uppercase());
    let trust = |of: u8| Trust::required([public(of)]);
    let all = [&file, &data, &written]
        .map(|argument| Statement::read(argument, SOURCE, "here", &trust(OURS)).unwrap());
    let held = |scene: &Scene| {
        let chain = reader(scene, &[OURS]).chain(SOURCE).unwrap();
        all.clone().map(|statement| statement.held(&*scene.store, SOURCE, chain.history()).unwrap())
    };
    assert_eq!(held(&scene), [Held::Yes; 3]);
    let full = scene.objects();
    full.iter().for_each(|path| fs::remove_file(path).unwrap());
    older.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    assert_eq!(found(&scene, &[OURS]), "", "it is sound, and signed");
    assert_eq!(held(&scene), [Held::No; 3]);
    // Somebody with no memory goes on from there, over the same number.
    fs::remove_file(scene.timeline.parent().unwrap().join(MARK_FILE)).unwrap();
    let mut forgetful = scene.archiver().with_signing(signing(OURS, &[]));
    for _ in 0..3 {
        grow(&scene);
        forgetful.make_snapshots(1);
        catch_up(&scene, &mut forgetful).unwrap();
    }
    assert_eq!(held(&scene), [Held::No; 3]);
    // Of a commit that was pruned only the number is left.
    let mut chain = reader(&scene, &[OURS]).chain(SOURCE).unwrap().signing(Some(Arc::new(key(OURS))));
    let rules = Rules { grace: SignedDuration::ZERO, ..Rules::default() };
    let writer = Writer::of_this_run("test".into(), "0".into());
    assert!(!prune(&*scene.store, &mut chain, &writer, &rules, Timestamp::now()).unwrap().commits.is_empty());
    assert_eq!(held(&scene), [Held::Pruned; 3]);
    assert_eq!(found(&scene, &[OURS]), "");

    let read =
        |argument: &str, source: &str, of| Statement::read(argument, source, "here", &trust(of)).unwrap_err();
    assert!(read(&file, SOURCE, EVIL).contains("none of --signed-by has signed it"));
    assert!(read(&file, "stock", OURS).contains("it is of source \"shop\""));
    assert!(read("7:abc", SOURCE, OURS).contains("no SHA-256"));
    assert!(read(&data, SOURCE, OURS).contains("in which a copy remembers here"));
    let text = String::from_utf8(bytes).unwrap().replace("\"host\": \"test\"", "\"host\": \"evil\"");
    fs::write(&file, text).unwrap();
    assert!(read(&file, SOURCE, OURS).contains("its signature is not one that"));
}

/// Signing begins, the key is changed or lost, and another binlogd has a key of its own.
#[test]
fn keys_begin_change_and_stand_beside_each_other() {
    let scene = archived(&Signing::default());
    let unsigned = Chain::open(&*scene.store, SOURCE).unwrap().history().seq;
    assert!(found(&scene, &[OURS]).contains("it is not signed, and no commit before it is signed"));
    let goes_on = |signing: Signing| {
        grow(&scene);
        catch_up(&scene, &mut scene.archiver().with_signing(signing)).map_err(|error| error.to_string())
    };
    assert!(goes_on(signing(OURS, &[])).unwrap() > 0);
    assert_eq!(verified(&scene, &[OURS]).signed_since, Some(unsigned + 1));
    assert_eq!(found(&scene, &[OURS]), "", "what came before is covered");
    let error = goes_on(Signing::default()).unwrap_err();
    assert!(error.contains("here is no key to sign the next one with"), "{error}");

    // Another key: lost or not, the old public key is named until the new one has signed.
    let changed = unsigned + 2;
    let error = goes_on(signing(NEXT, &[])).unwrap_err();
    assert!(error.contains(&format!("it is signed by {}, and no commit before it", public(OURS))), "{error}");
    assert!(goes_on(signing(NEXT, &[OURS])).unwrap() > 0);
    assert!(goes_on(signing(NEXT, &[])).unwrap() > 0);
    for (believed, since) in [(&[NEXT][..], Some(changed)), (&[OURS, NEXT], Some(unsigned + 1))] {
        assert_eq!(found(&scene, believed), "");
        assert_eq!(verified(&scene, believed).signed_since, since);
    }
    // Whoever has stolen the old key makes nothing that is believed.
    assert!(found(&scene, &[OURS]).contains("it is a foreign one"));

    // Two writers at once.
    let mut one = scene.archiver().with_signing(signing(OURS, &[NEXT]));
    let mut other = scene.archiver().with_signing(signing(NEXT, &[OURS]));
    let mut deaf = scene.archiver().with_signing(signing(NEXT, &[]));
    catch_up(&scene, &mut deaf).unwrap();
    for _ in 0..2 {
        for archiver in [&mut one, &mut other] {
            grow(&scene);
            assert!(catch_up(&scene, archiver).unwrap() > 0);
        }
    }
    assert_eq!(found(&scene, &[OURS, NEXT]), "");
    let error = deaf.refresh().unwrap_err().to_string();
    assert!(error.contains("it is a foreign one"), "{error}");
}

/// Commits are gone, and a snapshot stands for them: the one that a signed commit names, not one that was put beside it.
#[test]
fn a_made_up_snapshot_stands_for_nothing() {
    let scene = Scene::new();
    scene.files(10);
    let mut archiver = scene.archiver().with_signing(signing(OURS, &[]));
    for _ in 0..3 {
        archiver.make_snapshots(1);
        catch_up(&scene, &mut archiver).unwrap();
        grow(&scene);
    }
    catch_up(&scene, &mut archiver).unwrap();
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap().signing(Some(Arc::new(key(OURS))));
    let rules = Rules { grace: SignedDuration::ZERO, ..Rules::default() };
    let writer = Writer::of_this_run("test".into(), "0".into());
    assert!(!prune(&*scene.store, &mut chain, &writer, &rules, Timestamp::now()).unwrap().commits.is_empty());
    assert_eq!(found(&scene, &[OURS]), "");
    let real = reader(&scene, &[OURS]).chain(SOURCE).unwrap().history().clone();

    // All of it as of the newest commit, whose hash fits, and another hash of a file.
    let sealed = real.timelines.values().next().unwrap().files[1].sealed.clone().unwrap();
    let json = serde_json::to_string(&real).unwrap().replace(&sealed.sha256, &names::sha256(b"another file"));
    let bytes = zstd::bulk::compress(json.as_bytes(), 3).unwrap();
    let name = names::snapshot(SOURCE, real.seq, &names::sha256(&bytes));
    let _ = scene.store.create(&name, bytes.into()).unwrap();
    assert_ne!(
        *Chain::open(&*scene.store, SOURCE).unwrap().history(),
        real,
        "who believes everybody is deceived"
    );
    assert_eq!(*reader(&scene, &[OURS]).chain(SOURCE).unwrap().history(), real);
    for believed in [&[][..], &[OURS]] {
        let told = found(&scene, believed);
        assert!(told.contains(&name) && told.contains("is not what the commits add up to"), "{told}");
    }
    // Nor does the writer take it when it is started again.
    let mut again = scene.archiver().with_signing(signing(OURS, &[]));
    again.refresh().unwrap();
    assert_eq!(*again.chain().unwrap().history(), real);
}

/// All signatures are taken away, the chain is made anew of the same objects, and the commit that a copy remembers is pruned.
#[test]
fn a_copy_remembers_that_commits_were_signed() {
    let scene = Scene::new();
    scene.files(10);
    let begun = || scene.archiver().with_place("here".into()).with_signing(signing(OURS, &[]));
    let mut archiver = begun();
    catch_up(&scene, &mut archiver).unwrap();
    archiver.remember().unwrap();
    let mut commits: Vec<PathBuf> =
        scene.objects().into_iter().filter(|path| path.to_str().unwrap().contains("/commits/")).collect();
    commits.sort();
    let old: Vec<Commit> =
        commits.iter().map(|path| Commit::decode(&fs::read(path).unwrap()).unwrap()).collect();
    commits.iter().for_each(|path| fs::remove_file(path).unwrap());
    let mut chain = Chain::open(&*scene.store, SOURCE).unwrap();
    for commit in old {
        let done = chain.append(&*scene.store, &commit.writer, commit.at, commit.changes);
        assert_eq!(done, Ok(Appended::Done));
    }
    let folder = scene.timeline.parent().unwrap();
    let mark = fs::read(folder.join(MARK_FILE)).unwrap();
    let mut forger = scene.archiver();
    for _ in 0..3 {
        grow(&scene);
        forger.make_snapshots(1);
        catch_up(&scene, &mut forger).unwrap();
    }
    let rules = Rules { grace: SignedDuration::ZERO, ..Rules::default() };
    let writer = Writer::of_this_run("test".into(), "0".into());
    chain.refresh(&*scene.store).unwrap();
    prune(&*scene.store, &mut chain, &writer, &rules, Timestamp::now()).unwrap();
    assert_eq!(scene.scrub().findings, [], "it looks whole");
    fs::write(folder.join(MARK_FILE), mark).unwrap();
    let error = catch_up(&scene, &mut begun()).unwrap_err().to_string();
    assert!(error.contains("which this copy has seen there, was"), "{error}");
}
