//! A real server, started and stopped through `scripts/servers`.

use anyhow::{Context, anyhow, bail};
use codec::ServerKind;
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
    /// What `scripts/servers` printed when it was started: lines `KEY=VALUE`.
    described: String,
}

/// A file of a binary log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Bare name.
    pub name: String,
    /// Length in bytes.
    pub len: u64,
}

impl Server {
    /// Starts the server `name` in `dir`, on a copy of the data in `data_from` if it is given: the folder of a server, or
    /// a data folder, which no server may be using.
    ///
    /// # Errors
    /// When it does not come up; its own messages are on standard error then.
    pub fn start(
        scripts: &Path,
        name: &str,
        dir: PathBuf,
        data_from: Option<&Path>,
        options: &[String],
    ) -> anyhow::Result<Server> {
        // Made before the start, so that a start that was broken off is stopped too.
        let scripts = scripts.to_owned();
        let mut server = Server { scripts, dir: dir.clone(), port: 0, pid: 0, described: String::new() };
        let mut words = vec![OsStr::new("start"), OsStr::new(name), OsStr::new("--dir"), dir.as_os_str()];
        if let Some(data) = data_from {
            words.extend([OsStr::new("--data-from"), data.as_os_str()]);
        }
        server.launch(&words, options)?;
        Ok(server)
    }

    /// Starts it again, with other options where some are given.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn restart(&mut self, options: &[String]) -> anyhow::Result<()> {
        let dir = self.dir.clone();
        self.launch(&[OsStr::new("restart"), dir.as_os_str()], options)
    }

    /// Shuts it down in good order, which may take minutes after much was written.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(&self) -> anyhow::Result<()> {
        let words = [OsStr::new("stop"), self.dir.as_os_str(), OsStr::new("--timeout"), OsStr::new("300")];
        self.script(&words, &[]).map(|_| ())
    }

    fn launch(&mut self, words: &[&OsStr], options: &[String]) -> anyhow::Result<()> {
        self.described = self.script(words, options)?;
        self.port = self.fact("PORT")?.parse().context("the PORT that scripts/servers named")?;
        self.pid = self.fact("PID")?.parse().context("the PID that scripts/servers named")?;
        Ok(())
    }

    /// What `scripts/servers` says of it, such as `DATADIR`.
    ///
    /// # Errors
    /// When it has said nothing of that.
    pub fn fact(&self, key: &str) -> anyhow::Result<&str> {
        let value = self.described.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.with_context(|| format!("scripts/servers named no {key}"))
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

    /// The kind of the server.
    pub fn server_kind(&self) -> ServerKind {
        self.connection.server_kind()
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

    /// The files of its binary log, the oldest first.
    ///
    /// # Errors
    /// When the server does not answer, or not in words that are known.
    pub fn log_files(&mut self) -> anyhow::Result<Vec<LogFile>> {
        let rows = self.query("SHOW BINARY LOGS")?;
        let file = |row| {
            let len = rows.get(row, "File_size")?.parse().ok()?;
            Some(LogFile { name: rows.get(row, "Log_name")?.to_owned(), len })
        };
        let files: Option<Vec<LogFile>> = (0..rows.rows.len()).map(file).collect();
        files.context("SHOW BINARY LOGS gives no names and sizes")
    }

    /// What the server calls its version.
    pub fn version(&self) -> &str {
        self.connection.server_version()
    }
}
