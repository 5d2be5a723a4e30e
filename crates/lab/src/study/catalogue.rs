//! The five studies by their names.

use super::Study;
use super::binlog_compression::BinlogCompression;
use super::rotation_stall::RotationStall;
use super::semi_sync_cost::SemiSyncCost;
use super::sync_binlog::SyncBinlog;
use super::virtual_replica::VirtualReplica;
use anyhow::bail;

/// All studies.
pub fn all() -> &'static [&'static dyn Study] {
    &[&VirtualReplica, &SemiSyncCost, &SyncBinlog, &RotationStall, &BinlogCompression]
}

/// The study of that name.
///
/// # Errors
/// When there is none; the error names those that are.
pub fn named(name: &str) -> anyhow::Result<&'static dyn Study> {
    if let Some(study) = all().iter().find(|study| study.name() == name) {
        return Ok(*study);
    }
    let names: Vec<&str> = all().iter().map(|study| study.name()).collect();
    bail!("no study is called {name:?}; there are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Order, Profile};
    use crate::study::Plan;

    #[test]
    fn the_grid_has_every_cell_of_the_full_profile_and_fits_into_an_afternoon() {
        for study in all() {
            let plan = |profile| -> Plan {
                let settings = study.settings(profile);
                study.plan(&Order::new(profile, settings)).unwrap()
            };
            let (grid, full) = (plan(Profile::Grid), plan(Profile::Full));
            let cells =
                |plan: &Plan| plan.scenes.iter().flat_map(|scene| scene.cells.clone()).collect::<Vec<_>>();
            assert_eq!(cells(&grid), cells(&full), "{}", study.name());
            let hours = cells(&grid).len() as f64 * grid.cell_seconds / 3600.0;
            assert!((0.1..3.0).contains(&hours), "{}: {hours} h", study.name());
        }
    }
}
