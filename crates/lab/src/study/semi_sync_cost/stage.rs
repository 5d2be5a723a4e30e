//! The source and its replicas.

use super::{AFTER_COMMIT, ASYNCHRONOUS, BINLOGD, CONFIGURATIONS, SERVER, SYNC_RELAY_LOG};
use crate::lab::Lab;
use crate::load::dataset::{self, Dataset};
use crate::load::go_tpc;
use crate::load::tpcc::Tpcc;
use crate::model::{Fact, Measured, Order, Point, ServerChoice, Settings};
use crate::receiver::replica::{self, Behaviour};
use crate::receiver::{Binlogd, Replica, binlogd};
use crate::server::Target;
use crate::server::binary_log::Place;
use crate::server::semi_sync::{WaitPoint, not_acknowledged};
use crate::study::{Scene, Stage};
use anyhow::{Context, ensure};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest wait until all receivers are attached.
const ATTACH_MAX: Duration = Duration::from_secs(30);

/// All that a scene needs. Dropped in this order: a user's server is restored when nobody receives from it any more.
#[derive(Debug)]
pub(super) struct Servers {
    /// The one that is semi-synchronous or not, or that binlogd takes the place of.
    first: Replica,
    /// The one that is always asynchronous.
    second: Replica,
    source: Target,
    tpcc: Tpcc,
    lab: Lab,
    settings: Settings,
    dir: tempfile::TempDir,
}

impl Servers {
    /// Starts the source and both replicas, on copies of the same data; or takes a user's server into use, and starts both
    /// replicas beside it.
    pub(super) fn set_up(order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Servers> {
        let settings = order.settings.clone();
        let dir = tempfile::Builder::new().prefix("semi-sync-cost-").tempdir_in(&lab.dir)?;
        let tpcc = Tpcc::new(lab, settings.get("warehouses")?, dir.path())?;
        let options = dataset::options(settings.get::<u64>("pool_mb")? << 20, settings.get("redo_mb")?);
        let choice = order.servers_or(&[SERVER]).into_iter().find(|choice| choice.to_string() == scene.name);
        let (mut source, mut first, mut second) = match choice.context("a scene without a server")? {
            ServerChoice::Own(name) => start(&name, &options, &settings, lab, dir.path())?,
            ServerChoice::Url(url) => start_beside(&url, &options, &tpcc, lab, dir.path())?,
        };
        source.prepare_semi_sync(WaitPoint::AfterSync)?;
        (lab.say)("reading the tables into the buffer pools");
        for target in [&mut source, first.target(), second.target()] {
            dataset::read_through(target, &lab.interrupt)?;
        }
        Ok(Servers { first, second, source, tpcc, lab: lab.clone(), settings, dir })
    }

    /// Attaches what the configuration has, at `place`.
    fn attach(&mut self, configuration: &str, place: &Place) -> anyhow::Result<Option<Binlogd>> {
        let behaviour = |semi_sync| Behaviour { sync_relay_log: SYNC_RELAY_LOG, applying: true, semi_sync };
        self.second.attach(&self.source, place, behaviour(false))?;
        if configuration == BINLOGD {
            let options = binlogd::Options { fsync_mode: 1, semi_sync: true };
            return Binlogd::attach(&self.lab, &mut self.source, options, self.dir.path()).map(Some);
        }
        self.first.attach(&self.source, place, behaviour(configuration != ASYNCHRONOUS))?;
        Ok(None)
    }

    /// What is not as the configuration says, if so.
    fn wrong(
        &mut self,
        configuration: &str,
        binlogd: &mut Option<Binlogd>,
    ) -> anyhow::Result<Option<String>> {
        let mut reasons = Vec::new();
        reasons.extend(self.source.not_in_force(configuration != ASYNCHRONOUS)?);
        reasons.extend(self.source.is_not_waiting_at(wait_point(configuration))?);
        let dumps = self.source.dumps()?.len();
        // A user's server may have replicas of its own.
        if dumps != 2 && !self.source.is_users() {
            reasons.push(format!("{dumps} sessions read the source's log, and not 2"));
        }
        match binlogd {
            Some(binlogd) => {
                reasons.extend(binlogd.not_attached().unwrap_or_else(|error| Some(format!("{error:#}"))))
            }
            None => reasons.extend(self.first.not_attached()?),
        }
        reasons.extend(self.second.not_attached()?);
        Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
    }

    fn loaded(
        &mut self,
        point: &Point,
        binlogd: &mut Option<Binlogd>,
        measured: &mut Measured,
    ) -> anyhow::Result<()> {
        let configuration = point.configuration.as_str();
        let interrupt = self.lab.interrupt.clone();
        let attached =
            interrupt.wait(ATTACH_MAX, || Ok(self.wrong(configuration, binlogd)?.is_none().then_some(())))?;
        if attached.is_none() {
            let wrong = self.wrong(configuration, binlogd)?.unwrap_or_default();
            measured.refuse(format!("before the load: {wrong}"));
            return Ok(());
        }
        self.source.commit_probes()?;
        let (before, log_before) = (self.source.semi_sync()?, self.source.log_bytes()?);
        let outcome =
            self.tpcc.load(&mut self.source, point.threads, self.settings.get("seconds")?, &interrupt);
        interrupt.check()?;
        let (after, end) = (self.source.semi_sync()?, self.source.log_end()?);
        measured.put("binlog_bytes", self.source.log_bytes()?.saturating_sub(log_before) as f64);
        let waits = after.waits.saturating_sub(before.waits);
        if waits > 0 {
            measured.put("wait_us", after.wait_us.saturating_sub(before.wait_us) as f64 / waits as f64);
        }
        if binlogd.is_none() {
            measured.put("first_behind_bytes", self.first.behind(&mut self.source, &end)? as f64);
        }
        measured.put("second_behind_bytes", self.second.behind(&mut self.source, &end)? as f64);
        match outcome {
            Ok(outcome) => outcome.put_into(measured),
            Err(error) => measured.refuse(format!("{error:#}")),
        }
        if let Some(wrong) = self.wrong(configuration, binlogd)? {
            measured.refuse(format!("after the load: {wrong}"));
        }
        if let Some(reason) = not_acknowledged(configuration != ASYNCHRONOUS, &before, &after) {
            measured.refuse(reason);
        }
        Ok(())
    }

    /// Waits until both replicas have applied all that the source has written since `place`, the one that binlogd stood in
    /// for too: otherwise rows would be absent there later, and it would have less to do. Those that are not level in time
    /// begin anew at the next cell's place.
    fn level(&mut self, was_binlogd: bool, place: &Place, measured: &mut Measured) -> anyhow::Result<()> {
        if was_binlogd {
            let behaviour = Behaviour { sync_relay_log: SYNC_RELAY_LOG, applying: true, semi_sync: false };
            self.first.attach(&self.source, place, behaviour)?;
        }
        let end = self.source.log_end()?;
        let longest = Duration::from_secs(self.settings.get("level_seconds")?);
        let interrupt = self.lab.interrupt.clone();
        let began = Instant::now();
        let level = interrupt.wait(longest, || {
            let first = self.first.behind(&mut self.source, &end)?;
            let second = self.second.behind(&mut self.source, &end)?;
            Ok((first + second == 0).then_some(()))
        })?;
        measured.put("level_after_s", began.elapsed().as_secs_f64());
        measured.put("began_anew", f64::from(u8::from(level.is_none())));
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
        ];
        facts.extend(self.source.facts()?);
        facts.extend(
            self.first
                .target()
                .facts()?
                .into_iter()
                .map(|fact| Fact { about: format!("{}, each replica", fact.about), ..fact }),
        );
        Ok(facts)
    }

    fn measure(&mut self, point: &Point, _: u32) -> anyhow::Result<Measured> {
        let configuration = point.configuration.as_str();
        ensure!(CONFIGURATIONS.contains(&configuration), "this study has no configuration {configuration:?}");
        let interrupt = self.lab.interrupt.clone();
        // Otherwise they come back when their sessions are ended.
        self.first.detach()?;
        self.second.detach()?;
        self.source.drop_dumps(&interrupt)?;
        let place = self.source.begin_log()?;
        self.tpcc.make_room(&mut self.source, point.threads)?;
        self.source.prepare_semi_sync(wait_point(configuration))?;
        self.source.set_semi_sync(configuration != ASYNCHRONOUS)?;
        let mut measured = Measured::default();
        let mut binlogd = match self.attach(configuration, &place) {
            Ok(binlogd) => binlogd,
            Err(error) => {
                interrupt.check()?;
                return Ok(Measured::invalid(format!("a receiver does not start: {error:#}")));
            }
        };
        let loaded = self.loaded(point, &mut binlogd, &mut measured);
        drop(binlogd);
        loaded?;
        self.level(configuration == BINLOGD, &place, &mut measured)?;
        Ok(measured)
    }
}

/// Where a commit waits.
fn wait_point(configuration: &str) -> WaitPoint {
    if configuration == AFTER_COMMIT { WaitPoint::AfterCommit } else { WaitPoint::AfterSync }
}

/// One of the lab's own servers and two replicas, on copies of the same data.
fn start(
    name: &str,
    options: &[String],
    settings: &Settings,
    lab: &Lab,
    dir: &Path,
) -> anyhow::Result<(Target, Replica, Replica)> {
    let dataset = Dataset::of(lab, name, settings.get("warehouses")?)?;
    let start = |folder: &str, options: &[String]| {
        (lab.say)(&format!("starting {name} as {folder}"));
        Target::start_on(lab, name, dir.join(folder), &dataset.data, options)
    };
    let mut source = start("source", options)?;
    source.query(source.dialect().reset_logs())?;
    let options = [options, &replica::options(source.dialect())].concat();
    let first = Replica::new(start("first replica", &options)?)?;
    let second = Replica::new(start("second replica", &options)?)?;
    Ok((source, first, second))
}

/// A user's server, and two of the lab's own that receive what fills its tables.
fn start_beside(
    url: &str,
    options: &[String],
    tpcc: &Tpcc,
    lab: &Lab,
    dir: &Path,
) -> anyhow::Result<(Target, Replica, Replica)> {
    let mut source = Target::attach(lab, url)?;
    let name = source.name().to_owned();
    (lab.say)(&format!("{name}: sync_binlog and innodb_flush_log_at_trx_commit stay as they are"));
    let mut first = Replica::beside(lab, &mut source, dir.join("first replica"), options)?;
    let mut second = Replica::beside(lab, &mut source, dir.join("second replica"), options)?;
    (lab.say)(&format!("filling TPC-C's tables on {name}"));
    tpcc.prepare(&mut source, &lab.interrupt)?;
    (lab.say)("waiting until both replicas have the tables");
    for replica in [&mut first, &mut second] {
        replica.filled(&mut source, &lab.interrupt)?;
    }
    Ok((source, first, second))
}
