//! What the report shows.

use crate::machine::file_system::Kind;
use crate::outline::{Chart, Dot, Entry, Line, Part, Scale, Table};
use crate::parts::sweep::{RATIO_DIGITS, entry};
use crate::parts::times;
use crate::point::place::{Condition, DATA_GB, Files, Pool};
use crate::point::sync_binlog::Configuration;
use crate::point::{self, Panel};
use crate::reference::sync_binlog::{FileSystem, tps};
use crate::results::run::{Cell, Run};
use crate::results::statistics::{Figures, Missing};

mod ratios;
#[cfg(test)]
mod tests;

/// Why there is nothing of it.
const NOT_ON_USERS: &str = "not measured on a user's server, which would have to be restarted";

/// Height of the mark of a rotation, relative to the highest sample.
const MARK: f64 = 0.15;

pub(super) fn outline(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let mut parts = vec![Part::Text(introduction(run))];
    for threads in all_threads(&figures) {
        let view = View { figures: &figures, threads, panels: panels(&figures, threads) };
        parts.push(Part::Heading(format!("{threads} threads")));
        parts.push(Part::Table(view.medians()));
        parts.extend(view.ratios().map(Part::Table));
        parts.extend(view.ratios_to_one().map(Part::Table));
        parts.extend(view.attached().map(Part::Table));
        parts.extend(view.file_systems().map(Part::Table));
        parts.extend(view.charts().into_iter().map(Part::Chart));
        parts.push(Part::Table(view.stalls()));
        let points: Vec<_> = figures.points().into_iter().filter(|point| point.threads == threads).collect();
        parts.extend(times::NEW_ORDER.table_of(&format!(", {threads} threads"), &figures, &points));
    }
    parts
}

fn introduction(run: &Run) -> String {
    let setting = |name: &str| run.order.settings.0.get(name).cloned().unwrap_or_default();
    let apart = &run.order.apart;
    let users = run.cells.iter().any(|cell| is_users(cell.key.point.panel.condition));
    let of_users = if users { ON_USERS } else { "" };
    format!(
        "{} warehouses, {} s for each cell. innodb_flush_log_at_trx_commit stays 1, its \
         default, which the published study does not mention. Throughput is the median of intervals of half a second, \
         by the server's own counter of commits; for the stall it is looked at every {} ms. The buffer pool is a \
         share of the tables as they were filled, in {DATA_GB}ths, as the published 60, 70 and 80 GB were of about \
         {DATA_GB} GB. The file systems are images on {}, so their absolute costs are those of both. binlogd, \
         where it is attached, acknowledges what is durable (AFTER_SYNC, fsync_mode 1); its copy lies in {}. \
         With sync_binlog N the log is synced once in N groups of commits: where a cell or a rotation is shorter than \
         that, N means no more than 0 does.{of_users}",
        setting("warehouses"),
        setting("seconds"),
        setting("sample_ms"),
        if apart.source_dir.is_some() { "the disk of the source" } else { "this disk" },
        match (&apart.source_dir, &apart.receiver_dir) {
            (_, Some(_)) => "a folder of its own",
            (Some(_), None) => "the source's folder beside the images",
            (None, None) => "the lab's folder beside the images",
        },
    )
}

/// What is different on a user's server.
const ON_USERS: &str = " On a user's server the files lie where that has them, which is not known here, and nothing was \
    measured without a binary log or on another file system. Its counter of commits counts those of others too. A \
    rotation is when the name of its current log file has changed: between two looks, as often as at the commits; the \
    middle is taken.";

fn is_users(condition: point::Condition) -> bool {
    matches!(condition, point::Condition::Place(Condition { files: Files::Users, .. }))
}

fn all_threads(figures: &Figures) -> Vec<u32> {
    let mut threads: Vec<u32> = figures.points().iter().map(|point| point.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// A panel with what its condition says.
struct Place<'a> {
    panel: &'a Panel,
    files: Files,
    pool: Pool,
}

fn panels<'a>(figures: &Figures<'a>, threads: u32) -> Vec<Place<'a>> {
    let places = figures.panels().into_iter().filter_map(|panel| {
        let point::Condition::Place(Condition { files, pool }) = panel.condition else { return None };
        figures.threads(panel).contains(&threads).then_some(Place { panel, files, pool })
    });
    places.collect()
}

/// The run with one number of threads.
struct View<'a> {
    figures: &'a Figures<'a>,
    threads: u32,
    panels: Vec<Place<'a>>,
}

impl View<'_> {
    fn configurations(&self) -> Vec<Configuration> {
        let mut all = Vec::new();
        for place in &self.panels {
            for configuration in self.figures.own_configurations(place.panel) {
                if !all.contains(&configuration) {
                    all.push(configuration);
                }
            }
        }
        // In the order of the settings, whichever took the first turn; no binary log last, as published.
        all.sort_by_key(|configuration| match configuration {
            Configuration::Sync { every, attached } => (*attached, false, *every),
            Configuration::NoBinaryLog => (false, true, 0),
        });
        all
    }

    fn table(&self, title: &str, columns: Vec<String>, rows: Vec<Vec<Entry>>, notes: &[&str]) -> Table {
        Table {
            title: format!("{title}, {} threads", self.threads),
            columns,
            rows,
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
        }
    }

    /// As the first published table: pools down, settings across.
    fn medians(&self) -> Table {
        let configurations = self.configurations();
        let mut columns = head(&["server", "file system", "buffer pool"]);
        columns.extend(configurations.iter().map(Configuration::to_string));
        let row = |place: &Place| {
            let mut row = place.entries();
            for configuration in &configurations {
                let point = place.panel.point(*configuration, self.threads);
                let median = entry(self.figures.median(&point, "tps"), 0);
                row.push(place.unless_silent(*configuration, median));
            }
            row
        };
        let rows = self.panels.iter().map(row).collect();
        self.table(
            "Median transactions a second",
            columns,
            rows,
            &["Of each round the median of its intervals."],
        )
    }

    /// XFS against ext4; none where only one was measured.
    fn file_systems(&self) -> Option<Table> {
        let mut rows = Vec::new();
        for place in self.panels.iter().filter(|place| place.files == Files::Lab(Kind::Xfs)) {
            let ext4 = Condition { files: Files::Lab(Kind::Ext4), pool: place.pool };
            let other = Panel { condition: point::Condition::Place(ext4), ..place.panel.clone() };
            if !self.panels.iter().any(|place| *place.panel == other) {
                continue;
            }
            for configuration in self.configurations() {
                let [xfs, ext4] = [place.panel, &other].map(|panel| panel.point(configuration, self.threads));
                let setting = configuration.published();
                let published = place.pool.share().filter(|_| !configuration.attached()).and_then(|share| {
                    Some(tps(&setting, share, FileSystem::Xfs)? / tps(&setting, share, FileSystem::Ext4)?)
                });
                rows.push(vec![
                    Entry::Text(place.panel.server.clone()),
                    Entry::Text(place.pool.to_string()),
                    Entry::Text(configuration.to_string()),
                    entry(self.figures.median(&ext4, "tps"), 0),
                    entry(self.figures.median(&xfs, "tps"), 0),
                    entry(self.figures.ratio_between(&xfs, &ext4, "tps"), RATIO_DIGITS),
                    number(published, RATIO_DIGITS),
                ]);
            }
        }
        let columns = head(&[
            "server",
            "buffer pool",
            "configuration",
            "ext4",
            "XFS",
            "XFS to ext4",
            "XFS to ext4, published",
        ]);
        let notes =
            ["The two file systems were measured one after the other, minutes or hours apart: a difference \
                      smaller than the range says nothing."];
        (!rows.is_empty()).then(|| self.table("ext4 and XFS, transactions a second", columns, rows, &notes))
    }

    /// Throughput over time, one chart for each file system, with the largest pool.
    fn charts(&self) -> Vec<Chart> {
        let mut charts = Vec::new();
        for place in &self.panels {
            let same =
                |other: &&Place| other.panel.server == place.panel.server && other.files == place.files;
            if self.panels.iter().filter(same).any(|other| other.pool > place.pool) {
                continue;
            }
            let mut lines = Vec::new();
            for every in [0, 1] {
                let configuration = Configuration::Sync { every, attached: false };
                let point = place.panel.point(configuration, self.threads);
                let mut cells = self.figures.cells(&point);
                if let Some(cell) = cells.find(|cell| cell.measured.invalid.is_none()) {
                    lines.extend(over_time(configuration, cell));
                }
            }
            if !lines.is_empty() {
                charts.push(Chart {
                    title: format!("Throughput over time ({}), {} threads", place.panel, self.threads),
                    x_label: "s".to_owned(),
                    y_label: "transactions/s".to_owned(),
                    x_scale: Scale::Linear,
                    lines,
                });
            }
        }
        charts
    }

    fn stalls(&self) -> Table {
        let mut rows = Vec::new();
        for place in &self.panels {
            for configuration in self.configurations() {
                if configuration == Configuration::NoBinaryLog {
                    continue;
                }
                let point = place.panel.point(configuration, self.threads);
                let value =
                    |name: &str, scale: f64, digits| scaled(self.figures.median(&point, name), scale, digits);
                let mut row = place.entries();
                row.extend([
                    Entry::Text(configuration.to_string()),
                    value("rotations", 1.0, 0),
                    value("rotation_bytes", 1024.0, 0),
                    value("rotation_period_s", 1.0, 2),
                    value("stall_lowest", 1.0, 2),
                    value("between_lowest", 1.0, 2),
                    value("stall_seconds", 1e-3, 0),
                    value("between_seconds", 1e-3, 0),
                    value("stall_seconds_max", 1e-3, 0),
                ]);
                rows.push(row);
            }
        }
        let columns = head(&[
            "server",
            "file system",
            "buffer pool",
            "configuration",
            "rotations in a cell",
            "file (KiB)",
            "period (s)",
            "lowest at a rotation",
            "lowest between",
            "slow at a rotation (ms)",
            "slow between (ms)",
            "slow at the worst rotation (ms)",
        ]);
        self.table("The stall at a rotation of the binary log", columns, rows, &[
            "Lowest: the lowest sample within 1 s of a rotation, or half the way to the next where that is nearer, \
             relative to the median of all samples of the cell; 0 is a standstill. Slow: time in that window below \
             half the median. Each is the median over the rotations of a cell, and then over the rounds.",
            "Between: the same half-way between two rotations, where nothing happens: what chance makes of so many \
             samples. Only what is lower or longer than that is the rotation's doing.",
            "In the published study a file of 1 GB was full every 40 s, and throughput fell to 0 for one or two seconds.",
        ])
    }
}

impl Place<'_> {
    fn entries(&self) -> Vec<Entry> {
        vec![
            Entry::Text(self.panel.server.clone()),
            Entry::Text(self.files.to_string()),
            Entry::Text(self.pool.to_string()),
        ]
    }

    /// The published file system that it is compared with.
    fn published(&self) -> Option<FileSystem> {
        match self.files {
            Files::Lab(Kind::Ext4) => Some(FileSystem::Ext4),
            Files::Lab(Kind::Xfs) => Some(FileSystem::Xfs),
            Files::Lab(Kind::Here) | Files::Users => None,
        }
    }

    /// The entry, unless it is about no binary log and the server a user's.
    fn unless_silent(&self, configuration: Configuration, entry: Entry) -> Entry {
        match (configuration, self.files) {
            (Configuration::NoBinaryLog, Files::Users) => Entry::Missing(NOT_ON_USERS.to_owned()),
            _ => entry,
        }
    }
}

/// The samples of a cell as a line, and its rotations as a line of marks on the axis.
fn over_time(configuration: Configuration, cell: &Cell) -> Vec<Line> {
    let series = |name: &str| cell.measured.series.get(name).map_or(&[][..], Vec::as_slice);
    let dot = |x: f64, y: f64| Dot { x, y, spread: None };
    let (tps, ended) = (series("tps"), series("sample_ended_s"));
    let highest = tps.iter().copied().fold(0.0, f64::max);
    let line = |name: String, points| Line { name, published: false, points };
    let samples = ended.iter().zip(tps).map(|(ended, tps)| dot(*ended, *tps)).collect();
    let marks: Vec<Dot> = series("rotation_s")
        .iter()
        .flat_map(|time| [dot(*time, 0.0), dot(*time, highest * MARK), dot(*time, 0.0)])
        .collect();
    let mut lines = vec![line(configuration.to_string(), samples)];
    if !marks.is_empty() {
        lines.push(line(format!("rotations, {configuration}"), marks));
    }
    lines
}

fn head(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| (*column).to_owned()).collect()
}

fn number(value: Option<f64>, digits: usize) -> Entry {
    value.map_or_else(|| Entry::Missing("not published".to_owned()), |value| Entry::Number(value, digits))
}

/// A figure in units of `unit`.
fn scaled(figure: Result<crate::results::statistics::Spread, Missing>, unit: f64, digits: usize) -> Entry {
    let scaled = figure.map(|mut spread| {
        spread.median /= unit;
        spread.range = (spread.range.0 / unit, spread.range.1 / unit);
        spread
    });
    entry(scaled, digits)
}
