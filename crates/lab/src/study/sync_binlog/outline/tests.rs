use super::*;
use crate::model::{CellKey, Measured, Order, Profile};
use crate::study::Study;
use crate::study::sync_binlog::SyncBinlog;

/// A run of the plan in which every cell came to a throughput of its own.
fn run(profile: Profile) -> Run {
    let settings = SyncBinlog.settings(profile);
    let order = Order { profile, servers: Vec::new(), settings };
    let keys: Vec<CellKey> =
        SyncBinlog.plan(&order).unwrap().scenes.into_iter().flat_map(|scene| scene.cells).collect();
    let cell = |(index, key): (usize, CellKey)| {
        let mut measured = Measured::default();
        measured.put("tps", 100.0 + index as f64);
        measured.series.insert("tps".to_owned(), vec![1.0, 2.0]);
        measured.series.insert("sample_ended_s".to_owned(), vec![0.1, 0.2]);
        measured.series.insert("rotation_s".to_owned(), vec![0.15]);
        Cell { key, started: 0, took: 1.0, measured }
    };
    Run {
        id: 1,
        study: "sync-binlog".to_owned(),
        order,
        command: String::new(),
        started: 0,
        finished: None,
        facts: Vec::new(),
        cells: keys.into_iter().enumerate().map(cell).collect(),
        skipped: Vec::new(),
    }
}

fn tables(parts: &[Part]) -> Vec<&Table> {
    parts.iter().filter_map(|part| if let Part::Table(table) = part { Some(table) } else { None }).collect()
}

#[test]
fn the_full_outline_has_all_tables_and_the_published_ratios() {
    let parts = outline(&run(Profile::Full));
    let tables = tables(&parts);
    assert_eq!(tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [6, 6, 24, 27, 48]);
    assert!(tables.iter().all(|table| table.rows.iter().all(|row| row.len() == table.columns.len())));
    // sync_binlog 1 on ext4 with 60 GB.
    let published = ratio_to_no_binlog("1", 60, FileSystem::Ext4).unwrap();
    assert_eq!(tables[1].columns[6], "sync_binlog 1, published");
    assert_eq!(tables[1].rows[0][6], Entry::Number(published, RATIO_DIGITS));
    let charts = parts.iter().filter(|part| matches!(part, Part::Chart(_))).count();
    assert_eq!(charts, 2);
}

#[test]
fn a_run_without_xfs_and_binlogd_has_no_tables_of_them() {
    let mut run = run(Profile::Smoke);
    run.cells.retain(|cell| {
        let point = &cell.key.point;
        point.condition.starts_with("ext4") && !point.configuration.contains("binlogd")
    });
    assert_eq!(tables(&outline(&run)).len(), 3);
    run.cells.clear();
    assert_eq!(outline(&run).len(), 1);
}
