//! The stall at a rotation of the binary log: how deep, how long, how often, and what helps against it.
//!
//! | file | noun |
//! |---|---|
//! | `mod.rs` | the study: settings and plan |
//! | `stage.rs` | the server on its disk, and a cell |
//! | `stall.rs` | what is seen at a rotation, and where there is none |
//! | `outline.rs` | the report |

mod outline;
mod stage;
mod stall;

use super::{Headline, Plan, SERVER, Scene, Study, interleaved};
use crate::lab::{Lab, Skip};
use crate::load::log_filler::LogFiller;
use crate::model::{Order, Profile, ServerChoice, Settings};
use crate::outline::Part;
use crate::point::disk::Disk;
use crate::point::rotation_stall::Configuration;
use crate::point::{self, Panel};
use crate::results::run::Run;
use anyhow::ensure;

/// The study.
#[derive(Debug)]
pub struct RotationStall;

/// Seconds of a cell beside the load, about: a new log, attaching, detaching.
const AROUND_SECONDS: f64 = 2.0;
/// Why a user's server is left out.
const NOT_ON_USERS: &str = "left out on a server of yours: the study fills its log by some GB a minute, holds up every \
    commit on it for seconds, and needs its disk and its log files; measure a server of the lab's on that machine";

impl Study for RotationStall {
    fn name(&self) -> &'static str {
        "rotation-stall"
    }

    fn title(&self) -> &'static str {
        "The stall when the binary log is rotated"
    }

    fn summary(&self) -> &'static str {
        "Updates of large rows fill log files of 1 GiB, and small inserts beside them are timed: how long every commit \
         stands at a rotation, on the disk as it is and on one that is limited, and what helps: sync_binlog, smaller \
         files, vm.dirty_bytes, binlogd."
    }

    fn settings(&self, profile: Profile) -> Settings {
        let (file_mib, small_file_mib, log_mb_s, seconds, rounds) = match profile {
            Profile::Smoke => ("16", "4", "20", "2", "1"),
            Profile::Quick => ("1024", "128", "60", "60", "1"),
            Profile::Grid => ("1024", "128", "60", "120", "3"),
            Profile::Full => ("1024", "128", "60", "300", "3"),
        };
        Settings::of([
            ("disks", "here,100"),
            ("sync_binlog", "0,1,1000"),
            ("file_mib", file_mib),
            ("small_file_mib", small_file_mib),
            ("dirty_mib", "128"),
            ("attached", "yes"),
            ("log_mb_s", log_mb_s),
            ("row_kib", "100"),
            ("writers", "4"),
            ("small", "2"),
            ("sample_ms", "100"),
            ("seconds", seconds),
            ("rounds", rounds),
        ])
    }

    fn plan(&self, order: &Order) -> anyhow::Result<Plan> {
        let settings = &order.settings;
        let (seconds, rounds): (u64, u32) = (settings.get("seconds")?, settings.get("rounds")?);
        let threads = LogFiller::of(settings)?.threads();
        let sample_ms: u64 = settings.get("sample_ms")?;
        ensure!((10..=1000).contains(&sample_ms), "--set sample_ms={sample_ms}: from 10 to 1000");
        let disks = settings.list::<String>("disks")?;
        let disks = disks.iter().map(|text| Disk::of_setting(text)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut scenes = Vec::new();
        for choice in order.servers_or(&[SERVER]) {
            let all = Configuration::all(settings, choice.may_have_semi_sync())?;
            // Of a user's server one scene is left out, and not four for one reason.
            let is_own = matches!(choice, ServerChoice::Own(_));
            let disks = if is_own { &disks[..] } else { &disks[..1] };
            for disk in disks {
                let panel = Panel { server: choice.to_string(), condition: point::Condition::Disk(*disk) };
                // Who may not set the kernel's limits can measure the rest.
                let (dirty, plain): (Vec<Configuration>, Vec<Configuration>) =
                    all.iter().partition(|one| is_own && one.dirty_bytes().is_some());
                for (configurations, name) in [
                    (plain, format!("{choice} on {disk}")),
                    (dirty, format!("{choice} on {disk}, vm.dirty_bytes")),
                ] {
                    let cells =
                        interleaved(std::slice::from_ref(&panel), &[threads], &configurations, rounds);
                    if !cells.is_empty() {
                        scenes.push(Scene { name, servers: vec![choice.clone()], cells });
                    }
                }
            }
        }
        Ok(Plan { scenes, cell_seconds: seconds as f64 + AROUND_SECONDS })
    }

    fn set_up(&self, order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn super::Stage>> {
        match scene.server()? {
            ServerChoice::Own(name) => Ok(Box::new(stage::Stage::set_up(order, scene, name, lab)?)),
            ServerChoice::Url(_) => Err(Skip::by_nature(NOT_ON_USERS).into()),
        }
    }

    fn outline(&self, run: &Run) -> Vec<Part> {
        outline::outline(run)
    }

    fn headline(&self) -> Headline {
        Headline { values: &["tps", "stall_longest_ms", "slow_share"], baseline: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;
    use crate::interrupt::Interrupt;
    use std::sync::Arc;

    fn order(server: &str, change: Option<(&str, &str)>) -> Order {
        let mut settings = RotationStall.settings(Profile::Quick);
        settings.0.extend(change.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let servers = vec![server.parse().unwrap()];
        Order { profile: Profile::Quick, servers, settings, apart: Apart::default() }
    }

    #[test]
    fn each_disk_has_a_scene_and_another_for_what_only_root_may_set() {
        let plan = RotationStall.plan(&order("mysql:9.7", None)).unwrap();
        let scenes: Vec<(&str, usize)> =
            plan.scenes.iter().map(|scene| (scene.name.as_str(), scene.cells.len())).collect();
        assert_eq!(
            scenes,
            [
                ("mysql-9.7 on the disk as it is", 5),
                ("mysql-9.7 on the disk as it is, vm.dirty_bytes", 1),
                ("mysql-9.7 on a disk limited to 100 MB/s", 5),
                ("mysql-9.7 on a disk limited to 100 MB/s, vm.dirty_bytes", 1),
            ]
        );
        // Without semi-sync binlogd is not attached.
        let old = RotationStall.plan(&order("mysql:5.7", Some(("dirty_mib", "none")))).unwrap();
        assert_eq!(old.scenes.iter().map(|scene| scene.cells.len()).collect::<Vec<_>>(), [4, 4]);
    }

    #[test]
    fn a_users_server_is_left_out_with_the_reason() {
        let order = order("mysql://u@db:1", None);
        let plan = RotationStall.plan(&order).unwrap();
        assert_eq!(plan.scenes.len(), 1);
        let lab = Lab {
            binlogd: "/nowhere".into(),
            scripts: "/nowhere".into(),
            dir: "/nowhere".into(),
            apart: Apart::default(),
            link: None,
            journals: "/nowhere".into(),
            interrupt: Interrupt::default(),
            unrestored: Arc::default(),
            allowed_servers: Vec::new(),
            say: |_| (),
        };
        let error = RotationStall.set_up(&order, &plan.scenes[0], &lab).err().unwrap();
        let skip: &Skip = error.downcast_ref().unwrap();
        assert!(skip.is_allowed() && skip.to_string().contains("a server of yours"), "{error:#}");
    }

    #[test]
    fn settings_without_sense_are_named() {
        for (name, value) in [
            ("disks", "fast"),
            ("file_mib", "none"),
            ("small_file_mib", "0"),
            ("attached", "0,1"),
            ("sample_ms", "5"),
            ("log_mb_s", "0"),
        ] {
            let error = RotationStall.plan(&order("mysql:9.7", Some((name, value)))).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
