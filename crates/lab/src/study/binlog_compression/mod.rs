//! Study `binlog-compression`: what `binlog_transaction_compression` costs and saves.

pub mod configuration;
pub mod outline;
mod probe;
pub mod stage;

use self::configuration::{ALONE, ATTACHED, Configuration, LEVEL};
use super::{Headline, Plan, Scene, Study, interleaved};
use crate::lab::Lab;
use crate::model::{CellKey, Order, Point, Profile, Run, ServerChoice, Settings};
use crate::report::outline::Part;
use anyhow::ensure;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct BinlogCompression;

/// A version before the feature (8.0.20), one with it, and the newest.
const SERVERS: [&str; 3] = ["mysql-8.0.15", "mysql-8.0.31", "mysql-9.7"];
/// Seconds of a cell beside the load, about.
const AROUND_SECONDS: f64 = 2.0;

impl Study for BinlogCompression {
    fn name(&self) -> &'static str {
        "binlog-compression"
    }

    fn title(&self) -> &'static str {
        "What compression of the binary log costs and saves"
    }

    fn summary(&self) -> &'static str {
        "sysbench OLTP read-write on MySQL with binlog_transaction_compression off and on, at several levels, against a \
         version before the feature: statements by kind, processor, and bytes of the log, of the network and of \
         binlogd's disk."
    }

    fn settings(&self, profile: Profile) -> Settings {
        Settings::of(match profile {
            Profile::Smoke => [
                ("threads", "4"),
                ("seconds", "2"),
                ("rounds", "1"),
                ("tables", "4"),
                ("rows", "5000"),
                ("levels", "10"),
                ("buffer_pool_mib", "256"),
            ],
            Profile::Quick => [
                ("threads", "16"),
                ("seconds", "4"),
                ("rounds", "3"),
                ("tables", "8"),
                ("rows", "50000"),
                ("levels", "1,10,19"),
                ("buffer_pool_mib", "512"),
            ],
            Profile::Full => [
                ("threads", "240"),
                ("seconds", "3600"),
                ("rounds", "3"),
                ("tables", "120"),
                ("rows", "100000"),
                ("levels", "1,10,19"),
                ("buffer_pool_mib", "8192"),
            ],
        })
    }

    fn plan(&self, order: &Order) -> anyhow::Result<Plan> {
        let servers = order.servers_or(&SERVERS);
        let threads: Vec<u32> = order.settings.list("threads")?;
        let seconds: u64 = order.settings.get("seconds")?;
        let levels: Vec<u32> = order.settings.list("levels")?;
        let wrong = levels.iter().find(|level| !(1..=22).contains(*level));
        ensure!(wrong.is_none(), "--set levels: zstd has the levels 1 to 22, not {}", wrong.unwrap_or(&0));
        let names: Vec<String> = servers.iter().map(ServerChoice::to_string).collect();
        let block = |condition: &'static str| {
            let server = names.join(", ");
            threads.iter().map(move |threads| Point {
                server: server.clone(),
                condition: condition.to_owned(),
                configuration: String::new(),
                threads: *threads,
            })
        };
        let rounds = order.settings.get("rounds")?;
        let named = |configurations: Vec<Configuration>| -> Vec<String> {
            configurations.iter().map(ToString::to_string).collect()
        };
        let cells = |condition, configurations: &[String]| {
            let configurations: Vec<&str> = configurations.iter().map(String::as_str).collect();
            interleaved(&block(condition).collect::<Vec<_>>(), &configurations, rounds)
        };
        let alone = cells(ALONE, &named(configuration::all(&servers, LEVEL, &levels)));
        let attached = cells(ATTACHED, &named(configuration::all(&servers, LEVEL, &[])));
        let scene = Scene { name: names.join(", "), cells: by_round(alone, attached) };
        Ok(Plan { scenes: vec![scene], cell_seconds: seconds as f64 + AROUND_SECONDS })
    }

    fn set_up(&self, order: &Order, _scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn super::Stage>> {
        Ok(Box::new(stage::Stage::set_up(order, &order.servers_or(&SERVERS), lab)?))
    }

    fn outline(&self, run: &Run) -> Vec<Part> {
        outline::parts(run)
    }

    fn headline(&self) -> Headline {
        Headline { values: &["select", "update", "binlog_bytes_a_transaction"], baseline: None }
    }
}

/// Both, each round whole before the next begins.
fn by_round(one: Vec<CellKey>, other: Vec<CellKey>) -> Vec<CellKey> {
    let mut cells: Vec<CellKey> = one.into_iter().chain(other).collect();
    // Stable: within a round the order stays.
    cells.sort_by_key(|cell| cell.round);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(settings: Settings, servers: &[&str]) -> anyhow::Result<Plan> {
        let servers = servers.iter().map(|text| text.parse().unwrap()).collect();
        BinlogCompression.plan(&Order { profile: Profile::Smoke, servers, settings })
    }

    #[test]
    fn all_servers_stand_in_one_block_and_rounds_are_whole() {
        let plan = plan(BinlogCompression.settings(Profile::Quick), &[]).unwrap();
        let cells = &plan.scenes[0].cells;
        // 8.0.15; 8.0.31 off, 3; 9.7 off, 3, 1, 10, 19; with binlogd 8.0.15, off, 3, off, 3.
        assert_eq!(cells.len(), 3 * (1 + 2 + 5 + 5));
        assert!(cells.is_sorted_by_key(|cell| cell.round));
        assert!(cells.iter().all(|cell| cell.point.server == "mysql-8.0.15, mysql-8.0.31, mysql-9.7"));
    }

    #[test]
    fn a_level_that_zstd_does_not_have_is_refused() {
        let mut settings = BinlogCompression.settings(Profile::Smoke);
        settings.0.insert("levels".to_owned(), "3,23".to_owned());
        assert!(plan(settings, &[]).unwrap_err().to_string().contains("23"));
    }
}
