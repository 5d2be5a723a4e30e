//! Whether commits stand when the log is rotated, and what keeps that short.

use crate::point::{Panel, Point};
use crate::report::outline::{Entry, Part, Table};
use crate::report::sweep::entry;
use crate::run::Run;
use crate::statistics::{Figures, Missing, Spread};
use crate::study::rotation_stall::configuration::{Beside, Configuration};

/// From a run of `rotation-stall`.
pub(super) fn advice(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let mut parts = Vec::new();
    for panel in figures.panels() {
        let points: Vec<(&Point, Configuration)> = figures
            .points()
            .into_iter()
            .filter(|point| point.panel == *panel)
            .filter_map(|point| Some((point, Configuration::try_from(&point.configuration).ok()?)))
            .collect();
        parts.push(Part::Text(format!("{panel}: {}", sentence(&figures, &points))));
        parts.push(Part::Table(table(&figures, panel, &points)));
    }
    parts
}

/// At a rotation, of every round: the longest commit in ms.
fn longest(figures: &Figures, point: &Point) -> Result<Spread, Missing> {
    figures.median(point, "stall_longest_ms")
}

fn sentence(figures: &Figures, points: &[(&Point, Configuration)]) -> String {
    let is_unsynced = |one: &Configuration| one.every == 0 && one.beside == Beside::Nothing;
    let largest = points.iter().filter(|(_, one)| is_unsynced(one)).max_by_key(|(_, one)| one.file_mib);
    let Some((point, one)) = largest else { return "sync_binlog 0 was not measured.".to_owned() };
    let (at, between) = (longest(figures, point), figures.median(point, "between_longest_ms"));
    let (Ok(at), Ok(between)) = (at, between) else {
        return format!("with {one} no rotation was seen: measure longer (--set seconds).");
    };
    let rounds = if at.rounds == 1 { "one round".to_owned() } else { format!("{} rounds", at.rounds) };
    if at.range.0 <= between.range.1 {
        return format!(
            "that commits stand at a rotation with {one} is not shown by these ranges: the longest is {} there, and {} \
             where nothing happens, in {rounds}.",
            ms(&at),
            ms(&between)
        );
    }
    let shorter: Vec<String> = points
        .iter()
        .filter_map(|(other, name)| Some((name, longest(figures, other).ok()?)))
        .filter(|(_, other)| other.range.1 < at.range.0)
        .map(|(name, other)| format!("{name} ({})", ms(&other)))
        .collect();
    let helps = if shorter.is_empty() {
        "Nothing that was measured makes it shorter".to_owned()
    } else {
        format!("Shorter with: {}", shorter.join("; "))
    };
    format!(
        "with {one} commits stand at each rotation for {}; where nothing happens the longest is {}, in {rounds}. {helps}. See \
         the time in stalls too: what only cuts a stall in pieces stands as long in all.",
        ms(&at),
        ms(&between)
    )
}

/// `568 ms (541 to 581)`, or without a range where there is none.
fn ms(spread: &Spread) -> String {
    let (low, high) = spread.range;
    if spread.rounds == 1 {
        format!("{:.0} ms", spread.median)
    } else {
        format!("{:.0} ms ({low:.0} to {high:.0})", spread.median)
    }
}

fn table(figures: &Figures, panel: &Panel, points: &[(&Point, Configuration)]) -> Table {
    let row = |(point, one): &(&Point, Configuration)| {
        let value = |name| figures.median(point, name);
        let share = value("slow_share").map(|share| Spread {
            median: share.median * 100.0,
            range: (share.range.0 * 100.0, share.range.1 * 100.0),
            ..share
        });
        vec![
            Entry::Text(one.to_string()),
            entry(longest(figures, point), 0),
            entry(value("between_longest_ms"), 0),
            entry(value("rotation_period_s"), 1),
            entry(share, 1),
        ]
    };
    Table {
        title: format!("What a rotation does ({panel})"),
        columns: [
            "setting",
            "longest commit at a rotation (ms)",
            "half-way between two (ms)",
            "a rotation each (s)",
            "time in stalls (%)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: points.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;
    use crate::model::{Measured, Order, Profile, Settings};
    use crate::point::{CellKey, Condition};
    use crate::report::example;
    use crate::run::Cell;

    fn text(cells: &[(u32, f64, f64)]) -> String {
        let panel = Panel { server: "mysql-9.7".to_owned(), condition: Condition::Plain };
        let cell = |(every, at, between): &(u32, f64, f64)| {
            let mut measured = Measured::default();
            measured.put("stall_longest_ms", *at);
            measured.put("between_longest_ms", *between);
            let one = Configuration { every: *every, file_mib: 1024, beside: Beside::Nothing };
            Cell { key: CellKey { point: panel.point(one, 6), round: 0 }, started: 0, took: 1.0, measured }
        };
        let order = Order {
            profile: Profile::Quick,
            servers: Vec::new(),
            settings: Settings::default(),
            apart: Apart::default(),
        };
        let run = example::run("rotation-stall", order, cells.iter().map(cell).collect());
        let Part::Text(text) = advice(&run).remove(0) else { panic!("the sentence comes first") };
        text
    }

    #[test]
    fn a_stall_is_told_only_where_it_is_longer_than_what_chance_makes() {
        let shown = text(&[(0, 568.0, 3.0), (1, 5.0, 4.0), (1000, 600.0, 20.0)]);
        assert!(
            shown.contains("at each rotation for 568 ms; where nothing happens the longest is 3 ms"),
            "{shown}"
        );
        assert!(shown.contains("Shorter with: ") && shown.contains("(5 ms)"), "{shown}");
        assert!(!shown.contains("600 ms"), "{shown}");
        assert!(text(&[(0, 3.0, 3.0)]).contains("is not shown by these ranges"));
        assert!(text(&[(1, 3.0, 3.0)]).contains("sync_binlog 0 was not measured"));
    }
}
