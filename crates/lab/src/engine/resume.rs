//! Which run is measured: a new one, or one that was interrupted.

use super::job::{Begin, Job};
use crate::machine::environment;
use crate::model::{Fact, Order};
use crate::point::CellKey;
use crate::progress::{label, say};
use crate::results::number::time;
use crate::store::{Store, without_passwords};
use crate::study::Plan;
use anyhow::bail;
use std::collections::BTreeSet;

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
    if store.summaries()?.iter().any(|held| held.id == id && held.imported) {
        bail!("run {id} was measured elsewhere and imported: it can go on only where it was begun");
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
    let warnings = warnings(id, changes(&run.facts, job.facts, environment::is_lasting));
    warnings.iter().for_each(|warning| say(&format!("warning: {}", warning.value)));
    store.keep_facts(id, &warnings)?;
    Ok(id)
}

/// A run that goes on, and what is known of it.
#[derive(Debug)]
pub(super) struct Resumed {
    run: i64,
    /// Cells that were measured before; 0 once the gap after them was told.
    cells: usize,
    /// What was kept of the servers before, and of each scene since.
    servers: Vec<Fact>,
}

impl Resumed {
    /// The run of that number, with the facts that were kept and the cells that were measured before.
    pub(super) fn of(run: i64, facts: &[Fact], cells: usize) -> Resumed {
        Resumed { run, cells, servers: facts.iter().filter(|fact| is_version(fact)).cloned().collect() }
    }

    /// The warnings that are due when a scene was set up again and these are its facts: a server may be of another
    /// version by now.
    pub(super) fn set_up(&mut self, facts: &[Fact]) -> Vec<Fact> {
        let warnings = warnings(self.run, changes(&self.servers, facts, is_version));
        self.servers.extend(facts.iter().filter(|fact| is_version(fact)).cloned());
        warnings
    }

    /// That there is a gap before the cell that began then (seconds since 1970). None when no cell is before it, and but
    /// once.
    pub(super) fn gap(&mut self, began: u64) -> Option<Fact> {
        let cells = match std::mem::take(&mut self.cells) {
            0 => return None,
            1 => "1 cell".to_owned(),
            cells => format!("{cells} cells"),
        };
        Some(warning(format!(
            "the run was interrupted after {cells} and went on at {}: ratios of the round that was being measured \
             then are made across the gap",
            time(began)
        )))
    }
}

/// Of the servers whose cells are measured, and of their replicas.
fn is_version(fact: &Fact) -> bool {
    fact.name == "version" && ["server ", "replica "].iter().any(|about| fact.about.starts_with(about))
}

fn warnings(run: i64, changes: Vec<String>) -> Vec<Fact> {
    let change = |change| warning(format!("run {run} goes on under other conditions: {change}"));
    changes.into_iter().map(change).collect()
}

/// As the report finds it.
fn warning(value: String) -> Fact {
    Fact::new("lab", "warning", value)
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
    for ((option, begun), (_, asked)) in begun.apart.options().into_iter().zip(asked.apart.options()) {
        compare(option, begun, asked);
    }
    let names: BTreeSet<&String> = begun.settings.0.keys().chain(asked.settings.0.keys()).collect();
    for name in names {
        let value =
            |order: &Order| order.settings.0.get(name).cloned().unwrap_or_else(|| "not known".to_owned());
        compare(&format!("--set {name}"), value(&begun), value(&asked));
    }
    differences
}

/// What was one thing when the run began and is another now, such as the kernel, of the facts that should not change.
fn changes(then: &[Fact], now: &[Fact], is_lasting: fn(&Fact) -> bool) -> Vec<String> {
    let lasting = now.iter().filter(|fact| is_lasting(fact));
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
