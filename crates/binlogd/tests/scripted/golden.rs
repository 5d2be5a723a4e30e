//! A copy that an earlier version left, after a failure of its machine, is opened, verified and continued by this one; and one
//! that a later version left is refused and not touched (docs/formats.md).
//!
//! `tests/data/copy-of-0.1.0.tar.gz` was made by the last commit in which the log was no crate of its own, the others as
//! `tests/servers_durable/golden.rs` says. A later version that changes what stands on disk adds its own, and keeps these:
//!
//! ```text
//! BINLOGD_EARLIER=/path/to/binlogd cargo test -p binlogd --test scripted golden::make -- --ignored
//! ```

use crate::common::daemon::{Daemon, Launch, temporary_folder};
use scripted_source::{Script, ScriptedSource, SourceLog};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Synced in the background after the failure only, so that the journal alone holds what was acknowledged last.
const FLAGS: [&str; 2] = ["--fsync-interval", "1m"];

fn archive() -> PathBuf {
    data("copy-of-0.1.0.tar.gz")
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// What a verb says of a stopped copy, and its exit code.
fn binlogd(arguments: &[&str], data_dir: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let output = command.args(arguments).arg(data_dir).output().expect("binlogd runs");
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// A daemon on the copy, whose source is nowhere: it opens what it has, and no more.
fn open_alone(folder: tempfile::TempDir, data_dir: &Path) -> Daemon {
    let nowhere = "mysql://any@127.0.0.1:1";
    Daemon::start_with(Launch::default(), folder, data_dir, nowhere, &["--backoff-max", "100ms"])
}

/// Every file below the folder, with its bytes. What runs leave is left out.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(content(&path));
        } else if !["lock", "purge.lock", "admin.address"].iter().any(|name| path.ends_with(name)) {
            found.insert(path.clone(), std::fs::read(&path).expect("a file"));
        }
    }
    found
}

/// Three timelines, a purge, a slot, a reset, a fork that was settled; the end of the newest file in the journal alone.
fn everything_of_a_copy_is_understood(archive: &str) {
    let folder = temporary_folder();
    tar(&["-xzf"], &data(archive), folder.path());
    let data_dir = folder.path().join("data");
    let source_folder = data_dir.join("default");
    let text = verify(&data_dir);
    assert!(text.contains("journal") && text.contains("were purged"), "{text}");
    let (code, text) = binlogd(&["forks"], &data_dir);
    assert!(code == Some(0) && text.contains("as it should be"), "{text}");
    let (code, text) = binlogd(&["slots"], &data_dir);
    assert!(code == Some(0) && text.contains("warehouse"), "{text}");
    let (code, text) = binlogd(&["purge", "--dry-run", "--before", "2040-01-01T00:00:00Z"], &data_dir);
    assert!(code == Some(0) && text.contains("slot warehouse is at "), "{text}");
    let (code, text) = binlogd(&["status", "--data-dir"], &data_dir);
    assert!(code == Some(1) && text.contains("journal"), "no daemon runs: {text}");

    let sources = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path());
    let name = |path: &PathBuf| {
        path.file_name().unwrap().to_str().unwrap().strip_prefix("source-").map(str::to_owned)
    };
    let (theirs, live) = sources.filter_map(|path| Some((path.clone(), name(&path)?))).next().unwrap();
    let theirs = std::fs::read(theirs).unwrap();
    let before = content(&source_folder);
    let mut daemon = open_alone(folder, &data_dir);
    daemon.wait_log(&format!("the copy ends at {live}:{}", theirs.len()), PATIENCE);
    daemon.wait_until(|source| source["state"] == "backing off", PATIENCE);
    daemon.terminate();
    let timeline = daemon.timeline_dir();
    let ours = std::fs::read(timeline.join(&live)).unwrap();
    // One bit of byte 21 says that the file is in use.
    assert!(ours[..21] == theirs[..21] && ours[22..] == theirs[22..], "what was acknowledged is there again");
    let after = content(&source_folder);
    for (path, bytes) in before
        .iter()
        .filter(|(path, _)| path.parent() != Some(&*timeline) && path.parent() != Some(&*source_folder))
    {
        assert!(after.get(path) == Some(bytes), "{} has changed", path.display());
    }
    verify(&data_dir);
}

#[test]
fn everything_of_a_copy_of_mysql_is_understood() {
    everything_of_a_copy_is_understood("copy-of-0.2.0-mysql.tar.gz");
}

#[test]
fn everything_of_a_copy_of_mariadb_is_understood() {
    everything_of_a_copy_is_understood("copy-of-0.2.0-mariadb.tar.gz");
}

/// Each file by which a later version can say that an older one is not to touch the copy.
#[test]
fn a_copy_of_a_later_format_is_refused_and_left_as_it_is() {
    let folder = temporary_folder();
    tar(&["-xzf"], &data("copy-of-0.2.0-mysql.tar.gz"), folder.path());
    let source_folder = folder.path().join("data/default");
    let timelines: Vec<_> = std::fs::read_dir(&source_folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.starts_with("000"))
        .collect();
    assert_eq!(timelines.len(), 3);
    let newest = timelines.iter().max().unwrap();
    let files = ["replica.toml".to_owned(), format!("{newest}/timeline.toml"), "journal".to_owned()];
    for file in files {
        let folder = temporary_folder();
        tar(&["-xzf"], &data("copy-of-0.2.0-mysql.tar.gz"), folder.path());
        let data_dir = folder.path().join("data");
        let path = data_dir.join("default").join(&file);
        let mut bytes = std::fs::read(&path).unwrap();
        if file == "journal" {
            bytes[8] = 2;
        } else {
            let text = String::from_utf8(bytes).unwrap().replace("format = 1\n", "");
            // In front of any table.
            bytes = format!("format = 3\n{text}").into_bytes();
        }
        let later = if file == "journal" { 2 } else { 3 };
        std::fs::write(&path, bytes).unwrap();
        let before = content(&data_dir);
        let mut daemon = open_alone(folder, &data_dir);
        let status = daemon.wait_until(|source| source["state"] == "stopped", PATIENCE);
        let said = status["state_detail"].as_str().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            said.contains(&format!("{name}: format {later}, and binlogd {}", env!("CARGO_PKG_VERSION"))),
            "{said}"
        );
        assert!(said.contains("a later version of binlogd wrote it. Nothing was changed."), "{said}");
        daemon.terminate();
        let after = content(&data_dir);
        let changed: Vec<_> = before.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes)).collect();
        assert!(changed.is_empty() && before.len() == after.len(), "{:?}", changed.first());
        if file.ends_with("timeline.toml") {
            let (code, said) = binlogd(&["verify"], &data_dir);
            assert!(code == Some(1) && said.contains("format 3"), "{said}");
            let (code, said) = binlogd(&["purge", "--before", "2040-01-01T00:00:00Z"], &data_dir);
            assert!(code != Some(0) && said.contains("format 3"), "{said}");
        }
    }
}

/// What the source had when the copy was stopped in good order.
fn first() -> SourceLog {
    let mut log = SourceLog::default();
    log.group(2, 100);
    log.rotate();
    log.group(3, 5_000);
    log
}

/// What was acknowledged after that, and before the failure.
fn more(log: &mut SourceLog) {
    for size in [10, 3_000, 70_000] {
        log.group(2, size);
    }
    log.rotate();
    for size in [20_000, 1] {
        log.group(1, size);
    }
}

fn url(source: &ScriptedSource) -> String {
    format!("mysql://any@127.0.0.1:{}", source.port())
}

#[track_caller]
fn wait_acknowledged(source: &ScriptedSource) {
    let end = source.log(SourceLog::end);
    assert!(source.wait_for_acknowledgement(&end, PATIENCE), "no acknowledgement of {end:?}");
}

fn tar(arguments: &[&str], archive: &Path, folder: &Path) {
    let mut command = Command::new("tar");
    command.args(arguments).arg(archive).arg("-C").arg(folder);
    if arguments[0].contains('c') {
        command.arg("data");
    }
    assert!(command.status().expect("tar runs").success());
}

fn verify(data_dir: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let output = command.arg("verify").arg(data_dir).output().expect("binlogd runs");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn a_copy_of_an_earlier_version_is_verified_and_continued() {
    let folder = temporary_folder();
    tar(&["-xzf"], &archive(), folder.path());
    let data_dir = folder.path().join("data");
    let live = data_dir.join("default/0001-abababab-abab-abab-abab-abababababab/mysql-bin.000003");
    assert_eq!(std::fs::read(&live).unwrap(), b"\xfebin", "the rest stands in the journal alone");
    let text = verify(&data_dir);
    assert!(text.contains("journal"), "{text}");

    let mut log = first();
    more(&mut log);
    let held = log.clone();
    log.group(1, 300);
    let source = ScriptedSource::start(Script::new(log)).expect("a free port");
    let mut daemon = Daemon::start_with(Launch::default(), folder, &data_dir, &url(&source), &[]);
    let said = daemon.log();
    let held_end = held.end();
    let from = format!("receiving from {}:{}", held_end.file, held_end.position);
    daemon.wait_log(&from, PATIENCE);
    wait_acknowledged(&source);
    assert_eq!(daemon.timeline_dirs().len(), 1, "{said}");
    daemon.terminate();
    source.log(|log| {
        for file in log.files() {
            let copy =
                std::fs::read(daemon.timeline_dir().join(&file.name)).expect("the copy has every file");
            assert!(copy == file.bytes, "the copy of {} differs", file.name);
        }
    });
    verify(&data_dir);
}

#[test]
#[ignore = "makes the copy of an earlier version, by its binary in BINLOGD_EARLIER"]
fn make() {
    let program = std::env::var_os("BINLOGD_EARLIER").expect("BINLOGD_EARLIER=BINARY").into();
    let source = ScriptedSource::start(Script::new(first())).expect("a free port");
    let folder = temporary_folder();
    let data_dir = folder.path().join("data");
    let launch = Launch { program, ..Launch::default() };
    let mut daemon = Daemon::start_with(launch, temporary_folder(), &data_dir, &url(&source), &FLAGS);
    wait_acknowledged(&source);
    daemon.terminate();
    daemon.restart(&FLAGS);
    source.append(more);
    wait_acknowledged(&source);
    daemon.kill();
    // As after a power failure: nothing has synced these bytes in their file.
    let live = daemon.timeline_dir().join(source.log(SourceLog::end).file);
    std::fs::File::options().write(true).open(live).unwrap().set_len(4).unwrap();
    tar(&["-czf"], &archive(), folder.path());
}
