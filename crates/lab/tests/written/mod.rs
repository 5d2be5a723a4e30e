//! The comparison of a written report with the run that it is of: every chart and table is in the files, with its columns
//! and its numbers. The files are read by parsers that know nothing of what wrote them.

mod html;
mod markdown;
mod page;
mod spreadsheet;

use binlogd_lab::reference;
use binlogd_lab::results::run::Run;
use binlogd_lab::study::catalogue;
use std::path::Path;

/// What was compared, and what is wrong.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Charts that are as they must be.
    pub(crate) charts: usize,
    /// Tables that are as they must be.
    pub(crate) tables: usize,
    /// Numbers that were compared.
    pub(crate) numbers: usize,
    /// What is wrong, a line each.
    pub(crate) problems: Vec<String>,
}

impl Findings {
    fn wrong(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }
}

/// Compares the report in the folder `dir` with the run; the figures of the published study too.
pub(crate) fn compare(run: &Run, dir: &Path) -> Findings {
    let mut findings = Findings::default();
    let study = catalogue::named(&run.study).expect("a study");
    let mut parts = study.outline(run);
    parts.extend(reference::publication(&run.study).map_or_else(Vec::new, |publication| publication.figures));
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    page::look(run, &parts, &read("index.html"), &mut findings);
    markdown::look(study.title(), &parts, &read("report.md"), &mut findings);
    let name = format!("run-{}-{}", run.id, run.study);
    spreadsheet::look(run, &read(&format!("{name}.csv")), &mut findings);
    if run.cells.iter().any(|cell| !cell.measured.series.is_empty()) {
        spreadsheet::look_at_series(run, &read(&format!("{name}-series.csv")), &mut findings);
    }
    findings
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

#[test]
fn a_shown_number_is_the_exact_one_rounded() {
    assert!(
        is_rounded("119\u{202f}451.2", 119_451.25) && is_rounded("−1.5", -1.46) && is_rounded("12", 12.0)
    );
    assert!(!is_rounded("119\u{202f}451.2", 119_451.31) && !is_rounded("—", 0.0) && !is_rounded("1.5", -1.5));
    assert!(
        is_median("−1.5", Some("−1.6–−1.4"), -1.5, (-1.6, -1.4))
            && is_median("2.0", None, 2.01, (1.98, 2.04))
    );
    assert!(!is_median("2.0", None, 2.0, (1.9, 2.0)) && !is_median("2.0", Some("1.9"), 2.0, (1.9, 2.0)));
}
