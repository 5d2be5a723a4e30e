//! A table of verdicts over numbers of threads, and the sentence that sums a column of it up.

use super::verdict::{AMOUNT, TIME, Verdict, Words, lacking, told};
use crate::outline::{Entry, Part, Table};
use crate::point::{Configuration, Panel};
use crate::results::statistics::{Figures, Missing, Spread};

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

    fn configurations(&self) -> [&Configuration; 2] {
        [&self.of, &self.to]
    }

    fn ratio(&self, figures: &Figures, panel: &Panel, threads: u32) -> Result<Spread, Missing> {
        figures.ratio(&panel.point(self.of.clone(), threads), self.to.clone(), self.value)
    }
}

/// Of the columns whose configurations were measured the first in a sentence, and all as a table with a row for each
/// number of threads; and which configurations were not.
pub(super) fn parts(figures: &Figures, panel: &Panel, title: &str, columns: &[Column]) -> Vec<Part> {
    let measured = figures.configurations(panel);
    let mut missing: Vec<&Configuration> = Vec::new();
    for one in columns.iter().flat_map(Column::configurations) {
        if !measured.contains(&one) && !missing.contains(&one) {
            missing.push(one);
        }
    }
    let is_measured = |column: &&Column| !column.configurations().iter().any(|one| missing.contains(one));
    let columns: Vec<&Column> = columns.iter().filter(is_measured).collect();
    let mut parts = of_measured(figures, panel, title, &columns);
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|one| format!("“{one}”")).collect();
        parts.push(Part::Text(format!("{panel}, not measured: {}.", names.join("; "))));
    }
    parts
}

fn of_measured(figures: &Figures, panel: &Panel, title: &str, columns: &[&Column]) -> Vec<Part> {
    let Some(first) = columns.first() else { return Vec::new() };
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

/// `Shown at 2 of 3 numbers of threads; most less with 32 threads: 19 % less (9.0 to 22 %).` What was not measured, or in
/// too few rounds, is neither shown nor not shown: it is counted by itself.
pub(super) fn summed_up(ratios: &[(u32, Result<Spread, Missing>)], words: Words) -> String {
    let counted: Vec<(u32, &Spread, Verdict)> = ratios
        .iter()
        .filter_map(|(threads, ratio)| {
            let ratio = ratio.as_ref().ok()?;
            Some((*threads, ratio, Verdict::of(ratio)))
        })
        .filter(|(.., verdict)| *verdict != Verdict::TooFew)
        .collect();
    let lacking = lacking(ratios.iter().map(|(_, ratio)| ratio));
    if counted.is_empty() {
        let lacking = lacking.unwrap_or_default();
        return format!("nothing can be told; of {} numbers of threads: {lacking}.", ratios.len());
    }
    let shown = counted.iter().filter(|(.., verdict)| *verdict != Verdict::NotShown).count();
    let mut text = match shown {
        0 => "no difference is shown by these ranges".to_owned(),
        shown => format!("Shown at {shown} of {} numbers of threads", counted.len()),
    };
    let far = |ratio: &Spread| ratio.median.ln().abs();
    for (verdict, most) in [(Verdict::Less, words.less), (Verdict::More, words.more)] {
        let of_kind = counted.iter().filter(|(.., one)| *one == verdict);
        let Some((threads, ratio, _)) = of_kind.max_by(|one, other| far(one.1).total_cmp(&far(other.1)))
        else {
            continue;
        };
        text += &format!("; most {most} with {threads} threads: {}", told(&Ok(**ratio), words));
    }
    text.push('.');
    if let Some(lacking) = lacking {
        text += &format!(" Not counted: {lacking}.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::virtual_replica::{Configuration as Own, FSYNC_MODE_1};
    use crate::report::example;

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
            "Shown at 2 of 3 numbers of threads; most less with 32 threads: 30 % less (20 to 40 %). Not counted: 1 not \
             measured (invalid)."
        );
        assert_eq!(summed_up(&ratios[1..2], AMOUNT), "no difference is shown by these ranges.");
        let both = [of(2, &[0.9, 0.95, 0.85]), of(4, &[1.2, 1.1, 1.3])];
        assert_eq!(
            summed_up(&both, AMOUNT),
            "Shown at 2 of 2 numbers of threads; most less with 2 threads: 10 % less (5.0 to 15 %); most more with 4 \
             threads: 20 % more (10 to 30 %)."
        );
    }

    #[test]
    fn what_was_not_measured_in_enough_rounds_is_not_called_not_shown() {
        let of = |threads: u32, values: &[f64]| (threads, Ok(Spread::of(values).unwrap()));
        let ratios = [of(2, &[0.9]), of(4, &[0.9, 0.8]), (64, Err(Missing("invalid: errors".to_owned())))];
        assert_eq!(
            summed_up(&ratios, AMOUNT),
            "nothing can be told; of 3 numbers of threads: 2 in too few rounds (measure again with --set rounds=3); 1 not \
             measured (invalid: errors)."
        );
        let ratios = [of(2, &[0.9, 1.1, 1.0]), of(4, &[0.9])];
        assert_eq!(
            summed_up(&ratios, AMOUNT),
            "no difference is shown by these ranges. Not counted: 1 in too few rounds (measure again with --set rounds=3)."
        );
    }

    #[test]
    fn columns_that_were_measured_are_answered_without_the_others() {
        let run = example::virtual_replica();
        let figures = Figures::of(&run);
        let panel = figures.panels()[0];
        let columns = [
            Column::new("relaxed", Own::Relaxed, Own::Alone, "tps"),
            Column::new("fsync_mode 1", FSYNC_MODE_1, Own::Alone, "tps"),
            Column::new("against relaxed", FSYNC_MODE_1, Own::Relaxed, "tps"),
        ];
        let all = parts(&figures, panel, "a title", &columns);
        let [Part::Text(sentence), Part::Table(table), Part::Text(missing)] = &all[..] else {
            panic!("{all:?}")
        };
        assert!(sentence.starts_with("mysql-9.7, fsync_mode 1: "), "{sentence}");
        assert_eq!(table.columns, ["threads", "fsync_mode 1"]);
        assert_eq!(*missing, "mysql-9.7, not measured: “relaxed source (0, 2) with binlogd, fsync_mode 1”.");
        assert_eq!(parts(&figures, panel, "a title", &columns[..1]).len(), 1);
    }
}
