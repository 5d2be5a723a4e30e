//! The archive is verified beside the uploads, files are given up only when they were seen in it, and backups keep theirs.

use super::place::{Fetched, PATIENCE, Place, folder, wait_archived};
use super::{MYSQL, write};
use crate::common::Server;
use crate::common::compare::{binary_logs, copied_files};
use crate::common::daemon::Daemon;
use crate::common::pair::gtid_executed;
use crate::common::readers::make_account;
use crate::common::workload;
use archive::chain::commit::Writer;
use archive::store::Store;
use archive::store::remote::Folder as FolderStore;
use archive::writer::upload::{Permits, Uploader};
use archive::writer::{Archiver, DurableEnd, Step};
use binlog::storage::posix::PosixStorage;
use codec::event::ChecksumAlgorithm;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

/// All of the archive is read each second.
const ALWAYS: &str = "verify_interval = '1s'\nverify_sample = 1\n";

/// A source, all of which is in the archive.
fn archived(place: &Place, keys: &str) -> (Server, Daemon) {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    workload::run(&source, "schema", &workload::schema("d", 2));
    let config = place.config_with(&source, keys, "");
    let daemon = Daemon::start_from_in(&place.environment(), "", &config);
    write(&source);
    wait_archived(&daemon, &source);
    (source, daemon)
}

/// Objects of files, by what their names contain and end with.
fn objects(folder: &Path, part: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.to_str().expect("text").to_owned();
            match path.is_dir() {
                true => folders.push(path),
                false if name.contains(part) && name.ends_with(ending) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// The first object of a finished file. Small ones that were joined since stand beside it, and nobody reads them any more.
fn first_listed(folder: &Path, file: &str) -> PathBuf {
    let list = objects(folder, file, ".sha256").remove(0);
    let text = std::fs::read_to_string(&list).expect("a list");
    let line = text.lines().find(|line| !line.starts_with('#')).expect("an object");
    list.with_file_name(line.split_whitespace().last().expect("a name"))
}

fn flip(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("an object");
    let mut harmed = bytes.clone();
    let middle = harmed.len() / 2;
    harmed[middle] ^= 1;
    std::fs::write(path, harmed).expect("a file");
    bytes
}

fn metric(daemon: &Daemon, name: &str) -> f64 {
    let mut answer = ureq::get(format!("http://{}/metrics", daemon.admin_address())).call().expect("metrics");
    let text = answer.body_mut().read_to_string().expect("text");
    let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")));
    line.unwrap_or_else(|| panic!("{name}: {text}"))
        .rsplit(' ')
        .next()
        .expect("a value")
        .parse()
        .expect("one")
}

fn findings(source: &Value) -> u64 {
    source["archive"]["verify"]["findings"].as_u64().unwrap_or(0)
}

fn table(daemon: &Daemon) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let output = command.args(["status", "--data-dir"]).arg(daemon.data_dir()).env("NO_COLOR", "1").output();
    String::from_utf8_lossy(&output.expect("it runs").stdout).into_owned()
}

#[test]
fn damage_in_the_archive_is_found_beside_the_uploads_and_remembered() {
    let place = Place::folder();
    let (source, mut daemon) = archived(&place, ALWAYS);
    let verified = |source: &Value| {
        let verify = &source["archive"]["verify"];
        verify["objects_read"].as_u64() > Some(4) && verify["findings"] == 0
    };
    let status = daemon.wait_until(verified, PATIENCE);
    assert_eq!(status["archive"]["verify"]["objects_opened"], 0, "no key was given: {status:#}");
    assert!(table(&daemon).contains("no damage, "), "{}", table(&daemon));
    assert_eq!(metric(&daemon, "binlogd_archive_findings"), 0.0);
    assert!(metric(&daemon, "binlogd_archive_verify_last_run_timestamp_seconds") > 1.7e9);

    let harmed = first_listed(&place.root(), "mysql-bin.000002/");
    let bytes = flip(&harmed);
    let status = daemon.wait_until(|source| findings(source) == 1, PATIENCE);
    let finding = &status["archive"]["verify"]["first_findings"][0];
    let name = harmed.strip_prefix(place.root()).expect("below it").to_str().expect("text");
    assert_eq!(finding["object"], name, "{status:#}");
    assert!(finding["range"].as_str().expect("a range").contains("mysql-bin.000002 0.."), "{status:#}");
    assert!(finding["text"].as_str().expect("a text").contains("SHA-256"), "{status:#}");
    let verdict = &status["verdict"];
    assert_eq!(verdict["level"], "critical", "{verdict:#}");
    // Beside that of semi-sync, which is off here.
    let problems = verdict["problems"].as_array().expect("a list");
    let is_told = |problem: &Value| {
        let text = problem["text"].as_str().expect("a text");
        text.contains("The archive is damaged") && text.contains("mysql-bin.000002")
    };
    assert!(problems.iter().any(is_told), "{verdict:#}");
    assert_eq!(metric(&daemon, "binlogd_archive_findings"), 1.0);
    assert!(table(&daemon).contains("DAMAGED, 1 found"), "{}", table(&daemon));
    assert!(daemon.log().contains("the archive is damaged: "), "{}", daemon.log());

    // A restart does not make it sound, nor is everything read again before it is due.
    daemon.terminate();
    let config = |keys: &str| place.config_with(&source, keys, "");
    daemon.write_config(&config("verify_interval = '1d'\nverify_sample = 1\n"));
    let remembered = daemon.data_dir().join("default/archive_verify.toml");
    let text = std::fs::read_to_string(&remembered).expect("what is remembered");
    let due = text.lines().find(|line| line.starts_with("due = ")).expect("when").to_owned();
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(20);
    std::fs::write(&remembered, text.replace(&due, &format!("due = \"{later}\""))).expect("a file");
    let asked = jiff::Timestamp::now();
    daemon.restart(&[]);
    let status = daemon.wait_until(|source| findings(source) == 1, PATIENCE);
    let at = |status: &Value| -> jiff::Timestamp {
        status["archive"]["verify"]["at"].as_str().expect("a time").parse().expect("a time")
    };
    assert!(at(&status) < asked, "{status:#}");

    // It is put back, and the next run says so.
    std::fs::write(&harmed, bytes).expect("a file");
    daemon.terminate();
    daemon.write_config(&config(ALWAYS));
    daemon.restart(&[]);
    daemon.wait_until(|source| verified(source) && at(source) >= asked, PATIENCE);
    wait_archived(&daemon, &source);
    place.assert_sound();
    let key = folder();
    let private = key.path().join("sign.key");
    openssl(&format!("genpkey -algorithm ed25519 -out {}", private.display()));
    daemon.terminate();
    daemon.write_config(&config(&format!("{ALWAYS}sign_key = '{}'\n", private.display())));
    daemon.restart(&[]);
    a_signed_history_cannot_be_forged(&place, &source, &mut daemon, key.path());
    daemon.terminate();
    a_signed_backup_cannot_be_changed(&place, &source, key.path());
    // Without the key nobody goes on.
    daemon.write_config(&config(ALWAYS));
    daemon.restart(&[]);
    source.sql("INSERT INTO d.t0 (k) VALUES (1)");
    let is_told = |source: &Value| {
        source["archive"]["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("here is no key to sign"))
    };
    daemon.wait_until(is_told, PATIENCE);
}

fn openssl(arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).output().expect("openssl runs");
    assert!(output.status.success(), "{arguments}: {output:?}");
}

/// A row is changed and all hashes made to fit; the store is put back. What came before the key is covered.
fn a_signed_history_cannot_be_forged(place: &Place, source: &Server, daemon: &mut Daemon, dir: &Path) {
    const PAID: &str = "pay 100 to alice";
    const FORGED: &str = "pay 100 to mally";
    let [public, kept, private] =
        ["sign.pub", "kept", "sign.key"].map(|name| dir.join(name).display().to_string());
    openssl(&format!("pkey -in {private} -pubout -out {public}"));
    let all = std::fs::read_to_string(&public).expect("a public key");
    let line = all.lines().nth(1).expect("a key").to_owned();
    daemon.wait_log(&format!("the public key is {line}"), PATIENCE);
    source.sql(&format!(
        "CREATE TABLE d.paid (t TEXT); INSERT INTO d.paid VALUES ('{PAID}'); FLUSH BINARY LOGS"
    ));
    wait_archived(daemon, source);
    let said = place.run("verify", &["--signed-by", &public, "--newest-to", &kept]);
    assert!(said.contains("no damage") && said.contains("signed: all commits from "), "{said}");
    assert!(said.contains("what came before is as commit"), "{said}");

    // With the stock tool, as the handbook has it.
    let script = "head -c -96 $f > message && tail -c 96 $f | head -c 88 | base64 -d > signature
        openssl pkeyutl -verify -rawin -pubin -inkey sign.pub -in message -sigfile signature";
    let status = Command::new("sh").args(["-c", script]).current_dir(dir).env("f", &kept).status();
    assert!(status.expect("sh runs").success());

    daemon.terminate();
    let genuine = dir.join("genuine");
    std::fs::rename(place.root(), &genuine).expect("the archive is moved");
    forge(&daemon.timeline_dir(), &place.root(), PAID, FORGED);
    let said = place.run("verify", &[]);
    assert!(said.contains("no damage"), "nothing else tells: {said}");
    for key in [&public, &line] {
        let said = place.run_failing("verify", &["--signed-by", key]);
        assert!(
            said.contains("DAMAGED") && said.contains("it is not signed, and no commit before it"),
            "{said}"
        );
    }
    let to = dir.join("to").display().to_string();
    let said = place.run_failing("fetch", &["--to", &to, "--signed-by", &public]);
    assert!(said.contains("it is not signed, and no commit before it"), "{said}");
    place.run("fetch", &["--to", &to]);
    assert_eq!(objects_with(Path::new(&to), FORGED), 1, "who does not ask is deceived");

    // The store as it was, and what comes after it; then it is put back to the former.
    std::fs::remove_dir_all(place.root()).expect("the forged one");
    std::fs::rename(&genuine, place.root()).expect("the genuine one");
    let older = dir.join("older");
    let copied = Command::new("cp").arg("-a").arg(place.root()).arg(&older).status().expect("cp runs");
    assert!(copied.success());
    daemon.restart(&[]);
    source.sql("INSERT INTO d.paid VALUES ('later'); FLUSH BINARY LOGS");
    wait_archived(daemon, source);
    let asked = ["--signed-by", &*public, "--not-before", &kept, "--newest-to", &kept];
    place.run("verify", &asked);
    // What the copy remembers is on the disk when it ends.
    daemon.terminate();
    let newer = dir.join("newer");
    std::fs::rename(place.root(), &newer).expect("the archive is moved");
    std::fs::rename(&older, place.root()).expect("the older one");
    assert!(place.run("verify", &["--signed-by", &public]).contains("no damage"), "it is sound");
    let data = daemon.data_dir().display().to_string();
    for known in [&kept, &data] {
        let said = place.run_failing("verify", &["--signed-by", &public, "--not-before", known]);
        assert!(said.contains("it was put back to an older state: commit "), "{said}");
    }
    std::fs::remove_dir_all(place.root()).expect("the older one");
    std::fs::rename(&newer, place.root()).expect("the newer one");
    daemon.restart(&[]);
    wait_archived(daemon, source);
    place.run("verify", &asked);
}

/// The record of a backup is changed by somebody who may write to the store, and its hash fits, because no commit is behind it.
fn a_signed_backup_cannot_be_changed(place: &Place, source: &Server, dir: &Path) {
    let [public, private] = ["sign.pub", "sign.key"].map(|name| dir.join(name).display().to_string());
    let from = format!("mysql://root@127.0.0.1:{}", source.port());
    let command = ["--tool", "command", "--point", "mysql-bin.000001:4", "--", "echo", "data"];
    let said = place.run_failing("backup", &[&["--from", &*from][..], &command].concat());
    assert!(said.contains("here is no key to sign"), "{said}");
    place.run("backup", &[&["--from", &*from, "--sign-key", &private][..], &command].concat());
    assert!(place.run("verify", &["--signed-by", &public]).contains("no damage"));
    let commits = std::fs::read_dir(place.root().join("default/commits")).expect("commits");
    let newest = commits.map(|entry| entry.expect("a file").path()).max().expect("a commit");
    let genuine = std::fs::read_to_string(&newest).expect("a commit");
    let forged = genuine.replace("\"position\": 4", "\"position\": 5");
    let (record, _) = forged.split_once(",\n  \"signed\"").expect("it is signed");
    assert_ne!(forged, genuine);
    for (forged, word) in [(&forged, "signature"), (&format!("{record}}}"), "it is not signed")] {
        std::fs::write(&newest, forged).expect("a file");
        let said = place.run_failing("verify", &["--signed-by", &public]);
        assert!(said.contains(word), "{said}");
    }
    std::fs::write(&newest, genuine).expect("a file");
}

/// How many files below a folder have this text.
fn objects_with(folder: &Path, text: &str) -> usize {
    let has = |path: &PathBuf| {
        let bytes = std::fs::read(path).expect("a file");
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    };
    objects(folder, "mysql-bin.", "").iter().filter(|path| has(path)).count()
}

/// An archive of a copy in which one text is another one: checksums, objects, lists and commits fit, for binlogd itself makes them.
fn forge(timeline: &Path, to: &Path, from: &str, into: &str) {
    let dir = folder();
    let copy = dir.path().join(timeline.file_name().expect("a name"));
    std::fs::create_dir(&copy).expect("a folder");
    let mut names = Vec::new();
    for entry in
        std::fs::read_dir(timeline).expect("a folder").flatten().filter(|entry| entry.path().is_file())
    {
        let mut bytes = std::fs::read(entry.path()).expect("a file");
        let name = entry.file_name().into_string().expect("text");
        if name.starts_with("mysql-bin.") {
            replace(&mut bytes, from.as_bytes(), into.as_bytes());
            names.push(name.clone());
        }
        std::fs::write(copy.join(name), bytes).expect("a file");
    }
    names.sort();
    let live = names.pop().expect("a file");
    let offset = std::fs::metadata(copy.join(&live)).expect("a file").len();
    let store: Arc<dyn Store> = Arc::new(FolderStore::open(to).expect("a store"));
    let permits = Arc::new(Permits::new(2));
    let uploader = Uploader { store, permits, level: 3, recipients: None, stop: Arc::default() };
    let writer = Writer::of_this_run("forger".to_owned(), "0".to_owned());
    let mut archiver = Archiver::new(
        "default".into(),
        dir.path().to_owned(),
        Arc::new(PosixStorage),
        uploader,
        writer,
        false,
    );
    let durable = DurableEnd { timeline: copy, file: live, offset };
    while archiver.step(Some(&durable), true, jiff::Timestamp::now()).expect("it is archived") != Step::Idle {
    }
}

/// Replaces a text in the events of a file, and makes their checksums fit.
fn replace(file: &mut [u8], from: &[u8], into: &[u8]) {
    let mut at = 4;
    while at < file.len() {
        let len = u32::from_le_bytes(file[at + 9..at + 13].try_into().expect("four bytes")) as usize;
        let event = &mut file[at..at + len];
        while let Some(found) = event.windows(from.len()).position(|part| part == from) {
            event[found..found + into.len()].copy_from_slice(into);
            ChecksumAlgorithm::Crc32.put(event);
        }
        at += len;
    }
}

/// Of samples one after another each reads others, and a damaged one is read again until it is sound.
#[test]
fn a_damaged_sample_is_not_forgotten_for_the_next_one() {
    let place = Place::folder();
    let (_source, daemon) = archived(&place, "verify_interval = '1s'\nverify_sample = 4\n");
    let harmed = first_listed(&place.root(), "mysql-bin.000001/");
    let bytes = flip(&harmed);
    let status = daemon.wait_until(|source| findings(source) == 1, PATIENCE);
    let verify = |status: &Value| status["archive"]["verify"].clone();
    let first = verify(&status)["at"].clone();
    assert!(verify(&status)["objects_read"].as_u64() < verify(&status)["objects"].as_u64(), "{status:#}");
    let runs = RefCell::new(BTreeSet::new());
    daemon.wait_until(
        |source| {
            let verify = verify(source);
            if verify["at"] != first {
                assert_eq!(verify["findings"], 1, "{verify:#}");
                runs.borrow_mut().insert(verify["at"].to_string());
            }
            runs.borrow().len() >= 5
        },
        PATIENCE,
    );
    std::fs::write(&harmed, bytes).expect("a file");
    daemon.wait_until(|source| findings(source) == 0, PATIENCE);
}

/// A key that opens nothing any more is noticed now, and not when it is needed.
#[test]
fn a_lost_key_is_noticed_by_the_verification() {
    let place = Place::s3().encrypted();
    let keys = format!("{ALWAYS}identity = ['{}']\n", place.identity().display());
    let (source, mut daemon) = archived(&place, &keys);
    daemon.wait_until(
        |source| source["archive"]["verify"]["objects_opened"].as_u64() > Some(4) && findings(source) == 0,
        PATIENCE,
    );
    daemon.terminate();
    let other = Place::folder().encrypted();
    std::fs::copy(other.identity(), place.identity()).expect("another key");
    daemon.restart(&[]);
    let status = daemon.wait_until(|source| findings(source) > 0, PATIENCE);
    let text = status["archive"]["verify"]["first_findings"][0]["text"].as_str().expect("a text").to_owned();
    assert!(text.contains("none of the private keys given opens them"), "{status:#}");
    wait_archived(&daemon, &source);
}

/// What was uploaded and is not there is no reason to delete the last copy of it.
#[test]
fn a_file_that_the_store_has_lost_is_not_purged_here() {
    let place = Place::folder();
    let (source, mut daemon) = archived(&place, "verify_interval = '0s'\n");
    let names = binary_logs(&source);
    // On a busy machine the file came in pieces, which a merge has replaced by the longest.
    let lost = objects(&place.root(), &format!("{}/{:020}-", names[1], 0), ".zst").pop().expect("an object");
    let bytes = std::fs::read(&lost).expect("an object");
    std::fs::remove_file(&lost).expect("it is gone");
    daemon.write_config(&place.config_with(
        &source,
        "verify_interval = '0s'\n",
        "[retention]\nmax_files = 2\n",
    ));
    daemon.reload();
    let status = daemon.wait_until(|source| source["archive"]["kept_findings"] == 1, PATIENCE);
    let why = status["archive"]["kept"]["message"].as_str().expect("a reason").to_owned();
    assert!(why.contains(&names[1]) && why.contains("the object is missing"), "{why}");
    assert_eq!(status["verdict"]["level"], "critical", "{status:#}");
    assert_eq!(metric(&daemon, "binlogd_archive_findings"), 1.0);
    assert!(status["archive"]["verify"].is_null(), "{status:#}");
    daemon.wait_log(&format!("want {} gone, and it stays: the archive is damaged", names[1]), PATIENCE);
    assert_eq!(copied_files(&daemon.timeline_dir()), names[1..], "the first was seen, and is gone");

    std::fs::write(&lost, bytes).expect("it is put back");
    daemon.wait_until(|source| source["archive"]["kept"].is_null(), PATIENCE);
    crate::common::wait_within(PATIENCE, "what was seen goes", || {
        copied_files(&daemon.timeline_dir()).len() == 2
    });
    place.assert_sound();
    daemon.terminate();
}

/// The files of a copy that was fetched, each of which but the last is the source's, byte for byte.
fn assert_files(fetched: &Fetched, source: &Server, names: &[String]) {
    let timeline = fetched.timeline();
    let index = std::fs::read_to_string(timeline.join("binlog.index")).expect("an index");
    assert_eq!(index.lines().collect::<Vec<_>>(), names, "{}", fetched.said);
    for name in &names[..names.len() - 1] {
        let theirs = std::fs::read(source.datadir().join(name)).expect("the source's file");
        assert!(theirs == std::fs::read(timeline.join(name)).expect("a fetched file"), "{name}");
    }
}

fn binlogd(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let Output { status, stdout, stderr } = command.args(arguments).output().expect("it runs");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

#[test]
fn a_purge_of_a_stopped_copy_asks_the_archive() {
    let place = Place::folder();
    let (source, mut daemon) = archived(&place, "verify_interval = '0s'\n");
    let names = binary_logs(&source);
    daemon.terminate();
    let (data_dir, url) = (daemon.data_dir().display().to_string(), place.url());
    let config = daemon.config_path().display().to_string();
    let purge = |to: &str, more: &[&str]| binlogd(&[&["purge", &data_dir, "--to", to], more].concat());
    let here = || copied_files(&daemon.timeline_dir());

    let (code, said) = purge(&names[1], &["--dry-run"]);
    assert!(code == Some(0) && said.contains("no archive was asked"), "{said}");
    let lost = first_listed(&place.root(), &format!("{}/", names[1]));
    let bytes = std::fs::read(&lost).expect("an object");
    std::fs::write(&lost, &bytes[1..]).expect("a file");
    let (code, said) = purge(&names[2], &["--archive", &url]);
    assert!(code == Some(0) && said.contains(&format!("{} of ", names[1])), "{said}");
    assert!(said.contains("is damaged") && !said.contains("--without-archive"), "{said}");
    assert_eq!(here(), names[1..], "only what the archive has is gone");
    std::fs::write(&lost, &bytes).expect("a file");
    let (code, said) = purge(&names[2], &["--config", &config]);
    assert!(code == Some(0) && said.contains("has all of the files that would go"), "{said}");
    assert_eq!(here(), names[2..]);

    let (code, said) = purge(&names[3], &["--archive", "file:///nowhere/at/all"]);
    assert!(code == Some(1) && said.contains("Nothing was deleted"), "{said}");
    assert_eq!(here(), names[2..]);
    let (code, said) = purge(&names[3], &["--config", &config, "--without-archive"]);
    assert!(code == Some(0) && !said.contains("archive was asked"), "{said}");
    assert_eq!(here(), names[3..]);
}

/// As xtrabackup and mysqldump tell where a backup stands.
#[test]
fn what_backups_need_is_not_pruned() {
    let place = Place::s3();
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let daemon = place.start(&source, "");
    let mut backups = Vec::new();
    for _ in 0..5 {
        source.sql("INSERT INTO d.t (v) VALUES (1)");
        let file = binary_logs(&source).pop().expect("a file");
        backups.push((gtid_executed(&source).replace('\n', ""), file));
        source.sql("INSERT INTO d.t (v) VALUES (2); FLUSH BINARY LOGS");
    }
    wait_archived(&daemon, &source);
    let names = binary_logs(&source);
    let prune = |arguments: &[&str]| {
        let arguments = [&["--max-files", "1", "--grace", "0s"], arguments].concat();
        place.run("prune", &arguments)
    };
    let gtids = &backups[2].0;
    let said = prune(&["--dry-run", "--keep-for-backup", gtids]);
    assert!(said.contains(&format!("kept for the backup at {gtids}")), "{said}");
    assert!(said.contains(&format!("{} to {}, 2 files, would go", names[0], names[1])), "{said}");
    let unasked = place.run_failing("prune", &["--max-files", "1"]);
    assert!(unasked.contains("would go") && unasked.contains("then give --yes"), "{unasked}");
    let said = prune(&["--yes", "--keep-for-backup", gtids]);
    assert!(said.contains(&format!("{} to {}, 2 files, gone", names[0], names[1])), "{said}");

    // What that backup needs comes back, to the last transaction.
    assert_files(&place.fetch(), &source, &names[2..]);
    let file = tempfile::NamedTempFile::new().expect("a file");
    let lines = format!("# weekly\n{}\t4\t{}\n{}:4\n", backups[3].1, backups[3].0, names[4]);
    std::fs::write(file.path(), lines).expect("a file");
    let path = file.path().to_str().expect("text");
    let said = prune(&["--yes", "--backups-file", path]);
    assert!(said.contains(&format!("{} to {}, 1 file, gone", names[2], names[2])), "{said}");
    assert_files(&place.fetch(), &source, &names[3..]);

    let refused = place.run_failing("prune", &["--max-files", "1", "--keep-for-backup", gtids]);
    assert!(refused.contains("the archive begins behind the point"), "{refused}");
    assert_files(&place.fetch(), &source, &names[3..]);
    place.assert_sound();
}
