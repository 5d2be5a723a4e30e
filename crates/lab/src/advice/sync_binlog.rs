//! Which `sync_binlog`.

use super::verdict::{AMOUNT, TIME, Verdict, lacking, told};
use crate::outline::{Entry, Part, Table};
use crate::point::Point;
use crate::point::sync_binlog::Configuration;
use crate::results::run::Run;
use crate::results::statistics::{Figures, Missing, Spread};

/// What every value is compared with.
const ONE: Configuration = Configuration::Sync { every: 1, attached: false };

/// From a run of `sync-binlog`.
pub(super) fn advice(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let (mut rows, mut choices) = (Vec::new(), Vec::new());
    for panel in figures.panels() {
        let all: Vec<Configuration> = figures.own_configurations(panel);
        for threads in figures.threads(panel) {
            for one in all.iter().filter(|one| **one != ONE) {
                let point = panel.point(*one, threads);
                let ratio = figures.ratio(&point, ONE, "tps");
                let slowest = figures.ratio(&point, ONE, "new_order_p99_ms");
                rows.push(vec![
                    Entry::Text(panel.to_string()),
                    Entry::Number(f64::from(threads), 0),
                    Entry::Text(one.to_string()),
                    Entry::Text(told(&ratio, AMOUNT)),
                    Entry::Text(told(&slowest, TIME)),
                ]);
                if is_a_choice(*one) {
                    choices.push((point, ratio));
                }
            }
        }
    }
    let mut parts = vec![Part::Text(sentence(&choices))];
    if !rows.is_empty() {
        let heads = ["place", "threads", "setting", "transactions a second", "99 % of new orders took"];
        let notes = [
            "“No binary log” is what the log costs at all; it is no choice for a source. Seldom syncs gather what a \
             rotation must write at once: the study rotation-stall measures how long commits stand then.",
            "A file is synced when it ends. Where that comes sooner than a value's own sync, the value does nothing here: the \
             report has how long a file lasted.",
        ];
        parts.push(Part::Table(Table::new("Against sync_binlog 1 in the same round", &heads, rows, &notes)));
    }
    parts
}

/// What an operator may set without a receiver that keeps what is lost.
fn is_a_choice(one: Configuration) -> bool {
    matches!(one, Configuration::Sync { attached: false, .. })
}

/// By what was measured of the choices, each against `sync_binlog` 1.
fn sentence(choices: &[(Point, Result<Spread, Missing>)]) -> String {
    let of = |wanted: Verdict| -> Vec<String> {
        let is_wanted = |ratio: &Spread| Verdict::of(ratio) == wanted;
        let found = choices.iter().filter(|(_, ratio)| ratio.as_ref().is_ok_and(is_wanted));
        found.map(|(point, ratio)| format!("{}: {}", name(point), told(ratio, AMOUNT))).collect()
    };
    let (gains, losses) = (of(Verdict::More), of(Verdict::Less));
    let counted = gains.len() + losses.len() + of(Verdict::NotShown).len();
    let mut text = if gains.is_empty() {
        let quicker = match counted {
            _ if choices.is_empty() => "No other one was measured.",
            0 => "Whether another one is quicker cannot be told.",
            _ => "That another one is quicker is not shown by these ranges.",
        };
        format!(
            "Keep sync_binlog = 1, the safe one: each other loses commits when the machine crashes. {quicker}"
        )
    } else {
        format!(
            "A gain over sync_binlog = 1 is shown in {} of {counted} comparisons: {}.",
            gains.len(),
            gains.join("; ")
        )
    };
    if !losses.is_empty() {
        text += &format!(" A loss is shown in {}: {}.", losses.len(), losses.join("; "));
    }
    if let Some(lacking) = lacking(choices.iter().map(|(_, ratio)| ratio)) {
        text += &format!(" Not counted: {lacking}.");
    }
    if !gains.is_empty() {
        text += " What a gain costs: after a crash of the machine the log lacks up to so many groups of commits (with 0, all \
                 that the kernel had not written), while replicas may have them. Keep 1 unless binlogd has every commit \
                 before a client is told (the question above).";
    }
    text
}

/// `sync_binlog 1000 on mysql-9.7, 16 threads`.
fn name(Point { panel, configuration, threads }: &Point) -> String {
    format!("{configuration} on {panel}, {threads} threads")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Measured, Order, Profile, Settings};
    use crate::point::{CellKey, Condition, Panel};
    use crate::report::example;
    use crate::results::run::Cell;

    const STEADY: [f64; 3] = [100.0; 3];

    /// Of each value and number of threads the rounds.
    fn text(cells: &[(u32, u32, &[f64])]) -> String {
        let panel = Panel { server: "mysql-9.7".to_owned(), condition: Condition::Plain };
        let cells_of = |(every, threads, rounds): &(u32, u32, &[f64])| {
            let point = panel.point(Configuration::Sync { every: *every, attached: false }, *threads);
            let cell = |(round, tps): (u32, &f64)| {
                let mut measured = Measured::default();
                measured.put("tps", *tps);
                Cell { key: CellKey { point: point.clone(), round }, started: 0, took: 1.0, measured }
            };
            (0..).zip(*rounds).map(cell).collect::<Vec<Cell>>()
        };
        let order = Order::new(Profile::Quick, Settings::default());
        let run = example::run("sync-binlog", order, cells.iter().flat_map(cells_of).collect());
        let Part::Text(text) = advice(&run).remove(0) else { panic!("the sentence comes first") };
        text
    }

    #[test]
    fn another_value_is_named_only_where_every_round_shows_a_gain() {
        let none = text(&[(1, 16, &STEADY), (1000, 16, &[99.0, 104.0, 103.0])]);
        assert!(none.starts_with("Keep sync_binlog = 1, the safe one"), "{none}");
        assert!(none.ends_with("is not shown by these ranges."), "{none}");
        let gain = text(&[(1, 16, &STEADY), (1000, 16, &[112.0, 115.0, 108.0])]);
        assert!(
            gain.starts_with(
                "A gain over sync_binlog = 1 is shown in 1 of 1 comparisons: sync_binlog 1000 on mysql-9.7, 16 threads: \
                 12 % more (8.0 to 15 %). What a gain costs: "
            ),
            "{gain}"
        );
    }

    #[test]
    fn a_loss_elsewhere_is_told_beside_a_gain() {
        let both = text(&[
            (1, 4, &STEADY),
            (0, 4, &[80.0, 85.0, 90.0]),
            (1, 16, &STEADY),
            (0, 16, &[112.0, 115.0, 108.0]),
            (10, 16, &[99.0, 104.0, 103.0]),
        ]);
        assert!(both.contains("in 1 of 3 comparisons: sync_binlog 0 on mysql-9.7, 16 threads: 12"), "{both}");
        let told = " A loss is shown in 1: sync_binlog 0 on mysql-9.7, 4 threads: 15 % less (10 to 20 %).";
        assert!(both.contains(told), "{both}");
        let loss = text(&[(1, 4, &STEADY), (0, 4, &[80.0, 85.0, 90.0])]);
        assert!(loss.starts_with("Keep sync_binlog = 1") && loss.contains(told), "{loss}");
    }

    #[test]
    fn what_cannot_be_told_is_not_called_not_shown() {
        let one_round = text(&[(1, 16, &[100.0]), (1000, 16, &[112.0])]);
        assert_eq!(
            one_round,
            "Keep sync_binlog = 1, the safe one: each other loses commits when the machine crashes. Whether another one is \
             quicker cannot be told. Not counted: 1 in too few rounds (measure again with --set rounds=3)."
        );
        let without_one = text(&[(0, 16, &STEADY)]);
        assert!(without_one.contains("cannot be told. Not counted: 1 not measured ("), "{without_one}");
        assert!(without_one.contains("no baseline (sync_binlog 1): not measured"), "{without_one}");
        assert!(text(&[(1, 16, &STEADY)]).ends_with("No other one was measured."));
    }
}
