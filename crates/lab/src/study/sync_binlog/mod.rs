//! What `sync_binlog` costs, on which file system, with how much memory, and what a rotation of the binary log does.
//!
//! | file | noun |
//! |---|---|
//! | `mod.rs` | the study: settings and plan |
//! | `stage.rs` | the servers, and a cell |
//! | `users.rs` | a user's server: what can be measured there, and what is left out |
//! | `pair.rs` | the lab's own servers, one with and one without a binary log |
//! | `pool.rs` | the buffer pool, resized while the server runs |
//! | `rotation.rs` | when the log is rotated |
//! | `stall.rs` | what a rotation does to throughput |
//! | `outline.rs` | the report, its ratios in `outline/ratios.rs` |

mod outline;
mod pair;
mod pool;
mod rotation;
mod stage;
mod stall;
mod users;

use super::{Headline, Plan, SERVER, Scene, Stage, Study, interleaved};
use crate::lab::Lab;
use crate::machine::file_system::Kind;
use crate::model::{Order, Profile, ServerChoice, Settings};
use crate::outline::Part;
use crate::point::place::{Condition, Files, Pool};
use crate::point::sync_binlog::Configuration;
use crate::point::{self, Panel};
use crate::results::run::Run;
use anyhow::ensure;
use rotation::Rotation;

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
        "TPC-C (go-tpc) with sync_binlog 0, 1, 1000, 10000 and without a binary log, with three sizes of the buffer \
         pool, on ext4 and XFS; the stall when the log is rotated; and the same with binlogd attached by semi-sync."
    }

    fn settings(&self, profile: Profile) -> Settings {
        let (pools, attached, threads, seconds, rounds, warehouses) = match profile {
            Profile::Smoke => ("70", "1", "4", "2", "1", "2"),
            Profile::Quick => ("60,80", "0,1", "16", "4", "3", "2"),
            Profile::Grid => ("60,70,80", "0,1,1000,10000", "56", "30", "3", "20"),
            Profile::Full => ("60,70,80", "0,1,1000,10000", "56", "180", "3", "1000"),
        };
        let (warm_up_seconds, rotation_kib, sample_ms, redo_log_mib) = match profile {
            Profile::Smoke | Profile::Quick => ("1", "auto", "100", "256"),
            // Two thirds of a cell's log, some 10000 transactions, on two cores. At a file's end all of it is synced: were
            // there fewer than 1000 groups of commits in a file, 1000 would mean the same as 0.
            Profile::Grid => ("10", "65536", "100", "1024"),
            Profile::Full => ("60", "1048576", "250", "16384"),
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
            ("warm_up_seconds", warm_up_seconds),
            ("rotation_kib", rotation_kib),
            ("sample_ms", sample_ms),
            ("redo_log_mib", redo_log_mib),
        ])
    }

    fn plan(&self, order: &Order) -> anyhow::Result<Plan> {
        let settings = &order.settings;
        let (threads, pools): (Vec<u32>, Vec<Pool>) = (settings.list("threads")?, settings.list("pools")?);
        let (seconds, rounds): (f64, u32) = (settings.get("seconds")?, settings.get("rounds")?);
        let file_systems: Vec<Kind> = settings.list("file_systems")?;
        for name in ["warehouses", "warm_up_seconds", "sample_ms", "redo_log_mib"] {
            settings.get::<u64>(name)?;
        }
        Rotation::of(settings)?;
        let mut scenes = Vec::new();
        for choice in order.servers_or(&[SERVER]) {
            let all = Configuration::all(settings, choice.may_have_semi_sync())?;
            let mut scene = |name: String, files: Files, configurations: &[Configuration]| {
                let panel = |pool: &Pool| Panel {
                    server: choice.to_string(),
                    condition: point::Condition::Place(Condition { files, pool: *pool }),
                };
                let panels: Vec<Panel> = pools.iter().map(panel).collect();
                let cells = interleaved(&panels, &threads, configurations, rounds);
                scenes.push(Scene { name, servers: vec![choice.clone()], cells });
            };
            match &choice {
                ServerChoice::Own(server) => {
                    ensure!(
                        !pools.contains(&Pool::Own),
                        "--set pools=own leaves the pool of a user's server as it is; {server} is the lab's"
                    );
                    for kind in &file_systems {
                        scene(format!("{server} on {kind}"), Files::Lab(*kind), &all);
                    }
                }
                ServerChoice::Url(_) => {
                    let (silent, logging): (Vec<_>, Vec<_>) =
                        all.iter().partition(|one| **one == Configuration::NoBinaryLog);
                    scene(choice.to_string(), Files::Users, &logging);
                    scene(format!("{choice}, {}", users::LEFT_OUT), Files::Users, &silent);
                }
            }
        }
        // Connecting, attaching, sampling.
        Ok(Plan { scenes, cell_seconds: seconds + 2.5 })
    }

    fn set_up(&self, order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn Stage>> {
        Ok(Box::new(match scene.server()? {
            ServerChoice::Own(name) => stage::Servers::set_up(order, scene, name, lab)?,
            ServerChoice::Url(url) => users::set_up(order, scene, url, lab)?,
        }))
    }

    fn outline(&self, run: &Run) -> Vec<Part> {
        outline::outline(run)
    }

    fn headline(&self) -> Headline {
        Headline { values: &["tps"], baseline: Some(Configuration::NoBinaryLog.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;

    fn plan(profile: Profile, server: &str) -> Plan {
        let servers = vec![server.parse().unwrap()];
        SyncBinlog
            .plan(&Order {
                profile,
                servers,
                settings: SyncBinlog.settings(profile),
                apart: Apart::default(),
            })
            .unwrap()
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
    fn a_users_server_is_measured_as_it_is_and_what_is_left_out_is_said() {
        let full = plan(Profile::Full, "mysql://u:SECRET@db:1");
        let names: Vec<&str> = full.scenes.iter().map(|scene| scene.name.as_str()).collect();
        assert_eq!(names, ["mysql://u@db:1", "mysql://u@db:1, no binary log, other file systems"]);
        // Three pools, three rounds; four values of sync_binlog with and without binlogd.
        assert_eq!(full.scenes[0].cells.len(), 3 * 3 * 8);
        assert!(full.scenes[0].cells.iter().all(|cell| {
            cell.point.panel.condition.to_string().starts_with("its own file system")
                && cell.point.configuration != Configuration::NoBinaryLog.into()
        }));
        let silent: Vec<Configuration> = full.scenes[1].configurations().unwrap();
        assert!(silent.iter().all(|one| *one == Configuration::NoBinaryLog));
        let settings = SyncBinlog.settings(Profile::Full);
        let reason = users::left_out(&Order::new(Profile::Full, settings));
        assert!(reason.contains("no binary log") && reason.contains("ext4,xfs"), "{reason}");
    }

    #[test]
    fn settings_without_sense_are_named() {
        for (name, value) in [
            ("pools", "0"),
            ("pools", "91"),
            ("file_systems", "zfs"),
            ("attached", "x"),
            ("rotation_kib", "3"),
            ("rotation_kib", "6"),
        ] {
            let mut settings = SyncBinlog.settings(Profile::Smoke);
            settings.0.insert(name.to_owned(), value.to_owned());
            let order = Order::new(Profile::Smoke, settings);
            let error = SyncBinlog.plan(&order).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
