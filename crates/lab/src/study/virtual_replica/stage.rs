//! The servers of a scene, and how a cell is measured on them.

use crate::lab::Lab;
use crate::load::sysbench::{Outcome, Sysbench};
use crate::machine::folders::Folders;
use crate::model::{Fact, Measured, Order, ServerChoice};
use crate::point::Point;
use crate::point::virtual_replica::{Configuration, Workload};
use crate::receiver::binlogd::Options;
use crate::receiver::replica::{self, Behaviour, Replica};
use crate::receiver::{Attachment, Binlogd, Yardstick};
use crate::server::Target;
use crate::server::dialect::Dialect;
use crate::server::semi_sync::WaitPoint;
use crate::study::Scene;
use crate::window::{Place, Readings, Window, measure_window};
use anyhow::Context;
use codec::ServerKind;
use rig::usage::Usage;

const REDO_LOG_MIB: u32 = 2048;

/// A scene that is set up.
#[derive(Debug)]
pub struct Stage {
    // Dropped in this order: the folder goes when the servers in it are gone.
    replica: Option<Replica>,
    source: Target,
    sysbench: Sysbench,
    workload: Workload,
    seconds: u64,
    lab: Lab,
    folders: Folders,
}

impl Stage {
    /// Starts the source, fills it, starts a replica on a copy of its data if the scene has one, and warms the source
    /// up. A user's server is not copied: there the replica receives what fills the tables.
    pub fn set_up(order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Stage> {
        let buffer_pool_mib: u32 = order.settings.get("buffer_pool_mib")?;
        let threads = order.settings.list::<u32>("threads")?.into_iter().max().context("no threads")?;
        let folders = Folders::of(lab, "virtual-replica")?;
        let fill = |source: &mut Target| Sysbench::filled(lab, source, order, folders.path());
        let workload: Workload = order.settings.get("workload")?;
        let configurations: Vec<Configuration> = scene.configurations()?;
        let with_replica = configurations.iter().any(|one| matches!(one, Configuration::Replica { .. }));
        if configurations.contains(&Configuration::Yardstick(Yardstick::GoMysqlbinlog)) {
            Yardstick::GoMysqlbinlog.make_ready(lab)?;
        }
        let mut replica = None;
        let (mut source, sysbench) = match scene.server()? {
            ServerChoice::Url(url) => {
                let mut source = Target::attach(lab, url)?;
                (lab.say)(&format!(
                    "{}: sync_binlog and innodb_flush_log_at_trx_commit will be 1, and 0 and 2 while the relaxed \
                     source is measured, when a crash would lose commits; afterwards they are set back",
                    source.name()
                ));
                if with_replica {
                    let options = memory(source.dialect(), buffer_pool_mib);
                    let started =
                        Replica::beside(lab, &mut source, folders.receivers().join("replica"), &options);
                    replica = Some(started.context("--set real_replicas=no measures without real replicas")?);
                }
                let sysbench = fill(&mut source)?;
                if let Some(replica) = &mut replica {
                    replica.filled(&mut source, &lab.interrupt)?;
                }
                (source, sysbench)
            }
            ServerChoice::Own(name) => {
                (lab.say)(&format!("starting {name}"));
                let mut source = Target::start(
                    lab,
                    name,
                    folders.source().join("source"),
                    None,
                    &filling(buffer_pool_mib),
                )?;
                source.create_database()?;
                let sysbench = fill(&mut source)?;
                let dialect = source.dialect();
                source.query(dialect.reset_logs())?;
                source.stop()?;
                lab.interrupt.check()?;
                let options = running(dialect, buffer_pool_mib, threads);
                if with_replica {
                    (lab.say)("starting a replica on a copy of the data");
                    let options = [options.clone(), replica::options(dialect)].concat();
                    let (copy, data) = (folders.receivers().join("replica"), folders.source().join("source"));
                    let target = Target::start_receiver(lab, name, copy, Some(&data), &options)?;
                    replica = Some(Replica::new(target)?);
                }
                source.restart(&options)?;
                (source, sysbench)
            }
        };
        lab.interrupt.check()?;
        sysbench.make_ready(&mut source, threads)?;
        source.prepare_semi_sync(WaitPoint::AfterSync)?;
        (lab.say)("warming up");
        let seconds = order.settings.get("seconds")?;
        if let Some(replica) = &mut replica {
            sysbench.read_through(replica.target(), &lab.interrupt)?;
        }
        sysbench.warm_up(&mut source, workload.script(), threads, seconds, &lab.interrupt)?;
        Ok(Stage { replica, source, sysbench, workload, seconds, lab: lab.clone(), folders })
    }
}

/// A cell in its turn.
struct Turn<'a> {
    stage: &'a mut Stage,
    configuration: Configuration,
    threads: u32,
}

impl Window for Turn<'_> {
    type Source = Target;
    type Attached = Attachment;
    type Outcome = Outcome;

    fn source(&mut self) -> &mut Target {
        &mut self.stage.source
    }

    fn semi_sync(&self) -> bool {
        self.configuration != Configuration::Alone
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let is_relaxed = self.configuration == Configuration::Relaxed;
        let (sync_binlog, flush) = if is_relaxed { ("0", "2") } else { ("1", "1") };
        [("sync_binlog", sync_binlog), ("innodb_flush_log_at_trx_commit", flush)]
            .map(|(name, value)| (name, value.to_owned()))
            .to_vec()
    }

    fn attach(&mut self, place: &Place) -> anyhow::Result<Attachment> {
        let Stage { replica, source, lab, folders, .. } = &mut *self.stage;
        let dir = folders.receivers();
        let mut binlogd = |fsync_mode, tls| {
            let options = Options { fsync_mode, semi_sync: true, tls };
            Binlogd::attach(lab, source, options, dir).map(|one| Attachment::Binlogd(Box::new(one)))
        };
        Ok(match self.configuration {
            Configuration::Alone => Attachment::Nothing,
            Configuration::Relaxed => binlogd(1, false)?,
            Configuration::Binlogd { fsync_mode, tls } => binlogd(fsync_mode, tls)?,
            Configuration::Replica { sync_relay_log, applying } => {
                let behaviour = Behaviour { sync_relay_log, applying, semi_sync: true };
                replica.as_mut().context("no replica was started")?.attach(source, place, behaviour)?;
                Attachment::Replica(Box::new(replica.take().context("no replica was started")?))
            }
            Configuration::Yardstick(yardstick) => {
                Attachment::Program(yardstick.attach(lab, source, place, dir)?)
            }
        })
    }

    fn not_in_force(&mut self, attachment: &mut Attachment) -> anyhow::Result<Option<String>> {
        let semi_sync = self.semi_sync();
        attachment.not_in_force(&mut self.stage.source, semi_sync)
    }

    fn complaint(&mut self, attachment: &mut Attachment) -> String {
        format!("the receiver: {}", attachment.complaint())
    }

    fn usage(&mut self, attachment: &mut Attachment) -> anyhow::Result<Option<Usage>> {
        attachment.usage()
    }

    fn load(&mut self, _: &mut Attachment) -> anyhow::Result<Outcome> {
        let Stage { source, sysbench, workload, seconds, lab, .. } = &mut *self.stage;
        sysbench.load(source, workload.script(), self.threads, *seconds, &lab.interrupt)
    }

    fn read_back(
        &mut self,
        attachment: &mut Attachment,
        outcome: Outcome,
        readings: &Readings,
        measured: &mut Measured,
    ) -> anyhow::Result<()> {
        let Stage { source, seconds, .. } = &mut *self.stage;
        outcome.keep(measured);
        let acknowledgements = readings.keep(measured);
        if acknowledgements > 0 {
            let each = outcome.transactions as f64 / acknowledgements as f64;
            measured.put("transactions_an_acknowledgement", each);
        }
        let (before, after) = (&readings.before, &readings.after);
        // sysbench connects and prepares its statements first; nobody has much to do then.
        let cores = |before: &Usage, after: &Usage| {
            let used = after.since(before);
            used.processor_seconds / used.seconds.min(*seconds as f64)
        };
        if let (Some(before), Some(after)) = (&before.receiver, &after.receiver) {
            measured.put("receiver_cores", cores(before, after));
            measured.put("receiver_mib", after.resident_mib());
        }
        if let (Some(before), Some(after)) = (&before.source, &after.source) {
            measured.put("source_cores", cores(before, after));
        }
        if let (Attachment::Replica(replica), Configuration::Replica { applying: true, .. }) =
            (attachment, self.configuration)
        {
            let end = source.log_end()?;
            measured.put("receiver_behind_mib", replica.behind(source, &end)? as f64 / f64::from(1 << 20));
        }
        Ok(())
    }

    fn detach(&mut self, attachment: Attachment) -> anyhow::Result<()> {
        match attachment {
            Attachment::Replica(mut replica) => {
                // A replica that refuses to stop is found when it is to be attached again.
                let _ = replica.detach();
                self.stage.replica = Some(*replica);
            }
            // Ended here, before the source is waited for.
            ended => drop(ended),
        }
        let Stage { source, lab, .. } = &mut *self.stage;
        source.drop_dumps(&lab.interrupt)
    }
}

impl crate::study::Stage for Stage {
    fn facts(&mut self) -> anyhow::Result<Vec<Fact>> {
        let mut facts = self.source.facts()?;
        if let Some(replica) = &mut self.replica {
            let of_replica = replica.target().facts()?.into_iter();
            facts.extend(
                of_replica.map(|fact| Fact { about: fact.about.replacen("server", "replica", 1), ..fact }),
            );
        }
        facts.push(self.sysbench.fact(self.workload.script()));
        Ok(facts)
    }

    fn measure(&mut self, point: &Point, _round: u32) -> anyhow::Result<Measured> {
        let configuration = (&point.configuration).try_into()?;
        let interrupt = self.lab.interrupt.clone();
        measure_window(&mut Turn { stage: self, configuration, threads: point.threads }, &interrupt)
    }
}

/// Nothing is measured while the tables are filled, and a small redo log is quicker to copy.
fn filling(buffer_pool_mib: u32) -> Vec<String> {
    vec![
        "--sync-binlog=0".to_owned(),
        "--innodb-flush-log-at-trx-commit=2".to_owned(),
        format!("--innodb-buffer-pool-size={buffer_pool_mib}M"),
    ]
}

/// Of InnoDB.
fn memory(dialect: Dialect, buffer_pool_mib: u32) -> Vec<String> {
    vec![format!("--innodb-buffer-pool-size={buffer_pool_mib}M"), dialect.redo_log_option(REDO_LOG_MIB)]
}

/// Of source and replica.
fn running(dialect: Dialect, buffer_pool_mib: u32, threads: u32) -> Vec<String> {
    let mut options = memory(dialect, buffer_pool_mib);
    options.extend([
        "--binlog-format=ROW".to_owned(),
        format!("--max-connections={}", threads + 20),
        // sysbench prepares every statement for every table in every thread.
        "--max-prepared-stmt-count=1000000".to_owned(),
        "--sync-binlog=1".to_owned(),
        "--innodb-flush-log-at-trx-commit=1".to_owned(),
    ]);
    if dialect.kind() == ServerKind::MySql {
        options.extend(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"].map(str::to_owned));
    }
    options
}
