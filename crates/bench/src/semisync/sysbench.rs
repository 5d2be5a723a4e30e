//! The load: stock sysbench and its stock workloads.

use anyhow::Context;
use rig::interrupt::Interrupt;
use rig::program::{last_lines, run_to_end};
use rig::sysbench::program;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest time for preparing the tables.
const PREPARE_MAX: Duration = Duration::from_secs(1800);
/// Longest time for connecting, preparing statements and ending, beside the seconds of the load itself. Longer than the
/// source's patience with a receiver.
const EXTRA_MAX: Duration = Duration::from_secs(60);

/// Where the database is, and how large.
#[derive(Debug, Clone)]
pub struct Sysbench {
    program: PathBuf,
    port: u16,
    tables: u32,
    rows: u32,
    log: PathBuf,
}

/// What a load came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Transactions that were committed.
    pub transactions: u64,
    /// The same a second.
    pub per_second: f64,
    /// 95 % of them took no longer, in ms.
    pub p95_ms: f64,
}

impl Sysbench {
    /// Finds the program through `scripts/servers`; what it prints goes to `log`.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn new(scripts: &Path, port: u16, tables: u32, rows: u32, log: PathBuf) -> anyhow::Result<Sysbench> {
        Ok(Sysbench { program: program(scripts)?, port, tables, rows, log })
    }

    /// Makes and fills the tables.
    ///
    /// # Errors
    /// When sysbench fails or is broken off.
    pub fn prepare(&self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let threads = self.tables.min(4).to_string();
        let arguments = ["oltp_update_non_index", &format!("--threads={threads}"), "prepare"];
        self.run(&arguments, PREPARE_MAX, interrupt).map(|_| ())
    }

    /// Runs a load.
    ///
    /// # Errors
    /// When sysbench fails, hangs or is broken off, and when its report is not understood.
    pub fn load(
        &self,
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
            "--report-interval=0",
            "--percentile=95",
            "run",
        ];
        let printed = self.run(&arguments, Duration::from_secs(seconds) + EXTRA_MAX, interrupt)?;
        parse(&printed).with_context(|| format!("sysbench said: {}", last_lines(&printed)))
    }

    fn run(&self, arguments: &[&str], longest: Duration, interrupt: &Interrupt) -> anyhow::Result<String> {
        let mut command = Command::new(&self.program);
        command.args([
            "--db-driver=mysql",
            "--mysql-host=127.0.0.1",
            "--mysql-user=root",
            "--mysql-db=sbtest",
            &format!("--mysql-port={}", self.port),
            &format!("--tables={}", self.tables),
            &format!("--table-size={}", self.rows),
        ]);
        run_to_end(command.args(arguments), &self.log, longest, interrupt, |_| Ok(()))
    }
}

fn parse(printed: &str) -> Option<Outcome> {
    let after = |head: &str| printed.lines().find_map(|line| line.trim().strip_prefix(head)).map(str::trim);
    let (transactions, rest) = after("transactions:")?.split_once('(')?;
    Some(Outcome {
        transactions: transactions.trim().parse().ok()?,
        per_second: rest.split_whitespace().next()?.parse().ok()?,
        p95_ms: after("95th percentile:")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_sysbench_is_understood() {
        let printed = "SQL statistics:\n    transactions:                        21334  (4266.01 per sec.)\n    \
                       queries:  21334  (4266.01 per sec.)\n\nLatency (ms):\n         min:     0.31\n         \
                       95th percentile:                        2.81\n";
        let outcome = Outcome { transactions: 21334, per_second: 4266.01, p95_ms: 2.81 };
        assert_eq!(parse(printed), Some(outcome));
        assert_eq!(parse("FATAL: unable to connect"), None);
    }
}
