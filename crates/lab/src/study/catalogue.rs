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
