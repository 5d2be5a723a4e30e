//! What is compared, and what is the same for all.

use crate::server::semi_sync::WaitPoint;
use anyhow::Context;
use std::fmt;
use std::str::FromStr;

/// MySQL's default of `sync_relay_log`.
pub(crate) const SYNC_RELAY_LOG: u32 = 10_000;

/// What the source has beside a replica that is asynchronous and applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Configuration {
    /// The baseline: another such replica.
    Asynchronous,
    /// A replica that is semi-synchronous: a commit waits before the engine commits.
    AfterSync,
    /// The same after the engine has committed.
    AfterCommit,
    /// binlogd in the place of the semi-synchronous replica.
    Binlogd,
}

/// In the order of measuring and of the legends.
pub const ALL: [Configuration; 4] = [
    Configuration::Asynchronous,
    Configuration::AfterSync,
    Configuration::AfterCommit,
    Configuration::Binlogd,
];

impl Configuration {
    /// Where a commit waits.
    pub(crate) fn wait_point(self) -> WaitPoint {
        if self == Configuration::AfterCommit { WaitPoint::AfterCommit } else { WaitPoint::AfterSync }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Configuration::Asynchronous => "two asynchronous replicas",
            Configuration::AfterSync => "semi-sync (AFTER_SYNC) and asynchronous replica",
            Configuration::AfterCommit => "semi-sync (AFTER_COMMIT) and asynchronous replica",
            Configuration::Binlogd => "binlogd (AFTER_SYNC, fsync_mode 1) and asynchronous replica",
        })
    }
}

impl FromStr for Configuration {
    type Err = anyhow::Error;

    /// As it is printed.
    fn from_str(text: &str) -> anyhow::Result<Configuration> {
        let found = ALL.into_iter().find(|one| one.to_string() == text);
        found.with_context(|| format!("semi-sync-cost has no configuration {text:?}"))
    }
}
