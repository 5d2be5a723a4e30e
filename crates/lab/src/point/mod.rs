//! What a cell measures. It is a value from the plan to the report; its names are made from it, and read back in one
//! place, where the file of results is read.
//!
//! | file | noun |
//! |---|---|
//! | `virtual_replica.rs`, `semi_sync_cost.rs`, `sync_binlog.rs`, `rotation_stall.rs`, `binlog_compression.rs` | what each study compares |
//! | `place.rs` | where `sync-binlog` measures: a file system, and a size of the buffer pool |
//! | `disk.rs` | where `rotation-stall` measures: the disk as it is, or limited |

pub mod binlog_compression;
pub mod disk;
pub mod place;
pub mod rotation_stall;
pub mod semi_sync_cost;
pub mod sync_binlog;
pub mod virtual_replica;

use self::disk::Disk;
use self::place::Condition as Place;
use anyhow::bail;
use std::fmt;
use std::str::FromStr;

const NOBODY: &str = "nobody attached";
const BINLOGD: &str = "binlogd attached, asynchronous";

/// A server under a condition: what one chart or table shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Panel {
    /// The server, as [`ServerChoice`](crate::model::ServerChoice) prints it; several with commas where they are compared
    /// with each other.
    pub server: String,
    /// What else distinguishes the panel.
    pub condition: Condition,
}

/// What one cell measures; the same in all rounds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Where it is measured. The points of a panel with the same threads are a block: they are measured in turn, and
    /// ratios are made within it.
    pub panel: Panel,
    /// What is compared within a block.
    pub configuration: Configuration,
    /// Clients of the load.
    pub threads: u32,
}

/// A cell: a point in a round.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellKey {
    /// What is measured.
    pub point: Point,
    /// From 0.
    pub round: u32,
}

/// What a cell is measured under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// The study's own, which has no name.
    Plain,
    /// Of `virtual-replica`: a load that is not the published one.
    Workload(virtual_replica::Workload),
    /// Of `sync-binlog`: where the server's files lie, and how large its buffer pool is.
    Place(Place),
    /// Of `rotation-stall`: the disk that the server's files lie on.
    Disk(Disk),
    /// Of `binlog-compression`: nobody reads the log.
    NobodyAttached,
    /// Of `binlog-compression`: binlogd receives, and the source does not wait for it, because the Maven builds of 8.0 come
    /// without semi-sync plugins, and all servers must be alike.
    BinlogdAttached,
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Configuration {
    /// Of `virtual-replica`.
    VirtualReplica(virtual_replica::Configuration),
    /// Of `semi-sync-cost`.
    SemiSyncCost(semi_sync_cost::Configuration),
    /// Of `sync-binlog`.
    SyncBinlog(sync_binlog::Configuration),
    /// Of `rotation-stall`.
    RotationStall(rotation_stall::Configuration),
    /// Of `binlog-compression`.
    BinlogCompression(binlog_compression::Configuration),
}

impl Panel {
    /// The point of this panel with that configuration and number of threads.
    pub fn point(&self, configuration: impl Into<Configuration>, threads: u32) -> Point {
        Point { panel: self.clone(), configuration: configuration.into(), threads }
    }
}

impl fmt::Display for Panel {
    /// `mysql-9.7, ext4, buffer pool 60/90`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.condition {
            Condition::Plain => f.write_str(&self.server),
            named => write!(f, "{}, {named}", self.server),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Plain => Ok(()),
            Condition::Workload(workload) => workload.fmt(f),
            Condition::Place(place) => place.fmt(f),
            Condition::Disk(disk) => disk.fmt(f),
            Condition::NobodyAttached => f.write_str(NOBODY),
            Condition::BinlogdAttached => f.write_str(BINLOGD),
        }
    }
}

impl FromStr for Condition {
    type Err = anyhow::Error;

    /// As it is printed.
    fn from_str(text: &str) -> anyhow::Result<Condition> {
        match text {
            "" => Ok(Condition::Plain),
            NOBODY => Ok(Condition::NobodyAttached),
            BINLOGD => Ok(Condition::BinlogdAttached),
            _ => (text.parse().map(Condition::Workload))
                .or_else(|_| text.parse().map(Condition::Place))
                .or_else(|_| text.parse().map(Condition::Disk))
                .or_else(|_| bail!("no study measures under the condition {text:?}")),
        }
    }
}

impl FromStr for Configuration {
    type Err = anyhow::Error;

    /// As it is printed.
    fn from_str(text: &str) -> anyhow::Result<Configuration> {
        let found = (text.parse().map(Configuration::VirtualReplica))
            .or_else(|_| text.parse().map(Configuration::SemiSyncCost))
            .or_else(|_| text.parse().map(Configuration::SyncBinlog))
            .or_else(|_| text.parse().map(Configuration::RotationStall))
            .or_else(|_| text.parse().map(Configuration::BinlogCompression));
        found.or_else(|_| bail!("no study has the configuration {text:?}"))
    }
}

impl From<&Configuration> for Configuration {
    fn from(configuration: &Configuration) -> Configuration {
        configuration.clone()
    }
}

/// What each study's own configurations have in common.
macro_rules! configurations {
    ($($variant:ident of $study:ident),+) => {
        impl fmt::Display for Configuration {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Configuration::$variant(own) => own.fmt(f),)+
                }
            }
        }

        $(impl From<$study::Configuration> for Configuration {
            fn from(own: $study::Configuration) -> Configuration {
                Configuration::$variant(own)
            }
        }

        impl TryFrom<&Configuration> for $study::Configuration {
            type Error = anyhow::Error;

            fn try_from(any: &Configuration) -> anyhow::Result<Self> {
                match any {
                    Configuration::$variant(own) => Ok(own.to_owned()),
                    other => bail!("{other} is no configuration of this study"),
                }
            }
        })+
    };
}

configurations!(
    VirtualReplica of virtual_replica,
    SemiSyncCost of semi_sync_cost,
    SyncBinlog of sync_binlog,
    RotationStall of rotation_stall,
    BinlogCompression of binlog_compression
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;
    use crate::model::{Order, Profile};
    use crate::study::catalogue;

    /// The file of results keeps names, so each must lead back to what it is made from.
    #[test]
    fn every_name_of_every_plan_is_read_back() {
        for study in catalogue::all() {
            for (profile, server) in [
                (Profile::Full, "mysql:9.7"),
                (Profile::Quick, "mariadb:11.8"),
                (Profile::Smoke, "mysql://u@db:1"),
            ] {
                let mut settings = study.settings(profile);
                if server.starts_with("maria") && study.name() == "virtual-replica" {
                    settings.0.insert("yardsticks".to_owned(), "bare,go-mysqlbinlog".to_owned());
                    settings.0.insert("tls".to_owned(), "binlogd".to_owned());
                    settings.0.insert("workload".to_owned(), "oltp_update_non_index".to_owned());
                }
                let order = Order {
                    profile,
                    servers: vec![server.parse().unwrap()],
                    settings,
                    apart: Apart::default(),
                };
                for cell in study.plan(&order).unwrap().scenes.into_iter().flat_map(|scene| scene.cells) {
                    let Point { panel: Panel { condition, .. }, configuration, .. } = cell.point;
                    assert_eq!(condition.to_string().parse::<Condition>().unwrap(), condition);
                    assert_eq!(configuration.to_string().parse::<Configuration>().unwrap(), configuration);
                }
            }
        }
    }

    #[test]
    fn a_name_that_is_none_is_named() {
        let error = "replica".parse::<Configuration>().unwrap_err().to_string();
        assert!(error.contains("\"replica\""), "{error}");
        let error = "zfs, buffer pool 60/90".parse::<Condition>().unwrap_err().to_string();
        assert!(error.contains("\"zfs, buffer pool 60/90\""), "{error}");
    }
}
