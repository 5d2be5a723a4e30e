//! A run with everything that the report says of it, whatever it is written as.

use crate::outline::Part;
use crate::point::Point;
use crate::reference;
use crate::reference::publication::Publication;
use crate::results::number;
use crate::results::run::{Cell, Run};
use crate::study::catalogue;

/// A run in the report.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub(super) run: &'a Run,
    pub(super) title: String,
    pub(super) summary: String,
    pub(super) parts: Vec<Part>,
    pub(super) publication: Option<Publication>,
}

/// What the report begins with.
pub(super) const INTRODUCTION: &str = "Published studies of what it costs MySQL and MariaDB to keep a binary log that \
    survives a crash, repeated by binlogd-lab. Every figure is the median of the rounds, with the lowest and the highest \
    round. The configurations that are compared took turns, and a ratio is made from two cells of the same round. A cell \
    in which the thing to be measured was not in force does not count; it is listed with the reason. Absolute figures \
    belong to the machine that they were measured on: compare ratios only.";

impl Section<'_> {
    /// Of this run, with the outline of its study.
    pub(super) fn of(run: &Run) -> anyhow::Result<Section<'_>> {
        let study = catalogue::named(&run.study)?;
        Ok(Section {
            run,
            title: study.title().to_owned(),
            summary: study.summary().to_owned(),
            parts: study.outline(run),
            publication: reference::publication(&run.study),
        })
    }

    /// The cells that do not count.
    pub(super) fn invalid(&self) -> impl Iterator<Item = (&Cell, &str)> {
        self.run.cells.iter().filter_map(|cell| Some((cell, cell.measured.invalid.as_deref()?)))
    }

    /// How large the run was and how much of it counts, such as `Run 7`, `quick profile`, `84 cells, all valid`.
    pub(super) fn extent(&self) -> Vec<String> {
        let run = self.run;
        let profile = match run.order.profile {
            crate::model::Profile::Smoke => {
                "smoke profile: it shows that the study works, its numbers mean little"
            }
            crate::model::Profile::Quick => "quick profile",
            crate::model::Profile::Grid => {
                "grid profile: every published cell, on data and in seconds for two processors"
            }
            crate::model::Profile::Full => "full profile",
        };
        let invalid = self.invalid().count();
        let valid =
            if invalid == 0 { "all valid".to_owned() } else { format!("{invalid} of them not valid") };
        let took = match run.finished {
            Some(finished) => format!("took {}", number::duration(finished.saturating_sub(run.started))),
            None => "not finished: what is missing was not measured".to_owned(),
        };
        vec![
            format!("Run {}", run.id),
            profile.to_owned(),
            number::time(run.started),
            took,
            format!("{} cells, {valid}", run.cells.len()),
        ]
    }

    /// The machine in one line, of the facts that are known.
    pub(super) fn machine(&self) -> String {
        let fact = |about: &str, name: &str| {
            let fact = self.run.facts.iter().find(|fact| fact.about == about && fact.name == name)?;
            (fact.value != "unknown").then_some(fact.value.as_str())
        };
        let parts = [
            fact("machine", "processor").map(str::to_owned),
            fact("machine", "cores")
                .map(|cores| format!("{cores} {}", if cores == "1" { "core" } else { "cores" })),
            fact("machine", "memory, MiB").map(memory),
            fact("machine", "distribution").map(str::to_owned),
            fact("machine", "kernel").map(str::to_owned),
            fact("disk", "file system").map(str::to_owned),
            fact("disk", "write and fdatasync of 4 KiB, p50, µs")
                .map(|latency| format!("{latency} µs to write and sync 4 KiB (median)")),
            fact("binlogd", "version").map(str::to_owned),
        ];
        parts.into_iter().flatten().collect::<Vec<String>>().join(" · ")
    }

    /// What was set apart, in whole sentences.
    pub(super) fn apart(&self) -> Vec<String> {
        self.run.order.apart.sentences(&self.run.facts)
    }

    /// What was found wrong with the machine when the run began, where it was interrupted, and what had changed when it
    /// went on.
    pub(super) fn warnings(&self) -> impl Iterator<Item = &str> {
        let warnings = self.run.facts.iter().filter(|fact| fact.about == "lab" && fact.name == "warning");
        warnings.map(|fact| fact.value.as_str())
    }
}

/// `7.8 GiB of memory`, of MiB.
fn memory(mib: &str) -> String {
    match mib.parse::<f64>() {
        Ok(mib) => format!("{:.1} GiB of memory", mib / 1024.0),
        Err(_) => format!("{mib} MiB of memory"),
    }
}

/// What an invalid cell was, in one line: `mysql-9.7, ext4, binlogd, 32 threads, round 2`; rounds count from 1 here.
pub(super) fn describe(cell: &Cell) -> String {
    let Point { panel, configuration, threads } = &cell.key.point;
    format!("{panel}, {configuration}, {threads} threads, round {}", cell.key.round + 1)
}

#[cfg(test)]
mod tests {
    use crate::report::example;

    #[test]
    fn the_machine_is_told_in_one_line_without_what_is_not_known() {
        let mut run = example::virtual_replica();
        run.facts
            .iter_mut()
            .filter(|fact| fact.name == "file system")
            .for_each(|fact| fact.value = "unknown".to_owned());
        assert_eq!(
            example::section(&run).machine(),
            "Test Processor <3> & sons · 2 cores · 7.8 GiB of memory · 1250 µs to write and sync 4 KiB (median)"
        );
    }

    #[test]
    fn a_run_that_was_interrupted_says_so() {
        let mut run = example::virtual_replica();
        assert_eq!(example::section(&run).extent()[3..], ["took 12 min 34 s", "120 cells, all valid"]);
        run.finished = None;
        run.cells[5].measured.refuse("errors");
        let extent = example::section(&run).extent();
        assert_eq!(
            extent[3..],
            ["not finished: what is missing was not measured", "120 cells, 1 of them not valid"]
        );
    }
}
