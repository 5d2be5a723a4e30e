//! Study `virtual-replica`: what a source with semi-sync comes to with binlogd, with a real replica, and alone.

pub mod outline;
pub mod stage;

use super::{ByDelay, Headline, Plan, SERVER, Scene, Study, interleaved};
use crate::lab::Lab;
use crate::model::{Order, Profile, Settings};
use crate::outline::Part;
use crate::point::virtual_replica::{
    ALL, Configuration, FSYNC_MODE_0, FSYNC_MODE_1, REPLICA_20, Workload, encrypted, yardsticks,
};
use crate::point::{self, Condition, Panel};
use crate::results::run::Run;
use anyhow::{bail, ensure};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct VirtualReplica;

/// The numbers of threads as published; there is no 366.
const PUBLISHED_THREADS: &str = "2,4,8,16,32,64,128,256,266,276,286,296,306,316,326,336,346,356,376,386";
/// Seconds of a cell beside the load, about: attaching, probes, detaching.
const AROUND_SECONDS: f64 = 3.0;

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
        let (threads, seconds, rounds, tables, rows, buffer_pool_mib) = match profile {
            Profile::Smoke => ("4", "2", "1", "4", "10000", "256"),
            Profile::Quick => ("2,8,32", "4", "3", "8", "100000", "1024"),
            Profile::Grid => (PUBLISHED_THREADS, "10", "3", "8", "250000", "2048"),
            Profile::Full => (PUBLISHED_THREADS, "60", "3", "20", "1000000", "8192"),
        };
        Settings::of([
            ("threads", threads),
            ("seconds", seconds),
            ("rounds", rounds),
            ("tables", tables),
            ("rows", rows),
            ("buffer_pool_mib", buffer_pool_mib),
            // A column of the published table; what it is cannot be found out from here.
            ("disk_type", "local"),
            ("real_replicas", "yes"),
            ("workload", Workload::ReadWrite.script()),
            ("yardsticks", "none"),
            ("tls", "none"),
        ])
    }

    fn plan(&self, order: &Order) -> anyhow::Result<Plan> {
        let threads: Vec<u32> = order.settings.list("threads")?;
        let seconds: u64 = order.settings.get("seconds")?;
        let rounds: u32 = order.settings.get("rounds")?;
        for name in ["tables", "rows", "buffer_pool_mib"] {
            order.settings.get::<u32>(name)?;
        }
        let mut configurations = match order.settings.get::<String>("real_replicas")?.as_str() {
            "yes" => ALL.to_vec(),
            "no" => ALL.into_iter().filter(|one| !matches!(one, Configuration::Replica { .. })).collect(),
            other => bail!("--set real_replicas={other}: yes or no"),
        };
        let encrypted = encrypted(&order.settings)?;
        ensure!(
            encrypted.is_empty() || !order.is_of_users_servers(),
            "--set tls: it is compared with the same in clear, which is for servers of the lab's own; with yours binlogd \
             speaks TLS where they offer it"
        );
        // Beside what they are compared with.
        let after = configurations.iter().position(|one| *one == FSYNC_MODE_0).map_or(0, |at| at + 1);
        configurations.splice(after..after, encrypted);
        let yardsticks = yardsticks(&order.settings)?;
        ensure!(
            yardsticks.is_empty() || !order.is_of_users_servers(),
            "--set yardsticks: the bare receiver and go-mysqlbinlog are measured on servers of the lab's own"
        );
        configurations.extend(yardsticks);
        // The published workload has no name there.
        let condition = match order.settings.get("workload")? {
            Workload::ReadWrite => Condition::Plain,
            other => Condition::Workload(other),
        };
        let mut scenes = Vec::new();
        for server in order.servers_or(&[SERVER]) {
            ensure!(
                server.may_have_semi_sync(),
                "{server} comes without a semi-sync plugin: this study needs mysql:9.7 or a MariaDB"
            );
            let panel = Panel { server: server.to_string(), condition };
            let cells = interleaved(&[panel], &threads, &configurations, rounds);
            scenes.push(Scene { name: server.to_string(), servers: vec![server], cells });
        }
        Ok(Plan { scenes, cell_seconds: seconds as f64 + AROUND_SECONDS })
    }

    fn set_up(&self, order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn super::Stage>> {
        Ok(Box::new(stage::Stage::set_up(order, scene, lab)?))
    }

    fn outline(&self, run: &Run) -> Vec<Part> {
        outline::parts(run)
    }

    fn baselines(&self, configuration: &point::Configuration) -> Vec<point::Configuration> {
        let own = Configuration::try_from(configuration).ok();
        let bare = own.and_then(Configuration::bare_of_same_promise);
        let in_clear = own.and_then(Configuration::in_clear);
        [Some(Configuration::Alone), in_clear, bare].into_iter().flatten().map(Into::into).collect()
    }

    fn by_delay(&self) -> Option<ByDelay> {
        let replica =
            |applying| point::Configuration::from(Configuration::Replica { sync_relay_log: 1, applying });
        let binlogd = point::Configuration::from(FSYNC_MODE_1);
        Some(ByDelay {
            title: "What a durable copy costs by the delay of the network",
            value: "tps",
            quantity: "Transactions a second",
            baseline: Configuration::Alone.into(),
            lines: vec![
                binlogd.clone(),
                FSYNC_MODE_0.into(),
                replica(false),
                replica(true),
                REPLICA_20.into(),
            ],
            against: vec![(replica(true), binlogd.clone()), (replica(false), binlogd)],
            growth: None,
        })
    }

    fn headline(&self) -> Headline {
        Headline { values: &["qps", "tps", "p99_ms"], baseline: Some(Configuration::Alone.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;

    fn order(profile: Profile, servers: &[&str]) -> Order {
        let servers = servers.iter().map(|text| text.parse().unwrap()).collect();
        Order { profile, servers, settings: VirtualReplica.settings(profile), apart: Apart::default() }
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
        let configurations = |order: &Order| -> Vec<Configuration> {
            let plan = VirtualReplica.plan(order).unwrap();
            assert_eq!(plan.scenes.len(), 1);
            assert_eq!(plan.scenes[0].name, "mysql://u@db:1");
            plan.scenes[0].configurations().unwrap()
        };
        assert_eq!(configurations(&order), ALL);
        order.settings.0.insert("real_replicas".to_owned(), "no".to_owned());
        assert_eq!(configurations(&order), ALL[..4]);
        order.settings.0.insert("real_replicas".to_owned(), "some".to_owned());
        let error = VirtualReplica.plan(&order).unwrap_err().to_string();
        assert!(error.contains("real_replicas=some"), "{error}");
        order.settings.0.insert("real_replicas".to_owned(), "no".to_owned());
        order.settings.0.insert("yardsticks".to_owned(), "bare".to_owned());
        let error = VirtualReplica.plan(&order).unwrap_err().to_string();
        assert!(error.contains("of the lab's own"), "{error}");
        order.settings.0.insert("tls".to_owned(), "binlogd".to_owned());
        let error = VirtualReplica.plan(&order).unwrap_err().to_string();
        assert!(error.contains("the same in clear"), "{error}");
        order.settings.0.insert("tls".to_owned(), "none".to_owned());
        order.servers.clear();
        order.settings.0.insert("workload".to_owned(), "oltp_update_non_index".to_owned());
        let cells = VirtualReplica.plan(&order).unwrap().scenes.remove(0).cells;
        assert_eq!(cells.len(), 6);
        assert!(cells.iter().all(|cell| cell.point.panel.condition.to_string() == "oltp_update_non_index"));
        let order = super::tests::order(Profile::Smoke, &["mysql:5.7"]);
        let error = VirtualReplica.plan(&order).unwrap_err().to_string();
        assert!(error.contains("mysql-5.7.22"), "{error}");
    }
    #[test]
    fn what_is_encrypted_stands_beside_what_it_is_compared_with() {
        let mut order = order(Profile::Smoke, &[]);
        order.settings.0.insert("tls".to_owned(), "binlogd".to_owned());
        order.settings.0.insert("real_replicas".to_owned(), "no".to_owned());
        let scene = VirtualReplica.plan(&order).unwrap().scenes.remove(0);
        let names: Vec<String> =
            scene.configurations::<Configuration>().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            names[2..],
            [
                "binlogd, fsync_mode 1",
                "binlogd, fsync_mode 0",
                "binlogd, fsync_mode 1, TLS",
                "binlogd, fsync_mode 0, TLS"
            ]
        );
    }
}
