//! A copy that an earlier version left, after a failure of its machine, is opened, verified and continued by this one.
//!
//! `tests/data/copy-of-0.1.0.tar.gz` was made by the last commit in which the log was no crate of its own. A later version that changes
//! what stands on disk adds one of its own, and keeps this one:
//!
//! ```text
//! BINLOGD_EARLIER=/path/to/binlogd cargo test -p binlogd --test scripted golden::make -- --ignored
//! ```

use crate::common::daemon::{Daemon, Launch, temporary_folder};
use scripted_source::{Script, ScriptedSource, SourceLog};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Synced in the background after the failure only, so that the journal alone holds what was acknowledged last.
const FLAGS: [&str; 2] = ["--fsync-interval", "1m"];

fn archive() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/copy-of-0.1.0.tar.gz")
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
