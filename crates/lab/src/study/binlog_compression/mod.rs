//! Study `binlog-compression`: what `binlog_transaction_compression` costs and saves.

pub mod outline;
mod probe;
pub mod stage;

use super::{Headline, Plan, Scene, Study, interleaved};
use crate::lab::Lab;
use crate::model::{Order, Profile, ServerChoice, Settings};
use crate::outline::Part;
use crate::point::binlog_compression::LEVEL;
use crate::point::{CellKey, Condition, Panel};
use crate::results::run::Run;
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
        let (threads, seconds, rounds, tables, rows, levels, buffer_pool_mib) = match profile {
            Profile::Smoke => ("4", "2", "1", "4", "5000", "10", "256"),
            Profile::Quick => ("16", "4", "3", "8", "50000", "1,10,19", "512"),
            // As many rows as 120 tables of 10,000. sysbench prepares nine statements for each thread and table: with 240 threads and 120
            // tables a server takes 9 GB for them, and three of them run at once.
            Profile::Grid => ("240", "90", "3", "12", "100000", "1,10,19", "1024"),
            Profile::Full => ("240", "3600", "3", "120", "100000", "1,10,19", "8192"),
        };
        Settings::of([
            ("threads", threads),
            ("seconds", seconds),
            ("rounds", rounds),
            ("tables", tables),
            ("rows", rows),
            ("levels", levels),
            ("buffer_pool_mib", buffer_pool_mib),
        ])
    }

    fn plan(&self, order: &Order) -> anyhow::Result<Plan> {
        let servers = order.servers_or(&SERVERS);
        let threads: Vec<u32> = order.settings.list("threads")?;
        let seconds: u64 = order.settings.get("seconds")?;
        for name in ["tables", "rows", "buffer_pool_mib"] {
            order.settings.get::<u32>(name)?;
        }
        let levels: Vec<u32> = order.settings.list("levels")?;
        let wrong = levels.iter().find(|level| !(1..=22).contains(*level));
        ensure!(wrong.is_none(), "--set levels: zstd has the levels 1 to 22, not {}", wrong.unwrap_or(&0));
        let name = servers.iter().map(ServerChoice::to_string).collect::<Vec<_>>().join(", ");
        let rounds = order.settings.get("rounds")?;
        let cells = |condition, levels: &[u32]| {
            let panel = Panel { server: name.clone(), condition };
            interleaved(
                &[panel],
                &threads,
                &crate::point::binlog_compression::all(&servers, LEVEL, levels),
                rounds,
            )
        };
        let cells =
            by_round(cells(Condition::NobodyAttached, &levels), cells(Condition::BinlogdAttached, &[]));
        let scene = Scene { name, servers, cells };
        Ok(Plan { scenes: vec![scene], cell_seconds: seconds as f64 + AROUND_SECONDS })
    }

    fn set_up(&self, order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn super::Stage>> {
        Ok(Box::new(stage::Stage::set_up(order, &scene.servers, lab)?))
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
    use crate::apart::Apart;

    fn plan(settings: Settings, servers: &[&str]) -> anyhow::Result<Plan> {
        let servers = servers.iter().map(|text| text.parse().unwrap()).collect();
        BinlogCompression.plan(&Order { profile: Profile::Smoke, servers, settings, apart: Apart::default() })
    }

    #[test]
    fn all_servers_stand_in_one_block_and_rounds_are_whole() {
        let plan = plan(BinlogCompression.settings(Profile::Quick), &[]).unwrap();
        let cells = &plan.scenes[0].cells;
        // 8.0.15; 8.0.31 off, 3; 9.7 off, 3, 1, 10, 19; with binlogd 8.0.15, off, 3, off, 3.
        assert_eq!(cells.len(), 3 * (1 + 2 + 5 + 5));
        assert!(cells.is_sorted_by_key(|cell| cell.round));
        assert!(cells.iter().all(|cell| cell.point.panel.server == "mysql-8.0.15, mysql-8.0.31, mysql-9.7"));
    }

    #[test]
    fn a_level_that_zstd_does_not_have_is_refused() {
        let mut settings = BinlogCompression.settings(Profile::Smoke);
        settings.0.insert("levels".to_owned(), "3,23".to_owned());
        assert!(plan(settings, &[]).unwrap_err().to_string().contains("23"));
    }
}
