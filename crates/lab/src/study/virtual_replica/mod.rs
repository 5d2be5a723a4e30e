//! Study `virtual-replica`: what a source with semi-sync comes to with binlogd, with a real replica, and alone.

pub mod configuration;
pub mod outline;
pub mod stage;

use self::configuration::{ALL, ALONE, WORKLOADS, bare_of_same_promise, workload, yardsticks};
use super::{Headline, Plan, Scene, Study, interleaved};
use crate::lab::Lab;
use crate::model::{Order, Point, Profile, Run, ServerChoice, Settings};
use crate::report::outline::Part;
use anyhow::{bail, ensure};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct VirtualReplica;

/// The one that is measured unless another is asked for.
const SERVER: &str = "mysql-9.7";
/// The numbers of threads as published; there is no 366.
const PUBLISHED_THREADS: &str = "2,4,8,16,32,64,128,256,266,276,286,296,306,316,326,336,346,356,376,386";
/// Seconds of a cell beside the load, about: attaching, probes, detaching.
const AROUND_SECONDS: f64 = 3.0;
/// The lab's own servers that come without semi-sync plugins.
const WITHOUT_SEMI_SYNC: [&str; 3] = ["mysql-8.0.31", "mysql-8.0.15", "mysql-5.7.22"];

impl Study for VirtualReplica {
    fn name(&self) -> &'static str {
        "virtual-replica"
    }

    fn title(&self) -> &'static str {
        "What a durable copy of the binary log costs: binlogd, a real replica, and nothing"
    }

    fn summary(&self) -> &'static str {
        "sysbench OLTP read-write on a source alone, and with semi-sync to binlogd (fsync_mode 0 and 1) or to a real \
         replica; and a relaxed source whose durability is binlogd's."
    }

    fn settings(&self, profile: Profile) -> Settings {
        let own = match profile {
            Profile::Smoke => {
                [("threads", "4"), ("seconds", "2"), ("rounds", "1"), ("tables", "4"), ("rows", "10000")]
            }
            Profile::Quick => [
                ("threads", "2,8,32"),
                ("seconds", "4"),
                ("rounds", "3"),
                ("tables", "8"),
                ("rows", "100000"),
            ],
            Profile::Full => [
                ("threads", PUBLISHED_THREADS),
                ("seconds", "60"),
                ("rounds", "3"),
                ("tables", "20"),
                ("rows", "1000000"),
            ],
        };
        let mut settings = Settings::of(own);
        let buffer_pool_mib = match profile {
            Profile::Smoke => "256",
            Profile::Quick => "1024",
            Profile::Full => "8192",
        };
        settings.0.insert("buffer_pool_mib".to_owned(), buffer_pool_mib.to_owned());
        // A column of the published table; what it is cannot be found out from here.
        settings.0.insert("disk_type".to_owned(), "local".to_owned());
        for (name, value) in [("real_replicas", "yes"), ("workload", WORKLOADS[0]), ("yardsticks", "none")] {
            settings.0.insert(name.to_owned(), value.to_owned());
        }
        settings
    }

    fn plan(&self, order: &Order) -> anyhow::Result<Plan> {
        let threads: Vec<u32> = order.settings.list("threads")?;
        let seconds: u64 = order.settings.get("seconds")?;
        let rounds: u32 = order.settings.get("rounds")?;
        let workload = workload(&order.settings)?;
        let mut configurations: Vec<&str> = match order.settings.get::<String>("real_replicas")?.as_str() {
            "yes" => ALL.to_vec(),
            "no" => ALL.into_iter().filter(|name| !name.starts_with("replica")).collect(),
            other => bail!("--set real_replicas={other}: yes or no"),
        };
        let yardsticks = yardsticks(&order.settings)?;
        ensure!(
            yardsticks.is_empty() || !order.is_of_users_servers(),
            "--set yardsticks: the bare receiver and go-mysqlbinlog are measured on servers of the lab's own"
        );
        configurations.extend(yardsticks);
        // The published workload has no name there.
        let condition = if workload == WORKLOADS[0] { "" } else { workload };
        let mut scenes = Vec::new();
        for server in order.servers_or(&[SERVER]) {
            if let ServerChoice::Own(name) = &server
                && WITHOUT_SEMI_SYNC.contains(&name.as_str())
            {
                bail!("{name} comes without a semi-sync plugin: this study needs mysql:9.7 or a MariaDB");
            }
            let block = |threads: &u32| Point {
                server: server.to_string(),
                condition: condition.to_owned(),
                configuration: String::new(),
                threads: *threads,
            };
            let blocks: Vec<Point> = threads.iter().map(block).collect();
            scenes.push(Scene {
                name: server.to_string(),
                cells: interleaved(&blocks, &configurations, rounds),
            });
        }
        Ok(Plan { scenes, cell_seconds: seconds as f64 + AROUND_SECONDS })
    }

    fn set_up(&self, order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn super::Stage>> {
        let servers = order.servers_or(&[SERVER]);
        let Some(server) = servers.iter().find(|server| server.to_string() == scene.name) else {
            bail!("the order names no server {}", scene.name)
        };
        Ok(Box::new(stage::Stage::set_up(order, scene, server, lab)?))
    }

    fn outline(&self, run: &Run) -> Vec<Part> {
        outline::parts(run)
    }

    fn baselines(&self, configuration: &str) -> Vec<&'static str> {
        [Some(ALONE), bare_of_same_promise(configuration)].into_iter().flatten().collect()
    }

    fn headline(&self) -> Headline {
        Headline { values: &["qps", "tps"], baseline: Some(ALONE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(profile: Profile, servers: &[&str]) -> Order {
        let servers = servers.iter().map(|text| text.parse().unwrap()).collect();
        Order { profile, servers, settings: VirtualReplica.settings(profile) }
    }

    #[test]
    fn the_full_profile_is_the_published_one_and_more() {
        let plan = VirtualReplica.plan(&order(Profile::Full, &[])).unwrap();
        assert_eq!(plan.scenes.len(), 1);
        assert_eq!(plan.scenes[0].cells.len(), 20 * 8 * 3);
        let smoke = VirtualReplica.plan(&order(Profile::Smoke, &[])).unwrap();
        assert_eq!(smoke.scenes[0].cells.len(), 8);
    }

    #[test]
    fn real_replicas_can_be_left_out_and_a_server_without_semi_sync_is_refused() {
        let mut order = order(Profile::Smoke, &["mysql://u:SECRET@db:1"]);
        let names = |order: &Order| -> Vec<String> {
            let plan = VirtualReplica.plan(order).unwrap();
            assert_eq!(plan.scenes.len(), 1);
            assert_eq!(plan.scenes[0].name, "mysql://u@db:1");
            plan.scenes[0].cells.iter().map(|cell| cell.point.configuration.clone()).collect()
        };
        assert_eq!(names(&order), ALL);
        order.settings.0.insert("real_replicas".to_owned(), "no".to_owned());
        assert_eq!(names(&order), ALL[..4]);
        order.settings.0.insert("real_replicas".to_owned(), "some".to_owned());
        let error = VirtualReplica.plan(&order).unwrap_err().to_string();
        assert!(error.contains("real_replicas=some"), "{error}");
        order.settings.0.insert("real_replicas".to_owned(), "no".to_owned());
        order.settings.0.insert("yardsticks".to_owned(), "bare".to_owned());
        let error = VirtualReplica.plan(&order).unwrap_err().to_string();
        assert!(error.contains("of the lab's own"), "{error}");
        order.servers.clear();
        order.settings.0.insert("workload".to_owned(), "oltp_update_non_index".to_owned());
        let cells = VirtualReplica.plan(&order).unwrap().scenes.remove(0).cells;
        assert_eq!(cells.len(), 6);
        assert!(cells.iter().all(|cell| cell.point.condition == "oltp_update_non_index"));
        let order = super::tests::order(Profile::Smoke, &["mysql:5.7"]);
        let error = VirtualReplica.plan(&order).unwrap_err().to_string();
        assert!(error.contains("mysql-5.7.22"), "{error}");
    }
}
