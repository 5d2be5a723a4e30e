//! MySQL's and MariaDB's own test suites as a workload: thousands of tests that write, each in its way, what no test of
//! binlogd's would think of. Whether a test passes does not matter here. What matters is that every file of the copy is
//! one of the source's, byte for byte, that commits return, and that `binlogd verify` finds nothing.
//!
//! `make mysql-tests` runs it for `BINLOGD_MYSQL_TESTS_MINUTES`; without that variable it does nothing. The time is cut into
//! batches, each with a server, a copy and a seed of its own, which is printed; `BINLOGD_TEST_SEED` picks the same tests
//! again. binlogd is killed now and then. One test in four resets the source's logs.

mod keeper;
mod suites;

use self::keeper::Keeper;
use self::suites::Suites;
use crate::common::compare::binary_logs;
use crate::common::daemon::Daemon;
use crate::common::semi_sync::SemiSync;
use crate::common::workload::Random;
use crate::common::{Server, seed};
use binlog::storage::posix::PosixStorage;
use codec::ServerKind;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A batch is no longer, so that what tests leave behind does not pile up.
const BATCH_MAX: Duration = Duration::from_secs(120);
/// A test that takes longer is ended.
const TEST_MAX: Duration = Duration::from_secs(20);
/// Longest wait for a commit to return once a test is over.
const COMMIT_MAX: Duration = Duration::from_secs(60);
/// Longer than any batch: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const NEVER: Duration = Duration::from_secs(3_600);
/// A file with nothing but its beginning may come and go between two looks, in bytes.
const BEGINNING_MAX: usize = 1_000;
/// So many failures of the server in a row: what tests left behind makes it unusable.
const UNUSABLE: u32 = 3;
/// Of the first event's flags: see `common/copy/compare.rs`.
const FLAGS_AT: usize = 4 + 17;
const IN_USE: u8 = 0x01;
/// How a file begins that the source encrypts; what it sends is in clear, so the two cannot be compared.
const ENCRYPTED_MAGIC: u8 = 0xfd;

/// Statements that hold up every login while they wait for an acknowledgement, binlogd's own too (docs/failures.md): when
/// binlogd is killed then, nobody can help but the end of the server.
const LOCK_OUT: [&str; 7] =
    ["grant", "revoke", "create user", "drop user", "alter user", "set password", "role"];
/// Longest time for a login, on a machine that has much to do.
const LOGIN_SECONDS_MAX: &str = "20";

const FLAGS: [&str; 6] = [
    "--heartbeat-period=500ms",
    "--net-read-timeout=3s",
    "--backoff-min=50ms",
    "--backoff-max=500ms",
    // Tests purge logs, also while binlogd is down.
    "--on-gap=record",
    "--fsync-mode=1",
];

/// What was done and found.
#[derive(Default)]
struct Report {
    tests: u64,
    ended: u64,
    files: u64,
    bytes: u64,
    resets: u64,
    kills: u64,
    lock_outs: u64,
    server_starts: u64,
    timelines: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tests ({} of them ended after {} s), {} resets of the source's logs, {} kill -9 of binlogd, {} servers killed \
             because an account statement kept out every login, {} starts of a server that \
             was gone; {} files of {} bytes in {} timelines, all of them the source's in every byte",
            self.tests,
            self.ended,
            TEST_MAX.as_secs(),
            self.resets,
            self.kills,
            self.lock_outs,
            self.server_starts,
            self.files,
            self.bytes,
            self.timelines
        )
    }
}

/// A server, a copy, and what is between them.
struct Batch<'a> {
    suites: &'a Suites,
    server: Server,
    daemon: Daemon,
    scratch: tempfile::TempDir,
    random: Random,
    /// An account statement waits for an acknowledgement, and no login succeeds before it returns.
    is_locked_out: bool,
    report: &'a mut Report,
}

impl Batch<'_> {
    fn run(mut self, until: Instant) {
        let mut keeper = Keeper::start(&self.server);
        let mut failures = 0;
        while Instant::now() < until && failures < UNUSABLE {
            let test = self.suites.any(&mut self.random).to_owned();
            println!("  {}", test.strip_prefix(&self.suites.folder).unwrap_or(&test).display());
            self.test(&test);
            failures = if self.tidied(&test) { 0 } else { failures + 1 };
            if self.is_locked_out {
                self.report.lock_outs += 1;
                self.server.kill();
                failures = UNUSABLE;
            }
        }
        if failures == 0 {
            self.rotate_and_compare_present();
        }
        self.daemon.terminate();
        self.server.stop();
        let kept = keeper.files(&self.server);
        self.report.resets += kept.values().map(|files| files.len() as u64 - 1).max().unwrap_or(0);
        self.compare(&kept);
        self.verify();
    }

    /// Runs one test to its end, and kills binlogd in the midst of it now and then.
    fn test(&mut self, test: &Path) {
        let mut child = self.suites.start(test, &self.server, self.scratch.path());
        let began = Instant::now();
        let kill_after = Duration::from_millis(self.random.below(1_500));
        let text = String::from_utf8_lossy(&std::fs::read(test).unwrap()).to_lowercase();
        let mut is_to_be_killed =
            self.random.below(6) == 0 && !LOCK_OUT.iter().any(|words| text.contains(words));
        while child.try_wait().unwrap().is_none() {
            if is_to_be_killed && began.elapsed() >= kill_after {
                is_to_be_killed = false;
                self.daemon.kill();
                std::thread::sleep(Duration::from_millis(self.random.below(700)));
                self.daemon.restart(&FLAGS);
                self.report.kills += 1;
            }
            if began.elapsed() > TEST_MAX {
                child.kill().unwrap();
                child.wait().unwrap();
                self.report.ended += 1;
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.report.tests += 1;
    }

    /// Makes the server usable for the next test; a commit among it must return. False when the server refuses.
    #[track_caller]
    fn tidied(&mut self, test: &Path) -> bool {
        let role = if self.server.kind() == ServerKind::MariaDb { "master" } else { "source" };
        let settings = format!(
            "SET GLOBAL super_read_only = 0; SET GLOBAL read_only = 0; SET GLOBAL offline_mode = 0; SET GLOBAL event_scheduler = 0; \
             SET GLOBAL require_secure_transport = 0; SET GLOBAL rpl_semi_sync_{role}_timeout = {}; \
             SET GLOBAL rpl_semi_sync_{role}_enabled = 1; SET GLOBAL max_binlog_size = 1073741824; SET GLOBAL sql_mode = DEFAULT; \
             DROP DATABASE IF EXISTS test; CREATE DATABASE test",
            NEVER.as_millis()
        );
        let mut said = self.client(&["--force"], &settings);
        if is_gone(&said) {
            self.server.restart(&[]);
            self.report.server_starts += 1;
            said = self.client(&["--force"], &settings);
        }
        // 124: the time was over.
        if said.status.code() == Some(124) && self.logins_hang() {
            self.is_locked_out = true;
            return false;
        }
        if said.status.code() == Some(124) {
            let processes = self.client(&[], "SHOW FULL PROCESSLIST");
            panic!(
                "after {} a commit did not return within {COMMIT_MAX:?}:\n{}\n{:#}\n{}",
                test.display(),
                String::from_utf8_lossy(&processes.stdout),
                self.daemon.source(),
                self.daemon.log()
            );
        }
        assert_ne!(
            self.daemon.source()["state"],
            "stopped",
            "after {}:\n{}",
            test.display(),
            self.daemon.log()
        );
        let left = self.client(
            &[],
            "SELECT CONCAT('DROP DATABASE `', REPLACE(schema_name, '`', '``'), '`;') FROM information_schema.schemata WHERE \
             schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema', 'test', 'mtr')",
        );
        let drops = String::from_utf8_lossy(&left.stdout).into_owned();
        let usable =
            self.client(&[], "SELECT 1 FROM DUAL; CREATE TABLE test.usable (id INT); DROP TABLE test.usable");
        self.client(&["--force"], &drops);
        usable.status.success()
    }

    fn logins_hang(&self) -> bool {
        let login = Command::new("timeout")
            .args([LOGIN_SECONDS_MAX, self.server.env("MYSQL"), self.tls_flag(), "-e", "SELECT 1"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        login.status.code() == Some(124)
    }

    /// Some tests leave a server that wants TLS; the client program takes it only when asked to.
    fn tls_flag(&self) -> &'static str {
        match self.server.kind() {
            ServerKind::MySql => "--ssl-mode=PREFERRED",
            ServerKind::MariaDb => "--ssl",
        }
    }

    /// The client program with a limit of time.
    fn client(&self, flags: &[&str], statements: &str) -> Output {
        Command::new("timeout")
            .arg(COMMIT_MAX.as_secs().to_string())
            .arg(self.server.env("MYSQL"))
            .args(["--batch", "--skip-column-names", self.tls_flag()])
            .args(flags)
            .args(["-e", statements])
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// What the source has now, the copy has: nothing is left out.
    fn rotate_and_compare_present(&mut self) {
        self.client(&[], "FLUSH BINARY LOGS");
        self.daemon.wait_caught_up(&self.server);
        for name in binary_logs(&self.server) {
            let theirs = std::fs::read(self.server.datadir().join(&name)).unwrap();
            let is_held = self.daemon.timeline_dirs().iter().any(|timeline| {
                std::fs::read(timeline.join(&name)).is_ok_and(|ours| is_same(&theirs, &ours))
            });
            let encrypted = theirs.first() == Some(&ENCRYPTED_MAGIC);
            assert!(is_held || encrypted, "{name} of the source is on no timeline\n{}", self.daemon.log());
        }
    }

    /// Every file of the copy is one of the source's: a sealed one whole, the last of a timeline as far as it goes.
    fn compare(&mut self, kept: &BTreeMap<String, Vec<Vec<u8>>>) {
        for timeline in self.daemon.timeline_dirs() {
            self.report.timelines += 1;
            let names = binlog::timeline::files::binlog_files(&PosixStorage, &timeline).unwrap();
            let last = names.last().cloned();
            for name in names {
                let ours = std::fs::read(timeline.join(&name)).unwrap();
                let is_live = last.as_ref() == Some(&name);
                let theirs = kept.get(&name).map(Vec::as_slice).unwrap_or_default();
                let fits = |theirs: &Vec<u8>| match is_live {
                    true => theirs.len() >= ours.len() && is_same(&theirs[..ours.len()], &ours),
                    false => is_same(theirs, &ours),
                };
                let encrypted = theirs.iter().any(|theirs| theirs.first() == Some(&ENCRYPTED_MAGIC));
                assert!(
                    theirs.iter().any(fits) || encrypted || ours.len() < BEGINNING_MAX,
                    "{}: its {} bytes are in none of the source's {} files of that name ({:?} bytes)\n{}",
                    timeline.join(&name).display(),
                    ours.len(),
                    theirs.len(),
                    theirs.iter().map(Vec::len).collect::<Vec<_>>(),
                    self.daemon.log()
                );
                self.report.files += 1;
                self.report.bytes += ours.len() as u64;
            }
        }
    }

    fn verify(&self) {
        let verify =
            Command::new(env!("CARGO_BIN_EXE_binlogd")).arg("verify").arg(self.daemon.data_dir()).output();
        let verify = verify.unwrap();
        assert!(
            verify.status.success(),
            "{}\n{}",
            String::from_utf8_lossy(&verify.stdout),
            self.daemon.log()
        );
    }
}

fn is_gone(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    ["ERROR 2002", "ERROR 2003", "ERROR 2013", "ERROR 2006"].iter().any(|code| said.contains(code))
}

/// Equal but for the bit that marks a file which the source has not closed.
fn is_same(theirs: &[u8], ours: &[u8]) -> bool {
    theirs == ours
        || theirs.len() == ours.len()
            && theirs.len() > FLAGS_AT
            && theirs[..FLAGS_AT] == ours[..FLAGS_AT]
            && theirs[FLAGS_AT] == ours[FLAGS_AT] | IN_USE
            && theirs[FLAGS_AT + 1..] == ours[FLAGS_AT + 1..]
}

#[test]
fn the_servers_own_suites() {
    let Ok(minutes) = std::env::var("BINLOGD_MYSQL_TESTS_MINUTES") else {
        println!("not asked for: make mysql-tests");
        return;
    };
    let time = Duration::from_secs_f64(60.0 * minutes.parse::<f64>().expect("a number of minutes"));
    let seed = seed();
    let until = Instant::now() + time;
    let kinds: [(&str, &[&str]); 3] = [
        ("mysql-9.7", &["--plugin-load-add=semisync_source.so"]),
        ("mariadb-11.8", &[]),
        (
            "mysql-9.7",
            &["--plugin-load-add=semisync_source.so", "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"],
        ),
    ];
    let mut report = Report::default();
    // A short run has not the time for all three.
    let in_turn = kinds.iter().cycle().skip(seed as usize % kinds.len());
    for (number, (name, options)) in in_turn.enumerate() {
        if Instant::now() >= until {
            break;
        }
        println!("{name} {}", options.join(" "));
        let suites = Suites::of(name);
        let server = Server::start(name, options);
        server.sql(
            "CREATE DATABASE IF NOT EXISTS test; CREATE DATABASE mtr; CREATE PROCEDURE mtr.add_suppression(words TEXT) BEGIN END",
        );
        let daemon = Daemon::start(&server, &FLAGS);
        daemon.wait_caught_up(&server);
        SemiSync::enable(&server, NEVER).wait_attached();
        let batch = Batch {
            suites: &suites,
            server,
            daemon,
            scratch: tempfile::tempdir().unwrap(),
            random: Random::new(seed + number as u64),
            is_locked_out: false,
            report: &mut report,
        };
        batch.run((Instant::now() + BATCH_MAX.min(time / kinds.len() as u32)).min(until));
        println!("so far: {report}");
    }
    println!("mysql-tests: {report}");
}
