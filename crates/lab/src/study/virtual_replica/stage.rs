//! The servers of a scene, and how a cell is measured on them.

use super::configuration::{Configuration, Receiver};
use crate::lab::Lab;
use crate::load::sysbench::Sysbench;
use crate::model::{Fact, Measured, Order, Point, ServerChoice};
use crate::receiver::replica::{self, Behaviour, Replica};
use crate::receiver::{Attachment, Binlogd, Usage};
use crate::server::Target;
use crate::server::dialect::Dialect;
use crate::server::semi_sync::{self, WaitPoint};
use crate::study::Scene;
use anyhow::Context;

const WORKLOAD: &str = "oltp_read_write";
const REDO_LOG_MIB: u32 = 2048;

/// A scene that is set up.
#[derive(Debug)]
pub struct Stage {
    // Dropped in this order: the folder goes when the servers in it are gone.
    replica: Option<Replica>,
    source: Target,
    sysbench: Sysbench,
    seconds: u64,
    lab: Lab,
    dir: tempfile::TempDir,
}

impl Stage {
    /// Starts the source, fills it, starts a replica on a copy of its data if the scene has one, and warms the source
    /// up. A user's server is not copied: there the replica receives what fills the tables.
    pub fn set_up(order: &Order, scene: &Scene, server: &ServerChoice, lab: &Lab) -> anyhow::Result<Stage> {
        let (tables, rows): (u32, u32) = (order.settings.get("tables")?, order.settings.get("rows")?);
        let buffer_pool_mib: u32 = order.settings.get("buffer_pool_mib")?;
        let threads = order.settings.list::<u32>("threads")?.into_iter().max().context("no threads")?;
        let dir = tempfile::Builder::new().prefix("virtual-replica-").tempdir_in(&lab.dir)?;
        let fill = |source: &mut Target| {
            (lab.say)(&format!("filling {tables} tables of {rows} rows on {}", source.name()));
            let sysbench = Sysbench::new(lab, source, tables, rows, dir.path())?;
            sysbench.prepare(source, &lab.interrupt)?;
            anyhow::Ok(sysbench)
        };
        let wanted = |name: &str| {
            matches!(Configuration::named(name).map(|one| one.receiver), Ok(Receiver::Replica(_)))
        };
        let with_replica = scene.cells.iter().any(|cell| wanted(&cell.point.configuration));
        let mut replica = None;
        let (mut source, sysbench) = match server {
            ServerChoice::Url(url) => {
                let mut source = Target::attach(lab, url)?;
                (lab.say)(&format!(
                    "{}: sync_binlog and innodb_flush_log_at_trx_commit will be 1, and 0 and 2 while the relaxed source is \
                     measured, when a crash would lose commits; afterwards they are set back",
                    source.name()
                ));
                if with_replica {
                    let options = memory(source.dialect(), buffer_pool_mib);
                    let started = Replica::beside(lab, &mut source, dir.path().join("replica"), &options);
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
                let mut source =
                    Target::start(lab, name, dir.path().join("source"), None, &filling(buffer_pool_mib))?;
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
                    let target =
                        Target::start(lab, name, dir.path().join("replica"), Some(&source), &options)?;
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
        sysbench.warm_up(&mut source, WORKLOAD, threads, seconds, &lab.interrupt)?;
        Ok(Stage { replica, source, sysbench, seconds, lab: lab.clone(), dir })
    }

    fn loaded(&mut self, point: &Point, configuration: Configuration) -> anyhow::Result<Measured> {
        let Stage { replica, source, sysbench, seconds, lab, dir } = self;
        let mut measured = Measured::default();
        let semi_sync = configuration.receiver != Receiver::Nothing;
        let place = source.begin_log()?;
        // Before the receiver comes: binlogd looks at it when it connects, and says so in its status.
        source.set_semi_sync(semi_sync)?;
        let attached = match configuration.receiver {
            Receiver::Nothing => Ok(Attachment::Nothing),
            Receiver::Binlogd(options) => Binlogd::attach(lab, source, options, dir.path())
                .map(|binlogd| Attachment::Binlogd(Box::new(binlogd))),
            Receiver::Replica(behaviour) => {
                let replica = replica.as_mut().context("no replica was started")?;
                replica.attach(source, &place, behaviour).map(|()| Attachment::Replica(replica))
            }
        };
        lab.interrupt.check()?;
        let mut attachment = match attached {
            Ok(attachment) => attachment,
            Err(error) => return Ok(Measured::invalid(format!("it does not start: {error:#}"))),
        };
        if let Some(wrong) = attachment.wait_in_force(source, semi_sync, &lab.interrupt)? {
            let complaint = attachment.complaint();
            return Ok(Measured::invalid(format!("before the load: {wrong}; the receiver: {complaint}")));
        }
        source.commit_probes()?;
        let (before, log_before) = (source.semi_sync()?, source.log_bytes()?);
        let source_before = source.pid().map(Usage::of).transpose()?;
        let used_before = attachment.usage();
        let outcome = sysbench.load(source, WORKLOAD, point.threads, *seconds, &lab.interrupt);
        let used = attachment.usage();
        let source_used = source.pid().map(Usage::of).transpose()?;
        lab.interrupt.check()?;
        let (after, log_bytes) = (source.semi_sync()?, source.log_bytes()?.saturating_sub(log_before));
        if let (Attachment::Replica(replica), Receiver::Replica(Behaviour { applying: true, .. })) =
            (&mut attachment, configuration.receiver)
        {
            let end = source.log_end()?;
            measured.put("receiver_behind_mib", replica.behind(source, &end)? as f64 / f64::from(1 << 20));
        }
        match outcome {
            Ok(outcome) => outcome.keep(&mut measured),
            Err(error) => measured.refuse(format!("{error:#}")),
        }
        // sysbench connects and prepares its statements first; nobody has much to do then.
        let cores = |before: &Usage, after: &Usage| {
            after.processor_seconds_since(before) / after.seconds_since(before).min(*seconds as f64)
        };
        match (used_before, used) {
            (Ok(Some(before)), Ok(Some(after))) => {
                measured.put("receiver_cores", cores(&before, &after));
                measured.put("receiver_mib", after.resident_mib());
            }
            (Err(error), _) | (_, Err(error)) => measured.refuse(format!("{error:#}")),
            _ => {}
        }
        if let (Some(before), Some(after)) = (&source_before, &source_used) {
            measured.put("source_cores", cores(before, after));
        }
        let waits = after.waits.saturating_sub(before.waits);
        if waits > 0 {
            let wait_us = after.wait_us.saturating_sub(before.wait_us);
            measured.put("source_wait_us", wait_us as f64 / waits as f64);
        }
        measured
            .put("acknowledgements", after.acknowledgements.saturating_sub(before.acknowledgements) as f64);
        measured.put("binlog_bytes", log_bytes as f64);
        if let Some(wrong) = attachment.not_in_force(source, semi_sync)? {
            measured.refuse(format!("after the load: {wrong}"));
        }
        if let Some(wrong) = semi_sync::not_acknowledged(semi_sync, &before, &after) {
            measured.refuse(wrong);
        }
        Ok(measured)
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
        facts.push(self.sysbench.fact(WORKLOAD));
        Ok(facts)
    }

    fn measure(&mut self, point: &Point, _round: u32) -> anyhow::Result<Measured> {
        let configuration = Configuration::named(&point.configuration)?;
        self.source.drop_dumps(&self.lab.interrupt)?;
        let (sync_binlog, flush) = if configuration.relaxed { ("0", "2") } else { ("1", "1") };
        let durability = [("sync_binlog", sync_binlog), ("innodb_flush_log_at_trx_commit", flush)];
        for (name, value) in durability {
            self.source.set(name, value)?;
        }
        let measured = self.loaded(point, configuration);
        self.lab.interrupt.check()?;
        self.source.drop_dumps(&self.lab.interrupt)?;
        let mut measured = measured?;
        if let Some(wrong) = self.source.is_not(&durability)? {
            measured.refuse(format!("after the load: {wrong}"));
        }
        Ok(measured)
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
    if !dialect.is_mariadb() {
        options.extend(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"].map(str::to_owned));
    }
    options
}
