//! `binlogd-lab advise`: what a DBA should do by what was measured on this machine, each with its figure and range.
//!
//! | file | noun |
//! |---|---|
//! | `mod.rs` | the page |
//! | `verdict.rs` | whether a ratio shows anything, in words |
//! | `comparison.rs` | a table of verdicts over numbers of threads |
//! | `semi_sync.rs` | what semi-sync to binlogd costs, and what a real replica costs in its place |
//! | `relaxed.rs` | what a relaxed source gains and risks |
//! | `sync_binlog.rs` | which `sync_binlog` |
//! | `rotation.rs` | whether commits stand when the log is rotated |
//! | `compression.rs` | whether to compress |

mod comparison;
mod compression;
mod relaxed;
mod rotation;
mod semi_sync;
mod sync_binlog;
mod verdict;

use crate::model::Profile;
use crate::outline::Part;
use crate::report;
use crate::results::run::Run;

/// A question, and what answers it.
struct Question {
    asks: &'static str,
    /// The study that measures it.
    study: &'static str,
    answer: fn(&Run) -> Vec<Part>,
}

/// In the order of the page.
const QUESTIONS: [Question; 6] = [
    Question {
        asks: "What would semi-sync to binlogd cost this source?",
        study: "virtual-replica",
        answer: semi_sync::by_receiver,
    },
    Question {
        asks: "binlogd in the place of a semi-sync replica?",
        study: "semi-sync-cost",
        answer: semi_sync::in_place_of_a_replica,
    },
    Question {
        asks: "What would a relaxed source gain, and what would it risk?",
        study: "virtual-replica",
        answer: relaxed::advice,
    },
    Question { asks: "Which sync_binlog?", study: "sync-binlog", answer: sync_binlog::advice },
    Question { asks: rotation::QUESTION, study: "rotation-stall", answer: rotation::advice },
    Question { asks: "Compress the binary log?", study: "binlog-compression", answer: compression::advice },
];

/// One page of advice from these runs, as Markdown. A question whose study is not among them says how to measure it.
///
/// # Errors
/// When a run is of a study that this lab does not have.
pub fn page(runs: &[Run]) -> anyhow::Result<String> {
    let mut text = "# Advice from what was measured here\n\nEach comparison is a ratio of two cells of the same round, or of \
                    two values of one cell (at a rotation, and half-way between two): the median of the rounds, with the \
                    lowest and the highest. Something is called shown when all rounds, three at least, lie on the same side. \
                    Fewer rounds are told as what was seen, and are too few to tell: measure again with `--set rounds=3`. \
                    Chance alone puts three rounds on one side once in four, seven once in 64: where it matters, measure \
                    again with `--set rounds=7`. What has a scene of its own has no rounds in common with the others, which \
                    is said there: each of its rounds is held against each of theirs. The loads are the lab's (sysbench, \
                    TPC-C, and at a rotation updates of large rows), not yours: what your transactions cost depends on their \
                    size and on how many clients commit at once.\n"
        .to_owned();
    for run in runs {
        text += &format!("\n- {}: {}\n", run.study, report::where_measured(run)?.join(". "));
        if run.order.profile == Profile::Smoke {
            text += "  **The smoke profile shows that the study works; advise by the quick profile or a larger one.**\n";
        }
    }
    for Question { asks, study, answer } in &QUESTIONS {
        text += &format!("\n## {asks}\n");
        let of_study: Vec<&Run> = runs.iter().filter(|run| run.study == *study).collect();
        if of_study.is_empty() {
            text += &format!("\nNot measured yet: `binlogd-lab run {study}` does.\n");
        }
        for run in &of_study {
            // Of a study with a network between there is one for each delay.
            if of_study.len() > 1 {
                let network = run.order.apart.network.map(|network| format!(", --network {network}"));
                text += &format!("\n### Run {}{}\n", run.id, network.unwrap_or_default());
            }
            text += &report::parts_as_markdown(&answer(run));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outline::Entry;
    use crate::report::example;

    #[test]
    fn a_page_answers_what_was_measured_and_says_how_to_measure_the_rest() {
        let run = example::virtual_replica();
        let page = page(std::slice::from_ref(&run)).unwrap();
        let of = |heading: &str| {
            let rest = page.split_once(&format!("\n## {heading}")).unwrap().1;
            rest.split("\n## ").next().unwrap().to_owned()
        };
        // The published figures, in three rounds that all drift alike.
        let cost = of("What would semi-sync to binlogd cost");
        assert!(cost.contains("Shown at"), "{cost}");
        assert!(cost.contains("% less ("), "{cost}");
        assert!(of("Which sync_binlog?").contains("`binlogd-lab run sync-binlog`"));
        assert!(of("Compress").contains("`binlogd-lab run binlog-compression`"));
        assert!(!page.contains("### Run"), "{page}");
        // The example has no relaxed source.
        let relaxed = of("What would a relaxed source");
        assert!(relaxed.contains("not measured: “relaxed source"), "{relaxed}");
        // What a relaxed source has of its own is measured by another study.
        assert!(relaxed.contains(rotation::QUESTION), "{relaxed}");
        assert!(of(rotation::QUESTION).contains("`binlogd-lab run rotation-stall`"), "{page}");
        assert!(page.contains("Test Processor"), "{page}");
        let smoke =
            Run { order: crate::model::Order { profile: Profile::Smoke, ..run.order.clone() }, ..run };
        assert!(super::page(&[smoke]).unwrap().contains("advise by the quick profile"));
    }

    /// A misspelled name of a value would be told as not measured, in every row.
    #[test]
    fn every_column_has_a_figure_of_the_committed_runs() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab-runs/runs.tar.gz");
        let runs = report::read_back::runs(&docs).unwrap();
        let mut answered = 0;
        for Question { study, answer, .. } in &QUESTIONS {
            let Some(run) = runs.iter().rfind(|run| run.study == *study) else { continue };
            answered += 1;
            for part in answer(run) {
                let Part::Table(table) = part else { continue };
                for (at, column) in table.columns.iter().enumerate() {
                    let is_figure = |entry: &Entry| match entry {
                        Entry::Number(..) | Entry::Median { .. } => true,
                        Entry::Text(text) => !text.starts_with("not measured"),
                        Entry::Missing(_) => false,
                    };
                    assert!(
                        table.rows.iter().any(|row| is_figure(&row[at])),
                        "run {}, {:?}: nothing under {column:?}",
                        run.id,
                        table.title
                    );
                }
            }
        }
        assert!(answered >= 4);
    }
}
