//! What is attached, and how the source syncs.

use crate::receiver::binlogd::Options;
use crate::receiver::replica::Behaviour;
use anyhow::bail;

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

/// All, in the order of a round: what is compared most closely stands side by side.
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

/// What is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    /// Nothing.
    Nothing,
    /// binlogd.
    Binlogd(Options),
    /// A real replica.
    Replica(Behaviour),
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
        let all: Vec<Configuration> = ALL.iter().map(|name| Configuration::named(name).unwrap()).collect();
        for (index, one) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other != one), "{one:?}");
        }
        assert!(Configuration::named("replica").is_err());
    }
}
