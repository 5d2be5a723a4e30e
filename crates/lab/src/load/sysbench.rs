//! Stock sysbench and its stock workloads.

use super::dataset;
use super::times::{Histogram, Times};
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::machine::cpus::{Cpus, Role};
use crate::model::{Fact, Measured, Order};
use crate::program::run_to_end;
use crate::server::{DATABASE, Target, address};
use anyhow::{Context, ensure};
use rig::process::last_lines;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Longest time for preparing the tables: twenty million rows take half an hour on a slow disk.
const PREPARE_MAX: Duration = Duration::from_secs(4 * 3600);
/// Longest time for connecting, preparing statements and ending, beside the seconds of the load itself. Longer than the
/// source's patience with a receiver.
const EXTRA_MAX: Duration = Duration::from_secs(60);
/// Longest load that is not counted, in seconds.
const WARM_UP_SECONDS_MAX: u64 = 30;
/// With hundreds of threads two transactions now and then wait for each other's row, and one of them is repeated. That is part of
/// the load, and not felt while so many others stand beside it.
const TRANSACTIONS_AN_ERROR_MIN: u64 = 10_000;
/// Statements that oltp_read_write prepares for each table in each thread.
const STATEMENTS_A_TABLE: u64 = 9;

/// sysbench, its tables, and the server that holds them.
#[derive(Debug, Clone)]
pub struct Sysbench {
    program: PathBuf,
    /// Holds the account with its password: readable by us alone, and not in the list of processes.
    config: PathBuf,
    log: PathBuf,
    tables: u32,
    rows: u32,
    cpus: Cpus,
}

/// What a load came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Transactions that were committed.
    pub transactions: u64,
    /// The same a second.
    pub tps: f64,
    /// Statements a second, BEGIN and COMMIT too.
    pub qps: f64,
    /// How long they took. The percentiles are of sysbench's histogram, whose steps are 1.8 %; the longest is exact.
    pub times: Times,
    /// Statements that read.
    pub reads: u64,
    /// Statements that wrote.
    pub writes: u64,
    /// Other statements.
    pub others: u64,
    /// Transactions that failed and were repeated, such as after a deadlock.
    pub errors: u64,
    /// Connections that were lost and made again.
    pub reconnects: u64,
    /// Each second of the load.
    pub seconds: Vec<Second>,
}

/// One second of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Second {
    /// Transactions.
    pub tps: f64,
    /// Statements.
    pub qps: f64,
    /// Statements that read.
    pub reads: f64,
    /// Statements that wrote.
    pub writes: f64,
    /// Other statements.
    pub others: f64,
}

impl Sysbench {
    /// Finds the program through `scripts/servers`, for `tables` tables of `rows` rows in the lab's database on `target`.
    /// Its files go to `dir`.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn new(lab: &Lab, target: &Target, tables: u32, rows: u32, dir: &Path) -> anyhow::Result<Sysbench> {
        let account = target.account();
        let port = account.port;
        // A port alone may be that of two servers.
        let place = address::file_name(&address::place(account));
        let config = dir.join(format!("sysbench-{place}.cnf"));
        let mut file =
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&config)?;
        writeln!(file, "db-driver=mysql\nmysql-host={}\nmysql-port={port}", account.host)?;
        writeln!(file, "mysql-user={}\nmysql-db={DATABASE}", account.user)?;
        if !account.password.expose().is_empty() {
            writeln!(file, "mysql-password={}", quoted(account.password.expose())?)?;
        }
        let log = dir.join(format!("sysbench-{place}.log"));
        Ok(Sysbench {
            program: program(&lab.scripts)?,
            config,
            log,
            tables,
            rows,
            cpus: lab.apart.cpus.clone(),
        })
    }

    /// The same with tables as the order says, which are filled.
    ///
    /// # Errors
    /// As [`Sysbench::new`] and [`Sysbench::prepare`], and when the order has no sense.
    pub fn filled(lab: &Lab, target: &mut Target, order: &Order, dir: &Path) -> anyhow::Result<Sysbench> {
        let (tables, rows) = (order.settings.get("tables")?, order.settings.get("rows")?);
        (lab.say)(&format!("filling {tables} tables of {rows} rows on {}", target.name()));
        let sysbench = Sysbench::new(lab, target, tables, rows, dir)?;
        sysbench.prepare(target, &lab.interrupt)?;
        Ok(sysbench)
    }

    /// Makes and fills the tables.
    ///
    /// # Errors
    /// When sysbench fails or is broken off.
    pub fn prepare(&self, target: &mut Target, interrupt: &Interrupt) -> anyhow::Result<()> {
        let threads = format!("--threads={}", self.tables.min(4));
        self.run(target, &["oltp_read_write", &threads, "prepare"], PREPARE_MAX, interrupt).map(|_| ())
    }

    /// Makes the server ready for a load with `threads` threads, as [`Target::make_room`] does.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn make_ready(&self, target: &mut Target, threads: u32) -> anyhow::Result<()> {
        let statements = u64::from(self.tables) * u64::from(threads) * STATEMENTS_A_TABLE;
        target.make_room(threads, statements)
    }

    /// Reads all tables, and runs a load that is not counted, of a cell's threads and seconds (30 at most): the first
    /// cell must find what all others find.
    ///
    /// # Errors
    /// As [`Sysbench::load`].
    pub fn warm_up(
        &self,
        target: &mut Target,
        workload: &str,
        threads: u32,
        seconds: u64,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        self.read_through(target, interrupt)?;
        self.load(target, workload, threads, seconds.min(WARM_UP_SECONDS_MAX), interrupt).map(|_| ())
    }

    /// Reads all tables into the server's buffer pool.
    ///
    /// # Errors
    /// When the server refuses, and when the run is broken off.
    pub fn read_through(&self, target: &mut Target, interrupt: &Interrupt) -> anyhow::Result<()> {
        let tables = (1..=self.tables).map(|number| (format!("sbtest{number}"), "pad"));
        dataset::read_tables(target, tables, interrupt)
    }

    /// Runs a load. `more` are further options of the workload.
    ///
    /// # Errors
    /// When sysbench fails, hangs or is broken off, and when its report is not understood.
    pub fn load(
        &self,
        target: &mut Target,
        workload: &str,
        threads: u32,
        seconds: u64,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Outcome> {
        let arguments = [
            workload,
            &format!("--threads={threads}"),
            &format!("--time={seconds}"),
            "--events=0",
            "--report-interval=1",
            "--percentile=95",
            "--histogram=on",
            // Stock sysbench lets three quarters of all statements fall on a hundredth of the rows: in the small tables
            // of a short run they would meet there, and deadlocks are errors.
            "--rand-type=uniform",
            "run",
        ];
        let printed = self.run(target, &arguments, Duration::from_secs(seconds) + EXTRA_MAX, interrupt)?;
        parse(&printed).with_context(|| format!("sysbench said: {}", last_lines(&printed)))
    }

    /// What a run's facts say of the load.
    pub fn fact(&self, workload: &str) -> Fact {
        let Sysbench { tables, rows, .. } = self;
        let value = format!("stock {workload}, {tables} tables of {rows} rows, rand-type uniform");
        Fact::new("load", "sysbench", value)
    }

    fn run(
        &self,
        target: &mut Target,
        arguments: &[&str],
        longest: Duration,
        interrupt: &Interrupt,
    ) -> anyhow::Result<String> {
        let mut config = std::ffi::OsString::from("--config-file=");
        config.push(&self.config);
        let mut command = Command::new(&self.program);
        command
            .arg(config)
            .args([&format!("--tables={}", self.tables), &format!("--table-size={}", self.rows)])
            .args(arguments);
        let _pinned = self.cpus.pin(Role::Load)?;
        let done = run_to_end(&mut command, &self.log, longest, interrupt, |pid| target.started(pid));
        target.loaded(done)
    }
}

impl Outcome {
    /// Keeps qps, tps, times and each second, and refuses the cell where there were errors that could be felt.
    pub fn keep(&self, measured: &mut Measured) {
        measured.put("qps", self.qps);
        measured.put("tps", self.tps);
        self.times.put_into(measured, "");
        measured.put("transactions", self.transactions as f64);
        measured.put("errors", self.errors as f64);
        let series = |of: fn(&Second) -> f64| self.seconds.iter().map(of).collect();
        measured.series.insert("tps".to_owned(), series(|second| second.tps));
        measured.series.insert("qps".to_owned(), series(|second| second.qps));
        let are_felt = self.errors > self.transactions / TRANSACTIONS_AN_ERROR_MIN;
        if are_felt || self.reconnects > 0 {
            measured.refuse(format!("{} errors and {} reconnects", self.errors, self.reconnects));
        }
        if self.transactions == 0 {
            measured.refuse("no transaction was committed");
        }
    }
}

/// The program's path, from `scripts/servers`, which fetches it first where it is missing.
fn program(scripts: &Path) -> anyhow::Result<PathBuf> {
    let output = Command::new(scripts).arg("sysbench").stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", scripts.display()))?;
    ensure!(output.status.success(), "sysbench could not be fetched");
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// As sysbench reads a value of its configuration file: blanks end it, unless it stands in quotes of either kind.
fn quoted(value: &str) -> anyhow::Result<String> {
    let quote = ['"', '\''].into_iter().find(|quote| !value.contains(*quote));
    let quote = quote.context("sysbench cannot be given a password that holds both kinds of quotes")?;
    Ok(format!("{quote}{value}{quote}"))
}

fn parse(printed: &str) -> Option<Outcome> {
    let lines = || printed.lines().map(str::trim);
    let after = |head: &str| lines().find_map(|line| line.strip_prefix(head)).map(str::trim);
    let count = |head: &str| after(head)?.split_whitespace().next()?.parse::<u64>().ok();
    let rate = |head: &str| after(head)?.split_once('(')?.1.split_whitespace().next()?.parse::<f64>().ok();
    Some(Outcome {
        transactions: count("transactions:")?,
        tps: rate("transactions:")?,
        qps: rate("queries:")?,
        times: times(printed)?,
        reads: count("read:")?,
        writes: count("write:")?,
        others: count("other:")?,
        errors: count("ignored errors:")?,
        reconnects: count("reconnects:")?,
        seconds: lines().filter_map(second).collect(),
    })
}

/// sysbench gives one percentile; the others are of its histogram, which must hold every transaction.
fn times(printed: &str) -> Option<Times> {
    let lines = || printed.lines().map(str::trim);
    let after = |head: &str| lines().find_map(|line| line.strip_prefix(head)).map(str::trim);
    let steps = lines().skip_while(|line| !line.starts_with("Latency histogram")).skip(2);
    let steps: Option<Vec<(f64, u64)>> = steps.take_while(|line| line.contains('|')).map(step).collect();
    let histogram = Histogram::of(steps?)?;
    let events: u64 = after("total number of events:")?.parse().ok()?;
    if histogram.count() != events {
        return None;
    }
    let longest_ms: f64 = after("max:")?.parse().ok()?;
    // A step stands for what is up to 0.9 % shorter too.
    let percentile = |percent: f64| Some(histogram.percentile(percent)?.min(longest_ms));
    Some(Times {
        p50_ms: percentile(50.0)?,
        p95_ms: after("95th percentile:")?.parse().ok()?,
        p99_ms: percentile(99.0)?,
        p99_9_ms: percentile(99.9)?,
        longest_ms,
    })
}

/// `0.185 |****************************             3000`
fn step(line: &str) -> Option<(f64, u64)> {
    let (time, rest) = line.split_once('|')?;
    let count = rest.trim_start_matches('*').trim();
    Some((time.trim().parse().ok()?, count.parse().ok()?))
}

/// `[ 1s ] thds: 2 tps: 1.00 qps: 20.00 (r/w/o: 14.00/4.00/2.00) lat (ms,95%): 9.99 err/s: 0.00 reconn/s: 0.00`
fn second(line: &str) -> Option<Second> {
    let line = line.strip_prefix('[')?;
    let after = |head: &str| line.split_once(head)?.1.split([' ', ')']).next();
    let mut kinds = after("(r/w/o: ")?.split('/').map(str::parse);
    let mut kind = || kinds.next()?.ok();
    Some(Second {
        tps: after(" tps: ")?.parse().ok()?,
        qps: after(" qps: ")?.parse().ok()?,
        reads: kind()?,
        writes: kind()?,
        others: kind()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As sysbench 1.0.20 printed it.
    const PRINTED: &str = "\
[ 1s ] thds: 2 tps: 210.62 qps: 4228.27 (r/w/o: 2963.59/841.46/423.22) lat (ms,95%): 13.22 err/s: 1.00 reconn/s: 0.00
[ 2s ] thds: 2 tps: 190.00 qps: 3800.00 (r/w/o: 2660.00/760.00/380.00) lat (ms,95%): 13.95 err/s: 0.00 reconn/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       4.487 |**************************************** 150
       9.560 |************************************     130
      11.446 |************************                 90
      13.460 |*******                                  27
      15.268 |*                                        3
      29.194 |                                         1
 
SQL statistics:
    queries performed:
        read:                            5628
        write:                           1608
        other:                           804
        total:                           8040
    transactions:                        401    (200.11 per sec.)
    queries:                             8040   (4012.30 per sec.)
    ignored errors:                      1      (0.50 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          2.0039s
    total number of events:              401

Latency (ms):
         min:                                    4.45
         avg:                                    8.63
         max:                                   29.00
         95th percentile:                       13.46
";

    #[test]
    fn the_report_of_sysbench_is_understood() {
        let outcome = parse(PRINTED).unwrap();
        assert_eq!((outcome.transactions, outcome.tps, outcome.qps), (401, 200.11, 4012.3));
        let times = Times { p50_ms: 9.56, p95_ms: 13.46, p99_ms: 13.46, p99_9_ms: 29.0, longest_ms: 29.0 };
        assert_eq!(outcome.times, times);
        assert_eq!((outcome.reads, outcome.writes, outcome.others), (5628, 1608, 804));
        assert_eq!((outcome.errors, outcome.reconnects), (1, 0));
        let first = Second { tps: 210.62, qps: 4228.27, reads: 2963.59, writes: 841.46, others: 423.22 };
        assert_eq!((outcome.seconds.len(), outcome.seconds[0]), (2, first));
        assert_eq!(parse("FATAL: unable to connect"), None);
        assert_eq!(parse(&PRINTED.replace(" 27\n", " 26\n")), None, "a transaction that is in no step");
    }

    #[test]
    fn passwords_are_quoted_so_that_sysbench_reads_them_whole() {
        assert_eq!(quoted("p' # =x").unwrap(), "\"p' # =x\"");
        assert_eq!(quoted("p\"w x").unwrap(), "'p\"w x'");
        assert!(quoted("'\"").is_err());
    }

    #[test]
    fn a_load_with_errors_that_are_felt_does_not_count() {
        let mut measured = Measured::default();
        parse(PRINTED).unwrap().keep(&mut measured);
        assert_eq!(measured.invalid.as_deref(), Some("1 errors and 0 reconnects"));
        assert_eq!(measured.series["tps"], [210.62, 190.0]);
        let mut measured = Measured::default();
        Outcome { errors: 0, ..parse(PRINTED).unwrap() }.keep(&mut measured);
        assert_eq!(measured.invalid, None);
        assert_eq!(measured.values["qps"], 4012.3);
        // As many as hundreds of threads have, and a connection that was lost.
        let many = |errors, reconnects| {
            let mut measured = Measured::default();
            Outcome { transactions: 30_000, errors, reconnects, ..parse(PRINTED).unwrap() }
                .keep(&mut measured);
            measured.invalid.is_none()
        };
        assert!(many(3, 0) && !many(4, 0) && !many(0, 1));
    }
}
