//! binlogd with its port for readers.

use crate::backlog::USER;
use anyhow::{Context, bail};
use rig::process::Running;
use rig::status_client::StatusClient;
use rig::usage::Usage;
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Password of [`USER`] at binlogd, which lets nobody in without one.
pub(super) const PASSWORD: &str = "bench";

/// Longest wait for anything that binlogd should do at once, and for an advance.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at its status.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A running binlogd that serves. It is killed when dropped.
#[derive(Debug)]
pub(super) struct Serving {
    child: Running,
    dir: tempfile::TempDir,
    port: u16,
}

impl Serving {
    /// Starts it with a new folder under `dir`, receiving from 127.0.0.1:`source_port`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(binlogd: &Path, dir: &Path, source_port: u16) -> anyhow::Result<Serving> {
        let dir = tempfile::Builder::new().prefix("binlogd-bench-").tempdir_in(dir)?;
        let config = dir.path().join("binlogd.toml");
        std::fs::write(
            &config,
            format!(
                "data_dir = \"data\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[log]\nlevel = \"error\"\n\
                 [serve]\nlisten = \"127.0.0.1:0\"\nmax_connections = 1000\n\
                 [[serve.user]]\nname = \"{USER}\"\npassword = \"{PASSWORD}\"\n\
                 [[source]]\nname = \"bench\"\nhosts = [\"127.0.0.1:{source_port}\"]\nuser = \"{USER}\"\n\
                 tls = \"disabled\"\nfsync_mode = 1\n"
            ),
        )?;
        std::fs::set_permissions(&config, Permissions::from_mode(0o600))?;
        let mut command = Command::new(binlogd);
        command.args(["run", "--config"]).arg(&config).stdin(Stdio::null()).stdout(Stdio::null());
        let child = Running(command.spawn().with_context(|| format!("cannot start {command:?}"))?);
        let mut serving = Serving { child, dir, port: 0 };
        let status =
            serving.wait("the address for readers", |status| status["serve"]["address"].is_string())?;
        let address = status["serve"]["address"].as_str().unwrap_or_default();
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
        serving.port = port.with_context(|| format!("no port in the address {address:?} for readers"))?;
        Ok(serving)
    }

    /// Where it serves, on 127.0.0.1.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Its number as a process.
    pub(super) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// What it has used until now.
    ///
    /// # Errors
    /// When the process is gone.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.pid())
    }

    /// Waits until its status is as wanted, and returns that.
    ///
    /// # Errors
    /// When it does not become so; `what` says what was waited for.
    pub(super) fn wait(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let mut client = StatusClient::of(&self.dir.path().join("data"))?;
        let (mut seen, mut changed) = (Value::Null, Instant::now());
        loop {
            let status = client.status()?;
            if wanted(&status) {
                return Ok(status);
            }
            let source = &status["sources"][0];
            if seen != source["positions"] {
                (seen, changed) = (source["positions"].clone(), Instant::now());
            }
            if changed.elapsed() > PATIENCE {
                bail!("binlogd has not come to this within {PATIENCE:?}: {what}; {source}");
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Waits until its copy is durable to that place.
    ///
    /// # Errors
    /// When it does not advance.
    pub(super) fn wait_durable(&self, file: &str, position: u64) -> anyhow::Result<()> {
        self.wait("the source's log is durable to its end", |status| {
            let durable = &status["sources"][0]["positions"]["durable"];
            durable["file"] == file && durable["position"] == position
        })
        .map(|_| ())
    }
}
