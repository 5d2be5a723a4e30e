//! The source and its replicas.

use crate::lab::Lab;
use crate::load::dataset::{self, Dataset};
use crate::load::tpcc::{Outcome, Tpcc};
use crate::machine::folders::Folders;
use crate::model::{Fact, Measured, Order, ServerChoice, Settings};
use crate::point::Point;
use crate::point::semi_sync_cost::{Configuration, SYNC_RELAY_LOG};
use crate::receiver::replica::{self, Behaviour};
use crate::receiver::{Binlogd, Replica, binlogd};
use crate::server::Target;
use crate::server::semi_sync::WaitPoint;
use crate::study::{Scene, Stage};
use crate::window::{Place, Readings, Window, measure_window};
use std::path::Path;
use std::time::{Duration, Instant};

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
    folders: Folders,
}

impl Servers {
    /// Starts the source and both replicas, on copies of the same data; or takes a user's server into use, and starts
    /// both replicas beside it.
    pub(super) fn set_up(order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Servers> {
        let settings = order.settings.clone();
        let folders = Folders::of(lab, "semi-sync-cost")?;
        let tpcc = Tpcc::new(lab, settings.get("warehouses")?, folders.path())?;
        let options =
            dataset::options(settings.get::<u64>("buffer_pool_mib")? << 20, settings.get("redo_log_mib")?);
        let (mut source, mut first, mut second) = match scene.server()? {
            ServerChoice::Own(name) => start(name, &options, &settings, lab, &folders)?,
            ServerChoice::Url(url) => start_beside(url, &options, &tpcc, lab, folders.receivers())?,
        };
        source.prepare_semi_sync(WaitPoint::AfterSync)?;
        (lab.say)("reading the tables into the buffer pools");
        for target in [&mut source, first.target(), second.target()] {
            dataset::read_through(target, &lab.interrupt)?;
        }
        Ok(Servers { first, second, source, tpcc, lab: lab.clone(), settings, folders })
    }

    /// What is not as the configuration says, if so.
    fn wrong(
        &mut self,
        configuration: Configuration,
        binlogd: &mut Option<Binlogd>,
    ) -> anyhow::Result<Option<String>> {
        let mut reasons = Vec::new();
        reasons.extend(self.source.not_in_force(configuration != Configuration::Asynchronous)?);
        reasons.extend(self.source.is_not_waiting_at(configuration.wait_point())?);
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

    /// Waits until both replicas have applied all that the source has written since `place`, the one that binlogd stood
    /// in for too: otherwise rows would be absent there later, and it would have less to do. Those that are not level
    /// in time begin anew at the next cell's place.
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

/// A cell in its turn.
struct Turn<'a> {
    servers: &'a mut Servers,
    configuration: Configuration,
    threads: u32,
    /// Where all have begun, when they were attached.
    place: Option<Place>,
}

impl Window for Turn<'_> {
    type Source = Target;
    /// In the place of the first replica.
    type Attached = Option<Binlogd>;
    type Outcome = Outcome;

    fn source(&mut self) -> &mut Target {
        &mut self.servers.source
    }

    fn semi_sync(&self) -> bool {
        self.configuration != Configuration::Asynchronous
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn prepare(&mut self) -> anyhow::Result<Option<String>> {
        let Servers { source, tpcc, .. } = &mut *self.servers;
        tpcc.make_room(source, self.threads)?;
        source.prepare_semi_sync(self.configuration.wait_point())?;
        Ok(None)
    }

    fn attach(&mut self, place: &Place) -> anyhow::Result<Option<Binlogd>> {
        let semi_sync = self.semi_sync();
        let Servers { first, second, source, lab, folders, .. } = &mut *self.servers;
        let behaviour = |semi_sync| Behaviour { sync_relay_log: SYNC_RELAY_LOG, applying: true, semi_sync };
        second.attach(source, place, behaviour(false))?;
        let mut binlogd = None;
        if self.configuration == Configuration::Binlogd {
            let options = binlogd::Options { fsync_mode: 1, semi_sync: true, tls: false };
            binlogd = Some(Binlogd::attach(lab, source, options, folders.receivers())?);
        } else {
            first.attach(source, place, behaviour(semi_sync))?;
        }
        self.place = Some(place.clone());
        Ok(binlogd)
    }

    fn not_in_force(&mut self, binlogd: &mut Option<Binlogd>) -> anyhow::Result<Option<String>> {
        self.servers.wrong(self.configuration, binlogd)
    }

    fn complaint(&mut self, binlogd: &mut Option<Binlogd>) -> String {
        binlogd.as_mut().map_or_else(|| self.servers.first.complaint(), Binlogd::complaint)
    }

    fn load(&mut self, _: &mut Option<Binlogd>) -> anyhow::Result<Outcome> {
        let Servers { source, tpcc, settings, lab, .. } = &mut *self.servers;
        tpcc.load(source, self.threads, settings.get("seconds")?, &lab.interrupt)
    }

    fn read_back(
        &mut self,
        binlogd: &mut Option<Binlogd>,
        outcome: Outcome,
        readings: &Readings,
        measured: &mut Measured,
    ) -> anyhow::Result<()> {
        outcome.put_into(measured);
        readings.keep(measured);
        let Servers { first, second, source, .. } = &mut *self.servers;
        let end = source.log_end()?;
        if binlogd.is_none() {
            measured.put("first_behind_bytes", first.behind(source, &end)? as f64);
        }
        measured.put("second_behind_bytes", second.behind(source, &end)? as f64);
        Ok(())
    }

    /// The replicas stay: they have to apply what is left.
    fn detach(&mut self, binlogd: Option<Binlogd>) -> anyhow::Result<()> {
        drop(binlogd);
        Ok(())
    }
}

impl Stage for Servers {
    fn facts(&mut self) -> anyhow::Result<Vec<Fact>> {
        let of_replica = self.first.target().facts()?.into_iter();
        let of_replica =
            of_replica.map(|fact| Fact { about: format!("{}, each replica", fact.about), ..fact });
        Ok(self.tpcc.facts().into_iter().chain(self.source.facts()?).chain(of_replica).collect())
    }

    fn measure(&mut self, point: &Point, _: u32) -> anyhow::Result<Measured> {
        let configuration = (&point.configuration).try_into()?;
        // Otherwise they come back when their sessions are ended.
        self.first.detach()?;
        self.second.detach()?;
        let interrupt = self.lab.interrupt.clone();
        let mut turn = Turn { servers: self, configuration, threads: point.threads, place: None };
        let mut measured = measure_window(&mut turn, &interrupt)?;
        if let Some(place) = turn.place {
            self.level(configuration == Configuration::Binlogd, &place, &mut measured)?;
        }
        Ok(measured)
    }
}

/// One of the lab's own servers and two replicas, on copies of the same data.
fn start(
    name: &str,
    options: &[String],
    settings: &Settings,
    lab: &Lab,
    folders: &Folders,
) -> anyhow::Result<(Target, Replica, Replica)> {
    let dataset = Dataset::of(lab, name, settings.get("warehouses")?)?;
    (lab.say)(&format!("starting {name} as source"));
    let mut source = Target::start(lab, name, folders.source().join("source"), Some(&dataset.data), options)?;
    source.query(source.dialect().reset_logs())?;
    let options = [options, &replica::options(source.dialect())].concat();
    let start = |folder: &str| {
        (lab.say)(&format!("starting {name} as {folder}"));
        Target::start_receiver(lab, name, folders.receivers().join(folder), Some(&dataset.data), &options)
    };
    let first = Replica::new(start("first replica")?)?;
    let second = Replica::new(start("second replica")?)?;
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
