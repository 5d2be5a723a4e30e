//! The built binary, run as an operator runs it: `binlogd run` with flags, its status over HTTP, its log in a file.

use std::cell::RefCell;
use std::fs::{DirEntry, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::Server;

/// Longest time from the start of the process to its first answer over HTTP.
const START_MAX: Duration = Duration::from_secs(30);
/// Longest time that [`Daemon::terminate`] allows for finishing what has arrived.
const STOP_MAX: Duration = Duration::from_secs(30);
/// Longest time that [`Daemon::wait_caught_up`] allows.
const CATCH_UP_MAX: Duration = Duration::from_secs(60);
/// Pause between two questions for the end of the source's binary log.
const END_INTERVAL: Duration = Duration::from_millis(500);
/// Pause between two looks at something that is waited for.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// A binlogd with one source in a temporary data folder of its own, killed and removed when dropped. When the test
/// fails, its log is printed.
pub struct Daemon {
    folder: tempfile::TempDir,
    data_dir: PathBuf,
    launch: Launch,
    url: String,
    /// Its configuration file, where it has one: then there is no URL.
    config: Option<PathBuf>,
    /// Variables that it has beside those of the test itself.
    environment: Vec<(String, String)>,
    /// Bytes of the log that earlier runs have written.
    log_before: usize,
    child: Option<Child>,
}

/// How the built binary is run.
pub struct Launch {
    /// A program and arguments that end by running those behind them; empty: none.
    pub wrapper: Vec<String>,
    /// The binary.
    pub program: PathBuf,
}

impl Default for Launch {
    fn default() -> Self {
        Self { wrapper: Vec::new(), program: env!("CARGO_BIN_EXE_binlogd").into() }
    }
}

fn agent(limit: Duration) -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(limit)).http_status_as_error(false);
    config.build().into()
}

impl Daemon {
    /// Starts `binlogd run` as root of that server, with further flags, and waits until it answers over HTTP.
    #[track_caller]
    pub fn start(server: &Server, flags: &[&str]) -> Self {
        Self::start_on(&url(server), flags)
    }

    /// As [`Daemon::start`], with the URL of `--source`.
    #[track_caller]
    pub fn start_on(url: &str, flags: &[&str]) -> Self {
        let folder = temporary_folder();
        let data_dir = folder.path().join("data");
        Self::start_with(Launch::default(), folder, &data_dir, url, flags)
    }

    /// As [`Daemon::start_on`], with a data folder of the test's choice, which is not removed in the end.
    #[track_caller]
    pub fn start_in(data_dir: &Path, url: &str, flags: &[&str]) -> Self {
        Self::start_with(Launch::default(), temporary_folder(), data_dir, url, flags)
    }

    /// As [`Daemon::start_in`], run in another way. The log goes into `folder`.
    #[track_caller]
    pub fn start_with(
        launch: Launch,
        folder: tempfile::TempDir,
        data_dir: &Path,
        url: &str,
        flags: &[&str],
    ) -> Self {
        let (data_dir, url) = (data_dir.to_owned(), url.to_owned());
        let (config, environment) = (None, Vec::new());
        let mut daemon =
            Self { folder, data_dir, launch, url, config, environment, log_before: 0, child: None };
        daemon.restart(flags);
        daemon
    }

    /// Starts `binlogd run --config` with a file of these lines below its data folder, admin address, and a port for readers.
    #[track_caller]
    pub fn start_from(text: &str) -> Self {
        Self::start_from_with("", text)
    }

    /// As [`Daemon::start_from`], with further lines of `[admin]`.
    #[track_caller]
    pub fn start_from_with(admin: &str, text: &str) -> Self {
        Self::start_from_in(&[], admin, text)
    }

    /// As [`Daemon::start_from_with`], with these variables in its environment.
    #[track_caller]
    pub fn start_from_in(environment: &[(String, String)], admin: &str, text: &str) -> Self {
        let folder = temporary_folder();
        let data_dir = folder.path().join("data");
        let config = Some(folder.path().join("binlogd.toml"));
        let (launch, url, environment) = (Launch::default(), String::new(), environment.to_vec());
        let mut daemon =
            Self { folder, data_dir, launch, url, config, environment, log_before: 0, child: None };
        daemon.write_config_with(admin, text);
        daemon.restart(&[]);
        daemon
    }

    /// Its configuration file.
    pub fn config_path(&self) -> &Path {
        self.config.as_ref().expect("it has a file")
    }

    /// Writes the configuration file anew; [`Daemon::reload`] takes it up.
    pub fn write_config(&self, text: &str) {
        self.write_config_with("", text);
    }

    /// The same with further lines of `[admin]`.
    pub fn write_config_with(&self, admin: &str, text: &str) {
        let listen = "listen = '127.0.0.1:0'\n";
        let head = format!("data_dir = 'data'\ndisk_warn = 'off'\n[admin]\n{listen}{admin}[serve]\n{listen}");
        std::fs::write(self.config.as_ref().expect("it has a file"), format!("{head}{text}"))
            .expect("a file");
    }

    /// Sends SIGHUP, and waits until the configuration is taken up.
    #[track_caller]
    pub fn reload(&self) {
        let count = || self.log().matches("configuration reloaded").count();
        let before = count();
        self.signal(Signal::HUP);
        crate::common::wait_within(START_MAX, "the configuration is reloaded", || count() > before);
    }

    /// Starts it again on the same data folder after [`Daemon::terminate`] or [`Daemon::kill`]. The log goes on in the
    /// same file.
    #[track_caller]
    pub fn restart(&mut self, flags: &[&str]) {
        assert!(self.child.is_none(), "it still runs");
        // A killed daemon leaves its address behind, which may be somebody else's by now.
        let _ = std::fs::remove_file(self.address_file());
        self.log_before = self.log().len();
        let log = File::options().create(true).append(true).open(self.log_file()).expect("a log file");
        let mut command = match &self.config {
            None => command(&self.launch, &self.url, &self.data_dir, flags),
            Some(config) => {
                let mut command = Command::new(&self.launch.program);
                command.arg("run").arg("--config").arg(config).args(flags);
                command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null());
                command
            }
        };
        command.stderr(log).envs(self.environment.iter().cloned());
        self.child = Some(command.spawn().expect("binlogd starts"));
        let deadline = Instant::now() + START_MAX;
        while !self.try_status().is_some_and(|status| has_recovered(&status)) {
            if let Some(status) =
                self.child.as_mut().and_then(|child| child.try_wait().expect("a child of ours"))
            {
                self.child = None;
                panic!("binlogd ended at its start: {status}\n{}", self.log());
            }
            assert!(Instant::now() < deadline, "binlogd does not answer\n{}", self.log());
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// The data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone()
    }

    /// Everything that it has written to standard error since the first start.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Waits until the log holds these words.
    #[track_caller]
    pub fn wait_log(&self, words: &str, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        while !self.log().contains(words) {
            assert!(Instant::now() < deadline, "not within {timeout:?}: {words}\n{}", self.log());
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Process id of the running daemon.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// `host:port` of its admin server.
    #[track_caller]
    pub fn admin_address(&self) -> String {
        self.try_address().expect("a running daemon")
    }

    /// `host:port` that it listens on for everybody, which differs from that of this machine where TLS or a login is asked for.
    #[track_caller]
    pub fn front_address(&self) -> String {
        self.logged_address().expect("a running daemon")
    }

    /// Waits until the whole status is as wanted and returns it; fails after `timeout`.
    #[track_caller]
    pub fn wait_until_status(&self, wanted: impl Fn(&Value) -> bool, timeout: Duration) -> Value {
        let deadline = Instant::now() + timeout;
        loop {
            let status = self.status();
            if wanted(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "not within {timeout:?}:\n{status:#}\n{}", self.log());
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// `/status` as JSON.
    #[track_caller]
    pub fn status(&self) -> Value {
        self.try_status().unwrap_or_else(|| panic!("no status\n{}", self.log()))
    }

    /// The one source's part of the status.
    #[track_caller]
    pub fn source(&self) -> Value {
        self.status()["sources"][0].clone()
    }

    /// Waits until the one source's part of the status is as wanted and returns it; fails after `timeout`.
    #[track_caller]
    pub fn wait_until(&self, wanted: impl Fn(&Value) -> bool, timeout: Duration) -> Value {
        let deadline = Instant::now() + timeout;
        loop {
            let source = self.source();
            if wanted(&source) {
                return source;
            }
            assert!(Instant::now() < deadline, "not within {timeout:?}:\n{source:#}\n{}", self.log());
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Waits until the source's binary log is durable here to its end, and returns the status.
    #[track_caller]
    pub fn wait_caught_up(&self, server: &Server) -> Value {
        // Asked again and again: after a rotation MariaDB appends an event of its own accord (BINLOG_CHECKPOINT).
        let end = RefCell::new((Instant::now(), binlog_end(server)));
        let wanted = |source: &Value| {
            if end.borrow().0.elapsed() > END_INTERVAL {
                end.replace((Instant::now(), binlog_end(server)));
            }
            let (file, position) = &end.borrow().1;
            let durable = &source["positions"]["durable"];
            source["state"] == "receiving" && durable["file"] == **file && durable["position"] == *position
        };
        self.wait_until(wanted, CATCH_UP_MAX)
    }

    /// Folder of the newest timeline.
    #[track_caller]
    pub fn timeline_dir(&self) -> PathBuf {
        let mut timelines = self.timeline_dirs();
        timelines.pop().unwrap_or_else(|| panic!("no timeline\n{}", self.log()))
    }

    /// Folders of all timelines, the oldest first. One that is being made is none yet: its name begins with a point. Nor is that
    /// of the slots.
    pub fn timeline_dirs(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.data_dir().join("default")) else { return Vec::new() };
        let is_whole =
            |entry: &DirEntry| entry.file_name().to_string_lossy().starts_with(|c: char| c.is_ascii_digit());
        let mut paths: Vec<PathBuf> = entries
            .flatten()
            .filter(is_whole)
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        paths.sort();
        paths
    }

    /// Asks it to end with SIGTERM and waits until it has; it must exit with 0.
    #[track_caller]
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
        let status = self.wait_end(STOP_MAX);
        assert!(status.success(), "after SIGTERM: {status}\n{}", self.log());
    }

    /// Ends it with SIGKILL.
    #[track_caller]
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait_end(STOP_MAX);
    }

    /// Waits until it has ended by itself, or by a signal that was sent already.
    #[track_caller]
    pub fn wait_end(&mut self, timeout: Duration) -> ExitStatus {
        let mut child = self.child.take().expect("it runs");
        let Some(status) = wait_child(&mut child, timeout) else {
            panic!("still running after {timeout:?}\n{}", self.log())
        };
        status
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed()).expect("a process id");
        kill_process(pid, signal).expect("a child of ours");
    }

    /// From the file in the data folder; on a full disk there is none, and only the log says it.
    fn try_address(&self) -> Option<String> {
        if let Ok(address) = std::fs::read_to_string(self.address_file()) {
            return Some(address.trim().to_owned());
        }
        self.logged_address()
    }

    fn logged_address(&self) -> Option<String> {
        let log = self.log();
        let line = log.get(self.log_before..)?.lines().find(|line| line.contains("health over HTTP"))?;
        line.split("address=").nth(1).map(|address| address.trim().to_owned())
    }

    fn try_status(&self) -> Option<Value> {
        self.try_asked("/status").map(|(_, status)| status)
    }

    /// The code and the JSON with which a path of the admin server answers.
    #[track_caller]
    pub fn asked(&self, path: &str) -> (u16, Value) {
        self.try_asked(path).unwrap_or_else(|| panic!("no answer to {path}\n{}", self.log()))
    }

    /// What it answers to JSON that it is sent.
    #[track_caller]
    pub fn told(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = agent(Duration::from_secs(120))
            .post(format!("http://{}{path}", self.admin_address()))
            .header("Content-Type", "application/json");
        let mut answer = request.send(body.to_string()).expect("an answer");
        let text = answer.body_mut().read_to_string().expect("a text");
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}")))
    }

    fn try_asked(&self, path: &str) -> Option<(u16, Value)> {
        let address = self.try_address()?;
        let agent = agent(Duration::from_secs(10));
        let mut request = agent.get(format!("http://{address}{path}"));
        if let Ok(token) = std::fs::read_to_string(self.data_dir().join("admin.token")) {
            request = request.header("Authorization", format!("Bearer {}", token.trim()));
        }
        let mut answer = request.call().ok()?;
        let text = answer.body_mut().read_to_string().ok()?;
        Some((answer.status().as_u16(), serde_json::from_str(&text).ok()?))
    }

    fn address_file(&self) -> PathBuf {
        self.data_dir().join("admin.address")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("binlogd.log")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- the log of binlogd ---\n{}", self.log());
        }
    }
}

/// Whether each source knows what its copy holds. HTTP answers before that.
fn has_recovered(status: &Value) -> bool {
    let sources = status["sources"].as_array().map_or(&[][..], Vec::as_slice);
    let is_done = |source: &Value| source["state"] != "starting" && source["state"] != "recovering";
    !sources.is_empty() && sources.iter().all(is_done)
}

/// The URL by which root reaches the server.
pub fn url(server: &Server) -> String {
    format!("mysql://root@{}:{}", server.env("HOST"), server.port())
}

/// `binlogd run` with an admin server on a free port; its standard error is the caller's.
pub fn run_command(url: &str, data_dir: &Path, flags: &[&str]) -> Command {
    command(&Launch::default(), url, data_dir, flags)
}

/// As [`run_command`], run in another way.
pub fn command(launch: &Launch, url: &str, data_dir: &Path, flags: &[&str]) -> Command {
    let mut command = match launch.wrapper.split_first() {
        None => Command::new(&launch.program),
        Some((wrapper, arguments)) => {
            let mut command = Command::new(wrapper);
            command.args(arguments).arg(&launch.program);
            command
        }
    };
    command
        .args(["run", "--source", url, "--admin-listen", "127.0.0.1:0", "--data-dir"])
        .arg(data_dir)
        .args(flags);
    if !flags.iter().any(|flag| flag.starts_with("--disk-warn")) {
        // Tests look at what the log warns of, and whether their machine's disk is full is none of that.
        command.arg("--disk-warn=off");
    }
    command.env_remove("BINLOGD_PASSWORD").env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A folder for the log of a daemon.
pub fn temporary_folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("binlogd-daemon-").tempdir().expect("a temporary folder")
}

/// Waits for a child's end; `None` when it still runs after `timeout`, in which case it is killed.
pub fn wait_child(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return Some(status);
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// File and position at which the source's binary log ends now.
#[track_caller]
pub fn binlog_end(server: &Server) -> (String, u64) {
    // MySQL 8.4 took the old statement away; MariaDB has only the old one.
    let statement =
        if server.name() == "mysql-9.7" { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" };
    let answer = server.sql(statement);
    let mut columns = answer.split('\t');
    let file = columns.next().unwrap_or_default().trim().to_owned();
    let position = columns.next().and_then(|text| text.trim().parse().ok());
    (file, position.unwrap_or_else(|| panic!("{statement} says {answer:?}")))
}
