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
use crate::report::{self, outline::Part};
use crate::run::Run;

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
    Question {
        asks: "Do commits stand when the binary log is rotated?",
        study: "rotation-stall",
        answer: rotation::advice,
    },
    Question { asks: "Compress the binary log?", study: "binlog-compression", answer: compression::advice },
];

/// One page of advice from these runs, as Markdown. A question whose study is not among them says how to measure it.
///
/// # Errors
/// When a run is of a study that this lab does not have.
pub fn page(runs: &[Run]) -> anyhow::Result<String> {
    let mut text = "# Advice from what was measured here\n\nEach figure is a ratio of two cells of the same round: the \
                    median of the rounds, with the lowest and the highest. Something is called shown when all rounds, three \
                    at least, lie on the same side. Chance alone does that once in four for three rounds, once in 64 for \
                    seven: where it matters, measure again with `--set rounds=7`. The loads are sysbench's and TPC-C's, not \
                    yours: what your transactions cost depends on their size and on how many clients commit at once.\n"
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
        assert!(of("What would a relaxed source").contains("not measured"), "{page}");
        assert!(page.contains("Test Processor"), "{page}");
        let smoke =
            Run { order: crate::model::Order { profile: Profile::Smoke, ..run.order.clone() }, ..run };
        assert!(super::page(&[smoke]).unwrap().contains("advise by the quick profile"));
    }
}
