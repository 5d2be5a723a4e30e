//! A user's server, given by URL: what can be measured without a restart, and what cannot.

use super::pair::{FLUSH, Pair, Pooled, bytes_a_rotation};
use super::pool;
use super::rotation::Rotation;
use super::stage::{Servers, Shelter};
use crate::lab::{Lab, Skip};
use crate::load::tpcc::Tpcc;
use crate::machine::folders;
use crate::model::Order;
use crate::point::place::Pool;
use crate::point::sync_binlog::Configuration;
use crate::server::Target;
use crate::server::semi_sync::WaitPoint;
use crate::study::Scene;
use anyhow::Context;

/// Ends the name of a scene that a user's server cannot have.
pub(super) const LEFT_OUT: &str = "no binary log, other file systems";

/// Why that scene is skipped.
pub(super) fn left_out(order: &Order) -> String {
    let file_systems = order.settings.0.get("file_systems").map_or("", String::as_str);
    format!(
        "left out: “no binary log”, which needs a restart (a server in use that only left its writes out of its log \
         would break its replicas and its recovery to a point in time); and the file systems {file_systems}, because \
         its data stay where they are"
    )
}

/// Fills the tables, and sets what stays the same in all cells.
///
/// # Errors
/// [`Skip`] for the scene that a user's server cannot have. Otherwise as [`Target::attach`] and [`Tpcc::prepare`], and when the server cannot do what the cells need.
pub(super) fn set_up(order: &Order, scene: &Scene, url: &str, lab: &Lab) -> anyhow::Result<Servers> {
    let configurations: Vec<Configuration> = scene.configurations()?;
    if configurations.contains(&Configuration::NoBinaryLog) {
        return Err(Skip::by_nature(left_out(order)).into());
    }
    let settings = order.settings.clone();
    let warehouses: u32 = settings.get("warehouses")?;
    let dir = tempfile::Builder::new().prefix("sync-binlog-").tempdir_in(&lab.dir)?;
    // Before the server is touched: without Go there is nothing to do on it.
    let tpcc = Tpcc::new(lab, warehouses, dir.path())?;
    let mut target = Target::attach(lab, url)?;
    let attached = configurations.iter().any(|one| one.attached());
    (lab.say)(&format!(
        "{}: sync_binlog will be {} in turn, {FLUSH} 1, max_binlog_size other than now, and the buffer pool {}; while \
         sync_binlog is not 1 a crash would lose what its log has not synced, and a smaller pool slows down whoever \
         else uses the server; afterwards all is set back",
        target.name(),
        settings.get::<String>("sync_binlog")?,
        match settings.list::<Pool>("pools")?.as_slice() {
            [Pool::Own] => "stays as it is".to_owned(),
            _ => format!("{} 90ths of {warehouses} warehouses of TPC-C", settings.get::<String>("pools")?),
        }
    ));
    if attached {
        target.prepare_semi_sync(WaitPoint::AfterSync).context("--set attached=none does without binlogd")?;
    }
    // Its own waiting for a receiver is not what is measured.
    target.set_semi_sync(false)?;
    (lab.say)(&format!("filling {warehouses} warehouses of TPC-C on {}", target.name()));
    tpcc.prepare(&mut target, &lab.interrupt)?;
    let tables_bytes = tpcc.tables_bytes(&mut target)?;
    // All of them, before the first cell.
    for pool in settings.list::<Pool>("pools")? {
        if let Pool::Share(share) = pool {
            pool::possible(&mut target, tables_bytes, share)?;
        }
    }
    let own_pool = target.variable(pool::SIZE)?.and_then(|size| size.parse().ok()).unwrap_or_default();
    target.set(FLUSH, "1")?;
    let log_bytes = match Rotation::of(&settings)? {
        Rotation::Kibibytes(size) => size << 10,
        Rotation::Auto => bytes_a_rotation(&mut target, &tpcc, &settings, lab)?,
    };
    target.set("max_binlog_size", &log_bytes.to_string())?;
    Ok(Servers {
        pair: Some(Pair { logging: Pooled::new(target), silent: None }),
        recipe: None,
        round: None,
        tpcc,
        tables_bytes,
        own_pool,
        lab: lab.clone(),
        settings,
        shelter: Shelter::Folder(dir),
        receivers: folders::of_receivers(lab, "sync-binlog")?,
    })
}
