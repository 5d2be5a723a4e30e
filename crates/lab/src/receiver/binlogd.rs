//! binlogd, attached to a source.

use super::usage::Usage;
use crate::lab::Lab;
use crate::server::Target;
use crate::server::binary_log::Place;
use anyhow::{Context, bail};
use rig::interrupt::Interrupt;
use rig::process::Running;
use rig::program::last_lines;
use rig::status_client::StatusClient;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Longest wait until binlogd answers after its start.
const START_MAX: Duration = Duration::from_secs(30);
/// Longest wait until it has received what the source's current log file holds already.
const CATCH_UP_MAX: Duration = Duration::from_secs(600);

/// How binlogd is to behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// 0 or 1.
    pub fsync_mode: u8,
    /// It acknowledges; otherwise it receives asynchronously.
    pub semi_sync: bool,
}

/// A running binlogd. Dropping it kills it and removes its copy.
#[derive(Debug)]
pub struct Binlogd {
    child: Running,
    status: StatusClient,
    options: Options,
    dir: tempfile::TempDir,
}

/// Its own counters, of all since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes read from the source's connection, packet headers included.
    pub bytes_received: u64,
    /// Bytes appended to its copy.
    pub bytes_written: u64,
    /// Transactions stored to their end.
    pub transactions: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Sessions with the source that ended.
    pub reconnects: u64,
    /// Durable writes of its journal, and syncs of the copy.
    pub syncs: u64,
}

impl Binlogd {
    /// Starts it with a folder of its own in `dir`, at the source's current log file, and waits until it has received
    /// what that holds.
    ///
    /// # Errors
    /// When it does not start or does not receive; the error holds its last words. When the run is broken off.
    pub fn attach(lab: &Lab, source: &mut Target, options: Options, dir: &Path) -> anyhow::Result<Binlogd> {
        let end = source.log_end()?;
        let dir = tempfile::Builder::new().prefix("binlogd-").tempdir_in(dir)?;
        let log = File::create(dir.path().join("log"))?;
        let mut command = Command::new(&lab.binlogd);
        command.arg("run").arg("--data-dir").arg(dir.path().join("data"));
        command.args(["--source", &crate::server::address::url_without_password(source.account())]);
        command.args(["--tls", if source.is_users() { "preferred" } else { "disabled" }]);
        command.args(["--fsync-mode", &options.fsync_mode.to_string()]);
        command.args(["--semi-sync", if options.semi_sync { "true" } else { "false" }]);
        // A source notices by its next heartbeat that a receiver is gone. On a user's server that is waited for.
        command.args(["--start", "latest", "--heartbeat-period", "500ms"]);
        command.args(["--admin-listen", "127.0.0.1:0", "--log-level", "warn"]);
        // In the environment, where other accounts do not see it.
        command.env("BINLOGD_PASSWORD", source.account().password.expose());
        command.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        let child = command.spawn().with_context(|| format!("cannot start {}", lab.binlogd.display()))?;
        let child = Running(child);
        source.started(child.0.id())?;
        let address = dir.path().join("data/admin.address");
        let answers = lab.interrupt.wait(START_MAX, || {
            Ok((child.has_ended()?
                || std::fs::read_to_string(&address).is_ok_and(|text| text.ends_with('\n')))
            .then_some(()))
        })?;
        if answers.is_none() || child.has_ended()? {
            bail!("binlogd does not start: {}", said(dir.path()));
        }
        let status = StatusClient::of(&dir.path().join("data"))?;
        let mut binlogd = Binlogd { child, status, options, dir };
        binlogd.catch_up(&end, &lab.interrupt)?;
        Ok(binlogd)
    }

    /// Waits until it has received through `end`, and on the way negotiated semi-sync as wanted.
    fn catch_up(&mut self, end: &Place, interrupt: &Interrupt) -> anyhow::Result<()> {
        let reached = interrupt.wait(CATCH_UP_MAX, || {
            let source = self.source()?;
            let written = &source["positions"]["written"];
            let there = written["file"].as_str() > Some(&end.file)
                || (written["file"] == end.file.as_str()
                    && written["position"].as_u64() >= Some(end.position));
            Ok((source["state"] == "receiving" && there).then_some(()))
        })?;
        if reached.is_none() {
            bail!("binlogd has not received through {}:{}: {}", end.file, end.position, self.complaint());
        }
        Ok(())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// The only source in its own status, see docs/status.md.
    ///
    /// # Errors
    /// When it has ended, with its last words, or does not answer.
    pub fn source(&mut self) -> anyhow::Result<Value> {
        if self.child.has_ended()? {
            bail!("binlogd has ended: {}", said(self.dir.path()));
        }
        Ok(self.status.status()?["sources"][0].clone())
    }

    /// Its counters now.
    ///
    /// # Errors
    /// As [`Binlogd::source`].
    pub fn counters(&mut self) -> anyhow::Result<Counters> {
        let source = self.source()?;
        let counter = |name: &str| source["counters"][name].as_u64().unwrap_or(0);
        Ok(Counters {
            bytes_received: counter("bytes_received"),
            bytes_written: counter("bytes_written"),
            transactions: counter("transactions"),
            acknowledgements: counter("acknowledgements"),
            reconnects: counter("reconnects"),
            syncs: counter("syncs"),
        })
    }

    /// What is not as it must be before and after a load, by its own word: receiving, in its `fsync_mode`, acknowledging
    /// or not as it was told, and never disconnected.
    ///
    /// # Errors
    /// As [`Binlogd::source`].
    pub fn not_attached(&mut self) -> anyhow::Result<Option<String>> {
        let source = self.source()?;
        let Options { fsync_mode, semi_sync } = self.options;
        let right = source["state"] == "receiving"
            && source["fsync_mode"] == fsync_mode
            && source["semi_sync"]["active"] == semi_sync
            && source["counters"]["reconnects"] == 0;
        Ok((!right).then(|| {
            format!(
                "binlogd is {} with fsync_mode {}, semi-sync: {}, and was disconnected {} times",
                source["state"],
                source["fsync_mode"],
                source["semi_sync"]["reason"],
                source["counters"]["reconnects"]
            )
        }))
    }

    /// What it has used until now.
    ///
    /// # Errors
    /// When it has ended, with its last words.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        if self.child.has_ended()? {
            bail!("binlogd has ended: {}", said(self.dir.path()));
        }
        Usage::of(self.pid())
    }

    /// Its last words, for a reason why a cell is invalid.
    pub fn complaint(&mut self) -> String {
        let detail =
            self.source().map(|source| format!("{} {}", source["state"], source["last_error"]["message"]));
        let words = [detail.unwrap_or_default(), said(self.dir.path())];
        words.join(" / ")
    }
}

fn said(dir: &Path) -> String {
    last_lines(&String::from_utf8_lossy(&std::fs::read(dir.join("log")).unwrap_or_default()))
}
