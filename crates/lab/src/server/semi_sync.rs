//! A server's side of semi-sync.

use super::sql::{DATABASE, same};
use super::target::Target;
use crate::server::counters::SemiSync;
use anyhow::{Context, bail, ensure};
use std::fmt;

/// Longer than any cell's hiccup, so that the source does not give up waiting unnoticed, and short enough that a
/// receiver which acknowledges nothing does not hold up the run.
pub const TIMEOUT_MS: u32 = 10_000;

/// When a commit waits for the acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitPoint {
    /// Before the engine commits: nobody sees what may be lost.
    AfterSync,
    /// After the engine has committed.
    AfterCommit,
}

impl fmt::Display for WaitPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitPoint::AfterSync => "AFTER_SYNC",
            WaitPoint::AfterCommit => "AFTER_COMMIT",
        })
    }
}

impl Target {
    /// What its semi-sync variables and counters begin with; `None` when it has none. A MySQL from 8.0.26 on may have
    /// either plugin.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn semi_sync_prefix(&mut self) -> anyhow::Result<Option<&'static str>> {
        for prefix in ["rpl_semi_sync_source_", "rpl_semi_sync_master_"] {
            if self.variable(&format!("{prefix}enabled"))?.is_some() {
                return Ok(Some(prefix));
            }
        }
        Ok(None)
    }

    /// Refuses a user's server whose commits may depend on semi-sync, which the lab switches off and on.
    pub(super) fn has_no_semi_sync_in_use(&mut self, place: &str) -> anyhow::Result<()> {
        let clients = self.semi_sync()?.clients;
        ensure!(
            clients == 0,
            "{place} has {clients} semi-sync receivers, and its commits may depend on them: detach them for the run, \
             or name a server that has none"
        );
        if let Some(prefix) = self.semi_sync_prefix()? {
            let enabled = format!("{prefix}enabled");
            let is_on = self.variable(&enabled)?.is_some_and(|value| same(&value, "ON"));
            ensure!(
                !is_on,
                "{place} has semi-sync switched on ({enabled} is ON), and its commits may depend on it: SET GLOBAL \
                 {enabled} = OFF for the run if they do not, or name another server"
            );
        }
        Ok(())
    }

    /// Makes semi-sync ready to be switched on: the plugin installed, [`TIMEOUT_MS`], and `wait_point`. A user's server
    /// waits for nobody where no receiver is attached.
    ///
    /// # Errors
    /// When the server has no plugin for it, and when a user's server has a semi-sync receiver of its own: nobody could
    /// tell whose acknowledgement a commit waited for.
    pub fn prepare_semi_sync(&mut self, wait_point: WaitPoint) -> anyhow::Result<()> {
        if self.semi_sync_prefix()?.is_none()
            && let Some((plugin, file)) = self.dialect().semi_sync_source().plugin
        {
            let name = self.name().to_owned();
            self.install(plugin, file).with_context(|| format!("{name} has no semi-sync plugin"))?;
        }
        let prefix = self.semi_sync_prefix()?.context("the server has no semi-sync")?;
        let clients = self.semi_sync()?.clients;
        if self.is_users() && clients > 0 {
            bail!("{} has {clients} semi-sync receivers already: detach them for the run", self.name());
        }
        self.set(&format!("{prefix}timeout"), &TIMEOUT_MS.to_string())?;
        if self.is_users() {
            // Otherwise everybody's commits wait that long for a receiver that is gone.
            let receiver = if prefix.contains("source") { "replica" } else { "slave" };
            self.set(&format!("{prefix}wait_no_{receiver}"), "0")?;
        }
        self.set(&format!("{prefix}wait_point"), &wait_point.to_string())
    }

    /// What is not as it must be where commits wait at `wait_point`.
    ///
    /// # Errors
    /// When the server does not answer, or has no semi-sync.
    pub fn is_not_waiting_at(&mut self, wait_point: WaitPoint) -> anyhow::Result<Option<String>> {
        let prefix = self.semi_sync_prefix()?.context("the server has no semi-sync")?;
        self.is_not(&[(&format!("{prefix}wait_point"), &wait_point.to_string())])
    }

    /// Switches semi-sync on or off; a source that had given up waiting waits again. Where it is as wanted already,
    /// nothing is done: MySQL takes a second to end the thread that reads acknowledgements. A server without semi-sync
    /// has it off.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn set_semi_sync(&mut self, wanted: bool) -> anyhow::Result<()> {
        let Some(prefix) = self.semi_sync_prefix()? else {
            ensure!(!wanted, "{} has no semi-sync", self.name());
            return Ok(());
        };
        let variable = format!("{prefix}enabled");
        let enabled = self.variable(&variable)?.as_deref() == Some("ON");
        if enabled == wanted && self.semi_sync()?.on == wanted {
            return Ok(());
        }
        self.set(&variable, "0")?;
        if wanted { self.set(&variable, "1") } else { Ok(()) }
    }

    /// Its counters now; none of a server without semi-sync.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn semi_sync(&mut self) -> anyhow::Result<SemiSync> {
        let rows = self.query("SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_%'")?;
        let has = |prefix: &str| {
            (0..rows.rows.len()).any(|row| {
                rows.get(row, "Variable_name")
                    .is_some_and(|name| name.to_ascii_lowercase().starts_with(prefix))
            })
        };
        let source = "rpl_semi_sync_source_";
        Ok(SemiSync::read(&rows, if has(source) { source } else { "rpl_semi_sync_master_" }))
    }

    /// Commits twice, one row each, and so waits for a receiver twice if semi-sync is on. MySQL's thread that reads
    /// acknowledgements looks for new receivers once a second (`Ack_receiver::run` of plugin/semisync): commits before
    /// that wait for it, up to a quarter of a short cell.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn commit_probes(&mut self) -> anyhow::Result<()> {
        for number in 0..2 {
            self.query(&format!("REPLACE INTO {DATABASE}.probe VALUES (1, {number})"))?;
        }
        Ok(())
    }

    /// What is not as it must be before and after a load: semi-sync on and one receiver that acknowledges, or neither.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn not_in_force(&mut self, wanted: bool) -> anyhow::Result<Option<String>> {
        let counters = self.semi_sync()?;
        let right = counters.on == wanted && counters.clients == u64::from(wanted);
        Ok((!right).then(|| {
            format!(
                "semi-sync is {}, and the source counts {} semi-sync receivers",
                if counters.on { "on" } else { "off" },
                counters.clients
            )
        }))
    }
}
