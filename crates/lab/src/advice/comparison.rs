//! A table of verdicts over numbers of threads, and the sentence that sums a column of it up.

use super::verdict::{AMOUNT, TIME, Verdict, Words, told};
use crate::point::{Configuration, Panel};
use crate::report::outline::{Entry, Part, Table};
use crate::statistics::{Figures, Missing, Spread};

/// A column: a configuration against another one, by one value.
pub(super) struct Column {
    head: &'static str,
    of: Configuration,
    to: Configuration,
    value: &'static str,
    words: Words,
}

impl Column {
    /// The value of one, by its name in a cell, against that of the other. Names of times end in their unit.
    pub(super) fn new(
        head: &'static str,
        of: impl Into<Configuration>,
        to: impl Into<Configuration>,
        value: &'static str,
    ) -> Column {
        let words = if value.ends_with("_ms") { TIME } else { AMOUNT };
        Column { head, of: of.into(), to: to.into(), value, words }
    }

    fn ratio(&self, figures: &Figures, panel: &Panel, threads: u32) -> Result<Spread, Missing> {
        figures.ratio(&panel.point(self.of.clone(), threads), self.to.clone(), self.value)
    }
}

/// The first column in a sentence, and all of them as a table with a row for each number of threads. Where the
/// configuration of the first was not measured, it is said.
pub(super) fn parts(figures: &Figures, panel: &Panel, title: &str, columns: &[Column]) -> Vec<Part> {
    let Some(first) = columns.first() else { return Vec::new() };
    if !figures.configurations(panel).contains(&&first.of) {
        return vec![Part::Text(format!("{panel}: “{}” was not measured.", first.of))];
    }
    let threads = figures.threads(panel);
    let ratios: Vec<(u32, Result<Spread, Missing>)> =
        threads.iter().map(|threads| (*threads, first.ratio(figures, panel, *threads))).collect();
    let mut heads = vec!["threads".to_owned()];
    heads.extend(columns.iter().map(|column| column.head.to_owned()));
    let row = |threads: &u32| {
        let verdicts = columns
            .iter()
            .map(|column| Entry::Text(told(&column.ratio(figures, panel, *threads), column.words)));
        std::iter::once(Entry::Number(f64::from(*threads), 0)).chain(verdicts).collect()
    };
    let table = Table {
        title: format!("{title} ({panel})"),
        columns: heads,
        rows: threads.iter().map(row).collect(),
        notes: Vec::new(),
    };
    vec![
        Part::Text(format!("{panel}, {}: {}", first.head, summed_up(&ratios, first.words))),
        Part::Table(table),
    ]
}

/// `Shown at 2 of 3 numbers of threads; at most 19 % less (9 to 22 %), with 32 threads.`
pub(super) fn summed_up(ratios: &[(u32, Result<Spread, Missing>)], words: Words) -> String {
    let shown: Vec<(u32, &Spread, Verdict)> = ratios
        .iter()
        .filter_map(|(threads, ratio)| {
            let ratio = ratio.as_ref().ok()?;
            Some((*threads, ratio, Verdict::of(ratio)))
        })
        .filter(|(.., verdict)| matches!(verdict, Verdict::Less | Verdict::More))
        .collect();
    if shown.is_empty() {
        return "no difference is shown by these ranges.".to_owned();
    }
    let far = |ratio: &Spread| ratio.median.ln().abs();
    let mut text = format!("Shown at {} of {} numbers of threads", shown.len(), ratios.len());
    for (verdict, most) in [(Verdict::Less, words.less), (Verdict::More, words.more)] {
        let of_kind = shown.iter().filter(|(.., one)| *one == verdict);
        let Some((threads, ratio, _)) = of_kind.max_by(|one, other| far(one.1).total_cmp(&far(other.1)))
        else {
            continue;
        };
        text += &format!("; most {most} with {threads} threads: {}", told(&Ok(**ratio), words));
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_tells_the_farthest_of_each_side_that_is_shown() {
        let of = |threads: u32, values: &[f64]| (threads, Ok(Spread::of(values).unwrap()));
        let ratios = [
            of(2, &[0.9, 0.95, 0.85]),
            of(8, &[0.9, 1.1, 1.0]),
            of(32, &[0.7, 0.6, 0.8]),
            (64, Err(Missing("invalid".to_owned()))),
        ];
        assert_eq!(
            summed_up(&ratios, AMOUNT),
            "Shown at 2 of 4 numbers of threads; most less with 32 threads: 30 % less (20 to 40 %)."
        );
        assert_eq!(summed_up(&ratios[1..2], AMOUNT), "no difference is shown by these ranges.");
        let both = [of(2, &[0.9, 0.95, 0.85]), of(4, &[1.2, 1.1, 1.3])];
        assert_eq!(
            summed_up(&both, AMOUNT),
            "Shown at 2 of 2 numbers of threads; most less with 2 threads: 10 % less (5.0 to 15 %); most more with 4 \
             threads: 20 % more (10 to 30 %)."
        );
    }
}
