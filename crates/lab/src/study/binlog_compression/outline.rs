//! What the report shows.

use crate::outline::{Chart, Dot, Entry, Line, Part, Scale, Table};
use crate::parts::sweep::{RATIO_DIGITS, dot, entry};
use crate::parts::times;
use crate::point::binlog_compression::{Compression, Configuration, KINDS, LEVEL};
use crate::point::{Condition, Panel, Point};
use crate::reference::binlog_compression::{Row, measure};
use crate::results::run::Run;
use crate::results::statistics::{Figures, Missing, Spread};

/// The level that was published.
const PUBLISHED: Compression = Compression::Zstd(LEVEL);

/// A panel at one number of threads.
struct View<'a> {
    figures: &'a Figures<'a>,
    panel: &'a Panel,
    threads: u32,
    configurations: Vec<Configuration>,
}

/// The report's parts.
pub fn parts(run: &Run) -> Vec<Part> {
    let mut parts = vec![
        Part::Heading("What was measured".to_owned()),
        Part::Text(
            "Stock sysbench oltp_read_write with rows chosen uniformly. All servers run all the time with the same \
             options (sync_binlog 1, innodb_flush_log_at_trx_commit 1, full row images); every configuration is measured \
             once in each round, on one server after the other, and ratios are made within a round. Statements are \
             counted by the server (Com_select and the others), processor time is that of the server's process."
                .to_owned(),
        ),
        Part::Text(
            "The rows of stock sysbench compress in a way of their own: they are random digits, eleven at a time between \
             dashes, so that about half of each byte is left whatever the level, and a row image hardly repeats within \
             its transaction but for the two images of an update. Rows of words, repeated values or larger transactions \
             compress better; rows that are compressed or encrypted already do not compress at all."
                .to_owned(),
        ),
    ];
    let figures = Figures::of(run);
    let panels = figures.panels();
    if panels.iter().any(|panel| panel.server.contains("mysql-8.0.31")) {
        parts.push(Part::Text(
            "MySQL 8.0.31 is measured at one level only: there binlog_transaction_compression_level_zstd has no effect \
             (MySQL's bug 34833913)."
                .to_owned(),
        ));
    }
    for panel in panels {
        for threads in figures.threads(panel) {
            let configurations = figures.own_configurations(panel);
            let view = View { figures: &figures, panel, threads, configurations };
            // The name of a program stays as it is.
            let (heading, of_reader) = match panel.condition {
                Condition::BinlogdAttached => (panel.condition.to_string(), view.attached()),
                _ => ("Nobody attached".to_owned(), view.alone()),
            };
            parts.push(Part::Heading(format!("{heading}, {threads} threads")));
            parts.extend(of_reader);
        }
    }
    parts
}

impl View<'_> {
    fn median(&self, configuration: &Configuration, value: &str) -> Result<Spread, Missing> {
        self.figures.median(&self.panel.point(configuration.clone(), self.threads), value)
    }

    fn ratio(&self, one: &Configuration, other: &Configuration, value: &str) -> Result<Spread, Missing> {
        self.figures.ratio(&self.panel.point(one.clone(), self.threads), other.clone(), value)
    }

    fn title(&self, title: &str) -> String {
        format!("{title} ({}, {} threads)", self.panel.condition, self.threads)
    }

    fn alone(&self) -> Vec<Part> {
        let mut columns = vec!["configuration".to_owned()];
        columns.extend(KINDS.map(|kind| format!("{kind}/s")));
        columns.extend(
            ["transactions/s", "p95 (ms)", "processor (cores)", "processor (µs a transaction)"]
                .map(str::to_owned),
        );
        let row = |one: &Configuration| {
            let mut row = vec![Entry::Text(one.to_string())];
            row.extend(KINDS.iter().map(|kind| entry(self.median(one, kind), 0)));
            for (value, digits) in
                [("tps", 1), ("p95_ms", 2), ("source_cores", 3), ("source_us_a_transaction", 0)]
            {
                row.push(entry(self.median(one, value), digits));
            }
            row
        };
        let table = Table {
            title: self.title("Statements a second"),
            columns,
            rows: self.configurations.iter().map(row).collect(),
            notes: Vec::new(),
        };
        let mut parts = vec![Part::Table(table)];
        let points: Vec<Point> =
            self.configurations.iter().map(|one| self.panel.point(one.clone(), self.threads)).collect();
        let suffix = format!(", {} threads", self.threads);
        parts.extend(times::SYSBENCH.table_of(&suffix, self.figures, &points.iter().collect::<Vec<_>>()));
        parts.extend(self.to_uncompressed());
        parts.extend(self.to_before());
        parts.push(Part::Table(self.bytes(&[("binlog_bytes_a_transaction", "binary log")])));
        parts.extend(self.levels("binlog_bytes_a_transaction", "Bytes of the log by level of compression"));
        parts.extend(self.levels("tps", "Transactions a second by level of compression"));
        parts.extend(
            self.levels("source_us_a_transaction", "Processor time of a transaction by level of compression"),
        );
        parts
    }

    fn attached(&self) -> Vec<Part> {
        let text = "binlogd receives with fsync_mode 1, and the source does not wait for it: the servers of 8.0 come \
                    without semi-sync plugins here, and all must be alike. The network's bytes are those that binlogd \
                    read from its connection, with packet headers and heartbeats; the disk's are those of its copy. A \
                    cell counts only when binlogd stored as many bytes as the source wrote.";
        let values = [
            ("binlog_bytes_a_transaction", "binary log"),
            ("network_bytes_a_transaction", "network to binlogd"),
            ("binlogd_bytes_a_transaction", "binlogd's disk"),
        ];
        vec![Part::Text(text.to_owned()), Part::Table(self.bytes(&values))]
    }

    /// Ratios of each compressed configuration to the same server without.
    fn to_uncompressed(&self) -> Option<Part> {
        let pair = |one: &Configuration| Some((one.clone(), one.uncompressed()?));
        let pairs: Vec<_> = self.configurations.iter().filter_map(pair).collect();
        let published = |one: &Configuration| {
            (one.compression == PUBLISHED).then_some(Row::compressed_to_uncompressed as fn(&Row) -> f64)
        };
        self.ratios("Ratios to the same server without compression", &pairs, published)
    }

    /// Ratios of everything else to the first server without the feature.
    fn to_before(&self) -> Option<Part> {
        let before = self.configurations.iter().find(|one| one.compression == Compression::Absent)?;
        let others = self.configurations.iter().filter(|one| *one != before);
        let pairs: Vec<_> = others.map(|one| (one.clone(), before.clone())).collect();
        let published = |one: &Configuration| match one.compression {
            Compression::Off => Some(Row::uncompressed_to_before as fn(&Row) -> f64),
            PUBLISHED => Some(Row::compressed_to_before as fn(&Row) -> f64),
            _ => None,
        };
        self.ratios(&format!("Ratios to {before}"), &pairs, published)
    }

    fn ratios(
        &self,
        title: &str,
        pairs: &[(Configuration, Configuration)],
        published: impl Fn(&Configuration) -> Option<fn(&Row) -> f64>,
    ) -> Option<Part> {
        if pairs.is_empty() {
            return None;
        }
        // The value of ours, and its name in the published table.
        let measures = KINDS.map(|kind| (kind, kind)).into_iter().chain([("source_cores", "cpu")]);
        let measures: Vec<(&str, &str)> = measures.collect();
        let mut columns = vec!["configuration".to_owned()];
        for (_, name) in &measures {
            columns.push((*name).to_owned());
            columns.push(format!("{name}, published"));
        }
        let row = |(one, other): &(Configuration, Configuration)| {
            let mut row = vec![Entry::Text(one.to_string())];
            for (value, name) in &measures {
                row.push(entry(self.ratio(one, other, value), RATIO_DIGITS));
                row.push(match published(one).and_then(|figure| Some(figure(&measure(name)?))) {
                    Some(ratio) => Entry::Number(ratio, RATIO_DIGITS),
                    None => Entry::Missing("not published".to_owned()),
                });
            }
            row
        };
        Some(Part::Table(Table {
            title: self.title(title),
            columns,
            rows: pairs.iter().map(row).collect(),
            notes: vec![
                "Made within each round; the median of the rounds' ratios. The published rates have two or three digits, \
                 their versions are 8.0.19 and 8.0.20, and cpu there is the per cent of the machine, here the cores of \
                 the server's process."
                    .to_owned(),
            ],
        }))
    }

    /// Bytes of a transaction, and what part of them compression saves.
    fn bytes(&self, values: &[(&str, &str)]) -> Table {
        let mut columns = vec!["configuration".to_owned()];
        for (_, name) in values {
            columns.push(format!("{name} (bytes a transaction)"));
            columns.push(format!("{name}, saved (%)"));
        }
        let row = |one: &Configuration| {
            let mut row = vec![Entry::Text(one.to_string())];
            for (value, _) in values {
                row.push(entry(self.median(one, value), 0));
                row.push(match one.uncompressed() {
                    None => Entry::Missing("not compressed".to_owned()),
                    Some(other) => entry(self.ratio(one, &other, value).map(saved), 1),
                });
            }
            row
        };
        Table {
            title: self.title("Bytes"),
            columns,
            rows: self.configurations.iter().map(row).collect(),
            notes: vec!["Saved against the same server without compression, within each round.".to_owned()],
        }
    }

    /// A value over the levels, relative to no compression, a line for each server.
    fn levels(&self, value: &str, title: &str) -> Option<Part> {
        let mut lines: Vec<Line> = Vec::new();
        for one in &self.configurations {
            let (Compression::Zstd(level), Some(other)) = (one.compression, one.uncompressed()) else {
                continue;
            };
            let Ok(ratio) = self.ratio(one, &other, value) else { continue };
            let dot = dot(f64::from(level), &ratio);
            match lines.iter_mut().find(|line| line.name == one.server) {
                Some(line) => line.points.push(dot),
                None => {
                    lines.push(Line { name: one.server.clone(), published: false, points: vec![dot] });
                }
            }
        }
        let by_level = |one: &Dot, other: &Dot| one.x.total_cmp(&other.x);
        lines.iter_mut().for_each(|line| line.points.sort_by(by_level));
        (!lines.is_empty()).then(|| {
            Part::Chart(Chart {
                title: self.title(title),
                x_label: "zstd level".to_owned(),
                y_label: "ratio to no compression".to_owned(),
                x_scale: Scale::Linear,
                lines,
            })
        })
    }
}

/// A ratio of bytes as the per cent that are saved.
fn saved(ratio: Spread) -> Spread {
    let saved = |ratio: f64| (1.0 - ratio) * 100.0;
    Spread { median: saved(ratio.median), range: (saved(ratio.range.1), saved(ratio.range.0)), ..ratio }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Measured, Order, Profile, Settings};
    use crate::point::{self, CellKey};
    use crate::report::example;
    use crate::results::run::Cell;

    fn cell(condition: Condition, configuration: &str, values: &[(&str, f64)]) -> Cell {
        let panel = Panel { server: "mysql-8.0.15, mysql-9.7".to_owned(), condition };
        let point = panel.point(configuration.parse::<point::Configuration>().unwrap(), 4);
        let mut measured = Measured::default();
        values.iter().for_each(|(name, value)| measured.put(name, *value));
        Cell { key: CellKey { point, round: 0 }, started: 0, took: 1.0, measured }
    }

    #[test]
    fn ratios_are_made_to_the_same_server_and_to_the_version_before() {
        let order = Order::new(Profile::Smoke, Settings::default());
        let cells = vec![
            cell(Condition::NobodyAttached, "mysql-8.0.15, before the feature", &[("select", 200.0)]),
            cell(
                Condition::NobodyAttached,
                "mysql-9.7, compression off",
                &[("select", 100.0), ("binlog_bytes_a_transaction", 1000.0)],
            ),
            cell(
                Condition::NobodyAttached,
                "mysql-9.7, zstd level 3",
                &[("select", 90.0), ("binlog_bytes_a_transaction", 400.0)],
            ),
            cell(
                Condition::BinlogdAttached,
                "mysql-9.7, compression off",
                &[("network_bytes_a_transaction", 1100.0)],
            ),
            cell(
                Condition::BinlogdAttached,
                "mysql-9.7, zstd level 3",
                &[("network_bytes_a_transaction", 550.0)],
            ),
        ];
        let parts = parts(&example::run("binlog-compression", order, cells));
        let at = |title: &str, row: usize, column: &str| {
            let table = parts.iter().find_map(|part| match part {
                Part::Table(table) if table.title == title => Some(table),
                _ => None,
            });
            let table = table.unwrap_or_else(|| panic!("no table {title}"));
            table.rows[row][table.columns.iter().position(|name| name == column).unwrap()].clone()
        };
        let median = |median, digits| Entry::Median { median, range: (median, median), digits };
        let off = "Ratios to the same server without compression (nobody attached, 4 threads)";
        assert_eq!(at(off, 0, "select"), median(0.9, 3));
        assert_eq!(at(off, 0, "select, published"), Entry::Number(79.6 / 80.7, 3));
        let before = "Ratios to mysql-8.0.15, before the feature (nobody attached, 4 threads)";
        assert_eq!(at(before, 0, "select"), median(0.5, 3));
        assert_eq!(at(before, 1, "select, published"), Entry::Number(79.6 / 81.3, 3));
        assert_eq!(at("Bytes (nobody attached, 4 threads)", 2, "binary log, saved (%)"), median(60.0, 1));
        let attached = "Bytes (binlogd attached, asynchronous, 4 threads)";
        assert_eq!(at(attached, 1, "network to binlogd, saved (%)"), median(50.0, 1));
        assert!(matches!(at(attached, 0, "network to binlogd, saved (%)"), Entry::Missing(_)));
        let charts = parts.iter().filter(|part| matches!(part, Part::Chart(_))).count();
        assert_eq!(charts, 1, "only the bytes were measured with and without");
    }
}
