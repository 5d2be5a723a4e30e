//! What a written report shows is what the run came to.

mod written;
use binlogd_lab::check;
use binlogd_lab::model::{Fact, Measured, Order, Profile};
use binlogd_lab::outline::{Entry, Part};
use binlogd_lab::reference;
use binlogd_lab::report;
use binlogd_lab::results::run::{Cell, Run, Skipped};
use binlogd_lab::study::{Study, catalogue};
use std::path::PathBuf;
use tempfile::TempDir;
use written::{Findings, compare};

/// What the cells of the studies have, and about how large that is.
const VALUES: [(&str, f64); 55] = [
    ("qps", 123_456.0),
    ("tps", 6172.0),
    ("transactions", 24_000.0),
    ("p50_ms", 3.5),
    ("p95_ms", 8.5),
    ("p99_ms", 12.5),
    ("p99_9_ms", 30.5),
    ("longest_ms", 44.5),
    ("source_wait_us", 700.0),
    ("receiver_cores", 0.04),
    ("receiver_mib", 6.5),
    ("tpmc", 25_000.0),
    ("new_order_count", 2000.0),
    ("new_order_p50_ms", 8.5),
    ("new_order_p95_ms", 20.5),
    ("new_order_p99_ms", 35.5),
    ("new_order_p99_9_ms", 60.5),
    ("new_order_longest_ms", 80.5),
    ("first_behind_bytes", 2e6),
    ("second_behind_bytes", 3e6),
    ("level_after_s", 1.5),
    ("began_anew", 0.0),
    ("rotations", 3.0),
    ("rotation_bytes", 1e6),
    ("rotation_period_s", 1.25),
    ("stall_lowest", 0.2),
    ("between_lowest", 0.3),
    ("stall_seconds", 0.1),
    ("between_seconds", 0.05),
    ("stall_seconds_max", 0.4),
    ("stall_lowest_worst", 0.1),
    ("stall_seconds_worst", 0.5),
    ("between_seconds_worst", 0.1),
    ("between_lowest_worst", 0.2),
    ("stall_longest_ms", 440.5),
    ("stall_longest_ms_worst", 470.5),
    ("between_longest_ms", 20.5),
    ("between_longest_ms_worst", 110.5),
    ("slow_share", 0.025),
    ("log_mb_s", 58.5),
    ("large_tps", 280.0),
    ("small_count", 90_000.0),
    ("small_p50_ms", 0.5),
    ("small_p95_ms", 2.5),
    ("small_p99_ms", 8.5),
    ("small_p99_9_ms", 30.5),
    ("small_longest_ms", 470.5),
    ("binlog_bytes", 3.5e9),
    ("select", 9000.0),
    ("update", 1800.0),
    ("source_cores", 1.5),
    ("source_us_a_transaction", 2000.0),
    ("binlog_bytes_a_transaction", 1500.0),
    ("network_bytes_a_transaction", 1550.0),
    ("binlogd_bytes_a_transaction", 1500.0),
];

/// A written report of a run of test data.
struct Written {
    dir: TempDir,
    run: Run,
}

impl Written {
    fn new() -> Written {
        Written::of(catalogue::named("virtual-replica").unwrap())
    }

    /// Of this study in three rounds, with text that HTML, Markdown and CSV must not take for their own.
    fn of(study: &dyn Study) -> Written {
        let order = Order::new(Profile::Quick, study.settings(Profile::Quick));
        let planned = study.plan(&order).unwrap().scenes.into_iter().flat_map(|scene| scene.cells);
        let cell = |(index, key)| {
            let mut measured = Measured::default();
            for (name, size) in VALUES {
                measured.put(name, size * (1.0 + 0.1 * (index as f64).sin()));
            }
            for (name, series) in [
                ("tps", [0.5, index as f64 / 3.0]),
                ("sample_ended_s", [0.1, 0.2]),
                ("rotation_s", [0.12, 0.19]),
                ("longest_ms", [440.5, 0.5]),
            ] {
                measured.series.insert(name.to_owned(), series.to_vec());
            }
            Cell { key, started: 1_800_000_000, took: 5.25, measured }
        };
        let cells = planned.enumerate().map(cell).collect();
        let fact = Fact::new("machine", "processor", "a <b>|\"c\", & 'd'");
        let run = Run {
            id: 7,
            study: study.name().to_owned(),
            order,
            command: "binlogd-lab run --set \"a=<b>\"".to_owned(),
            started: 1_800_000_000,
            finished: Some(1_800_000_754),
            facts: vec![fact],
            cells,
            skipped: vec![Skipped::new("xfs", "mkfs.xfs is not installed <here>")],
        };
        let written = Written { dir: tempfile::tempdir().unwrap(), run };
        written.write();
        written
    }

    fn write(&self) {
        report::write(std::slice::from_ref(&self.run), self.dir.path()).unwrap();
    }

    fn findings(&self) -> Findings {
        compare(&self.run, self.dir.path())
    }

    /// What is wrong with the cells.
    fn of_cells(&self) -> Vec<String> {
        check::look(catalogue::named(&self.run.study).unwrap(), &self.run).unwrap().problems
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
fn a_report_of_each_study_shows_what_the_run_came_to() {
    for study in catalogue::all() {
        let mut written = Written::of(*study);
        // One without a figure, and one that does not count, for a reason that is text of others.
        written.run.cells[0].measured.values.clear();
        written.run.cells[1].measured.refuse("fell, \"back\" <to> *a|b*\n& more");
        written.write();
        let findings = written.findings();
        assert_eq!(findings.problems, [""; 0], "{}", study.name());
        let mut parts = study.outline(&written.run);
        parts.extend(reference::publication(study.name()).unwrap().figures);
        let charts = parts.iter().filter(|part| matches!(part, Part::Chart(_))).count();
        let tables = parts.iter().filter(|part| matches!(part, Part::Table(_))).count();
        assert_eq!((findings.charts, findings.tables), (charts, tables));
        assert!(charts > 0 && tables > 0 && findings.numbers > written.run.cells.len(), "{findings:?}");
    }
}

/// The first number that stands behind `mark`, with another first digit. Another last one could be the same number.
fn with_another_number(text: &str, mark: &str) -> String {
    let start = text.find(mark).unwrap_or_else(|| panic!("no {mark}")) + mark.len();
    let start = start + text[start..].find(|c: char| c.is_ascii_digit()).unwrap();
    let (before, first, after) = (&text[..start], &text[start..=start], &text[start + 1..]);
    format!("{before}{}{after}", if first == "7" { "3" } else { "7" })
}

#[test]
fn a_run_of_each_study_comes_back_from_its_report_as_it_was() {
    for study in catalogue::all() {
        let mut written = Written::of(*study);
        written.run.cells[0].measured.values.clear();
        written.run.cells[1].measured.refuse("a \"b\", or <c>\nd");
        written.write();
        let read = report::read_back::runs(written.dir.path()).unwrap();
        assert!(read == [written.run], "{}", study.name());
    }
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
fn a_value_that_no_cell_has_is_found() {
    let mut written = Written::new();
    for cell in &mut written.run.cells {
        cell.measured.values.remove("qps");
    }
    assert_eq!(
        written.of_cells(),
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
    assert_eq!(written.of_cells(), [""; 0]);
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
        for part in reference::publication(study.name()).unwrap().figures {
            let is_number = |entry: &Entry| matches!(entry, Entry::Number(..) | Entry::Median { .. });
            assert!(
                match &part {
                    Part::Chart(chart) => chart.lines.iter().any(|line| !line.points.is_empty()),
                    Part::Table(table) => table.rows.iter().flatten().any(is_number),
                    Part::Heading(_) | Part::Text(_) => true,
                },
                "{}: {part:?}",
                study.name()
            );
        }
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
}

#[test]
fn a_cell_that_does_not_count_and_a_run_that_did_not_end_are_found() {
    let mut written = Written::new();
    written.run.cells[0].measured.refuse("semi-sync fell back");
    written.run.finished = None;
    let problems = written.of_cells();
    assert!(problems.contains(&"it is not finished".to_owned()), "{problems:?}");
    let invalid =
        |problem: &&String| problem.starts_with("invalid: ") && problem.ends_with("semi-sync fell back");
    assert_eq!((problems.len(), problems.iter().filter(invalid).count()), (2, 1), "{problems:?}");
    written.run.cells.clear();
    let problems = written.of_cells();
    assert!(problems.contains(&"nothing was measured".to_owned()), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.starts_with("not measured: ")), "{problems:?}");
}
