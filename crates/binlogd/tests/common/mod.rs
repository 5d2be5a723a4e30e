//! Real servers for integration tests, started by the project's `scripts/servers`.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "each test file uses its own part of this module"
)]

pub mod copy;
pub mod faults;
pub mod network;
pub mod program;
pub mod sides;
pub mod skip;

pub use copy::{archive, compare, ledger};
pub use faults::{injection, strace, torn, volume};
pub use network::{forward, proxy, tap};
pub use program::{alert, daemon, doctor, metrics, rules, verbs};
pub use sides::{fork_scene, nodes, pair, readers, semi_sync, switching, workload};

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use codec::ServerKind;
use wire::{ConnectOptions, TlsMode, TlsOptions};

/// Longest time for one call of the client program.
const SQL_SECONDS_MAX: u32 = 90;

/// Waits until `is_so`, at most that long; then the test has failed, and says `what` did not come true.
#[track_caller]
pub fn wait_within(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A server in a temporary folder, stopped and removed when dropped.
pub struct Server {
    name: String,
    dir: tempfile::TempDir,
    /// What `scripts/servers start` printed.
    env: HashMap<String, String>,
}

impl Server {
    /// Starts a server of that name with further options, for instance `Server::start("mysql-9.7", &["--gtid-mode=ON"])`.
    pub fn start(name: &str, options: &[&str]) -> Self {
        Self::start_by(script(), name, options)
    }

    /// As [`Server::start`], of a server to which the signal of a file that grows past its limit means nothing: the write
    /// fails.
    pub fn start_with_file_limit(name: &str, options: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(script_path()).stdin(Stdio::null());
        Self::start_by(command, name, options)
    }

    /// Starts a server of that name on a copy of a data folder.
    pub fn start_on(name: &str, data: &Path, options: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("binlogd-test-").tempdir().expect("a temporary folder");
        let mut command = script();
        command.args(["start", name, "--dir"]).arg(dir.path()).arg("--data-from").arg(data);
        command.arg("--").args(options);
        let env = parse_env(&run(command, &format!("starting {name}")));
        Self { name: name.to_owned(), dir, env }
    }

    fn start_by(mut command: Command, name: &str, options: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("binlogd-test-").tempdir().expect("a temporary folder");
        command.args(["start", name, "--dir"]).arg(dir.path()).arg("--").args(options);
        let env = parse_env(&run(command, &format!("starting {name}")));
        Self { name: name.to_owned(), dir, env }
    }

    /// MySQL or MariaDB.
    pub fn kind(&self) -> ServerKind {
        self.env("SERVER_KIND").parse().expect("a kind of server")
    }

    /// The name it was started by.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn port(&self) -> u16 {
        self.env("PORT").parse().expect("a port number")
    }

    /// A value that `scripts/servers start` printed.
    pub fn env(&self, key: &str) -> &str {
        self.env.get(key).unwrap_or_else(|| panic!("{}: scripts/servers printed no {key}", self.name))
    }

    pub fn datadir(&self) -> &Path {
        Path::new(self.env("DATADIR"))
    }

    /// The folder of this server, in which tests may keep files of their own.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Runs statements as root and gives what they print: no column names, columns parted by tabs.
    #[track_caller]
    pub fn sql(&self, statements: &str) -> String {
        let mut command = within(SQL_SECONDS_MAX, self.env("MYSQL"));
        command.args(["--batch", "--skip-column-names", "-e", statements]).stdin(Stdio::null());
        run(command, &format!("{}: {statements}", self.name))
    }

    /// Runs a file of statements as root, with further flags of the client, and gives what they print.
    #[track_caller]
    pub fn sql_file(&self, path: &Path, flags: &[&str]) -> String {
        let mut command = within(SQL_SECONDS_MAX, self.env("MYSQL"));
        let file = std::fs::File::open(path).expect("the file of statements");
        command.args(["--batch", "--skip-column-names"]).args(flags).stdin(file);
        run(command, &format!("{}: {}", self.name, path.display()))
    }

    /// Runs the mysqlbinlog of this server.
    pub fn mysqlbinlog<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Output {
        let mut command = Command::new(self.env("MYSQLBINLOG"));
        command.args(arguments).stdin(Stdio::null());
        command.output().expect("mysqlbinlog runs")
    }

    /// Ends the server with SIGKILL.
    pub fn kill(&self) {
        let mut command = script();
        command.arg("stop").arg(self.dir.path()).arg("--kill");
        run(command, &format!("killing {}", self.name));
    }

    /// Shuts the server down cleanly.
    pub fn stop(&self) {
        let mut command = script();
        command.arg("stop").arg(self.dir.path());
        run(command, &format!("stopping {}", self.name));
    }

    /// Starts the server again on the same data and port; options given here replace the earlier ones.
    pub fn restart(&mut self, options: &[&str]) {
        let mut command = script();
        command.arg("restart").arg(self.dir.path());
        if !options.is_empty() {
            command.arg("--").args(options);
        }
        self.env = parse_env(&run(command, &format!("restarting {}", self.name)));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that fails must not leave a server behind; whether this works no longer matters to it.
        let _ = script().arg("stop").arg(self.dir.path()).arg("--kill").output();
    }
}

/// How to reach a server by TCP. The time allowed is long, because tests run side by side on small machines.
pub fn connect_options(server: &Server, user: &str, password: &str, mode: TlsMode) -> ConnectOptions {
    ConnectOptions {
        host: server.env("HOST").to_owned(),
        port: server.port(),
        user: user.to_owned(),
        password: password.into(),
        connect_timeout: Duration::from_secs(30),
        tls: TlsOptions { mode, ..TlsOptions::default() },
    }
}

/// Seed of what is random in a test: of the environment's BINLOGD_TEST_SEED, else by the clock. It is printed, and a
/// failing test shows what it printed.
pub fn seed() -> u64 {
    let given = std::env::var("BINLOGD_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seed = given.unwrap_or(since_1970.as_secs() % 1_000_000);
    println!("again with BINLOGD_TEST_SEED={seed}");
    seed
}

/// Root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

fn script_path() -> PathBuf {
    workspace().join("scripts/servers")
}

pub fn script() -> Command {
    let mut command = Command::new(script_path());
    command.stdin(Stdio::null());
    command
}

/// A program that is ended when it takes longer: with semi-sync a statement may wait for ever.
fn within(seconds: u32, program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--signal=KILL").arg(seconds.to_string()).arg(program);
    command
}

/// Runs a command to its end; panics with all its output when it fails.
#[track_caller]
fn run(mut command: Command, what: &str) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{what}: {command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{what}: {}\n{stdout}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    stdout
}

fn parse_env(lines: &str) -> HashMap<String, String> {
    let pairs = lines.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
