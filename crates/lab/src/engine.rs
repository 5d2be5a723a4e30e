//! A run: the cells of a plan in turn, each kept before the next begins.

mod job;
mod resume;

pub use self::job::{Begin, Job};
pub use self::resume::differences;

use self::resume::Resumed;
use crate::apart;
use crate::lab::{Lab, NO_SKIPS, Skip};
use crate::model::{Fact, Measured, Order};
use crate::point::CellKey;
use crate::progress::{Estimate, Progress, label};
use crate::results::run::Cell;
use crate::store::{Store, now};
use crate::study::{Plan, Scene, Stage, Study};
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Instant;

/// What the facts are about that say which cells were measured twice, and why.
pub const MEASURED_AGAIN: &str = "measured again";

/// How much the round trip over a link may differ from that over the first one of the run, of that: links are set right by
/// measuring, each anew.
const ROUND_TRIP_TOLERANCE: f64 = 0.25;
/// The same in µs, where a quarter is less: a processor takes that to wake up, or not.
const ROUND_TRIP_TOLERANCE_US: f64 = 50.0;

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its number in the file of results.
    pub run: i64,
    /// Cells that the run holds.
    pub cells: usize,
    /// Of `cells`, those that do not count.
    pub invalid: usize,
    /// Scenes that were skipped.
    pub skipped: usize,
}

/// Context of the error of a run that has begun, and was not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenOff {
    /// Its number in the file of results.
    pub run: i64,
}

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} was broken off, the same command with --resume goes on with it", self.run)
    }
}

/// Runs a study to its end and keeps what it measures.
///
/// A cell that is invalid is measured once more, and the second result is kept.
///
/// # Errors
/// When the plan has no sense, another process measures into the file, the run cannot be resumed, a scene does not work,
/// and when the run is broken off. What was measured before is kept, and the run can be resumed.
pub fn run(job: &Job<'_>, lab: &Lab, store: &mut Store) -> anyhow::Result<Outcome> {
    let plan = planned(job.study, job.order)?;
    let _lock = store.lock()?;
    let run = resume::run_of(job, &plan, store)?;
    store.keep_facts(run, job.facts)?;
    let known = store.run(run)?;
    let resumed = match job.begin {
        Begin::New => None,
        Begin::Resume(_) => Some(Resumed::of(run, &known.facts, known.cells.len())),
    };
    let round_trip = round_trip(&known.facts);
    let mut recorder = Recorder { store, run, resumed, round_trip, link_is_kept: false };
    let measured = measure_plan(job.study, job.order, &plan, &known.cells, lab, &mut recorder);
    measured.context(BrokenOff { run })?;
    store.finish(run)?;
    let measured = store.run(run)?;
    let invalid = measured.cells.iter().filter(|cell| cell.measured.invalid.is_some()).count();
    Ok(Outcome { run, cells: measured.cells.len(), invalid, skipped: measured.skipped.len() })
}

/// The plan of an order, looked through.
///
/// # Errors
/// As [`Study::plan`], and when a scene or a cell is in it twice.
pub fn planned(study: &dyn Study, order: &Order) -> anyhow::Result<Plan> {
    let plan = study.plan(order).with_context(|| format!("the study {} cannot be run so", study.name()))?;
    let (mut scenes, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for scene in &plan.scenes {
        if !scenes.insert(&scene.name) {
            bail!("the plan of {} has the scene {:?} twice", study.name(), scene.name);
        }
        if let Some(twice) = scene.cells.iter().find(|cell| !cells.insert(*cell)) {
            bail!("the plan of {} has a cell twice: {}", study.name(), label(twice));
        }
    }
    if cells.is_empty() {
        bail!("the plan of {} is empty", study.name());
    }
    Ok(plan)
}

/// Keeps what one run measures.
struct Recorder<'a> {
    store: &'a mut Store,
    run: i64,
    /// Where it goes on.
    resumed: Option<Resumed>,
    /// Over the first link of the run, in µs.
    round_trip: Option<f64>,
    /// Whether the facts of a link were kept since the run was begun or taken up.
    link_is_kept: bool,
}

impl Recorder<'_> {
    /// Keeps what is known of a scene that was set up, and warns of what is another than it was.
    fn scene(&mut self, facts: &[Fact], lab: &Lab) -> anyhow::Result<()> {
        let warnings = self.resumed.as_mut().map_or_else(Vec::new, |resumed| resumed.set_up(facts));
        warnings.iter().for_each(|warning| (lab.say)(&format!("warning: {}", warning.value)));
        self.store.keep_facts(self.run, &[facts, &warnings[..]].concat())
    }

    /// Keeps what the first link is like, and warns of another one that is clearly different. Each scene has a link of its
    /// own, which is made and set right anew.
    fn link(&mut self, scene: &str, facts: &[Fact], lab: &Lab) -> anyhow::Result<()> {
        if !std::mem::replace(&mut self.link_is_kept, true) {
            self.store.keep_facts(self.run, facts)?;
        }
        let Some(now) = round_trip(facts) else { return Ok(()) };
        let first = *self.round_trip.get_or_insert(now);
        if !differs(first, now) {
            return Ok(());
        }
        let warning = format!(
            "the network of the scene {scene} is another one than the first of this run: a message and its answer took \
             {now} µs before the load, not {first}"
        );
        (lab.say)(&format!("warning: {warning}"));
        self.store.keep_facts(self.run, &[Fact::new("lab", "warning", warning)])
    }

    /// Keeps a cell, and before the first one of a run that goes on, that there was a gap. Not when the run is taken up:
    /// it may be broken off again before it has measured anything, and that would be one gap told twice.
    fn cell(&mut self, cell: &Cell) -> anyhow::Result<()> {
        if let Some(gap) = self.resumed.as_mut().and_then(|resumed| resumed.gap(cell.started)) {
            self.store.keep_facts(self.run, &[gap])?;
        }
        self.store.keep_cell(self.run, cell)
    }
}

fn measure_plan(
    study: &dyn Study,
    order: &Order,
    plan: &Plan,
    known: &[Cell],
    lab: &Lab,
    recorder: &mut Recorder<'_>,
) -> anyhow::Result<()> {
    let measured: BTreeSet<&CellKey> = known.iter().map(|cell| &cell.key).collect();
    let left: Vec<(&Scene, Vec<&CellKey>)> = plan
        .scenes
        .iter()
        .map(|scene| (scene, scene.cells.iter().filter(|key| !measured.contains(key)).collect::<Vec<_>>()))
        .filter(|(_, cells)| !cells.is_empty())
        .collect();
    let cells_left: usize = left.iter().map(|(_, cells)| cells.len()).sum();
    let mut estimate = Estimate::new(cells_left, left.len(), plan.cell_seconds);
    known.iter().for_each(|cell| estimate.known(cell.took));
    let mut progress = Progress::begin(study.name(), known.len() + cells_left, known.len(), estimate);
    for (scene, cells) in left {
        lab.interrupt.check()?;
        progress.scene(&scene.name);
        let began = Instant::now();
        // Outlives what is set up behind it.
        let (_linked, set_up) = match lab.linked() {
            Ok(linked) => {
                // While nothing else goes on.
                let set_up = match linked.link.as_ref().map(|link| link.facts()).transpose() {
                    Ok(facts) => {
                        facts.map_or(Ok(()), |facts| recorder.link(&scene.name, &facts, lab))?;
                        study.set_up(order, scene, &linked)
                    }
                    Err(error) => Err(error),
                };
                (Some(linked), set_up)
            }
            Err(error) => (None, Err(error)),
        };
        let mut stage = match interruptible(lab, set_up) {
            Ok(stage) => stage,
            Err(error) if error.downcast_ref().is_some_and(Skip::is_allowed) => {
                let reason = format!("{error:#}");
                recorder.store.keep_skipped(recorder.run, &scene.name, &reason)?;
                progress.scene_is_skipped(&scene.name, cells.len(), &reason);
                continue;
            }
            Err(error) => {
                let mut what = format!("the scene {} cannot be set up", scene.name);
                if error.is::<Skip>() {
                    what.push_str(&format!(", and {NO_SKIPS} is set"));
                }
                return Err(error.context(what));
            }
        };
        let facts = interruptible(lab, stage.facts());
        let facts = facts.with_context(|| format!("nothing can be learnt of the scene {}", scene.name))?;
        recorder.scene(&facts, lab)?;
        recorder.store.forget_skipped(recorder.run, &scene.name)?;
        progress.scene_is_set_up(began.elapsed().as_secs_f64());
        for key in cells {
            lab.interrupt.check()?;
            progress.cell_begins(key);
            let began = Instant::now();
            let cell = measure_cell(stage.as_mut(), key, lab, recorder)
                .with_context(|| format!("no cell can be measured any more; the last was {}", label(key)))?;
            recorder.cell(&cell)?;
            progress.cell_ends(&cell, began.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

/// Measures a cell; once more when it is invalid.
fn measure_cell(
    stage: &mut dyn Stage,
    key: &CellKey,
    lab: &Lab,
    recorder: &mut Recorder<'_>,
) -> anyhow::Result<Cell> {
    let first = measure_once(stage, key, lab)?;
    let Some(reason) = &first.measured.invalid else { return Ok(first) };
    (lab.say)(&format!("{}: invalid, measured once more: {reason}", label(key)));
    let again = Fact::new(MEASURED_AGAIN, &label(key), reason);
    recorder.store.keep_facts(recorder.run, &[again])?;
    measure_once(stage, key, lab)
}

fn measure_once(stage: &mut dyn Stage, key: &CellKey, lab: &Lab) -> anyhow::Result<Cell> {
    let (started, began) = (now(), Instant::now());
    let measured = interruptible(lab, stage.measure(&key.point, key.round))?;
    let took = began.elapsed().as_secs_f64();
    Ok(Cell { key: key.clone(), started, took, measured: finite(measured) })
}

/// The round trip that was measured over a link, in µs.
fn round_trip(facts: &[Fact]) -> Option<f64> {
    apart::fact(facts, apart::ROUND_TRIP_P50)?.parse().ok()
}

/// Whether two round trips, in µs, are clearly not the same.
fn differs(first: f64, now: f64) -> bool {
    (now - first).abs() > (first * ROUND_TRIP_TOLERANCE).max(ROUND_TRIP_TOLERANCE_US)
}

/// What came of a step, but the interrupt when there was one: it may be the cause of whatever else went wrong, and what
/// was measured meanwhile is not to be trusted.
fn interruptible<T>(lab: &Lab, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
    lab.interrupt.check()?;
    outcome
}

/// Leaves out numbers that are none, such as the result of a division by 0, and refuses the cell for them.
fn finite(mut measured: Measured) -> Measured {
    let (values, wrong): (BTreeMap<_, _>, BTreeMap<_, _>) =
        std::mem::take(&mut measured.values).into_iter().partition(|(_, value)| value.is_finite());
    measured.values = values;
    let (series, wrong_series): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut measured.series)
        .into_iter()
        .partition(|(_, series)| series.iter().all(|value| value.is_finite()));
    measured.series = series;
    for name in wrong.keys().chain(wrong_series.keys()) {
        measured.refuse(format!("{name} came to no number"));
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_is_clearly_another_is_told_from_one_that_woke_up_later() {
        for (first, now) in [(41.0, 13.0), (247.0, 212.0), (2060.0, 2500.0)] {
            assert!(!differs(first, now) && !differs(now, first), "{first}, {now}");
        }
        for (first, now) in [(41.0, 100.0), (1060.0, 1500.0), (2060.0, 1000.0)] {
            assert!(differs(first, now) && differs(now, first), "{first}, {now}");
        }
    }

    #[test]
    fn numbers_that_are_none_are_left_out_and_the_cell_is_refused() {
        let mut measured = Measured::default();
        measured.put("tps", 1.0);
        measured.put("wait_us", f64::NAN);
        measured.series.insert("tps".to_owned(), vec![1.0, 2.0]);
        measured.series.insert("stalls".to_owned(), vec![1.0, f64::INFINITY]);
        let kept = finite(measured.clone());
        assert!(kept.values.keys().eq(["tps"]) && kept.series.keys().eq(["tps"]));
        assert_eq!(kept.invalid.unwrap(), "wait_us came to no number; stalls came to no number");
        measured.values.remove("wait_us");
        measured.series.remove("stalls");
        assert_eq!(finite(measured.clone()), measured);
    }
}
