use super::*;
use crate::model::{Cell, Measured};
use crate::report::{self, example};
use crate::study;
use std::path::PathBuf;
use tempfile::TempDir;

/// What the study's cells have, and about how large that is.
const VALUES: [(&str, f64); 6] = [
    ("qps", 123_456.0),
    ("tps", 6172.0),
    ("p95_ms", 8.5),
    ("source_wait_us", 700.0),
    ("receiver_cores", 0.04),
    ("receiver_mib", 6.5),
];

/// A written report of a run of test data.
struct Written {
    dir: TempDir,
    run: Run,
}

impl Written {
    fn new() -> Written {
        let (dir, mut run) = (tempfile::tempdir().unwrap(), example::virtual_replica());
        let study = study::named(&run.study).unwrap();
        run.order.settings = study.settings(run.order.profile);
        let planned = study.plan(&run.order).unwrap().scenes.into_iter().flat_map(|scene| scene.cells);
        let cell = |(index, key)| {
            let mut measured = Measured::default();
            for (name, size) in VALUES {
                measured.put(name, size * (1.0 + 0.1 * (index as f64).sin()));
            }
            measured.series.insert("tps".to_owned(), vec![0.5, index as f64 / 3.0]);
            Cell { key, started: 1_800_000_000, took: 5.25, measured }
        };
        run.cells = planned.enumerate().map(cell).collect();
        report::write(std::slice::from_ref(&run), dir.path()).unwrap();
        Written { dir, run }
    }

    fn findings(&self) -> Findings {
        look(study::named(&self.run.study).unwrap(), &self.run, self.dir.path()).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Changes a file, and gives what is found wrong then.
    fn damaged(&self, name: &str, change: impl Fn(&str) -> String) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        let changed = change(&text);
        assert_ne!(text, changed, "the test changes nothing");
        std::fs::write(self.path(name), changed).unwrap();
        let problems = self.findings().problems;
        std::fs::write(self.path(name), text).unwrap();
        problems
    }
}

#[test]
fn a_report_as_it_was_written_is_sound() {
    let written = Written::new();
    let findings = written.findings();
    assert_eq!(findings.problems, [""; 0]);
    let parts = study::named(&written.run.study).unwrap().outline(&written.run);
    let charts = parts.iter().filter(|part| matches!(part, Part::Chart(_))).count();
    let tables = parts.iter().filter(|part| matches!(part, Part::Table(_))).count();
    assert_eq!((findings.charts, findings.tables), (charts, tables));
    assert!(charts > 0 && tables > 0 && findings.numbers > written.run.cells.len(), "{findings:?}");
}

/// The first number that stands behind `mark`, with another first digit. Another last one could be the same number.
fn with_another_number(text: &str, mark: &str) -> String {
    let start = text.find(mark).unwrap_or_else(|| panic!("no {mark}")) + mark.len();
    let start = start + text[start..].find(|c: char| c.is_ascii_digit()).unwrap();
    let (before, first, after) = (&text[..start], &text[start..=start], &text[start + 1..]);
    format!("{before}{}{after}", if first == "7" { "3" } else { "7" })
}

#[test]
fn one_wrong_number_anywhere_is_found() {
    let written = Written::new();
    for mark in ["data-y=\"", "data-value=\"", "data-low=\"", "data-x=\""] {
        let problems = written.damaged("index.html", |html| with_another_number(html, mark));
        assert!(problems.len() == 1 && problems[0].starts_with("index.html, "), "{mark}: {problems:?}");
    }
    for file in [".csv", "-series.csv"] {
        let csv = format!("run-{}-{}{file}", written.run.id, written.run.study);
        let problems = written.damaged(&csv, |text| {
            let line = text.lines().nth(1).unwrap();
            let (before, last) = line.rsplit_once(',').unwrap();
            text.replacen(line, &format!("{before},{last}1"), 1)
        });
        assert!(problems.len() == 1 && problems[0].starts_with("the CSV file"), "{problems:?}");
    }
    let problems = written.damaged("report.md", |text| {
        let start = text.find(", figures\n").unwrap();
        // Below the head and the rule.
        let row = text[start..].match_indices("\n| ").nth(2).unwrap().0;
        format!("{}{}", &text[..start + row], with_another_number(&text[start + row..], "\n| "))
    });
    assert!(problems.len() == 1 && problems[0].starts_with("report.md, "), "{problems:?}");
}

#[test]
fn a_chart_or_a_table_that_is_missing_is_found() {
    let written = Written::new();
    let problems =
        written.damaged("index.html", |html| html.replacen("<figure ", "<figure data-lost=\"\" data-", 1));
    assert!(problems.len() == 1 && problems[0].contains("0 times the figure"), "{problems:?}");
    let problems =
        written.damaged("index.html", |html| html.replace("<table data-study", "<table data-studies"));
    assert!(problems.iter().all(|problem| problem.contains("0 times the table")) && !problems.is_empty());
    let problems = written.damaged("report.md", |text| text.replacen("#### Chart: ", "#### ", 1));
    assert!(problems.len() == 1 && problems[0].contains("report.md has no"), "{problems:?}");
    std::fs::remove_file(written.path("report.md")).unwrap();
    let study = study::named(&written.run.study).unwrap();
    assert!(look(study, &written.run, written.dir.path()).unwrap_err().to_string().contains("report.md"));
}

#[test]
fn a_cell_that_does_not_count_and_a_run_that_did_not_end_are_found() {
    let mut written = Written::new();
    written.run.cells[0].measured.refuse("semi-sync fell back");
    written.run.finished = None;
    report::write(std::slice::from_ref(&written.run), written.dir.path()).unwrap();
    let study = study::named(&written.run.study).unwrap();
    let problems = look(study, &written.run, written.dir.path()).unwrap().problems;
    assert!(problems.contains(&"it is not finished".to_owned()), "{problems:?}");
    let invalid =
        |problem: &&String| problem.starts_with("invalid: ") && problem.ends_with("semi-sync fell back");
    assert_eq!((problems.len(), problems.iter().filter(invalid).count()), (2, 1), "{problems:?}");
    let mut run = written.run.clone();
    run.cells.clear();
    report::write(std::slice::from_ref(&run), written.dir.path()).unwrap();
    let problems = look(study, &run, written.dir.path()).unwrap().problems;
    assert!(problems.contains(&"nothing was measured".to_owned()), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.starts_with("not measured: ")), "{problems:?}");
}

#[test]
fn a_shown_number_is_the_exact_one_rounded() {
    assert!(
        is_rounded("119\u{202f}451.2", 119_451.25) && is_rounded("−1.5", -1.46) && is_rounded("12", 12.0)
    );
    assert!(!is_rounded("119\u{202f}451.2", 119_451.31) && !is_rounded("—", 0.0) && !is_rounded("1.5", -1.5));
}
