//! What one semi-synchronous replica costs a source with two replicas, under TPC-C.

use super::{Headline, Lab, Plan, Scene, Stage, Study, interleaved};
use crate::load::dataset::{self, Dataset};
use crate::load::go_tpc;
use crate::load::tpcc::Tpcc;
use crate::model::{Fact, Measured, Order, Point, Profile, Run, ServerChoice, Settings};
use crate::receiver::replica::{self, Behaviour};
use crate::receiver::{Binlogd, Replica, binlogd};
use crate::reference::semi_sync_cost as published;
use crate::report::outline::{Entry, Part, Table};
use crate::report::sweep::{self, Sweep};
use crate::server::Target;
use crate::server::binary_log::Place;
use crate::server::semi_sync::{WaitPoint, not_acknowledged};
use crate::statistics::Figures;
use anyhow::{Context, bail, ensure};
use std::time::{Duration, Instant};

/// Longest wait until all receivers are attached.
const ATTACH_MAX: Duration = Duration::from_secs(30);
/// MySQL's default of `sync_relay_log`.
const SYNC_RELAY_LOG: u32 = 10_000;

const ASYNCHRONOUS: &str = "two asynchronous replicas";
const AFTER_SYNC: &str = "semi-sync (AFTER_SYNC) and asynchronous replica";
const AFTER_COMMIT: &str = "semi-sync (AFTER_COMMIT) and asynchronous replica";
const BINLOGD: &str = "binlogd (AFTER_SYNC, fsync_mode 1) and asynchronous replica";

/// In the order of measuring and of the legends.
const CONFIGURATIONS: [&str; 4] = [ASYNCHRONOUS, AFTER_SYNC, AFTER_COMMIT, BINLOGD];

/// The study.
#[derive(Debug)]
pub struct SemiSyncCost;

impl Study for SemiSyncCost {
    fn name(&self) -> &'static str {
        "semi-sync-cost"
    }

    fn title(&self) -> &'static str {
        "What semi-synchronous replication costs"
    }

    fn summary(&self) -> &'static str {
        "TPC-C (go-tpc) on a source with two replicas that apply, over numbers of threads: both asynchronous, one of them \
         semi-synchronous (AFTER_SYNC, AFTER_COMMIT), and binlogd in its place."
    }

    fn settings(&self, profile: Profile) -> Settings {
        let (threads, seconds, rounds, warehouses, pool_mb, level_seconds) = match profile {
            Profile::Smoke => ("4", "3", "1", "2", "256", "30"),
            Profile::Quick => ("4,16,64", "5", "3", "4", "512", "30"),
            Profile::Full => ("4,8,16,32,64,128,256,512,1024,1536", "60", "3", "100", "4096", "600"),
        };
        Settings::of([
            ("threads", threads),
            ("seconds", seconds),
            ("rounds", rounds),
            ("warehouses", warehouses),
            ("pool_mb", pool_mb),
            ("redo_mb", if profile == Profile::Full { "2048" } else { "256" }),
            ("level_seconds", level_seconds),
        ])
    }

    fn plan(&self, order: &Order) -> anyhow::Result<Plan> {
        let settings = &order.settings;
        let threads: Vec<u32> = settings.list("threads")?;
        let (seconds, rounds): (f64, u32) = (settings.get("seconds")?, settings.get("rounds")?);
        for name in ["warehouses", "pool_mb", "redo_mb", "level_seconds"] {
            settings.get::<u32>(name)?;
        }
        let scene = |choice: &ServerChoice| {
            let server = own_server(choice, self.name())?;
            ensure!(
                !["mysql-5.7.22", "mysql-8.0.15", "mysql-8.0.31"].contains(&server),
                "{server} as the lab has it comes without semi-sync plugins: choose mysql:9.7 or a MariaDB"
            );
            let block = |threads: &u32| Point {
                server: choice.to_string(),
                condition: String::new(),
                configuration: String::new(),
                threads: *threads,
            };
            let blocks: Vec<Point> = threads.iter().map(block).collect();
            Ok(Scene { name: server.to_owned(), cells: interleaved(&blocks, &CONFIGURATIONS, rounds) })
        };
        let scenes: anyhow::Result<_> = servers(order).iter().map(scene).collect();
        // Attaching, connecting, and bringing the replicas level.
        Ok(Plan { scenes: scenes?, cell_seconds: seconds + 8.0 })
    }

    fn set_up(&self, order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn Stage>> {
        Ok(Box::new(Servers::set_up(order, scene, lab)?))
    }

    fn outline(&self, run: &Run) -> Vec<Part> {
        outline(run)
    }

    fn headline(&self) -> Headline {
        Headline { values: &["tpmc", "new_order_p95_ms"], baseline: Some(ASYNCHRONOUS) }
    }
}

/// The servers that a study is asked to measure: MySQL 9.7 unless it is told otherwise.
pub(super) fn servers(order: &Order) -> Vec<ServerChoice> {
    match order.servers.as_slice() {
        [] => vec![ServerChoice::Own("mysql-9.7".to_owned())],
        chosen => chosen.to_vec(),
    }
}

/// The name of one of the lab's own servers.
pub(super) fn own_server<'a>(choice: &'a ServerChoice, study: &str) -> anyhow::Result<&'a str> {
    match choice {
        ServerChoice::Own(name) => Ok(name),
        ServerChoice::Url(_) => bail!(
            "{study} runs on the lab's own servers only: it copies their data and starts them with other options. {choice} \
             cannot be used"
        ),
    }
}

/// All that a scene needs. Dropped in this order.
#[derive(Debug)]
struct Servers {
    source: Target,
    /// The one that is semi-synchronous or not, or that binlogd takes the place of.
    first: Replica,
    /// The one that is always asynchronous.
    second: Replica,
    tpcc: Tpcc,
    lab: Lab,
    settings: Settings,
    dir: tempfile::TempDir,
}

impl Servers {
    fn set_up(order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Servers> {
        let settings = order.settings.clone();
        let (name, warehouses) = (&scene.name, settings.get("warehouses")?);
        let dataset = Dataset::of(lab, name, warehouses)?;
        let dir = tempfile::Builder::new().prefix("semi-sync-cost-").tempdir_in(&lab.dir)?;
        let tpcc = Tpcc::new(lab, warehouses, dir.path())?;
        let options = dataset::options(settings.get::<u64>("pool_mb")? << 20, settings.get("redo_mb")?);
        let start = |folder: &str, options: &[String]| {
            (lab.say)(&format!("starting {name} as {folder}"));
            Target::start_on(lab, name, dir.path().join(folder), &dataset.data, options)
        };
        let mut source = start("source", &options)?;
        source.query(source.dialect().reset_logs())?;
        source.prepare_semi_sync(WaitPoint::AfterSync)?;
        let replica_options = [options, replica::options(source.dialect())].concat();
        let mut first = Replica::new(start("first replica", &replica_options)?)?;
        let mut second = Replica::new(start("second replica", &replica_options)?)?;
        (lab.say)("reading the tables into the buffer pools");
        for target in [&mut source, first.target(), second.target()] {
            dataset::read_through(target, &lab.interrupt)?;
        }
        Ok(Servers { source, first, second, tpcc, lab: lab.clone(), settings, dir })
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
        let dumps = self.source.dumps()?.len();
        if dumps != 2 {
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
            measured.put("first_behind_bytes", behind(&mut self.source, &mut self.first, &end)? as f64);
        }
        measured.put("second_behind_bytes", behind(&mut self.source, &mut self.second, &end)? as f64);
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
            let first = behind(&mut self.source, &mut self.first, &end)?;
            let second = behind(&mut self.source, &mut self.second, &end)?;
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
        let wait_point =
            if configuration == AFTER_COMMIT { WaitPoint::AfterCommit } else { WaitPoint::AfterSync };
        self.source.prepare_semi_sync(wait_point)?;
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

/// Bytes of the source's log through `end` that the replica has not applied.
fn behind(source: &mut Target, replica: &mut Replica, end: &Place) -> anyhow::Result<u64> {
    let word = replica.target().dialect().replica();
    let status = replica.target().query(&format!("SHOW {word} STATUS"))?;
    let column = |names: [&str; 2]| names.iter().find_map(|name| status.get(0, name)).map(str::to_owned);
    let file = column(["Relay_Source_Log_File", "Relay_Master_Log_File"]).context("it is not a replica")?;
    let position = column(["Exec_Source_Log_Pos", "Exec_Master_Log_Pos"]).and_then(|text| text.parse().ok());
    let at = Place { file, position: position.context("the replica does not say how far it is")? };
    let rows = source.query("SHOW BINARY LOGS")?;
    let logs: Vec<(String, u64)> = (0..rows.rows.len())
        .filter_map(|row| {
            Some((rows.get(row, "Log_name")?.to_owned(), rows.get(row, "File_size")?.parse().ok()?))
        })
        .collect();
    Ok(distance(&at, end, &logs))
}

/// From one place of a log to a later one, given the log's files with their sizes. A replica that has applied nothing yet
/// names no file.
fn distance(from: &Place, to: &Place, logs: &[(String, u64)]) -> u64 {
    let through = |place: &Place| -> u64 {
        let before = logs.iter().filter(|(name, _)| *name < place.file).map(|(_, size)| size).sum::<u64>();
        before + place.position
    };
    through(to).saturating_sub(if from.file.is_empty() { 0 } else { through(from) })
}

fn outline(run: &Run) -> Vec<Part> {
    let published = [published::asynchronous(ASYNCHRONOUS), published::semi_synchronous(AFTER_SYNC)];
    let setting = |name: &str| run.order.settings.0.get(name).cloned().unwrap_or_default();
    let mut parts = vec![Part::Text(format!(
        "One source with two replicas that apply, {} warehouses, {} s for each cell, no keying or thinking times. The \
         source and the replicas share this machine and its disk, so both pay for what the others do; in the published \
         study each had a machine of its own. A replica syncs its relay log every {SYNC_RELAY_LOG} events, MySQL's default: \
         its acknowledgement means received, not durable. binlogd acknowledges what is durable (fsync_mode 1).",
        setting("warehouses"),
        setting("seconds")
    ))];
    parts.extend(sweep::parts(
        run,
        &Sweep {
            title: "TpmC",
            value: "tpmc",
            unit: "NEW_ORDER transactions/min",
            digits: 0,
            baseline: Some(ASYNCHRONOUS),
            published: &published,
        },
    ));
    parts.extend(sweep::parts(
        run,
        &Sweep {
            title: "NEW_ORDER, 95th percentile",
            value: "new_order_p95_ms",
            unit: "ms, in go-tpc's steps of 5 to 10 %",
            digits: 1,
            baseline: None,
            published: &[],
        },
    ));
    parts.extend(lag(run));
    parts
}

/// How far the replicas were behind, and what was done about it.
fn lag(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let mut rows = Vec::new();
    for point in figures.points() {
        let mib = |value: &str| match figures.median(point, value) {
            Ok(spread) => Entry::Median {
                median: spread.median / f64::from(1 << 20),
                range: (spread.range.0 / f64::from(1 << 20), spread.range.1 / f64::from(1 << 20)),
                digits: 2,
            },
            Err(_) if point.configuration == BINLOGD => {
                Entry::Missing("binlogd stands in its place".to_owned())
            }
            Err(reason) => Entry::Missing(reason.to_string()),
        };
        let anew =
            figures.cells(point).filter(|cell| cell.measured.values.get("began_anew") == Some(&1.0)).count();
        rows.push(vec![
            Entry::Text(point.server.clone()),
            Entry::Number(f64::from(point.threads), 0),
            Entry::Text(point.configuration.clone()),
            mib("first_behind_bytes"),
            mib("second_behind_bytes"),
            sweep::entry(figures.median(point, "level_after_s"), 1),
            sweep::entry(figures.median(point, "wait_us"), 0),
            Entry::Number(anew as f64, 0),
        ]);
    }
    let columns = [
        "server",
        "threads",
        "configuration",
        "first replica behind (MiB)",
        "second replica behind (MiB)",
        "level after (s)",
        "source's wait (µs)",
        "rounds begun anew",
    ];
    vec![Part::Table(Table {
        title: "How far the replicas were behind at the end of the load".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            "After each cell both replicas apply what is left before the next begins; where they did not get there in time \
             they begin anew at the end of the log, and rows that they miss are passed over."
                .to_owned(),
            "The source's wait is its own average over the waits for an acknowledgement.".to_owned(),
        ],
    })]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(servers: &[&str]) -> Order {
        Order {
            profile: Profile::Full,
            servers: servers.iter().map(|name| name.parse().unwrap()).collect(),
            settings: SemiSyncCost.settings(Profile::Full),
        }
    }

    #[test]
    fn the_full_plan_is_the_published_sweep_three_times_in_all_configurations() {
        let plan = SemiSyncCost.plan(&order(&[])).unwrap();
        assert_eq!(plan.scenes.len(), 1);
        assert_eq!(plan.scenes[0].cells.len(), 10 * 4 * 3);
        let threads: Vec<u32> =
            plan.scenes[0].cells[..40].iter().step_by(4).map(|cell| cell.point.threads).collect();
        assert_eq!(threads, published::published().iter().map(|row| row.threads).collect::<Vec<_>>());
    }

    #[test]
    fn servers_that_do_not_fit_are_refused() {
        for (server, why) in [("mysql://root@localhost:3306", "own servers"), ("mysql:8.0", "plugins")] {
            let error = SemiSyncCost.plan(&order(&[server])).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_distance_goes_over_the_ends_of_files() {
        let place = |file: &str, position| Place { file: file.to_owned(), position };
        let logs = [("b.1".to_owned(), 100), ("b.2".to_owned(), 50), ("b.3".to_owned(), 30)];
        assert_eq!(distance(&place("b.1", 90), &place("b.3", 20), &logs), 10 + 50 + 20);
        assert_eq!(distance(&place("b.3", 20), &place("b.3", 20), &logs), 0);
        assert_eq!(distance(&place("", 4), &place("b.1", 20), &logs), 20);
    }
}
