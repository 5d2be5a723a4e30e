//! What may stand at the other end of the source's acknowledgements.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A receiver and how it is to behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Configuration {
    /// The source alone, semi-sync off.
    None,
    /// The bare receiver, acknowledging after fdatasync.
    BareSynced,
    /// binlogd with `fsync_mode` 1.
    #[value(name = "binlogd-1")]
    #[serde(rename = "binlogd-1")]
    Binlogd1,
    /// A real replica with `sync_relay_log` 0, SQL thread stopped.
    ReplicaUnsynced,
    /// A real replica with `sync_relay_log` 1, SQL thread stopped.
    ReplicaSynced,
    /// A real replica with `sync_relay_log` 1 that applies what it receives.
    ReplicaApplying,
    /// go-mysqlbinlog, which syncs nothing.
    GoMysqlbinlog,
    /// The bare receiver, acknowledging after the write.
    BareWritten,
    /// binlogd with `fsync_mode` 0.
    #[value(name = "binlogd-0")]
    #[serde(rename = "binlogd-0")]
    Binlogd0,
}

impl Configuration {
    /// All, in the order of a round: what is compared most closely stands side by side.
    pub const ALL: [Configuration; 9] = [
        Configuration::None,
        Configuration::BareSynced,
        Configuration::Binlogd1,
        Configuration::ReplicaUnsynced,
        Configuration::ReplicaSynced,
        Configuration::ReplicaApplying,
        Configuration::GoMysqlbinlog,
        Configuration::BareWritten,
        Configuration::Binlogd0,
    ];

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Configuration::None => "source alone",
            Configuration::BareSynced => "bare, synced",
            Configuration::Binlogd1 => "binlogd, fsync_mode 1",
            Configuration::ReplicaUnsynced => "replica, unsynced",
            Configuration::ReplicaSynced => "replica, synced",
            Configuration::ReplicaApplying => "replica, synced, applying",
            Configuration::GoMysqlbinlog => "go-mysqlbinlog",
            Configuration::BareWritten => "bare, written",
            Configuration::Binlogd0 => "binlogd, fsync_mode 0",
        }
    }

    /// The bare receiver that acknowledges at the same moment: after the sync, or without one.
    pub fn bare_of_same_promise(self) -> Option<Configuration> {
        match self {
            Configuration::None => None,
            Configuration::BareSynced
            | Configuration::Binlogd1
            | Configuration::ReplicaSynced
            | Configuration::ReplicaApplying => Some(Configuration::BareSynced),
            Configuration::BareWritten
            | Configuration::Binlogd0
            | Configuration::ReplicaUnsynced
            | Configuration::GoMysqlbinlog => Some(Configuration::BareWritten),
        }
    }

    /// The same for receivers whose ratio is a goal: a disk's mood changes within half a minute.
    fn neighbourhood(self) -> u8 {
        match self {
            Configuration::None => 0,
            Configuration::BareSynced | Configuration::Binlogd1 | Configuration::ReplicaUnsynced => 1,
            Configuration::ReplicaSynced => 2,
            Configuration::ReplicaApplying => 3,
            Configuration::GoMysqlbinlog => 4,
            Configuration::BareWritten | Configuration::Binlogd0 => 5,
        }
    }
}

/// `configurations`, sorted, in the order of round `round`: each round begins elsewhere, and every second one runs
/// backwards, so that none always follows the same one. Those of one neighbourhood stay side by side.
pub fn order(configurations: &[Configuration], round: usize) -> Vec<Configuration> {
    let mut groups: Vec<&[Configuration]> =
        configurations.chunk_by(|one, other| one.neighbourhood() == other.neighbourhood()).collect();
    if !groups.is_empty() {
        let shift = round % groups.len();
        groups.rotate_left(shift);
    }
    let mut order = groups.concat();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_configuration_in_another_order() {
        let orders: Vec<_> = (0..4).map(|round| order(&Configuration::ALL, round)).collect();
        for (index, one) in orders.iter().enumerate() {
            let mut sorted = one.clone();
            sorted.sort();
            assert_eq!(sorted.len(), Configuration::ALL.len());
            sorted.dedup();
            assert_eq!(sorted.len(), Configuration::ALL.len());
            assert!(orders[..index].iter().all(|other| other != one));
            for pair in [
                [Configuration::BareSynced, Configuration::Binlogd1],
                [Configuration::BareWritten, Configuration::Binlogd0],
                [Configuration::Binlogd1, Configuration::ReplicaUnsynced],
            ] {
                let together = |two: &[Configuration]| pair.iter().all(|one| two.contains(one));
                assert!(one.windows(2).any(together), "{pair:?} in {one:?}");
            }
        }
        assert!(order(&[], 3).is_empty());
    }
}
