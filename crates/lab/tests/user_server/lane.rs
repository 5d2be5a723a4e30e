//! The tests of this program, and the lanes that they run in.

use super::{User, restored, sync_binlog, yardsticks};
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::thread::{Builder, Scope, ScopedJoinHandle, scope};
use std::time::Instant;

type Test = fn(&User);
type Tests = &'static [(&'static str, Test)];

/// Runs of a study, some of them broken off.
const RUNS: Tests = &[
    ("a_run_leaves_nothing", super::a_run_leaves_nothing),
    ("an_interrupted_run_leaves_nothing", super::an_interrupted_run_leaves_nothing),
    ("a_failed_restore_is_told_and_no_success", restored::a_failed_restore_is_told_and_no_success),
    ("after_a_crash_everything_is_restored", restored::after_a_crash_everything_is_restored),
    ("what_another_has_changed_since_stays", restored::what_another_has_changed_since_stays),
    ("a_server_with_other_data_is_refused", super::a_server_with_other_data_is_refused),
];
/// Those that take programs in Go, the longest for itself.
const GO: Tests = &[
    ("replicas_stand_beside_it_and_leave_nothing", super::replicas_stand_beside_it_and_leave_nothing),
    ("yardsticks_are_measured_on_the_labs_own", yardsticks::are_measured_on_the_labs_own),
];
const SYNC_BINLOG: Tests = &[("sync_binlog_leaves_nothing", sync_binlog::leaves_nothing)];

/// go-tpc and go-mysqlbinlog, built where every lab of this program finds them. They take a while to build, and stay: one
/// lane builds them, the others of their kind wait.
static BUILT: LazyLock<()> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    binlogd_lab::load::go_tpc::build(dir, |said| eprintln!("{said}")).expect("go-tpc");
    binlogd_lab::receiver::go_mysqlbinlog::build(dir).expect("go-mysqlbinlog");
});

/// Tests on one server of a user's, one after the other. The lanes run side by side: most tests wait for a server most of
/// the time.
#[derive(Clone)]
struct Lane {
    /// The server, as `scripts/servers` names it.
    server: &'static str,
    uses_go: bool,
    /// Their whole names, which begin with the server's.
    tests: Vec<(String, Test)>,
}

/// How many tests went well, failed, and had none of it because one before them failed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    passed: usize,
    failed: usize,
    not_run: usize,
}

/// Runs the tests whose names hold `filter`.
pub(crate) fn run_all(filter: &str) -> ExitCode {
    let (lanes, began) = (lanes(filter), Instant::now());
    let counts = scope(|scope| {
        let running: Vec<_> = lanes
            .iter()
            // Named: what a failure says begins with the name of its thread.
            .map(|lane| named(scope, lane.server, || run(lane)))
            .collect();
        let ended = running.into_iter().zip(&lanes).map(|(running, lane)| {
            // The lane itself fails without a program or a server.
            running.join().unwrap_or_else(|_| {
                println!("test {}, before its first test ... FAILED", lane.server);
                Count { failed: 1, not_run: lane.tests.len(), ..Count::default() }
            })
        });
        ended.collect::<Vec<_>>()
    });
    let sum = |of: fn(&Count) -> usize| counts.iter().map(of).sum::<usize>();
    let (passed, failed) = (sum(|count| count.passed), sum(|count| count.failed));
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {passed} passed; {failed} failed; {} not run after a failure; finished in {:.2}s",
        sum(|count| count.not_run),
        began.elapsed().as_secs_f64()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn lanes(filter: &str) -> Vec<Lane> {
    let servers = ["mysql-9.7", "mariadb-11.8"];
    let all = servers
        .into_iter()
        .flat_map(|server| [(server, RUNS, false), (server, GO, true), (server, SYNC_BINLOG, true)]);
    let lanes = all.map(|(server, tests, uses_go)| {
        let named = tests.iter().map(|(name, test)| (format!("{server}::{name}"), *test));
        Lane { server, uses_go, tests: named.filter(|(name, _)| name.contains(filter)).collect() }
    });
    lanes.filter(|lane| !lane.tests.is_empty()).collect()
}

/// A failure may leave the server in any state, so the lane ends with the first.
fn run(lane: &Lane) -> Count {
    if lane.uses_go {
        LazyLock::force(&BUILT);
    }
    let user = User::new(lane.server);
    let mut count = Count::default();
    for (name, test) in &lane.tests {
        let outcome = scope(|scope| named(scope, name, || test(&user)).join());
        if outcome.is_err() {
            println!("test {name} ... FAILED");
            let not_run = lane.tests.len() - count.passed - 1;
            return Count { failed: 1, not_run, ..count };
        }
        println!("test {name} ... ok");
        count.passed += 1;
    }
    count
}

fn named<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, work).expect("a thread")
}
