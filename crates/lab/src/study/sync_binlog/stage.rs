//! The servers of a scene: one with a binary log and one without, on copies of the same data and one file system.

use super::condition::{Condition, Files, Pool};
use super::configuration::Configuration;
use super::pair::{Pair, Recipe};
use super::stall::{Rotations, Stall};
use super::{pool, users};
use crate::file_system::Volume;
use crate::lab::Lab;
use crate::load::dataset::{self, Dataset};
use crate::load::go_tpc;
use crate::load::sampler::{self, Sample, Sampler, Seen};
use crate::load::tpcc::Tpcc;
use crate::model::{Fact, Measured, Order, Point, Settings};
use crate::receiver::{Binlogd, binlogd};
use crate::server::Target;
use crate::server::semi_sync::{SemiSync, not_acknowledged};
use crate::study::{Scene, Stage};
use anyhow::{Context, bail};
use rig::statistics::median;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest wait until the source counts binlogd.
const ATTACH_MAX: Duration = Duration::from_secs(30);
/// Throughput is the median of intervals of this length in seconds. Shorter ones hold few transactions on a slow disk.
const INTERVAL: f64 = 0.5;
/// What a volume has beside data and redo logs: growth, binary logs, the file system's own.
const ROOM: u64 = 1 << 30;

const NOT_STARTED: &str = "the servers of the round were not started";

/// What a scene works with. Dropped in this order.
#[derive(Debug)]
pub(super) struct Servers {
    /// None while those of a round are being replaced.
    pub(super) pair: Option<Pair>,
    /// How a round's are started, and the bytes of a log file; a user's server is not started.
    pub(super) recipe: Option<(Recipe, u64)>,
    /// The round that they were started for, from the first cell on.
    pub(super) round: Option<u32>,
    pub(super) tpcc: Tpcc,
    pub(super) tables_bytes: u64,
    /// Bytes of the pool that a user's server came with; 0 for the lab's own.
    pub(super) own_pool: u64,
    pub(super) lab: Lab,
    pub(super) settings: Settings,
    pub(super) shelter: Shelter,
}

/// Where files lie that belong to a scene.
#[derive(Debug)]
pub(super) enum Shelter {
    /// The servers on a file system of the lab's, and the rest beside it.
    Volume(Volume),
    /// The servers are elsewhere.
    Folder(tempfile::TempDir),
}

impl Shelter {
    /// For what is not the servers'.
    fn beside(&self) -> &Path {
        match self {
            Shelter::Volume(volume) => volume.beside(),
            Shelter::Folder(folder) => folder.path(),
        }
    }
}

/// What is known of the source's side before a load.
struct Before {
    at: f64,
    log_bytes: u64,
    semi_sync: SemiSync,
}

impl Servers {
    /// Mounts the file system, and starts both servers on it.
    pub(super) fn set_up(order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Servers> {
        let settings = order.settings.clone();
        let first = &scene.cells.first().context("a scene without cells")?.point;
        let Some(Condition { files: Files::Lab(kind), .. }) = Condition::parse(&first.condition) else {
            bail!("{} names no file system of the lab's", first.condition)
        };
        let name = scene.name.split_once(" on ").map_or(scene.name.as_str(), |(server, _)| server);
        let (warehouses, redo_mib): (u32, u64) = (settings.get("warehouses")?, settings.get("redo_mb")?);
        let left = Volume::remove_leftovers(lab)?;
        if left > 0 {
            (lab.say)(&format!("removed {left} file systems of runs that were killed"));
        }
        let dataset = Dataset::of(lab, name, warehouses)?;
        let volume = Volume::mount(lab, kind, 2 * (2 * dataset.bytes + (redo_mib << 20)) + ROOM)?;
        let tpcc = Tpcc::new(lab, warehouses, volume.beside())?;
        let recipe = Recipe {
            server: name.to_owned(),
            kind,
            place: volume.path(),
            data: dataset.data.clone(),
            // The whole data at first: a pool of MariaDB cannot become larger than it was.
            options: dataset::options(dataset.tables_bytes.next_multiple_of(1 << 20), redo_mib),
        };
        let log_bytes = recipe.log_bytes(&dataset, &tpcc, &settings, lab)?;
        Ok(Servers {
            pair: Some(recipe.start(log_bytes, lab)?),
            recipe: Some((recipe, log_bytes)),
            round: None,
            tpcc,
            tables_bytes: dataset.tables_bytes,
            own_pool: 0,
            lab: lab.clone(),
            settings,
            shelter: Shelter::Volume(volume),
        })
    }

    /// Lets each round begin with the same data: the server with a log has many cells and the other one has one, and its
    /// tables would outgrow the other's. A user's server stays as it is.
    fn begin_round(&mut self, round: u32) -> anyhow::Result<()> {
        if let (Some((recipe, log_bytes)), Some(_)) = (&self.recipe, self.round.filter(|last| *last != round))
        {
            self.pair = None;
            self.pair = Some(recipe.start(*log_bytes, &self.lab)?);
        }
        self.round = Some(round);
        Ok(())
    }

    /// Gives the server of the configuration its pool, and warms it up when it is a new one.
    fn resize(&mut self, configuration: Configuration, pool: Pool, threads: u32) -> anyhow::Result<()> {
        let pooled = self.pair.as_mut().context(NOT_STARTED)?.of(configuration)?;
        self.tpcc.make_room(&mut pooled.target, threads)?;
        if pooled.pool == Some(pool) {
            return Ok(());
        }
        let bytes = match pool {
            Pool::Own => self.own_pool,
            Pool::Share(share) if pooled.target.is_users() => {
                pool::possible(&mut pooled.target, self.tables_bytes, share)?
            }
            Pool::Share(share) => pool::wanted(self.tables_bytes, share),
        };
        pooled.bytes = pool::resize(&mut pooled.target, bytes, &self.lab)?;
        pooled.pool = Some(pool);
        dataset::read_through(&mut pooled.target, &self.lab.interrupt)?;
        let seconds = self.settings.get("warm_up_seconds")?;
        self.tpcc.load(&mut pooled.target, threads, seconds, &self.lab.interrupt)?;
        Ok(())
    }

    /// Prepares the binary log for a cell, and attaches binlogd if the configuration has it.
    fn begin(&mut self, every: u32, attached: bool) -> anyhow::Result<Result<Option<Binlogd>, String>> {
        let target = &mut self.pair.as_mut().context(NOT_STARTED)?.logging.target;
        let interrupt = &self.lab.interrupt;
        target.drop_dumps(interrupt)?;
        target.set("sync_binlog", &every.to_string())?;
        target.begin_log()?;
        target.set_semi_sync(attached)?;
        if !attached {
            return Ok(Ok(None));
        }
        let options = binlogd::Options { fsync_mode: 1, semi_sync: true };
        let binlogd = match Binlogd::attach(&self.lab, target, options, self.shelter.beside()) {
            Ok(binlogd) => binlogd,
            Err(error) => {
                interrupt.check()?;
                return Ok(Err(format!("binlogd does not start: {error:#}")));
            }
        };
        let counted =
            interrupt.wait(ATTACH_MAX, || Ok(target.not_in_force(true)?.is_none().then_some(())))?;
        if counted.is_none() {
            let wrong = target.not_in_force(true)?.unwrap_or_default();
            return Ok(Err(format!("before the load: {wrong}")));
        }
        target.commit_probes()?;
        Ok(Ok(Some(binlogd)))
    }

    /// Loads the server, and puts what came of it.
    fn load(
        &mut self,
        configuration: Configuration,
        threads: u32,
        binlogd: Option<Binlogd>,
        measured: &mut Measured,
    ) -> anyhow::Result<()> {
        let interrupt = self.lab.interrupt.clone();
        let pooled = self.pair.as_mut().context(NOT_STARTED)?.of(configuration)?;
        let target = &mut pooled.target;
        let logs = configuration != Configuration::NoBinaryLog;
        let before = Before {
            at: SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64(),
            log_bytes: if logs { target.log_bytes()? } else { 0 },
            semi_sync: target.semi_sync()?,
        };
        let interval = Duration::from_millis(self.settings.get("sample_ms")?);
        // The log files of the lab's own servers tell of their rotations by themselves.
        let sampler = Sampler::start(target, interval, logs && target.is_users())?;
        let outcome = self.tpcc.load(target, threads, self.settings.get("seconds")?, &interrupt);
        interrupt.check()?;
        let seen = sampler.finish()?;
        match outcome {
            Ok(outcome) => outcome.put_into(measured),
            Err(error) => measured.refuse(format!("{error:#}")),
        }
        put_samples(&seen.samples, before.at, measured);
        if let Configuration::Sync { every, attached } = configuration {
            put_log(target, &before, &seen, measured)?;
            if target.variable("sync_binlog")?.as_deref() != Some(&every.to_string()) {
                measured.refuse(format!("sync_binlog was not {every}"));
            }
            // A server without semi-sync has all counters at 0.
            measured.invalid = reasons([
                measured.invalid.take(),
                target.not_in_force(attached)?.map(|wrong| format!("after the load: {wrong}")),
                not_acknowledged(attached, &before.semi_sync, &target.semi_sync()?),
            ]);
        }
        let log_bin = target.variable("log_bin")?.unwrap_or_default();
        if log_bin != if logs { "ON" } else { "OFF" } {
            measured.refuse(format!("log_bin was {log_bin}"));
        }
        if pooled.target.is_users() {
            users::check(pooled, measured)?;
        }
        if let Some(mut binlogd) = binlogd {
            match binlogd.not_attached() {
                Ok(None) => {}
                Ok(Some(wrong)) => measured.refuse(wrong),
                Err(error) => measured.refuse(format!("{error:#}")),
            }
        }
        Ok(())
    }
}

impl Stage for Servers {
    fn facts(&mut self) -> anyhow::Result<Vec<Fact>> {
        let fact =
            |name: &str, value: String| Fact { about: "load".to_owned(), name: name.to_owned(), value };
        let mut facts = vec![
            fact("go-tpc", go_tpc::version().to_owned()),
            fact("warehouses", self.settings.get("warehouses")?),
            fact("tables with indexes, MiB", (self.tables_bytes >> 20).to_string()),
        ];
        if let Shelter::Volume(volume) = &self.shelter {
            facts.extend(volume.facts());
        }
        let Pair { logging, silent } = self.pair.as_mut().context(NOT_STARTED)?;
        facts.extend(logging.target.facts()?);
        if let Some(silent) = silent {
            let of_silent = silent.target.facts()?.into_iter();
            facts.extend(
                of_silent.map(|fact| Fact { about: format!("{}, without a binary log", fact.about), ..fact }),
            );
        }
        Ok(facts)
    }

    fn measure(&mut self, point: &Point, round: u32) -> anyhow::Result<Measured> {
        let configuration = Configuration::named(&point.configuration)?;
        let condition = Condition::parse(&point.condition).context("a condition without a buffer pool")?;
        self.begin_round(round)?;
        self.resize(configuration, condition.pool, point.threads)?;
        let mut binlogd = None;
        if let Configuration::Sync { every, attached } = configuration {
            match self.begin(every, attached)? {
                Ok(attached) => binlogd = attached,
                Err(reason) => return Ok(Measured::invalid(reason)),
            }
        }
        let mut measured = Measured::default();
        self.load(configuration, point.threads, binlogd, &mut measured)?;
        Ok(measured)
    }
}

/// Throughput as it was sampled.
fn put_samples(samples: &[Sample], began: f64, measured: &mut Measured) {
    if samples.is_empty() {
        return measured.refuse("the server committed nothing between two looks at its counter");
    }
    let intervals = sampler::joined(samples, INTERVAL);
    measured.put("tps", median(intervals.iter().map(|interval| interval.tps)));
    measured.series.insert("tps".to_owned(), samples.iter().map(|sample| sample.tps).collect());
    // These are finer than seconds, and a late answer makes one longer.
    measured
        .series
        .insert("sample_ended_s".to_owned(), samples.iter().map(|sample| sample.ended - began).collect());
}

/// What was written to the binary log, its rotations and what they did to throughput.
fn put_log(target: &mut Target, before: &Before, seen: &Seen, measured: &mut Measured) -> anyhow::Result<()> {
    let bytes = target.log_bytes()?.saturating_sub(before.log_bytes);
    if bytes == 0 {
        measured.refuse("nothing was written to the binary log");
    }
    measured.put("binlog_bytes", bytes as f64);
    let rotations = match target.data_dir() {
        Some(data) => Rotations::since(before.at, &data)?,
        None => Rotations::seen(&seen.changes, &target.log_files()?),
    };
    measured.put("rotations", rotations.times.len() as f64);
    measured
        .series
        .insert("rotation_s".to_owned(), rotations.times.iter().map(|time| time - before.at).collect());
    if let Some(period) = rotations.period() {
        measured.put("rotation_period_s", period);
    }
    if rotations.times.len() > 1 && !rotations.bytes.is_empty() {
        measured.put("rotation_bytes", median(rotations.bytes.iter().copied()));
    }
    // Of two at the same moment one is enough.
    let mut moments = rotations.times;
    moments.dedup();
    for (name, stall) in [
        ("stall", Stall::near(&moments, &seen.samples)),
        ("between", Stall::between(&moments, &seen.samples)),
    ] {
        let Some(stall) = stall else { continue };
        measured.put(&format!("{name}_lowest"), stall.lowest);
        measured.put(&format!("{name}_seconds"), stall.seconds);
        measured.put(&format!("{name}_seconds_max"), stall.seconds_max);
    }
    Ok(())
}

fn reasons<const N: usize>(reasons: [Option<String>; N]) -> Option<String> {
    let all: Vec<String> = reasons.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}
