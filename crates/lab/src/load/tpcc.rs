//! TPC-C by go-tpc: nine tables, five kinds of transactions, of which NEW_ORDER counts.

use super::go_tpc;
use super::times::Times;
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::machine::cpus::{Cpus, Role};
use crate::model::{Fact, Measured};
use crate::program::run_to_end;
use crate::server::sql::same;
use crate::server::{DATABASE, Target};
use anyhow::{Context, ensure};
use rig::process::last_lines;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest time for filling the tables. A warehouse takes about 20 s on two cores, and a thread fills whole warehouses.
const PREPARE_MAX: Duration = Duration::from_secs(12 * 3600);
/// Longest time for connecting, preparing statements and ending, beside the seconds of the load itself. Longer than the
/// source's patience with a receiver.
const EXTRA_MAX: Duration = Duration::from_secs(90);
/// Threads that fill the tables, at most.
const PREPARE_THREADS_MAX: u32 = 8;
/// Statements that go-tpc prepares in each thread: 55, and room for more.
const STATEMENTS_A_THREAD: u64 = 64;
/// Items in the stock of each warehouse, by the specification.
const STOCK_A_WAREHOUSE: u64 = 100_000;
/// go-tpc's tables.
const TABLES: [&str; 9] =
    ["warehouse", "district", "customer", "history", "new_order", "orders", "order_line", "item", "stock"];
/// What an error of a transaction begins with in go-tpc's output. Transactions that the end of the load cuts off are
/// counted by it as errors too, but not printed.
const FAILED: &str = "execute run failed, err ";

/// go-tpc, and how many warehouses there are.
#[derive(Debug, Clone)]
pub struct Tpcc {
    program: PathBuf,
    warehouses: u32,
    log: PathBuf,
    cpus: Cpus,
}

/// What the transactions of one kind came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transactions {
    /// go-tpc's name: NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY or STOCK_LEVEL.
    pub name: String,
    /// How many ended well, those that TPC-C has rolled back (1 % of NEW_ORDER) included.
    pub count: u64,
    /// Seconds from the first of them to the end of the load.
    pub seconds: f64,
    /// Their mean in ms.
    pub mean_ms: f64,
    /// How long they took, each the upper end of a step of go-tpc's histogram, the longest too. The steps are 0.5 ms wide
    /// up to 17 ms, and 3 to 6 % above that; what took less than 1 ms counts as 1 ms, what took longer than 16 s as 16 s.
    pub times: Times,
}

/// What a load came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// NEW_ORDER transactions a minute.
    pub tpmc: f64,
    /// `tpmc` in percent of what the specification allows for so many warehouses; far above 100 without its waiting.
    pub efficiency: f64,
    /// By kind.
    pub transactions: Vec<Transactions>,
    /// Transactions that failed, such as by a deadlock.
    pub errors: u64,
    /// What the first of them said.
    pub first_error: Option<String>,
}

impl Outcome {
    /// All transactions a second.
    pub fn tps(&self) -> f64 {
        let seconds = self.transactions.iter().map(|kind| kind.seconds).fold(0.0, f64::max);
        let count: u64 = self.transactions.iter().map(|kind| kind.count).sum();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }

    /// All transactions.
    pub fn count(&self) -> u64 {
        self.transactions.iter().map(|kind| kind.count).sum()
    }

    /// Puts the numbers under their names, and refuses the cell if there were errors.
    pub fn put_into(&self, measured: &mut Measured) {
        measured.put("tpmc", self.tpmc);
        measured.put("efficiency_percent", self.efficiency);
        measured.put("tpcc_tps", self.tps());
        measured.put("transactions", self.count() as f64);
        measured.put("errors", self.errors as f64);
        for kind in &self.transactions {
            let name = kind.name.to_ascii_lowercase();
            measured.put(&format!("{name}_count"), kind.count as f64);
            measured.put(&format!("{name}_mean_ms"), kind.mean_ms);
            kind.times.put_into(measured, &format!("{name}_"));
        }
        if self.errors > 0 {
            let first = self.first_error.as_deref().unwrap_or_default();
            measured.refuse(format!("{} transactions failed, the first: {first}", self.errors));
        }
    }
}

impl Tpcc {
    /// For `warehouses` warehouses; go-tpc is built if it has to be. Its output goes to a file in `dir`.
    ///
    /// # Errors
    /// As [`go_tpc::build`].
    pub fn new(lab: &Lab, warehouses: u32, dir: &Path) -> anyhow::Result<Tpcc> {
        let program = go_tpc::build(&lab.dir, lab.say)?;
        Ok(Tpcc { program, warehouses, log: dir.join("go-tpc.log"), cpus: lab.apart.cpus.clone() })
    }

    /// What a run's facts say of the load.
    pub fn facts(&self) -> Vec<Fact> {
        let fact = |name: &str, value: &dyn ToString| Fact::new("load", name, value.to_string());
        vec![fact("go-tpc", &go_tpc::version()), fact("warehouses", &self.warehouses)]
    }

    /// Makes and fills the tables in the lab's database, which must exist.
    ///
    /// # Errors
    /// When the server takes encrypted connections only, when go-tpc fails or is broken off, and when rows are missing
    /// afterwards.
    pub fn prepare(&self, target: &mut Target, interrupt: &Interrupt) -> anyhow::Result<()> {
        let encrypted = target.variable("require_secure_transport")?;
        ensure!(
            !encrypted.is_some_and(|value| same(&value, "ON")),
            "{} takes encrypted connections only (require_secure_transport is ON), and go-tpc, the load, speaks in clear",
            target.name()
        );
        let threads = self.warehouses.min(PREPARE_THREADS_MAX).to_string();
        // Its own check of the data takes longer than filling them: minutes for two warehouses.
        self.run(target, &["prepare", "--no-check", "--threads", &threads], PREPARE_MAX, interrupt)?;
        for (table, expected) in [
            ("warehouse", u64::from(self.warehouses)),
            ("stock", u64::from(self.warehouses) * STOCK_A_WAREHOUSE),
        ] {
            let rows = target.query(&format!("SELECT COUNT(*) FROM {DATABASE}.{table}"))?;
            let found = rows.first().unwrap_or_default();
            ensure!(found == expected.to_string(), "go-tpc left {found} rows in {table} and not {expected}");
        }
        // The server's own statistics are those of half-filled tables, with 14 rows in `item` of 100,000: it reads whole
        // tables then, and is several times as slow.
        target.query(&format!(
            "ANALYZE TABLE {}",
            TABLES.map(|table| format!("{DATABASE}.{table}")).join(", ")
        ))?;
        Ok(())
    }

    /// Bytes of the tables with their indexes, as the server counts them.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn tables_bytes(&self, target: &mut Target) -> anyhow::Result<u64> {
        // MySQL from 8.0 on gives for a day what it has once looked up.
        if target.dialect().is_mysql_from(8, 0, 0) {
            target.query("SET SESSION information_schema_stats_expiry = 0")?;
        }
        let names = TABLES.map(|table| format!("'{table}'")).join(", ");
        let rows = target.query(&format!(
            "SELECT CAST(SUM(data_length + index_length) AS UNSIGNED) FROM information_schema.tables \
             WHERE table_schema = '{DATABASE}' AND table_name IN ({names})"
        ))?;
        let bytes = rows.first().and_then(|text| text.parse().ok()).filter(|bytes| *bytes > 0);
        bytes.with_context(|| format!("{} does not say how large the tables are", target.name()))
    }

    /// Makes the server ready for a load with `threads` threads, as [`Target::make_room`] does.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn make_room(&self, target: &mut Target, threads: u32) -> anyhow::Result<()> {
        target.make_room(threads, u64::from(threads) * STATEMENTS_A_THREAD)
    }

    /// Runs a load without TPC-C's keying and thinking times.
    ///
    /// # Errors
    /// When go-tpc fails, hangs or is broken off, and when its report is not understood.
    pub fn load(
        &self,
        target: &mut Target,
        threads: u32,
        seconds: u64,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Outcome> {
        let (threads, time) = (threads.to_string(), format!("{seconds}s"));
        // Without --ignore-error a thread ends at its first error, and the rest of the load is another one.
        let words = ["run", "--ignore-error", "--threads", &threads, "--time", &time, "--interval", "24h"];
        let printed = self.run(target, &words, Duration::from_secs(seconds) + EXTRA_MAX, interrupt)?;
        parse(&printed).with_context(|| format!("go-tpc said: {}", last_lines(&printed)))
    }

    fn run(
        &self,
        target: &mut Target,
        words: &[&str],
        longest: Duration,
        interrupt: &Interrupt,
    ) -> anyhow::Result<String> {
        let account = target.account();
        let host = match account.host.contains(':') {
            true => format!("[{}]", account.host),
            false => account.host.clone(),
        };
        let mut command = Command::new(&self.program);
        command
            .arg("tpcc")
            .args(words)
            .args(["--warehouses", &self.warehouses.to_string()])
            .args(["--host", &host, "--port", &account.port.to_string()])
            .args(["--user", &account.user, "--db", DATABASE])
            .env(go_tpc::PASSWORD_VARIABLE, account.password.expose());
        let _pinned = self.cpus.pin(Role::Load)?;
        let done = run_to_end(&mut command, &self.log, longest, interrupt, |pid| target.started(pid));
        target.loaded(done)
    }
}

fn parse(printed: &str) -> Option<Outcome> {
    let rate = printed.lines().find_map(|line| line.strip_prefix("tpmC: "))?;
    let (tpmc, rest) = rate.split_once(',')?;
    let efficiency = rest.trim().strip_prefix("efficiency: ")?.strip_suffix('%')?;
    let mut outcome =
        Outcome { tpmc: tpmc.parse().ok()?, efficiency: efficiency.parse().ok()?, ..Outcome::default() };
    for line in printed.lines() {
        if let Some(summary) = line.strip_prefix("[Summary] ") {
            let (name, numbers) = summary.split_once(" - ")?;
            if !name.trim().ends_with("_ERR") {
                outcome.transactions.push(summary_of(name.trim(), numbers)?);
            }
        } else if let Some((_, error)) = line.split_once(FAILED) {
            outcome.errors += 1;
            outcome.first_error.get_or_insert_with(|| error.trim().to_owned());
        }
    }
    Some(outcome)
}

fn summary_of(name: &str, numbers: &str) -> Option<Transactions> {
    let number = |key: &str| {
        numbers.split(", ").find_map(|part| part.strip_prefix(key)?.strip_prefix(": ")?.parse::<f64>().ok())
    };
    Some(Transactions {
        name: name.to_owned(),
        count: number("Count")? as u64,
        seconds: number("Takes(s)")?,
        mean_ms: number("Avg(ms)")?,
        times: Times {
            p50_ms: number("50th(ms)")?,
            p95_ms: number("95th(ms)")?,
            p99_ms: number("99th(ms)")?,
            p99_9_ms: number("99.9th(ms)")?,
            longest_ms: number("Max(ms)")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As go-tpc 1.0.5 printed it.
    const PRINTED: &str = "\
Finished
[Summary] DELIVERY - Takes(s): 2.7, Count: 23, TPM: 511.7, Sum(ms): 2230.3, Avg(ms): 97.3, 50th(ms): 96.5, 90th(ms): 159.4, 95th(ms): 184.5, 99th(ms): 243.3, 99.9th(ms): 243.3, Max(ms): 243.3
[Summary] DELIVERY_ERR - Takes(s): 2.7, Count: 1, TPM: 22.2, Sum(ms): 19.9, Avg(ms): 19.4, 50th(ms): 19.9, 90th(ms): 19.9, 95th(ms): 19.9, 99th(ms): 19.9, 99.9th(ms): 19.9, Max(ms): 19.9
[Summary] NEW_ORDER - Takes(s): 2.8, Count: 194, TPM: 4119.5, Sum(ms): 11711.7, Avg(ms): 60.4, 50th(ms): 48.2, 90th(ms): 130.0, 95th(ms): 151.0, 99th(ms): 176.2, 99.9th(ms): 184.5, Max(ms): 184.5
tpmC: 4117.8, efficiency: 16009.9%
";

    #[test]
    fn the_report_of_go_tpc_is_understood() {
        let outcome = parse(PRINTED).unwrap();
        assert_eq!((outcome.tpmc, outcome.efficiency, outcome.errors), (4117.8, 16009.9, 0));
        let new_order = Transactions {
            name: "NEW_ORDER".to_owned(),
            count: 194,
            seconds: 2.8,
            mean_ms: 60.4,
            times: Times { p50_ms: 48.2, p95_ms: 151.0, p99_ms: 176.2, p99_9_ms: 184.5, longest_ms: 184.5 },
        };
        assert_eq!(outcome.transactions[1], new_order);
        assert_eq!(outcome.transactions.len(), 2);
        assert_eq!(outcome.tps(), 217.0 / 2.8);
        assert_eq!(parse("panic: failed to connect to database when loading data"), None);
    }

    #[test]
    fn an_error_refuses_the_cell_and_what_the_end_cuts_off_does_not() {
        let mut measured = Measured::default();
        parse(PRINTED).unwrap().put_into(&mut measured);
        assert_eq!((measured.invalid.as_deref(), measured.values["new_order_p95_ms"]), (None, 151.0));
        assert_eq!(
            (measured.values["new_order_p99_9_ms"], measured.values["delivery_p99_ms"]),
            (184.5, 243.3)
        );

        let failed = "[2026-11-21 22:55:46] execute run failed, err exec SELECT failed Error 1020: Record has \
                      changed since last read in table 'district'\n";
        parse(&format!("{failed}{failed}{PRINTED}")).unwrap().put_into(&mut measured);
        let reason = measured.invalid.unwrap();
        assert!(reason.starts_with("2 transactions failed") && reason.contains("Error 1020"), "{reason}");
    }
}
