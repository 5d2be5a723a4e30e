//! The report of runs: HTML, Markdown and CSV.
//!
//! | module | noun |
//! |---|---|
//! | `delays` | runs that differ in the delay of their network, side by side |
//! | `section` | a run with what the report says of it |
//! | `pictures` | each chart as a file |
//! | `html` | the page; `marks`: what a program finds its parts by |
//! | `table` | its tables |
//! | `chart` | its pictures: `axes`, `palette` |
//! | `markdown` | the same as text |
//! | `csv` | the cells, and what a run is beside them |
//! | `read_back` | runs of the CSV that a report has written |
//! | `lines` | the points as lines of JSON, and a page made from such lines |
//! | `compare` | two runs against each other |

mod chart;
pub mod compare;
pub mod csv;
mod delays;
#[cfg(test)]
pub(crate) mod example;
mod html;
pub mod lines;
mod markdown;
mod marks;
mod pictures;
pub mod read_back;
mod section;
mod table;

pub use compare::compare;

use crate::outline::Part;
use crate::results::run::Run;
use anyhow::Context;
use delays::Delays;
use section::Section;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the report of the runs into the folder, which is made when it is missing: `index.html` (one page that needs
/// nothing else), `report.md`, each chart as `charts/run-<id>-<title>.svg`, and of each run `run-<id>-<study>.csv` and `run-<id>-<study>-facts.csv`, with
/// `run-<id>-<study>-series.csv` when its cells have series ([`read_back`] makes runs of these); and `delays.csv`, the ratios of
/// runs that differ in the delay of their network. Gives the files, the page first.
///
/// # Errors
/// When a run is of a study that this lab does not have, and when a file cannot be written.
pub fn write(runs: &[Run], dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let sections = runs.iter().map(Section::of).collect::<anyhow::Result<Vec<Section>>>()?;
    let charts = dir.join("charts");
    fs::create_dir_all(&charts).with_context(|| format!("cannot make the folder {}", charts.display()))?;
    let mut files = vec![
        ("index.html".to_owned(), html::page(&sections)),
        ("report.md".to_owned(), markdown::text(&sections)),
    ];
    if let Some(text) = delays::csv(&Delays::of(runs.iter())) {
        files.push(("delays.csv".to_owned(), text));
    }
    files.extend(pictures::of(&sections));
    for run in runs {
        let name = format!("run-{}-{}", run.id, run.study);
        files.push((format!("{name}.csv"), csv::of(run)));
        files.push((format!("{name}{}", read_back::FACTS), csv::facts(run)?));
        if let Some(series) = csv::series(run) {
            files.push((format!("{name}{}", read_back::SERIES), series));
        }
    }
    let mut paths = Vec::with_capacity(files.len());
    for (name, text) in files {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

/// Where and how a run was measured, in a few sentences without their full stops: how large it was, on what machine, what was
/// set apart, and what was found wrong.
///
/// # Errors
/// When the run is of a study that this lab does not have.
pub fn where_measured(run: &Run) -> anyhow::Result<Vec<String>> {
    let section = Section::of(run)?;
    let mut sentences = vec![section.extent().join(", "), section.machine()];
    sentences.extend(section.apart().into_iter().map(|text| text.trim_end_matches('.').to_owned()));
    sentences.extend(section.warnings().map(|warning| format!("Warning: {warning}")));
    Ok(sentences)
}

/// Parts as Markdown.
pub fn parts_as_markdown(parts: &[Part]) -> String {
    parts.iter().map(markdown::of_part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_an_unknown_study_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let run = Run { study: "another".to_owned(), ..example::virtual_replica() };
        let error = write(&[run], dir.path()).unwrap_err().to_string();
        assert!(error.contains("another"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn runs_of_several_delays_stand_side_by_side_before_all_else() {
        let run = |id: i64, network: &str| {
            let mut run = Run { id, ..example::virtual_replica() };
            run.order.apart.network = Some(network.parse().unwrap());
            run
        };
        let dir = tempfile::tempdir().unwrap();
        let files = write(&[run(7, "delay=0ms"), run(8, "delay=0.5ms")], dir.path()).unwrap();
        assert!(files.iter().any(|file| file.ends_with("delays.csv")), "{files:?}");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let page = read("index.html");
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not on the page"));
        let chart = "<figure data-study=\"virtual-replica\" data-run=\"8\" data-title=\"Transactions a second by delay, \
                     ratio to source alone, 2 threads\">";
        assert!(place("<main>") < place(chart) && place(chart) < place("id=\"run-7\""));
        assert!(page.contains("href=\"#delays-8\"") && page.contains("</a>, delay=0.5ms"));
        let text = read("report.md");
        let heading = text.find("\n## What a durable copy costs by the delay of the network\n").unwrap();
        assert!(heading < text.find("Measured on: ").unwrap());
        assert!(text.contains("| threads | configuration | 0 ms | 0.5 ms |"), "{text}");
        let lines = read("delays.csv").lines().count();
        // Three of the lines of the chart at eight numbers of threads and two delays.
        assert_eq!(lines, 1 + 3 * 8 * 2);
    }

    /// A run of test data as the page shows it, with what can go wrong, and a series over time.
    #[test]
    #[ignore = "writes target/lab-report-of-test-data/index.html, to be looked at"]
    fn a_page_to_look_at() {
        let mut damaged = example::virtual_replica();
        example::damage(&mut damaged);
        damaged.id += 1;
        let whole = example::virtual_replica();
        let sections = [example::section(&whole), example::stall(&damaged)];
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/lab-report-of-test-data");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("index.html"), html::page(&sections)).unwrap();
        fs::write(dir.join("report.md"), markdown::text(&sections)).unwrap();
    }
}
