//! A real server, started and stopped through `scripts/servers`.

use anyhow::{Context, anyhow, bail};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use wire::{ConnectOptions, Connection, ResultSet, Secret, TlsMode, TlsOptions, WireError};

/// Longest wait for the answer to a statement.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A server in a folder of its own. It is killed when dropped.
#[derive(Debug)]
pub struct Server {
    scripts: PathBuf,
    dir: PathBuf,
    port: u16,
    pid: u32,
}

impl Server {
    /// Starts the server `name` in `dir`, on a copy of the data of `data_from` if it is given.
    ///
    /// # Errors
    /// When it does not come up; its own messages are on standard error then.
    pub fn start(
        scripts: &Path,
        name: &str,
        dir: PathBuf,
        data_from: Option<&Server>,
        options: &[String],
    ) -> anyhow::Result<Server> {
        // Made before the start, so that a start that was broken off is stopped too.
        let mut server = Server { scripts: scripts.to_owned(), dir: dir.clone(), port: 0, pid: 0 };
        let mut words = vec![OsStr::new("start"), OsStr::new(name), OsStr::new("--dir"), dir.as_os_str()];
        if let Some(other) = data_from {
            words.extend([OsStr::new("--data-from"), other.dir.as_os_str()]);
        }
        server.launch(&words, options)?;
        Ok(server)
    }

    /// Starts the server `name` in `dir` on a copy of the data folder `data`, which no server may be using.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_on(
        scripts: &Path,
        name: &str,
        dir: PathBuf,
        data: &Path,
        options: &[String],
    ) -> anyhow::Result<Server> {
        let mut server = Server { scripts: scripts.to_owned(), dir: dir.clone(), port: 0, pid: 0 };
        let words = ["start", name, "--dir"].map(OsStr::new);
        let data_from = [dir.as_os_str(), OsStr::new("--data-from"), data.as_os_str()];
        server.launch(&[words, data_from].concat(), options)?;
        Ok(server)
    }

    /// Starts it again with other options.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn restart(&mut self, options: &[String]) -> anyhow::Result<()> {
        let dir = self.dir.clone();
        self.launch(&[OsStr::new("restart"), dir.as_os_str()], options)
    }

    /// Shuts it down in good order.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(&self) -> anyhow::Result<()> {
        self.script(&[OsStr::new("stop"), self.dir.as_os_str()], &[]).map(|_| ())
    }

    fn launch(&mut self, words: &[&OsStr], options: &[String]) -> anyhow::Result<()> {
        let described = self.script(words, options)?;
        let value = |key: &str| described.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        self.port =
            value("PORT").and_then(|port| port.parse().ok()).context("scripts/servers named no PORT")?;
        self.pid = value("PID").and_then(|pid| pid.parse().ok()).context("scripts/servers named no PID")?;
        Ok(())
    }

    fn script(&self, words: &[&OsStr], options: &[String]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.scripts);
        command.args(words);
        if !options.is_empty() {
            command.arg("--").args(options);
        }
        // A group of its own: Ctrl-C must not end it half-way and leave a server that nobody knows.
        command.process_group(0).stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output().with_context(|| format!("cannot run {}", self.scripts.display()))?;
        if !output.status.success() {
            bail!("{} {:?} failed: {}", self.scripts.display(), words[0], output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// On 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// A session as root.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn session(&self) -> anyhow::Result<Session> {
        Session::connect(&self.account())
    }

    /// How to reach it: as root, in clear.
    pub fn account(&self) -> ConnectOptions {
        ConnectOptions {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            user: "root".to_owned(),
            password: Secret::new(""),
            connect_timeout: ANSWER_MAX,
            tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
        }
    }

    /// The folder that it lives in.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new(&self.scripts)
            .args([OsStr::new("stop"), self.dir.as_os_str(), OsStr::new("--kill")])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// A session of ours with a server.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
}

impl Session {
    /// A session with any server.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn connect(account: &ConnectOptions) -> anyhow::Result<Session> {
        let connection = Connection::connect(account)
            .with_context(|| format!("at {}:{} as {}", account.host, account.port, account.user))?;
        Ok(Session { connection })
    }

    /// How long each statement may take from now on.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.connection.set_timeout(timeout);
    }

    /// Whether the server is MariaDB.
    pub fn is_mariadb(&self) -> bool {
        self.connection.is_mariadb()
    }

    /// Whether it is in TLS.
    pub fn is_encrypted(&self) -> bool {
        self.connection.tls_version().is_some()
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// When the server refuses it or is gone.
    pub fn query(&mut self, sql: &str) -> anyhow::Result<ResultSet> {
        self.connection.query(sql).with_context(|| format!("at {sql}"))
    }

    /// Runs one statement that holds a password: errors say `what` was done, and quote nothing of it.
    ///
    /// # Errors
    /// When the server refuses it or is gone.
    pub fn query_unquoted(&mut self, sql: &str, what: &str) -> anyhow::Result<ResultSet> {
        self.connection.query(sql).map_err(|error| match error {
            // Servers quote what they do not understand, or find too long.
            WireError::Server { code, .. } => anyhow!("at {what}: the server refuses, with error {code}"),
            error => anyhow::Error::new(error).context(format!("at {what}")),
        })
    }

    /// Runs several, one after the other.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub fn run<S: AsRef<str>>(&mut self, statements: &[S]) -> anyhow::Result<()> {
        statements.iter().try_for_each(|sql| self.query(sql.as_ref()).map(|_| ()))
    }

    /// What the server calls its version.
    pub fn version(&self) -> &str {
        self.connection.server_version()
    }
}
