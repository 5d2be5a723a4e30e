//! binlogd with its port for readers.

use crate::backlog::USER;
use crate::daemon::{Daemon, is_at, source_table};
use anyhow::Context;
use rig::usage::Usage;
use serde_json::Value;
use std::path::Path;

/// Password of [`USER`] at binlogd, which lets nobody in without one.
pub(crate) const PASSWORD: &str = "bench";

/// The part of a configuration that opens the port for readers.
pub(crate) fn serve_table() -> String {
    format!(
        "[serve]\nlisten = \"127.0.0.1:0\"\nmax_connections = 1000\n\
         [[serve.user]]\nname = \"{USER}\"\npassword = \"{PASSWORD}\"\n"
    )
}

/// The port that it has got, on 127.0.0.1.
///
/// # Errors
/// When it has none.
pub(crate) fn serving_port(daemon: &Daemon) -> anyhow::Result<u16> {
    let status = daemon.wait("the address for readers", |status| status["serve"]["address"].is_string())?;
    let address = status["serve"]["address"].as_str().unwrap_or_default();
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
    port.with_context(|| format!("no port in the address {address:?} for readers"))
}

/// A running binlogd that serves. It is killed when dropped.
#[derive(Debug)]
pub(super) struct Serving {
    // Before its folder, so that it ends first.
    daemon: Daemon,
    _dir: tempfile::TempDir,
    port: u16,
}

impl Serving {
    /// Starts it with a new folder under `dir`, receiving from 127.0.0.1:`source_port`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(binlogd: &Path, dir: &Path, source_port: u16) -> anyhow::Result<Serving> {
        let dir = tempfile::Builder::new().prefix("binlogd-bench-").tempdir_in(dir)?;
        let path = dir.path().canonicalize()?;
        let text = format!("{}{}", serve_table(), source_table("bench", source_port, USER));
        let daemon = Daemon::start(binlogd, &path, &path.join("data"), &text, &[])?;
        let port = serving_port(&daemon)?;
        Ok(Serving { daemon, _dir: dir, port })
    }

    /// Where it serves, on 127.0.0.1.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Its number as a process.
    pub(super) fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// What it has used until now.
    ///
    /// # Errors
    /// When the process is gone.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        self.daemon.usage()
    }

    /// Waits until its status is as wanted, and returns that.
    ///
    /// # Errors
    /// When it does not become so; `what` says what was waited for.
    pub(super) fn wait(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        self.daemon.wait(what, wanted)
    }

    /// Waits until its copy is durable to that place.
    ///
    /// # Errors
    /// When it does not advance.
    pub(super) fn wait_durable(&self, file: &str, position: u64) -> anyhow::Result<()> {
        self.wait("the source's log is durable to its end", |status| {
            is_at(&status["sources"][0]["positions"]["durable"], file, position)
        })
        .map(|_| ())
    }
}
