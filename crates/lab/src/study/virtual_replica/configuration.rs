//! What is attached, and how the source syncs.

use crate::model::Settings;
use crate::receiver::Yardstick;
use crate::receiver::binlogd::Options;
use crate::receiver::replica::Behaviour;
use anyhow::{Context, bail};

/// The baseline: nobody attached, the source syncs for itself.
pub const ALONE: &str = "source alone";
/// binlogd that acknowledges what it has written.
pub const FSYNC_MODE_0: &str = "binlogd, fsync_mode 0";
/// binlogd that acknowledges what it has synced.
pub const FSYNC_MODE_1: &str = "binlogd, fsync_mode 1";
/// As published: a replica whose relay log is synced every 20 events.
pub const REPLICA_20: &str = "replica, sync_relay_log 20, SQL thread running";
/// A replica whose relay log is synced after every event.
pub const REPLICA_1: &str = "replica, sync_relay_log 1, SQL thread running";
/// As published: the same with nothing applied.
pub const REPLICA_20_STOPPED: &str = "replica, sync_relay_log 20, SQL thread stopped";
/// The same, synced after every event.
pub const REPLICA_1_STOPPED: &str = "replica, sync_relay_log 1, SQL thread stopped";
/// A source that syncs nothing in time (sync_binlog 0, innodb_flush_log_at_trx_commit 2): binlogd's copy is what is
/// durable.
pub const RELAXED: &str = "relaxed source (0, 2) with binlogd, fsync_mode 1";

/// The bare receiver, which acknowledges what it has synced.
pub const BARE_SYNCED: &str = "bare receiver, synced";
/// The bare receiver, which acknowledges what it has written.
pub const BARE_WRITTEN: &str = "bare receiver, written";
/// go-mysqlbinlog, which acknowledges what it has received.
pub const GO_MYSQLBINLOG: &str = "go-mysqlbinlog";

/// Those that are always measured, in the order of a round: what is compared most closely stands side by side.
pub const ALL: [&str; 8] = [
    ALONE,
    RELAXED,
    FSYNC_MODE_1,
    FSYNC_MODE_0,
    REPLICA_1,
    REPLICA_20,
    REPLICA_1_STOPPED,
    REPLICA_20_STOPPED,
];

/// The published workload of sysbench, and one that writes only: there a receiver's difference shows on few processors
/// too.
pub const WORKLOADS: [&str; 2] = ["oltp_read_write", "oltp_update_non_index"];

/// The setting `workload`.
///
/// # Errors
/// When there is none of that name.
pub fn workload(settings: &Settings) -> anyhow::Result<&'static str> {
    let name: String = settings.get("workload")?;
    let found = WORKLOADS.into_iter().find(|workload| *workload == name);
    found.with_context(|| format!("--set workload={name}: {}", WORKLOADS.join(" or ")))
}

/// The configurations that the setting `yardsticks` adds.
///
/// # Errors
/// When it names another one.
pub fn yardsticks(settings: &Settings) -> anyhow::Result<Vec<&'static str>> {
    let mut names = Vec::new();
    for yardstick in settings.list::<String>("yardsticks")? {
        match yardstick.as_str() {
            "none" => {}
            "bare" => names.extend([BARE_SYNCED, BARE_WRITTEN]),
            "go-mysqlbinlog" => names.push(GO_MYSQLBINLOG),
            other => bail!("--set yardsticks={other}: none, or a list of bare and go-mysqlbinlog"),
        }
    }
    Ok(names)
}

/// The bare receiver that acknowledges at the same moment: after the sync, or without one.
pub fn bare_of_same_promise(name: &str) -> Option<&'static str> {
    match name {
        BARE_SYNCED | FSYNC_MODE_1 | REPLICA_1 | REPLICA_1_STOPPED => Some(BARE_SYNCED),
        // A replica that syncs every 20 events promises no more than one that does not.
        BARE_WRITTEN | FSYNC_MODE_0 | GO_MYSQLBINLOG | REPLICA_20 | REPLICA_20_STOPPED => Some(BARE_WRITTEN),
        _ => None,
    }
}

/// What is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    /// Nothing.
    Nothing,
    /// binlogd.
    Binlogd(Options),
    /// A real replica.
    Replica(Behaviour),
    /// A receiver that binlogd is measured beside.
    Yardstick(Yardstick),
}

/// A configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configuration {
    /// What is attached, by semi-sync.
    pub receiver: Receiver,
    /// The source has sync_binlog 0 and innodb_flush_log_at_trx_commit 2, instead of 1 and 1.
    pub relaxed: bool,
}

impl Configuration {
    /// Of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> anyhow::Result<Configuration> {
        let binlogd = |fsync_mode| Receiver::Binlogd(Options { fsync_mode, semi_sync: true });
        let replica = |sync_relay_log, applying| {
            Receiver::Replica(Behaviour { sync_relay_log, applying, semi_sync: true })
        };
        let receiver = match name {
            ALONE => Receiver::Nothing,
            FSYNC_MODE_0 => binlogd(0),
            FSYNC_MODE_1 | RELAXED => binlogd(1),
            REPLICA_20 => replica(20, true),
            REPLICA_1 => replica(1, true),
            REPLICA_20_STOPPED => replica(20, false),
            REPLICA_1_STOPPED => replica(1, false),
            BARE_SYNCED => Receiver::Yardstick(Yardstick::BareSynced),
            BARE_WRITTEN => Receiver::Yardstick(Yardstick::BareWritten),
            GO_MYSQLBINLOG => Receiver::Yardstick(Yardstick::GoMysqlbinlog),
            _ => bail!("virtual-replica has no configuration {name:?}"),
        };
        Ok(Configuration { receiver, relaxed: name == RELAXED })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_another_configuration() {
        let settings = Settings::of([("yardsticks", "bare,go-mysqlbinlog")]);
        let names = [ALL.to_vec(), yardsticks(&settings).unwrap()].concat();
        assert_eq!(names.len(), 11);
        let all: Vec<Configuration> = names.iter().map(|name| Configuration::named(name).unwrap()).collect();
        for (index, one) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other != one), "{one:?}");
        }
        assert!(Configuration::named("replica").is_err());
        assert!(yardsticks(&Settings::of([("yardsticks", "none")])).unwrap().is_empty());
        assert!(yardsticks(&Settings::of([("yardsticks", "bear")])).is_err());
        assert!(workload(&Settings::of([("workload", "oltp_insert")])).is_err());
    }
}
