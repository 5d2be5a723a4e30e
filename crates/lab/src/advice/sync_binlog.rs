//! Which `sync_binlog`.

use super::verdict::{AMOUNT, Verdict, told};
use crate::point::{Panel, Point};
use crate::report::outline::{Entry, Part, Table};
use crate::run::Run;
use crate::statistics::Figures;
use crate::study::sync_binlog::configuration::Configuration;

/// What every value is compared with.
const ONE: Configuration = Configuration::Sync { every: 1, attached: false };

/// From a run of `sync-binlog`.
pub(super) fn advice(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let (mut rows, mut gains) = (Vec::new(), Vec::new());
    for panel in figures.panels() {
        let all: Vec<Configuration> = figures.own_configurations(panel);
        for threads in figures.threads(panel) {
            for one in all.iter().filter(|one| **one != ONE) {
                let point = panel.point(*one, threads);
                let ratio = figures.ratio(&point, ONE, "tps");
                let longest = figures.ratio(&point, ONE, "longest_ms");
                if is_a_choice(*one) && ratio.as_ref().is_ok_and(|ratio| Verdict::of(ratio) == Verdict::More)
                {
                    gains.push((point.clone(), told(&ratio, AMOUNT)));
                }
                rows.push(vec![
                    Entry::Text(panel.to_string()),
                    Entry::Number(f64::from(threads), 0),
                    Entry::Text(one.to_string()),
                    Entry::Text(told(&ratio, AMOUNT)),
                    Entry::Text(told(&longest, super::verdict::TIME)),
                ]);
            }
        }
    }
    let mut parts = vec![Part::Text(sentence(&gains, figures.panels().first().copied()))];
    if !rows.is_empty() {
        parts.push(Part::Table(Table {
            title: "Against sync_binlog 1 in the same round".to_owned(),
            columns: ["place", "threads", "setting", "transactions a second", "the longest took"]
                .map(str::to_owned)
                .to_vec(),
            rows,
            notes: vec![
                "“No binary log” is what the log costs at all; it is no choice for a source. Seldom syncs gather what a \
                 rotation must write at once: the study rotation-stall measures how long commits stand then."
                    .to_owned(),
            ],
        }));
    }
    parts
}

/// What an operator may set without a receiver that keeps what is lost.
fn is_a_choice(one: Configuration) -> bool {
    matches!(one, Configuration::Sync { attached: false, .. })
}

fn sentence(gains: &[(Point, String)], any: Option<&Panel>) -> String {
    if any.is_none() {
        return "No cell of the run counts.".to_owned();
    }
    if gains.is_empty() {
        return "Keep sync_binlog = 1: that another value is quicker is not shown by these ranges, and each of them loses \
                commits when the machine crashes."
            .to_owned();
    }
    let gains: Vec<String> = gains
        .iter()
        .map(|(point, told)| format!("{} on {}: {told}", point.configuration, point.panel))
        .collect();
    format!(
        "A gain over sync_binlog = 1 is shown for {}. What it costs: after a crash of the machine the log lacks up to so \
         many groups of commits (with 0, all that the kernel had not written), while replicas may have them. Keep 1 unless \
         binlogd has every commit before a client is told (the question above).",
        gains.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;
    use crate::model::{Measured, Order, Profile, Settings};
    use crate::point::CellKey;
    use crate::report::example;
    use crate::run::Cell;

    fn text(thousand: [f64; 3]) -> String {
        let panel = Panel { server: "mysql-9.7".to_owned(), condition: crate::point::Condition::Plain };
        let cell = |every, round, tps| {
            let mut measured = Measured::default();
            measured.put("tps", tps);
            let point = panel.point(Configuration::Sync { every, attached: false }, 16);
            Cell { key: CellKey { point, round }, started: 0, took: 1.0, measured }
        };
        let cells = (0..3)
            .flat_map(|round| [cell(1, round, 100.0), cell(1000, round, thousand[round as usize])])
            .collect();
        let order = Order {
            profile: Profile::Quick,
            servers: Vec::new(),
            settings: Settings::default(),
            apart: Apart::default(),
        };
        let Part::Text(text) = advice(&example::run("sync-binlog", order, cells)).remove(0) else {
            panic!("the sentence comes first")
        };
        text
    }

    #[test]
    fn another_value_is_named_only_where_every_round_shows_a_gain() {
        assert!(text([99.0, 104.0, 103.0]).starts_with("Keep sync_binlog = 1"));
        let gain = text([112.0, 115.0, 108.0]);
        assert!(gain.contains("sync_binlog 1000 on mysql-9.7: 12 % more (8.0 to 15 %)"), "{gain}");
        assert!(gain.contains("What it costs"), "{gain}");
    }
}
