//! Whether a report that was written is sound: every cell that was planned is there and counts, every chart and table is
//! in the files and shows something, its columns are named as they must be, and the numbers in it are those of the
//! database. The figures of the published study are looked at likewise.
//!
//! The files are read as anyone else would read them, and share no code with what wrote them.

mod markdown;
mod markup;
mod page;
mod spreadsheet;

use crate::engine;
use crate::model::Run;
use crate::progress::label;
use crate::reference;
use crate::report::outline::{Chart, Entry, Part, Table};
use crate::study::Study;
use anyhow::Context;
use std::collections::BTreeMap;
use std::path::Path;

/// What was looked at, and what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Cells that count.
    pub cells: usize,
    /// Charts that are as they must be.
    pub charts: usize,
    /// Tables that are as they must be.
    pub tables: usize,
    /// Numbers that were compared with the database.
    pub numbers: usize,
    /// What is wrong, a line each.
    pub problems: Vec<String>,
}

impl Findings {
    fn wrong(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }
}

/// Looks at the report in the folder `dir` of a run of `study`.
///
/// # Errors
/// When a file of the report cannot be read.
pub fn look(study: &dyn Study, run: &Run, dir: &Path) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    look_at_cells(study, run, &mut findings)?;
    let mut parts = study.outline(run);
    if !parts.iter().any(|part| matches!(part, Part::Chart(_) | Part::Table(_))) {
        findings.wrong("its report has neither a chart nor a table");
    }
    look_at_contents(&parts, Whose::Own, &mut findings);
    let published =
        reference::publication(&run.study).map_or_else(Vec::new, |publication| publication.figures);
    look_at_contents(&published, Whose::Published, &mut findings);
    parts.extend(published);
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    page::look(run, &parts, &read("index.html")?, &mut findings);
    markdown::look(study.title(), &parts, &read("report.md")?, &mut findings);
    let name = format!("run-{}-{}", run.id, run.study);
    spreadsheet::look(run, &read(&format!("{name}.csv"))?, &mut findings);
    if run.cells.iter().any(|cell| !cell.measured.series.is_empty()) {
        spreadsheet::look_at_series(run, &read(&format!("{name}-series.csv"))?, &mut findings);
    }
    Ok(findings)
}

/// Every cell of the plan is there once, and counts; those of a scene that was skipped are not there.
fn look_at_cells(study: &dyn Study, run: &Run, findings: &mut Findings) -> anyhow::Result<()> {
    if run.finished.is_none() {
        findings.wrong("it is not finished");
    }
    let plan = engine::planned(study, &run.order)?;
    let mut cells: BTreeMap<_, _> = run.cells.iter().map(|cell| (&cell.key, cell)).collect();
    for scene in &plan.scenes {
        let is_skipped = run.skipped.iter().any(|skipped| skipped.starts_with(&format!("{}: ", scene.name)));
        for key in &scene.cells {
            match cells.remove(key) {
                None if is_skipped => {}
                None => findings.wrong(format!("not measured: {}", label(key))),
                Some(cell) => match &cell.measured.invalid {
                    Some(reason) => findings.wrong(format!("invalid: {}: {reason}", label(key))),
                    None => findings.cells += 1,
                },
            }
        }
    }
    cells.keys().for_each(|key| findings.wrong(format!("measured, but not planned: {}", label(key))));
    if run.cells.is_empty() {
        findings.wrong("nothing was measured");
    }
    Ok(())
}

/// Who measured what a part shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The run; published lines are drawn beside its own and do not count.
    Own,
    /// The published study.
    Published,
}

/// Every chart has a point and every table a number. Single ones may be missing with a reason; but where all are, a load
/// may have stopped giving the value.
fn look_at_contents(parts: &[Part], whose: Whose, findings: &mut Findings) {
    for part in parts {
        match part {
            Part::Chart(chart) if !has_point(chart, whose) => {
                findings.wrong(format!("the chart {:?} has no point", chart.title));
            }
            Part::Table(table) if !has_number(table) => {
                findings.wrong(format!("the table {:?} has no number", table.title));
            }
            _ => {}
        }
    }
}

fn has_point(chart: &Chart, whose: Whose) -> bool {
    let counts = |published: bool| !published || whose == Whose::Published;
    chart.lines.iter().any(|line| counts(line.published) && !line.points.is_empty())
}

fn has_number(table: &Table) -> bool {
    table.rows.iter().flatten().any(|entry| matches!(entry, Entry::Number(..) | Entry::Median { .. }))
}

/// Whether `shown` and `range`, such as `0.91` and `0.90–0.93`, are a median with its lowest and highest round, rounded.
/// The range may be left out only where it is shown as the median is.
fn is_median(shown: &str, range: Option<&str>, median: f64, (low, high): (f64, f64)) -> bool {
    let (shown_low, shown_high) = match range {
        // The minus is another character than the dash.
        Some(range) => match range.split_once('–') {
            Some(ends) => ends,
            None => return false,
        },
        None => (shown, shown),
    };
    is_rounded(shown, median) && is_rounded(shown_low, low) && is_rounded(shown_high, high)
}

/// Whether `shown` is `exact` rounded to the digits that `shown` has.
fn is_rounded(shown: &str, exact: f64) -> bool {
    // Groups of digits are held together by narrow spaces, and the minus is a real one.
    let plain: String =
        shown.chars().filter(|c| !c.is_whitespace()).map(|c| if c == '−' { '-' } else { c }).collect();
    let digits = plain.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let half = 0.5 * 10_f64.powi(-(digits as i32));
    plain.parse::<f64>().is_ok_and(|value| (value - exact).abs() <= half * (1.0 + 1e-9) + exact.abs() * 1e-12)
}

#[cfg(test)]
mod tests;
