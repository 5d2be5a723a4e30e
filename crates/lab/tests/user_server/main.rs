//! A server of the user's, given by URL: everything is as it was after a run, after Ctrl-C, and after a crash and
//! `restore`; a server with other data is refused.
//!
//! This program is three: the tests, the lab (with `as-lab` before the lab's arguments, and when the lab starts itself as
//! the bare receiver), and binlogd (when it is called so). A build of binlogd's own program would take minutes.

mod lane;
mod restored;
mod sync_binlog;
#[path = "../written/mod.rs"]
mod written;
mod yardsticks;

use binlogd_lab::results::run::Run;
use binlogd_lab::server::address;
use binlogd_lab::store::Store;
use codec::ServerKind;
use rig::process::Running;
use rig::server::{Server, Session};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for anything.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// With what a URL, a configuration file of sysbench and a shell must take care of.
const PASSWORD: &str = "p w#'@:%/x";
const PASSWORD_IN_A_URL: &str = "p%20w%23%27%40%3A%25%2Fx";
/// A run of seconds, and one that is long enough to be caught in the middle.
const SMALL: [&str; 8] =
    ["--set", "threads=2", "--set", "tables=1", "--set", "rows=1000", "--set", "seconds=1"];
/// The same of a study with TPC-C.
const SMALL_TPCC: [&str; 10] = [
    "--set",
    "warehouses=1",
    "--set",
    "threads=2",
    "--set",
    "seconds=1",
    "--set",
    "buffer_pool_mib=128",
    "--set",
    "redo_log_mib=64",
];
const LONG: [&str; 10] = [
    "--set",
    "threads=2",
    "--set",
    "tables=1",
    "--set",
    "rows=1000",
    "--set",
    "seconds=4",
    "--set",
    "rounds=100",
];
/// What moves by itself with every transaction.
const MOVING: [&str; 7] = [
    "gtid_executed",
    "gtid_purged",
    "gtid_owned",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "innodb_buffer_pool_resize_status",
];

fn main() -> ExitCode {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.first().is_some_and(|program| Path::new(program).ends_with("binlogd")) {
        return binlogd::cli::main();
    }
    let is_lab = arguments.get(1).is_some_and(|argument| argument == "as-lab");
    if is_lab {
        arguments.remove(1);
    }
    if is_lab || arguments.get(1).is_some_and(|argument| argument == "bare") {
        return binlogd_lab::cli::main_with(binlogd_lab::study::catalogue::all(), arguments);
    }
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    lane::run_all(&filter)
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/servers")
}

/// A user's server, and a folder for the lab.
struct User {
    /// As `scripts/servers` names it.
    name: &'static str,
    server: Server,
    dir: TempDir,
}

impl User {
    /// Starts it; MySQL without the semi-sync plugins, which the lab must install then.
    fn new(name: &'static str) -> User {
        // On the file system of this program, so that it can have a second name.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        let program = std::env::current_exe().expect("this program");
        std::fs::hard_link(program, dir.path().join("binlogd")).expect("a second name");
        std::fs::create_dir(dir.path().join("measured")).expect("a folder");
        // Built once for all.
        for program in ["go-tpc", "go-mysqlbinlog"] {
            let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program);
            std::fs::create_dir_all(&built).expect("a folder");
            std::os::unix::fs::symlink(built, dir.path().join("measured").join(program)).expect("a link");
        }
        // Unlike the default of the lab's own servers, and pools may have the sizes that TPC-C of one warehouse needs.
        let mut options = vec!["--character-set-server=latin1"];
        options.extend(match name.starts_with("mysql") {
            true => ["--plugin-load=", "--innodb-buffer-pool-chunk-size=1M"].as_slice(),
            false => &["--innodb-buffer-pool-size=128M"],
        });
        let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        let server =
            Server::start(&scripts(), name, dir.path().join("server"), None, &options).expect("a server");
        let user = User { name, server, dir };
        let password = PASSWORD.replace('\'', "''");
        user.root()
            .run(&[
                format!("CREATE USER dba@'%' IDENTIFIED BY '{password}'"),
                "GRANT ALL ON *.* TO dba@'%' WITH GRANT OPTION".to_owned(),
                // Not the values that a study sets, so that restoring them is seen.
                "SET GLOBAL sync_binlog = 7".to_owned(),
                "SET GLOBAL innodb_flush_log_at_trx_commit = 0".to_owned(),
                "SET GLOBAL max_prepared_stmt_count = 10".to_owned(),
            ])
            .expect("an account");
        user
    }

    fn root(&self) -> Session {
        self.server.session().expect("a session")
    }

    fn place(&self) -> String {
        format!("127.0.0.1:{}", self.server.port())
    }

    fn journals(&self) -> PathBuf {
        self.dir.path().join("journals")
    }

    /// `binlogd-lab run virtual-replica`, the password in the environment.
    fn run_command(&self, more: &[&str]) -> Command {
        self.run_command_of("virtual-replica", more)
    }

    fn run_command_of(&self, study: &str, more: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.current_dir(self.dir.path()).args(["as-lab", "run", study, "--profile", "smoke"]);
        command.args(["--dir", "measured", "--binlogd", "binlogd", "--journals", "journals", "--scripts"]);
        command.arg(scripts()).args(more).env(address::PASSWORD_VARIABLE, PASSWORD);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, more: &[&str]) -> Output {
        self.run_command(more).output().expect("the lab starts")
    }

    fn url(&self) -> String {
        format!("mysql://dba@{}", self.place())
    }

    fn newest(&self, study: &str) -> Run {
        let store = Store::open(&self.dir.path().join("target/lab.sqlite")).expect("results");
        let newest = store.newest(study).expect("runs").expect("a run");
        store.run(newest.id).expect("the run")
    }

    /// Starts a run and waits until a load runs with semi-sync on.
    fn run_into_a_load(&self) -> Running {
        let mut lab = Running(
            self.run_command(&[&["--server", &self.url()][..], &LONG].concat())
                .spawn()
                .expect("the lab starts"),
        );
        let began = Instant::now();
        let prefix = match self.root().server_kind() {
            ServerKind::MySql => "source",
            ServerKind::MariaDb => "master",
        };
        loop {
            let mut root = self.root();
            let enabled = format!("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_{prefix}_enabled'");
            let on = root.query(&enabled).expect("an answer").get(0, "Value") == Some("ON");
            let loads = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'binlogd_lab'";
            let loads: u64 =
                root.query(loads).expect("an answer").first().unwrap_or("0").parse().expect("a number");
            if on && loads >= 2 {
                return lab;
            }
            if let Some(status) = lab.0.try_wait().expect("a child") {
                panic!("the lab has ended, {status}: {}", said(&mut lab));
            }
            assert!(began.elapsed() < WAIT_MAX, "no load with semi-sync: {on} {loads}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn snapshot(&self) -> BTreeMap<String, String> {
        let mut root = self.root();
        let mut all = BTreeMap::new();
        let mut keep = |kind: &str, sql: &str| {
            let rows = root.query(sql).expect("an answer");
            for row in &rows.rows {
                let text = |index: usize| {
                    row.get(index)
                        .cloned()
                        .flatten()
                        .map_or_else(String::new, |bytes| String::from_utf8_lossy(&bytes).into_owned())
                };
                if !MOVING.contains(&text(0).as_str()) {
                    all.insert(format!("{kind} {}", text(0)), text(1));
                }
            }
        };
        keep("variable", "SHOW GLOBAL VARIABLES");
        keep("database", "SHOW DATABASES");
        keep("plugin", "SELECT plugin_name, plugin_status FROM information_schema.plugins");
        keep("account", "SELECT CONCAT(user, '@', host), '' FROM mysql.user");
        all
    }

    /// Waits until neither a load nor a receiver is connected any more.
    fn wait_until_alone(&self) {
        let began = Instant::now();
        let others = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'dba'";
        while self.root().query(others).expect("an answer").first() != Some("0") {
            assert!(began.elapsed() < WAIT_MAX, "somebody is still connected");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn said(lab: &mut Running) -> String {
    use std::io::Read;
    let mut text = String::new();
    lab.0.stderr.take().expect("a pipe").read_to_string(&mut text).expect("its complaint");
    text
}

/// Shows what differs, not two maps of hundreds of variables.
#[track_caller]
fn assert_same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let differs = |(name, value): &(&String, &String)| after.get(*name) != Some(*value);
    let changed: Vec<_> =
        before.iter().filter(differs).map(|(name, value)| (name, value, after.get(name))).collect();
    let added: Vec<_> = after.keys().filter(|name| !before.contains_key(*name)).collect();
    assert!(changed.is_empty() && added.is_empty(), "changed: {changed:?}, new: {added:?}");
}

fn journals_in(dir: &Path) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

fn a_run_leaves_nothing(user: &User) {
    let before = user.snapshot();
    let url = format!("mysql://dba:{PASSWORD_IN_A_URL}@{}", user.place());
    let output = user.run(&[&["--server", &url][..], &SMALL].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stderr);
    for what in ["take over what the study sets of binlog_format", "sync_binlog = 7 again"] {
        assert!(said.contains(what), "{said}");
    }
    let run = user.newest("virtual-replica");
    assert_eq!(run.cells.len(), 8);
    for cell in &run.cells {
        assert_eq!(cell.measured.invalid, None, "{:?}", cell.key);
        assert!(cell.measured.values["tps"] > 0.0);
        let waited = cell.measured.values.get("source_wait_us").is_some_and(|wait| *wait > 0.0);
        assert_eq!(waited, cell.key.point.configuration.to_string() != "source alone", "{:?}", cell.measured);
    }
    assert!(run.skipped.is_empty(), "{:?}", run.skipped);
    assert_same(&before, &user.snapshot());
    assert_eq!(journals_in(&user.journals()), 0);
    let stored = std::fs::read(user.dir.path().join("target/lab.sqlite")).expect("results");
    for password in [PASSWORD, PASSWORD_IN_A_URL] {
        assert!(!stored.windows(password.len()).any(|bytes| bytes == password.as_bytes()));
    }
    user.wait_until_alone();
}

/// TPC-C with real replicas, of a server that also speaks TLS, and whose log holds statements.
fn replicas_stand_beside_it_and_leave_nothing(user: &User) {
    user.root().query("SET GLOBAL binlog_format = MIXED").expect("it is set");
    let before = user.snapshot();
    let output =
        user.run_command_of("semi-sync-cost", &[&["--server", &user.url()][..], &SMALL_TPCC].concat());
    let output = { output }.output().expect("the lab starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = user.newest("semi-sync-cost");
    assert_eq!(run.cells.len(), 4);
    for cell in &run.cells {
        assert_eq!(cell.measured.invalid, None, "{:?}", cell.key);
        let value = |name: &str| cell.measured.values[name];
        // Level after each cell, and without rows that had to be passed over.
        assert!(value("tpmc") > 0.0 && value("began_anew") == 0.0, "{:?}", cell.measured);
    }
    assert_same(&before, &user.snapshot());
    assert_eq!(journals_in(&user.journals()), 0);
    user.wait_until_alone();
}

fn an_interrupted_run_leaves_nothing(user: &User) {
    let before = user.snapshot();
    let mut lab = user.run_into_a_load();
    assert_ne!(before, user.snapshot(), "or nothing would have to be restored");
    kill_process(Pid::from_child(&lab.0), Signal::INT).expect("it is there");
    let status = lab.wait_within(WAIT_MAX).expect("it ends");
    let said = said(&mut lab);
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(
        said.contains("sync_binlog = 7 again") && said.contains("database binlogd_lab dropped"),
        "{said}"
    );
    assert_same(&before, &user.snapshot());
    assert_eq!(journals_in(&user.journals()), 0, "{said}");
    user.wait_until_alone();
}

fn a_server_with_other_data_is_refused(user: &User) {
    let mut root = user.root();
    root.run(&["CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)"]).expect("other data");
    let before = user.snapshot();
    let url = user.url();
    let arguments = [&["--server", &url][..], &SMALL].concat();
    let refused = user.run(&arguments);
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && complaint.contains("shop"), "{complaint}");
    assert!(complaint.contains(&format!("--use-server-with-data {}", user.place())), "{complaint}");
    let elsewhere = user.run(&[&arguments[..], &["--use-server-with-data", "127.0.0.1:1"]].concat());
    assert!(!elsewhere.status.success());
    assert_same(&before, &user.snapshot());

    // Allowed by name; but not in a database of that name that is somebody else's.
    root.run(&["CREATE DATABASE binlogd_lab", "CREATE TABLE binlogd_lab.precious (id INT PRIMARY KEY)"])
        .expect("a database");
    let place = user.place();
    let allowed = [&arguments[..], &["--use-server-with-data", &place]].concat();
    let refused = user.run(&allowed);
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && complaint.contains("did not create"), "{complaint}");
    root.query("SELECT * FROM binlogd_lab.precious").expect("it is still there");
    root.query("DROP DATABASE binlogd_lab").expect("it is dropped");
    let output = user.run(&allowed);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_same(&before, &user.snapshot());
    assert_eq!(journals_in(&user.journals()), 0);
    root.query("DROP DATABASE shop").expect("it is dropped");
}
