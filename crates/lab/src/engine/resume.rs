//! Which run is measured: a new one, or one that was interrupted.

use super::Job;
use crate::environment;
use crate::model::{CellKey, Fact, Order};
use crate::progress::{label, say};
use crate::store::{Store, without_passwords};
use crate::study::Plan;
use anyhow::bail;
use std::collections::BTreeSet;

/// How a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// A new run.
    New,
    /// The run of that number goes on.
    Resume(i64),
}

/// The number of the run that the job measures into.
pub(super) fn run_of(job: &Job<'_>, plan: &Plan, store: &mut Store) -> anyhow::Result<i64> {
    let id = match job.begin {
        Begin::New => return store.begin(job.study.name(), job.order, job.command),
        Begin::Resume(id) => id,
    };
    let run = store.run(id)?;
    if run.study != job.study.name() {
        bail!("run {id} is of the study {}, not of {}", run.study, job.study.name());
    }
    if run.finished.is_some() {
        bail!("run {id} is finished, there is nothing to resume; without --resume a new run begins");
    }
    let differences = differences(&run.order, job.order);
    if !differences.is_empty() {
        bail!(
            "run {id} was begun with another order, and one run has one order: {}; resume it with the options of its own \
             command, which was: {}",
            differences.join("; "),
            run.command
        );
    }
    let planned: BTreeSet<&CellKey> = plan.scenes.iter().flat_map(|scene| &scene.cells).collect();
    if let Some(foreign) = run.cells.iter().find(|cell| !planned.contains(&cell.key)) {
        bail!(
            "run {id} holds a cell that this binlogd-lab would not measure ({}): it was begun by another version, which \
             alone can resume it",
            label(&foreign.key)
        );
    }
    for change in changes(&run.facts, job.facts) {
        say(&format!("warning: run {id} goes on under other conditions: {change}"));
    }
    Ok(id)
}

/// What differs between two orders, each in a few words; passwords do not.
pub fn differences(begun: &Order, asked: &Order) -> Vec<String> {
    let (begun, asked) = (without_passwords(begun), without_passwords(asked));
    let mut differences = Vec::new();
    let mut compare = |name: &str, begun: String, asked: String| {
        if begun != asked {
            differences.push(format!("{name} was {begun}, now {asked}"));
        }
    };
    compare(
        "--profile",
        format!("{:?}", begun.profile).to_lowercase(),
        format!("{:?}", asked.profile).to_lowercase(),
    );
    let servers = |order: &Order| match order.servers.as_slice() {
        [] => "the study's own".to_owned(),
        servers => servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    compare("--server", servers(&begun), servers(&asked));
    let names: BTreeSet<&String> = begun.settings.0.keys().chain(asked.settings.0.keys()).collect();
    for name in names {
        let value =
            |order: &Order| order.settings.0.get(name).cloned().unwrap_or_else(|| "not known".to_owned());
        compare(&format!("--set {name}"), value(&begun), value(&asked));
    }
    differences
}

/// What was one thing when the run began and is another now, such as the kernel.
fn changes(then: &[Fact], now: &[Fact]) -> Vec<String> {
    let lasting = now.iter().filter(|fact| environment::is_lasting(fact));
    let change = |fact: &Fact| {
        let values: Vec<&str> = then
            .iter()
            .filter(|known| known.about == fact.about && known.name == fact.name)
            .map(|known| known.value.as_str())
            .collect();
        let known = values.is_empty() || values.contains(&fact.value.as_str());
        (!known)
            .then(|| format!("{}, {}: was {}, now {}", fact.about, fact.name, values.join(", "), fact.value))
    };
    lasting.filter_map(change).collect()
}
