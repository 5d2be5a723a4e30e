//! A published test of TPC-C with asynchronous and semi-synchronous replicas.

use super::publication::{Curve, Publication, field, rows};
use crate::outline::{Chart, Dot, Entry, Line, Part, Scale, Table};
use crate::point::semi_sync_cost::Configuration;

/// A row as published.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Connections of the load.
    pub threads: u32,
    /// TpmC with two asynchronous replicas.
    pub asynchronous: f64,
    /// TpmC with one semi-synchronous and one asynchronous replica.
    pub semi_synchronous: f64,
}

/// All rows in the order of publication.
pub fn published() -> Vec<Row> {
    rows(include_str!("semi_sync_cost.tsv"))
        .map(|row| Row {
            threads: field(row[0]),
            asynchronous: field(row[1]),
            semi_synchronous: field(row[2]),
        })
        .collect()
}

/// TpmC with two asynchronous replicas, to be compared with the lab's `configuration`.
pub fn asynchronous(configuration: Configuration) -> Curve {
    curve(configuration, |row| row.asynchronous)
}

/// TpmC with one semi-synchronous and one asynchronous replica, to be compared with the lab's `configuration`.
pub fn semi_synchronous(configuration: Configuration) -> Curve {
    curve(configuration, |row| row.semi_synchronous)
}

fn curve(configuration: Configuration, figure: fn(&Row) -> f64) -> Curve {
    let points = published().iter().map(|row| (row.threads, figure(row))).collect();
    Curve { configuration: configuration.into(), points }
}

/// The study and its figures.
pub fn publication() -> Publication {
    Publication {
        title: "Load test of MySQL: asynchronous and semi-synchronous replication",
        origin: "an article in Chinese, kept on the pages of Alibaba Cloud's developer community; its date is not given",
        software: "MySQL 5.7.21, one source with two replicas; semi-sync with AFTER_SYNC, the default; TPC-C, its \
                   program, warehouses and duration not given",
        hardware: "each server with 2 cores and 6 GB of memory, the load with 2 cores and 8 GB",
        conclusions: &[
            "With either kind of replication TpmC rises with the connections up to about 200 and falls slowly then.",
            "Between 16 and 1024 connections asynchronous replication is far ahead, by about 1000 to 2000 TpmC.",
            "Where connections are few and data must be safe, semi-sync may be preferred.",
        ],
        remarks: &[
            "One figure a row; rounds and spread are not given.",
            "By its own figures the difference is 664 TpmC at 16 connections, 499 at 1024, and at most 1519, at 128.",
        ],
        figures: figures(),
    }
}

fn figures() -> Vec<Part> {
    let rows = published();
    let line = |name: &str, figure: fn(&Row) -> f64| Line {
        name: name.to_owned(),
        published: true,
        points: rows
            .iter()
            .map(|row| Dot { x: f64::from(row.threads), y: figure(row), spread: None })
            .collect(),
    };
    let chart = Chart {
        title: "Published: TpmC".to_owned(),
        x_label: "connections".to_owned(),
        y_label: "TpmC, as published".to_owned(),
        x_scale: Scale::Logarithmic,
        lines: vec![
            line("asynchronous", |row| row.asynchronous),
            line("semi-synchronous", |row| row.semi_synchronous),
        ],
    };
    let entries = |row: &Row| {
        vec![
            Entry::Number(f64::from(row.threads), 0),
            Entry::Number(row.asynchronous, 3),
            Entry::Number(row.semi_synchronous, 3),
            Entry::Number(row.semi_synchronous / row.asynchronous, 3),
        ]
    };
    let table = Table::new(
        "Published: TpmC by connections",
        &["threads", "asynchronous", "semi-synchronous", "ratio"],
        rows.iter().map(entries).collect(),
        &["The ratio is ours, made from the two published figures."],
    );
    vec![Part::Chart(chart), Part::Table(table)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums were made from the study's text, not from the transcription.
    #[test]
    fn all_rows_are_as_published() {
        let rows = published();
        let thousandths = |figure: fn(&Row) -> f64| -> u64 {
            rows.iter().map(|row| (figure(row) * 1000.0).round() as u64).sum()
        };
        assert_eq!(rows.len(), 10);
        assert_eq!(rows.iter().map(|row| row.threads).sum::<u32>(), 3580);
        assert_eq!(thousandths(|row| row.asynchronous), 36_564_632);
        assert_eq!(thousandths(|row| row.semi_synchronous), 28_334_099);
        let threads: Vec<u32> = rows.iter().map(|row| row.threads).collect();
        assert_eq!(threads, [4, 8, 16, 32, 64, 128, 256, 512, 1024, 1536]);
    }

    /// What the remarks say of the differences.
    #[test]
    fn the_differences_are_as_remarked() {
        let differences: Vec<(u32, f64)> =
            published().iter().map(|row| (row.threads, row.asynchronous - row.semi_synchronous)).collect();
        let largest = differences.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert_eq!((largest.0, largest.1.round()), (128, 1519.0));
        for (threads, by) in [(16, 664.0), (1024, 499.0)] {
            assert!(differences.iter().any(|found| (found.0, found.1.round()) == (threads, by)), "{threads}");
        }
        assert_eq!(
            semi_synchronous(Configuration::AfterSync)
                .relative_to(&asynchronous(Configuration::Asynchronous))
                .at(128),
            Some(3738.1 / 5257.267)
        );
    }
}
