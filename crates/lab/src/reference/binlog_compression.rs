//! A published test of `binlog_transaction_compression`.

use super::publication::{Publication, field, rows};
use crate::outline::{Entry, Part, Table};

/// A row as published: thousands of queries a second, and per cent of the processor for `cpu`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// `select`, `delete`, `insert`, `update` or `cpu`.
    pub measure: &'static str,
    /// MySQL 8.0.19, which has no compression.
    pub before: f64,
    /// MySQL 8.0.20 with compression, zstd level 3.
    pub compressed: f64,
    /// MySQL 8.0.20 without compression.
    pub uncompressed: f64,
}

/// All rows in the order of publication.
pub fn published() -> Vec<Row> {
    rows(include_str!("binlog_compression.tsv"))
        .map(|row| Row {
            measure: row[0],
            before: field(row[1]),
            compressed: field(row[2]),
            uncompressed: field(row[3]),
        })
        .collect()
}

/// The published row of a measure.
pub fn measure(name: &str) -> Option<Row> {
    published().into_iter().find(|row| row.measure == name)
}

impl Row {
    /// With compression, relative to the same version without.
    pub fn compressed_to_uncompressed(&self) -> f64 {
        self.compressed / self.uncompressed
    }

    /// With compression, relative to the version before.
    pub fn compressed_to_before(&self) -> f64 {
        self.compressed / self.before
    }

    /// Without compression, relative to the version before.
    pub fn uncompressed_to_before(&self) -> f64 {
        self.uncompressed / self.before
    }
}

/// The study and its figures.
pub fn publication() -> Publication {
    Publication {
        title: "How much binlog compression slows MySQL down",
        origin: "a DBA's article on the tools dbm-agent and dbma-cli, of 2020 by the paths of its pictures",
        software: "MySQL 8.0.19, and 8.0.20 with binlog_transaction_compression on (zstd level 3) and off; sysbench \
                   with 120 tables of 100 000 rows, 240 threads, 3600 seconds; the load on a machine of its own",
        hardware: "the server with 32 logical processors, 128 GB of memory and an SSD of 3 TB; the load with 80 logical \
                   processors and 256 GB",
        conclusions: &[
            "Compression costs about 1 % of performance and about 1 % more processor.",
            "An earlier test of the same author found that it saves more than half of the binary log.",
        ],
        remarks: &[
            "The printed commands run oltp_point_select, which neither deletes nor inserts nor updates; the table's \
             rates stand as 14 : 1 : 1 : 2, which is oltp_read_write's mix.",
            "Rates are printed with three digits, or two: 5.7 against 5.6 may be anything between 0 and 3.5 %.",
            "One hour each, once; the spread is not given.",
        ],
        figures: figures(),
    }
}

fn figures() -> Vec<Part> {
    let columns = [
        "",
        "MySQL 8.0.19",
        "8.0.20, compressed",
        "8.0.20, not compressed",
        "compressed / not compressed",
        "compressed / 8.0.19",
    ];
    let name = |row: &Row| match row.measure {
        "cpu" => "processor (%)".to_owned(),
        statement => format!("{statement} (1000 queries/s)"),
    };
    let digits = |row: &Row| usize::from(row.measure != "cpu");
    let entries = |row: &Row| {
        vec![
            Entry::Text(name(row)),
            Entry::Number(row.before, digits(row)),
            Entry::Number(row.compressed, digits(row)),
            Entry::Number(row.uncompressed, digits(row)),
            Entry::Number(row.compressed_to_uncompressed(), 3),
            Entry::Number(row.compressed_to_before(), 3),
        ]
    };
    let table = Table::new(
        "Published: rates and processor",
        &columns,
        published().iter().map(entries).collect(),
        &["The ratios are ours, made from the published figures."],
    );
    vec![Part::Table(table)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums were made from the study's text, not from the transcription.
    #[test]
    fn all_rows_are_as_published() {
        let rows = published();
        let tenths = |figure: fn(&Row) -> f64| -> u64 {
            rows.iter()
                .filter(|row| row.measure != "cpu")
                .map(|row| (figure(row) * 10.0).round() as u64)
                .sum()
        };
        let measures: Vec<&str> = rows.iter().map(|row| row.measure).collect();
        assert_eq!(measures, ["select", "delete", "insert", "update", "cpu"]);
        assert_eq!(tenths(|row| row.before), 1042);
        assert_eq!(tenths(|row| row.compressed), 1021);
        assert_eq!(tenths(|row| row.uncompressed), 1036);
        let processor = measure("cpu").unwrap();
        assert_eq!((processor.before, processor.compressed, processor.uncompressed), (87.0, 89.0, 88.0));
        assert_eq!(measure("select").unwrap().compressed_to_uncompressed(), 79.6 / 80.7);
    }
}
