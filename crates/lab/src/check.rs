//! Whether a report that was written is sound: every cell that was planned is there and counts, every chart and table is
//! in the files, and the numbers in them are those of the database.
//!
//! The files are read as anyone else would read them, and share no code with what wrote them.

mod markdown;
mod markup;
mod page;
mod spreadsheet;

use crate::engine;
use crate::model::Run;
use crate::progress::label;
use crate::report::outline::Part;
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
    let parts = study.outline(run);
    if !parts.iter().any(|part| matches!(part, Part::Chart(_) | Part::Table(_))) {
        findings.wrong("its report has neither a chart nor a table");
    }
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
