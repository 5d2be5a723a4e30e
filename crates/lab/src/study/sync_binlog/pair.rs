//! One server with a binary log and one without, started from the same data for each round.

use super::pool;
use super::rotation::Rotation;
use crate::lab::Lab;
use crate::load::dataset::{self, Dataset};
use crate::load::tpcc::Tpcc;
use crate::machine::file_system::Kind;
use crate::model::{Measured, Settings};
use crate::point::place::Pool;
use crate::point::sync_binlog::Configuration;
use crate::server::Target;
use crate::server::semi_sync::WaitPoint;
use anyhow::Context;
use std::path::{Path, PathBuf};

/// On a user's server it is 1 in all cells.
pub(super) const FLUSH: &str = "innodb_flush_log_at_trx_commit";
/// Rotations of the binary log in a cell, about, where `rotation_kib` is `auto`.
const ROTATIONS: u64 = 5;
/// Of the load by which the size of a log file is found.
const CALIBRATION_SECONDS: u64 = 3;

/// The servers of a round. Dropping them stops the lab's own and restores a user's.
#[derive(Debug)]
pub(super) struct Pair {
    /// It writes a binary log.
    pub(super) logging: Pooled,
    /// It writes none. A user's server has no such companion.
    pub(super) silent: Option<Pooled>,
}

/// A server with a buffer pool of some share of the data.
#[derive(Debug)]
pub(super) struct Pooled {
    pub(super) target: Target,
    /// Since the first cell.
    pub(super) pool: Option<Pool>,
    /// The same in bytes.
    pub(super) bytes: u64,
}

/// How a pair of the lab's own is started.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) server: String,
    pub(super) kind: Kind,
    /// The file system that both live on.
    pub(super) place: PathBuf,
    /// What their data is copied from.
    pub(super) data: PathBuf,
    pub(super) options: Vec<String>,
}

impl Pair {
    /// The one that a configuration is measured on.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn of(&mut self, configuration: Configuration) -> anyhow::Result<&mut Pooled> {
        match configuration {
            Configuration::NoBinaryLog => {
                self.silent.as_mut().context("a user's server is measured with its binary log only")
            }
            Configuration::Sync { .. } => Ok(&mut self.logging),
        }
    }
}

impl Pooled {
    /// Refuses the cell where somebody has changed meanwhile what was set for it on a user's server.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(super) fn check(&mut self, measured: &mut Measured) -> anyhow::Result<()> {
        if !self.target.is_users() {
            return Ok(());
        }
        let bytes = self.bytes.to_string();
        if let Some(wrong) = self.target.is_not(&[(pool::SIZE, &bytes), (FLUSH, "1")])? {
            measured.refuse(wrong);
        }
        Ok(())
    }

    /// With the pool that it has.
    pub(super) fn new(target: Target) -> Pooled {
        Pooled { target, pool: None, bytes: 0 }
    }
}

impl Recipe {
    /// Starts both, the one with log files of `log_bytes`. Those of the round before must be gone.
    ///
    /// # Errors
    /// When one does not start.
    pub(super) fn start(&self, log_bytes: u64, lab: &Lab) -> anyhow::Result<Pair> {
        let mut logging = self.start_one("with a binary log", &[], lab)?;
        logging.query(logging.dialect().reset_logs())?;
        logging.set("max_binlog_size", &log_bytes.to_string())?;
        if logging.semi_sync_prefix()?.is_some() {
            logging.prepare_semi_sync(WaitPoint::AfterSync)?;
        }
        let silent = self.start_one("without a binary log", &["--skip-log-bin".to_owned()], lab)?;
        Ok(Pair { logging: Pooled::new(logging), silent: Some(Pooled::new(silent)) })
    }

    fn start_one(&self, folder: &str, more: &[String], lab: &Lab) -> anyhow::Result<Target> {
        let Recipe { server, kind, place, data, options } = self;
        let dir = place.join(folder);
        if dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()))?;
        }
        (lab.say)(&format!("starting {server} {folder}, on {kind}"));
        Target::start(lab, server, dir, Some(data), &[options.as_slice(), more].concat())
    }

    /// Bytes of a log file that the settings ask for. Where they leave that to this machine it is found out once and kept
    /// beside the data set: what is compared must have the same, on every file system, and when a run goes on.
    ///
    /// # Errors
    /// When a server does not start, or the load fails.
    pub(super) fn log_bytes(
        &self,
        dataset: &Dataset,
        tpcc: &Tpcc,
        settings: &Settings,
        lab: &Lab,
    ) -> anyhow::Result<u64> {
        if let Rotation::Kibibytes(size) = Rotation::of(settings)? {
            return Ok(size << 10);
        }
        let kept = kept_beside(&dataset.data, settings)?;
        if let Some(bytes) = std::fs::read_to_string(&kept).ok().and_then(|text| text.trim().parse().ok()) {
            return Ok(bytes);
        }
        let mut target = self.start_one("with a binary log", &[], lab)?;
        let bytes = bytes_a_rotation(&mut target, tpcc, settings, lab)?;
        std::fs::write(&kept, format!("{bytes}\n")).with_context(|| format!("writing {}", kept.display()))?;
        Ok(bytes)
    }
}

/// Reads the tables into the server's buffer pool, as far as they fit, and lets it work for
/// `warm_up_seconds`.
///
/// # Errors
/// When the load fails.
pub(super) fn warm_up(
    target: &mut Target,
    tpcc: &Tpcc,
    threads: u32,
    settings: &Settings,
    lab: &Lab,
) -> anyhow::Result<()> {
    dataset::read_through(target, &lab.interrupt)?;
    tpcc.load(target, threads, settings.get("warm_up_seconds")?, &lab.interrupt)?;
    Ok(())
}

/// The file that holds the size of a log file for such cells.
fn kept_beside(data: &Path, settings: &Settings) -> anyhow::Result<PathBuf> {
    let (threads, seconds): (Vec<u32>, u64) = (settings.list("threads")?, settings.get("seconds")?);
    let warm_up: u64 = settings.get("warm_up_seconds")?;
    let mut name = data.file_name().context("a data set without a name")?.to_owned();
    name.push(format!("-log-bytes-{}-threads-{seconds}-s-after-{warm_up}-s", threads[0]));
    Ok(data.with_file_name(name))
}

/// Warms the server up, fills its log for a moment, and returns what a file must hold to be full [`ROTATIONS`] times in a cell.
///
/// # Errors
/// When the load fails.
pub(super) fn bytes_a_rotation(
    target: &mut Target,
    tpcc: &Tpcc,
    settings: &Settings,
    lab: &Lab,
) -> anyhow::Result<u64> {
    (lab.say)("finding the size of a binary log file that a cell fills several times");
    let threads: Vec<u32> = settings.list("threads")?;
    let seconds: u64 = settings.get("seconds")?;
    tpcc.make_room(target, threads[0])?;
    // A server that was just started reads its tables from the disk, and writes a tenth of the log that it will in a cell.
    warm_up(target, tpcc, threads[0], settings, lab)?;
    let before = target.log_bytes()?;
    tpcc.load(target, threads[0], CALIBRATION_SECONDS, &lab.interrupt)?;
    let a_cell = target.log_bytes()?.saturating_sub(before) * seconds / CALIBRATION_SECONDS;
    // The server takes multiples of 4 KiB up to 1 GiB.
    Ok((a_cell / ROTATIONS).next_multiple_of(4096).clamp(4096, 1 << 30))
}
