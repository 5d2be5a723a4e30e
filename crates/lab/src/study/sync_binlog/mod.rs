//! What `sync_binlog` costs, on which file system, with how much memory, and what a rotation of the binary log does.
//!
//! | file | noun |
//! |---|---|
//! | `mod.rs` | the study: settings and plan |
//! | `configuration.rs` | what is compared: a value of `sync_binlog`, or no binary log |
//! | `stage.rs` | the servers, and a cell |
//! | `outline.rs` | the report |

mod configuration;
mod outline;
mod stage;

use super::semi_sync_cost::{own_server, servers};
use super::{Headline, Lab, Plan, Scene, Stage, Study, interleaved};
use crate::file_system::Kind;
use crate::model::{Order, Point, Profile, Run, ServerChoice, Settings};
use crate::reference::sync_binlog::DATA_GB;
use crate::report::outline::Part;
use anyhow::ensure;
use configuration::{Configuration, NO_BINARY_LOG};

/// The lab's own servers that come without semi-sync plugins.
const WITHOUT_SEMI_SYNC: [&str; 3] = ["mysql-5.7.22", "mysql-8.0.15", "mysql-8.0.31"];

/// The study.
#[derive(Debug)]
pub struct SyncBinlog;

impl Study for SyncBinlog {
    fn name(&self) -> &'static str {
        "sync-binlog"
    }

    fn title(&self) -> &'static str {
        "What sync_binlog costs"
    }

    fn summary(&self) -> &'static str {
        "TPC-C (go-tpc) with sync_binlog 0, 1, 1000, 10000 and without a binary log, with three sizes of the buffer pool, \
         on ext4 and XFS; the stall when the log is rotated; and the same with binlogd attached by semi-sync."
    }

    fn settings(&self, profile: Profile) -> Settings {
        let full = profile == Profile::Full;
        let (pools, attached, threads, seconds, rounds, warehouses) = match profile {
            Profile::Smoke => ("70", "1", "4", "2", "1", "2"),
            Profile::Quick => ("60,80", "0,1", "16", "4", "3", "2"),
            Profile::Full => ("60,70,80", "0,1,1000,10000", "56", "180", "3", "1000"),
        };
        Settings::of([
            ("sync_binlog", "0,1,1000,10000"),
            ("attached", attached),
            ("pools", pools),
            ("file_systems", "ext4,xfs"),
            ("threads", threads),
            ("seconds", seconds),
            ("rounds", rounds),
            ("warehouses", warehouses),
            ("warm_up_seconds", if full { "60" } else { "1" }),
            ("rotation_kb", if full { "1048576" } else { "auto" }),
            ("sample_ms", if full { "250" } else { "100" }),
            ("redo_mb", if full { "16384" } else { "256" }),
        ])
    }

    fn plan(&self, order: &Order) -> anyhow::Result<Plan> {
        let settings = &order.settings;
        let (threads, pools): (Vec<u32>, Vec<u32>) = (settings.list("threads")?, settings.list("pools")?);
        let (seconds, rounds): (f64, u32) = (settings.get("seconds")?, settings.get("rounds")?);
        let file_systems: Vec<Kind> = settings.list("file_systems")?;
        for name in ["warehouses", "warm_up_seconds", "sample_ms", "redo_mb"] {
            settings.get::<u64>(name)?;
        }
        Rotation::of(settings)?;
        ensure!(
            pools.iter().all(|pool| (1..=DATA_GB).contains(pool)),
            "--set pools: each is a share of the data in {DATA_GB}ths, from 1 to {DATA_GB}"
        );
        let mut scenes = Vec::new();
        for choice in servers(order) {
            let server = own_server(&choice, self.name())?;
            let names: Vec<String> = Configuration::all(settings, !WITHOUT_SEMI_SYNC.contains(&server))?
                .iter()
                .map(Configuration::to_string)
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            for file_system in &file_systems {
                let blocks = blocks(&choice, *file_system, &pools, &threads);
                let name = format!("{server} on {file_system}");
                scenes.push(Scene { name, cells: interleaved(&blocks, &names, rounds) });
            }
        }
        // Connecting, attaching, sampling.
        Ok(Plan { scenes, cell_seconds: seconds + 2.5 })
    }

    fn set_up(&self, order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn Stage>> {
        Ok(Box::new(stage::Servers::set_up(order, scene, lab)?))
    }

    fn outline(&self, run: &Run) -> Vec<Part> {
        outline::outline(run)
    }

    fn headline(&self) -> Headline {
        Headline { values: &["tps"], baseline: Some(NO_BINARY_LOG) }
    }
}

/// When the binary log is rotated: the setting `rotation_kb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rotation {
    /// After a file of so many KiB.
    Kibibytes(u64),
    /// Several times in a cell, as fast as this machine fills the log.
    Auto,
}

impl Rotation {
    fn of(settings: &Settings) -> anyhow::Result<Rotation> {
        if settings.get::<String>("rotation_kb")? == "auto" {
            return Ok(Rotation::Auto);
        }
        let size = settings.get("rotation_kb")?;
        ensure!((4..=1 << 20).contains(&size), "--set rotation_kb={size}: from 4 to {}, or auto", 1 << 20);
        Ok(Rotation::Kibibytes(size))
    }
}

fn blocks(choice: &ServerChoice, file_system: Kind, pools: &[u32], threads: &[u32]) -> Vec<Point> {
    let mut blocks = Vec::new();
    for pool in pools {
        for threads in threads {
            blocks.push(Point {
                server: choice.to_string(),
                condition: condition(file_system, *pool),
                configuration: String::new(),
                threads: *threads,
            });
        }
    }
    blocks
}

/// `ext4, buffer pool 60/90`.
fn condition(file_system: Kind, pool: u32) -> String {
    format!("{file_system}, buffer pool {pool}/{DATA_GB}")
}

/// File system and pool of a condition.
fn parse_condition(condition: &str) -> Option<(Kind, u32)> {
    let (file_system, rest) = condition.split_once(", buffer pool ")?;
    Some((file_system.parse().ok()?, rest.split_once('/')?.0.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(profile: Profile, server: &str) -> Plan {
        let servers = vec![server.parse().unwrap()];
        SyncBinlog.plan(&Order { profile, servers, settings: SyncBinlog.settings(profile) }).unwrap()
    }

    #[test]
    fn the_full_plan_is_the_published_grid_and_the_same_with_binlogd() {
        let full = plan(Profile::Full, "mysql:9.7");
        assert_eq!(
            full.scenes.iter().map(|scene| scene.name.as_str()).collect::<Vec<_>>(),
            ["mysql-9.7 on ext4", "mysql-9.7 on xfs"]
        );
        // Three pools, three rounds; four values of sync_binlog with and without binlogd, and no binary log.
        assert_eq!(full.scenes[0].cells.len(), 3 * 3 * 9);
        // Without semi-sync nothing can be attached.
        assert_eq!(plan(Profile::Full, "mysql:5.7").scenes[0].cells.len(), 3 * 3 * 5);
    }

    #[test]
    fn a_condition_is_read_back() {
        assert_eq!(parse_condition(&condition(Kind::Xfs, 60)), Some((Kind::Xfs, 60)));
        assert_eq!(parse_condition("ext4"), None);
    }

    #[test]
    fn settings_without_sense_are_named() {
        for (name, value) in [
            ("pools", "0"),
            ("pools", "91"),
            ("file_systems", "zfs"),
            ("attached", "x"),
            ("rotation_kb", "3"),
        ] {
            let mut settings = SyncBinlog.settings(Profile::Smoke);
            settings.0.insert(name.to_owned(), value.to_owned());
            let order = Order { profile: Profile::Smoke, servers: Vec::new(), settings };
            let error = SyncBinlog.plan(&order).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
