//! What a sweep over numbers of threads shows: the figures as they are, and their ratios beside the published ones.

use super::outline::{Chart, Dot, Entry, Line, Part, Scale, Table};
use crate::model::Run;
use crate::reference::Curve;
use crate::statistics::{Figures, Missing, Panel, Spread};

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
    pub baseline: Option<&'a str>,
    /// The published figures by the lab's names of the configurations, that of the baseline too. Only their ratios are
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
            name: curve.configuration.clone(),
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
        y_label: format!("{}, ratio to {baseline}", sweep.unit),
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

/// The published ratios of everything but the baseline.
fn published_ratios(sweep: &Sweep, baseline: &str) -> Vec<Curve> {
    let Some(under) = sweep.published.iter().find(|curve| curve.configuration == baseline) else {
        return Vec::new();
    };
    let others = sweep.published.iter().filter(|curve| curve.configuration != baseline);
    others.map(|curve| curve.relative_to(under)).collect()
}

/// A panel seen by configuration and threads.
struct Grid<'a> {
    figures: &'a Figures<'a>,
    panel: &'a Panel,
    sweep: &'a Sweep<'a>,
}

impl Grid<'_> {
    fn median(&self, configuration: &str, threads: u32) -> Result<Spread, Missing> {
        self.figures.median(&self.panel.point(configuration, threads), self.sweep.value)
    }

    fn ratio(&self, configuration: &str, baseline: &str, threads: u32) -> Result<Spread, Missing> {
        self.figures.ratio(&self.panel.point(configuration, threads), baseline, self.sweep.value)
    }

    /// A line for each configuration, of the points that have a figure.
    fn lines(&self, figure: impl Fn(&str, u32) -> Result<Spread, Missing>) -> Vec<Line> {
        let threads = self.figures.threads(self.panel);
        let line = |configuration: &str| Line {
            name: configuration.to_owned(),
            published: false,
            points: threads
                .iter()
                .filter_map(|threads| Some(dot(f64::from(*threads), &figure(configuration, *threads).ok()?)))
                .collect(),
        };
        self.figures.configurations(self.panel).into_iter().map(line).collect()
    }

    fn medians(&self, title: String) -> Table {
        let configurations = self.figures.configurations(self.panel);
        let mut columns = vec!["threads".to_owned()];
        columns.extend(configurations.iter().map(|name| (*name).to_owned()));
        let row = |threads: u32| {
            let mut row = vec![Entry::Number(f64::from(threads), 0)];
            row.extend(
                configurations.iter().map(|name| entry(self.median(name, threads), self.sweep.digits)),
            );
            row
        };
        let notes = vec![format!("In {}.", self.sweep.unit)];
        Table { title, columns, rows: self.figures.threads(self.panel).into_iter().map(row).collect(), notes }
    }

    fn ratios(&self, title: String, baseline: &str, published: &[Curve]) -> Table {
        let configurations: Vec<&str> =
            self.figures.configurations(self.panel).into_iter().filter(|name| *name != baseline).collect();
        let curve = |name: &str| published.iter().find(|curve| curve.configuration == name);
        let mut columns = vec!["threads".to_owned()];
        for name in &configurations {
            columns.push((*name).to_owned());
            if curve(name).is_some() {
                columns.push(format!("{name}, published"));
            }
        }
        let row = |threads: u32| {
            let mut row = vec![Entry::Number(f64::from(threads), 0)];
            for name in &configurations {
                row.push(entry(self.ratio(name, baseline, threads), RATIO_DIGITS));
                if let Some(curve) = curve(name) {
                    row.push(match curve.at(threads) {
                        Some(ratio) => Entry::Number(ratio, RATIO_DIGITS),
                        None => Entry::Missing(format!("not published at {threads} threads")),
                    });
                }
            }
            row
        };
        let mut notes = vec!["Made within each round; the median of the rounds' ratios.".to_owned()];
        let without: Vec<&str> =
            configurations.iter().copied().filter(|name| curve(name).is_none()).collect();
        if !published.is_empty() && !without.is_empty() {
            notes.push(format!("Not in the published study: {}.", without.join("; ")));
        }
        Table { title, columns, rows: self.figures.threads(self.panel).into_iter().map(row).collect(), notes }
    }
}
