//! The tables.

use super::block::{Blocks, CORES, TPS, Value};
use super::cell::{Cell, Setting};
use super::configuration::Configuration;
use rig::statistics::{Table, median, with_spread};
use std::collections::BTreeSet;

/// Prints a table for each source and workload, and below it the cells that do not count.
pub fn print(cells: &[Cell]) {
    let settings = Blocks::by_setting(cells);
    let mut groups: Vec<(&Setting, Vec<(&Setting, &Blocks<'_>)>)> = Vec::new();
    for (setting, blocks) in &settings {
        let same = |other: &Setting| {
            (&other.server, other.relaxed, &other.workload)
                == (&setting.server, setting.relaxed, &setting.workload)
        };
        match groups.last_mut() {
            Some((first, group)) if same(first) => group.push((setting, blocks)),
            _ => groups.push((setting, vec![(setting, blocks)])),
        }
    }
    for (setting, group) in groups {
        let mine: Vec<&Cell> = group
            .iter()
            .flat_map(|(_, blocks)| Configuration::ALL.into_iter().flat_map(|one| blocks.cells(one)))
            .collect();
        println!("## {}, {}\n", source(setting, &mine), setting.workload);
        println!("{}\n", how(&mine));
        table(&group).print();
        let invalid: Vec<&&Cell> = mine.iter().filter(|cell| cell.invalid.is_some()).collect();
        if !invalid.is_empty() {
            println!("Not counted:\n");
            for cell in invalid {
                println!(
                    "- {} threads, {}, round {}: {}",
                    cell.setting.threads,
                    cell.configuration.title(),
                    cell.round + 1,
                    cell.invalid.as_deref().unwrap_or_default()
                );
            }
            println!();
        }
    }
}

/// The source as a title.
pub fn source(setting: &Setting, cells: &[&Cell]) -> String {
    let versions: BTreeSet<&str> = cells.iter().map(|cell| cell.version.as_str()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    let durability = if setting.relaxed { "relaxed" } else { "strict" };
    let settings = if setting.relaxed {
        "sync_binlog 0, innodb_flush_log_at_trx_commit 2"
    } else {
        "sync_binlog 1, innodb_flush_log_at_trx_commit 1"
    };
    format!("{} ({}), {durability}: {settings}", setting.server, versions.join(", "))
}

fn how(cells: &[&Cell]) -> String {
    let rounds: BTreeSet<(u64, usize)> = cells.iter().map(|cell| (cell.run, cell.round)).collect();
    let shapes: BTreeSet<(u64, u32, u32)> =
        cells.iter().map(|cell| (cell.seconds, cell.tables, cell.rows)).collect();
    let shapes: Vec<String> = shapes
        .iter()
        .map(|(seconds, tables, rows)| format!("{seconds} s a cell, {tables} tables of {rows} rows"))
        .collect();
    format!(
        "{} rounds; {}. Medians with their range; ratios are within a round.",
        rounds.len(),
        shapes.join("; ")
    )
}

fn table(group: &[(&Setting, &Blocks<'_>)]) -> Table {
    let mut table = Table::new(&[
        "threads",
        "receiver",
        "transactions/s",
        "/ source alone",
        "/ bare of same promise",
        "/ unsynced replica",
        "p95 ms",
        "source's wait µs",
        "transactions an ack",
        "receiver, cores",
        "cores / bare",
        "resident MiB",
        "",
    ]);
    for (setting, blocks) in group {
        for configuration in Configuration::ALL {
            let cells = blocks.cells(configuration).count();
            if cells == 0 {
                continue;
            }
            let invalid = blocks.cells(configuration).filter(|cell| cell.invalid.is_some()).count();
            let against = |other: Option<Configuration>, value: Value| match other {
                Some(other) if other == configuration => "1".to_owned(),
                Some(other) => spread(&blocks.ratios(configuration, other, value), 2),
                None => String::new(),
            };
            let bare = configuration.bare_of_same_promise();
            let replica = Configuration::ReplicaUnsynced;
            let middle = |value: Value, digits: usize| {
                let values = blocks.values(configuration, value);
                if values.is_empty() { String::new() } else { format!("{:.digits$}", median(values)) }
            };
            table.row(vec![
                setting.threads.to_string(),
                configuration.title().to_owned(),
                spread(&blocks.values(configuration, TPS), 0),
                against(Some(Configuration::None), TPS),
                against(bare, TPS),
                against((configuration != Configuration::None).then_some(replica), TPS),
                middle(|numbers| Some(numbers.p95_ms), 2),
                middle(|numbers| numbers.wait(), 0),
                middle(|numbers| numbers.transactions_an_acknowledgement(), 1),
                middle(CORES, 2),
                against(bare, CORES),
                middle(|numbers| Some(numbers.resident_kib? as f64 / 1024.0), 1),
                if invalid > 0 { format!("{invalid} of {cells} invalid") } else { String::new() },
            ]);
        }
    }
    table
}

/// Median and range; nothing for nothing.
pub fn spread(values: &[f64], digits: usize) -> String {
    if values.is_empty() { String::new() } else { with_spread(values, digits) }
}
