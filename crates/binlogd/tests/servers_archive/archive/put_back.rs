//! A bucket that is put back to an older state under binlogd, or while it is away; and what each verb says of an archive in which
//! something is not as it was.

use super::MYSQL;
use super::place::{PATIENCE, Place, folder, wait_archived};
use crate::common::alert::Scrape;
use crate::common::compare::{binary_logs, copied_files};
use crate::common::daemon::{Daemon, url};
use crate::common::readers::{client, make_account, serve_port};
use crate::common::verbs::{binlogd, text};
use crate::common::{Server, wait_within};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All of the archive is read each second; a reader may purge.
const KEYS: &str = "verify_interval = '1s'\nverify_sample = 1\n";
const BOSS: &str = "[[serve.user]]\nname = 'boss'\npassword = 'secret'\nprivileges = ['read', 'purge']\n";
/// What has a file of its own each.
const ONE: &str = "INSERT INTO d.t (v) VALUES (1); FLUSH BINARY LOGS; ";
/// Two snapshots come of so many files: each file takes two commits at least.
const FILES: usize = 140;

/// The objects of an archive.
pub(super) type Tree = BTreeMap<PathBuf, Vec<u8>>;

pub(super) fn tree(root: &Path) -> Tree {
    let (mut found, mut folders) = (Tree::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            // What is hidden is being made.
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            match path.is_dir() {
                true => folders.push(path),
                false if is_hidden => {}
                false => {
                    let name = path.strip_prefix(root).expect("below it").to_owned();
                    found.extend(std::fs::read(&path).ok().map(|bytes| (name, bytes)));
                }
            }
        }
    }
    found
}

/// The archive has these objects and no other. The folders stay, as they would in a bucket.
pub(super) fn put(root: &Path, wanted: &Tree) {
    tree(root).keys().for_each(|name| std::fs::remove_file(root.join(name)).expect("an object"));
    for (name, bytes) in wanted {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
}

fn named<'a>(tree: &'a Tree, part: &str) -> Vec<&'a PathBuf> {
    tree.keys().filter(|name| name.to_str().expect("text").contains(part)).collect()
}

fn commits(tree: &Tree) -> Vec<&PathBuf> {
    named(tree, "default/commits/")
}

fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bytes
}

/// An archive of many files, whose first commits a snapshot stands for.
fn archived(place: &Place) -> (Server, Daemon) {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let config = place.config_with(&source, KEYS, BOSS);
    let daemon = Daemon::start_from_in(&place.environment(), "", &config);
    for snapshots in 1..=2 {
        source.sql(&ONE.repeat(FILES / 2));
        wait_archived(&daemon, &source);
        wait_within(PATIENCE, "a snapshot", || named(&tree(&place.root()), "/snapshots/").len() >= snapshots);
    }
    let there = tree(&place.root());
    place.run("prune", &["--grace", "0s", "--yes"]);
    assert!(commits(&tree(&place.root()))[0] != commits(&there)[0], "the first commits are gone");
    (source, daemon)
}

#[track_caller]
fn is_told(daemon: &Daemon) {
    let source = daemon.wait_until(|source| source["archive"]["state"] == "older", PATIENCE);
    let archive = &source["archive"];
    assert!(archive["behind_seconds"].is_null() && archive["archived"].is_null(), "{archive:#}");
    let words = archive["error"]["message"].as_str().expect("words");
    assert!(words.contains("which this copy has seen there, is gone"), "{words}");
    assert_eq!(source["verdict"]["level"], "critical", "{source:#}");
    let told = source["verdict"].to_string();
    assert!(told.contains("The archive: the archive was put back"), "{told}");
    let admin = daemon.admin_address();
    assert_eq!(Scrape::of(&admin).value("binlogd_archive_put_back"), Some(1.0));
    let health = binlogd(&["health", "--admin", &admin]);
    assert_eq!(health.status.code(), Some(1));
    assert!(text(&health.stdout).contains("default: the archive was put back"), "{health:?}");
    let status = binlogd(&["status", "--admin", &admin]);
    assert_eq!(status.status.code(), Some(1));
    let said = text(&status.stdout);
    assert!(said.contains("PUT BACK to an older state") && !said.contains("everything of"), "{said}");
    let page = ureq::get(format!("http://{admin}/")).call().expect("a page");
    let page = page.into_body().read_to_string().expect("text");
    assert!(page.contains("was put back"), "{page}");
}

/// Somebody wants everything old gone, and nothing goes.
#[track_caller]
fn nothing_is_purged(daemon: &Daemon, source: &Server) {
    let here = copied_files(&daemon.timeline_dir());
    let newest = binary_logs(source).pop().expect("a file");
    let statement = format!("PURGE BINARY LOGS TO '{newest}'; SHOW WARNINGS");
    let arguments = ["--user=boss", "--batch", "--skip-column-names", "-e", &statement];
    let output = client(source, "MYSQL", serve_port(daemon), &arguments);
    let said = text(&output.stdout);
    assert!(
        said.contains("was not purged because the archive does not have it"),
        "{said}{}",
        text(&output.stderr)
    );
    assert_eq!(copied_files(&daemon.timeline_dir()), here);
}

/// Each way to lose what was committed; then it is there again, or is given up.
#[test]
fn a_bucket_that_is_put_back_is_not_gone_on_with() {
    let place = Place::folder();
    let root = place.root();
    let (source, mut daemon) = archived(&place);
    let older = tree(&root);
    source.sql(&ONE.repeat(2));
    wait_archived(&daemon, &source);
    let full = tree(&root);
    let mut without_last = full.clone();
    commits(&full).into_iter().rev().take(2).for_each(|name| drop(without_last.remove(name)));
    for there in [&without_last, &older, &Tree::new()] {
        let full = tree(&root);
        put(&root, there);
        source.sql(ONE);
        daemon.wait_caught_up(&source);
        is_told(&daemon);
        nothing_is_purged(&daemon, &source);
        assert_eq!(commits(&tree(&root)), commits(there), "nobody commits behind a hole");
        put(&root, &full);
        wait_archived(&daemon, &source);
        assert_eq!(daemon.source()["archive"]["state"], "current");
        place.assert_whole(&source);
    }

    // A purge of what is seen there is right, and is remembered over a restart.
    let newest = binary_logs(&source).pop().expect("a file");
    let purge = format!("PURGE BINARY LOGS TO '{newest}'");
    wait_within(PATIENCE, "what is archived goes", || {
        client(&source, "MYSQL", serve_port(&daemon), &["--user=boss", "-e", &purge]);
        copied_files(&daemon.timeline_dir()).len() <= 2
    });
    let full = tree(&root);
    daemon.terminate();
    put(&root, &older);
    source.sql(ONE);
    daemon.restart(&[]);
    daemon.wait_caught_up(&source);
    is_told(&daemon);
    assert_eq!(commits(&tree(&root)), commits(&older));

    // What the runbook says where the objects are lost: all that the disk has is archived, and what it has not is a gap.
    daemon.terminate();
    std::fs::remove_file(daemon.data_dir().join("default/archive_seen.toml")).expect("a memory");
    daemon.restart(&[]);
    wait_archived(&daemon, &source);
    let said = place.run_failing("verify", &[]);
    assert!(said.contains("those between them are missing"), "{said}");

    // Or they were found after all, and the memory with them.
    daemon.terminate();
    put(&root, &full);
    let seen = daemon.data_dir().join("default/archive_seen.toml");
    let of_gap = std::fs::read_to_string(&seen).expect("a memory");
    assert!(of_gap.contains("seq = "), "{of_gap}");
    daemon.restart(&[]);
    is_told(&daemon);
    daemon.terminate();
    std::fs::remove_file(&seen).expect("a memory");
    daemon.restart(&[]);
    wait_archived(&daemon, &source);
    place.assert_whole(&source);

    // Snapshots stand for commits that are gone. Damaged, they are made new by who runs.
    let names = tree(&root);
    let snapshots = named(&names, "/snapshots/");
    snapshots
        .iter()
        .for_each(|name| std::fs::write(root.join(name), flipped(&names[*name])).expect("a file"));
    daemon.wait_log("this snapshot of the commits cannot be used", PATIENCE);
    let is_sound = || place.command("verify", &[]).output().expect("it runs").status.success();
    wait_within(PATIENCE, "snapshots are made new", is_sound);
    daemon.wait_until(|source| source["archive"]["verify"]["findings"] == 0, PATIENCE);
    place.assert_whole(&source);

    // Somebody prunes too much, and takes it back.
    let before = place.fetch().assert_is_of(&source);
    let said = place.run("prune", &["--max-files", "2", "--yes"]);
    assert!(said.contains(" files, gone"), "{said}");
    assert_eq!(place.fetch().assert_is_newest_of(&source, 2).len(), 2);
    let refused = place.run_failing("prune", &["--undo"]);
    assert!(refused.contains("can be taken back") && refused.contains("then give --yes"), "{refused}");
    let said = place.run("prune", &["--undo", "--yes"]);
    assert!(said.contains("are there again"), "{said}");
    assert_eq!(place.fetch().assert_is_of(&source), before);
    source.sql(ONE);
    wait_archived(&daemon, &source);
    place.assert_whole(&source);
}

/// What a verb says: exit code, and everything that it prints.
fn said(arguments: &[&str]) -> (i32, String) {
    let output = binlogd(arguments);
    let said = text(&[&output.stdout[..], &output.stderr].concat());
    (output.status.code().unwrap_or(-1), said)
}

/// Each verb, before each kind of damage: its exit code, and words by which it is told.
#[test]
fn each_verb_tells_what_is_wrong_with_an_archive() {
    let place = Place::folder();
    let (source, mut daemon) = archived(&place);
    source.sql(&ONE.repeat(4));
    wait_archived(&daemon, &source);
    daemon.terminate();
    let config = daemon.config_path().display().to_string();
    let root = place.root();
    let full = tree(&root);
    let [.., middle, _, _] = commits(&full)[..] else { panic!("few commits") };
    let snapshots = named(&full, "/snapshots/");
    let file = format!("mysql-bin.{:06}", FILES / 2);
    let data = full.keys().find(|name| {
        let text = name.to_str().expect("text");
        text.contains(&format!("/{file}/0"))
    });
    let data = data.expect("an object with bytes");
    let with = |name: &Path, bytes: Option<Vec<u8>>| {
        let mut there = full.clone();
        there.remove(name);
        there.extend(bytes.map(|bytes| (name.to_owned(), bytes)));
        there
    };
    let harmed = |name: &Path| with(name, Some(flipped(&full[name])));
    let mut no_snapshot = full.clone();
    snapshots.iter().for_each(|name| drop(no_snapshot.insert((*name).clone(), b"damaged".to_vec())));
    // What happened; then verify, fetch, find, show, restore, prune --dry-run, purge, the start on an empty disk, and the doctor.
    type Told<'a> = (i32, &'a str);
    // What the search indexes pass over is not read, and this is not.
    let lacks = [
        (1, &*file),
        (1, "LACKING"),
        (1, &file),
        (1, &file),
        (1, &file),
        (0, "would go"),
        (0, "is kept for the archive"),
        (0, "goes on where"),
        (0, "Whether every object is there: binlogd verify"),
    ];
    let works = |verify: Told<'static>| {
        [
            verify,
            (0, "the last ends at"),
            (0, "d.t"),
            (0, "INSERT"),
            (0, "to apply: "),
            (0, "would go"),
            (0, "has all of the files"),
            (0, "goes on where"),
            (0, "no commit is missing"),
        ]
    };
    let refuse = |verify: Told<'static>, fetch, why: &'static str, purge| {
        [verify, fetch, (2, why), (2, why), (2, why), (1, why), purge, (1, why), (1, why)]
    };
    let asked_in_vain = (1, "Nothing was deleted");
    let table: [(&str, Tree, [Told<'_>; 9]); 7] = [
        ("nothing", full.clone(), works((0, "no damage"))),
        (
            "a commit is gone",
            with(middle, None),
            refuse(
                (1, "does not follow"),
                (1, "not all commits before it"),
                "it is gone, and commit",
                (0, "has all of the files"),
            ),
        ),
        (
            "a commit is damaged",
            harmed(middle),
            refuse((1, "/commits/"), (1, "commit "), "not as it was written: commit ", asked_in_vain),
        ),
        (
            "a snapshot is damaged",
            harmed(snapshots[snapshots.len() - 1]),
            works((1, "this snapshot of the commits")),
        ),
        (
            "no snapshot is sound",
            no_snapshot,
            refuse(
                (1, "this snapshot of the commits"),
                (1, "cannot be used"),
                "cannot be used",
                asked_in_vain,
            ),
        ),
        ("an object is gone", with(data, None), lacks),
        ("an object is damaged", harmed(data), lacks),
    ];
    let empty = Server::start("mysql-9.7", &[&MYSQL[..], &["--server-id=9"]].concat());
    let archive = place.url();
    let mut wrong = Vec::new();
    for (what, there, told) in table {
        put(&root, &there);
        let dir = folder();
        let [to, work] = ["to", "work"].map(|name| dir.path().join(name).display().to_string());
        std::fs::create_dir(&work).expect("a folder");
        let copy = dir.path().join("copy");
        copy_folder(&daemon.data_dir(), &copy);
        let copy = copy.display().to_string();
        let next = format!("mysql-bin.{:06}", FILES / 2 + 1);
        let target = url(&empty);
        let answers = [
            said(&["verify", &archive]),
            said(&["fetch", &archive, "--to", &to]),
            said(&["find", &archive, "--table", "d.t"]),
            said(&["show", &archive, "--table", "d.t"]),
            said(&[
                "restore",
                "--into",
                &target,
                "--from",
                &archive,
                "--work",
                &work,
                "--until",
                "end",
                "--backup-at",
                "nothing",
                "--plan",
                "--allow-clients",
            ]),
            said(&["prune", &archive, "--max-files", "2", "--dry-run"]),
            said(&["purge", &copy, "--to", &next, "--archive", &archive]),
            begun(&place, &source),
            said(&["doctor", "--archive", "--config", &config]),
        ];
        for (verb, ((code, words), (wanted, part))) in answers.iter().zip(&told).enumerate() {
            println!("{what}, verb {verb}: {code} {:.300}", words.replace('\n', " | "));
            if code != wanted || !words.contains(part) {
                wrong.push(format!(
                    "{what}, verb {verb}: {code}, wanted {wanted} and {part:?}\n{words:.2000}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// binlogd on an empty disk: 0 where it receives, and its log.
fn begun(place: &Place, source: &Server) -> (i32, String) {
    let daemon = place.start(source, "");
    let word = |state: &serde_json::Value| {
        ["receiving", "waiting for the archive"].contains(&state["state"].as_str().unwrap_or(""))
    };
    let state = daemon.wait_until(word, PATIENCE);
    let is_well = state["state"] == "receiving";
    (i32::from(!is_well), format!("{}{}", daemon.log(), state["state_detail"]))
}

fn copy_folder(from: &Path, to: &Path) {
    for (name, bytes) in tree(from) {
        let path = to.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
}
