//! The whole system on real servers: what a source with semi-sync comes to with different receivers.
//!
//! A block is one workload with one number of threads in one round; in it every receiver has its turn, one right after
//! the other. Ratios are made within a block. Servers run throughout, a cell attaches a receiver, loads, and detaches.
//!
//! | file | noun |
//! |---|---|
//! | `configuration.rs` | what may be attached |
//! | `source.rs` | the source: semi-sync, its log, who reads it |
//! | `replica.rs`, `go_mysqlbinlog.rs` | receivers that need more than a start |
//! | `attachment.rs` | a receiver while it is attached |
//! | `stage.rs` | all servers of a run, set up |
//! | `sysbench.rs` | the load |
//! | `measure.rs` | one cell, and whether it counts |
//! | `cell.rs` | what is kept of it |
//! | `block.rs`, `report.rs`, `goals.rs` | what is made of the cells |

pub mod attachment;
pub mod block;
pub mod cell;
pub mod configuration;
pub mod go_mysqlbinlog;
pub mod goals;
pub mod measure;
pub mod replica;
pub mod report;
pub mod source;
pub mod stage;
pub mod sysbench;

use self::cell::{Cell, Cells, Setting};
use self::configuration::Configuration;
use self::source::Dialect;
use self::stage::Stage;
use crate::cli::Common;
use anyhow::Context;
use rig::interrupt::Interrupt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A server that `scripts/servers` knows and that has semi-sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ServerName {
    /// MySQL 9.7.
    #[value(name = "mysql-9.7")]
    Mysql97,
    /// MariaDB 11.8.
    #[value(name = "mariadb-11.8")]
    Mariadb118,
}

impl ServerName {
    /// As `scripts/servers` names it.
    pub fn name(self) -> &'static str {
        match self {
            ServerName::Mysql97 => "mysql-9.7",
            ServerName::Mariadb118 => "mariadb-11.8",
        }
    }

    /// Its words.
    pub fn dialect(self) -> Dialect {
        match self {
            ServerName::Mysql97 => Dialect::Mysql,
            ServerName::Mariadb118 => Dialect::Mariadb,
        }
    }
}

/// A stock workload of sysbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Workload {
    /// One UPDATE a transaction.
    OltpUpdateNonIndex,
    /// 14 SELECTs and 4 writes a transaction.
    OltpReadWrite,
}

impl Workload {
    /// sysbench's name.
    pub fn name(self) -> &'static str {
        match self {
            Workload::OltpUpdateNonIndex => "oltp_update_non_index",
            Workload::OltpReadWrite => "oltp_read_write",
        }
    }
}

/// Arguments of `binlogd-bench semisync`.
#[derive(Debug, Clone, clap::Args)]
pub struct SemisyncArgs {
    /// The source, and the real replicas.
    #[arg(long, value_enum, default_value = "mysql-9.7")]
    pub server: ServerName,
    /// Servers with sync_binlog 0 and innodb_flush_log_at_trx_commit 2, instead of 1 and 1.
    #[arg(long)]
    pub relaxed: bool,
    /// Workloads of sysbench.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["oltp_update_non_index", "oltp_read_write"])]
    pub workloads: Vec<Workload>,
    /// Threads of sysbench.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 8, 32, 64, 128],
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Vec<u32>,
    /// Receivers; default: all.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Configuration::ALL)]
    pub receivers: Vec<Configuration>,
    /// Seconds of load of a cell.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// How often everything is measured.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Tables of sysbench.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub tables: u32,
    /// Rows of each table.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub rows: u32,
    /// The binary under test, built for release.
    #[arg(long, default_value = "target/release/binlogd")]
    pub binlogd: PathBuf,
    /// The script that fetches and starts servers.
    #[arg(long, default_value = "scripts/servers")]
    pub scripts: PathBuf,
    /// Folder on the disk to use; a temporary folder is made in it and removed.
    #[arg(long, default_value = "target")]
    pub dir: PathBuf,
    /// File to append every cell to, one JSON object a line.
    #[arg(long, default_value = "target/bench-semisync.jsonl")]
    pub out: PathBuf,
    /// Measure nothing: print the report of these files again.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub report: Vec<PathBuf>,
}

impl SemisyncArgs {
    /// What must be there before anything is measured; nothing for a report.
    pub fn common(&self) -> Option<Common> {
        let common = Common { binlogd: self.binlogd.clone(), rounds: self.rounds, dir: self.dir.clone() };
        self.report.is_empty().then_some(common)
    }

    fn settings(&self) -> Vec<Setting> {
        let setting = |workload: &Workload, threads: &u32| Setting {
            server: self.server.name().to_owned(),
            relaxed: self.relaxed,
            workload: workload.name().to_owned(),
            threads: *threads,
        };
        let each = |workload| self.threads.iter().map(move |threads| setting(workload, threads));
        self.workloads.iter().flat_map(each).collect()
    }
}

/// Measures and reports, or only reports.
///
/// # Errors
/// When the servers do not work, and when the run is broken off. A receiver that does not work makes cells invalid.
pub fn run(args: &SemisyncArgs) -> anyhow::Result<()> {
    let mut cells = Vec::new();
    for file in &args.report {
        cells.extend(Cells::read(file)?);
    }
    if args.report.is_empty() {
        let kept = || format!("what was measured so far is in {}", args.out.display());
        cells = measure_all(args).with_context(kept)?;
    }
    report::print(&cells);
    goals::print(&cells);
    Ok(())
}

fn measure_all(args: &SemisyncArgs) -> anyhow::Result<Vec<Cell>> {
    let interrupt = Interrupt::install()?;
    let mut file = Cells::append_to(&args.out)?;
    let mut stage = Stage::set_up(args, interrupt.clone())?;
    let configurations = stage.configurations().to_vec();
    let run = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let settings = args.settings();
    let count = args.rounds * settings.len() * configurations.len();
    let began = Instant::now();
    let mut cells = Vec::with_capacity(count);
    for round in 0..args.rounds {
        for setting in &settings {
            for configuration in configuration::order(&configurations, round) {
                let (numbers, invalid) = measure::measure(&mut stage, setting, configuration, args.seconds)?;
                let cell = Cell {
                    run,
                    round,
                    setting: setting.clone(),
                    configuration,
                    version: stage.source.version().to_owned(),
                    tables: args.tables,
                    rows: args.rows,
                    seconds: args.seconds,
                    invalid,
                    numbers,
                };
                file.push(&cell)?;
                cells.push(cell);
                progress(&cells, count, began.elapsed());
            }
        }
    }
    Ok(cells)
}

/// One line on standard error about the last cell.
fn progress(cells: &[Cell], count: usize, elapsed: Duration) {
    let Some(cell) = cells.last() else { return };
    let left = elapsed.mul_f64((count - cells.len()) as f64 / cells.len() as f64);
    let clock = |time: Duration| format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60);
    let numbers = cell.numbers.map_or_else(String::new, |numbers| {
        format!("{:.0} transactions/s, p95 {} ms", numbers.tps, numbers.p95_ms)
    });
    let invalid = cell.invalid.as_ref().map_or_else(String::new, |reason| format!(" INVALID: {reason}"));
    eprintln!(
        "cell {} of {count} · {} elapsed, about {} left · {} {} threads, {}: {numbers}{invalid}",
        cells.len(),
        clock(elapsed),
        clock(left),
        cell.setting.workload,
        cell.setting.threads,
        cell.configuration.title(),
    );
}
