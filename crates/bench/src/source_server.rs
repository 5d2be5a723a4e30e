//! A real server as a source: its start, its statements, its end.

use anyhow::{Context, bail};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A running server, made by `scripts/servers`. It is killed when dropped.
#[derive(Debug)]
pub struct SourceServer {
    script: PathBuf,
    dir: PathBuf,
    /// What `scripts/servers` printed.
    facts: HashMap<String, String>,
}

/// One file of its binary log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Bare name.
    pub name: String,
    /// Length in bytes.
    pub len: u64,
}

impl SourceServer {
    /// Starts the server `name` in `dir`, which must not hold one, with these options.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start(script: &Path, name: &str, dir: &Path, options: &[&str]) -> anyhow::Result<SourceServer> {
        // Made before the start: a server whose start is interrupted is then killed too.
        let mut server =
            SourceServer { script: script.to_owned(), dir: dir.to_owned(), facts: HashMap::new() };
        let dir = path_text(dir)?;
        server.facts = server.script(&[&["start", name, "--dir", dir, "--"], options].concat())?;
        Ok(server)
    }

    /// Stops it cleanly and starts it again with the same options, so that nothing is left to be done in the
    /// background.
    ///
    /// # Errors
    /// When it does not stop or does not come up.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        let dir = path_text(&self.dir)?.to_owned();
        self.script(&["stop", &dir, "--timeout", "300"])?;
        self.facts = self.script(&["restart", &dir])?;
        Ok(())
    }

    /// What `scripts/servers` calls it, and its version.
    pub fn version(&self) -> String {
        format!("{} {}", self.fact("SERVER_KIND"), self.fact("VERSION"))
    }

    /// TCP port on 127.0.0.1.
    ///
    /// # Errors
    /// When `scripts/servers` has not told.
    pub fn port(&self) -> anyhow::Result<u16> {
        self.fact("PORT").parse().context("scripts/servers printed no PORT")
    }

    /// Its process.
    ///
    /// # Errors
    /// When `scripts/servers` has not told.
    pub fn pid(&self) -> anyhow::Result<u32> {
        self.fact("PID").parse().context("scripts/servers printed no PID")
    }

    /// Where its binary logs are.
    pub fn data_dir(&self) -> &Path {
        Path::new(self.fact("DATADIR"))
    }

    /// A mysqlbinlog of its version.
    pub fn mysqlbinlog(&self) -> &Path {
        Path::new(self.fact("MYSQLBINLOG"))
    }

    /// Its client, already connected as root, to be given statements.
    pub fn client(&self) -> Command {
        Command::new(self.fact("MYSQL"))
    }

    /// Runs statements, parted by `//`, and returns the rows, columns parted by tabs.
    ///
    /// # Errors
    /// What the server says.
    pub fn query(&self, sql: &str) -> anyhow::Result<String> {
        let output =
            self.client().args(["--delimiter=//", "-N", "-B", "-e", sql]).stdin(Stdio::null()).output()?;
        if !output.status.success() {
            bail!("the source refuses {sql:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Value of a global variable; empty where there is none of that name.
    ///
    /// # Errors
    /// What the server says.
    pub fn variable(&self, name: &str) -> anyhow::Result<String> {
        let row = self.query(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
        Ok(row.trim().split_once('\t').map(|(_, value)| value.to_owned()).unwrap_or_default())
    }

    /// The files of its binary log, oldest first.
    ///
    /// # Errors
    /// What the server says.
    pub fn log_files(&self) -> anyhow::Result<Vec<SourceFile>> {
        let rows = self.query("SHOW BINARY LOGS")?;
        let file = |row: &str| {
            let mut columns = row.split('\t');
            Some(SourceFile { name: columns.next()?.to_owned(), len: columns.next()?.parse().ok()? })
        };
        rows.lines()
            .map(|row| file(row).with_context(|| format!("a strange SHOW BINARY LOGS: {row}")))
            .collect()
    }

    fn fact(&self, key: &str) -> &str {
        self.facts.get(key).map_or("", String::as_str)
    }

    /// Runs `scripts/servers` and returns the pairs that it prints.
    fn script(&self, arguments: &[&str]) -> anyhow::Result<HashMap<String, String>> {
        let mut command = Command::new(&self.script);
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output().with_context(|| {
            format!("cannot run {}: start the benchmark in the repository's folder", self.script.display())
        })?;
        if !output.status.success() {
            bail!("{} {} failed: see its message above", self.script.display(), arguments.join(" "));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| line.split_once('=')).map(pair).collect())
    }
}

fn pair((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

fn path_text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

impl Drop for SourceServer {
    fn drop(&mut self) {
        let _ = Command::new(&self.script).arg("stop").arg(&self.dir).arg("--kill").status();
    }
}
