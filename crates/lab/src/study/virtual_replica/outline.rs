//! What the report shows.

use crate::outline::{Entry, Part, Table};
use crate::parts::sweep::{self, RATIO_DIGITS, Sweep};
use crate::parts::times;
use crate::point::Point;
use crate::point::virtual_replica::{
    Configuration, FSYNC_MODE_0, FSYNC_MODE_1, REPLICA_20, REPLICA_20_STOPPED, Workload,
};
use crate::reference::publication::Curve;
use crate::reference::virtual_replica::{mode, qps, tps};
use crate::results::number::utc;
use crate::results::run::{Cell, Run};
use crate::results::statistics::Figures;

/// The report's parts.
pub fn parts(run: &Run) -> Vec<Part> {
    let workload = run.order.settings.get("workload").unwrap_or(Workload::ReadWrite);
    let alone = Configuration::Alone.into();
    let mut parts = vec![
        Part::Heading("What was measured".to_owned()),
        Part::Text(format!(
            "Stock sysbench {workload} on a source with sync_binlog 1 and innodb_flush_log_at_trx_commit 1, alone \
             and with one semi-sync receiver (AFTER_SYNC), which is on {}. All configurations with \
             the same number of threads are measured one right after the other, in another order each time; ratios \
             are made within a round. A cell in which semi-sync was not in force before, during and after the load does \
             not count, nor does one with errors.",
            match (run.order.is_of_users_servers(), run.order.apart.has_folders()) {
                (true, _) => "the lab's machine and disk",
                (false, true) => "the same machine, with its files in another folder",
                (false, false) => "the same machine and disk",
            }
        )),
        Part::Text(
            "Rows are chosen uniformly; stock sysbench would let most statements fall on a hundredth of the rows, which \
             makes deadlocks, and so errors, in tables smaller than the published ones."
                .to_owned(),
        ),
        Part::Heading("Throughput".to_owned()),
    ];
    // The published figures are of one workload.
    let is_published = workload == Workload::ReadWrite;
    let published = if is_published { published(qps) } else { Vec::new() };
    parts.extend(sweep::parts(
        run,
        &Sweep {
            title: "Queries a second",
            value: "qps",
            unit: "queries/s",
            digits: 0,
            baseline: Some(&alone),
            published: &published,
        },
    ));
    parts.push(Part::Text(format!(
        "The published study used sync_relay_log = 20, which counts events and not transactions: such a replica \
         acknowledges transactions that it has not synced. With 1 it syncs after every event. “{}” is not in the \
         published study: the source itself syncs nothing in time (sync_binlog 0, innodb_flush_log_at_trx_commit 2), and \
         what makes a transaction durable before its commit returns is binlogd's copy. Its ratio says what durability \
         costs there against a source that syncs for itself with nobody attached.",
        Configuration::Relaxed
    )));
    let sweeps = [
        ("Transactions a second", "tps", "transactions/s", 1, Some(&alone), true),
        ("Source's wait for an acknowledgement", "source_wait_us", "µs, mean of a wait", 0, None, false),
        ("Receiver's processor", "receiver_cores", "cores", 3, None, false),
        ("Receiver's memory", "receiver_mib", "MiB resident", 1, None, false),
        ("Received and not applied at the end of the load", "receiver_behind_mib", "MiB", 2, None, false),
    ];
    let published_tps = self::published(tps);
    for (title, value, unit, digits, baseline, compared) in sweeps {
        if value == "source_wait_us" {
            parts.push(Part::Heading("Latency".to_owned()));
            parts.extend(times::SYSBENCH.parts(run, Some(&alone)));
        } else if value == "receiver_cores" {
            parts.push(Part::Heading("What the receiver uses".to_owned()));
        } else if value == "receiver_behind_mib" {
            if !run.cells.iter().any(|cell| cell.measured.values.contains_key(value)) {
                continue;
            }
            parts.push(Part::Text(format!(
                "A replica's memory is mostly its buffer pool, {} MiB here. One that applies may fall behind: what it \
                 has not applied when the load ends is work that it has not done, and it is not waited for.",
                run.order.settings.get::<String>("buffer_pool_mib").unwrap_or_default()
            )));
        }
        let published: &[Curve] = if compared && is_published { &published_tps } else { &[] };
        parts.extend(sweep::parts(run, &Sweep { title, value, unit, digits, baseline, published }));
    }
    parts.extend(encryption(run));
    parts.push(Part::Heading("All cells".to_owned()));
    parts.push(Part::Table(rows(run, workload)));
    parts
}

/// What encryption costs: the figures of what is encrypted, as ratios to the same in clear. Nothing where nothing was
/// encrypted.
fn encryption(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let panels = figures.panels();
    let mut rows = Vec::new();
    for panel in &panels {
        for own in figures.own_configurations::<Configuration>(panel) {
            let Some(in_clear) = own.in_clear() else { continue };
            for threads in figures.threads(panel) {
                let point = panel.point(own, threads);
                let name = if panels.len() > 1 { format!("{panel}: {own}") } else { own.to_string() };
                let mut row = vec![Entry::Text(name), Entry::Number(f64::from(threads), 0)];
                row.extend(
                    ENCRYPTION_VALUES
                        .map(|(_, value)| sweep::entry(figures.ratio(&point, in_clear, value), RATIO_DIGITS)),
                );
                rows.push(row);
            }
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = ["configuration", "threads"].into_iter().chain(ENCRYPTION_VALUES.map(|(title, _)| title));
    let table = Table {
        title: "TLS against none".to_owned(),
        columns: columns.map(str::to_owned).collect(),
        rows,
        notes: vec![
            "Ratios to the same configuration in clear, made within each round. A cell counts only if the connection \
             was encrypted before and after the load."
                .to_owned(),
        ],
    };
    vec![Part::Heading("What encryption costs".to_owned()), Part::Table(table)]
}

/// Columns of [`encryption`] with the values behind them.
const ENCRYPTION_VALUES: [(&str, &str); 4] = [
    ("transactions a second", "tps"),
    ("99 % took", "p99_ms"),
    ("source's wait", "source_wait_us"),
    ("receiver's processor", "receiver_cores"),
];

/// The published modes with the configurations that repeat them.
fn published(figure: fn(&str, Configuration) -> Curve) -> Vec<Curve> {
    [
        (mode::SOURCE_ALONE, Configuration::Alone),
        (mode::FSYNC_MODE_0, FSYNC_MODE_0),
        (mode::FSYNC_MODE_1, FSYNC_MODE_1),
        (mode::REPLICA, REPLICA_20),
        (mode::REPLICA_SQL_THREAD_STOPPED, REPLICA_20_STOPPED),
    ]
    .map(|(mode, configuration)| figure(mode, configuration))
    .to_vec()
}

/// Each cell with the columns of the published table, and those that it lacks.
fn rows(run: &Run, workload: Workload) -> Table {
    let columns = [
        "id",
        "disk_type",
        "thread_num",
        "test_mode",
        "qps",
        "tps",
        "mysql_mode",
        "insert_time",
        "p95 (ms)",
        "p99 (ms)",
        "longest (ms)",
        "receiver (cores)",
        "receiver (MiB)",
        "source's wait (µs)",
    ];
    let servers = Figures::of(run).panels().len();
    let disk_type: String = run.order.settings.get("disk_type").unwrap_or_default();
    let row = |(index, cell): (usize, &Cell)| {
        let number = |name: &str, digits| match (&cell.measured.invalid, cell.measured.values.get(name)) {
            (Some(reason), _) => Entry::Missing(reason.clone()),
            (None, Some(value)) => Entry::Number(*value, digits),
            (None, None) => Entry::Missing("nothing is attached, or it is not ours to look at".to_owned()),
        };
        let Point { panel, configuration, threads } = &cell.key.point;
        let mode = match servers > 1 {
            true => format!("{}: {configuration}", panel.server),
            false => configuration.to_string(),
        };
        vec![
            Entry::Number((index + 1) as f64, 0),
            Entry::Text(disk_type.clone()),
            Entry::Number(f64::from(*threads), 0),
            Entry::Text(workload.to_string()),
            number("qps", 0),
            number("tps", 0),
            Entry::Text(mode),
            Entry::Text(utc(cell.started, "%F %T")),
            number("p95_ms", 2),
            number("p99_ms", 2),
            number("longest_ms", 2),
            number("receiver_cores", 3),
            number("receiver_mib", 1),
            number("source_wait_us", 0),
        ]
    };
    Table::new(
        "Cells in the order of measuring, in the columns of the published table",
        &columns,
        run.cells.iter().enumerate().map(row).collect(),
        &[
            "insert_time is when the cell began, in UTC. The columns from p95 on are not in the published table.",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Measured, Order, Profile, Settings};
    use crate::point::virtual_replica::ENCRYPTED;
    use crate::point::{CellKey, Condition, Panel};
    use crate::report::example;

    fn cell(configuration: Configuration, qps: f64, invalid: Option<&str>) -> Cell {
        let panel = Panel { server: "mysql-9.7".to_owned(), condition: Condition::Plain };
        let point = panel.point(configuration, 2);
        let mut measured = Measured { invalid: invalid.map(str::to_owned), ..Measured::default() };
        measured.put("qps", qps);
        Cell { key: CellKey { point, round: 0 }, started: 0, took: 1.0, measured }
    }

    #[test]
    fn published_ratios_stand_beside_ours_and_invalid_cells_give_no_number() {
        let settings = Settings::of([("disk_type", "d")]);
        let order = Order::new(Profile::Smoke, settings);
        let cells = vec![
            cell(Configuration::Alone, 200.0, None),
            cell(FSYNC_MODE_1, 100.0, None),
            cell(FSYNC_MODE_0, 100.0, Some("semi-sync is off")),
        ];
        let parts = parts(&example::run("virtual-replica", order, cells));
        let table = |title: &str| {
            parts.iter().find_map(|part| match part {
                Part::Table(table) if table.title == title => Some(table),
                _ => None,
            })
        };
        let ratios = table("Queries a second, ratios to source alone").unwrap();
        // One number of threads, so a row is a configuration.
        let at = |name: &str| {
            let name = Entry::Text(name.to_owned());
            ratios.rows.iter().find(|row| row[0] == name).unwrap()[1].clone()
        };
        assert_eq!(at("binlogd, fsync_mode 1"), Entry::Median { median: 0.5, range: (0.5, 0.5), digits: 3 });
        assert_eq!(at("binlogd, fsync_mode 1, published"), Entry::Number(11764.0 / 13330.0, 3));
        assert!(matches!(at("binlogd, fsync_mode 0"), Entry::Missing(_)));
        let cells = table("Cells in the order of measuring, in the columns of the published table").unwrap();
        assert_eq!(cells.rows.len(), 3);
        assert_eq!(cells.rows[0][4], Entry::Number(200.0, 0));
        assert_eq!(cells.rows[2][4], Entry::Missing("semi-sync is off".to_owned()));
    }
    #[test]
    fn what_is_encrypted_is_compared_with_the_same_in_clear() {
        let order = Order::new(Profile::Smoke, Settings::of([("disk_type", "d")]));
        let with = |configuration, tps: f64, wait: f64| {
            let mut cell = cell(configuration, 1.0, None);
            cell.measured.put("tps", tps);
            cell.measured.put("source_wait_us", wait);
            cell
        };
        let cells = vec![
            with(FSYNC_MODE_1, 100.0, 50.0),
            with(ENCRYPTED[0], 90.0, 60.0),
            with(FSYNC_MODE_0, 100.0, 10.0),
            cell(ENCRYPTED[1], 1.0, Some("in clear")),
        ];
        let run = example::run("virtual-replica", order, cells);
        let Some(Part::Table(table)) = encryption(&run).pop() else { panic!("no table") };
        assert_eq!(table.rows.len(), 2);
        let ratio = |ratio| Entry::Median { median: ratio, range: (ratio, ratio), digits: RATIO_DIGITS };
        assert_eq!(
            table.rows[0][..3],
            [Entry::Text("binlogd, fsync_mode 1, TLS".to_owned()), Entry::Number(2.0, 0), ratio(0.9)]
        );
        assert_eq!(table.rows[0][4], ratio(1.2));
        assert!(matches!(&table.rows[1][2], Entry::Missing(reason) if reason.contains("in clear")));
        let order = Order { settings: Settings::of([("disk_type", "d")]), ..run.order.clone() };
        let without = example::run("virtual-replica", order, vec![with(FSYNC_MODE_1, 100.0, 50.0)]);
        assert!(encryption(&without).is_empty());
    }
}
