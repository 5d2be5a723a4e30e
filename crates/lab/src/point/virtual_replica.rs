//! What is attached, how the source syncs, and what loads it.

use crate::model::Settings;
use crate::receiver::Yardstick;
use anyhow::{Context, bail};
use std::fmt;
use std::str::FromStr;

/// A configuration. Receivers attach by semi-sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Configuration {
    /// The baseline: nobody attached, the source syncs for itself.
    Alone,
    /// A source that syncs nothing in time (sync_binlog 0, innodb_flush_log_at_trx_commit 2), with binlogd at
    /// `fsync_mode` 1: binlogd's copy is what is durable.
    Relaxed,
    /// binlogd.
    Binlogd {
        /// 0: it acknowledges what it has written. 1: what it has synced.
        fsync_mode: u8,
        /// Its connection with the source is encrypted. Elsewhere it is in clear, but for a user's server that offers TLS.
        tls: bool,
    },
    /// A real replica.
    Replica {
        /// After how many events it syncs its relay log: 20 as published, or every one.
        sync_relay_log: u32,
        /// Its SQL thread runs.
        applying: bool,
    },
    /// A receiver that binlogd is measured beside.
    Yardstick(Yardstick),
}

/// binlogd that acknowledges what it has written.
pub const FSYNC_MODE_0: Configuration = Configuration::Binlogd { fsync_mode: 0, tls: false };
/// binlogd that acknowledges what it has synced.
pub const FSYNC_MODE_1: Configuration = Configuration::Binlogd { fsync_mode: 1, tls: false };
/// As published: a replica whose relay log is synced every 20 events.
pub const REPLICA_20: Configuration = Configuration::Replica { sync_relay_log: 20, applying: true };
/// As published: the same with nothing applied.
pub const REPLICA_20_STOPPED: Configuration = Configuration::Replica { sync_relay_log: 20, applying: false };

/// Those that are always measured, in the order of a round: what is compared most closely stands side by side.
pub const ALL: [Configuration; 8] = [
    Configuration::Alone,
    Configuration::Relaxed,
    FSYNC_MODE_1,
    FSYNC_MODE_0,
    Configuration::Replica { sync_relay_log: 1, applying: true },
    REPLICA_20,
    Configuration::Replica { sync_relay_log: 1, applying: false },
    REPLICA_20_STOPPED,
];

/// Those of binlogd that are encrypted, which the setting `tls` adds.
pub const ENCRYPTED: [Configuration; 2] = [
    Configuration::Binlogd { fsync_mode: 1, tls: true },
    Configuration::Binlogd { fsync_mode: 0, tls: true },
];

const BARE_SYNCED: Configuration = Configuration::Yardstick(Yardstick::BareSynced);
const BARE_WRITTEN: Configuration = Configuration::Yardstick(Yardstick::BareWritten);
const GO_MYSQLBINLOG: Configuration = Configuration::Yardstick(Yardstick::GoMysqlbinlog);

/// The configurations that the setting `yardsticks` adds.
///
/// # Errors
/// When it names another one.
pub fn yardsticks(settings: &Settings) -> anyhow::Result<Vec<Configuration>> {
    let mut all = Vec::new();
    for yardstick in settings.list::<String>("yardsticks")? {
        match yardstick.as_str() {
            "none" => {}
            "bare" => all.extend([BARE_SYNCED, BARE_WRITTEN]),
            "go-mysqlbinlog" => all.push(GO_MYSQLBINLOG),
            other => bail!("--set yardsticks={other}: none, or a list of bare and go-mysqlbinlog"),
        }
    }
    Ok(all)
}

/// The configurations that the setting `tls` adds.
///
/// # Errors
/// When it is another word.
pub fn encrypted(settings: &Settings) -> anyhow::Result<Vec<Configuration>> {
    match settings.get::<String>("tls")?.as_str() {
        "none" => Ok(Vec::new()),
        "binlogd" => Ok(ENCRYPTED.to_vec()),
        other => bail!("--set tls={other}: none or binlogd"),
    }
}

impl Configuration {
    /// The same in clear, of what is encrypted.
    pub fn in_clear(self) -> Option<Configuration> {
        match self {
            Configuration::Binlogd { fsync_mode, tls: true } => {
                Some(Configuration::Binlogd { fsync_mode, tls: false })
            }
            _ => None,
        }
    }

    /// The bare receiver that acknowledges at the same moment: after the sync, or without one.
    pub fn bare_of_same_promise(self) -> Option<Configuration> {
        match self {
            Configuration::Alone | Configuration::Relaxed => None,
            Configuration::Binlogd { fsync_mode: 1, .. }
            | Configuration::Replica { sync_relay_log: 1, .. }
            | BARE_SYNCED => Some(BARE_SYNCED),
            // A replica that syncs every 20 events promises no more than one that does not.
            Configuration::Binlogd { .. } | Configuration::Replica { .. } | Configuration::Yardstick(_) => {
                Some(BARE_WRITTEN)
            }
        }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Configuration::Alone => f.write_str("source alone"),
            Configuration::Relaxed => f.write_str("relaxed source (0, 2) with binlogd, fsync_mode 1"),
            Configuration::Binlogd { fsync_mode, tls } => {
                write!(f, "binlogd, fsync_mode {fsync_mode}{}", if *tls { ", TLS" } else { "" })
            }
            Configuration::Replica { sync_relay_log, applying } => {
                let thread = if *applying { "running" } else { "stopped" };
                write!(f, "replica, sync_relay_log {sync_relay_log}, SQL thread {thread}")
            }
            Configuration::Yardstick(Yardstick::BareSynced) => f.write_str("bare receiver, synced"),
            Configuration::Yardstick(Yardstick::BareWritten) => f.write_str("bare receiver, written"),
            Configuration::Yardstick(Yardstick::GoMysqlbinlog) => f.write_str("go-mysqlbinlog"),
        }
    }
}

impl FromStr for Configuration {
    type Err = anyhow::Error;

    /// As it is printed.
    fn from_str(text: &str) -> anyhow::Result<Configuration> {
        let mut all = ALL.into_iter().chain(ENCRYPTED).chain([BARE_SYNCED, BARE_WRITTEN, GO_MYSQLBINLOG]);
        let found = all.find(|one| one.to_string() == text);
        found.with_context(|| format!("virtual-replica has no configuration {text:?}"))
    }
}

/// What sysbench does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// As published.
    ReadWrite,
    /// It writes only: there a receiver's difference shows on few processors too.
    UpdateNonIndex,
}

impl Workload {
    /// Name of sysbench's script.
    pub fn script(self) -> &'static str {
        match self {
            Workload::ReadWrite => "oltp_read_write",
            Workload::UpdateNonIndex => "oltp_update_non_index",
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.script())
    }
}

impl FromStr for Workload {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Workload> {
        let mut all = [Workload::ReadWrite, Workload::UpdateNonIndex].into_iter();
        let found = all.find(|workload| workload.script() == text);
        found.context("oltp_read_write or oltp_update_non_index")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_another_configuration() {
        let settings = Settings::of([("yardsticks", "bare,go-mysqlbinlog"), ("tls", "binlogd")]);
        let all = [ALL.to_vec(), encrypted(&settings).unwrap(), yardsticks(&settings).unwrap()].concat();
        assert_eq!(all.len(), 13);
        let names: Vec<String> = all.iter().map(Configuration::to_string).collect();
        // As files of results have them.
        assert_eq!(
            names,
            [
                "source alone",
                "relaxed source (0, 2) with binlogd, fsync_mode 1",
                "binlogd, fsync_mode 1",
                "binlogd, fsync_mode 0",
                "replica, sync_relay_log 1, SQL thread running",
                "replica, sync_relay_log 20, SQL thread running",
                "replica, sync_relay_log 1, SQL thread stopped",
                "replica, sync_relay_log 20, SQL thread stopped",
                "binlogd, fsync_mode 1, TLS",
                "binlogd, fsync_mode 0, TLS",
                "bare receiver, synced",
                "bare receiver, written",
                "go-mysqlbinlog",
            ]
        );
        for (name, one) in names.iter().zip(all) {
            assert_eq!(name.parse::<Configuration>().unwrap(), one);
        }
        assert!("replica".parse::<Configuration>().is_err());
        assert!(yardsticks(&Settings::of([("yardsticks", "none")])).unwrap().is_empty());
        assert!(yardsticks(&Settings::of([("yardsticks", "bear")])).is_err());
        assert!(encrypted(&Settings::of([("tls", "none")])).unwrap().is_empty());
        let error = encrypted(&Settings::of([("tls", "all")])).unwrap_err();
        assert_eq!(error.to_string(), "--set tls=all: none or binlogd");
        let error = Settings::of([("workload", "oltp_insert")]).get::<Workload>("workload").unwrap_err();
        assert!(error.to_string().contains("workload=oltp_insert: oltp_read_write or"), "{error}");
    }
    #[test]
    fn what_is_encrypted_is_compared_with_the_same_in_clear_and_with_the_same_promise() {
        assert_eq!(ENCRYPTED.map(Configuration::in_clear), [Some(FSYNC_MODE_1), Some(FSYNC_MODE_0)]);
        assert_eq!(FSYNC_MODE_1.in_clear(), None);
        let bare = ENCRYPTED.map(Configuration::bare_of_same_promise);
        assert_eq!(bare, [Some(BARE_SYNCED), Some(BARE_WRITTEN)]);
    }
}
