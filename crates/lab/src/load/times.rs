//! How long transactions took, as a load's clients saw it: means hide what users feel.

use crate::model::Measured;

/// Times of the transactions of a load, in ms: from the first statement to the end of the commit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// Half of them took no longer.
    pub p50_ms: f64,
    /// 95 % took no longer.
    pub p95_ms: f64,
    /// 99 % took no longer.
    pub p99_ms: f64,
    /// 99.9 % took no longer. Of fewer than a thousand transactions it is the longest, about.
    pub p99_9_ms: f64,
    /// The longest.
    pub longest_ms: f64,
}

/// What the times are called in a cell, behind what the load puts before them, with what they are called in a table.
pub const NAMES: [(&str, &str); 5] = [
    ("p50_ms", "p50"),
    ("p95_ms", "p95"),
    ("p99_ms", "p99"),
    ("p99_9_ms", "p99.9"),
    ("longest_ms", "longest"),
];

impl Times {
    /// Puts the numbers under their names, each behind `prefix`.
    pub fn put_into(&self, measured: &mut Measured, prefix: &str) {
        let values = [self.p50_ms, self.p95_ms, self.p99_ms, self.p99_9_ms, self.longest_ms];
        for ((name, _), value) in NAMES.into_iter().zip(values) {
            measured.put(&format!("{prefix}{name}"), value);
        }
    }
}

/// How many took how long.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// In ms, ascending, each with a count above 0. sysbench prints three digits, so that below 0.05 ms neighbours may have
    /// the same time.
    steps: Vec<(f64, u64)>,
}

impl Histogram {
    /// Of pairs of a time in ms and a count, in ascending order of time; none when they are not in that order.
    pub fn of(steps: Vec<(f64, u64)>) -> Option<Histogram> {
        let ascends = steps.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        ascends.then_some(Histogram { steps })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.steps.iter().map(|(_, count)| count).sum()
    }

    /// The time in ms of the step that holds the transaction of that rank: of `percent` of them all, rounded up. None
    /// without any.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let rank = ((self.count() as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut passed = 0;
        self.steps
            .iter()
            .find(|(_, count)| {
                passed += count;
                passed >= rank
            })
            .map(|(time, _)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_step_that_holds_its_rank() {
        let histogram = Histogram::of(vec![(0.5, 900), (1.0, 90), (2.0, 9), (50.0, 1)]).unwrap();
        assert_eq!(histogram.count(), 1000);
        let at = |percent| histogram.percentile(percent).unwrap();
        assert_eq!([at(0.0), at(50.0), at(90.0), at(90.1)], [0.5, 0.5, 0.5, 1.0]);
        assert_eq!([at(99.0), at(99.9), at(100.0)], [1.0, 2.0, 50.0]);
        assert_eq!(Histogram::default().percentile(50.0), None);
        assert_eq!(Histogram::of(vec![(1.0, 1), (0.5, 1)]), None);
        assert_eq!(Histogram::of(vec![(0.037, 1), (0.037, 2)]).unwrap().percentile(50.0), Some(0.037));
    }

    #[test]
    fn the_names_of_the_times_hold_their_unit() {
        let mut measured = Measured::default();
        let times = Times { p50_ms: 1.0, p95_ms: 2.0, p99_ms: 3.0, p99_9_ms: 4.0, longest_ms: 5.0 };
        times.put_into(&mut measured, "new_order_");
        let found: Vec<(&str, f64)> =
            measured.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(
            found,
            [
                ("new_order_longest_ms", 5.0),
                ("new_order_p50_ms", 1.0),
                ("new_order_p95_ms", 2.0),
                ("new_order_p99_9_ms", 4.0),
                ("new_order_p99_ms", 3.0)
            ]
        );
        assert!(NAMES.iter().all(|(name, _)| name.ends_with("_ms")));
    }
}
