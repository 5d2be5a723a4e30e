//! TPC-C's tables, filled once and kept: filling takes longer than a short study.

use super::go_tpc;
use super::tpcc::Tpcc;
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::server::{DATABASE, Target};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Each table, the largest last so that it is not pushed out by the others, with a column that no index holds: to count
/// it every row must be read.
const COLUMNS: [(&str, &str); 9] = [
    ("warehouse", "w_ytd"),
    ("district", "d_ytd"),
    ("new_order", "no_o_id"),
    ("item", "i_data"),
    ("history", "h_amount"),
    ("orders", "o_carrier_id"),
    ("order_line", "ol_amount"),
    ("customer", "c_data"),
    ("stock", "s_data"),
];
/// Longest time to read a table through.
const READ_MAX: Duration = Duration::from_secs(3600);
/// Longest wait for any other answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A data folder that servers are started on copies of. It stays in the lab's folder; whoever needs the space removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// The data folder of a server that was shut down in good order.
    pub data: PathBuf,
    /// Bytes of TPC-C's tables with their indexes.
    pub tables_bytes: u64,
    /// Bytes of the whole folder.
    pub bytes: u64,
}

impl Dataset {
    /// For the lab's own server `server`, with `warehouses` warehouses; it is made unless it is there.
    ///
    /// # Errors
    /// As [`Tpcc::new`] and [`Tpcc::prepare`], and when the server does not start.
    pub fn of(lab: &Lab, server: &str, warehouses: u32) -> anyhow::Result<Dataset> {
        let kept = lab.dir.join("tpcc-data");
        std::fs::create_dir_all(&kept)?;
        // The server does not take relative paths.
        let kept = kept.canonicalize()?;
        let data = kept.join(format!("{server}-{warehouses}-warehouses-go-tpc-{}", go_tpc::version()));
        if !data.is_dir() {
            fill(lab, server, warehouses, &kept, &data)?;
        }
        let tables_bytes = size(&data.join(DATABASE))?;
        Ok(Dataset { bytes: size(&data)?, tables_bytes, data })
    }
}

fn fill(lab: &Lab, server: &str, warehouses: u32, kept: &Path, data: &Path) -> anyhow::Result<()> {
    // Nobody receives here, and what is kept knows nothing of a link.
    let lab = &Lab { link: None, ..lab.clone() };
    let work = tempfile::Builder::new().prefix("filling-").tempdir_in(kept)?;
    let tpcc = Tpcc::new(lab, warehouses, work.path())?;
    (lab.say)(&format!("filling {warehouses} warehouses of TPC-C on {server}; they are kept for later runs"));
    let pool = format!("--innodb-buffer-pool-size={}M", (u64::from(warehouses) * 128).clamp(256, 4096));
    // Nothing is measured here, and what a crash spoils is thrown away.
    let options = [&pool, "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"];
    let dir = work.path().join("server");
    let mut target = Target::start(lab, server, dir.clone(), None, &options.map(str::to_owned))?;
    target.create_database()?;
    tpcc.prepare(&mut target, &lab.interrupt)?;
    target.stop()?;
    // Only what is complete gets the name.
    std::fs::rename(dir.join("data"), data).with_context(|| format!("making {}", data.display()))
}

/// Reads all tables, so that a server begins with as much of them in its buffer pool as there is room for, and not with
/// nothing while another one that it is compared with has worked already.
///
/// # Errors
/// When the server refuses.
pub fn read_through(target: &mut Target, interrupt: &Interrupt) -> anyhow::Result<()> {
    read_tables(target, COLUMNS.map(|(table, column)| (table.to_owned(), column)), interrupt)
}

/// The same for tables of the lab's database, each with a column that no index holds.
///
/// # Errors
/// When the server refuses, and when the run is broken off.
pub fn read_tables(
    target: &mut Target,
    tables: impl IntoIterator<Item = (String, &'static str)>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    target.session().set_timeout(READ_MAX);
    for (table, column) in tables {
        interrupt.check()?;
        target.query(&format!("SELECT COUNT({column}) FROM {DATABASE}.{table}"))?;
    }
    target.session().set_timeout(ANSWER_MAX);
    Ok(())
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> anyhow::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}

/// mysqld's options of every server that TPC-C runs on. Names that a server does not know are passed over (`loose`).
pub fn options(pool_bytes: u64, redo_mib: u64) -> Vec<String> {
    vec![
        format!("--innodb-buffer-pool-size={pool_bytes}"),
        // Small steps, so that the pool may have any size; a server's own choice where it is large.
        format!("--loose-innodb-buffer-pool-chunk-size={}M", if pool_bytes < 8 << 30 { 1 } else { 128 }),
        format!("--loose-innodb-redo-log-capacity={redo_mib}M"),
        format!("--loose-innodb-log-file-size={}M", redo_mib / 2),
        // Past the page cache, which would make every pool as large as the memory.
        "--innodb-flush-method=O_DIRECT".to_owned(),
        "--innodb-flush-log-at-trx-commit=1".to_owned(),
        // From 11.6 on MariaDB refuses, by error 1020, to change a row that has changed since the transaction's
        // snapshot. TPC-C by go-tpc relies on REPEATABLE READ as it was before, and as MySQL has it.
        "--loose-innodb-snapshot-isolation=OFF".to_owned(),
        // MySQL from 9.5 on chooses it by whether there is a binary log: a server without one would differ in it too.
        "--loose-innodb-log-writer-threads=OFF".to_owned(),
        // Growing tables would be looked at anew in the middle of a study, and plans might change.
        "--innodb-stats-auto-recalc=OFF".to_owned(),
        "--transaction-isolation=REPEATABLE-READ".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_folder_is_that_of_all_files_below() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("a"), [0; 10]).unwrap();
        std::fs::write(dir.path().join("sub/b"), [0; 7]).unwrap();
        assert_eq!(size(dir.path()).unwrap(), 17);
        assert!(size(&dir.path().join("none")).is_err());
    }
}
