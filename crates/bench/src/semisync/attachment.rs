//! A receiver while it is attached to the source.

use super::configuration::Configuration;
use super::replica::Replica;
use super::source::{Dialect, Place};
use anyhow::{Context, bail};
use rig::process::Running;
use rig::process::{self, Memory};
use rig::processor::ProcessorTime;
use rig::program::last_lines;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs and servers that can be attached.
#[derive(Debug)]
pub struct Receivers {
    /// binlogd.
    pub binlogd: PathBuf,
    /// go-mysqlbinlog, when it could be built.
    pub go_mysqlbinlog: Option<PathBuf>,
    /// The replica whose SQL thread stays stopped.
    pub receiving: Option<Replica>,
    /// The replica that applies.
    pub applying: Option<Replica>,
    /// Folder for what programs receive.
    pub dir: PathBuf,
}

/// What is attached now; a program is killed when this is dropped.
#[derive(Debug)]
pub enum Attachment {
    /// Nothing.
    Nothing,
    /// A program, with the folder that it writes to, which goes with it.
    Program(Running, tempfile::TempDir),
    /// One of the replicas: true for the one that applies.
    Replica(bool),
}

impl Receivers {
    /// Starts a receiver at `place` of the source on `port`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn attach(
        &mut self,
        configuration: Configuration,
        dialect: Dialect,
        port: u16,
        place: &Place,
    ) -> anyhow::Result<Attachment> {
        use Configuration as C;
        let (synced, applying) = match configuration {
            C::None => return Ok(Attachment::Nothing),
            C::ReplicaUnsynced => (false, false),
            C::ReplicaSynced => (true, false),
            C::ReplicaApplying => (true, true),
            _ => return self.start(configuration, dialect, port, place),
        };
        self.replica(applying)?.attach(port, place, synced, applying)?;
        Ok(Attachment::Replica(applying))
    }

    fn start(
        &self,
        configuration: Configuration,
        dialect: Dialect,
        port: u16,
        place: &Place,
    ) -> anyhow::Result<Attachment> {
        use Configuration as C;
        let dir = tempfile::Builder::new().prefix("received-").tempdir_in(&self.dir)?;
        let port = port.to_string();
        let mut command;
        match configuration {
            C::Binlogd0 | C::Binlogd1 => {
                command = Command::new(&self.binlogd);
                command.args(["run", "--source", &format!("mysql://root@127.0.0.1:{port}")]);
                command.args(["--fsync-mode", if configuration == C::Binlogd1 { "1" } else { "0" }]);
                command.args(["--start", "latest", "--tls", "disabled", "--log-level", "warn"]);
                command
                    .args(["--admin-listen", "127.0.0.1:0"])
                    .arg("--data-dir")
                    .arg(dir.path().join("data"));
            }
            C::GoMysqlbinlog => {
                let program = self.go_mysqlbinlog.as_ref().context("go-mysqlbinlog was not built")?;
                command = Command::new(program);
                command.args(["-host", "127.0.0.1", "-port", &port, "-user", "root"]);
                command.args(["-flavor", if dialect == Dialect::Mysql { "mysql" } else { "mariadb" }]);
                command.args(["-file", &place.file, "-pos", &place.position.to_string()]);
                command.args(["-raw", "-semisync", "-backup_path"]).arg(dir.path().join("data"));
            }
            _ => {
                command = Command::new(std::env::current_exe()?);
                command.args(["bare", "--port", &port, "--user", "root"]);
                command.args(["--file", &place.file, "--position", &place.position.to_string()]);
                let acknowledge = if configuration == C::BareSynced { "synced" } else { "written" };
                command.args(["--acknowledge", acknowledge]).arg("--out").arg(dir.path().join("data"));
            }
        }
        let log = File::create(dir.path().join("log"))?;
        command.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log).env_remove("BINLOGD_PASSWORD");
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Attachment::Program(Running(child), dir))
    }

    fn replica(&mut self, applying: bool) -> anyhow::Result<&mut Replica> {
        let replica = if applying { &mut self.applying } else { &mut self.receiving };
        replica.as_mut().context("the replica was not started")
    }

    /// Ends it.
    ///
    /// # Errors
    /// When a replica refuses.
    pub fn detach(&mut self, attachment: Attachment) -> anyhow::Result<()> {
        match attachment {
            Attachment::Nothing | Attachment::Program(..) => Ok(()),
            Attachment::Replica(applying) => self.replica(applying)?.detach(),
        }
    }

    /// Its processor time so far and its memory; nothing for nothing.
    ///
    /// # Errors
    /// When its process is gone; the error holds its last words.
    pub fn usage(&mut self, attachment: &mut Attachment) -> anyhow::Result<Option<(ProcessorTime, Memory)>> {
        let pid = match attachment {
            Attachment::Nothing => return Ok(None),
            Attachment::Replica(applying) => self.replica(*applying)?.pid(),
            Attachment::Program(child, dir) => {
                if let Some(status) = child.0.try_wait()? {
                    bail!("the receiver has ended, {status}: {}", said(dir.path()));
                }
                child.0.id()
            }
        };
        Ok(Some((ProcessorTime::of(pid)?, process::memory(pid)?)))
    }

    /// Its last words, for a reason why a cell is invalid.
    pub fn complaint(&mut self, attachment: &Attachment) -> String {
        match attachment {
            Attachment::Nothing => String::new(),
            Attachment::Program(_, dir) => said(dir.path()),
            Attachment::Replica(applying) => {
                self.replica(*applying).map(Replica::complaint).unwrap_or_default()
            }
        }
    }
}

fn said(dir: &Path) -> String {
    last_lines(&String::from_utf8_lossy(&std::fs::read(dir.join("log")).unwrap_or_default()))
}
