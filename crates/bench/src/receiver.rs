//! A program under test: its start, its processor time and memory, its end.

use crate::stores::{ArchiveStore, Around};
use anyhow::{Context, bail};
use clap::ValueEnum;
use rig::bare::Acknowledge;
use rig::process::Running;
use rig::statistics::Percentiles;
use rig::status_client::StatusClient;
use rig::usage::Usage;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

/// Which program, and how it is to behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// binlogd with this `fsync_mode`.
    Binlogd {
        /// 0 or 1.
        fsync_mode: u8,
    },
    /// The same, which receives over TLS.
    Encrypted {
        /// 0 or 1.
        fsync_mode: u8,
    },
    /// binlogd with `fsync_mode` 1, which archives to such a store.
    Archiving {
        /// Where to.
        store: ArchiveStore,
        /// `interval` of the archive, in seconds.
        interval: u32,
    },
    /// See [`rig::bare`].
    Bare {
        /// What it acknowledges.
        acknowledge: Acknowledge,
    },
}

/// A receiver's own account, of all since its start.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// From the arrival of a request to the leaving of its acknowledgement.
    pub latency: Percentiles,
    /// Durable writes: of the journal, and syncs of the log.
    pub syncs: u64,
    /// Acknowledgements.
    pub acknowledgements: u64,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Binlogd { fsync_mode } => write!(f, "binlogd, fsync_mode {fsync_mode}"),
            Kind::Encrypted { fsync_mode } => write!(f, "binlogd, fsync_mode {fsync_mode}, TLS"),
            Kind::Archiving { store, interval } => write!(f, "binlogd, {store}, each {interval} s"),
            Kind::Bare { acknowledge: Acknowledge::Never } => f.write_str("copy, never synced"),
            Kind::Bare { acknowledge: Acknowledge::Discard } => f.write_str("discard"),
            Kind::Bare { acknowledge: Acknowledge::Written } => f.write_str("bare: write, ack"),
            Kind::Bare { acknowledge: Acknowledge::Synced } => f.write_str("bare: write, fdatasync, ack"),
        }
    }
}

/// A running program. It is killed when dropped.
#[derive(Debug)]
pub struct Receiver {
    kind: Kind,
    child: Running,
    dir: tempfile::TempDir,
    /// Of the store of its archive.
    around: Around,
}

impl Receiver {
    /// Starts it with a new folder under `dir`, receiving from 127.0.0.1:`port`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(kind: Kind, binlogd: &Path, dir: &Path, port: u16) -> anyhow::Result<Receiver> {
        let dir = tempfile::Builder::new().prefix("binlogd-bench-").tempdir_in(dir)?;
        let mut around = Around::default();
        let mut command = match kind {
            Kind::Binlogd { .. } | Kind::Encrypted { .. } | Kind::Archiving { .. } => {
                let (fsync_mode, tls) = match kind {
                    Kind::Binlogd { fsync_mode } => (fsync_mode, "disabled"),
                    Kind::Encrypted { fsync_mode } => (fsync_mode, "required"),
                    _ => (1, "disabled"),
                };
                let mut command = Command::new(binlogd);
                command.args([
                    "run",
                    "--source",
                    &format!("mysql://bench@127.0.0.1:{port}"),
                    "--name",
                    "bench",
                ]);
                command.args(["--fsync-mode", &fsync_mode.to_string(), "--admin-listen", "127.0.0.1:0"]);
                command.args(["--tls", tls, "--log-level", "error"]).arg("--data-dir").arg(dir.path());
                command.stdout(Stdio::null());
                if let Kind::Archiving { store, interval } = kind {
                    around = store.set(&mut command, dir.path(), interval)?;
                }
                command
            }
            Kind::Bare { acknowledge } => {
                let mut command = Command::new(std::env::current_exe()?);
                let name = acknowledge.to_possible_value().context("every value has a name")?;
                command.args(["bare", "--port", &port.to_string(), "--acknowledge", name.get_name()]);
                command.arg("--out").arg(dir.path().join("received")).stdout(Stdio::piped());
                command
            }
        };
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.with_context(|| format!("cannot start {command:?}"))?;
        Ok(Receiver { kind, child: Running(child), dir, around })
    }

    /// Where it keeps its data.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its number as a process.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// What it has used until now.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.pid())
    }

    /// The only source in binlogd's own status.
    ///
    /// # Errors
    /// When it does not answer, or it is not binlogd.
    pub fn status(&self) -> anyhow::Result<Value> {
        Ok(StatusClient::of(self.dir.path())?.status()?["sources"][0].take())
    }

    /// Whether its archive was at work: to a folder something was written, of any other store something was asked. True where
    /// there is no archive.
    ///
    /// # Errors
    /// As [`Receiver::status`].
    pub fn has_archived(&self) -> anyhow::Result<bool> {
        match self.kind {
            Kind::Archiving { store: ArchiveStore::Folder | ArchiveStore::Memory, .. } => {
                Ok(self.status()?["archive"]["plain_bytes"].as_u64() > Some(0))
            }
            Kind::Archiving { .. } => Ok(self.around.connections.load(Ordering::Relaxed) > 0),
            _ => Ok(true),
        }
    }

    /// Whether it says that its connection is encrypted. What is not binlogd never is.
    ///
    /// # Errors
    /// As [`Receiver::status`].
    pub fn is_encrypted(&self) -> anyhow::Result<bool> {
        match self.kind {
            Kind::Binlogd { .. } | Kind::Encrypted { .. } | Kind::Archiving { .. } => {
                Ok(self.status()?["tls"].is_string())
            }
            _ => Ok(false),
        }
    }

    /// The receiver's own account of all since its start. Ends the receiver; `close` must close the source's connection,
    /// which ends the bare one.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn finish(mut self, close: impl FnOnce()) -> anyhow::Result<Report> {
        match self.kind {
            Kind::Binlogd { .. } | Kind::Encrypted { .. } | Kind::Archiving { .. } => {
                let status = self.status()?;
                let counter = |name: &str| status["counters"][name].as_u64().unwrap_or(0);
                let report = Report {
                    latency: Percentiles::from_json(&status["latency"]["acknowledge"]),
                    syncs: counter("syncs"),
                    acknowledgements: counter("acknowledgements"),
                };
                kill_process(Pid::from_child(&self.child.0), Signal::TERM)?;
                close();
                self.child.0.wait()?;
                Ok(report)
            }
            Kind::Bare { acknowledge } => {
                close();
                let latency = Percentiles::from_json(&self.printed()?);
                let acknowledgements = latency.count;
                let syncs = if acknowledge == Acknowledge::Synced { acknowledgements } else { 0 };
                Ok(Report { latency, syncs, acknowledgements })
            }
        }
    }

    /// What it prints before it ends.
    fn printed(&mut self) -> anyhow::Result<Value> {
        let mut printed = String::new();
        if let Some(mut stdout) = self.child.0.stdout.take() {
            stdout.read_to_string(&mut printed)?;
        }
        let status = self.child.0.wait()?;
        if !status.success() {
            bail!("{} failed ({status}); its message stands above", self.kind);
        }
        serde_json::from_str(&printed).with_context(|| format!("what {} printed", self.kind))
    }
}
