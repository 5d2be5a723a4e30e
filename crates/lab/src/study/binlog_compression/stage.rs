//! The servers of the scene, all running, and how a cell is measured on one of them.

use super::probe;
use crate::lab::Lab;
use crate::load::sysbench::{Outcome, Sysbench};
use crate::machine::folders::Folders;
use crate::model::{Fact, Measured, Order, ServerChoice};
use crate::point::binlog_compression::{Compression, Configuration, KINDS, LEVEL, variables};
use crate::point::{Condition, Point};
use crate::receiver::Attachment;
use crate::receiver::binlogd::{Binlogd, Counters, Options};
use crate::server::Target;
use crate::server::dialect::Dialect;
use crate::window::{Place, Readings, Window, measure_window};
use anyhow::Context;
use codec::ServerKind;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const WORKLOAD: &str = "oltp_read_write";
/// Seconds of a load that is not counted where the cell before was on another server: this one has rested meanwhile.
const ROUSE_SECONDS: u64 = 1;
const REDO_LOG_MIB: u32 = 1024;
/// Longest wait until binlogd has received the last of what a load has written.
const DRAIN_MAX: Duration = Duration::from_secs(60);

/// A scene that is set up.
#[derive(Debug)]
pub struct Stage {
    // Dropped in this order: the folder goes when the servers in it are gone.
    sources: Vec<Source>,
    /// The server of the cell before.
    last: String,
    seconds: u64,
    lab: Lab,
    folders: Folders,
}

/// A server with its tables.
#[derive(Debug)]
struct Source {
    target: Target,
    sysbench: Sysbench,
    /// Why levels of zstd cannot be measured on it.
    without_levels: Option<String>,
}

impl Stage {
    /// Starts all servers, fills them and warms them up.
    pub fn set_up(order: &Order, servers: &[ServerChoice], lab: &Lab) -> anyhow::Result<Stage> {
        let folders = Folders::of(lab, "binlog-compression")?;
        let threads = order.settings.list::<u32>("threads")?.into_iter().max().context("no threads")?;
        let seconds = order.settings.get("seconds")?;
        let mut sources = Vec::new();
        for server in servers {
            let (mut target, sysbench) = source(order, server, lab, &folders, threads)?;
            sysbench.make_ready(&mut target, threads)?;
            probe::prepare(&mut target)?;
            // Its own waiting for a receiver is not what is measured.
            target.set_semi_sync(false)?;
            target.set("sync_binlog", "1")?;
            target.set("innodb_flush_log_at_trx_commit", "1")?;
            let without_levels = match target.dialect().compresses_transactions() {
                true => probe::level_without_effect(&mut target)?,
                false => None,
            };
            sysbench.warm_up(&mut target, WORKLOAD, threads, seconds, &lab.interrupt)?;
            sources.push(Source { target, sysbench, without_levels });
        }
        Ok(Stage { sources, last: String::new(), seconds, lab: lab.clone(), folders })
    }
}

/// One server, with its tables.
fn source(
    order: &Order,
    server: &ServerChoice,
    lab: &Lab,
    folders: &Folders,
    threads: u32,
) -> anyhow::Result<(Target, Sysbench)> {
    let fill = |source: &mut Target| Sysbench::filled(lab, source, order, folders.path());
    match server {
        ServerChoice::Url(url) => {
            let mut source = Target::attach(lab, url)?;
            let sysbench = fill(&mut source)?;
            Ok((source, sysbench))
        }
        ServerChoice::Own(name) => {
            (lab.say)(&format!("starting {name}"));
            let buffer_pool_mib: u32 = order.settings.get("buffer_pool_mib")?;
            let relaxed = ["--sync-binlog=0".to_owned(), "--innodb-flush-log-at-trx-commit=2".to_owned()];
            let mut source = Target::start(lab, name, folders.source().join(name), None, &relaxed)?;
            let dialect = source.dialect();
            source.create_database()?;
            let sysbench = fill(&mut source)?;
            source.query(dialect.reset_logs())?;
            source.stop()?;
            source.restart(&options(dialect, buffer_pool_mib, threads))?;
            Ok((source, sysbench))
        }
    }
}

/// The same for every version, so that their defaults do not make the difference.
fn options(dialect: Dialect, buffer_pool_mib: u32, threads: u32) -> Vec<String> {
    let mut options = vec![
        "--binlog-format=ROW".to_owned(),
        "--binlog-row-image=FULL".to_owned(),
        "--character-set-server=utf8mb4".to_owned(),
        format!("--innodb-buffer-pool-size={buffer_pool_mib}M"),
        format!("--max-connections={}", threads + 20),
        "--max-prepared-stmt-count=1000000".to_owned(),
        "--innodb-flush-method=O_DIRECT".to_owned(),
        dialect.redo_log_option(REDO_LOG_MIB),
    ];
    if dialect.kind() == ServerKind::MySql {
        options.extend(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"].map(str::to_owned));
    }
    options
}

impl crate::study::Stage for Stage {
    fn facts(&mut self) -> anyhow::Result<Vec<Fact>> {
        let mut facts = Vec::new();
        for source in &mut self.sources {
            facts.extend(source.target.facts()?);
            facts.push(source.sysbench.fact(WORKLOAD));
        }
        facts.dedup();
        Ok(facts)
    }

    fn measure(&mut self, point: &Point, _round: u32) -> anyhow::Result<Measured> {
        let configuration = Configuration::try_from(&point.configuration)?;
        let Stage { sources, last, seconds, lab, folders } = self;
        let found = sources.iter_mut().find(|source| source.target.name() == configuration.server);
        let source = found.context("the server was not started")?;
        let attached = point.panel.condition == Condition::BinlogdAttached;
        let (threads, seconds, dir) = (point.threads, *seconds, folders.receivers());
        let interrupt = lab.interrupt.clone();
        measure_window(
            &mut Turn { source, configuration, attached, threads, seconds, last, lab, dir },
            &interrupt,
        )
    }
}

/// A cell in its turn.
struct Turn<'a> {
    source: &'a mut Source,
    configuration: Configuration,
    /// binlogd receives.
    attached: bool,
    threads: u32,
    seconds: u64,
    last: &'a mut String,
    lab: &'a Lab,
    dir: &'a Path,
}

/// What a load came to, and what was counted before it.
struct Loaded {
    outcome: Outcome,
    statements: BTreeMap<String, u64>,
    /// binlogd's, if it is attached.
    counters: Option<Counters>,
}

impl Window for Turn<'_> {
    type Source = Target;
    type Attached = Attachment;
    type Outcome = Loaded;

    fn source(&mut self) -> &mut Target {
        &mut self.source.target
    }

    /// The Maven builds of 8.0 come without it.
    fn semi_sync(&self) -> bool {
        false
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        vec![("sync_binlog", "1".to_owned()), ("innodb_flush_log_at_trx_commit", "1".to_owned())]
    }

    fn prepare(&mut self) -> anyhow::Result<Option<String>> {
        let compression = self.configuration.compression;
        let Source { target, sysbench, without_levels } = &mut *self.source;
        if let (Compression::Zstd(level), Some(reason)) = (compression, without_levels)
            && level != LEVEL
        {
            return Ok(Some(reason.clone()));
        }
        for (name, value) in variables(compression, target.dialect().kind())? {
            if let Err(error) = target.set(name, &value) {
                return Ok(Some(format!("{} cannot compress: {error:#}", target.name())));
            }
        }
        let wrong = not_compressing(target, compression)?;
        if wrong.is_none() && *self.last != self.configuration.server {
            sysbench.load(target, WORKLOAD, self.threads, ROUSE_SECONDS, &self.lab.interrupt)?;
            self.last.clone_from(&self.configuration.server);
        }
        Ok(wrong)
    }

    fn attach(&mut self, _: &Place) -> anyhow::Result<Attachment> {
        if !self.attached {
            return Ok(Attachment::Nothing);
        }
        let options = Options { fsync_mode: 1, semi_sync: false, tls: false };
        let binlogd = Binlogd::attach(self.lab, &mut self.source.target, options, self.dir)?;
        Ok(Attachment::Binlogd(Box::new(binlogd)))
    }

    fn not_in_force(&mut self, attachment: &mut Attachment) -> anyhow::Result<Option<String>> {
        attachment.not_in_force(&mut self.source.target, false)
    }

    fn complaint(&mut self, attachment: &mut Attachment) -> String {
        attachment.complaint()
    }

    fn load(&mut self, attachment: &mut Attachment) -> anyhow::Result<Loaded> {
        let Source { target, sysbench, .. } = &mut *self.source;
        let counters = match attachment {
            Attachment::Binlogd(binlogd) => Some(binlogd.counters()?),
            _ => None,
        };
        let statements = statements(target)?;
        let outcome = sysbench.load(target, WORKLOAD, self.threads, self.seconds, &self.lab.interrupt)?;
        Ok(Loaded { outcome, statements, counters })
    }

    fn read_back(
        &mut self,
        attachment: &mut Attachment,
        loaded: Loaded,
        readings: &Readings,
        measured: &mut Measured,
    ) -> anyhow::Result<()> {
        let Loaded { outcome, statements, counters } = loaded;
        let statements_after = self::statements(&mut self.source.target)?;
        outcome.keep(measured);
        let transactions = outcome.transactions.max(1) as f64;
        // The load's own seconds, without connecting: transactions by their rate.
        let load_seconds = outcome.transactions as f64 / outcome.tps.max(f64::MIN_POSITIVE);
        for kind in KINDS {
            let count = |statements: &BTreeMap<String, u64>| statements.get(kind).copied().unwrap_or(0);
            let count = count(&statements_after).saturating_sub(count(&statements));
            measured.put(kind, count as f64 / load_seconds);
        }
        let bytes = readings.log_bytes() as f64;
        measured.put("binlog_bytes", bytes);
        measured.put("binlog_bytes_a_transaction", bytes / transactions);
        if let (Some(before), Some(after)) = (&readings.before.source, &readings.after.source) {
            let used = after.since(before);
            measured.put("source_cores", used.processor_seconds / used.seconds.min(load_seconds));
            measured.put("source_us_a_transaction", used.processor_seconds * 1e6 / transactions);
        }
        if let (Some(before), Attachment::Binlogd(binlogd)) = (counters, attachment) {
            match drained(binlogd, &before, outcome.transactions, self.lab)? {
                Ok(after) => {
                    let network = (after.bytes_received - before.bytes_received) as f64;
                    let disk = (after.bytes_written - before.bytes_written) as f64;
                    measured.put("network_bytes_a_transaction", network / transactions);
                    measured.put("binlogd_bytes_a_transaction", disk / transactions);
                    // Every byte of the log, and nothing but the log.
                    if disk != bytes {
                        measured
                            .refuse(format!("the source wrote {bytes} bytes of log, binlogd stored {disk}"));
                    }
                }
                Err(wrong) => measured.refuse(wrong),
            }
        }
        if let Some(wrong) = not_compressing(&mut self.source.target, self.configuration.compression)? {
            measured.refuse(format!("after the load: {wrong}"));
        }
        Ok(())
    }

    fn detach(&mut self, attachment: Attachment) -> anyhow::Result<()> {
        drop(attachment);
        self.source.target.drop_dumps(&self.lab.interrupt)
    }
}

/// binlogd's counters once it has stored that many transactions since `before`; or why it has not.
fn drained(
    binlogd: &mut Binlogd,
    before: &Counters,
    transactions: u64,
    lab: &Lab,
) -> anyhow::Result<Result<Counters, String>> {
    let mut last = *before;
    let done = lab.interrupt.wait(DRAIN_MAX, || {
        last = binlogd.counters()?;
        Ok((last.transactions - before.transactions >= transactions).then_some(()))
    })?;
    let stored = last.transactions - before.transactions;
    Ok(done.map(|()| last).ok_or(format!("binlogd stored {stored} of {transactions} transactions")))
}

/// `Com_select` and the others by kind.
fn statements(source: &mut Target) -> anyhow::Result<BTreeMap<String, u64>> {
    let names = KINDS.map(|kind| format!("'Com_{kind}'")).join(", ");
    let rows = source.query(&format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({names})"))?;
    let pair = |row: usize| {
        let name = rows.get(row, "Variable_name")?.to_ascii_lowercase();
        Some((name.strip_prefix("com_")?.to_owned(), rows.get(row, "Value")?.parse().ok()?))
    };
    Ok((0..rows.rows.len()).filter_map(pair).collect())
}

/// What is not as the configuration says, by the server's own word and by what it writes: its log is on, and compressed
/// or not.
fn not_compressing(source: &mut Target, compression: Compression) -> anyhow::Result<Option<String>> {
    if source.variable("log_bin")?.as_deref() != Some("ON") {
        return Ok(Some("the server writes no binary log".to_owned()));
    }
    let switch = match source.dialect().kind() {
        ServerKind::MySql => "binlog_transaction_compression",
        ServerKind::MariaDb => "log_bin_compress",
    };
    let (on, level) =
        (source.variable(switch)?, source.variable("binlog_transaction_compression_level_zstd")?);
    let right = match compression {
        Compression::Absent => on.is_none(),
        Compression::Off => on.as_deref() == Some("OFF"),
        Compression::Events => on.as_deref() == Some("ON"),
        Compression::Zstd(wanted) => {
            on.as_deref() == Some("ON") && level.as_deref() == Some(wanted.to_string().as_str())
        }
    };
    let shown = |value: Option<String>| value.unwrap_or_else(|| "absent".to_owned());
    if !right {
        return Ok(Some(format!("{switch} is {}, its level {}", shown(on), shown(level))));
    }
    probe::contradiction(source, compression)
}
