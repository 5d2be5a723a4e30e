//! Two runs of a study against each other.

use crate::apart;
use crate::model::Fact;
use crate::point::{Configuration, Panel};
use crate::results::run::Run;
use crate::results::statistics::{Figures, Missing, Spread};
use crate::study::{Headline, catalogue};
use anyhow::bail;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Two runs of the same study as Markdown: what the study compares, relative to the baseline of each run, in both, and
/// how much it changed; and what differs of what they were measured on. Absolute figures are not compared.
///
/// # Errors
/// When the runs are of different studies, or of one that this lab does not have.
pub fn compare(a: &Run, b: &Run) -> anyhow::Result<String> {
    if a.study != b.study {
        bail!(
            "run {} is of {} and run {} of {}: only runs of the same study can be compared",
            a.id,
            a.study,
            b.id,
            b.study
        );
    }
    let study = catalogue::named(&a.study)?;
    Ok(by(a, b, study.title(), &study.headline()))
}

fn by(a: &Run, b: &Run, title: &str, headline: &Headline) -> String {
    let mut text = format!("# {title}: run {} and run {}\n", a.id, b.id);
    let figures = (Figures::of(a), Figures::of(b));
    let panels = union(figures.0.panels(), figures.1.panels());
    let all: BTreeSet<&str> = [a, b]
        .into_iter()
        .flat_map(|run| &run.cells)
        .flat_map(|cell| cell.measured.values.keys().map(String::as_str))
        .collect();
    let values: Vec<&str> = match headline.values {
        [] => all.into_iter().collect(),
        // Runs of an older lab lack some.
        values => values.iter().copied().filter(|value| all.contains(value)).collect(),
    };
    for value in values {
        for panel in &panels {
            let first = || {
                [&figures.0, &figures.1]
                    .into_iter()
                    .find_map(|figures| figures.configurations(panel).first().copied())
            };
            // A user's server may lack it.
            let has = |one: &&Configuration| {
                [&figures.0, &figures.1].iter().any(|figures| figures.configurations(panel).contains(one))
            };
            let Some(baseline) = headline.baseline.as_ref().filter(has).or_else(first) else { continue };
            let _ = write!(text, "\n## {value}, {panel}: ratio to {baseline}\n\n");
            text += &ratios(&figures, panel, baseline, value, (a.id, b.id));
        }
    }
    text += "\nEach ratio is the median of the rounds' ratios, with their range; a change is marked with * where the \
             ranges of the two runs do not touch.\n";
    text + &differing_facts(a, b)
}

fn ratios(
    (a, b): &(Figures, Figures),
    panel: &Panel,
    baseline: &Configuration,
    value: &str,
    ids: (i64, i64),
) -> String {
    let mut text = format!(
        "| threads | configuration | run {} | run {} | change |\n|--:|---|--:|--:|--:|\n",
        ids.0, ids.1
    );
    let mut threads = union(a.threads(panel), b.threads(panel));
    threads.sort_unstable();
    let configurations = union(a.configurations(panel), b.configurations(panel));
    for threads in threads {
        for configuration in configurations.iter().filter(|one| **one != baseline) {
            let point = panel.point(*configuration, threads);
            let ratio = |figures: &Figures| figures.ratio(&point, baseline, value);
            let (a, b) = (ratio(a), ratio(b));
            let configuration = super::markdown::cell(&configuration.to_string());
            let change = change(&a, &b);
            let _ =
                writeln!(text, "| {threads} | {configuration} | {} | {} | {change} |", shown(&a), shown(&b));
        }
    }
    text
}

fn shown(ratio: &Result<Spread, Missing>) -> String {
    match ratio {
        Ok(Spread { median, range: (low, high), rounds }) if *rounds > 1 => {
            format!("{median:.3} ({low:.3}–{high:.3})")
        }
        Ok(spread) => format!("{:.3}", spread.median),
        Err(Missing(reason)) => format!("— {}", super::markdown::cell(reason)),
    }
}

fn change(a: &Result<Spread, Missing>, b: &Result<Spread, Missing>) -> String {
    let (Ok(a), Ok(b)) = (a, b) else { return "—".to_owned() };
    if a.median == 0.0 {
        return "—".to_owned();
    }
    let apart = a.range.1 < b.range.0 || b.range.1 < a.range.0;
    format!("{:+.1} %{}", (b.median / a.median - 1.0) * 100.0, if apart { " *" } else { "" })
}

/// The facts that only one run has, or that differ. What lies in the folder of the run itself has another name in every
/// run and is left out.
fn differing_facts(a: &Run, b: &Run) -> String {
    let mut facts: BTreeMap<(&str, &str), [Vec<&str>; 2]> = BTreeMap::new();
    for (side, run) in [a, b].into_iter().enumerate() {
        let folder =
            run.facts.iter().find(|fact| (fact.about.as_str(), fact.name.as_str()) == ("disk", "folder"));
        let is_own = |fact: &Fact| {
            fact.about != apart::ABOUT
                && folder
                    .is_some_and(|folder| fact != folder && Path::new(&fact.value).starts_with(&folder.value))
        };
        for fact in run.facts.iter().filter(|fact| !is_own(fact)) {
            facts.entry((&fact.about, &fact.name)).or_default()[side].push(&fact.value);
        }
    }
    facts.retain(|_, [a, b]| a != b);
    if facts.is_empty() {
        return "\nBoth were measured on the same: no fact of the environment differs.\n".to_owned();
    }
    let mut text = format!(
        "\n## What differs of what they were measured on\n\n| about | fact | run {} | run {} |\n|---|---|---|---|\n",
        a.id, b.id
    );
    for ((about, name), values) in facts {
        let [a, b] = values.map(|values| match values.len() {
            0 => "—".to_owned(),
            _ => super::markdown::cell(&values.join("; ")),
        });
        let (about, name) = (super::markdown::cell(about), super::markdown::cell(name));
        let _ = writeln!(text, "| {about} | {name} | {a} | {b} |");
    }
    text
}

/// All of `a`, then what only `b` has.
fn union<T: PartialEq>(a: Vec<T>, b: Vec<T>) -> Vec<T> {
    let mut all = a;
    for item in b {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::virtual_replica::{FSYNC_MODE_0, FSYNC_MODE_1};
    use crate::report::example;

    const HEADLINE: Headline = Headline { values: &["qps"], baseline: Some(example::ALONE) };

    #[test]
    fn runs_of_different_studies_are_refused() {
        let a = example::virtual_replica();
        let b = Run { id: 9, study: "sync-binlog".to_owned(), ..a.clone() };
        let error = compare(&a, &b).unwrap_err().to_string();
        assert!(error.contains("run 7 is of virtual-replica and run 9 of sync-binlog"), "{error}");
    }

    #[test]
    fn a_run_twice_as_fast_has_the_same_ratios() {
        let a = example::virtual_replica();
        let mut b = Run { id: 8, ..a.clone() };
        for cell in &mut b.cells {
            cell.measured.values.values_mut().for_each(|value| *value *= 2.0);
        }
        let text = by(&a, &b, "Title", &HEADLINE);
        assert_eq!(text.matches("| +0.0 % |").count(), 8 * 4, "{text}");
        assert!(!text.contains("% *") && text.contains("no fact of the environment differs"), "{text}");
    }

    #[test]
    fn without_names_all_values_are_compared_to_what_was_measured_first() {
        let a = example::virtual_replica();
        let text = by(&a, &a, "Title", &Headline { values: &[], baseline: None });
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(
            headings,
            ["## qps, mysql-9.7: ratio to source alone", "## tps, mysql-9.7: ratio to source alone"]
        );
    }

    #[test]
    fn what_changed_and_what_is_missing_is_said() {
        let a = example::virtual_replica();
        let mut b = Run { id: 8, ..a.clone() };
        b.facts[0].value = "Another | processor".to_owned();
        for (name, value) in [("folder", "/lab"), ("data", "/lab/source-x/data")] {
            b.facts.push(Fact::new("disk", name, value));
        }
        b.facts.push(Fact::new(apart::ABOUT, "--source-dir", "/lab/memory"));
        for cell in &mut b.cells {
            if example::is(cell, FSYNC_MODE_1, 32) {
                cell.measured.values.values_mut().for_each(|value| *value *= 0.5);
            }
            if example::is(cell, FSYNC_MODE_0, 2) {
                cell.measured.refuse("semi-sync fell back");
            }
        }
        let text = by(&a, &b, "Title", &HEADLINE);
        let line =
            |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
        assert!(line("| 32 | binlogd, fsync_mode 1 |").ends_with("| -50.0 % * |"), "{text}");
        assert!(
            line("| 2 | binlogd, fsync_mode 0 |").ends_with("| — invalid: semi-sync fell back | — |"),
            "{text}"
        );
        assert_eq!(line("| disk | folder |"), "| disk | folder | — | /lab |");
        assert_eq!(line("| disk | data |"), "", "what lies in the run's own folder is another in every run");
        assert_eq!(line("| set apart | --source-dir"), "| set apart | --source-dir | — | /lab/memory |");
        assert_eq!(
            line("| machine | processor |"),
            "| machine | processor | Test Processor \\<3> & sons | Another \\| processor |"
        );
    }
}
