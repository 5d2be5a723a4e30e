//! Whether the cells of a run are sound: every cell that was planned is there and counts, and every chart and table of
//! the report has something to show. That the files of a report show what the run has, the tests see to.

use crate::engine;
use crate::outline::{Chart, Entry, Part, Table};
use crate::progress::label;
use crate::results::run::Run;
use crate::study::Study;
use std::collections::BTreeMap;

/// What was looked at, and what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Cells that count.
    pub cells: usize,
    /// Charts that have a point.
    pub charts: usize,
    /// Tables that have a number.
    pub tables: usize,
    /// What is wrong, a line each.
    pub problems: Vec<String>,
}

impl Findings {
    fn wrong(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }
}

/// Looks at a run of `study`.
///
/// # Errors
/// When what the run was asked for makes no plan.
pub fn look(study: &dyn Study, run: &Run) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    look_at_cells(study, run, &mut findings)?;
    look_at_contents(&study.outline(run), &mut findings);
    if findings.charts + findings.tables == 0 {
        findings.wrong("its report has neither a chart nor a table");
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
        let is_skipped = run.skipped.iter().any(|skipped| skipped.scene == scene.name);
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

/// Every chart has a point of the run's own and every table a number. Single ones may be missing with a reason; but where
/// all are, a load may have stopped giving the value.
fn look_at_contents(parts: &[Part], findings: &mut Findings) {
    for part in parts {
        match part {
            Part::Chart(chart) if has_point(chart) => findings.charts += 1,
            Part::Chart(chart) => findings.wrong(format!("the chart {:?} has no point", chart.title)),
            Part::Table(table) if has_number(table) => findings.tables += 1,
            Part::Table(table) => findings.wrong(format!("the table {:?} has no number", table.title)),
            Part::Heading(_) | Part::Text(_) => {}
        }
    }
}

fn has_point(chart: &Chart) -> bool {
    chart.lines.iter().any(|line| !line.published && !line.points.is_empty())
}

fn has_number(table: &Table) -> bool {
    table.rows.iter().flatten().any(|entry| matches!(entry, Entry::Number(..) | Entry::Median { .. }))
}
