use super::*;
use crate::apart::Apart;
use crate::model::{Measured, Order, Profile};
use crate::point::CellKey;
use crate::reference::sync_binlog::ratio_to_no_binlog;
use crate::report::example;
use crate::study::Study;
use crate::study::sync_binlog::SyncBinlog;

/// A run of the plan in which every cell came to a throughput of its own.
fn run(profile: Profile) -> Run {
    run_on(profile, &[])
}

fn run_on(profile: Profile, servers: &[&str]) -> Run {
    let settings = SyncBinlog.settings(profile);
    let servers = servers.iter().map(|server| server.parse().unwrap()).collect();
    let order = Order { profile, servers, settings, apart: Apart::default() };
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
    example::run("sync-binlog", order, keys.into_iter().enumerate().map(cell).collect())
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
        point.panel.condition.to_string().starts_with("ext4")
            && !point.configuration.to_string().contains("binlogd")
    });
    assert_eq!(tables(&outline(&run)).len(), 3);
    run.cells.clear();
    assert_eq!(outline(&run).len(), 1);
}

#[test]
fn a_users_server_has_ratios_to_sync_binlog_1_and_says_what_was_not_measured() {
    let mut run = run_on(Profile::Full, &["mysql://u@db:1"]);
    run.cells.retain(|cell| cell.key.point.configuration != Configuration::NoBinaryLog.into());
    let parts = outline(&run);
    let Part::Text(introduction) = &parts[0] else { panic!("no introduction") };
    assert!(introduction.contains("nothing was measured without a binary log"), "{introduction}");
    let alone = tables(&parts);
    assert_eq!(alone.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [3, 3, 12, 24]);
    assert_eq!(alone[1].title, "Throughput, ratio to sync_binlog 1, 56 threads");
    assert_eq!(
        alone[1].columns[3..6].join("; "),
        "sync_binlog 0; sync_binlog 0, published, ext4; sync_binlog 0, published, XFS"
    );
    let published = tps("0", 60, FileSystem::Xfs).unwrap() / tps("1", 60, FileSystem::Xfs).unwrap();
    assert_eq!(alone[1].rows[0][5], Entry::Number(published, RATIO_DIGITS));
    assert!(matches!(alone[1].rows[0][3], Entry::Median { .. }));
    assert_eq!(alone[2].rows[0][7], Entry::Missing(NOT_ON_USERS.to_owned()));
    // Without the baseline there is nothing to compare with.
    let mut without = run.clone();
    without.cells.retain(|cell| cell.key.point.configuration.to_string() != "sync_binlog 1");
    let titles: Vec<_> = tables(&outline(&without)).iter().map(|table| table.title.clone()).collect();
    assert!(titles.iter().all(|title| !title.contains("ratio to sync_binlog 1")), "{titles:?}");

    // Beside one of the lab's own, each has the ratios that it can have.
    let mut both = run_on(Profile::Full, &["mysql:9.7", "mysql://u@db:1"]);
    both.cells.retain(|cell| {
        let point = &cell.key.point;
        !(is_users(point.panel.condition) && point.configuration == Configuration::NoBinaryLog.into())
    });
    let parts = outline(&both);
    let both = tables(&parts);
    assert_eq!(both.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [9, 6, 3, 36, 27, 72]);
    assert!(both[0].rows[8].contains(&Entry::Missing(NOT_ON_USERS.to_owned())));
    assert!(both.iter().all(|table| table.rows.iter().all(|row| row.len() == table.columns.len())));
}
