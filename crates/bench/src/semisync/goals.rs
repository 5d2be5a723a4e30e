//! What is aimed at, and whether it was reached. Nothing fails by it.

use super::block::{Blocks, CORES, TPS, Value};
use super::cell::Cell;
use super::configuration::Configuration;
use super::report::spread;
use rig::statistics::{Table, median};

/// A ratio that is aimed at.
struct Goal {
    configuration: Configuration,
    against: Configuration,
    value: Value,
    what: &'static str,
    /// The lowest that meets it at a number of threads, and no goal where there is none.
    least: fn(u32) -> Option<f64>,
    /// The highest that meets it.
    most: Option<f64>,
}

const GOALS: [Goal; 5] = [
    Goal {
        configuration: Configuration::Binlogd1,
        against: Configuration::BareSynced,
        value: TPS,
        what: "transactions/s",
        least: |threads| Some(if threads <= 32 { 1.05 } else { 1.0 }),
        most: None,
    },
    Goal {
        configuration: Configuration::Binlogd0,
        against: Configuration::BareWritten,
        value: TPS,
        what: "transactions/s",
        least: |_| Some(1.0),
        most: None,
    },
    Goal {
        configuration: Configuration::Binlogd1,
        against: Configuration::ReplicaUnsynced,
        value: TPS,
        what: "transactions/s",
        least: |threads| (threads >= 8).then_some(1.0),
        most: None,
    },
    Goal {
        configuration: Configuration::Binlogd1,
        against: Configuration::BareSynced,
        value: CORES,
        what: "receiver's cores",
        least: |_| None,
        most: Some(1.2),
    },
    Goal {
        configuration: Configuration::Binlogd0,
        against: Configuration::BareWritten,
        value: CORES,
        what: "receiver's cores",
        least: |_| None,
        most: Some(1.2),
    },
];

impl Goal {
    /// What is wanted at a number of threads, in words, and whether `ratio` is that; `None` without a goal there.
    fn judge(&self, threads: u32, ratio: f64) -> Option<(String, bool)> {
        match (self.most, (self.least)(threads)) {
            (Some(most), _) => Some((format!("≤ {most:.2}"), ratio <= most)),
            (None, Some(least)) => Some((format!("≥ {least:.2}"), ratio >= least)),
            (None, None) => None,
        }
    }
}

/// Prints each goal at each source and load that was measured.
pub fn print(cells: &[Cell]) {
    println!("## Goals\n");
    println!("Medians of the ratios within a round, with their range.\n");
    let mut table = Table::new(&["what", "source", "workload", "threads", "wanted", "measured", ""]);
    let mut met = (0, 0);
    for goal in &GOALS {
        for (setting, blocks) in &Blocks::by_setting(cells) {
            if blocks.cells(goal.configuration).next().is_none() {
                continue;
            }
            let ratios = blocks.ratios(goal.configuration, goal.against, goal.value);
            let Some((wanted, reached)) = goal.judge(setting.threads, median(ratios.iter().copied())) else {
                continue;
            };
            let verdict = match (ratios.is_empty(), reached) {
                (true, _) => "not measured",
                (false, true) => "met",
                (false, false) => "not met",
            };
            if !ratios.is_empty() {
                met = (met.0 + usize::from(reached), met.1 + 1);
            }
            table.row(vec![
                format!("{}, {} / {}", goal.what, goal.configuration.title(), goal.against.title()),
                format!("{}{}", setting.server, if setting.relaxed { ", relaxed" } else { "" }),
                setting.workload.clone(),
                setting.threads.to_string(),
                wanted,
                spread(&ratios, 2),
                verdict.to_owned(),
            ]);
        }
    }
    table.print();
    println!("{} of {} met.", met.0, met.1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_depend_on_the_threads() {
        let judged = |index: usize, threads, ratio| GOALS[index].judge(threads, ratio).map(|(_, met)| met);
        assert_eq!([judged(0, 32, 1.04), judged(0, 64, 1.04)], [Some(false), Some(true)]);
        assert_eq!([judged(1, 2, 1.0), judged(1, 2, 0.99)], [Some(true), Some(false)]);
        assert_eq!([judged(2, 2, 0.5), judged(2, 8, 1.0)], [None, Some(true)]);
        assert_eq!([judged(3, 2, 1.2), judged(4, 128, 1.21)], [Some(true), Some(false)]);
    }
}
