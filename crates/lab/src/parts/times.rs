//! What a report says of how long transactions took.

use super::sweep::{self, Sweep, entry};
use crate::load::times::NAMES;
use crate::outline::{Entry, Part, Table};
use crate::point::{Configuration, Point};
use crate::results::run::Run;
use crate::results::statistics::Figures;

/// Which transactions, and who timed them.
#[derive(Debug, Clone, Copy)]
pub struct Timed {
    /// What they are called, such as `a transaction`.
    pub what: &'static str,
    /// What stands before the names of their values in the cells.
    prefix: &'static str,
    /// The value that says how many there were.
    count: &'static str,
    /// Digits after the point.
    digits: usize,
    /// What a reader must know of the numbers.
    note: &'static str,
}

/// sysbench's transactions.
pub const SYSBENCH: Timed = Timed {
    what: "a transaction",
    prefix: "",
    count: "transactions",
    digits: 2,
    note: "As sysbench's clients saw it, in ms: from a transaction's first statement to the end of its commit. Percentiles \
           are of sysbench's histogram, whose steps are 1.8 % wide; the longest is exact.",
};

/// TPC-C's transactions that count, by go-tpc.
pub const NEW_ORDER: Timed = Timed {
    what: "NEW_ORDER",
    prefix: "new_order_",
    count: "new_order_count",
    digits: 1,
    note: "As go-tpc's clients saw it, in ms: from a transaction's first statement to the end of its commit. Each is the \
           upper end of a step of go-tpc's histogram, the longest too: the steps are 0.5 ms wide up to 17 ms, and 3 to 6 % \
           above that. What took longer than 16 s counts as 16 s.",
};

/// The small inserts of `rotation-stall`, timed by the lab itself.
pub const SMALL_INSERT: Timed = Timed {
    what: "a small insert",
    prefix: "small_",
    count: "small_count",
    digits: 1,
    note: "As the lab's own sessions saw it, in ms: from the statement, which commits by itself, to the answer; all exact.",
};

impl Timed {
    /// The name of a value in the cells.
    fn value(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Whether a cell of the run has more than one percentile: those of an older lab have the 95th alone.
    fn is_whole(&self, run: &Run) -> bool {
        let value = self.value("p99_ms");
        run.cells.iter().any(|cell| cell.measured.values.contains_key(&value))
    }

    /// The 99th percentile over numbers of threads, with its ratios where there is a baseline, and a table of all times.
    /// Of a run of an older lab, which has none, the 95th percentile.
    pub fn parts(&self, run: &Run, baseline: Option<&Configuration>) -> Vec<Part> {
        let is_whole = self.is_whole(run);
        let (percentile, value) = if is_whole { ("99th", "p99_ms") } else { ("95th", "p95_ms") };
        let (title, value) = (format!("{percentile} percentile of {}", self.what), self.value(value));
        let sweep =
            Sweep { title: &title, value: &value, unit: "ms", digits: self.digits, baseline, published: &[] };
        let mut parts = sweep::parts(run, &sweep);
        if is_whole {
            let figures = Figures::of(run);
            parts.push(Part::Table(self.table("", &figures, &figures.points())));
        } else {
            parts.push(Part::Text(
                "This run was measured by an older lab, which kept the 95th percentile alone.".to_owned(),
            ));
        }
        parts
    }

    /// All times of these points, or nothing where the run is of an older lab. `suffix` is added to the title.
    pub fn table_of(&self, suffix: &str, figures: &Figures<'_>, points: &[&Point]) -> Option<Part> {
        self.is_whole(figures.run()).then(|| Part::Table(self.table(suffix, figures, points)))
    }

    fn table(&self, suffix: &str, figures: &Figures<'_>, points: &[&Point]) -> Table {
        let mut points = points.to_vec();
        // Each block is measured in another order of configurations, which is of no interest here.
        points.sort_by_cached_key(|point| {
            let configurations = figures.configurations(&point.panel);
            let order = configurations.iter().position(|one| **one == point.configuration);
            (point.panel.clone(), point.threads, order)
        });
        let is_named = points.windows(2).any(|pair| pair[0].panel != pair[1].panel);
        let mut columns: Vec<String> = if is_named { vec!["panel".to_owned()] } else { Vec::new() };
        columns.extend(["threads", "configuration", "in a cell"].map(str::to_owned));
        columns.extend(NAMES.map(|(_, title)| title.to_owned()));
        let row = |point: &&Point| {
            let mut row = Vec::new();
            if is_named {
                row.push(Entry::Text(point.panel.to_string()));
            }
            row.push(Entry::Number(f64::from(point.threads), 0));
            row.push(Entry::Text(point.configuration.to_string()));
            row.push(entry(figures.median(point, self.count), 0));
            row.extend(NAMES.map(|(name, _)| entry(figures.median(point, &self.value(name)), self.digits)));
            row
        };
        Table {
            title: format!("How long {} took (ms){suffix}", self.what),
            columns,
            rows: points.iter().map(row).collect(),
            notes: vec![
                self.note.to_owned(),
                "Each is the median of the rounds, the longest too; their range shows the longest of all. Of fewer than a \
                 thousand transactions in a cell p99.9 is no more than the longest, about, and of fewer than a hundred \
                 p99 neither."
                    .to_owned(),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn all_times_stand_in_a_table_and_the_99th_percentile_in_a_chart() {
        let mut run = example::virtual_replica();
        for cell in &mut run.cells {
            let threads = f64::from(cell.key.point.threads);
            cell.measured.put("transactions", 5000.0);
            for (index, (name, _)) in NAMES.into_iter().enumerate() {
                cell.measured.put(name, threads * (index + 1) as f64);
            }
        }
        let parts = SYSBENCH.parts(&run, Some(&example::ALONE));
        let titles: Vec<&str> = parts
            .iter()
            .map(|part| match part {
                Part::Chart(chart) => chart.title.as_str(),
                Part::Table(table) => table.title.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            titles,
            [
                "99th percentile of a transaction",
                "99th percentile of a transaction, figures",
                "99th percentile of a transaction, ratio to source alone",
                "99th percentile of a transaction, ratios to source alone",
                "How long a transaction took (ms)"
            ]
        );
        let Part::Chart(chart) = &parts[0] else { panic!("{parts:?}") };
        assert!(chart.lines.iter().all(|line| line.points.iter().all(|dot| dot.y == dot.x * 3.0)));
        let Part::Table(table) = &parts[4] else { panic!("{parts:?}") };
        assert_eq!(
            table.columns.join("; "),
            "threads; configuration; in a cell; p50; p95; p99; p99.9; longest"
        );
        assert_eq!(table.rows.len(), 8 * 5);
        let median = |median, digits| Entry::Median { median, range: (median, median), digits };
        let last = table.rows.last().unwrap();
        assert_eq!((&last[0], &last[2]), (&Entry::Number(256.0, 0), &median(5000.0, 0)));
        assert_eq!((&last[6], &last[7]), (&median(1024.0, 2), &median(1280.0, 2)));
    }

    #[test]
    fn a_run_of_an_older_lab_shows_what_it_has() {
        let mut run = example::virtual_replica();
        run.cells.iter_mut().for_each(|cell| cell.measured.put("new_order_p95_ms", 20.0));
        let parts = NEW_ORDER.parts(&run, None);
        let Part::Chart(chart) = &parts[0] else { panic!("{parts:?}") };
        assert_eq!(chart.title, "95th percentile of NEW_ORDER");
        assert!(chart.lines.iter().all(|line| line.points.len() == 8));
        assert!(matches!(&parts[..], [_, Part::Table(_), Part::Text(text)] if text.contains("older lab")));
        let figures = Figures::of(&run);
        assert_eq!(NEW_ORDER.table_of("", &figures, &figures.points()), None);
    }
}
