use super::*;
use crate::model::{Cell, Measured};
use crate::report::outline::{Dot, Line, Scale};
use crate::report::{self, example};
use crate::study::catalogue;
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
        let study = catalogue::named(&run.study).unwrap();
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
        look(catalogue::named(&self.run.study).unwrap(), &self.run, self.dir.path()).unwrap()
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
    let mut parts = catalogue::named(&written.run.study).unwrap().outline(&written.run);
    parts.extend(reference::publication(&written.run.study).unwrap().figures);
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
    for mark in ["data-y=\"", "data-value=\"", "data-low=\"", "data-x=\"", "<span class=\"range\">"] {
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
fn a_wrong_range_or_none_is_found() {
    let written = Written::new();
    let without = |html: &str| html.replacen("<span class=\"range\">", "<span>", 1);
    let highest = |html: &str| {
        let start = html.find("<span class=\"range\">").unwrap();
        format!("{}{}", &html[..start], with_another_number(&html[start..], "–"))
    };
    for problems in [written.damaged("index.html", without), written.damaged("index.html", highest)] {
        assert!(problems.len() == 1 && problems[0].contains("Median"), "{problems:?}");
    }
    // In the text it stands behind the median: `119451 (118003–120012)`.
    for mark in [" (", "–"] {
        let problems = written.damaged("report.md", |text| {
            let start = text.find(", figures\n").unwrap();
            format!("{}{}", &text[..start], with_another_number(&text[start..], mark))
        });
        assert!(problems.len() == 1 && problems[0].contains("Median"), "{mark}: {problems:?}");
    }
    assert!(
        is_median("−1.5", Some("−1.6–−1.4"), -1.5, (-1.6, -1.4))
            && is_median("2.0", None, 2.01, (1.98, 2.04))
    );
    assert!(!is_median("2.0", None, 2.0, (1.9, 2.0)) && !is_median("2.0", Some("1.9"), 2.0, (1.9, 2.0)));
}

#[test]
fn a_column_under_another_name_is_found() {
    let written = Written::new();
    let heads = [
        ("index.html", ">8 threads</th>", ">9 threads</th>"),
        ("report.md", "| 8 threads |", "| 9 threads |"),
        ("report.md", "| threads | source alone |", "| threads | replica alone |"),
    ];
    for (file, head, other) in heads {
        let problems = written.damaged(file, |text| text.replacen(head, other, 1));
        assert!(problems.len() == 1 && problems[0].contains("column"), "{file}, {head}: {problems:?}");
    }
}

#[test]
fn one_wrong_number_of_a_chart_is_found_in_the_text() {
    let written = Written::new();
    let problems = written.damaged("report.md", |text| {
        let start = text.find("#### Chart: ").unwrap();
        // Below the head and the rule, at the first number of threads.
        let row = start + text[start..].find("\n| 2 | ").unwrap();
        format!("{}{}", &text[..row], with_another_number(&text[row..], "\n| 2 | "))
    });
    assert!(problems.len() == 1 && problems[0].contains("#### Chart: "), "{problems:?}");
}

#[test]
fn a_chart_of_many_points_is_told_by_its_ranges() {
    let points = (0..50).map(|x| Dot { x: f64::from(x), y: f64::from(x) + 0.5, spread: None }).collect();
    let line = |name: &str, points| Line { name: name.to_owned(), published: false, points };
    let chart = Chart {
        title: "Throughput over time".to_owned(),
        x_label: "s".to_owned(),
        y_label: "transactions/s".to_owned(),
        x_scale: Scale::Linear,
        lines: vec![line("a|b", points), line("c", Vec::new())],
    };
    let look = |text: &str| {
        let mut findings = Findings::default();
        markdown::look("Title", &[Part::Chart(chart.clone())], text, &mut findings);
        findings.problems.len()
    };
    let text = "## Title\n\n#### Chart: Throughput over time\n\n| line | points | lowest | highest |\n\
                | --- | --: | --: | --: |\n| a\\|b | 50 | 0.50 | 49.50 |\n| c | 0 | — | — |\n";
    assert_eq!(look(text), 0);
    for (right, wrong) in
        [("49.50", "49.60"), ("0.50", "0.40"), ("| 50", "| 49"), ("| c", "| d"), ("—", "0.1")]
    {
        assert_eq!(look(&text.replacen(right, wrong, 1)), 1, "{right}");
    }
}

#[test]
fn a_value_that_no_cell_has_is_found() {
    let mut written = Written::new();
    for cell in &mut written.run.cells {
        cell.measured.values.remove("qps");
    }
    report::write(std::slice::from_ref(&written.run), written.dir.path()).unwrap();
    assert_eq!(
        written.findings().problems,
        [
            "the chart \"Queries a second\" has no point",
            "the table \"Queries a second, figures\" has no number",
            // Its published lines have points, and its published rows numbers.
            "the chart \"Queries a second, ratio to source alone\" has no point",
        ]
    );
    // One that some cells have is as it should be.
    let mut written = Written::new();
    written.run.cells[0].measured.values.remove("qps");
    report::write(std::slice::from_ref(&written.run), written.dir.path()).unwrap();
    assert_eq!(written.findings().problems, [""; 0]);
}

#[test]
fn the_figures_of_the_published_study_are_looked_at() {
    let written = Written::new();
    let problems = written
        .damaged("index.html", |html| html.replacen("data-title=\"Published: ", "data-title=\"Printed: ", 1));
    assert!(problems.len() == 1 && problems[0].contains("0 times the figure \"Published: "), "{problems:?}");
    let problems =
        written.damaged("report.md", |text| text.replacen("| 152543 | 7626 |", "| 152544 | 7626 |", 1));
    assert!(problems.len() == 1 && problems[0].contains("#### Published: "), "{problems:?}");
    for study in catalogue::all() {
        let mut findings = Findings::default();
        let publication = reference::publication(study.name()).unwrap();
        look_at_contents(&publication.figures, Whose::Published, &mut findings);
        assert_eq!(findings.problems, [""; 0], "{}", study.name());
    }
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
    let study = catalogue::named(&written.run.study).unwrap();
    assert!(look(study, &written.run, written.dir.path()).unwrap_err().to_string().contains("report.md"));
}

#[test]
fn a_cell_that_does_not_count_and_a_run_that_did_not_end_are_found() {
    let mut written = Written::new();
    written.run.cells[0].measured.refuse("semi-sync fell back");
    written.run.finished = None;
    report::write(std::slice::from_ref(&written.run), written.dir.path()).unwrap();
    let study = catalogue::named(&written.run.study).unwrap();
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
