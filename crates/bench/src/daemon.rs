//! binlogd by a configuration: started, looked at, ended.

use anyhow::{Context, bail};
use rig::process::Running;
use rig::status_client::StatusClient;
use rig::usage::Usage;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything that binlogd should do at once, and for an advance.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at its status.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A running binlogd. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Running,
    data: PathBuf,
}

impl Daemon {
    /// Starts it in the folder `dir` with a configuration that has `text` and the data folder `data`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(
        binlogd: &Path,
        dir: &Path,
        data: &Path,
        text: &str,
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Daemon> {
        let config = dir.join("binlogd.toml");
        let data_dir = data.display();
        let head = format!(
            "data_dir = \"{data_dir}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[log]\nlevel = \"error\"\n"
        );
        std::fs::write(&config, head + text)?;
        std::fs::set_permissions(&config, Permissions::from_mode(0o600))?;
        // That of a process before it leads nowhere.
        let _ = std::fs::remove_file(data.join("admin.address"));
        let mut command = Command::new(binlogd);
        command.args(["run", "--config"]).arg(&config).stdin(Stdio::null()).stdout(Stdio::null());
        command.envs(environment.iter().copied());
        let child = Running(command.spawn().with_context(|| format!("cannot start {command:?}"))?);
        Ok(Daemon { child, data: data.to_owned() })
    }

    /// Its number as a process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// What it has used until now.
    ///
    /// # Errors
    /// When the process is gone.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.pid())
    }

    /// Waits until its status is as wanted, and returns that.
    ///
    /// # Errors
    /// When it does not become so, and nothing of it advances any more; `what` says what was waited for.
    pub(crate) fn wait(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let mut client = StatusClient::of(&self.data)?;
        let (mut seen, mut changed) = (Vec::new(), Instant::now());
        loop {
            let status = client.status()?;
            if wanted(&status) {
                return Ok(status);
            }
            let sources = status["sources"].as_array().map_or(&[][..], Vec::as_slice);
            let places: Vec<[Value; 2]> = sources
                .iter()
                .map(|source| [source["positions"].clone(), source["archive"]["plain_bytes"].clone()])
                .collect();
            if seen != places {
                (seen, changed) = (places, Instant::now());
            }
            if changed.elapsed() > PATIENCE {
                bail!(
                    "binlogd has not come to this within {PATIENCE:?}: {what}; {}",
                    Value::from(sources.to_vec())
                );
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Ends it in good order.
    ///
    /// # Errors
    /// When it does not end.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child.0), Signal::TERM)?;
        let status = self.child.wait_within(PATIENCE)?;
        if !status.success() {
            bail!("binlogd failed, {status}; its message stands above");
        }
        Ok(())
    }
}

/// The part of a configuration that names a source on 127.0.0.1.
pub(crate) fn source_table(name: &str, port: u16, user: &str) -> String {
    format!(
        "[[source]]\nname = \"{name}\"\nhosts = [\"127.0.0.1:{port}\"]\nuser = \"{user}\"\ntls = \"disabled\"\n\
         fsync_mode = 1\n"
    )
}

/// Whether a position in the status is that place.
pub(crate) fn is_at(position: &Value, file: &str, offset: u64) -> bool {
    position["file"] == file && position["position"] == offset
}
