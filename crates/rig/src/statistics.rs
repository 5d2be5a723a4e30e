//! Percentiles, medians, and tables of them.

use serde_json::{Value, json};
use std::time::Duration;

/// Durations of one round, all kept.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<u64>);

impl Samples {
    /// Room for `count` samples, so that recording does not disturb what is measured.
    pub fn with_capacity(count: usize) -> Samples {
        Samples(Vec::with_capacity(count))
    }

    /// Keeps one.
    pub fn record(&mut self, duration: Duration) {
        self.0.push(duration.as_nanos() as u64);
    }

    /// Keeps all of `others` too.
    pub fn extend(&mut self, others: Samples) {
        self.0.extend(others.0);
    }

    /// How many were kept.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when none was kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The percentiles of what was recorded.
    pub fn percentiles(mut self) -> Percentiles {
        self.0.sort_unstable();
        let at = |percent: f64| {
            let rank = (percent / 100.0 * self.0.len() as f64).ceil().max(1.0) as usize;
            self.0.get(rank - 1).map_or(0.0, |nanoseconds| *nanoseconds as f64 / 1000.0)
        };
        Percentiles {
            count: self.0.len() as u64,
            p50: at(50.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
            max: at(100.0),
        }
    }
}

/// What is shown of a round, in microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Percentiles {
    /// Samples.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// 95 % took no longer.
    pub p95: f64,
    /// 99 % took no longer.
    pub p99: f64,
    /// 99.9 % took no longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Percentiles {
    /// For handing over from process to process.
    pub fn to_json(self) -> Value {
        json!({
            "count": self.count,
            "p50_us": self.p50,
            "p95_us": self.p95,
            "p99_us": self.p99,
            "p999_us": self.p999,
            "max_us": self.max,
        })
    }

    /// From [`Percentiles::to_json`], or from a latency of binlogd's own status.
    pub fn from_json(value: &Value) -> Percentiles {
        let number = |key: &str| value[key].as_f64().unwrap_or(0.0);
        Percentiles {
            count: value["count"].as_u64().unwrap_or(0),
            p50: number("p50_us"),
            p95: number("p95_us"),
            p99: number("p99_us"),
            p999: number("p999_us"),
            max: number("max_us"),
        }
    }
}

/// The middle value; the mean of the two middle ones for an even count; 0 for none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        len if len % 2 == 1 => values[len / 2],
        len => (values[len / 2 - 1] + values[len / 2]) / 2.0,
    }
}

/// `median (lowest–highest)` with `digits` after the point.
pub fn with_spread(values: &[f64], digits: usize) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.len() < 2 {
        return format!("{:.digits$}", median(values.iter().copied()));
    }
    format!("{:.digits$} ({low:.digits$}–{high:.digits$})", median(values.iter().copied()))
}

/// A Markdown table, so that it can go into the documentation as it is.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(heads: &[&str]) -> Table {
        Table { rows: vec![heads.iter().map(|head| (*head).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints it to standard output.
    pub fn print(&self) {
        println!("{}", self.text());
    }

    /// As text.
    pub fn text(&self) -> String {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row.get(column).map_or(0, |cell| cell.chars().count()));
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                text.push_str(&format!("|-{}-|\n", rule.join("-|-")));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut samples = Samples::default();
        (1..=100).for_each(|microseconds| samples.record(Duration::from_micros(microseconds)));
        let percentiles = samples.percentiles();
        assert_eq!((percentiles.p50, percentiles.p95, percentiles.p99), (50.0, 95.0, 99.0));
        assert_eq!(Samples::default().percentiles().p99, 0.0);
    }

    #[test]
    fn medians_with_their_spread() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(with_spread(&[1.25, 1.0, 1.5], 2), "1.25 (1.00–1.50)");
    }
}
