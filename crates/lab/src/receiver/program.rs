//! A program that receives, in a folder of its own.

use anyhow::{Context, bail};
use rig::process::Running;
use rig::process::last_lines;
use rig::usage::Usage;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// A running program. Dropping it kills it and removes its folder.
#[derive(Debug)]
pub struct Program {
    child: Running,
    name: &'static str,
    folder: tempfile::TempDir,
}

impl Program {
    /// Starts `command`, which gets a new folder below `dir` for what it receives; what it prints goes there too.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        name: &'static str,
        dir: &Path,
        command: impl FnOnce(&Path) -> anyhow::Result<Command>,
    ) -> anyhow::Result<Program> {
        let folder = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(dir)?;
        let log = File::create(folder.path().join("log"))?;
        let mut command = command(&folder.path().join("data"))?;
        command.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Program { child: Running(child), name, folder })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// # Errors
    /// When it has ended, with its last words.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.child.has_ended()? {
            bail!("{} has ended: {}", self.name, self.said());
        }
        Ok(())
    }

    /// What it has used until now.
    ///
    /// # Errors
    /// When it has ended, with its last words.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        self.check()?;
        Usage::of(self.pid())
    }

    /// Its last words.
    pub fn said(&self) -> String {
        let log = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        last_lines(&String::from_utf8_lossy(&log))
    }
}
