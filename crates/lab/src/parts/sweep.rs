//! What a sweep over numbers of threads shows: the figures as they are, and their ratios beside the published ones.

use crate::outline::{Chart, Dot, Entry, Line, Part, Scale, Table};
use crate::point::{Configuration, Panel};
use crate::reference::publication::Curve;
use crate::results::run::{Cell, Run};
use crate::results::statistics::{Figures, Missing, Spread};

/// A value over numbers of threads, for all configurations.
#[derive(Debug, Clone, Copy)]
pub struct Sweep<'a> {
    /// Above chart and table, such as `Queries a second`. Where a run has several panels, theirs is added.
    pub title: &'a str,
    /// Name of the value in the cells, such as `qps`.
    pub value: &'a str,
    /// Unit of the value, such as `queries/s`.
    pub unit: &'a str,
    /// Digits after the point in the table of the value. Ratios have three.
    pub digits: usize,
    /// The configuration that ratios are made to; without it there are no ratios.
    pub baseline: Option<&'a Configuration>,
    /// The published figures by the lab's configurations, that of the baseline too. Only their ratios are
    /// shown.
    pub published: &'a [Curve],
}

/// Digits after the point of a ratio.
pub const RATIO_DIGITS: usize = 3;

/// For every panel of the run: chart and table of the value, and, with a baseline, chart and table of the ratios.
pub fn parts(run: &Run, sweep: &Sweep) -> Vec<Part> {
    let figures = Figures::of(run);
    let panels = figures.panels();
    panels.iter().flat_map(|panel| of_panel(&figures, panel, panels.len() > 1, sweep)).collect()
}

/// The same for one panel; `named` adds its name to the titles.
pub fn of_panel(figures: &Figures, panel: &Panel, named: bool, sweep: &Sweep) -> Vec<Part> {
    let suffix = if named { format!(" ({panel})") } else { String::new() };
    let grid = Grid { figures, panel, sweep };
    let mut parts = vec![
        Part::Chart(Chart {
            title: format!("{}{suffix}", sweep.title),
            x_label: "threads".to_owned(),
            y_label: sweep.unit.to_owned(),
            x_scale: Scale::Logarithmic,
            lines: grid.lines(|configuration, threads| grid.median(configuration, threads)),
        }),
        Part::Table(grid.medians(format!("{}, figures{suffix}", sweep.title))),
    ];
    let Some(baseline) = sweep.baseline else { return parts };
    let published = published_ratios(sweep, baseline);
    let mut lines = grid.lines(|configuration, threads| grid.ratio(configuration, baseline, threads));
    lines.extend(published.iter().map(|curve| {
        Line {
            name: curve.configuration.to_string(),
            published: true,
            points: curve
                .points
                .iter()
                .map(|(threads, y)| Dot { x: f64::from(*threads), y: *y, spread: None })
                .collect(),
        }
    }));
    parts.push(Part::Chart(Chart {
        title: format!("{}, ratio to {baseline}{suffix}", sweep.title),
        x_label: "threads".to_owned(),
        y_label: format!("ratio to {baseline}"),
        x_scale: Scale::Logarithmic,
        lines,
    }));
    parts.push(Part::Table(grid.ratios(
        format!("{}, ratios to {baseline}{suffix}", sweep.title),
        baseline,
        &published,
    )));
    parts
}

/// A figure, or why there is none, as an entry of a table.
pub fn entry(figure: Result<Spread, Missing>, digits: usize) -> Entry {
    match figure {
        Ok(spread) => Entry::Median { median: spread.median, range: spread.range, digits },
        Err(Missing(reason)) => Entry::Missing(reason),
    }
}

/// A figure as a point of a chart.
pub fn dot(x: f64, figure: &Spread) -> Dot {
    Dot { x, y: figure.median, spread: (figure.rounds > 1).then_some(figure.range) }
}

/// The table, a row for each number of threads, turned over where that makes it narrower: then there is a row for each
/// configuration, the published ones below those that they are compared with.
fn narrow(table: Table) -> Table {
    if table.columns.len() <= table.rows.len() + 1 {
        return table;
    }
    let threads = table.rows.iter().map(|row| match row.first() {
        Some(Entry::Number(1.0, _)) => "1 thread".to_owned(),
        Some(Entry::Number(threads, _)) => format!("{threads} threads"),
        _ => String::new(),
    });
    let columns = ["configuration".to_owned()].into_iter().chain(threads).collect();
    let row = |(column, name): (usize, &String)| {
        let entries = table.rows.iter().filter_map(|row| row.get(column).cloned());
        [Entry::Text(name.clone())].into_iter().chain(entries).collect()
    };
    let rows = table.columns.iter().enumerate().skip(1).map(row).collect();
    Table { title: table.title, columns, rows, notes: table.notes }
}

/// The published ratios of everything but the baseline.
fn published_ratios(sweep: &Sweep, baseline: &Configuration) -> Vec<Curve> {
    let Some(under) = sweep.published.iter().find(|curve| curve.configuration == *baseline) else {
        return Vec::new();
    };
    let others = sweep.published.iter().filter(|curve| curve.configuration != *baseline);
    others.map(|curve| curve.relative_to(under)).collect()
}

/// A panel seen by configuration and threads.
struct Grid<'a> {
    figures: &'a Figures<'a>,
    panel: &'a Panel,
    sweep: &'a Sweep<'a>,
}

impl Grid<'_> {
    fn median(&self, configuration: &Configuration, threads: u32) -> Result<Spread, Missing> {
        self.figures.median(&self.panel.point(configuration, threads), self.sweep.value)
    }

    fn ratio(
        &self,
        configuration: &Configuration,
        baseline: &Configuration,
        threads: u32,
    ) -> Result<Spread, Missing> {
        self.figures.ratio(&self.panel.point(configuration, threads), baseline, self.sweep.value)
    }

    /// The configurations that have the value, and those that have none of it although they were measured, such as a
    /// receiver's memory where none is attached. Where none has it all are kept, so that the reason is shown.
    fn configurations(&self) -> (Vec<&Configuration>, Vec<&Configuration>) {
        let threads = self.figures.threads(self.panel);
        let is_without = |configuration: &&Configuration| {
            let points = threads.iter().map(|threads| self.panel.point(*configuration, *threads));
            let cells: Vec<&Cell> =
                points.flat_map(|point| self.figures.cells(&point).collect::<Vec<_>>()).collect();
            cells.iter().any(|cell| cell.measured.invalid.is_none())
                && cells.iter().all(|cell| !cell.measured.values.contains_key(self.sweep.value))
        };
        let all = self.figures.configurations(self.panel);
        let (without, with): (Vec<_>, Vec<_>) = all.iter().copied().partition(is_without);
        if with.is_empty() { (all, with) } else { (with, without) }
    }

    /// A line for each configuration, of the points that have a figure.
    fn lines(&self, figure: impl Fn(&Configuration, u32) -> Result<Spread, Missing>) -> Vec<Line> {
        let threads = self.figures.threads(self.panel);
        let line = |configuration: &Configuration| Line {
            name: configuration.to_string(),
            published: false,
            points: threads
                .iter()
                .filter_map(|threads| Some(dot(f64::from(*threads), &figure(configuration, *threads).ok()?)))
                .collect(),
        };
        self.configurations().0.into_iter().map(line).collect()
    }

    fn medians(&self, title: String) -> Table {
        let (configurations, without) = self.configurations();
        let mut columns = vec!["threads".to_owned()];
        columns.extend(configurations.iter().map(ToString::to_string));
        let row = |threads: u32| {
            let mut row = vec![Entry::Number(f64::from(threads), 0)];
            row.extend(configurations.iter().map(|one| entry(self.median(one, threads), self.sweep.digits)));
            row
        };
        let mut notes = vec![format!("In {}.", self.sweep.unit)];
        if !without.is_empty() {
            notes.push(format!("Has no such value: {}.", joined(&without)));
        }
        let rows = self.figures.threads(self.panel).into_iter().map(row).collect();
        narrow(Table { title, columns, rows, notes })
    }

    fn ratios(&self, title: String, baseline: &Configuration, published: &[Curve]) -> Table {
        let configurations: Vec<&Configuration> =
            self.configurations().0.into_iter().filter(|one| *one != baseline).collect();
        let curve = |one: &Configuration| published.iter().find(|curve| curve.configuration == *one);
        let mut columns = vec!["threads".to_owned()];
        for one in &configurations {
            columns.push(one.to_string());
            if curve(one).is_some() {
                columns.push(format!("{one}, published"));
            }
        }
        let row = |threads: u32| {
            let mut row = vec![Entry::Number(f64::from(threads), 0)];
            for one in &configurations {
                row.push(entry(self.ratio(one, baseline, threads), RATIO_DIGITS));
                if let Some(curve) = curve(one) {
                    row.push(match curve.at(threads) {
                        Some(ratio) => Entry::Number(ratio, RATIO_DIGITS),
                        None => Entry::Missing(format!("not published at {threads} threads")),
                    });
                }
            }
            row
        };
        let mut notes = vec!["Made within each round; the median of the rounds' ratios.".to_owned()];
        let without: Vec<&Configuration> =
            configurations.iter().copied().filter(|one| curve(one).is_none()).collect();
        if !published.is_empty() && !without.is_empty() {
            notes.push(format!("Not in the published study: {}.", joined(&without)));
        }
        let rows = self.figures.threads(self.panel).into_iter().map(row).collect();
        narrow(Table { title, columns, rows, notes })
    }
}

fn joined(configurations: &[&Configuration]) -> String {
    configurations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Measured;
    use crate::point::Condition;
    use crate::point::virtual_replica::{Configuration, FSYNC_MODE_1, Workload};
    use crate::reference::virtual_replica::{mode, qps};
    use crate::report::example;

    fn table(parts: &[Part], index: usize) -> &Table {
        let mut tables = parts.iter().filter_map(|part| match part {
            Part::Table(table) => Some(table),
            _ => None,
        });
        tables.nth(index).expect("a table")
    }

    fn sweep<'a>(value: &'a str, published: &'a [Curve]) -> Sweep<'a> {
        let baseline = Some(&example::ALONE);
        Sweep { title: "Queries a second", value, unit: "queries/s", digits: 0, baseline, published }
    }

    #[test]
    fn published_ratios_stand_beside_the_measured_ones() {
        let run = example::virtual_replica();
        let published =
            [qps(mode::SOURCE_ALONE, Configuration::Alone), qps(mode::FSYNC_MODE_1, FSYNC_MODE_1)];
        let parts = parts(&run, &sweep("qps", &published));
        let ratios = table(&parts, 1);
        assert_eq!(
            ratios.columns[..4],
            ["threads", "binlogd, fsync_mode 0", "binlogd, fsync_mode 1", "binlogd, fsync_mode 1, published"]
        );
        assert_eq!(ratios.rows[4][3], Entry::Number(108_939.0 / 119_451.0, RATIO_DIGITS));
        assert!(ratios.rows.iter().all(|row| row.len() == ratios.columns.len()));
        assert!(
            ratios.notes[1].starts_with("Not in the published study: binlogd, fsync_mode 0;"),
            "{:?}",
            ratios.notes
        );
        let Part::Chart(chart) = &parts[2] else { panic!("{parts:?}") };
        let lines: Vec<(bool, usize)> =
            chart.lines.iter().map(|line| (line.published, line.points.len())).collect();
        assert_eq!(lines, [(false, 8), (false, 8), (false, 8), (false, 8), (false, 8), (true, 20)]);
    }

    #[test]
    fn a_configuration_without_the_value_is_named_and_one_that_is_invalid_says_why() {
        let mut run = example::virtual_replica();
        for cell in &mut run.cells {
            match cell.key.point.configuration.to_string().as_str() {
                "source alone" => {}
                "binlogd, fsync_mode 0" => cell.measured = Measured::invalid("fell back"),
                _ => cell.measured.put("receiver_mib", 9.0),
            }
        }
        let parts = parts(&run, &Sweep { baseline: None, ..sweep("receiver_mib", &[]) });
        let medians = table(&parts, 0);
        assert_eq!(medians.columns[1], "binlogd, fsync_mode 0");
        assert_eq!(medians.rows[0][1], Entry::Missing("invalid: fell back".to_owned()));
        assert_eq!(medians.notes[1], "Has no such value: source alone.");
        let all =
            table(&self::parts(&run, &Sweep { baseline: None, ..sweep("nothing", &[]) }), 0).columns.len();
        assert_eq!(all, 2, "all but those that are invalid have no such value");
    }

    #[test]
    fn a_table_of_few_threads_has_a_row_for_each_configuration() {
        let mut run = example::virtual_replica();
        run.cells.retain(|cell| [2, 32].contains(&cell.key.point.threads));
        let published =
            [qps(mode::SOURCE_ALONE, Configuration::Alone), qps(mode::FSYNC_MODE_1, FSYNC_MODE_1)];
        let parts = parts(&run, &sweep("qps", &published));
        let ratios = table(&parts, 1);
        assert_eq!(ratios.columns, ["configuration", "2 threads", "32 threads"]);
        let names: Vec<&Entry> = ratios.rows[..3].iter().map(|row| &row[0]).collect();
        let expected = ["binlogd, fsync_mode 0", "binlogd, fsync_mode 1", "binlogd, fsync_mode 1, published"]
            .map(|name| Entry::Text(name.to_owned()));
        assert_eq!(names, expected.iter().collect::<Vec<_>>());
        assert_eq!(ratios.rows[2][2], Entry::Number(108_939.0 / 119_451.0, RATIO_DIGITS));
        let figures = Figures::of(&run);
        let point = figures.panels()[0].point(FSYNC_MODE_1, 32);
        assert_eq!(ratios.rows[1][2], entry(figures.ratio(&point, &example::ALONE, "qps"), RATIO_DIGITS));
    }

    #[test]
    fn panels_are_told_apart_by_their_titles() {
        let mut run = example::virtual_replica();
        let others = run.cells.clone().into_iter().map(|mut cell| {
            cell.key.point.panel.condition = Condition::Workload(Workload::UpdateNonIndex);
            cell
        });
        run.cells.extend(others.collect::<Vec<_>>());
        let parts = parts(&run, &sweep("qps", &[]));
        assert_eq!(parts.len(), 8);
        assert_eq!(table(&parts, 0).title, "Queries a second, figures (mysql-9.7)");
        assert_eq!(
            table(&parts, 3).title,
            "Queries a second, ratios to source alone (mysql-9.7, oltp_update_non_index)"
        );
    }
}
