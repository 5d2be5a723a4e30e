//! A run for tests: test data, never measured. Its cells are made from the published rows, so that charts look like
//! real ones.

use super::section::Section;
use crate::model::{Fact, Measured, Order, Profile, Settings};
use crate::outline::{Chart, Dot, Line, Part, Scale};
use crate::parts::sweep::{self, Sweep};
use crate::point::virtual_replica::{
    Configuration, FSYNC_MODE_0, FSYNC_MODE_1, REPLICA_20, REPLICA_20_STOPPED,
};
use crate::point::{self, CellKey, Condition, Panel};
use crate::reference::publication::Curve;
use crate::reference::sync_binlog;
use crate::reference::virtual_replica::{self, mode};
use crate::results::run::{Cell, Run, Skipped};

/// The lab's configurations of the published modes.
const CONFIGURATIONS: [(Configuration, &str); 5] = [
    (Configuration::Alone, mode::SOURCE_ALONE),
    (FSYNC_MODE_0, mode::FSYNC_MODE_0),
    (FSYNC_MODE_1, mode::FSYNC_MODE_1),
    (REPLICA_20, mode::REPLICA),
    (REPLICA_20_STOPPED, mode::REPLICA_SQL_THREAD_STOPPED),
];

/// The baseline.
pub(crate) const ALONE: point::Configuration = point::Configuration::VirtualReplica(Configuration::Alone);

/// Rounds of the run.
pub(crate) const ROUNDS: u32 = 3;

/// The published rows up to 256 threads, on a machine half as fast, in three rounds that differ by some per cent.
pub(crate) fn virtual_replica() -> Run {
    let mut cells = Vec::new();
    let rows = virtual_replica::published();
    for round in 0..ROUNDS {
        for (index, row) in rows.iter().filter(|row| row.thread_num <= 256).enumerate() {
            let (configuration, _) =
                CONFIGURATIONS.into_iter().find(|(_, mode)| *mode == row.mysql_mode).expect("a known mode");
            let drift = [0.5, 0.46, 0.53][round as usize]
                * (1.0 + 0.01 * ((index * 7 + round as usize * 3) % 9) as f64);
            let panel = Panel { server: "mysql-9.7".to_owned(), condition: Condition::Plain };
            let point = panel.point(configuration, row.thread_num);
            let mut measured = Measured::default();
            measured.put("qps", f64::from(row.qps) * drift);
            measured.put("tps", f64::from(row.tps) * drift);
            cells.push(Cell { key: CellKey { point, round }, started: 1_800_000_000, took: 5.25, measured });
        }
    }
    let settings = Settings::of([("threads", "2,4,8,16,32,64,128,256"), ("seconds", "5")]);
    let order = Order::new(Profile::Quick, settings);
    Run {
        id: 7,
        command: "binlogd-lab run virtual-replica --profile quick".to_owned(),
        started: 1_800_000_000,
        finished: Some(1_800_000_754),
        facts: vec![
            Fact::new("machine", "processor", "Test Processor <3> & sons"),
            Fact::new("machine", "cores", "2"),
            Fact::new("machine", "memory, MiB", "7936"),
            Fact::new("disk", "file system", "ext4"),
            Fact::new("disk", "write and fdatasync of 4 KiB, p50, µs", "1250"),
            Fact::new("server mysql-9.7", "version", "9.7.0"),
            Fact::new("server mysql-9.7", "innodb_buffer_pool_size", "134217728"),
        ],
        skipped: vec![Skipped::new("xfs", "mkfs.xfs is not installed <here>")],
        ..run("virtual-replica", order, cells)
    }
}

/// A run of a study with these cells, and nothing known of what it was measured on.
pub(crate) fn run(study: &str, order: Order, cells: Vec<Cell>) -> Run {
    Run {
        id: 1,
        study: study.to_owned(),
        order,
        command: String::new(),
        started: 0,
        finished: None,
        facts: Vec::new(),
        cells,
        skipped: Vec::new(),
    }
}

/// A line chart of these points.
pub(super) fn chart(points: &[(f64, f64)], x_scale: Scale) -> Chart {
    let points = points.iter().map(|(x, y)| Dot { x: *x, y: *y, spread: None }).collect();
    Chart {
        title: "a <title>".to_owned(),
        x_label: "threads".to_owned(),
        y_label: "tps".to_owned(),
        x_scale,
        lines: vec![Line { name: "a & b".to_owned(), published: false, points }],
    }
}

/// The run as a section of a report, as a study would outline it.
pub(super) fn section(run: &Run) -> Section<'_> {
    let published: Vec<Curve> = CONFIGURATIONS
        .iter()
        .map(|(configuration, mode)| virtual_replica::qps(mode, *configuration))
        .collect();
    let sweep = Sweep {
        title: "Queries a second",
        value: "qps",
        unit: "queries/s",
        digits: 0,
        baseline: Some(&ALONE),
        published: &published,
    };
    let mut parts = vec![
        Part::Heading("Test data, made from the published rows: never measured".to_owned()),
        Part::Text("A paragraph with <b>markup</b> & \"quotes\" in it.".to_owned()),
    ];
    parts.extend(sweep::parts(run, &sweep));
    Section {
        run,
        title: "Virtual replica <test data>".to_owned(),
        summary: "What does it cost to let a receiver acknowledge every transaction?".to_owned(),
        parts,
        publication: Some(virtual_replica::publication()),
    }
}

/// Whether the cell is of that configuration at so many threads.
pub(super) fn is(cell: &Cell, configuration: Configuration, threads: u32) -> bool {
    cell.key.point == cell.key.point.panel.point(configuration, threads)
}

/// Makes cells of the run not count: all rounds of one point, one round of another.
pub(super) fn damage(run: &mut Run) {
    for cell in &mut run.cells {
        let (alone, compared) = (is(cell, Configuration::Alone, 4), is(cell, FSYNC_MODE_1, 32));
        if compared {
            cell.measured.refuse("semi-sync <fell back>");
        } else if alone && cell.key.round == 1 {
            cell.measured.refuse("3 errors");
        }
    }
}

/// A section about time: throughput that falls to nothing at every rotation, every quarter of a second.
pub(super) fn stall(run: &Run) -> Section<'_> {
    let line = |name: &str, depth: f64| Line {
        name: name.to_owned(),
        published: false,
        points: (0..240)
            .map(|sample| {
                let rest = 900.0 + 40.0 * f64::from(sample * 7919 % 13) / 13.0;
                let y = if sample % 48 < 4 { rest * (1.0 - depth) } else { rest };
                Dot { x: f64::from(sample) / 4.0, y, spread: None }
            })
            .collect(),
    };
    let chart = Chart {
        title: "Throughput over time".to_owned(),
        x_label: "seconds".to_owned(),
        y_label: "transactions/s".to_owned(),
        x_scale: Scale::Linear,
        lines: vec![line("sync_binlog 0", 1.0), line("sync_binlog 1", 0.1)],
    };
    let mut section = Section { publication: Some(sync_binlog::publication()), ..section(run) };
    section.title = "sync_binlog <test data>".to_owned();
    section.parts.push(Part::Chart(chart));
    section
}
