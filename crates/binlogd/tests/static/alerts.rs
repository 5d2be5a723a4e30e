//! Alerts, dashboard and runbook against each other, and against the metrics that the product has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::docs::page::Page;
use super::rules::{RULES, metrics_in, rules};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn runbook() -> Page {
    Page::parse(&read("docs/runbook.md"))
}

/// Sections of the runbook that belong to no alert: what happened, from the first command to the last, and where to look.
const NIGHTS: [&str; 5] = [
    "The source is lost",
    "Somebody deleted or dropped something",
    "The machine of binlogd is lost",
    "Commits hang",
    "The first look",
];

/// The page that names every metric, and of which all others speak.
const METRICS: &str = "docs/reference/metrics.md";

/// Names of the metrics in the tables of that page.
fn documented() -> BTreeSet<String> {
    let page = read(METRICS);
    let rows = page.lines().filter(|line| line.starts_with("| `binlogd_"));
    rows.flat_map(|row| metrics_in(row.split('|').nth(1).unwrap())).collect()
}

/// What the code of the metrics calls them: without their units and what their kinds add.
fn in_code() -> BTreeSet<String> {
    let mut files = Vec::new();
    super::imports::rust_files(&root().join("crates/admin/src"), &mut files);
    let mut names = BTreeSet::new();
    for file in files {
        let code = std::fs::read_to_string(file).unwrap();
        let code = code.split("\n#[cfg(test)]\n").next().unwrap();
        let texts = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .flat_map(|line| line.split('"').skip(1).step_by(2));
        names.extend(texts.filter(|text| metrics_in(text).contains(*text)).map(str::to_owned));
    }
    names
}

/// The name in the code of a series' name.
fn stem<'a>(series: &'a str, code: &BTreeSet<String>) -> Option<&'a str> {
    let series = series.strip_suffix("_total").or_else(|| series.strip_suffix("_info")).unwrap_or(series);
    let without_unit = ["_bytes", "_seconds", "_hours"].iter().find_map(|unit| series.strip_suffix(unit));
    [Some(series), without_unit].into_iter().flatten().find(|name| code.contains(*name))
}

/// The series of a histogram have the name of its family in the reference.
fn family(series: &str) -> &str {
    let families = ["_bucket", "_sum", "_count"].iter().find_map(|part| series.strip_suffix(part));
    families.unwrap_or(series)
}

#[test]
fn the_metrics_that_are_documented_are_those_of_the_code() {
    let (code, documented) = (in_code(), documented());
    let unknown: Vec<_> = documented.iter().filter(|name| stem(name, &code).is_none()).collect();
    assert!(unknown.is_empty(), "{METRICS} names {unknown:?}, which no code writes");
    let stems: BTreeSet<&str> = documented.iter().filter_map(|name| stem(name, &code)).collect();
    let silent: Vec<_> = code.iter().filter(|name| !stems.contains(name.as_str())).collect();
    assert!(silent.is_empty(), "{METRICS} does not name {silent:?}");
    assert!(documented.len() > 60, "only {} metrics were found", documented.len());
}

#[test]
fn every_alert_has_what_a_person_needs() {
    let (page, documented) = (runbook(), documented());
    let mut names = BTreeSet::new();
    for rule in rules(&root()) {
        let name = &rule.name;
        assert!(names.insert(name.clone()), "{name} stands twice in {RULES}");
        assert!(
            ["page", "warning"].contains(&rule.severity.as_str()),
            "{name}: severity {:?}",
            rule.severity
        );
        assert!(rule.summary.ends_with('.') && rule.summary.contains("$labels."), "{name}: {}", rule.summary);
        let anchor = rule
            .runbook
            .strip_prefix("docs/runbook.md#")
            .unwrap_or_else(|| panic!("{name}: {}", rule.runbook));
        assert!(page.anchors.contains(anchor), "{name}: the runbook has no section {anchor}");
        let metrics = metrics_in(&rule.expr);
        let unknown: Vec<_> = metrics.iter().filter(|metric| !documented.contains(family(metric))).collect();
        assert!(unknown.is_empty(), "{name} asks for {unknown:?}, which are not in {METRICS}");
        assert!(!metrics.is_empty() || rule.expr.contains("up{job="), "{name} asks for nothing of binlogd");
    }
    assert!(names.len() >= 30, "only {} alerts were found", names.len());
}

/// What fires in a scene, and what an operator does there.
#[test]
fn every_alert_and_every_section_of_the_runbook_is_played() {
    let mut files = Vec::new();
    super::imports::rust_files(&root().join("crates/binlogd/tests/servers_admin/alerts"), &mut files);
    let scenes: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let named = |text: &str| scenes.contains(&format!("\"{text}\""));
    let alerts: Vec<String> =
        rules(&root()).into_iter().map(|rule| rule.name).filter(|name| !named(name)).collect();
    assert!(alerts.is_empty(), "no scene lets fire {alerts:?}");
    let headings = runbook().headings;
    assert_eq!(headings[1..=NIGHTS.len()], NIGHTS, "the runbook begins with them");
    let sections: Vec<&String> =
        headings[1 + NIGHTS.len()..].iter().filter(|section| !named(section)).collect();
    assert!(sections.is_empty(), "no scene does what the runbook says under {sections:?}");
}

/// A reader in the night looks for the same words in each section.
#[test]
fn every_section_of_the_runbook_has_its_parts() {
    let text = read("docs/runbook.md");
    for section in text.split("\n## ").skip(1 + NIGHTS.len()) {
        let heading = section.lines().next().unwrap();
        for part in ["**What it means.**", "**How sure.**", "**First.**", "**Never.**", "```sh\n"] {
            assert!(section.contains(part), "{heading}: no {part}");
        }
    }
    let table = read("docs/status.md");
    let states = table.split_once("| state | meaning |").unwrap().1.split("\n\n").next().unwrap();
    let states = states
        .lines()
        .skip(2)
        .flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2));
    let look = text.split("\n## The first look\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let missing: Vec<_> = states.filter(|state| !look.contains(&format!("`{state}`"))).collect();
    assert!(missing.is_empty(), "the runbook sends nobody to a section for {missing:?}");
}

#[test]
fn the_dashboard_asks_for_metrics_that_are_there() {
    let dashboard: serde_json::Value = serde_json::from_str(&read("packaging/grafana/binlogd.json")).unwrap();
    let documented = documented();
    let mut titles = Vec::new();
    let mut asked = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap().to_owned();
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expr = target["expr"].as_str().unwrap();
            let metrics = metrics_in(expr);
            let unknown: Vec<_> =
                metrics.iter().filter(|metric| !documented.contains(family(metric))).collect();
            assert!(!metrics.is_empty() && unknown.is_empty(), "{title}: {expr} asks for {unknown:?}");
            assert!(expr.contains("$instance"), "{title}: {expr} is not of the binlogd that is chosen");
            asked.extend(metrics);
        }
        match panel["type"].as_str().unwrap() {
            "row" => titles.push(title),
            _ => {
                assert!(panel["targets"].as_array().is_some_and(|it| !it.is_empty()), "{title} shows nothing")
            }
        }
    }
    let rows = ["Safety at a glance", "Sources", "Latency", "Disk", "Archive", "Readers and slots", "Forks"];
    assert_eq!(titles, rows);
    assert!(asked.len() >= 25, "{asked:?}");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables: Vec<_> = variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
    assert_eq!(variables, ["datasource", "instance", "source"]);
}
