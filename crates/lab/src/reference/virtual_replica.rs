//! The virtual replica's own published test: 100 rows of sysbench, five configurations at twenty numbers of threads.

use super::publication::{Curve, Publication, field, rows};
use crate::outline::{Chart, Dot, Entry, Line, Part, Scale, Table};
use crate::point::virtual_replica::Configuration;

/// A row as published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Counts from 1.
    pub id: u32,
    /// `mhd` in every row; the study does not say what it stands for.
    pub disk_type: &'static str,
    /// Clients of sysbench.
    pub thread_num: u32,
    /// The script of sysbench.
    pub test_mode: &'static str,
    /// Queries a second.
    pub qps: u32,
    /// Transactions a second.
    pub tps: u32,
    /// Which configuration, in the study's words.
    pub mysql_mode: &'static str,
    /// When it was measured, without a time zone.
    pub insert_time: &'static str,
}

/// The configurations of the study, by their `mysql_mode`.
pub mod mode {
    /// The source alone.
    pub const SOURCE_ALONE: &str = "2000w_async";
    /// Semi-sync to the virtual replica with `fsync_mode = 0`.
    pub const FSYNC_MODE_0: &str = "2000w_semisync_vs_async_binlog";
    /// Semi-sync to the virtual replica with `fsync_mode = 1`.
    pub const FSYNC_MODE_1: &str = "2000w_semisync_vs_sync_binlog";
    /// Semi-sync to a MySQL replica with `sync_relay_log = 20`.
    pub const REPLICA: &str = "2000w_semisync_slave_sync";
    /// The same with its SQL thread stopped.
    pub const REPLICA_SQL_THREAD_STOPPED: &str = "2000w_semisync_slave_sync_no_sql_thread";
    /// All of them, in the order of publication.
    pub const ALL: [&str; 5] =
        [SOURCE_ALONE, FSYNC_MODE_0, FSYNC_MODE_1, REPLICA, REPLICA_SQL_THREAD_STOPPED];
}

/// All rows in the order of publication.
pub fn published() -> Vec<Row> {
    rows(include_str!("virtual_replica.tsv"))
        .map(|row| Row {
            id: field(row[0]),
            disk_type: row[1],
            thread_num: field(row[2]),
            test_mode: row[3],
            qps: field(row[4]),
            tps: field(row[5]),
            mysql_mode: row[6],
            insert_time: row[7],
        })
        .collect()
}

/// The published queries a second of a mode (see [`mode`]), to be compared with the lab's `configuration`.
pub fn qps(mode: &str, configuration: Configuration) -> Curve {
    curve(mode, configuration, |row| row.qps)
}

/// The published transactions a second of a mode (see [`mode`]), to be compared with the lab's `configuration`.
pub fn tps(mode: &str, configuration: Configuration) -> Curve {
    curve(mode, configuration, |row| row.tps)
}

fn curve(mode: &str, configuration: Configuration, figure: fn(&Row) -> u32) -> Curve {
    let rows = published();
    let of_mode = rows.iter().filter(|row| row.mysql_mode == mode);
    Curve {
        configuration: configuration.into(),
        points: of_mode.map(|row| (row.thread_num, f64::from(figure(row)))).collect(),
    }
}

/// The study and its figures.
pub fn publication() -> Publication {
    Publication {
        title: "Performance test of virtual_slave",
        origin: "published with the tool virtual_slave; measured on 13 February 2019",
        software: "MySQL, its version not given; sysbench's oltp.lua (read-write) on 20 million rows; 60 seconds at each \
                   number of threads; the receivers attached by semi-sync",
        hardware: "not given (disk_type mhd)",
        conclusions: &["The virtual replica improves performance considerably over a real replica."],
        remarks: &[
            "sync_relay_log = 20 syncs the relay log after every 20 events, which is neither every transaction nor \
             none: the replica acknowledges what it has not synced.",
            "One measurement a row, in one pass over the threads for one configuration after the other: the spread is \
             not known, and a change of the machine within these three hours would look like a difference of \
             configurations.",
            "There is no row at 366 threads.",
        ],
        figures: figures(),
    }
}

fn figures() -> Vec<Part> {
    let rows = published();
    let line = |mode: &str| Line {
        name: mode.to_owned(),
        published: true,
        points: rows
            .iter()
            .filter(|row| row.mysql_mode == mode)
            .map(|row| Dot { x: f64::from(row.thread_num), y: f64::from(row.qps), spread: None })
            .collect(),
    };
    let chart = Chart {
        title: "Published: queries a second".to_owned(),
        x_label: "threads".to_owned(),
        y_label: "queries/s, as published".to_owned(),
        x_scale: Scale::Logarithmic,
        lines: mode::ALL.iter().map(|mode| line(mode)).collect(),
    };
    let columns = ["id", "disk_type", "thread_num", "test_mode", "qps", "tps", "mysql_mode", "insert_time"];
    let number = |value: u32| Entry::Number(f64::from(value), 0);
    let text = |value: &str| Entry::Text(value.to_owned());
    let entries = |row: &Row| {
        vec![
            number(row.id),
            text(row.disk_type),
            number(row.thread_num),
            text(row.test_mode),
            number(row.qps),
            number(row.tps),
            text(row.mysql_mode),
            text(row.insert_time),
        ]
    };
    let table = Table::new("Published: all rows", &columns, rows.iter().map(entries).collect(), &[]);
    vec![Part::Chart(chart), Part::Table(table)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It makes no difference to the figures.
    const ALONE: Configuration = Configuration::Alone;

    /// The sums were made from the study's text, not from the transcription.
    #[test]
    fn all_rows_are_as_published() {
        let rows = published();
        let sum = |rows: &[Row], figure: fn(&Row) -> u32| rows.iter().map(figure).sum::<u32>();
        let sums = |mode: &str| {
            let rows: Vec<Row> = rows.iter().filter(|row| row.mysql_mode == mode).copied().collect();
            (
                rows.len(),
                sum(&rows, |row| row.thread_num),
                sum(&rows, |row| row.qps),
                sum(&rows, |row| row.tps),
            )
        };
        assert_eq!(rows.len(), 100);
        assert_eq!(sum(&rows, |row| row.id), 5050);
        assert_eq!(sums(mode::SOURCE_ALONE), (20, 4382, 4_062_399, 203_093));
        assert_eq!(sums(mode::FSYNC_MODE_0), (20, 4382, 3_688_452, 184_402));
        assert_eq!(sums(mode::FSYNC_MODE_1), (20, 4382, 3_500_046, 174_982));
        assert_eq!(sums(mode::REPLICA), (20, 4382, 1_132_776, 56_629));
        assert_eq!(sums(mode::REPLICA_SQL_THREAD_STOPPED), (20, 4382, 2_474_398, 123_706));
        assert!(rows.iter().all(|row| row.disk_type == "mhd" && row.test_mode == "oltp.lua"));
        // All times, as the sum of their characters, and the two ends.
        let characters: u32 = rows.iter().flat_map(|row| row.insert_time.bytes()).map(u32::from).sum();
        assert_eq!(characters, 94_786);
        assert_eq!(rows[0].insert_time, "2019-02-13 13:43:51");
        assert_eq!(rows[99].insert_time, "2019-02-13 16:43:46");
    }

    /// A transaction of oltp.lua is 20 queries, so that a digit gone wrong in one of the two columns shows.
    #[test]
    fn queries_and_transactions_agree() {
        for row in published() {
            assert!((f64::from(row.qps) / f64::from(row.tps) - 20.0).abs() < 0.1, "{row:?}");
        }
    }

    #[test]
    fn every_mode_was_measured_at_the_same_twenty_numbers_of_threads() {
        let threads = |mode: &str| -> Vec<u32> {
            qps(mode, ALONE).points.iter().map(|(threads, _)| *threads).collect()
        };
        let expected = [2, 4, 8, 16, 32, 64, 128, 256]
            .into_iter()
            .chain((266..=386).step_by(10))
            .filter(|threads| *threads != 366)
            .collect::<Vec<u32>>();
        assert_eq!(expected.len(), 20);
        for mode in mode::ALL {
            assert_eq!(threads(mode), expected, "{mode}");
        }
        let ratio = qps(mode::FSYNC_MODE_1, ALONE).relative_to(&qps(mode::SOURCE_ALONE, ALONE));
        assert_eq!(ratio.at(32), Some(108_939.0 / 119_451.0));
        assert_eq!(tps(mode::REPLICA, ALONE).at(386), Some(2980.0));
    }
}
