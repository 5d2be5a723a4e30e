//! binlogd is killed with SIGKILL while it archives, again and again, and so are those who read and prune.
//!
//! The simulation of the archive breaks off at each request to a store. Here it is the built program that is killed, at any
//! moment, over a folder: each kill leaves something half done, such as a file without its name, an object that no commit names,
//! or a commit that nobody was told of.
//!
//! `BINLOGD_KILL_ROUNDS` is the number of kills of each (5; `make kill-loop`: 20). `BINLOGD_TEST_SEED` replays the moments of a
//! failed run, as far as time can be replayed.

use super::MANNER;
use super::place::{PATIENCE, Place, folder, wait_archived};
use crate::common::compare::binary_logs;
use crate::common::daemon::Daemon;
use crate::common::ledger::{self, Ledger};
use crate::common::readers::make_account;
use crate::common::workload::Random;
use crate::common::{Server, seed};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const WRITERS: usize = 3;
/// A kill at any moment comes this long after binlogd was started, at most.
const UPTIME_MAX: Duration = Duration::from_millis(2_500);
/// A kill in the middle of an upload comes this long after an object has come, at most: what a look takes comes first.
const IN_UPLOAD_MAX: Duration = Duration::from_millis(30);
/// Files that prune leaves.
const KEPT: usize = 2;

fn rounds() -> u64 {
    std::env::var("BINLOGD_KILL_ROUNDS")
        .ok()
        .map_or(5, |text| text.parse().expect("BINLOGD_KILL_ROUNDS is a number"))
}

fn below(random: &mut Random, limit: Duration) -> Duration {
    Duration::from_micros(random.below(limit.as_micros() as u64 + 1))
}

/// Entries below a folder, those half done too, which may be gone a moment later.
fn entries(folder: &Path) -> usize {
    match std::fs::read_dir(folder) {
        Ok(found) => found.flatten().map(|entry| 1 + entries(&entry.path())).sum(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => 0,
        Err(error) => panic!("{}: {error}", folder.display()),
    }
}

/// Waits for the moment of a kill: any, or one in an upload, which comes once a second and is over soon. What it was.
fn moment(random: &mut Random, place: &Place, daemon: &Daemon) -> String {
    if random.below(2) == 0 {
        let uptime = below(random, UPTIME_MAX);
        std::thread::sleep(uptime);
        return format!("{uptime:?} after the start");
    }
    let (before, deadline) = (entries(&place.root()), Instant::now() + PATIENCE);
    while entries(&place.root()) == before {
        assert!(
            Instant::now() < deadline,
            "nothing is uploaded: there are {before} entries, and the daemon says\n{:#}",
            daemon.source()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    let later = below(random, IN_UPLOAD_MAX);
    std::thread::sleep(later);
    format!("{later:?} after an object came")
}

/// Kills a verb at a moment within the time that it takes. Whether it was still at work.
fn kill_within(random: &mut Random, takes: Duration, mut child: Child) -> bool {
    std::thread::sleep(below(random, takes));
    let is_at_work = child.try_wait().expect("a child of ours").is_none();
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    is_at_work
}

/// Runs a verb that is killed, as often as there are rounds, with what the round says.
fn kill_again_and_again(
    place: &Place,
    random: &mut Random,
    takes: Duration,
    verb: &str,
    arguments: impl Fn(usize) -> Vec<String>,
) {
    let mut killed = 0;
    for round in 1..=rounds() {
        let arguments = arguments(round as usize);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = place.command(verb, &arguments);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("binlogd starts");
        killed += u64::from(kill_within(random, takes, child));
    }
    println!("{verb}: {killed} of {} were killed at work, which takes {takes:?}", rounds());
}

#[test]
fn kills_leave_no_hole_in_the_archive() {
    let seed = seed();
    let mut random = Random::new(seed);
    let source = Server::start("mysql-9.7", &["--max-binlog-size=262144"]);
    make_account(&source);
    ledger::create_table(&source);
    let place = Place::folder();
    let mut daemon = place.start(&source, "");
    let ledger = Ledger::start_in(&source, WRITERS, MANNER);
    let first_commit = format!("default/commits/{:020}.json", 1);
    for round in 1..=rounds() {
        let moment = moment(&mut random, &place, &daemon);
        daemon.kill();
        println!("round {round}: killed {moment}");
        if place.root().join(&first_commit).exists() {
            place.assert_sound();
        }
        daemon.restart(&[]);
    }
    ledger.wait_progress(&ledger.committed());
    ledger.finish();
    wait_archived(&daemon, &source);
    let names = binary_logs(&source);
    assert!(names.len() > 3, "the load made too little");
    place.assert_whole(&source);

    let began = Instant::now();
    drop(place.fetch());
    let (takes, dir) = (began.elapsed() / 2, folder());
    let to = ["--to".to_owned(), dir.path().to_str().expect("a plain path").to_owned()];
    kill_again_and_again(&place, &mut random, takes, "fetch", |_| to.to_vec());
    assert_eq!(place.fetch_into(dir).assert_is_of(&source), names);

    // Each round has something to delete, whatever became of the one before.
    let rules = |kept: usize| {
        ["--max-files", &kept.max(KEPT).to_string(), "--grace", "0s", "--yes"].map(str::to_owned)
    };
    let fewer = |round| rules(names.len().saturating_sub(round)).to_vec();
    kill_again_and_again(&place, &mut random, takes, "prune", fewer);
    place.assert_sound();
    println!("{}", place.run("prune", &rules(KEPT).each_ref().map(String::as_str)));
    let sound = place.assert_sound();
    assert_eq!((&sound["files"], &sound["unnamed_objects"]), (&KEPT.into(), &0.into()), "{sound:#}");
    assert_eq!(place.fetch().assert_is_newest_of(&source, KEPT), names[names.len() - KEPT..]);
}
