//! Medians and ranges over rounds, and ratios made within a round.
//!
//! A disk and its neighbours change from minute to minute, so a ratio is made from two cells of the same round, and the
//! median is taken of these ratios; a ratio of two medians would mix rounds.

use crate::point::{Configuration, Panel, Point};
use crate::results::run::{Cell, Run};
use rig::statistics::median;
use std::collections::BTreeMap;
use std::fmt;

/// The median of rounds with their range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle round; the mean of the two middle ones for an even number of rounds.
    pub median: f64,
    /// The lowest and the highest round.
    pub range: (f64, f64),
    /// Rounds that counted.
    pub rounds: usize,
}

impl Spread {
    /// Of these values; none without any.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        Some(Spread { median: median(values.iter().copied()), range: (low, high), rounds: values.len() })
    }

    /// The same in another unit.
    pub fn scaled(self, scale: f64) -> Spread {
        let (low, high) = self.range;
        Spread { median: self.median * scale, range: (low * scale, high * scale), ..self }
    }
}

/// Why there is no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a run came to, point by point.
#[derive(Debug)]
pub struct Figures<'a> {
    run: &'a Run,
    /// By point and round; of a cell that was measured again, the last one.
    cells: BTreeMap<&'a Point, BTreeMap<u32, &'a Cell>>,
}

impl<'a> Figures<'a> {
    /// Of this run.
    pub fn of(run: &'a Run) -> Figures<'a> {
        let mut cells: BTreeMap<&Point, BTreeMap<u32, &Cell>> = BTreeMap::new();
        for cell in &run.cells {
            cells.entry(&cell.key.point).or_default().insert(cell.key.round, cell);
        }
        Figures { run, cells }
    }

    /// The run.
    pub fn run(&self) -> &'a Run {
        self.run
    }

    /// The points that were measured, in the order of measuring.
    pub fn points(&self) -> Vec<&'a Point> {
        distinct(self.run.cells.iter().map(|cell| &cell.key.point))
    }

    /// The panels that were measured, in the order of measuring.
    pub fn panels(&self) -> Vec<&'a Panel> {
        distinct(self.run.cells.iter().map(|cell| &cell.key.point.panel))
    }

    /// The configurations that were measured in the panel, in the order of measuring.
    pub fn configurations(&self, panel: &Panel) -> Vec<&'a Configuration> {
        distinct(self.points_of(panel).map(|point| &point.configuration))
    }

    /// The same, as those of one study; those of others are left out.
    pub fn own_configurations<T: TryFrom<&'a Configuration>>(&self, panel: &Panel) -> Vec<T> {
        self.configurations(panel).into_iter().filter_map(|one| one.try_into().ok()).collect()
    }

    /// The points of the panel with their configurations as those of one study, in the order of measuring; those of others
    /// are left out.
    pub fn own_points<T: TryFrom<&'a Configuration>>(&self, panel: &Panel) -> Vec<(&'a Point, T)> {
        let points = distinct(self.points_of(panel)).into_iter();
        points.filter_map(|point| Some((point, T::try_from(&point.configuration).ok()?))).collect()
    }

    /// The numbers of threads that were measured in the panel, in ascending order.
    pub fn threads(&self, panel: &Panel) -> Vec<u32> {
        let mut threads = distinct(self.points_of(panel).map(|point| point.threads));
        threads.sort_unstable();
        threads
    }

    /// The cells of the point by round, invalid ones too.
    pub fn cells(&self, point: &Point) -> impl Iterator<Item = &'a Cell> + use<'a, '_> {
        self.cells.get(point).into_iter().flat_map(|rounds| rounds.values().copied())
    }

    /// The median and the range of a value over the valid cells of the point.
    ///
    /// # Errors
    /// When no valid cell has the value; says why.
    pub fn median(&self, point: &Point, value: &str) -> Result<Spread, Missing> {
        let values: Vec<f64> = self.by_round(point, value)?.into_values().collect();
        Spread::of(&values).ok_or_else(|| Missing(format!("{value} was not measured")))
    }

    /// The ratio of a value to that of `baseline` in the same block, made within each round.
    ///
    /// # Errors
    /// As [`Figures::ratio_between`].
    pub fn ratio(
        &self,
        point: &Point,
        baseline: impl Into<Configuration>,
        value: &str,
    ) -> Result<Spread, Missing> {
        self.ratio_between(point, &point.panel.point(baseline, point.threads), value)
    }

    /// The ratio of a value to that of any other point, made within each round; for what is compared across blocks, such
    /// as file systems or servers. It means something only if the two points were measured soon after each other.
    ///
    /// # Errors
    /// When no round has both as valid cells, or the baseline's value is 0; says why.
    pub fn ratio_between(&self, point: &Point, baseline: &Point, value: &str) -> Result<Spread, Missing> {
        let over = self.by_round(point, value)?;
        let under = self.by_round(baseline, value).map_err(|missing| no_baseline(baseline, &missing))?;
        let pairs = pairs(&over, &under);
        if pairs.is_empty() {
            return Err(Missing(format!(
                "no round has both this and {} as valid cells",
                baseline.configuration
            )));
        }
        ratios(&pairs).ok_or_else(|| zero_baseline(baseline, value))
    }

    /// The ratio of a value to that of a point that was measured at another time, in a scene of its own: their rounds do not
    /// belong together. It is that of the medians, and its range holds each round of the one against each of the other.
    ///
    /// # Errors
    /// When one of them has no valid cell with the value, or a round of the baseline has 0; says why.
    pub fn ratio_apart(&self, point: &Point, baseline: &Point, value: &str) -> Result<Spread, Missing> {
        let over = self.median(point, value)?;
        let under = self.median(baseline, value).map_err(|missing| no_baseline(baseline, &missing))?;
        let (low, high) = under.range;
        if low == 0.0 {
            return Err(zero_baseline(baseline, value));
        }
        Ok(Spread {
            median: over.median / under.median,
            range: (over.range.0 / high, over.range.1 / low),
            rounds: over.rounds.min(under.rounds),
        })
    }

    /// The ratio of a value to another one of the same cell.
    ///
    /// # Errors
    /// When no valid cell has both, or the other one is 0; says why.
    pub fn ratio_within(&self, point: &Point, value: &str, other: &str) -> Result<Spread, Missing> {
        let pairs = pairs(&self.by_round(point, value)?, &self.by_round(point, other)?);
        if pairs.is_empty() {
            return Err(Missing(format!("no valid cell has both {value} and {other}")));
        }
        ratios(&pairs).ok_or_else(|| Missing(format!("{other} is 0")))
    }

    fn points_of<'b>(&'b self, panel: &'b Panel) -> impl Iterator<Item = &'a Point> + 'b {
        self.run.cells.iter().map(|cell| &cell.key.point).filter(|point| point.panel == *panel)
    }

    /// The value in each valid round that has it.
    fn by_round(&self, point: &Point, value: &str) -> Result<BTreeMap<u32, f64>, Missing> {
        let Some(rounds) = self.cells.get(point) else { return Err(Missing("not measured".to_owned())) };
        let valid: Vec<&&Cell> = rounds.values().filter(|cell| cell.measured.invalid.is_none()).collect();
        if valid.is_empty() {
            let reasons = distinct(rounds.values().filter_map(|cell| cell.measured.invalid.as_deref()));
            return Err(Missing(format!("invalid: {}", reasons.join("; "))));
        }
        let values: BTreeMap<u32, f64> = valid
            .iter()
            .filter_map(|cell| Some((cell.key.round, *cell.measured.values.get(value)?)))
            .filter(|(_, value)| value.is_finite())
            .collect();
        if values.is_empty() { Err(Missing(format!("{value} was not measured"))) } else { Ok(values) }
    }
}

/// What both have, each in its round.
fn pairs(over: &BTreeMap<u32, f64>, under: &BTreeMap<u32, f64>) -> Vec<(f64, f64)> {
    over.iter().filter_map(|(round, over)| Some((*over, *under.get(round)?))).collect()
}

/// The ratios of pairs, but those to 0; none where there is no other.
fn ratios(pairs: &[(f64, f64)]) -> Option<Spread> {
    let finite = pairs.iter().filter(|(_, under)| *under != 0.0);
    Spread::of(&finite.map(|(over, under)| over / under).collect::<Vec<f64>>())
}

fn no_baseline(baseline: &Point, missing: &Missing) -> Missing {
    Missing(format!("no baseline ({}): {missing}", baseline.configuration))
}

fn zero_baseline(baseline: &Point, value: &str) -> Missing {
    Missing(format!("{value} of {} is 0", baseline.configuration))
}

/// Each once, in the order of the first.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Measured, Order, Profile, Settings};
    use crate::point::sync_binlog::Configuration;
    use crate::point::{CellKey, Condition};
    use crate::report::example;

    const BASE: Configuration = Configuration::NoBinaryLog;
    const A: Configuration = with(1);
    const B: Configuration = with(2);

    const fn with(every: u32) -> Configuration {
        Configuration::Sync { every, attached: false }
    }

    fn panel() -> Panel {
        Panel { server: "mysql-9.7".to_owned(), condition: Condition::Plain }
    }

    fn cell(configuration: Configuration, threads: u32, round: u32, measured: Measured) -> Cell {
        let key = CellKey { point: panel().point(configuration, threads), round };
        Cell { key, started: 0, took: 1.0, measured }
    }

    fn tps(value: f64) -> Measured {
        let mut measured = Measured::default();
        measured.put("tps", value);
        measured
    }

    fn run(cells: Vec<Cell>) -> Run {
        let order = Order::new(Profile::Smoke, Settings::default());
        example::run("test", order, cells)
    }

    #[test]
    fn the_median_is_of_the_valid_rounds() {
        let run = run(vec![
            cell(A, 2, 0, tps(30.0)),
            cell(A, 2, 1, tps(10.0)),
            cell(A, 2, 2, Measured { invalid: Some("fell back".to_owned()), ..tps(9000.0) }),
            cell(A, 2, 3, tps(11.0)),
        ]);
        let spread = Figures::of(&run).median(&panel().point(A, 2), "tps").unwrap();
        assert_eq!(spread, Spread { median: 11.0, range: (10.0, 30.0), rounds: 3 });
    }

    #[test]
    fn ratios_are_made_within_rounds() {
        // The machine became ten times slower in the second round; the third has no valid baseline.
        let run = run(vec![
            cell(BASE, 2, 0, tps(100.0)),
            cell(A, 2, 0, tps(50.0)),
            cell(A, 2, 1, tps(6.0)),
            cell(BASE, 2, 1, tps(10.0)),
            cell(A, 2, 2, tps(40.0)),
            cell(BASE, 2, 2, Measured { invalid: Some("errors".to_owned()), ..tps(1.0) }),
            cell(BASE, 8, 0, tps(1.0)),
        ]);
        let figures = Figures::of(&run);
        let ratio = figures.ratio(&panel().point(A, 2), BASE, "tps").unwrap();
        assert_eq!(ratio, Spread { median: 0.55, range: (0.5, 0.6), rounds: 2 });
        let across = figures.ratio_between(&panel().point(BASE, 8), &panel().point(A, 2), "tps").unwrap();
        assert_eq!(across, Spread { median: 0.02, range: (0.02, 0.02), rounds: 1 });
        assert_eq!(figures.threads(&panel()), [2, 8]);
        assert_eq!(figures.own_configurations::<Configuration>(&panel()), [BASE, A]);
        let own = figures.own_points::<Configuration>(&panel());
        assert_eq!(
            own.iter().map(|(point, one)| (point.threads, *one)).collect::<Vec<_>>(),
            [(2, BASE), (2, A), (8, BASE)]
        );
        assert_eq!(figures.panels(), [&panel()]);
        assert_eq!(figures.points().len(), 3);
    }

    #[test]
    fn of_points_that_were_measured_apart_each_round_is_held_against_each() {
        let run = run(vec![
            cell(BASE, 2, 0, tps(40.0)),
            cell(BASE, 2, 1, tps(50.0)),
            cell(BASE, 2, 2, tps(100.0)),
            cell(A, 2, 0, tps(5.0)),
            cell(A, 2, 1, tps(10.0)),
            cell(B, 2, 0, tps(0.0)),
        ]);
        let figures = Figures::of(&run);
        let point = |one: Configuration| panel().point(one, 2);
        let apart = |one, other| figures.ratio_apart(&point(one), &point(other), "tps");
        // The medians are 7.5 and 50.
        assert_eq!(apart(A, BASE).unwrap(), Spread { median: 0.15, range: (0.05, 0.25), rounds: 2 });
        assert_eq!(apart(A, B), Err(Missing("tps of sync_binlog 2 is 0".to_owned())));
        let reason = "no baseline (sync_binlog 3): not measured";
        assert_eq!(apart(A, with(3)), Err(Missing(reason.to_owned())));
    }

    #[test]
    fn two_values_of_a_cell_are_compared_within_it() {
        let both = |tps: f64, other: f64| {
            let mut measured = Measured::default();
            measured.put("tps", tps);
            measured.put("qps", other);
            measured
        };
        let run = run(vec![
            cell(A, 2, 0, both(10.0, 20.0)),
            cell(A, 2, 1, both(10.0, 40.0)),
            cell(A, 2, 2, tps(10.0)),
            cell(B, 2, 0, both(10.0, 0.0)),
        ]);
        let figures = Figures::of(&run);
        let within = |one: Configuration, other| figures.ratio_within(&panel().point(one, 2), "tps", other);
        assert_eq!(within(A, "qps").unwrap(), Spread { median: 0.375, range: (0.25, 0.5), rounds: 2 });
        assert_eq!(within(B, "qps"), Err(Missing("qps is 0".to_owned())));
        assert_eq!(within(B, "p95_ms"), Err(Missing("p95_ms was not measured".to_owned())));
    }

    #[test]
    fn another_unit_scales_the_range_too() {
        let spread = Spread { median: 0.5, range: (0.25, 1.0), rounds: 3 };
        assert_eq!(spread.scaled(100.0), Spread { median: 50.0, range: (25.0, 100.0), rounds: 3 });
    }

    #[test]
    fn what_is_missing_says_why() {
        let run = run(vec![
            cell(A, 2, 0, Measured::invalid("semi-sync fell back")),
            cell(A, 2, 1, Measured::invalid("semi-sync fell back")),
            cell(B, 2, 0, tps(1.0)),
            cell(with(10), 2, 0, tps(0.0)),
            cell(with(11), 2, 5, tps(1.0)),
        ]);
        let figures = Figures::of(&run);
        let reason = |result: Result<Spread, Missing>| result.unwrap_err().to_string();
        let point = |configuration: Configuration| panel().point(configuration, 2);
        assert_eq!(reason(figures.median(&point(A), "tps")), "invalid: semi-sync fell back");
        assert_eq!(reason(figures.median(&point(with(3)), "tps")), "not measured");
        assert_eq!(reason(figures.median(&point(B), "p95_ms")), "p95_ms was not measured");
        assert_eq!(
            reason(figures.ratio(&point(B), A, "tps")),
            "no baseline (sync_binlog 1): invalid: semi-sync fell back"
        );
        assert_eq!(reason(figures.ratio(&point(B), with(10), "tps")), "tps of sync_binlog 10 is 0");
        assert_eq!(
            reason(figures.ratio(&point(B), with(11), "tps")),
            "no round has both this and sync_binlog 11 as valid cells"
        );
    }

    #[test]
    fn a_cell_that_was_measured_again_counts_once() {
        let run = run(vec![cell(A, 2, 0, Measured::invalid("errors")), cell(A, 2, 0, tps(7.0))]);
        let spread = Figures::of(&run).median(&panel().point(A, 2), "tps").unwrap();
        assert_eq!(spread, Spread { median: 7.0, range: (7.0, 7.0), rounds: 1 });
    }
}
