//! A published test of `sync_binlog` under TPC-C, on ext4 and XFS, with three sizes of the buffer pool.
//!
//! The study prints its figures on ext4 twice, in its first table and again beside those on XFS in its second. Two
//! cells of the first table do not agree with the second; [`disagreements`] finds them. The second is used: its figures
//! rise with `sync_binlog` as all others do, and the two of the first are those of a neighbouring cell.

use super::publication::{Publication, field, rows};
use crate::outline::{Entry, Part, Table};

/// The settings of the study, in the order of its first table; `off` is no binary log.
pub const SETTINGS: [&str; 5] = ["0", "1", "1000", "10000", "off"];

/// The sizes of the buffer pool in GB; the data were about 90 GB.
pub const POOLS_GB: [u32; 3] = [60, 70, 80];

/// A cell of the first table: the median of transactions a second on ext4.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct First {
    /// One of [`SETTINGS`].
    pub sync_binlog: &'static str,
    /// One of [`POOLS_GB`].
    pub pool_gb: u32,
    /// Transactions a second.
    pub ext4: f64,
}

/// A row of the second table: medians of transactions a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Second {
    /// One of [`SETTINGS`].
    pub sync_binlog: &'static str,
    /// One of [`POOLS_GB`].
    pub pool_gb: u32,
    /// Transactions a second on ext4.
    pub ext4: f64,
    /// Transactions a second on XFS.
    pub xfs: f64,
}

/// A file system of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

/// A cell of the first table that the second contradicts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disagreement {
    /// The cell as the first table has it.
    pub first: First,
    /// What the second table says.
    pub second: f64,
}

impl Disagreement {
    /// Whether it is a digit lost in print, and not another figure.
    pub fn is_rounding(&self) -> bool {
        (self.first.ext4 - self.second).abs() < 0.01
    }
}

/// The first table, by setting and pool.
pub fn first_table() -> Vec<First> {
    rows(include_str!("sync_binlog_first.tsv"))
        .map(|row| First { sync_binlog: row[0], pool_gb: field(row[1]), ext4: field(row[2]) })
        .collect()
}

/// The second table, by setting and pool.
pub fn second_table() -> Vec<Second> {
    rows(include_str!("sync_binlog_second.tsv"))
        .map(|row| Second {
            sync_binlog: row[0],
            pool_gb: field(row[1]),
            ext4: field(row[2]),
            xfs: field(row[3]),
        })
        .collect()
}

/// Where the first table says something else than the second.
pub fn disagreements() -> Vec<Disagreement> {
    let disagreement = |first: First| {
        let second = second_table()
            .into_iter()
            .find(|row| (row.sync_binlog, row.pool_gb) == (first.sync_binlog, first.pool_gb))?
            .ext4;
        (first.ext4 != second).then_some(Disagreement { first, second })
    };
    first_table().into_iter().filter_map(disagreement).collect()
}

/// The published median of transactions a second, of the second table.
pub fn tps(sync_binlog: &str, pool_gb: u32, file_system: FileSystem) -> Option<f64> {
    let rows = second_table();
    let row = rows.iter().find(|row| (row.sync_binlog, row.pool_gb) == (sync_binlog, pool_gb))?;
    Some(match file_system {
        FileSystem::Ext4 => row.ext4,
        FileSystem::Xfs => row.xfs,
    })
}

/// The published ratio to no binary log with the same pool and file system, of the second table.
pub fn ratio_to_no_binlog(sync_binlog: &str, pool_gb: u32, file_system: FileSystem) -> Option<f64> {
    Some(tps(sync_binlog, pool_gb, file_system)? / tps("off", pool_gb, file_system)?)
}

/// The study and its figures.
pub fn publication() -> Publication {
    Publication {
        title: "What sync_binlog costs",
        origin: "an article in Chinese of 2018 or later; its date is not given",
        software: "Percona Server for MySQL 5.7.21-20; sysbench-tpcc with 10 sets of tables of 100 warehouses each, \
                   about 90 GB, with foreign keys, REPEATABLE READ; max_binlog_size 1 GB",
        hardware: "Supermicro server: 2 × Intel Xeon E5-2683 v3 at 2.00 GHz (28 cores, 56 threads), 256 GB of memory, \
                   Samsung SM863 SSD of 1.9 TB; Ubuntu 16.04.4, kernel 4.13.0-36",
        conclusions: &[
            "sync_binlog = 1 costs most and varies least, like running without a binary log.",
            "sync_binlog = 0 is the fastest with a binary log, but throughput falls to 0 for one or two seconds every 40 \
             seconds, when the log of 1 GB is rotated and everything in it is synced at once.",
            "sync_binlog = 1000 is a good compromise; 10000 varies too much still.",
            "XFS is a little slower than ext4, with the same variation; either will do.",
        ],
        remarks: &[
            "Connections, duration and the length of a sample are not given, nor is innodb_flush_log_at_trx_commit.",
            "With a pool of 60 GB, sync_binlog = 10000 (4205 transactions/s) is faster than 0 (4175), against the \
             second conclusion.",
        ],
        figures: figures(),
    }
}

fn figures() -> Vec<Part> {
    let names = SETTINGS.map(|setting| if setting == "off" { "no binary log" } else { setting });
    let mut columns = vec!["Buffer pool (GB)".to_owned()];
    columns.extend(
        names.map(
            |name| if name == "no binary log" { name.to_owned() } else { format!("sync_binlog {name}") },
        ),
    );
    let first = first_table();
    let cell = |setting: &str, pool: u32| {
        let found = first.iter().find(|cell| (cell.sync_binlog, cell.pool_gb) == (setting, pool));
        found.map_or(Entry::Missing("not published".to_owned()), |cell| Entry::Number(cell.ext4, 3))
    };
    let row = |pool: &u32| {
        let mut row = vec![Entry::Number(f64::from(*pool), 0)];
        row.extend(SETTINGS.map(|setting| cell(setting, *pool)));
        row
    };
    let first_table = Table {
        title: "Published, first table: median transactions a second on ext4".to_owned(),
        columns,
        rows: POOLS_GB.iter().map(row).collect(),
        notes: disagreements().iter().map(note).collect(),
    };
    let row = |row: &Second| {
        vec![
            Entry::Text(if row.sync_binlog == "off" {
                "no binary log".to_owned()
            } else {
                row.sync_binlog.to_owned()
            }),
            Entry::Number(f64::from(row.pool_gb), 0),
            Entry::Number(row.ext4, 3),
            Entry::Number(row.xfs, 3),
            ratio(row.sync_binlog, row.pool_gb, FileSystem::Ext4),
            ratio(row.sync_binlog, row.pool_gb, FileSystem::Xfs),
        ]
    };
    let second_table = Table::new(
        "Published, second table: median transactions a second",
        &[
            "sync_binlog",
            "Buffer pool (GB)",
            "ext4",
            "XFS",
            "ext4, ratio to no binary log",
            "XFS, ratio to no binary log",
        ],
        second_table().iter().map(row).collect(),
        &["The ratios are ours, made from the published figures."],
    );
    vec![Part::Table(first_table), Part::Table(second_table)]
}

fn ratio(setting: &str, pool: u32, file_system: FileSystem) -> Entry {
    let ratio = ratio_to_no_binlog(setting, pool, file_system);
    ratio.map_or(Entry::Missing("not published".to_owned()), |ratio| Entry::Number(ratio, 3))
}

/// What the report says below the first table.
fn note(disagreement: &Disagreement) -> String {
    let Disagreement { first, second } = disagreement;
    let place = format!("sync_binlog {} with a pool of {} GB", first.sync_binlog, first.pool_gb);
    if disagreement.is_rounding() {
        return format!(
            "{place}: {} here, {second} in the second table; the last digit was lost.",
            first.ext4
        );
    }
    let same = first_table().into_iter().find(|other| other.ext4 == first.ext4 && other != first);
    let same = same.map_or(String::new(), |other| {
        format!(
            ", which is also the figure of sync_binlog {} with {} GB and looks like a slip of copying",
            other.sync_binlog, other.pool_gb
        )
    });
    format!(
        "{place}: this table has {}{same}. The second table has {second}, which is used for the ratios.",
        first.ext4
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums were made from the study's text, not from the transcription.
    #[test]
    fn both_tables_are_as_published() {
        let thousandths = |figures: Vec<f64>| -> u64 {
            figures.iter().map(|figure| (figure * 1000.0).round() as u64).sum()
        };
        assert_eq!(first_table().len(), 15);
        assert_eq!(thousandths(first_table().iter().map(|cell| cell.ext4).collect()), 74_459_940);
        assert_eq!(second_table().len(), 15);
        assert_eq!(thousandths(second_table().iter().map(|row| row.ext4).collect()), 72_862_890);
        assert_eq!(thousandths(second_table().iter().map(|row| row.xfs).collect()), 70_542_530);
        let places: Vec<_> = first_table().iter().map(|cell| (cell.sync_binlog, cell.pool_gb)).collect();
        let expected: Vec<_> =
            SETTINGS.iter().flat_map(|setting| POOLS_GB.map(|pool| (*setting, pool))).collect();
        assert_eq!(places, expected);
        assert_eq!(
            places,
            second_table().iter().map(|row| (row.sync_binlog, row.pool_gb)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn two_cells_of_the_first_table_disagree_with_the_second_and_one_lost_a_digit() {
        let found: Vec<_> = disagreements()
            .iter()
            .map(|found| {
                (
                    found.first.sync_binlog,
                    found.first.pool_gb,
                    found.first.ext4,
                    found.second,
                    found.is_rounding(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("1000", 60, 5263.375, 3950.19, false),
                ("1000", 70, 4997.87, 4714.0, false),
                ("10000", 70, 4997.87, 4997.875, true),
            ]
        );
        let notes: Vec<String> = disagreements().iter().map(note).collect();
        assert!(notes[0].contains("also the figure of sync_binlog 1 with 80 GB"), "{}", notes[0]);
        assert!(notes[1].contains("also the figure of sync_binlog 10000 with 70 GB"), "{}", notes[1]);
        assert!(notes[2].contains("digit"), "{}", notes[2]);
    }

    #[test]
    fn ratios_come_from_the_second_table() {
        assert_eq!(ratio_to_no_binlog("1000", 60, FileSystem::Ext4), Some(3950.19 / 4277.955));
        assert_eq!(ratio_to_no_binlog("1", 80, FileSystem::Xfs), Some(5255.38 / 5957.015));
        assert_eq!(ratio_to_no_binlog("2", 80, FileSystem::Xfs), None);
    }
}
