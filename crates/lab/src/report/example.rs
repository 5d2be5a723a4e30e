//! A run for tests: test data, never measured. Its cells are made from the published rows, so that charts look like
//! real ones.

use super::outline::{Chart, Dot, Line, Part, Scale};
use super::section::Section;
use super::sweep::{self, Sweep};
use crate::model::{Cell, CellKey, Fact, Measured, Order, Point, Profile, Run, Settings};
use crate::reference::publication::Curve;
use crate::reference::sync_binlog;
use crate::reference::virtual_replica::{self, mode};

/// The lab's names of the published modes.
pub(crate) const CONFIGURATIONS: [(&str, &str); 5] = [
    ("source alone", mode::SOURCE_ALONE),
    ("binlogd, fsync_mode 0", mode::FSYNC_MODE_0),
    ("binlogd, fsync_mode 1", mode::FSYNC_MODE_1),
    ("replica, sync_relay_log 20, SQL thread running", mode::REPLICA),
    ("replica, sync_relay_log 20, SQL thread stopped", mode::REPLICA_SQL_THREAD_STOPPED),
];

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
            let point = Point {
                server: "mysql-9.7".to_owned(),
                condition: String::new(),
                configuration: configuration.to_owned(),
                threads: row.thread_num,
            };
            let mut measured = Measured::default();
            measured.put("qps", f64::from(row.qps) * drift);
            measured.put("tps", f64::from(row.tps) * drift);
            cells.push(Cell { key: CellKey { point, round }, started: 1_800_000_000, took: 5.25, measured });
        }
    }
    Run {
        id: 7,
        study: "virtual-replica".to_owned(),
        order: Order {
            profile: Profile::Quick,
            servers: Vec::new(),
            settings: Settings::of([("threads", "2,4,8,16,32,64,128,256"), ("seconds", "5")]),
        },
        command: "binlogd-lab run virtual-replica --profile quick".to_owned(),
        started: 1_800_000_000,
        finished: Some(1_800_000_754),
        facts: vec![
            fact("machine", "processor", "Test Processor <3> & sons"),
            fact("machine", "cores", "2"),
            fact("machine", "memory, MiB", "7936"),
            fact("disk", "file system", "ext4"),
            fact("disk", "write and fdatasync of 4 KiB, p50, µs", "1250"),
            fact("server mysql-9.7", "version", "9.7.0"),
            fact("server mysql-9.7", "innodb_buffer_pool_size", "134217728"),
        ],
        cells,
        skipped: vec!["xfs: mkfs.xfs is not installed <here>".to_owned()],
    }
}

fn fact(about: &str, name: &str, value: &str) -> Fact {
    Fact { about: about.to_owned(), name: name.to_owned(), value: value.to_owned() }
}

/// The run as a section of a report, as a study would outline it.
pub(super) fn section(run: &Run) -> Section<'_> {
    let published: Vec<Curve> = CONFIGURATIONS
        .iter()
        .map(|(configuration, mode)| virtual_replica::qps(mode, configuration))
        .collect();
    let sweep = Sweep {
        title: "Queries a second",
        value: "qps",
        unit: "queries/s",
        digits: 0,
        baseline: Some("source alone"),
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

/// Makes cells of the run not count: all rounds of one point, one round of another.
pub(super) fn damage(run: &mut Run) {
    for cell in &mut run.cells {
        let point = &cell.key.point;
        match (point.configuration.as_str(), point.threads, cell.key.round) {
            ("binlogd, fsync_mode 1", 32, _) => cell.measured.refuse("semi-sync <fell back>"),
            ("source alone", 4, 1) => cell.measured.refuse("3 errors"),
            _ => {}
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
