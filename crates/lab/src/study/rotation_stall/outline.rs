//! What the report shows.

use crate::outline::{Chart, Dot, Entry, Line, Part, Scale, Table};
use crate::parts::sweep::entry;
use crate::parts::times;
use crate::point::disk::Disk;
use crate::point::rotation_stall::{Beside, Configuration};
use crate::point::{Condition, Panel, Point};
use crate::results::run::{Cell, Run};
use crate::results::statistics::{Figures, Missing};

/// Points of a line, at most: of a longer load several intervals are shown as one.
const POINTS_MAX: usize = 300;
/// Height of the mark of a rotation, relative to the highest point.
const MARK: f64 = 0.1;

pub(super) fn outline(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let mut parts = vec![Part::Text(introduction(run))];
    for panel in figures.panels() {
        let Condition::Disk(disk) = panel.condition else { continue };
        let points = points(&figures, panel);
        let Some(threads) = points.first().map(|(point, _)| point.threads) else { continue };
        let view = View { figures: &figures, panel, disk, points };
        parts.push(Part::Heading(format!("{panel}")));
        parts.extend(view.charts().into_iter().map(Part::Chart));
        parts.push(Part::Table(view.table("The stall at a rotation", &STALLS, &STALLS_NOTES)));
        parts.push(Part::Table(view.table("The whole load", &WHOLE, &WHOLE_NOTES)));
        let all: Vec<&Point> = view.points.iter().map(|(point, _)| *point).collect();
        parts.extend(times::SMALL_INSERT.table_of(&format!(", {panel}, {threads} threads"), &figures, &all));
    }
    parts
}

fn introduction(run: &Run) -> String {
    let setting = |name: &str| run.order.settings.0.get(name).cloned().unwrap_or_default();
    format!(
        "{} sessions change a number in rows of {} KiB each. With full row images, the default, the log gets such a row \
         twice, {} MB a second in all, and next to nothing else is written. {} sessions insert small rows, with a pause \
         of 1 ms; their commits are what is timed. After a stall the writers do not make up for what was not written. {} \
         s for each cell. innodb_flush_log_at_trx_commit is 2 in all of them, so that what differs is the sync of the \
         binary log. A limited disk is ext4 in an image whose loop device the kernel lets write no faster; binlogd's \
         copy is not on it. binlogd, where it is attached, acknowledges what is durable (AFTER_SYNC, fsync_mode 1).",
        setting("writers"),
        setting("row_kib"),
        setting("log_mb_s"),
        setting("small"),
        setting("seconds"),
    )
}

/// The points of a panel with their configurations, the published trouble first, then what may help.
fn points<'a>(figures: &Figures<'a>, panel: &Panel) -> Vec<(&'a Point, Configuration)> {
    let mut points: Vec<(&Point, Configuration)> = figures.own_points(panel);
    let largest = points.iter().map(|(_, one)| one.file_mib).max();
    points.sort_by_key(|(_, one)| (one.beside, Some(one.file_mib) != largest, one.every));
    points
}

/// What is drawn of a series of several intervals as one.
type Joined = fn(&[f64]) -> f64;

/// One disk.
struct View<'a> {
    figures: &'a Figures<'a>,
    panel: &'a Panel,
    disk: Disk,
    points: Vec<(&'a Point, Configuration)>,
}

impl View<'_> {
    /// The first round of each configuration over time. The trouble and the other values of `sync_binlog` stand in one
    /// chart, the trouble and everything else in another.
    fn charts(&self) -> Vec<Chart> {
        let Some((_, trouble)) = self.points.first().copied() else { return Vec::new() };
        let is_of_syncs =
            |one: Configuration| one.beside == Beside::Nothing && one.file_mib == trouble.file_mib;
        let longest: Joined = |values| values.iter().copied().fold(0.0, f64::max);
        let mean: Joined = |values| values.iter().sum::<f64>() / values.len() as f64;
        let throughput = ("Throughput", "small commits/s", "tps", mean);
        let waiting = ("Longest commit under way", "ms", "longest_ms", longest);
        let groups: [(&str, Vec<Configuration>); 2] = [
            ("by sync_binlog", self.configurations(is_of_syncs)),
            ("and what may help", self.configurations(|one| one == trouble || !is_of_syncs(one))),
        ];
        let mut charts = Vec::new();
        for (group, configurations) in groups {
            if group != "by sync_binlog" && configurations.len() < 2 {
                continue;
            }
            for (title, y_label, series, joined) in [waiting, throughput] {
                let lines: Vec<Line> = configurations
                    .iter()
                    .flat_map(|one| self.over_time(*one, series, joined, *one == trouble))
                    .collect();
                if !lines.is_empty() {
                    charts.push(Chart {
                        title: format!("{title}, {group} ({}, {})", self.panel.server, self.disk),
                        x_label: "s".to_owned(),
                        y_label: y_label.to_owned(),
                        x_scale: Scale::Linear,
                        lines,
                    });
                }
            }
        }
        charts
    }

    fn configurations(&self, wanted: impl Fn(Configuration) -> bool) -> Vec<Configuration> {
        self.points.iter().map(|(_, one)| *one).filter(|one| wanted(*one)).collect()
    }

    fn over_time(&self, one: Configuration, series: &str, joined: Joined, marked: bool) -> Vec<Line> {
        let point = self.points.iter().find(|(_, other)| *other == one);
        let cell = point
            .and_then(|(point, _)| self.figures.cells(point).find(|cell| cell.measured.invalid.is_none()));
        cell.map_or_else(Vec::new, |cell| lines(one, cell, series, joined, marked))
    }

    fn value(&self, point: &Point, name: &str, scale: f64, digits: usize) -> Entry {
        let figure = self.figures.median(point, name);
        let none = self.figures.median(point, "rotations").is_ok_and(|rotations| rotations.median == 0.0);
        entry(
            figure.map(|spread| spread.scaled(scale)).map_err(|missing| match none {
                true => Missing("no file was full within the cell".to_owned()),
                false => missing,
            }),
            digits,
        )
    }

    fn table(&self, title: &str, columns: &[Column], notes: &[&str]) -> Table {
        let heads: Vec<&str> =
            ["configuration"].into_iter().chain(columns.iter().map(|column| column.0)).collect();
        let row = |(point, configuration): &(&Point, Configuration)| {
            let value = |(_, name, scale, digits): &Column| self.value(point, name, *scale, *digits);
            [Entry::Text(configuration.to_string())].into_iter().chain(columns.iter().map(value)).collect()
        };
        let rows = self.points.iter().map(row).collect();
        Table::new(format!("{title} ({}, {})", self.panel.server, self.disk), &heads, rows, notes)
    }
}

/// Of a table: its head, the number of a cell that it shows, what that is multiplied with, and digits.
type Column = (&'static str, &'static str, f64, usize);

const STALLS: [Column; 9] = [
    ("rotations in a cell", "rotations", 1.0, 0),
    ("period (s)", "rotation_period_s", 1.0, 1),
    ("longest commit at a rotation (ms)", "stall_longest_ms", 1.0, 0),
    ("at the worst (ms)", "stall_longest_ms_worst", 1.0, 0),
    ("longest commit between (ms)", "between_longest_ms", 1.0, 0),
    ("stall at a rotation (ms)", "stall_seconds", 1e3, 0),
    ("stall between (ms)", "between_seconds", 1e3, 0),
    ("lowest at a rotation", "stall_lowest", 1.0, 2),
    ("lowest between", "between_lowest", 1.0, 2),
];

const STALLS_NOTES: [&str; 3] = [
    "Each is the median over the rotations of a cell, and then over the rounds. Longest commit: of those under way \
     then. Stall: how long throughput stayed below half the median of the cell, seen in intervals of sample_ms. \
     Lowest: the lowest such interval, relative to that median; 0 is a standstill.",
    "Between: the same half-way between the end of a stall and the next rotation, where nothing happens: what \
     chance makes of it. Only what is worse than that is the rotation's doing.",
    "As published: a file of 1 GB was full every 40 s, and throughput fell to 0 for one or two seconds.",
];

const WHOLE: [Column; 6] = [
    ("log (MB/s)", "log_mb_s", 1.0, 1),
    ("small commits/s", "tps", 1.0, 0),
    ("time in stalls (%)", "slow_share", 100.0, 1),
    ("p99 (ms)", "small_p99_ms", 1.0, 1),
    ("p99.9 (ms)", "small_p99_9_ms", 1.0, 1),
    ("longest (ms)", "small_longest_ms", 1.0, 0),
];

const WHOLE_NOTES: [&str; 1] = [
    "Time in stalls: the share of all intervals, at rotations and elsewhere, with less than half the median. It says \
     what the percentiles hide: who waits for ten seconds commits once in them, so a stall is one commit of each \
     session among ten thousands.",
];

/// A series of a cell as a line, and where it is `marked` the rotations as a line of marks on the axis.
fn lines(configuration: Configuration, cell: &Cell, series: &str, joined: Joined, marked: bool) -> Vec<Line> {
    let of = |name: &str| cell.measured.series.get(name).map_or(&[][..], Vec::as_slice);
    let (values, ended) = (of(series), of("sample_ended_s"));
    if values.is_empty() || ended.is_empty() {
        return Vec::new();
    }
    let dot = |x: f64, y: f64| Dot { x, y, spread: None };
    let size = values.len().div_ceil(POINTS_MAX);
    let points: Vec<Dot> = values
        .chunks(size)
        .zip(ended.chunks(size))
        .filter_map(|(values, ended)| Some(dot(*ended.last()?, joined(values))))
        .collect();
    let highest = points.iter().map(|dot| dot.y).fold(0.0, f64::max);
    let mut lines = vec![Line { name: configuration.to_string(), published: false, points }];
    if marked && !of("rotation_s").is_empty() {
        let points = of("rotation_s")
            .iter()
            .flat_map(|time| [dot(*time, 0.0), dot(*time, highest * MARK), dot(*time, 0.0)])
            .collect();
        lines.push(Line { name: format!("rotations, {configuration}"), published: false, points });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Measured, Order, Profile};
    use crate::report::example;
    use crate::study::Study;
    use crate::study::rotation_stall::RotationStall;

    fn run() -> Run {
        let settings = RotationStall.settings(Profile::Quick);
        let order = Order::new(Profile::Quick, settings);
        let planned = RotationStall.plan(&order).unwrap().scenes.into_iter().flat_map(|scene| scene.cells);
        let cells = planned.map(|key| {
            let mut measured = Measured::default();
            measured.put("rotations", 2.0);
            measured.put("stall_longest_ms", 440.0);
            measured.put("stall_seconds", 0.4);
            measured.put("small_p99_ms", 8.0);
            let series = |value: fn(u32) -> f64| (1..=600).map(value).collect::<Vec<f64>>();
            measured.series.insert("sample_ended_s".to_owned(), series(|index| f64::from(index) / 10.0));
            measured.series.insert("longest_ms".to_owned(), series(|index| f64::from(index % 2)));
            measured.series.insert("tps".to_owned(), series(f64::from));
            measured.series.insert("rotation_s".to_owned(), vec![17.0, 35.0]);
            Cell { key, started: 0, took: 60.0, measured }
        });
        example::run("rotation-stall", order, cells.collect())
    }

    #[test]
    fn the_trouble_stands_first_and_in_every_chart() {
        let run = run();
        let figures = Figures::of(&run);
        let panel = figures.panels()[0];
        let names: Vec<String> = points(&figures, panel).iter().map(|(_, one)| one.to_string()).collect();
        assert_eq!(
            names,
            [
                "sync_binlog 0, files of 1024 MiB",
                "sync_binlog 1, files of 1024 MiB",
                "sync_binlog 1000, files of 1024 MiB",
                "sync_binlog 0, files of 128 MiB",
                "sync_binlog 0, files of 1024 MiB, binlogd attached",
                "sync_binlog 0, files of 1024 MiB, vm.dirty_bytes of 128 MiB",
            ]
        );
        let parts = outline(&run);
        let charts: Vec<&Chart> = parts
            .iter()
            .filter_map(|part| if let Part::Chart(chart) = part { Some(chart) } else { None })
            .collect();
        assert_eq!(charts.len(), 2 * 4);
        for chart in charts {
            assert_eq!(chart.lines[0].name, names[0]);
            assert!(chart.lines[1].name.starts_with("rotations, ") && chart.lines[1].points.len() == 6);
            assert!(chart.lines.len() == 5 || chart.lines.len() == 4, "{}", chart.title);
            // Two intervals as one: the longest of both, the mean of both.
            assert_eq!(chart.lines[0].points.len(), 300);
            let first = chart.lines[0].points[0].y;
            assert_eq!(first, if chart.title.starts_with("Throughput") { 1.5 } else { 1.0 });
        }
    }

    #[test]
    fn lengths_are_shown_in_ms_and_what_is_missing_has_a_reason() {
        let mut run = run();
        for cell in &mut run.cells {
            cell.measured.put("rotations", 0.0);
        }
        let parts = outline(&run);
        let Some(Part::Table(table)) = parts.iter().find(|part| matches!(part, Part::Table(_))) else {
            panic!("no table")
        };
        assert_eq!(table.rows.len(), 6);
        let row = &table.rows[0];
        assert!(matches!(row[6], Entry::Median { median: 400.0, .. }), "{row:?}");
        assert!(matches!(&row[5], Entry::Missing(reason) if reason.contains("no file was full")), "{row:?}");
    }
}
