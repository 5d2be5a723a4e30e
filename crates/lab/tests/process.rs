//! `binlogd-lab` as a process, with a study made for the test: killed, interrupted, two at a time.
//!
//! This program is three: the tests, the lab that knows the test's study (with `as-lab` before the lab's arguments), and
//! binlogd (when it is called so), of which a run asks the version. A build of binlogd's own program would take minutes.

mod common;

use binlogd_lab::results::run::Run;
use binlogd_lab::store::Store;
use common::WriteAndSync;
use rig::process::Running;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for a process or a cell.
const WAIT_MAX: Duration = Duration::from_secs(300);

const TESTS: [(&str, fn()); 5] = [
    ("a_killed_run_loses_the_cell_that_ran_and_goes_on", a_killed_run_loses_the_cell_that_ran_and_goes_on),
    ("an_interrupted_run_cleans_up_and_goes_on", an_interrupted_run_cleans_up_and_goes_on),
    ("two_at_a_time_are_refused", two_at_a_time_are_refused),
    ("what_is_wrong_on_the_command_line_is_told", what_is_wrong_on_the_command_line_is_told),
    ("passwords_are_not_kept", passwords_are_not_kept),
];

fn main() -> ExitCode {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.first().is_some_and(|program| Path::new(program).ends_with("binlogd")) {
        return binlogd::cli::main();
    }
    if arguments.get(1).is_some_and(|argument| argument == "as-lab") {
        arguments.remove(1);
        return binlogd_lab::cli::main_with(&[&WriteAndSync::default()], arguments);
    }
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let began = Instant::now();
    // Side by side: each has a folder of its own, and waits for the disk most of the time.
    let failed = std::thread::scope(|scope| {
        let tests = TESTS.iter().filter(|(name, _)| name.contains(&filter));
        let running: Vec<_> = tests.map(|(name, test)| (name, named(scope, name, *test))).collect();
        let ended = running.into_iter().map(|(name, test)| {
            let failed = test.join().is_err();
            println!("test {name} ... {}", if failed { "FAILED" } else { "ok" });
            usize::from(failed)
        });
        ended.sum::<usize>()
    });
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {verdict}; {failed} failed; finished in {:.2}s", began.elapsed().as_secs_f64());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Named: what a failure says begins with the name of its thread.
fn named<'scope>(scope: &'scope Scope<'scope, '_>, name: &str, test: fn()) -> ScopedJoinHandle<'scope, ()> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, test).expect("a thread")
}

/// A folder with everything that a run uses.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        // On the file system of this program, so that it can have a second name.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        for folder in ["measured/a", "measured/b"] {
            std::fs::create_dir_all(dir.path().join(folder)).expect("a folder");
        }
        let program = std::env::current_exe().expect("this program");
        std::fs::hard_link(program, dir.path().join("binlogd")).expect("a second name");
        Place { dir }
    }

    fn lab(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg("as-lab").args(arguments).current_dir(self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run_command(&self, more: &[&str]) -> Command {
        let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/servers");
        let place = ["--binlogd", "binlogd", "--scripts", scripts, "--journals", "journals"];
        let mut command = self.lab(&["run", "write-and-sync"]);
        command.args(place).args(more);
        if !more.contains(&"--dir") {
            command.args(["--dir", "measured"]);
        }
        command
    }

    fn run(&self, more: &[&str]) -> Output {
        self.run_command(more).output().expect("the lab starts")
    }

    fn read(&self, run: i64) -> Run {
        Store::open(&self.dir.path().join("target/lab.sqlite")).expect("results").run(run).expect("the run")
    }

    /// Waits until a run has measured so many cells.
    fn wait_for_cells(&self, wanted: usize) {
        let path = self.dir.path().join("target/lab.sqlite");
        let began = Instant::now();
        loop {
            // Made, but its tables are not there yet.
            let cells = Store::open(&path).and_then(|store| Ok(store.run(1)?.cells.len())).unwrap_or(0);
            if cells >= wanted {
                return;
            }
            assert!(began.elapsed() < WAIT_MAX, "{cells} cells of {wanted}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn left_behind(&self) -> usize {
        let entries = |folder| std::fs::read_dir(self.dir.path().join(folder)).expect("a folder").count();
        entries("measured/a") + entries("measured/b")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the lab writes UTF-8")
}

/// A cell takes long enough to be caught in it: tenths of a second or more, by the number of its writes.
const SLOW: [&str; 4] = ["--set", "writes=4000", "--set", "rounds=3"];

fn a_killed_run_loses_the_cell_that_ran_and_goes_on() {
    let place = Place::new();
    let mut lab = Running(place.run_command(&SLOW).spawn().expect("the lab starts"));
    place.wait_for_cells(3);
    lab.0.kill().expect("it is killed");
    lab.0.wait().expect("it has ended");
    let killed = place.read(1);
    assert!(
        killed.finished.is_none() && killed.cells.len() >= 3 && killed.cells.len() < 12,
        "{}",
        killed.cells.len()
    );

    let resumed = place.run(&[&SLOW[..], &["--resume"]].concat());
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert!(
        text(&resumed.stdout).contains("run 1 of write-and-sync is finished"),
        "{}",
        text(&resumed.stdout)
    );
    let run = place.read(1);
    assert!(run.finished.is_some() && run.cells.len() == 12);
    assert_eq!(run.cells[..killed.cells.len()], killed.cells);
    // Nothing to do is no new run.
    let again = place.run(&[&SLOW[..], &["--resume"]].concat());
    assert!(
        again.status.success() && text(&again.stderr).contains("run 1 is finished"),
        "{}",
        text(&again.stderr)
    );
    assert_eq!(text(&place.lab(&["runs"]).output().expect("the lab starts").stdout).lines().count(), 2);
}

fn an_interrupted_run_cleans_up_and_goes_on() {
    let place = Place::new();
    let mut lab = Running(place.run_command(&SLOW).spawn().expect("the lab starts"));
    place.wait_for_cells(1);
    assert_eq!(place.left_behind(), 1);
    kill_process(Pid::from_child(&lab.0), Signal::INT).expect("it is there");
    let status = lab.wait_within(WAIT_MAX).expect("it ends");
    let mut complaint = String::new();
    lab.0.stderr.take().expect("a pipe").read_to_string(&mut complaint).expect("its complaint");
    assert_eq!(status.code(), Some(130), "{complaint}");
    let last = complaint.lines().last().unwrap_or_default();
    assert!(last.starts_with("interrupted; run 1") && last.contains("--resume"), "{complaint}");
    // One line for each cell that was kept.
    let kept = place.read(1).cells.len();
    assert_eq!(complaint.lines().filter(|line| line.starts_with("cell ")).count(), kept, "{complaint}");
    assert!(complaint.contains(&format!("cell {kept} of 12 · ")), "{complaint}");
    assert_eq!(place.left_behind(), 0);

    let other = place.run(&["--set", "writes=1", "--resume=1"]);
    assert_eq!(other.status.code(), Some(1));
    let complaint = text(&other.stderr);
    assert!(
        complaint.contains("--set writes was 4000, now 1") && complaint.contains("--set rounds was 3"),
        "{complaint}"
    );
    let resumed = place.run(&[&SLOW[..], &["--resume=1"]].concat());
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(place.read(1).cells.len(), 12);
    let gap = format!("the run was interrupted after {kept} cell");
    assert!(place.read(1).facts.iter().any(|fact| fact.name == "warning" && fact.value.starts_with(&gap)));
    // What it was measured on is kept once: it was the same before and after.
    let facts = place.read(1).facts;
    for (about, name) in [("machine", "kernel"), ("binlogd", "version")] {
        let count = facts.iter().filter(|fact| fact.about == about && fact.name == name).count();
        assert_eq!(count, 1, "{about}, {name}");
    }
}

fn two_at_a_time_are_refused() {
    let place = Place::new();
    let mut lab = Running(place.run_command(&SLOW).spawn().expect("the lab starts"));
    place.wait_for_cells(1);
    // In the same folder, and into the same file of results from another folder.
    let complaint = |more: &[&str]| {
        let second = place.run(more);
        assert_eq!(second.status.code(), Some(1));
        text(&second.stderr)
    };
    let told = complaint(&[&SLOW[..], &["--resume"]].concat());
    assert!(told.contains("another run measures in") && told.contains("measured now"), "{told}");
    std::fs::create_dir_all(place.dir.path().join("other/a")).expect("a folder");
    let told = complaint(&["--dir", "other"]);
    assert!(told.contains(&format!("process {} measures into", lab.0.id())), "{told}");
    let runs = place.lab(&["runs"]).output().expect("the lab starts");
    assert!(runs.status.success() && text(&runs.stdout).contains("not finished"), "{}", text(&runs.stderr));
    assert!(lab.wait_within(WAIT_MAX).expect("it ends").success());
    assert_eq!(place.read(1).cells.len(), 12);
    assert!(place.run(&["--profile", "smoke"]).status.success());
}

fn what_is_wrong_on_the_command_line_is_told() {
    let place = Place::new();
    let complaint = |arguments: &[&str], code: i32| {
        let output = place.lab(arguments).output().expect("the lab starts");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stderr)
    };
    assert!(complaint(&["run", "write-and-sink"], 1).contains("there are write-and-sync"));
    assert!(complaint(&["run", "all", "--set", "write=1"], 1).contains("folders, rounds, writes"));
    assert!(complaint(&["run", "all", "--set", "writes"], 2).contains("KEY=VALUE"));
    assert!(complaint(&["run", "all", "--server", "oracle:23"], 2).contains("mariadb:11.8"));
    assert!(
        complaint(&["run", "all", "--cpus", "server=0"], 2).contains("none of source, receiver and load")
    );
    let place_of_programs = ["--binlogd", "binlogd", "--scripts", "binlogd"];
    for (set_apart, wanted) in [
        (&["--cpus", "load=1023"][..], "load cannot run on processor 1023"),
        (&["--source-dir", "binlogd"], "cannot make binlogd (--source-dir)"),
        (
            &["--source-dir", "s", "--server", "mysql://u@db:1"],
            "--source-dir: the source is a server of yours",
        ),
    ] {
        let arguments = [&["run", "all", "--journals", "j"], &place_of_programs[..], set_apart].concat();
        let told = complaint(&arguments, 1);
        assert!(told.contains(wanted), "{told}");
    }
    assert!(
        complaint(&["run", "all", "--binlogd", "nowhere"], 1).contains("cargo build --release -p binlogd")
    );
    assert!(complaint(&["runs"], 1).contains("target/lab.sqlite is not there"));
    let list = text(&place.lab(&["list"]).output().expect("the lab starts").stdout);
    for wanted in ["What the sync of a file costs", "smoke", "500", "cells"] {
        assert!(list.contains(wanted), "{list}");
    }
    // Nothing was measured, and nothing was made for it.
    assert!(!place.dir.path().join("target/lab.sqlite").exists());
}

fn passwords_are_not_kept() {
    let place = Place::new();
    let output = place.run(&["--profile", "smoke", "--server=mysql://dba:topsecret@db.example:3306"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = std::fs::read(place.dir.path().join("target/lab.sqlite")).expect("results");
    assert!(!file.windows(9).any(|window| window == b"topsecret"));
    assert!(place.read(1).command.contains(" --server=mysql://dba@db.example:3306 "));
    assert!(!text(&[output.stdout, output.stderr].concat()).contains("topsecret"));
}
