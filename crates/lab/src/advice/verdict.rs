//! Whether a ratio shows anything, in words.

use crate::results::statistics::{Missing, Spread};

/// Of fewer rounds a range says too little.
const ROUNDS_MIN: usize = 3;

/// What is compared, in the words for less and more of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    pub(super) less: &'static str,
    pub(super) more: &'static str,
    /// Behind a number of times.
    pub(super) times: &'static str,
}

/// For what there is more or less of.
pub(super) const AMOUNT: Words = Words { less: "less", more: "more", times: "as much" };
/// For times.
pub(super) const TIME: Words = Words { less: "shorter", more: "longer", times: "as long" };

/// What rounds say of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every round is below 1.
    Less,
    /// Every round is above 1.
    More,
    /// Rounds lie on both sides.
    NotShown,
    /// There were too few of them.
    TooFew,
}

impl Verdict {
    /// Of this ratio.
    pub(super) fn of(ratio: &Spread) -> Verdict {
        match ratio.range {
            _ if ratio.rounds < ROUNDS_MIN => Verdict::TooFew,
            (_, high) if high < 1.0 => Verdict::Less,
            (low, _) if low > 1.0 => Verdict::More,
            _ => Verdict::NotShown,
        }
    }
}

/// `one round`, `3 rounds`.
pub(super) fn rounds(count: usize) -> String {
    if count == 1 { "one round".to_owned() } else { format!("{count} rounds") }
}

/// What to do where there were too few rounds.
pub(super) fn again() -> String {
    format!("measure again with --set rounds={ROUNDS_MIN}")
}

/// How many of these ratios tell nothing, neither that something is shown nor that it is not, and why; none where all
/// do: `2 in too few rounds (measure again with --set rounds=3); 1 not measured (invalid: errors)`.
pub(super) fn lacking<'a>(ratios: impl Iterator<Item = &'a Result<Spread, Missing>>) -> Option<String> {
    let (mut few, mut missing, mut reasons) = (0, 0, Vec::new());
    for ratio in ratios {
        match ratio {
            Ok(ratio) if Verdict::of(ratio) == Verdict::TooFew => few += 1,
            Ok(_) => {}
            Err(Missing(reason)) => {
                missing += 1;
                if !reasons.contains(&reason.as_str()) {
                    reasons.push(reason.as_str());
                }
            }
        }
    }
    let mut parts = Vec::new();
    if few > 0 {
        parts.push(format!("{few} in too few rounds ({})", again()));
    }
    if missing > 0 {
        parts.push(format!("{missing} not measured ({})", reasons.join("; ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// `14 % less (11 to 17 %)`, `not shown by these ranges: 0.97 (0.92 to 1.04)`, or why there is no figure.
pub(super) fn told(ratio: &Result<Spread, Missing>, words: Words) -> String {
    let ratio = match ratio {
        Ok(ratio) => ratio,
        Err(reason) => return format!("not measured ({reason})"),
    };
    let (low, high) = ratio.range;
    match Verdict::of(ratio) {
        Verdict::TooFew => format!("{:.2} in {}, too few to tell", ratio.median, rounds(ratio.rounds)),
        Verdict::NotShown => {
            format!("not shown by these ranges: {:.2} ({low:.2} to {high:.2})", ratio.median)
        }
        Verdict::More if ratio.median >= 2.0 => {
            format!("{:.1} times {} ({low:.1} to {high:.1})", ratio.median, words.times)
        }
        Verdict::More => {
            let [median, low, high] = [ratio.median, low, high].map(|ratio| percent(ratio - 1.0));
            format!("{median} % {} ({low} to {high} %)", words.more)
        }
        Verdict::Less => {
            let [median, low, high] = [ratio.median, high, low].map(|ratio| percent(1.0 - ratio));
            format!("{median} % {} ({low} to {high} %)", words.less)
        }
    }
}

/// A share in per cent, with a digit after the point where it is small.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], words: Words) -> String {
        told(&Ok(Spread::of(values).unwrap()), words)
    }

    #[test]
    fn a_ratio_is_told_with_its_range_and_only_when_every_round_agrees() {
        assert_eq!(of(&[0.86, 0.89, 0.83], AMOUNT), "14 % less (11 to 17 %)");
        assert_eq!(of(&[1.024, 1.2, 1.05], TIME), "5.0 % longer (2.4 to 20 %)");
        assert_eq!(of(&[2.4, 2.0, 3.0], AMOUNT), "2.4 times as much (2.0 to 3.0)");
        assert_eq!(of(&[2.4, 2.0, 3.0], TIME), "2.4 times as long (2.0 to 3.0)");
        assert_eq!(of(&[0.97, 1.04, 0.92], AMOUNT), "not shown by these ranges: 0.97 (0.92 to 1.04)");
        assert_eq!(of(&[0.5, 1.0, 0.5], AMOUNT), "not shown by these ranges: 0.50 (0.50 to 1.00)");
        assert_eq!(of(&[0.5], AMOUNT), "0.50 in one round, too few to tell");
        assert_eq!(of(&[0.5, 0.6], AMOUNT), "0.55 in 2 rounds, too few to tell");
        let missing = Err(Missing("invalid: errors".to_owned()));
        assert_eq!(told(&missing, AMOUNT), "not measured (invalid: errors)");
    }

    #[test]
    fn what_tells_nothing_is_counted_by_its_reasons() {
        let ratio = |values: &[f64]| Ok(Spread::of(values).unwrap());
        let missing = |reason: &str| Err(Missing(reason.to_owned()));
        let telling = [ratio(&[0.5, 0.5, 0.5]), ratio(&[0.9, 1.1, 1.0])];
        assert_eq!(lacking(telling.iter()), None);
        let all = [ratio(&[0.5, 0.6]), missing("a"), ratio(&[0.5, 0.5, 0.5]), missing("b"), missing("a")];
        assert_eq!(
            lacking(all.iter()).unwrap(),
            "1 in too few rounds (measure again with --set rounds=3); 3 not measured (a; b)"
        );
    }
}
