//! What one semi-synchronous replica costs a source with two replicas, under TPC-C.
//!
//! | file | noun |
//! |---|---|
//! | `mod.rs` | the study: settings and plan |
//! | `stage.rs` | the servers, and a cell |
//! | `outline.rs` | the report |

mod outline;
mod stage;

use super::{ByDelay, Headline, Plan, SERVER, Scene, Stage, Study, interleaved};
use crate::lab::Lab;
use crate::model::{Order, Profile, ServerChoice, Settings};
use crate::outline::Part;
use crate::point::semi_sync_cost::{ALL, Configuration};
use crate::point::{Condition, Panel};
use crate::reference::semi_sync_cost as published;
use crate::results::run::Run;
use anyhow::ensure;

/// The numbers of threads as published.
const PUBLISHED_THREADS: &str = "4,8,16,32,64,128,256,512,1024,1536";

/// The study.
#[derive(Debug)]
pub struct SemiSyncCost;

impl Study for SemiSyncCost {
    fn name(&self) -> &'static str {
        "semi-sync-cost"
    }

    fn title(&self) -> &'static str {
        "What semi-synchronous replication costs"
    }

    fn summary(&self) -> &'static str {
        "TPC-C (go-tpc) on a source with two replicas that apply, over numbers of threads: both asynchronous, one of \
         them semi-synchronous (AFTER_SYNC, AFTER_COMMIT), and binlogd in its place."
    }

    fn settings(&self, profile: Profile) -> Settings {
        let redo_log_mib = match profile {
            Profile::Smoke | Profile::Quick => "256",
            Profile::Grid => "1024",
            Profile::Full => "2048",
        };
        let (threads, seconds, rounds, warehouses, buffer_pool_mib, level_seconds) = match profile {
            Profile::Smoke => ("4", "3", "1", "2", "256", "30"),
            Profile::Quick => ("4,16,64", "5", "3", "4", "512", "30"),
            Profile::Grid => (PUBLISHED_THREADS, "30", "3", "20", "2048", "120"),
            Profile::Full => (PUBLISHED_THREADS, "60", "3", "100", "4096", "600"),
        };
        Settings::of([
            ("threads", threads),
            ("seconds", seconds),
            ("rounds", rounds),
            ("warehouses", warehouses),
            ("buffer_pool_mib", buffer_pool_mib),
            ("redo_log_mib", redo_log_mib),
            ("level_seconds", level_seconds),
        ])
    }

    fn plan(&self, order: &Order) -> anyhow::Result<Plan> {
        let settings = &order.settings;
        let threads: Vec<u32> = settings.list("threads")?;
        let (seconds, rounds): (f64, u32) = (settings.get("seconds")?, settings.get("rounds")?);
        for name in ["warehouses", "buffer_pool_mib", "redo_log_mib", "level_seconds"] {
            settings.get::<u32>(name)?;
        }
        let scene = |server: ServerChoice| {
            ensure!(
                server.may_have_semi_sync(),
                "{server} as the lab has it comes without semi-sync plugins: choose mysql:9.7 or a MariaDB"
            );
            let panel = Panel { server: server.to_string(), condition: Condition::Plain };
            let cells = interleaved(&[panel], &threads, &ALL, rounds);
            Ok(Scene { name: server.to_string(), servers: vec![server], cells })
        };
        let scenes: anyhow::Result<_> = order.servers_or(&[SERVER]).into_iter().map(scene).collect();
        // Attaching, connecting, and bringing the replicas level.
        Ok(Plan { scenes: scenes?, cell_seconds: seconds + 8.0 })
    }

    fn set_up(&self, order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn Stage>> {
        Ok(Box::new(stage::Servers::set_up(order, scene, lab)?))
    }

    fn outline(&self, run: &Run) -> Vec<Part> {
        outline::outline(run)
    }

    fn by_delay(&self) -> Option<ByDelay> {
        let alone = published::asynchronous(Configuration::Asynchronous);
        let published = published::semi_synchronous(Configuration::AfterSync).relative_to(&alone);
        Some(ByDelay {
            title: "What semi-synchronous replication costs by the delay of the network",
            value: "tpmc",
            quantity: "TpmC",
            baseline: Configuration::Asynchronous.into(),
            lines: ALL[1..].iter().map(|one| (*one).into()).collect(),
            against: vec![(Configuration::AfterSync.into(), Configuration::Binlogd.into())],
            growth: Some((Configuration::AfterSync.into(), published.points)),
        })
    }

    fn headline(&self) -> Headline {
        Headline {
            values: &["tpmc", "new_order_p95_ms", "new_order_p99_ms"],
            baseline: Some(Configuration::Asynchronous.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;

    fn order(servers: &[&str]) -> Order {
        Order {
            profile: Profile::Full,
            servers: servers.iter().map(|name| name.parse().unwrap()).collect(),
            settings: SemiSyncCost.settings(Profile::Full),
            apart: Apart::default(),
        }
    }

    #[test]
    fn the_full_plan_is_the_published_sweep_three_times_in_all_configurations() {
        let plan = SemiSyncCost.plan(&order(&[])).unwrap();
        assert_eq!(plan.scenes.len(), 1);
        assert_eq!(plan.scenes[0].cells.len(), 10 * 4 * 3);
        let threads: Vec<u32> =
            plan.scenes[0].cells[..40].iter().step_by(4).map(|cell| cell.point.threads).collect();
        assert_eq!(threads, published::published().iter().map(|row| row.threads).collect::<Vec<_>>());
    }

    #[test]
    fn servers_that_do_not_fit_are_refused() {
        let error = SemiSyncCost.plan(&order(&["mysql:8.0"])).unwrap_err().to_string();
        assert!(error.contains("plugins"), "{error}");
    }
}
