//! A run as CSV (RFC 4180, lines end with a line feed), for spreadsheets and other programs.

use crate::model::Fact;
use crate::results::run::{Cell, Run, Skipped};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Before the columns of the values.
pub(super) const KEY: [&str; 9] =
    ["run", "study", "server", "condition", "configuration", "threads", "round", "started", "took_s"];

/// The column between those of the key and those of the values.
pub(super) const INVALID: &str = "invalid";

/// The columns of the samples after those of the key.
pub(super) const SAMPLE: [&str; 3] = ["series", "sample", "value"];

/// The columns of what a run is beside its cells.
pub(super) const FACT_HEADS: [&str; 4] = ["kind", "about", "name", "value"];
pub(super) const RUN: &str = "run";
pub(super) const SKIPPED: &str = "skipped";
pub(super) const FACT: &str = "fact";

/// Names of the kind [`RUN`].
pub(super) const NUMBER: &str = "number";
pub(super) const STUDY: &str = "study";
pub(super) const ORDERED: &str = "ordered";
pub(super) const COMMAND: &str = "command";
pub(super) const STARTED: &str = "started";
pub(super) const FINISHED: &str = "finished";

/// One line a cell, in the order of measuring: its key, when it was measured (seconds since 1970) and for how long,
/// why it does not count (empty when it does), and every value that any cell of the run has.
pub fn of(run: &Run) -> String {
    let values: BTreeSet<&str> =
        run.cells.iter().flat_map(|cell| cell.measured.values.keys()).map(String::as_str).collect();
    let heads = KEY.into_iter().chain([INVALID]).chain(values.iter().copied());
    let mut text = line(heads.map(str::to_owned));
    for cell in &run.cells {
        let invalid = cell.measured.invalid.clone().unwrap_or_default();
        let number = |name: &&str| cell.measured.values.get(*name).map_or(String::new(), f64::to_string);
        text += &line(key(run, cell).into_iter().chain([invalid]).chain(values.iter().map(number)));
    }
    text
}

/// What a run is beside its cells: what was asked for and when (`run`), what could not be measured and why (`skipped`), and what it
/// was measured on (`fact`), one line each.
///
/// # Errors
/// When what was asked for cannot be written as JSON.
pub fn facts(run: &Run) -> anyhow::Result<String> {
    let own = |name: &str, value: String| [RUN, "", name, &value].map(str::to_owned);
    let mut lines = vec![
        FACT_HEADS.map(str::to_owned),
        own(NUMBER, run.id.to_string()),
        own(STUDY, run.study.clone()),
        own(ORDERED, serde_json::to_string(&run.order)?),
        own(COMMAND, run.command.clone()),
        own(STARTED, run.started.to_string()),
    ];
    lines.extend(run.finished.map(|finished| own(FINISHED, finished.to_string())));
    for Skipped { scene, reason } in &run.skipped {
        lines.push([SKIPPED, scene, "", reason].map(str::to_owned));
    }
    lines.extend(
        run.facts.iter().map(|Fact { about, name, value }| [FACT, about, name, value].map(str::to_owned)),
    );
    Ok(lines.into_iter().map(|fields| line(fields.into_iter())).collect())
}

/// One line a sample of every series: the key of its cell, the name of the series, the number of the sample from 0, and
/// the sample. Absent when no cell has a series.
pub fn series(run: &Run) -> Option<String> {
    let mut text = line(KEY.into_iter().chain(SAMPLE).map(str::to_owned));
    let heads = text.len();
    for cell in &run.cells {
        for (name, samples) in &cell.measured.series {
            for (index, sample) in samples.iter().enumerate() {
                let fields = [name.clone(), index.to_string(), sample.to_string()];
                text += &line(key(run, cell).into_iter().chain(fields));
            }
        }
    }
    (text.len() > heads).then_some(text)
}

fn key(run: &Run, cell: &Cell) -> [String; KEY.len()] {
    let point = &cell.key.point;
    [
        run.id.to_string(),
        run.study.clone(),
        point.panel.server.clone(),
        point.panel.condition.to_string(),
        point.configuration.to_string(),
        point.threads.to_string(),
        cell.key.round.to_string(),
        cell.started.to_string(),
        cell.took.to_string(),
    ]
}

/// A line of these fields.
pub(super) fn line(fields: impl Iterator<Item = String>) -> String {
    let mut line = String::new();
    for (index, field) in fields.enumerate() {
        if index > 0 {
            line.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) {
            let _ = write!(line, "\"{}\"", field.replace('"', "\"\""));
        } else {
            line += &field;
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn every_cell_is_a_line_with_every_value() {
        let mut run = example::virtual_replica();
        run.cells[0].measured.refuse("an error, \"quoted\"\nover two lines");
        run.cells[1].measured.values.remove("tps");
        let text = of(&run);
        let heads = text.lines().next().unwrap();
        assert!(heads.starts_with("run,study,server,") && heads.ends_with(",invalid,qps,tps"), "{heads}");
        assert!(text.contains(",\"an error, \"\"quoted\"\"\nover two lines\","), "{text}");
        assert_eq!(text.lines().count(), 1 + run.cells.len() + 1);
        let cell = &run.cells[1];
        let qps = cell.measured.values["qps"];
        assert!(text.contains(&format!(",,{qps},\n")), "a missing value is an empty field");
        assert_eq!(series(&run), None);
    }

    #[test]
    fn every_sample_is_a_line() {
        let mut run = example::virtual_replica();
        run.cells[2].measured.series.insert("tps".to_owned(), vec![1.5, 0.0]);
        let text = series(&run).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(text.ends_with(",tps,1,0\n"), "{text}");
    }
}
