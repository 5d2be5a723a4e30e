//! `binlogd-lab run`.

mod leftover;
mod place;

pub(super) use self::place::JournalArgs;
use self::place::PlaceArgs;
use crate::apart::Apart;
use crate::engine::{self, Begin, Job};
use crate::lab::Lab;
use crate::machine::changes;
use crate::machine::environment::Environment;
use crate::model::{Order, Profile, ServerChoice};
use crate::progress::say;
use crate::store::{Store, now};
use crate::study::Study;
use anyhow::bail;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Arguments of `binlogd-lab run`.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// Studies by name, or `all`
    #[arg(required = true, value_name = "STUDY")]
    studies: Vec<String>,
    /// Size of the run: a minute or two a study, about ten, about two hours with every published cell, or as published
    #[arg(long, value_enum, default_value = "quick", hide_possible_values = false)]
    profile: Profile,
    /// Server to measure, may be repeated: mysql:9.7, mysql:8.0, mysql:8.0.15, mysql:5.7, mariadb:10.11, mariadb:11.8,
    /// or one of yours as mysql://user:password@host:port; default: the study's own choice
    #[arg(long = "server", value_name = "SERVER")]
    servers: Vec<ServerChoice>,
    /// Setting of the study in place of the profile's, may be repeated; `list` shows the names
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = pair)]
    settings: Vec<(String, String)>,
    /// Go on with the newest run of each study, or with run RUN, where it was interrupted; needs the same options as it
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true)]
    resume: Option<Option<i64>>,
    #[command(flatten)]
    place: PlaceArgs,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or("KEY=VALUE is wanted".to_owned())
}

/// Runs the studies one after the other.
pub(super) fn run(all: &[&dyn Study], args: &RunArgs, db: &Path, command: &str) -> anyhow::Result<()> {
    let studies = chosen(all, &args.studies)?;
    let mut orders = orders(&studies, args)?;
    let lab = args.place.lab()?;
    for order in &mut orders {
        order.apart = lab.apart.clone();
        order.apart.check(order.is_of_users_servers())?;
    }
    let mut store = Store::open_or_create(db)?;
    let mut jobs = Vec::new();
    for (study, order) in studies.into_iter().zip(&orders) {
        // Before anything is measured: an order without sense is told now, not after the studies before it.
        engine::planned(study, order)?;
        if let Some(begin) = begin(study, order, args, &store)? {
            jobs.push((study, order, begin));
        }
    }
    let _folders: Vec<leftover::FolderLock> =
        lab.dirs().into_iter().map(leftover::FolderLock::take).collect::<anyhow::Result<_>>()?;
    // First, because it holds for everybody on this machine, whatever else goes wrong.
    let restore = || changes::restore(&lab.journals).map(|done| done.iter().for_each(|line| say(line)));
    let restored = restore();
    leftover::remove(&lab, &all.iter().map(|study| study.name()).collect::<Vec<_>>())?;
    // Once more where it failed: a control group goes only after the server in it.
    restored.or_else(|_| restore())?;
    let mut jobs = jobs.into_iter();
    let done =
        jobs.try_for_each(|(study, order, begin)| run_one(study, order, begin, command, &lab, &mut store));
    unless_unrestored(done, &lab)
}

/// How the runs ended, unless a server of the user's could not be set back: that is the last thing to be said then.
fn unless_unrestored(done: anyhow::Result<()>, lab: &Lab) -> anyhow::Result<()> {
    if !lab.unrestored.load(Ordering::Relaxed) {
        return done;
    }
    if let Err(error) = done {
        say(&format!("error: {error:#}"));
    }
    bail!(
        "a server of yours is not as it was before, the lines above say why: run binlogd-lab restore --journals {}",
        lab.journals.display()
    )
}

fn run_one(
    study: &dyn Study,
    order: &Order,
    begin: Begin,
    command: &str,
    lab: &Lab,
    store: &mut Store,
) -> anyhow::Result<()> {
    // Before the look, whose writes would disturb the run of another process.
    drop(store.lock()?);
    let Environment { facts, warnings } = Environment::look(lab, command)?;
    warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    let began = now();
    let job = Job { study, order, command, facts: &facts, begin };
    let outcome = engine::run(&job, lab, store)?;
    let took = crate::progress::clock(Duration::from_secs(now().saturating_sub(began)));
    println!(
        "run {} of {} is finished after {took}: {} cells, {} of them invalid, {} scenes skipped",
        outcome.run,
        study.name(),
        outcome.cells,
        outcome.invalid,
        outcome.skipped
    );
    Ok(())
}

/// The studies of these names, each once, in the order of `all`.
fn chosen<'a>(all: &[&'a dyn Study], names: &[String]) -> anyhow::Result<Vec<&'a dyn Study>> {
    let known: Vec<&str> = all.iter().map(|study| study.name()).collect();
    if let Some(unknown) = names.iter().find(|name| *name != "all" && !known.contains(&name.as_str())) {
        bail!("no study is called {unknown:?}; there are {}, and `all`", known.join(", "));
    }
    let is_chosen = |study: &&&dyn Study| names.iter().any(|name| name == "all" || name == study.name());
    Ok(all.iter().filter(is_chosen).copied().collect())
}

/// What is asked of each study. A setting is given to the studies that have it.
fn orders(studies: &[&dyn Study], args: &RunArgs) -> anyhow::Result<Vec<Order>> {
    let mut orders: Vec<Order> = studies
        .iter()
        .map(|study| Order {
            profile: args.profile,
            servers: args.servers.clone(),
            settings: study.settings(args.profile),
            apart: Apart::default(),
        })
        .collect();
    for (name, value) in &args.settings {
        let mut known = false;
        for setting in orders.iter_mut().filter_map(|order| order.settings.0.get_mut(name)) {
            setting.clone_from(value);
            known = true;
        }
        if !known {
            let names = |order: &Order| order.settings.0.keys().cloned().collect::<Vec<_>>().join(", ");
            let names = studies
                .iter()
                .zip(&orders)
                .map(|(study, order)| format!("{}: {}", study.name(), names(order)));
            bail!("--set {name}: no such setting; there are: {}", names.collect::<Vec<_>>().join("; "));
        }
    }
    Ok(orders)
}

/// How the run of a study begins; none when there is nothing left to do.
fn begin(study: &dyn Study, order: &Order, args: &RunArgs, store: &Store) -> anyhow::Result<Option<Begin>> {
    let name = study.name();
    match args.resume {
        None => Ok(Some(Begin::New)),
        Some(Some(run)) if args.studies.len() == 1 && name == args.studies[0] => Ok(Some(Begin::Resume(run))),
        Some(Some(run)) => bail!("--resume={run} goes on with one run: name its study alone"),
        Some(None) => {
            let newest = store.newest(name)?;
            match newest {
                Some(run) if run.finished.is_none() => Ok(Some(Begin::Resume(run.id))),
                Some(run) if engine::differences(&run.order, order).is_empty() => {
                    say(&format!(
                        "{name}: nothing to resume, run {} is finished; without --resume a new run begins",
                        run.id
                    ));
                    Ok(None)
                }
                _ => {
                    say(&format!("{name}: nothing to resume, a new run begins"));
                    Ok(Some(Begin::New))
                }
            }
        }
    }
}
