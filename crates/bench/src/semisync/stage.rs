//! All servers of a run: made, filled, and kept running until the end.

use super::attachment::Receivers;
use super::configuration::Configuration;
use super::go_mysqlbinlog;
use super::replica::Replica;
use super::source::{Dialect, Source};
use super::sysbench::Sysbench;
use super::{SemisyncArgs, Workload};
use rig::interrupt::Interrupt;
use rig::server::Server;
use std::time::Instant;

/// Longer than any cell's hiccup, so that the source does not give up waiting unnoticed, and short enough that a
/// receiver which acknowledges nothing does not hold up the run.
const SEMI_SYNC_TIMEOUT_MS: u32 = 10_000;
/// The first load after a start fills caches; it is not counted.
const WARM_UP_SECONDS: u64 = 3;
const WARM_UP_THREADS: u32 = 8;

/// What a run works with. Dropping it stops everything and removes its folder.
#[derive(Debug)]
pub struct Stage {
    /// The source.
    pub source: Source,
    /// The others.
    pub receivers: Receivers,
    /// The load.
    pub sysbench: Sysbench,
    /// Ctrl-C.
    pub interrupt: Interrupt,
    /// The words of the servers.
    pub dialect: Dialect,
    configurations: Vec<Configuration>,
    // Last: removed when the servers in it are gone.
    _dir: tempfile::TempDir,
}

impl Stage {
    /// Starts the source, fills it, starts replicas on copies of its data, and warms the source up.
    ///
    /// # Errors
    /// When a server or sysbench does not work, and when the run is broken off. A go-mysqlbinlog that cannot be built
    /// is left out, and said so.
    pub fn set_up(args: &SemisyncArgs, interrupt: Interrupt) -> anyhow::Result<Stage> {
        let began = Instant::now();
        let say = |what: &str| eprintln!("{:4.0} s  {what}", began.elapsed().as_secs_f64());
        let (name, dialect) = (args.server.name(), args.server.dialect());
        let mut configurations = args.receivers.clone();
        configurations.sort();
        configurations.dedup();
        let go_mysqlbinlog = if configurations.contains(&Configuration::GoMysqlbinlog) {
            say("building go-mysqlbinlog, unless it is there");
            go_mysqlbinlog::build(&args.dir)
                .inspect_err(|error| eprintln!("go-mysqlbinlog is left out: {error:#}"))
                .ok()
        } else {
            None
        };
        configurations.retain(|one| *one != Configuration::GoMysqlbinlog || go_mysqlbinlog.is_some());
        let dir = tempfile::Builder::new().prefix("bench-semisync-").tempdir_in(&args.dir)?;
        interrupt.check()?;

        say(&format!("starting {name} and filling {} tables of {} rows", args.tables, args.rows));
        let start = |folder: &str, from: Option<&Server>, options: &[String]| {
            let server = Server::start(&args.scripts, name, dir.path().join(folder), from, options)?;
            interrupt.check()?;
            anyhow::Ok(server)
        };
        let mut source = start("source", None, &filling_options())?;
        let log = dir.path().join("sysbench.log");
        let sysbench = Sysbench::new(&args.scripts, source.port(), args.tables, args.rows, log)?;
        source.session()?.query("CREATE DATABASE sbtest")?;
        source.session()?.query("CREATE TABLE sbtest.probe (a INT PRIMARY KEY, b INT)")?;
        sysbench.prepare(&interrupt)?;
        source.session()?.query(dialect.reset_logs())?;
        source.stop()?;
        interrupt.check()?;

        let replica = |folder: &str, source: &Server| {
            let server = start(folder, Some(source), &replica_options(dialect, args.relaxed))?;
            Replica::new(server, dialect)
        };
        let needs = |wanted: &[Configuration]| wanted.iter().any(|one| configurations.contains(one));
        let (mut receiving, mut applying) = (None, None);
        if needs(&[Configuration::ReplicaSynced, Configuration::ReplicaUnsynced]) {
            say("starting a replica on a copy, to receive only");
            receiving = Some(replica("receiving", &source)?);
        }
        if needs(&[Configuration::ReplicaApplying]) {
            say("starting a replica on a copy, to apply");
            applying = Some(replica("applying", &source)?);
        }
        say("starting the source again and warming it up");
        source.restart(&source_options(dialect, args.relaxed))?;
        sysbench.load(Workload::OltpReadWrite.name(), WARM_UP_THREADS, WARM_UP_SECONDS, &interrupt)?;
        let receivers = Receivers {
            binlogd: args.binlogd.clone(),
            go_mysqlbinlog,
            receiving,
            applying,
            dir: dir.path().to_owned(),
        };
        say("measuring");
        let source = Source::new(source, dialect)?;
        Ok(Stage { source, receivers, sysbench, interrupt, dialect, configurations, _dir: dir })
    }

    /// What is measured, in order.
    pub fn configurations(&self) -> &[Configuration] {
        &self.configurations
    }
}

fn options(options: &[&str]) -> Vec<String> {
    options.iter().map(|option| (*option).to_owned()).collect()
}

/// Nothing is measured while the tables are filled, and a small redo log is quicker to copy.
fn filling_options() -> Vec<String> {
    options(&["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=1G"])
}

/// Of source and replicas.
fn common_options(dialect: Dialect, relaxed: bool) -> Vec<String> {
    let mut all = options(&["--binlog-format=ROW", "--innodb-buffer-pool-size=1G", "--max-connections=300"]);
    // sysbench prepares every statement for every table in every thread.
    all.extend(options(&["--max-prepared-stmt-count=1000000"]));
    all.extend(options(match relaxed {
        true => &["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"],
        false => &["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"],
    }));
    // GTIDs are always on in MariaDB.
    all.extend(options(match dialect {
        Dialect::Mysql => {
            &["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--innodb-redo-log-capacity=2G"]
        }
        Dialect::Mariadb => &["--innodb-log-file-size=1G"],
    }));
    all
}

fn source_options(dialect: Dialect, relaxed: bool) -> Vec<String> {
    let prefix = dialect.source_prefix().replace('_', "-");
    let mut all = common_options(dialect, relaxed);
    all.push(format!("--{prefix}timeout={SEMI_SYNC_TIMEOUT_MS}"));
    all.push(format!("--{prefix}wait-point=AFTER_SYNC"));
    all
}

fn replica_options(dialect: Dialect, relaxed: bool) -> Vec<String> {
    let mut all = common_options(dialect, relaxed);
    // What other receivers took is missing here, so rows may be absent or there already. As many appliers in
    // MariaDB as MySQL has unless it is told otherwise.
    all.extend(options(match dialect {
        Dialect::Mysql => &["--rpl-semi-sync-replica-enabled=1", "--replica-exec-mode=IDEMPOTENT"],
        Dialect::Mariadb => {
            &["--rpl-semi-sync-slave-enabled=1", "--slave-exec-mode=IDEMPOTENT", "--slave-parallel-threads=4"]
        }
    }));
    all.extend(options(&["--relay-log=relay"]));
    all
}
