//! The servers of a scene: one with a binary log and one without, on copies of the same data and one file system.

use super::pair::{self, Pair, Pooled, Recipe};
use super::pool;
use super::stall::Stall;
use crate::lab::Lab;
use crate::load::dataset::{self, Dataset};
use crate::load::rotations::Rotations;
use crate::load::sampler::{self, Sample, Sampler, Seen};
use crate::load::tpcc::{Outcome, Tpcc};
use crate::machine::file_system::Volume;
use crate::machine::folders;
use crate::model::{Fact, Measured, Order, Settings};
use crate::point::place::{Files, Pool};
use crate::point::sync_binlog::Configuration;
use crate::point::{Condition, Point};
use crate::receiver::{Binlogd, binlogd};
use crate::server::Target;
use crate::study::{Scene, Stage};
use crate::window::{Place, Readings, Window, measure_window};
use anyhow::{Context, bail};
use rig::statistics::median;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    /// Of binlogd, where that has a folder of its own.
    pub(super) receivers: Option<tempfile::TempDir>,
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

impl Servers {
    /// Mounts the file system, and starts both servers on it, which are those of the lab's by that name.
    pub(super) fn set_up(order: &Order, scene: &Scene, name: &str, lab: &Lab) -> anyhow::Result<Servers> {
        let settings = order.settings.clone();
        let first = &scene.cells.first().context("a scene without cells")?.point.panel;
        let Files::Lab(kind) = place(first.condition)?.files else {
            bail!("{first} names no file system of the lab's")
        };
        let (warehouses, redo_mib): (u32, u64) = (settings.get("warehouses")?, settings.get("redo_log_mib")?);
        let dataset = Dataset::of(lab, name, warehouses)?;
        let volume = Volume::mount(lab, kind, 2 * (2 * dataset.bytes + (redo_mib << 20)) + ROOM)
            .context("--set file_systems=here measures on the lab's own disk")?;
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
            receivers: folders::of_receivers(lab, "sync-binlog")?,
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
        pair::warm_up(&mut pooled.target, &self.tpcc, threads, &self.settings, &self.lab)
    }
}

impl Stage for Servers {
    fn facts(&mut self) -> anyhow::Result<Vec<Fact>> {
        let mut facts = self.tpcc.facts();
        facts.push(Fact::new("load", "tables with indexes, MiB", self.tables_bytes >> 20));
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
        let configuration = (&point.configuration).try_into()?;
        self.begin_round(round)?;
        self.resize(configuration, place(point.panel.condition)?.pool, point.threads)?;
        let Servers { pair, tpcc, settings, lab, shelter, receivers, .. } = self;
        let pooled = pair.as_mut().context(NOT_STARTED)?.of(configuration)?;
        let threads = point.threads;
        let dir = receivers.as_ref().map_or(shelter.beside(), tempfile::TempDir::path);
        let mut turn = Turn { pooled, configuration, threads, tpcc, settings, lab, dir };
        measure_window(&mut turn, &lab.interrupt)
    }
}

/// Where a cell is measured.
fn place(condition: Condition) -> anyhow::Result<crate::point::place::Condition> {
    match condition {
        Condition::Place(place) => Ok(place),
        other => bail!("sync-binlog measures nothing under the condition “{other}”"),
    }
}

/// A cell in its turn.
struct Turn<'a> {
    /// The server of the configuration.
    pooled: &'a mut Pooled,
    configuration: Configuration,
    threads: u32,
    tpcc: &'a Tpcc,
    settings: &'a Settings,
    lab: &'a Lab,
    /// For binlogd's copy.
    dir: &'a Path,
}

/// What a load came to, and what was seen of it.
struct Loaded {
    outcome: Outcome,
    seen: Seen,
    /// When it began, in seconds since 1970.
    began: f64,
}

impl Window for Turn<'_> {
    type Source = Target;
    type Attached = Option<Binlogd>;
    type Outcome = Loaded;

    fn source(&mut self) -> &mut Target {
        &mut self.pooled.target
    }

    fn writes_log(&self) -> bool {
        self.configuration != Configuration::NoBinaryLog
    }

    fn semi_sync(&self) -> bool {
        self.configuration.attached()
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        match self.configuration {
            Configuration::NoBinaryLog => Vec::new(),
            Configuration::Sync { every, .. } => vec![("sync_binlog", every.to_string())],
        }
    }

    fn attach(&mut self, _: &Place) -> anyhow::Result<Option<Binlogd>> {
        if !self.semi_sync() {
            return Ok(None);
        }
        let options = binlogd::Options { fsync_mode: 1, semi_sync: true, tls: false };
        Binlogd::attach(self.lab, &mut self.pooled.target, options, self.dir).map(Some)
    }

    fn not_in_force(&mut self, binlogd: &mut Option<Binlogd>) -> anyhow::Result<Option<String>> {
        let (logs, semi_sync) = (self.writes_log(), self.semi_sync());
        let target = self.source();
        let log_bin = target.variable("log_bin")?.unwrap_or_default();
        let wrong = (log_bin != if logs { "ON" } else { "OFF" }).then(|| format!("log_bin was {log_bin}"));
        // A server without semi-sync has all counters at 0.
        let semi_sync = target.not_in_force(semi_sync)?;
        let own = match binlogd {
            Some(binlogd) => binlogd.not_attached().unwrap_or_else(|error| Some(format!("{error:#}"))),
            None => None,
        };
        let wrong: Vec<String> = [wrong, semi_sync, own].into_iter().flatten().collect();
        Ok((!wrong.is_empty()).then(|| wrong.join("; ")))
    }

    fn complaint(&mut self, binlogd: &mut Option<Binlogd>) -> String {
        binlogd.as_mut().map_or_else(String::new, Binlogd::complaint)
    }

    fn load(&mut self, _: &mut Option<Binlogd>) -> anyhow::Result<Loaded> {
        let logs = self.writes_log();
        let Turn { tpcc, settings, lab, .. } = *self;
        let target = &mut self.pooled.target;
        let began = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
        let interval = Duration::from_millis(settings.get("sample_ms")?);
        // The log files of the lab's own servers tell of their rotations by themselves.
        let sampler = Sampler::start(target, interval, logs && target.is_users())?;
        let outcome = tpcc.load(target, self.threads, settings.get("seconds")?, &lab.interrupt);
        lab.interrupt.check()?;
        let seen = sampler.finish()?;
        Ok(Loaded { outcome: outcome?, seen, began })
    }

    fn read_back(
        &mut self,
        _: &mut Option<Binlogd>,
        loaded: Loaded,
        readings: &Readings,
        measured: &mut Measured,
    ) -> anyhow::Result<()> {
        let Loaded { outcome, seen, began } = loaded;
        outcome.put_into(measured);
        put_samples(&seen.samples, began, measured);
        if self.writes_log() {
            put_log(self.source(), readings.log_bytes(), began, &seen, measured)?;
        }
        self.pooled.check(measured)
    }

    fn detach(&mut self, binlogd: Option<Binlogd>) -> anyhow::Result<()> {
        drop(binlogd);
        Ok(())
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
fn put_log(
    target: &mut Target,
    bytes: u64,
    began: f64,
    seen: &Seen,
    measured: &mut Measured,
) -> anyhow::Result<()> {
    if bytes == 0 {
        measured.refuse("nothing was written to the binary log");
    }
    measured.put("binlog_bytes", bytes as f64);
    let rotations = match target.data_dir() {
        Some(data) => Rotations::since(began, &data)?,
        None => Rotations::seen(&seen.changes, &target.log_files()?),
    };
    measured.put("rotations", rotations.times.len() as f64);
    measured
        .series
        .insert("rotation_s".to_owned(), rotations.times.iter().map(|time| time - began).collect());
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
