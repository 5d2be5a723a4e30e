//! One cell: a receiver, a workload, a number of threads, one time.

use super::configuration::Configuration;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// What is measured; the same for all receivers of a block.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setting {
    /// As `scripts/servers` names it.
    pub server: String,
    /// `sync_binlog` 0 and `innodb_flush_log_at_trx_commit` 2 instead of 1 and 1.
    pub relaxed: bool,
    /// sysbench's name.
    pub workload: String,
    /// Threads of sysbench.
    pub threads: u32,
}

/// A cell as it was measured, valid or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Seconds since 1970 at the start of the run that it belongs to, which names the run.
    pub run: u64,
    /// From 0.
    pub round: usize,
    /// Source and load.
    #[serde(flatten)]
    pub setting: Setting,
    /// The receiver.
    pub configuration: Configuration,
    /// What the server calls its version.
    pub version: String,
    /// Tables of sysbench.
    pub tables: u32,
    /// Rows of each table.
    pub rows: u32,
    /// Seconds of load.
    pub seconds: u64,
    /// Why it does not count.
    pub invalid: Option<String>,
    /// Numbers; absent when there was no load.
    pub numbers: Option<Numbers>,
}

/// The numbers of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// Transactions a second.
    pub tps: f64,
    /// Their 95th percentile in ms.
    pub p95_ms: f64,
    /// Transactions altogether.
    pub transactions: u64,
    /// Waits for an acknowledgement, as the source counts them.
    pub waits: u64,
    /// What they took together, in µs.
    pub wait_us: u64,
    /// Acknowledgements that the source received.
    pub acknowledgements: u64,
    /// Commits that the source counts as acknowledged.
    pub yes_tx: u64,
    /// Commits that the source counts as not acknowledged.
    pub no_tx: u64,
    /// Bytes of the source's log.
    pub log_bytes: u64,
    /// Cores that the receiver used, on average over the seconds of load.
    pub cores: Option<f64>,
    /// Resident memory of the receiver at the end, in KiB.
    pub resident_kib: Option<u64>,
}

impl Numbers {
    /// The source's own average wait in µs.
    pub fn wait(&self) -> Option<f64> {
        (self.waits > 0).then(|| self.wait_us as f64 / self.waits as f64)
    }

    /// Transactions for each acknowledgement.
    pub fn transactions_an_acknowledgement(&self) -> Option<f64> {
        (self.acknowledgements > 0).then(|| self.transactions as f64 / self.acknowledgements as f64)
    }
}

impl Cell {
    /// The numbers, if they count.
    pub fn valid(&self) -> Option<&Numbers> {
        if self.invalid.is_some() { None } else { self.numbers.as_ref() }
    }
}

/// The file that cells are appended to, one JSON object a line.
#[derive(Debug)]
pub struct Cells(File);

impl Cells {
    /// Opens it, or makes it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append_to(path: &Path) -> anyhow::Result<Cells> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Cells(file.with_context(|| format!("cannot write {}", path.display()))?))
    }

    /// Appends one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn push(&mut self, cell: &Cell) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(cell)?;
        line.push('\n');
        Ok(self.0.write_all(line.as_bytes())?)
    }

    /// All cells of a file.
    ///
    /// # Errors
    /// When it cannot be read, and at a line that is no cell.
    pub fn read(path: &Path) -> anyhow::Result<Vec<Cell>> {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let cells = lines.map(|(index, line)| {
            let place = || format!("{}, line {}: not a cell of this benchmark", path.display(), index + 1);
            serde_json::from_str(line).with_context(place)
        });
        cells.collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::semisync) fn cell(configuration: Configuration, round: usize, tps: f64) -> Cell {
        let setting = Setting {
            server: "mysql-9.7".to_owned(),
            relaxed: false,
            workload: "oltp_read_write".to_owned(),
            threads: 8,
        };
        Cell {
            run: 1,
            round,
            setting,
            configuration,
            version: "9.7.0".to_owned(),
            tables: 8,
            rows: 1000,
            seconds: 5,
            invalid: None,
            numbers: Some(Numbers { tps, cores: Some(tps / 1000.0), waits: 10, ..Numbers::default() }),
        }
    }

    #[test]
    fn cells_come_back_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new").join("cells.jsonl");
        let mut invalid = cell(Configuration::Binlogd0, 1, 5.0);
        invalid.invalid = Some("it \"fell\" back\nto asynchronous".to_owned());
        let written = [cell(Configuration::ReplicaUnsynced, 0, 12.5), invalid];
        for one in &written {
            Cells::append_to(&path).unwrap().push(one).unwrap();
        }
        assert_eq!(Cells::read(&path).unwrap(), written);
        assert!(written[0].valid().is_some() && written[1].valid().is_none());
    }
}
