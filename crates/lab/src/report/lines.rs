//! Points of a run as lines of JSON, to be committed, and a page of Markdown made from such lines.
//!
//! A page in the documentation that is made from committed lines can be made again by anyone, and a test holds the page to
//! the lines.

use crate::point::{Condition, Point};
use crate::results::number::utc;
use crate::results::run::Run;
use crate::results::statistics::{Figures, Spread};
use crate::study::Study;
use anyhow::Context;
use rig::statistics::Table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a point came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Date of the measuring, UTC.
    pub measured: String,
    /// The commit that was measured, or what is known of it.
    pub commit: String,
    /// The source: its version, and how it syncs where that is not part of the configuration.
    pub source: String,
    /// The load.
    pub workload: String,
    /// Clients of the load.
    pub threads: u32,
    /// What was compared.
    pub configuration: String,
    /// Rounds of the run.
    pub rounds: u32,
    /// Seconds of load of a cell.
    pub seconds: f64,
    /// The median of each value over the rounds, with the lowest and the highest where they were kept; and of ratios within
    /// a round, such as `tps / source alone`.
    pub figures: BTreeMap<String, Vec<f64>>,
}

const HEAD: &str = "\
# Semi-sync on real servers: every point

Made by `binlogd-lab page` from lines that `binlogd-lab export --jsonl` writes. What was measured and what the columns mean
stands in docs/measured/benchmarks.md. Medians of the rounds with their range; ratios are within a round.
";

/// The columns of a page: title, the figure's name or how a ratio's begins, digits.
const COLUMNS: [(&str, &str, usize); 10] = [
    ("transactions/s", "tps", 0),
    ("/ source alone", "tps / source alone", 2),
    ("/ bare of same promise", "tps / bare", 2),
    ("/ unsynced replica", "tps / replica, unsynced", 2),
    ("p95 ms", "p95_ms", 2),
    ("source's wait µs", "source_wait_us", 0),
    ("transactions an ack", "transactions_an_acknowledgement", 1),
    ("receiver, cores", "receiver_cores", 2),
    ("cores / bare", "receiver_cores / bare", 2),
    ("resident MiB", "receiver_mib", 1),
];

/// The lines of a run, one a point, in the order of measuring. A point without a valid cell has no figures.
pub fn of(study: &dyn Study, run: &Run) -> Vec<Line> {
    let figures = Figures::of(run);
    let fact = |about: &str, name: &str| {
        run.facts
            .iter()
            .find(|fact| fact.about.starts_with(about) && fact.name == name)
            .map_or_else(|| "unknown".to_owned(), |fact| fact.value.clone())
    };
    let setting = |name: &str| run.order.settings.get(name).unwrap_or_default();
    let line = |point: &Point| Line {
        measured: utc(run.started, "%F"),
        commit: fact("binlogd", "commit"),
        source: format!("{} ({})", point.panel.server, fact("server", "version")),
        workload: match point.panel.condition {
            Condition::Plain => run.order.settings.get("workload").unwrap_or_else(|_| run.study.clone()),
            named => named.to_string(),
        },
        threads: point.threads,
        configuration: point.configuration.to_string(),
        rounds: setting("rounds") as u32,
        seconds: setting("seconds"),
        figures: figures_of(study, &figures, point),
    };
    figures.points().into_iter().map(line).collect()
}

fn figures_of(study: &dyn Study, figures: &Figures<'_>, point: &Point) -> BTreeMap<String, Vec<f64>> {
    // More digits than anyone reads would only make the lines long.
    let listed = |spread: Spread| {
        [spread.median, spread.range.0, spread.range.1].map(|figure| (figure * 1e4).round() / 1e4).to_vec()
    };
    let is_compared = |name: &str| study.headline().values.contains(&name) || name == "receiver_cores";
    let names = figures.cells(point).flat_map(|cell| cell.measured.values.keys());
    let mut all = BTreeMap::new();
    for name in names {
        if let Ok(spread) = figures.median(point, name) {
            all.insert(name.clone(), listed(spread));
        }
        for baseline in study.baselines(&point.configuration).into_iter().filter(|_| is_compared(name)) {
            let ratio = figures.ratio(point, &baseline, name).map(listed);
            let ratio = if baseline == point.configuration { ratio.map(|_| vec![1.0]) } else { ratio };
            all.extend(ratio.map(|ratio| (format!("{name} / {baseline}"), ratio)));
        }
    }
    all
}

/// As text, a line each.
///
/// # Errors
/// When a figure is none.
pub fn text(lines: &[Line]) -> anyhow::Result<String> {
    lines.iter().map(|line| Ok(serde_json::to_string(line)? + "\n")).collect()
}

/// From text.
///
/// # Errors
/// At a line that is none, which is named.
pub fn parse(text: &str) -> anyhow::Result<Vec<Line>> {
    let line = |(index, line)| serde_json::from_str(line).with_context(|| format!("line {}", index + 1));
    text.lines().enumerate().map(line).collect()
}

/// The page: a table for each source and workload.
pub fn page(lines: &[Line]) -> String {
    let mut page = HEAD.to_owned();
    for group in lines.chunk_by(|one, other| heading(one) == heading(other)) {
        let columns: Vec<_> =
            COLUMNS.iter().filter(|column| group.iter().any(|line| has(line, column.1))).collect();
        let heads: Vec<&str> =
            ["threads", "receiver"].into_iter().chain(columns.iter().map(|column| column.0)).collect();
        let mut table = Table::new(&heads);
        for line in group {
            let shown = |column: &&(&str, &str, usize)| {
                figure(line, column.1).map_or_else(String::new, |figure| shown(figure, column.2))
            };
            let cells = [line.threads.to_string(), line.configuration.clone()];
            table.row(cells.into_iter().chain(columns.iter().map(shown)).collect());
        }
        page.push_str(&format!("\n## {}\n\n{}", heading(&group[0]), table.text()));
    }
    page
}

fn heading(line: &Line) -> String {
    let Line { source, workload, rounds, seconds, measured, commit, .. } = line;
    format!("{source}: {workload}\n\n{measured}, commit {commit}; {rounds} rounds of {seconds} s a cell.")
}

fn figure<'a>(line: &'a Line, begins: &str) -> Option<&'a [f64]> {
    let begins_so = |name: &str| name == begins || (begins.contains(" / ") && name.starts_with(begins));
    line.figures.iter().find(|(name, _)| begins_so(name)).map(|(_, figure)| figure.as_slice())
}

fn has(line: &Line, begins: &str) -> bool {
    figure(line, begins).is_some()
}

fn shown(figure: &[f64], digits: usize) -> String {
    match figure {
        [median, low, high] => format!("{median:.digits$} ({low:.digits$}–{high:.digits$})"),
        _ => figure.iter().map(|number| format!("{number:.digits$}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;
    use crate::study::virtual_replica::VirtualReplica;

    #[test]
    fn a_run_makes_lines_and_lines_are_read_back() {
        let run = example::virtual_replica();
        let lines = of(&VirtualReplica, &run);
        assert_eq!(lines.len(), Figures::of(&run).points().len());
        assert!(parse(&text(&lines).unwrap()).unwrap() == lines);
        let compared = lines.iter().find(|line| line.configuration == "binlogd, fsync_mode 1").unwrap();
        let ratio = &compared.figures["qps / source alone"];
        assert!(ratio.len() == 3 && ratio[1] <= ratio[0] && ratio[0] <= ratio[2], "{ratio:?}");
        let error = format!("{:#}", parse("{}\n").unwrap_err());
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn a_page_has_each_point_of_its_lines() {
        let lines = of(&VirtualReplica, &example::virtual_replica());
        let page = page(&lines);
        assert_eq!(page.matches("\n## ").count(), 1);
        for line in &lines {
            let begins = [line.threads.to_string(), line.configuration.clone()];
            let is_its_row = |row: &str| {
                let mut cells = row.split('|').map(str::trim).skip(1);
                begins.iter().all(|begin| cells.next() == Some(begin))
            };
            let row = page.lines().find(|row| is_its_row(row));
            let tps = shown(&line.figures["tps"], 0);
            assert!(row.is_some_and(|row| row.contains(&tps)), "{begins:?} {tps}: {page}");
        }
    }
}
